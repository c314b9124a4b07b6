"""Chapter: reductions. Axes are a tuple of non-negative ints, never None."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from funct import ops
from funct.core import (
    INEXACT,
    WIDE,
    Pair,
    Primitive,
    Sample,
    Shape,
    ShapeDtype,
    Size,
    Value,
    in_wide,
)
from funct.errors import ShapeError
from funct.kernels.reductions.statistical import (
    every,
    first_least,
    first_most,
    in_single,
    least,
    most,
    product,
    reduced_in_single,
    some,
    total,
)
from funct.ops.families import structural
from funct.ops.samples import calls
from funct.ops.slicing import delayed

__all__ = [
    "all", "any", "argmax", "argmin", "axis_count", "count_along", "length_along", "mean_of",
    "reduce_max", "reduce_min", "reduce_prod", "reduce_sum", "restore", "size_along", "sum_dtype",
]  # fmt: skip

Params = tuple[Any, ...]
Args = Sequence[Any]
Flags = Sequence[bool]


def _reduced(x: Shape, axes: Shape, keepdims: bool) -> Shape:
    return tuple([1 if i in axes else n for i, n in enumerate(x) if keepdims or i not in axes])


def restore(g: Value, x_shape: Shape, axes: Shape, keepdims: bool) -> Value:
    """A reduced value with its axes back as length 1, ready to broadcast against x."""
    return g if keepdims else ops.reshape(g, _reduced(x_shape, axes, True))


def _shift_batch(prim: Primitive, args: Args, batched: Flags, params: Params) -> Value:
    axes, keepdims = params
    return prim.fn(args[0], tuple([a + 1 for a in axes]), keepdims)


def _onnx_reduce(op_type: str) -> Any:
    def lower(w: Any, x: str, axes: Shape, keepdims: bool) -> str:
        x = w.cast(x, w.results[0].dtype)
        if not axes:  # ONNX takes no axes for all axes
            return str(w.op("Identity", x))
        return str(w.op(op_type, x, w.dims(axes), keepdims=int(keepdims)))

    return lower


def _onnx_reduce_bool(op_type: str) -> Any:
    def lower(w: Any, x: str, axes: Shape, keepdims: bool) -> str:
        x = w.cast(x, np.dtype(bool))
        if not axes:
            return str(w.op("Identity", x))
        return str(w.op(op_type, x, w.dims(axes), keepdims=int(keepdims)))

    return lower


_SAMPLES = calls(
    lambda rng: Sample((rng.normal(size=(2, 3, 4)),), ((0, 2), False)),
    lambda rng: Sample((rng.normal(size=(3, 4)),), ((1,), True)),
    lambda rng: Sample((rng.normal(size=(3,)),), ((0,), False)),
    lambda rng: Sample((rng.normal(size=()),), ((), False)),
)


# The ufuncs' own reductions, called by position: np.sum costs twice as much.
_add: Any = np.add.reduce
_multiply: Any = np.multiply.reduce
_maximum: Any = np.maximum.reduce
_minimum: Any = np.minimum.reduce


def _sum_raw(x: Any, axes: Shape, keepdims: bool) -> Any:
    if in_single(x):
        return reduced_in_single(_add, x, axes, keepdims)
    if x.dtype in WIDE:
        return in_wide(_sum_raw, x, axes, keepdims)
    return total(x, axes, keepdims)


def sum_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype of a sum: small integers and booleans widen."""
    found: np.dtype[Any] = _sum_raw(np.empty(0, dtype), (0,), False).dtype
    return found


def _sum_aval(args: Args, params: Params) -> ShapeDtype:
    dtype = sum_dtype(args[0].dtype)
    return ShapeDtype(_reduced(args[0].shape, *params), dtype)


def _sum_transpose(g: Value, x_shape: Shape, axes: Shape, keepdims: bool) -> Value:
    if len(axes) == len(x_shape) and not keepdims:
        return ops.broadcast_to(g, x_shape)  # a scalar needs no axes of length 1 first
    return ops.broadcast_to(restore(g, x_shape, axes, keepdims), x_shape)


def _sum_rule(g: Value, axes: Shape, keepdims: bool, x_shape: Shape) -> Value:
    return _sum_transpose(g, x_shape, axes, keepdims)


@structural(
    _sum_raw, _sum_rule, aval=_sum_aval, batch=_shift_batch, onnx=_onnx_reduce("ReduceSum"),
    samples=_SAMPLES,
)  # fmt: skip
def reduce_sum(x: Value, axes: Shape, keepdims: bool) -> Value:
    """Sum over axes; small integers widen to the default integer."""


def _excluded_product(x: Value, axes: Shape) -> tuple[Value, Value]:
    """Products over axes of all other elements, and x, both with the reduced axes flat and last.

    Two cumulative products: exact where factors are 0, where ans / x is not.
    """
    kept = tuple([i for i in range(len(x.shape)) if i not in axes])
    moved = ops.permute_dims(x, kept + axes)
    flat = ops.reshape(moved, (*moved.shape[: len(kept)], ops.axis_count(x, axes)))
    last = len(kept)
    left = delayed(ops.cumulative_prod(flat, last), last, 1)
    right = delayed(ops.cumulative_prod(ops.flip(flat, (last,)), last), last, 1)
    return left * ops.flip(right, (last,)), flat


def _unflatten(y: Value, x_shape: Shape, axes: Shape) -> Value:
    kept = tuple([i for i in range(len(x_shape)) if i not in axes])
    order = kept + axes
    wide = ops.reshape(y, tuple([x_shape[i] for i in order]))
    return ops.permute_dims(wide, tuple([order.index(i) for i in range(len(order))]))


def _prod_partial(x: Value, axes: Shape) -> Value:
    if 0 in x.shape:
        return x
    return _unflatten(_excluded_product(x, axes)[0], x.shape, axes)


def _prod_push(t: Value, ans: Value, x: Value, axes: Shape, keepdims: bool) -> Value:
    return ops.reduce_sum(t * _prod_partial(x, axes), axes, keepdims)


def _prod_pull(g: Value, x: Value, axes: Shape, keepdims: bool) -> Value:
    return restore(g, x.shape, axes, keepdims) * _prod_partial(x, axes)


def _prod_raw(x: Any, axes: Shape, keepdims: bool) -> Any:
    if in_single(x):
        return reduced_in_single(_multiply, x, axes, keepdims)
    if x.dtype in WIDE:
        return in_wide(_prod_raw, x, axes, keepdims)
    return product(x, axes, keepdims)


_NAMES = ["x", "axes", "keepdims"]


@structural(
    _prod_raw, Pair(_prod_push, _prod_pull, _NAMES), aval=_sum_aval, batch=_shift_batch,
    onnx=_onnx_reduce("ReduceProd"), samples=_SAMPLES,
)  # fmt: skip
def reduce_prod(x: Value, axes: Shape, keepdims: bool) -> Value:
    """Product over axes; the derivative is exact where factors are 0."""


def _extremum_weights(x: Value, ans: Value, axes: Shape, keepdims: bool) -> Value:
    hits = ops.astype(ops.equal(x, restore(ans, x.shape, axes, keepdims)), x.dtype)
    return hits / ops.reduce_sum(hits, axes, True)


def _extremum_push(t: Value, ans: Value, x: Value, axes: Shape, keepdims: bool) -> Value:
    return ops.reduce_sum(t * _extremum_weights(x, ans, axes, keepdims), axes, keepdims)


def _extremum_pull(g: Value, ans: Value, x: Value, axes: Shape, keepdims: bool) -> Value:
    return restore(g, x.shape, axes, keepdims) * _extremum_weights(x, ans, axes, keepdims)


def _max_raw(x: Any, axes: Shape, keepdims: bool) -> Any:
    return _extreme(most, _maximum, x, axes, keepdims)


def _min_raw(x: Any, axes: Shape, keepdims: bool) -> Any:
    return _extreme(least, _minimum, x, axes, keepdims)


def _extreme(found_by: Any, reduce: Any, x: Any, axes: Shape, keepdims: bool) -> Any:
    if in_single(x):
        return reduced_in_single(reduce, x, axes, keepdims)
    found = found_by(x, axes, keepdims)
    return found if found.dtype is x.dtype else found.astype(x.dtype)  # of four bits: int8


def _picked(name: str, x: Shape, axes: Shape, keepdims: bool) -> Shape:
    """The shape of what is one of the elements along axes: there must be some."""
    for a in axes:
        n = x[a]
        if type(n) is int and not n:  # to ask a symbolic size would bind it
            raise ShapeError(f"{name}: no elements along axis {a} of shape {x}")
    return _reduced(x, axes, keepdims)


_EXTREMUM = Pair(_extremum_push, _extremum_pull, _NAMES)


@structural(
    _max_raw, _EXTREMUM, shape=partial(_picked, "max"), batch=_shift_batch, masks=True,
    onnx=_onnx_reduce("ReduceMax"), samples=_SAMPLES,
)  # fmt: skip
def reduce_max(x: Value, axes: Shape, keepdims: bool) -> Value:
    """Maximum over axes, NaN kept; equal elements share the derivative."""


@structural(
    _min_raw, _EXTREMUM, shape=partial(_picked, "min"), batch=_shift_batch, masks=True,
    onnx=_onnx_reduce("ReduceMin"), samples=_SAMPLES,
)  # fmt: skip
def reduce_min(x: Value, axes: Shape, keepdims: bool) -> Value:
    """Minimum over axes, NaN kept; equal elements share the derivative."""


def _bool_aval(args: Args, params: Params) -> ShapeDtype:
    return ShapeDtype(_reduced(args[0].shape, *params), np.dtype(bool))


def _truth_samples(rng: np.random.Generator) -> list[Sample]:
    x = np.asarray([[True, True, False], [True, True, True], [False, False, False]])
    return [Sample((x,), ((1,), False)), Sample((x,), ((0, 1), True))]


@structural(
    every, None,
    aval=_bool_aval, batch=_shift_batch, onnx=_onnx_reduce_bool("ReduceMin"),
    samples=_truth_samples,
)  # fmt: skip
def all(x: Value, axes: Shape, keepdims: bool) -> Value:
    """Whether every element along axes is true."""


@structural(
    some, None,
    aval=_bool_aval, batch=_shift_batch, onnx=_onnx_reduce_bool("ReduceMax"),
    samples=_truth_samples,
)  # fmt: skip
def any(x: Value, axes: Shape, keepdims: bool) -> Value:
    """Whether some element along axes is true."""


def _arg_aval(name: str) -> Callable[[Args, Params], ShapeDtype]:
    def aval(args: Args, params: Params) -> ShapeDtype:
        axis, keepdims = params
        return ShapeDtype(_picked(name, args[0].shape, (axis,), keepdims), np.dtype(np.int64))

    return aval


def _arg_batch(prim: Primitive, args: Args, batched: Flags, params: Params) -> Value:
    return prim.fn(args[0], params[0] + 1, params[1])


def _onnx_arg(op_type: str) -> Any:
    def lower(w: Any, x: str, axis: int, keepdims: bool) -> str:
        return str(w.op(op_type, x, axis=axis, keepdims=int(keepdims)))

    return lower


_ARG_SAMPLES = calls(
    lambda rng: Sample((rng.normal(size=(2, 3)),), (1, False)),
    lambda rng: Sample((rng.normal(size=(3,)),), (0, True)),
)


@structural(
    first_most, None,
    aval=_arg_aval("argmax"), batch=_arg_batch, onnx=_onnx_arg("ArgMax"), samples=_ARG_SAMPLES,
)  # fmt: skip
def argmax(x: Value, axis: int, keepdims: bool) -> Value:
    """Index of the first maximum along axis."""


@structural(
    first_least, None,
    aval=_arg_aval("argmin"), batch=_arg_batch, onnx=_onnx_arg("ArgMin"), samples=_ARG_SAMPLES,
)  # fmt: skip
def argmin(x: Value, axis: int, keepdims: bool) -> Value:
    """Index of the first minimum along axis."""


# How many elements a reduction covers -------------------------------------------------------------


def _size_raw(x: Any, axes: Shape) -> Any:
    n = 1
    for a in axes:
        n *= x.shape[a]
    return np.asarray(n, np.int64)


def _size_batch(prim: Primitive, args: Args, batched: Flags, params: Params) -> Value:
    n = prim.fn(args[0], tuple([a + 1 for a in params[0]]))
    return ops.broadcast_to(n, (args[0].shape[0],))


def _onnx_size(w: Any, x: str, axes: Shape) -> str:
    dims = w.op("Gather", w.op("Shape", x), w.constant(list(axes), np.dtype(np.int64)))
    return str(w.op("ReduceProd", dims, keepdims=0))


@structural(
    _size_raw, None, batch=_size_batch, onnx=_onnx_size,
    aval=lambda args, params: ShapeDtype((), np.dtype(np.int64)),
    samples=calls(lambda rng: Sample((rng.normal(size=(2, 3)),), ((0, 1),))),
)  # fmt: skip
def size_along(x: Value, axes: Shape) -> Value:
    """Number of elements along axes, 0-d: for sizes that capture keeps symbolic."""


def axis_count(x: Value, axes: Shape) -> Any:
    """Number of elements along axes: a Python int, or a Size where an axis is symbolic."""
    n: Any = 1
    for a in axes:
        n = n * x.shape[a]
    return n


def count_along(x: Value, axes: Shape) -> Any:
    """`axis_count` as a divisor: an int, or a 0-d array of x's precision where one is symbolic."""
    n = axis_count(x, axes)
    if not isinstance(n, Size):
        return n
    dtype = np.empty(0, x.dtype).real.dtype if x.dtype in INEXACT else np.dtype(np.float64)
    return ops.astype(size_along(x, axes), dtype)


def length_along(x: Value, axis: int) -> Any:
    """Length of an axis as an operand: an int, or a 0-d int64 array where it is symbolic."""
    n: Any = x.shape[axis]
    return size_along(x, (axis,)) if isinstance(n, Size) else n


def mean_of(total: Value, x: Value, axes: Shape) -> Value:
    """total divided by the number of elements of x along axes."""
    return total / count_along(x, axes)
