"""Chapter: Bessel functions. Derivatives from DLMF 10.6.

Derivatives in the order have no closed form: `jv_slope` and its kind are all of them, for x > 0.
"""

from __future__ import annotations

from typing import Any

from funct import ops
from funct.core import Absent, Operand, Value
from funct.errors import UndefinedDerivativeError
from funct.kernels.special import order_slopes
from funct.kernels.special.functions import by_name
from funct.ops.samples import ordered, ranges, reals
from funct.ops.special.room import room

__all__ = [
    "by_order", "half_difference", "half_sum", "hankel1", "hankel2", "j0", "j1", "jv", "jv_slope",
    "neighbours", "y0", "y1", "yn", "yv", "yv_slope",
]  # fmt: skip

_INTEGER = Absent("the order is an integer")
_BOTH = reals(-4.0, 4.0)
_RIGHT = reals(0.3, 5.0)
_ORDERED = ranges((-1.5, 3.0), (0.4, 5.0))
_SLOPES = ranges((-1.5, 3.0), (0.4, 5.0), params=(1,))
_INTEGERS = ordered((0, 1, 2, 5), (0.4, 5.0))


def by_order(name: str, slope: Any, v: Value, x: Value) -> Any:
    """The derivative in the order of a function, as a slope gives it."""
    if x.dtype.kind == "c":
        raise UndefinedDerivativeError(
            f"{name}: no derivative in the order where z is complex: its integrals are for real z"
        )
    return slope(v, x, 1)


def half_difference(f: Any, v: Any, *rest: Any) -> Any:
    """(f at v − 1, minus f at v + 1) / 2."""
    return (f(v - 1, *rest) - f(v + 1, *rest)) * 0.5


def half_sum(f: Any, v: Any, *rest: Any) -> Any:
    """(f at v − 1, plus f at v + 1) / 2."""
    return (f(v - 1, *rest) + f(v + 1, *rest)) * 0.5


def neighbours(f: Any, ans: Value, v: Any, x: Value, sign: float) -> Value:
    """(f at v − 1, plus sign times f at v + 1) / 2, the derivative in x of jv and iv.

    By DLMF 10.6.2 and 10.29.2 where v is nearly 0, −1, …: 1/Γ would not bear v − 1 rounded.
    """
    off = ops.abs(v - ops.round(v))
    near = ops.logical_and(
        ops.less(off, 1e-6), ops.logical_and(ops.greater(off, 0), ops.less(v, 0.5))
    )
    near = ops.logical_and(near, ops.not_equal(x, 0))
    above = sign * f(v + 1, x)
    closed = ans * (v / ops.where(near, x, 1.0)) + above
    return ops.where(near, closed, 0.5 * (f(v - 1, x) + above))


def _jv_rule_v(g: Value, v: Value, x: Value) -> Value:
    return g * by_order("jv", ops.special.jv_slope, v, x)


def _jv_rule_x(g: Value, ans: Value, v: Value, x: Value) -> Value:
    return g * neighbours(ops.special.jv, ans, v, x, -1.0)


@room("jv", _jv_rule_v, _jv_rule_x, samples=_ORDERED)
def jv(v: Operand, x: Operand, /) -> Value:
    """Bessel function of the first kind of real order v; x may be complex.

    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> round(float(special.jv(0.5, xp.asarray(1.0))), 6)  # sqrt(2 / pi) sin(1)
        0.671397
    """


def _jv_slope_rule_v(g: Value, v: Value, x: Value, n: int) -> Value:
    return g * ops.special.jv_slope(v, x, n + 1)


def _jv_slope_rule_x(g: Value, v: Value, x: Value, n: int) -> Value:
    return g * half_difference(ops.special.jv_slope, v, x, n)


@room(
    order_slopes.jv_slope,
    _jv_slope_rule_v,
    _jv_slope_rule_x,
    samples=_SLOPES,
)
def jv_slope(v: Operand, x: Operand, /, n: int) -> Value:
    """n-th derivative of jv(v, x) in v."""


def _yv_rule_v(g: Value, v: Value, x: Value) -> Value:
    return g * by_order("yv", ops.special.yv_slope, v, x)


def _yv_rule_x(g: Value, v: Value, x: Value) -> Value:
    return g * half_difference(ops.special.yv, v, x)


@room("yv", _yv_rule_v, _yv_rule_x, samples=_ORDERED)
def yv(v: Operand, x: Operand, /) -> Value:
    """Bessel function of the second kind of real order v; x may be complex.

    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> round(float(special.yv(0.5, xp.asarray(1.0))), 6)  # -sqrt(2 / pi) cos(1)
        -0.431099
    """


def _yv_slope_rule_v(g: Value, v: Value, x: Value, n: int) -> Value:
    return g * ops.special.yv_slope(v, x, n + 1)


def _yv_slope_rule_x(g: Value, v: Value, x: Value, n: int) -> Value:
    return g * half_difference(ops.special.yv_slope, v, x, n)


def _hankel1_rule_v(g: Value, v: Value, z: Value) -> Value:
    real = by_order("hankel1", ops.special.jv_slope, v, z)
    return g * (real + 1j * ops.special.yv_slope(v, z, 1))


def _hankel1_rule_z(g: Value, v: Value, z: Value) -> Value:
    return g * half_difference(ops.special.hankel1, v, z)


@room(
    by_name("hankel1", 2, complex_too=True), _hankel1_rule_v, _hankel1_rule_z,
    samples=_ORDERED,
)  # fmt: skip
def hankel1(v: Operand, z: Operand, /) -> Value:
    """Hankel function of the first kind, jv + 1j * yv; complex, for real z too.

    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> h = special.hankel1(0, xp.asarray(1.0))
        >>> h.dtype, round(float(xp.imag(h)), 6)
        (dtype('complex128'), 0.088257)
    """


def _hankel2_rule_v(g: Value, v: Value, z: Value) -> Value:
    real = by_order("hankel2", ops.special.jv_slope, v, z)
    return g * (real - 1j * ops.special.yv_slope(v, z, 1))


def _hankel2_rule_z(g: Value, v: Value, z: Value) -> Value:
    return g * half_difference(ops.special.hankel2, v, z)


@room(
    by_name("hankel2", 2, complex_too=True), _hankel2_rule_v, _hankel2_rule_z,
    samples=_ORDERED,
)  # fmt: skip
def hankel2(v: Operand, z: Operand, /) -> Value:
    """Hankel function of the second kind, jv - 1j * yv; complex, for real z too.

    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> h = special.hankel2(0, xp.asarray(1.0))
        >>> h.dtype, round(float(xp.imag(h)), 6)
        (dtype('complex128'), -0.088257)
    """


@room(
    order_slopes.yv_slope,
    _yv_slope_rule_v,
    _yv_slope_rule_x,
    samples=_SLOPES,
)
def yv_slope(v: Operand, x: Operand, /, n: int) -> Value:
    """n-th derivative of yv(v, x) in v."""


def _yn_rule(g: Value, n: Operand, x: Value) -> Value:
    return g * half_difference(ops.special.yn, n, x)


@room("yn", _INTEGER, _yn_rule, samples=_INTEGERS)
def yn(n: Operand, x: Operand, /) -> Value:
    """Bessel function of the second kind of integer order n.

    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> round(float(special.yn(2, xp.asarray(1.0))), 6)
        -1.650683
    """


def _j0_rule(g: Value, x: Value) -> Value:
    return -g * ops.special.j1(x)


@room("j0", _j0_rule, samples=_BOTH)
def j0(x: Operand, /) -> Value:
    """Bessel function of the first kind of order 0.

    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> round(float(special.j0(xp.asarray(1.0))), 6)
        0.765198
    """


def _j1_rule(g: Value, x: Value) -> Value:
    return g * (0.5 * (ops.special.j0(x) - ops.special.jv(2.0, x)))


@room("j1", _j1_rule, samples=_BOTH)
def j1(x: Operand, /) -> Value:
    """Bessel function of the first kind of order 1.

    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> round(float(special.j1(xp.asarray(1.0))), 6)
        0.440051
    """


def _y0_rule(g: Value, x: Value) -> Value:
    return -g * ops.special.y1(x)


@room("y0", _y0_rule, samples=_RIGHT)
def y0(x: Operand, /) -> Value:
    """Bessel function of the second kind of order 0.

    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> round(float(special.y0(xp.asarray(1.0))), 6)
        0.088257
    """


def _y1_rule(g: Value, ans: Value, x: Value) -> Value:
    return g * (ops.special.y0(x) - ans / x)


@room("y1", _y1_rule, samples=_RIGHT)
def y1(x: Operand, /) -> Value:
    """Bessel function of the second kind of order 1.

    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> round(float(special.y1(xp.asarray(1.0))), 6)
        -0.781213
    """
