"""Chapter: scatter. An array with the elements or rows at given positions replaced or combined.

Positions i (m,) count along the first axis of x (n, *rest); v (m, *rest) has a row for each.

Three primitives, because the tape keeps what a rule names: replacing and adding need the positions
alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from funct import ops
from funct.core import Pair, Primitive, Sample, Shape, Value
from funct.kernels.indexing import combining as kernels
from funct.ops.broadcasting import first_axis, merged
from funct.ops.counting import counted, lifted
from funct.ops.families import structural
from funct.ops.fast import wrap
from funct.ops.indexing import batch_size, check_bounds, lane_offsets, on_axis, onnx_index
from funct.ops.samples import calls

__all__ = ["scatter", "scatter_add", "scatter_combine"]

if TYPE_CHECKING:
    Mode = str
else:  # what the check of graphs asks for
    Mode = Literal["multiply", "min", "max"]

Params = tuple[Any, ...]
Args = Sequence[Any]
Flags = Sequence[bool]


def _changed(name: str, x: Any, v: Any, i: Any, mode: str) -> Any:
    try:
        return kernels.combine(x, v, i, mode)
    except IndexError:
        check_bounds(name, i, x.shape[0])
        raise


def _scatter_raw(x: Any, v: Any, i: Any) -> Any:
    return _changed("scatter", x, v, i, "set")


def _scatter_pull_x(g: Value, i: Value, v_shape: Shape) -> Value:
    return ops.scatter(g, ops.broadcast_to(wrap(np.zeros((), g.dtype)), v_shape), i)


def _scatter_push_x(t: Value, ans: Value, x: Value, v: Value, i: Value) -> Value:
    return _scatter_pull_x(t, i, v.shape)


def _scatter_pull_v(g: Value, i: Value, x_shape: Shape) -> Value:
    rows = ops.take(g, i, 0)
    return ops.where(_beside(_winners(i, x_shape[0]), rows), rows, 0.0)


def _scatter_push_v(t: Value, ans: Value, x: Value, v: Value, i: Value) -> Value:
    return ops.scatter(ops.broadcast_to(wrap(np.zeros((), t.dtype)), x.shape), t, i)


def _winners(i: Value, n: int) -> Value:
    """Where the same position is written twice, the last write stands: true for those."""
    order, none = counted(i.shape[0]), lifted(wrap(np.zeros((), np.int64)), (n,))
    last = ops.scatter(ops.broadcast_to(none, (n,)), order, i)
    return ops.equal(ops.take(last, i, 0), order)


def _beside(each: Value, rows: Value) -> Value:
    """One value for each of the rows, in a shape that broadcasts with them."""
    return ops.reshape(each, (each.shape[0], *(1,) * (len(rows.shape) - 1)))


def _scatter_batch(prim: Primitive, args: Args, batched: Flags, params: Params) -> Value:
    size = batch_size(args, batched)
    x, v, i = (first_axis(a, b, size) for a, b in zip(args, batched, strict=True))
    at = lane_offsets(i, x.shape[1])
    return ops.reshape(prim.fn(merged(x), merged(v), merged(at), *params), x.shape)


def _onnx_scatter(w: Any, x: str, v: str, i: str, mode: str = "set") -> str:
    names = {"set": "none", "add": "add", "multiply": "mul", "min": "min", "max": "max"}
    v = w.cast(v, w.dtype_of(x))
    if len(w.shape_of(x)) > 1:
        at = w.op("Unsqueeze", w.cast(i, np.dtype(np.int64)), w.dims((-1,)))
        return str(w.op("ScatterND", x, at, v, reduction=names[mode]))
    at = onnx_index(w, i)
    return str(w.op("ScatterElements", x, at, v, axis=0, reduction=names[mode]))


_SCATTER = ["x", "v", "i"]
_SAMPLES = calls(
    lambda rng: Sample((rng.normal(size=5), rng.normal(size=3), np.asarray([0, -1, 0]))),
    lambda rng: Sample((rng.normal(size=5), rng.normal(size=2), np.asarray([3, 1]))),
    lambda rng: Sample((rng.normal(size=(4, 2)), rng.normal(size=(3, 2)), np.asarray([0, -1, 0]))),
)


@structural(
    _scatter_raw, Pair(_scatter_push_x, _scatter_pull_x, _SCATTER),
    Pair(_scatter_push_v, _scatter_pull_v, _SCATTER), None,
    shape=lambda x, v, i: x, batch=_scatter_batch, onnx=_onnx_scatter, masks=True,
    samples=_SAMPLES, raises=True,
)  # fmt: skip
def scatter(x: Value, v: Value, i: Value) -> Value:
    """x with v written at the positions i; of several writes to one the last stands."""


def _add_raw(x: Any, v: Any, i: Any) -> Any:
    return _changed("scatter_add", x, v, i, "add")


def _add_pull_x(g: Value) -> Value:
    return g


def _add_push_x(t: Value, ans: Value, x: Value, v: Value, i: Value) -> Value:
    return t


def _add_pull_v(g: Value, i: Value) -> Value:
    return ops.take(g, i, 0)


def _add_push_v(t: Value, ans: Value, x: Value, v: Value, i: Value) -> Value:
    return ops.put(t, i, 0, x.shape[0])


def _onnx_add(w: Any, x: str, v: str, i: str) -> str:
    return _onnx_scatter(w, x, v, i, "add")


@structural(
    _add_raw, Pair(_add_push_x, _add_pull_x, _SCATTER), Pair(_add_push_v, _add_pull_v, _SCATTER),
    None,
    shape=lambda x, v, i: x, batch=_scatter_batch, onnx=_onnx_add,
    samples=_SAMPLES, raises=True,
)  # fmt: skip
def scatter_add(x: Value, v: Value, i: Value) -> Value:
    """x with v added at the positions i, one after the other, as `numpy.add.at` does."""


def _combine_raw(x: Any, v: Any, i: Any, mode: str) -> Any:
    return _changed("scatter_combine", x, v, i, mode)


def _combine_rule_x(g: Value, ans: Value, x: Value, v: Value, i: Value, mode: str) -> Value:
    if mode == "multiply":
        return g * ops.scatter_combine(_ones(x), v, i, mode)
    return g * _hits(x, ans) / _ties(ans, x, v, i)


def _combine_push_x(t: Value, ans: Value, x: Value, v: Value, i: Value, mode: str) -> Value:
    return _combine_rule_x(t, ans, x, v, i, mode)


def _combine_weigh_v(t: Value, ans: Value, x: Value, v: Value, i: Value, mode: str) -> Value:
    """t, one element per write, times the derivative of the result in that write."""
    if mode == "multiply":
        return t * _other_factors(x, v, i)
    return t * _hits(v, ops.take(ans, i, 0)) / ops.take(_ties(ans, x, v, i), i, 0)


def _combine_pull_v(g: Value, ans: Value, x: Value, v: Value, i: Value, mode: str) -> Value:
    return _combine_weigh_v(ops.take(g, i, 0), ans, x, v, i, mode)


def _combine_push_v(t: Value, ans: Value, x: Value, v: Value, i: Value, mode: str) -> Value:
    return ops.put(_combine_weigh_v(t, ans, x, v, i, mode), i, 0, x.shape[0])


def _ones(x: Value) -> Value:
    return ops.broadcast_to(wrap(np.ones((), x.dtype)), x.shape)


def _hits(x: Value, ans: Value) -> Value:
    return ops.astype(ops.equal(x, ans), ans.dtype)


def _ties(ans: Value, x: Value, v: Value, i: Value) -> Value:
    """How many of x and v at each position equal the extremum: they share the derivative."""
    return _hits(x, ans) + ops.put(_hits(v, ops.take(ans, i, 0)), i, 0, x.shape[0])


def _other_factors(x: Value, v: Value, i: Value) -> Value:
    """For each write, x at its position times the other factors written there.

    Two running products over the writes sorted by position, so it is exact where factors are 0.
    """
    i = on_axis(i, x.shape[0])
    order = ops.argsort(i, 0, False)
    at, w = ops.take(i, order, 0), ops.take(v, order, 0)
    new = ops.not_equal(_slice(at, 1, None), _slice(at, None, -1))
    true = wrap(np.ones(min(1, i.shape[0]), bool))
    first, last = ops.concat(true, new, 0), ops.concat(new, true, 0)
    first, last = _beside(first, w), _beside(last, w)
    before = _running(w, first, ops.take(x, at, 0))
    after = _running(ops.flip(w, (0,)), ops.flip(last, (0,)), _ones(w))
    return ops.put(before * ops.flip(after, (0,)), order, 0, i.shape[0])


def _running(w: Value, first: Value, start: Value) -> Value:
    """Products of the w before each element of a run; a run begins at `first`, with `start`."""
    delayed = ops.concat(_slice(w, None, 1), _slice(w, None, -1), 0)
    factors = ops.where(first, ops.astype(wrap(np.zeros(())), w.dtype), delayed)
    return ops.linear_recurrence(factors, ops.where(first, start, 0.0), 0)


def _slice(x: Value, start: int | None, stop: int | None) -> Value:
    return ops.slice_(x, ((start, stop, 1), *((None, None, 1),) * (len(x.shape) - 1)))


_COMBINE = ["x", "v", "i", "mode"]


def _combine_samples(rng: np.random.Generator) -> list[Sample]:
    i, modes = np.asarray([0, -1, 0, 2]), ("multiply", "min", "max")
    flat = [Sample((rng.normal(size=4), rng.normal(size=4), i), (m,)) for m in modes]
    rows = ((rng.normal(size=(4, 2)), rng.normal(size=(4, 2)), i) for _ in modes)
    return [*flat, *[Sample(given, (m,)) for given, m in zip(rows, modes, strict=True)]]


@structural(
    _combine_raw, Pair(_combine_push_x, _combine_rule_x, _COMBINE),
    Pair(_combine_push_v, _combine_pull_v, _COMBINE), None,
    shape=lambda x, v, i, mode: x, batch=_scatter_batch, onnx=_onnx_scatter,
    samples=_combine_samples, raises=True,
)  # fmt: skip
def scatter_combine(x: Value, v: Value, i: Value, mode: Mode) -> Value:
    """x combined with v at the positions i: "multiply", "min" or "max".

    Every write to a repeated position counts; equal extrema share the derivative.
    """
