"""What kernels write before they add to it."""

from __future__ import annotations

from typing import Any

from funct.kernels.cpu.vectors import spread, stored

__all__ = ["cleared"]

_LANES = 8


def cleared(y: Any, n: Any) -> None:
    """Zeros in the first n elements of y; kernels call it."""
    none = y.dtype.type(0)
    whole = n & -_LANES
    for k in range(0, whole, _LANES):
        stored(y, k, spread(none, _LANES))
    for k in range(whole, n):
        y[k] = none
