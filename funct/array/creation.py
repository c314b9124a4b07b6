"""Chapter: creation functions; those from data are in `conversion.py`."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from funct import ops
from funct.array.axes import normal_shape
from funct.array.conversion import as_tensor, asarray, check_allocation, from_dlpack
from funct.array.device import CPU, as_device, placed
from funct.array.direct import direct
from funct.array.dtypes import as_dtype
from funct.array.operands import number
from funct.array.tensor import Array, Tensor
from funct.core import Size
from funct.errors import (
    ArgumentError,
    DTypeError,
    FunctError,
    RangeError,
    ShapeError,
    UnsupportedOperandError,
)
from funct.kernels import creation as kernels
from funct.ops.by_size import NOTED, arrived
from funct.ops.counting import counted, lifted
from funct.ops.fast import wrap

__all__ = [
    "arange", "asarray", "count", "empty", "empty_like", "eye", "from_dlpack", "full", "full_like",
    "how_many", "meshgrid", "ones", "ones_like", "served", "tril", "triu", "zeros", "zeros_like",
]  # fmt: skip


@direct(kernels.full, arrays=0, maybe=("fill_value",))
@placed
def full(shape: Any, fill_value: Any, dtype: Any = None, *, device: Any = None) -> Any:
    """An array of `shape` whose elements are all fill_value.

    Of more than 4,096 elements it takes O(1) memory until it is used. fill_value is a number or a
    0-d array; its dtype is the result's unless one is given.
    Raises: as `zeros`. ShapeError: for a fill_value that does not broadcast to shape.
    Example:
        >>> import funct.array as xp
        >>> xp.full((2, 2), 7).tolist(), xp.full((1,), 0.5, dtype=xp.float32).dtype
        ([[7, 7], [7, 7]], dtype('float32'))
    """
    return _constant("full", shape, fill_value, dtype)


def _constant(name: str, shape: Any, fill_value: Any, dtype: Any) -> Any:
    shape = normal_shape(name, shape)
    if dtype is not None:
        dtype = as_dtype(name, dtype)
    if fill_value.__class__ in (bool, int, float, complex):
        value = wrap(number(name, fill_value, dtype))
    else:
        value = as_tensor(name, fill_value, "fill_value")
        if dtype is not None and value.dtype != dtype:
            value = ops.astype(value, dtype)
    return _spread(name, value, shape)


def served(x: Any) -> Any:
    """x; if it is large, results that follow come from the allocator of `funct.device`."""
    if x.__class__ is Array and x.data.nbytes >= NOTED:
        arrived(x.data)
    return x


def _spread(name: str, value: Any, shape: Any) -> Any:
    try:
        return served(ops.broadcast_to(lifted(value, shape), shape))
    except ShapeError:
        raise ShapeError(
            f"{name}: fill_value must broadcast to {shape}, got shape {value.shape}"
        ) from None
    except FunctError:
        raise
    except ValueError as error:
        raise ShapeError(f"{name}: {error}") from None


@direct(kernels.zeros, arrays=0)
@placed
def zeros(shape: Any, dtype: Any = None, *, device: Any = None) -> Any:
    """Zeros of `shape`, float64 by default.

    Raises: ShapeError: for negative lengths. DTypeError: for what is no dtype. ArgumentError: for a
    device that does not exist.
    Example:
        >>> import funct.array as xp
        >>> xp.zeros((2, 3)).shape, xp.zeros(2, dtype=xp.int8)
        ((2, 3), Array([0, 0], dtype=int8))
    """
    return _constant("zeros", shape, 0, np.float64 if dtype is None else dtype)


@direct(kernels.ones, arrays=0)
@placed
def ones(shape: Any, dtype: Any = None, *, device: Any = None) -> Any:
    """Ones of `shape`, float64 by default.

    Raises: as `zeros`.
    Example:
        >>> import funct.array as xp
        >>> xp.ones(3, dtype=xp.int64).tolist()
        [1, 1, 1]
    """
    return _constant("ones", shape, 1, np.float64 if dtype is None else dtype)


@direct(kernels.empty, arrays=0)
@placed
def empty(shape: Any, dtype: Any = None, *, device: Any = None) -> Any:
    """Zeros of `shape`, float64 by default: an immutable array has no use for left-over bytes.

    Raises: as `zeros`.
    Example:
        >>> import funct.array as xp
        >>> xp.empty(2).tolist()
        [0.0, 0.0]
    """
    return _constant("empty", shape, 0, np.float64 if dtype is None else dtype)


@direct(kernels.full_like, maybe=("fill_value",))
def full_like(x: Any, /, fill_value: Any, dtype: Any = None, *, device: Any = None) -> Any:
    """fill_value with x's shape and, unless given, dtype.

    Example:
        >>> import funct.array as xp
        >>> xp.full_like(xp.asarray([1, 2]), 7.9).tolist()  # x's dtype: an integer
        [7, 7]
    """
    return _like("full_like", x, fill_value, dtype, device)


def _like(name: str, x: Any, fill_value: Any, dtype: Any, device: Any) -> Any:
    x = as_tensor(name, x)
    target = x.device if device is None else as_device(name, device)
    out = _constant(name, x.shape, fill_value, x.dtype if dtype is None else dtype)
    return out if target is CPU else out.to_device(target)


@direct(kernels.zeros_like)
def zeros_like(x: Any, /, dtype: Any = None, *, device: Any = None) -> Any:
    """Zeros with x's shape and, unless given, dtype.

    Example:
        >>> import funct.array as xp
        >>> xp.zeros_like(xp.asarray([1, 2])), xp.zeros_like(xp.asarray([1, 2]), dtype=xp.float32)
        (Array([0, 0], dtype=int64), Array([0., 0.], dtype=float32))
    """
    return _like("zeros_like", x, 0, dtype, device)


@direct(kernels.ones_like)
def ones_like(x: Any, /, dtype: Any = None, *, device: Any = None) -> Any:
    """Ones with x's shape and, unless given, dtype.

    Example:
        >>> import funct.array as xp
        >>> xp.ones_like(xp.asarray([[0.5, 0.25]])).tolist()
        [[1.0, 1.0]]
    """
    return _like("ones_like", x, 1, dtype, device)


@direct(kernels.empty_like)
def empty_like(x: Any, /, dtype: Any = None, *, device: Any = None) -> Any:
    """Zeros with x's shape and, unless given, dtype.

    Example:
        >>> import funct.array as xp
        >>> xp.empty_like(xp.asarray([1, 2])).tolist()
        [0, 0]
    """
    return _like("empty_like", x, 0, dtype, device)


@direct(kernels.arange, arrays=0)
@placed
def arange(
    start: Any, /, stop: Any = None, step: Any = 1, *, dtype: Any = None, device: Any = None
) -> Any:
    """start, start + step, … before stop; one argument is stop.

    Integers give int64, or a RangeError; where a bound or the step is a float, the result is
    float64.
    Raises: ArgumentError: for a step of 0, and for infinities and NaN. RangeError: for a start that
    the dtype does not hold.
    Example:
        >>> import funct.array as xp
        >>> xp.arange(3).tolist(), xp.arange(5, 0, -2).tolist(), xp.arange(0.0, 1.0, 0.25).tolist()
        ([0, 1, 2], [5, 3, 1], [0.0, 0.25, 0.5, 0.75])
    """
    low, high = (0, start) if stop is None else (start, stop)
    if isinstance(high, Size) and low.__class__ is int and step == 1:
        out = counted(high - low) + low
        return out if dtype is None else ops.astype(out, as_dtype("arange", dtype))
    low, high, step = _real("start", low), _real("stop", high), _real("step", step)
    if step == 0:
        raise ArgumentError("arange: step must not be 0")
    whole = low.__class__ is int and high.__class__ is int and step.__class__ is int
    if not whole and not all(map(math.isfinite, (low, high, step))):
        raise ArgumentError(f"arange: start, stop and step must be finite, got {low, high, step}")
    if dtype is not None:
        dtype = as_dtype("arange", dtype)
    elif whole:
        dtype = np.dtype(np.int64)
    else:
        dtype = np.dtype(np.float64)
    try:
        steps = -((low - high) // step) if whole else math.ceil((high - low) / step)
    except OverflowError as error:
        raise RangeError(f"arange: {error}") from None
    check_allocation("arange", (max(steps, 0),), dtype)
    try:
        if whole and steps <= 1:  # the step may be of any length
            return wrap(np.asarray([low][: max(steps, 0)], dtype))
        return wrap(np.arange(low, high, step, dtype=dtype))
    except OverflowError as error:
        raise RangeError(f"arange: {error}") from None
    except (TypeError, ValueError) as error:
        raise DTypeError(f"arange: {error}") from None


def _distance(shape: Any) -> Any:
    """Column minus row, of each element of a matrix with a symbolic length."""
    rows, columns = (counted(n) for n in shape)
    return ops.reshape(columns, (1, shape[1])) - ops.reshape(rows, (shape[0], 1))


def _real(argument: str, v: Any) -> Any:
    """A Python int or float; arrays of one element are asked for it."""
    if v.__class__ is int or v.__class__ is float:
        return v
    if isinstance(v, Tensor):
        v = v.item()
    if isinstance(v, float | np.floating):
        return float(v)
    try:
        return operator.index(v)
    except TypeError:
        raise UnsupportedOperandError(
            f"arange: {argument} must be a real number, got {type(v).__name__}"
        ) from None


def count(name: str, argument: str, n: Any) -> int:
    """An argument that counts something, as an int."""
    try:
        k = operator.index(n)
    except TypeError:
        raise UnsupportedOperandError(
            f"{name}: {argument} must be an int, got {type(n).__name__}"
        ) from None
    return k


def how_many(name: str, argument: str, n: Any) -> Any:
    """An argument that says how many there are, as an int from 0 on; a symbolic size stays one."""
    if isinstance(n, Size):
        return n
    k = count(name, argument, n)
    if k < 0:
        raise ArgumentError(f"{name}: {argument} must not be negative, got {k}")
    return k


@direct(kernels.eye, arrays=0)
@placed
def eye(
    n_rows: int, n_cols: int | None = None, /, k: int = 0, dtype: Any = None, *, device: Any = None
) -> Any:
    """Ones on the k-th diagonal, zeros elsewhere; float64 by default.

    Raises: as `zeros`.
    Example:
        >>> import funct.array as xp
        >>> xp.eye(2, 3, k=1).tolist()
        [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    shape = normal_shape("eye", (n_rows, n_rows if n_cols is None else n_cols))
    dtype = np.dtype(np.float64) if dtype is None else as_dtype("eye", dtype)
    if any(isinstance(n, Size) for n in shape):
        return ops.astype(ops.equal(_distance(shape), count("eye", "k", k)), dtype)
    check_allocation("eye", shape, dtype)
    offset = max(min(count("eye", "k", k), shape[1]), -shape[0])
    return wrap(np.eye(shape[0], shape[1], k=offset, dtype=dtype))


def meshgrid(*arrays: Any, indexing: str = "xy") -> tuple[Any, ...]:
    """Coordinate arrays from coordinate vectors; "xy" exchanges the first two axes.

    Raises: ShapeError: for arrays of more than one axis.
    Example:
        >>> import funct.array as xp
        >>> x, y = xp.meshgrid(xp.asarray([1, 2, 3]), xp.asarray([10, 20]))
        >>> x.tolist(), y.tolist(), xp.meshgrid(x[0], y[:, 0], indexing="ij")[0].shape
        ([[1, 2, 3], [1, 2, 3]], [[10, 10, 10], [20, 20, 20]], (3, 2))
    """
    if indexing not in ("xy", "ij"):
        raise ArgumentError(f"meshgrid: indexing must be 'xy' or 'ij', got {indexing!r}")
    n = len(arrays)
    out = []
    for k, a in enumerate(arrays):
        a = as_tensor("meshgrid", a)
        if len(a.shape) != 1:
            raise ShapeError(f"meshgrid: arrays must be 1-D, got shape {a.shape}")
        axis = 1 - k if indexing == "xy" and n > 1 and k < 2 else k
        shape = tuple([a.shape[0] if i == axis else 1 for i in range(n)])
        out.append(ops.reshape(a, shape))
    common = ops.broadcasting.broadcast_shapes(*[a.shape for a in out])
    return tuple([ops.broadcast_to(a, common) for a in out])


def _triangle(name: str, x: Any, k: Any) -> Any:
    x, k = as_tensor(name, x), count(name, "k", k)
    if len(x.shape) < 2:
        raise ShapeError(f"{name}: x must have at least 2 axes, got shape {x.shape}")
    if any(isinstance(n, Size) for n in x.shape[-2:]):
        far = _distance(x.shape[-2:])
        kept = ops.less_equal(far, k) if name == "tril" else ops.greater_equal(far, k)
        return ops.where(kept, x, wrap(np.zeros((), x.dtype)))
    shape = (x.shape[-2], x.shape[-1])
    check_allocation(name, x.shape, x.dtype)
    k = max(min(k, shape[1]), -shape[0] - 1)
    zero = wrap(np.zeros((), x.dtype))
    if name == "tril":
        return ops.where(wrap(np.tri(*shape, k, bool)), x, zero)
    return ops.where(wrap(np.tri(*shape, k - 1, bool)), zero, x)


@direct(kernels.tril)
def tril(x: Any, /, k: int = 0) -> Any:
    """x with zeros above the k-th diagonal.

    Raises: ShapeError: for less than 2 axes.
    Example:
        >>> import funct.array as xp
        >>> xp.tril(xp.ones((3, 3))).tolist()
        [[1.0, 0.0, 0.0], [1.0, 1.0, 0.0], [1.0, 1.0, 1.0]]
    """
    return _triangle("tril", x, k)


@direct(kernels.triu)
def triu(x: Any, /, k: int = 0) -> Any:
    """x with zeros below the k-th diagonal.

    Raises: ShapeError: for less than 2 axes.
    Example:
        >>> import funct.array as xp
        >>> xp.triu(xp.ones((3, 3)), k=1).tolist()
        [[0.0, 1.0, 1.0], [0.0, 0.0, 1.0], [0.0, 0.0, 0.0]]
    """
    return _triangle("triu", x, k)
