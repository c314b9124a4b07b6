"""Dropout layers: random zeros in training."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from funct.nn import functional
from funct.nn.functional.arguments import needed_key, probability, refuse_inplace
from funct.nn.module import Module, static

__all__ = [
    "AlphaDropout", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "FeatureAlphaDropout",
]  # fmt: skip


class _Dropout(Module):
    """What falls with probability p in training."""

    apply: ClassVar[Callable[..., Any]]

    p: float = static()
    training: bool = static()

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        name = type(self).__name__
        refuse_inplace(name, inplace)
        self.__attrs_init__(float(probability(name, p)), True)

    @property
    def draws(self) -> bool:
        """Whether a call needs `key`."""
        return self.training and self.p > 0.0

    def __call__(self, x: Any, *, key: Any = None) -> Any:
        """x with random zeros; x itself after `nn.eval_mode`.

        Raises: MissingKeyError: when key is missing in training.
        """
        given = needed_key(type(self).__name__, key) if self.draws else None
        return type(self).apply(x, self.p, self.training, key=given)


class Dropout(_Dropout):
    """Set elements to 0 with probability p in training, and scale the others by 1 / (1 - p).

    Args: p: probability of 0. inplace: must be False.
    Raises: ArgumentError: when p is outside [0, 1].
    Example:
        >>> import funct as ft, funct.array as xp
        >>> from funct import nn
        >>> layer = nn.Dropout(0.5)
        >>> sorted({float(v) for v in layer(xp.ones(100), key=ft.random.key(0))})
        [0.0, 2.0]
        >>> float(nn.eval_mode(layer)(xp.asarray(3.0)))
        3.0

    Source: torch.nn.Dropout.
    """

    apply = staticmethod(functional.dropout)


class Dropout1d(_Dropout):
    """Set whole channels of (N, C, L) or (C, L) to 0; else as `Dropout`.

    Example:
        >>> import funct as ft, funct.array as xp
        >>> from funct import nn
        >>> y = nn.Dropout1d(0.5)(xp.ones((8, 4, 3)), key=ft.random.key(0))
        >>> xp.unique_values(xp.sum(y, axis=2)).tolist()  # channels of 0 or 2
        [0.0, 6.0]
    """

    apply = staticmethod(functional.dropout1d)


class Dropout2d(_Dropout):
    """Set whole channels of (N, C, H, W) or (C, H, W) to 0; else as `Dropout`.

    Example:
        >>> import funct as ft, funct.array as xp
        >>> from funct import nn
        >>> y = nn.Dropout2d(0.5)(xp.ones((8, 4, 2, 2)), key=ft.random.key(0))
        >>> xp.unique_values(xp.sum(y, axis=(2, 3))).tolist()  # channels of 0 or 2
        [0.0, 8.0]
    """

    apply = staticmethod(functional.dropout2d)


class Dropout3d(_Dropout):
    """Set whole channels of (N, C, D, H, W) or (C, D, H, W) to 0; else as `Dropout`.

    Example:
        >>> import funct as ft, funct.array as xp
        >>> from funct import nn
        >>> y = nn.Dropout3d(0.5)(xp.ones((8, 4, 2, 2, 2)), key=ft.random.key(0))
        >>> xp.unique_values(xp.sum(y, axis=(2, 3, 4))).tolist()  # channels of 0 or 2
        [0.0, 16.0]
    """

    apply = staticmethod(functional.dropout3d)


class AlphaDropout(_Dropout):
    """Set elements to selu's lower limit, and keep mean and variance; see
    `functional.alpha_dropout`.
    Example:
        >>> import funct as ft, funct.array as xp
        >>> from funct import nn
        >>> x = ft.random.normal(ft.random.key(0), shape=(10_000,))
        >>> y = nn.AlphaDropout(0.5)(x, key=ft.random.key(1))
        >>> abs(float(xp.mean(y))) < 0.05, abs(float(xp.std(y)) - 1.0) < 0.05
        (True, True)
    """

    apply = staticmethod(functional.alpha_dropout)


class FeatureAlphaDropout(_Dropout):
    """`AlphaDropout` of whole channels.

    Example:
        >>> import funct as ft, funct.array as xp
        >>> from funct import nn
        >>> y = nn.FeatureAlphaDropout(0.5)(xp.zeros((8, 4, 3)), key=ft.random.key(0))
        >>> bool(xp.all(y[:, :, :1] == y))
        True
    """

    apply = staticmethod(functional.feature_alpha_dropout)
