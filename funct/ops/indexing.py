"""Chapter: gather and scatter. Indices are integer operands; they are checked, never clamped.

`take`/`put` go along one axis, `take_along_axis`/`put_along_axis` go elementwise; each pair is a
map and its adjoint. Every other indexing form is written with them in `funct.array`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from funct import ops
from funct.core import Absent, Pair, Primitive, Sample, Shape, ShapeDtype, Value
from funct.errors import IndexOutOfBoundsError
from funct.ops.families import constant, first_axis, structural
from funct.ops.samples import calls

__all__ = ["put", "put_along_axis", "scatter", "take", "take_along_axis", "wrap_index"]

Params = tuple[Any, ...]
Args = Sequence[Any]
Flags = Sequence[bool]


def _batch_size(args: Args, batched: Flags) -> Any:
    return next(a.shape[0] for a, b in zip(args, batched, strict=True) if b)


def _check_bounds(name: str, i: Any, n: int) -> None:
    if i.size and (i.max() >= n or i.min() < -n):
        bad = i[(i >= n) | (i < -n)].flat[0]
        raise IndexOutOfBoundsError(
            f"{name}: index {bad} is out of bounds for an axis of length {n}"
        )


# take and put: whole slices along one axis --------------------------------------------------------


def _take_raw(x: Any, i: Any, axis: int) -> Any:
    _check_bounds("take", i, x.shape[axis])
    return np.take(x, i, axis)


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
    rows = _lane_offsets(i, x.shape[1])
    flat = ops.reshape(x, (x.shape[0] * x.shape[1], *x.shape[2:]))
    out = ops.take(flat, rows, 0)  # (B, *i, *rest)
    return _insert_block(out, 1, len(i.shape) - 1, 1 + axis)


def _lane_offsets(i: Value, n: int) -> Value:
    """Indices into (B * n) from per-lane indices (B, ...) into n."""
    offsets = np.arange(i.shape[0], dtype=np.int64).reshape(-1, *(1,) * (len(i.shape) - 1)) * n
    return ops.wrap_index(i, n) + constant(offsets)


def _insert_block(x: Value, start: int, count: int, destination: int) -> Value:
    """Move `count` axes that begin at `start` so that they begin at `destination` in the rest."""
    order = list(range(len(x.shape)))
    block = order[start : start + count]
    del order[start : start + count]
    order[destination:destination] = block
    return ops.permute_dims(x, tuple(order))


def _onnx_index(w: Any, i: str) -> str:
    """ONNX takes indices of 32 and 64 bits."""
    return i if w.dtype_of(i).name in ("int32", "int64") else str(w.cast(i, np.dtype(np.int64)))


def _onnx_take(w: Any, x: str, i: str, axis: int) -> str:
    return str(w.op("Gather", x, _onnx_index(w, i), axis=axis))


@structural(
    _take_raw, _take_rule, None, shape=_take_shape, batch=_take_batch, onnx=_onnx_take, masks=True,
    samples=calls(
        lambda rng: Sample((rng.normal(size=(4, 3)), np.asarray([[0, 3], [-1, 0]])), (0,)),
        lambda rng: Sample((rng.normal(size=(2, 3)), np.asarray([2, 2, 0])), (1,)),
        lambda rng: Sample((rng.normal(size=(2, 3)), np.asarray(1)), (1,)),
    ),
)  # fmt: skip
def take(x: Value, i: Value, axis: int) -> Value:
    """Slices of x along axis at the indices i; i's axes stand where axis stood."""


def _put_raw(g: Any, i: Any, axis: int, n: int) -> Any:
    _check_bounds("put", i, n)
    flat = g.reshape((*g.shape[:axis], i.size, *g.shape[axis + i.ndim :]))
    out = np.zeros((*g.shape[:axis], n, *g.shape[axis + i.ndim :]), g.dtype)
    np.add.at(np.moveaxis(out, axis, 0), i.reshape(-1), np.moveaxis(flat, axis, 0))
    return out


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
    g = _insert_block(g, 1 + axis, rank, 1)  # (B, *i, *rest)
    out = ops.put(g, _lane_offsets(i, n), 0, size * n)  # (B * n, *rest)
    wide = ops.reshape(out, (size, n, *out.shape[1:]))
    return ops.move_axis(wide, 1, axis + 1)


def _onnx_put(w: Any, g: str, i: str, axis: int, n: int) -> str:
    shape, rank = w.shape_of(g), len(w.shape_of(i))
    every = list(range(len(shape)))
    if axis:  # ScatterND writes along the first axes
        g = w.op("Transpose", g, perm=every[axis : axis + rank] + every[:axis] + every[axis + rank :])
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
    ),
)  # fmt: skip
def put(g: Value, i: Value, axis: int, n: int) -> Value:
    """Adjoint of `take`: zeros of length n along axis, with g added at the indices i."""


# take_along_axis and put_along_axis: one element per index ----------------------------------------


def _take_along_raw(x: Any, i: Any, axis: int) -> Any:
    _check_bounds("take_along_axis", i, x.shape[axis])
    return np.take_along_axis(x, i, axis)


def _take_along_shape(x: Shape, i: Shape, axis: int) -> Shape:
    return i


def _take_along_rule(g: Value, i: Value, axis: int, x_shape: Shape) -> Value:
    return ops.put_along_axis(g, i, axis, x_shape[axis])


def _along_batch(prim: Primitive, args: Args, batched: Flags, params: Params) -> Value:
    size = _batch_size(args, batched)
    x, i = (first_axis(a, b, size) for a, b in zip(args, batched, strict=True))
    return prim.fn(x, i, params[0] + 1, *params[1:])


def _onnx_take_along(w: Any, x: str, i: str, axis: int) -> str:
    return str(w.op("GatherElements", x, _onnx_index(w, i), axis=axis))


def _along_samples(rng: np.random.Generator) -> list[Sample]:
    return [
        Sample((rng.normal(size=(2, 4)), rng.integers(-4, 4, (2, 3))), (1,)),
        Sample((rng.normal(size=(3, 2)), rng.integers(0, 3, (1, 2))), (0,)),
    ]


@structural(
    _take_along_raw, _take_along_rule, None, shape=_take_along_shape, batch=_along_batch,
    onnx=_onnx_take_along, masks=True, samples=_along_samples,
)  # fmt: skip
def take_along_axis(x: Value, i: Value, axis: int) -> Value:
    """x[..., i[..., k], ...]: one element per index; shapes agree except on axis."""


def _put_along_raw(g: Any, i: Any, axis: int, n: int) -> Any:
    _check_bounds("put_along_axis", i, n)
    shape = (*g.shape[:axis], n, *g.shape[axis + 1 :])
    out = np.zeros(shape, g.dtype)
    where = list(np.ogrid[tuple(slice(k) for k in i.shape)])
    where[axis] = i
    np.add.at(out, tuple(where), g)
    return out


def _put_along_transpose(h: Value, i: Value, axis: int) -> Value:
    return ops.take_along_axis(h, i, axis)


def _onnx_put_along(w: Any, g: str, i: str, axis: int, n: int) -> str:
    shape = w.shape_of(g)
    zeros = w.op(
        "Expand", w.constant(0, w.dtype_of(g)), w.dims((*shape[:axis], n, *shape[axis + 1 :]))
    )
    return str(w.op("ScatterElements", zeros, _onnx_index(w, i), g, axis=axis, reduction="add"))


@structural(
    _put_along_raw, _put_along_transpose, None, batch=_along_batch, onnx=_onnx_put_along,
    shape=lambda g, i, axis, n: (*g[:axis], n, *g[axis + 1 :]),
    samples=calls(
        lambda rng: Sample((rng.normal(size=(2, 3)), rng.integers(-4, 4, (2, 3))), (1, 4)),
        lambda rng: Sample((rng.normal(size=(2,)), np.asarray([1, 1])), (0, 3)),
    ),
)  # fmt: skip
def put_along_axis(g: Value, i: Value, axis: int, n: int) -> Value:
    """Adjoint of `take_along_axis`: zeros of length n along axis, with g added at i."""


# scatter: x with the elements at flat positions replaced or combined ------------------------------

_MODES = {
    "add": np.add.at, "multiply": np.multiply.at, "min": np.minimum.at, "max": np.maximum.at,
}  # fmt: skip


def _scatter_raw(x: Any, v: Any, i: Any, mode: str) -> Any:
    _check_bounds("scatter", i, x.shape[0])
    out = x.copy()
    if mode == "set":
        out[i] = v
    else:
        _MODES[mode](out, i, v)
    return out


def _scatter_set_rule_x(g: Value, i: Value, mode: str, v_shape: Shape) -> Value:
    _only_set(mode)
    return ops.scatter(g, ops.broadcast_to(constant(np.zeros((), g.dtype)), v_shape), i, "set")


def _scatter_set_push_x(t: Value, ans: Value, x: Value, v: Value, i: Value, mode: str) -> Value:
    return _scatter_set_rule_x(t, i, mode, v.shape)


def _scatter_set_pull_v(g: Value, i: Value, mode: str, x_shape: Shape) -> Value:
    _only_set(mode)
    return ops.where(_winners(i, x_shape[0]), ops.take(g, i, 0), 0.0)


def _scatter_set_push_v(t: Value, ans: Value, x: Value, v: Value, i: Value, mode: str) -> Value:
    _only_set(mode)
    return ops.scatter(ops.broadcast_to(constant(np.zeros((), t.dtype)), x.shape), t, i, "set")


def _winners(i: Value, n: int) -> Value:
    """Where the same position is written twice, the last write stands: true for those."""
    order = constant(np.arange(i.shape[0], dtype=np.int64))
    last = ops.scatter(constant(np.zeros(n, np.int64)), order, i, "set")
    return ops.equal(ops.take(last, i, 0), order)


def _only_set(mode: str) -> None:
    if mode != "set":
        Absent(
            f"scatter with mode {mode!r}; write x.at[i].set(...) of the combined values"
        ).raise_for(scatter.primitive)  # type: ignore[attr-defined]


def _scatter_batch(prim: Primitive, args: Args, batched: Flags, params: Params) -> Value:
    size = _batch_size(args, batched)
    x, v, i = (first_axis(a, b, size) for a, b in zip(args, batched, strict=True))
    n = x.shape[1]
    flat = ops.scatter(
        ops.reshape(x, (size * n,)), ops.reshape(v, (v.shape[0] * v.shape[1],)),
        ops.reshape(_lane_offsets(i, n), (i.shape[0] * i.shape[1],)), *params,
    )  # fmt: skip
    return ops.reshape(flat, (size, n))


def _onnx_scatter(w: Any, x: str, v: str, i: str, mode: str) -> str:
    names = {"set": "none", "add": "add", "multiply": "mul", "min": "min", "max": "max"}
    v = w.cast(v, w.dtype_of(x))
    at = _onnx_index(w, i)
    return str(w.op("ScatterElements", x, at, v, axis=0, reduction=names[mode]))


_SCATTER = ["x", "v", "i", "mode"]


@structural(
    _scatter_raw,
    Pair(_scatter_set_push_x, _scatter_set_rule_x, _SCATTER),
    Pair(_scatter_set_push_v, _scatter_set_pull_v, _SCATTER),
    None,
    shape=lambda x, v, i, mode: x, batch=_scatter_batch, onnx=_onnx_scatter, masks=True,
    samples=calls(
        lambda rng: Sample(
            (rng.normal(size=5), rng.normal(size=3), np.asarray([0, -1, 0])), ("set",)
        ),
        lambda rng: Sample((rng.normal(size=5), rng.normal(size=2), np.asarray([3, 1])), ("set",)),
    ),
)  # fmt: skip
def scatter(x: Value, v: Value, i: Value, mode: str) -> Value:
    """1-D x with v written at the positions i: "set", "add", "multiply", "min" or "max".

    Of several writes to one position the last stands under "set". Only "set" has derivatives; `add`
    is x + put(v, i).
    """


def _wrap_raw(i: Any, n: int) -> Any:
    _check_bounds("index", i, n)
    return np.where(i < 0, i + n, i).astype(np.int64)


def _wrap_batch(prim: Primitive, args: Args, batched: Flags, params: Params) -> Value:
    return ops.wrap_index(args[0], *params)


def _onnx_wrap(w: Any, i: str, n: int) -> str:
    length = w.dims((n,)) if w.shape_of(i) else w.op("Squeeze", w.dims((n,)))
    i = w.cast(i, np.dtype(np.int64))
    below = w.op("Less", i, w.constant(0, np.dtype(np.int64)))
    return str(w.op("Where", below, w.op("Add", i, length), i))


@structural(
    _wrap_raw, None, batch=_wrap_batch, onnx=_onnx_wrap,
    aval=lambda args, params: ShapeDtype(args[0].shape, np.dtype(np.int64)),
    samples=calls(lambda rng: Sample((rng.integers(-3, 3, (2, 2)),), (3,))),
)  # fmt: skip
def wrap_index(i: Value, n: int) -> Value:
    """Indices from [-n, n) to [0, n); anything outside raises IndexOutOfBoundsError."""
