"""Order statistics beyond the standard: medians and quantiles, with NumPy's names and methods.

All are one mechanism: sort, find for each q the place between two elements, interpolate. The places
are integers, so derivatives go to the elements taken, and to q through the interpolation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from funct import ops
from funct.array.axes import normal_axes
from funct.array.conversion import as_tensor
from funct.array.creation import asarray, full
from funct.array.direct import direct
from funct.array.dtypes import result_type
from funct.array.elementwise import floating
from funct.array.searching import take_along_axis
from funct.array.tensor import Array, Tensor
from funct.core import Shape
from funct.errors import ArgumentError, DTypeError, ShapeError
from funct.kernels.order import quantiles as kernels

__all__ = ["median", "nanmedian", "nanpercentile", "nanquantile", "percentile", "quantile"]


@direct(kernels.median)
def median(x: Any, /, axis: Any = None, *, keepdims: bool = False) -> Any:
    """Median over axis (None: all); the mean of the two middle elements where the number is even.

    NaN gives NaN. Integers give float64.
    Example:
        >>> import funct.array as xp
        >>> xp.median(xp.asarray([[3.0, 1.0, 2.0], [6.0, 5.0, 8.0]]), axis=1).tolist()
        [2.0, 6.0]

    Source: NumPy `median`.
    """
    x = as_tensor("median", x)
    return _quantile("median", x, 0.5, axis, "linear", keepdims, None, False)


@direct(kernels.nanmedian)
def nanmedian(x: Any, /, axis: Any = None, *, keepdims: bool = False) -> Any:
    """`median` of the elements that are not NaN; NaN where there are none.

    Example:
        >>> import funct.array as xp
        >>> float(xp.nanmedian(xp.asarray([1.0, xp.nan, 4.0])))
        2.5

    Source: NumPy `nanmedian`.
    """
    x = as_tensor("nanmedian", x)
    return _quantile("nanmedian", x, 0.5, axis, "linear", keepdims, None, True)


@direct(kernels.quantile, maybe=("q",))
def quantile(
    x: Any,
    /,
    q: Any,
    axis: Any = None,
    *,
    method: str = "linear",
    keepdims: bool = False,
    weights: Any = None,
) -> Any:
    """The values below which a fraction q of x lies along axis (None: all).

    Args: q: a number or an array in [0, 1]; its axes come first in the result. method: one of
    NumPy's: "linear", "lower", "higher", "midpoint", "nearest", "inverted_cdf", "hazen", "weibull"
    and so on. weights: of x's shape, or 1-D along a single axis; with method="inverted_cdf" alone.
    Raises: ArgumentError: for another method, or a q outside [0, 1]. Where q is traced the elements
    are NaN there.
    Example:
        >>> import funct.array as xp
        >>> xp.quantile(xp.asarray([1.0, 2.0, 3.0, 4.0]), [0.0, 0.5]).tolist()
        [1.0, 2.5]

    Source: NumPy `quantile`; Hyndman and Fan, Sample Quantiles in Statistical Packages, 1996.
    """
    x = as_tensor("quantile", x)
    return _quantile("quantile", x, q, axis, method, keepdims, weights, False)


@direct(kernels.nanquantile)
def nanquantile(
    x: Any,
    /,
    q: Any,
    axis: Any = None,
    *,
    method: str = "linear",
    keepdims: bool = False,
    weights: Any = None,
) -> Any:
    """`quantile` of the elements that are not NaN; NaN where there are none.

    Example:
        >>> import funct.array as xp
        >>> float(xp.nanquantile(xp.asarray([0.0, xp.nan, 4.0]), 0.25))
        1.0

    Source: NumPy `nanquantile`.
    """
    x = as_tensor("nanquantile", x)
    return _quantile("nanquantile", x, q, axis, method, keepdims, weights, True)


def percentile(
    x: Any,
    /,
    q: Any,
    axis: Any = None,
    *,
    method: str = "linear",
    keepdims: bool = False,
    weights: Any = None,
) -> Any:
    """`quantile` with q in per cent.

    Example:
        >>> import funct.array as xp
        >>> xp.percentile(xp.asarray([1.0, 2.0, 3.0, 4.0]), [0, 50]).tolist()
        [1.0, 2.5]

    Source: NumPy `percentile`.
    """
    q = _of_hundred("percentile", q)
    return quantile(x, q, axis, method=method, keepdims=keepdims, weights=weights)


def nanpercentile(
    x: Any,
    /,
    q: Any,
    axis: Any = None,
    *,
    method: str = "linear",
    keepdims: bool = False,
    weights: Any = None,
) -> Any:
    """`percentile` of the elements that are not NaN; NaN where there are none.

    Example:
        >>> import funct.array as xp
        >>> float(xp.nanpercentile(xp.asarray([0.0, xp.nan, 4.0]), 25))
        1.0

    Source: NumPy `nanpercentile`.
    """
    q = _of_hundred("nanpercentile", q)
    return nanquantile(x, q, axis, method=method, keepdims=keepdims, weights=weights)


def _of_hundred(name: str, q: Any) -> Any:
    """Per cent as fractions, of q's kind: an array has a say in the dtype of the result."""
    if isinstance(q, int | float) and not 0 <= q <= 100:
        raise ArgumentError(f"{name}: q must lie between 0 and 100, got {q}")
    if isinstance(q, int | float | Tensor):
        return q / 100.0
    return [_of_hundred(name, v) for v in q] if isinstance(q, list | tuple) else asarray(q) / 100.0


def _quantile(
    name: str, x: Any, q: Any, axis: Any, method: str, keepdims: bool, weights: Any, skip: bool
) -> Any:
    axes = normal_axes(name, axis, len(x.shape))
    if x.dtype.kind == "c":
        raise DTypeError(f"{name}: x must be real, got {x.dtype}")
    if method.__class__ is not str or method not in _METHODS:
        raise ArgumentError(f"{name}: method must be one of {sorted(_METHODS)}, got {method!r}")
    if weights is not None and method != "inverted_cdf":
        raise ArgumentError(f"{name}: weights need method='inverted_cdf', got {method!r}")
    x = floating(x)
    dtype = result_type(x, q) if isinstance(q, Tensor) else x.dtype
    q = _fractions(name, q)
    flat, points = _flat_last(x, axes), ops.reshape(q, (ops.axis_count(q, _every(q)),))
    known = None if points.__class__ is Array else ops.logical_and(points >= 0, points <= 1)
    if known is not None:
        points = ops.where(known, points, 0.0)
    if flat.shape[-1] == 0:
        out = full((*flat.shape[:-1], points.shape[0]), np.nan, dtype=dtype)
    elif weights is None:
        out = _interpolated(flat, points, method, dtype, skip)
    else:
        out = _weighted(flat, _flat_last(_spread(name, weights, x, axes), axes), points, skip)
    out = out if known is None else ops.where(known, out, np.nan)
    out = out if out.dtype == dtype else ops.astype(out, dtype)
    sizes = [1 if i in axes else n for i, n in enumerate(x.shape)]
    kept = [n for i, n in enumerate(sizes) if keepdims or i not in axes]
    return ops.reshape(ops.move_axis(out, len(out.shape) - 1, 0), (*q.shape, *kept))


def _every(x: Any) -> Shape:
    return tuple(range(len(x.shape)))


def _fractions(name: str, q: Any) -> Any:
    if isinstance(q, int | float) and not 0 <= q <= 1:  # a number that is kept open: a decision
        raise ArgumentError(f"{name}: q must lie between 0 and 1, got {q}")
    q = asarray(q)
    if q.__class__ is Array and not np.all((q.data >= 0) & (q.data <= 1)):
        raise ArgumentError(f"{name}: q must lie between 0 and 1, got {q.tolist()}")
    return q if q.dtype == np.float64 else ops.astype(q, np.dtype(np.float64))


def _flat_last(x: Any, axes: Shape) -> Any:
    """x with axes folded into one, which comes last."""
    rest = tuple([i for i in range(len(x.shape)) if i not in axes])
    moved = ops.permute_dims(x, rest + axes)
    return ops.reshape(moved, (*[x.shape[i] for i in rest], ops.axis_count(x, axes)))


def _spread(name: str, weights: Any, x: Any, axes: Shape) -> Any:
    """weights in x's shape; 1-D ones lie along the only axis."""
    w = asarray(weights)
    if w.shape == x.shape:
        return w
    if len(w.shape) != 1 or len(axes) != 1 or w.shape[0] != x.shape[axes[0]]:
        raise ShapeError(
            f"{name}: weights must have x's shape {x.shape} or lie along one axis, got {w.shape}"
        )
    along = (1,) * axes[0] + (w.shape[0],) + (1,) * (len(x.shape) - axes[0] - 1)
    return ops.broadcast_to(ops.reshape(w, along), x.shape)


# Places -------------------------------------------------------------------------------------------

# For n sorted elements a method gives a place v, counted from 0, and turns the fraction of v above
# its floor k into the share that element k + 1 has in the result.


def _continuous(a: float, b: float) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """v = n q + a + q (1 - a - b) - 1, linear in between (Hyndman and Fan's types 4 to 9)."""
    return lambda n, q: n * q + (a + q * (1 - a - b)) - 1, lambda part, k: part


def _steps(
    share: Callable[..., Any], place: Callable[..., Any] = lambda n, q: (n - 1) * q
) -> tuple[Callable[..., Any], Callable[..., Any]]:
    return place, share


def _odd(k: Any) -> Any:
    return ops.equal(ops.remainder(k, 2.0), 1.0)


_METHODS = {
    "linear": _steps(lambda part, k: part),
    "lower": _steps(lambda part, k: part * 0),
    "higher": _steps(lambda part, k: ops.greater(part, 0)),
    "midpoint": _steps(lambda part, k: ops.where(ops.greater(part, 0), 0.5, part * 0)),
    "nearest": _steps(
        lambda part, k: ops.where(_odd(k), ops.greater_equal(part, 0.5), ops.greater(part, 0.5))
    ),
    "inverted_cdf": _steps(lambda part, k: ops.greater(part, 0), lambda n, q: n * q - 1),
    "averaged_inverted_cdf": _steps(
        lambda part, k: ops.where(ops.greater(part, 0), part * 0 + 1, 0.5), lambda n, q: n * q - 1
    ),
    "closest_observation": _steps(
        lambda part, k: ops.logical_or(ops.greater(part, 0), ops.logical_not(_odd(k))),
        lambda n, q: n * q - 1.5,
    ),
    "interpolated_inverted_cdf": _continuous(0.0, 1.0),
    "hazen": _continuous(0.5, 0.5),
    "weibull": _continuous(0.0, 0.0),
    "median_unbiased": _continuous(1 / 3, 1 / 3),
    "normal_unbiased": _continuous(3 / 8, 3 / 8),
}


def _interpolated(x: Any, q: Any, method: str, dtype: Any, skip: bool) -> Any:
    """Quantiles along the last axis: its place is taken by that of q."""
    last = len(x.shape) - 1
    s = ops.sort(x, last, False)  # NaN last
    n = _valid(x) if skip else ops.length_along(x, last)
    place, share = _METHODS[method]
    v, end = place(n, q), ops.maximum(n - 1, 0.0) if skip else n - 1
    inside = ops.logical_and(ops.greater_equal(v, 0), ops.less(v, end))
    v = ops.minimum(ops.maximum(v, 0.0), end)
    k = ops.stop_gradient(ops.floor(v))
    part = ops.where(inside, ops.astype(share(v - k, k), dtype), 0.0)
    low = ops.astype(k, np.dtype(np.int64))
    high = low + ops.astype(ops.greater(part, 0), np.dtype(np.int64))
    out = _between(_taken(s, low), _taken(s, high), part)
    if skip:
        return out
    top = ops.slice_(s, (*((None, None, 1),) * last, (-1, None, 1)))
    return ops.where(ops.isnan(top), top, out)


def _valid(x: Any) -> Any:
    """How many elements along the last axis are not NaN."""
    numbers = ops.astype(ops.logical_not(ops.isnan(x)), np.dtype(np.float64))
    return ops.reduce_sum(numbers, (len(x.shape) - 1,), True)


def _taken(s: Any, i: Any) -> Any:
    missing = len(s.shape) - len(i.shape)
    return take_along_axis(s, ops.reshape(i, (1,) * missing + tuple(i.shape)))


def _between(a: Any, b: Any, part: Any) -> Any:
    """a + (b - a) part, from the nearer end that is finite; a itself where part is 0."""
    stay = ops.logical_or(ops.equal(part, 0), ops.logical_and(ops.equal(a, b), ops.isinf(a)))
    step = ops.where(stay, 0.0, b) - ops.where(stay, 0.0, a)
    finite = ops.logical_and(ops.less(part, 0.5), ops.isfinite(a))
    from_a = ops.logical_or(finite, ops.isinf(b))
    return ops.where(from_a, a + step * part, b - step * (1 - part))


def _weighted(x: Any, w: Any, q: Any, skip: bool) -> Any:
    """The first element at which the running share of the weights reaches q."""
    last = len(x.shape) - 1
    nan = ops.isnan(x)
    w = ops.where(nan, 0.0, w) if skip else w
    order = ops.argsort(x, last, False)
    running = ops.cumulative_sum(ops.take_along_axis(w, order, last), last)
    share = running / ops.reduce_max(running, (last,), True)
    share = ops.where(ops.equal(share, 0), -1.0, share)  # elements without weight are not there
    below = ops.less(ops.reshape(share, (*share.shape, 1)), q)
    at = ops.reduce_sum(ops.astype(below, np.dtype(np.int64)), (last,), False)
    out = _taken(
        ops.take_along_axis(x, order, last), ops.minimum(at, ops.length_along(x, last) - 1)
    )
    broken = ops.all(nan, (last,), True) if skip else ops.any(nan, (last,), True)
    return ops.where(broken, np.nan, out)
