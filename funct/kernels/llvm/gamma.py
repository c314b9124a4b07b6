"""log|gamma(x)|: Stirling's series far out, a polynomial around 2, recurrence and reflection; left
of 0 a row of numbers for each zero.

Source: DLMF 5.5, 5.11.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from funct.kernels.llvm.coefficients.gamma import LGAMMA, STIRLING
from funct.kernels.llvm.gamma_zeros import GAMMA_ZEROS
from funct.kernels.llvm.logarithm import log, log_pair
from funct.kernels.llvm.rare import rarely
from funct.kernels.llvm.scaling import MANTISSA, exact_sum, fast_sum, nearest, split_constant
from funct.kernels.llvm.trigonometric import sinpi

if TYPE_CHECKING:
    from funct.kernels.llvm.emitter import Emitter
    from funct.kernels.llvm.values import Value

__all__ = ["gammaln"]

AT_TWO = "0.422784335098467139393487909917597568957840664"  # the slope there: 1 - Euler's constant
TINY = 2.0**-20  # x (x + 1) is x below, but for what no sum shows


def gammaln(e: Emitter, x: Value) -> Value:
    """log|gamma(x)|; inf at 0, -1, -2 ….  At most 2 ulp."""
    found = _positive(e, e.abs(x))
    return rarely(e, x < 0, "gammaln_left", _reflected, [x, found], found)


def _reflected(e: Emitter, x: Value, found: Value) -> Value:
    """gamma(x) gamma(-x) = -pi / (x sin(pi x)), of which `found` is what -x has; x < 0.

    Both logarithms may cancel: float32 takes them in float64, as SciPy does, where the zeros are
    no numbers of float32; float64 looks at the zeros.
    """
    if x.type.element == "f32":
        wide = e.convert(x, "f64")
        return e.convert(_between_poles(e, wide, _positive(e, -wide)), "f32")
    near = (x < _FIRST) & (x > _LAST)
    between = _between_poles(e, x, found)
    return rarely(e, near, "gammaln_zeros", _around_zero, [e.select(near, x, -1.25)], between)


_FIRST = -1 / 16  # before, the pole at 0 is all
_LAST = -len(GAMMA_ZEROS) / 2  # from here on zeros are nearer to poles than numbers


def _around_zero(e: Emitter, x: Value) -> Value:
    """c - log(1 + d / r) + d P(d), d = x - z, which is small where the whole is."""
    terms = len(GAMMA_ZEROS[0])
    table = e.address(e.module.table(x.type.scalar, [v for row in GAMMA_ZEROS for v in row]))
    row = e.convert(x * -2, "i64") * terms

    def read(k: Value | int) -> Value:
        return e.elements("f64", e.at(table, k, "f64"), row)

    zero, zero_low, inverse, inverse_low, value, value_low, slope, slope_low = map(read, range(8))
    apart, unseen = exact_sum(x, -zero)
    d, d_low = exact_sum(apart, -zero_low)
    d_low = d_low + unseen
    ratio = d * inverse
    ratio_low = e.fma(d, inverse, -ratio) + (d * inverse_low + d_low * inverse)
    whole, rest = exact_sum(e.constant(x.type, 1), ratio)
    whole, rest = fast_sum(whole, rest + ratio_low)
    at_pole = e.eq(nearest(e, x)[0], x)
    logarithm, logarithm_low = log_pair(e, e.select(at_pole, 1, whole))

    def next_(k: Value, others: list[Value]) -> list[Value]:
        return [e.fma(others[0], d, read(terms - 1 - k))]

    (others,) = e.loop(1, terms - 9, 1, next_, [read(terms - 1)])
    bend, bend_low = fast_sum(read(8), d * others)
    bent = d * bend
    slope, more = exact_sum(slope, bent)
    slope_low = slope_low + more + e.fma(d, bend_low, e.fma(d, bend, -bent))
    lead = d * slope
    lead_low = e.fma(d, slope, -lead) + (d * slope_low + d_low * slope)
    total, lost = exact_sum(-logarithm, lead)
    total, more = exact_sum(value, total)
    low = (lost + more) + (value_low + lead_low - (logarithm_low + rest / whole))
    return e.select(at_pole, float("inf"), total + low)


def _between_poles(e: Emitter, x: Value, found: Value) -> Value:
    """The reflection as it is written."""
    size = -x
    wave = e.abs(sinpi(e, size) * size)
    other = -log(e, wave * (1 / math.pi)) - found
    there = e.select(e.eq(wave, 0), float("inf"), other)
    there = e.select(e.eq(size, float("inf")), x, there)  # as in SciPy
    # gamma(x) is 1/x, and x sin(pi x) might be 0
    return e.select(size < 2.0 ** -(MANTISSA[x.type.element] + 4), found, there)


def _positive(e: Emitter, x: Value) -> Value:
    """log(gamma(x)) for x >= 0; sums are of two parts each, for they are small near 1 and 2."""
    element, type = x.type.element, x.type
    one, infinity = e.constant(type, 1), float("inf")
    far, low, least = x >= 8, x < 1.5, x < 0.5
    # to [3/2, 5/2]: up by x or x (x + 1), down by (x - 1) (x - 2) …
    next_, next_low = fast_sum(one, x)
    twice = x * next_
    product = e.select(low, e.select(least, twice, x), one)
    t = e.select(low, e.select(least, x, x - 1), x - 2)
    for k in range(1, 7):
        more = (x >= k + 1.5) & ~far
        product = e.select(more, product * (x - k), product)
        t = e.select(more, t - 1, t)
    logarithm, lost = log_pair(e, e.select(far, x, product))
    # what the product x (x + 1) lost
    apart = (e.fma(x, next_, -twice) + x * next_low) / twice
    lost = lost + e.select(least & (x > TINY), apart, 0)
    slope, unseen = split_constant(AT_TWO, element)
    second, *others = LGAMMA[element]
    bend = e.fma(e.polynomial(t, others), t, second)
    more = t * bend
    factor, factor_low = fast_sum(e.constant(type, slope), more)
    factor_low = factor_low + (e.fma(t, bend, -more) + unseen)
    around = t * factor
    around_low = e.fma(t, factor, -around) + t * factor_low
    sign = e.select(low, -one, one)
    total, rest = exact_sum(around, logarithm * sign)
    near = total + (rest + e.fma(lost, sign, around_low))
    inverse = 1 / x
    series = inverse * e.polynomial(inverse * inverse, STIRLING[element])
    less, less_low = fast_sum(logarithm, e.constant(type, -1))
    half = x - 0.5
    lead = half * less
    lead_low = e.fma(half, less, -lead) + half * (less_low + lost)
    beyond, beyond_low = fast_sum(lead, e.constant(type, 0.5 * math.log(2 * math.pi) - 0.5))
    found = beyond + (beyond_low + (lead_low + series))
    found = e.select(lead < infinity, found, lead)
    found = e.select(far, found, near)
    return e.select(e.eq(x, 0) | e.eq(x, infinity), infinity, found)
