"""Scatter: what stands at indices is combined with numbers, in the order of the indices, so sums
have NumPy's bits.

As in `gather.py`, a kernel gives 0, or 1 + the place of the first index that is out of bounds.
It looks at indices in a pass of its own, in vectors, and then has no branch.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from funct.kernels.cpu.indexing.filling import cleared
from funct.kernels.cpu.indexing.gather import SEEN, all_inside, outside, place
from funct.kernels.cpu.indexing.runs import copied
from funct.kernels.cpu.loops import kernel, making, parallel
from funct.kernels.cpu.vectors import asked, detached, loaded, spread, stored
from funct.kernels.dtypes import is_half

__all__ = [
    "add_elements", "combine", "combine_columns", "combine_rows", "combined", "combined_columns",
    "combined_one", "combined_pairs", "combined_rows", "combined_view", "picked", "summed",
]  # fmt: skip

_LANES = 8
_EACH = tuple(range(_LANES))
_HALF, _SINGLE = np.dtype(np.float16), np.dtype(np.float32)
_AHEAD = 16  # indices from here stands the one whose row is asked for


@kernel
def add_elements(
    g: Any, i: Any, y: Any, outer: int, count: int, n: int, mode: str, drop: bool
) -> int:  # fmt: skip
    """y (outer, n) += g (outer, count) at i (count,). drop: indices outside [0, n) are left out.

    mode: "add", or "max", which is the sum of truth in bytes.
    """
    wrong: Any = np.int64(0)
    for o in range(outer):
        wrong = _added_each(g, o * count, i, y, o * n, count, n, mode, drop)
        if wrong > 0:
            break
    return wrong


@making("n", "data")
def summed(data: Any, ids: Any, n: int, count: int, mode: str, y: Any, size: int) -> None:
    """Sums of data (count,) by ids (count,) in a new array of n numbers; ids outside of it are left
    out. n > 0. mode: as above.
    """
    cleared(y, 0, n)
    _added_each(data, 0, ids, y, 0, count, n, mode, True)


def _added_each(
    g: Any, start: Any, i: Any, y: Any, base: Any, count: Any, n: Any, mode: str, drop: bool
) -> Any:  # fmt: skip
    """y (n,) from `base` on += g from `start` on, at i (count,); 1 + the place of an index that is
    out of bounds, or 0.

    The sum of a run of one index stays in a register: to add to what has just been written waits
    for it. Whether there is a run is asked of several indices at once, which processors foresee.
    """
    wrong: Any = np.int64(0)
    k: Any = np.int64(0)
    while k < count:
        last = min(k + _LANES, count)
        known = last == k + _LANES
        if known:
            known = (_places(i, k).view(np.uint64) < spread(np.uint64(n), _LANES)).all()
        if known:
            at = i[k].astype(np.int64)
            if (_places(i, k) == spread(at, _LANES)).all():
                total = y[base + at]
                for e in _EACH:
                    total = combined_one(total, g[start + k + e], mode)
                y[base + at] = total
            else:
                for e in _EACH:
                    at = base + i[k + e].astype(np.int64)
                    y[at] = combined_one(y[at], g[start + k + e], mode)
        else:
            for e in range(k, last):
                at = i[e].astype(np.int64)
                if not drop:
                    at = np.where(at < 0, at + n, at)
                if at.astype(np.uint64) < np.uint64(n):
                    y[base + at] = combined_one(y[base + at], g[start + e], mode)
                elif not drop:
                    wrong = e + 1
                    break
            if wrong > 0:
                break
        k = last
    return wrong


def _places(i: Any, k: Any) -> Any:
    return loaded(i, k, _LANES).astype(np.int64)


@parallel
def combine_rows(
    g: Any, i: Any, y: Any, wrong: Any, outer: int, count: int, n: int, inner: int, width: int,
    begin: int, step: int, apart: bool, mode: str, drop: bool, far: bool, part: int, task: int,
) -> None:  # fmt: skip
    """The columns from `begin` on of y (outer, n, width) combined with g (outer, count, inner) at i
    (count,): see `combine`. apart: every `step`-th of them, else all.

    A task changes `part` columns, so nobody else writes where it does. drop: as above, else wrong
    is 1 where an index is out of bounds, and nothing is changed. far: y is in no cache, so its rows
    are asked for early; processors wait with what they read until they know where they write.
    """
    first = task * part
    last = min(first + part, inner)
    whole = first + ((last - first) & -_LANES)
    if not drop and outside(i, 0, count, n) > 0:
        wrong[0] = 1
        outer = 0
    for o in range(outer):
        for k in range(count):
            if far:
                later = place(i[min(k + _AHEAD, count - 1)], n)
                asked(y, (o * n + later) * width + begin + first, _LANES)
            at = i[k] if drop else place(i[k], n)
            if at.astype(np.uint64) < np.uint64(n):
                to = (o * n + at) * width + begin
                source = (o * count + k) * inner
                if apart:
                    for j in range(first, last):
                        there = to + j * step
                        y[there] = combined_one(y[there], g[source + j], mode)
                else:
                    for j in range(first, whole, _LANES):
                        old = detached(loaded(y, to + j, _LANES))
                        new = loaded(g, source + j, _LANES)
                        stored(y, to + j, combined_one(old, new, mode))
                    for j in range(whole, last):
                        y[to + j] = combined_one(y[to + j], g[source + j], mode)


@parallel
def combine_columns(
    x: Any, v: Any, i: Any, y: Any, wrong: Any, outer: int, count: int, n: int, mode: str,
    part: int, task: int,
) -> None:  # fmt: skip
    """`combined_columns`, into y; a task makes `part` rows, and wrong is 1 where an index is out of
    bounds.
    """
    if outside(i, 0, count, n) > 0:
        wrong[0] = 1
    else:
        _combine_columns(x, v, i, y, task * part, min((task + 1) * part, outer), count, n, mode)


@making("x")
def combined_columns(
    x: Any, v: Any, i: Any, outer: int, count: int, n: int, mode: str, y: Any, size: int
) -> int:
    """x (outer, n) combined with v (outer, count) at the columns i (count,) of every row, in a new
    array.
    """
    if outside(i, 0, count, n) > 0:
        return 1
    _combine_columns(x, v, i, y, 0, outer, count, n, mode)
    return 0


def _combine_columns(
    x: Any, v: Any, i: Any, y: Any, first: Any, last: Any, count: Any, n: Any, mode: str
) -> None:
    """Rows [first, last), some together: they share what is found out of an index, and none waits
    for what is written into another.
    """
    whole = first + ((last - first) & -_LANES)
    for o in range(first, whole, _LANES):
        copied(x, o * n, y, o * n, _LANES * n)
        for k in range(count):
            at, source = o * n + place(i[k].astype(np.int64), n), o * count + k
            for e in _EACH:
                y[at + e * n] = combined_one(y[at + e * n], v[source + e * count], mode)
    for o in range(whole, last):
        copied(x, o * n, y, o * n, n)
        for k in range(count):
            at = o * n + place(i[k].astype(np.int64), n)
            y[at] = combined_one(y[at], v[o * count + k], mode)


@kernel
def combine(v: Any, i: Any, y: Any, count: int, n: int, mode: str) -> int:
    """y (n,) combined with v at i, both (count,): "set", "add", "multiply", "min", "max". It stays
    as it is where an index is wrong.
    """
    wrong: int = outside(i, 0, count, n)
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
    _begun(x, y, size, mode)
    wrong: int = _combine_each(v, i, y, count, n, m, column, mode, single)
    return wrong


@making("x")
def combined_rows(
    x: Any, v: Any, i: Any, count: int, n: int, inner: int, width: int, begin: int, mode: str,
    single: bool, y: Any, size: int,
) -> int:  # fmt: skip
    """`combine` of rows v (count, inner) with what stands from the column `begin` on in those of x
    (n, width) in a new array.
    """
    if outside(i, 0, count, n) > 0:
        return 1
    _begun(x, y, size, mode)
    whole = inner & -_LANES
    for k in range(count):
        to, source = place(i[k].astype(np.int64), n) * width + begin, k * inner
        for j in range(0, whole, _LANES):
            new = spread(y.dtype.type(v), _LANES) if single else loaded(v, source + j, _LANES)
            stored(y, to + j, combined_one(detached(loaded(y, to + j, _LANES)), new, mode))
        for j in range(whole, inner):
            y[to + j] = combined_one(y[to + j], picked(v, source + j, y.dtype, single), mode)
    return 0


@making("x")
def combined_view(
    x: Any, v: Any, first: int, rows: int, pitch: int, count: int, step: int, mode: str,
    single: bool, dense: bool, y: Any, size: int,
) -> None:  # fmt: skip
    """`combine` in a new array of what stands in `rows` rows, `pitch` elements apart, of `count`
    elements each, `step` apart (dense: they are side by side), from `first` on.
    """
    _begun(x, y, size, mode)
    whole = count & -_LANES if dense else 0
    for r in range(rows):
        to, source = first + r * pitch, r * count
        for k in range(0, whole, _LANES):
            new = spread(y.dtype.type(v), _LANES) if single else loaded(v, source + k, _LANES)
            stored(y, to + k, combined_one(detached(loaded(y, to + k, _LANES)), new, mode))
        for k in range(whole, count):
            at = to + k * step
            y[at] = combined_one(y[at], picked(v, source + k, y.dtype, single), mode)


def _combine_each(
    v: Any, i: Any, y: Any, count: Any, n: Any, m: Any, column: Any, mode: str, single: bool
) -> Any:
    """0, or 1 + the place of an index that is out of bounds, before which all are combined."""
    wrong: Any = np.int64(0)
    first: Any = np.int64(0)
    while first < count:
        last = min(first + SEEN, count)
        many = last == first + SEEN
        if many:
            many = all_inside(i, first, n)
        if many:
            for k in range(first, last, 4):
                a, b = _under(i, k, m, column), _under(i, k + 1, m, column)
                c, d = _under(i, k + 2, m, column), _under(i, k + 3, m, column)
                _changed_four(y, v, a, b, c, d, k, mode, single)
        else:
            wrong = outside(i, first, last, n)
            if wrong > 0:
                break
            for k in range(first, last):
                row = place(i[k].astype(np.int64), n)
                _changed(y, v, row * m + column, k, mode, single)
        first = last
    return wrong


@making("x")
def combined_pairs(
    x: Any, v: Any, i: Any, j: Any, count: int, n: int, m: int, mode: str, single: bool, y: Any,
    size: int,
) -> int:  # fmt: skip
    """`combined` for x (n, m), at the rows i and the columns j, both (count,)."""
    _begun(x, y, size, mode)
    wrong: Any = np.int64(0)
    first: Any = np.int64(0)
    while first < count:
        last = min(first + SEEN, count)
        many = last == first + SEEN
        if many:
            many = all_inside(i, first, n) & all_inside(j, first, m)
        if many:
            for k in range(first, last, 4):
                a, b = _pair(i, j, k, m), _pair(i, j, k + 1, m)
                c, d = _pair(i, j, k + 2, m), _pair(i, j, k + 3, m)
                _changed_four(y, v, a, b, c, d, k, mode, single)
        else:
            wrong = max(outside(i, first, last, n), outside(j, first, last, m))
            if wrong > 0:
                break
            for k in range(first, last):
                row, column = place(i[k].astype(np.int64), n), place(j[k].astype(np.int64), m)
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


def _under(i: Any, k: Any, m: Any, column: Any) -> Any:
    """The place of an element of a column in rows of m, whose row is inside."""
    return i[k].astype(np.int64) * m + column


def _pair(i: Any, j: Any, k: Any, m: Any) -> Any:
    """The place of an element in rows of m, whose row and column are inside."""
    return i[k].astype(np.int64) * m + j[k].astype(np.int64)


def _begun(x: Any, y: Any, n: Any, mode: str) -> None:
    """y as it is before anything is combined."""
    lanes = n & -SEEN
    for k in range(0, lanes, SEEN):
        stored(y, k, spread(_one(x), SEEN) if mode == "factors" else loaded(x, k, SEEN))
    for k in range(lanes, n):
        y[k] = _one(x) if mode == "factors" else x[k]


def _one(x: Any) -> Any:
    return x.dtype.type(1)


def _changed(y: Any, v: Any, at: Any, k: Any, mode: str, single: bool) -> None:
    y[at] = combined_one(y[at], picked(v, k, y.dtype, single), mode)


def picked(v: Any, k: Any, dtype: Any, single: bool) -> Any:
    """An element of v, or v where it is a number."""
    if single:
        return dtype.type(v)
    return v[k]


def combined_one(a: Any, b: Any, mode: str) -> Any:
    """a combined with b; halves in float32 and rounded, which gives what their arithmetic does."""
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
