"""Chapter: hypergeometric functions, and the elliptic integrals and Legendre functions among them.

Derivatives from DLMF 13.3.15, 15.5.1, 19.4 and 14.10.5. Those of incomplete elliptic integrals in
the parameter are `ellipkinc_slope` and `ellipeinc_slope`, those of exprel `exprel_slope`.
"""

from __future__ import annotations

import math

from funct import ops
from funct.core import Absent, Operand, Value
from funct.kernels.special import elliptic_slopes
from funct.kernels.special import functions as kernels
from funct.ops.samples import ranges, reals
from funct.ops.special.room import room

__all__ = [
    "ellipe", "ellipeinc", "ellipeinc_slope", "ellipem1", "ellipk", "ellipkinc", "ellipkinc_slope",
    "ellipkm1", "exprel", "exprel_slope", "hyp0f1", "hyp1f1", "hyp2f1", "lpmv",
]  # fmt: skip

_PARAMETER = Absent("derivatives in the parameters of hypergeometric functions are not known here")
_MODULUS = reals(-2.0, 0.9)


def _hyp0f1_rule(g: Value, v: Operand, z: Value) -> Value:
    return g * (ops.special.hyp0f1(v + 1, z) / v)


@room(
    "hyp0f1",
    _PARAMETER,
    _hyp0f1_rule,
    samples=ranges((0.5, 3.0), (-2.0, 2.0)),
)
def hyp0f1(v: Operand, z: Operand, /) -> Value:
    """Confluent hypergeometric limit function 0F1(; v; z).

    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> round(float(special.hyp0f1(0.5, xp.asarray(-1.0))), 6)  # cos(2)
        -0.416147
    """


def _hyp1f1_rule(g: Value, a: Operand, b: Operand, z: Value) -> Value:
    return g * (a / b * ops.special.hyp1f1(a + 1, b + 1, z))


@room(
    kernels.in_steps("hyp1f1", 1),
    _PARAMETER,
    _PARAMETER,
    _hyp1f1_rule,
    samples=ranges((0.5, 3.0), (0.5, 3.0), (-2.0, 2.0)),
    raises=True,
)
def hyp1f1(a: Operand, b: Operand, z: Operand, /) -> Value:
    """Kummer's confluent hypergeometric function M(a, b, z).

    Raises: ArgumentError: for |a| beyond 10,000,000, which takes as many steps.
    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> round(float(special.hyp1f1(1.0, 1.0, xp.asarray(1.0))), 6)  # e
        2.718282
    """


def _hyp2f1_rule(g: Value, a: Operand, b: Operand, c: Operand, z: Value) -> Value:
    return g * (a * b / c * ops.special.hyp2f1(a + 1, b + 1, c + 1, z))


@room(
    "hyp2f1",
    _PARAMETER,
    _PARAMETER,
    _PARAMETER,
    _hyp2f1_rule,
    samples=ranges((0.5, 3.0), (0.5, 3.0), (0.5, 3.0), (-0.9, 0.7)),
)
def hyp2f1(a: Operand, b: Operand, c: Operand, z: Operand, /) -> Value:
    """Gauss's hypergeometric function F(a, b; c; z).

    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> round(float(special.hyp2f1(1.0, 1.0, 2.0, xp.asarray(0.5))), 6)  # 2 log(2)
        1.386294
    """


def _exprel_rule(g: Value, x: Value) -> Value:
    return g * ops.special.exprel_slope(x, 1)


@room("exprel", _exprel_rule, samples=reals(), end=(-math.inf, 0.0))
def exprel(x: Operand, /) -> Value:
    """expm1(x) / x, 1 at 0.

    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> special.exprel(xp.asarray([0.0, 1e-20])).tolist()
        [1.0, 1.0]
    """


def _exprel_slope_rule(g: Value, x: Value, n: int) -> Value:
    return g * ops.special.exprel_slope(x, n + 1)


@room(kernels.exprel_slope, _exprel_slope_rule, samples=ranges((-2.0, 2.0), params=(1,)))
def exprel_slope(x: Operand, /, n: int) -> Value:
    """n-th derivative of exprel(x), the integral of t**n * exp(x t) from 0 to 1."""


def _ellipk_slope(m: Value) -> Value:
    below = ops.less(m, -1.0)  # there E and K do not cancel, and SciPy's series ends
    low = ops.where(below, m, -1.0)
    far = (ops.special.ellipe(low) / (1.0 - low) - ops.special.ellipk(low)) / (2.0 * low)
    near = math.pi / 8.0 * ops.special.hyp2f1(1.5, 1.5, 2.0, ops.where(below, 0.0, m))
    return ops.where(below, far, near)


def _ellipk_rule(g: Value, m: Value) -> Value:
    return g * _ellipk_slope(m)


@room("ellipk", _ellipk_rule, samples=_MODULUS, end=(-math.inf, 0.0))
def ellipk(m: Operand, /) -> Value:
    """Complete elliptic integral of the first kind of the parameter m.

    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> round(float(special.ellipk(xp.asarray(0.0))), 6), float(special.ellipk(xp.asarray(1.0)))
        (1.570796, inf)
    """


def _ellipkm1_rule(g: Value, ans: Value, p: Value) -> Value:
    near = ops.less(p, 0.5)  # 1 − p would lose p
    q = ops.where(near, p, 0.25)
    whole = ops.special.ellipem1(q) / q - ans
    far = _ellipk_slope(1.0 - ops.where(near, 1.0, p))
    return -g * ops.where(near, whole / (2.0 * (1.0 - q)), far)


@room("ellipkm1", _ellipkm1_rule, samples=reals(0.05, 2.0), end=(math.inf, 0.0))
def ellipkm1(p: Operand, /) -> Value:
    """ellipk(1 - p), accurate near p = 0.

    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> round(float(special.ellipkm1(xp.asarray(1e-30))), 4)  # 1 - 1e-30 is 1
        35.9251
    """


def _ellipem1_rule(g: Value, ans: Value, p: Value) -> Value:
    return g * ((ops.special.ellipkm1(p) - ans) / (2.0 * (1.0 - p)))


@room(
    kernels.keep_dtype(lambda p: kernels.find("ellipe")(1.0 - p)), _ellipem1_rule,
    samples=reals(0.05, 0.45),
)  # fmt: skip
def ellipem1(p: Operand, /) -> Value:
    """ellipe(1 - p) for p below 1/2, whose derivative is accurate near p = 0."""


def _ellipe_rule(g: Value, m: Value) -> Value:
    return g * (-math.pi / 8.0 * ops.special.hyp2f1(0.5, 1.5, 2.0, m))


@room("ellipe", _ellipe_rule, samples=_MODULUS, end=(-math.inf, 0.0))
def ellipe(m: Operand, /) -> Value:
    """Complete elliptic integral of the second kind of the parameter m.

    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> round(float(special.ellipe(xp.asarray(0.0))), 6), float(special.ellipe(xp.asarray(1.0)))
        (1.570796, 1.0)
    """


def _delta(phi: Value, m: Value) -> Value:
    return ops.sqrt(1.0 - m * ops.square(ops.sin(phi)))


def _ellipkinc_rule_phi(g: Value, phi: Value, m: Value) -> Value:
    return g / _delta(phi, m)


def _ellipkinc_rule_m(g: Value, phi: Value, m: Value) -> Value:
    return g * ops.special.ellipkinc_slope(phi, m, 1)


_AMPLITUDE = ranges((0.2, 1.4), (0.2, 0.8))


@room(
    "ellipkinc",
    _ellipkinc_rule_phi,
    _ellipkinc_rule_m,
    samples=_AMPLITUDE,
)
def ellipkinc(phi: Operand, m: Operand, /) -> Value:
    """Incomplete elliptic integral of the first kind.

    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> round(float(special.ellipkinc(xp.asarray(0.5), 0.0)), 6)
        0.5
    """


def _ellipeinc_rule_phi(g: Value, phi: Value, m: Value) -> Value:
    return g * _delta(phi, m)


def _ellipeinc_rule_m(g: Value, phi: Value, m: Value) -> Value:
    return g * ops.special.ellipeinc_slope(phi, m, 1)


@room(
    "ellipeinc",
    _ellipeinc_rule_phi,
    _ellipeinc_rule_m,
    samples=_AMPLITUDE,
)
def ellipeinc(phi: Operand, m: Operand, /) -> Value:
    """Incomplete elliptic integral of the second kind.

    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> round(float(special.ellipeinc(xp.asarray(0.5), 1.0)), 6)  # sin(0.5)
        0.479426
    """


def _amplitude_slope(phi: Value, m: Value, n: int, power: float) -> Value:
    """Derivative of delta ** (2 power) in m, of order n."""
    square = ops.square(ops.sin(phi))
    delta = 1.0 - m * square
    return elliptic_slopes.rising(-power, n) * square**n * delta ** (power - n)


def _ellipkinc_slope_rule_phi(g: Value, phi: Value, m: Value, n: int) -> Value:
    return g * _amplitude_slope(phi, m, n, -0.5)


def _ellipkinc_slope_rule_m(g: Value, phi: Value, m: Value, n: int) -> Value:
    return g * ops.special.ellipkinc_slope(phi, m, n + 1)


_SLOPES = ranges((0.2, 1.4), (0.2, 0.8), params=(1,))


@room(
    elliptic_slopes.ellipkinc_slope,
    _ellipkinc_slope_rule_phi,
    _ellipkinc_slope_rule_m,
    samples=_SLOPES,
)
def ellipkinc_slope(phi: Operand, m: Operand, /, n: int) -> Value:
    """n-th derivative of ellipkinc(phi, m) in m."""


def _ellipeinc_slope_rule_phi(g: Value, phi: Value, m: Value, n: int) -> Value:
    return g * _amplitude_slope(phi, m, n, 0.5)


def _ellipeinc_slope_rule_m(g: Value, phi: Value, m: Value, n: int) -> Value:
    return g * ops.special.ellipeinc_slope(phi, m, n + 1)


@room(
    elliptic_slopes.ellipeinc_slope,
    _ellipeinc_slope_rule_phi,
    _ellipeinc_slope_rule_m,
    samples=_SLOPES,
)
def ellipeinc_slope(phi: Operand, m: Operand, /, n: int) -> Value:
    """n-th derivative of ellipeinc(phi, m) in m."""


def _lpmv_end(m: Value, v: Value, x: Value) -> Value:
    """Derivative of lpmv at -1 and 1, m >= 0, from DLMF 14.3.6."""
    h = ops.special.hyp2f1
    t, rest = 0.5 * (1.0 - x), 1.0 - x * x
    zero = ops.stop_gradient(0.0 * x)
    m, v = m + zero, v + zero  # numbers take x's precision
    scale = ops.special.poch(v - m + 1.0, 2.0 * m) / (ops.pow(-2.0, m) * ops.special.gamma(m + 1.0))
    v = ops.where(ops.equal(scale, 0), m, v)  # lpmv is 0 everywhere
    degree = v - m
    lower = ops.where(ops.equal(degree, 0), 0.0, 1.0 - degree)
    inner = degree * (v + m + 1.0) / (m + 1.0) * h(lower, v + m + 2.0, m + 2.0, t)
    outer = ops.where(ops.equal(m, 0), 0.0, m * x * ops.pow(rest, 0.5 * m - 1.0))
    slope = 0.5 * ops.pow(rest, 0.5 * m) * inner - outer * h(-degree, v + m + 1.0, m + 1.0, t)
    return ops.where(ops.equal(scale, 0), 0.0, scale * slope)


def _lpmv_rule(g: Value, ans: Value, m: Value, v: Value, x: Value) -> Value:
    end = ops.equal(ops.abs(x), 1)
    y = ops.where(end, 0.0, x)
    lower = (v + m) * ops.special.lpmv(m, v - 1, y)
    inside = (v * y * ops.where(end, 0.0, ans) - lower) / (y * y - 1.0)
    return g * ops.where(end, _lpmv_end(m, v, ops.where(end, x, 0.5)), inside)


@room(
    kernels.in_steps("lpmv", 2),
    Absent("the order is an integer"),
    Absent("the derivative in the degree is not known here"),
    _lpmv_rule,
    samples=ranges((0.0, 0.0), (1.5, 3.0), (-0.8, 0.8)),
    raises=True,
)
def lpmv(m: Operand, v: Operand, x: Operand, /) -> Value:
    """Associated Legendre function of integer order m and real degree v, for -1 <= x <= 1.

    Raises: ArgumentError: for orders or degrees beyond 10,000,000, which take as many steps.
    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> special.lpmv(0, 2.0, xp.asarray([0.0, 1.0])).tolist()
        [-0.5, 1.0]
    """
