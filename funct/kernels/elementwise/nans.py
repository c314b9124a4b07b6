"""NaN, and infinities, replaced in ndarrays: in vectors where there are many elements."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from funct.kernels.cpu.loops import ready
from funct.kernels.elementwise.thresholds import MANY
from funct.kernels.table import call

__all__ = ["half_turns", "numbers", "plain", "without"]

_FLOATS = frozenset(map(np.dtype, "fd"))
_COMPLEX = frozenset(map(np.dtype, "FD"))


def without(x: Any, value: float) -> Any:
    """x with a value in place of NaN; None for other dtypes than single and double precision."""
    if x.dtype in _FLOATS:
        return _made("without", x, value)
    return np.where(x == x, x, x.dtype.type(value)) if x.dtype in _COMPLEX else None


def numbers(x: Any, nan: float) -> Any:
    """x, real, with a value for NaN and the largest numbers for infinities."""
    return _made("numbers", x, nan)


def half_turns(x: Any) -> Any:
    """The angles of real numbers: π where the sign is set, 0 elsewhere, NaN as it is."""
    return _made("half_turns", x, np.pi)


def _made(name: str, x: Any, value: float) -> Any:
    if x.size < MANY or not ready(x.size, 0):
        return plain(name, x, value)
    return call("nans", x.dtype, x.size, name, x, value)


def plain(name: str, x: Any, value: float) -> Any:
    """What has these names above."""
    if name == "half_turns":
        return np.where(x == x, np.where(np.signbit(x), x.dtype.type(value), x.dtype.type(0)), x)
    y = np.where(x == x, x, x.dtype.type(value))
    if name == "without":
        return y
    finfo: Any = ml_dtypes.finfo
    most = np.asarray(finfo(x.dtype).max, x.dtype)
    return np.minimum(np.maximum(y, -most), most)
