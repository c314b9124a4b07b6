"""sinh, cosh, tanh and their inverses, by exp and log; tanh of float32 by cells too."""

from __future__ import annotations

from typing import TYPE_CHECKING

from funct.kernels.llvm.cells import TANH_CELLS, TANH_END, TANH_STEP
from funct.kernels.llvm.coefficients.hyperbolic import SINH, TANH
from funct.kernels.llvm.coefficients.logarithm import ATANH_WIDE
from funct.kernels.llvm.exponential import LN2, reduce
from funct.kernels.llvm.logarithm import log, log_of_sum
from funct.kernels.llvm.rare import rarely
from funct.kernels.llvm.scaling import BIAS, MANTISSA, bits_of, octave, pow2, split_constant
from funct.kernels.llvm.tables import curve, has_tables

if TYPE_CHECKING:
    from funct.kernels.llvm.emitter import Emitter
    from funct.kernels.llvm.values import Value

__all__ = ["acosh", "asinh", "atanh", "cosh", "sinh", "tanh"]

ONE = {"f32": 9.5, "f64": 20.0}  # tanh is 1 beyond
SQUARE_OVERFLOWS = {"f32": 2.0**60, "f64": 2.0**500}


def tanh(e: Emitter, x: Value) -> Value:
    """The hyperbolic tangent; at most 1.5 ulp, float32 by cells 1."""
    size = e.abs(x)
    if x.type.element == "f32" and has_tables(e):
        a = e.min(TANH_END["f32"], size)
        return e.copysign(curve(e, a, TANH_STEP["f32"], TANH_CELLS["f32"]), x)
    z = x * x
    near = e.fma(size * z, e.polynomial(z, TANH[x.type.element]), size)
    _, bits, p = reduce(e, e.min(ONE[x.type.element], size) * 2, BIAS[x.type.element])
    power = pow2(e, bits, x.type)
    far = 1 - 2 / (e.fma(power, p, power) + 1)
    return e.copysign(e.select(size < 0.55, near, far), x)


def _quarter(e: Emitter, size: Value) -> Value:
    """exp(size) / 4, which does not overflow before cosh does."""
    most = {"f32": 89.75, "f64": 710.75}[size.type.element]
    _, bits, p = reduce(e, e.min(most, size), BIAS[size.type.element] - 2)
    power = pow2(e, bits, size.type)
    return e.fma(power, p, power)


def sinh(e: Emitter, x: Value) -> Value:
    """The hyperbolic sine; at most 1.7 ulp."""
    size = e.abs(x)
    z = x * x
    near = e.fma(size * z, e.polynomial(z, SINH[x.type.element]), size)
    quarter = _quarter(e, size)
    return e.copysign(e.select(size < 1, near, quarter * 2 - 0.125 / quarter), x)


def cosh(e: Emitter, x: Value) -> Value:
    """The hyperbolic cosine; at most 1.5 ulp."""
    quarter = _quarter(e, e.abs(x))
    return quarter * 2 + 0.125 / quarter


def asinh(e: Emitter, x: Value) -> Value:
    """The number whose hyperbolic sine is x; at most 2 ulp."""
    size = e.abs(x)
    square = e.fma(size, size, 1)
    root = e.sqrt(square)
    lost = e.fma(-root, root, square) + e.fma(size, size, 1 - square)
    whole = root + size
    rest = ((root - whole) + size) + lost * (0.5 / root)
    found = e.copysign(log_of_sum(e, whole, rest), x)
    usual = size < SQUARE_OVERFLOWS[x.type.element]
    return rarely(e, ~usual, "asinh_rest", _asinh_rest, [x], found)


def _asinh_rest(e: Emitter, x: Value) -> Value:
    """asinh where the square is no number."""
    return e.copysign(log(e, e.abs(x)) + float(LN2), x)


def acosh(e: Emitter, x: Value) -> Value:
    """The number at least 0 whose hyperbolic cosine is x; NaN below 1; at most 2 ulp."""
    above = x - 1
    root = e.sqrt(e.fma(above, above, above * 2))
    whole = x + root
    found = log_of_sum(e, whole, (x - whole) + root)
    usual = (x >= 1) & (x < SQUARE_OVERFLOWS[x.type.element])
    return rarely(e, ~usual, "acosh_rest", _acosh_rest, [x], found)


def _acosh_rest(e: Emitter, x: Value) -> Value:
    """acosh where the square is no number, and below 1."""
    return e.select(x < 1, float("nan"), log(e, x) + float(LN2))


def atanh(e: Emitter, x: Value) -> Value:
    """The number whose hyperbolic tangent is x; inf at 1, NaN beyond; at most 2 ulp.

    It is half the logarithm of (1 + x) / (1 - x), which is a power of 2 times (1 + s) / (1 - s).
    """
    element, type = x.type.element, x.type
    mantissa = MANTISSA[element]
    size = e.abs(x)
    above, below = size + 1, 1 - size
    # what rounding them lost
    above_low, below_low = size - (above - 1), (1 - below) - size
    # numbers rise with their bits, about as logarithms do; the power is 1 a bit further out than
    # half an octave, where s would be larger than what comes out
    apart = e.bitcast(above, type.integer) - e.bitcast(below, type.integer)
    step = (apart + (5 << (mantissa - 4))) & -(1 << mantissa)
    # below is no less than half an ulp of 1, so the product is a normal number
    up = e.bitcast(step + bits_of(1, element), type)
    other = below * up
    difference = (above - other) + e.fma(-below_low, up, above_low)
    s = difference / (above + other)
    z = s * s
    k = octave(e, up)[1]
    high, low = split_constant(LN2, element)
    tail = e.fma(s * z, e.polynomial(z, ATANH_WIDE[element]), s * 2)
    found = e.copysign(e.fma(k, 0.5 * high, e.fma(k, 0.5 * low, tail * 0.5)), x)
    return rarely(e, ~(size < 1), "atanh_rest", _atanh_rest, [x], found)


def _atanh_rest(e: Emitter, x: Value) -> Value:
    """atanh at 1 and beyond."""
    return e.select(e.eq(e.abs(x), 1), x * float("inf"), float("nan"))
