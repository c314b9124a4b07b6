"""Functions of complex numbers, given and found as two parts; each part of what is found apart.

At infinities and at what is no number they give what C's functions give (C99 Annex G), and the
zeros have its signs. A part that cancels, the logarithm's real one on the unit circle, keeps its
digits.

Source: W. Kahan, "Branch cuts for complex elementary functions", 1987.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from funct.kernels.llvm import (
    complex_inverse,
    exponential,
    hyperbolic,
    inverse,
    logarithm,
    trigonometric,
)
from funct.kernels.llvm.complex_parts import (
    INFINITY,
    LN2,
    SHIFT,
    finite,
    infinite,
    scaled,
    sign,
    size_log,
    widened,
)
from funct.kernels.llvm.scaling import exact_sum

if TYPE_CHECKING:
    from collections.abc import Callable

    from funct.kernels.llvm.emitter import Emitter
    from funct.kernels.llvm.values import Value

    Parts = tuple[Value, Value]

__all__ = ["COMPLEX", "part_of"]

LOG2_E = 1 / LN2
LOG10_E = 0.43429448190325182765
NEARLY_MOST = {"f32": 88.0, "f64": 709.0}  # exp is finite up to here
SATURATED = {"f32": 11.0, "f64": 22.0}  # tanh is 1 beyond


def exp(e: Emitter, a: Value, b: Value) -> Parts:
    """e^(a + ib)."""
    # the power may be too large where the product with a sine is not
    large = a > NEARLY_MOST[a.type.element]
    power = exponential.exp(e, e.select(large, a * 0.5, a))
    again = e.select(large, power, 1)
    re = power * trigonometric.cos(e, b) * again
    im = power * trigonometric.sin(e, b) * again
    lost, zero = ~finite(e, b) & infinite(e, a), e.constant(a.type, 0)
    re = e.select(lost, e.select(a < 0, zero, a), re)
    im = e.select(lost & (a < 0), zero, im)
    return re, e.select(e.eq(b, 0), b, im)


def expm1(e: Emitter, a: Value, b: Value) -> Parts:
    """e^(a + ib) - 1; the real part, (e^a - 1) cos b - 2 sin²(b / 2), has the digits of the whole
    number.
    """
    re, im = exp(e, a, b)
    half = trigonometric.sin(e, b * 0.5)
    near = exponential.expm1(e, a) * trigonometric.cos(e, b) - half * half * 2
    return e.select((a < SATURATED["f64"]) & finite(e, b), near, re - 1) + 0.0, im


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
    lost = ~finite(e, b) & (e.eq(a, 0) | infinite(e, a))
    return e.select(lost, a, re), e.select(e.eq(b, 0), b, im)


def cosh(e: Emitter, a: Value, b: Value) -> Parts:
    """cosh(a + ib) = cosh a cos b + i sinh a sin b."""
    sine, cosine, again = _waves(e, a)
    re = cosine * trigonometric.cos(e, b) * again
    im = sine * trigonometric.sin(e, b) * again
    far = ~finite(e, b)
    re = e.select(far & infinite(e, a), INFINITY, re)
    im = e.select(far & e.eq(a, 0), a * sign(e, b), im)
    return re, e.select(e.eq(b, 0), b * sign(e, a), im)


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
    re = e.select(far, sign(e, a), steep * e.sqrt(e.fma(s, s, 1)) * s / below)
    rest = exponential.exp(e, size * -2.0)
    end = trigonometric.sin(e, b) * trigonometric.cos(e, b) * rest * 4.0
    im = e.select(far, end, t / below)
    lost = e.isnan(a) | (~finite(e, b) & e.ne(a, 0))
    re = e.select(lost, float("nan"), re)
    re = e.select(e.eq(a, 0), a, e.select(infinite(e, a), sign(e, a), re))
    im = e.select(infinite(e, a), sign(e, b, 0.0), e.select(e.isnan(a), float("nan"), im))
    return re, e.select(e.eq(b, 0), b, im)


def tan(e: Emitter, a: Value, b: Value) -> Parts:
    """tan(a + ib), by tanh(b + ia)."""
    re, im = tanh(e, b, a)
    return im, re


def log(e: Emitter, a: Value, b: Value) -> Parts:
    """log(a + ib), the imaginary part in [-π, π]."""
    im = inverse.atan2(e, b, a)
    if a.type.element == "f64":
        return size_log(e, a, b), im
    return e.convert(size_log(e, e.convert(a, "f64"), e.convert(b, "f64")), "f32"), im


def _of_base(factor: float) -> Callable[[Emitter, Value, Value], Parts]:
    """The logarithm to another base."""

    def found(e: Emitter, a: Value, b: Value) -> Parts:
        re, im = log(e, a, b)
        return re * factor, im * factor

    return found


@widened
def log1p(e: Emitter, a: Value, b: Value) -> Parts:
    """log(1 + a + ib), by |1 + z|² - 1 = 2 a + a² + b² where 1 + z would lose digits of z."""
    p, q = a * a, b * b
    squares, lost = exact_sum(e.max(p, q), e.min(p, q))
    lost = lost + (e.fma(a, a, -p) + e.fma(b, b, -q))
    total, rest = exact_sum(a * 2, squares)
    rest = rest + lost
    near = (logarithm.log1p(e, total) + rest / (total + 1)) * 0.5
    re = e.select((total > -0.5) & (total < 2.0**900), near, size_log(e, a + 1, b))
    return re, inverse.atan2(e, b, a + 1)


@widened
def sqrt(e: Emitter, a: Value, b: Value) -> Parts:
    """The square root whose real part is at least 0."""
    x, y, shift = scaled(e, a, b)
    root = e.sqrt((x + e.sqrt(e.fma(x, x, y * y))) * 0.5)
    small = e.select(shift > 0, 2.0**-SHIFT, e.constant(a.type, 1))
    root = root * e.select(shift < 0, 2.0**SHIFT, small)
    other = e.select(e.eq(root, 0), 0, e.abs(b) / (root * 2.0))
    below, tall = a < 0, infinite(e, b)
    re = e.select(below, other, root)
    im = e.copysign(e.select(below, root, other), b)
    re = e.select(tall | e.eq(a, INFINITY), INFINITY, re)
    return re, e.select(tall, b, e.select(e.eq(a, -INFINITY), sign(e, b, INFINITY), im))


def reciprocal(e: Emitter, a: Value, b: Value) -> Parts:
    """1 / (a + ib), with NumPy's bits (R. Smith, "Algorithm 116: Complex division", 1962)."""
    upright = ~(e.abs(b) <= e.abs(a))
    large, small = e.select(upright, b, a), e.select(upright, a, b)
    share = small / large
    below = large + small * share
    whole, part = 1 / below, share / below
    return e.select(upright, part, whole), e.select(upright, -whole, -part)


COMPLEX: dict[str, Callable[[Emitter, Value, Value], Parts]] = {
    **{name: getattr(complex_inverse, name) for name in complex_inverse.__all__},
    "cos": cos, "cosh": cosh, "exp": exp, "expm1": expm1, "log": log, "log10": _of_base(LOG10_E),
    "log1p": log1p, "log2": _of_base(LOG2_E), "reciprocal": reciprocal, "sin": sin, "sinh": sinh,
    "sqrt": sqrt, "tan": tan, "tanh": tanh,
}  # fmt: skip


def part_of(name: str, k: int) -> Callable[[Emitter, Value, Value], Value]:
    """What prints one part of a function, the real one or the other; both share their text."""
    return lambda e, a, b: COMPLEX[name](e, a, b)[k]
