"""Products of a sparse matrix by rows: entries of row r stand at indptr[r] … indptr[r + 1].

Where there are tasks, each takes `part` rows. `fits` says whether all indices are in bounds; the
others take that for granted.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from funct.kernels.cpu.indexing.filling import cleared
from funct.kernels.cpu.loops import kernel, making, parallel
from funct.kernels.cpu.vectors import gathered, loaded, picked, room, spread, stored

__all__ = [
    "LANES", "checked_matvec", "checked_scattered", "dots", "fits", "matmul", "matvec",
    "product_of_few", "scattered",
]  # fmt: skip

LANES = 8
_BLOCK = 4 * LANES  # columns whose sums stay in registers
_ROWS, _SIDE = 32, 4
_FEW, _SHORT, _LONG = 2, 8, 32  # entries of rows, between which many end, and whose ends cost
_MEANS = 4  # how much longer than others a row may be
_ROOM_BITS = 10
_ROOM = 1 << _ROOM_BITS
_EVEN, _ODD = (0, 4, 2, 6), (1, 5, 3, 7)  # of two rows, and of two pairs: columns become rows
_FIRST, _LAST = (0, 1, 4, 5), (2, 3, 6, 7)


_UNSIGNED = {4: np.uint32, 8: np.uint64}
_MANY = 16


@kernel
def fits(indices: Any, indptr: Any, entries: int, rows: int, most: int) -> int:
    """1 if columns are in [0, most], a number of their dtype, and rows begin in order."""
    if _misfits(indices, indptr, entries, rows, most):
        return 0
    return 1


def _misfits(indices: Any, indptr: Any, entries: Any, rows: Any, most: Any) -> Any:
    bad = _beyond(indices, 0, entries, most)
    whole = rows & -LANES
    for r in range(0, whole, LANES):
        bad = bad | (loaded(indptr, r, LANES) > loaded(indptr, r + 1, LANES)).any()
    for r in range(whole, rows):
        bad = bad | (indptr[r] > indptr[r + 1])
    bad = bad | (indptr[0] < 0) | (indptr[rows].astype(np.int64) > entries)
    return bad


def matvec(
    data: Any, indices: Any, indptr: Any, x: Any, y: Any, rows: int, part: int, task: int
) -> None:  # fmt: skip
    """y (rows,): the matrix times x (n,); a step of compiled loops, where `fits` has answered."""
    _vector(data, indices, indptr, x, y, task * part, min((task + 1) * part, rows), 0, 0, False)


@parallel
def checked_matvec(
    data: Any, indices: Any, indptr: Any, x: Any, y: Any, wrong: Any, entries: int, rows: int,
    most: int, part: int, task: int,
) -> None:  # fmt: skip
    """`matvec` where all entries are some row's. wrong[0] is 1 then where it does not fit."""
    begin, end = task * part, min((task + 1) * part, rows)
    if _vector(data, indices, indptr, x, y, begin, end, entries, most, True):
        wrong[0] = 1


def _vector(
    data: Any, indices: Any, indptr: Any, x: Any, y: Any, begin: Any, end: Any,
    entries: Any, most: Any, checks: bool,
) -> Any:  # fmt: skip
    """The sums of rows, in the order of their entries, and whether something does not fit.

    How long rows are no processor foresees, so a loop for each pays for that at each of its ends.
    Where that is often, products of several rows are made in one loop, and then `_SIDE` sums at
    once.
    """
    held = room(y.dtype, 2 * _ROOM + _SIDE)
    masks = room(_UNSIGNED[y.dtype.itemsize], 2 * _SIDE)
    stored(masks, 0, ~spread(masks.dtype.type(0), _SIDE))
    stored(masks, _SIDE, spread(masks.dtype.type(0), _SIDE))
    block = _block(indptr, begin, end)
    bad: Any = end < 0
    r: Any = begin
    while r < end:
        stop = min(r + block, end)
        refused: Any = end < 0
        if checks:
            refused = _misfit(indptr, r, stop, entries)
            if refused:
                r = stop
        first = indptr[r].astype(np.int64)
        n = indptr[stop].astype(np.int64) - first
        if _together(indptr, r, stop, n):
            refused = refused | _products(data, indices, x, held, first, n, most, checks)
            while r + _SIDE <= stop:
                _sums(held, masks, indptr, y, r, first)
                r += _SIDE
        elif checks:
            refused = refused | _beyond(indices, first, n, most)
        bad = bad | refused
        if refused:
            r = stop
        while r < stop:
            total = y.dtype.type(0)
            for e in range(indptr[r].astype(np.int64), indptr[r + 1].astype(np.int64)):
                total = total + data[e] * x[indices[e].astype(np.int64)]
            y[r] = total
            r += 1
    return bad


def _block(indptr: Any, begin: Any, end: Any) -> Any:
    """Of how many rows the entries are expected to fit into the room."""
    block: Any = np.int64(_ROWS)
    thousands = (indptr[end].astype(np.int64) - indptr[begin].astype(np.int64)) >> _ROOM_BITS
    while block > _SIDE and thousands * block >= end - begin:
        block = block >> 1
    return block


def _together(indptr: Any, r: Any, stop: Any, n: Any) -> Any:
    """Whether products of these rows, of n entries, are made in one loop.

    Ends of rows of one length are foreseen, so there only a loop of vectors can pay. Four sums take
    as long as the longest of them.
    """
    rows = np.int64(0) + stop - r
    usual = spread(indptr[min(r + 1, stop)] - indptr[r], LANES)
    others = usual ^ usual
    longest = usual
    whole = rows & -LANES
    for k in range(r, r + whole, LANES):
        lengths = loaded(indptr, k + 1, LANES) - loaded(indptr, k, LANES)
        others = others | (lengths ^ usual)
        longest = np.where(lengths > longest, lengths, longest)
    least = np.where((others != usual ^ usual).any(), np.int64(_FEW), np.int64(_SHORT))
    most = longest * spread(rows.astype(indptr.dtype), LANES)
    apart = (most > spread((_MEANS * n).astype(indptr.dtype), LANES)).any()
    return ~apart & (n <= _ROOM) & (n >= rows * least)


def _products(
    data: Any, indices: Any, x: Any, held: Any, first: Any, n: Any, most: Any, checks: bool
) -> Any:  # fmt: skip
    """Hold the products of n entries. Whether a column is no column; another one is read then."""
    unsigned = _UNSIGNED[indices.dtype.itemsize]
    last: Any = unsigned(most)
    bad: Any = n < 0
    greatest = spread(unsigned(0), LANES)
    whole = n & -LANES
    for e in range(0, whole, LANES):
        at = loaded(indices, first + e, LANES).view(unsigned)
        if checks:
            greatest = np.where(at > greatest, at, greatest)
            at = np.where(at > last, spread(last, LANES), at)
        v = gathered(x, at.view(indices.dtype))
        stored(held, e, loaded(data, first + e, LANES) * v)
    for e in range(whole, n):
        one: Any = indices[first + e].view(unsigned)
        if checks:
            bad = bad | (one > last)
            one = np.where(one > last, last, one)
        held[e] = data[first + e] * x[one.astype(np.int64)]
    return bad | (greatest > last).any()


def _misfits_of_rows(
    indices: Any, indptr: Any, r: Any, stop: Any, entries: Any, most: Any
) -> Any:  # fmt: skip
    """Whether rows do not begin in order, or outside of the entries, or a column is no column."""
    bad = _misfit(indptr, r, stop, entries)
    if ~bad:
        first = indptr[r].astype(np.int64)
        n = indptr[stop].astype(np.int64) - first
        bad = _beyond(indices, first, n, most)
    return bad


def _misfit(indptr: Any, r: Any, stop: Any, entries: Any) -> Any:
    """Whether rows do not begin in order, or outside of the entries."""
    bad = (indptr[r] < 0) | (indptr[stop].astype(np.int64) > entries)
    whole = (stop - r) & -LANES
    for k in range(r, r + whole, LANES):
        bad = bad | (loaded(indptr, k, LANES) > loaded(indptr, k + 1, LANES)).any()
    for k in range(r + whole, stop):
        bad = bad | (indptr[k] > indptr[k + 1])
    return bad


def _beyond(indices: Any, first: Any, n: Any, most: Any) -> Any:
    """Whether one of n indices from the first on is outside of [0, most]."""
    unsigned = _UNSIGNED[indices.dtype.itemsize]  # in which what is negative is beyond all columns
    last = unsigned(most)
    end = first + n
    greatest = spread(unsigned(0), _MANY)
    e: Any = first
    while e + _MANY <= end:
        at = loaded(indices, e, _MANY).view(unsigned)
        greatest = np.where(at > greatest, at, greatest)
        e += _MANY
    bad = (greatest > last).any()
    while e < end:
        bad = bad | (indices[e].view(unsigned) > last)
        e += 1
    return bad


def _sums(
    held: Any, masks: Any, indptr: Any, y: Any, r: Any, first: Any
) -> None:  # fmt: skip
    """The sums of `_SIDE` rows from r on, whose products are `held`, those of entry `first` on."""
    a = indptr[r].astype(np.int64) - first
    b = indptr[r + 1].astype(np.int64) - first
    c = indptr[r + 2].astype(np.int64) - first
    d = indptr[r + 3].astype(np.int64) - first
    e = indptr[r + 4].astype(np.int64) - first
    total = spread(y.dtype.type(0), _SIDE)
    k: Any = np.int64(0)
    if (b - a == c - b) & (b - a == d - c) & (b - a == e - d):
        while a + k + _SIDE <= b:
            p, q = loaded(held, a + k, _SIDE), loaded(held, b + k, _SIDE)
            s, t = loaded(held, c + k, _SIDE), loaded(held, d + k, _SIDE)
            total = _with_columns(total, p, q, s, t)
            k += _SIDE
    longer, longest = max(b - a, c - b), max(d - c, e - d)
    longest = max(longer, longest)
    while k < longest:
        p, q = _of_row(held, masks, a + k, b), _of_row(held, masks, b + k, c)
        s, t = _of_row(held, masks, c + k, d), _of_row(held, masks, d + k, e)
        total = _with_columns(total, p, q, s, t)
        k += _SIDE
    stored(y, r, total)


def _with_columns(total: Any, p: Any, q: Any, s: Any, t: Any) -> Any:
    """The sums with the columns of the matrix that has these rows, from the first one on."""
    even, odd = picked(p, q, _EVEN), picked(p, q, _ODD)
    others, odd_others = picked(s, t, _EVEN), picked(s, t, _ODD)
    total = total + picked(even, others, _FIRST)
    total = total + picked(odd, odd_others, _FIRST)
    total = total + picked(even, others, _LAST)
    return total + picked(odd, odd_others, _LAST)


def _of_row(held: Any, masks: Any, at: Any, end: Any) -> Any:
    """The next products of a row that ends there, and zeros behind them, which change no sum."""
    v = loaded(held, at, _SIDE)
    mask = loaded(masks, _SIDE - max(min(end - at, _SIDE), 0), _SIDE)
    return (v.view(mask.dtype) & mask).view(v.dtype)


@parallel
def matmul(
    data: Any, indices: Any, indptr: Any, x: Any, y: Any, rows: int, k: int, part: int,
    task: int,
) -> None:  # fmt: skip
    """y (rows, k): the matrix times x (n, k)."""
    _matrix(data, indices, indptr, x, y, k, task * part, min((task + 1) * part, rows))


def _matrix(
    data: Any, indices: Any, indptr: Any, x: Any, y: Any, k: Any, begin: Any, end: Any
) -> None:  # fmt: skip
    for r in range(begin, end):
        first = indptr[r].astype(np.int64)
        last = indptr[r + 1].astype(np.int64)
        j = 0
        while j + _BLOCK <= k:
            a = spread(y.dtype.type(0), LANES)
            b = a
            c = a
            d = a
            for e in range(first, last):
                v = spread(data[e], LANES)
                at = indices[e].astype(np.int64) * k + j
                a = a + v * loaded(x, at, LANES)
                b = b + v * loaded(x, at + LANES, LANES)
                c = c + v * loaded(x, at + 2 * LANES, LANES)
                d = d + v * loaded(x, at + 3 * LANES, LANES)
            stored(y, r * k + j, a)
            stored(y, r * k + j + LANES, b)
            stored(y, r * k + j + 2 * LANES, c)
            stored(y, r * k + j + 3 * LANES, d)
            j += _BLOCK
        while j + LANES <= k:
            a = spread(y.dtype.type(0), LANES)
            for e in range(first, last):
                at = indices[e].astype(np.int64) * k + j
                a = a + spread(data[e], LANES) * loaded(x, at, LANES)
            stored(y, r * k + j, a)
            j += LANES
        while j < k:
            total = y.dtype.type(0)
            for e in range(first, last):
                total = total + data[e] * x[indices[e].astype(np.int64) * k + j]
            y[r * k + j] = total
            j += 1


@kernel
def scattered(
    data: Any, indices: Any, indptr: Any, x: Any, y: Any, rows: int, k: int
) -> None:  # fmt: skip
    """y (n, k) += the transpose of the matrix times x (rows, k)."""
    if k == 1:
        _scattered_vector(data, indices, indptr, x, y, rows, 0, 0, False)
    else:
        _scattered_matrix(data, indices, indptr, x, y, rows, k)


@kernel
def checked_scattered(
    data: Any, indices: Any, indptr: Any, x: Any, y: Any, rows: int, entries: int, most: int
) -> int:  # fmt: skip
    """`scattered` of a vector where all entries are some row's; 1 where something does not fit."""
    if _scattered_vector(data, indices, indptr, x, y, rows, entries, most, True):
        return 1
    return 0


def _scattered_vector(
    data: Any, indices: Any, indptr: Any, x: Any, y: Any, rows: Any, entries: Any, most: Any,
    checks: bool,
) -> Any:  # fmt: skip
    """As `_vector`: before one loop over the entries of several rows the element of x that each
    meets is written beside it, and what is too much of a row is overwritten by the next.
    """
    held = room(y.dtype, _ROOM + 2 * LANES)
    block = _block(indptr, 0, rows)
    bad: Any = rows < 0
    r: Any = np.int64(0)
    while r < rows:
        stop = min(r + block, rows)
        if checks:
            refused = _misfits_of_rows(indices, indptr, r, stop, entries, most)
            bad = bad | refused
            if refused:
                r = stop
        first = indptr[r].astype(np.int64)
        n = indptr[stop].astype(np.int64) - first
        if (n <= _ROOM) & (n >= (stop - r) * _SHORT) & (n < (stop - r) * _LONG):
            while r < stop:
                v = spread(x[r], 2 * LANES)
                at: Any = indptr[r].astype(np.int64) - first
                end = indptr[r + 1].astype(np.int64) - first
                stored(held, at, v)
                at += 2 * LANES
                while at < end:
                    stored(held, at, v)
                    at += 2 * LANES
                r += 1
            for e in range(first, first + n):
                at = indices[e].astype(np.int64)
                y[at] = y[at] + data[e] * held[e - first]
        while r < stop:
            one = x[r]
            for e in range(indptr[r].astype(np.int64), indptr[r + 1].astype(np.int64)):
                at = indices[e].astype(np.int64)
                y[at] = y[at] + data[e] * one
            r += 1
    return bad


def _scattered_matrix(
    data: Any, indices: Any, indptr: Any, x: Any, y: Any, rows: Any, k: Any
) -> None:  # fmt: skip
    whole = k & -LANES
    for r in range(rows):
        for e in range(indptr[r].astype(np.int64), indptr[r + 1].astype(np.int64)):
            v = data[e]
            at = indices[e].astype(np.int64) * k
            for j in range(0, whole, LANES):
                added = spread(v, LANES) * loaded(x, r * k + j, LANES)
                stored(y, at + j, loaded(y, at + j, LANES) + added)
            for j in range(whole, k):
                y[at + j] = y[at + j] + v * x[r * k + j]


@making("size", "data")
def product_of_few(
    data: Any, indices: Any, indptr: Any, x: Any, size: int, entries: int, rows: int, k: int,
    most: int, transposed: bool, vector: bool, y: Any, n: int,
) -> int:  # fmt: skip
    """Either product in a new array of `size` numbers, after `fits`; vector: k is 1."""
    if transposed:
        cleared(y, 0, n)
    if vector:
        others = (indptr[0] != 0) | (indptr[rows].astype(np.int64) != entries)
        if others and _misfits(indices, indptr, entries, rows, most):
            return 1
        if transposed:
            if _scattered_vector(data, indices, indptr, x, y, rows, entries, most, True):
                return 1
        elif _vector(data, indices, indptr, x, y, 0, rows, entries, most, True):
            return 1
        return 0
    if _misfits(indices, indptr, entries, rows, most):
        return 1
    if transposed:
        _scattered_matrix(data, indices, indptr, x, y, rows, k)
    else:
        _matrix(data, indices, indptr, x, y, k, 0, rows)
    return 0


@parallel
def dots(
    g: Any, x: Any, indices: Any, indptr: Any, h: Any, rows: int, k: int, part: int,
    task: int,
) -> None:  # fmt: skip
    """h: for each entry the product of its row of g (rows, k) and its column's row of x (n, k)."""
    for r in range(task * part, min((task + 1) * part, rows)):
        for e in range(indptr[r].astype(np.int64), indptr[r + 1].astype(np.int64)):
            at = indices[e].astype(np.int64) * k
            total = h.dtype.type(0)
            for j in range(k):
                total = total + g[r * k + j] * x[at + j]
            h[e] = total
