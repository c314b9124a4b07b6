"""Functions of complex numbers, whose parts lie side by side."""

from __future__ import annotations

from typing import Any

import numpy as np

from funct.kernels.cpu.loops import kernel, making

__all__ = ["log1p_near", "running", "running_few"]


@kernel
def log1p_near(x: Any, y: Any, n: int) -> None:
    """The real part of log(1 + x) written into y where |x| < 1/2; n: numbers."""
    for k in range(0, 2 * n, 2):
        a, b = x[k], x[k + 1]
        if a * a + b * b < 0.25:
            y[k] = np.log1p(a * (a + 2) + b * b) / 2


@kernel
def running(x: Any, y: Any, outer: int, n: int, how: str) -> None:
    """Sums up to each of n numbers of a row, or products."""
    _running(x, y, outer, n, how)


@making("x")
def running_few(x: Any, outer: int, n: int, how: str, y: Any, size: int) -> None:
    """`running` in a new array."""
    _running(x, y, outer, n, how)


def _running(x: Any, y: Any, outer: Any, n: Any, how: str) -> None:
    for row in range(outer):
        start = 2 * n * row
        a, b = x[start], x[start + 1]
        y[start] = a
        y[start + 1] = b
        for k in range(start + 2, start + 2 * n, 2):
            c, d = x[k], x[k + 1]
            a, b = (a + c, b + d) if how == "add" else (a * c - b * d, a * d + b * c)
            y[k] = a
            y[k + 1] = b
