"""pow, roots and hypot.

pow needs more digits of the logarithm than a float has, since the exponent multiplies its error:
pairs of floats (T. Dekker, "A floating-point technique for extending the available precision",
1971), or float64 for float32. Where tables stand in registers, the logarithm begins with one (P.
Tang, "Table-driven implementation of the logarithm function", 1990).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from funct.kernels.llvm.base_cells import LOG2_CELLS, LOG2_HIGH, LOG2_LOW
from funct.kernels.llvm.coefficients.exponential import EXP2_WHOLE, EXP_SHORT
from funct.kernels.llvm.coefficients.logarithm import ATANH_SHORT, ATANH_TAIL, LOG_TAIL
from funct.kernels.llvm.coefficients.root import CBRT
from funct.kernels.llvm.exponential import LN2, LOG2_E, small
from funct.kernels.llvm.logarithm import cell_to_base
from funct.kernels.llvm.rare import rarely
from funct.kernels.llvm.scaling import (
    BIAS,
    MANTISSA,
    apart,
    bits_of,
    fast_sum,
    is_between,
    is_normal,
    nearest,
    pow2,
    scaled,
    split_constant,
)
from funct.kernels.llvm.tables import has_tables, looked_up

if TYPE_CHECKING:
    from funct.kernels.llvm.emitter import Emitter
    from funct.kernels.llvm.values import Value

__all__ = ["cbrt", "hypot", "power", "rsqrt", "square"]

INFINITY = float("inf")
CBRT_LEAST = {"f32": 2.0**-80, "f64": 2.0**-900}
CBRT_OFFSET = 0.068  # makes errors alike to both sides


def power(e: Emitter, x: Value, y: Value) -> Value:
    """x^y; at most 1.2 ulp. Special values are those of C (IEEE 754 pow)."""
    if not has_tables(e):
        return _power_signed(e, x, y)
    found, usual = _by_table(e, x, y)
    return rarely(e, ~(is_normal(e, x) & usual), "pow_signed", _power_signed, [x, y], found)


def _power_signed(e: Emitter, x: Value, y: Value) -> Value:
    """x^y, also of negative numbers."""
    size = e.abs(x)
    if has_tables(e):
        found, usual = _by_table(e, size, y)
    else:
        found, usual = _positive(e, size, y), e.abs(y) < INFINITY
    found = _with_sign(e, x, y, found)
    return rarely(e, ~(is_normal(e, size) & usual), "pow_rest", _power_rest, [x, y], found)


def _with_sign(e: Emitter, x: Value, y: Value, raised: Value) -> Value:
    """x^y given |x|^y: NaN where there is none."""
    integer = e.eq(e.trunc(y), y)
    half = y * 0.5
    odd = integer & e.ne(e.trunc(half), half)
    raised = e.select(odd, e.copysign(raised, x), raised)
    return e.select((x < 0) & (x > -INFINITY) & ~integer, float("nan"), raised)


def _positive(e: Emitter, x: Value, y: Value) -> Value:
    """x^y for 0 < x < inf and finite y."""
    return _power32(e, x, y) if x.type.element == "f32" else _power64(e, x, y)


def _power_rest(e: Emitter, x: Value, y: Value) -> Value:
    """x^y of any numbers."""
    size = e.abs(x)
    raised = _positive(e, size, y)
    raised = e.select(e.eq(size, 0), e.select(y < 0, e.constant(x.type, INFINITY), 0), raised)
    infinite = e.select(y < 0, e.constant(x.type, 0), INFINITY)
    raised = e.select(e.eq(size, INFINITY), infinite, raised)
    raised = _with_sign(e, x, y, raised)
    flat = e.eq(x, -1) & e.eq(e.abs(y), INFINITY)
    raised = e.select(e.isnan(x) | e.isnan(y), x + y, raised)
    return e.select(e.eq(x, 1) | e.eq(y, 0) | flat, 1, raised)


def _by_table(e: Emitter, x: Value, y: Value) -> tuple[Value, Value]:
    """x^y for normal numbers x > 0, and the mask where that is a normal number."""
    element = x.type.element
    high, low = _log2_by_table(e, x)
    exponent = y * high
    lost = e.fma(y, high, -exponent)
    usual = e.abs(exponent) < BIAS[element] - 1
    n, bits = nearest(e, exponent, 1, 2 * BIAS[element])
    r = (exponent - n) + e.fma(y, low, lost)
    power = e.fma(r, e.polynomial(r, EXP2_WHOLE[element]), 1)
    return scaled(e, power, n, bits), usual


def _log2_by_table(e: Emitter, x: Value) -> tuple[Value, Value]:
    """log2 of a normal number x > 0 as the sum of two floats, to 2^-34 or 2^-64."""
    type, element = x.type, x.type.element
    m, k, index = cell_to_base(e, x)
    c = looked_up(e, type, LOG2_CELLS[element], index)
    if element == "f32":
        r, r_low = e.fma(m, c, -1), None  # exact
    else:
        near = m * c
        r, r_low = near - 1, e.fma(m, c, -near)
    # log(1 + r) = r - r²/2 + r³ P(r): but for the last term, in two parts
    square = r * r
    log = e.fma(square, -0.5, r)
    log_low = e.fma(square, -0.5, r - log)
    tail = e.fma(r, r, -square) * -0.5
    if r_low is not None:
        slope = e.fma(-r, e.fma(-r, 1 - r, 1), 1)  # 1 / (1 + r)
        tail = e.fma(r_low, slope, tail)
    tail = e.fma(r * square, e.polynomial(r, LOG_TAIL[element]), tail)
    log_low = log_low + tail
    factor, factor_low = split_constant(LOG2_E, element)
    b = log * factor
    b_low = e.fma(log, factor, -b) + e.fma(log, factor_low, log_low * factor)
    base = k + looked_up(e, type, LOG2_HIGH[element], index)
    high, lost = fast_sum(base, b)
    return fast_sum(high, lost + (b_low + looked_up(e, type, LOG2_LOW[element], index)))


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
    size = e.abs(x)
    found = e.copysign(_cube_root(e, size), x)
    # where y³ and its error are normal numbers as well
    usual = is_between(e, size, CBRT_LEAST[x.type.element], INFINITY)
    return rarely(e, ~usual, "cbrt_rest", _cbrt_rest, [x], found)


def _cube_root(e: Emitter, x: Value) -> Value:
    """The cube root of x >= CBRT_LEAST."""
    element = x.type.element
    r = _inverse_cube_root(e, x)
    r = r * e.polynomial(e.fma(-x * r, r * r, 1), CBRT[element])
    if element == "f64":  # Newton's step
        r = e.fma(r * (1 / 3), e.fma(-x * r, r * r, 1), r)
    square = r * r
    y = x * square
    # a step for y itself, with what y² lost
    squared = y * y
    excess = e.fma(squared, y, -x) + e.fma(y, y, -squared) * y
    return e.fma(excess * (-1 / 3), square, y)


def _inverse_cube_root(e: Emitter, x: Value) -> Value:
    """x^(-1/3) to a twentieth: bits are about a logarithm, so a third of them are its root's.

    The upper half of float64's bits is enough, and all that AVX2 converts.
    """
    type, mantissa = x.type, MANTISSA[x.type.element]
    bits = e.bitcast(x, type.unsigned)
    shift = {"f32": 8, "f64": 32}[type.element]
    one = 2.0**mantissa
    high = e.bitcast((bits >> shift) | bits_of(one, type.element), type)  # one + the upper bits
    unit = bits_of(1, type.element) / 2**shift
    place = unit * 4 / 3 - CBRT_OFFSET * 2.0 ** (mantissa - shift)
    pushed = e.fma(high, -1 / 3, one + one / 3 + place)
    return e.bitcast(e.bitcast(pushed, type.unsigned) << shift, type)


def _cbrt_rest(e: Emitter, x: Value) -> Value:
    """The cube root of numbers below, zeros, infinities and NaN."""
    steps = {"f32": 24, "f64": 60}[x.type.element]
    y = _cube_root(e, e.abs(x) * 2.0 ** (3 * steps)) * 0.5**steps
    return e.select(e.eq(x, 0) | ~(e.abs(x) < INFINITY), x, e.copysign(y, x))


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
