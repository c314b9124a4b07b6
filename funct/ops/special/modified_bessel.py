"""Chapter: modified Bessel functions. Derivatives from DLMF 10.29.

Those in the order have no closed form: `ive_slope` and `kve_slope` are all of them, for x > 0.
"""

from __future__ import annotations

from typing import Any

from funct import ops
from funct.core import Absent, Operand, Value
from funct.errors import UndefinedDerivativeError
from funct.kernels.special import order_slopes
from funct.ops.samples import ordered, ranges, reals
from funct.ops.special.bessel import by_order, half_sum, neighbours
from funct.ops.special.room import room

__all__ = [
    "i0", "i0e", "i1", "i1e", "iv", "ive", "ive_slope", "k0", "k0e", "k1", "k1e", "kn", "kv",
    "kve", "kve_slope",
]  # fmt: skip

_INTEGER = Absent("the order is an integer")
_BOTH = reals(-4.0, 4.0)
_RIGHT = reals(0.3, 5.0)
_ORDERED = ranges((-1.5, 3.0), (0.4, 5.0))
_SLOPES = ranges((-1.5, 3.0), (0.4, 5.0), params=(1,))
_INTEGERS = ordered((0, 1, 2, 5), (0.4, 5.0))


def _real_only(name: str, x: Value) -> None:
    if x.dtype.kind == "c":
        raise UndefinedDerivativeError(
            f"{name}: no derivative: exp(-abs(real(z))) makes it not analytic in complex z"
        )


def _scaled(v: Any, x: Value, ans: Value, slope: Value, grows: bool) -> Value:
    """Derivative in x of iv or kv (grows: iv) without its exponential factor, as given by slope.

    Far out slope is a difference that has lost its digits; there by the logarithm of the series
    DLMF 10.40.1 and 10.40.2, whose first terms are these.
    """
    mu = 4.0 * v * v
    far = ops.greater(ops.abs(x) / 2000.0, 1.0 + mu)
    r = 1.0 / ops.where(far, x, 1.0)
    s = ops.abs(r) if grows else -r
    series = 0.125 * (mu - 1.0) * s * (1.0 + s * (1.0 + s * (25.0 - mu) / 16.0))
    return ops.where(far, ans * r * (series - 0.5), slope)


def _iv_rule_v(g: Value, v: Value, x: Value) -> Value:
    return g * (ops.exp(x) * by_order("iv", ops.special.ive_slope, v, x))


def _iv_rule_x(g: Value, ans: Value, v: Value, x: Value) -> Value:
    return g * neighbours(ops.special.iv, ans, v, x, 1.0)


@room("iv", _iv_rule_v, _iv_rule_x, samples=_ORDERED)
def iv(v: Operand, x: Operand, /) -> Value:
    """Modified Bessel function of the first kind of real order v; x may be complex.

    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> round(float(special.iv(0.5, xp.asarray(1.0))), 6)  # sqrt(2 / pi) sinh(1)
        0.937675
    """


def _ive_rule_v(g: Value, v: Value, x: Value) -> Value:
    return g * by_order("ive", ops.special.ive_slope, v, x)


def _ive_rule_x(g: Value, ans: Value, v: Value, x: Value) -> Value:
    _real_only("ive", x)
    zero = ops.equal(x, 0)  # where SciPy has no ive of order below 0
    sides = half_sum(ops.special.ive, v, ops.where(zero, 1.0, x))
    sides = ops.where(zero, half_sum(ops.special.iv, v, ops.where(zero, x, 1.0)), sides)
    return g * _scaled(v, x, ans, sides - ops.sign(x) * ans, grows=True)


@room("ive", _ive_rule_v, _ive_rule_x, samples=_ORDERED)
def ive(v: Operand, x: Operand, /) -> Value:
    """iv(v, x) * exp(-abs(real(x))).

    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> round(float(special.ive(0.5, xp.asarray(1000.0))), 6)
        0.012616
    """


def _ive_slope_rule_v(g: Value, v: Value, x: Value, n: int) -> Value:
    return g * ops.special.ive_slope(v, x, n + 1)


def _ive_slope_rule_x(g: Value, ans: Value, v: Value, x: Value, n: int) -> Value:
    return g * (half_sum(ops.special.ive_slope, v, x, n) - ans)


@room(
    order_slopes.ive_slope,
    _ive_slope_rule_v,
    _ive_slope_rule_x,
    samples=_SLOPES,
)
def ive_slope(v: Operand, x: Operand, /, n: int) -> Value:
    """n-th derivative of ive(v, x) in v."""


def _kv_rule_v(g: Value, v: Value, x: Value) -> Value:
    return g * (ops.exp(-x) * by_order("kv", ops.special.kve_slope, v, x))


def _kv_rule_x(g: Value, v: Value, x: Value) -> Value:
    return -g * half_sum(ops.special.kv, v, x)


@room("kv", _kv_rule_v, _kv_rule_x, samples=_ORDERED)
def kv(v: Operand, x: Operand, /) -> Value:
    """Modified Bessel function of the second kind of real order v; x may be complex.

    Notes: NaN for orders of 2**30 and more, as SciPy's.
    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> round(float(special.kv(0.5, xp.asarray(1.0))), 6)  # sqrt(pi / 2) exp(-1)
        0.461069
    """


def _kve_rule_v(g: Value, v: Value, x: Value) -> Value:
    return g * by_order("kve", ops.special.kve_slope, v, x)


def _kve_rule_x(g: Value, ans: Value, v: Value, x: Value) -> Value:
    return g * _scaled(v, x, ans, ans - half_sum(ops.special.kve, v, x), grows=False)


@room("kve", _kve_rule_v, _kve_rule_x, samples=_ORDERED)
def kve(v: Operand, x: Operand, /) -> Value:
    """kv(v, x) * exp(x).

    Notes: NaN for orders of 2**30 and more, as SciPy's.
    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> round(float(special.kve(0.5, xp.asarray(1000.0))), 6)
        0.039633
    """


def _kve_slope_rule_v(g: Value, v: Value, x: Value, n: int) -> Value:
    return g * ops.special.kve_slope(v, x, n + 1)


def _kve_slope_rule_x(g: Value, ans: Value, v: Value, x: Value, n: int) -> Value:
    return g * (ans - half_sum(ops.special.kve_slope, v, x, n))


@room(
    order_slopes.kve_slope,
    _kve_slope_rule_v,
    _kve_slope_rule_x,
    samples=_SLOPES,
)
def kve_slope(v: Operand, x: Operand, /, n: int) -> Value:
    """n-th derivative of kve(v, x) in v."""


def _kn_rule(g: Value, n: Operand, x: Value) -> Value:
    return -g * half_sum(ops.special.kn, n, x)


@room("kn", _INTEGER, _kn_rule, samples=_INTEGERS)
def kn(n: Operand, x: Operand, /) -> Value:
    """Modified Bessel function of the second kind of integer order n.

    Notes: NaN for orders of 2**30 and more, as SciPy's.
    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> round(float(special.kn(2, xp.asarray(1.0))), 6)
        1.624839
    """


def _i0_rule(g: Value, x: Value) -> Value:
    return g * ops.special.i1(x)


@room("i0", _i0_rule, samples=_BOTH, stable=True)
def i0(x: Operand, /) -> Value:
    """Modified Bessel function of the first kind of order 0.

    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> round(float(special.i0(xp.asarray(1.0))), 6)
        1.266066
    """


def _i1_rule(g: Value, x: Value) -> Value:
    near = ops.less(ops.abs(x), 1e-6)  # SciPy's is NaN at the smallest numbers
    beside = ops.where(near, x * x / 8.0, ops.special.iv(2.0, ops.where(near, 1.0, x)))
    return g * (0.5 * (ops.special.i0(x) + beside))


@room("i1", _i1_rule, samples=_BOTH, stable=True)
def i1(x: Operand, /) -> Value:
    """Modified Bessel function of the first kind of order 1.

    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> round(float(special.i1(xp.asarray(1.0))), 6)
        0.565159
    """


def _i0e_rule(g: Value, ans: Value, x: Value) -> Value:
    return g * _scaled(0.0, x, ans, ops.special.i1e(x) - ops.sign(x) * ans, grows=True)


@room("i0e", _i0e_rule, samples=_RIGHT)
def i0e(x: Operand, /) -> Value:
    """i0(x) * exp(-abs(x)); at its kink 0 the derivative is 0.

    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> round(float(special.i0e(xp.asarray(1000.0))), 6)  # i0(1000) overflows
        0.012617
    """


def _i1e_rule(g: Value, ans: Value, x: Value) -> Value:
    plain = 0.5 * (ops.special.i0e(x) + ops.special.ive(2.0, x))
    return g * _scaled(1.0, x, ans, plain - ops.sign(x) * ans, grows=True)


@room("i1e", _i1e_rule, samples=_RIGHT)
def i1e(x: Operand, /) -> Value:
    """i1(x) * exp(-abs(x)).

    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> round(float(special.i1e(xp.asarray(1000.0))), 6)  # i1(1000) overflows
        0.012611
    """


def _k0_rule(g: Value, x: Value) -> Value:
    return -g * ops.special.k1(x)


@room("k0", _k0_rule, samples=_RIGHT, stable=True)
def k0(x: Operand, /) -> Value:
    """Modified Bessel function of the second kind of order 0.

    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> round(float(special.k0(xp.asarray(1.0))), 6)
        0.421024
    """


def _k1_rule(g: Value, ans: Value, x: Value) -> Value:
    return -g * (ops.special.k0(x) + ans / x)


@room("k1", _k1_rule, samples=_RIGHT, stable=True)
def k1(x: Operand, /) -> Value:
    """Modified Bessel function of the second kind of order 1.

    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> round(float(special.k1(xp.asarray(1.0))), 6)
        0.601907
    """


def _k0e_rule(g: Value, ans: Value, x: Value) -> Value:
    return g * _scaled(0.0, x, ans, ans - ops.special.k1e(x), grows=False)


@room("k0e", _k0e_rule, samples=_RIGHT)
def k0e(x: Operand, /) -> Value:
    """k0(x) * exp(x).

    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> round(float(special.k0e(xp.asarray(1000.0))), 6)  # k0(1000) underflows
        0.039628
    """


def _k1e_rule(g: Value, ans: Value, x: Value) -> Value:
    return g * _scaled(1.0, x, ans, ans - ops.special.k0e(x) - ans / x, grows=False)


@room("k1e", _k1e_rule, samples=_RIGHT)
def k1e(x: Operand, /) -> Value:
    """k1(x) * exp(x).

    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> round(float(special.k1e(xp.asarray(1000.0))), 6)  # k1(1000) underflows
        0.039648
    """
