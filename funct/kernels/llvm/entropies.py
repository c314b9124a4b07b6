"""Functions of real numbers that are a few logarithms and powers: entropies, losses, Box-Cox, and
those that keep digits near 0.

They are computed in float64, as SciPy computes them, but for `sinc`, and have its values at the
ends.
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING

from funct.kernels.llvm import exponential, logarithm, power, trigonometric

if TYPE_CHECKING:
    from collections.abc import Callable

    from funct.kernels.llvm.emitter import Emitter
    from funct.kernels.llvm.values import Value

__all__ = ["ENTROPIES"]

INFINITY, NAN = math.inf, math.nan
MOST = 709.78  # e^x is finite up to here


def _in_double(function: Callable[..., Value]) -> Callable[..., Value]:
    @functools.wraps(function)
    def found(e: Emitter, *given: Value) -> Value:
        element = given[0].type.element
        if element == "f64":
            return function(e, *given)
        return e.convert(function(e, *[e.convert(x, "f64") for x in given]), element)

    return found


def _no_number(e: Emitter, *given: Value) -> Value:
    """Whether one is NaN."""
    return functools.reduce(lambda x, y: x | y, [e.isnan(x) for x in given])


@_in_double
def xlogy(e: Emitter, x: Value, y: Value) -> Value:
    """x log y, 0 where x is."""
    return e.select(e.eq(x, 0) & ~e.isnan(y), 0, x * logarithm.log(e, y))


@_in_double
def xlog1py(e: Emitter, x: Value, y: Value) -> Value:
    """x log(1 + y), 0 where x is 0."""
    return e.select(e.eq(x, 0) & ~e.isnan(y), 0, x * logarithm.log1p(e, y))


@_in_double
def entr(e: Emitter, x: Value) -> Value:
    """-x log x; 0 at 0, -∞ below."""
    found = e.select(x < 0, -INFINITY, -x * logarithm.log(e, x))
    return e.select(e.eq(x, 0), 0, found)


@_in_double
def rel_entr(e: Emitter, x: Value, y: Value) -> Value:
    """x log(x / y); 0 where x is 0 and y is not below, else ∞ where one is not above 0."""
    zero = e.constant(x.type, 0)
    found = x * _log_ratio(e, x, y)
    found = e.select((x > 0) & (y > 0), found, e.select(e.eq(x, 0) & (y >= 0), zero, INFINITY))
    return e.select(_no_number(e, x, y), NAN, found)


def _log_ratio(e: Emitter, x: Value, y: Value) -> Value:
    """log(x / y), by the difference where they are near each other, and by logarithms of both where
    the quotient is 0 or infinite.
    """
    ratio = x / y
    near = logarithm.log1p(e, (x - y) / y)
    usual = (ratio > 1e-300) & (ratio < INFINITY)
    far = logarithm.log(e, e.select(usual, ratio, x))
    far = far - e.select(usual, e.constant(x.type, 0), logarithm.log(e, y))
    return e.select((ratio > 0.5) & (ratio < 2.0), near, far)


@_in_double
def kl_div(e: Emitter, x: Value, y: Value) -> Value:
    """x log(x / y) - x + y; y where x is 0 and y is not below, else ∞ where one is not above 0."""
    found = x * logarithm.log(e, x / y) - x + y
    found = e.select((x > 0) & (y > 0), found, e.select(e.eq(x, 0) & (y >= 0), y, INFINITY))
    return e.select(_no_number(e, x, y), NAN, found)


@_in_double
def log_expit(e: Emitter, x: Value) -> Value:
    """log(1 / (1 + e^-x))."""
    return -e.abs(logarithm.log_sigmoid(e, x))


@_in_double
def exprel(e: Emitter, x: Value) -> Value:
    """(e^x - 1) / x; 1 at 0."""
    found = exponential.expm1(e, x) / x
    return e.select(e.abs(x) < 1e-16, 1, e.select(x > 717.0, INFINITY, found))


@_in_double
def cosm1(e: Emitter, x: Value) -> Value:
    """cos x - 1; that of a small x by the sine of its half."""
    half = trigonometric.sin(e, x * 0.5)
    near = half * half * -2.0 + 0.0
    return e.select(e.abs(x) <= 0.25 * math.pi, near, trigonometric.cos(e, x) - 1)


@_in_double
def huber(e: Emitter, delta: Value, r: Value) -> Value:
    """r² / 2 where |r| <= δ, else δ (|r| - δ / 2); ∞ for δ below 0."""
    size = e.abs(r)
    found = e.select(size <= delta, r * r * 0.5, delta * (size - delta * 0.5))
    return e.select(delta < 0, INFINITY, found)


@_in_double
def boxcox(e: Emitter, x: Value, by: Value) -> Value:
    """(x^λ - 1) / λ; log x where λ is 0."""
    return _power_of_log(e, logarithm.log(e, x), by)


@_in_double
def boxcox1p(e: Emitter, x: Value, by: Value) -> Value:
    """((1 + x)^λ - 1) / λ; log(1 + x) where λ is 0."""
    return _power_of_log(e, logarithm.log1p(e, x), by)


def _power_of_log(e: Emitter, log: Value, by: Value) -> Value:
    size, grown = e.abs(by), by * log
    found = exponential.expm1(e, grown) / by
    # of a power that is infinite the quotient by λ need not be
    large = e.copysign(exponential.exp(e, grown - logarithm.log(e, size)), by) - 1 / by
    found = e.select(grown < MOST, found, large)
    return e.select(size < 1e-19, log, found)


@_in_double
def inv_boxcox(e: Emitter, x: Value, by: Value) -> Value:
    """(1 + λ x)^(1 / λ); e^x where λ is 0."""
    return exponential.exp(e, _log_of_power(e, x, by))


@_in_double
def inv_boxcox1p(e: Emitter, x: Value, by: Value) -> Value:
    """(1 + λ x)^(1 / λ) - 1; e^x - 1 where λ is 0."""
    found = exponential.expm1(e, _log_of_power(e, x, by))
    return e.select(e.ne(by, 0) & (e.abs(by * x) < 1e-154), x, found)


def _log_of_power(e: Emitter, x: Value, by: Value) -> Value:
    product = by * x
    far = logarithm.log(e, e.abs(x + 1 / by)) + logarithm.log(e, e.abs(by))
    log = e.select(product < INFINITY, logarithm.log1p(e, product), far)
    return e.select(e.eq(by, 0), x, log / by)


def logit(e: Emitter, x: Value) -> Value:
    """log(x / (1 - x)), near 1/2 by what x is away from it; of float32 doubles have digits enough
    there.
    """
    if x.type.element != "f64":
        wide = e.convert(x, "f64")
        return e.convert(logarithm.log(e, wide / (1 - wide)), x.type.element)
    away = x * 2.0 - 1
    near = logarithm.log1p(e, away) - logarithm.log1p(e, -away)
    return e.select((x < 0.3) | (x > 0.65), logarithm.log(e, x / (1 - x)), near)


@_in_double
def exp10(e: Emitter, x: Value) -> Value:
    """10^x."""
    return power.power(e, e.constant(x.type, 10), x)


@_in_double
def radian(e: Emitter, d: Value, m: Value, s: Value) -> Value:
    """The angle of d degrees, m minutes and s seconds."""
    return ((d * 60.0 + m) * 60.0 + s) * (math.pi / 648000)


def sinc(e: Emitter, x: Value) -> Value:
    """sin(πx) / (πx), and 1 where x is 0."""
    turned = x * math.pi
    return e.select(e.eq(x, 0), 1, trigonometric.sin(e, turned) / turned)


ENTROPIES: dict[str, Callable[..., Value]] = {
    "boxcox": boxcox, "boxcox1p": boxcox1p, "cosm1": cosm1, "entr": entr, "exp10": exp10,
    "exprel": exprel, "huber": huber, "inv_boxcox": inv_boxcox, "inv_boxcox1p": inv_boxcox1p,
    "kl_div": kl_div, "log_expit": log_expit, "logit": logit,
    "radian": radian, "rel_entr": rel_entr, "sinc": sinc, "xlog1py": xlog1py, "xlogy": xlogy,
}  # fmt: skip
