"""Chapter: Student's t distribution, whose incomplete beta function is taken near its ends."""

from __future__ import annotations

import math

from funct import ops
from funct.core import Operand, Value
from funct.ops.samples import ranges
from funct.ops.special.room import room

__all__ = ["stdtr", "stdtrit"]


def _density(df: Value, t: Value) -> Value:
    normal = ops.isinf(df)
    df = ops.where(normal, 1.0, df)
    power = -0.5 * (df + 1) * ops.log1p(t * t / df)
    student = ops.exp(power - ops.special.betaln(0.5, 0.5 * df)) / ops.sqrt(df)
    return ops.where(normal, ops.exp(-0.5 * t * t) / math.sqrt(2.0 * math.pi), student)


def _normal_slope(df: Value, t: Value) -> Value:
    """∂/∂df for df ≫ t⁴. Source: Fisher, Expansion of Student's integral, 1925."""
    s, r = t * t, 1.0 / df
    first = s + 1.0
    second = ((3.0 * s - 7.0) * s - 5.0) * s - 3.0
    third = ((((s - 11.0) * s + 14.0) * s + 6.0) * s - 3.0) * s - 15.0
    series = first + r * (second / 12.0 + r * (third / 32.0))
    return 0.25 * t * r * r * series * ops.exp(-0.5 * s) / math.sqrt(2.0 * math.pi)


def _middle_slope(df: Value, t: Value) -> Value:
    """∂/∂df at t = 0, where it is t times that of the density."""
    a = 0.5 * df
    return -0.5 * t * _density(df, t) * (ops.special.betaln_slope(a, 0.5) + 1.0 / df)


def _slope_df(df: Value, t: Value) -> Value:
    """∂/∂df of the distribution function, where parts of its formula do not lose one another."""
    still = ops.logical_or(ops.isinf(t), ops.isinf(df))
    t, df = ops.where(still, 0.0, t), ops.where(still, 1.0, df)  # 0, as in the middle
    middle = ops.equal(t, 0)
    many = ops.greater(df, 3000.0 * ops.square(1.0 + t * t))
    near = _normal_slope(ops.where(many, df, 1.0), t)
    rest = _tail_slope(ops.where(many, 1.0, df), ops.where(middle, 1.0, t))
    return ops.where(many, near, ops.where(middle, _middle_slope(df, t), rest))


def _tail_slope(df: Value, t: Value) -> Value:
    """∂/∂df; the tail is I_x(df/2, 1/2) / 2, x = df / (df + t²)."""
    square, a = t * t, 0.5 * df
    far = ops.greater(square, df)
    x = ops.where(far, df / (df + square), 0.5)
    y = ops.where(far, 0.5, square / (df + square))  # 1 − x, where that has more digits
    outer = ops.special.betainc_slope(a, 0.5, x, 1, 0)
    inner = ops.special.betainc_slope(0.5, a, y, 0, 1)
    tail = 0.25 * ops.where(far, outer, -inner) + _density(df, t) * ops.abs(t) / (2 * df)
    return -ops.sign(t) * tail


def _stdtr_rule_df(g: Value, df: Value, t: Value) -> Value:
    return g * _slope_df(df, t)


def _stdtr_rule_t(g: Value, df: Value, t: Value) -> Value:
    return g * _density(df, t)


@room(
    "stdtr",
    _stdtr_rule_df,
    _stdtr_rule_t,
    samples=ranges((1.0, 6.0), (0.3, 3.0)),
)
def stdtr(df: Operand, t: Operand, /) -> Value:
    """Distribution function of Student's t with df degrees of freedom.

    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> round(float(special.stdtr(1, xp.asarray(1.0))), 6)  # Cauchy's distribution
        0.75
    """


def _stdtrit_rule_df(g: Value, ans: Value, df: Value) -> Value:
    return -g * (_slope_df(df, ans) / _density(df, ans))


def _stdtrit_rule_p(g: Value, ans: Value, df: Value) -> Value:
    return g / _density(df, ans)


@room(
    "stdtrit",
    _stdtrit_rule_df,
    _stdtrit_rule_p,
    samples=ranges((1.0, 6.0), (0.6, 0.9)),
)
def stdtrit(df: Operand, p: Operand, /) -> Value:
    """Inverse of stdtr in t.

    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> round(float(special.stdtrit(10, xp.asarray(0.975))), 3)
        2.228
    """
