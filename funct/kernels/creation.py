"""Creation functions in NumPy's cheapest spelling, for shapes of plain ints and no options."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from funct.kernels.dtypes import FLOATING, INTEGER, NAMED
from funct.kernels.indexing import runs
from funct.kernels.reductions.statistical import cast

__all__ = [
    "arange", "empty", "empty_like", "eye", "full", "full_like", "geomspace", "linspace", "ones",
    "ones_like", "tril", "triu", "weights", "zeros", "zeros_like",
]  # fmt: skip

ndarray = np.ndarray
_arange: Any = np.arange
_linspace: Any = np.linspace
_DOUBLE, _LONG = np.dtype(np.float64), np.dtype(np.int64)
_ZERO, _ONE = np.zeros((), _DOUBLE), np.ones((), _DOUBLE)
# A 0-d buffer by the names of its dtype.
_ZEROS = {name: np.zeros((), dtype) for name, dtype in NAMED.items()}
_ONES = {name: np.ones((), dtype) for name, dtype in NAMED.items()}
_MANY = 1 << 13  # what is larger is announced to the allocator, and compared with the memory
_DENSE = 1 << 12  # and of fewer whoever reads them loses more time with one than memory is worth
_GREAT = 1e38
_FAR = 1 << 62  # from here on integers do not fit
_SMALL = 32  # triangles up to here are kept
_KEPT = 256  # and weights of values between two
_REALS = {int, float}


def zeros(shape: Any, dtype: Any = None, device: Any = None) -> Any:
    """Zeros of float64 or another dtype."""
    one = _ZERO if dtype is None else _ZEROS.get(dtype)
    return _repeated(one, shape) if one is not None and device is None else None


def ones(shape: Any, dtype: Any = None, device: Any = None) -> Any:
    """Ones of float64 or another dtype."""
    one = _ONE if dtype is None else _ONES.get(dtype)
    return _repeated(one, shape) if one is not None and device is None else None


empty = zeros


def full(shape: Any, fill_value: Any, dtype: Any = None, device: Any = None) -> Any:
    """An array whose elements are all one number."""
    if device is not None:
        return None
    one = _one(fill_value, None if dtype is None else NAMED.get(dtype, _DOUBLE.type))
    return None if one is None else _repeated(one, shape)


def _one(value: Any, dtype: Any) -> Any:
    """A 0-d buffer of a number, or of an array without axes, in a dtype or its own."""
    kind = value.__class__
    if kind is ndarray:
        if value.ndim or dtype.__class__ is type:
            return None
        return value if dtype is None else cast(value, dtype)
    if dtype is None:
        known = kind is float or kind is bool or (kind is int and -_FAR < value < _FAR)
        return np.asarray(value) if known else None
    if dtype.__class__ is type:  # no dtype that is known here
        return None
    if kind is float:
        single = dtype.num == FLOATING - 1 and -_GREAT < value < _GREAT  # what overflows warns
        return np.asarray(value, dtype) if single or dtype is _DOUBLE else None
    return np.asarray(value, dtype) if kind is int and -_FAR < value < _FAR else None


def _repeated(one: Any, shape: Any) -> Any:
    """A 0-d buffer seen as often as shape says."""
    if shape.__class__ is int:
        shape = (shape,)
    elif shape.__class__ is list:
        shape = tuple(shape)
    if shape.__class__ is not tuple:
        return None
    for n in shape:
        if n.__class__ is not int or n < 0:  # NumPy does not look at it
            return None
    return _seen(one, shape)


def _seen(one: Any, shape: Any) -> Any:
    """A 0-d buffer as an array of that shape, if it is small: large ones are announced first."""
    found = ndarray(shape, one.dtype, one, 0, (0,) * len(shape))
    if found.size <= _DENSE:
        return found.copy()
    return found if found.size <= _MANY else None


def zeros_like(x: Any, dtype: Any = None, device: Any = None) -> Any:
    """Zeros of x's shape and, unless given, dtype."""
    one = _ZEROS.get(x.dtype if dtype is None else dtype)
    return _seen(one, x.shape) if one is not None and device is None else None


def ones_like(x: Any, dtype: Any = None, device: Any = None) -> Any:
    """Ones of x's shape and, unless given, dtype."""
    one = _ONES.get(x.dtype if dtype is None else dtype)
    return _seen(one, x.shape) if one is not None and device is None else None


empty_like = zeros_like


def full_like(x: Any, fill_value: Any, dtype: Any = None, device: Any = None) -> Any:
    """An array of x's shape whose elements are all one number."""
    named = NAMED.get(x.dtype if dtype is None else dtype)
    if named is None or device is not None:
        return None
    one = _one(fill_value, named)
    return None if one is None else _seen(one, x.shape)


def arange(
    start: Any, stop: Any = None, step: Any = 1, dtype: Any = None, device: Any = None
) -> Any:
    """start, start + step, … before stop."""
    if stop is None:
        start, stop = 0, start
    if device is not None or not {start.__class__, stop.__class__, step.__class__} <= _REALS:
        return None
    if dtype is not None:
        dtype = NAMED.get(dtype)
        if dtype is None:
            return None
    if start.__class__ is stop.__class__ is step.__class__ is int:
        near = -_FAR < start < _FAR and -_MANY < stop - start < _MANY
        return _arange(start, stop, step, _LONG if dtype is None else dtype) if near else None
    if not (-_MANY < (stop - start) / step < _MANY and -_FAR < step < _FAR):
        return None
    return _arange(start, stop, step, _DOUBLE if dtype is None else dtype)


def linspace(
    start: Any,
    stop: Any,
    num: int,
    dtype: Any = None,
    device: Any = None,
    endpoint: bool = True,
    axis: int = 0,
) -> Any:
    """num evenly spaced values from start to stop."""
    if num.__class__ is not int or device is not None or axis.__class__ is not int or axis:
        return None
    if not {start.__class__, stop.__class__} <= _REALS:
        small = dtype is None and _are_doubles(start, stop, num)
        return between(start, stop, num, bool(endpoint)) if small else None
    if not 0 <= num < _MANY:
        return None
    if dtype is not None:
        dtype = NAMED.get(dtype)
        if dtype is None:
            return None
    inner = num - 1 if endpoint else num
    low, reach = start * 1.0, stop * 1.0 - start * 1.0
    step = reach / inner if inner > 0 else 0.0
    if not step or not math.isfinite(reach) or (dtype is not None and dtype.num <= INTEGER):
        return _linspace(start, stop, num, bool(endpoint), dtype=dtype)
    out = _arange(0, num, 1, _DOUBLE)
    out *= step
    out += low
    if endpoint:
        out[-1] = stop
    return out if dtype is None else out.astype(dtype, copy=False)


def geomspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, dtype: Any = None, axis: int = 0
) -> Any:
    """num values from start to stop in even ratios."""
    if num.__class__ is not int or dtype is not None or axis.__class__ is not int or axis:
        return None
    start, stop = (float(v) if v.__class__ is int else v for v in (start, stop))
    if not _are_doubles(start, stop, num):
        return None
    sign = np.sign(start)
    if not np.all(sign * np.sign(stop) > 0):
        return None
    logs = between(np.log10(np.abs(start)), np.log10(np.abs(stop)), num, bool(endpoint))
    out = np.power(10.0, logs)
    out *= sign
    if num:
        out[0] = start
    if num > 1 and endpoint:
        out[-1] = stop
    return out


def _are_doubles(start: Any, stop: Any, num: int) -> bool:
    """Whether both are arrays of doubles or Python's floats, and what lies between is small."""
    size = num
    for v in (start, stop):
        if v.__class__ is ndarray and v.dtype is _DOUBLE:
            size *= v.size
        elif v.__class__ is not float:
            return False
    return num >= 0 and size < _MANY


def between(start: Any, stop: Any, num: int, endpoint: bool) -> Any:
    """num values from start to stop, which broadcast, along a new first axis."""
    down, up = weights(num, endpoint, max(np.ndim(start), np.ndim(stop)))
    return start * down + stop * up


def weights(num: int, endpoint: bool, rank: int) -> tuple[Any, Any]:
    """What start and stop of that rank weigh in each of the values between them."""
    return (_kept_weights if num <= _KEPT else _weights)(num, endpoint, rank)


def _weights(num: int, endpoint: bool, rank: int) -> tuple[Any, Any]:
    up = np.linspace(0.0, 1.0, num, endpoint=endpoint).reshape(num, *(1,) * rank)
    return 1.0 - up, up


_kept_weights = functools.lru_cache(64)(_weights)


def eye(
    n_rows: int, n_cols: int | None = None, k: int = 0, dtype: Any = None, device: Any = None
) -> Any:
    """Ones on the diagonal."""
    if n_cols is None:
        n_cols = n_rows
    if not n_rows.__class__ is n_cols.__class__ is k.__class__ is int or device is not None:
        return None
    if n_rows < 0 or n_cols < 0 or n_rows * n_cols >= _MANY:
        return None
    named = _DOUBLE if dtype is None else NAMED.get(dtype)
    if named is None:
        return None
    k = max(min(k, n_cols), -n_rows)
    start, ones = (k, min(n_rows, n_cols - k)) if k >= 0 else (-k * n_cols, min(n_rows + k, n_cols))
    out = np.zeros(n_rows * n_cols, named)
    out[start : start + ones * (n_cols + 1) : n_cols + 1] = 1
    return out.reshape(n_rows, n_cols)


def tril(x: Any, k: int = 0) -> Any:
    """x with zeros above the k-th diagonal."""
    found = runs.triangle(x, k, True) if k.__class__ is int and x.ndim > 1 else None
    if found is not None:
        return found
    keep = _triangle(x, k)
    return None if keep is None else np.where(keep, x, np.zeros((), x.dtype))


def triu(x: Any, k: int = 0) -> Any:
    """x with zeros below the k-th diagonal."""
    found = runs.triangle(x, k, False) if k.__class__ is int and x.ndim > 1 else None
    if found is not None:
        return found
    drop = _triangle(x, k - 1) if k.__class__ is int else None
    return None if drop is None else np.where(drop, np.zeros((), x.dtype), x)


def _triangle(x: Any, k: Any) -> Any:
    m, n = x.shape[-2:]
    if k.__class__ is not int or m > _SMALL or n > _SMALL:
        return None
    return _tri(m, n, max(min(k, n), -m - 1))


@functools.lru_cache(1024)
def _tri(m: int, n: int, k: int) -> Any:
    return np.tri(m, n, k, bool)
