"""Shares of few gamma numbers in vectors: large arrays are loops as those of compiled programs."""

from __future__ import annotations

from typing import Any

import numpy as np

from funct.kernels.cpu.loops import kernel
from funct.kernels.cpu.vectors import loaded, stored
from funct.kernels.random.elementary import logistic

__all__ = ["few_shares", "share_few"]

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
