"""Chapter: functions of information theory, and the losses that SciPy has beside them."""

from __future__ import annotations

from funct import ops
from funct.core import Operand, Value
from funct.ops.powers import inexact
from funct.ops.samples import pairs, ranges, reals
from funct.ops.special.room import bounded, room

__all__ = ["entr", "huber", "kl_div", "pseudo_huber", "rel_entr", "xlog1py", "xlogy"]

_UNIT = reals(0.1, 0.9)
_TWO = ranges((0.3, 3.0), (0.3, 3.0))


def _xlogy_rule_x(g: Value, x: Value, y: Value) -> Value:
    nothing = ops.logical_and(ops.equal(x, 0), ops.equal(y, 0))
    return g * ops.log(ops.where(nothing, 1.0, inexact(y, g)))


def _xlogy_rule_y(g: Value, x: Value, y: Value) -> Value:
    nothing = ops.logical_and(ops.equal(x, 0), ops.equal(y, 0))
    return g * (x / ops.where(nothing, 1.0, y))


@room(
    "xlogy",
    _xlogy_rule_x,
    _xlogy_rule_y,
    samples=pairs(x=(0.3, 2.0), y=(0.3, 2.0), complex_too=True),
    stable=True,
)
def xlogy(x: Operand, y: Operand, /) -> Value:
    """x * log(y), and 0 where x is 0; both derivatives are 0 where x and y are 0.

    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> special.xlogy(xp.asarray([0.0, 2.0]), xp.asarray([0.0, 1.0])).tolist()
        [0.0, 0.0]
    """


def _xlog1py_rule_x(g: Value, x: Value, y: Value) -> Value:
    nothing = ops.logical_and(ops.equal(x, 0), ops.equal(y, -1))
    return g * ops.log1p(ops.where(nothing, 0.0, inexact(y, g)))


def _xlog1py_rule_y(g: Value, x: Value, y: Value) -> Value:
    nothing = ops.logical_and(ops.equal(x, 0), ops.equal(y, -1))
    return g * (x / (1.0 + ops.where(nothing, 0.0, y)))


@room(
    "xlog1py",
    _xlog1py_rule_x,
    _xlog1py_rule_y,
    samples=pairs(x=(0.3, 2.0), y=(-0.6, 2.0), complex_too=True),
    stable=True,
)
def xlog1py(x: Operand, y: Operand, /) -> Value:
    """x * log1p(y), and 0 where x is 0; both derivatives are 0 where x is 0 and y is -1.

    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> special.xlog1py(xp.asarray([0.0, 1.0]), xp.asarray([-1.0, 1e-20])).tolist()
        [0.0, 1e-20]
    """


def _entr_rule(g: Value, x: Value) -> Value:
    return -g * (1.0 + ops.log(x))


@room("entr", _entr_rule, samples=_UNIT)
def entr(x: Operand, /) -> Value:
    """-x * log(x), 0 at 0, where the derivative is infinite; -inf for x < 0.

    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> p = xp.asarray([0.5, 0.5, 0.0])
        >>> round(float(xp.sum(special.entr(p))), 6)  # log(2)
        0.693147
    """


def _log_ratio(x: Value, y: Value) -> Value:
    """log(x / y), accurate for x near y."""
    ratio = x / y
    near = ops.less(ops.abs(ratio - 1.0), 0.5)
    step = ops.where(near, (x - y) / y, 0.0)
    size = ops.abs(ratio)  # which may overflow, and underflow, as the logarithm does not
    apart = ops.logical_or(ops.less(size, 1e-100), ops.greater(size, 1e100))
    apart = ops.logical_or(apart, ops.equal(x, 0))
    far = ops.log(ops.where(ops.logical_or(near, apart), 1.0, ratio))
    two = ops.log(ops.where(apart, x, 1.0)) - ops.log(ops.where(apart, y, 1.0))
    return ops.where(near, ops.log1p(step), ops.where(apart, two, far))


def _rel_entr_rule_x(g: Value, x: Value, y: Value) -> Value:
    return g * (1.0 + _log_ratio(x, y))


def _rel_entr_rule_y(g: Value, x: Value, y: Value) -> Value:
    nothing = ops.logical_and(ops.equal(x, 0), ops.equal(y, 0))
    return -g * (x / ops.where(nothing, 1.0, y))


@room(
    "rel_entr",
    _rel_entr_rule_x,
    _rel_entr_rule_y,
    samples=_TWO,
)
def rel_entr(x: Operand, y: Operand, /) -> Value:
    """x * log(x / y), 0 where x is 0 and y >= 0, else infinite outside of x, y > 0.

    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> p, q = xp.asarray([1.0, 0.0]), xp.asarray([0.5, 0.5])
        >>> round(float(xp.sum(special.rel_entr(p, q))), 6)  # log(2)
        0.693147
    """


def _kl_div_rule_x(g: Value, x: Value, y: Value) -> Value:
    return g * _log_ratio(x, y)


def _kl_div_rule_y(g: Value, x: Value, y: Value) -> Value:
    nothing = ops.logical_and(ops.equal(x, 0), ops.equal(y, 0))
    y = ops.where(nothing, 1.0, y)
    return g * ((y - x) / y)


@room(
    "kl_div",
    _kl_div_rule_x,
    _kl_div_rule_y,
    samples=_TWO,
)
def kl_div(x: Operand, y: Operand, /) -> Value:
    """x * log(x / y) - x + y, y where x is 0, else infinite outside of x, y > 0.

    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> special.kl_div(xp.asarray([1.0, 0.0]), xp.asarray([1.0, 0.5])).tolist()
        [0.0, 0.5]
    """


def _huber_rule_delta(g: Value, delta: Value, r: Value) -> Value:
    return g * ops.maximum(ops.abs(inexact(r, g)) - delta, 0.0)


def _huber_rule_r(g: Value, delta: Value, r: Value) -> Value:
    delta = inexact(delta, g)
    return g * ops.minimum(ops.maximum(r, -delta), delta)


@room(
    "huber",
    _huber_rule_delta,
    _huber_rule_r,
    samples=ranges((0.5, 1.0), (1.1, 3.0)),
    stable=True,
)
def huber(delta: Operand, r: Operand, /) -> Value:
    """r**2 / 2 for abs(r) <= delta, else delta * (abs(r) - delta / 2).

    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> special.huber(1.0, xp.asarray([0.5, -3.0])).tolist()
        [0.125, 2.5]
    """


def _shares(delta: Value, r: Value) -> tuple[Value, Value]:
    """delta and r over their hypotenuse, 0 at the origin."""
    delta, r = bounded(delta, 1e300), bounded(r, 1e300)
    h = ops.hypot(delta, r)
    safe = ops.where(ops.equal(h, 0), 1.0, h)
    return delta / safe, r / safe


def _pseudo_huber_rule_delta(g: Value, delta: Value, r: Value) -> Value:
    c, s = _shares(delta, r)
    return g * (r * s * ops.square(s / (1.0 + c)))


def _pseudo_huber_rule_r(g: Value, delta: Value, r: Value) -> Value:
    c, s = _shares(delta, r)
    steep = ops.greater(ops.abs(r), ops.abs(delta))  # the smaller one, which may be the finite one
    return g * ops.where(steep, delta * s, r * c)


@room(
    "pseudo_huber",
    _pseudo_huber_rule_delta,
    _pseudo_huber_rule_r,
    samples=ranges((0.5, 2.0), (-2.0, 2.0)),
)
def pseudo_huber(delta: Operand, r: Operand, /) -> Value:
    """delta**2 * (sqrt(1 + (r / delta)**2) - 1).

    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> round(float(special.pseudo_huber(1.0, xp.asarray(1.0))), 6)  # sqrt(2) - 1
        0.414214
    """
