"""Places among sorted elements: binary search of many values at once, and what is asked of it."""

from __future__ import annotations

from typing import Any

import numpy as np

from funct.kernels.cpu.indexing.filling import cleared
from funct.kernels.cpu.loops import kernel, parallel
from funct.kernels.cpu.vectors import gathered, loaded, spread, stored

__all__ = [
    "SEARCHED", "among", "ascend", "count_between", "hot", "interpolate", "marked", "search",
    "search_all",
]  # fmt: skip

FEW = 64  # elements that are compared one by one sooner than halves of them are gathered
_SIGNED: dict[int, Any] = {1: np.int8, 2: np.int16, 4: np.int32, 8: np.int64}
_CLEARED = 1 << 11  # elements that are cleared together
SEARCHED = 32  # values that are searched for together: their cache misses overlap


def _before(a: Any, v: Any, left: bool) -> Any:
    """Whether a stands before the place of v; no a is NaN."""
    if v.dtype.kind != "f":
        return a < v if left else a <= v
    return ~(a >= v) if left else ~(a > v)


def _found(x: Any, v: Any, m: int, n: int, left: bool) -> Any:
    """The places of a vector of values among the first m of x, which are no NaN."""
    at = spread(0, SEARCHED)
    size = m
    if m <= FEW:
        one = _SIGNED[v.dtype.itemsize](1)
        before = spread(one - one, SEARCHED)
        for k in range(m):
            before = before + np.where(_before(x[k], v, left), one, one - one)
        at = before.astype(np.int64)
        size = 0
    while size > 1:
        half = size >> 1
        at = np.where(_before(gathered(x, at + (half - 1)), v, left), at + half, at)
        size -= half
    if m > FEW:
        at = np.where(_before(gathered(x, at), v, left), at + 1, at)
    if v.dtype.kind == "f" and not left:
        at = np.where(v != v, n, at)
    return at


def search_all(x: Any, v: Any, y: Any, n: int, count: int, left: bool) -> None:
    """`search` of any number of values, without tasks; of the n >= 1 of x some may be NaN."""
    m = n
    if x.dtype.kind == "f":
        while m > 0 and x[m - 1] != x[m - 1]:
            m -= 1
    i = 0
    if count >= SEARCHED:
        while i < count:
            at = min(i, count - SEARCHED)
            stored(y, at, _found(x, loaded(v, at, SEARCHED), m, n, left))
            i += SEARCHED
    else:
        while i < count:
            place: Any = np.int64(0)
            size = m
            while size > 0:
                half = (size + 1) >> 1
                if _before(x[place + half - 1], v[i], left):
                    place += half
                    size -= half
                else:
                    size = half - 1
            if v.dtype.kind == "f" and not left:
                place = np.where(v[i] != v[i], n, place)
            y[i] = place
            i += 1


@parallel
def search(
    x: Any, v: Any, y: Any, m: int, n: int, count: int, part: int, left: bool, task: int
) -> None:
    """y: where each of count >= SEARCHED values v goes in the sorted x of n, m of them no NaN.

    A task searches for `part` of them.
    """
    i = task * part
    last = min(i + part, count)
    while i < last:
        at = min(i, count - SEARCHED)
        stored(y, at, _found(x, loaded(v, at, SEARCHED), m, n, left))
        i += SEARCHED


@kernel
def ascend(x: Any, n: int) -> int:
    """Whether no element is less than the one before it."""
    k: Any = np.int64(1)
    while k + SEARCHED <= n and ~(loaded(x, k, SEARCHED) < loaded(x, k - 1, SEARCHED)).any():
        k += SEARCHED
    while k < n and ~(x[k] < x[k - 1]):
        k += 1
    if k < n:
        return 0
    return 1


@parallel
def count_between(
    x: Any, edges: Any, counts: Any, n: int, bins: int, known: int, part: int, task: int
) -> None:
    """How many of x lie between edges in ascending order, `known` of them no NaN.

    counts: for each task a row of what lies before the first edge, each bin, and all else, which is
    zeros, and then room for `SEARCHED` places. The last bin holds its upper edge. n and `part` are
    at least `SEARCHED`.
    """
    row = task * (bins + 2 + SEARCHED)
    room = row + bins + 2
    last = edges[bins]
    first = task * part
    end = min(first + part, n)
    for i in range(first, end, SEARCHED):
        at = min(i, end - SEARCHED)
        v = loaded(x, at, SEARCHED)
        place = _found(edges, v, known, bins + 1, False)
        stored(counts, room, np.where(v == last, bins, place))
        for k in range(i - at, SEARCHED):  # those before have been counted
            to = row + counts[room + k]
            counts[to] = counts[to] + 1


@parallel
def interpolate(
    x: Any, points: Any, f: Any, y: Any, n: int, count: int, left: float, right: float, part: int,
    task: int,
) -> None:  # fmt: skip
    """y (count,): values at x of the lines between f at n points in ascending order, all finite.

    left, right: what is before the first and behind the last. count is at least `SEARCHED`, and a
    task takes `part`.
    """
    first = points[0]
    last = points[n - 1]
    i = task * part
    end = min(i + part, count)
    while i < end:
        at = min(i, count - SEARCHED)
        v = loaded(x, at, SEARCHED).astype(np.float64)
        behind = _found(points, v, n, n, False)
        after = np.where(behind < n - 1, behind, n - 1)
        before = np.where(behind > 0, behind - 1, behind)
        x0, f0 = gathered(points, before), gathered(f, before)
        wide = gathered(points, after) - x0
        slope = (gathered(f, after) - f0) / np.where(wide == 0, 1.0, wide)
        z = f0 + slope * (v - x0)
        z = np.where(v == x0, f0, z)  # also where the slope is infinite
        z = np.where(v >= last, f[n - 1], z)
        z = np.where(v < first, left, z)
        z = np.where(v > last, right, z)
        stored(y, at, z.astype(y.dtype))
        i += SEARCHED


@parallel
def among(x: Any, few: Any, y: Any, n: int, k: int, part: int, task: int) -> None:
    """y (n,), bytes: whether each of x is one of the k elements of `few`."""
    first = task * part
    end = min(first + part, n)
    whole = first + ((end - first) & -SEARCHED)
    for i in range(first, whole, SEARCHED):
        v = loaded(x, i, SEARCHED)
        hit = v == few[0]
        for j in range(1, k):
            hit = hit | (v == few[j])
        stored(y, i, hit.astype(np.uint8))
    for i in range(whole, end):
        met = x[i] == few[0]
        for j in range(1, k):
            met = met | (x[i] == few[j])
        y[i] = met.astype(np.uint8)


@kernel
def hot(x: Any, y: Any, n: int, classes: int) -> None:
    """y (n, classes): 1 in each row at the column that x (n,) says, if there is one, else 0. Some
    rows are cleared together, and still in the nearest cache when the ones come.
    """
    some = max(np.int64(np.uint64(_CLEARED) // np.uint64(classes)), 1)
    first: Any = np.int64(0)
    while first < n:
        last = min(first + some, n)
        cleared(y, first * classes, last * classes)
        for i in range(first, last):
            at = x[i].astype(np.int64)
            if at.astype(np.uint64) < np.uint64(classes):
                y[i * classes + at] = y.dtype.type(1)
        first = last


@parallel
def marked(x: Any, marks: Any, y: Any, low: int, span: int, n: int, part: int, task: int) -> None:
    """y (n,), bytes: marks[v - low] for each integer v of x, and marks[span] for those beyond."""
    for i in range(task * part, min((task + 1) * part, n)):
        at = x[i].astype(np.int64) - low
        y[i] = marks[np.where(at.astype(np.uint64) < np.uint64(span), at, span)]
