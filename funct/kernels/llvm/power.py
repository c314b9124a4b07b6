"""pow, roots and hypot.

pow needs more digits of the logarithm than a float has, since the exponent multiplies its error:
float32 takes float64, float64 takes pairs of floats (T. Dekker, "A floating-point technique for
extending the available precision", 1971).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from funct.kernels.llvm.coefficients import ATANH_SHORT, ATANH_TAIL, CBRT, EXP_SHORT
from funct.kernels.llvm.exponential import LN2, LOG2_E, small
from funct.kernels.llvm.scaling import (
    BIAS,
    MANTISSA,
    apart,
    nearest,
    pow2,
    scaled,
    split_constant,
)

if TYPE_CHECKING:
    from funct.kernels.llvm.emitter import Emitter
    from funct.kernels.llvm.values import Value

__all__ = ["cbrt", "hypot", "power", "rsqrt", "square"]

INFINITY = float("inf")


def power(e: Emitter, x: Value, y: Value) -> Value:
    """x^y; at most 1.2 ulp. Special values are those of C (IEEE 754 pow)."""
    size = e.abs(x)
    raised = _power32(e, size, y) if x.type.element == "f32" else _power64(e, size, y)
    raised = e.select(e.eq(size, 0), e.select(y < 0, e.constant(x.type, INFINITY), 0), raised)
    infinite = e.select(y < 0, e.constant(x.type, 0), INFINITY)
    raised = e.select(e.eq(size, INFINITY), infinite, raised)
    integer = e.eq(e.trunc(y), y)
    half = y * 0.5
    odd = integer & e.ne(e.trunc(half), half)
    raised = e.select(odd, e.copysign(raised, x), raised)
    no_real = (x < 0) & (x > -INFINITY) & ~integer
    raised = e.select(no_real, float("nan"), raised)
    flat = e.eq(x, -1) & e.eq(e.abs(y), INFINITY)
    raised = e.select(e.isnan(x) | e.isnan(y), x + y, raised)
    return e.select(e.eq(x, 1) | e.eq(y, 0) | flat, 1, raised)


def _power32(e: Emitter, x: Value, y: Value) -> Value:
    """x^y for 0 < x < inf, by float64."""
    m, k = apart(e, e.convert(x, "f64"))
    f = m - 1
    s = f / (f + 2)
    z = s * s
    log = e.fma(s * z, e.polynomial(z, ATANH_SHORT["f64"]), s * 2)
    exponent = e.convert(y, "f64") * e.fma(log, float(LOG2_E), k)
    exponent = e.min(200, e.max(-200, exponent))
    n, bits = nearest(e, exponent, 1, BIAS["f64"])
    r = (exponent - n) * float(LN2)
    p = e.fma(r * r, e.polynomial(r, EXP_SHORT["f64"]), r)
    return e.convert((p + 1) * pow2(e, bits, p.type), "f32")


def _power64(e: Emitter, x: Value, y: Value) -> Value:
    """x^y for 0 < x < inf, by pairs of float64."""
    high, low = _log2_pair(e, x)
    exponent = y * high
    lost = e.fma(y, high, -exponent) + y * low
    far = e.abs(exponent) > 1200
    lost = e.select(far, 0, lost)
    exponent = e.min(1200, e.max(-1200, exponent))
    n, bits = nearest(e, exponent, 1, 2 * BIAS["f64"])
    r = ((exponent - n) + lost) * float(LN2)
    return scaled(e, small(e, r) + 1, n, bits)


def _log2_pair(e: Emitter, x: Value) -> tuple[Value, Value]:
    """log2(x) as the sum of two floats, to 2^-66."""
    m, k = apart(e, x)
    f = m - 1
    below = m + 1
    below_low = m - (below - 1)
    inverse = 1 / below
    s = f * inverse
    s_low = (e.fma(-s, below, f) - s * below_low) * inverse
    # atanh(s) = s + s (s²/3 + s⁴ T(s²)): only the first two terms need both halves
    z = s * s
    z_low = e.fma(s, s, -z) + s * s_low * 2
    third, third_low = split_constant("1/3", "f64")
    lead = z * third
    lead_low = e.fma(z, third, -lead) + e.fma(z, third_low, z_low * third)
    tail = z * z * e.polynomial(z, ATANH_TAIL["f64"])
    w = lead + tail
    w_low = (lead - w) + tail + lead_low
    p = s * w
    p_low = e.fma(s, w, -p) + e.fma(s, w_low, s_low * w)
    a = s + p
    a_low = (s - a) + p + (p_low + s_low)
    factor, factor_low = (2 * v for v in split_constant(LOG2_E, "f64"))
    b = a * factor
    b_low = e.fma(a, factor, -b) + e.fma(a, factor_low, a_low * factor)
    total = k + b
    rest = ((k - total) + b) + b_low
    high = total + rest
    return high, (total - high) + rest


def square(e: Emitter, x: Value) -> Value:
    """x²."""
    return x * x


def rsqrt(e: Emitter, x: Value) -> Value:
    """1 / sqrt(x); at most 1 ulp."""
    return 1 / e.sqrt(x)


def cbrt(e: Emitter, x: Value) -> Value:
    """The cube root; at most 1 ulp."""
    element, type = x.type.element, x.type
    size = e.abs(x)
    denormal = size < 2.0 ** (1 - BIAS[element])
    steps = {"f32": 8, "f64": 18}[element]
    up = e.select(denormal, size * 2.0 ** (3 * steps), size)
    bits = e.bitcast(up, type.unsigned)
    mantissa = MANTISSA[element]
    one = 2.0**mantissa
    one_bits = e.bitcast(e.constant(type, one), type.unsigned)
    exponent = e.bitcast(bits >> mantissa | one_bits, type) - (one + BIAS[element])
    unit = e.bitcast(e.constant(type, 1), type.unsigned)
    m = e.bitcast((bits & ((1 << mantissa) - 1)) | unit, type)
    third, low = nearest(e, e.fma(exponent, 1 / 3, -1 / 3), 1, BIAS[element])
    left = e.fma(third, -3, exponent)  # 0, 1 or 2
    pick = [left < 0.5, left < 1.5]
    a = m * e.select(pick[0], 1, e.select(pick[1], e.constant(type, 2), 4))
    factors = 1.0, 2 ** (-1 / 3), 4 ** (-1 / 3)
    factor = e.select(pick[1], e.constant(type, factors[1]), factors[2])
    r = e.polynomial(m, CBRT[element]) * e.select(pick[0], 1, factor)
    for _ in range({"f32": 1, "f64": 2}[element]):  # Newton's, for a^(-1/3)
        r = e.fma(r * (1 / 3), e.fma(-a * r, r * r, 1), r)
    y = a * r * r
    squared = y * y
    excess = e.fma(squared, y, -a) + e.fma(y, y, -squared) * y
    y = e.fma(excess * (-1 / 3), r * r, y)
    y = y * pow2(e, low, type) * e.select(denormal, e.constant(type, 0.5**steps), 1)
    return e.select((size > 0) & (size < INFINITY), e.copysign(y, x), x)


def hypot(e: Emitter, x: Value, y: Value) -> Value:
    """sqrt(x² + y²), without overflow on the way; at most 1.5 ulp."""
    a, b = e.abs(x), e.abs(y)
    steep = b > a
    most, least = e.select(steep, b, a), e.select(steep, a, b)
    over, under = {"f32": (66, 86), "f64": (520, 600)}[x.type.element]
    large, tiny = most > 2.0 ** (over - 10), most < 2.0 ** -(over - 20)
    one = e.constant(x.type, 1)
    down = e.select(large, 0.5**over, e.select(tiny, 2.0**under, one))
    up = e.select(large, 2.0**over, e.select(tiny, 0.5**under, one))
    most, least = most * down, least * down
    found = e.sqrt(e.fma(least, least, most * most)) * up
    found = e.select(e.isnan(x) | e.isnan(y), x + y, found)
    return e.select(e.eq(a, INFINITY) | e.eq(b, INFINITY), INFINITY, found)
