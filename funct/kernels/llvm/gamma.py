"""log|gamma(x)|: Stirling's series far out, a polynomial around 2, recurrence and reflection.

Source: DLMF 5.5, 5.11.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from funct.kernels.llvm.coefficients import LGAMMA, STIRLING
from funct.kernels.llvm.logarithm import log
from funct.kernels.llvm.scaling import MANTISSA
from funct.kernels.llvm.trigonometric import sinpi

if TYPE_CHECKING:
    from funct.kernels.llvm.emitter import Emitter
    from funct.kernels.llvm.values import Value

__all__ = ["gammaln"]


def gammaln(e: Emitter, x: Value) -> Value:
    """log|gamma(x)|; inf at 0, -1, -2 ….

    For x > 0 at most 10 ulp (float32) or 6 (float64), which is between 1 and 3/2; 4 elsewhere. Near
    its zeros at negative x it is the absolute error that is small.
    """
    size = e.abs(x)
    found = _positive(e, size)
    below = x < 0

    def reflected() -> list[Value]:
        # gamma(x) gamma(-x) = -pi / (x sin(pi x))
        wave = e.abs(sinpi(e, size) * size)
        other = -log(e, wave * (1 / math.pi)) - found
        there = e.select(e.eq(wave, 0), float("inf"), other)
        there = e.select(e.eq(size, float("inf")), size, there)
        # gamma(x) is 1/x, and x sin(pi x) might be 0
        there = e.select(size < 2.0 ** -(MANTISSA[x.type.element] + 4), found, there)
        return [e.select(below, there, found)]

    return e.branch(e.any(below), reflected, lambda: [found])[0]


def _positive(e: Emitter, x: Value) -> Value:
    element, type = x.type.element, x.type
    one = e.constant(type, 1)
    far = x >= 8
    # to [3/2, 5/2]: up by x or x (x + 1), down by (x - 1) (x - 2) …
    low, least = x < 1.5, x < 0.5
    product = e.select(low, e.select(least, x * (x + 1), x), one)
    t = e.select(low, e.select(least, x, x - 1), x - 2)
    for k in range(1, 7):
        more = (x >= k + 1.5) & ~far
        product = e.select(more, product * (x - k), product)
        t = e.select(more, t - 1, t)
    logarithm = log(e, e.select(far, x, product))
    around = t * e.polynomial(t, LGAMMA[element])
    near = e.select(low, around - logarithm, around + logarithm)
    inverse = 1 / x
    series = inverse * e.polynomial(inverse * inverse, STIRLING[element])
    lead = (x - 0.5) * (logarithm - 1)
    return e.select(far, lead + (series + (0.5 * math.log(2 * math.pi) - 0.5)), near)
