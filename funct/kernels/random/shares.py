"""x / (x + y) of two positive numbers, given log x - log y: beta numbers of gamma numbers.

The logistic function, but by operations that round the same everywhere: loops of compiled programs
(`funct/kernels/llvm/logistic.py`), machine code for large arrays and NumPy give the same bits.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from funct.kernels.cpu.elementwise.vector_loops import combined
from funct.kernels.cpu.irregular.shares import few_shares
from funct.kernels.cpu.loops import ready
from funct.kernels.elementwise import MANY
from funct.kernels.random.elementary import logistic
from funct.kernels.table import permitted

__all__ = ["share"]

_DOUBLE = np.dtype(np.float64)


def share(x: Any) -> Any:
    """1 / (1 + exp(-x)), float64 within 2 ulp; float32 is rounded once more."""
    if x.dtype != _DOUBLE:
        return share(np.asarray(x, _DOUBLE)).astype(x.dtype)
    if x.size >= MANY and permitted("llvm"):
        return combined("share", (x,), _DOUBLE)
    if ready(x.size):
        return few_shares(np.asarray(x))
    with np.errstate(all="ignore"):
        return logistic(x)
