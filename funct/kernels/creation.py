"""Creation functions in NumPy's cheapest spelling, for shapes of plain ints and no options."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

__all__ = [
    "arange", "empty", "empty_like", "eye", "full", "full_like", "linspace", "ones", "ones_like",
    "tril", "triu", "zeros", "zeros_like",
]  # fmt: skip

ndarray = np.ndarray
_DOUBLE = np.dtype(np.float64)
_ZERO, _ONE = np.zeros((), _DOUBLE), np.ones((), _DOUBLE)
_FLOATING, _NATIVE = (11, 12), 16  # numbers of float32 and float64; of NumPy's dtypes up to here


def _of_dtypes(value: int) -> dict[Any, Any]:
    """A 0-d buffer by dtype, and by the scalar types that name it."""
    found: dict[Any, Any] = {}
    for char in "?bhlqiBHLQIefdFD":
        dtype = np.dtype(char)
        found[dtype] = found[dtype.type] = np.asarray(value, dtype)
    return found | {kind: np.asarray(value, kind) for kind in (bool, int, float, complex)}


_ZEROS, _ONES = _of_dtypes(0), _of_dtypes(1)
_MANY = 1 << 13  # what is larger is announced to the allocator, and compared with the memory
_FAR = 1 << 62  # from here on integers do not fit
_SMALL = 32  # triangles up to here are kept


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
    if dtype is not None or device is not None:
        return None
    known = fill_value.__class__ is float or (
        fill_value.__class__ is int and -_FAR < fill_value < _FAR
    )
    return _repeated(np.asarray(fill_value), shape) if known else None


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
    return found if found.size <= _MANY else None


def zeros_like(x: Any, dtype: Any = None, device: Any = None) -> Any:
    """Zeros of x's shape and dtype."""
    if dtype is not None or device is not None:
        return None
    one = _ZERO if x.dtype is _DOUBLE else np.zeros((), x.dtype)
    return _seen(one, x.shape)


def ones_like(x: Any, dtype: Any = None, device: Any = None) -> Any:
    """Ones of x's shape and dtype."""
    if dtype is not None or device is not None:
        return None
    one = _ONE if x.dtype is _DOUBLE else np.ones((), x.dtype)
    return _seen(one, x.shape)


empty_like = zeros_like


def full_like(x: Any, fill_value: Any, dtype: Any = None, device: Any = None) -> Any:
    """An array of x's shape whose elements are all one number."""
    if dtype is not None or device is not None:
        return None
    if fill_value.__class__ is float:
        if x.dtype.num not in _FLOATING:
            return None
    elif fill_value.__class__ is not int or x.dtype.num > _NATIVE:
        return None
    return _seen(np.asarray(fill_value, x.dtype), x.shape)


def arange(
    start: Any, stop: Any = None, step: Any = 1, dtype: Any = None, device: Any = None
) -> Any:
    """start, start + step, … before stop."""
    if dtype is not None or device is not None:
        return None
    if start.__class__ is int and step.__class__ is int and (stop is None or stop.__class__ is int):
        if stop is None:
            return np.arange(0, start, step) if -_MANY < start < _MANY else None
        near = -_FAR < start < _FAR and -_MANY < stop - start < _MANY
        return np.arange(start, stop, step) if near else None
    if start.__class__ is float and stop.__class__ is float and step.__class__ is float:
        return np.arange(start, stop, step) if -_MANY < (stop - start) / step < _MANY else None
    return None


def linspace(
    start: Any,
    stop: Any,
    num: int,
    dtype: Any = None,
    device: Any = None,
    endpoint: bool = True,
) -> Any:
    """num evenly spaced values from start to stop."""
    if start.__class__ is not float or stop.__class__ is not float or num.__class__ is not int:
        return None
    if dtype is not None or device is not None or not 0 <= num < _MANY:
        return None
    return np.linspace(start, stop, num, bool(endpoint))


def eye(
    n_rows: int, n_cols: int | None = None, k: int = 0, dtype: Any = None, device: Any = None
) -> Any:
    """Ones on the diagonal."""
    if n_rows.__class__ is not int or n_cols is not None or not 0 <= n_rows * n_rows < _MANY:
        return None
    if k.__class__ is not int or k != 0 or dtype is not None or device is not None:
        return None
    return np.eye(n_rows)


def tril(x: Any, k: int = 0) -> Any:
    """x with zeros above the k-th diagonal."""
    keep = _triangle(x, k)
    return None if keep is None else np.where(keep, x, np.zeros((), x.dtype))


def triu(x: Any, k: int = 0) -> Any:
    """x with zeros below the k-th diagonal."""
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
