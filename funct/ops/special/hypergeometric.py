"""Chapter: hypergeometric functions, and the elliptic integrals and Legendre functions among them.

Derivatives from DLMF 13.3.15, 15.5.1, 19.4 and 14.10.5.
"""

from __future__ import annotations

import math

from funct import ops
from funct.core import Absent, Operand, Value
from funct.ops.samples import ranges, reals
from funct.ops.special.room import room

__all__ = [
    "ellipe", "ellipeinc", "ellipk", "ellipkinc", "ellipkm1", "exprel", "hyp0f1", "hyp1f1",
    "hyp2f1", "lpmv",
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
    """Confluent hypergeometric limit function 0F1(; v; z)."""


def _hyp1f1_rule(g: Value, a: Operand, b: Operand, z: Value) -> Value:
    return g * (a / b * ops.special.hyp1f1(a + 1, b + 1, z))


@room(
    "hyp1f1",
    _PARAMETER,
    _PARAMETER,
    _hyp1f1_rule,
    samples=ranges((0.5, 3.0), (0.5, 3.0), (-2.0, 2.0)),
)
def hyp1f1(a: Operand, b: Operand, z: Operand, /) -> Value:
    """Kummer's confluent hypergeometric function M(a, b, z)."""


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
    """Gauss's hypergeometric function F(a, b; c; z)."""


def _exprel_rule(g: Value, x: Value) -> Value:
    return g * (0.5 * ops.special.hyp1f1(2.0, 3.0, x))


@room("exprel", _exprel_rule, samples=reals())
def exprel(x: Operand, /) -> Value:
    """expm1(x) / x, 1 at 0."""


def _ellipk_rule(g: Value, m: Value) -> Value:
    return g * (math.pi / 8.0 * ops.special.hyp2f1(1.5, 1.5, 2.0, m))


@room("ellipk", _ellipk_rule, samples=_MODULUS)
def ellipk(m: Operand, /) -> Value:
    """Complete elliptic integral of the first kind of the parameter m."""


def _ellipkm1_rule(g: Value, ans: Value, p: Value) -> Value:
    near = ops.less(p, 0.5)  # 1 − p would lose p
    q = ops.where(near, p, 0.25)
    whole = ops.special.ellipe(1.0 - q) / q - ans
    far = math.pi / 8.0 * ops.special.hyp2f1(1.5, 1.5, 2.0, 1.0 - ops.where(near, 1.0, p))
    return -g * ops.where(near, whole / (2.0 * (1.0 - q)), far)


@room("ellipkm1", _ellipkm1_rule, samples=reals(0.05, 2.0))
def ellipkm1(p: Operand, /) -> Value:
    """ellipk(1 - p), accurate near p = 0."""


def _ellipe_rule(g: Value, m: Value) -> Value:
    return g * (-math.pi / 8.0 * ops.special.hyp2f1(0.5, 1.5, 2.0, m))


@room("ellipe", _ellipe_rule, samples=_MODULUS)
def ellipe(m: Operand, /) -> Value:
    """Complete elliptic integral of the second kind of the parameter m."""


def _delta(phi: Value, m: Value) -> Value:
    return ops.sqrt(1.0 - m * ops.square(ops.sin(phi)))


def _ellipkinc_rule_phi(g: Value, phi: Value, m: Value) -> Value:
    return g / _delta(phi, m)


def _ellipkinc_rule_m(g: Value, ans: Value, phi: Value, m: Value) -> Value:
    zero = ops.equal(m, 0)
    m1 = ops.where(zero, 0.5, m)
    rest = 1.0 - m1
    slope = ops.special.ellipeinc(phi, m) / (2.0 * m1 * rest) - ans / (2.0 * m1)
    slope = slope - ops.sin(2.0 * phi) / (4.0 * rest * _delta(phi, m1))
    at_zero = (2.0 * phi - ops.sin(2.0 * phi)) / 8.0
    return g * ops.where(zero, at_zero, slope)


_AMPLITUDE = ranges((0.2, 1.4), (0.2, 0.8))


@room(
    "ellipkinc",
    _ellipkinc_rule_phi,
    _ellipkinc_rule_m,
    samples=_AMPLITUDE,
)
def ellipkinc(phi: Operand, m: Operand, /) -> Value:
    """Incomplete elliptic integral of the first kind."""


def _ellipeinc_rule_phi(g: Value, phi: Value, m: Value) -> Value:
    return g * _delta(phi, m)


def _ellipeinc_rule_m(g: Value, ans: Value, phi: Value, m: Value) -> Value:
    zero = ops.equal(m, 0)
    slope = (ans - ops.special.ellipkinc(phi, m)) / (2.0 * ops.where(zero, 1.0, m))
    return g * ops.where(zero, (ops.sin(2.0 * phi) - 2.0 * phi) / 8.0, slope)


@room(
    "ellipeinc",
    _ellipeinc_rule_phi,
    _ellipeinc_rule_m,
    samples=_AMPLITUDE,
)
def ellipeinc(phi: Operand, m: Operand, /) -> Value:
    """Incomplete elliptic integral of the second kind."""


def _lpmv_rule(g: Value, ans: Value, m: Operand, v: Operand, x: Value) -> Value:
    lower = (v + m) * ops.special.lpmv(m, v - 1, x)
    return g * ((v * x * ans - lower) / (x * x - 1.0))


@room(
    "lpmv",
    Absent("the order is an integer"),
    Absent("the derivative in the degree is not known here"),
    _lpmv_rule,
    samples=ranges((0.0, 0.0), (1.5, 3.0), (-0.8, 0.8)),
)
def lpmv(m: Operand, v: Operand, x: Operand, /) -> Value:
    """Associated Legendre function of integer order m and real degree v, for -1 <= x <= 1."""
