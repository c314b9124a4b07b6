"""Weighted sums of elements of images at places that are data, and what comes back from them.

x (images, channels, size), y (images, channels, count): weights (images, taps, count) times what
stands at places (images, taps, count); a place below 0 is none, and what stands there is 0. Four
channels are taken together, so a place is looked up once for them. groups: of these in an image.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from funct.kernels.cpu.loops import parallel

__all__ = ["CHANNELS", "picked", "picked_back", "weights_back"]

CHANNELS = 4


@parallel
def picked(
    x: Any, places: Any, weights: Any, y: Any, channels: int, size: int, taps: int, count: int,
    groups: int, some: int, all_groups: int, task: int,
) -> None:  # fmt: skip
    """A task makes `some` of the groups of all images."""
    zero = x.dtype.type(0)
    for r in range(task * some, min((task + 1) * some, all_groups)):
        image, group = _parted(r, groups)
        p0, p1, p2, p3 = _planes(image, group, channels, size)
        q0, q1, q2, q3 = _planes(image, group, channels, count)
        for t in range(count):
            a, b, c, d = zero, zero, zero, zero
            at = image * taps * count + t
            for _ in range(taps):
                place, weight = places[at].astype(np.int64), weights[at]
                at = at + count
                if place >= 0:
                    a = a + x[p0 + place] * weight
                    b = b + x[p1 + place] * weight
                    c = c + x[p2 + place] * weight
                    d = d + x[p3 + place] * weight
                else:  # the weight may be no number
                    none = weight * 0
                    a, b, c, d = a + none, b + none, c + none, d + none
            y[q0 + t] = a
            y[q1 + t] = b
            y[q2 + t] = c
            y[q3 + t] = d


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
    groups: int, parts: int, some: int, task: int,
) -> None:  # fmt: skip
    """y like the weights. A task makes one of so many parts of an image, `some` places of each
    tap.
    """
    image, part = _parted(task, parts)
    start, own = part * some, image * taps * count
    end = min(start + some, count)
    for k in range(taps):
        for t in range(start, end):
            y[own + k * count + t] = 0
    for group in range(groups):
        p0, p1, p2, p3 = _planes(image, group, channels, size)
        q0, q1, q2, q3 = _planes(image, group, channels, count)
        for t in range(start, end):
            a, b, c, d = g[q0 + t], g[q1 + t], g[q2 + t], g[q3 + t]
            at = own + t
            for _ in range(taps):
                place, total = places[at].astype(np.int64), a * 0
                if place >= 0:
                    total = x[p0 + place] * a
                    if p1 > p0:
                        total = total + x[p1 + place] * b
                    if p2 > p1:
                        total = total + x[p2 + place] * c
                    if p3 > p2:
                        total = total + x[p3 + place] * d
                y[at] = y[at] + total
                at = at + count
