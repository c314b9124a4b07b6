"""exp and its kin: 2^n times a polynomial on half an octave around 1, or on a 16th of one.

Source: P. Tang, "Table-driven implementation of the exponential function", 1989, for the reduction;
    W. Cody, W. Waite, "Software manual for the elementary functions", 1980.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from funct.kernels.llvm.cells import EXP2_SIXTEENTHS
from funct.kernels.llvm.coefficients.exponential import EXP, EXP_SIXTEENTH
from funct.kernels.llvm.scaling import (
    BIAS,
    MANTISSA,
    bits_of,
    has_avx512,
    nearest,
    pow2,
    scaled,
    scalef,
    split_constant,
)
from funct.kernels.llvm.tables import has_tables, looked_up

if TYPE_CHECKING:
    from funct.kernels.llvm.emitter import Emitter
    from funct.kernels.llvm.values import Value

__all__ = [
    "LN2", "LOG2_E", "exp", "exp2", "expm1", "reduce", "sigmoid", "sigmoid_slope", "silu",
]  # fmt: skip

LOG2_E = "1.44269504088896340735992468100189213742664595415298593413544940693"
LN2 = "0.693147180559945309417232121458176568075500134360255254120680009493"
MOST = {"f32": 89.0, "f64": 710.0}  # exp is inf beyond
LEAST = {"f32": -104.0, "f64": -746.0}  # exp is 0 below
TINY = {"f32": 2.0**-26, "f64": 2.0**-55}  # where expm1(x) is x
ALL_BUT_ONE = {"f32": -18.0, "f64": -38.0}  # expm1 is -1 below


def reduce(e: Emitter, x: Value, offset: int, *, exact: bool = False) -> tuple[Value, Value, Value]:
    """(n, an integer n + offset, exp(r) - 1) with x = n ln2 + r, |r| <= ln2 / 2.

    exact: with what rounding r lost, which spares a fifth of an ulp.
    """
    n, bits = nearest(e, x, float(LOG2_E), offset)
    high, low = split_constant(LN2, x.type.element)
    first = e.fma(n, -high, x)
    r = e.fma(n, -low, first)
    if not exact:
        return n, bits, small(e, r)
    lost = e.fma(n, -low, first - r)
    return n, bits, r + e.fma(r * r, e.polynomial(r, EXP[r.type.element]), lost)


def small(e: Emitter, r: Value) -> Value:
    """exp(r) - 1 for |r| <= ln2 / 2."""
    return e.fma(r * r, e.polynomial(r, EXP[r.type.element]), r)


def clamped(e: Emitter, x: Value) -> Value:
    """x where exp(x) is neither 0 nor inf, else the nearest such number or a bit more."""
    element = x.type.element
    return e.min(MOST[element], e.max(LEAST[element], x))


def exp(e: Emitter, x: Value) -> Value:
    """e^x; at most 1.1 ulp."""
    x = clamped(e, x)
    if has_tables(e):
        return _by_table(e, x)
    n, bits, p = reduce(e, x, 2 * BIAS[x.type.element])
    return scaled(e, p + 1, n, bits)


def _by_table(e: Emitter, x: Value) -> Value:
    """e^x of what is clamped: the sixteenths of its octave are looked up."""
    type, element = x.type, x.type.element
    magic = 1.5 * 2.0 ** (MANTISSA[element] - 4)
    pushed = e.fma(x, float(LOG2_E), magic)
    n, bits = pushed - magic, e.bitcast(pushed, type.integer)  # both in sixteenths
    high, low = split_constant(LN2, element)
    r = e.fma(n, -low, e.fma(n, -high, x))
    p = e.fma(r * r, e.polynomial(r, EXP_SIXTEENTH[element]), r)
    power = looked_up(e, type, EXP2_SIXTEENTHS, bits)
    near = e.fma(power, p, power)
    if has_avx512(e, type):
        return scalef(e, near, n)  # which takes n's floor
    whole = (bits - bits_of(magic, element)) >> 4
    return scaled(e, near, e.convert(whole, element), whole + 2 * BIAS[element])


def exp2(e: Emitter, x: Value) -> Value:
    """2^x; at most 1.1 ulp, exact at integers."""
    element = x.type.element
    bound = {"f32": (-151.0, 129.0), "f64": (-1076.0, 1025.0)}[element]
    x = e.min(bound[1], e.max(bound[0], x))
    n, bits = nearest(e, x, 1, 2 * BIAS[element])
    high, low = split_constant(LN2, element)
    part = x - n
    return scaled(e, small(e, e.fma(part, low, part * high)) + 1, n, bits)


def expm1(e: Emitter, x: Value) -> Value:
    """e^x - 1; at most 2 ulp."""
    element = x.type.element
    bounded = e.min(MOST[element], e.max(ALL_BUT_ONE[element], x))
    # half the power: the whole overflows before the result does
    _, bits, p = reduce(e, bounded, BIAS[element] - 1)
    power = pow2(e, bits, x.type)
    half = e.fma(power, p, power - 0.5)
    return e.select(e.abs(x) < TINY[element], x, half * 2)


def sigmoid(e: Emitter, x: Value) -> Value:
    """1 / (1 + e^-x), without overflow; at most 1.5 ulp."""
    least = e.max(LEAST[x.type.element], -e.abs(x))
    n, bits, p = reduce(e, least, 2 * BIAS[x.type.element])
    power = scaled(e, p + 1, n, bits)
    above, below = e.select(x < 0, power, 1), power + 1
    inverse = 1 / below
    near = above * inverse
    lost = power - (below - 1)
    left = e.fma(-near, lost, e.fma(-near, below, above))
    return e.fma(left, inverse, near)


def sigmoid_slope(e: Emitter, x: Value) -> Value:
    """sigmoid(x) sigmoid(-x), the derivative of the sigmoid; at most 4 ulp."""
    least = e.max(LEAST[x.type.element], -e.abs(x))
    n, bits, p = reduce(e, least, 2 * BIAS[x.type.element])
    power = scaled(e, p + 1, n, bits)
    below = power + 1
    return power / (below * below)


def silu(e: Emitter, x: Value) -> Value:
    """x sigmoid(x)."""
    return e.select(x < -1000, -0.0, x * sigmoid(e, x))
