"""Chapter: gather and scatter. Indices are integer operands; they are checked, never clamped.

`take`/`put` go along one axis, `take_along_axis`/`put_along_axis` go elementwise; each pair is a
map and its adjoint. Every other indexing form is written with them in `funct.array`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from funct import ops
from funct.core import Pair, Primitive, Sample, Shape, ShapeDtype, Value
from funct.errors import IndexOutOfBoundsError
from funct.ops.families import constant, first_axis, structural
from funct.ops.samples import calls

__all__ = [
    "move_block",
    "put",
    "put_along_axis",
    "scatter",
    "scatter_combine",
    "take",
    "take_along_axis",
    "wrap_index",
]

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
    try:
        return x.take(i, axis)
    except IndexError:
        _check_bounds("take", i, x.shape[axis])
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
    rows = _lane_offsets(i, x.shape[1])
    flat = ops.reshape(x, (x.shape[0] * x.shape[1], *x.shape[2:]))
    out = ops.take(flat, rows, 0)  # (B, *i, *rest)
    return move_block(out, 1, len(i.shape) - 1, 1 + axis)


def _lane_offsets(i: Value, n: int) -> Value:
    """Indices into (B * n) from per-lane indices (B, ...) into n."""
    offsets = np.arange(i.shape[0], dtype=np.int64).reshape(-1, *(1,) * (len(i.shape) - 1)) * n
    return ops.wrap_index(i, n) + constant(offsets)


def move_block(x: Value, start: int, count: int, destination: int) -> Value:
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
    flat = g.reshape((*g.shape[:axis], i.size, *g.shape[axis + i.ndim :]))
    out = np.zeros((*g.shape[:axis], n, *g.shape[axis + i.ndim :]), g.dtype)
    into = out
    if axis:
        into, flat = np.moveaxis(out, axis, 0), np.moveaxis(flat, axis, 0)
    try:
        np.add.at(into, i.reshape(-1), flat)
    except IndexError:
        _check_bounds("put", i, n)
        raise
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
    g = move_block(g, 1 + axis, rank, 1)  # (B, *i, *rest)
    out = ops.put(g, _lane_offsets(i, n), 0, size * n)  # (B * n, *rest)
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
    ),
)  # fmt: skip
def put(g: Value, i: Value, axis: int, n: int) -> Value:
    """Adjoint of `take`: zeros of length n along axis, with g added at the indices i."""


# take_along_axis and put_along_axis: one element per index ----------------------------------------


def _take_along_raw(x: Any, i: Any, axis: int) -> Any:
    try:
        return x[i] if x.ndim == 1 else np.take_along_axis(x, i, axis)
    except IndexError:
        _check_bounds("take_along_axis", i, x.shape[axis])
        raise


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

# Two primitives, because the tape keeps what a rule names: replacing needs the positions alone.


def _scatter_raw(x: Any, v: Any, i: Any) -> Any:
    _check_bounds("scatter", i, x.shape[0])
    out = x.copy()
    out[i] = v
    return out


def _scatter_pull_x(g: Value, i: Value, v_shape: Shape) -> Value:
    return ops.scatter(g, ops.broadcast_to(constant(np.zeros((), g.dtype)), v_shape), i)


def _scatter_push_x(t: Value, ans: Value, x: Value, v: Value, i: Value) -> Value:
    return _scatter_pull_x(t, i, v.shape)


def _scatter_pull_v(g: Value, i: Value, x_shape: Shape) -> Value:
    return ops.where(_winners(i, x_shape[0]), ops.take(g, i, 0), 0.0)


def _scatter_push_v(t: Value, ans: Value, x: Value, v: Value, i: Value) -> Value:
    return ops.scatter(ops.broadcast_to(constant(np.zeros((), t.dtype)), x.shape), t, i)


def _winners(i: Value, n: int) -> Value:
    """Where the same position is written twice, the last write stands: true for those."""
    order = constant(np.arange(i.shape[0], dtype=np.int64))
    last = ops.scatter(constant(np.zeros(n, np.int64)), order, i)
    return ops.equal(ops.take(last, i, 0), order)


def _scatter_batch(prim: Primitive, args: Args, batched: Flags, params: Params) -> Value:
    size = _batch_size(args, batched)
    x, v, i = (first_axis(a, b, size) for a, b in zip(args, batched, strict=True))
    n = x.shape[1]
    flat = prim.fn(
        ops.reshape(x, (size * n,)), ops.reshape(v, (v.shape[0] * v.shape[1],)),
        ops.reshape(_lane_offsets(i, n), (i.shape[0] * i.shape[1],)), *params,
    )  # fmt: skip
    return ops.reshape(flat, (size, n))


def _onnx_scatter(w: Any, x: str, v: str, i: str, mode: str = "set") -> str:
    names = {"set": "none", "add": "add", "multiply": "mul", "min": "min", "max": "max"}
    v = w.cast(v, w.dtype_of(x))
    at = _onnx_index(w, i)
    return str(w.op("ScatterElements", x, at, v, axis=0, reduction=names[mode]))


_SCATTER = ["x", "v", "i"]


@structural(
    _scatter_raw, Pair(_scatter_push_x, _scatter_pull_x, _SCATTER),
    Pair(_scatter_push_v, _scatter_pull_v, _SCATTER), None,
    shape=lambda x, v, i: x, batch=_scatter_batch, onnx=_onnx_scatter, masks=True,
    samples=calls(
        lambda rng: Sample((rng.normal(size=5), rng.normal(size=3), np.asarray([0, -1, 0]))),
        lambda rng: Sample((rng.normal(size=5), rng.normal(size=2), np.asarray([3, 1]))),
    ),
)  # fmt: skip
def scatter(x: Value, v: Value, i: Value) -> Value:
    """1-D x with v written at the positions i; of several writes to one the last stands."""


COMBINED_AT = {
    "add": np.add.at, "multiply": np.multiply.at, "min": np.minimum.at, "max": np.maximum.at,
}  # fmt: skip


def _combine_raw(x: Any, v: Any, i: Any, mode: str) -> Any:
    _check_bounds("scatter_combine", i, x.shape[0])
    out = x.copy()
    COMBINED_AT[mode](out, i, v)
    return out


def _combine_rule_x(g: Value, ans: Value, x: Value, v: Value, i: Value, mode: str) -> Value:
    if mode == "add":
        return g
    if mode == "multiply":
        return g * ops.scatter_combine(_ones(x), v, i, mode)
    return g * _hits(x, ans) / _ties(ans, x, v, i)


def _combine_push_x(t: Value, ans: Value, x: Value, v: Value, i: Value, mode: str) -> Value:
    return _combine_rule_x(t, ans, x, v, i, mode)


def _combine_weigh_v(t: Value, ans: Value, x: Value, v: Value, i: Value, mode: str) -> Value:
    """t, one element per write, times the derivative of the result in that write."""
    if mode == "add":
        return t
    if mode == "multiply":
        return t * _other_factors(x, v, i)
    return t * _hits(v, ops.take(ans, i, 0)) / ops.take(_ties(ans, x, v, i), i, 0)


def _combine_pull_v(g: Value, ans: Value, x: Value, v: Value, i: Value, mode: str) -> Value:
    return _combine_weigh_v(ops.take(g, i, 0), ans, x, v, i, mode)


def _combine_push_v(t: Value, ans: Value, x: Value, v: Value, i: Value, mode: str) -> Value:
    return ops.put(_combine_weigh_v(t, ans, x, v, i, mode), i, 0, x.shape[0])


def _ones(x: Value) -> Value:
    return ops.broadcast_to(constant(np.ones((), x.dtype)), x.shape)


def _hits(x: Value, ans: Value) -> Value:
    return ops.astype(ops.equal(x, ans), ans.dtype)


def _ties(ans: Value, x: Value, v: Value, i: Value) -> Value:
    """How many of x and v at each position equal the extremum: they share the derivative."""
    return _hits(x, ans) + ops.put(_hits(v, ops.take(ans, i, 0)), i, 0, x.shape[0])


def _other_factors(x: Value, v: Value, i: Value) -> Value:
    """For each write, x at its position times the other factors written there.

    Two running products over the writes sorted by position, so it is exact where factors are 0.
    """
    i = ops.wrap_index(i, x.shape[0])
    order = ops.argsort(i, 0, False)
    at, w = ops.take(i, order, 0), ops.take(v, order, 0)
    new = ops.not_equal(_slice(at, 1, None), _slice(at, None, -1))
    true = constant(np.ones(min(1, i.shape[0]), bool))
    first, last = ops.concat(true, new, 0), ops.concat(new, true, 0)
    before = _running(w, first, ops.take(x, at, 0))
    after = _running(ops.flip(w, (0,)), ops.flip(last, (0,)), _ones(w))
    return ops.put(before * ops.flip(after, (0,)), order, 0, i.shape[0])


def _running(w: Value, first: Value, start: Value) -> Value:
    """Products of the w before each element of a run; a run begins at `first`, with `start`."""
    delayed = ops.concat(_slice(w, None, 1), _slice(w, None, -1), 0)
    factors = ops.where(first, ops.astype(constant(np.zeros(())), w.dtype), delayed)
    return ops.linear_recurrence(factors, ops.where(first, start, 0.0), 0)


def _slice(x: Value, start: int | None, stop: int | None) -> Value:
    return ops.slice_(x, ((start, stop, 1),))


_COMBINE = ["x", "v", "i", "mode"]


def _combine_samples(rng: np.random.Generator) -> list[Sample]:
    i = np.asarray([0, -1, 0, 2])
    return [Sample((rng.normal(size=4), rng.normal(size=4), i), (m,)) for m in COMBINED_AT]


@structural(
    _combine_raw, Pair(_combine_push_x, _combine_rule_x, _COMBINE),
    Pair(_combine_push_v, _combine_pull_v, _COMBINE), None,
    shape=lambda x, v, i, mode: x, batch=_scatter_batch, onnx=_onnx_scatter,
    samples=_combine_samples,
)  # fmt: skip
def scatter_combine(x: Value, v: Value, i: Value, mode: str) -> Value:
    """1-D x combined with v at the positions i: "add", "multiply", "min" or "max".

    Every write to a repeated position counts; equal extrema share the derivative.
    """


def _wrap_raw(i: Any, n: int) -> Any:
    _check_bounds("wrap_index", i, n)
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
