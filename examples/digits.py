"""The whole road on real data: train, save, load, quantize, export, and let another runtime agree.

    python examples/digits.py            writes build/digits/ and prints one table

Data: scikit-learn's digits, first half to train, second half to test, unshuffled. Written:
weights.safetensors (torch's keys), digits.funct (the program), digits.onnx and digits_int8.onnx
(input x, float32 (N, 1, 8, 8), pixels / 16; output logits (N, 10)), and two pictures.
"""

import argparse
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from sklearn.datasets import load_digits
from tqdm import tqdm

import funct as ft
import funct.array as xp
from funct import export, nn, optim, quant, serialize

BATCH = 32
CALIBRATION_BATCH = 128


def load_data() -> tuple[Any, Any, Any, Any]:
    """Train and test images (N, 1, 8, 8) in [0, 1] and labels, halves of the data in order."""
    digits = load_digits()
    x = (digits.images / 16).astype(np.float32)[:, None]  # (N, 1, 8, 8)
    y = digits.target.astype(np.int64)
    half = len(x) // 2
    return x[:half], y[:half], x[half:], y[half:]


def make_model(key: Any) -> nn.Sequential:
    """A CNN of two convolutions; the keys of its state dict are torch's."""
    first, second, last = ft.random.split(key, 3)
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1, key=first),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.Conv2d(16, 32, 3, padding=1, key=second),
        nn.BatchNorm2d(32),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Dropout(0.25),
        nn.Linear(32 * 4 * 4, 10, key=last),
    )


def shifted(key: Any, x: Any) -> Any:
    """Each image moved by up to one pixel: the digits of the second half were written by others."""
    offsets = ft.random.randint(key, (x.shape[0], 2), 0, 3)
    padded = xp.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    window = xp.arange(8)
    return ft.vmap(lambda image, at: image[:, (at[0] + window)[:, None], at[1] + window])(
        padded, offsets
    )


def batches(key: Any, n: int, epochs: int) -> Iterator[tuple[int, Any]]:
    """(epoch, indices) of every step; each epoch is a new permutation."""
    for epoch in range(epochs):
        order = np.asarray(ft.random.permutation(ft.random.fold_in(key, epoch), n))
        for k in range(n // BATCH):
            yield epoch, order[k * BATCH : (k + 1) * BATCH]


def train(
    x: Any, y: Any, *, seed: int, epochs: int, progress: bool = True
) -> tuple[Any, list[float]]:
    """A trained model in eval mode, and the loss of every step."""
    init, shuffle, noise = ft.random.split(ft.random.key(seed), 3)
    params, rest = nn.partition(make_model(init))
    steps = epochs * (len(x) // BATCH)
    opt = optim.adamw(optim.schedule.one_cycle(0.01, steps), weight_decay=0.01)
    state = opt.init(params)

    @ft.jit
    def step(params: Any, rest: Any, state: Any, key: Any, x: Any, y: Any) -> Any:
        moved, dropped = ft.random.split(key)

        def loss(params: Any) -> Any:
            logits, model = nn.combine(params, rest)(shifted(moved, x), key=dropped)
            return nn.functional.cross_entropy(logits, y), nn.partition(model)[1]

        (value, rest), grads = ft.value_and_grad(loss, has_aux=True)(params)
        params, state, _ = opt.step(params, grads, state)
        return params, rest, state, value

    losses: list[float] = []
    order = batches(shuffle, len(x), epochs)
    bar = tqdm(order, total=steps, desc="train", disable=not progress, leave=False)
    for epoch, at in bar:
        key = ft.random.fold_in(noise, len(losses))
        params, rest, state, value = step(params, rest, state, key, x[at], y[at])
        losses.append(float(value))
        bar.set_postfix(epoch=epoch + 1, loss=f"{losses[-1]:.3f}", refresh=False)
    return nn.eval_mode(nn.combine(params, rest)), losses


def accuracy(logits: Any, y: Any) -> float:
    """Share of rows whose largest logit is the label's."""
    return float(np.mean(np.asarray(logits).argmax(1) == y))


def quantized(program: Any, x: Any) -> Any:
    """The program in int8, its ranges observed on the training images."""
    prepared = quant.prepare_pt2e(program, quant.int8_static())
    parts = [x[k : k + CALIBRATION_BATCH] for k in range(0, len(x), CALIBRATION_BATCH)]
    prepared = quant.calibrate(prepared, [(xp.asarray(p),) for p in parts])
    return quant.convert_pt2e(prepared)


def in_onnxruntime(path: Path, x: Any) -> Any:
    """Logits of an ONNX file, integer sums exact on every CPU: without VNNI they could saturate."""
    options = onnxruntime.SessionOptions()
    options.add_session_config_entry("session.x64quantprecision", "1")
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return session.run(["logits"], {"x": x})[0]


def export_all(model: Any, x: Any, folder: Path) -> tuple[Any, Any]:
    """Write every file; the float32 and the int8 program."""
    folder.mkdir(parents=True, exist_ok=True)
    serialize.save(nn.state_dict(model), folder / "weights.safetensors")
    fresh = nn.eval_mode(make_model(ft.random.key(99)))
    model = nn.load_state_dict(fresh, serialize.load(folder / "weights.safetensors"))
    program = export.export(model, (xp.asarray(x[:2]),), dynamic_shapes=({0: "N"},))
    export.save(program, folder / "digits.funct")
    program = export.load(folder / "digits.funct")
    small = quantized(program, x)
    names = {"input_names": ["x"], "output_names": ["logits"]}
    export.save(small, folder / "digits_int8.funct")
    export.to_onnx(program, path=folder / "digits.onnx", **names)
    export.to_onnx(small, path=folder / "digits_int8.onnx", **names)
    return program, small


def report(rows: list[tuple[str, float, Path, float | None]]) -> str:
    """The table: accuracy, file size, largest difference from funct."""
    lines = [f"{'':24s}{'accuracy':>10s}{'file':>12s}{'largest difference':>22s}", "-" * 68]
    for name, score, path, difference in rows:
        size = f"{path.stat().st_size / 1024:.1f} KiB"
        shown = {None: "", 0.0: "0, bit for bit"}.get(difference, f"{difference or 0:.2e}")
        lines.append(f"{name:24s}{score:10.4f}{size:>12s}{shown:>22s}")
    return "\n".join(lines)


def compare(model: Any, small: Any, x: Any, y: Any, folder: Path) -> str:
    """funct's logits and onnxruntime's, side by side."""
    rows: list[tuple[str, float, Path, float | None]] = []
    for name, fun, stem in (("float32", model, "digits"), ("int8", small, "digits_int8")):
        ours = np.asarray(fun(xp.asarray(x)))
        theirs = in_onnxruntime(folder / f"{stem}.onnx", x)
        difference = float(np.abs(theirs - ours).max())
        rows.append((name, accuracy(ours, y), folder / f"{stem}.funct", None))
        rows.append(
            (f"{name}, onnxruntime", accuracy(theirs, y), folder / f"{stem}.onnx", difference)
        )
    return report(rows)


def draw(losses: list[float], x: Any, y: Any, predicted: Any, folder: Path) -> None:
    """The learning curve and the misclassified digits, as PNG."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, axis = plt.subplots(figsize=(7, 4), layout="constrained")
    smooth = np.convolve(losses, np.ones(len(losses) // 40 + 1) / (len(losses) // 40 + 1), "valid")
    axis.semilogy(losses, color="0.8", label="each step")
    axis.semilogy(np.arange(len(smooth)) + len(losses) - len(smooth), smooth, label="running mean")
    axis.set(xlabel="step", ylabel="cross entropy", title="Learning curve")
    axis.legend()
    figure.savefig(folder / "learning_curve.png", dpi=120)
    plt.close(figure)

    wrong = np.flatnonzero(predicted != y)
    columns = 8
    count = min(8, max(1, -(-len(wrong) // columns)))  # rows: more than 64 digits say no more
    figure, axes = plt.subplots(
        count, columns, figsize=(columns, 1.35 * count), layout="constrained", squeeze=False
    )
    for axis in axes.flat:
        axis.axis("off")
    for axis, k in zip(axes.flat, wrong, strict=False):
        axis.imshow(x[k, 0], cmap="gray_r")
        axis.set_title(f"{y[k]} → {predicted[k]}", fontsize=9)
    figure.suptitle(f"Misclassified: {len(wrong)} of {len(y)} (label → prediction)", fontsize=10)
    figure.savefig(folder / "misclassified.png", dpi=120)
    plt.close(figure)


def main() -> None:
    """Walk the road."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("build/digits"))
    options = parser.parse_args()
    start = time.perf_counter()
    x, y, x_test, y_test = load_data()
    model, losses = train(x, y, seed=options.seed, epochs=options.epochs)
    _, small = export_all(model, x, options.out)
    predicted = np.asarray(model(xp.asarray(x_test))).argmax(1)
    draw(losses, x_test, y_test, predicted, options.out)
    print(compare(model, small, x_test, y_test, options.out))
    print(f"\nfiles in {options.out}/, {time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
