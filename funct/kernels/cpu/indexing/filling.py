"""What kernels write before they add to it."""

from __future__ import annotations

from typing import Any

from funct.kernels.cpu.vectors import spread, stored

__all__ = ["cleared"]

_LANES = 8


def cleared(y: Any, first: Any, last: Any) -> None:
    """Zeros in the elements [first, last) of y; kernels call it."""
    none = y.dtype.type(0)
    whole = first + ((last - first) & -_LANES)
    for k in range(first, whole, _LANES):
        stored(y, k, spread(none, _LANES))
    for k in range(whole, last):
        y[k] = none
