"""Chapter: elementwise powers, roots and lengths."""

from __future__ import annotations

import cmath
import math
from typing import Any

import numpy as np

from funct import ops
from funct.core import Operand, Value
from funct.kernels.elementwise import functions as kernels
from funct.ops.families import elementwise
from funct.ops.samples import pairs, reals

__all__ = ["hypot", "inexact", "pow", "reciprocal", "sqrt", "square"]

_ANY = reals(complex_too=True)
_POSITIVE = reals(0.3, 2.0, complex_too=True)


def _square_rule(g: Value, x: Value) -> Value:
    return g * (x + x)


def _onnx_square(w: Any, x: str) -> str:
    return str(w.op("Mul", x, x))


@elementwise(np.square, _square_rule, code="{0} * {0}", onnx=_onnx_square, samples=_ANY)
def square(x: Operand, /) -> Value:
    """x * x.

    Example:
        >>> import funct.array as xp
        >>> xp.square(xp.asarray([-3.0, 2.0])).tolist()
        [9.0, 4.0]
    """


def _sqrt_rule(g: Value, ans: Value) -> Value:
    return 0.5 * g / ans


@elementwise(np.sqrt, _sqrt_rule, code="sqrt({0})", onnx="Sqrt", samples=_POSITIVE)
def sqrt(x: Operand, /) -> Value:
    """Principal square root; the derivative at 0 is infinite.

    Example:
        >>> import funct.array as xp
        >>> xp.sqrt(xp.asarray([4, 9])).tolist(), complex(xp.sqrt(xp.asarray(-4 + 0j)))
        ([2.0, 3.0], 2j)
    """


def _reciprocal_rule(g: Value, ans: Value) -> Value:
    return -g * ans * ans


@elementwise(np.reciprocal, _reciprocal_rule, code="1 / {0}", onnx="Reciprocal", samples=_POSITIVE)
def reciprocal(x: Operand, /) -> Value:
    """1 / x.

    Example:
        >>> import funct.array as xp
        >>> xp.reciprocal(xp.asarray([2.0, -4.0])).tolist()
        [0.5, -0.25]
    """


def _pow_rule_x1(g: Value, x1: Value, x2: Operand) -> Value:
    if isinstance(x2, bool | int | float):
        if x2 == 0:
            return g * 0.0
        return g * (x2 * x1) if x2 == 2 else g * (x2 * x1 ** (x2 - 1))
    if isinstance(x2, Value):
        x2 = inexact(x2, g)  # 0 - 1 is no number of a dtype without a sign, nor True - 1 a bool
    # x1**0 is constant, at 0 too, where it is 0 · ∞; elsewhere it changes with x2
    flat = ops.logical_and(ops.equal(x2, 0), ops.equal(ops.square(x1), 0))
    return g * (x2 * ops.pow(ops.where(flat, 1.0, x1), x2 - 1))


def inexact(x: Value, g: Value) -> Value:
    """x, or integers as what they are in the result, for rules that compute with operands."""
    return ops.astype(x, g.dtype) if x.dtype.kind in "biu" else x


def _log(x: Any, dtype: np.dtype[Any]) -> Any:
    """Logarithm of a Python number as one again, which takes the dtype of what it meets."""
    if isinstance(x, complex) or (x < 0 and dtype.kind == "c"):
        return cmath.log(x)
    return math.log(x) if x > 0 else math.nan


def _pow_rule_x2(g: Value, ans: Value, x1: Operand, x2: Value) -> Value:
    if isinstance(x1, bool | int | float | complex):
        return g * ans * (_log(x1, x2.dtype) if x1 != 0 else 0.0)
    x1 = inexact(x1, g)
    zero = ops.equal(x1, 0)  # 0**x2 is constantly 0 for x2 > 0
    return g * ans * ops.where(zero, 0.0, ops.log(ops.where(zero, 1.0, x1)))


@elementwise(
    kernels.power, _pow_rule_x1, _pow_rule_x2, code="pow({0}, {1})", onnx="Pow",
    samples=pairs(x=(0.4, 2.0), complex_too=True), raises=True,
)  # fmt: skip
def pow(x1: Operand, x2: Operand, /) -> Value:
    """x1 to the power x2. Where x1 is 0, the derivative in x2 is 0.

    Example:
        >>> import funct.array as xp
        >>> xp.pow(xp.asarray([2.0, 9.0]), xp.asarray([3.0, 0.5])).tolist()
        [8.0, 3.0]
    """


def _hypot_rule_x1(g: Value, ans: Value, x1: Value) -> Value:
    zero, end = ops.equal(ans, 0), ops.equal(ops.abs(x1), math.inf)
    inside = ops.where(zero, 0.0, x1) / ops.where(zero, 1.0, ans)
    return g * ops.where(end, ops.sign(x1), inside)


def _hypot_rule_x2(g: Value, ans: Value, x2: Value) -> Value:
    return _hypot_rule_x1(g, ans, x2)


def _onnx_hypot(w: Any, x: str, y: str) -> str:
    a, b = w.op("Abs", x), w.op("Abs", y)
    top = w.op("Max", a, b)
    whole = w.op("Or", w.op("Equal", top, w.constant(0, w.dtype_of(x))), w.op("IsInf", top))
    p, q = (w.op("Div", v, w.op("Where", whole, w.constant(1, w.dtype_of(x)), top)) for v in (a, b))
    length = w.op("Sqrt", w.op("Add", w.op("Mul", p, p), w.op("Mul", q, q)))
    return str(w.op("Where", whole, top, w.op("Mul", top, length)))


@elementwise(
    np.hypot, _hypot_rule_x1, _hypot_rule_x2, onnx=_onnx_hypot, samples=pairs(x=(0.3, 2.0))
)
def hypot(x1: Operand, x2: Operand, /) -> Value:
    """Length sqrt(x1**2 + x2**2) without overflow; the derivative at the origin is 0.

    Example:
        >>> import funct.array as xp
        >>> float(xp.hypot(xp.asarray(3e200), xp.asarray(4e200)) / 5e200)
        0.9999999999999999
    """
