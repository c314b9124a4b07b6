"""Activations: elementwise, and the softmax pair."""

from __future__ import annotations

import math
from typing import Any

import funct.array as xp
from funct import ops
from funct.array.axes import normal_axes
from funct.errors import ArgumentError

__all__ = ["gelu", "log_softmax", "relu", "softmax"]

_SQRT_HALF = math.sqrt(0.5)
_SQRT_TWO_OVER_PI = math.sqrt(2.0 / math.pi)


def relu(input: Any) -> Any:
    """Replace negative elements by 0; the derivative at 0 is 0."""
    return ops.relu(input)


def gelu(input: Any, approximate: str = "none") -> Any:
    """Weigh each element by the normal distribution function: x Φ(x).

    Args: approximate: "none" computes Φ by erf, "tanh" by torch's and GPT-2's tanh formula.
    Raises: ArgumentError: when approximate is neither.
    Source: Hendrycks, Gimpel 2016, arXiv:1606.08415.
    """
    if approximate == "none":
        return 0.5 * input * (1.0 + xp.erf(input * _SQRT_HALF))
    if approximate == "tanh":
        inner = _SQRT_TWO_OVER_PI * (input + 0.044715 * (input * input * input))
        return 0.5 * input * (1.0 + xp.tanh(inner))
    raise ArgumentError(f"gelu: approximate must be 'none' or 'tanh', got {approximate!r}")


def _shifted(name: str, x: Any, dim: int, dtype: Any) -> tuple[Any, tuple[int, ...]]:
    """x minus its maximum along dim: exp of it cannot overflow, and the shift has no derivative."""
    if dtype is not None:
        x = xp.astype(x, dtype)
    axes = normal_axes(name, dim, len(x.shape))
    return x - ops.stop_gradient(ops.reduce_max(x, axes, True)), axes


def softmax(input: Any, dim: int, *, dtype: Any = None) -> Any:
    """Compute exp(x_i) / Σ exp(x_j) along dim, without overflow.

    Args: dim: has no default here; torch's depends on the rank and is deprecated there. dtype:
    input is cast to it first.
    Example:
        >>> import funct.array as xp
        >>> from funct.nn import functional as F
        >>> F.softmax(xp.asarray([0.0, 0.0]), dim=0).tolist()
        [0.5, 0.5]
    """
    shifted, axes = _shifted("softmax", input, dim, dtype)
    e = xp.exp(shifted)
    return e / ops.reduce_sum(e, axes, True)


def log_softmax(input: Any, dim: int, *, dtype: Any = None) -> Any:
    """Compute log(softmax(x)) along dim, exact where softmax underflows.

    Args: as `softmax`.
    """
    shifted, axes = _shifted("log_softmax", input, dim, dtype)
    return shifted - xp.log(ops.reduce_sum(xp.exp(shifted), axes, True))
