"""Dropout: random zeros from an explicit key."""

from __future__ import annotations

import math
from typing import Any

import funct.array as xp
from funct import ops, random
from funct.errors import ShapeError
from funct.nn.functional.arguments import needed_key, probability, refuse_inplace
from funct.nn.functional.compiled import compiled

__all__ = [
    "alpha_dropout", "dropout", "dropout1d", "dropout2d", "dropout3d", "feature_alpha_dropout",
]  # fmt: skip

_SELU_FLOOR = 1.7580993408473766  # minus the limit of selu at -inf


def dropout(
    input: Any, p: float = 0.5, training: bool = True, inplace: bool = False, *, key: Any = None
) -> Any:
    """Set each element to 0 with probability p, and scale the others by 1 / (1 - p).

    Args: training: False gives input itself. key: a random key; needed in training unless p is 0.
    Raises: ArgumentError: when p is outside [0, 1]. MissingKeyError: when key is missing.
    Example:
        >>> import funct as ft, funct.array as xp
        >>> from funct.nn import functional as F
        >>> sorted({float(v) for v in F.dropout(xp.ones(100), 0.5, key=ft.random.key(0))})
        [0.0, 2.0]

    Source: Srivastava, Hinton, Krizhevsky, Sutskever, Salakhutdinov 2014.
    """
    refuse_inplace("dropout", inplace)
    return _dropped("dropout", input, input.shape, p, training, key)


def dropout1d(
    input: Any, p: float = 0.5, training: bool = True, inplace: bool = False, *, key: Any = None
) -> Any:
    """Set whole channels of (N, C, L) or (C, L) to 0 with probability p; else as `dropout`.

    Example:
        >>> import funct as ft, funct.array as xp
        >>> from funct.nn import functional as F
        >>> y = F.dropout1d(xp.ones((8, 4, 3)), 0.5, key=ft.random.key(0))
        >>> xp.unique_values(xp.sum(y, axis=2)).tolist()  # channels of 0 or 2
        [0.0, 6.0]

    Source: Tompson et al. 2014, arXiv:1411.4280.
    """
    return _channels("dropout1d", 1, input, p, training, inplace, key)


def dropout2d(
    input: Any, p: float = 0.5, training: bool = True, inplace: bool = False, *, key: Any = None
) -> Any:
    """Set whole channels of (N, C, H, W) or (C, H, W) to 0 with probability p.

    Notes: else as `dropout`. torch takes (C, H, W) for (N, C, L), and warns.
    Example:
        >>> import funct as ft, funct.array as xp
        >>> from funct.nn import functional as F
        >>> y = F.dropout2d(xp.ones((8, 4, 2, 2)), 0.5, key=ft.random.key(0))
        >>> xp.unique_values(xp.sum(y, axis=(2, 3))).tolist()  # channels of 0 or 2
        [0.0, 8.0]

    Source: Tompson et al. 2014, arXiv:1411.4280.
    """
    return _channels("dropout2d", 2, input, p, training, inplace, key)


def dropout3d(
    input: Any, p: float = 0.5, training: bool = True, inplace: bool = False, *, key: Any = None
) -> Any:
    """Set whole channels of (N, C, D, H, W) or (C, D, H, W) to 0 with probability p.

    Notes: else as `dropout`.
    Example:
        >>> import funct as ft, funct.array as xp
        >>> from funct.nn import functional as F
        >>> y = F.dropout3d(xp.ones((8, 4, 2, 2, 2)), 0.5, key=ft.random.key(0))
        >>> xp.unique_values(xp.sum(y, axis=(2, 3, 4))).tolist()  # channels of 0 or 2
        [0.0, 16.0]
    """
    return _channels("dropout3d", 3, input, p, training, inplace, key)


def alpha_dropout(
    input: Any, p: float = 0.5, training: bool = False, inplace: bool = False, *, key: Any = None
) -> Any:
    """Set elements to selu's lower limit with probability p, and keep mean 0 and variance 1.

    Args, Raises: as `dropout`.
    Example:
        >>> import funct as ft, funct.array as xp
        >>> from funct.nn import functional as F
        >>> y = F.alpha_dropout(xp.zeros(1000), 0.5, training=True, key=ft.random.key(0))
        >>> len(set(y.tolist()))  # what stays, and selu's limit, both scaled
        2

    Source: Klambauer, Unterthiner, Mayr, Hochreiter 2017, arXiv:1706.02515.
    """
    refuse_inplace("alpha_dropout", inplace)
    return _alpha("alpha_dropout", input, input.shape, p, training, key)


def feature_alpha_dropout(
    input: Any, p: float = 0.5, training: bool = False, inplace: bool = False, *, key: Any = None
) -> Any:
    """`alpha_dropout` of whole channels of (N, C, *S).

    Raises: ShapeError: when input has fewer than two axes.
    Example:
        >>> import funct as ft, funct.array as xp
        >>> from funct.nn import functional as F
        >>> x = xp.zeros((8, 4, 3))
        >>> y = F.feature_alpha_dropout(x, 0.5, training=True, key=ft.random.key(0))
        >>> bool(xp.all(y[:, :, :1] == y))
        True
    """
    refuse_inplace("feature_alpha_dropout", inplace)
    if len(input.shape) < 2:
        raise ShapeError(
            f"feature_alpha_dropout: input must have shape (N, C, ...), got {input.shape}"
        )
    shape = (*input.shape[:2], *(1,) * (len(input.shape) - 2))
    return _alpha("feature_alpha_dropout", input, shape, p, training, key)


def _channels(
    name: str, rank: int, x: Any, p: float, training: bool, inplace: bool, key: Any
) -> Any:
    refuse_inplace(name, inplace)
    if len(x.shape) not in (rank + 1, rank + 2):
        raise ShapeError(f"{name}: input must have {rank + 1} or {rank + 2} axes, got {x.shape}")
    return _dropped(name, x, (*x.shape[:-rank], *(1,) * rank), p, training, key)


def _kept(name: str, key: Any, shape: Any, p: float) -> Any:
    """True with probability 1 - p."""
    return random.uniform(needed_key(name, key), shape, xp.float32) >= p  # 24 bits do for p


def _dropped(name: str, x: Any, shape: Any, p: float, training: bool, key: Any) -> Any:
    if probability(name, p) == 0.0 or not training:
        return x
    if p == 1.0:
        needed_key(name, key)
        return xp.zeros_like(x)
    return _scaled(x, _kept(name, key, shape, p), 1.0 / (1.0 - p))


@compiled
def _scaled(x: Any, kept: Any, scale: float) -> Any:
    return ops.where(kept, x * scale, 0.0)


def _alpha(name: str, x: Any, shape: Any, p: float, training: bool, key: Any) -> Any:
    if probability(name, p) == 0.0 or not training:
        return x
    if p == 1.0:
        needed_key(name, key)
        return xp.zeros_like(x)
    scale = 1.0 / math.sqrt((_SELU_FLOOR * _SELU_FLOOR * p + 1.0) * (1.0 - p))
    shift = _SELU_FLOOR * scale * p
    return ops.where(_kept(name, key, shape, p), x * scale, -_SELU_FLOOR * scale) + shift
