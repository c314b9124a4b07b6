"""Statistics of the elements that are not NaN, with NumPy's names.

NaN is replaced by what changes nothing – 0 in a sum, 1 in a product, −inf under a maximum – so NaN
elements have derivative 0. Integers have no NaN: there these are the functions of the standard.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from funct import ops
from funct.array import cumulative, searching, statistical
from funct.array.axes import normal_axes, real_number
from funct.array.conversion import as_tensor
from funct.array.direct import direct
from funct.array.dtypes import as_dtype
from funct.array.in_single import narrowed, widened
from funct.array.manipulation import reshape
from funct.array.powers import power
from funct.core import INEXACT
from funct.kernels.reductions import nan_statistical as kernels
from funct.ops.fast import wrap

__all__ = [
    "nanargmax", "nanargmin", "nancumprod", "nancumsum", "nanmax", "nanmean", "nanmin", "nanprod",
    "nanstd", "nansum", "nanvar",
]  # fmt: skip


def _filled(x: Any, value: float, values: Any = None) -> Any:
    """values, which are x's own unless given, with another value where x is NaN."""
    given = x if values is None else values
    return given if x.dtype not in INEXACT else ops.where(ops.isnan(x), _as(value, given), given)


def _as(value: float, x: Any) -> Any:
    """A number in x's dtype, whatever NumPy would promote it to."""
    return wrap(np.asarray(value, x.dtype))


def _count(x: Any, axes: Any, keepdims: bool) -> Any:
    """How many elements are not NaN, in the dtype of x's real part."""
    numbers = ops.logical_not(ops.isnan(x))
    real = np.empty(0, x.dtype).real.dtype if x.dtype.kind == "c" else x.dtype
    dtype = np.dtype(np.float64) if real not in INEXACT else real
    return ops.reduce_sum(ops.astype(numbers, dtype), axes, keepdims)


@direct(kernels.nansum)
def nansum(x: Any, /, axis: Any = None, dtype: Any = None, *, keepdims: bool = False) -> Any:
    """Sum of what is not NaN; 0 where there is nothing.

    Example:
        >>> import funct.array as xp
        >>> xp.nansum(xp.asarray([[1.0, xp.nan], [3.0, 4.0]]), axis=0).tolist()
        [4.0, 4.0]

    Source: NumPy `nansum`.
    """
    x = as_tensor("nansum", x)
    return statistical.sum(_filled(x, 0.0), axis=axis, dtype=dtype, keepdims=keepdims)


@direct(kernels.nanprod)
def nanprod(x: Any, /, axis: Any = None, dtype: Any = None, *, keepdims: bool = False) -> Any:
    """Product of what is not NaN; 1 where there is nothing.

    Example:
        >>> import funct.array as xp
        >>> float(xp.nanprod(xp.asarray([2.0, xp.nan, 3.0])))
        6.0

    Source: NumPy `nanprod`.
    """
    x = as_tensor("nanprod", x)
    return statistical.prod(_filled(x, 1.0), axis=axis, dtype=dtype, keepdims=keepdims)


@direct(kernels.nanmean)
def nanmean(x: Any, /, axis: Any = None, dtype: Any = None, *, keepdims: bool = False) -> Any:
    """Mean of what is not NaN; NaN where there is nothing. dtype: to compute in.

    Example:
        >>> import funct.array as xp
        >>> xp.nanmean(xp.asarray([[1.0, xp.nan, 3.0], [xp.nan, xp.nan, xp.nan]]), axis=1).tolist()
        [2.0, nan]

    Source: NumPy `nanmean`.
    """
    x = as_tensor("nanmean", x)
    x = x if dtype is None else ops.astype(x, as_dtype("nanmean", dtype))
    axes = normal_axes("nanmean", axis, len(x.shape))
    wide = statistical.summands(x)
    total = ops.reduce_sum(_filled(wide, 0.0), axes, keepdims)
    return narrowed(_divided(total, _count(wide, axes, keepdims)), x)


def _divided(total: Any, count: Any) -> Any:
    """total / count; NaN without a warning where count is not positive."""
    some = ops.greater(count, 0)
    quotient = total / ops.where(some, count, _as(1.0, count))
    return ops.where(some, quotient, _as(np.nan, quotient))


@direct(kernels.nanvar)
def nanvar(
    x: Any,
    /,
    axis: Any = None,
    dtype: Any = None,
    *,
    correction: float = 0.0,
    ddof: float | None = None,
    keepdims: bool = False,
) -> Any:
    """Variance of what is not NaN; NaN where no more than `correction` elements are there.

    dtype: to compute in. ddof: NumPy's older name of `correction`.
    Example:
        >>> import funct.array as xp
        >>> x = xp.asarray([1.0, xp.nan, 3.0])
        >>> [float(xp.nanvar(x, correction=c)) for c in (0, 1, 2)]
        [1.0, 2.0, nan]

    Source: NumPy `nanvar`.
    """
    x = as_tensor("nanvar", x)
    x = x if dtype is None else ops.astype(x, as_dtype("nanvar", dtype))
    correction = real_number("nanvar", "correction", correction if ddof is None else ddof)
    axes = normal_axes("nanvar", axis, len(x.shape))
    (wide,) = widened(x)
    # inf - inf is a deviation, too
    centred = _filled(wide, 0.0, wide - nanmean(wide, axes, keepdims=True))
    square = ops.real(centred * ops.conj(centred)) if x.dtype.kind == "c" else centred * centred
    total = ops.reduce_sum(square, axes, keepdims)
    return narrowed(_divided(total, _count(wide, axes, keepdims) - correction), x)


@direct(kernels.nanstd)
def nanstd(
    x: Any,
    /,
    axis: Any = None,
    dtype: Any = None,
    *,
    correction: float = 0.0,
    ddof: float | None = None,
    keepdims: bool = False,
) -> Any:
    """Square root of `nanvar`, with its arguments; its derivative is 0 where it is 0.

    Example:
        >>> import funct.array as xp
        >>> float(xp.nanstd(xp.asarray([1.0, xp.nan, 5.0])))
        2.0

    Source: NumPy `nanstd`.
    """
    options: Any = {"dtype": dtype, "correction": correction, "ddof": ddof, "keepdims": keepdims}
    x = as_tensor("nanstd", x)
    if dtype is not None:
        return power(nanvar(x, axis, **options), 0.5)
    (wide,) = widened(x)
    return narrowed(power(nanvar(wide, axis, **options), 0.5), x)


@direct(kernels.nanmax)
def nanmax(x: Any, /, axis: Any = None, *, keepdims: bool = False) -> Any:
    """Maximum of what is not NaN; NaN where there is nothing else.

    Example:
        >>> import funct.array as xp
        >>> float(xp.nanmax(xp.asarray([1.0, xp.nan, -xp.inf])))
        1.0

    Source: NumPy `nanmax`.
    """
    x = as_tensor("nanmax", x)
    return _extremum("nanmax", statistical.max, -np.inf, x, axis, keepdims)


@direct(kernels.nanmin)
def nanmin(x: Any, /, axis: Any = None, *, keepdims: bool = False) -> Any:
    """Minimum of what is not NaN; NaN where there is nothing else.

    Example:
        >>> import funct.array as xp
        >>> float(xp.nanmin(xp.asarray([1.0, xp.nan, -xp.inf])))
        -inf

    Source: NumPy `nanmin`.
    """
    x = as_tensor("nanmin", x)
    return _extremum("nanmin", statistical.min, np.inf, x, axis, keepdims)


def _extremum(name: str, find: Any, worst: float, x: Any, axis: Any, keepdims: bool) -> Any:
    axes = normal_axes(name, axis, len(x.shape))
    best = find(_filled(x, worst), axis=axes, keepdims=keepdims)
    if x.dtype not in INEXACT:
        return best
    return ops.where(ops.all(ops.isnan(x), axes, keepdims), _as(np.nan, best), best)


@direct(kernels.nanargmax)
def nanargmax(x: Any, /, axis: int | None = None, *, keepdims: bool = False) -> Any:
    """Index of the first maximum of what is not NaN; -1 where there is nothing else, as in JAX.

    Example:
        >>> import funct.array as xp
        >>> x = xp.asarray([[1.0, xp.nan, 3.0], [xp.nan, xp.nan, xp.nan]])
        >>> xp.nanargmax(x, axis=1).tolist()
        [2, -1]

    Source: JAX `nanargmax`.
    """
    return _position(nanmax, x, axis, keepdims)


@direct(kernels.nanargmin)
def nanargmin(x: Any, /, axis: int | None = None, *, keepdims: bool = False) -> Any:
    """Index of the first minimum of what is not NaN; -1 where there is nothing else, as in JAX.

    Example:
        >>> import funct.array as xp
        >>> int(xp.nanargmin(xp.asarray([xp.nan, 3.0, 1.0])))
        2

    Source: JAX `nanargmin`.
    """
    return _position(nanmin, x, axis, keepdims)


def _position(extremum: Any, x: Any, axis: int | None, keepdims: bool) -> Any:
    best = extremum(ops.stop_gradient(x), axis, keepdims=True)
    hits = ops.astype(ops.equal(x, best), np.dtype(np.int32))
    at = searching.argmax(hits, axis=axis, keepdims=keepdims)
    lost = ops.isnan(best)
    return ops.where(lost if keepdims else ops.reshape(lost, at.shape), -1, at)


@direct(kernels.nancumsum)
def nancumsum(x: Any, /, axis: int | None = None, dtype: Any = None) -> Any:
    """Running sum along axis, NaN counted as 0; None flattens.

    Example:
        >>> import funct.array as xp
        >>> xp.nancumsum(xp.asarray([1.0, xp.nan, 2.0])).tolist()
        [1.0, 1.0, 3.0]

    Source: NumPy `nancumsum`.
    """
    x = as_tensor("nancumsum", x)
    x, axis = _flat(x, axis)
    return cumulative.cumulative_sum(_filled(x, 0.0), axis=axis, dtype=dtype)


@direct(kernels.nancumprod)
def nancumprod(x: Any, /, axis: int | None = None, dtype: Any = None) -> Any:
    """Running product along axis, NaN counted as 1; None flattens.

    Example:
        >>> import funct.array as xp
        >>> xp.nancumprod(xp.asarray([2.0, xp.nan, 3.0])).tolist()
        [2.0, 2.0, 6.0]

    Source: NumPy `nancumprod`.
    """
    x = as_tensor("nancumprod", x)
    x, axis = _flat(x, axis)
    return cumulative.cumulative_prod(_filled(x, 1.0), axis=axis, dtype=dtype)


def _flat(x: Any, axis: int | None) -> tuple[Any, int]:
    return (reshape(x, (-1,)), 0) if axis is None else (x, axis)
