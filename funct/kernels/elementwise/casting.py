"""Casts: by kernels where one side is float16 or bfloat16, which NumPy casts number by number."""

from __future__ import annotations

from typing import Any

import numpy as np

from funct.kernels.cpu.loops import ready
from funct.kernels.dtypes import is_half
from funct.kernels.elementwise.thresholds import FLAT, MANY
from funct.kernels.table import call, unrestricted

__all__ = ["FEW", "in_dtype", "plain_cast"]

_LARGE = 1 << 12  # elements from which on it is worth loading LLVM
# By both dtypes, what casts some elements that are dense, and what it is told besides.
FEW: dict[tuple[Any, Any], tuple[Any, Any]] = {}


def in_dtype(x: Any, dtype: np.dtype[Any]) -> Any:
    """x in another dtype, in a new array."""
    n = x.size
    if MANY <= n < FLAT and (few := FEW.get((x.dtype, dtype))) is not None and unrestricted():
        return few[0].call(x, few[1])
    if n < MANY or not (is_half(x.dtype) or is_half(dtype)) or not (n >= _LARGE or ready(n, 0)):
        return x.astype(dtype)
    return call("cast", x.dtype, n, x, dtype)


def plain_cast(x: Any, dtype: np.dtype[Any]) -> Any:
    """The same by NumPy."""
    return x.astype(dtype)
