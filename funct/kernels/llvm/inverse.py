"""asin, acos, atan, atan2: polynomials near 0, and identities that lead there.

Source: W. Cody, W. Waite, "Software manual for the elementary functions", 1980; DLMF 4.24.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from funct.kernels.llvm.coefficients.trigonometric import ASIN, ATAN
from funct.kernels.llvm.scaling import LARGEST_EXPONENT, root_pair, split_constant
from funct.kernels.llvm.trigonometric import HALF_PI, PI

if TYPE_CHECKING:
    from funct.kernels.llvm.emitter import Emitter
    from funct.kernels.llvm.values import Value

__all__ = ["acos", "asin", "atan", "atan2"]

QUARTER_PI = "0.78539816339744830961566084581987572104929234984377645524373614807695410157155225"
TAN_EIGHTH = 0.41421356237309503  # tan(pi / 8)


def _arc(e: Emitter, x: Value) -> tuple[Value, Value, Value]:
    """(|x| > 1/2, a, rest): asin|x| = a + rest, or pi/2 - 2 (a + rest) where |x| > 1/2."""
    size = e.abs(x)
    big = size > 0.5
    z = e.select(big, (1 - size) * 0.5, size * size)
    # half an ulp of the root would be a whole one of pi/2 - 2 a
    root, lost = root_pair(e, z)
    a = e.select(big, root, size)
    return big, a, e.fma(a * z, e.polynomial(z, ASIN[x.type.element]), e.select(big, lost, 0))


def asin(e: Emitter, x: Value) -> Value:
    """The angle in [-pi/2, pi/2] whose sine is x; at most 1.6 ulp."""
    high, low = split_constant(HALF_PI, x.type.element)
    big, a, rest = _arc(e, x)
    return e.copysign(e.select(big, (high - a * 2) - (rest * 2 - low), a + rest), x)


def acos(e: Emitter, x: Value) -> Value:
    """The angle in [0, pi] whose cosine is x; at most 1.5 ulp."""
    half_high, half_low = split_constant(HALF_PI, x.type.element)
    high, low = split_constant(PI, x.type.element)
    big, a, rest = _arc(e, x)
    below = x < 0
    toward = e.select(below, (high - a * 2) - (rest * 2 - low), (a + rest) * 2)
    a, rest = e.copysign(a, x), e.select(below, -rest, rest)
    return e.select(big, toward, half_high - (a - (half_low - rest)))


def atan(e: Emitter, x: Value) -> Value:
    """The angle in [-pi/2, pi/2] whose tangent is x; at most 2 ulp."""
    size = e.abs(x)
    far, middle = size > 1 / TAN_EIGHTH, size > TAN_EIGHTH
    above = e.select(far, -1, e.select(middle, size - 1, size))
    below = e.select(far, size, e.select(middle, size + 1, 1))
    half, quarter = (split_constant(v, x.type.element) for v in (HALF_PI, QUARTER_PI))
    base, low = (
        e.select(far, e.constant(x.type, h), e.select(middle, e.constant(x.type, q), 0))
        for h, q in zip(half, quarter)
    )
    t = above / below
    z = t * t
    rest = e.fma(t * z, e.polynomial(z, ATAN[x.type.element]), low)
    return e.copysign(base + (t + rest), x)


def atan2(e: Emitter, y: Value, x: Value) -> Value:
    """The angle of the point (x, y), in [-pi, pi]; at most 2 ulp. Signs of zeros count as in C."""
    element = x.type.element
    a, b = e.abs(x), e.abs(y)
    steep = b > a
    most, least = e.select(steep, b, a), e.select(steep, a, b)
    # sums must not overflow
    scale = e.select(most > 2.0 ** (LARGEST_EXPONENT[element] - 3), e.constant(x.type, 0.25), 1)
    large, small = most * scale, least * scale
    infinite = e.eq(least, float("inf"))
    middle = (small > large * TAN_EIGHTH) | infinite
    t = e.select(middle, small - large, small) / e.select(middle, small + large, large)
    t = e.select(e.eq(most, 0) | infinite, 0, t)
    # the angle is an integer number of eighth turns plus or minus atan(t)
    left = e.bitcast(x, x.type.integer) < 0
    eighths = e.select(middle, e.constant(x.type, 1), 0)
    eighths = e.select(steep, 2 - eighths, eighths)
    eighths = e.select(left, 4 - eighths, eighths)
    t = e.select(steep ^ left, -t, t)
    high, low = split_constant(QUARTER_PI, element)
    base = eighths * high
    z = t * t
    rest = e.fma(eighths, low, e.fma(eighths, high, -base))
    rest = e.fma(t * z, e.polynomial(z, ATAN[element]), rest)
    found = e.copysign(base + (t + rest), y)
    return e.select(e.isnan(x) | e.isnan(y), x + y, found)
