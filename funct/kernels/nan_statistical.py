"""Reductions and scans of ndarrays that look past NaN: those that see none, as most arrays do.

A result that is no NaN has seen none: then it is that of the plain function. Each gives None where
it is not, and the function of its name in `funct.array.nan_statistical` replaces NaN first.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from funct.kernels.cumulative import scanned
from funct.kernels.dtypes import FLOATING, INTEGER
from funct.kernels.statistical import first_least, first_most, max, mean, min, prod, std, sum, var

__all__ = [
    "nanargmax", "nanargmin", "nancumprod", "nancumsum", "nanmax", "nanmean", "nanmin", "nanprod",
    "nanstd", "nansum", "nanvar",
]  # fmt: skip


def _clean(y: Any) -> Any:
    if y is None:
        return None
    return y if (y == y if y.ndim == 0 else (y == y).all()) else None


def nansum(x: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
    """Sum of what is not NaN."""
    return None if dtype is not None else _clean(sum(x, axis, None, keepdims))


def nanprod(x: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
    """Product of what is not NaN."""
    return None if dtype is not None else _clean(prod(x, axis, None, keepdims))


def nanmax(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """Maximum of what is not NaN."""
    return _clean(max(x, axis, keepdims))


def nanmin(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """Minimum of what is not NaN."""
    return _clean(min(x, axis, keepdims))


def nanmean(x: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
    """Mean of what is not NaN."""
    return None if dtype is not None else _clean(mean(x, axis, keepdims))


def nanvar(
    x: Any,
    axis: Any = None,
    dtype: Any = None,
    correction: float = 0.0,
    ddof: float | None = None,
    keepdims: bool = False,
) -> Any:
    """Variance of what is not NaN."""
    if dtype is not None:
        return None
    c = correction if ddof is None else ddof
    return _clean(var(x, axis, c, keepdims))


def nanstd(
    x: Any,
    axis: Any = None,
    dtype: Any = None,
    correction: float = 0.0,
    ddof: float | None = None,
    keepdims: bool = False,
) -> Any:
    """Standard deviation of what is not NaN."""
    if dtype is not None:
        return None
    return _clean(std(x, axis, correction if ddof is None else ddof, keepdims))


def nanargmax(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """Index of the first maximum of what is not NaN."""
    return _place(x, first_most, axis, keepdims)


def nanargmin(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """Index of the first minimum of what is not NaN."""
    return _place(x, first_least, axis, keepdims)


def _place(x: Any, find: Any, axis: Any, keepdims: bool) -> Any:
    if axis is None:
        if keepdims:
            return None
        at = find(x, None, False)
        found = x.item(at)
        return at if found == found else None  # NaN comes first where there is one
    if axis.__class__ is not int or not -x.ndim <= axis < x.ndim or x.dtype.num > FLOATING:
        return None
    at = find(x, axis, True)
    if x.dtype.num > INTEGER:
        found = np.take_along_axis(x, at, axis)
        if not (found == found).all():
            return None
    return at if keepdims else at.reshape([n for k, n in enumerate(x.shape) if k != axis % x.ndim])


def nancumsum(x: Any, axis: Any = None, dtype: Any = None) -> Any:
    """Running sum along axis, NaN counted as 0."""
    return _without(np.add, x, axis, dtype)


def nancumprod(x: Any, axis: Any = None, dtype: Any = None) -> Any:
    """Running product along axis, NaN counted as 1."""
    return _without(np.multiply, x, axis, dtype)


def _without(ufunc: Any, x: Any, axis: Any, dtype: Any) -> Any:
    if axis is None:
        x, axis = x.reshape(-1), 0
    y = None if dtype is not None else scanned(ufunc, x, axis, None, None)
    if y is None or y.ndim != 1 or not y.size:
        return None
    last = y.item(-1)
    return y if last == last else None
