"""Maxima and means of boxes of several sizes, which are told by their ends along each axis."""

from __future__ import annotations

from typing import Any

import numpy as np

from funct.kernels.cpu.indexing.runs import copied
from funct.kernels.cpu.loops import kernel, parallel
from funct.kernels.cpu.vectors import loaded, spread, stored, summed
from funct.kernels.cpu.windows.pooling import above

__all__ = ["distinct", "max_index_boxes", "mean_boxes", "mean_boxes_back"]

_LANES = 8


@parallel
def max_index_boxes(
    x: Any, y: Any, ends: Any, n0: int, n1: int, n2: int, t0: int, t1: int, t2: int, planes: int,
    some: int, task: int,
) -> None:  # fmt: skip
    """y (planes, t0, t1, t2): the flat place in its image of the maximum of each box, see `above`.

    x: (planes, n0, n1, n2). ends: of the boxes along each of the axes the first element and the
    end, axis by axis. No box is empty. A task takes `some` planes.
    """
    out = task * some * t0 * t1 * t2
    for p in range(task * some, min((task + 1) * some, planes)):
        image = p * n0 * n1 * n2
        for i in range(t0):
            for j in range(t0, t0 + t1):
                for k in range(t0 + t1, t0 + t1 + t2):
                    place = (ends[2 * i] * n1 + ends[2 * j]) * n2 + ends[2 * k]
                    best = x[image + place]
                    for u in range(ends[2 * i], ends[2 * i + 1]):
                        for v in range(ends[2 * j], ends[2 * j + 1]):
                            row = (u * n1 + v) * n2
                            for w in range(row + ends[2 * k], row + ends[2 * k + 1]):
                                one = x[image + w]
                                if above(one, best):
                                    best = one
                                    place = w
                    y[out] = place
                    out += 1


@parallel
def mean_boxes(
    x: Any, y: Any, ends: Any, room: Any, n0: int, n1: int, n2: int, t0: int, t1: int, t2: int,
    planes: int, some: int, task: int,
) -> None:  # fmt: skip
    """y (planes, t0, t1, t2): the mean of each box of x (planes, n0, n1, n2).

    ends, some: as above. room: of a row for each task.
    """
    out, own = task * some * t0 * t1 * t2, task * n2
    for p in range(task * some, min((task + 1) * some, planes)):
        image = p * n0 * n1 * n2
        for i in range(t0):
            for j in range(t0, t0 + t1):
                rows = (ends[2 * i + 1] - ends[2 * i]) * (ends[2 * j + 1] - ends[2 * j])
                if n0 * n1 > 1:
                    _rows_together(x, room, ends, image, own, n1, n2, i, j)
                for k in range(t0 + t1, t0 + t1 + t2):
                    at, count = ends[2 * k], ends[2 * k + 1] - ends[2 * k]
                    total = x.dtype.type(0)
                    if n0 * n1 > 1:
                        total = summed(room, own + at, count)
                    else:
                        total = summed(x, image + at, count)
                    y[out] = total / (rows * count).astype(x.dtype)
                    out += 1


def _rows_together(
    x: Any, room: Any, ends: Any, image: Any, own: Any, n1: int, n2: int, i: Any, j: Any
) -> None:
    """The sum of the rows that boxes i of the first and j of the second axis have, to the room."""
    for q in range(0, n2 & -_LANES, _LANES):
        total: Any = spread(x.dtype.type(0), _LANES)
        for u in range(ends[2 * i], ends[2 * i + 1]):
            for v in range(ends[2 * j], ends[2 * j + 1]):
                total = total + loaded(x, image + (u * n1 + v) * n2 + q, _LANES)
        stored(room, own + q, total)
    for q in range(n2 & -_LANES, n2):
        one: Any = x.dtype.type(0)
        for u in range(ends[2 * i], ends[2 * i + 1]):
            for v in range(ends[2 * j], ends[2 * j + 1]):
                one = one + x[image + (u * n1 + v) * n2 + q]
        room[own + q] = one


@parallel
def mean_boxes_back(
    g: Any, y: Any, ends: Any, room: Any, n0: int, n1: int, n2: int, t0: int, t1: int, t2: int,
    planes: int, some: int, task: int,
) -> None:  # fmt: skip
    """y (planes, n0, n1, n2): what means of boxes, that leave out nothing and stand in order, send
    back to each element where g (planes, t0, t1, t2) came to them.

    What is written a second time was written by the boxes before: there it is added.
    """
    at, own = task * some * t0 * t1 * t2, task * n2
    for p in range(task * some, min((task + 1) * some, planes)):
        image, slabs = p * n0 * n1 * n2, 0
        for i in range(t0):
            lines = 0
            for j in range(t0, t0 + t1):
                rows = (ends[2 * i + 1] - ends[2 * i]) * (ends[2 * j + 1] - ends[2 * j])
                done = 0
                for k in range(t0 + t1, t0 + t1 + t2):
                    stop = ends[2 * k + 1]
                    v: Any = g[at] / (rows * (stop - ends[2 * k])).astype(g.dtype)
                    at += 1
                    for q in range(ends[2 * k], done):
                        room[own + q] = room[own + q] + v
                    _filled(room, own + done, stop - done, v)
                    done = stop
                for u in range(ends[2 * i], ends[2 * i + 1]):
                    for r in range(ends[2 * j], ends[2 * j + 1]):
                        to = image + (u * n1 + r) * n2
                        _laid(room, y, own, to, n2, u < slabs or r < lines)
                lines = ends[2 * j + 1]
            slabs = ends[2 * i + 1]


def _filled(y: Any, at: Any, n: Any, v: Any) -> None:
    """n elements of y from at on are v."""
    for q in range(at, at + (n & -_LANES), _LANES):
        stored(y, q, spread(v, _LANES))
    for q in range(at + (n & -_LANES), at + n):
        y[q] = v


def _laid(x: Any, y: Any, at: Any, to: Any, n: int, more: Any) -> None:
    """n elements of x, into y or added to what is there."""
    if more:
        whole = n & -_LANES
        for q in range(0, whole, _LANES):
            stored(y, to + q, loaded(y, to + q, _LANES) + loaded(x, at + q, _LANES))
        for q in range(whole, n):
            y[to + q] = y[to + q] + x[at + q]
    else:
        copied(x, at, y, to, n)


@kernel
def distinct(i: Any, seen: Any, planes: int, count: int, n: int) -> int:
    """1 if the places i (planes, count) are inside of their images of n elements, and none of them
    is there twice. seen: of zeros, a byte for each element.
    """
    for p in range(planes):
        for k in range(p * count, (p + 1) * count):
            at = i[k].astype(np.int64)
            if at.astype(np.uint64) >= np.uint64(n):
                return 0
            if seen[p * n + at] != 0:
                return 0
            seen[p * n + at] = 1
    return 1
