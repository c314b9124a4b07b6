"""Chapter: gather. Indices are integer operands; they are checked, never clamped.

`take`/`put` go along one axis, `take_along_axis`/`put_along_axis` go elementwise; each pair is a
map and its adjoint. Every other indexing form is written with them in `funct.array`. Writing into
positions is in `updates.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import index
from typing import Any

import numpy as np

from funct import ops
from funct.core import Primitive, Sample, Shape, ShapeDtype, Value
from funct.errors import IndexOutOfBoundsError
from funct.kernels.indexing import gather as kernels
from funct.kernels.indexing import scattering
from funct.ops.broadcasting import first_axis
from funct.ops.counting import counted, lifted
from funct.ops.families import structural
from funct.ops.samples import calls
from funct.source import user_site

__all__ = [
    "batch_size", "check_bounds", "lane_offsets", "move_block", "on_axis", "onnx_index",
    "put", "put_along_axis", "take", "take_along_axis", "wrap_index",
]  # fmt: skip

Params = tuple[Any, ...]
Args = Sequence[Any]
Flags = Sequence[bool]


def batch_size(args: Args, batched: Flags) -> Any:
    """Number of lanes."""
    return next(a.shape[0] for a, b in zip(args, batched, strict=True) if b)


def check_bounds(name: str, i: Any, n: int) -> None:
    """Refuse indices outside of [-n, n), by the function that was called or else by `name`."""
    if i.size and (i.max() >= n or i.min() < -n):
        bad = i[(i >= n) | (i < -n)].flat[0]
        site = user_site()
        name = (site.call if site is not None else "") or name
        raise IndexOutOfBoundsError(
            f"{name}: index {bad} is out of bounds for an axis of length {n}", site=site
        )


# take and put: whole slices along one axis --------------------------------------------------------


def _take_raw(x: Any, i: Any, axis: int) -> Any:
    try:
        return kernels.take(x, i, axis)
    except IndexError:
        check_bounds("take", i, x.shape[axis])
        raise


def _take_shape(x: Shape, i: Shape, axis: int) -> Shape:
    return (*x[:axis], *i, *x[axis + 1 :])


def _take_transpose(g: Value, x_shape: Shape, i: Value, axis: int) -> Value:
    return ops.put(g, i, axis, x_shape[axis])


def _take_rule(g: Value, i: Value, axis: int, x_shape: Shape) -> Value:
    return _take_transpose(g, x_shape, i, axis)


def _take_batch(prim: Primitive, args: Args, batched: Flags, params: Params) -> Value:
    x, i = args
    axis = params[0]
    if not batched[0]:
        return ops.move_axis(ops.take(x, i, axis), axis, 0)
    if not batched[1]:
        return ops.take(x, i, axis + 1)
    # every lane has its own indices: move the axis behind the batch and fold the two into one
    x = ops.move_axis(x, axis + 1, 1)  # (B, n, *rest)
    rows = lane_offsets(i, x.shape[1])
    flat = ops.reshape(x, (x.shape[0] * x.shape[1], *x.shape[2:]))
    out = ops.take(flat, rows, 0)  # (B, *i, *rest)
    return move_block(out, 1, len(i.shape) - 1, 1 + axis)


def lane_offsets(i: Value, n: int) -> Value:
    """Indices into (B * n) from per-lane indices (B, ...) into n."""
    offsets = ops.reshape(counted(i.shape[0]) * n, (i.shape[0], *(1,) * (len(i.shape) - 1)))
    return on_axis(i, n) + offsets


def on_axis(i: Value, n: int) -> Value:
    """Indices from [-n, n) to [0, n), known ones too where capture keeps the length open."""
    return ops.wrap_index(lifted(i, (n,)), n)


def move_block(x: Value, start: int, count: int, destination: int) -> Value:
    """Move `count` axes that begin at `start` so that they begin at `destination` in the rest."""
    order = list(range(len(x.shape)))
    block = order[start : start + count]
    del order[start : start + count]
    order[destination:destination] = block
    return ops.permute_dims(x, tuple(order))


def onnx_index(w: Any, i: str) -> str:
    """ONNX takes indices of 32 and 64 bits."""
    return i if w.dtype_of(i).name in ("int32", "int64") else str(w.cast(i, np.dtype(np.int64)))


def _onnx_take(w: Any, x: str, i: str, axis: int) -> str:
    return str(w.op("Gather", x, onnx_index(w, i), axis=axis))


@structural(
    _take_raw, _take_rule, None, shape=_take_shape, batch=_take_batch, onnx=_onnx_take, masks=True,
    samples=calls(
        lambda rng: Sample((rng.normal(size=(4, 3)), np.asarray([[0, 3], [-1, 0]])), (0,)),
        lambda rng: Sample((rng.normal(size=(2, 3)), np.asarray([2, 2, 0])), (1,)),
        lambda rng: Sample((rng.normal(size=(2, 3)), np.asarray(1)), (1,)),
    ), raises=True,
)  # fmt: skip
def take(x: Value, i: Value, axis: int) -> Value:
    """Slices of x along axis at the indices i; i's axes stand where axis stood."""


def _put_raw(g: Any, i: Any, axis: int, n: int) -> Any:
    try:
        return scattering.put(g, i, axis, n)
    except IndexError:
        check_bounds("put", i, n)
        raise


def _put_aval(args: Args, params: Params) -> ShapeDtype:
    (g, i), (axis, n) = args, params
    shape = (*g.shape[:axis], n, *g.shape[axis + len(i.shape) :])
    return ShapeDtype(shape, g.dtype)


def _put_transpose(h: Value, i: Value, axis: int) -> Value:
    return ops.take(h, i, axis)


def _put_batch(prim: Primitive, args: Args, batched: Flags, params: Params) -> Value:
    (g, i), (axis, n) = args, params
    if not batched[1]:
        return ops.put(g, i, axis + 1, n)
    size = i.shape[0]
    g = first_axis(g, batched[0], size)
    rank = len(i.shape) - 1
    g = move_block(g, 1 + axis, rank, 1)  # (B, *i, *rest)
    out = ops.put(g, lane_offsets(i, n), 0, size * n)  # (B * n, *rest)
    wide = ops.reshape(out, (size, n, *out.shape[1:]))
    return ops.move_axis(wide, 1, axis + 1)


def _onnx_put(w: Any, g: str, i: str, axis: int, n: int) -> str:
    shape, rank = w.shape_of(g), len(w.shape_of(i))
    every = list(range(len(shape)))
    if axis:  # ScatterND writes along the first axes
        g = w.op(
            "Transpose", g, perm=every[axis : axis + rank] + every[:axis] + every[axis + rank :]
        )
    rest = (*shape[:axis], *shape[axis + rank :])
    zeros = w.op("Expand", w.constant(0, w.dtype_of(g)), w.dims((n, *rest)))
    at = w.op("Unsqueeze", w.cast(i, np.dtype(np.int64)), w.dims((-1,)))
    out = w.op("ScatterND", zeros, at, g, reduction="add")
    if axis:
        out = w.op("Transpose", out, perm=[*range(1, axis + 1), 0, *range(axis + 1, len(rest) + 1)])
    return str(out)


@structural(
    _put_raw, _put_transpose, None, aval=_put_aval, batch=_put_batch, onnx=_onnx_put,
    samples=calls(
        lambda rng: Sample((rng.normal(size=(2, 2, 3)), np.asarray([[0, 3], [-1, 0]])), (0, 4)),
        lambda rng: Sample((rng.normal(size=(2, 3)), np.asarray([2, 2, 0])), (1, 3)),
    ), raises=True,
)  # fmt: skip
def put(g: Value, i: Value, axis: int, n: int) -> Value:
    """Adjoint of `take`: zeros of length n along axis, with g added at the indices i."""


# take_along_axis and put_along_axis: one element per index ----------------------------------------


def _take_along_raw(x: Any, i: Any, axis: int) -> Any:
    try:
        return kernels.take_along(x, i, axis)
    except IndexError:
        check_bounds("take_along_axis", i, x.shape[axis])
        raise


def _take_along_shape(x: Shape, i: Shape, axis: int) -> Shape:
    return i


def _take_along_rule(g: Value, i: Value, axis: int, x_shape: Shape) -> Value:
    return ops.put_along_axis(g, i, axis, x_shape[axis])


def _along_batch(prim: Primitive, args: Args, batched: Flags, params: Params) -> Value:
    size = batch_size(args, batched)
    x, i = (first_axis(a, b, size) for a, b in zip(args, batched, strict=True))
    return prim.fn(x, i, params[0] + 1, *params[1:])


def _onnx_take_along(w: Any, x: str, i: str, axis: int) -> str:
    return str(w.op("GatherElements", x, onnx_index(w, i), axis=axis))


def _along_samples(rng: np.random.Generator) -> list[Sample]:
    return [
        Sample((rng.normal(size=(2, 4)), rng.integers(-4, 4, (2, 3))), (1,)),
        Sample((rng.normal(size=(3, 2)), rng.integers(0, 3, (1, 2))), (0,)),
    ]


@structural(
    _take_along_raw, _take_along_rule, None, shape=_take_along_shape, batch=_along_batch,
    onnx=_onnx_take_along, masks=True, samples=_along_samples, raises=True,
)  # fmt: skip
def take_along_axis(x: Value, i: Value, axis: int) -> Value:
    """x[..., i[..., k], ...]: one element per index; shapes agree except on axis."""


def _put_along_raw(g: Any, i: Any, axis: int, n: int) -> Any:
    try:
        return scattering.put_along(g, i, axis, n)
    except IndexError:
        check_bounds("put_along_axis", i, n)
        raise


def _put_along_transpose(h: Value, i: Value, axis: int) -> Value:
    return ops.take_along_axis(h, i, axis)


def _onnx_put_along(w: Any, g: str, i: str, axis: int, n: int) -> str:
    shape = w.shape_of(g)
    zeros = w.op(
        "Expand", w.constant(0, w.dtype_of(g)), w.dims((*shape[:axis], n, *shape[axis + 1 :]))
    )
    return str(w.op("ScatterElements", zeros, onnx_index(w, i), g, axis=axis, reduction="add"))


@structural(
    _put_along_raw, _put_along_transpose, None, batch=_along_batch, onnx=_onnx_put_along,
    shape=lambda g, i, axis, n: (*g[:axis], n, *g[axis + 1 :]),
    samples=calls(
        lambda rng: Sample((rng.normal(size=(2, 3)), rng.integers(-4, 4, (2, 3))), (1, 4)),
        lambda rng: Sample((rng.normal(size=(2,)), np.asarray([1, 1])), (0, 3)),
    ), raises=True,
)  # fmt: skip
def put_along_axis(g: Value, i: Value, axis: int, n: int) -> Value:
    """Adjoint of `take_along_axis`: zeros of length n along axis, with g added at i."""


# indices from the end -----------------------------------------------------------------------------


def _wrap_raw(i: Any, n: int) -> Any:
    n = index(n)  # NumPy would make an array of objects of a length that is open
    check_bounds("wrap_index", i, n)
    i = i.astype(np.int64)  # n may be beyond what a narrow one holds
    return np.where(i < 0, i + n, i)


def _wrap_batch(prim: Primitive, args: Args, batched: Flags, params: Params) -> Value:
    return on_axis(args[0], *params)


def _onnx_wrap(w: Any, i: str, n: int) -> str:
    length = w.dims((n,)) if w.shape_of(i) else w.op("Squeeze", w.dims((n,)))
    i = w.cast(i, np.dtype(np.int64))
    below = w.op("Less", i, w.constant(0, np.dtype(np.int64)))
    return str(w.op("Where", below, w.op("Add", i, length), i))


@structural(
    _wrap_raw, None, batch=_wrap_batch, onnx=_onnx_wrap,
    aval=lambda args, params: ShapeDtype(args[0].shape, np.dtype(np.int64)),
    samples=calls(lambda rng: Sample((rng.integers(-3, 3, (2, 2)),), (3,))), raises=True,
)  # fmt: skip
def wrap_index(i: Value, n: int) -> Value:
    """Indices from [-n, n) to [0, n); anything outside raises IndexOutOfBoundsError."""
