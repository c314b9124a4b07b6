"""Weighted sums of elements of images at places that are data, and what comes back from them.

x (images, channels, size), y (images, channels, count): weights (images, taps, count) times what
stands at places (images, taps, count); a place below 0 is none, and what stands there is 0. On the
ways back four channels are taken together. groups: of these in an image. Of images whose channels
are last, x (images, size, channels) and y (images, count, channels), whole pixels are read; other
images are turned first where they have many taps: a gather takes as long as many loads.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from funct.kernels.cpu.loops import parallel
from funct.kernels.cpu.vectors import gathered, loaded, room, spread, stored
from funct.kernels.cpu.vectors import picked as shuffled

__all__ = [
    "CHANNELS", "LANES", "picked", "picked_back", "picked_back_last", "picked_last",
    "picked_turned", "turned", "weights_back",
]  # fmt: skip

LANES = 16
CHANNELS = 4


@parallel
def picked(
    x: Any, places: Any, weights: Any, y: Any, channels: int, size: int, taps: int, count: int,
    some: int, planes: int, task: int,
) -> None:  # fmt: skip
    """A task makes `some` of the planes of all images, each vector of sums by gathers."""
    whole = count & -LANES
    for r in range(task * some, min((task + 1) * some, planes)):
        image, _ = _parted(r, channels)
        for width, first, end in ((LANES, 0, whole), (1, whole, count)):
            for t in range(first, end, width):
                total: Any = spread(x.dtype.type(0), width)
                at = image * taps * count + t
                for _ in range(taps):
                    weight = loaded(weights, at, width)
                    total = total + _pixels(x, r * size, loaded(places, at, width)) * weight
                    at = at + count
                stored(y, r * count + t, total)


@parallel
def picked_last(
    x: Any, places: Any, weights: Any, y: Any, channels: int, size: int, taps: int, count: int,
    some: int, pixels: int, task: int,
) -> None:  # fmt: skip
    """The same where channels are last, and LANES or more: a task makes `some` of all pixels."""
    for r in range(task * some, min((task + 1) * some, pixels)):
        image, t = _parted(r, count)
        for q in range(0, channels, LANES):
            c = min(q, channels - LANES)
            zero: Any = spread(x.dtype.type(0), LANES)
            total: Any = zero
            at = image * taps * count + t
            for _ in range(taps):
                place, weight = places[at].astype(np.int64), spread(weights[at], LANES)
                at = at + count
                if place >= 0:
                    pixel = (image * size + place) * channels
                    total = total + loaded(x, pixel + c, LANES) * weight
                else:
                    total = total + zero * weight
            stored(y, r * channels + c, total)


@parallel
def turned(
    x: Any, y: Any, channels: int, size: int, blocks: int, parts: int, some: int, wide: bool,
    task: int,
) -> None:  # fmt: skip
    """y (images, blocks, size, W) from x: W channels beside each other, LANES where wide, else
    half as many; the last block ends with the channels. A task makes `some` pixels of a block, of
    which there are W or more.
    """
    width = LANES if wide else LANES // 2
    block, part = _parted(task, parts)
    image, number = _parted(block, blocks)
    plane = image * channels + min(number * width, channels - width)
    for k in range(part * some, min((part + 1) * some, size), width):
        first = min(k, size - width)
        pixels = _columns(x, plane * size + first, size, width)
        for c in tuple(range(width)):
            stored(y, (block * size + first + c) * width, pixels[c])


@parallel
def picked_turned(
    x: Any, places: Any, weights: Any, y: Any, channels: int, size: int, taps: int, count: int,
    blocks: int, parts: int, some: int, wide: bool, task: int,
) -> None:  # fmt: skip
    """`picked` from what `turned` made, with its tasks: whole pixels are read, and the sums of as
    many turned back.
    """
    width = LANES if wide else LANES // 2
    sums = room(y.dtype, width * width)
    block, part = _parted(task, parts)
    image, number = _parted(block, blocks)
    plane = image * channels + min(number * width, channels - width)
    zero: Any = spread(x.dtype.type(0), width)
    for k in range(part * some, min((part + 1) * some, count), width):
        first = min(k, count - width)
        for p in range(width):
            total: Any = zero
            at = image * taps * count + first + p
            for _ in range(taps):
                place, weight = places[at].astype(np.int64), spread(weights[at], width)
                at = at + count
                if place >= 0:
                    total = total + loaded(x, (block * size + place) * width, width) * weight
                else:
                    total = total + zero * weight
            stored(sums, p * width, total)
        lines = _columns(sums, 0, width, width)
        for c in tuple(range(width)):
            stored(y, (plane + c) * count + first, lines[c])


def _columns(x: Any, at: Any, step: Any, width: int) -> Any:
    """The columns of as many rows of x, each `step` behind the other, as they have elements, a
    power of two. Where the first half of rows is woven with the second, a bit of an element's
    column becomes one of its row.
    """
    rows = _rows(x, at, step, width, width)
    for _ in tuple(range(width.bit_length() - 1)):
        rows = _woven(rows, 0, width // 2, width)
    return rows


def _rows(x: Any, at: Any, step: Any, width: int, many: int) -> Any:
    if many == 1:
        return (loaded(x, at, width),)
    half = many // 2
    return _rows(x, at, step, width, half) + _rows(x, at + half * step, step, width, half)


def _woven(rows: Any, first: int, many: int, width: int) -> Any:
    """So many rows, each woven with the one half of all behind it."""
    if many == 1:
        a, b = rows[first], rows[first + width // 2]
        return shuffled(a, b, _in_turn(0, width)), shuffled(a, b, _in_turn(width // 2, width))
    half = many // 2
    return _woven(rows, first, half, width) + _woven(rows, first + half, half, width)


def _in_turn(first: int, width: int) -> tuple[int, ...]:
    """The places of half of a row's elements, from one on, in turn with those of another row."""
    return tuple([first + (k >> 1) + (k & 1) * width for k in range(width)])


@parallel
def picked_back_last(
    g: Any, places: Any, weights: Any, y: Any, channels: int, size: int, taps: int, count: int,
    blocks: int, task: int,
) -> None:  # fmt: skip
    """`picked_back` where channels are last. A task makes one of the blocks of LANES channels of an
    image; the last, which ends with them, has the more of them to itself.
    """
    image, block = _parted(task, blocks)
    first = block * LANES
    last = channels if block == blocks - 1 else first + LANES
    for k in range(size):
        for c in range(first, last):
            y[(image * size + k) * channels + c] = 0
    for t in range(count):
        at, source = image * taps * count + t, (image * count + t) * channels
        for _ in range(taps):
            place, weight = places[at].astype(np.int64), weights[at]
            at = at + count
            if place >= 0:
                to, many = (image * size + place) * channels, spread(weight, LANES)
                v = loaded(y, to + first, LANES) + many * loaded(g, source + first, LANES)
                stored(y, to + first, v)
                for c in range(first + LANES, last):
                    y[to + c] = y[to + c] + weight * g[source + c]


def _pixels(x: Any, plane: Any, places: Any) -> Any:
    """What stands at places of a plane."""
    inside = places >= 0
    return np.where(inside, gathered(x, np.where(inside, places, 0), plane), 0)


def _parted(r: Any, groups: Any) -> Any:
    """Of which image something is, and which of it."""
    image = np.int64(np.uint64(r) // np.uint64(groups))
    return image, r - image * groups


def _planes(image: Any, group: Any, channels: Any, size: Any) -> Any:
    """Where channels of a group begin; the last one again for those that there are not."""
    first, last, own = group * CHANNELS, channels - 1, image * channels
    return (
        (own + first) * size, (own + min(first + 1, last)) * size,
        (own + min(first + 2, last)) * size, (own + min(first + 3, last)) * size,
    )  # fmt: skip


@parallel
def picked_back(
    g: Any, places: Any, weights: Any, y: Any, channels: int, size: int, taps: int, count: int,
    groups: int, some: int, all_groups: int, task: int,
) -> None:  # fmt: skip
    """y like x: what it gets where g came to the sums."""
    for r in range(task * some, min((task + 1) * some, all_groups)):
        image, group = _parted(r, groups)
        p0, p1, p2, p3 = _planes(image, group, channels, size)
        q0, q1, q2, q3 = _planes(image, group, channels, count)
        for k in range(p0, p3 + size):
            y[k] = 0
        for t in range(count):
            a, b, c, d = g[q0 + t], g[q1 + t], g[q2 + t], g[q3 + t]
            at = image * taps * count + t
            for _ in range(taps):
                place, weight = places[at].astype(np.int64), weights[at]
                at = at + count
                if place >= 0:
                    y[p0 + place] = y[p0 + place] + weight * a
                    if p1 > p0:
                        y[p1 + place] = y[p1 + place] + weight * b
                    if p2 > p1:
                        y[p2 + place] = y[p2 + place] + weight * c
                    if p3 > p2:
                        y[p3 + place] = y[p3 + place] + weight * d


@parallel
def weights_back(
    x: Any, places: Any, g: Any, y: Any, channels: int, size: int, taps: int, count: int,
    parts: int, some: int, task: int,
) -> None:  # fmt: skip
    """y like the weights. A task makes one of so many parts of an image, `some` places of each
    tap.
    """
    image, part = _parted(task, parts)
    start, own = part * some, image * channels
    last, final = min(start + some, count), own + channels
    whole = start + ((last - start) & -LANES)
    for c in range(own, final, CHANNELS):  # whose planes stay in caches
        for width, first, end in ((LANES, start, whole), (1, whole, last)):
            for k in range(taps):
                for t in range(first, end, width):
                    at = (image * taps + k) * count + t
                    place, zero = loaded(places, at, width), spread(x.dtype.type(0), width)
                    total = np.where(c == own, zero, loaded(y, at, width))
                    for n in range(c, min(c + CHANNELS, final)):
                        pulled = _pixels(x, n * size, place) * loaded(g, n * count + t, width)
                        total = total + pulled
                    stored(y, at, total)
