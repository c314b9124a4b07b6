"""Chapter: elementwise rounding to integers."""

from __future__ import annotations

from typing import Any

import numpy as np

from funct.core import Operand, Value
from funct.kernels.elementwise import functions as kernels
from funct.ops.families import elementwise
from funct.ops.samples import integers, kinks, reals, several

__all__ = ["ceil", "floor", "round", "trunc"]


@elementwise(np.floor, None, code="floor({0})", onnx="Floor", samples=kinks())
def floor(x: Operand, /) -> Value:
    """The largest integer not above x; piecewise constant.

    Example:
        >>> import funct.array as xp
        >>> xp.floor(xp.asarray([1.7, -1.2])).tolist()
        [1.0, -2.0]
    """


@elementwise(np.ceil, None, code="ceil({0})", onnx="Ceil", samples=kinks())
def ceil(x: Operand, /) -> Value:
    """The smallest integer not below x; piecewise constant.

    Example:
        >>> import funct.array as xp
        >>> xp.ceil(xp.asarray([1.2, -1.7])).tolist()
        [2.0, -1.0]
    """


def _onnx_round(w: Any, x: str) -> str:
    return str(w.op("Round", x)) if w.dtype_of(x).kind == "f" else x


@elementwise(
    kernels.rint, None, code="rint({0})", onnx=_onnx_round,
    samples=several(reals(-3.0, 3.0), integers(n=1)),
)  # fmt: skip
def round(x: Operand, /) -> Value:
    """The nearest integer, halves to even; piecewise constant.

    Example:
        >>> import funct.array as xp
        >>> xp.round(xp.asarray([0.5, 1.5, 2.5, -1.7])).tolist()
        [0.0, 2.0, 2.0, -2.0]
    """


def _onnx_trunc(w: Any, x: str) -> str:
    if w.dtype_of(x).kind != "f":
        return x
    return str(w.op("Mul", w.op("Sign", x), w.op("Floor", w.op("Abs", x))))


@elementwise(np.trunc, None, code="trunc({0})", onnx=_onnx_trunc, samples=kinks())
def trunc(x: Operand, /) -> Value:
    """x without its fractional part; piecewise constant.

    Example:
        >>> import funct.array as xp
        >>> xp.trunc(xp.asarray([1.7, -1.7])).tolist()
        [1.0, -1.0]
    """
