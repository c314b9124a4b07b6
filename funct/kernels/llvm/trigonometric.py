"""sin, cos, tan: the distance to a multiple of pi/2, and polynomials on a quarter turn; with
tables, that to a multiple of pi/8 or pi/16, of which sine and cosine are looked up.

Arguments far from 0, whose distance the float cannot hold, take a slower road: float32 goes through
float64, float64 beyond 2^40 through the C library, lane by lane, and there in the long doubles of
x86: its doubles lose 4 bits next to the multiples of pi/2 that floats come nearest to.

Source: W. Cody, W. Waite, "Software manual for the elementary functions", 1980.
"""

from __future__ import annotations

import sys
from fractions import Fraction
from typing import TYPE_CHECKING

from funct.kernels.llvm.cells import SIN_EIGHTHS, TAN_SIXTEENTHS
from funct.kernels.llvm.coefficients.trigonometric import (
    COS,
    COS_SIXTEENTH,
    SIN,
    SIN_SIXTEENTH,
    TAN,
    TAN_SIXTEENTH,
)
from funct.kernels.llvm.rare import rarely
from funct.kernels.llvm.scaling import nearest, rough_inverse, split_constant
from funct.kernels.llvm.tables import has_tables, looked_up
from funct.kernels.llvm.values import I64, typed

if TYPE_CHECKING:
    from collections.abc import Callable

    from funct.kernels.llvm.emitter import Emitter
    from funct.kernels.llvm.values import Value

__all__ = ["HALF_PI", "PI", "anywhere", "cos", "near_waves", "sin", "sinpi", "tan"]

PI = "3.14159265358979323846264338327950288419716939937510582097494459230781640628620899"
HALF_PI = "1.57079632679489661923132169163975144209858469968755291048747229615390820314310449"
NEAR = {"f32": 3e5, "f64": 2.0**40}


def near_waves(e: Emitter, r: Value, low: Value) -> tuple[Value, Value, Value, Value]:
    """sin and cos of r + low, in two parts each, for |r| <= pi/4 and a low that r does not show."""
    z = r * r
    half = z * 0.5
    whole = 1 - half
    sine = e.fma(low, whole, r * z * e.polynomial(z, SIN[r.type.element]))
    tail = e.fma(z * z, e.polynomial(z, COS[r.type.element]), -(r * low))
    return r, sine, whole, ((1 - whole) - half) + tail


def _less_turns(e: Emitter, x: Value, part: int) -> tuple[Value, Value, Value]:
    """x >= 0 less multiples of pi / part, in two parts; which one in an integer's low bits."""
    turns, bits = nearest(e, x, part / float(PI))
    first, second, third = split_constant(Fraction(PI) / part, x.type.element, 3)
    high = e.fma(turns, -first, x)
    middle = turns * second
    r = high - middle
    lost = ((high - r) - middle) - e.fma(turns, second, -middle)
    return r, e.fma(turns, -third, lost), bits


def _odd(e: Emitter, bits: Value) -> Value:
    return e.ne(bits & 1, 0)


def _negated(e: Emitter, x: Value, bits: Value) -> Value:
    """x with its sign changed where the second lowest bit is on."""
    turned = (bits & 2) << (x.type.bits - 2)
    return e.bitcast(e.bitcast(x, x.type.integer) ^ turned, x.type)


def _wave_by_table(e: Emitter, x: Value, first: int) -> Value:
    """The sine of x >= 0 and so many eighths of half a turn: what is added to a number looked up is
    small, and rounded once.
    """
    element = x.type.element
    r, low, bits = _less_turns(e, x, 8)
    s, s_low, c, c_low = (
        looked_up(e, x.type, part[k:] + part[:k], bits)
        for k in (first, first + 4)
        for part in SIN_EIGHTHS[element]
    )
    z = r * r
    sine = e.fma(r * z, e.chain(z, SIN_SIXTEENTH[element]), low)  # less r
    cosine = z * e.chain(z, COS_SIXTEENTH[element])  # less 1
    return s + e.fma(c, r, e.fma(c, sine, e.fma(s, cosine, e.fma(c_low, r, s_low))))


def _tan_by_table(e: Emitter, x: Value) -> Value:
    """The tangent of x >= 0: (tan a + tan b) / (1 - tan a tan b), where tan a is looked up as a
    quotient; a division's first 14 or 28 bits are put right by what is left.
    """
    element = x.type.element
    r, low, bits = _less_turns(e, x, 16)
    s, c = (looked_up(e, x.type, part, bits) for part in TAN_SIXTEENTHS[element])
    z = r * r
    rest = e.fma(r * z, e.chain(z, TAN_SIXTEENTH[element]), low)
    above, below = e.fma(c, r, s), e.fma(-s, r, c)
    above_low = e.fma(c, rest, e.fma(c, r, s - above))
    below_low = e.fma(-s, rest, e.fma(-s, r, c - below))
    whole = below + below_low
    inverse = rough_inverse(e, whole)
    if element == "f64":
        inverse = e.fma(e.fma(-inverse, whole, 1), inverse, inverse)
    near = (above + above_low) * inverse
    left = e.fma(-near, below_low, e.fma(-near, below, above) + above_low)
    return e.fma(left, inverse, near)


def _signed(e: Emitter, found: Value, x: Value) -> Value:
    """What was found for |x|, of an odd function of x."""
    sign = e.bitcast(x, x.type.integer) & (-(1 << (x.type.bits - 1)))
    return e.bitcast(e.bitcast(found, x.type.integer) ^ sign, x.type)


def _sin_near(e: Emitter, x: Value) -> Value:
    if has_tables(e):
        return _signed(e, _wave_by_table(e, e.abs(x), 0), x)
    r, low, bits = _less_turns(e, e.abs(x), 2)
    s, s_low, c, c_low = near_waves(e, r, low)
    odd = _odd(e, bits)
    found = e.select(odd, c, s) + e.select(odd, c_low, s_low)
    return _signed(e, _negated(e, found, bits), x)


def _cos_near(e: Emitter, x: Value) -> Value:
    if has_tables(e):
        return _wave_by_table(e, e.abs(x), 4)
    r, low, bits = _less_turns(e, e.abs(x), 2)
    s, s_low, c, c_low = near_waves(e, r, low)
    odd = _odd(e, bits)
    return _negated(e, e.select(odd, s, c) + e.select(odd, s_low, c_low), bits + 1)


def _tan_near(e: Emitter, x: Value) -> Value:
    if has_tables(e):
        return _signed(e, _tan_by_table(e, e.abs(x)), x)
    r, low, bits = _less_turns(e, e.abs(x), 2)
    z = r * r
    rest = r * z * e.polynomial(z, TAN[x.type.element])
    most = r + rest
    low = e.fma(low, e.fma(most, most, 1), (r - most) + rest)
    t = most + low
    # a quarter turn on, it is -1 / (t + low): next to the pole low is much of it
    low = (most - t) + low
    inverse = 1 / t
    lost = e.fma(-inverse, low, e.fma(-inverse, t, 1))
    other = e.fma(-inverse, lost, -inverse)
    return _signed(e, e.select(_odd(e, bits), other, t), x)


def sin(e: Emitter, x: Value) -> Value:
    """The sine; at most 1 ulp."""
    return anywhere(e, "sin", x, _sin_near(e, x))


def cos(e: Emitter, x: Value) -> Value:
    """The cosine; at most 1 ulp."""
    return anywhere(e, "cos", x, _cos_near(e, x))


def tan(e: Emitter, x: Value) -> Value:
    """The tangent; at most 1.2 ulp, 0.6 by tables."""
    return anywhere(e, "tan", x, _tan_near(e, x))


def anywhere(e: Emitter, name: str, x: Value, near: Value) -> Value:
    """What was found near 0, and what a function of the text's own says where x is far from it."""
    far = ~(e.abs(x) < NEAR[x.type.element])
    single = x.type.element == "f32"
    return rarely(e, far, f"{name}_far", lambda f, x: _far(f, name, x), [x], near, widened=single)


def _far(f: Emitter, name: str, x: Value) -> Value:
    """The function of any x."""
    if x.type.element == "f32":
        wide = f.convert(x, "f64")
        return f.convert(anywhere(f, name, wide, _NEAR[name](f, wide)), "f32")

    long = f.module.target.has("sse2") and sys.platform != "win32"
    called, element = (f"{name}l", "f80") if long else (name, "f64")

    def lane(k: Value, carried: list[Value]) -> list[Value]:
        one = f.call(called, typed(element), [f.convert(f.extract(x, k), element)], pure=True)
        assert one is not None
        return [f.insert(carried[0], k, f.convert(one, "f64"))]

    return f.loop(f.constant(I64, 0), x.type.lanes, 1, lane, [x])[0]


_NEAR: dict[str, Callable[[Emitter, Value], Value]] = {
    "sin": _sin_near, "cos": _cos_near, "tan": _tan_near,
}  # fmt: skip


def sinpi(e: Emitter, x: Value) -> Value:
    """sin(pi x): exactly 0 at integers; at most 2 ulp."""
    size = e.abs(x)
    turns = e.round(size)
    part = size - turns  # exact, |part| <= 1/2
    small = e.abs(part)
    from_edge = small > 0.25
    near = e.select(from_edge, 0.5 - small, small)
    high, low = split_constant(PI, x.type.element)
    r = near * high
    s, s_low, c, c_low = near_waves(e, r, e.fma(near, high, -r) + near * low)
    found = e.copysign(e.select(from_edge, c + c_low, s + s_low), part)
    # an odd number of half turns changes the sign; beyond 2^mantissa all floats are even
    odd = e.ne(turns - e.trunc(turns * 0.5) * 2, 0)
    return _signed(e, e.select(odd, -found, found), x)
