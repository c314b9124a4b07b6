"""Functions of complex numbers, given and found as two parts; each part of what is found apart.

At infinities and at what is no number they give what C's functions give (C99 Annex G), and the
zeros have its signs. A part that cancels, the logarithm's real one on the unit circle, keeps its
digits.

Source: W. Kahan, "Branch cuts for complex elementary functions", 1987.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from funct.kernels.llvm import exponential, hyperbolic, inverse, logarithm, trigonometric
from funct.kernels.llvm.scaling import exact_sum

if TYPE_CHECKING:
    from collections.abc import Callable

    from funct.kernels.llvm.emitter import Emitter
    from funct.kernels.llvm.values import Value

    Parts = tuple[Value, Value]

__all__ = ["COMPLEX", "part_of"]

INFINITY = float("inf")
LN2 = float("0.693147180559945309417232121458176568075500134360255254120680009493")
NEARLY_MOST = {"f32": 88.0, "f64": 709.0}  # exp is finite up to here
SHIFT = 300  # powers of four that bring squares into range
SATURATED = {"f32": 11.0, "f64": 22.0}  # tanh is 1 beyond


def _finite(e: Emitter, x: Value) -> Value:
    return e.abs(x) < INFINITY


def _infinite(e: Emitter, x: Value) -> Value:
    return e.eq(e.abs(x), INFINITY)


def _sign(e: Emitter, x: Value, size: float = 1.0) -> Value:
    """size with the sign of x."""
    return e.copysign(e.constant(x.type, size), x)


def exp(e: Emitter, a: Value, b: Value) -> Parts:
    """e^(a + ib)."""
    # the power may be too large where the product with a sine is not
    large = a > NEARLY_MOST[a.type.element]
    power = exponential.exp(e, e.select(large, a * 0.5, a))
    again = e.select(large, power, 1)
    re = power * trigonometric.cos(e, b) * again
    im = power * trigonometric.sin(e, b) * again
    lost, zero = ~_finite(e, b) & _infinite(e, a), e.constant(a.type, 0)
    re = e.select(lost, e.select(a < 0, zero, a), re)
    im = e.select(lost & (a < 0), zero, im)
    return re, e.select(e.eq(b, 0), b, im)


def _waves(e: Emitter, a: Value) -> tuple[Value, Value, Value]:
    """sinh and cosh of a, less a factor that they have in common, which may make them infinite."""
    large = e.abs(a) > NEARLY_MOST[a.type.element]
    power = exponential.exp(e, e.abs(a) * 0.5)
    half = power * 0.5
    sine = e.select(large, e.copysign(half, a), hyperbolic.sinh(e, a))
    return sine, e.select(large, half, hyperbolic.cosh(e, a)), e.select(large, power, 1)


def sinh(e: Emitter, a: Value, b: Value) -> Parts:
    """sinh(a + ib) = sinh a cos b + i cosh a sin b."""
    sine, cosine, again = _waves(e, a)
    re = sine * trigonometric.cos(e, b) * again
    im = cosine * trigonometric.sin(e, b) * again
    lost = ~_finite(e, b) & (e.eq(a, 0) | _infinite(e, a))
    return e.select(lost, a, re), e.select(e.eq(b, 0), b, im)


def cosh(e: Emitter, a: Value, b: Value) -> Parts:
    """cosh(a + ib) = cosh a cos b + i sinh a sin b."""
    sine, cosine, again = _waves(e, a)
    re = cosine * trigonometric.cos(e, b) * again
    im = sine * trigonometric.sin(e, b) * again
    far = ~_finite(e, b)
    re = e.select(far & _infinite(e, a), INFINITY, re)
    im = e.select(far & e.eq(a, 0), a * _sign(e, b), im)
    return re, e.select(e.eq(b, 0), b * _sign(e, a), im)


def sin(e: Emitter, a: Value, b: Value) -> Parts:
    """sin(a + ib), by sinh(b + ia)."""
    re, im = sinh(e, b, a)
    return im, re


def cos(e: Emitter, a: Value, b: Value) -> Parts:
    """cos(a + ib), by cosh(b + ia)."""
    re, im = cosh(e, b, a)
    return re, -im


def tanh(e: Emitter, a: Value, b: Value) -> Parts:
    """tanh(a + ib)."""
    size, zero = e.abs(a), e.constant(a.type, 0)
    far = size > SATURATED[a.type.element]
    s, t = hyperbolic.sinh(e, e.select(far, zero, a)), trigonometric.tan(e, b)
    steep = e.fma(t, t, 1)
    below = e.fma(steep * s, s, 1)
    re = e.select(far, _sign(e, a), steep * e.sqrt(e.fma(s, s, 1)) * s / below)
    rest = exponential.exp(e, size * -2.0)
    end = trigonometric.sin(e, b) * trigonometric.cos(e, b) * rest * 4.0
    im = e.select(far, end, t / below)
    lost = e.isnan(a) | (~_finite(e, b) & e.ne(a, 0))
    re = e.select(lost, float("nan"), re)
    re = e.select(e.eq(a, 0), a, e.select(_infinite(e, a), _sign(e, a), re))
    im = e.select(_infinite(e, a), _sign(e, b, 0.0), e.select(e.isnan(a), float("nan"), im))
    return re, e.select(e.eq(b, 0), b, im)


def tan(e: Emitter, a: Value, b: Value) -> Parts:
    """tan(a + ib), by tanh(b + ia)."""
    re, im = tanh(e, b, a)
    return im, re


def _scaled(e: Emitter, a: Value, b: Value) -> tuple[Value, Value, Value]:
    """|a| and |b|, of float64, times a power of four, so that no square is infinite, and that of
    the larger is not 0; the logarithm to base 4 of the power.
    """
    x, y = e.abs(a), e.abs(b)
    most = e.max(x, y)
    large, small = most > 2.0**500, most < 2.0**-450
    one = e.constant(a.type, 1)
    scale = e.select(large, 0.25**SHIFT, e.select(small, 4.0**SHIFT, one))
    shift = e.select(large, float(-SHIFT), e.select(small, float(SHIFT), e.constant(a.type, 0)))
    return x * scale, y * scale, shift


def _widened(function: Callable[..., Parts]) -> Callable[..., Parts]:
    """In float64 whatever the parts are: squares of float32 are exact in it, and in its range."""

    def found(e: Emitter, a: Value, b: Value) -> Parts:
        if a.type.element == "f64":
            return function(e, a, b)
        re, im = function(e, e.convert(a, "f64"), e.convert(b, "f64"))
        return e.convert(re, "f32"), e.convert(im, "f32")

    return found


def _size_log(e: Emitter, a: Value, b: Value) -> Value:
    """log |a + ib|, of float64."""
    x, y, shift = _scaled(e, a, b)
    x, y = e.max(x, y), e.min(x, y)
    p, q = x * x, y * y
    total, lost = exact_sum(p, q)
    lost = lost + (e.fma(x, x, -p) + e.fma(y, y, -q))
    # what rounding lost counts where the logarithm is nearly 0
    near = e.select((total > 0.5) & (total < 2.0), lost / total, 0)
    found = (logarithm.log(e, total) + near) * 0.5 - shift * (2 * LN2)
    found = e.select(e.isnan(a) | e.isnan(b), float("nan"), found)
    return e.select(_infinite(e, a) | _infinite(e, b), INFINITY, found)


def log(e: Emitter, a: Value, b: Value) -> Parts:
    """log(a + ib), the imaginary part in [-π, π]."""
    im = inverse.atan2(e, b, a)
    if a.type.element == "f64":
        return _size_log(e, a, b), im
    return e.convert(_size_log(e, e.convert(a, "f64"), e.convert(b, "f64")), "f32"), im


@_widened
def sqrt(e: Emitter, a: Value, b: Value) -> Parts:
    """The square root whose real part is at least 0."""
    x, y, shift = _scaled(e, a, b)
    root = e.sqrt((x + e.sqrt(e.fma(x, x, y * y))) * 0.5)
    small = e.select(shift > 0, 2.0**-SHIFT, e.constant(a.type, 1))
    root = root * e.select(shift < 0, 2.0**SHIFT, small)
    other = e.select(e.eq(root, 0), 0, e.abs(b) / (root * 2.0))
    below, tall = a < 0, _infinite(e, b)
    re = e.select(below, other, root)
    im = e.copysign(e.select(below, root, other), b)
    re = e.select(tall | e.eq(a, INFINITY), INFINITY, re)
    return re, e.select(tall, b, e.select(e.eq(a, -INFINITY), _sign(e, b, INFINITY), im))


COMPLEX: dict[str, Callable[[Emitter, Value, Value], Parts]] = {
    "cos": cos, "cosh": cosh, "exp": exp, "log": log, "sin": sin, "sinh": sinh, "sqrt": sqrt,
    "tan": tan, "tanh": tanh,
}  # fmt: skip


def part_of(name: str, k: int) -> Callable[[Emitter, Value, Value], Value]:
    """What prints one part of a function, the real one or the other; both share their text."""
    return lambda e, a, b: COMPLEX[name](e, a, b)[k]
