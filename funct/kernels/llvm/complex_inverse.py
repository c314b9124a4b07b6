"""asin, acos, atan of complex numbers and their hyperbolic kin: sums of positive terms, so that no
part cancels near 1 and on the branch cuts; atan2 turns them into angles.

Sources: T. Hull, T. Fairgrieve, P. Tang, "Implementing the complex arcsine and arccosine functions
using exception handling", 1997; W. Kahan, "Branch cuts for complex elementary functions", 1987.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from funct.kernels.llvm import inverse, logarithm, power
from funct.kernels.llvm.complex_parts import INFINITY, LN2, infinite, sign, widened

if TYPE_CHECKING:
    from funct.kernels.llvm.emitter import Emitter
    from funct.kernels.llvm.values import Value

    Parts = tuple[Value, Value]

__all__ = ["acos", "acosh", "asin", "asinh", "atan", "atanh"]

HALF_PI = 1.5707963267948966
LARGE = 2.0**500  # from here on squares may be infinite, and 1 counts for nothing beside it


def _arc(e: Emitter, a: Value, b: Value) -> tuple[Value, Value, Value]:
    """(x, y, v) of asin(x₀ + ib) = atan(x / y) + iv, x and x₀ being |a|, with the sign of b left
    to be given to v.
    """
    x, y = e.abs(a), e.abs(b)
    large, one = e.max(x, y) > LARGE, e.constant(a.type, 1)
    scale = e.select(large, 2.0**-300, one)
    right = power.hypot(e, e.select(large, x * 2.0**-300, x + 1), y * scale)
    left = e.select(e.eq(x, 1), y, e.sqrt(e.fma(x - 1, x - 1, y * y)))
    total, size = right + x + 1, left + e.abs(x - 1)
    mean = (right + left) * 0.5
    # mean - x, or mean - 1, is half of a sum of quotients, or y² times half of such a sum
    near, far = y * y / total + size, 1 / total + 1 / size
    below = x <= 1
    across = e.sqrt((mean + x) * e.select(below, near, far) * 0.5) * e.select(below, one, y)
    below = x < 1
    over = e.select(below, y * y * far, near) * 0.5
    root = e.sqrt((mean + 1) * e.select(below, far, near) * 0.5) * e.select(below, y, one)
    v = logarithm.log1p(e, e.select(large, right, over + root))
    v = v + e.select(large, 301 * LN2, e.constant(a.type, 0))
    v = e.select(e.eq(x, INFINITY) | e.eq(y, INFINITY), INFINITY, v)
    return x, e.select(large, y, across), v


@widened
def asin(e: Emitter, a: Value, b: Value) -> Parts:
    """asin(a + ib), the real part in [-π/2, π/2]."""
    x, y, v = _arc(e, a, b)
    re = e.copysign(inverse.atan2(e, x, y), a)
    return e.select(e.eq(a, 0), a, re), e.copysign(v, b)


@widened
def acos(e: Emitter, a: Value, b: Value) -> Parts:
    """acos(a + ib), the real part in [0, π]."""
    _, y, v = _arc(e, a, b)
    re = e.select(e.eq(a, 0), HALF_PI, inverse.atan2(e, y, a))
    return re, -e.copysign(v, b)


def acosh(e: Emitter, a: Value, b: Value) -> Parts:
    """acosh(a + ib) by acos: its imaginary part is in [-π, π]."""
    re, im = acos(e, a, b)
    return e.abs(im), e.copysign(re, b)


def asinh(e: Emitter, a: Value, b: Value) -> Parts:
    """asinh(a + ib) by asin(b + ia)."""
    re, im = asin(e, b, a)
    return im, re


@widened
def atanh(e: Emitter, a: Value, b: Value) -> Parts:
    """atanh(a + ib), the imaginary part in [-π/2, π/2]."""
    x, y = e.abs(a), e.abs(b)
    large, tiny = e.max(x, y) > LARGE, e.eq(x, 1) & (y < 2.0**-160)
    # log(2 / y) / 2 where y² is nothing
    from_one = e.fma(x - 1, x - 1, y * y)
    ratio = e.select(tiny, 2.0**-100, x * 4) / e.select(tiny, y, from_one)
    grown = logarithm.log1p(e, ratio) + e.select(tiny, 101 * LN2, e.constant(a.type, 0))
    re = grown * e.select(tiny, 0.5, e.constant(a.type, 0.25))
    # 1 / z
    size = power.hypot(e, x * 0.25, y * 0.25)
    re = e.select(large, x * 0.25 / size / size * 0.25, re)
    re = e.select(infinite(e, a) | infinite(e, b), 0, re)
    re = e.select(e.eq(a, 0), a, e.copysign(re, a))
    im = inverse.atan2(e, b * 2, e.fma(-y, y, (1 - x) * (1 + x))) * 0.5
    im = e.select(large & ~e.isnan(b) & (infinite(e, b) | ~e.isnan(a)), sign(e, b, HALF_PI), im)
    return re, im


def atan(e: Emitter, a: Value, b: Value) -> Parts:
    """atan(a + ib) by atanh(b + ia)."""
    re, im = atanh(e, b, a)
    return im, re
