"""Convolution layers and their transposes, over one to three spatial axes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import funct.array as xp
from funct import random
from funct.array import Tensor
from funct.array.axes import integers
from funct.errors import ArgumentError, ShapeError
from funct.nn import functional, init
from funct.nn.functional.arguments import Ints, Sizes, per_axis, shape_of, spatial_letters
from funct.nn.functional.convolution import padding_pairs
from funct.nn.module import Module, static
from funct.ops.refusals import shown

__all__ = [
    "Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d",
]  # fmt: skip

_MODES = ("zeros", "reflect", "replicate", "circular")


def _check_groups(name: str, groups: int, in_channels: int, out_channels: int) -> None:
    if groups < 1 or in_channels % groups or out_channels % groups:
        raise ArgumentError(
            f"{name}: groups must divide in_channels={in_channels} and "
            f"out_channels={out_channels}, got {groups}"
        )


def _drawn(key: Any, shape: Sizes, channels: int, bias: bool, dtype: Any) -> tuple[Any, Any]:
    """Weight and bias as in torch: both uniform on ±1 / sqrt(fan_in of the weight)."""
    for_weight, for_bias = random.split(key)
    weight = init.kaiming_uniform(for_weight, shape, a=math.sqrt(5.0), dtype=dtype)
    if not bias:
        return weight, None
    fan_in, _ = init.fans(shape)
    bound = 1.0 / math.sqrt(fan_in) if fan_in else 0.0
    return weight, init.uniform(for_bias, (channels,), -bound, bound, dtype=dtype)


def _check_input(layer: Any, x: Any) -> None:
    name, rank, shape = type(layer).__name__, layer.rank, shape_of(x)
    missing = rank + 2 - len(shape)
    if missing not in (0, 1):
        letters = spatial_letters(rank)
        raise ShapeError(
            f"{name}: x must have shape (N, C, {letters}) or (C, {letters}), got {shape}"
        )
    if shape[1 - missing] != layer.in_channels:
        raise ShapeError(
            f"{name}: x must have {layer.in_channels} channels on axis {1 - missing}, got {shape}"
        )


class _Conv(Module):
    """What convolutions of any rank share."""

    rank: ClassVar[int]
    apply: ClassVar[Callable[..., Any]]

    in_channels: int = static()
    out_channels: int = static()
    kernel_size: Sizes = static()
    stride: Sizes = static()
    padding: Sizes | str = static()
    dilation: Sizes = static()
    groups: int = static()
    padding_mode: str = static()
    weight: Tensor
    bias: Tensor | None

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Ints, stride: Ints = 1,
        padding: Ints | str = 0, dilation: Ints = 1, groups: int = 1, bias: bool = True,
        padding_mode: str = "zeros", *, key: Any, dtype: Any = xp.float32,
    ) -> None:  # fmt: skip
        name, rank = type(self).__name__, self.rank
        if padding_mode not in _MODES:
            raise ArgumentError(
                f"{name}: padding_mode must be one of {list(_MODES)}, got {padding_mode!r}"
            )
        _check_groups(name, groups, in_channels, out_channels)
        kernel = per_axis(name, "kernel_size", kernel_size, rank)
        strides = per_axis(name, "stride", stride, rank)
        dilations = per_axis(name, "dilation", dilation, rank)
        padding_pairs(name, padding, kernel, strides, dilations)  # refuses what does not fit
        pads = padding if isinstance(padding, str) else per_axis(name, "padding", padding, rank, 0)
        shape = (out_channels, in_channels // groups, *kernel)
        weight, b = _drawn(key, shape, out_channels, bias, dtype)
        self.__attrs_init__(
            in_channels, out_channels, kernel, strides, pads, dilations, groups, padding_mode,
            weight, b,
        )  # fmt: skip

    def __call__(self, x: Any) -> Any:
        """x (N, C, *S) or (C, *S) to (N, O, *T) or (O, *T).

        Raises: ShapeError: when the rank or the number of channels does not fit. ArgumentError:
        when the padding is too long for padding_mode.
        """
        _check_input(self, x)
        padding: Any = self.padding
        if self.padding_mode != "zeros":
            pairs = padding_pairs(
                type(self).__name__, padding, self.kernel_size, self.stride, self.dilation
            )
            around = [n for pair in reversed(pairs) for n in pair]  # the last axis comes first
            x, padding = functional.pad(x, around, self.padding_mode), 0
        return type(self).apply(
            x, self.weight, self.bias, self.stride, padding, self.dilation, self.groups
        )


class Conv1d(_Conv):
    """Cross-correlate signals (N, C, L) with kernels.

    Args: in_channels, out_channels, kernel_size, stride, padding (ints, "same" or "valid"),
    dilation, groups, bias, padding_mode ("zeros", "reflect", "replicate", "circular"): as in torch.
    key: a random key for the initial values, all uniform on ±1 / sqrt(fan_in). dtype: of the
    parameters.
    Raises: ArgumentError: when a parameter is out of range.
    Example:
        >>> import funct as ft, funct.array as xp
        >>> from funct import nn
        >>> layer = nn.Conv1d(2, 4, 3, padding="same", key=ft.random.key(0))
        >>> layer(xp.ones((5, 2, 9), dtype=xp.float32)).shape
        (5, 4, 9)

    Source: torch.nn.Conv1d.
    """

    rank = 1
    apply = staticmethod(functional.conv1d)


class Conv2d(_Conv):
    """Cross-correlate images (N, C, H, W) with kernels.

    Args, Raises: as `Conv1d`; an int stands for both axes.
    Example:
        >>> import funct as ft, funct.array as xp
        >>> from funct import nn
        >>> layer = nn.Conv2d(3, 8, 3, stride=2, padding=1, key=ft.random.key(0))
        >>> layer(xp.ones((1, 3, 32, 32), dtype=xp.float32)).shape
        (1, 8, 16, 16)

    Source: torch.nn.Conv2d.
    """

    rank = 2
    apply = staticmethod(functional.conv2d)


class Conv3d(_Conv):
    """Cross-correlate volumes (N, C, D, H, W) with kernels.

    Args, Raises: as `Conv1d`; an int stands for all three axes.
    Example:
        >>> import funct as ft, funct.array as xp
        >>> from funct import nn
        >>> layer = nn.Conv3d(2, 4, 3, padding=1, key=ft.random.key(0))
        >>> layer(xp.ones((1, 2, 5, 6, 7), dtype=xp.float32)).shape, layer.weight.shape
        ((1, 4, 5, 6, 7), (4, 2, 3, 3, 3))

    Source: torch.nn.Conv3d.
    """

    rank = 3
    apply = staticmethod(functional.conv3d)


class _ConvTranspose(Module):
    """What transposed convolutions of any rank share."""

    rank: ClassVar[int]
    apply: ClassVar[Callable[..., Any]]

    in_channels: int = static()
    out_channels: int = static()
    kernel_size: Sizes = static()
    stride: Sizes = static()
    padding: Sizes = static()
    output_padding: Sizes = static()
    groups: int = static()
    dilation: Sizes = static()
    weight: Tensor
    bias: Tensor | None

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Ints, stride: Ints = 1,
        padding: Ints = 0, output_padding: Ints = 0, groups: int = 1, bias: bool = True,
        dilation: Ints = 1, padding_mode: str = "zeros", *, key: Any, dtype: Any = xp.float32,
    ) -> None:  # fmt: skip
        name, rank = type(self).__name__, self.rank
        if padding_mode != "zeros":
            raise ArgumentError(f"{name}: padding_mode must be 'zeros', got {padding_mode!r}")
        _check_groups(name, groups, in_channels, out_channels)
        kernel = per_axis(name, "kernel_size", kernel_size, rank)
        shape = (in_channels, out_channels // groups, *kernel)
        weight, b = _drawn(key, shape, out_channels, bias, dtype)
        self.__attrs_init__(
            in_channels, out_channels, kernel, per_axis(name, "stride", stride, rank),
            per_axis(name, "padding", padding, rank, 0),
            per_axis(name, "output_padding", output_padding, rank, 0), groups,
            per_axis(name, "dilation", dilation, rank), weight, b,
        )  # fmt: skip

    def __call__(self, x: Any, output_size: Sequence[int] | None = None) -> Any:
        """x (N, C, *T) or (C, *T) to (N, O, *S) or (O, *S).

        Args: output_size: *S or the whole shape, instead of output_padding.
        Raises: ShapeError: when the rank or the number of channels does not fit. ArgumentError:
        when output_size cannot be reached.
        """
        _check_input(self, x)
        extra = self.output_padding
        if output_size is not None:
            size = integers(type(self).__name__, "output_size", output_size)
            extra = self._output_padding(tuple(x.shape[-self.rank :]), size)
        return type(self).apply(
            x, self.weight, self.bias, self.stride, self.padding, extra, self.groups, self.dilation
        )

    def _output_padding(self, size: Sizes, wanted: Sizes) -> Sizes:
        if not 0 <= len(wanted) - self.rank <= 2:
            raise ArgumentError(
                f"{type(self).__name__}: output_size must be {self.rank} lengths or a whole shape, "
                f"got {shown(wanted)}"
            )
        each = zip(
            size, self.kernel_size, self.stride, self.padding, self.dilation, strict=True
        )  # fmt: skip
        least = [(t - 1) * s - 2 * p + d * (k - 1) + 1 for t, k, s, p, d in each]
        extra = tuple([n - m for n, m in zip(wanted[-self.rank :], least, strict=True)])
        if any(not 0 <= e < s for e, s in zip(extra, self.stride, strict=True)):
            raise ArgumentError(
                f"{type(self).__name__}: output_size must be at least {tuple(least)} and less than "
                f"a stride {self.stride} more, got {shown(wanted)}"
            )
        return extra


class ConvTranspose1d(_ConvTranspose):
    """Apply the transpose of a `Conv1d` from out_channels to in_channels.

    Args: in_channels, out_channels, kernel_size, stride, padding, output_padding, groups, bias,
    dilation, padding_mode ("zeros"): as in torch. key: a random key for the initial values. dtype:
    of the parameters.
    Raises: ArgumentError: when a parameter is out of range.
    Example:
        >>> import funct as ft, funct.array as xp
        >>> from funct import nn
        >>> layer = nn.ConvTranspose1d(8, 3, 2, stride=2, key=ft.random.key(0))
        >>> layer(xp.ones((1, 8, 4), dtype=xp.float32)).shape, layer.weight.shape
        ((1, 3, 8), (8, 3, 2))

    Source: torch.nn.ConvTranspose1d.
    """

    rank = 1
    apply = staticmethod(functional.conv_transpose1d)


class ConvTranspose2d(_ConvTranspose):
    """Apply the transpose of a `Conv2d` from out_channels to in_channels.

    Args, Raises: as `ConvTranspose1d`; an int stands for both axes.
    Example:
        >>> import funct as ft, funct.array as xp
        >>> from funct import nn
        >>> layer = nn.ConvTranspose2d(8, 3, 2, stride=2, key=ft.random.key(0))
        >>> layer(xp.ones((1, 8, 4, 4), dtype=xp.float32)).shape
        (1, 3, 8, 8)

    Source: torch.nn.ConvTranspose2d.
    """

    rank = 2
    apply = staticmethod(functional.conv_transpose2d)


class ConvTranspose3d(_ConvTranspose):
    """Apply the transpose of a `Conv3d` from out_channels to in_channels.

    Args, Raises: as `ConvTranspose1d`; an int stands for all three axes.
    Example:
        >>> import funct as ft, funct.array as xp
        >>> from funct import nn
        >>> layer = nn.ConvTranspose3d(8, 3, 2, stride=2, key=ft.random.key(0))
        >>> layer(xp.ones((1, 8, 2, 2, 2), dtype=xp.float32)).shape
        (1, 3, 4, 4, 4)

    Source: torch.nn.ConvTranspose3d.
    """

    rank = 3
    apply = staticmethod(functional.conv_transpose3d)
