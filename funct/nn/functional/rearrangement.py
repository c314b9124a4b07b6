"""Elements in other places: windows as columns, channels as pixels, shuffled channels."""

from __future__ import annotations

import math
from typing import Any

import funct.array as xp
from funct import ops
from funct.array.axes import normal_axis
from funct.array.direct import direct
from funct.errors import ArgumentError, ShapeError
from funct.kernels.windows import shuffling as kernels
from funct.nn.functional.arguments import Ints, per_axis, unbatched
from funct.nn.functional.compiled import concrete, lies_last, whole

__all__ = [
    "channel_shuffle", "flatten", "fold", "pixel_shuffle", "pixel_unshuffle", "unfold",
]  # fmt: skip


def flatten(input: Any, start_dim: int = 0, end_dim: int = -1) -> Any:
    """Join the axes start_dim … end_dim into one.

    Raises: ShapeError: when an axis does not exist or start_dim stands behind end_dim.
    Example:
        >>> import funct.array as xp
        >>> from funct.nn import functional as F
        >>> F.flatten(xp.ones((2, 3, 4)), 1).shape
        (2, 12)
    """
    shape = input.shape or (1,)
    start, end = (normal_axis("flatten", d, len(shape)) for d in (start_dim, end_dim))
    if start > end:
        raise ShapeError(
            f"flatten: start_dim must not stand behind end_dim, got {start_dim}, {end_dim}"
        )
    if start == end and input.shape:
        return input
    joined: Any = 1  # no math.prod: a length may be symbolic
    for n in shape[start : end + 1]:
        joined = n if joined == 1 else joined * n
    return xp.reshape(input, (*shape[:start], joined, *shape[end + 1 :]))


def _image(name: str, x: Any) -> tuple[Any, bool]:
    if len(x.shape) not in (3, 4):
        raise ShapeError(f"{name}: input must have shape (N, C, H, W) or (C, H, W), got {x.shape}")
    return (x, False) if len(x.shape) == 4 else (xp.expand_dims(x, 0), True)


def _sizes(
    name: str, kernel_size: Ints, dilation: Ints, padding: Ints, stride: Ints
) -> tuple[tuple[int, ...], ...]:
    """Kernel, dilation, padding and stride of two axes."""
    return (
        per_axis(name, "kernel_size", kernel_size, 2), per_axis(name, "dilation", dilation, 2),
        per_axis(name, "padding", padding, 2, 0), per_axis(name, "stride", stride, 2),
    )  # fmt: skip


@whole
def unfold(
    input: Any, kernel_size: Ints, dilation: Ints = 1, padding: Ints = 0, stride: Ints = 1
) -> Any:
    """Write the windows of an image as columns, also called im2col.

    Args: input: shape (N, C, H, W) or (C, H, W). The rest: as in `conv2d`.
    Returns: shape (N, C · kh · kw, T) or (C · kh · kw, T), T windows row by row.
    Raises: ShapeError: when the rank does not fit or no window does. ArgumentError: when a
    parameter is out of range.
    Example:
        >>> import funct.array as xp
        >>> from funct.nn import functional as F
        >>> F.unfold(xp.ones((1, 3, 4, 4)), 3).shape
        (1, 27, 4)

    Source: torch.nn.functional.unfold.
    """
    x, added = _image("unfold", input)
    kernel, dilations, pads, strides = _sizes("unfold", kernel_size, dilation, padding, stride)
    padded = ops.pad_axes(x, tuple([(p, p) for p in pads]))
    spans = [d * (k - 1) + 1 for k, d in zip(kernel, dilations, strict=True)]
    if any(n < s for n, s in zip(padded.shape[2:], spans, strict=True)):
        raise ShapeError(f"unfold: kernel {kernel} is larger than the padded input {x.shape}")
    columns = ops.windows(padded, kernel, strides, dilations)  # (N, C, th, tw, kh, kw)
    _, c, th, tw, kh, kw = columns.shape
    columns = ops.permute_dims(columns, (0, 1, 4, 5, 2, 3))
    return unbatched(xp.reshape(columns, (x.shape[0], c * kh * kw, th * tw)), added)


@whole
def fold(
    input: Any, output_size: Ints, kernel_size: Ints, dilation: Ints = 1, padding: Ints = 0,
    stride: Ints = 1,
) -> Any:  # fmt: skip
    """Add columns up as windows of an image, also called col2im; the adjoint of `unfold`.

    Args: input: shape (N, C · kh · kw, T) or (C · kh · kw, T). output_size: (H, W). The rest: as
    in `unfold`.
    Returns: shape (N, C, H, W) or (C, H, W).
    Raises: ShapeError: when the shape is not that of windows of such an image. ArgumentError: when
    a parameter is out of range.
    Example:
        >>> import funct.array as xp
        >>> from funct.nn import functional as F
        >>> x = xp.ones((1, 1, 3, 3))
        >>> F.fold(F.unfold(x, 2), (3, 3), 2).tolist()  # how many windows hold each element
        [[[[1.0, 2.0, 1.0], [2.0, 4.0, 2.0], [1.0, 2.0, 1.0]]]]

    Source: torch.nn.functional.fold.
    """
    if len(input.shape) not in (2, 3):
        raise ShapeError(f"fold: input must have shape (N, C kh kw, T) or (C kh kw, T), "
                         f"got {input.shape}")  # fmt: skip
    added = len(input.shape) == 2
    x = xp.expand_dims(input, 0) if added else input
    size = per_axis("fold", "output_size", output_size, 2)
    kernel, dilations, pads, strides = _sizes("fold", kernel_size, dilation, padding, stride)
    padded = tuple([n + 2 * p for n, p in zip(size, pads, strict=True)])
    each = zip(padded, kernel, dilations, strides, strict=True)
    counts = tuple([(n - d * (k - 1) - 1) // s + 1 for n, k, d, s in each])
    area = math.prod(kernel)
    if min(counts) < 1 or x.shape[2] != math.prod(counts) or x.shape[1] % area:
        raise ShapeError(
            f"fold: input must have a multiple of {area} rows and {math.prod(counts)} columns, "
            f"got {input.shape}"
        )
    blocks = xp.reshape(x, (x.shape[0], x.shape[1] // area, *kernel, *counts))
    blocks = ops.permute_dims(blocks, (0, 1, 4, 5, 2, 3))  # (N, C, th, tw, kh, kw)
    image = ops.fold_windows(blocks, padded, strides, dilations)
    return unbatched(ops.pad_axes(image, tuple([(-p, -p) for p in pads])), added)


def _divided(name: str, axis: str, n: int, by: int) -> int:
    if by.__class__ is not int or by < 1 or n % by:
        raise ArgumentError(f"{name}: {axis} {n} must be a multiple of the factor, got {by}")
    return n // by


@direct(kernels.pixel_shuffle)
@whole
def pixel_shuffle(input: Any, upscale_factor: int) -> Any:
    """Turn r² channels into r × r pixels: (*, C r², H, W) to (*, C, H r, W r).

    Raises: ShapeError: when input has fewer than three axes. ArgumentError: when the channels are
    no multiple of r².
    Example:
        >>> import funct.array as xp
        >>> from funct.nn import functional as F
        >>> F.pixel_shuffle(xp.reshape(xp.arange(4.0), (4, 1, 1)), 2).tolist()
        [[[0.0, 1.0], [2.0, 3.0]]]

    Source: Shi et al. 2016, arXiv:1609.05158.
    """
    if len(input.shape) < 3:
        raise ShapeError(f"pixel_shuffle: input must have shape (*, C, H, W), got {input.shape}")
    *lead, channels, h, w = input.shape
    r, n = upscale_factor, len(lead)
    c = _divided("pixel_shuffle", "channels", channels, r * abs(r))  # refused below 0
    if n == 1 and concrete(input) and lies_last(input):  # as it lies in memory, and so the result
        x = xp.reshape(xp.moveaxis(input, 1, -1), (*lead, h, w, c, r, r))
        x = ops.permute_dims(x, (0, 1, 4, 2, 5, 3))  # (N, H, r, W, r, C)
        return xp.moveaxis(xp.reshape(x, (*lead, h * r, w * r, c)), -1, 1)
    x = xp.reshape(input, (*lead, c, r, r, h, w))
    x = ops.permute_dims(x, (*range(n), n, n + 3, n + 1, n + 4, n + 2))  # (*, C, H, r, W, r)
    return xp.reshape(x, (*lead, c, h * r, w * r))


@direct(kernels.pixel_unshuffle)
@whole
def pixel_unshuffle(input: Any, downscale_factor: int) -> Any:
    """Turn r × r pixels into r² channels: (*, C, H r, W r) to (*, C r², H, W).

    Raises: ShapeError: when input has fewer than three axes. ArgumentError: when height or width is
    no multiple of r.
    Example:
        >>> import funct.array as xp
        >>> from funct.nn import functional as F
        >>> F.pixel_unshuffle(xp.asarray([[[1, 2], [3, 4]]]), 2).tolist()
        [[[1]], [[2]], [[3]], [[4]]]
    """
    if len(input.shape) < 3:
        raise ShapeError(f"pixel_unshuffle: input must have shape (*, C, H, W), got {input.shape}")
    *lead, channels, height, width = input.shape
    r, n = downscale_factor, len(lead)
    h = _divided("pixel_unshuffle", "height", height, r)
    w = _divided("pixel_unshuffle", "width", width, r)
    x = xp.reshape(input, (*lead, channels, h, r, w, r))
    x = ops.permute_dims(x, (*range(n), n, n + 2, n + 4, n + 1, n + 3))  # (*, C, r, r, H, W)
    return xp.reshape(x, (*lead, channels * r * r, h, w))


@whole
def channel_shuffle(input: Any, groups: int) -> Any:
    """Interleave the channels of (N, C, *S): (g, C / g) becomes (C / g, g).

    Raises: ShapeError: when input has fewer than three axes. ArgumentError: when groups does not
    divide the channels.
    Example:
        >>> import funct.array as xp
        >>> from funct.nn import functional as F
        >>> F.channel_shuffle(xp.reshape(xp.arange(4), (1, 4, 1)), 2).tolist()
        [[[0], [2], [1], [3]]]

    Source: Zhang, Zhou, Lin, Sun 2017, arXiv:1707.01083.
    """
    if len(input.shape) < 3:
        raise ShapeError(f"channel_shuffle: input must have shape (N, C, *S), got {input.shape}")
    n, channels, *size = input.shape
    each = _divided("channel_shuffle", "channels", channels, groups)
    if concrete(input) and lies_last(input):  # as it lies in memory, and so the result
        x = xp.reshape(xp.moveaxis(input, 1, -1), (n, *size, groups, each))
        return xp.moveaxis(xp.reshape(xp.matrix_transpose(x), (n, *size, channels)), -1, 1)
    x = ops.move_axis(xp.reshape(input, (n, groups, each, *size)), 1, 2)
    return xp.reshape(x, (n, channels, *size))
