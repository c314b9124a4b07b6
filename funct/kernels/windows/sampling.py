"""Elements of images at places that are data, where there is machine code: `cpu` says of what."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from funct.kernels.cpu.loops import compiles
from funct.kernels.cpu.scratch import fresh
from funct.kernels.cpu.windows.grids import grid_sums
from funct.kernels.cpu.windows.sampling import (
    CHANNELS,
    LANES,
    picked,
    picked_back,
    picked_back_last,
    picked_last,
    picked_turned,
    turned,
    weights_back,
)
from funct.kernels.windows.places import share

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "LANES", "grid_sampled", "pay", "sampled", "sampled_back", "sampled_back_last", "sampled_last",
    "serves",
]  # fmt: skip

_LEAST = 256  # elements from which on the composition is compiled, too
_MODES, _PADDINGS = frozenset(("bilinear", "nearest", "bicubic")), frozenset(("zeros", "border"))
_MANY = 1 << 12  # elements of a result from which on kernels cost less
_PART = 512  # places of a task
_TURNED = 1 << 15  # elements of a task that reads whole pixels


def pay(images: tuple[int, ...], grid: tuple[int, ...]) -> bool:
    """Whether there are so many elements of a result, by shapes that may not fit."""
    return prod(images[:2]) * prod(grid[1:-1]) >= _MANY


def grid_sampled(
    x: NDArray[Any], grid: NDArray[Any], mode: Any = "bilinear", padding_mode: Any = "zeros",
    align_corners: Any = None,
) -> NDArray[Any] | None:  # fmt: skip
    """Images of few channels at the points of a grid; None for all else."""
    d = x.dtype
    if d.char not in "fd" or d is not grid.dtype or x.ndim != 4 or grid.ndim != 4:
        return None
    (images, channels, h, w), (rows, columns) = x.shape, grid.shape[1:3]
    if channels >= LANES or x.size < _LEAST or mode not in _MODES or padding_mode not in _PADDINGS:
        return None
    if grid.shape != (images, rows, columns, 2) or not grid.size or h * w >= 1 << 31:
        return None
    if not (x.flags.c_contiguous and grid.flags.c_contiguous) or not compiles():
        return None
    y = fresh((images, channels, rows, columns), d)
    count = rows * columns
    parts = -(-count // _PART)
    told = channels, h, w, count, mode, padding_mode, bool(align_corners), parts, _PART
    grid_sums(x, grid, y, *told, images * parts)
    return y


def serves(x: NDArray[Any], grid: NDArray[Any]) -> bool:
    """Whether there are kernels for such images, and places (N, *T, rank) in them."""
    if x.dtype.char not in "fd" or grid.dtype != x.dtype or len(grid) != len(x) or not x.size:
        return False
    return prod(x.shape[2:]) < 1 << 31 and grid.size > 0 and compiles()


def sampled(x: NDArray[Any], places: NDArray[np.int32], weights: NDArray[Any]) -> NDArray[Any]:
    """The sums (N, C, T) of elements of x (N, C, S) at places (N, K, T), times weights like them;
    0 is at places below 0.
    """
    (images, channels, size), (taps, count) = x.shape, places.shape[1:]
    y = fresh((images, channels, count), x.dtype)
    width = LANES if channels >= LANES and x.itemsize == 4 else LANES // 2
    gains = 8 * taps * count > 3 * x.itemsize * (size + count)  # more than to turn images costs
    if gains and min(channels, size, count) >= width:
        _by_pixels(x, places, weights, y, width)
        return y
    planes = images * channels
    some = share(taps * count, planes)
    tasks = -(-planes // some)
    picked(x, places, weights, y, channels, size, taps, count, some, planes, tasks)
    return y


def _by_pixels(
    x: NDArray[Any], places: NDArray[np.int32], weights: NDArray[Any], y: NDArray[Any], width: int
) -> None:
    """Write the sums into y from so many channels of each pixel beside each other."""
    (images, channels, size), (taps, count) = x.shape, places.shape[1:]
    blocks = -(-channels // width)
    pixels = fresh((images, blocks, size, width), x.dtype)

    def dealt(each: int, pixels: int) -> tuple[int, int, int, bool, int]:
        some = max(1, _TURNED // (each * width * width)) * width
        parts = -(-pixels // some)
        return blocks, parts, some, width == LANES, images * blocks * parts

    turned(x, pixels, channels, size, *dealt(1, size))
    picked_turned(pixels, places, weights, y, channels, size, taps, count, *dealt(taps, count))


def _dealt(images: int, channels: int, each: int) -> tuple[int, int, int, int]:
    """Groups of channels in an image, how many make a task, how many there are, and the tasks."""
    groups = -(-channels // CHANNELS)
    some = share(each * CHANNELS, images * groups)
    return groups, some, images * groups, -(-images * groups // some)


def sampled_back(
    g: NDArray[Any], x: NDArray[Any], places: NDArray[np.int32], weights: NDArray[Any],
    of: tuple[bool, bool],
) -> tuple[NDArray[Any] | None, NDArray[Any] | None]:  # fmt: skip
    """What x and the weights get where g came to the sums, where that is asked."""
    (images, channels, size), (taps, count) = x.shape, places.shape[1:]
    sizes, dealt = (channels, size, taps, count), _dealt(images, channels, taps * count)
    to_x = to_weights = None
    if of[0]:
        to_x = fresh(x.shape, x.dtype)
        picked_back(g, places, weights, to_x, *sizes, *dealt)
    if of[1]:
        to_weights = fresh(weights.shape, x.dtype)
        parts = -(-count // _PART)
        weights_back(x, places, g, to_weights, *sizes, parts, _PART, images * parts)
    return to_x, to_weights


def sampled_last(
    x: NDArray[Any], places: NDArray[np.int32], weights: NDArray[Any]
) -> NDArray[Any]:
    """`sampled` of x (N, S, C), C at least LANES: (N, T, C)."""
    (images, size, channels), (taps, count) = x.shape, places.shape[1:]
    y = fresh((images, count, channels), x.dtype)
    pixels = images * count
    some = share(taps * channels, pixels)
    told = channels, size, taps, count, some, pixels, -(-pixels // some)
    picked_last(x, places, weights, y, *told)
    return y


def sampled_back_last(
    g: NDArray[Any], x: NDArray[Any], places: NDArray[np.int32], weights: NDArray[Any],
    of: tuple[bool, bool],
) -> tuple[NDArray[Any] | None, NDArray[Any] | None]:  # fmt: skip
    """`sampled_back` of g and x like those of `sampled_last`."""
    (images, size, channels), (taps, count) = x.shape, places.shape[1:]
    to_x = to_weights = None
    if of[0]:
        to_x = fresh(x.shape, x.dtype)
        blocks = channels // LANES
        told = channels, size, taps, count, blocks, images * blocks
        picked_back_last(np.ascontiguousarray(g), places, weights, to_x, *told)
    if of[1]:
        lines, planes = (np.ascontiguousarray(v.transpose(0, 2, 1)) for v in (g, x))
        to_weights = sampled_back(lines, planes, places, weights, (False, True))[1]
    return to_x, to_weights
