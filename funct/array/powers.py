"""Powers of sums that are 0 where all their terms are: roots whose derivatives are 0 there."""

from __future__ import annotations

from typing import Any

from funct import ops
from funct.array.tensor import Array

__all__ = ["power"]


def power(x: Any, p: float) -> Any:
    """x**p for x >= 0, 0 with every derivative where x is 0."""
    if x.__class__ is Array and p > 0:
        return ops.sqrt(x) if p == 0.5 else ops.pow(x, p)
    zero = ops.equal(x, 0)
    safe = ops.where(zero, 1.0, x)
    return ops.where(zero, ops.stop_gradient(x), ops.sqrt(safe) if p == 0.5 else ops.pow(safe, p))
