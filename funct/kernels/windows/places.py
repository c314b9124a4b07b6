"""What pooling kernels are told: where the taps of windows lie, and how work is dealt out.

Pure functions of shapes, kept.
"""

from __future__ import annotations

import functools
from math import prod
from typing import Any

import numpy as np

from funct.kernels.windows.views import Padding, Sizes, known_size

__all__ = [
    "axes_of", "ends", "in_parts", "meeting", "met", "order", "row_taps", "share",
    "taps_in_order",
]  # fmt: skip

_TASK = 1 << 15  # elements of a task
_TASKS = 64  # at most


def share(each: int, count: int) -> int:
    """How many of `count` things with so many elements each make a task."""
    return max(1, min(count, _TASK // max(1, each)), -(-count // _TASKS))


def meeting(
    tap: int, size: int, count: int, stride: int, dilation: int, low: int
) -> tuple[slice, slice]:
    """The outputs whose tap number `tap` lies inside the axis, and the elements it meets there."""
    shift = tap * dilation - low  # output t meets element t * stride + shift
    first = max(0, -(shift // stride))
    last = max(first, min(count, (size - 1 - shift) // stride + 1))
    start = first * stride + shift
    return slice(first, last), slice(start, start + (last - first) * stride, stride)


@functools.lru_cache(256)
def axes_of(size: Sizes, window: Sizes, stride: Sizes, padding: Padding, dilation: Sizes) -> Any:
    """The number of windows along each axis, and what kernels are told of three axes."""
    count = known_size(size, window, stride, padding, dilation)
    axes = np.ones((3, 8), np.int64)
    axes[:, 5:7] = 0  # axes that are not there begin at 0
    for row, n, t, k, s, d, (low, high) in zip(
        axes[3 - len(size) :], size, count, window, stride, dilation, padding
    ):
        row[:] = n, t, k, s, d, -low, max(0, -low), n + min(0, high)
    axes.flags.writeable = False
    return count, axes


@functools.lru_cache(256)
def order(
    size: Sizes, window: Sizes, stride: Sizes, padding: Padding, dilation: Sizes, inner: int
) -> tuple[Any, Any]:
    """Where the taps of three axes begin behind the corner of a window, in the order in which
    pooling folds those that meet an element, and for each window along the axes which of them these
    are: the first, and the end. An element of the images has `inner` parts.
    """
    count = known_size(size, window, stride, padding, dilation)
    inside = met(size, window, stride, padding, dilation)
    apart = 3 - len(size)
    taps = [0]  # of axes that are not there
    ranges, at = [inside[:apart]], apart
    for axis, (n, t, k, s, d, (low, _)) in enumerate(
        zip(size, count, window, stride, dilation, padding)
    ):
        pitch = d * prod(size[axis + 1 :]) * inner
        kinds, which = np.unique(inside[at : at + t], axis=0, return_inverse=True)
        found = []
        for first, end in kinds.tolist():
            begin = len(taps)
            taps += [u * pitch for u in taps_in_order(n, t, k, s, d, low) if first <= u < end]
            found.append((begin, len(taps)))
        ranges.append(np.asarray(found, np.int64)[which.reshape(-1)])
        at += t
    return np.asarray(taps, np.int64), np.concatenate(ranges)


def taps_in_order(
    size: int, count: int, window: int, stride: int, dilation: int, low: int
) -> list[int]:
    """The taps of an axis, the first one that meets an element for each window before the rest."""
    taps = range(window)
    given = size, count, stride, dilation, low
    whole = [u for u in taps if meeting(u, *given)[0] == slice(0, count)][:1]
    return [*whole, *[u for u in taps if u not in whole]]


@functools.lru_cache(256)
def row_taps(size: int, count: int, window: int, stride: int, dilation: int, low: int) -> Any:
    """Where all taps of the last axis begin behind the first one, in the order of `order`."""
    taps = np.asarray(taps_in_order(size, count, window, stride, dilation, low), np.int64)
    return taps * dilation


@functools.lru_cache(256)
def met(size: Sizes, window: Sizes, stride: Sizes, padding: Padding, dilation: Sizes) -> Any:
    """For each window along three axes the first tap that meets an element, and the end of them."""
    count = known_size(size, window, stride, padding, dilation)
    found = [np.asarray([[0, 1]] * (3 - len(size)), np.int64).reshape(-1, 2)]
    for n, t, k, s, d, (low, _) in zip(size, count, window, stride, dilation, padding):
        start = np.arange(t) * s - low
        first, end = -(start // d), -((start - n) // d)  # of taps that begin at 0 or n, or behind
        found.append(np.clip(np.stack((first, end), 1), 0, k))
    return np.concatenate(found)


def in_parts(count: int, window: int, stride: int, dilation: int) -> tuple[Any, int]:
    """For a row that is parted by the stride, as neighbouring windows meet it: where each tap of
    the windows begins, and the length of a part.
    """
    phase = -(-((count - 1) * stride + (window - 1) * dilation + 1) // stride)
    offsets = np.arange(window) * dilation
    return offsets % stride * phase + offsets // stride, phase


@functools.lru_cache(256)
def ends(shape: Sizes, counts: Sizes, window: Sizes, stride: Sizes, padding: Padding) -> Any:
    """For each place of three axes the first of the windows that it is in, and the end of them."""
    found = [np.asarray([[0, 1]] * (3 - len(shape)), np.int64).reshape(-1, 2)]
    for n, t, k, s, (low, _) in zip(shape, counts, window, stride, padding, strict=True):
        at = np.arange(n) + low
        first, end = -((k - 1 - at) // s), at // s + 1
        found.append(np.clip(np.stack((first, end), 1), 0, t))
    return np.concatenate(found)
