"""Stable permutations by radix, the first k by one pass, and binary search of many at once."""

from __future__ import annotations

from typing import Any

import numpy as np

from funct.kernels.cpu.loops import Kernel, kernel, parallel
from funct.kernels.cpu.vectors import gathered, loaded, spread, stored

__all__ = ["SEARCHED", "argsort", "distinct", "largest", "search", "span", "top_k"]

LANES = 16
SEARCHED = 32  # values that are searched for together: their cache misses overlap
_UNSIGNED = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


def _ordered(v: Any) -> Any:
    """An unsigned key that is ordered as v is: NaN above all, -0 equal to 0."""
    bits = v.dtype.itemsize * 8
    unsigned = _UNSIGNED[v.dtype.itemsize]
    if v.dtype.kind == "u":
        key = v
    elif v.dtype.kind == "i":
        key = v.view(unsigned) ^ (1 << (bits - 1))
    else:
        v = v + 0.0
        raw = v.view(unsigned)
        negative = raw >> (bits - 1) != 0
        key = np.where(negative, ~raw, raw | (1 << (bits - 1)))
        key = np.where(v != v, ~(raw ^ raw), key)
    return key


@kernel
def span(x: Any, ends: Any, n: int) -> None:
    """ends: the least and the greatest key."""
    least = _ordered(x[0])
    most = least
    for i in range(1, n):
        key = _ordered(x[i])
        least = min(least, key)
        most = max(most, key)
    ends[0] = least.astype(np.uint64)
    ends[1] = most.astype(np.uint64)


def _argsort(digit: int) -> Kernel:
    """The kernel with passes over so many bits."""
    bins = 1 << digit

    @kernel
    def argsort(
        x: Any, y: Any, s: Any, counts: Any, ends: Any, rows: int, n: int, low: int, drop: int,
        passes: int, descending: bool, cut: bool,
    ) -> int:  # fmt: skip
        """y: the permutation of each row. Key and index go in one word: the index has low bits.

        s: 2 n words. counts: 2 ** digit. cut: the last `drop` bits of the key find no room; what is
        equal without them is settled by insertion. 1 is the answer if that takes too long.
        """
        bottom = np.uint64(low)
        index = (np.uint64(1) << bottom) - 1
        moves = 16 * n
        for r in range(rows):
            base = r * n
            for i in range(n):
                key = _ordered(x[base + i]).astype(np.uint64)
                key = ends[1] - key if descending else key - ends[0]
                s[i] = ((key >> np.uint64(drop)) << bottom) | np.uint64(i)
            src = 0
            dst = n
            shift = bottom
            for p in range(passes):
                for d in range(bins):
                    counts[d] = 0
                for i in range(src, src + n):
                    d = (s[i] >> shift) & (bins - 1)
                    counts[d] = counts[d] + 1
                total = dst
                for d in range(bins):
                    count = counts[d]
                    counts[d] = total
                    total += count
                if cut or p + 1 < passes:
                    for i in range(src, src + n):
                        v = s[i]
                        d = (v >> shift) & (bins - 1)
                        at = counts[d]
                        s[at] = v
                        counts[d] = at + 1
                else:
                    for i in range(src, src + n):
                        v = s[i]
                        d = (v >> shift) & (bins - 1)
                        at = counts[d]
                        y[base + at - dst] = (v & index).astype(np.int64)
                        counts[d] = at + 1
                shift += digit
                src, dst = dst, src
            if cut or passes == 0:
                run = 0
                before = s[src] >> bottom
                for i in range(n):
                    v = s[src + i]
                    place = (v & index).astype(np.int64)
                    at = i
                    if v >> bottom != before:
                        run = i
                        before = v >> bottom
                    elif i > run:
                        key = _ordered(x[base + place])
                        while at > run and _after(x[base + y[base + at - 1]], key, descending):
                            y[base + at] = y[base + at - 1]
                            at -= 1
                        moves -= i - at
                        if moves < 0:
                            return 1
                    y[base + at] = place
        return 0

    return argsort


def _after(v: Any, key: Any, descending: bool) -> Any:
    return _ordered(v) < key if descending else _ordered(v) > key


argsort = {8: _argsort(8), 11: _argsort(11)}


def _above(v: Any, least: Any) -> Any:
    if v.dtype.kind != "f":
        return v > least
    return ~(v <= least) & (least == least)


@kernel
def top_k(x: Any, values: Any, places: Any, rows: int, n: int, k: int) -> None:
    """The k >= 1 largest of each row in descending order, equal ones by index; NaN is largest."""
    for r in range(rows):
        start = r * n
        first = r * k
        filled = 0
        i = 0
        while i < n:
            some = True
            if filled == k and i + LANES <= n:
                some = _above(loaded(x, start + i, LANES), values[first + k - 1]).any()
            if not some:
                i += LANES
            else:
                for _ in range(min(LANES, n - i)):
                    v = x[start + i]
                    at = filled
                    if filled == k:
                        at = k - 1
                        if not _above(v, values[first + at]):
                            at = k
                    else:
                        filled += 1
                    if at < k:
                        while at > 0 and _above(v, values[first + at - 1]):
                            values[first + at] = values[first + at - 1]
                            places[first + at] = places[first + at - 1]
                            at -= 1
                        values[first + at] = v
                        places[first + at] = i
                    i += 1


@kernel
def largest(x: Any, least: Any, values: Any, places: Any, same: Any, n: int, k: int) -> int:
    """values, places: of what is above the least of the k largest, in order; how many there are.

    same: where the first k that equal it stand. All three have room for one more.
    """
    above: Any = 0
    equal: Any = 0
    bound = least[0]
    i = 0
    while i < n:
        some = True
        if i + LANES <= n:
            some = (~(loaded(x, i, LANES) < bound)).any()
        if not some:
            i += LANES
        else:
            for _ in range(min(LANES, n - i)):  # no branch: which it would be is not known before
                v = x[i]
                values[above] = v
                places[above] = i
                same[equal] = i
                above += np.where(_above(v, bound), 1, 0)
                equal += np.where((v == bound) & (equal < k), 1, 0)
                i += 1
    return above


@kernel
def distinct(x: Any, y: Any, n: int) -> int:
    """y: the elements of sorted x that are not equal to the one before; how many there are."""
    last = x[0]
    y[0] = last
    found: Any = 1
    for i in range(1, n):
        v = x[i]
        y[found] = v
        found += np.where(v != last, 1, 0)
        last = v
    return found


def _before(a: Any, v: Any, left: bool) -> Any:
    """Whether a stands before the place of v; no a is NaN."""
    if v.dtype.kind != "f":
        return a < v if left else a <= v
    return ~(a >= v) if left else ~(a > v)


def _found(x: Any, v: Any, m: int, n: int, left: bool) -> Any:
    """The places of a vector of values among the first m of x, which are no NaN."""
    at = spread(0, SEARCHED)
    size = m
    while size > 1:
        half = size >> 1
        at = np.where(_before(gathered(x, at + (half - 1)), v, left), at + half, at)
        size -= half
    if m > 0:
        at = np.where(_before(gathered(x, at), v, left), at + 1, at)
    if v.dtype.kind == "f" and not left:
        at = np.where(v != v, n, at)
    return at


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
