"""Functions that err by a few ulp and take fewer instructions: for those who ask for them.

FAST["exp"](emitter, x)

Bounds are in ulp of results that are normal numbers. Results below the least normal number are 0,
those above a quarter of the largest number may be inf, a zero need not keep its sign. NaN stays
NaN, and infinities have the results that they have exactly.

Source: those of `exponential`, `trigonometric` and `power`; fewer terms, nothing that rounding
    lost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from funct.kernels.llvm import error, exponential, logarithm, trigonometric
from funct.kernels.llvm.coefficients.error import ERF_WHOLE
from funct.kernels.llvm.coefficients.exponential import EXP_FAST
from funct.kernels.llvm.coefficients.trigonometric import SIN_HALF
from funct.kernels.llvm.exponential import LN2, LOG2_E, reduce
from funct.kernels.llvm.scaling import BIAS, has_avx512, nearest, pow2, split_constant

if TYPE_CHECKING:
    from collections.abc import Callable

    from funct.kernels.llvm.emitter import Emitter
    from funct.kernels.llvm.values import Value

__all__ = ["FAST"]

ENDS = {"f32": (-127.0, 128.0), "f64": (-1023.0, 1024.0)}  # powers of 2 that are 0 and inf as bits
ERF_CENTRE = 7.42  # half of the largest square
ONE = {"f32": 9.1, "f64": 19.1}  # tanh is 1 beyond


def _power(e: Emitter, r: Value) -> Value:
    """exp(r) for |r| <= ln2 / 2."""
    return e.fma(r * r, e.polynomial(r, EXP_FAST[r.type.element]), r) + 1


def exp(e: Emitter, x: Value) -> Value:
    """e^x; at most 4 ulp. With AVX-512 the exact function, whose tables are registers, is as short.
    """
    element = x.type.element
    if has_avx512(e, x.type):
        return exponential.exp(e, x)
    least, most = ENDS[element]
    x = e.min(most * float(LN2), e.max(least * float(LN2), x))
    n, bits = nearest(e, x, float(LOG2_E), BIAS[element])
    high, low = split_constant(LN2, element)
    return _power(e, e.fma(n, -low, e.fma(n, -high, x))) * pow2(e, bits, x.type)


def exp2(e: Emitter, x: Value) -> Value:
    """2^x; at most 4 ulp, exact at integers."""
    element = x.type.element
    least, most = ENDS[element]
    x = e.min(most, e.max(least, x))
    n, bits = nearest(e, x, 1, BIAS[element])
    return _power(e, (x - n) * float(LN2)) * pow2(e, bits, x.type)


def sigmoid(e: Emitter, x: Value) -> Value:
    """1 / (1 + e^-x); at most 5 ulp."""
    return 1 / (exp(e, -x) + 1)


def tanh(e: Emitter, x: Value) -> Value:
    """The hyperbolic tangent; at most 5 ulp."""
    most = ONE[x.type.element]
    x = e.min(most, e.max(-most, x))
    _, bits, p = reduce(e, x + x, BIAS[x.type.element])
    power = pow2(e, bits, x.type)
    above = e.fma(p, power, power - 1)
    return above / (above + 2)


def erf(e: Emitter, x: Value) -> Value:
    """erf; at most 7 ulp. float64 has no shorter way, nor has AVX-512."""
    if x.type.element == "f64" or has_avx512(e, x.type):
        return error.erf(e, x)
    x = e.min(3.85, e.max(-3.85, x))  # erf is 1 beyond
    return x * e.polynomial(e.fma(x, x, -ERF_CENTRE), ERF_WHOLE["f32"])


def _half_turns(e: Emitter, x: Value, *, quarter: bool) -> Value:
    """sin(x), or cos(x) by a quarter turn, where x is not far from 0."""
    element, shift = x.type.element, 0.5 if quarter else 0.0
    part = x * (1 / float(trigonometric.PI))
    turns, bits = nearest(e, part - shift if quarter else part, 1, int(quarter))
    turns = turns + shift if quarter else turns
    r = x
    for digits in split_constant(trigonometric.PI, element, 3):
        r = e.fma(turns, -digits, r)
    z = r * r
    found = e.fma(r * z, e.polynomial(z, SIN_HALF[element]), r)
    turned = bits << (x.type.bits - 1)
    return e.bitcast(e.bitcast(found, x.type.integer) ^ turned, x.type)


def sin(e: Emitter, x: Value) -> Value:
    """The sine; at most 2 ulp of 1, and 2 of itself for |x| < 100."""
    return trigonometric.anywhere(e, "sin", x, _half_turns(e, x, quarter=False))


def cos(e: Emitter, x: Value) -> Value:
    """The cosine; at most 2 ulp of 1, and 2 of itself for |x| < 100."""
    return trigonometric.anywhere(e, "cos", x, _half_turns(e, x, quarter=True))


def logaddexp(e: Emitter, x: Value, y: Value) -> Value:
    """log(e^x + e^y), without overflow; the absolute error is that of the larger one."""
    power = exp(e, -e.abs(x - y))
    doubled = power > 0.41421356  # then log(1 + power) = ln2 + log((1 + power) / 2)
    f = e.select(doubled, e.fma(power, 0.5, -0.5), power)
    rest = f + logarithm.beyond_f(e, f) + e.select(doubled, e.constant(x.type, float(LN2)), 0)
    return e.select(e.eq(x, y), x + float(LN2), e.maximum(x, y) + rest)


def power(e: Emitter, x: Value, y: Value) -> Value:
    """x^y for x >= 0, NaN below; at most 4 + 2 |y ln x| ulp."""
    return exp(e, y * logarithm.log(e, x))


FAST: dict[str, Callable[..., Value]] = {
    "cos": cos, "erf": erf, "exp": exp, "exp2": exp2, "expit": sigmoid, "logaddexp": logaddexp,
    "pow": power, "sin": sin, "tanh": tanh,
}  # fmt: skip
