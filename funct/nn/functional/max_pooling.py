"""Maxima of windows, their places in the input, and the way back."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import funct.array as xp
from funct import ops
from funct.array import Array
from funct.array.direct import direct
from funct.errors import ArgumentError, ShapeError
from funct.kernels import neural as kernels
from funct.kernels.windows.boxes import are_distinct
from funct.nn.functional.arguments import Ints, batched, per_axis, unbatched
from funct.nn.functional.compiled import whole
from funct.nn.functional.windows import pooled_windows

__all__ = [
    "max_pool1d", "max_pool2d", "max_pool3d", "max_unpool1d", "max_unpool2d", "max_unpool3d",
]  # fmt: skip


@direct(kernels.max_pool_of(1), gives=tuple)
@whole
def max_pool1d(
    input: Any, kernel_size: Ints, stride: Ints | None = None, padding: Ints = 0,
    dilation: Ints = 1, ceil_mode: bool = False, return_indices: bool = False,
) -> Any:  # fmt: skip
    """Take the maximum of each window of a signal.

    Args: input: shape (N, C, L) or (C, L). stride: None is kernel_size. padding: at most half a
    kernel; never wins. ceil_mode: also the last window that begins in input or left padding.
    return_indices: give the place of each maximum in the flat input (L,) too, int64.
    Returns: shape (N, C, T) or (C, T); with return_indices a pair of that.
    Raises: ShapeError: when the rank does not fit. ArgumentError: when a parameter is out of range.
    Notes: the derivative goes to the first maximum, of several NaN to the last.
    Example:
        >>> import funct.array as xp
        >>> from funct.nn import functional as F
        >>> y, at = F.max_pool1d(xp.asarray([[1.0, 5.0, 2.0, 3.0]]), 2, return_indices=True)
        >>> y.tolist(), at.tolist()
        ([[5.0, 3.0]], [[1, 3]])

    Source: torch.nn.functional.max_pool1d.
    """
    return _max_pool(
        "max_pool1d", 1, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices
    )


@direct(kernels.max_pool_of(2), gives=tuple)
@whole
def max_pool2d(
    input: Any, kernel_size: Ints, stride: Ints | None = None, padding: Ints = 0,
    dilation: Ints = 1, ceil_mode: bool = False, return_indices: bool = False,
) -> Any:  # fmt: skip
    """Take the maximum of each window of an image.

    Args: input: shape (N, C, H, W) or (C, H, W). return_indices: places in the flat image (H W,).
    The rest: as in `max_pool1d`.
    Returns: shape (N, C, *T) or (C, *T); with return_indices a pair of that.
    Raises: ShapeError, ArgumentError: as `max_pool1d`.
    Example:
        >>> import funct.array as xp
        >>> from funct.nn import functional as F
        >>> F.max_pool2d(xp.ones((1, 1, 5, 5)), 2, ceil_mode=True).shape
        (1, 1, 3, 3)

    Source: torch.nn.functional.max_pool2d.
    """
    return _max_pool(
        "max_pool2d", 2, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices
    )


@direct(kernels.max_pool_of(3), gives=tuple)
@whole
def max_pool3d(
    input: Any, kernel_size: Ints, stride: Ints | None = None, padding: Ints = 0,
    dilation: Ints = 1, ceil_mode: bool = False, return_indices: bool = False,
) -> Any:  # fmt: skip
    """Take the maximum of each window of a volume.

    Args: input: shape (N, C, D, H, W) or (C, D, H, W). return_indices: places in the flat volume.
    The rest: as in `max_pool1d`.
    Returns: shape (N, C, *T) or (C, *T); with return_indices a pair of that.
    Raises: ShapeError, ArgumentError: as `max_pool1d`.
    Example:
        >>> import funct.array as xp
        >>> from funct.nn import functional as F
        >>> F.max_pool3d(xp.reshape(xp.arange(8.0), (1, 1, 2, 2, 2)), 2).tolist()
        [[[[[7.0]]]]]

    Source: torch.nn.functional.max_pool3d.
    """
    return _max_pool(
        "max_pool3d", 3, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices
    )


def max_unpool1d(
    input: Any, indices: Any, kernel_size: Ints, stride: Ints | None = None, padding: Ints = 0,
    output_size: Sequence[int] | None = None,
) -> Any:  # fmt: skip
    """Put maxima back to where `max_pool1d` found them, among zeros.

    Args: input: shape (N, C, T) or (C, T). indices: integers of that shape, from `max_pool1d`.
    kernel_size, stride, padding: as there. output_size: (L,) or the whole shape, where several
    lengths have T windows; default the shortest, (T - 1) stride - 2 padding + kernel_size.
    Returns: shape (N, C, L) or (C, L).
    Raises: ShapeError: when shapes do not fit. ArgumentError: when output_size is more than a
    stride away from the default. IndexOutOfBoundsError: when a place is outside of the result.
    Notes: maxima that have one place are equal, as pooling gives them; others would be averaged.
    Example:
        >>> import funct.array as xp
        >>> from funct.nn import functional as F
        >>> F.max_unpool1d(xp.asarray([[5.0, 3.0]]), xp.asarray([[1, 3]]), 2).tolist()
        [[0.0, 5.0, 0.0, 3.0]]

    Source: torch.nn.functional.max_unpool1d.
    """
    return _max_unpool("max_unpool1d", 1, input, indices, kernel_size, stride, padding, output_size)


def max_unpool2d(
    input: Any, indices: Any, kernel_size: Ints, stride: Ints | None = None, padding: Ints = 0,
    output_size: Sequence[int] | None = None,
) -> Any:  # fmt: skip
    """Put maxima back to where `max_pool2d` found them, among zeros.

    Args, Raises, Notes: as `max_unpool1d`.
    Returns: shape (N, C, H, W) or (C, H, W).
    Example:
        >>> import funct.array as xp
        >>> from funct.nn import functional as F
        >>> x = xp.reshape(xp.asarray([1.0, 2.0, 4.0, 3.0]), (1, 1, 2, 2))
        >>> y, places = F.max_pool2d(x, 2, return_indices=True)
        >>> F.max_unpool2d(y, places, 2).tolist()
        [[[[0.0, 0.0], [4.0, 0.0]]]]

    Source: torch.nn.functional.max_unpool2d.
    """
    return _max_unpool("max_unpool2d", 2, input, indices, kernel_size, stride, padding, output_size)


def max_unpool3d(
    input: Any, indices: Any, kernel_size: Ints, stride: Ints | None = None, padding: Ints = 0,
    output_size: Sequence[int] | None = None,
) -> Any:  # fmt: skip
    """Put maxima back to where `max_pool3d` found them, among zeros.

    Args, Raises, Notes: as `max_unpool1d`.
    Returns: shape (N, C, D, H, W) or (C, D, H, W).
    Example:
        >>> import funct.array as xp
        >>> from funct.nn import functional as F
        >>> x = xp.reshape(xp.arange(8.0), (1, 1, 2, 2, 2))
        >>> y, places = F.max_pool3d(x, 2, return_indices=True)
        >>> xp.ravel(F.max_unpool3d(y, places, 2)).tolist()
        [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 7.0]

    Source: torch.nn.functional.max_unpool3d.
    """
    return _max_unpool("max_unpool3d", 3, input, indices, kernel_size, stride, padding, output_size)


def _max_pool(
    name: str, rank: int, x: Any, kernel_size: Ints, stride: Ints | None, padding: Ints,
    dilation: Ints, ceil_mode: bool, return_indices: bool,
) -> Any:  # fmt: skip
    x, added, window, strides, pads, dilations, extra = pooled_windows(
        name, x, rank, kernel_size, stride, padding, dilation, ceil_mode
    )
    pairs = tuple([(p, p + more) for p, more in zip(pads, extra, strict=True)])
    y = unbatched(ops.max_pool(x, window, strides, pairs, dilations), added)
    if not return_indices:
        return y
    at = ops.max_pool_index(x, window, strides, pairs, dilations)
    return y, unbatched(at, added)


def _max_unpool(
    name: str, rank: int, x: Any, indices: Any, kernel_size: Ints, stride: Ints | None,
    padding: Ints, output_size: Sequence[int] | None,
) -> Any:  # fmt: skip
    if indices.shape != x.shape:
        raise ShapeError(f"{name}: indices must have input's shape {x.shape}, got {indices.shape}")
    x, added = batched(name, x, rank)
    window = per_axis(name, "kernel_size", kernel_size, rank)
    strides = window if not stride else per_axis(name, "stride", stride, rank)
    pads = per_axis(name, "padding", padding, rank, 0)
    each = zip(x.shape[2:], window, strides, pads, strict=True)
    default = tuple([(t - 1) * s - 2 * p + k for t, k, s, p in each])
    size = default if output_size is None else tuple(output_size)[-rank:]
    if len(size) != rank or any(
        not d - s < n < d + s for n, d, s in zip(size, default, strides, strict=True)
    ):
        raise ArgumentError(
            f"{name}: output_size must be within a stride {strides} of {default}, got {output_size}"
        )
    area, joined = math.prod(size), (*x.shape[:2], math.prod(x.shape[2:]))
    at, x = xp.reshape(indices, joined), xp.reshape(x, joined)
    if at.__class__ is Array and type(area) is int and are_distinct(at.data, area):
        y = ops.put_along_axis(x, at, 2, area)
        return unbatched(xp.reshape(y, (*y.shape[:2], *size)), added)
    at = ops.where(ops.less(at, 0), area, at)  # else it would count from the end
    y = ops.put_along_axis(x, at, 2, area)
    hits = ops.put_along_axis(xp.ones_like(x), at, 2, area)
    y = y / ops.maximum(hits, 1.0)
    return unbatched(xp.reshape(y, (*x.shape[:2], *size)), added)
