"""Quotients towards 0 and minus infinity, and what they leave, which is exact.

Processors divide vectors of floats, not of integers: those of 32 bits and more are divided as
doubles, which is exact for numbers below 2⁵² but for one more or less.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from funct.kernels.llvm.rare import rarely

if TYPE_CHECKING:
    from funct.kernels.llvm.emitter import Emitter
    from funct.kernels.llvm.values import Value

__all__ = ["floor_divide", "fmod", "integer_quotient", "quotient", "remainder"]

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


def integer_quotient(e: Emitter, x: Value, y: Value) -> tuple[Value, Value]:
    """The quotient of integers towards minus infinity and what it leaves; both 0 where y is."""
    if y.whole not in (None, 0, -1):
        return _towards_below(e, x, y)
    zero, one = e.constant(x.type, 0), e.constant(x.type, 1)
    none = e.eq(y, 0)
    if not x.type.is_signed:
        q, r = _towards_below(e, x, e.select(none, one, y))
        return e.select(none, zero, q), e.select(none, zero, r)
    turned = e.eq(y, -1)  # the least number has no quotient by it
    q, r = _towards_below(e, x, e.select(none | turned, one, y))
    q = e.select(turned, -x, q)
    return e.select(none, zero, q), e.select(none, zero, r)


def _towards_below(e: Emitter, x: Value, y: Value) -> tuple[Value, Value]:
    """Where there is a quotient. By a constant LLVM shifts, or multiplies by what is wider; numbers
    of 64 bits it would take apart for that.
    """
    number = y.whole
    shifts = number is not None and number > 0 and not number & (number - 1)
    if x.type.lanes == 1 or shifts or (number is not None and x.type.bits <= 32):
        return _by_the_machine(e, x, y)
    if x.type.bits < 32:
        q, r = _towards_below(e, e.convert(x, "i32"), e.convert(y, "i32"))
        return e.convert(q, x.type.element), e.convert(r, x.type.element)
    dividend, divisor = e.convert(x, "f64"), e.convert(y, "f64")
    cut = e.floor(dividend / divisor if number is None else dividend * (1 / divisor))
    if x.type.bits == 32:
        q = e.convert(e.convert(cut, "i64"), x.type.element)
        return q, x - q * y
    far = (e.abs(dividend) >= _WHOLE["f64"]) | (e.abs(divisor) >= _WHOLE["f64"])
    q = e.convert(cut, x.type.element)
    left = e.convert(x - q * y, "i64")
    size, least = (e.select(y < 0, -left, left), e.abs(y)) if x.type.is_signed else (left, y)
    one = e.constant(x.type, 1)
    q = e.select(size < 0, q - one, e.select(size >= e.convert(least, "i64"), q + one, q))
    q = rarely(e, far, "quotient", lambda f, x, y: _by_the_machine(f, x, y)[0], (x, y), q)
    return q, x - q * y


def _by_the_machine(e: Emitter, x: Value, y: Value) -> tuple[Value, Value]:
    q, r = x / y, e.rem(x, y)
    if not x.type.is_signed:
        return q, r
    apart = e.ne(r, 0) & (e.bitxor(r, y) < 0)
    return e.select(apart, q - 1, q), e.select(apart, r + y, r)
