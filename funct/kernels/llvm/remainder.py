"""Quotients of floats towards 0 and minus infinity, and what they leave, which is exact."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from funct.kernels.llvm.rare import rarely

if TYPE_CHECKING:
    from funct.kernels.llvm.emitter import Emitter
    from funct.kernels.llvm.values import Value

__all__ = ["floor_divide", "fmod", "quotient", "remainder"]

_WHOLE = {"f32": 2.0**23, "f64": 2.0**52}  # below which quotients are whole numbers


def fmod(e: Emitter, x: Value, y: Value) -> Value:
    """What x / y cut to an integer leaves, with the sign of x, as C has it.

    The quotient, rounded, is the integer or one more; both times y fit beside x without rounding.
    """
    if x.type.lanes == 1:
        return e.rem(x, y)
    large, small = e.abs(x), e.abs(y)
    whole = e.trunc(large / small)
    left = e.fma(-whole, small, large)
    left = e.select(left < 0, left + small, left)
    usual = (whole < _WHOLE[x.type.element]) & (small < math.inf)
    found = e.copysign(left, x)
    return rarely(e, ~usual, "fmod", lambda f, x, y: f.rem(x, y), (x, y), found)


def quotient(e: Emitter, x: Value, y: Value) -> tuple[Value, Value]:
    """The quotient towards minus infinity and what it leaves, with the sign of y, as Python has it;
    x / y where one of them is infinite.
    """
    r = fmod(e, x, y)
    apart = e.ne(r, 0) & ((y < 0) ^ (r < 0))
    q = (x - r) / y
    q = e.select(apart, q - 1, q)
    whole = e.floor(q)
    whole = e.select(q - whole > 0.5, whole + 1, whole)
    zero = e.constant(x.type, 0)
    q = e.select(e.eq(q, 0), e.copysign(zero, x / y), whole)
    r = e.select(e.eq(r, 0), e.copysign(zero, y), e.select(apart, r + y, r))
    endless = e.eq(e.abs(x), math.inf) | e.eq(e.abs(y), math.inf)
    return e.select(e.eq(y, 0) | endless, x / y, q), r


def floor_divide(e: Emitter, x: Value, y: Value) -> Value:
    """The quotient towards minus infinity."""
    return quotient(e, x, y)[0]


def remainder(e: Emitter, x: Value, y: Value) -> Value:
    """What it leaves."""
    return quotient(e, x, y)[1]
