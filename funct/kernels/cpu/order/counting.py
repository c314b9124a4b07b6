"""How often elements occur: by value, by bin, and which of few values there are.

Where there are tasks, each counts `part` elements in a row of its own, and the rows are added up.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from funct.kernels.cpu.indexing.filling import cleared
from funct.kernels.cpu.loops import kernel, making, parallel
from funct.kernels.cpu.vectors import loaded, spread, stored

__all__ = [
    "LANES", "SIDE", "TABLES", "bounds", "count", "count_bins", "counted", "first_places", "limits",
    "numbered", "ranks", "sort", "span",
]  # fmt: skip

LANES = 16
SIDE, TABLES = 16, 4  # elements whose bins are found together; counters of each bin
_EACH = tuple(range(SIDE))
_BLOCK = 8  # elements that are looked at together
_UNSIGNED = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


@kernel
def bounds(x: Any, ends: Any, n: int) -> None:
    """ends: the least and the greatest of n >= 1 integers, then room for two vectors."""
    _bounded(x, ends, n)


def _bounded(x: Any, ends: Any, n: int) -> None:
    """`bounds`; of less than four vectors only two elements are written."""
    low = x[0]
    high = x[0]
    whole = n & -LANES if n >= 4 * LANES else 0
    if whole > 0:
        lows = spread(x[0], LANES)
        highs = lows
        for i in range(0, whole, LANES):
            v = loaded(x, i, LANES)
            lows = np.where(v < lows, v, lows)
            highs = np.where(v > highs, v, highs)
        stored(ends, 2, lows)
        stored(ends, 2 + LANES, highs)
        for k in range(2, 2 + LANES):
            low = min(low, ends[k])
            high = max(high, ends[k + LANES])
    for i in range(whole, n):
        low = min(low, x[i])
        high = max(high, x[i])
    ends[0] = low
    ends[1] = high


@parallel
def count(
    x: Any, counts: Any, n: int, bins: int, low: int, tables: int, part: int, task: int
) -> None:
    """counts (tasks, tables, bins): how often each of low, low + 1, ... stands in x, in any of one
    or TABLES rows of a task, so that equal ones in turn do not wait for each other; other values
    are left out.
    """
    row = task * tables * bins
    first = task * part
    last = min(first + part, n)
    whole = first + ((last - first) & -_BLOCK)
    step = np.where(tables > 1, bins, 0)
    a = row - low
    b = a + step
    c = b + step
    d = c + step
    for i in range(first, whole, _BLOCK):
        at = loaded(x, i, _BLOCK).astype(np.int64) - low
        if (at.view(np.uint64) < spread(np.uint64(bins), _BLOCK)).all():
            for j in range(i, i + _BLOCK, TABLES):
                _one_more(counts, x[j], a)
                _one_more(counts, x[j + 1], b)
                _one_more(counts, x[j + 2], c)
                _one_more(counts, x[j + 3], d)
        else:
            for j in range(i, i + _BLOCK):
                _counted_if(counts, x[j], low, bins, row)
    for i in range(whole, last):
        _counted_if(counts, x[i], low, bins, row)


def _counted_if(counts: Any, v: Any, low: Any, bins: Any, row: Any) -> None:
    at = v.astype(np.int64) - low
    if at.astype(np.uint64) < np.uint64(bins):
        counts[row + at] = counts[row + at] + 1


@kernel
def span(x: Any, n: int, least: int) -> int:
    """One more than the greatest of n integers, or `least`; -1 where one is no place of a bin."""
    unsigned = _UNSIGNED[x.dtype.itemsize]  # in which negative ones are the greatest
    greatest = spread(unsigned(0), LANES)
    whole = n & -LANES
    for i in range(0, whole, LANES):
        v = loaded(x, i, LANES).view(unsigned)
        greatest = np.where(v > greatest, v, greatest)
    most = greatest.max()
    for i in range(whole, n):
        most = max(most, x[i].view(unsigned))
    if x.dtype.kind == "i" and most >= unsigned(1 << (8 * x.dtype.itemsize - 1)):
        return -1
    most = most.astype(np.uint64)
    if most >= np.uint64((1 << 63) - 1):
        return -1
    return max(most.astype(np.int64) + 1, least)


@making("bins", "like")
def counted(x: Any, bins: int, like: Any, n: int, y: Any, size: int) -> None:
    """A new array: how often each of 0, 1, ... stands in x, where nothing else is."""
    _counted(x, y, n, bins, 0)


def _counted(x: Any, counts: Any, n: Any, span: Any, low: Any) -> None:
    """counts (span,): how often low, low + 1, ... stand in x, where nothing else is."""
    cleared(counts, 0, span)
    fours = n & -4
    for i in range(0, fours, 4):
        a, b, c, d = x[i], x[i + 1], x[i + 2], x[i + 3]
        _one_more(counts, a, -low)
        _one_more(counts, b, -low)
        _one_more(counts, c, -low)
        _one_more(counts, d, -low)
    for i in range(fours, n):
        _one_more(counts, x[i], -low)


def _one_more(counts: Any, v: Any, shift: Any) -> None:
    at = v.astype(np.int64) + shift
    counts[at] = counts[at] + 1


@kernel
def limits(x: Any, ends: Any, n: int) -> int:
    """ends: the least and the greatest of n >= LANES floats, then room for two vectors. The answer
    is 1 where some are NaN.
    """
    lows = loaded(x, 0, LANES)
    highs = lows
    some = lows
    for i in range(0, n, LANES):
        v = loaded(x, min(i, n - LANES), LANES)
        lows = np.where(v < lows, v, lows)
        highs = np.where(v > highs, v, highs)
        some = np.where(v == v, some, v)
    if (some != some).any():
        return 1
    stored(ends, 2, lows)
    stored(ends, 2 + LANES, highs)
    low = ends[2]
    high = ends[2 + LANES]
    for k in range(3, 2 + LANES):
        low = min(low, ends[k])
        high = max(high, ends[k + LANES])
    ends[0] = low
    ends[1] = high
    return 0


@parallel
def count_bins(
    x: Any, edges: Any, counts: Any, n: int, bins: int, low: float, scale: float, near: float,
    part: int, task: int,
) -> None:  # fmt: skip
    """counts (tasks, TABLES, bins + 1 + SIDE): how many of x lie between edges, nearly
    (low + k / scale) each; in any of TABLES, so that equal ones in turn do not wait for each other.

    A product says the bin, but within `near` of an edge, where the edges are asked. The last bin
    holds its upper edge. Behind the bins is what lies in none, and room.
    """
    width = bins + 1 + SIDE
    row = task * TABLES * width
    room = row + bins + 1
    first = edges[0]
    last = edges[bins]
    start = task * part
    end = min(start + part, n)
    whole = start + ((end - start) & -SIDE)
    for i in range(start, whole, SIDE):
        v = loaded(x, i, SIDE).astype(np.float64)
        inside = (v >= first) & (v <= last)
        t = np.where(inside, (v - low) * scale, 0.5)
        k = t.astype(np.int32)
        past = t - k.astype(np.float64)
        stored(counts, room, np.where(inside, k, np.int32(bins)).astype(np.int64))
        if ((past < near) | (past > 1.0 - near)).any():
            for j in range(SIDE):
                counts[room + j] = _bin(x[i + j].astype(np.float64), edges, bins, low, scale)
        for j in _EACH:
            to = row + (j & (TABLES - 1)) * width + counts[room + j]
            counts[to] = counts[to] + 1
    for i in range(whole, end):
        to = row + _bin(x[i].astype(np.float64), edges, bins, low, scale)
        counts[to] = counts[to] + 1


def _bin(v: Any, edges: Any, bins: Any, low: Any, scale: Any) -> Any:
    """The bin of v: what a product says is set right by the edges; `bins` for what is in none."""
    k: Any = bins + 0
    if v >= edges[0] and v <= edges[bins]:
        k = min(max(((v - low) * scale).astype(np.int64), 0), bins - 1)
        while k > 0 and v < edges[k]:
            k -= 1
        while k + 1 < bins and v >= edges[k + 1]:
            k += 1
    return k


@kernel
def sort(x: Any, counts: Any, y: Any, n: int, room: int) -> int:
    """y: x in order, by how often each value from the least on occurs; counts: `room`.

    The answer is 1 where the values spread further, and y is then anything. n >= 2.
    """
    _bounded(x, y, n)
    low = y[0].astype(np.int64)
    spread_over = (y[1].astype(np.int64) - low).astype(np.uint64)
    if spread_over >= np.uint64(room):
        return 1
    span = spread_over.astype(np.int64) + 1
    _counted(x, counts, n, span, low)
    out: Any = 0
    k = 0
    while k < span and out + LANES <= n:  # a vector of each, of which the next covers what is over
        many = counts[k].astype(np.int64)
        v = spread(y.dtype.type(low + k), LANES)
        end = out + many
        stored(y, out, v)
        out += LANES
        while out + LANES <= end:
            stored(y, out, v)
            out += LANES
        if out < end:
            stored(y, end - LANES, v)
        out = end
        k += 1
    while k < span:
        for _ in range(counts[k].astype(np.int64)):
            y[out] = y.dtype.type(low + k)
            out += 1
        k += 1
    return 0


@kernel
def first_places(x: Any, first: Any, low: int, n: int) -> None:
    """first[v - low]: where v stands first in x, from its end to its beginning."""
    for i in range(n - 1, -1, -1):
        first[x[i].astype(np.int64) - low] = i


@kernel
def ranks(first: Any, places: Any, span: int, n: int) -> int:
    """places: the entries of `first` that are below n; each then says how many came before it."""
    found = 0
    for k in range(span):
        at = first[k]
        if at < n:
            places[found] = at
            first[k] = found
            found += 1
    return found


@parallel
def numbered(x: Any, rank: Any, inverse: Any, low: int, n: int, part: int, task: int) -> None:
    """inverse: rank[v - low] for each v of x."""
    for i in range(task * part, min((task + 1) * part, n)):
        inverse[i] = rank[x[i].astype(np.int64) - low]
