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


def _slope_df(df: Value, t: Value) -> Value:
    """∂/∂df of the distribution function; the tail is I_x(df/2, 1/2) / 2, x = df / (df + t²)."""
    still = ops.logical_or(ops.isinf(t), ops.isinf(df))
    t, df = ops.where(still, 0.0, t), ops.where(still, 1.0, df)  # 0, as in the middle
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
    """Distribution function of Student's t with df degrees of freedom."""


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
    """Inverse of stdtr in t."""
