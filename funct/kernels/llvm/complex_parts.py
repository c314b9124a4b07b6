"""What functions of complex numbers share: ends, signs, sizes that squares do not overflow."""

from __future__ import annotations

from typing import TYPE_CHECKING

from funct.kernels.llvm import logarithm
from funct.kernels.llvm.scaling import exact_sum

if TYPE_CHECKING:
    from collections.abc import Callable

    from funct.kernels.llvm.emitter import Emitter
    from funct.kernels.llvm.values import Value

    Parts = tuple[Value, Value]

__all__ = [
    "INFINITY", "LN2", "SHIFT", "finite", "infinite", "scaled", "sign", "size_log", "widened",
]  # fmt: skip

INFINITY = float("inf")
LN2 = float("0.693147180559945309417232121458176568075500134360255254120680009493")
SHIFT = 300  # powers of four that bring squares into range


def finite(e: Emitter, x: Value) -> Value:
    """Whether x is neither infinite nor NaN."""
    return e.abs(x) < INFINITY


def infinite(e: Emitter, x: Value) -> Value:
    """Whether x is ∞ or -∞."""
    return e.eq(e.abs(x), INFINITY)


def sign(e: Emitter, x: Value, size: float = 1.0) -> Value:
    """size with the sign of x."""
    return e.copysign(e.constant(x.type, size), x)


def scaled(e: Emitter, a: Value, b: Value) -> tuple[Value, Value, Value]:
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


def widened(function: Callable[..., Parts]) -> Callable[..., Parts]:
    """In float64 whatever the parts are: squares of float32 are exact in it, and in its range."""

    def found(e: Emitter, a: Value, b: Value) -> Parts:
        if a.type.element == "f64":
            return function(e, a, b)
        re, im = function(e, e.convert(a, "f64"), e.convert(b, "f64"))
        return e.convert(re, "f32"), e.convert(im, "f32")

    return found


def size_log(e: Emitter, a: Value, b: Value) -> Value:
    """log |a + ib|, of float64."""
    x, y, shift = scaled(e, a, b)
    x, y = e.max(x, y), e.min(x, y)
    p, q = x * x, y * y
    total, lost = exact_sum(p, q)
    lost = lost + (e.fma(x, x, -p) + e.fma(y, y, -q))
    # what rounding lost counts where the logarithm is nearly 0
    near = e.select((total > 0.5) & (total < 2.0), lost / total, 0)
    found = (logarithm.log(e, total) + near) * 0.5 - shift * (2 * LN2)
    found = e.select(e.isnan(a) | e.isnan(b), float("nan"), found)
    return e.select(infinite(e, a) | infinite(e, b), INFINITY, found)
