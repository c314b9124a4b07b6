"""Powers of sums that are 0 where all their terms are: roots whose derivatives are 0 there."""

from __future__ import annotations

from typing import Any

from funct import ops
from funct.array.tensor import Array

__all__ = ["ground", "power", "without_zeros"]


def power(x: Any, p: float) -> Any:
    """x**p for x >= 0, 0 with every derivative where x is 0."""
    if (x.__class__ is Array and p > 0) or without_zeros(x):
        return ops.sqrt(x) if p == 0.5 else ops.pow(x, p)
    zero = ops.equal(x, 0)
    safe = ops.where(zero, 1.0, x)
    return ops.where(zero, ops.stop_gradient(x), ops.sqrt(safe) if p == 0.5 else ops.pow(safe, p))


def without_zeros(x: Any) -> bool:
    """Whether the elements are known and none is 0, so that no derivative is to be mended."""
    known = ground(x)
    return known is not None and bool(known.all())


def ground(x: Any) -> Any:
    """The elements below all transforms; None where they are not known yet."""
    while x.__class__ is not Array:
        if not x.level.computes:
            return None
        x = x.value
    return x.data
