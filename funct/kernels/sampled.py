"""Functions of sampled curves, on ndarrays."""

from __future__ import annotations

from math import isfinite
from typing import Any

import numpy as np

from funct.kernels.quiet import vdot

__all__ = ["convolve", "interp", "trapezoid"]

_DOUBLE = np.dtype(np.float64)
_WIDE = {_DOUBLE, np.dtype(np.float32)}  # narrower ones are summed in float32

_core: Any = getattr(np, "_core", None)
_interp: Any = getattr(getattr(_core, "multiarray", None), "interp", np.interp)  # what that calls


def convolve(x: Any, y: Any, mode: str = "full") -> Any:
    """Convolution of two sequences, at all places where they overlap."""
    if x.ndim != 1 or y.ndim != 1 or not x.size or not y.size or mode != "full":
        return None
    if x.dtype is not _DOUBLE or y.dtype is not _DOUBLE:
        return None
    return np.convolve(x, y)


def interp(
    x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None
) -> Any:
    """The piecewise linear function through points that are finite, at x."""
    if x.dtype is not _DOUBLE or xp.dtype is not _DOUBLE or fp.dtype is not _DOUBLE:
        return None
    if period is not None or xp.size < 2 or fp.ndim != 1:
        return None
    if not isfinite(vdot(xp, fp)):  # as is where all are finite and not large
        return None
    return _interp(x, xp, fp, left, right)


def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Any:
    """Integral along the last axis over steps of dx."""
    if x is not None or dx.__class__ is not float or axis != -1 or y.dtype not in _WIDE:
        return None
    pairs = y[1:] + y[:-1] if y.ndim == 1 else y[..., 1:] + y[..., :-1]
    return np.add.reduce(dx * pairs, -1) / 2
