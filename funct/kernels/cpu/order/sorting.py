"""Orders by merging runs, the first k by one pass, and what differs in what is sorted.

`order` and `first_of` are steps of compiled loops (`funct/compile/steps/flat.py`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from funct.kernels.cpu.loops import kernel
from funct.kernels.cpu.order.words import LANES, ordered
from funct.kernels.cpu.vectors import loaded
from funct.kernels.dtypes import is_half

__all__ = ["RUN", "behind", "distinct", "first_of", "numbered", "order", "top_k"]

RUN = 8  # elements that are sorted by insertion before they are merged


def _above(v: Any, least: Any) -> Any:
    if is_half(v.dtype):
        return ordered(v) > ordered(least)
    if v.dtype.kind != "f":
        return v > least
    return ~(v <= least) & (least == least)


@kernel
def top_k(x: Any, values: Any, places: Any, rows: int, n: int, k: int, patient: bool) -> int:
    """The k >= 1 largest of each row in descending order, equal ones by index; NaN is largest.

    A row whose elements seem to ascend is read from its end: there what is found first stays.
    Unless it is patient, the answer is 1 where insertion takes too long.
    """
    tries: Any = rows * ((n >> 6) + 32 * k)  # of n in any order about k log(n / k) are inserted
    for r in range(rows):
        start = r * n
        if _rises(x, start, n):
            tries = _insert(x, start, values, places, r * k, n, k, tries, patient, True)
        else:
            tries = _insert(x, start, values, places, r * k, n, k, tries, patient, False)
        if tries < 0:
            return 1
    return 0


def _rises(x: Any, start: Any, n: Any) -> Any:
    """Whether some elements of a row, evenly apart, ascend, and the last is above the first."""
    found = _above(x[start + n - 1], x[start])
    step = n >> 2
    for part in range(1, 4):
        before = x[start + step * (part - 1)]
        found = found & ~_above(before, x[start + step * part])
    return found & ~_above(x[start + step * 3], x[start + n - 1])


def _insert(
    x: Any, start: Any, values: Any, places: Any, first: Any, n: Any, k: Any, tries: Any,
    patient: bool, back: bool,
) -> Any:  # fmt: skip
    """The k largest of one row; how many insertions are left, below 0 where it was given up."""
    filled: Any = 0
    i: Any = 0
    while i < n and tries >= 0:
        some = True
        if filled == k and i + LANES <= n:
            v = loaded(x, start + (n - LANES - i if back else i), LANES)
            some = _comes_first(v, values[first + k - 1], back).any()
        if not some:
            i += LANES
        else:
            for _ in range(min(LANES, n - i)):
                place = n - 1 - i if back else i
                v = x[start + place]
                at = filled
                if filled == k:
                    at = k - 1
                    if not _comes_first(v, values[first + at], back):
                        at = k
                else:
                    filled += 1
                if at < k:
                    if not patient:
                        tries -= 1
                    while at > 0 and _comes_first(v, values[first + at - 1], back):
                        values[first + at] = values[first + at - 1]
                        places[first + at] = places[first + at - 1]
                        at -= 1
                    values[first + at] = v
                    places[first + at] = place
                i += 1
    return tries


def _comes_first(v: Any, other: Any, back: bool) -> Any:
    """Whether v comes before what was found before it: of equal ones, if that stands behind it."""
    return ~_above(other, v) if back else _above(v, other)


def behind(v: Any, other: Any, descending: bool) -> Any:
    """Whether v comes after the other one, which stands before it or behind it."""
    return _above(other, v) if descending else _above(v, other)


def order(x: Any, at: Any, other: Any, rows: int, n: int, descending: bool) -> None:
    """at: the permutation that sorts each row stably, by merging runs. other: room for n."""
    for r in range(rows):
        base = r * n
        start = 0
        while start < n:
            end = min(start + RUN, n)
            for i in range(start, end):
                v = x[base + i]
                j = i
                while j > start and behind(x[base + at[base + j - 1]], v, descending):
                    at[base + j] = at[base + j - 1]
                    j -= 1
                at[base + j] = i
            start = end
        width = RUN
        while width < n:
            low = 0
            while low < n:
                middle = min(low + width, n)
                high = min(middle + width, n)
                a = low
                b = middle
                for k in range(low, high):
                    first = a < middle
                    if first and b < high:
                        v = x[base + at[base + a]]
                        first = ~behind(v, x[base + at[base + b]], descending)
                    if first:
                        other[k] = at[base + a]
                        a += 1
                    else:
                        other[k] = at[base + b]
                        b += 1
                low = high
            for i in range(n):
                at[base + i] = other[i]
            width = width + width


def first_of(x: Any, at: Any, values: Any, places: Any, rows: int, n: int, count: int) -> None:
    """The first `count` elements of each row of x in the order `at`, and where they stand."""
    for r in range(rows):
        for i in range(count):
            place = at[r * n + i]
            values[r * count + i] = x[r * n + place]
            places[r * count + i] = place


@kernel
def distinct(x: Any, y: Any, counts: Any, n: int, counted: bool) -> int:
    """y: the elements of sorted x that are not equal to the one before; how many there are.

    counted: counts says how often each occurs.
    """
    last = x[0]
    y[0] = last
    if counted:
        counts[0] = 1
    start: Any = 0
    found: Any = 1
    i: Any = np.int64(1)
    while i < n:
        end = min(i + LANES, n)
        run = end == i + LANES
        if run:
            run = (loaded(x, i, LANES) == loaded(x, i - 1, LANES)).all()
        if run:
            if counted:
                counts[found - 1] = end - start
        else:
            for k in range(i, end):
                v = x[k]
                y[found] = v
                found += np.where(v != last, 1, 0)
                if counted:
                    start = np.where(v != last, k, start)
                    counts[found - 1] = k + 1 - start
                last = v
        i = end
    return found


@kernel
def numbered(x: Any, at: Any, places: Any, counts: Any, back: Any, n: int) -> int:
    """How many distinct elements x has, which the permutation `at` sorts stably.

    places, counts: where each stands first, and how often. back: of each of x the number.
    """
    last = x[at[0]]
    places[0] = at[0]
    start = 0
    found = 0
    for i in range(n):
        place = at[i]
        v = x[place]
        if i > 0 and v != last:
            counts[found] = i - start
            found += 1
            places[found] = place
            start = i
            last = v
        back[place] = found
    counts[found] = n - start
    return found + 1
