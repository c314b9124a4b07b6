"""Gather: elements at indices. What changes them there is `combining.py`.

A kernel gives 0, or 1 + the flat place of the first index that is out of bounds; negative indices
count from the end. i is int64, for what takes numbers of any integer dtype. Indices are looked at
some at a time.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from funct.kernels.cpu.indexing.filling import cleared
from funct.kernels.cpu.indexing.runs import copied
from funct.kernels.cpu.loops import kernel, making, parallel
from funct.kernels.cpu.vectors import asked, loaded, spread, stored

__all__ = [
    "SEEN", "all_inside", "along", "outside", "pick", "picked", "place", "placed", "same_columns",
    "take_elements", "take_few", "take_few_rows", "take_lines", "take_rows", "taken_along",
]  # fmt: skip

SEEN = 32  # indices that are looked at together
_AHEAD, _LINE = 16, 128  # indices from here stands the one of whose row so many bytes are asked for
_WIDEST = 16  # elements of a row that two vectors hold,
_NEAR = 1 << 20  # bytes of rows that lie in a near cache
_FAR = 1 << 11  # bytes of a line, of which eight are not at hand together
_SHORT = 16  # indices of a line from which on it pays to look at all first,
_BLOCK = 512  # so many of lines, or of one


def outside(i: Any, first: Any, last: Any, n: Any) -> Any:
    """0, or 1 + the place of the first index in [first, last) of i that is not in [-n, n)."""
    span = np.uint64(n + n)
    k: Any = first + 0
    while k + SEEN <= last and ~_some_outside(i, k, n):
        k += SEEN
    found: Any = np.int64(0)
    while k < last:
        k += 1
        if (i[k - 1].astype(np.int64) + n).astype(np.uint64) >= span:
            found = k
            break
    return found


def _some_outside(i: Any, k: Any, n: Any) -> Any:
    """Whether one of `SEEN` indices from k on is not in [-n, n)."""
    many = spread(np.uint64(n + n), SEEN)
    return ((loaded(i, k, SEEN).astype(np.int64) + n).astype(np.uint64) >= many).any()


def place(at: Any, n: Any) -> Any:
    """An index from the beginning on, for one that may count from the end."""
    return np.where(at < 0, at + n, at)


@kernel
def take_few(x: Any, i: Any, y: Any, outer: int, count: int, n: int, shared: bool) -> int:
    """`take_lines` of few elements; 1 + the place of an index that is out of bounds."""
    if not shared:
        found: int = _own_columns(x, i, y, 0, outer, count, n)
        return found
    wrong: int = outside(i, 0, count, n)
    if wrong > 0:
        return wrong
    same_columns(x, i, y, 0, outer, count, n)
    return 0


@kernel
def take_few_rows(x: Any, i: Any, y: Any, count: int, n: int, width: int) -> int:
    """y (count, width): few rows of x (n, width), at i; 1 where an index is out of bounds."""
    if outside(i, 0, count, n) > 0:
        return 1
    _rows(x, i, y, 0, count, count, n, width, False)
    return 0


@parallel
def take_rows(
    x: Any, i: Any, y: Any, wrong: Any, count: int, n: int, width: int, part: int, task: int
) -> None:  # fmt: skip
    """The same of many, which are asked for early; a task takes `part` rows."""
    first = task * part
    last = min(first + part, count)
    if outside(i, first, last, n) > 0:
        wrong[0] = 1
    else:
        _rows(x, i, y, first, last, count, n, width, True)


def _rows(
    x: Any, i: Any, y: Any, first: Any, last: Any, count: Any, n: Any, width: Any, far: bool
) -> None:
    if width <= 1 or width > _WIDEST or (far and n * width * x.dtype.itemsize > _NEAR):
        for k in range(first, last):
            if far:
                later = place(i[min(k + _AHEAD, count - 1)].astype(np.int64), n)
                asked(x, later * width, _LINE // x.dtype.itemsize)
            copied(x, place(i[k].astype(np.int64), n) * width, y, k * width, width)
    elif width < 4:
        _short_rows(x, i, y, first, last, n, width, 2)
    elif width < 8:
        _short_rows(x, i, y, first, last, n, width, 4)
    else:
        _short_rows(x, i, y, first, last, n, width, 8)


def _short_rows(
    x: Any, i: Any, y: Any, first: Any, last: Any, n: Any, width: Any, lanes: int
) -> None:
    """Rows of one to two vectors, which overlap: nothing is asked of a row but where it is."""
    rest = width - lanes
    for k in range(first, last):
        at, to = place(i[k].astype(np.int64), n) * width, k * width
        a, b = loaded(x, at, lanes), loaded(x, at + rest, lanes)
        stored(y, to, a)
        stored(y, to + rest, b)


@making("i", "x")
def taken_along(x: Any, i: Any, outer: int, count: int, n: int, y: Any, size: int) -> int:
    """`take_few` with indices of each line's own, in a new array."""
    found: int = _own_columns(x, i, y, 0, outer, count, n)
    return found


@parallel
def take_elements(
    x: Any, i: Any, y: Any, wrong: Any, count: int, n: int, part: int, task: int
) -> None:
    """y (count,) = x (n,) at i (count,); wrong: 1 where an index is out of bounds."""
    k: Any = np.int64(task * part)
    end = min((task + 1) * part, count)
    while k < end:
        last = min(k + SEEN, end)
        many = last == k + SEEN
        if many:
            many = all_inside(i, k, n)
        if many:  # few steps for each: the more of them does a processor have under way
            for each in range(k, last, 8):
                _eight_inside(x, 0, i, each, y)
        else:
            for each in range(k, last):
                at = place(i[each].astype(np.int64), n)
                if at.astype(np.uint64) < np.uint64(n):
                    y[each] = x[at]
                else:
                    wrong[0] = 1
        k = last


@making("i", "x")
def picked(
    x: Any, i: Any, j: Any, k: Any, n: int, m: int, l: int, three: bool, y: Any, count: int
) -> int:
    """Elements of x (n, m), at the rows i and the columns j; three: of (n, m, l), at k behind them.

    Gives 1 where an index is out of bounds.
    """
    wrong: int = _picked(x, i, j, k, y, 0, count, n, m, l, three)
    return wrong


@parallel
def pick(
    x: Any, i: Any, j: Any, k: Any, y: Any, wrong: Any, count: int, n: int, m: int, l: int,
    three: bool, part: int, task: int,
) -> None:  # fmt: skip
    """`picked`, into y; a task takes `part` elements, and wrong is 1 where an index is."""
    first: Any = np.int64(task * part)
    if _picked(x, i, j, k, y, first, min(first + part, count), n, m, l, three) > 0:
        wrong[0] = 1


def _picked(
    x: Any, i: Any, j: Any, k: Any, y: Any, first: Any, end: Any, n: Any, m: Any, l: Any,
    three: bool,
) -> Any:  # fmt: skip
    """1 where an index is out of bounds, else 0."""
    wrong: Any = np.int64(0)
    at: Any = first + 0
    while at < end:
        last = min(at + SEEN, end)
        many = last == at + SEEN
        if many:
            many = all_inside(i, at, n) & all_inside(j, at, m)
        if many and three:
            many = all_inside(k, at, l)
        if many:  # few steps for each: the more of them does a processor have under way
            for each in range(at, last, 4):
                a, b = _cell(i, j, k, each, m, l, three), _cell(i, j, k, each + 1, m, l, three)
                c, d = _cell(i, j, k, each + 2, m, l, three), _cell(i, j, k, each + 3, m, l, three)
                y[each], y[each + 1], y[each + 2], y[each + 3] = x[a], x[b], x[c], x[d]
        else:
            for each in range(at, last):
                row, column = place(i[each].astype(np.int64), n), place(j[each].astype(np.int64), m)
                outside_of = (row.astype(np.uint64) >= np.uint64(n)) | (
                    column.astype(np.uint64) >= np.uint64(m)
                )
                to = row * m + column
                if three:
                    behind = place(k[each].astype(np.int64), l)
                    outside_of = outside_of | (behind.astype(np.uint64) >= np.uint64(l))
                    to = to * l + behind
                if outside_of:
                    wrong = np.int64(1)
                else:
                    y[each] = x[to]
        at = last
    return wrong


def _cell(i: Any, j: Any, k: Any, each: Any, m: Any, l: Any, three: bool) -> Any:
    """The flat place of an element whose indices are in bounds."""
    at = i[each].astype(np.int64) * m + j[each].astype(np.int64)
    if three:
        return at * l + k[each].astype(np.int64)
    return at


def all_inside(i: Any, k: Any, n: Any) -> Any:
    """Whether `SEEN` indices from k on are in [0, n)."""
    places = loaded(i, k, SEEN).astype(np.int64).astype(np.uint64)
    return ~(places >= spread(np.uint64(n), SEEN)).any()


def _eight_inside(x: Any, base: Any, i: Any, k: Any, y: Any) -> None:
    """Eight elements of a line that begins at base, whose indices are in [0, n)."""
    a, b = base + i[k].astype(np.int64), base + i[k + 1].astype(np.int64)
    c, d = base + i[k + 2].astype(np.int64), base + i[k + 3].astype(np.int64)
    e, f = base + i[k + 4].astype(np.int64), base + i[k + 5].astype(np.int64)
    g, h = base + i[k + 6].astype(np.int64), base + i[k + 7].astype(np.int64)
    y[k], y[k + 1], y[k + 2], y[k + 3] = x[a], x[b], x[c], x[d]
    y[k + 4], y[k + 5], y[k + 6], y[k + 7] = x[e], x[f], x[g], x[h]


@parallel
def take_lines(
    x: Any, i: Any, y: Any, wrong: Any, outer: int, count: int, n: int, shared: bool, part: int,
    task: int,
) -> None:  # fmt: skip
    """y (outer, count) = x (outer, n) along the last axis, at i; a task takes `part` lines.

    shared: i is the same for all lines; else each has its own.
    """
    first = task * part
    last = min(first + part, outer)
    if not shared:
        if _own_columns(x, i, y, first, last, count, n) > 0:
            wrong[0] = 1
    elif outside(i, 0, count, n) > 0:
        wrong[0] = 1
    else:
        same_columns(x, i, y, first, last, count, n)


def same_columns(
    x: Any, i: Any, y: Any, first: Any, last: Any, count: Any, n: Any
) -> None:  # fmt: skip
    """Lines [first, last) at the same indices, which are in bounds, in each: in eight lines what is
    found out of one of them is the same.
    """
    eights = first + 0
    if n * x.dtype.itemsize < _FAR:
        eights = first + ((last - first) & -8)
    for o in range(first, eights, 8):
        for k in range(count):
            at, to = o * n + place(i[k].astype(np.int64), n), o * count + k
            a, b, c, d = x[at], x[at + n], x[at + 2 * n], x[at + 3 * n]
            at += 4 * n
            y[to], y[to + count], y[to + 2 * count], y[to + 3 * count] = a, b, c, d
            a, b, c, d = x[at], x[at + n], x[at + 2 * n], x[at + 3 * n]
            to += 4 * count
            y[to], y[to + count], y[to + 2 * count], y[to + 3 * count] = a, b, c, d
    for o in range(eights, last):
        _line(x, o * n, i, 0, y, o * count, count, n)


def _own_columns(x: Any, i: Any, y: Any, first: Any, last: Any, count: Any, n: Any) -> Any:
    """Lines [first, last) with indices of their own: all of several lines, or of a part of one, are
    looked at first, but where lines are short.

    0, or 1 + the place of an index that is out of bounds.
    """
    found: Any = np.int64(0)
    if count < _SHORT:
        found = _one_by_one(x, i, y, first, last, 0, count, count, n)
    else:
        piece = min(count, _BLOCK)
        lines: Any = np.int64(1)
        while lines * (piece + piece) <= _BLOCK:
            lines += lines
        o = first + 0
        while o < last:
            end = min(o + lines, last)
            start: Any = np.int64(0)
            while start < count:
                width = min(piece, count - start)
                if _none_outside(i, o * count + start, (end - 1) * count + start + width, n):
                    for line in range(o, end):
                        base, at = line * n, line * count + start
                        eights = width & -8
                        for k in range(0, eights, 8):
                            _eight_inside(x, base, i, at + k, y)
                        for k in range(eights, width):
                            y[at + k] = x[base + i[at + k].astype(np.int64)]
                else:
                    wrong = _one_by_one(x, i, y, o, end, start, width, count, n)
                    found = np.where(wrong > 0, wrong, found)
                start += width
            o = end
    return found


def _none_outside(i: Any, first: Any, last: Any, n: Any) -> Any:
    """Whether all indices of [first, last) are in [0, n)."""
    good: Any = first <= last
    k: Any = first + 0
    while k + SEEN <= last and good:
        good = all_inside(i, k, n)
        k += SEEN
    while k < last and good:
        good = i[k].astype(np.int64).astype(np.uint64) < np.uint64(n)
        k += 1
    return good


def _one_by_one(
    x: Any, i: Any, y: Any, first: Any, last: Any, start: Any, width: Any, count: Any, n: Any
) -> Any:
    """Columns [start, start + width) of lines [first, last) with indices of their own, each looked
    at where it is used: 0, or 1 + the place of one that is out of bounds.
    """
    found: Any = np.int64(0)
    for o in range(first, last):
        base = o * n
        for each in range(o * count + start, o * count + start + width):
            at = i[each].astype(np.int64)
            if at < 0:
                at += n
            if at.astype(np.uint64) < np.uint64(n):
                y[each] = x[base + at]
            else:
                found = each + 1
    return found


def _line(x: Any, base: Any, i: Any, start: Any, y: Any, to: Any, count: Any, n: Any) -> None:
    """y, from `to` on: count elements of a line of n that begins at base. Indices are in bounds, so
    none is waited for; to gather elements into a vector takes longer.
    """
    eights = count & -8
    for k in range(0, eights, 8):
        _eight(x, base, i, start + k, y, to + k, n)
    for k in range(eights, count):
        y[to + k] = x[base + place(i[start + k].astype(np.int64), n)]


def _eight(x: Any, base: Any, i: Any, k: Any, y: Any, to: Any, n: Any) -> None:
    """Eight elements whose indices are in bounds."""
    a, b = base + place(i[k].astype(np.int64), n), base + place(i[k + 1].astype(np.int64), n)
    c, d = base + place(i[k + 2].astype(np.int64), n), base + place(i[k + 3].astype(np.int64), n)
    e, f = base + place(i[k + 4].astype(np.int64), n), base + place(i[k + 5].astype(np.int64), n)
    g, h = base + place(i[k + 6].astype(np.int64), n), base + place(i[k + 7].astype(np.int64), n)
    y[to], y[to + 1], y[to + 2], y[to + 3] = x[a], x[b], x[c], x[d]
    y[to + 4], y[to + 5], y[to + 6], y[to + 7] = x[e], x[f], x[g], x[h]


@kernel
def along(x: Any, i: Any, y: Any, outer: int, count: int, n: int, inner: int, taken: bool) -> int:
    """Along the middle axis of one (outer, n, inner), at i (outer, count, inner).

    taken: y, of i's shape, is x there; else y is 0, and x, of i's shape, is added to it there: a
    table at a time, which is in a cache then.
    """
    each = 0
    for o in range(outer):
        if not taken:
            cleared(y, o * n * inner, (o + 1) * n * inner)
        for _ in range(count):
            for j in range(inner):
                at = i[each]
                if at < 0:
                    at += n
                if at.astype(np.uint64) >= np.uint64(n):
                    return each + 1
                at = (o * n + at) * inner + j
                if taken:
                    y[each] = x[at]
                else:
                    y[at] = y[at] + x[each]
                each += 1
    return 0


@making("i")
def placed(i: Any, j: Any, n: int, m: int, y: Any, count: int) -> int:
    """The flat places of elements of (n, m), at the rows i and the columns j: arrays of one shape.

    Gives 1 where an index is out of bounds.
    """
    whole = count & -SEEN
    for k in range(0, whole, SEEN):
        row = place(loaded(i, k, SEEN), n)
        column = place(loaded(j, k, SEEN).astype(np.int64), m)
        wrong = row.astype(np.uint64) >= spread(np.uint64(n), SEEN)
        if (wrong | (column.astype(np.uint64) >= spread(np.uint64(m), SEEN))).any():
            return 1
        stored(y, k, row * m + column)
    for k in range(whole, count):
        at, to = place(i[k], n), place(j[k].astype(np.int64), m)
        if (at.astype(np.uint64) >= np.uint64(n)) | (to.astype(np.uint64) >= np.uint64(m)):
            return 1
        y[k] = at * m + to
    return 0
