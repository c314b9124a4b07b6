"""One quantile by linear interpolation, along one axis or over all: sort, take two, go between."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

__all__ = ["median", "nanmedian", "nanquantile", "quantile"]

_SMALL = 256  # elements from which on machine code sorts
_FLOATS = (np.dtype(np.float64), np.dtype(np.float32))


def median(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """Median over axis."""
    return quantile(x, 0.5, axis, "linear", keepdims)


def quantile(
    x: Any,
    q: Any,
    axis: Any = None,
    method: str = "linear",
    keepdims: bool = False,
    weights: Any = None,
) -> Any:
    """The value below which a fraction q of x lies; None where an element is not finite."""
    if q.__class__ is not float or not 0.0 <= q <= 1.0 or method != "linear" or weights is not None:
        return None
    if x.dtype not in _FLOATS or not 0 < x.size < _SMALL:
        return None
    if axis is None:
        s = np.sort(x, None, "stable")
        shape: Any = (1,) * x.ndim if keepdims else ()
    elif axis.__class__ is int:
        s = np.sort(x, axis, "stable").swapaxes(0, axis)
        shape = None
    else:
        return None
    n = s.shape[0]
    place = (n - 1) * q
    k = math.floor(place)
    part = x.dtype.type(place - k) if place < n - 1 else x.dtype.type(0)
    a, b = s[k], s[k + 1 if part > 0 else k]
    if shape is not None:
        if not (math.isfinite(s[0]) and math.isfinite(s[-1])):
            return None
        y = _between(a, b, part)
        return y if not shape else np.full(shape, y)
    if not (np.isfinite(s[0]).all() and np.isfinite(s[-1]).all()):
        return None
    y = np.expand_dims(_between(a, b, part), 0).swapaxes(0, axis)
    return y if keepdims else y.squeeze(axis)


def _between(a: Any, b: Any, part: Any) -> Any:
    step = b - a if part else a * 0
    return a + step * part if part < 0.5 else b - step * (1 - part)


nanmedian, nanquantile = median, quantile  # a NaN is not finite, so there is none
