"""Chapter: logistic functions, entropies, losses, power transforms, angles in degrees."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from funct import ops
from funct.core import Operand, Value
from funct.kernels.special.functions import numpys
from funct.ops.samples import pairs, ranges, reals
from funct.ops.special.room import bounded, room

__all__ = [
    "boxcox", "boxcox1p", "cbrt", "cosdg", "cosm1", "cotdg", "entr", "exp10", "exp2", "expit",
    "huber", "inv_boxcox", "inv_boxcox1p", "kl_div", "log_expit", "logit", "pseudo_huber",
    "radian", "rel_entr", "sindg", "tandg", "xlog1py", "xlogy",
]  # fmt: skip

_ANY = reals()
_UNIT = reals(0.1, 0.9)
_TWO = ranges((0.3, 3.0), (0.3, 3.0))
_DEGREE = math.pi / 180.0


def _logit_rule(g: Value, x: Value) -> Value:
    return g / x + g / (1.0 - x)  # the derivative of x (1 - x) is ∞ - ∞ near 0


def _onnx_logit(w: Any, x: str) -> str:
    rest = w.op("Sub", w.constant(1, w.dtype_of(x)), x)
    return str(w.op("Log", w.op("Div", x, rest)))


@room("logit", _logit_rule, onnx=_onnx_logit, samples=_UNIT, stable=True)
def logit(x: Operand, /) -> Value:
    """log(x / (1 - x)), the inverse of expit; infinite at 0 and 1.

    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> y = special.logit(xp.asarray(0.2))
        >>> round(float(y), 6), round(float(special.expit(y)), 12)
        (-1.386294, 0.2)
    """


def _expit_rule(g: Value, ans: Value, x: Value) -> Value:
    return g * (ans * ops.special.expit(-x))  # 1 − ans loses its digits where ans is near 1


@room("expit", _expit_rule, onnx="Sigmoid", samples=_ANY, code="1 / (1 + exp(-{0}))")
def expit(x: Operand, /) -> Value:
    """1 / (1 + exp(-x)), without overflow.

    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> special.expit(xp.asarray([-1000.0, 0.0, 1000.0])).tolist()
        [0.0, 0.5, 1.0]
    """


def _log_expit_rule(g: Value, x: Value) -> Value:
    return g * ops.sigmoid(-x)


def _onnx_log_expit(w: Any, x: str) -> str:
    return str(w.op("Neg", w.op("Softplus", w.op("Neg", x))))


@room("log_expit", _log_expit_rule, onnx=_onnx_log_expit, samples=_ANY, stable=True)
def log_expit(x: Operand, /) -> Value:
    """log(sigmoid(x)), without underflow.

    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> special.log_expit(xp.asarray([-1000.0, 1000.0])).tolist()
        [-1000.0, -0.0]
    """


def _radian_rule_d(g: Value) -> Value:
    return g * (math.pi / 180.0)


def _radian_rule_m(g: Value) -> Value:
    return g * (math.pi / (180.0 * 60.0))


def _radian_rule_s(g: Value) -> Value:
    return g * (math.pi / (180.0 * 3600.0))


@room(
    "radian",
    _radian_rule_d,
    _radian_rule_m,
    _radian_rule_s,
    samples=ranges((-90.0, 90.0), (0.0, 60.0), (0.0, 60.0)),
)
def radian(d: Operand, m: Operand, s: Operand, /) -> Value:
    """The angle of d degrees, m minutes and s seconds, in radians.

    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> round(float(special.radian(xp.asarray(179.0), 59.0, 60.0)), 6)
        3.141593
    """


def _xlogy_rule_x(g: Value, x: Value, y: Value) -> Value:
    nothing = ops.logical_and(ops.equal(x, 0), ops.equal(y, 0))
    return g * ops.log(ops.where(nothing, 1.0, y))


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
    return g * ops.log1p(ops.where(nothing, 0.0, y))


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
    return g * ops.maximum(ops.abs(r) - delta, 0.0)


def _huber_rule_r(g: Value, delta: Value, r: Value) -> Value:
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


def _cbrt_rule(g: Value, ans: Value) -> Value:
    return g / 3.0 / ans / ans  # one after the other: its derivative at inf is no 0 · ∞


@room(numpys(np.cbrt, "cbrt"), _cbrt_rule, samples=reals(-2.0, -0.3), stable=True)
def cbrt(x: Operand, /) -> Value:
    """Real cube root; the derivative at 0 is infinite.

    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> special.cbrt(xp.asarray([-8.0, 27.0])).tolist()
        [-2.0, 3.0]
    """


def _exp2_rule(g: Value, ans: Value) -> Value:
    return g * (math.log(2.0) * ans)


@room(numpys(np.exp2, "exp2"), _exp2_rule, samples=_ANY, stable=True)
def exp2(x: Operand, /) -> Value:
    """2 to the power x.

    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> special.exp2(xp.asarray([-1.0, 10.0])).tolist()
        [0.5, 1024.0]
    """


def _exp10_rule(g: Value, ans: Value) -> Value:
    return g * (math.log(10.0) * ans)


@room("exp10", _exp10_rule, samples=_ANY, stable=True)
def exp10(x: Operand, /) -> Value:
    """10 to the power x.

    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> special.exp10(xp.asarray([0.0, 3.0])).tolist()
        [1.0, 1000.0]
    """


def _cosm1_rule(g: Value, x: Value) -> Value:
    return -g * ops.sin(x)


@room("cosm1", _cosm1_rule, samples=_ANY)
def cosm1(x: Operand, /) -> Value:
    """cos(x) - 1, accurate near 0.

    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> float(special.cosm1(xp.asarray(1e-10))) < 0.0, float(xp.cos(xp.asarray(1e-10)) - 1.0)
        (True, 0.0)
    """


def _sindg_rule(g: Value, x: Value) -> Value:
    return g * (_DEGREE * ops.special.cosdg(x))


@room("sindg", _sindg_rule, samples=_ANY)
def sindg(x: Operand, /) -> Value:
    """Sine of x in degrees.

    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> special.sindg(xp.asarray([90.0, 180.0])).tolist()  # sin(pi) is no zero
        [1.0, -0.0]
    """


def _cosdg_rule(g: Value, x: Value) -> Value:
    return -g * (_DEGREE * ops.special.sindg(x))


@room("cosdg", _cosdg_rule, samples=_ANY)
def cosdg(x: Operand, /) -> Value:
    """Cosine of x in degrees.

    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> special.cosdg(xp.asarray([90.0, 180.0])).tolist()  # cos(pi / 2) is no zero
        [-0.0, -1.0]
    """


def _tandg_rule(g: Value, x: Value) -> Value:
    return g * (_DEGREE / ops.square(ops.special.cosdg(x)))


@room("tandg", _tandg_rule, samples=_ANY)
def tandg(x: Operand, /) -> Value:
    """Tangent of x in degrees.

    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> special.tandg(xp.asarray([45.0, 180.0])).tolist()
        [1.0, 0.0]
    """


def _cotdg_rule(g: Value, x: Value) -> Value:
    return -g * (_DEGREE / ops.square(ops.special.sindg(x)))  # SciPy's cotangent has few digits


@room("cotdg", _cotdg_rule, samples=reals(20.0, 60.0))
def cotdg(x: Operand, /) -> Value:
    """Cotangent of x in degrees.

    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> special.cotdg(xp.asarray([45.0, 90.0])).tolist()
        [1.0, 0.0]
    """
