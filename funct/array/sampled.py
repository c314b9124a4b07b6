"""Functions of sampled curves: convolution, interpolation, slopes, integration."""

from __future__ import annotations

from typing import Any

import numpy as np

from funct import ops
from funct.array.axes import common_shape, normal_axes, normal_axis
from funct.array.creation import asarray
from funct.array.direct import direct
from funct.array.dtypes import result_type
from funct.array.elementwise import conjugate, floating
from funct.core import larger, smaller
from funct.errors import ArgumentError, ShapeError
from funct.kernels import composed
from funct.kernels.reductions import sampled as kernels

__all__ = ["convolve", "correlate", "gradient", "interp", "trapezoid"]


@direct(kernels.convolve, arrays=2)
def convolve(x: Any, y: Any, /, mode: str = "full") -> Any:
    """Convolution of two sequences, z_k = Σ_j x_(k - j) y_j.

    mode: "full" gives all n + m - 1 places where they overlap, "same" the middle max(n, m) of them,
    "valid" those where one lies within the other.
    Raises: ShapeError: unless both are 1-D and not empty.
    Example:
        >>> import funct.array as xp
        >>> xp.convolve(xp.asarray([1.0, 2.0, 3.0]), xp.asarray([1.0, 1.0])).tolist()
        [1.0, 3.0, 5.0, 3.0]

    Source: NumPy `convolve`.
    """
    x, y = asarray(x), asarray(y)
    if len(x.shape) != 1 or len(y.shape) != 1:
        raise ShapeError(f"convolve: x and y must be 1-D, got {x.shape} and {y.shape}")
    if mode not in ("full", "same", "valid"):
        raise ArgumentError(f"convolve: mode must be 'full', 'same' or 'valid', got {mode!r}")
    n, m = x.shape[0], y.shape[0]
    if mode == "valid":
        return ops.convolve(y, x, False) if n < m else ops.convolve(x, y, False)
    z = ops.convolve(x, y, True)
    if mode == "full":
        return z
    before = (smaller(n, m) - 1) // 2
    return z[before : before + larger(n, m)]


@direct(composed.correlate, arrays=2)
def correlate(x: Any, y: Any, /, mode: str = "valid") -> Any:
    """Correlation of two sequences, z_k = Σ_j x_(k + j) conj(y_j).

    mode: as in `convolve`.
    Raises: ShapeError: unless both are 1-D and not empty.
    Example:
        >>> import funct.array as xp
        >>> xp.correlate(xp.asarray([1.0, 2.0, 3.0]), xp.asarray([0.0, 1.0])).tolist()
        [2.0, 3.0]

    Source: NumPy `correlate`.
    """
    x, y = asarray(x), asarray(y)
    if mode != "full" and len(x.shape) == len(y.shape) == 1 and x.shape[0] < y.shape[0]:
        return ops.flip(conjugate(correlate(y, x, mode)), (0,))
    return convolve(x, ops.flip(conjugate(y), tuple(range(len(y.shape)))), mode)


@direct(kernels.interp, arrays=("xp", "fp"), maybe=("x",))
def interp(
    x: Any, /, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None
) -> Any:
    """The piecewise linear function through the points (xp, fp), at x.

    Args: xp: 1-D, ascending; with period in any order. left, right: values outside, by default
    those at the ends. period: of xp's axis.
    Returns: of x's shape, in the dtype that all three have in common; computed in float64.
    Raises: ShapeError: unless xp and fp are 1-D, of one length and not empty.
    Example:
        >>> from funct import array
        >>> points = array.asarray([0.0, 1.0, 3.0]), array.asarray([0.0, 10.0, 30.0])
        >>> array.interp(array.asarray([0.5, 2.0, 9.0]), *points).tolist()
        [5.0, 20.0, 30.0]

    Source: NumPy `interp`. Differentiable in all three.
    """
    x = floating(asarray(x, dtype=np.dtype(np.float64) if isinstance(x, int) else None))
    at, f = floating(asarray(xp)), floating(asarray(fp))
    if len(at.shape) != 1 or at.shape != f.shape or at.shape[0] == 0:
        raise ShapeError(
            "interp: xp and fp must be 1-D, of one length and not empty, "
            f"got {at.shape} and {f.shape}"
        )
    dtype = result_type(x, at, f)
    x, at, f = (_wide(v) for v in (x, at, f))
    if period is not None:
        x, at, f = _unrolled(x, at, f, period)
        left = right = None
    i = ops.minimum(ops.searchsorted(at, x, "right"), ops.length_along(at, 0) - 1)
    before = ops.maximum(i - 1, 0)
    x0, x1, f0, f1 = (ops.take(v, k, 0) for v in (at, f) for k in (before, i))
    flat = ops.equal(x0, x1)
    slope = (f1 - f0) / ops.where(flat, 1.0, x1 - x0)
    y = f0 + slope * (x - x0)
    y = ops.where(ops.equal(x, at[-1]), f[-1], y)  # the end itself, without rounding
    y = ops.where(ops.less(x, at[0]), f[0] if left is None else left, y)
    y = ops.where(ops.greater(x, at[-1]), f[-1] if right is None else right, y)
    return y if y.dtype == dtype else ops.astype(y, dtype)


def _wide(x: Any) -> Any:
    """x in float64 or complex128: small differences of large coordinates keep their digits."""
    dtype = np.result_type(x.dtype, np.float64)
    return x if x.dtype == dtype else ops.astype(x, dtype)


def _unrolled(x: Any, at: Any, f: Any, period: Any) -> Any:
    """Points of one period in order, with the neighbours from the periods beside it."""
    if period == 0:
        raise ArgumentError("interp: period must not be 0")
    period = abs(period)
    x, at = x % period, at % period
    order = ops.argsort(at, 0, False)
    at, f = ops.take(at, order, 0), ops.take(f, order, 0)
    at = ops.concat(ops.concat(at[-1:] - period, at, 0), at[:1] + period, 0)
    return x, at, ops.concat(ops.concat(f[-1:], f, 0), f[:1], 0)


def gradient(f: Any, /, *spacing: Any, axis: Any = None, edge_order: int = 1) -> Any:
    """Slopes of f along axes from its samples: central differences, one-sided ones at the ends.

    Args: spacing: one number for all axes, or for each axis a number or the 1-D coordinates of the
    samples; 1 by default. edge_order: 1 or 2, how many neighbours the ends ask.
    Returns: an array, or a tuple of them where there are several axes.
    Raises: ShapeError: for an axis with fewer than edge_order + 1 samples, or coordinates of
    another length. ArgumentError: for another number of spacings, or another edge_order.
    Example:
        >>> import funct.array as xp
        >>> xp.gradient(xp.asarray([1.0, 2.0, 4.0, 7.0])).tolist()
        [1.0, 1.5, 2.5, 3.0]

    Source: NumPy `gradient`. For the derivative of a function there is `funct.grad`.
    """
    f = floating(asarray(f))
    axes = normal_axes("gradient", axis, len(f.shape))
    if isinstance(axis, tuple | list):  # in the order given
        axes = tuple([normal_axis("gradient", a, len(f.shape)) for a in axis])
    if edge_order not in (1, 2):
        raise ArgumentError(f"gradient: edge_order must be 1 or 2, got {edge_order!r}")
    steps = spacing or (1.0,)
    steps = steps * len(axes) if len(steps) == 1 else steps
    if len(steps) != len(axes):
        raise ArgumentError(
            f"gradient: spacing must be one entry or {len(axes)}, one for each axis, "
            f"got {len(spacing)}"
        )
    slopes = [
        even_slope(f, h, k, edge_order)
        if h.__class__ in (float, int)
        else _slope(f, asarray(h), k, edge_order)
        for h, k in zip(steps, axes, strict=True)
    ]
    return slopes[0] if len(slopes) == 1 else tuple(slopes)


@direct(kernels.even_slope)
def even_slope(f: Any, h: Any, axis: int, edge_order: int) -> Any:
    """`gradient` along one axis over steps of one length."""
    return _slope(f, h, axis, edge_order)


def _slope(f: Any, spacing: Any, axis: int, edge_order: int) -> Any:
    """The derivative along one axis of the parabola through each sample and its neighbours."""
    n = f.shape[axis]
    if n < edge_order + 1:
        raise ShapeError(f"gradient: axis {axis} must have {edge_order + 1} samples, got {n}")
    at, before, after, h = (slice(None),) * axis, spacing, spacing, spacing
    even = not getattr(spacing, "shape", ())
    if not even:
        if spacing.shape != (n,):
            raise ShapeError(
                f"gradient: spacing must be a number or have shape ({n},), got {spacing.shape}"
            )
        h = ops.reshape(spacing[1:] - spacing[:-1], (n - 1, *(1,) * (len(f.shape) - axis - 1)))
        before, after = h[:1], h[-1:]
    if edge_order == 1:
        first = (f[(*at, slice(1, 2))] - f[(*at, slice(0, 1))]) / before
        last = (f[(*at, slice(-1, None))] - f[(*at, slice(-2, -1))]) / after
    else:
        first = _parabola(f[(*at, slice(0, 3))], h if even else h[:2], 0, at)
        last = _parabola(f[(*at, slice(-3, None))], h if even else h[-2:], 2, at)
    if even:
        middle = (f[(*at, slice(2, None))] - f[(*at, slice(None, -2))]) / (2.0 * h)
    else:
        middle = _parabola(f, h, 1, at)
    return ops.concat(ops.concat(first, middle, axis), last, axis)


def _parabola(f: Any, h: Any, which: int, at: Any) -> Any:
    """Slopes of the parabolas through all three samples that are neighbours, at the first, second
    or third of them. h: the steps, or one number; at: the key up to the axis.
    """
    rise = (f[(*at, slice(1, None))] - f[(*at, slice(None, -1))]) / h
    left, right = rise[(*at, slice(None, -1))], rise[(*at, slice(1, None))]
    before, after = (h[:-1], h[1:]) if getattr(h, "shape", ()) else (h, h)
    bend = (right - left) / (before + after)
    return left + bend * (-before, before, before + 2.0 * after)[which]


@direct(kernels.trapezoid, maybe=("x",))
def trapezoid(y: Any, /, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Any:
    """Integral of y along axis by the trapezoidal rule, over the points x or over steps of dx.

    Args: x: of y's shape, or 1-D along axis.
    Raises: ShapeError: for a 0-d y, and when x fits neither y nor its axis.
    Example:
        >>> import funct.array as xp
        >>> float(xp.trapezoid(xp.asarray([1.0, 2.0, 3.0]), dx=2.0))
        8.0

    Source: NumPy `trapezoid`.
    """
    y = floating(asarray(y))
    k = normal_axis("trapezoid", axis, len(y.shape))
    several = y.shape[k].__class__ is int and y.shape[k] > 1  # a symbolic length may be 1
    if x is None and dx.__class__ in (float, int) and several:  # each but the ends twice
        at = (slice(None),) * k
        inner = ops.reduce_sum(_ends(_ends(y, k, True), k, False), (k,), False)
        return (inner + (y[(*at, 0)] + y[(*at, -1)]) * 0.5) * dx
    step, pairs = dx, _ends(y, k, True) + _ends(y, k, False)
    if x is not None:
        x = asarray(x)
        given = x.shape
        if not given:
            raise ShapeError("trapezoid: x must have an axis, got a 0-d array")
        if len(given) == 1:
            x = ops.reshape(x, (x.shape[0], *(1,) * (len(y.shape) - k - 1)))
        step = _ends(x, k - len(y.shape), True) - _ends(x, k - len(y.shape), False)
        try:
            common_shape("trapezoid", step.shape, pairs.shape)
        except ShapeError:
            raise ShapeError(
                f"trapezoid: x must have y's shape {y.shape} or {y.shape[k : k + 1]}, got {given}"
            ) from None
    return ops.reduce_sum(step * pairs, (k,), False) / 2


def _ends(v: Any, axis: int, late: bool) -> Any:
    """v without its first element along axis, or without its last."""
    triples: list[Any] = [(None, None, 1)] * len(v.shape)
    triples[axis] = (1, None, 1) if late else (None, -1, 1)
    return ops.slice_(v, tuple(triples))
