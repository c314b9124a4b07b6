"""Whole networks: the road from a float model to codes, and equality with onnxruntime."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from funct import export, nn, ops, quant
from funct.graph import Node
from tests.quant.runtime import floats, names, quantized, run, showing_codes

pytestmark = pytest.mark.onnx

ONE = ((0, 0), (0, 0))


def conv(x: Any, w: Any, padding: int = 0) -> Any:
    """A plain two-dimensional convolution."""
    return ops.convolution(x, w, (1, 1), ((padding, padding),) * 2, (1, 1), 1)


def random_network(rng: np.random.Generator, classes: int = 7) -> Any:
    """A function of images: convolutions, pools, sums and means in random order, then a linear."""
    steps: list[Any] = []
    channels = 3

    def weights(*shape: int) -> Any:
        return floats(rng.normal(size=shape) * np.sqrt(2 / np.prod(shape[1:])))

    def layer(outputs: int, relu: bool) -> Any:
        w, b = weights(outputs, channels, 3, 3), weights(1, outputs, 1, 1)
        return lambda x: (ops.relu if relu else lambda y: y)(conv(x, w, 1) + b)

    for _ in range(rng.integers(1, 4)):
        outputs = int(rng.integers(2, 9))
        steps.append(layer(outputs, bool(rng.integers(2))))
        channels = outputs
        kind = rng.integers(6)
        if kind == 0:
            steps.append(lambda x: ops.max_pool(x, (2, 2), (2, 2), ((1, 0), (0, 1)), (1, 1)))
        elif kind == 1:
            steps.append(lambda x: ops.avg_pool(x, (3, 3), (1, 1), ((1, 1), (1, 1)), (0, 0), False))
        elif kind == 2:
            inner = layer(channels, False)
            steps.append(lambda x, inner=inner: ops.relu(x + inner(x)))
        elif kind == 3:
            inner = layer(channels, True)
            steps.append(lambda x, inner=inner: inner(x) + x)
        elif kind == 4:
            steps.append(lambda x: xp.permute_dims(x, (0, 1, 3, 2)))
    if rng.integers(2):
        steps.append(lambda x: xp.mean(x, axis=(2, 3)))
    else:
        steps.append(lambda x: ops.avg_pool(x, (2, 2), (2, 2), ONE, (0, 0), True))
        steps.append(lambda x: xp.reshape(x, (x.shape[0], -1)))

    def features(x: Any) -> Any:
        for step in steps:
            x = step(x)
        return x

    w = weights(classes, features(floats(np.zeros((1, 3, 12, 12)))).shape[1])
    b = weights(classes, 1)[:, 0]
    return lambda x: features(x) @ xp.permute_dims(w, (1, 0)) + b


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("observer", ["minmax", "histogram"])
def test_random_networks_equal_onnxruntime(seed: int, observer: Any) -> None:
    """Codes and floats are equal on every element; the network computes on codes throughout."""
    rng = np.random.default_rng(seed)
    net = random_network(rng)
    x = floats(rng.normal(size=(6, 3, 12, 12)))
    program = export.export(net, (x[:2, ...],), dynamic_shapes=({0: "batch"},))
    prepared = quant.prepare_pt2e(program, quant.int8_static(observer))
    made = quant.convert_pt2e(quant.calibrate(prepared, [(x[:3, ...],), (x[3:, ...],)]))
    ops_used = names(made.graph)
    assert ops_used.count("quantize") == ops_used.count("dequantize") == 1
    assert not {"convolution", "matmul", "add", "relu"} & set(ops_used)
    for p in (made, showing_codes(made)):
        np.testing.assert_array_equal(run(export.to_onnx(p), x, optimised=True), np.asarray(p(x)))


def model(key: Any) -> Any:
    """A small classifier with batch normalization, in evaluation mode."""
    keys = ft.random.split(key, 3)
    rng = np.random.default_rng(1)
    norm = nn.BatchNorm2d(8).evolve(
        running_mean=floats(rng.normal(size=8)), running_var=floats(rng.uniform(0.5, 2, 8))
    )
    return nn.eval_mode(
        nn.Sequential(
            nn.Conv2d(1, 8, 3, padding=1, key=keys[0]), norm, nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(8, 12, 3, padding=1, key=keys[1]), nn.ReLU(), nn.AvgPool2d(2), nn.Flatten(),
            nn.Linear(48, 10, key=keys[2]),
        )
    )  # fmt: skip


@pytest.fixture(scope="module")
def trained() -> tuple[Any, Any, Any]:
    """The classifier, images, and its quantized program."""
    net = model(ft.random.key(3))
    x = floats(np.random.default_rng(2).normal(size=(64, 1, 8, 8)))
    program = export.export(net, (x[:2, ...],), dynamic_shapes=({0: "batch"},))
    prepared = quant.prepare_pt2e(program, quant.int8_static())
    batches = [(x[i : i + 16, ...],) for i in range(0, 64, 16)]
    return net, x, quant.convert_pt2e(quant.calibrate(prepared, batches))


def test_a_classifier_keeps_its_answers(trained: Any) -> None:
    """Logits move by a few percent of their spread, and few decisions change."""
    net, x, made = trained
    before, after = np.asarray(net(x)), np.asarray(made(x))
    assert np.abs(after - before).max() < 0.15 * before.std()
    assert (before.argmax(1) == after.argmax(1)).mean() > 0.95


def test_a_classifier_is_integer_throughout(trained: Any) -> None:
    """Weights are int8 and biases int32; floats are scales alone. The batch norm is gone."""
    _, _, made = trained
    assert names(made.graph) == [
        "quantize", "quantized_convolution", "max_pool", "quantized_convolution",
        "quantized_avg_pool", "reshape", "quantized_linear", "dequantize",
    ]  # fmt: skip
    held = {np.asarray(x).dtype.name for _, x in made.graph.constants if x.ndim > 1}
    assert held == {"int8"}
    assert {np.asarray(x).dtype.name for _, x in made.graph.constants} == {
        "int8", "int32", "uint8", "float32",
    }  # fmt: skip


def test_a_classifier_equals_onnxruntime(trained: Any) -> None:
    """The logits are equal bit for bit, for any batch size; the file has the standard form."""
    _, x, made = trained
    exported = export.to_onnx(made)
    kinds = [n.op_type for n in exported.graph.node]
    assert kinds.count("QuantizeLinear") == 5
    assert kinds.count("DequantizeLinear") == 3 * 3 + 2
    for n in (1, 5, 64):
        part = x[:n, ...]
        np.testing.assert_array_equal(run(exported, part, optimised=True), np.asarray(made(part)))


def test_transforms(trained: Any) -> None:
    """jit and vmap give the same bits; calling twice gives the same bits."""
    _, x, made = trained
    expected = np.asarray(made(x))
    np.testing.assert_array_equal(np.asarray(made(x)), expected)
    np.testing.assert_array_equal(np.asarray(ft.jit(made)(x)), expected)
    lanes = xp.reshape(x, (4, 16, 1, 8, 8))
    np.testing.assert_array_equal(np.asarray(ft.vmap(made)(lanes)), expected.reshape(4, 16, 10))


def test_exporting_again(trained: Any) -> None:
    """A function that calls a quantized program is exported with its sizes still symbolic."""
    _, x, made = trained
    again = export.export(lambda x: made(x) * 2.0, (x[:3, ...],), dynamic_shapes=({0: "n"},))
    assert names(again.graph) == [*names(made.graph), "multiply"]
    np.testing.assert_array_equal(np.asarray(again(x)), 2 * np.asarray(made(x)))


def test_the_derivative_in_a_quantized_input_is_zero(trained: Any) -> None:
    """Codes are constant between their steps: the stated rule, in both modes."""
    _, x, made = trained
    x = x[:2, ...]
    assert not np.any(np.asarray(ft.grad(lambda x: xp.sum(made(x)))(x)))
    assert not np.any(np.asarray(ft.jvp(made, (x,), (xp.ones_like(x),))[1]))


def test_a_scale_has_a_derivative() -> None:
    """dequantize is linear in its scale: the derivative is the number of steps."""
    q, zero = xp.asarray(np.array([3, 250], np.uint8)), xp.asarray(np.uint8(128))
    fun = lambda s: xp.sum(ops.dequantize(q, s, zero, np.dtype(np.float64), 0))  # noqa: E731
    assert ft.grad(fun)(xp.asarray(0.5)).item() == (3 - 128) + (250 - 128)


def test_parts_may_stay_in_float() -> None:
    """A layer that the quantizer skips runs in float, in onnxruntime as well."""
    rng = np.random.default_rng(5)
    # multiples of 2^-6 sum exactly in float32, in any order
    w = [floats(rng.integers(-16, 17, s) / 64) for s in ((8, 3, 3, 3), (8, 8, 3, 3), (5, 8, 3, 3))]

    def net(x: Any) -> Any:
        return conv(ops.relu(conv(ops.relu(conv(x, w[0])), w[1])), w[2])

    x = floats(rng.normal(size=(2, 3, 12, 12)))
    fixed = quant.int8_static(
        "minmax", skip=lambda n: n.name == "convolution" and n.operands[1].shape[:2] == (8, 8)
    )
    made = quantized(net, x, fixed)
    assert names(made.graph) == [
        "quantize", "quantized_convolution", "dequantize", "keep_float", "convolution", "relu",
        "quantize", "quantized_convolution", "dequantize",
    ]  # fmt: skip
    ours, exported = np.asarray(made(x)), export.to_onnx(made)
    for optimised in (True, False):
        theirs = run(exported, x, optimised=optimised)
        assert (theirs != ours).mean() < 0.01  # near-ties of the float layer


def test_floats_around_codes() -> None:
    """What stands before the first and behind the last layer stays as it is."""
    rng = np.random.default_rng(6)
    w = floats(rng.normal(size=(4, 6)))
    x = floats(rng.normal(size=(3, 6)))
    made = quantized(lambda x: xp.exp(xp.tanh(x) @ xp.permute_dims(w, (1, 0))), x)
    assert names(made.graph) == ["tanh", "quantize", "quantized_linear", "dequantize", "exp"]


def test_codes_of_a_shared_value_are_made_once() -> None:
    """A value that two layers read is quantized once, and a bias may stand on either side."""
    rng = np.random.default_rng(7)
    w, v = floats(rng.normal(size=(6, 4))), floats(rng.normal(size=(6, 4)))
    b = floats(rng.normal(size=4))
    x = floats(rng.normal(size=(3, 6)))
    made = quantized(lambda x: (b + x @ w, x @ v), x)
    assert names(made.graph).count("quantize") == 1
    assert names(made.graph).count("quantized_linear") == 2


@pytest.mark.parametrize("tiny", [0.0, 1e-12])
def test_a_channel_without_weight_keeps_its_bias(tiny: float) -> None:
    """The scale of a pruned channel is chosen for its bias, which int32 must hold."""
    rng = np.random.default_rng(8)
    w = rng.normal(size=(6, 3))
    w[:, 1] *= tiny
    weights, b = floats(w), floats([0.1, 0.77, -0.4])
    x = floats(rng.normal(size=(50, 6)) * 40)
    program = export.export(lambda x: x @ weights + b, (x,))
    expected = np.asarray(program(x))
    got = np.asarray(quantized(program, x)(x))[:, 1]
    step = (expected.max() - expected.min()) / 255
    assert np.abs(got - 0.77).max() <= 0.51 * step


def test_layers_may_share_weights() -> None:
    """Two layers with one weight and bias: each has its own scale of the bias."""
    rng = np.random.default_rng(10)
    w, b = floats(rng.normal(size=(6, 6, 3, 3)) / 7), floats(rng.normal(size=(1, 6, 1, 1)))
    x = floats(rng.normal(size=(2, 6, 9, 9)))
    made = quantized(lambda x: conv(ops.relu(conv(x, w) + b), w) + b, x)
    assert names(made.graph).count("quantized_convolution") == 2
    np.testing.assert_array_equal(run(export.to_onnx(made), x, optimised=True), np.asarray(made(x)))


def test_merging_calibrations() -> None:
    """Two halves calibrated apart and merged give the program of one run over all."""
    rng = np.random.default_rng(9)
    w = floats(rng.normal(size=(6, 4)))
    x = [floats(rng.normal(size=(5, 6)) * s) for s in (1, 3)]
    program = export.export(lambda x: ops.relu(x @ w), (x[0],))
    empty = quant.prepare_pt2e(program, quant.int8_static())
    whole = quant.calibrate(empty, [(x[0],), (x[1],)])
    halves = [quant.calibrate(empty, [(v,)]) for v in x]
    merged = quant.merge(*halves)
    for v in x:
        np.testing.assert_array_equal(
            np.asarray(quant.convert_pt2e(merged)(v)), np.asarray(quant.convert_pt2e(whole)(v))
        )
        np.testing.assert_array_equal(np.asarray(merged(v)), np.asarray(program(v)))


def test_saving_and_loading(trained: Any, tmp_path: Path) -> None:
    """A quantized program is saved as it is, computes the same bits and exports the same model."""
    _, x, made = trained
    path = tmp_path / "model.funct"
    export.save(made, path)
    again = export.load(path)
    assert names(again.graph) == names(made.graph)
    np.testing.assert_array_equal(np.asarray(again(x)), np.asarray(made(x)))
    np.testing.assert_array_equal(
        run(export.to_onnx(again), x, optimised=True), np.asarray(made(x))
    )


def test_accuracy_on_digits() -> None:
    """Handwritten digits: random features with a fitted readout lose less than a percent."""
    digits = pytest.importorskip("sklearn.datasets").load_digits()
    rng = np.random.default_rng(0)
    images = digits.images[:, None] / 16
    w = floats(rng.normal(size=(24, 1, 3, 3)) / 3)

    def features(x: Any) -> Any:
        y = ops.max_pool(ops.relu(conv(x, w, 1)), (2, 2), (2, 2), ONE, (1, 1))
        return xp.reshape(y, (y.shape[0], -1))

    seen, target = np.asarray(features(floats(images))), np.eye(10)[digits.target]
    gram = seen[:1200].T @ seen[:1200] + 0.1 * np.eye(seen.shape[1])
    readout = floats(np.linalg.solve(gram, seen[:1200].T @ target[:1200]))
    made = quantized(lambda x: features(x) @ readout, floats(images[1200:]), quant.int8_static())
    right = digits.target[1200:]
    before = (np.asarray(features(floats(images[1200:])) @ readout).argmax(1) == right).mean()
    after = (np.asarray(made(floats(images[1200:]))).argmax(1) == right).mean()
    assert before > 0.93
    assert after > before - 0.01


def test_every_node_knows_its_line(trained: Any) -> None:
    """Layers keep the user's line through folding, converting and lowering."""
    _, _, made = trained
    layers = [e for e in made.graph.nodes if isinstance(e, Node) and "quantized" in e.name]
    assert all(e.site is not None for e in layers)
