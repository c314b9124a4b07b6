"""Operands of other libraries. Python lets the right operand answer `x * y` where the left one does
not know it; ops do so too, before a level sees the operand, so that whoever answers is given the
tracer and not what it stands for.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from funct.core.open_number import OpenNumber
from funct.core.size import Size
from funct.core.value import Value

__all__ = ["ask"]

_REFLECTED = {
    "add": "__radd__", "bitwise_and": "__rand__", "bitwise_left_shift": "__rlshift__",
    "bitwise_or": "__ror__", "bitwise_right_shift": "__rrshift__", "bitwise_xor": "__rxor__",
    "divide": "__rtruediv__", "equal": "__eq__", "floor_divide": "__rfloordiv__",
    "greater": "__lt__", "greater_equal": "__le__", "less": "__gt__", "less_equal": "__ge__",
    "matmul": "__rmatmul__", "multiply": "__rmul__", "not_equal": "__ne__", "pow": "__rpow__",
    "remainder": "__rmod__", "subtract": "__rsub__",
}  # fmt: skip


def ask(name: str, x: Any, y: Any) -> Any:
    """What y's class says of the op on x, a Value, and y; NotImplemented where it says nothing.

    Python's own classes are not asked: a list would take a 0-d x for a count.
    """
    cls = y.__class__
    if cls.__module__ == "builtins" or not isinstance(x, Value):
        return NotImplemented
    if isinstance(y, Value | np.ndarray | np.generic | Size | OpenNumber):
        return NotImplemented
    method = getattr(cls, _REFLECTED.get(name, ""), None)
    return NotImplemented if method is None else method(y, x)
