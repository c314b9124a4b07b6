"""Casts: by kernels where one side is float16 or bfloat16, which NumPy casts number by number."""

from __future__ import annotations

from typing import Any

import numpy as np

from funct.kernels.cpu.loops import ready
from funct.kernels.dtypes import is_half
from funct.kernels.elementwise.thresholds import FLAT, MANY
from funct.kernels.table import call, unrestricted
from funct.settings import config

__all__ = ["FEW", "in_dtype", "is_flat", "plain_cast"]

_LARGE = 1 << 12  # elements from which on it is worth loading LLVM
# By both dtypes, what casts some elements that are dense, and what it is told besides.
FEW: dict[tuple[Any, Any], tuple[Any, Any]] = {}


def in_dtype(x: Any, dtype: np.dtype[Any]) -> Any:
    """x in another dtype, in a new array."""
    n, d = x.size, x.dtype
    if n < MANY or (d.itemsize != 2 and dtype.itemsize != 2):
        return x.astype(dtype)
    few = FEW.get((d, dtype))
    if few is not None and is_flat(n) and unrestricted():
        return few[0].call(x, few[1])
    if not (is_half(d) or is_half(dtype)):
        return x.astype(dtype)
    if n < _LARGE and (d.itemsize == 1 or dtype.kind in "biu" or not ready(n, 0)):
        return x.astype(dtype)  # for what is looked up in tables these are few
    return call("cast", d, n, x, dtype)


def is_flat(n: int) -> bool:
    """Whether one thread casts so many elements as soon as all there are."""
    return n < FLAT or config.record.threads == 1


def plain_cast(x: Any, dtype: np.dtype[Any]) -> Any:
    """The same by NumPy."""
    return x.astype(dtype)
