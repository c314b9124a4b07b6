"""Where a value is known to be finite, which is where `absorb` has nothing to absorb."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from funct.graph import Node, Var

__all__ = ["finite_at_zeros"]

_DEPTH = 8  # of an expression that is looked into

Makers = Mapping[Var, Node]


def finite_at_zeros(h: Any, g: Any, made_by: Makers, depth: int = 0) -> bool:
    """Whether h is finite wherever g is 0. made_by: the node that makes each Var."""
    if h is g:
        return True
    if not isinstance(h, Var):
        return _is_finite(h)
    e = made_by.get(h)
    if e is None or depth > _DEPTH:
        return False
    match e.name:
        case "negative" | "settled" | "stop_gradient" | "absorb":
            # the result of absorb is h' where that is finite
            return finite_at_zeros(e.operands[-1], g, made_by, depth + 1)
        case "where":
            return all(finite_at_zeros(a, g, made_by, depth + 1) for a in e.operands[1:])
        case "multiply":
            return _is_scaled(e, g, made_by, depth)
        case "divide":
            x, y = e.operands
            return _is_finite(y) and y != 0 and _is_zero(x, g, made_by, depth + 1)
    return False


def _is_scaled(e: Node, g: Any, made_by: Makers, depth: int) -> bool:
    """Whether a product is 0 wherever g is: g times a finite number."""
    x, y = e.operands
    if not isinstance(x, Var):
        x, y = y, x
    return _is_finite(y) and _is_zero(x, g, made_by, depth + 1)


def _is_zero(h: Any, g: Any, made_by: Makers, depth: int) -> bool:
    """Whether h is 0 wherever g is: g itself, or g times finite numbers."""
    if h is g:
        return True
    e = made_by.get(h) if isinstance(h, Var) else None
    if e is None or depth > _DEPTH:
        return False
    if e.name in ("negative", "settled", "stop_gradient"):
        return _is_zero(e.operands[0], g, made_by, depth + 1)
    return e.name == "multiply" and _is_scaled(e, g, made_by, depth)


def _is_finite(x: Any) -> bool:
    """Whether x is a finite real number."""
    return isinstance(x, int | float) and math.isfinite(x)
