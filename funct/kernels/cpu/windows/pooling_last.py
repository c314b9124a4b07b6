"""Windows of images whose channels are last: a vector holds neighbouring channels of one pixel.

x is (images, n0, n1, n2, inner), y (images, t0, t1, t2, inner), and inner is at least the lanes of
a vector; the last vector of a row begins where it ends with the row. Rows of results, which are
images times the lengths of two axes, are dealt out: a task makes `some` of them, and has room for
one row in s. axes: as for `max_index`. many: of `WIDTHS`, how many lanes vectors have.

Images that are not in a cache come in twice the time: rows are asked for a row ahead, as the
processor guesses no further than the end of a page.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from funct.device.host import host
from funct.kernels.cpu.loops import parallel
from funct.kernels.cpu.vectors import asked, lanes, loaded, spread, stored
from funct.kernels.cpu.windows.pooling import LANES, above, axis, folded

__all__ = [
    "WIDTHS", "fold_last", "image_of", "max_index_last", "max_spread_last", "spread_last",
    "width_of",
]  # fmt: skip

WIDTHS = {"many": LANES, "more": 32, "most": 64}
_VECTORS = 4  # of the processor, that hold the lanes of one of ours


@parallel
def fold_last(
    x: Any, y: Any, s: Any, axes: Any, taps: Any, met: Any, none: Any, counts: Any, rows: int,
    some: int, inner: int, many: str, how: str, alone: bool, task: int,
) -> None:  # fmt: skip
    """y: the "sum" of each window, its "mean" or "max".

    taps: where those of an axis begin behind the corner of a window. met: for each window along the
    first axis, and then along the others, the first of the taps to fold, and the end of them. none:
    [what padding counts as]. counts: the divisors of means, (t0, t1, t2). alone: windows fold their
    columns themselves, and s is not used; else those of a row are folded before, once for all.
    """
    n0, t0, _, s0, _, l0, _, _ = axis(axes, 0)
    n1, t1, _, s1, _, l1, _, _ = axis(axes, 8)
    n2, t2, _, s2, _, l2, _, _ = axis(axes, 16)
    width = _lanes(many)
    length = n2 * inner
    room = task * length
    for r in range(task * some, min((task + 1) * some, rows)):
        p, i, j = image_of(r, t0, t1)
        corner = ((p * n0 + l0 + i * s0) * n1 + l1 + j * s1) * length
        u0, u1, v0, v1 = met[2 * i], met[2 * i + 1], met[2 * (t0 + j)], met[2 * (t0 + j) + 1]
        meets = u0 < u1 and v0 < v1
        if meets and not alone:
            for q in range(0, length, width):
                first = min(q, length - width)
                at, ahead = corner + first, s1 * length
                column = _column(x, taps, u0, u1, v0, v1, at, ahead, width, how)
                stored(s, room + first, column)
        for k in range(t2):
            to = (r * t2 + k) * inner
            count = counts[(i * t1 + j) * t2 + k]
            w0, w1 = met[2 * (t0 + t1 + k)], met[2 * (t0 + t1 + k) + 1]
            for q in range(0, inner, width):
                first = min(q, inner - width)
                total = spread(none[0], width)
                if meets:
                    for w in range(w0, w1):
                        at = (l2 + k * s2) * inner + taps[w] + first
                        if alone:
                            at, ahead = corner + at, s1 * length
                            here = _column(x, taps, u0, u1, v0, v1, at, ahead, width, how)
                        else:
                            here = loaded(s, room + at, width)
                        total = folded(total, here, how)
                stored(y, to + first, total / spread(count, width) if how == "mean" else total)


def _column(
    x: Any, taps: Any, u0: Any, u1: Any, v0: Any, v1: Any, at: Any, ahead: Any, width: int, how: str
) -> Any:
    """What windows meet at one place of the last axis, folded; it is something."""
    total = _part(x, taps, u0, u1, at + taps[v0], ahead, width, how)
    for v in range(v0 + 1, v1):
        total = folded(total, _part(x, taps, u0, u1, at + taps[v], ahead, width, how), how)
    return total


def _part(x: Any, taps: Any, u0: Any, u1: Any, at: Any, ahead: Any, width: int, how: str) -> Any:
    """What they meet at one place of the axis before as well."""
    total = _element(x, at + taps[u0], ahead, width)
    for u in range(u0 + 1, u1):
        total = folded(total, _element(x, at + taps[u], ahead, width), how)
    return total


def _element(x: Any, at: Any, ahead: Any, width: int) -> Any:
    """Lanes of x; those that lie so far ahead are asked for."""
    asked(x, at + ahead, width)
    return loaded(x, at, width)


@parallel
def max_index_last(
    x: Any, y: Any, axes: Any, met: Any, rows: int, some: int, inner: int, many: str, task: int
) -> None:
    """y: the flat place in its image of the maximum of each window, see `above`, or -1 for none.

    met: for each window along the first axis, and then along the others, the first of its taps that
    meets an element of x, and the end of them.
    """
    width = _lanes(many)
    n0, t0, _, s0, d0, l0, _, _ = axis(axes, 0)
    n1, t1, _, s1, d1, l1, _, _ = axis(axes, 8)
    n2, t2, _, s2, d2, l2, _, _ = axis(axes, 16)
    for r in range(task * some, min((task + 1) * some, rows)):
        p, i, j = image_of(r, t0, t1)
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
                                new = above(here, best)
                                best = np.where(new, here, best)
                                place = np.where(new, spread(at.astype(np.int32), width), place)
                stored(y, (r * t2 + k) * inner + first, place.astype(np.int64))
                q += width


@parallel
def max_spread_last(
    g: Any, x: Any, z: Any, axes: Any, met: Any, inner: int, some: int, many: str, tiled: bool,
    task: int,
) -> None:  # fmt: skip
    """z, of x's shape: what g, of y's shape, has for a window is added at its maximum, see `above`.

    met: as for `max_index_last`. A task has `some` channels of an image, all or whole vectors of
    them. tiled: each element is in one window.
    """
    width = _lanes(many)
    n0, t0, _, s0, d0, l0, _, _ = axis(axes, 0)
    n1, t1, _, s1, d1, l1, _, _ = axis(axes, 8)
    n2, t2, _, s2, d2, l2, _, _ = axis(axes, 16)
    parts = np.uint64(inner) // np.uint64(some)
    p = np.int64(np.uint64(task) // parts)
    begin = (task - p * np.int64(parts)) * some
    image = p * n0 * n1 * n2
    zero = spread(x.dtype.type(0), width)
    done = 0  # rows of elements that are zeros, or more
    for i in range(t0):
        u0, u1 = met[2 * i], met[2 * i + 1]
        for j in range(t1):
            v0, v1 = met[2 * (t0 + j)], met[2 * (t0 + j) + 1]
            if not tiled:
                end = min(l0 + i * s0 + (u1 - 1) * d0 + 1, n0) * n1
                if n0 == 1:
                    end = min(l1 + j * s1 + (v1 - 1) * d1 + 1, n1)
                _cleared(z, image + done * n2, image + end * n2, begin, inner, some, zero, width)
                done = max(done, end)
            for k in range(t2):
                w0, w1 = met[2 * (t0 + t1 + k)], met[2 * (t0 + t1 + k) + 1]
                if u0 < u1 and v0 < v1 and w0 < w1:
                    corner = ((l0 + i * s0) * n1 + l1 + j * s1) * n2 + l2 + k * s2
                    start = corner + (u0 * d0 * n1 + v0 * d1) * n2 + w0 * d2
                    deep, high, wide = u1 - u0, v1 - v0, w1 - w0
                    for q in range(0, some, width):
                        first = begin + min(q, some - width)
                        at = (image + start) * inner + first
                        for v in range(max(high - s1, 0), high):
                            for w in range(max(wide - s2, 0), wide):
                                soon = at + ((v * d1 + s1) * n2 + w * d2) * inner
                                asked(x, soon, width)
                                asked(z, soon, width)
                        place = spread(np.int32(0), width)
                        best = loaded(x, at, width)
                        tap = np.int32(0)
                        for u in range(deep):
                            for v in range(high):
                                row = at + (u * d0 * n1 + v * d1) * n2 * inner
                                for w in range(wide):
                                    here = loaded(x, row + w * d2 * inner, width)
                                    new = above(here, best)
                                    best = np.where(new, here, best)
                                    place = np.where(new, spread(tap, width), place)
                                    tap = tap + np.int32(1)
                        out = (((p * t0 + i) * t1 + j) * t2 + k) * inner + first
                        gift = loaded(g, out, width) + zero  # sums with nothing have no -0.0
                        # lanes that the vector before had too have theirs
                        seen = (begin + q - first).astype(np.int32)
                        again = lanes(width, np.int32) < spread(seen, width)
                        left = np.where(again, spread(np.int32(-1), width), place)
                        tap = np.int32(0)
                        for u in range(deep):
                            for v in range(high):
                                row = at + (u * d0 * n1 + v * d1) * n2 * inner
                                for w in range(wide):
                                    to = row + w * d2 * inner
                                    mine = (place if tiled else left) == spread(tap, width)
                                    given = np.where(mine, gift, zero)
                                    stored(z, to, given if tiled else loaded(z, to, width) + given)
                                    tap = tap + np.int32(1)
    if not tiled:
        _cleared(z, image + done * n2, image + n0 * n1 * n2, begin, inner, some, zero, width)


def _cleared(
    z: Any, start: Any, end: Any, begin: Any, inner: int, some: int, zero: Any, width: int
) -> None:
    """Zeros come to `some` channels, from `begin` on, of the elements from start to end."""
    for e in range(start, end):
        for q in range(0, some, width):
            stored(z, e * inner + begin + min(q, some - width), zero)


@parallel
def spread_last(
    g: Any, x: Any, s: Any, ends: Any, n0: int, n1: int, n2: int, t0: int, t1: int, t2: int,
    rows: int, some: int, inner: int, many: str, task: int,
) -> None:  # fmt: skip
    """x: for each element the sum of what g, of y's shape, has for the windows that it is in.

    ends: for each place of the first axis, and then of the others, the first of those windows along
    the axis, and the end of them.
    """
    width = _lanes(many)
    length = t2 * inner
    room = task * length
    for r in range(task * some, min((task + 1) * some, rows)):
        p, i, j = image_of(r, n0, n1)
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
                to = (r * n2 + k) * inner + first
                asked(x, to + n2 * inner, width)
                stored(x, to, total)
                q += width


def width_of(inner: int, dtype: np.dtype[Any]) -> str:
    """How many lanes vectors have for so many channels, which are at least `LANES`."""
    fit = _VECTORS * host().vector_bytes // dtype.itemsize  # so that two sums are in registers
    able = [name for name, lanes in WIDTHS.items() if lanes <= inner and lanes <= max(32, fit)]
    return able[-1]


def _lanes(many: str) -> Any:
    return WIDTHS["most"] if many == "most" else WIDTHS["more"] if many == "more" else LANES


def image_of(r: Any, n0: int, n1: int) -> Any:
    """The image of a row of results, and the row's places in its first two axes."""
    which = np.uint64(r)
    image = which // np.uint64(n1)
    return (
        np.int64(image // np.uint64(n0)), np.int64(image % np.uint64(n0)),
        np.int64(which % np.uint64(n1)),
    )  # fmt: skip
