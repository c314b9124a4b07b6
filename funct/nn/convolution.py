"""Convolution layers: Conv1d, Conv2d."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar

import funct.array as xp
from funct import random
from funct.array import Tensor
from funct.errors import ArgumentError, ShapeError
from funct.nn import functional, init
from funct.nn.functional.arguments import Ints, per_axis, spatial_letters
from funct.nn.functional.convolution import padding_pairs
from funct.nn.linear import bias_like_weight
from funct.nn.module import Module, static

__all__ = ["Conv1d", "Conv2d"]


class _Conv(Module):
    """What convolutions of any rank share."""

    rank: ClassVar[int]
    apply: ClassVar[Callable[..., Any]]

    in_channels: int = static()
    out_channels: int = static()
    kernel_size: tuple[int, ...] = static()
    stride: tuple[int, ...] = static()
    padding: tuple[int, ...] | str = static()
    dilation: tuple[int, ...] = static()
    groups: int = static()
    weight: Tensor
    bias: Tensor | None

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Ints, stride: Ints = 1,
        padding: Ints | str = 0, dilation: Ints = 1, groups: int = 1, bias: bool = True,
        padding_mode: str = "zeros", *, key: Any, dtype: Any = xp.float32,
    ) -> None:  # fmt: skip
        name, rank = type(self).__name__, self.rank
        if padding_mode != "zeros":
            raise ArgumentError(f"{name}: padding_mode must be 'zeros', got {padding_mode!r}")
        if groups < 1 or in_channels % groups or out_channels % groups:
            raise ArgumentError(
                f"{name}: groups must divide in_channels={in_channels} and "
                f"out_channels={out_channels}, got {groups}"
            )
        kernel = per_axis(name, "kernel_size", kernel_size, rank)
        strides = per_axis(name, "stride", stride, rank)
        dilations = per_axis(name, "dilation", dilation, rank)
        padding_pairs(name, padding, kernel, strides, dilations)  # refuses what does not fit
        pads = padding if isinstance(padding, str) else per_axis(name, "padding", padding, rank, 0)
        shape = (out_channels, in_channels // groups, *kernel)
        for_weight, for_bias = random.split(key)
        weight = init.kaiming_uniform(for_weight, shape, a=math.sqrt(5.0), dtype=dtype)
        b = bias_like_weight(for_bias, shape, dtype) if bias else None
        self.__attrs_init__(
            in_channels, out_channels, kernel, strides, pads, dilations, groups, weight, b
        )

    def __call__(self, x: Any) -> Any:
        """x (N, C, *S) or (C, *S) to (N, O, *T) or (O, *T).

        Raises: ShapeError: when the rank or the number of channels does not fit.
        """
        missing = self.rank + 2 - len(x.shape)
        if missing not in (0, 1):
            letters = spatial_letters(self.rank)
            raise ShapeError(
                f"{type(self).__name__}: x must have shape (N, C, {letters}) or (C, {letters}), "
                f"got {x.shape}"
            )
        if x.shape[1 - missing] != self.in_channels:
            raise ShapeError(
                f"{type(self).__name__}: x must have {self.in_channels} channels on axis "
                f"{1 - missing}, got {x.shape}"
            )
        return type(self).apply(
            x, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups
        )


class Conv1d(_Conv):
    """Cross-correlate signals (N, C, L) with kernels.

    Args: in_channels, out_channels, kernel_size, stride, padding (ints, "same" or "valid"),
    dilation, groups, bias, padding_mode ("zeros"): as in torch. key: a random key for the initial
    values, all uniform on ±1 / sqrt(fan_in). dtype: of the parameters.
    Raises: ArgumentError: when a parameter is out of range.
    Source: torch.nn.Conv1d.
    Example:
        >>> import funct as ft, funct.array as xp
        >>> from funct import nn
        >>> layer = nn.Conv1d(2, 4, 3, padding="same", key=ft.random.key(0))
        >>> layer(xp.ones((5, 2, 9), dtype=xp.float32)).shape
        (5, 4, 9)
    """

    rank = 1
    apply = staticmethod(functional.conv1d)


class Conv2d(_Conv):
    """Cross-correlate images (N, C, H, W) with kernels.

    Args, Raises: as `Conv1d`; an int stands for both axes.
    Source: torch.nn.Conv2d.
    Example:
        >>> import funct as ft, funct.array as xp
        >>> from funct import nn
        >>> layer = nn.Conv2d(3, 8, 3, stride=2, padding=1, key=ft.random.key(0))
        >>> layer(xp.ones((1, 3, 32, 32), dtype=xp.float32)).shape
        (1, 8, 16, 16)
    """

    rank = 2
    apply = staticmethod(functional.conv2d)
