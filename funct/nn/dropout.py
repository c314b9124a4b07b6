"""Dropout layers."""

from __future__ import annotations

from typing import Any

from funct.errors import ArgumentError, MissingKeyError
from funct.nn import functional
from funct.nn.module import Module, static

__all__ = ["Dropout"]


class Dropout(Module):
    """Set elements to 0 with probability p in training, and scale the others by 1 / (1 - p).

    Args: p: probability of 0.
    Raises: ArgumentError: when p is outside [0, 1].
    Source: torch.nn.Dropout.
    Example:
        >>> import funct as ft, funct.array as xp
        >>> from funct import nn
        >>> layer = nn.Dropout(0.5)
        >>> sorted({float(v) for v in layer(xp.ones(100), key=ft.random.key(0))})
        [0.0, 2.0]
        >>> float(nn.eval_mode(layer)(xp.asarray(3.0)))
        3.0
    """

    p: float = static()
    training: bool = static()

    def __init__(self, p: float = 0.5) -> None:
        if not 0.0 <= p <= 1.0:
            raise ArgumentError(f"Dropout: p must be between 0 and 1, got {p}")
        self.__attrs_init__(float(p), True)

    @property
    def draws(self) -> bool:
        """Whether a call needs `key`."""
        return self.training and self.p > 0.0

    def __call__(self, x: Any, *, key: Any = None) -> Any:
        """x with random zeros; x itself after `nn.eval_mode`.

        Raises: MissingKeyError: when key is missing in training.
        """
        if self.draws and key is None:
            raise MissingKeyError(
                "Dropout: a key is needed in training",
                fix="pass key=random.key(seed), or call nn.eval_mode(model) first",
            )
        return functional.dropout(x, self.p, self.training, key=key)
