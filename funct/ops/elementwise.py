"""Chapter: elementwise arithmetic and signs.

Rules are written as if everything were real and analytic: they never mention conj, the engine takes
the adjoint. Sources: Array API 2025.12; derivatives from DLMF chapters 4 and 7.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from funct import ops
from funct.core import Absent, Operand, Pair, Value
from funct.kernels.elementwise import functions as kernels
from funct.ops.families import elementwise
from funct.ops.samples import edges, pairs, reals, several

__all__ = [
    "abs", "add", "copysign", "divide", "floor_divide", "fmod", "multiply", "negative",
    "nextafter", "relu", "remainder", "sign", "subtract",
]  # fmt: skip

_ANY = reals(complex_too=True)


def _same(g: Value) -> Value:
    return g


def _minus(g: Value) -> Value:
    return -g


@elementwise(np.add, _same, _same, code="{0} + {1}", onnx="Add", samples=pairs(complex_too=True))
def add(x1: Operand, x2: Operand, /) -> Value:
    """Sum x1 + x2.

    Example:
        >>> import funct.array as xp
        >>> (xp.asarray([1, 2], dtype=xp.int8) + 1).dtype  # a Python number takes the array's dtype
        dtype('int8')
        >>> xp.add(xp.asarray([1, 2]), xp.asarray([[0.5], [1.5]])).tolist()
        [[1.5, 2.5], [2.5, 3.5]]
    """


@elementwise(
    np.subtract, _same, _minus, code="{0} - {1}", onnx="Sub", samples=pairs(complex_too=True)
)
def subtract(x1: Operand, x2: Operand, /) -> Value:
    """Difference x1 - x2.

    Example:
        >>> import funct.array as xp
        >>> int(xp.subtract(xp.asarray(1, dtype=xp.uint8), 2))  # unsigned integers wrap around
        255
    """


def _multiply_rule_x1(g: Value, x2: Value) -> Value:
    return g * x2


def _multiply_rule_x2(g: Value, x1: Value) -> Value:
    return g * x1


@elementwise(
    np.multiply, _multiply_rule_x1, _multiply_rule_x2,
    code="{0} * {1}", onnx="Mul", samples=pairs(complex_too=True),
)  # fmt: skip
def multiply(x1: Operand, x2: Operand, /) -> Value:
    """Product x1 * x2.

    Example:
        >>> import funct.array as xp
        >>> xp.multiply(xp.asarray([[1], [2]]), xp.asarray([3, 4])).tolist()
        [[3, 4], [6, 8]]
    """


def _divide_rule_x1(g: Value, x2: Value) -> Value:
    return g / x2


def _divide_rule_x2(g: Value, ans: Value, x2: Value) -> Value:
    return -g * ans / x2


@elementwise(
    np.divide, _divide_rule_x1, _divide_rule_x2,
    code="{0} / {1}", onnx="Div", samples=pairs(y=(0.5, 2.0), complex_too=True),
)  # fmt: skip
def divide(x1: Operand, x2: Operand, /) -> Value:
    """Quotient x1 / x2; integers give a float.

    Example:
        >>> import funct.array as xp
        >>> xp.divide(xp.asarray([7, -7]), 2).tolist()
        [3.5, -3.5]
    """


def _onnx_other_side(w: Any, rest: str, y: str) -> str:
    """Where the truncated remainder is not 0 and has not the sign of y: there floor is one less."""
    zero = w.constant(0, w.dtype_of(y))
    signs = w.op("Xor", w.op("Less", rest, zero), w.op("Less", y, zero))
    return str(w.op("And", signs, w.op("Not", w.op("Equal", rest, zero))))


def _onnx_floor_divide(w: Any, x: str, y: str) -> str:
    one = w.constant(1, w.dtype_of(x))
    rest = w.op("Mod", x, y, fmod=1)
    whole = w.op("Div", w.op("Sub", x, rest), y)  # exact up to rounding to the nearest integer
    below = w.op("Where", _onnx_other_side(w, rest, y), w.op("Sub", whole, one), whole)
    if w.dtype_of(x).kind != "f":
        return str(below)
    edge = w.op("Equal", y, w.constant(0, w.dtype_of(y)))  # there x / y, for its rest is no number
    for v in (x, y):
        edge = w.op("Or", edge, w.op("IsInf", v))
    return str(w.op("Where", edge, w.op("Div", x, y), w.op("Round", below)))


@elementwise(
    kernels.floor_divide, None, None, onnx=_onnx_floor_divide,
    samples=several(pairs(y=(0.5, 2.0), smooth=False), edges()),
)  # fmt: skip
def floor_divide(x1: Operand, x2: Operand, /) -> Value:
    """Quotient rounded down; piecewise constant. inf // 2 is inf, 1 // -inf is -0.

    Example:
        >>> import funct.array as xp
        >>> xp.floor_divide(xp.asarray([7, -7]), 2).tolist()
        [3, -4]
    """


def _remainder_rule_x2(g: Value, ans: Value, x1: Value, x2: Value) -> Value:
    # Where ans is infinite it is x1 + x2: 1 // -inf is -0, beside it -1.
    return g * ops.where(ops.isinf(ans), 1.0, -ops.floor_divide(x1, x2))


def _onnx_remainder(w: Any, x: str, y: str) -> str:
    if w.dtype_of(x).kind != "f":
        return str(w.op("Mod", x, y))
    rest = w.op("Mod", x, y, fmod=1)
    return str(w.op("Where", _onnx_other_side(w, rest, y), w.op("Add", rest, y), rest))


@elementwise(
    kernels.remainder, _same, _remainder_rule_x2, onnx=_onnx_remainder,
    samples=pairs(y=(2.1, 3.0)),
)  # fmt: skip
def remainder(x1: Operand, x2: Operand, /) -> Value:
    """x1 - floor(x1 / x2) * x2, with the sign of x2.

    Where x2 is infinite, the derivatives are those of all large x2 of its sign.
    Example:
        >>> import funct.array as xp
        >>> xp.remainder(xp.asarray([7, -7, 7, -7]), xp.asarray([3, 3, -3, -3])).tolist()
        [1, 2, -2, -1]
    """


def _fmod_rule_y(g: Value, x: Value, y: Value) -> Value:
    return -g * ops.trunc(x / y)


def _onnx_fmod(w: Any, x: str, y: str) -> str:
    return str(w.op("Mod", *[w.cast(v, w.results[0].dtype) for v in (x, y)], fmod=1))


@elementwise(np.fmod, _same, _fmod_rule_y, onnx=_onnx_fmod, samples=pairs(y=(2.1, 3.0)))
def fmod(x: Operand, y: Operand, /) -> Value:
    """Rest of the division truncated towards 0: it has the sign of x, as C's fmod.

    Example:
        >>> import funct.array as xp
        >>> xp.fmod(xp.asarray([7, -7, 7, -7]), xp.asarray([3, 3, -3, -3])).tolist()
        [1, -1, 1, -1]

    Source: NumPy `fmod`.
    """


@elementwise(np.negative, _minus, code="-{0}", onnx="Neg", samples=_ANY)
def negative(x: Operand, /) -> Value:
    """-x.

    Example:
        >>> import funct.array as xp
        >>> int(xp.negative(xp.asarray(-128, dtype=xp.int8)))  # 128 is not there
        -128
    """


def _abs_push(t: Value, ans: Value, x: Value) -> Value:
    s = ops.sign(x)
    return ops.real(t * ops.conj(s)) if x.dtype.kind == "c" else t * s


def _abs_pull(g: Value, x: Value) -> Value:
    return g * ops.sign(x)


@elementwise(
    np.abs, Pair(_abs_push, _abs_pull, ["x"]), code="abs({0})", onnx="Abs",
    samples=reals(0.2, 2.0, complex_too=True),
)  # fmt: skip
def abs(x: Operand, /) -> Value:
    """|x|; real for complex x. The derivative at 0 is 0.

    Example:
        >>> import funct.array as xp
        >>> xp.abs(xp.asarray([-1.5, 3.0])).tolist(), float(xp.abs(xp.asarray(3 - 4j)))
        ([1.5, 3.0], 5.0)
    """


def _radius(x: Value) -> Any:
    """|x|, and infinity at 0: there the derivative of the complex sign is set to 0."""
    r = ops.abs(x)
    return ops.where(ops.equal(r, 0), float("inf"), r)


def _sign_push(t: Value, ans: Value, x: Value) -> Value:
    if x.dtype.kind != "c":
        return t * 0.0
    return (t - ans * ops.real(ops.conj(ans) * t)) / _radius(x)  # the part across the radius


def _sign_pull(g: Value, ans: Value, x: Value) -> Value:
    if x.dtype.kind != "c":
        return g * 0.0
    return (g - ops.conj(ans) * ops.real(ans * g)) / _radius(x)


@elementwise(
    np.sign, Pair(_sign_push, _sign_pull, ["x"]), onnx="Sign",
    samples=reals(0.2, 2.0, complex_too=True),
)  # fmt: skip
def sign(x: Operand, /) -> Value:
    """-1, 0 or 1; x / |x| for complex x. The derivative at 0 is 0.

    Example:
        >>> import funct.array as xp
        >>> xp.sign(xp.asarray([-2.5, 0.0, 7.0])).tolist(), complex(xp.sign(xp.asarray(-3j)))
        ([-1.0, 0.0, 1.0], (-0-1j))
    """


def _relu_rule(g: Value, ans: Value) -> Value:
    return ops.where(ops.greater(ans, 0), g, 0.0)


def _onnx_relu(w: Any, x: str) -> str:
    if w.dtype_of(x).kind == "f":
        return str(w.op("Relu", x))
    return str(w.op("Max", x, w.constant(0, w.dtype_of(x))))


@elementwise(
    kernels.relu, _relu_rule, code="max({0}, 0)", onnx=_onnx_relu, samples=reals(), masks=True
)
def relu(x: Operand, /) -> Value:
    """max(x, 0), NaN kept; the derivative at 0 is 0 (torch's choice)."""


def onnx_signbit(w: Any, x: str) -> str:
    """Whether x is below 0 or is -0.0; the sign of NaN is not visible to ONNX."""
    zero, one = (w.constant(v, w.dtype_of(x)) for v in (0, 1))
    below = w.op("Less", w.op("Div", one, x), zero)  # 1 / -0.0 is -inf
    return str(w.op("Where", w.op("Equal", x, zero), below, w.op("Less", x, zero)))


def _copysign_rule_x1(g: Value, ans: Value, x1: Value) -> Value:
    return ops.where(ops.equal(ops.signbit(x1), ops.signbit(ans)), g, -g)


def _onnx_copysign(w: Any, x: str, y: str) -> str:
    size = w.op("Abs", x)
    return str(w.op("Where", onnx_signbit(w, y), w.op("Neg", size), size))


@elementwise(
    np.copysign, _copysign_rule_x1, None, samples=pairs(x=(0.3, 2.0), y=(0.3, 2.0)),
    onnx=_onnx_copysign,
)  # fmt: skip
def copysign(x1: Operand, x2: Operand, /) -> Value:
    """|x1| with the sign of x2.

    Example:
        >>> import funct.array as xp
        >>> xp.copysign(xp.asarray([3.0, -3.0]), xp.asarray([-0.0, 1.0])).tolist()
        [-3.0, 3.0]
    """


@elementwise(
    np.nextafter, Absent("nextafter moves by one unit in the last place"),
    Absent("nextafter moves by one unit in the last place"),
    onnx=Absent("ONNX has no operator on floating-point representations"),
    samples=pairs(smooth=False),
)  # fmt: skip
def nextafter(x1: Operand, x2: Operand, /) -> Value:
    """The next representable number after x1 towards x2.

    Example:
        >>> import funct.array as xp
        >>> float(xp.nextafter(xp.asarray(1.0), xp.asarray(2.0))) - 1.0
        2.220446049250313e-16
    """
