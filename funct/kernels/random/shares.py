"""Shares of positive numbers in their sum, given their logarithms: beta numbers and points of
Dirichlet distributions, of gamma numbers.

Of two numbers it is the logistic function of log x - log y, but by operations that round the same
everywhere: loops of compiled programs (`funct/kernels/llvm/logistic.py`), machine code for large
arrays and NumPy give the same bits. Of more it is one kernel, whoever asks.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from funct.kernels.cpu.elementwise.vector_loops import combined
from funct.kernels.cpu.loops import ready
from funct.kernels.cpu.random.shares import few_shares, shares_of_rows
from funct.kernels.elementwise.thresholds import FAR
from funct.kernels.random.elementary import logistic
from funct.kernels.table import permitted

__all__ = ["plain_shares", "share", "shares"]

_DOUBLE = np.dtype(np.float64)


def share(x: Any) -> Any:
    """1 / (1 + exp(-x)), float64 within 2 ulp; float32 is rounded once more."""
    if x.dtype != _DOUBLE:
        return share(np.asarray(x, _DOUBLE)).astype(x.dtype)
    if x.size >= FAR and permitted("llvm"):
        return combined("share", (x,), _DOUBLE)
    if ready(x.size):
        return few_shares(np.asarray(x))
    with np.errstate(all="ignore"):
        return logistic(x)


def shares(logs: Any) -> Any:
    """exp(logs), divided by its sum along the last axis; the greatest is taken out before.

    NaN where all are -inf. Computed in float64.
    """
    if logs.dtype != _DOUBLE:
        return shares(np.asarray(logs, _DOUBLE)).astype(logs.dtype)
    with np.errstate(all="ignore"):
        logs = np.asarray(logs)
        rows = logs.size and logs.flags.c_contiguous  # others are summed in another order
        return (shares_of_rows if rows and ready(logs.size) else plain_shares)(logs)


def plain_shares(logs: Any) -> Any:
    """`shares` in NumPy."""
    weights = np.exp(logs - np.maximum.reduce(logs, -1, keepdims=True, initial=-np.inf))
    return weights / np.add.reduce(weights, -1, keepdims=True)
