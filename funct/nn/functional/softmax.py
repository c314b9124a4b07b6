"""The softmax family: along one axis, without overflow."""

from __future__ import annotations

from typing import Any

import funct.array as xp
from funct import ops, random
from funct.array.axes import normal_axes
from funct.array.direct import direct
from funct.array.in_single import narrowed, widened
from funct.errors import ArgumentError
from funct.kernels import neural as kernels
from funct.nn.functional.arguments import needed_key
from funct.nn.functional.compiled import compiled

__all__ = ["gumbel_softmax", "log_softmax", "softmax", "softmin"]


def _shifted(name: str, x: Any, dim: int) -> tuple[Any, tuple[int, ...]]:
    """x minus its maximum along dim: exp of it cannot overflow, and the shift has no derivative.

    Short floats are widened first: what a shift of 20 rounds off changes exp of it by a tenth. Then
    the axis; none where x has nothing along it.
    """
    axes = normal_axes(name, dim, len(x.shape))
    if isinstance(n := x.shape[axes[0]], int) and not n:
        return x, ()
    (x,) = widened(x)
    return x - ops.stop_gradient(ops.reduce_max(x, axes, True)), axes


@direct(kernels.softmax)
@compiled
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
    x = input if dtype is None else xp.astype(input, dtype)
    shifted, axes = _shifted("softmax", x, dim)
    if not axes:
        return x
    e = xp.exp(shifted)
    return narrowed(e * (1.0 / ops.reduce_sum(e, axes, True)), x)  # one division for each sum


def softmin(input: Any, dim: int, *, dtype: Any = None) -> Any:
    """Compute softmax(-x) along dim.

    Args: as `softmax`.
    Example:
        >>> import funct.array as xp
        >>> from funct.nn import functional as F
        >>> F.softmin(xp.asarray([0.0, 0.0, 1000.0]), dim=0).tolist()
        [0.5, 0.5, 0.0]
    """
    return softmax(-input, dim, dtype=dtype)


@direct(kernels.log_softmax)
@compiled
def log_softmax(input: Any, dim: int, *, dtype: Any = None) -> Any:
    """Compute log(softmax(x)) along dim, exact where softmax underflows.

    Args: as `softmax`.
    Example:
        >>> import funct.array as xp
        >>> from funct.nn import functional as F
        >>> F.log_softmax(xp.asarray([0.0, -1000.0]), dim=0).tolist()
        [0.0, -1000.0]
    """
    x = input if dtype is None else xp.astype(input, dtype)
    shifted, axes = _shifted("log_softmax", x, dim)
    if not axes:
        return x
    return narrowed(shifted - xp.log(ops.reduce_sum(xp.exp(shifted), axes, True)), x)


def gumbel_softmax(
    logits: Any, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1, *,
    key: Any = None,
) -> Any:  # fmt: skip
    """Draw from the categorical distribution of logits, differentiably.

    Args: tau: temperature. hard: give the sample as a one-hot vector, with the soft one's
    derivative. eps: torch's relic, not used there either. dim: the axis of the classes. key: a
    random key, always needed.
    Raises: MissingKeyError: when key is missing. ArgumentError: when tau is not positive.
    Example:
        >>> import funct as ft, funct.array as xp
        >>> from funct.nn import functional as F
        >>> y = F.gumbel_softmax(xp.zeros((2, 3)), hard=True, key=ft.random.key(0))
        >>> xp.sum(y, axis=-1).tolist()
        [1.0, 1.0]

    Source: Jang, Gu, Poole 2016, arXiv:1611.01144.
    """
    if not tau > 0:
        raise ArgumentError(f"gumbel_softmax: tau must be positive, got {tau}")
    wide = logits.dtype if logits.dtype == xp.float64 else xp.float32
    noise = random.gumbel(needed_key("gumbel_softmax", key, always=True), logits.shape, wide)
    soft = softmax((logits + xp.astype(noise, logits.dtype, copy=False)) / tau, dim)
    if not hard:
        return soft
    axes = normal_axes("gumbel_softmax", dim, len(logits.shape))
    best = ops.argmax(soft, axes[0], True)
    places = xp.reshape(
        xp.arange(logits.shape[axes[0]]), (-1, *(1,) * (len(logits.shape) - axes[0] - 1))
    )
    one_hot = xp.astype(best == places, logits.dtype)
    return one_hot + (soft - ops.stop_gradient(soft))
