"""Layers that resize, fold and shuffle; none has parameters."""

from __future__ import annotations

from typing import Any

import funct.array as xp
from funct.array.axes import normal_axis
from funct.nn import functional
from funct.nn.functional.arguments import Ints, hashable, shape_of
from funct.nn.module import Module, static

__all__ = [
    "ChannelShuffle", "Fold", "PixelShuffle", "PixelUnshuffle", "Unflatten", "Unfold", "Upsample",
    "UpsamplingBilinear2d", "UpsamplingNearest2d",
]  # fmt: skip

Floats = float | tuple[float, ...] | list[float]


class Upsample(Module):
    """Resize the spatial axes of (N, C, *S); see `functional.interpolate`.

    Args: size or scale_factor, mode, align_corners, recompute_scale_factor: as there.
    Example:
        >>> import funct.array as xp
        >>> from funct import nn
        >>> x = xp.asarray([[[0.0, 1.0]]])
        >>> [nn.Upsample(scale_factor=2, mode=mode)(x).tolist() for mode in ("nearest", "linear")]
        [[[[0.0, 0.0, 1.0, 1.0]]], [[[0.0, 0.25, 0.75, 1.0]]]]

    Source: torch.nn.Upsample.
    """

    size: Ints | None = static(default=None, converter=hashable)
    scale_factor: Floats | None = static(default=None, converter=hashable)
    mode: str = static(default="nearest")
    align_corners: bool | None = static(default=None)
    recompute_scale_factor: bool | None = static(default=None)

    def __call__(self, x: Any) -> Any:
        """x (N, C, *S) to (N, C, *T). Raises: as `functional.interpolate`."""
        return functional.interpolate(
            x, self.size, self.scale_factor, self.mode, self.align_corners,
            self.recompute_scale_factor,
        )  # fmt: skip


class UpsamplingNearest2d(Module):
    """Resize images by repeating elements.

    Example:
        >>> import funct.array as xp
        >>> from funct import nn
        >>> nn.UpsamplingNearest2d(scale_factor=2)(xp.asarray([[[[0.0, 1.0]]]])).tolist()
        [[[[0.0, 0.0, 1.0, 1.0], [0.0, 0.0, 1.0, 1.0]]]]
    """

    size: Ints | None = static(default=None, converter=hashable)
    scale_factor: Floats | None = static(default=None, converter=hashable)

    def __call__(self, x: Any) -> Any:
        """x (N, C, H, W) to (N, C, *T). Raises: as `functional.interpolate`."""
        return functional.interpolate(x, self.size, self.scale_factor, "nearest")


class UpsamplingBilinear2d(Module):
    """Resize images bilinearly, with the centres of the corner elements in place.

    Example:
        >>> import funct.array as xp
        >>> from funct import nn
        >>> nn.UpsamplingBilinear2d(size=(1, 3))(xp.asarray([[[[0.0, 1.0]]]])).tolist()
        [[[[0.0, 0.5, 1.0]]]]
    """

    size: Ints | None = static(default=None, converter=hashable)
    scale_factor: Floats | None = static(default=None, converter=hashable)

    def __call__(self, x: Any) -> Any:
        """x (N, C, H, W) to (N, C, *T). Raises: as `functional.interpolate`."""
        return functional.interpolate(x, self.size, self.scale_factor, "bilinear", True)


class PixelShuffle(Module):
    """Turn r² channels into r × r pixels.

    Example:
        >>> import funct.array as xp
        >>> from funct import nn
        >>> nn.PixelShuffle(2)(xp.asarray([[[1]], [[2]], [[3]], [[4]]])).tolist()
        [[[1, 2], [3, 4]]]
    """

    upscale_factor: int = static()

    def __call__(self, x: Any) -> Any:
        """x (*, C r², H, W) to (*, C, H r, W r). Raises: as `functional.pixel_shuffle`."""
        return functional.pixel_shuffle(x, self.upscale_factor)


class PixelUnshuffle(Module):
    """Turn r × r pixels into r² channels.

    Example:
        >>> import funct.array as xp
        >>> from funct import nn
        >>> nn.PixelUnshuffle(2)(xp.asarray([[[1, 2], [3, 4]]])).tolist()
        [[[1]], [[2]], [[3]], [[4]]]
    """

    downscale_factor: int = static()

    def __call__(self, x: Any) -> Any:
        """x (*, C, H r, W r) to (*, C r², H, W). Raises: as `functional.pixel_unshuffle`."""
        return functional.pixel_unshuffle(x, self.downscale_factor)


class ChannelShuffle(Module):
    """Interleave channels; see `functional.channel_shuffle`.

    Example:
        >>> import funct.array as xp
        >>> from funct import nn
        >>> nn.ChannelShuffle(2)(xp.reshape(xp.arange(4), (1, 4, 1))).tolist()
        [[[0], [2], [1], [3]]]
    """

    groups: int = static()

    def __call__(self, x: Any) -> Any:
        """x (N, C, *S), same shape. Raises: as `functional.channel_shuffle`."""
        return functional.channel_shuffle(x, self.groups)


class Unfold(Module):
    """Write the windows of an image as columns; see `functional.unfold`.

    Example:
        >>> import funct.array as xp
        >>> from funct import nn
        >>> nn.Unfold(2)(xp.reshape(xp.arange(6.0), (1, 1, 2, 3))).tolist()
        [[[0.0, 1.0], [1.0, 2.0], [3.0, 4.0], [4.0, 5.0]]]
    """

    kernel_size: Ints = static(converter=hashable)
    dilation: Ints = static(default=1, converter=hashable)
    padding: Ints = static(default=0, converter=hashable)
    stride: Ints = static(default=1, converter=hashable)

    def __call__(self, x: Any) -> Any:
        """x (N, C, H, W) to (N, C kh kw, T). Raises: as `functional.unfold`."""
        return functional.unfold(x, self.kernel_size, self.dilation, self.padding, self.stride)


class Fold(Module):
    """Add columns up as windows of an image; see `functional.fold`.

    Example:
        >>> import funct.array as xp
        >>> from funct import nn
        >>> x = xp.ones((1, 1, 3, 3))
        >>> nn.Fold((3, 3), 2)(nn.Unfold(2)(x)).tolist()  # how many windows hold each element
        [[[[1.0, 2.0, 1.0], [2.0, 4.0, 2.0], [1.0, 2.0, 1.0]]]]
    """

    output_size: Ints = static(converter=hashable)
    kernel_size: Ints = static(converter=hashable)
    dilation: Ints = static(default=1, converter=hashable)
    padding: Ints = static(default=0, converter=hashable)
    stride: Ints = static(default=1, converter=hashable)

    def __call__(self, x: Any) -> Any:
        """x (N, C kh kw, T) to (N, C, H, W). Raises: as `functional.fold`."""
        return functional.fold(
            x, self.output_size, self.kernel_size, self.dilation, self.padding, self.stride
        )


class Unflatten(Module):
    """Split axis dim into axes of the lengths unflattened_size, one of which may be -1.

    Example:
        >>> import funct.array as xp
        >>> from funct import nn
        >>> nn.Unflatten(1, (3, -1))(xp.ones((2, 12))).shape
        (2, 3, 4)
    """

    dim: int = static()
    unflattened_size: tuple[int, ...] = static(converter=tuple)

    def __call__(self, x: Any) -> Any:
        """x with that axis split. Raises: ShapeError: when the lengths do not multiply to it."""
        shape = shape_of(x)
        axis = normal_axis("Unflatten", self.dim, len(shape))
        return xp.reshape(x, (*shape[:axis], *self.unflattened_size, *shape[axis + 1 :]))
