"""Chapter: logistic functions."""

from __future__ import annotations

from typing import Any

from funct import ops
from funct.core import Operand, Value
from funct.ops.samples import reals
from funct.ops.special.room import room

__all__ = ["expit", "log_expit", "logit"]

_ANY = reals()
_UNIT = reals(0.1, 0.9)


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
