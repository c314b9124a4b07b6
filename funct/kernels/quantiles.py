"""Quantiles along one axis or over all: sort, take two, go between."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from funct.kernels.dtypes import INTEGER

__all__ = ["median", "nanmedian", "nanquantile", "quantile"]

_SMALL = 256  # elements from which on machine code sorts
_FEW = 9  # fractions that are asked for one by one
_FLOATS = (np.dtype(np.float64), np.dtype(np.float32))
_NARROWER = _FLOATS[1:]
# Which share of the next element a place between two has, by methods that agree on the place.
_PARTS: dict[Any, Any] = {
    "linear": lambda part, k: part,
    "lower": lambda part, k: 0.0,
    "higher": lambda part, k: float(part > 0),
    "midpoint": lambda part, k: 0.5 if part > 0 else 0.0,
    "nearest": lambda part, k: float(part >= 0.5 if k % 2 else part > 0.5),
}


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
    if q.__class__ is np.ndarray and q.ndim == 1 and 0 < q.size < _FEW and q.dtype is _FLOATS[0]:
        each = [quantile(x, v, axis, method, keepdims, weights) for v in q.tolist()]
        return None if any(y is None for y in each) or x.dtype in _NARROWER else np.stack(each)
    if q.__class__ is not float or not 0.0 <= q <= 1.0 or weights is not None:
        return None
    if method not in _PARTS or not 0 < x.size < _SMALL:
        return None
    if x.dtype not in _FLOATS:
        if x.dtype.num > INTEGER:
            return None
        x = x.astype(np.float64)
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
    part = x.dtype.type(_PARTS[method](place - k, k) if place < n - 1 else 0)
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
