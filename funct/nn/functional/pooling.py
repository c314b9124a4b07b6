"""Pooling over one and two spatial axes, with torch's rule for ceil_mode."""

from __future__ import annotations

import math
from typing import Any

from funct import ops
from funct.errors import ArgumentError
from funct.nn.functional.arguments import Ints, batched, per_axis, unbatched

__all__ = ["avg_pool1d", "avg_pool2d", "max_pool1d", "max_pool2d"]

Sizes = tuple[int, ...]
Pairs = tuple[tuple[int, int], ...]


def max_pool1d(
    input: Any, kernel_size: Ints, stride: Ints | None = None, padding: Ints = 0,
    dilation: Ints = 1, ceil_mode: bool = False,
) -> Any:  # fmt: skip
    """Take the maximum of each window of a signal.

    Args: input: shape (N, C, L) or (C, L). stride: None is kernel_size. padding: at most half a
    kernel; never wins. ceil_mode: also the last window that begins in input or left padding.
    Returns: shape (N, C, T) or (C, T).
    Raises: ShapeError: when the rank does not fit. ArgumentError: when a parameter is out of range.
    Notes: the derivative goes to the first maximum. return_indices has no counterpart.
    Source: torch.nn.functional.max_pool1d.
    """
    return _max_pool("max_pool1d", 1, input, kernel_size, stride, padding, dilation, ceil_mode)


def max_pool2d(
    input: Any, kernel_size: Ints, stride: Ints | None = None, padding: Ints = 0,
    dilation: Ints = 1, ceil_mode: bool = False,
) -> Any:  # fmt: skip
    """Take the maximum of each window of an image.

    Args: input: shape (N, C, H, W) or (C, H, W). The rest: as in `max_pool1d`.
    Returns: shape (N, C, *T) or (C, *T).
    Raises: ShapeError, ArgumentError: as `max_pool1d`.
    Source: torch.nn.functional.max_pool2d.
    Example:
        >>> import funct.array as xp
        >>> from funct.nn import functional as F
        >>> F.max_pool2d(xp.ones((1, 1, 5, 5)), 2, ceil_mode=True).shape
        (1, 1, 3, 3)
    """
    return _max_pool("max_pool2d", 2, input, kernel_size, stride, padding, dilation, ceil_mode)


def avg_pool1d(
    input: Any, kernel_size: Ints, stride: Ints | None = None, padding: Ints = 0,
    ceil_mode: bool = False, count_include_pad: bool = True,
) -> Any:  # fmt: skip
    """Take the mean of each window of a signal.

    Args: input: shape (N, C, L) or (C, L). stride: None is kernel_size. padding: zeros, at most
    half a kernel. ceil_mode: as in `max_pool1d`. count_include_pad: whether padding counts in the
    divisor; what ceil_mode reaches beyond the padding never does.
    Returns: shape (N, C, T) or (C, T).
    Raises: ShapeError: when the rank does not fit. ArgumentError: when a parameter is out of range.
    Source: torch.nn.functional.avg_pool1d.
    """
    return _avg_pool(
        "avg_pool1d", 1, input, kernel_size, stride, padding, ceil_mode, count_include_pad, None
    )


def avg_pool2d(
    input: Any, kernel_size: Ints, stride: Ints | None = None, padding: Ints = 0,
    ceil_mode: bool = False, count_include_pad: bool = True, divisor_override: int | None = None,
) -> Any:  # fmt: skip
    """Take the mean of each window of an image.

    Args: input: shape (N, C, H, W) or (C, H, W). divisor_override: divides each sum instead of the
    count. The rest: as in `avg_pool1d`.
    Returns: shape (N, C, *T) or (C, *T).
    Raises: ShapeError, ArgumentError: as `avg_pool1d`.
    Source: torch.nn.functional.avg_pool2d.
    Example:
        >>> import funct.array as xp
        >>> from funct.nn import functional as F
        >>> F.avg_pool2d(xp.ones((1, 1, 2, 2)), 2, padding=1).tolist()
        [[[[0.25, 0.25], [0.25, 0.25]]]]
    """
    return _avg_pool(
        "avg_pool2d", 2, input, kernel_size, stride, padding, ceil_mode, count_include_pad,
        divisor_override,
    )  # fmt: skip


def _windows(
    name: str, x: Any, rank: int, kernel_size: Ints, stride: Ints | None, padding: Ints,
    dilation: Ints, ceil_mode: bool,
) -> tuple[Any, bool, Sizes, Sizes, Sizes, Sizes, Sizes]:  # fmt: skip
    """Batched x, whether it was unbatched, window, stride, padding, dilation, ceil-mode extra."""
    x, added = batched(name, x, rank, "L" if rank == 1 else "H, W")
    window = per_axis(name, "kernel_size", kernel_size, rank)
    empty = stride is None or stride == () or stride == []
    strides = window if empty else per_axis(name, "stride", stride, rank)  # type: ignore[arg-type]
    pads = per_axis(name, "padding", padding, rank, 0)
    dilations = per_axis(name, "dilation", dilation, rank)
    if any(p > (d * (k - 1) + 1) // 2 for p, d, k in zip(pads, dilations, window, strict=True)):
        raise ArgumentError(
            f"{name}: padding must be at most half the kernel {window}, got {padding!r}"
        )
    each = zip(x.shape[2:], window, strides, pads, dilations, strict=True)
    extra = tuple([_ceil_extra(*a) for a in each]) if ceil_mode else (0,) * rank
    return x, added, window, strides, pads, dilations, extra


def _ceil_extra(n: int, k: int, s: int, p: int, d: int) -> int:
    """High padding beyond p that lets one more window in, where torch lets it in."""
    span = d * (k - 1) + 1
    count = -(-(n + 2 * p - span) // s) + 1
    if (count - 1) * s >= n + p:  # the last window would begin in the right padding
        count -= 1
    return max((count - 1) * s + span - (n + 2 * p), 0)


def _max_pool(
    name: str, rank: int, x: Any, kernel_size: Ints, stride: Ints | None, padding: Ints,
    dilation: Ints, ceil_mode: bool,
) -> Any:  # fmt: skip
    x, added, window, strides, pads, dilations, extra = _windows(
        name, x, rank, kernel_size, stride, padding, dilation, ceil_mode
    )
    pairs = tuple([(p, p + more) for p, more in zip(pads, extra, strict=True)])
    return unbatched(ops.max_pool(x, window, strides, pairs, dilations), added)


def _avg_pool(
    name: str, rank: int, x: Any, kernel_size: Ints, stride: Ints | None, padding: Ints,
    ceil_mode: bool, count_include_pad: bool, divisor_override: int | None,
) -> Any:  # fmt: skip
    if divisor_override == 0:
        raise ArgumentError(f"{name}: divisor_override must not be 0")
    x, added, window, strides, pads, _, extra = _windows(
        name, x, rank, kernel_size, stride, padding, 1, ceil_mode
    )
    pairs: Pairs = tuple([(p, p) for p in pads])
    if divisor_override is None:
        return unbatched(
            ops.avg_pool(x, window, strides, pairs, extra, bool(count_include_pad)), added
        )
    # with zeros written out, every window counts prod(window) elements: the sums follow exactly
    whole = tuple([(p, p + more) for p, more in zip(pads, extra, strict=True)])
    none, no_extra = ((0, 0),) * rank, (0,) * rank
    mean = ops.avg_pool(ops.pad_axes(x, whole), window, strides, none, no_extra, True)
    return unbatched(mean * (math.prod(window) / divisor_override), added)
