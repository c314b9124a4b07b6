"""Rows of few elements sorted, or their order, by one call: NumPy's sort between what comes before
and behind it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from funct.kernels.cpu.indexing.packing import give_signs, signs_tell, turned_back
from funct.kernels.cpu.loops import kernel, making
from funct.kernels.cpu.order.column_sort import sort_lanes
from funct.kernels.cpu.order.few_values import sorted_by_values
from funct.kernels.cpu.order.networks import sorted_row
from funct.kernels.cpu.order.sorting import behind
from funct.kernels.cpu.order.words import LANES, least_of_row, packed_from, unpacked
from funct.kernels.cpu.vectors import ascend, loaded, stored

__all__ = ["largest_of_rows", "largest_of_short_rows", "order_rows", "room_of", "sort_rows"]

SIDE, _SHIFT = 4, 2  # columns: a vector of them
_ABOVE = (1 << 63) - 1


@making("x")
def sort_rows(
    x: Any, room: Any, table: Any, n: int, inner: int, descending: bool, wide: bool, y: Any,
    size: int,
) -> None:  # fmt: skip
    """x (outer, n >= 2, inner) sorted along the middle axis; descending: its equal elements keep
    their order. room: 2 * n elements, if inner > 1. table, wide: see `packing.zeros`.
    """
    signs = False
    if x.dtype.kind == "f":
        signs = signs_tell(x, size, n)
    if inner == 1:
        start: Any = 0
        while start < size:
            _sort(x, y, table, start, start, n, size, descending, wide, signs)
            if descending:
                turned_back(y, start, start + n)
            start += n
    else:
        block: Any = 0
        while block < size:
            for c in range(inner):
                first = block + c
                for i in range(n):
                    room[i] = x[first + i * inner]
                _sort(room, room, table, 0, n, n, 2 * n, descending, wide, signs)
                for i in range(n):
                    e = n - 1 - i if descending else i
                    y[first + i * inner] = room[n + e]
            block += n * inner


def _sort(
    x: Any, y: Any, table: Any, start: Any, to: Any, n: Any, size: Any, descending: bool,
    wide: bool, signs: Any,
) -> None:  # fmt: skip
    """One row of x, from start on, sorted into y, from `to` on. signs: some zeros may be -0. size:
    elements of x and of y; what is behind the row in y is anything.
    """
    known = n < 0
    if ~sorted_row(x, start, y, to, n, size):
        turned = behind(x[start], x[start + 1], descending)
        known = _goes_on(x, start, n, turned, descending)
        if known and turned ^ descending:
            for i in range(n):
                y[to + n - 1 - i] = x[start + i]
        else:
            few = False
            if ~known:
                few = sorted_by_values(x, start, y, to, n)
            if not few:
                whole = n & -LANES
                for i in range(0, whole, LANES):
                    stored(y, to + i, loaded(x, start + i, LANES))
                for i in range(whole, n):
                    y[to + i] = x[start + i]
            if ~known and not few:
                ascend(y, to, n)
    if signs and ~known:
        give_signs(x, y, table, start, to, n, descending, wide)


def _goes_on(x: Any, start: Any, n: Any, turned: Any, descending: bool) -> Any:
    """Whether each of n elements is behind the one before it, if turned, or is not."""
    end = start + n
    k: Any = start + 1
    goes = n > 0
    while goes and k + LANES <= end:
        goes = ~_differ(x, k, turned, descending).any()
        k += LANES
    while goes and k < end:
        goes = behind(x[k - 1], x[k], descending) == turned
        k += 1
    return goes


def _differ(x: Any, k: Any, turned: Any, descending: bool) -> Any:
    """Which of the elements from k on are behind those before them, or are not, if turned."""
    return behind(loaded(x, k - 1, LANES), loaded(x, k, LANES), descending) != turned


@making("x", "like")
def order_rows(
    x: Any, like: Any, room: Any, words: Any, at: Any, n: int, inner: int, low: int,
    descending: bool, y: Any, size: int,
) -> int:  # fmt: skip
    """The stable order of x (outer, n >= 2, inner) along the middle axis, in a new array of the
    dtype of like, int64. words: n unsigned integers of 64 bits, of which `low` bits hold an index;
    room, at: as many elements of x and of like, if inner > 1. The answer is 1 where that takes too
    long, as many keys are alike in their first bits.
    """
    if inner == 1:
        start: Any = 0
        while start < size:
            if _order(x, start, words, y, start, n, low, descending):
                return 1
            start += n
    else:
        block: Any = 0
        while block < size:
            for c in range(inner):
                first = block + c
                for i in range(n):
                    room[i] = x[first + i * inner]
                if _order(room, 0, words, at, 0, n, low, descending):
                    return 1
                for i in range(n):
                    y[first + i * inner] = at[i]
            block += n * inner
    return 0


def _order(
    x: Any, start: Any, words: Any, y: Any, to: Any, n: Any, low: Any, descending: bool
) -> Any:
    """The order of one row of x, from start on, into y, from `to` on; whether that failed."""
    turned = behind(x[start], x[start + 1], descending)
    failed = n < 0
    if _goes_on(x, start, n, turned, descending):
        for i in range(n):
            y[to + i] = np.where(turned, n - 1 - i, i)
    else:
        state = packed_from(x, start, words, 1, n, low, 64 - low, descending)
        if state & 1 != 0:
            ascend(words, 0, n)
        failed = unpacked(x, start, words, 0, y, to, n, n, n, low, descending, state > 1)
    return failed


@kernel
def largest_of_short_rows(
    x: Any, words: Any, signed: Any, some: Any, values: Any, places: Any, rows: int, n: int, k: int,
    low: int,
) -> int:  # fmt: skip
    """`largest_of_rows`, by sorting `SIDE` columns of words. words: `room_of(n)`; signed: the same
    memory as int64, which vectors compare sooner. some: k + 1 words, k < n.
    """
    whole = (n + SIDE - 1) & -SIDE
    for r in range(rows):
        start = r * n
        state = packed_from(x, start, words, 1, n, low, 63 - low, True)
        for i in range(n, whole + SIDE):  # behind each column stands one that is above all
            words[i] = _ABOVE
        sort_lanes(signed, whole >> _SHIFT, SIDE, False)
        _first_of_columns(words, some, k + 1)
        if unpacked(x, start, some, 0, places, r * k, n, k + 1, k, low, True, state > 1):
            return 1
        for i in range(r * k, r * k + k):
            values[i] = x[start + places[i]]
    return 0


def room_of(n: int) -> int:
    """Words that `largest_of_short_rows` needs."""
    return -(-n // SIDE) * SIDE + SIDE


def _first_of_columns(words: Any, some: Any, count: Any) -> None:
    """The least words of columns that ascend, all different."""
    a: Any = np.int64(0)
    b: Any = np.int64(1)
    c: Any = np.int64(2)
    d: Any = np.int64(3)
    for i in range(count):
        p, q, r, s = words[a], words[b], words[c], words[d]
        least, other = min(p, q), min(r, s)
        least = min(least, other)
        some[i] = least
        a += np.where(p == least, SIDE, 0)
        b += np.where(q == least, SIDE, 0)
        c += np.where(r == least, SIDE, 0)
        d += np.where(s == least, SIDE, 0)


@kernel
def largest_of_rows(
    x: Any, words: Any, some: Any, values: Any, places: Any, rows: int, n: int, k: int, low: int,
    most: int,
) -> int:  # fmt: skip
    """The k largest of each row of x (rows, n) in descending order, and where they stand. words,
    some: n and `most` unsigned integers of 64 bits, k < most <= n, of which `low` bits hold an
    index. The answer is 1 where no bound of k + 1 to `most` of them is found, or many keys are
    alike in their first bits.
    """
    for r in range(rows):
        start = r * n
        state = packed_from(x, start, words, 1, n, low, 64 - low, True)
        if least_of_row(words, 0, some, 0, n, k + 1, most):
            return 1
        ascend(some, 0, most)
        if unpacked(x, start, some, 0, places, r * k, n, most, k, low, True, state > 1):
            return 1
        for i in range(r * k, r * k + k):
            values[i] = x[start + places[i]]
    return 0
