"""Windows of images whose channels are last: a vector holds neighbouring channels of one pixel.

x is (images, n0, n1, n2, inner), y (images, t0, t1, t2, inner), and inner is at least the lanes of
a vector; the last vector of a row begins where it ends with the row. Rows of results, which are
images times the lengths of two axes, are dealt out: a task makes `some` of them, and has room for
one row in s. axes: as for `max_index`. wide: vectors have WIDE lanes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from funct.kernels.cpu.irregular.pooling import LANES, axis, folded
from funct.kernels.cpu.irregular.scans import better
from funct.kernels.cpu.loops import parallel
from funct.kernels.cpu.vectors import loaded, spread, stored

__all__ = ["WIDE", "fold_last", "max_index_last", "spread_last"]

WIDE = 32


@parallel
def fold_last(
    x: Any, y: Any, s: Any, axes: Any, taps: Any, none: Any, counts: Any, rows: int, some: int,
    inner: int, wide: bool, how: str, task: int,
) -> None:  # fmt: skip
    """y: the "sum" of each window, its "mean" or "max".

    taps: where those of the three axes begin in a window, one
    axis after the other, in the order in which they are folded. none: [what padding counts as].
    counts: the divisors of means, (t0, t1, t2).
    """
    n0, t0, k0, s0, _, l0, a0, b0 = axis(axes, 0)
    n1, t1, k1, s1, _, l1, a1, b1 = axis(axes, 8)
    n2, t2, k2, s2, _, l2, a2, b2 = axis(axes, 16)
    width = WIDE if wide else LANES
    length = n2 * inner
    room = task * length
    for r in range(task * some, min((task + 1) * some, rows)):
        p, i, j = _row(r, t0, t1)
        q = 0
        while q < length:
            first = min(q, length - width)
            total = spread(none[0], width)
            for v in range(k1):
                e1 = l1 + j * s1 + taps[k0 + v]
                if e1 >= a1 and e1 < b1:
                    column = spread(none[0], width)
                    for u in range(k0):
                        e0 = l0 + i * s0 + taps[u]
                        if e0 >= a0 and e0 < b0:
                            at = ((p * n0 + e0) * n1 + e1) * length + first
                            column = folded(column, loaded(x, at, width), how)
                    total = folded(total, column, how)
            stored(s, room + first, total)
            q += width
        for k in range(t2):
            to = (r * t2 + k) * inner
            count = counts[(i * t1 + j) * t2 + k]
            q = 0
            while q < inner:
                first = min(q, inner - width)
                total = spread(none[0], width)
                for w in range(k2):
                    e2 = l2 + k * s2 + taps[k0 + k1 + w]
                    if e2 >= a2 and e2 < b2:
                        here = loaded(s, room + e2 * inner + first, width)
                        total = folded(total, here, how)
                stored(y, to + first, total / spread(count, width) if how == "mean" else total)
                q += width


@parallel
def max_index_last(
    x: Any, y: Any, axes: Any, met: Any, rows: int, some: int, inner: int, wide: bool, task: int
) -> None:
    """y: the flat place in its image of the first maximum of each window, or -1 for none.

    met: for each window along the first axis, and then along the others, the first of its taps that
    meets an element of x, and the end of them.
    """
    width = WIDE if wide else LANES
    n0, t0, _, s0, d0, l0, _, _ = axis(axes, 0)
    n1, t1, _, s1, d1, l1, _, _ = axis(axes, 8)
    n2, t2, _, s2, d2, l2, _, _ = axis(axes, 16)
    for r in range(task * some, min((task + 1) * some, rows)):
        p, i, j = _row(r, t0, t1)
        u0, u1, v0, v1 = met[2 * i], met[2 * i + 1], met[2 * (t0 + j)], met[2 * (t0 + j) + 1]
        for k in range(t2):
            w0, w1 = met[2 * (t0 + t1 + k)], met[2 * (t0 + t1 + k) + 1]
            corner = ((l0 + i * s0) * n1 + l1 + j * s1) * n2 + l2 + k * s2
            start = corner + (u0 * d0 * n1 + v0 * d1) * n2 + w0 * d2
            q = 0
            while q < inner:
                first = min(q, inner - width)
                place = spread(np.int32(-1), width)
                if u0 < u1 and v0 < v1 and w0 < w1:
                    place = spread(start.astype(np.int32), width)
                    image = p * n0 * n1 * n2
                    best = loaded(x, (image + start) * inner + first, width)
                    for u in range(u0, u1):
                        for v in range(v0, v1):
                            row = corner + (u * d0 * n1 + v * d1) * n2
                            for w in range(w0, w1):
                                at = row + w * d2
                                here = loaded(x, (image + at) * inner + first, width)
                                new = better(here, best, True)
                                best = np.where(new, here, best)
                                place = np.where(new, spread(at.astype(np.int32), width), place)
                stored(y, (r * t2 + k) * inner + first, place.astype(np.int64))
                q += width


@parallel
def spread_last(
    g: Any, x: Any, s: Any, ends: Any, n0: int, n1: int, n2: int, t0: int, t1: int, t2: int,
    rows: int, some: int, inner: int, wide: bool, task: int,
) -> None:  # fmt: skip
    """x: for each element the sum of what g, of y's shape, has for the windows that it is in.

    ends: for each place of the first axis, and then of the others, the first of those windows along
    the axis, and the end of them.
    """
    width = WIDE if wide else LANES
    length = t2 * inner
    room = task * length
    for r in range(task * some, min((task + 1) * some, rows)):
        p, i, j = _row(r, n0, n1)
        q = 0
        while q < length:
            first = min(q, length - width)
            total = spread(g.dtype.type(0), width)
            for u in range(ends[2 * i], ends[2 * i + 1]):
                for v in range(ends[2 * (n0 + j)], ends[2 * (n0 + j) + 1]):
                    at = ((p * t0 + u) * t1 + v) * length + first
                    total = total + loaded(g, at, width)
            stored(s, room + first, total)
            q += width
        for k in range(n2):
            here = 2 * (n0 + n1 + k)
            q = 0
            while q < inner:
                first = min(q, inner - width)
                total = spread(g.dtype.type(0), width)
                for w in range(ends[here], ends[here + 1]):
                    total = total + loaded(s, room + w * inner + first, width)
                stored(x, (r * n2 + k) * inner + first, total)
                q += width


def _row(r: Any, n0: int, n1: int) -> Any:
    """The image of a row of results, and the row's places in its first two axes."""
    which = np.uint64(r)
    image = which // np.uint64(n1)
    return (
        np.int64(image // np.uint64(n0)), np.int64(image % np.uint64(n0)),
        np.int64(which % np.uint64(n1)),
    )  # fmt: skip
