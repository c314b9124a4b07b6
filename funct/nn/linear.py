"""Linear layers and what stands between them: Linear, Bilinear, Flatten, Identity."""

from __future__ import annotations

import math
from typing import Any

import funct.array as xp
from funct import random
from funct.array import Tensor
from funct.errors import ShapeError
from funct.nn import functional, init
from funct.nn.functional.arguments import shape_of
from funct.nn.module import Module, static

__all__ = ["Bilinear", "Flatten", "Identity", "Linear"]


def _bias_like_weight(key: Any, weight_shape: tuple[int, ...], dtype: Any) -> Any:
    """torch's default bias: uniform on ±1 / sqrt(fan_in) of the weight."""
    fan_in, _ = init.fans(weight_shape)
    bound = 1.0 / math.sqrt(fan_in) if fan_in else 0.0
    return init.uniform(key, (weight_shape[0],), -bound, bound, dtype=dtype)


class Linear(Module):
    """Map features linearly: y = x Wᵀ + b.

    Args: in_features, out_features: I and O. key: a random key for the initial values, both uniform
    on ±1 / sqrt(I) as in torch. bias: False leaves b out. dtype: of the parameters.
    Example:
        >>> import funct as ft, funct.array as xp
        >>> from funct import nn
        >>> layer = nn.Linear(3, 2, key=ft.random.key(0))
        >>> layer
        Linear(in_features=3, out_features=2, weight=float32[2, 3], bias=float32[2])
        >>> layer(xp.ones((5, 3), dtype=xp.float32)).shape
        (5, 2)

    Source: torch.nn.Linear.
    """

    in_features: int = static()
    out_features: int = static()
    weight: Tensor
    bias: Tensor | None

    def __init__(
        self, in_features: int, out_features: int, *, key: Any, bias: bool = True,
        dtype: Any = xp.float32,
    ) -> None:  # fmt: skip
        shape = (out_features, in_features)
        for_weight, for_bias = random.split(key)
        weight = init.kaiming_uniform(for_weight, shape, a=math.sqrt(5.0), dtype=dtype)
        b = _bias_like_weight(for_bias, shape, dtype) if bias else None
        self.__attrs_init__(in_features, out_features, weight, b)

    def __call__(self, x: Any) -> Any:
        """x (*, I) to (*, O). Raises: ShapeError: when the last axis is not I long."""
        shape = shape_of(x)
        if not shape or shape[-1] != self.in_features:
            raise ShapeError(
                f"Linear: x must have {self.in_features} features on its last axis, got {shape}"
            )
        return functional.linear(x, self.weight, self.bias)


class Bilinear(Module):
    """Map two feature vectors bilinearly: y_o = x1ᵀ W_o x2 + b_o.

    Args: in1_features, in2_features, out_features: I1, I2 and O. bias: False leaves b out. key: a
    random key for the initial values, uniform on ±1 / sqrt(I1) as in torch. dtype: of the
    parameters.
    Example:
        >>> import funct as ft, funct.array as xp
        >>> from funct import nn
        >>> layer = nn.Bilinear(2, 3, 5, key=ft.random.key(0))
        >>> layer(xp.ones((4, 2), dtype=xp.float32), xp.ones((4, 3), dtype=xp.float32)).shape
        (4, 5)

    Source: torch.nn.Bilinear.
    """

    in1_features: int = static()
    in2_features: int = static()
    out_features: int = static()
    weight: Tensor
    bias: Tensor | None

    def __init__(
        self, in1_features: int, in2_features: int, out_features: int, bias: bool = True, *,
        key: Any, dtype: Any = xp.float32,
    ) -> None:  # fmt: skip
        bound = 1.0 / math.sqrt(in1_features)
        shape = (out_features, in1_features, in2_features)
        for_weight, for_bias = random.split(key)
        weight = init.uniform(for_weight, shape, -bound, bound, dtype=dtype)
        b = init.uniform(for_bias, shape[:1], -bound, bound, dtype=dtype) if bias else None
        self.__attrs_init__(in1_features, in2_features, out_features, weight, b)

    def __call__(self, x1: Any, x2: Any) -> Any:
        """x1 (*, I1) and x2 (*, I2) to (*, O). Raises: as `functional.bilinear`."""
        return functional.bilinear(x1, x2, self.weight, self.bias)


class Flatten(Module):
    """Join the axes start_dim … end_dim into one; by default all but the batch.

    Example:
        >>> import funct.array as xp
        >>> from funct import nn
        >>> nn.Flatten()(xp.ones((2, 3, 4))).shape
        (2, 12)
    """

    start_dim: int = static(default=1)
    end_dim: int = static(default=-1)

    def __call__(self, x: Any) -> Any:
        """x with those axes joined. Raises: ShapeError: when x does not have them."""
        return functional.flatten(x, self.start_dim, self.end_dim)


class Identity(Module):
    """Return x itself.

    Example:
        >>> import funct.array as xp
        >>> from funct import nn
        >>> nn.Identity()(xp.asarray([1.0, 2.0])).tolist()
        [1.0, 2.0]
    """

    def __call__(self, x: Any) -> Any:
        """x."""
        return x
