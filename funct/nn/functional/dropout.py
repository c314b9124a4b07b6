"""Dropout: random zeros from an explicit key."""

from __future__ import annotations

from typing import Any

import funct.array as xp
from funct import ops, random
from funct.errors import ArgumentError, MissingKeyError

__all__ = ["dropout"]


def dropout(input: Any, p: float = 0.5, training: bool = True, *, key: Any = None) -> Any:
    """Set each element to 0 with probability p, and scale the others by 1 / (1 - p).

    Args: training: False gives input itself. key: a random key; needed in training unless p is 0.
    Raises: ArgumentError: when p is outside [0, 1]. MissingKeyError: when key is missing.
    Source: Srivastava, Hinton, Krizhevsky, Sutskever, Salakhutdinov 2014.
    Example:
        >>> import funct as ft, funct.array as xp
        >>> from funct.nn import functional as F
        >>> sorted({float(v) for v in F.dropout(xp.ones(100), 0.5, key=ft.random.key(0))})
        [0.0, 2.0]
    """
    if not 0.0 <= p <= 1.0:
        raise ArgumentError(f"dropout: p must be between 0 and 1, got {p}")
    if not training or p == 0.0:
        return input
    if key is None:
        raise MissingKeyError(
            "dropout: a key is needed in training",
            fix="pass key=random.key(seed), or call nn.eval_mode(model) first",
        )
    if p == 1.0:
        return xp.zeros_like(input)
    keep = random.uniform(key, input.shape, xp.float32) >= p  # 24 bits are fine enough for p
    return ops.where(keep, input * (1.0 / (1.0 - p)), 0.0)
