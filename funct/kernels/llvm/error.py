"""erf, its inverse, erfc and the normal distribution: polynomials near 0, scaled for the tail; in
cells, where tables are registers.

Source: M. Shepherd, J. Laframboise, "Chebyshev approximation of (1 + 2 x) exp(x²) erfc x in
    0 <= x < inf", Mathematics of Computation 36 (1981); M. Giles, "Approximating the erfinv
    function", GPU Computing Gems, 2011, for the variables of the inverse.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from funct.kernels.llvm.cells import ERF_CELLS, ERF_END, ERF_STEP
from funct.kernels.llvm.coefficients.error import (
    ERF,
    ERF_NEAR,
    ERF_TAIL,
    ERFC,
    ERFINV,
    ERFINV_FAR,
    ERFINV_TAIL,
)
from funct.kernels.llvm.coefficients.exponential import EXP, EXP2_PART
from funct.kernels.llvm.exponential import LN2, LOG2_E
from funct.kernels.llvm.inverse_cells import ERFINV_CELLS
from funct.kernels.llvm.logarithm import log_of_normal
from funct.kernels.llvm.rare import rarely
from funct.kernels.llvm.scaling import (
    BIAS,
    MANTISSA,
    fast_sum,
    nearest,
    pow2,
    quotient,
    scaled,
    split_constant,
)
from funct.kernels.llvm.tables import curve, has_tables, looked_up
from funct.kernels.llvm.tail_cells import ERFC_CELLS

if TYPE_CHECKING:
    from funct.kernels.llvm.emitter import Emitter
    from funct.kernels.llvm.values import Value

__all__ = ["erf", "erfc", "erfinv", "gelu", "ndtr"]

CENTRE = {"f32": 2.0, "f64": 4.0}
AT_CENTRE = {  # exp(x²) erfc(x) (1 + 2 x) there
    "f32": "1.27697838155252871932544290454271381651299653",
    "f64": "1.23299511862555250900500654259824934097224312",
}
FIRST = {"f32": 1.0, "f64": 2.0}  # from where on x + that begins an octave of cells
TAIL = 0.7  # from where on erfc is not 1 - erf
ZERO = {"f32": 10.2, "f64": 27.9}  # erfc is 0 beyond
RARE = {"f32": 5.0, "f64": 6.25}  # -log(1 - x²) from which on erfinv's root is taken
RAREST = 2.0**-8  # 1 - x² down to which cells reach
ROOT = {"f32": 3, "f64": 4}
RATIO = {  # erfinv(x) / x by -log(1 - x²)
    0: "0.886226925452758013649083741670572591398774728061",
    3: "1.62354200646482991161650022774456995993757032811",
    9: "2.83297679872827072371400289307748424531983939533",
    16: "3.83978379741155365352816147497696378533943594385",
}


def _tail(e: Emitter, a: Value, a_low: Value | float, high: Value, low: Value) -> Value:
    """erfc(a + a_low) for a >= TAIL, or by cells for a >= 0, given its square as high + low."""
    element = a.type.element
    n, bits = nearest(e, high, -float(LOG2_E), 2 * BIAS[element])
    first = round(float(LN2) * 2**10) / 2**10  # times n it is exact
    second = split_constant(Fraction(LN2) - Fraction(first), element, 1)[0]
    part, rounding = e.fma(n, -first, -high), e.fma(n, second, low)
    r = part - rounding
    square, bend = r * r, e.polynomial(r, EXP[element])
    if has_tables(e) and element == "f64":
        power = e.fma(square, bend, r)
    else:  # where all errs by more, what rounding r lost counts
        power = r + (square * bend + ((part - r) - rounding))
    g, lost = (_by_cells if has_tables(e) else _by_quotient)(e, a, a_low)
    return scaled(e, g + e.fma(power, g, e.fma(power, lost, lost)), n, bits)


def _by_cells(e: Emitter, a: Value, a_low: Value | float) -> tuple[Value, Value]:
    """exp(x²) erfc(x) for x = a + a_low >= 0, in two parts; `has_tables`."""
    element = a.type.element
    octaves = e.fma(a, 2 / FIRST[element], 2)  # that from 2 on is the first one
    index = e.bitcast(octaves, a.type.integer) >> (MANTISSA[element] - 2)
    centre, value, *slope = (looked_up(e, a.type, c, index) for c in ERFC_CELLS[element])
    t = a - centre
    square = t * t
    steepness = e.fma(e.chain(square, slope[1::2]), t, e.chain(square, slope[::2]))
    change = t * steepness if isinstance(a_low, float) else e.fma(a_low, steepness, t * steepness)
    return fast_sum(value, change)


def _by_quotient(e: Emitter, a: Value, a_low: Value | float) -> tuple[Value, Value]:
    """The same for a >= TAIL."""
    element = a.type.element
    k = CENTRE[element]
    q = (a - k) / (a + k)
    slope, *others = ERFC[element]
    constant, unseen = split_constant(AT_CENTRE[element], element)
    # the last steps decide the error: what they round off is kept
    rest = q * e.fma(e.polynomial(q, others), q, slope)
    above, above_low = fast_sum(e.constant(a.type, constant), rest)
    above_low = above_low + unseen
    below = e.fma(a, 2, 1)
    below_low = (a * 2 - (below - 1)) + 2 * a_low
    return quotient(e, above, below, above_low, below_low)


def _square(e: Emitter, a: Value) -> tuple[Value, Value]:
    high = a * a
    return high, e.fma(a, a, -high)


def erf(e: Emitter, x: Value) -> Value:
    """2/sqrt(pi) times the integral of exp(-t²) from 0 to x; at most 1.4 ulp."""
    element = x.type.element
    size = e.abs(x)
    if has_tables(e):
        a = e.min(ERF_END[element], size)
        return e.copysign(curve(e, a, ERF_STEP[element], ERF_CELLS[element]), x)
    a = e.min({"f32": 3.95, "f64": 5.95}[element], size)  # erf is 1 beyond
    near = e.fma(size, e.polynomial(a * a, ERF[element]), size)
    return e.copysign(e.select(size < 1, near, _far(e, a)), x)


def _far(e: Emitter, a: Value) -> Value:
    """erf(a) for 1 <= a, up to where it is 1."""
    element = a.type.element
    exponent = e.polynomial(a, ERF_TAIL[element])
    n, bits = nearest(e, exponent, 1, BIAS[element])
    part = exponent - n
    p = e.fma(part, e.polynomial(part, EXP2_PART[element]), 1)
    return e.fma(-p, pow2(e, bits, a.type), 1)


def erfc(e: Emitter, x: Value) -> Value:
    """1 - erf(x), also where that is small; at most 1.7 ulp."""
    a = e.min(ZERO[x.type.element], e.abs(x))
    high, low = _square(e, a)
    found = _tail(e, a, 0.0, high, low)
    if not has_tables(e):
        near = e.fma(a, e.polynomial(high, ERF_NEAR[x.type.element]), a)
        found = e.select(a < TAIL, 1 - near, found)
    return e.select(x < 0, 2 - found, found)


def erfinv(e: Emitter, x: Value) -> Value:
    """The number whose erf is x; inf at 1, NaN beyond; at most 2 ulp."""
    found, usual = (_inverse_by_cells if has_tables(e) else _inverse_by_log)(e, x)
    return rarely(e, ~usual, "erfinv_rest", _erfinv_rest, [x], e.copysign(found, x))


def _inverse_by_cells(e: Emitter, x: Value) -> tuple[Value, Value]:
    """erfinv(x) but for its sign, and the mask where it is; `has_tables`."""
    element = x.type.element
    rest = e.fma(-x, x, 1)
    index = (e.bitcast(rest, x.type.integer) - 1) >> (MANTISSA[element] - 1)
    centre, value, *slope = (looked_up(e, x.type, c, index) for c in ERFINV_CELLS[element])
    t = rest - centre
    square = t * t
    steepness = e.fma(e.chain(square, slope[1::2]), t, e.chain(square, slope[::2]))
    return e.fma(x, value, x * (t * steepness)), rest > RAREST


def _inverse_by_log(e: Emitter, x: Value) -> tuple[Value, Value]:
    """The same by polynomials of -log(1 - x²)."""
    element = x.type.element
    w = -log_of_normal(e, e.fma(-x, x, 1))
    far = w > 1
    t = w - 3
    slope = e.select(far, e.polynomial(t, ERFINV_FAR[element]), e.polynomial(w, ERFINV[element]))
    near, beyond = (split_constant(RATIO[k], element) for k in (0, 3))
    high, low = (e.select(far, b, e.constant(x.type, n)) for n, b in zip(near, beyond))
    found = e.fma(x, high, x * e.fma(e.select(far, t, w), slope, low))
    return found, (w < RARE[element]) & (e.abs(x) < 1)


def _erfinv_rest(e: Emitter, x: Value) -> Value:
    """erfinv where its tail is long, at its ends and beyond."""
    element = x.type.element
    size = e.abs(x)
    t = e.sqrt(-log_of_normal(e, e.fma(-x, x, 1))) - ROOT[element]
    high, low = split_constant(RATIO[ROOT[element] ** 2], element)
    found = e.fma(x, high, x * e.fma(t, e.polynomial(t, ERFINV_TAIL[element]), low))
    return e.select(size < 1, found, e.select(e.eq(size, 1), x * float("inf"), float("nan")))


def ndtr(e: Emitter, x: Value) -> Value:
    """The standard normal distribution function, also where it is small; at most 1.7 ulp."""
    size = e.min(ZERO[x.type.element] * 2**0.5, e.abs(x))
    high, low = _square(e, size)
    root, root_low = split_constant("0.70710678118654752440084436210484903928", x.type.element)
    a = size * root
    a_low = e.fma(size, root, -a) + size * root_low
    high, low = high * 0.5, low * 0.5
    found = _tail(e, a, a_low, high, low)
    if not has_tables(e):
        near = e.fma(a, e.polynomial(high, ERF_NEAR[x.type.element]), a_low) + a
        found = e.select(a < TAIL, 1 - near, found)
    half = found * 0.5
    return e.select(x < 0, half, 1 - half)


def gelu(e: Emitter, x: Value) -> Value:
    """x ndtr(x)."""
    return e.select(x < -1000, -0.0, x * ndtr(e, x))
