"""Quotients towards 0 and minus infinity, and what they leave, which is exact.

Processors divide vectors of floats, not of integers: those of 32 bits and more are divided as
doubles. For numbers below 2⁵⁰ that is exact: a quotient which is no integer is further from the
next one than it is rounded. They become doubles and come back as the last digits of a number that
is so large that these are whole, as many processors convert no vectors of 64 bits.
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
_LEAST = 50  # bits of integers that are divided as doubles, but for a sign
_LARGE = 1.5 * 2.0**52  # a double whose last digit is 1, however near a number takes it
_LARGE_BITS = 0x4338000000000000


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
    dividend, divisor = _double(e, x), _double(e, y)
    if number is None:
        cut = e.floor(dividend / divisor)
    else:  # the quotient by a number is rounded twice: half a step inwards it is near no integer
        cut = e.floor((dividend + math.copysign(0.5, number)) * (1 / number))
    q = e.convert(e.bitcast(cut + _LARGE, x.type.with_element("i64")) - _LARGE_BITS, x.type.element)
    if x.type.bits == 64:
        far = _far(e, x) | _far(e, y) if number is None else _far(e, x)
        q = rarely(e, far, "quotient", lambda f, x, y: _by_the_machine(f, x, y)[0], (x, y), q)
    return q, x - q * y


def _double(e: Emitter, x: Value) -> Value:
    if x.type.bits < 64:
        return e.convert(x, "f64")
    return e.bitcast(x + _LARGE_BITS, x.type.with_element("f64")) - _LARGE


def _far(e: Emitter, x: Value) -> Value:
    """Where integers of 64 bits have too many digits."""
    signs = 1 if x.type.is_signed else 0
    above = e.bitcast(x + (signs << _LEAST), x.type.unsigned)
    return e.ne(above >> (_LEAST + signs), 0)


def _by_the_machine(e: Emitter, x: Value, y: Value) -> tuple[Value, Value]:
    q, r = x / y, e.rem(x, y)
    if not x.type.is_signed:
        return q, r
    apart = e.ne(r, 0) & (e.bitxor(r, y) < 0)
    return e.select(apart, q - 1, q), e.select(apart, r + y, r)
