"""Chapter: sorting and searching. The permutation is an integer result, values are gathered."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from funct import ops
from funct.core import (
    NARROW,
    Absent,
    Pair,
    Primitive,
    Sample,
    Shape,
    ShapeDtype,
    Value,
    common_dtype,
)
from funct.errors import ShapeError
from funct.kernels.order import bisection
from funct.kernels.order import sorting as kernels
from funct.kernels.reductions import scans
from funct.ops.broadcasting import axis_behind, first_axis
from funct.ops.families import structural
from funct.ops.samples import calls

__all__ = ["argsort", "running_argmax", "searchsorted", "sort", "top_k"]

if TYPE_CHECKING:
    Side = str
else:  # what the check of graphs asks for
    Side = Literal["left", "right"]

Params = tuple[Any, ...]
Args = Sequence[Any]
Flags = Sequence[bool]

_INT64 = np.dtype(np.int64)


def _comparable(x: Any, length: int = 0) -> Any:
    """x as NumPy can sort it: of the dtypes added to it, it does not know where NaN belongs.

    length: of lines of it, of which long ones of halves are ordered by their bits.
    """
    if x.dtype not in NARROW or kernels.known_by_bits(x, length):
        return x
    return x.astype(np.float32)


def _argsort_raw(x: Any, axis: int, descending: bool) -> Any:
    return kernels.argsort(_comparable(x, x.shape[axis]), axis, descending)


def _onnx_argsort(w: Any, x: str, axis: int, descending: bool) -> str:
    return str(_onnx_top(w, x, axis, w.shape_of(x)[axis], descending)[1])


def _onnx_top(w: Any, x: str, axis: int, k: Any, largest: bool) -> tuple[str, str]:
    values, at = w.op_many("TopK", 2, x, w.dims((k,)), axis=axis, largest=int(largest), sorted=1)
    return values, at


_SAMPLES = calls(
    lambda rng: Sample((rng.normal(size=(2, 4)),), (1, False)),
    lambda rng: Sample((rng.normal(size=(3, 2)),), (0, True)),
    lambda rng: Sample((rng.integers(0, 3, (6,)),), (0, True), smooth=False),
)


@structural(
    _argsort_raw, None, batch=axis_behind, onnx=_onnx_argsort, samples=_SAMPLES,
    aval=lambda args, params: ShapeDtype(args[0].shape, _INT64),
)  # fmt: skip
def argsort(x: Value, axis: int, descending: bool) -> Value:
    """The stable permutation that sorts x along axis; NaN last in ascending order."""


def _sort_raw(x: Any, axis: int, descending: bool) -> Any:
    y = kernels.sort(_comparable(x, x.shape[axis]), axis, descending)
    return y.astype(x.dtype, copy=False)


def _sort_push(t: Value, ans: Value, x: Value, axis: int, descending: bool) -> Value:
    return ops.take_along_axis(t, ops.argsort(x, axis, descending), axis)


def _sort_pull(g: Value, x: Value, axis: int, descending: bool) -> Value:
    return ops.put_along_axis(g, ops.argsort(x, axis, descending), axis, x.shape[axis])


def _onnx_sort(w: Any, x: str, axis: int, descending: bool) -> str:
    return str(_onnx_top(w, x, axis, w.shape_of(x)[axis], descending)[0])


@structural(
    _sort_raw, Pair(_sort_push, _sort_pull, ["x", "axis", "descending"]), batch=axis_behind,
    onnx=_onnx_sort, samples=_SAMPLES, shape=lambda x, axis, descending: x, masks=True,
)  # fmt: skip
def sort(x: Value, axis: int, descending: bool) -> Value:
    """x sorted along axis."""


def _top_k_raw(x: Any, axis: int, k: int) -> tuple[Any, Any]:
    values, at = kernels.top_k(_comparable(x, x.shape[axis]), axis, k)
    return values.astype(x.dtype, copy=False), at


def _top_k_aval(args: Args, params: Params) -> tuple[ShapeDtype, ShapeDtype]:
    (x,), (axis, k) = args, params
    if k.__class__ is int and x.shape[axis].__class__ is int and not 0 <= k <= x.shape[axis]:
        raise ShapeError(f"top_k: k must be at most {x.shape[axis]}, the axis's length, got {k}")
    shape = (*x.shape[:axis], k, *x.shape[axis + 1 :])
    return ShapeDtype(shape, x.dtype), ShapeDtype(shape, _INT64)


def _top_k_push(
    t: Value, ans: tuple[Value, Value], x: Value, axis: int, k: int
) -> tuple[Value, None]:
    return ops.take_along_axis(t, ans[1], axis), None


def _top_k_pull(g: tuple[Value, Any], ans: tuple[Value, Value], axis: int, x_shape: Shape) -> Value:
    return ops.put_along_axis(g[0], ans[1], axis, x_shape[axis])


def _onnx_top_k(w: Any, x: str, axis: int, k: int) -> tuple[str, str]:
    return _onnx_top(w, x, axis, k, True)


@structural(
    _top_k_raw, Pair(_top_k_push, _top_k_pull, ["x", "axis", "k"]), aval=_top_k_aval, results=2,
    batch=axis_behind, onnx=_onnx_top_k, masks=True,
    samples=calls(
        lambda rng: Sample((rng.normal(size=(2, 5)),), (1, 3)),
        lambda rng: Sample((rng.normal(size=(4,)),), (0, 1)),
    ),
)  # fmt: skip
def top_k(x: Value, axis: int, k: int) -> tuple[Value, Value]:
    """The k largest elements along axis in descending order, and their indices."""


def _search_batch(prim: Primitive, args: Args, batched: Flags, params: Params) -> Value:
    size = next(a.shape[0] for a, b in zip(args, batched, strict=True) if b)
    kind = common_dtype(*[a.dtype for a in args])  # narrow ones are joined with few others
    args = [a if a.dtype == kind else ops.astype(a, kind) for a in args]
    x, v = (first_axis(a, b, size) for a, b in zip(args, batched, strict=True))
    # by merging: how many of x stand before each of v when both are sorted together, ties decided
    # by the order in which they are joined; NaN comes last here too
    n, m = x.shape[1], ops.axis_count(v, tuple(range(1, len(v.shape))))
    flat = ops.reshape(v, (size, m))
    left = params[0] == "left"
    order = ops.argsort(ops.concat(flat, x, 1) if left else ops.concat(x, flat, 1), 1, False)
    of_x = ops.greater_equal(order, m) if left else ops.less(order, n)
    before = ops.cumulative_sum(ops.astype(of_x, _INT64), 1)
    found = ops.put_along_axis(before, order, 1, n + m)
    part = (None, m, 1) if left else (n, None, 1)
    return ops.reshape(ops.slice_(found, ((None, None, 1), part)), v.shape)


def _onnx_searchsorted(w: Any, x: str, v: str, side: str) -> str:
    dtype = common_dtype(w.dtype_of(x), w.dtype_of(v))
    x, v = w.cast(x, dtype), w.op("Unsqueeze", w.cast(v, dtype), w.dims((-1,)))
    below = w.op("Less" if side == "left" else "LessOrEqual", x, v)  # their number is the place
    return str(w.op("ReduceSum", w.cast(below, _INT64), w.dims((-1,)), keepdims=0))


def _search_raw(x: Any, v: Any, side: Any) -> Any:
    return bisection.searchsorted(_comparable(x), _comparable(v), side)


@structural(
    _search_raw, None, None, batch=_search_batch,
    aval=lambda args, params: ShapeDtype(args[1].shape, _INT64),
    onnx=_onnx_searchsorted,
    samples=calls(
        lambda rng: Sample(
            (np.sort(rng.normal(size=5)), rng.normal(size=(2, 3))), ("left",), False
        ),
        lambda rng: Sample((np.arange(4.0), np.arange(4.0)), ("right",), False),
    ),
)  # fmt: skip
def searchsorted(x: Value, v: Value, side: Side) -> Value:
    """Where each of v would be inserted into the sorted 1-D x."""


@structural(
    scans.running_argmax, None, batch=axis_behind,
    aval=lambda args, params: ShapeDtype(args[0].shape, _INT64),
    onnx=Absent("ONNX has no running maximum"), samples=_SAMPLES,
)  # fmt: skip
def running_argmax(x: Value, axis: int, largest: bool) -> Value:
    """Where the largest element so far stands first along axis, or the smallest; NaN wins."""
