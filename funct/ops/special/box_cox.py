"""Chapter: the power transforms of Box and Cox, and their inverses."""

from __future__ import annotations

from funct import ops
from funct.core import Operand, Value
from funct.ops.samples import ranges
from funct.ops.special.room import room

__all__ = ["boxcox", "boxcox1p", "inv_boxcox", "inv_boxcox1p"]


def _boxcox_slope(log: Value, lmbda: Value) -> Value:
    """Derivative of expm1(λ log) / λ in λ; log is -inf where the base is 0."""
    u = lmbda * log
    far = ops.less(u, -50.0)  # where exp(u) is small, but all that depends on the base
    deep = ops.where(far, ops.where(ops.isinf(u), -1e6, u), 0.0)
    rest = 1.0 + ops.exp(deep) * (deep - 1.0)
    near = log * log * ops.special.exprel_slope(ops.where(far, 0.0, u), 1)
    return ops.where(far, rest / ops.square(ops.where(far, lmbda, 1.0)), near)


def _boxcox_rule_x(g: Value, x: Value, lmbda: Value) -> Value:
    # At 0 a pole is exp(∞), whose derivative in λ is no 0 · ∞; elsewhere a power has more digits.
    pole = ops.logical_and(ops.equal(x, 0), ops.less(lmbda, 1))
    risen = ops.exp((lmbda - 1.0) * ops.log(ops.where(pole, x, 1.0)))
    return g * ops.where(pole, risen, ops.pow(ops.where(pole, 1.0, x), lmbda - 1.0))


def _boxcox_rule_lmbda(g: Value, x: Value, lmbda: Value) -> Value:
    return g * _boxcox_slope(ops.log(x), lmbda)


@room(
    "boxcox",
    _boxcox_rule_x,
    _boxcox_rule_lmbda,
    samples=ranges((0.4, 3.0), (-1.0, 1.0)),
)
def boxcox(x: Operand, lmbda: Operand, /) -> Value:
    """(x**lmbda - 1) / lmbda, log(x) at lmbda = 0.

    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> xp.round(special.boxcox(xp.asarray([1.0, 3.0]), 2.0)).tolist()
        [0.0, 4.0]
    """


def _boxcox1p_rule_x(g: Value, x: Value, lmbda: Value) -> Value:
    end = ops.equal(x, -1)  # where the exponential has no second derivative
    inside = ops.exp(ops.special.xlog1py(lmbda - 1.0, ops.where(end, 0.0, x)))
    return ops.where(end, _boxcox_rule_x(g, ops.where(end, 1.0 + x, 1.0), lmbda), g * inside)


def _boxcox1p_rule_lmbda(g: Value, x: Value, lmbda: Value) -> Value:
    return g * _boxcox_slope(ops.log1p(x), lmbda)


@room(
    "boxcox1p",
    _boxcox1p_rule_x,
    _boxcox1p_rule_lmbda,
    samples=ranges((-0.5, 3.0), (-1.0, 1.0)),
)
def boxcox1p(x: Operand, lmbda: Operand, /) -> Value:
    """boxcox(1 + x, lmbda), accurate near x = 0.

    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> float(special.boxcox1p(xp.asarray(1e-20), 0.0))
        1e-20
    """


def _inverse_slope(power: Value, y: Value, lmbda: Value) -> Value:
    """Derivative of (1 + λy)^(1/λ), which is power, in λ.

    That of log(1 + λy) / λ is y² times that of log(1 + u) / u; its pole at u = -1 meets a zero.
    """
    u = lmbda * y
    far = ops.less(u, -0.5)
    near = -0.5 * y * y * ops.special.hyp2f1(2.0, 2.0, 3.0, -ops.where(far, 0.0, u))
    base, l = ops.where(far, power, 1.0), ops.where(far, lmbda, 1.0)
    closed = (y * ops.pow(base, 1.0 - l) - ops.special.xlogy(base, base)) / l
    return ops.where(far, closed, ops.where(far, 0.0, power) * near)


def _inv_boxcox_rule_y(g: Value, ans: Value, lmbda: Value) -> Value:
    return g * ops.pow(ans, 1.0 - lmbda)


def _inv_boxcox_rule_lmbda(g: Value, ans: Value, y: Value, lmbda: Value) -> Value:
    return g * _inverse_slope(ans, y, lmbda)
_INVERSE = ranges((-0.8, 0.9), (-0.9, 1.0))


@room(
    "inv_boxcox",
    _inv_boxcox_rule_y,
    _inv_boxcox_rule_lmbda,
    samples=_INVERSE,
)
def inv_boxcox(y: Operand, lmbda: Operand, /) -> Value:
    """The x with boxcox(x, lmbda) = y.

    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> xp.round(special.inv_boxcox(xp.asarray([0.0, 4.0]), 2.0)).tolist()
        [1.0, 3.0]
    """


def _inv_boxcox1p_rule_y(g: Value, ans: Value, lmbda: Value) -> Value:
    return g * ops.pow(1.0 + ans, 1.0 - lmbda)


def _inv_boxcox1p_rule_lmbda(g: Value, ans: Value, y: Value, lmbda: Value) -> Value:
    return g * _inverse_slope(1.0 + ans, y, lmbda)


@room(
    "inv_boxcox1p",
    _inv_boxcox1p_rule_y,
    _inv_boxcox1p_rule_lmbda,
    samples=_INVERSE,
)
def inv_boxcox1p(y: Operand, lmbda: Operand, /) -> Value:
    """The x with boxcox1p(x, lmbda) = y.

    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> xp.round(special.inv_boxcox1p(xp.asarray([0.0, 4.0]), 2.0)).tolist()
        [0.0, 2.0]
    """
