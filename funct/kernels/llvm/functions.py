"""The functions of vectors by name: each prints its operation on values of float32 or float64.

FUNCTIONS["exp"](emitter, x)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from funct.kernels.llvm import (
    error,
    exponential,
    gamma,
    hyperbolic,
    inverse,
    logarithm,
    power,
    remainder,
    trigonometric,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from funct.kernels.llvm.emitter import Emitter
    from funct.kernels.llvm.values import Value

__all__ = ["FUNCTIONS"]


def sign(e: Emitter, x: Value) -> Value:
    """-1, 0 or 1; NaN for NaN."""
    return e.select(e.ne(x, 0) & ~e.isnan(x), e.copysign(e.constant(x.type, 1), x), x + 0)


def reciprocal(e: Emitter, x: Value) -> Value:
    """1 / x."""
    return 1 / x


def nextafter(e: Emitter, x: Value, y: Value) -> Value:
    """The number next to x on the way to y; y where they are equal, NaN where one is."""
    type = x.type.integer
    bits, positive = e.bitcast(x, type), x > 0
    moved = bits + e.select((x < y) ^ positive, e.constant(type, -1), e.constant(type, 1))
    sign = e.constant(type, -1 << (type.bits - 1))
    least = (e.bitcast(y, type) & sign) | 1  # subnormal
    next = e.bitcast(e.select(e.eq(x, 0), least, moved), x.type)
    return e.select(e.isnan(x) | e.isnan(y), x + y, e.select(e.eq(x, y), y, next))


def one_operand(name: str) -> Callable[[Emitter, Value], Value]:
    """The method of that name."""
    return lambda e, x: getattr(e, name)(x)


FUNCTIONS: dict[str, Callable[..., Value]] = {
    "abs": one_operand("abs"),
    "acos": inverse.acos,
    "acosh": hyperbolic.acosh,
    "asin": inverse.asin,
    "asinh": hyperbolic.asinh,
    "atan": inverse.atan,
    "atan2": inverse.atan2,
    "atanh": hyperbolic.atanh,
    "cbrt": power.cbrt,
    "ceil": one_operand("ceil"),
    "copysign": lambda e, x, y: e.copysign(x, y),
    "cos": trigonometric.cos,
    "cosh": hyperbolic.cosh,
    "erf": error.erf,
    "erfc": error.erfc,
    "erfinv": error.erfinv,
    "exp": exponential.exp,
    "exp2": exponential.exp2,
    "expit": exponential.sigmoid,
    "expm1": exponential.expm1,
    "floor_divide": remainder.floor_divide,
    "floor": one_operand("floor"),
    "fmod": remainder.fmod,
    "gammaln": gamma.gammaln,
    "gelu": error.gelu,
    "hypot": power.hypot,
    "log": logarithm.log,
    "log10": logarithm.log10,
    "log1p": logarithm.log1p,
    "log2": logarithm.log2,
    "log_sigmoid": logarithm.log_sigmoid,
    "logaddexp": logarithm.logaddexp,
    "maximum": lambda e, x, y: e.maximum(x, y),
    "minimum": lambda e, x, y: e.minimum(x, y),
    "ndtr": error.ndtr,
    "nextafter": nextafter,
    "pow": power.power,
    "reciprocal": reciprocal,
    "remainder": remainder.remainder,
    "round": one_operand("round"),
    "rsqrt": power.rsqrt,
    "sigmoid": exponential.sigmoid,
    "sigmoid_slope": exponential.sigmoid_slope,
    "sign": sign,
    "silu": exponential.silu,
    "sin": trigonometric.sin,
    "sinh": hyperbolic.sinh,
    "sinpi": trigonometric.sinpi,
    "softplus": logarithm.softplus,
    "sqrt": one_operand("sqrt"),
    "square": power.square,
    "tan": trigonometric.tan,
    "tanh": hyperbolic.tanh,
    "trunc": one_operand("trunc"),
}
