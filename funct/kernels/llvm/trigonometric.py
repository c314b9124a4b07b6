"""sin, cos, tan: the distance to a multiple of pi/2, and polynomials on a quarter turn.

Arguments far from 0, whose distance the float cannot hold, take a slower road: float32 goes through
float64, float64 beyond 2^40 through the C library, lane by lane, and there in the long doubles of
x86: its doubles lose 4 bits next to the multiples of pi/2 that floats come nearest to.

Source: W. Cody, W. Waite, "Software manual for the elementary functions", 1980.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from funct.kernels.llvm.coefficients import COS, SIN, TAN
from funct.kernels.llvm.rare import rarely
from funct.kernels.llvm.scaling import nearest, split_constant
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


def _quarter(e: Emitter, x: Value) -> tuple[Value, Value, Value]:
    """x >= 0 less quarter turns, in two parts; the turns in an integer's low bits."""
    turns, bits = nearest(e, x * (1 / (float(PI) / 2)))
    first, second, third = split_constant(HALF_PI, x.type.element, 3)
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


def _sin_near(e: Emitter, x: Value) -> Value:
    r, low, bits = _quarter(e, e.abs(x))
    s, s_low, c, c_low = near_waves(e, r, low)
    odd = _odd(e, bits)
    found = _negated(e, e.select(odd, c, s) + e.select(odd, c_low, s_low), bits)
    sign = e.bitcast(x, x.type.integer) & (-(1 << (x.type.bits - 1)))
    return e.bitcast(e.bitcast(found, x.type.integer) ^ sign, x.type)


def _cos_near(e: Emitter, x: Value) -> Value:
    r, low, bits = _quarter(e, e.abs(x))
    s, s_low, c, c_low = near_waves(e, r, low)
    odd = _odd(e, bits)
    return _negated(e, e.select(odd, s, c) + e.select(odd, s_low, c_low), bits + 1)


def _tan_near(e: Emitter, x: Value) -> Value:
    r, low, bits = _quarter(e, e.abs(x))
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
    found = e.select(_odd(e, bits), other, t)
    sign = e.bitcast(x, x.type.integer) & (-(1 << (x.type.bits - 1)))
    return e.bitcast(e.bitcast(found, x.type.integer) ^ sign, x.type)


def sin(e: Emitter, x: Value) -> Value:
    """The sine; at most 1 ulp."""
    return anywhere(e, "sin", x, _sin_near(e, x))


def cos(e: Emitter, x: Value) -> Value:
    """The cosine; at most 1 ulp."""
    return anywhere(e, "cos", x, _cos_near(e, x))


def tan(e: Emitter, x: Value) -> Value:
    """The tangent; at most 1.2 ulp."""
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
    found = e.select(odd, -found, found)
    sign = e.bitcast(x, x.type.integer) & (-(1 << (x.type.bits - 1)))
    return e.bitcast(e.bitcast(found, x.type.integer) ^ sign, x.type)
