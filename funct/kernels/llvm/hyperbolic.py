"""sinh, cosh, tanh and their inverses, by exp, expm1 and log1p."""

from __future__ import annotations

from typing import TYPE_CHECKING

from funct.kernels.llvm.coefficients import SINH, TANH
from funct.kernels.llvm.exponential import LN2, reduce
from funct.kernels.llvm.logarithm import log1p
from funct.kernels.llvm.scaling import BIAS, pow2

if TYPE_CHECKING:
    from funct.kernels.llvm.emitter import Emitter
    from funct.kernels.llvm.values import Value

__all__ = ["acosh", "asinh", "atanh", "cosh", "sinh", "tanh"]

ONE = {"f32": 9.5, "f64": 20.0}  # tanh is 1 beyond
SQUARE_OVERFLOWS = {"f32": 2.0**60, "f64": 2.0**500}


def tanh(e: Emitter, x: Value) -> Value:
    """The hyperbolic tangent; at most 1.5 ulp."""
    size = e.abs(x)
    z = x * x
    near = e.fma(size * z, e.polynomial(z, TANH[x.type.element]), size)
    _, bits, p = reduce(e, e.min(ONE[x.type.element], size) * 2, BIAS[x.type.element])
    power = pow2(e, bits, x.type)
    far = 1 - 2 / (e.fma(power, p, power) + 1)
    return e.copysign(e.select(size < 0.55, near, far), x)


def _quarter(e: Emitter, size: Value) -> Value:
    """exp(size) / 4, which does not overflow before cosh does."""
    most = {"f32": 89.75, "f64": 710.75}[size.type.element]
    _, bits, p = reduce(e, e.min(most, size), BIAS[size.type.element] - 2)
    power = pow2(e, bits, size.type)
    return e.fma(power, p, power)


def sinh(e: Emitter, x: Value) -> Value:
    """The hyperbolic sine; at most 1.7 ulp."""
    size = e.abs(x)
    z = x * x
    near = e.fma(size * z, e.polynomial(z, SINH[x.type.element]), size)
    quarter = _quarter(e, size)
    return e.copysign(e.select(size < 1, near, quarter * 2 - 0.125 / quarter), x)


def cosh(e: Emitter, x: Value) -> Value:
    """The hyperbolic cosine; at most 1.5 ulp."""
    quarter = _quarter(e, e.abs(x))
    return quarter * 2 + 0.125 / quarter


def asinh(e: Emitter, x: Value) -> Value:
    """The number whose hyperbolic sine is x; at most 2 ulp."""
    size = e.abs(x)
    huge = size > SQUARE_OVERFLOWS[x.type.element]
    square = size * size
    argument = e.select(huge, size, size + square / (e.sqrt(square + 1) + 1))
    return e.copysign(log1p(e, argument) + e.select(huge, e.constant(x.type, float(LN2)), 0), x)


def acosh(e: Emitter, x: Value) -> Value:
    """The number at least 0 whose hyperbolic cosine is x; NaN below 1; at most 2 ulp."""
    huge = x > SQUARE_OVERFLOWS[x.type.element]
    above = x - 1
    argument = e.select(huge, x, above + e.sqrt(e.fma(above, above, above * 2)))
    found = log1p(e, argument) + e.select(huge, e.constant(x.type, float(LN2)), 0)
    return e.select(x < 1, float("nan"), found)


def atanh(e: Emitter, x: Value) -> Value:
    """The number whose hyperbolic tangent is x; inf at 1, NaN beyond; at most 2 ulp."""
    size = e.abs(x)
    return e.copysign(log1p(e, size * 2 / (1 - size)) * 0.5, x)
