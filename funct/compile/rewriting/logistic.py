"""The slope of a sigmoid, sigmoid(x) sigmoid(-x): one exponential in place of two.

It is written by both, since 1 - sigmoid(x) loses its digits where x is large.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from funct import ops
from funct.core import Primitive, lookup, variant
from funct.graph import Node, Var

__all__ = ["slope_of", "slope_primitive"]

_REAL = frozenset({np.dtype(np.float32), np.dtype(np.float64)})


def slope_of(e: Any, made_by: Mapping[Var, Any]) -> tuple[Var, Var] | None:
    """(x, sigmoid(x)) where a node gives sigmoid(x) sigmoid(-x); None elsewhere."""
    if not isinstance(e, Node) or e.name != "multiply" or e.results[0].dtype not in _REAL:
        return None
    for y, z in (e.operands, e.operands[::-1]):
        x, minus = _under("sigmoid", y, made_by), _under("sigmoid", z, made_by)
        if x is not None and x is _under("negative", minus, made_by):
            return x, y  # type: ignore[return-value]
    return None


def _under(name: str, v: Any, made_by: Mapping[Var, Any]) -> Var | None:
    """The operand of the op of that name that gives v; None where another one does."""
    e = made_by.get(v) if isinstance(v, Var) else None
    if not isinstance(e, Node) or e.name != name or not isinstance(e.operands[0], Var):
        return None
    return e.operands[0]


def slope_primitive() -> Primitive:
    """The op that only programs know."""
    sigmoid = lookup("sigmoid")
    assert sigmoid is not None
    return variant(sigmoid, "sigmoid_slope", _slope, raw=_slope_of_array)


def _slope(x: Any) -> Any:
    return ops.sigmoid(x) * ops.sigmoid(-x)


def _slope_of_array(x: Any) -> Any:
    raw = lookup("sigmoid").raw  # type: ignore[union-attr]
    return raw(x) * raw(-x)
