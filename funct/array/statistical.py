"""Chapters: statistical and utility functions, with the standard's signatures.

What has a result for each element, as running sums do, is `cumulative.py`.
"""

from __future__ import annotations

from math import inf, nan
from typing import Any

import numpy as np

from funct import ops
from funct.array.axes import integers, normal_axes, normal_axis, real_number
from funct.array.conversion import as_tensor
from funct.array.creation import asarray
from funct.array.direct import direct
from funct.array.dtypes import as_dtype
from funct.array.elementwise import floating
from funct.array.in_single import narrowed, widened
from funct.array.joining import concat
from funct.array.manipulation import reshape
from funct.array.powers import power
from funct.errors import ShapeError
from funct.kernels.reductions import exponents
from funct.kernels.reductions import statistical as kernels
from funct.ops.counting import counted

__all__ = [
    "all", "any", "average", "corrcoef", "cov", "in_dtype", "logsumexp", "max", "mean", "min",
    "prod", "std", "sum", "summands", "var",
]  # fmt: skip

_FLOAT64 = np.dtype(np.float64)
_LONGS = frozenset({np.dtype(np.int64), np.dtype(np.uint64)})


def in_dtype(name: str, x: Any, dtype: Any) -> Any:
    """x in the dtype that was asked for, if one was."""
    if dtype is None:
        return x
    dtype = as_dtype(name, dtype)
    return x if dtype == x.dtype else ops.astype(x, dtype)


@direct(kernels.sum)
def sum(x: Any, /, axis: Any = None, dtype: Any = None, *, keepdims: bool = False) -> Any:
    """Sum over axis (None: all). Small integers widen to the default integer.

    Example:
        >>> import funct.array as xp
        >>> xp.sum(xp.asarray([[1.0, 2.0], [3.0, 4.0]]), axis=0).tolist()
        [4.0, 6.0]
        >>> xp.sum(xp.asarray([100, 100], dtype=xp.uint8))
        Array(200, dtype=uint64)
    """
    x = as_tensor("sum", x)
    if dtype is not None:
        x = in_dtype("sum", x, dtype)
    y = ops.reduce_sum(x, normal_axes("sum", axis, len(x.shape)), keepdims)
    return y if dtype is None else in_dtype("sum", y, dtype)


@direct(kernels.prod)
def prod(x: Any, /, axis: Any = None, dtype: Any = None, *, keepdims: bool = False) -> Any:
    """Product over axis (None: all). The derivative is exact where factors are 0.

    Example:
        >>> import funct.array as xp
        >>> int(xp.prod(xp.asarray([100, 2], dtype=xp.int8))), float(xp.prod(xp.ones(0)))
        (200, 1.0)
    """
    x = as_tensor("prod", x)
    x = in_dtype("prod", x, dtype)
    return in_dtype(
        "prod", ops.reduce_prod(x, normal_axes("prod", axis, len(x.shape)), keepdims), dtype
    )


@direct(kernels.max)
def max(x: Any, /, axis: Any = None, *, keepdims: bool = False) -> Any:
    """Maximum over axis (None: all); equal elements share the derivative.

    Raises: ShapeError: when there are no elements along an axis.
    Example:
        >>> import funct.array as xp
        >>> xp.max(xp.asarray([[1.0, 5.0], [xp.nan, 2.0]]), axis=1).tolist()
        [5.0, nan]
    """
    x = as_tensor("max", x)
    return ops.reduce_max(x, normal_axes("max", axis, len(x.shape)), keepdims)


@direct(kernels.min)
def min(x: Any, /, axis: Any = None, *, keepdims: bool = False) -> Any:
    """Minimum over axis (None: all); equal elements share the derivative.

    Raises: ShapeError: when there are no elements along an axis.
    Example:
        >>> import funct.array as xp
        >>> xp.min(xp.asarray([[1.0, 5.0], [3.0, 2.0]]), axis=0, keepdims=True).tolist()
        [[1.0, 2.0]]
    """
    x = as_tensor("min", x)
    return ops.reduce_min(x, normal_axes("min", axis, len(x.shape)), keepdims)


@direct(kernels.mean)
def mean(x: Any, /, axis: Any = None, *, keepdims: bool = False) -> Any:
    """Arithmetic mean over axis (None: all).

    Example:
        >>> import funct.array as xp
        >>> x = xp.asarray([[1, 2], [3, 4]])
        >>> xp.mean(x, axis=0).tolist(), xp.mean(x).dtype
        ([2.0, 3.0], dtype('float64'))
    """
    x = as_tensor("mean", x)
    axes = normal_axes("mean", axis, len(x.shape))
    wide = summands(x)
    return narrowed(ops.mean_of(ops.reduce_sum(wide, axes, keepdims), wide, axes), x)


def summands(x: Any) -> Any:
    """What a mean of x adds up: integers of 64 bits as float64, since their sum may leave int64."""
    (wide,) = widened(x)
    return ops.astype(wide, _FLOAT64) if wide.dtype in _LONGS else wide


def average(x: Any, /, axis: Any = None, weights: Any = None, *, keepdims: bool = False) -> Any:
    """Mean over axis (None: all) in which each element counts as much as its weight.

    Args: weights: of x's shape, or with x's lengths along axis, in the order that axis has; None
    weighs all alike. Integers give float64.
    Raises: ShapeError: weights that do not fit.
    Example:
        >>> import funct.array as xp
        >>> float(xp.average(xp.asarray([1.0, 4.0]), weights=xp.asarray([2.0, 1.0])))
        2.0

    Source: NumPy `average`.
    """
    x = floating(as_tensor("average", x))
    if weights is None:
        return mean(x, axis=axis, keepdims=keepdims)
    w, axes = asarray(weights), normal_axes("average", axis, len(x.shape))
    named = axes if axis is None else integers("average", "axis", axis)
    order = [normal_axis("average", a, len(x.shape)) for a in named]
    if w.shape != x.shape:
        if w.shape != tuple([x.shape[a] for a in order]):
            raise ShapeError(
                f"average: weights must have x's shape {x.shape}, or its lengths along axis, "
                f"got shape {w.shape} and axis {axis}"
            )
        w = ops.permute_dims(w, tuple(np.argsort(order).tolist()))
        w = ops.reshape(w, tuple([n if a in axes else 1 for a, n in enumerate(x.shape)]))
    whole = ops.broadcast_to(w, x.shape)
    total = ops.reduce_sum(floating(whole), axes, keepdims)
    return ops.reduce_sum(x * whole, axes, keepdims) / total


@direct(kernels.var)
def var(x: Any, /, axis: Any = None, *, correction: float = 0.0, keepdims: bool = False) -> Any:
    """Variance over axis: squared distance from the mean, divided by n - correction.

    Example:
        >>> import funct.array as xp
        >>> x = xp.asarray([1.0, 2.0, 3.0])
        >>> round(float(xp.var(x)), 4), float(xp.var(x, correction=1))
        (0.6667, 1.0)
    """
    x = as_tensor("var", x)
    axes = normal_axes("var", axis, len(x.shape))
    correction = real_number("var", "correction", correction)
    (wide,) = widened(x)
    centred = wide - mean(wide, axis=axes, keepdims=True)
    square = ops.real(centred * ops.conj(centred)) if x.dtype.kind == "c" else centred * centred
    total = ops.reduce_sum(square, axes, keepdims)
    n = ops.count_along(wide, axes)
    return narrowed(total / (n if correction == 0.0 else n - correction), x)


@direct(kernels.std)
def std(x: Any, /, axis: Any = None, *, correction: float = 0.0, keepdims: bool = False) -> Any:
    """Standard deviation over axis: the square root of `var`; its derivative is 0 where it is 0.

    Example:
        >>> import funct.array as xp
        >>> xp.std(xp.asarray([[1.0, 3.0], [2.0, 8.0]]), axis=1).tolist()
        [1.0, 3.0]
    """
    x = as_tensor("std", x)
    (wide,) = widened(x)
    return narrowed(power(var(wide, axis=axis, correction=correction, keepdims=keepdims), 0.5), x)


@direct(kernels.all)
def all(x: Any, /, axis: Any = None, *, keepdims: bool = False) -> Any:
    """Whether every element along axis is true.

    Example:
        >>> import funct.array as xp
        >>> xp.all(xp.asarray([[1, 0], [1, 2]]), axis=1).tolist(), bool(xp.all(xp.ones(0)))
        ([False, True], True)
    """
    x = as_tensor("all", x)
    return ops.all(x, normal_axes("all", axis, len(x.shape)), keepdims)


@direct(kernels.any)
def any(x: Any, /, axis: Any = None, *, keepdims: bool = False) -> Any:
    """Whether some element along axis is true.

    Example:
        >>> import funct.array as xp
        >>> xp.any(xp.asarray([[0.0, 0.0], [0.0, 2.0]]), axis=1).tolist(), bool(xp.any(xp.ones(0)))
        ([False, True], False)
    """
    x = as_tensor("any", x)
    return ops.any(x, normal_axes("any", axis, len(x.shape)), keepdims)


def _log_sum(top: Any, rest: Any, signed: bool) -> Any:
    """Logarithm of |top + rest|, where rest may be much smaller than top."""
    if not signed:
        return ops.log1p(rest / top) + ops.log(top)
    none = ops.equal(top, 0)
    ratio = ops.where(none, 0.0, rest) / ops.where(none, 1.0, top)
    ratio = ops.where(ops.less(ratio, -1), -2.0 - ratio, ratio)
    near = ops.log1p(ratio) + ops.log(ops.abs(ops.where(none, 1.0, top)))
    return ops.where(none, ops.log(ops.abs(ops.where(none, rest, 1.0))), near)


@direct(exponents.logsumexp)
def logsumexp(
    x: Any,
    /,
    *,
    axis: Any = None,
    keepdims: bool = False,
    b: Any = None,
    return_sign: bool = False,
) -> Any:
    """log(sum(b * exp(x))) over axis, without overflow; x may be complex. -inf of nothing.

    b: weights, which broadcast with x and may be negative. return_sign: give the pair of the
    logarithm of the absolute value and the sign, instead of NaN where the sum is negative.
    Notes: beside inf it is inf, with the derivative 0 in finite elements and NaN in infinite ones.
    Example:
        >>> import funct.array as xp
        >>> float(xp.logsumexp(xp.asarray([1000.0, -1000.0])))
        1000.0

    Source: SciPy `special.logsumexp`.
    """
    x = as_tensor("logsumexp", x)
    axes = normal_axes("logsumexp", axis, len(x.shape))
    real = ops.real(x) if x.dtype.kind == "c" else x
    if b is not None:
        real = ops.where(ops.equal(b, 0), -inf, real)
        axes = normal_axes("logsumexp", axis, len(real.shape))
    if 0 in [real.shape[k] for k in axes]:
        nothing = ops.reduce_sum((x if b is None else x * b) - 0.0, axes, keepdims)
        return (nothing - inf, nothing) if return_sign else nothing - inf
    highest = ops.stop_gradient(ops.reduce_max(real, axes, True))
    top = ops.where(ops.isfinite(highest), highest, 0.0)
    shifted = x - top
    if x.dtype.kind == "c":
        terms = ops.exp(shifted) if b is None else b * ops.exp(shifted)
        total = ops.reduce_sum(terms, axes, True)
        y = ops.log(ops.abs(total) if return_sign else total) + top
        sign = ops.sign(total)
    else:
        # log1p of what is beside the greatest keeps the digits of a result near 0
        weight = ops.astype(ops.equal(real, highest), shifted.dtype)
        beside = ops.exp(shifted) - weight  # exactly 0 for the greatest, or what it is if infinite
        if b is not None:
            beside = ops.where(ops.equal(b, 0), 0.0, b * beside)
            weight = b * weight
        weight, rest = (ops.reduce_sum(v, axes, True) for v in (weight, beside))
        y = _log_sum(weight, rest, b is not None) + top
        asked = b is not None or return_sign
        sign = ops.sign(weight + rest) if asked else weight
        if b is not None and not return_sign:
            y = ops.where(ops.less(sign, 0), nan, y)
    if not keepdims:
        shape = tuple([n for k, n in enumerate(y.shape) if k not in axes])
        y, sign = ops.reshape(y, shape), ops.reshape(sign, shape) if return_sign else sign
    return (y, sign) if return_sign else y


def cov(
    m: Any,
    /,
    y: Any = None,
    rowvar: bool = True,
    *,
    bias: bool = False,
    ddof: float | None = None,
    fweights: Any = None,
    aweights: Any = None,
) -> Any:
    """Covariance matrix of variables that stand in the rows of m and y (columns: rowvar=False).

    Args: ddof: subtracted from the number of observations; 1 unless given, 0 with bias. fweights,
    aweights: how often each observation counts, and how much.
    Raises: ShapeError: for more than 2 axes.
    Example:
        >>> import funct.array as xp
        >>> xp.cov(xp.asarray([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]])).tolist()
        [[1.0, -1.0], [-1.0, 1.0]]

    Source: NumPy `cov`.
    """
    x = _rows("cov", m, rowvar)
    if y is not None:
        x = concat([x, _rows("cov", y, rowvar)], axis=0)
    ddof = (0 if bias else 1) if ddof is None else real_number("cov", "ddof", ddof)
    given = [asarray(v) for v in (fweights, aweights) if v is not None]
    if not given:
        centred = x - mean(x, axis=1, keepdims=True)
        scaled, count = centred, ops.count_along(x, (1,)) - ddof
    else:
        w = given[0] if len(given) == 1 else given[0] * given[1]
        total = ops.reduce_sum(w, (0,), False)
        centred = x - ops.reduce_sum(x * w, (1,), True) / total
        spent = ops.reduce_sum(w * given[-1], (0,), False) if aweights is not None else total
        scaled, count = centred * w, total - ddof * spent / total
    out = ops.matmul(scaled, ops.conj(ops.swap_last(centred))) / count
    return ops.reshape(out, ()) if out.shape == (1, 1) else out


def _rows(name: str, m: Any, rowvar: bool) -> Any:
    x = asarray(m)
    if len(x.shape) > 2:
        raise ShapeError(f"{name}: m must have at most 2 axes, got shape {x.shape}")
    x = floating(x)
    if len(x.shape) < 2:
        return reshape(x, (1, -1))
    return x if rowvar else ops.swap_last(x)


def corrcoef(m: Any, /, y: Any = None, rowvar: bool = True) -> Any:
    """Correlation coefficients: `cov` divided by the standard deviations of both variables.

    Raises: ShapeError: for more than 2 axes.
    Example:
        >>> import funct.array as xp
        >>> xp.corrcoef(xp.asarray([[0.0, 1.0, 2.0], [4.0, 2.0, 0.0]])).tolist()
        [[1.0, -1.0], [-1.0, 1.0]]

    Source: NumPy `corrcoef`.
    """
    m, y = [v if v is None else _rows("corrcoef", v, rowvar) for v in (m, y)]
    c = cov(m, y)
    if not c.shape:
        return c / c
    n = c.shape[0]
    at = counted(n) * (n + 1)
    deviation = ops.sqrt(ops.real(ops.take(reshape(c, (-1,)), at, 0)))
    return c / ops.reshape(deviation, (n, 1)) / deviation
