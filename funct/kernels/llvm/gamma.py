"""log|gamma(x)|: Stirling's series far out, a polynomial around 2, recurrence and reflection.

Source: DLMF 5.5, 5.11.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from funct.kernels.llvm.coefficients import LGAMMA, STIRLING
from funct.kernels.llvm.logarithm import log, log_pair
from funct.kernels.llvm.rare import rarely
from funct.kernels.llvm.scaling import MANTISSA, exact_sum, fast_sum, split_constant
from funct.kernels.llvm.trigonometric import sinpi

if TYPE_CHECKING:
    from funct.kernels.llvm.emitter import Emitter
    from funct.kernels.llvm.values import Value

__all__ = ["gammaln"]

AT_TWO = "0.422784335098467139393487909917597568957840664"  # the slope there: 1 - Euler's constant
TINY = 2.0**-20  # x (x + 1) is x below, but for what no sum shows


def gammaln(e: Emitter, x: Value) -> Value:
    """log|gamma(x)|; inf at 0, -1, -2 ….

    At most 2 ulp; but near zeros at negative x it is the absolute error of float64 that is small.
    """
    found = _positive(e, e.abs(x))
    return rarely(e, x < 0, "gammaln_left", _reflected, [x, found], found)


def _reflected(e: Emitter, x: Value, found: Value) -> Value:
    """gamma(x) gamma(-x) = -pi / (x sin(pi x)), of which `found` is what -x has; x < 0.

    Both logarithms may cancel: float32 takes them in float64, as SciPy does.
    """
    if x.type.element == "f32":
        wide = e.convert(x, "f64")
        return e.convert(_reflected(e, wide, _positive(e, -wide)), "f32")
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
