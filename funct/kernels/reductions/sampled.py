"""Functions of sampled curves, on ndarrays."""

from __future__ import annotations

from math import inf, isfinite
from typing import Any

import numpy as np

from funct.kernels.cpu.loops import ready
from funct.kernels.cpu.order import places
from funct.kernels.dtypes import FLOATING, INTEGER, NATIVE
from funct.kernels.linalg.dots import vdot
from funct.kernels.reductions.statistical import total

__all__ = ["convolve", "even_slope", "interp", "trapezoid"]

ndarray = np.ndarray

_DOUBLE, _SINGLE = np.dtype(np.float64), np.dtype(np.float32)
_WIDE = {np.dtype(char) for char in "fdFD"}  # narrower ones are summed in float32
_MODES = ("full", "same", "valid")
_REALS: Any = {float, int}
_MANY = 1 << 8  # values that machine code looks up sooner
_PART = 1 << 12  # and those of a task

_core: Any = getattr(np, "_core", None)
_interp: Any = getattr(getattr(_core, "multiarray", None), "interp", np.interp)  # what that calls
_convolve: Any = getattr(np.convolve, "_implementation", np.convolve)  # asks for no others' arrays


def convolve(x: Any, y: Any, mode: str = "full") -> Any:
    """Convolution of two sequences."""
    if x.ndim != 1 or y.ndim != 1 or not x.size or not y.size or mode not in _MODES:
        return None
    if x.dtype.num >= NATIVE or y.dtype.num >= NATIVE:
        return None
    if x.size < y.size:
        x, y = y, x
    z = _convolve(x, y, "valid" if mode == "valid" else "full")
    before = (y.size - 1) // 2
    return z if mode != "same" else z[before : before + x.size]


def interp(
    x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None
) -> Any:
    """The piecewise linear function through points that are finite, at x."""
    if x.__class__ is not ndarray:
        if x.__class__ is not float and x.__class__ is not int:
            return None
        x = np.asarray(x, _DOUBLE)
    single = False
    if _DOUBLE is not x.dtype or _DOUBLE is not xp.dtype or _DOUBLE is not fp.dtype:
        single = _SINGLE == x.dtype == xp.dtype == fp.dtype  # which NumPy makes doubles itself
        if not single or period is not None:
            x, xp, fp = _double(x), _double(xp), _double(fp)
            if x is None or xp is None or fp is None:
                return None
    if xp.size < 2 or fp.ndim != 1 or xp.shape != fp.shape:
        return None
    if not isfinite(vdot(xp, fp)):  # as is where all are finite and not large
        return None
    if period is not None:
        if not (period.__class__ is float or period.__class__ is int) or not 0 < abs(period) < inf:
            return None
        x, xp, fp = _unrolled(x, xp, fp, abs(period))
        left = right = None
    y = _between(x, xp, fp, left, right) if x.size >= _MANY else None
    if y is None:
        y = np.asarray(_interp(x, xp, fp, left, right))
        y = y.astype(_SINGLE) if single else y
    return y


def _between(x: Any, at: Any, f: Any, left: Any, right: Any) -> Any:
    """`interp` of many values in machine code, in x's dtype; None for values of other classes."""
    n, count = at.size, x.size
    if not ready(count, 0) or not x.flags.c_contiguous or places.ascend(x, count):
        return None  # in ascending order each is close to the one before, where NumPy looks first
    left = float(f[0]) if left is None else left
    right = float(f[-1]) if right is None else right
    if left.__class__ not in _REALS or right.__class__ not in _REALS:
        return None
    y = np.empty(x.shape, x.dtype)
    at, f = at.astype(_DOUBLE, copy=False), f.astype(_DOUBLE, copy=False)
    sizes = n, count, float(left), float(right)
    places.interpolate(x, at, f, y, *sizes, _PART, -(-count // _PART))
    return y


def _double(x: Any) -> Any:
    return x.astype(_DOUBLE, copy=False) if x.dtype.num <= FLOATING else None


def _unrolled(x: Any, at: Any, f: Any, period: Any) -> Any:
    """Points of one period in order, with the neighbours from the periods beside it."""
    x, at = x % period, at % period
    order = at.argsort(kind="stable")
    at, f = at[order], f[order]
    at = np.concatenate((at[-1:] - period, at, at[:1] + period))
    return x, at, np.concatenate((f[-1:], f, f[:1]))


def even_slope(f: Any, h: Any, axis: int, edge_order: int) -> Any:
    """Central differences along an axis over steps of h, one-sided or parabolas' at its ends."""
    if edge_order not in (1, 2) or f.dtype not in _WIDE or f.shape[axis] < 3:
        return None
    at: Any = (slice(None),) * axis
    slopes = np.empty(f.shape, f.dtype)
    inner = slopes[(*at, slice(1, -1))]
    np.subtract(f[(*at, slice(2, None))], f[(*at, slice(None, -2))], inner)
    np.divide(inner, 2.0 * h, inner)
    first, last = ((f[(*at, k + 1)] - f[(*at, k)]) / h for k in (0, -2))
    if edge_order == 2:  # the slope of the parabola through three
        second, before = ((f[(*at, k + 1)] - f[(*at, k)]) / h for k in (1, -3))
        first = first + (second - first) / (h + h) * -h
        last = before + (last - before) / (h + h) * (h + 2.0 * h)
    slopes[(*at, 0)], slopes[(*at, -1)] = first, last
    return slopes


def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Any:
    """Integral along an axis over the points x, or over steps of dx."""
    if axis.__class__ is not int or not y.ndim or dx.__class__ not in _REALS:
        return None
    if y.dtype not in _WIDE:
        if y.dtype.num > INTEGER:
            return None
        y = y.astype(_DOUBLE)
    axis = range(y.ndim)[axis]
    before = (slice(None),) * axis
    if x is None and y.shape[axis] > 1:
        inner = total(y[(*before, slice(1, -1))], axis, False)
        return (inner + (y[(*before, 0)] + y[(*before, -1)]) * 0.5) * dx
    late, early = (*before, slice(1, None)), (*before, slice(None, -1))
    step = dx
    if x is not None:
        if x.__class__ is not ndarray or x.dtype is not y.dtype:
            return None
        if x.shape == y.shape:
            step = x[late] - x[early]
        elif x.ndim == 1:
            step = (x[1:] - x[:-1]).reshape(-1, *(1,) * (y.ndim - len(before) - 1))
        else:
            return None
    return np.add.reduce(step * (y[late] + y[early]), axis) / 2
