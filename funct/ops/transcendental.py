"""Chapter: exponentials, logarithms, trigonometric and hyperbolic functions.

Rules as in `elementwise.py`. Derivatives from DLMF chapter 4.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from funct import ops
from funct.core import Operand, Value
from funct.kernels.elementwise import functions as kernels
from funct.ops.elementwise import onnx_signbit
from funct.ops.ends import constant, one_less_square, settled
from funct.ops.families import elementwise
from funct.ops.samples import pairs, reals

__all__ = [
    "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cos", "cosh", "exp",
    "expm1", "log", "log10", "log1p", "log2", "logaddexp", "sigmoid", "sin", "sinh", "tan",
    "tanh",
]  # fmt: skip

_ANY = reals(complex_too=True)
_POSITIVE = reals(0.3, 2.0, complex_too=True)
_UNIT = reals(-0.9, 0.9, complex_too=True)


def _exp_rule(g: Value, ans: Value) -> Value:
    return g * ans


@elementwise(np.exp, _exp_rule, code="exp({0})", onnx="Exp", samples=_ANY)
def exp(x: Operand, /) -> Value:
    """e to the power x.

    Example:
        >>> import funct.array as xp
        >>> xp.exp(xp.asarray([0.0, -xp.inf])).tolist(), xp.exp(xp.asarray(1)).dtype
        ([1.0, 0.0], dtype('float64'))
    """


def _expm1_rule(g: Value, x: Value) -> Value:
    return g * ops.exp(x)  # ans + 1 has no digits where ans is near -1


def _onnx_expm1(w: Any, x: str) -> str:
    # Kahan: the errors of exp(x) - 1 and of log(exp(x)) cancel in (u - 1) * (x / log(u))
    one = w.constant(1, w.dtype_of(x))
    u = w.op("Exp", x)
    less = w.op("Sub", u, one)
    exact = w.op("Mul", less, w.op("Div", x, w.op("Log", u)))
    saturated = w.op("Or", w.op("IsInf", u), w.op("Equal", less, w.constant(-1, w.dtype_of(x))))
    exact = w.op("Where", saturated, less, exact)
    return str(w.op("Where", w.op("Equal", u, one), x, exact))


@elementwise(
    kernels.expm1, _expm1_rule, code="expm1({0})", samples=_ANY, onnx=_onnx_expm1,
)  # fmt: skip
def expm1(x: Operand, /) -> Value:
    """exp(x) - 1, accurate near 0.

    Example:
        >>> import funct.array as xp
        >>> float(xp.expm1(xp.asarray(1e-20))), float(xp.exp(xp.asarray(1e-20)) - 1)
        (1e-20, 0.0)
    """


def _log_rule(g: Value, x: Value) -> Value:
    return g / x


@elementwise(np.log, _log_rule, code="log({0})", onnx="Log", samples=_POSITIVE)
def log(x: Operand, /) -> Value:
    """Natural logarithm.

    Example:
        >>> import funct.array as xp
        >>> round(float(xp.log(xp.asarray(xp.e**2))), 12)
        2.0
    """


def _log1p_rule(g: Value, x: Value) -> Value:
    return g / (x + 1)


def _onnx_log1p(w: Any, x: str) -> str:
    # Kahan: log(u) has the rounding error of u = 1 + x, and u - 1 has it too
    one = w.constant(1, w.dtype_of(x))
    u = w.op("Add", x, one)
    exact = w.op("Mul", w.op("Log", u), w.op("Div", x, w.op("Sub", u, one)))
    return str(w.op("Where", w.op("Or", w.op("Equal", u, one), w.op("IsInf", u)), x, exact))


@elementwise(
    kernels.log1p, _log1p_rule, code="log1p({0})", samples=reals(-0.7, 2.0, complex_too=True),
    onnx=_onnx_log1p,
)  # fmt: skip
def log1p(x: Operand, /) -> Value:
    """log(1 + x), accurate near 0.

    Example:
        >>> import funct.array as xp
        >>> float(xp.log1p(xp.asarray(1e-20))), float(xp.log(1 + xp.asarray(1e-20)))
        (1e-20, 0.0)
    """


_LN2, _LN10 = math.log(2.0), math.log(10.0)


def _log2_rule(g: Value, x: Value) -> Value:
    return g / (x * _LN2)


def _onnx_log2(w: Any, x: str) -> str:
    return str(w.op("Div", w.op("Log", x), w.constant(_LN2, w.dtype_of(x))))


@elementwise(np.log2, _log2_rule, code="log2({0})", onnx=_onnx_log2, samples=_POSITIVE)
def log2(x: Operand, /) -> Value:
    """Logarithm to base 2.

    Example:
        >>> import funct.array as xp
        >>> xp.log2(xp.asarray([0.5, 1024.0])).tolist()
        [-1.0, 10.0]
    """


def _log10_rule(g: Value, x: Value) -> Value:
    return g * (1.0 / _LN10) / x  # x * log(10) is infinite for the largest x


def _onnx_log10(w: Any, x: str) -> str:
    return str(w.op("Div", w.op("Log", x), w.constant(_LN10, w.dtype_of(x))))


@elementwise(np.log10, _log10_rule, code="log10({0})", onnx=_onnx_log10, samples=_POSITIVE)
def log10(x: Operand, /) -> Value:
    """Logarithm to base 10.

    Example:
        >>> import funct.array as xp
        >>> xp.log10(xp.asarray([0.01, 1000.0])).tolist()
        [-2.0, 3.0]
    """


def _logaddexp_rule_x1(g: Value, x1: Value, x2: Value) -> Value:
    # not exp(x1 - ans): of large equal operands ans is no larger, and derivatives cancel
    apart = x1 - x2
    near = ops.where(ops.equal(x1, x2), 0.0, apart)  # inf - inf is no distance
    if not constant(x1, x2):  # that of equal numbers has a derivative
        near = ops.where(ops.equal(ops.abs(x1), math.inf), near, apart)
    return g * ops.special.expit(near)


def _logaddexp_rule_x2(g: Value, x1: Value, x2: Value) -> Value:
    return _logaddexp_rule_x1(g, x2, x1)


def _onnx_logaddexp(w: Any, x: str, y: str) -> str:
    same = w.op("Equal", x, y)  # inf - inf is no distance
    away = w.op("Where", same, w.constant(0, w.dtype_of(x)), w.op("Abs", w.op("Sub", x, y)))
    return str(w.op("Add", w.op("Max", x, y), _onnx_log1p(w, w.op("Exp", w.op("Neg", away)))))


@elementwise(
    np.logaddexp, _logaddexp_rule_x1, _logaddexp_rule_x2, onnx=_onnx_logaddexp, samples=pairs()
)
def logaddexp(x1: Operand, x2: Operand, /) -> Value:
    """log(exp(x1) + exp(x2)) without overflow; equal infinities share the derivative.

    Example:
        >>> import funct.array as xp
        >>> round(float(xp.logaddexp(xp.asarray(-1000.0), xp.asarray(-1000.0))), 4)
        -999.3069
    """


def _sigmoid_rule(g: Value, ans: Value, x: Value) -> Value:
    return g * (ans * ops.sigmoid(-x))  # 1 − ans loses its digits where ans is near 1


@elementwise(
    kernels.sigmoid, _sigmoid_rule, code="1 / (1 + exp(-{0}))", onnx="Sigmoid", samples=reals()
)
def sigmoid(x: Operand, /) -> Value:
    """1 / (1 + exp(-x)), without overflow."""


def _sin_rule(g: Value, x: Value) -> Value:
    return g * ops.cos(x)


@elementwise(np.sin, _sin_rule, code="sin({0})", onnx="Sin", samples=_ANY)
def sin(x: Operand, /) -> Value:
    """Sine of x in radians.

    Example:
        >>> import funct.array as xp
        >>> xp.round(10 * xp.sin(xp.asarray([0.0, xp.pi / 6, xp.pi / 2]))).tolist()
        [0.0, 5.0, 10.0]
    """


def _cos_rule(g: Value, x: Value) -> Value:
    return -g * ops.sin(x)


@elementwise(np.cos, _cos_rule, code="cos({0})", onnx="Cos", samples=_ANY)
def cos(x: Operand, /) -> Value:
    """Cosine of x in radians.

    Example:
        >>> import funct.array as xp
        >>> xp.round(10 * xp.cos(xp.asarray([0.0, xp.pi / 3, xp.pi]))).tolist()
        [10.0, 5.0, -10.0]
    """


def _tan_rule(g: Value, ans: Value) -> Value:
    return g + g * ans * ans


@elementwise(np.tan, _tan_rule, code="tan({0})", onnx="Tan", samples=_UNIT)
def tan(x: Operand, /) -> Value:
    """Tangent of x in radians.

    Example:
        >>> import funct.array as xp
        >>> round(float(xp.tan(xp.asarray(xp.pi / 4))), 12)
        1.0
    """


def _asin_rule(g: Value, x: Value) -> Value:
    if x.dtype.kind == "c":
        return g / ops.sqrt(-(x - 1.0)) / ops.sqrt(x - -1.0)  # differences keep the sign of a zero
    return g / ops.sqrt(one_less_square(x))


@elementwise(np.arcsin, _asin_rule, code="asin({0})", onnx="Asin", samples=_UNIT)
def asin(x: Operand, /) -> Value:
    """Inverse sine, in radians.

    Example:
        >>> import funct.array as xp
        >>> round(float(xp.rad2deg(xp.asin(xp.asarray(0.5)))), 9)
        30.0
    """


def _acos_rule(g: Value, x: Value) -> Value:
    return -_asin_rule(g, x)


@elementwise(np.arccos, _acos_rule, code="acos({0})", onnx="Acos", samples=_UNIT)
def acos(x: Operand, /) -> Value:
    """Inverse cosine, in radians.

    Example:
        >>> import funct.array as xp
        >>> round(float(xp.rad2deg(xp.acos(xp.asarray(0.5)))), 9)
        60.0
    """


def _atan_rule(g: Value, x: Value) -> Value:
    if x.dtype.kind == "c":
        return g / (x - 1j) / (x + 1j)
    return g / settled(x * x + 1)


@elementwise(np.arctan, _atan_rule, code="atan({0})", onnx="Atan", samples=_UNIT)
def atan(x: Operand, /) -> Value:
    """Inverse tangent, in radians.

    Example:
        >>> import funct.array as xp
        >>> round(float(xp.rad2deg(xp.atan(xp.asarray(1.0)))), 9)
        45.0
    """


def _turn(x1: Value, x2: Value, own: bool) -> Value:
    """x2, or x1 where not own, over the square of the length, which may overflow or be 0."""
    steep = ops.greater(ops.abs(x1), ops.abs(x2))
    long, short = ops.where(steep, x1, x2), ops.where(steep, x2, x1)
    short = ops.where(ops.isinf(long), 0.0, short)  # nothing turns what is infinitely far
    ratio = short / long
    share = ops.where(steep, ratio, 1.0) if own else ops.where(steep, 1.0, ratio)
    return share / (long + short * ratio)


def _atan2_rule_x1(g: Value, x1: Value, x2: Value) -> Value:
    return g * _turn(x1, x2, True)


def _atan2_rule_x2(g: Value, x1: Value, x2: Value) -> Value:
    return -g * _turn(x1, x2, False)


def _onnx_atan2(w: Any, y: str, x: str) -> str:
    dtype = w.dtype_of(x)
    zero, half, pi = (w.constant(v, dtype) for v in (0.0, math.pi / 2, math.pi))
    both = w.op("And", w.op("IsInf", x), w.op("IsInf", y))  # as for 1 and 1
    y, x = (w.op("Where", both, w.op("Sign", v), v) for v in (y, x))
    down = onnx_signbit(w, y)
    turn = w.op("Where", down, w.op("Neg", pi), pi)
    right = w.op("Atan", w.op("Div", y, x))
    left = w.op("Where", onnx_signbit(w, x), w.op("Add", right, turn), right)
    flat = w.op("Where", onnx_signbit(w, x), turn, y)  # y is 0
    upright = w.op(
        "Where", w.op("Equal", y, zero), flat, w.op("Where", down, w.op("Neg", half), half)
    )
    return str(w.op("Where", w.op("Equal", x, zero), upright, left))


@elementwise(
    np.arctan2, _atan2_rule_x1, _atan2_rule_x2, code="atan2({0}, {1})", samples=pairs(x=(0.3, 2.0)),
    onnx=_onnx_atan2,
)  # fmt: skip
def atan2(x1: Operand, x2: Operand, /) -> Value:
    """Angle of the point (x2, x1): the inverse tangent of x1 / x2 in the right quadrant.

    Example:
        >>> import funct.array as xp
        >>> y, x = xp.asarray([1.0, -1.0]), xp.asarray([-1.0, -1.0])
        >>> xp.round(xp.rad2deg(xp.atan2(y, x))).tolist()
        [135.0, -135.0]
    """


def _sinh_rule(g: Value, x: Value) -> Value:
    return g * ops.cosh(x)


@elementwise(np.sinh, _sinh_rule, code="sinh({0})", onnx="Sinh", samples=_ANY)
def sinh(x: Operand, /) -> Value:
    """Hyperbolic sine.

    Example:
        >>> import funct.array as xp
        >>> float(xp.sinh(xp.asarray(0.0))), round(float(xp.sinh(xp.log(xp.asarray(2.0)))), 9)
        (0.0, 0.75)
    """


def _cosh_rule(g: Value, x: Value) -> Value:
    return g * ops.sinh(x)


@elementwise(np.cosh, _cosh_rule, code="cosh({0})", onnx="Cosh", samples=_ANY)
def cosh(x: Operand, /) -> Value:
    """Hyperbolic cosine.

    Example:
        >>> import funct.array as xp
        >>> float(xp.cosh(xp.asarray(0.0))), round(float(xp.cosh(xp.log(xp.asarray(2.0)))), 9)
        (1.0, 1.25)
    """


def _tanh_rule(g: Value, ans: Value) -> Value:
    return g - g * ans * ans


@elementwise(kernels.tanh, _tanh_rule, code="tanh({0})", onnx="Tanh", samples=_ANY)
def tanh(x: Operand, /) -> Value:
    """Hyperbolic tangent.

    Example:
        >>> import funct.array as xp
        >>> xp.tanh(xp.asarray([-xp.inf, 0.0, 100.0])).tolist()
        [-1.0, 0.0, 1.0]
    """


def _asinh_rule(g: Value, x: Value) -> Value:
    if x.dtype.kind == "c":  # 1 + ix and 1 - ix, with the signs of zeros
        re, im = ops.real(x), ops.imag(x)
        up, down = ops.complex_of(1.0 - im, re), ops.complex_of(1.0 + im, -re)
        return g / ops.sqrt(up) / ops.sqrt(down)
    root = ops.sqrt(x * x + 1)  # infinite long before 1 / x is 0
    return g / ops.where(ops.equal(root, math.inf), ops.abs(x), root)


@elementwise(np.arcsinh, _asinh_rule, code="asinh({0})", onnx="Asinh", samples=_UNIT)
def asinh(x: Operand, /) -> Value:
    """Inverse hyperbolic sine.

    Example:
        >>> import funct.array as xp
        >>> round(float(xp.asinh(xp.asarray(0.75))), 6)  # log(2)
        0.693147
    """


def _acosh_rule(g: Value, x: Value) -> Value:
    # one after the other: at 1 that is no 0 · ∞; and -0 + 1 would lose the side of a branch cut
    return g / ops.sqrt(x - 1.0) / ops.sqrt(x - -1.0)


@elementwise(
    np.arccosh,
    _acosh_rule,
    code="acosh({0})",
    onnx="Acosh",
    samples=reals(1.2, 3.0, complex_too=True),
)
def acosh(x: Operand, /) -> Value:
    """Inverse hyperbolic cosine.

    Example:
        >>> import funct.array as xp
        >>> round(float(xp.acosh(xp.asarray(1.25))), 6)  # log(2)
        0.693147
    """


def _atanh_rule(g: Value, x: Value) -> Value:
    if x.dtype.kind == "c":
        return -g / (x - 1.0) / (x + 1.0)
    return g / one_less_square(x)


@elementwise(np.arctanh, _atanh_rule, code="atanh({0})", onnx="Atanh", samples=_UNIT)
def atanh(x: Operand, /) -> Value:
    """Inverse hyperbolic tangent.

    Example:
        >>> import funct.array as xp
        >>> round(float(xp.atanh(xp.asarray(0.6))), 6)  # log(2)
        0.693147
    """
