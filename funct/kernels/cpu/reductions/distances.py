"""Lengths of the differences of rows, each row of `x` (rows, width) less all those behind it.

how: whether a length is the "sum" of the sizes, the "root" of the sum of the squares, or the "max";
of "ties" it is how many differences are as long as that, infinity for equal rows. Lengths and
shares lie as the pairs do: (0, 1), (0, 2), …, (1, 2), …
"""

from __future__ import annotations

from typing import Any

import numpy as np

from funct.kernels.cpu.loops import parallel
from funct.kernels.cpu.vectors import loaded, spread, stored

__all__ = ["LANES", "PART", "distances", "distances_back"]

LANES, PART = 16, 8


@parallel
def distances(
    x: Any, panels: Any, y: Any, room: Any, rows: int, width: int, how: str, some: int, task: int
) -> None:
    """panels: the rows by LANES, turned, and any more behind them. room: LANES for each task, which
    has an even number of rows.
    """
    for i in range(task * some, min((task + 1) * some, rows), 2):
        k = min(i + 1, rows - 1)
        for q in range((i + 1) & -LANES, rows, LANES):
            first: Any = spread(x.dtype.type(0), LANES)
            second: Any = spread(x.dtype.type(0), LANES)
            of_first: Any = spread(x.dtype.type(0), LANES)
            of_second: Any = spread(x.dtype.type(0), LANES)
            for d in range(width):
                v = loaded(panels, q * width + d * LANES, LANES)
                one, two = spread(x[i * width + d], LANES) - v, spread(x[k * width + d], LANES) - v
                if how == "ties":
                    of_first = _as_long(of_first, first, _size(one))
                    of_second = _as_long(of_second, second, _size(two))
                first, second = _longer(first, one, how), _longer(second, two, how)
            _kept(y, room, _told(first, of_first, how), i, q, rows, task)
            _kept(y, room, _told(second, of_second, how), k, q, rows, task)


def _as_long(count: Any, length: Any, size: Any) -> Any:
    """How many differences are as long as the longest, with one more."""
    return np.where(size > length, 1, np.where(size == length, count + 1, count))


def _told(length: Any, count: Any, how: str) -> Any:
    if how == "ties":  # nothing is sent to rows that are one
        return np.where(length == 0, np.inf, count)
    return np.sqrt(length) if how == "root" else length


def _longer(length: Any, v: Any, how: str) -> Any:
    """A length with one more difference. What is no number stays so."""
    if how == "root":
        return length + v * v
    size = _size(v)
    if how == "sum":
        return length + size
    return np.where((size <= length) | (length != length), length, size)


def _size(v: Any) -> Any:
    return (v.view(_word(v)) & ((1 << (8 * v.dtype.itemsize - 1)) - 1)).view(v.dtype)


def _word(v: Any) -> Any:
    """Of as many bits as an element has."""
    return np.uint32 if v.dtype.itemsize == 4 else np.uint64


def _first(i: Any, rows: Any) -> Any:
    """Where the pair of row i and row 0 would be."""
    return ((i * (2 * rows - i - 1)) >> 1) - i - 1


def _kept(y: Any, room: Any, v: Any, i: Any, q: Any, rows: Any, task: Any) -> None:
    """What of a vector belongs to rows behind i that there are."""
    to = _first(i, rows)
    if q > i and q + LANES <= rows:
        stored(y, to + q, v)
    else:
        stored(room, task * LANES, v)
        for j in range(max(q, i + 1), min(q + LANES, rows)):
            y[to + j] = room[task * LANES + j - q]


@parallel
def distances_back(
    x: Any, lengths: Any, shares: Any, room: Any, y: Any, rows: int, width: int, how: str,
    some: int, task: int,
) -> None:  # fmt: skip
    """y like x, whose width is a number of vectors of PART. shares: of the pairs, what the slopes
    of their sums are multiplied by. room: eight rows for each task, which has a multiple of four:
    the shares of each row's pairs, and their lengths.
    """
    own, final = 8 * task * rows, rows - 1
    for i in range(task * some, min((task + 1) * some, rows), 4):
        four = (i, min(i + 1, final), min(i + 2, final), min(i + 3, final))
        for k in (0, 1, 2, 3):
            _found(shares, room, own + k * rows, four[k], rows)
            if how == "max":
                _found(lengths, room, own + (k + 4) * rows, four[k], rows)
        for q in range(0, width, PART):
            one, two = loaded(x, four[0] * width + q, PART), loaded(x, four[1] * width + q, PART)
            three, last = loaded(x, four[2] * width + q, PART), loaded(x, four[3] * width + q, PART)
            a: Any = spread(x.dtype.type(0), PART)
            b: Any = spread(x.dtype.type(0), PART)
            c: Any = spread(x.dtype.type(0), PART)
            d: Any = spread(x.dtype.type(0), PART)
            end = min(i + 4, rows)
            for first, behind, near in ((0, i, False), (i, end, True), (end, rows, False)):
                for j in range(first, behind):
                    v, to = loaded(x, j * width + q, PART), own + j
                    e = a + _pulled(one - v, room, to, rows, how)
                    f = b + _pulled(two - v, room, to + rows, rows, how)
                    g = c + _pulled(three - v, room, to + 2 * rows, rows, how)
                    h = d + _pulled(last - v, room, to + 3 * rows, rows, how)
                    if near:  # a row makes no pair with itself: infinity less infinity is no number
                        e, f = np.where(j == four[0], a, e), np.where(j == four[1], b, f)
                        g, h = np.where(j == four[2], c, g), np.where(j == four[3], d, h)
                    a, b, c, d = e, f, g, h
            stored(y, four[0] * width + q, a)
            stored(y, four[1] * width + q, b)
            stored(y, four[2] * width + q, c)
            stored(y, four[3] * width + q, d)


def _found(shares: Any, room: Any, own: Any, i: Any, rows: Any) -> None:
    """What the pairs of a row have, and 0 for none."""
    at = i - 1
    for j in range(i):
        room[own + j] = shares[at]
        at = at + rows - j - 2
    room[own + i] = 0
    first, behind = _first(i, rows), (rows - i - 1) & -PART
    for j in range(i + 1, i + 1 + behind, PART):
        stored(room, own + j, loaded(shares, first + j, PART))
    for j in range(i + 1 + behind, rows):
        room[own + j] = shares[first + j]


def _pulled(v: Any, room: Any, at: Any, rows: Any, how: str) -> Any:
    """What a row gets of a pair."""
    share = spread(room[at], PART)
    if how == "max":
        length = room[at + 4 * rows]
        return np.where(_size(v) == length, _signed(share, v), length * 0)
    pulled: Any = v * share
    if how != "root":
        pulled = np.where(v > 0, share, np.where(v < 0, -share, pulled))
    return pulled


def _signed(share: Any, v: Any) -> Any:
    """A share, or its negative where v is negative."""
    word = _word(v)
    sign = v.view(word) & (1 << (8 * v.dtype.itemsize - 1))
    return (share.view(word) ^ sign).view(v.dtype)
