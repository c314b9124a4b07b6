"""Gather and scatter. Writes happen in the order of the indices, so sums have NumPy's bits.

A kernel gives 0, or 1 + the flat place of the first index that is out of bounds; negative indices
count from the end. i is int64, for what takes numbers or changes them of any integer dtype. What
scatters looks at indices in a pass of its own, in vectors, and then has no branch; what takes does
so some at a time.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from funct.kernels.cpu.irregular.filling import cleared
from funct.kernels.cpu.loops import kernel, making, parallel
from funct.kernels.cpu.vectors import asked, chosen, loaded, spread, stored
from funct.kernels.dtypes import is_half

__all__ = [
    "add_elements", "along", "combine", "combine_rows", "combined", "combined_pairs", "placed",
    "summed", "take_columns", "take_elements", "take_few", "take_lines", "taken_along",
]  # fmt: skip

_LANES = 8
_HALF, _SINGLE = np.dtype(np.float16), np.dtype(np.float32)
_AHEAD = 16  # indices from here stands the one whose row is asked for
_SEEN = 32  # indices that are looked at together
_BYTES = 64  # of a vector in which elements change places
_SHORT, _LONG = 16, 256  # indices of a line between which it pays to look at all lines' first


def _outside(i: Any, first: Any, last: Any, n: Any) -> Any:
    """0, or 1 + the place of the first index in [first, last) of i that is not in [-n, n)."""
    span = np.uint64(n + n)
    k: Any = first + 0
    while k + _SEEN <= last and ~_some_outside(i, k, n):
        k += _SEEN
    found: Any = np.int64(0)
    while k < last:
        k += 1
        if (i[k - 1].astype(np.int64) + n).astype(np.uint64) >= span:
            found = k
            break
    return found


def _some_outside(i: Any, k: Any, n: Any) -> Any:
    """Whether one of `_SEEN` indices from k on is not in [-n, n)."""
    many = spread(np.uint64(n + n), _SEEN)
    return ((loaded(i, k, _SEEN).astype(np.int64) + n).astype(np.uint64) >= many).any()


def _place(at: Any, n: Any) -> Any:
    """An index from the beginning on, for one that may count from the end."""
    return np.where(at < 0, at + n, at)


@kernel
def add_elements(g: Any, i: Any, y: Any, outer: int, count: int, n: int, drop: bool) -> int:
    """y (outer, n) += g (outer, count) at i (count,). drop: indices outside [0, n) are left out."""
    for o in range(outer):
        last = o * n
        total = y[last]  # the sum at `last` stays in a register while the index stays
        for k in range(count):
            at = i[k].astype(np.int64)
            if not drop and at < 0:
                at += n
            if at.astype(np.uint64) < np.uint64(n):
                at += o * n
                if at != last:
                    y[last] = total
                    last = at
                    total = y[at]
                total = total + g[o * count + k]
            elif not drop:
                return k + 1
        y[last] = total
    return 0


@making("n", "data")
def summed(data: Any, ids: Any, n: int, count: int, y: Any, size: int) -> None:
    """Sums of data (count,) by ids (count,) in a new array of n numbers; ids outside of it are left
    out. n > 0.
    """
    cleared(y, n)
    last: Any = np.int64(0)
    total = y.dtype.type(0)  # the sum at `last` stays in a register while the index stays
    for k in range(count):
        at = ids[k].astype(np.int64)
        if at.astype(np.uint64) < np.uint64(n):
            if at != last:
                y[last] = total
                last = at
                total = y[at]
            total = total + data[k]
    y[last] = total


@parallel
def combine_rows(
    g: Any, i: Any, y: Any, wrong: Any, outer: int, count: int, n: int, inner: int, mode: str,
    drop: bool, far: bool, part: int, task: int,
) -> None:  # fmt: skip
    """y (outer, n, inner) combined with g (outer, count, inner) at i (count,): see `combine`.

    A task changes `part` columns, so nobody else writes where it does. drop: as above, else wrong
    is 1 where an index is out of bounds, and nothing is changed. far: y is in no cache, so its rows
    are asked for early; processors wait with what they read until they know where they write.
    """
    first = task * part
    last = min(first + part, inner)
    whole = first + ((last - first) & -_LANES)
    if not drop and _outside(i, 0, count, n) > 0:
        wrong[0] = 1
        outer = 0
    for o in range(outer):
        for k in range(count):
            if far:
                later = _place(i[min(k + _AHEAD, count - 1)], n)
                asked(y, (o * n + later) * inner + first, _LANES)
            at = i[k] if drop else _place(i[k], n)
            if at.astype(np.uint64) < np.uint64(n):
                to = (o * n + at) * inner
                source = (o * count + k) * inner
                for j in range(first, whole, _LANES):
                    new = loaded(g, source + j, _LANES)
                    stored(y, to + j, _combined(loaded(y, to + j, _LANES), new, mode))
                for j in range(whole, last):
                    y[to + j] = _combined(y[to + j], g[source + j], mode)


@kernel
def take_few(x: Any, i: Any, y: Any, outer: int, count: int, n: int, shared: bool) -> int:
    """`take_lines` of few elements; 1 + the place of an index that is out of bounds."""
    if not shared and ((count < _SHORT) | (count >= _LONG)):
        found: int = _one_by_one(x, i, y, 0, outer, count, n)
        return found
    wrong: int = _outside(i, 0, count if shared else outer * count, n)
    if wrong > 0:
        return wrong
    for o in range(outer):
        _line(x, o * n, i, 0 if shared else o * count, y, o * count, count, n)
    return 0


@making("i", "x")
def taken_along(x: Any, i: Any, outer: int, count: int, n: int, y: Any, size: int) -> int:
    """`take_few` with indices of each line's own, in a new array."""
    if (count < _SHORT) | (count >= _LONG):
        found: int = _one_by_one(x, i, y, 0, outer, count, n)
        return found
    wrong: int = _outside(i, 0, size, n)
    if wrong > 0:
        return wrong
    for o in range(outer):
        _line(x, o * n, i, o * count, y, o * count, count, n)
    return 0


@parallel
def take_elements(
    x: Any, i: Any, y: Any, wrong: Any, count: int, n: int, part: int, task: int
) -> None:
    """y (count,) = x (n,) at i (count,); wrong: 1 where an index is out of bounds."""
    k: Any = np.int64(task * part)
    end = min((task + 1) * part, count)
    while k < end:
        last = min(k + _SEEN, end)
        many = last == k + _SEEN
        if many:
            many = _all_inside(i, k, n)
        if many:  # few steps for each: the more of them does a processor have under way
            for each in range(k, last, 8):
                _eight_inside(x, i, each, y)
        else:
            for each in range(k, last):
                at = _place(i[each].astype(np.int64), n)
                if at.astype(np.uint64) < np.uint64(n):
                    y[each] = x[at]
                else:
                    wrong[0] = 1
        k = last


def _all_inside(i: Any, k: Any, n: Any) -> Any:
    """Whether `_SEEN` indices from k on are in [0, n)."""
    places = loaded(i, k, _SEEN).astype(np.int64).astype(np.uint64)
    return ~(places >= spread(np.uint64(n), _SEEN)).any()


def _eight_inside(x: Any, i: Any, k: Any, y: Any) -> None:
    """Eight elements whose indices are in [0, n)."""
    a, b = i[k].astype(np.int64), i[k + 1].astype(np.int64)
    c, d = i[k + 2].astype(np.int64), i[k + 3].astype(np.int64)
    e, f = i[k + 4].astype(np.int64), i[k + 5].astype(np.int64)
    g, h = i[k + 6].astype(np.int64), i[k + 7].astype(np.int64)
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
    if not shared and ((count < _SHORT) | (count >= _LONG)):
        if _one_by_one(x, i, y, first, last, count, n) > 0:
            wrong[0] = 1
        last = first
    elif _outside(i, 0 if shared else first * count, count if shared else last * count, n) > 0:
        wrong[0] = 1
        last = first
    for o in range(first, last):
        _line(x, o * n, i, 0 if shared else o * count, y, o * count, count, n)


@parallel
def take_columns(
    x: Any, i: Any, y: Any, outer: int, count: int, n: int, fits: str, part: int, task: int
) -> None:
    """y (outer, count) = x (outer, n) along the last axis, at the same i in [0, n) in each line.

    fits: where a line of x and one of y are two vectors at most ("two", or "one" that x is), i has
    as many as two, in integers as wide as x, and lines are put together in registers; the next
    line covers what is too long. Else it is empty.
    """
    first = task * part
    last = min(first + part, outer)
    begun = first + 0
    if fits:
        size = _BYTES // x.dtype.itemsize
        begun = max(first, last - 2 * size)  # behind others write, and arrays end
        early, late = loaded(i, 0, size), loaded(i, size, size)
        for o in range(first, begun):
            a = loaded(x, o * n, size)
            b = loaded(x, o * n + size, size) if fits == "two" else a
            stored(y, o * count, chosen(a, b, early))
            if count > size:
                stored(y, o * count + size, chosen(a, b, late))
    eights = begun + ((last - begun) & -8)
    for o in range(begun, eights, 8):
        for k in range(count):
            at, to = o * n + i[k].astype(np.int64), o * count + k
            a, b, c, d = x[at], x[at + n], x[at + 2 * n], x[at + 3 * n]
            at += 4 * n
            y[to], y[to + count], y[to + 2 * count], y[to + 3 * count] = a, b, c, d
            a, b, c, d = x[at], x[at + n], x[at + 2 * n], x[at + 3 * n]
            to += 4 * count
            y[to], y[to + count], y[to + 2 * count], y[to + 3 * count] = a, b, c, d
    for o in range(eights, last):
        for k in range(count):
            y[o * count + k] = x[o * n + i[k].astype(np.int64)]


def _one_by_one(x: Any, i: Any, y: Any, first: Any, last: Any, count: Any, n: Any) -> Any:
    """Lines [first, last) with indices of their own, each looked at where it is used.

    0, or 1 + the place of an index that is out of bounds.
    """
    found: Any = np.int64(0)
    for o in range(first, last):
        base = o * n
        for each in range(o * count, (o + 1) * count):
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
        y[to + k] = x[base + _place(i[start + k].astype(np.int64), n)]


def _eight(x: Any, base: Any, i: Any, k: Any, y: Any, to: Any, n: Any) -> None:
    """Eight elements whose indices are in bounds."""
    a, b = base + _place(i[k].astype(np.int64), n), base + _place(i[k + 1].astype(np.int64), n)
    c, d = base + _place(i[k + 2].astype(np.int64), n), base + _place(i[k + 3].astype(np.int64), n)
    e, f = base + _place(i[k + 4].astype(np.int64), n), base + _place(i[k + 5].astype(np.int64), n)
    g, h = base + _place(i[k + 6].astype(np.int64), n), base + _place(i[k + 7].astype(np.int64), n)
    y[to], y[to + 1], y[to + 2], y[to + 3] = x[a], x[b], x[c], x[d]
    y[to + 4], y[to + 5], y[to + 6], y[to + 7] = x[e], x[f], x[g], x[h]


@kernel
def along(x: Any, i: Any, y: Any, outer: int, count: int, n: int, inner: int, taken: bool) -> int:
    """Along the middle axis of one (outer, n, inner), at i (outer, count, inner).

    taken: y, of i's shape, is x there; else x, of i's shape, is added to y there.
    """
    each = 0
    for o in range(outer):
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


@kernel
def combine(v: Any, i: Any, y: Any, count: int, n: int, mode: str) -> int:
    """y (n,) combined with v at i, both (count,): "set", "add", "multiply", "min", "max". It stays
    as it is where an index is wrong.
    """
    wrong: int = _outside(i, 0, count, n)
    if wrong > 0:
        return wrong
    wrong = _combine_each(v, i, y, count, n, 1, 0, mode, False)
    return wrong


@making("x")
def combined(
    x: Any, v: Any, i: Any, count: int, n: int, m: int, column: int, mode: str, single: bool,
    y: Any, size: int,
) -> int:  # fmt: skip
    """`combine` of one column of x (n, m) in a new array, which for "factors" is 1 at first.

    single: v is a number.
    """
    _begun(x, y, size, mode, True)
    wrong: int = _combine_each(v, i, y, count, n, m, column, mode, single)
    return wrong


def _combine_each(
    v: Any, i: Any, y: Any, count: Any, n: Any, m: Any, column: Any, mode: str, single: bool
) -> Any:
    """0, or 1 + the place of an index that is out of bounds, before which all are combined."""
    wrong: Any = np.int64(0)
    first: Any = np.int64(0)
    while first < count:
        last = min(first + _SEEN, count)
        many = last == first + _SEEN
        if many:
            many = _all_inside(i, first, n)
        if many:
            for k in range(first, last, 4):
                a, b = _under(i, k, m, column), _under(i, k + 1, m, column)
                c, d = _under(i, k + 2, m, column), _under(i, k + 3, m, column)
                _changed_four(y, v, a, b, c, d, k, mode, single)
        else:
            wrong = _outside(i, first, last, n)
            if wrong > 0:
                break
            for k in range(first, last):
                row = _place(i[k].astype(np.int64), n)
                _changed(y, v, row * m + column, k, mode, single)
        first = last
    return wrong


@making("x")
def combined_pairs(
    x: Any, v: Any, i: Any, j: Any, count: int, n: int, m: int, mode: str, single: bool, y: Any,
    size: int,
) -> int:  # fmt: skip
    """`combined` for x (n, m), at the rows i and the columns j, both (count,)."""
    _begun(x, y, size, mode, True)
    wrong: Any = np.int64(0)
    first: Any = np.int64(0)
    while first < count:
        last = min(first + _SEEN, count)
        many = last == first + _SEEN
        if many:
            many = _all_inside(i, first, n) & _all_inside(j, first, m)
        if many:
            for k in range(first, last, 4):
                a, b = _pair(i, j, k, m), _pair(i, j, k + 1, m)
                c, d = _pair(i, j, k + 2, m), _pair(i, j, k + 3, m)
                _changed_four(y, v, a, b, c, d, k, mode, single)
        else:
            wrong = max(_outside(i, first, last, n), _outside(j, first, last, m))
            if wrong > 0:
                break
            for k in range(first, last):
                row, column = _place(i[k].astype(np.int64), n), _place(j[k].astype(np.int64), m)
                _changed(y, v, row * m + column, k, mode, single)
        first = last
    return wrong


def _changed_four(
    y: Any, v: Any, a: Any, b: Any, c: Any, d: Any, k: Any, mode: Any, single: Any
) -> None:
    """`_changed` at four places, in their order."""
    _changed(y, v, a, k, mode, single)
    _changed(y, v, b, k + 1, mode, single)
    _changed(y, v, c, k + 2, mode, single)
    _changed(y, v, d, k + 3, mode, single)


@making("i")
def placed(i: Any, j: Any, n: int, m: int, y: Any, count: int) -> int:
    """The flat places of elements of (n, m), at the rows i and the columns j: arrays of one shape.

    Gives 1 where an index is out of bounds.
    """
    whole = count & -_SEEN
    for k in range(0, whole, _SEEN):
        row = _place(loaded(i, k, _SEEN), n)
        column = _place(loaded(j, k, _SEEN).astype(np.int64), m)
        outside = row.astype(np.uint64) >= spread(np.uint64(n), _SEEN)
        if (outside | (column.astype(np.uint64) >= spread(np.uint64(m), _SEEN))).any():
            return 1
        stored(y, k, row * m + column)
    for k in range(whole, count):
        at, to = _place(i[k], n), _place(j[k].astype(np.int64), m)
        if (at.astype(np.uint64) >= np.uint64(n)) | (to.astype(np.uint64) >= np.uint64(m)):
            return 1
        y[k] = at * m + to
    return 0


def _under(i: Any, k: Any, m: Any, column: Any) -> Any:
    """The place of an element of a column in rows of m, whose row is inside."""
    return i[k].astype(np.int64) * m + column


def _pair(i: Any, j: Any, k: Any, m: Any) -> Any:
    """The place of an element in rows of m, whose row and column are inside."""
    return i[k].astype(np.int64) * m + j[k].astype(np.int64)


def _begun(x: Any, y: Any, n: Any, mode: str, fresh: bool) -> None:
    """Fresh y as it is before anything is combined."""
    lanes = n & -_SEEN if fresh else 0
    for k in range(0, lanes, _SEEN):
        stored(y, k, spread(_one(x), _SEEN) if mode == "factors" else loaded(x, k, _SEEN))
    for k in range(lanes, n if fresh else 0):
        y[k] = _one(x) if mode == "factors" else x[k]


def _one(x: Any) -> Any:
    return x.dtype.type(1)


def _changed(y: Any, v: Any, at: Any, k: Any, mode: str, single: bool) -> None:
    y[at] = _combined(y[at], _picked(v, k, y.dtype, single), mode)


def _picked(v: Any, k: Any, dtype: Any, single: bool) -> Any:
    if single:
        return dtype.type(v)
    return v[k]


def _combined(a: Any, b: Any, mode: str) -> Any:
    """Halves are combined in float32 and rounded, which gives what their own arithmetic does."""
    if mode == "set":
        return b
    if is_half(a.dtype):
        stays = a.dtype == _HALF
        return _made(a.astype(_SINGLE), b.astype(_SINGLE), mode, stays).astype(a.dtype)
    return _made(a, b, mode, False)


def _made(a: Any, b: Any, mode: str, stays: bool) -> Any:
    """stays: of equal zeros a, as NumPy has it for float16, else b."""
    if mode == "add":
        return a + b
    if mode == "multiply" or mode == "factors":
        return a * b
    if stays:
        return np.where((a <= b if mode == "min" else a >= b) | (a != a), a, b)
    return np.where((a < b if mode == "min" else a > b) | (a != a), a, b)
