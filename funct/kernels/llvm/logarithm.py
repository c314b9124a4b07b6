"""log and its kin: the exponent times ln2, and a series at a mantissa around 1.

Source: W. Cody, W. Waite, "Software manual for the elementary functions", 1980; P. Tang, "Table-
    driven implementation of the logarithm function", 1990, where tables stand in registers.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from funct.kernels.llvm.base_cells import (
    LOG2_CELLS,
    LOG2_HIGH,
    LOG2_LOW,
    LOG10_HIGH,
    LOG10_LOW,
)
from funct.kernels.llvm.cells import LOG2_FROM, LOG_CELLS
from funct.kernels.llvm.coefficients.logarithm import ATANH, LOG, LOG_CELL
from funct.kernels.llvm.exponential import LN2, LOG2_E, exp
from funct.kernels.llvm.rare import rarely
from funct.kernels.llvm.scaling import (
    MANTISSA,
    apart,
    apart_normal,
    below_two,
    bits_of,
    fast_sum,
    is_between,
    is_normal,
    octave,
    split_constant,
)
from funct.kernels.llvm.tables import has_tables, looked_up

if TYPE_CHECKING:
    from funct.kernels.llvm.emitter import Emitter
    from funct.kernels.llvm.values import Value

__all__ = [
    "cell_to_base", "log", "log10", "log1p", "log2", "log_of_normal", "log_of_sum", "log_pair",
    "log_sigmoid", "logaddexp", "softplus",
]  # fmt: skip

LOG10_E = "0.434294481903251827651128918916605082294397005803666566114453783166"
LOG10_2 = "0.301029995663981195213738894724493026768189881462108541310427461127"
_LOGS_OF_CELLS = {"log2": (LOG2_HIGH, LOG2_LOW), "log10": (LOG10_HIGH, LOG10_LOW)}
INFINITY = float("inf")
HUGE = 2.0**100  # from where on log1p is log


def beyond_f(e: Emitter, f: Value) -> Value:
    """log(1 + f) - f for sqrt(1/2) <= 1 + f <= sqrt(2)."""
    half = f * f * 0.5
    if f.type.element == "f32":
        return e.fma(f * f * f, e.polynomial(f, LOG["f32"]), -half)
    s = f / (f + 2)
    z = s * s
    return s * (half + z * e.polynomial(z, ATANH["f64"])) - half


def at_the_ends(e: Emitter, x: Value, result: Value) -> Value:
    """The result where 0 < x < inf; -inf at 0, inf at inf, NaN below."""
    ends = e.select(e.eq(x, 0), -INFINITY, e.select(e.eq(x, INFINITY), x, float("nan")))
    return e.select((x > 0) & (x < INFINITY), result, ends)


def log(e: Emitter, x: Value) -> Value:
    """The natural logarithm; at most 1.2 ulp."""
    found = log_of_normal(e, x)
    return rarely(e, ~is_normal(e, x), "log_rest", _log_rest, [x], found)


def log_of_normal(e: Emitter, x: Value) -> Value:
    """The natural logarithm of a normal number x > 0; of others anything."""
    if not has_tables(e):
        return _of_parts(e, *apart_normal(e, x))
    type, element = x.type, x.type.element
    m, k, index = cell(e, x)
    inverse, value = (looked_up(e, type, column, index) for column in LOG_CELLS[element])
    f = e.fma(m, inverse, -1)
    near = e.fma(f * f, e.polynomial(f, LOG_CELL[element]), f)
    high, low = split_constant(LN2, element)
    return e.fma(k, high, value + e.fma(k, low, near))


def cell(e: Emitter, x: Value) -> tuple[Value, Value, Value]:
    """(m, k, index) with x = m 2^k, and in which of 16 cells of an octave m lies."""
    element = x.type.element
    m, k, _ = octave(e, x, LOG2_FROM)
    place = e.bitcast(x, x.type.integer) - bits_of(LOG2_FROM, element)
    return m, k, place >> (MANTISSA[element] - 4)


def cell_to_base(e: Emitter, x: Value) -> tuple[Value, Value, Value]:
    """The same for logarithms to a base: of float32 m is in [1, 2), and in one of 32 cells."""
    if x.type.element == "f64":
        return cell(e, x)
    m, k = below_two(e, x)
    return m, k, e.bitcast(m, x.type.integer) >> (MANTISSA["f32"] - 5)


def _of_parts(e: Emitter, m: Value, k: Value) -> Value:
    """log(m 2^k)."""
    high, low = split_constant(LN2, m.type.element)
    f = m - 1
    return e.fma(k, high, f + e.fma(k, low, beyond_f(e, f)))


def _log_rest(e: Emitter, x: Value) -> Value:
    """The logarithm of any number."""
    return at_the_ends(e, x, _of_parts(e, *apart(e, x)))


def log_pair(e: Emitter, x: Value) -> tuple[Value, Value]:
    """The natural logarithm of 0 < x < inf in two parts."""
    m, k = apart(e, x)
    short = round(float(LN2) * 2**12) / 2**12  # times k it is exact
    long = split_constant(Fraction(LN2) - Fraction(short), x.type.element, 1)[0]
    f = m - 1
    total, lost = fast_sum(k * short, f)
    return fast_sum(total, lost + e.fma(k, long, beyond_f(e, f)))


def log_of_sum(e: Emitter, x: Value, rest: Value) -> Value:
    """log(x + rest) for a normal number 0 < x < HUGE and what it lacks."""
    element, type = x.type.element, x.type
    high, low = split_constant(LN2, element)
    m, k, step = octave(e, x)
    down = e.bitcast(bits_of(1, element) - step, type)
    f = e.fma(rest, down, m - 1)
    return e.fma(k, high, f + e.fma(k, low, beyond_f(e, f)))


def log1p(e: Emitter, x: Value) -> Value:
    """log(1 + x); at most 1.5 ulp."""
    whole = x + 1
    found = e.copysign(_log1p_usual(e, x), x)
    rare = ~is_between(e, whole, 2.0**-60, HUGE)
    return rarely(e, rare, "log1p_rest", _log1p_rest, [x], found)


def _log1p_usual(e: Emitter, x: Value) -> Value:
    """log1p for -1 < x < HUGE, and of NaN; the sign of zero is lost."""
    most, least = e.max(x, 1), e.min(x, 1)
    whole = x + 1
    return log_of_sum(e, whole, least - (whole - most))


def _log1p_rest(e: Emitter, x: Value) -> Value:
    """log1p at its ends and beyond."""
    return _log_rest(e, x + 1)


def _to_base(e: Emitter, x: Value, m: Value, k: Value, factor: str, step: str) -> Value:
    """log(m 2^k) · factor, with the logarithm of 2 to that base; the leading sum in two floats."""
    element = x.type.element
    high, low = split_constant(factor, element)
    f = m - 1
    lead = f * high
    rest = e.fma(beyond_f(e, f), high, e.fma(f, low, e.fma(f, high, -lead)))
    short, long = _short_and_long(step, element)
    exponent = k * short if short != 1 else k
    total = exponent + lead
    lost = (exponent - total) + lead
    return total + ((e.fma(k, long, rest) if long else rest) + lost)


def _short_and_long(step: str, element: str) -> tuple[float, float]:
    """A logarithm of 2 in two parts, of which exponents times the first one are exact."""
    short = round(float(step) * 2**12) / 2**12
    return short, split_constant(Fraction(step) - Fraction(short), element, 1)[0]


def _to_base_by_table(e: Emitter, x: Value, name: str, factor: str, step: str) -> Value:
    """The same, of float64 for normal numbers x > 0: what is not exact is small, and added once."""
    type, element = x.type, x.type.element
    m, k, index = cell_to_base(e, x)
    inverse, above, below = (
        looked_up(e, type, numbers[element], index)
        for numbers in (LOG2_CELLS, *_LOGS_OF_CELLS[name])
    )
    high, low = split_constant(factor, element)
    short, long = _short_and_long(step, element)
    base = e.fma(k, short, above) if short != 1 else k + above
    tail = e.fma(k, long, below) if long else below
    if element == "f64":
        near = m * inverse
        lost = e.fma(m, inverse, -near)
        f = near - 1  # exact; log(1 + f + lost) is log(1 + f) + lost / (1 + f)
        tail = e.fma(e.fma(-lost, f, lost), high, tail)
    else:
        f = e.fma(m, inverse, -1)  # exact
    curve = e.polynomial(f, [c * high for c in LOG_CELL[element]])
    total = e.fma(f, high, base)
    rest = e.fma(f, low, tail)
    rest = e.fma(f * f, curve, rest + e.fma(f, high, base - total))
    found = total + rest
    return e.select(e.abs(k) < INFINITY, found, total) if element == "f32" else found


def _of_base(e: Emitter, x: Value, name: str, factor: str, step: str) -> Value:
    """The logarithm to a base."""

    def rest(f: Emitter, x: Value) -> Value:
        return at_the_ends(f, x, _to_base(f, x, *apart(f, x), factor, step))

    if not has_tables(e):
        found = _to_base(e, x, *apart_normal(e, x), factor, step)
    else:
        found = _to_base_by_table(e, x, name, factor, step)
        if x.type.element == "f32":  # of any number
            return found
    return rarely(e, ~is_normal(e, x), f"{name}_rest", rest, [x], found)


def log2(e: Emitter, x: Value) -> Value:
    """The logarithm to base 2; at most 1.2 ulp, 0.6 by tables, exact at powers of 2."""
    return _of_base(e, x, "log2", LOG2_E, "1")


def log10(e: Emitter, x: Value) -> Value:
    """The logarithm to base 10; at most 1.2 ulp, 0.6 by tables."""
    return _of_base(e, x, "log10", LOG10_E, LOG10_2)


def softplus(e: Emitter, x: Value) -> Value:
    """log(1 + e^x), without overflow; at most 2 ulp."""
    return e.maximum(x, 0) + _log1p_usual(e, exp(e, -e.abs(x)))


def log_sigmoid(e: Emitter, x: Value) -> Value:
    """-softplus(-x)."""
    return e.minimum(x, 0) - _log1p_usual(e, exp(e, -e.abs(x)))


def logaddexp(e: Emitter, x: Value, y: Value) -> Value:
    """log(e^x + e^y), without overflow; the absolute error is that of the larger one."""
    larger = e.maximum(x, y)
    result = larger + _log1p_usual(e, exp(e, -e.abs(x - y)))
    return e.select(e.eq(x, y), x + float(LN2), result)
