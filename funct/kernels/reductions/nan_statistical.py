"""Reductions and scans of ndarrays that look past NaN.

A result that is no NaN has seen none: then it is that of the plain function. Where it is one, NaN
is replaced first in single and double precision; each gives None for what takes more care, as
places without any number, and the function of its name in `funct.array.nan_statistical` has it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from funct.kernels.cpu.reductions.pairwise import of_long_rows
from funct.kernels.cpu.reductions.short_rows import of_short_rows
from funct.kernels.dtypes import FLOATING, INTEGER
from funct.kernels.elementwise.nans import without
from funct.kernels.reductions.cumulative import scanned
from funct.kernels.reductions.statistical import (
    count_nonzero,
    first_least,
    first_most,
    max,
    mean,
    min,
    prod,
    std,
    sum,
    var,
)

__all__ = [
    "nanargmax", "nanargmin", "nancumprod", "nancumsum", "nanmax", "nanmean", "nanmin", "nanprod",
    "nanstd", "nansum", "nanvar",
]  # fmt: skip


_FEW = 1 << 8  # elements from which on their sum is one call
_EXACT = 1 << 24  # whole numbers that single precision has


def _clean(y: Any) -> Any:
    if y is None:
        return None
    return y if (y == y if y.ndim == 0 else (y == y).all()) else None


def _filled(reduced: Any, x: Any, axis: Any, dtype: Any, keepdims: bool, value: float) -> Any:
    """Of x, or of what it is with a value in place of NaN."""
    if dtype is not None:
        return None
    y = _clean(reduced(x, axis, None, keepdims))
    if y is None and (x := without(x, value)) is not None:
        y = reduced(x, axis, None, keepdims)
    return y


def nansum(x: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
    """Sum of what is not NaN."""
    if x.size >= _FEW and dtype is None:
        y = of_long_rows(x, axis, keepdims, "numbers")
        if y is None:
            y = of_short_rows("numbers", x, axis, keepdims)
        if y is not None:
            return y
    return _filled(sum, x, axis, dtype, keepdims, 0.0)


def nanprod(x: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
    """Product of what is not NaN."""
    return _filled(prod, x, axis, dtype, keepdims, 1.0)


def nanmax(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """Maximum of what is not NaN."""
    return _extremum(np.fmax, max, x, axis, keepdims)


def nanmin(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """Minimum of what is not NaN."""
    return _extremum(np.fmin, min, x, axis, keepdims)


def _extremum(ufunc: Any, plain: Any, x: Any, axis: Any, keepdims: bool) -> Any:
    """Past NaN, where there is some, by NumPy; of two zeros that may take another one."""
    y = _clean(plain(x, axis, keepdims))
    if y is None and x.ndim and INTEGER < x.dtype.num <= FLOATING:
        y = _clean(ufunc.reduce(x, axis, None, None, keepdims))
        return y if y is not None and np.all(y) else None
    return y


def nanmean(x: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
    """Mean of what is not NaN."""
    if dtype is not None:
        return None
    y = _clean(mean(x, axis, keepdims))
    if y is None and (counts := _counts(x, axis, keepdims)) is not None:
        total = sum(without(x, 0.0), axis, None, keepdims)
        y = None if total is None else total / counts
    return y


def _counts(x: Any, axis: Any, keepdims: bool, fewest: float = 0.0) -> Any:
    """How many are not NaN, in the dtype of x; None where they are not more than `fewest`, for
    other dtypes than single and double precision, and where they are beyond single precision.
    """
    if not INTEGER < x.dtype.num <= FLOATING or x.size > _EXACT:
        return None
    n = count_nonzero(x == x, axis, keepdims)
    return None if n is None or not np.all(n > fewest) else np.asarray(n).astype(x.dtype)


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
    y = _clean(var(x, axis, c, keepdims))
    if y is None and c.__class__ in (int, float):
        counts = _counts(x, axis, keepdims, c)
        middle = None if counts is None else nanmean(x, axis, None, True)
        if middle is not None and np.isfinite(middle).all():
            centred = without(x - middle, 0.0)  # inf - inf is none of these
            total = sum(np.multiply(centred, centred, centred), axis, None, keepdims)
            y = None if total is None else total / (counts - c)
    return y


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
    y = _clean(std(x, axis, correction if ddof is None else ddof, keepdims))
    if y is None and x.dtype.num <= FLOATING:
        square = nanvar(x, axis, None, correction, ddof, keepdims)
        y = None if square is None else np.sqrt(square)
    return y


def nanargmax(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """Index of the first maximum of what is not NaN."""
    return _place_of_known(x, first_most, axis, keepdims, -np.inf)


def nanargmin(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """Index of the first minimum of what is not NaN."""
    return _place_of_known(x, first_least, axis, keepdims, np.inf)


def _place_of_known(x: Any, find: Any, axis: Any, keepdims: bool, worst: float) -> Any:
    at = _place(x, find, axis, keepdims, np.nan)
    if at is None and x.dtype.num <= FLOATING and (x := without(x, worst)) is not None:
        return _place(x, find, axis, keepdims, worst)
    return at


def _place(x: Any, find: Any, axis: Any, keepdims: bool, no: float) -> Any:
    """None where a value that is found is NaN, or `no`."""
    if axis is None:
        if keepdims:
            return None
        at = find(x, None, False)
        found = x.item(at)
        return at if found == found != no else None  # NaN comes first where there is one
    if axis.__class__ is not int or not -x.ndim <= axis < x.ndim or x.dtype.num > FLOATING:
        return None
    at = find(x, axis, True)
    if x.dtype.num > INTEGER:
        found = np.take_along_axis(x, at, axis)
        if not ((found == found) & (found != no)).all():
            return None
    return at if keepdims else at.reshape([n for k, n in enumerate(x.shape) if k != axis % x.ndim])


def nancumsum(x: Any, axis: Any = None, dtype: Any = None) -> Any:
    """Running sum along axis, NaN counted as 0."""
    return _running(np.add, x, axis, dtype, 0.0)


def nancumprod(x: Any, axis: Any = None, dtype: Any = None) -> Any:
    """Running product along axis, NaN counted as 1."""
    return _running(np.multiply, x, axis, dtype, 1.0)


def _running(ufunc: Any, x: Any, axis: Any, dtype: Any, value: float) -> Any:
    if axis is None:
        x, axis = x.reshape(-1), 0
    y = None if dtype is not None else scanned(ufunc, x, axis, None, None)
    if y is None or not y.size:
        return None
    last = y.item(-1) if y.ndim == 1 else np.nan
    if last == last:
        return y
    x = without(x, value)
    return None if x is None else scanned(ufunc, x, axis, None, None)
