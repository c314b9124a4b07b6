"""Images read at the points of a grid, where few channels share what is found of a point.

x (images, channels, h, w), grid (images, count, 2) with x and y from -1 to 1 over the image, y
(images, channels, count). For a vector of points the taps are found once, each a place, -1 outside
of the image, and a weight; then each channel is a sum of gathers. The arithmetic is that of
`funct.nn.functional.sampling`, step by step.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from funct.kernels.cpu.loops import parallel
from funct.kernels.cpu.vectors import gathered, loaded, picked, room, spread, stored

__all__ = ["grid_sums"]

_LANES = 16
_CUBIC = -0.75
_EVEN, _ODD = (tuple([2 * k + odd for k in range(_LANES)]) for odd in (0, 1))
_TAPS = {"nearest": 1, "bilinear": 2, "bicubic": 4}  # of an axis


@parallel
def grid_sums(
    x: Any, grid: Any, y: Any, channels: int, h: int, w: int, count: int, mode: str, padding: str,
    corners: bool, parts: int, some: int, task: int,
) -> None:  # fmt: skip
    """A task makes one of so many parts of an image, `some` points."""
    image: Any = np.int64(np.uint64(task) // np.uint64(parts))
    start = (task - image * parts) * some
    last: Any = min(start + some, count)
    whole = start + ((last - start) & -_LANES)
    taps = _TAPS[mode]
    places, weights = room(np.int32, taps * taps * _LANES), room(x.dtype, taps * taps * _LANES)
    for width, first, end in ((_LANES, start, whole), (1, whole, last)):
        for t in range(first, end, width):
            at = (image * count + t) * 2
            if width == 1:
                across, down = loaded(grid, at, 1), loaded(grid, at + 1, 1)
            else:
                a, b = loaded(grid, at, width), loaded(grid, at + width, width)
                across, down = picked(a, b, _EVEN), picked(a, b, _ODD)
            rows = _taps(_scaled(down, h, padding, mode, corners), h, padding, mode, taps)
            columns = _taps(_scaled(across, w, padding, mode, corners), w, padding, mode, taps)
            for k in tuple(range(taps)):
                row, row_weight = rows[k]
                for j in tuple(range(taps)):
                    column, weight = columns[j]
                    inside = (row >= 0) & (column >= 0)
                    place = np.where(inside, row * np.int32(w) + column, np.int32(-1))
                    stored(places, (k * taps + j) * width, place)
                    stored(weights, (k * taps + j) * width, row_weight * weight)
            for c in range(channels):
                plane = (image * channels + c) * h * w
                total: Any = spread(x.dtype.type(0), width)
                for k in tuple(range(taps * taps)):
                    place = loaded(places, k * width, width)
                    inside = place >= 0
                    found = gathered(x, np.where(inside, place, np.int32(0)), plane)
                    term = np.where(inside, found, x.dtype.type(0))
                    if mode != "nearest":
                        term = term * loaded(weights, k * width, width)
                    total = term if k == 0 else total + term
                stored(y, (image * channels + c) * count + t, total)


def _scaled(at: Any, n: Any, padding: str, mode: str, corners: bool) -> Any:
    """Where points are among n elements, moved inside for some paddings."""
    at = np.where(at == at, at, -1.0)
    length = np.int64(n).astype(at.dtype)
    places = (at + 1.0) * ((length - 1.0) / 2.0) if corners else ((at + 1.0) * length - 1.0) / 2.0
    return places if mode == "bicubic" else _moved(places, n, padding)


def _moved(at: Any, n: Any, padding: str) -> Any:
    if padding == "zeros":
        return at
    last = np.int64(n - 1).astype(at.dtype)
    above = np.where(at <= 0.0, 0.0, at)
    return np.where(at >= last, last, above)


def _taps(at: Any, n: Any, padding: str, mode: str, taps: int) -> Any:
    """For each tap of an axis its place, -1 outside, and its weight."""
    if mode == "nearest":
        near = np.rint(at)
        return ((_place(near, n), near),)  # whose weight is not read
    low = np.floor(at)
    part = at - low
    if mode == "bilinear":
        return (_place(low, n), 1.0 - part), (_place(low + 1.0, n), part)
    return (
        (_place(_moved(low - 1.0, n, padding), n), _far(part + 1.0)),
        (_place(_moved(low, n, padding), n), _near(part)),
        (_place(_moved(low + 1.0, n, padding), n), _near(1.0 - part)),
        (_place(_moved(low + 2.0, n, padding), n), _far(2.0 - part)),
    )


def _place(at: Any, n: Any) -> Any:
    inside = (at >= 0.0) & (at < np.int64(n).astype(at.dtype))
    return np.where(inside, np.where(inside, at, 0.0).astype(np.int32), np.int32(-1))


def _near(d: Any) -> Any:
    return ((_CUBIC + 2.0) * d - (_CUBIC + 3.0)) * d * d + 1.0


def _far(d: Any) -> Any:
    return ((_CUBIC * d - 5.0 * _CUBIC) * d + 8.0 * _CUBIC) * d - 4.0 * _CUBIC
