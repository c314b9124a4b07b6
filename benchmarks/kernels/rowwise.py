"""Normalisation, softmax, losses, dropout, tables and pools of nn.functional, run eagerly, in GB/s.

Bytes that must move: the input read and the result written once; for a backward, which includes
the forward, the cotangent read and that of the input written as well. funct/peer above 1: faster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import funct as ft
import funct.array as xp
from benchmarks.kernels.row import Row
from benchmarks.peers import optional
from funct.nn import functional as F  # noqa: N812

TITLE = "rows and planes of nn.functional, eager, one thread [GB/s]"

MATRICES = ((4096, 1024), (128, 1000))
IMAGES = (8, 64, 56, 56)


def rows() -> Iterator[Row]:
    """Every row."""
    rng = np.random.default_rng(0)
    for shape in MATRICES:
        x = rng.standard_normal(shape).astype(np.float32)
        w = rng.standard_normal(shape[1:]).astype(np.float32)
        labels = rng.integers(0, shape[1], shape[0])
        yield from _both("softmax", lambda f, x: f.softmax(x, dim=-1), x)
        yield from _both("log_softmax", lambda f, x: f.log_softmax(x, dim=-1), x)
        yield from _both(
            "layer_norm", lambda f, x, w, b, s=shape: f.layer_norm(x, s[1:], w, b), x, w, w
        )
        yield from _both("rms_norm", lambda f, x, w, s=shape: f.rms_norm(x, s[1:], w), x, w)
        yield from _both("cross_entropy", lambda f, x, t: f.cross_entropy(x, t), x, labels)
        y = rng.standard_normal(shape).astype(np.float32)
        yield from _both("normalize", lambda f, x: f.normalize(x, dim=-1), x)
        yield from _both("cosine_similarity", lambda f, x, y: f.cosine_similarity(x, y), x, y)
        yield from _both("mse_loss", lambda f, x, y: f.mse_loss(x, y), x, y)
        yield from _both("gelu", lambda f, x: f.gelu(x), x)
        yield from _both("relu", lambda f, x: f.relu(x), x)
        yield from _both("sigmoid", lambda f, x: f.sigmoid(x), x)
        yield from _both("glu", lambda f, x: f.glu(x), x)
        yield from _both("softshrink", lambda f, x: f.softshrink(x), x)
    few = rng.standard_normal((100_000, 10)).astype(np.float32)
    yield from _both("softmax of axis 0", lambda f, x: f.softmax(x, dim=0), few)
    labels = rng.integers(0, 10, len(few))
    yield from _both("softmax", lambda f, x: f.softmax(x, dim=-1), few)
    yield from _both("cross_entropy", lambda f, x, t: f.cross_entropy(x, t), few, labels)
    spoken = np.log(rng.dirichlet(np.ones(64), (200, 16))).astype(np.float32)
    texts, lengths = rng.integers(1, 64, (16, 40)), np.full(16, 200)
    yield from _both(
        "ctc_loss", lambda f, x, t, n, m: f.ctc_loss(x, t, n, m), spoken, texts, lengths,
        np.full(16, 40),
    )  # fmt: skip
    x = rng.standard_normal(IMAGES).astype(np.float32)
    w = rng.standard_normal(IMAGES[1]).astype(np.float32)
    yield from _both("softmax of channels", lambda f, x: f.softmax(x, dim=1), x)
    yield from _both("group_norm", lambda f, x, w, b: f.group_norm(x, 8, w, b), x, w, w)
    yield from _both(
        "batch_norm", lambda f, x, w, b: f.batch_norm(x, None, None, w, b, True), x, w, w
    )
    yield from _both("max_pool2d", lambda f, x: f.max_pool2d(x, 3, 2, 1), x)
    yield from _both("adaptive_avg_pool2d", lambda f, x: f.adaptive_avg_pool2d(x, 5), x)
    yield from _both("avg_pool2d", lambda f, x: f.avg_pool2d(x, 2), x)
    yield from _both(
        "bilinear", lambda f, x: f.interpolate(x, scale_factor=2, mode="bilinear"), x[:1]
    )
    signal = x.reshape(8, 64, -1)
    yield from _both("adaptive_avg_pool1d", lambda f, x: f.adaptive_avg_pool1d(x, 3), signal)
    yield from _both("adaptive_avg_pool2d to 3", lambda f, x: f.adaptive_avg_pool2d(x, 3), x)
    for name in ("max_pool1d", "avg_pool1d"):
        yield from _both(name, lambda f, x, name=name: getattr(f, name)(x, 3, 2, 1), signal)
    yield from _both("adaptive_max_pool1d", lambda f, x: f.adaptive_max_pool1d(x, 3), signal)
    blocks = x[:, :, :8, :8].copy()
    yield from _both("adaptive_avg_pool2d to 3", lambda f, x: f.adaptive_avg_pool2d(x, 3), blocks)
    volume = x[:4, :8, :52, :52].reshape(4, 8, 16, 13, 13)
    yield from _both("adaptive_max_pool3d", lambda f, x: f.adaptive_max_pool3d(x, 5), volume)
    top, at = (np.array(v) for v in F.max_pool2d(xp.asarray(x), 2, return_indices=True))
    yield from _both("max_unpool2d", lambda f, x, i: f.max_unpool2d(x, i, 2), top, at)
    yield from _both("lp_pool2d", lambda f, x: f.lp_pool2d(x, 2.0, 2), x)
    grid = rng.uniform(-1, 1, (8, 56, 56, 2)).astype(np.float32)
    yield from _both(
        "grid_sample", lambda f, x, g: f.grid_sample(x, g, align_corners=False), x, grid
    )
    yield from _both(
        "grid_sample of 3 channels", lambda f, x, g: f.grid_sample(x, g, align_corners=False),
        x[:, :3].copy(), grid,
    )  # fmt: skip
    yield from _both(
        "grid_sample, bicubic", lambda f, x, g: f.grid_sample(x, g, "bicubic", align_corners=False),
        x[:, :8].copy(), grid,
    )  # fmt: skip
    few = x[:1, :4, :16, :16].copy()
    yield from _both("max_pool2d", lambda f, x: f.max_pool2d(x, 3, 2, 1), few)
    yield from _both(
        "max_pool2d with places", lambda f, x: f.max_pool2d(x, 2, return_indices=True)[0], few
    )
    for name in ("pixel_shuffle", "pixel_unshuffle"):
        yield from _both(name, lambda f, x, name=name: getattr(f, name)(x, 2), few)
    narrow = x[:, :4, :14, :14].copy()
    yield from _both("max_pool2d", lambda f, x: f.max_pool2d(x, 3, 2, 1), narrow)
    many = rng.standard_normal((112, 3, 14, 14)).astype(np.float32)
    yield from _both("max_pool2d", lambda f, x: f.max_pool2d(x, 3, 2, 1), many)
    yield from _both(
        "max_pool2d with places", lambda f, x: f.max_pool2d(x, 2, return_indices=True)[0], many
    )
    tall = rng.standard_normal((1, 2, 4000, 14)).astype(np.float32)
    yield from _both(
        "max_pool2d with places", lambda f, x: f.max_pool2d(x, 2, return_indices=True)[0], tall
    )
    for name in ("avg_pool3d", "max_pool3d"):
        cube = few.reshape(1, 2, 8, 8, 8)
        yield from _both(name, lambda f, x, name=name: getattr(f, name)(x, 2), cube)
    yield from _both(
        "grid_sample", lambda f, x, g: f.grid_sample(x, g, align_corners=False), few,
        grid[:1, :16, :16].copy(),
    )  # fmt: skip
    middle = x[:, :16, :28, :28].copy()
    yield from _both("pad by 5", lambda f, x: f.pad(x, (5, 5)), middle)
    small = x[:, :, :14, :14].copy()
    yield from _both("softmax of channels", lambda f, x: f.softmax(x, dim=1), small)
    yield from _both("group_norm", lambda f, x, w, b: f.group_norm(x, 8, w, b), small, w, w)
    points = rng.standard_normal((300, 3)).astype(np.float32)
    yield from _both("pdist", lambda f, x: f.pdist(x), points)
    near = rng.standard_normal((1000, 16)).astype(np.float32)
    for p in (1.0, 2.0, float("inf")):
        yield from _both(f"pdist, p = {p:g}", lambda f, x, p=p: f.pdist(x, p), near)
    half = x[:4, :32, :28, :28].astype(np.float16)
    yield from _both("max_pool2d, float16", lambda f, x: f.max_pool2d(x, 3, 2, 1), half)
    yield from _both(
        "to 56 x 56, float16", lambda f, x: f.interpolate(x, (56, 56), mode="bilinear"), half
    )
    pair = [v.reshape(-1, 784) for v in (half, half[::-1].copy())]
    yield from _both("mse_loss, float16", lambda f, x, y: f.mse_loss(x, y, reduction="none"), *pair)
    hidden = rng.standard_normal((32, 100)).astype(np.float32)
    yield from _both("softmax of axis 0", lambda f, x: f.softmax(x, dim=0), hidden)
    yield from _both("log_softmax of axis 0", lambda f, x: f.log_softmax(x, dim=0), hidden)
    for name in ("softshrink", "leaky_relu", "threshold", "relu6"):
        values = (0.1, 20.0) if name == "threshold" else ()
        yield from _both(name, lambda f, x, n=name, v=values: getattr(f, n)(x, *v), hidden)
    last = np.moveaxis(np.moveaxis(x, 1, -1).copy(), -1, 1)
    yield from _both("softmax of channels, channels last", lambda f, x: f.softmax(x, dim=1), last)
    yield from _both(
        "group_norm, channels last", lambda f, x, w, b: f.group_norm(x, 8, w, b), last, w, w
    )
    yield from _both(
        "batch_norm, channels last", lambda f, x, w, b: f.batch_norm(x, None, None, w, b, True),
        last, w, w,
    )  # fmt: skip
    for mode in ("bilinear", "nearest"):
        yield from _both(
            f"grid_sample, {mode}, channels last",
            lambda f, x, g, mode=mode: f.grid_sample(x, g, mode, align_corners=False), last, grid,
        )  # fmt: skip
    few = last[:1, :4, :16, :16].copy("K")
    for name in ("silu", "hardswish"):
        yield from _both(f"{name}, channels last", lambda f, x, n=name: getattr(f, n)(x), few)
    yield from _both(
        "group_norm, channels last", lambda f, x, w, b: f.group_norm(x, 2, w, b), few, w[:4], w[:4]
    )
    yield from _both("max_pool2d, channels last", lambda f, x: f.max_pool2d(x, 2), few)
    yield from _both("pixel_shuffle, channels last", lambda f, x: f.pixel_shuffle(x, 2), few)
    for out in (1, 5):
        yield from _both(
            f"adaptive_avg_pool2d to {out}, channels last",
            lambda f, x, out=out: f.adaptive_avg_pool2d(x, out), last,
        )  # fmt: skip
    for where, image in (("", x), (", channels last", last)):
        for out in (7, 5):
            yield from _both(
                f"adaptive_max_pool2d to {out}{where}",
                lambda f, x, out=out: f.adaptive_max_pool2d(x, out), image,
            )  # fmt: skip
        yield from _both(f"pixel_shuffle{where}", lambda f, x: f.pixel_shuffle(x, 2), image)
        for mode in ("nearest", "bilinear"):
            yield from _both(
                f"to 33 x 33, {mode}{where}",
                lambda f, x, mode=mode: f.interpolate(x, (33, 33), mode=mode), image,
            )  # fmt: skip
        few = image[:1, :, :16, :16].copy("K")
        yield from _both(f"to 32 x 32, nearest{where}", lambda f, x: f.interpolate(x, 32), few)
        for given in (image, image[:1, :4, :16, :16].copy("K")):
            yield from _both(
                f"to 13 x 13, bilinear{where}",
                lambda f, x: f.interpolate(x, (13, 13), mode="bilinear"), given,
            )  # fmt: skip
        yield from _both(f"pad by -1 and 2{where}", lambda f, x: f.pad(x, (-1, 2, 1, -1)), image)
        for mode in ("constant", "reflect"):
            yield from _both(
                f"pad, {mode}{where}", lambda f, x, m=mode: f.pad(x, (1, 1, 1, 1), m), image
            )
    table = rng.standard_normal((32000, 256)).astype(np.float32)
    places = rng.integers(0, len(table), 4096)
    taken = 2 * len(places) * table.shape[1] * table.itemsize
    starts = np.arange(0, len(places), 8)
    yield from _both(
        "embedding_bag of 8 in", lambda f, w, i, o: f.embedding_bag(i, w, o), table, places, starts,
        work=(taken, 2 * taken + table.nbytes),
    )  # fmt: skip
    yield from _both(
        "embedding_bag of (512, 8) in", lambda f, w, i: f.embedding_bag(i, w, mode="sum"), table,
        places.reshape(-1, 8), work=(taken, 2 * taken + table.nbytes),
    )  # fmt: skip
    yield from _both(
        "embedding of 4096 in", lambda f, w, i: f.embedding(i, w), table, places,
        work=(taken, 2 * taken + table.nbytes),
    )  # fmt: skip
    small = rng.standard_normal((100, 3)).astype(np.float32)
    yield from _both(
        "embedding of 10,000 in", lambda f, w, i: f.embedding(i, w), small,
        rng.integers(0, len(small), 10_000),
    )  # fmt: skip
    yield _norms(rng.standard_normal((60, 12)))
    yield from _dropout(rng.standard_normal(MATRICES[0]).astype(np.float32))


def _norms(x: Any) -> Row:
    ours = xp.asarray(x)
    peers: dict[str, Callable[[], object]] = {"numpy": lambda: np.linalg.vector_norm(x, axis=1)}
    torch: Any = optional("torch")
    if torch is not None:
        t = torch.from_numpy(x)
        peers["torch"] = lambda: torch.linalg.vector_norm(t, dim=1)
    name = f"norms of rows, {x.shape}, {x.dtype}"
    return Row(name, x.nbytes, lambda: xp.linalg.vector_norm(ours, axis=1), peers)


def _both(
    name: str, call: Callable[..., Any], *arrays: Any, work: tuple[int, int] = (0, 0)
) -> Iterator[Row]:
    """Forward, and with backward in all floating arrays. work: bytes of each, if unusual."""
    floats = [a for a in arrays if a.dtype.kind == "f"]
    rest = arrays[len(floats) :]
    ours, held = [xp.asarray(a) for a in floats], [xp.asarray(a) for a in rest]
    out = call(F, *ours, *held)
    ct = np.ones_like(np.asarray(out))  # in memory, as what comes from the next layer
    g = xp.asarray(ct)

    def both() -> Any:
        return ft.vjp(lambda *xs: call(F, *xs, *held), *ours)[1](g)

    forward_peers: dict[str, Callable[[], object]] = {}
    both_peers: dict[str, Callable[[], object]] = {}
    torch: Any = optional("torch")
    if torch is not None:
        theirs = torch.nn.functional
        plain, fixed = [torch.from_numpy(a) for a in floats], [torch.from_numpy(a) for a in rest]
        leaves = [t.clone().requires_grad_() for t in plain]
        last = torch.from_numpy(ct)
        forward_peers["torch"] = lambda: call(theirs, *plain, *fixed)
        both_peers["torch"] = lambda: torch.autograd.grad(
            call(theirs, *leaves, *fixed), leaves, last
        )
    label = f"{name} {' x '.join(map(str, arrays[0].shape))}"
    size = arrays[0].nbytes + np.asarray(out).nbytes
    yield Row(label, work[0] or size, lambda: call(F, *ours, *held), forward_peers)
    yield Row(label + ", backward", work[1] or 2 * size, both, both_peers)


def _dropout(x: Any) -> Iterator[Row]:
    ours, key = xp.asarray(x), ft.random.key(0)
    peers: dict[str, Callable[[], object]] = {}
    torch: Any = optional("torch")
    if torch is not None:
        theirs = torch.from_numpy(x)
        peers["torch"] = lambda: torch.nn.functional.dropout(theirs, 0.1)
    label = f"dropout {' x '.join(map(str, x.shape))}"
    yield Row(label, 2 * x.nbytes, lambda: F.dropout(ours, 0.1, key=key), peers)
