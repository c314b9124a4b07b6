"""Shares of gamma numbers: of two, few of them, in vectors, as large arrays are loops as those of
compiled programs; of more, rows of them, with NumPy's exponentials and sums.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from funct.kernels.cpu.loops import kernel
from funct.kernels.cpu.scratch import fresh
from funct.kernels.cpu.vectors import loaded, stored, summed
from funct.kernels.random.elementary import logistic

__all__ = ["below_greatest", "by_sums", "few_shares", "share_few", "shares_of_rows"]

_LANES = 16


@kernel
def share_few(x: Any, y: Any, n: int) -> None:
    """y: logistic functions of n elements of x."""
    whole = n & -_LANES
    for i in range(0, whole, _LANES):
        stored(y, i, logistic(loaded(x, i, _LANES)))
    for i in range(whole, n):
        y[i] = logistic(x[i])


def few_shares(x: Any) -> Any:
    """Logistic functions of float64, in x's shape."""
    y = np.empty(x.shape)
    share_few(x, y, x.size)
    return y


@kernel
def below_greatest(x: Any, y: Any, rows: int, n: int) -> None:
    """y (rows, n): x less the greatest of each row."""
    for r in range(rows):
        base = r * n
        most: Any = x[base]
        for k in range(base + 1, base + n):
            most = np.where(x[k] > most, x[k], most)
        for k in range(base, base + n):
            y[k] = x[k] - most


@kernel
def by_sums(y: Any, rows: int, n: int) -> None:
    """Divide each row of y (rows, n) by its sum."""
    for r in range(rows):
        base = r * n
        total = summed(y, base, n)
        for k in range(base, base + n):
            y[k] = y[k] / total


def shares_of_rows(x: Any) -> Any:
    """exp(x) of float64 (..., n), some elements, by its sum along the last axis."""
    y, n = fresh(x.shape, x.dtype), x.shape[-1]
    rows = x.size // n
    below_greatest(x, y, rows, n)
    np.exp(y, out=y)
    by_sums(y, rows, n)
    return y
