"""What a mask keeps, side by side: elements, places of elements that are not 0, signs of zeros,
and what is put where it holds.

wide: the processor packs a vector of 64 bytes, with elements of 4 or 8 (AVX-512). Elsewhere every
element is written, and stays where the mask says so: that has no branch either.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from funct.kernels.cpu.loops import kernel, making, parallel
from funct.kernels.cpu.vectors import bits, lanes, loaded, many, packed, spread, stored

__all__ = [
    "PLACES", "chosen", "give_signs", "negative_zero", "places", "plain_chosen", "replaced",
    "replaced_few", "signs_tell", "turned_back", "under", "zeros",
]  # fmt: skip

_BYTES = 64
_SIDE = 32  # elements that are chosen together
_SHORT = 256  # elements of a row
# of each byte, the places of its bits that are 1, from the lowest on, and what they are before
PLACES: Any = np.argsort(1 - (np.arange(256)[:, None] >> np.arange(8) & 1), 1, "stable")
PLACES = PLACES.astype(np.uint8).reshape(-1)
_UNSIGNED = {4: np.uint32, 8: np.uint64}
_SIGNED = {4: np.int32, 8: np.int64}
# `np.where` once it has asked each array whether another library is to do it
plain_chosen: Any = getattr(np.where, "_implementation", np.where)


@kernel
def under(x: Any, mask: Any, y: Any, n: int, count: int, wide: bool) -> None:
    """y (count,): the elements of x (n,) where the mask is 1, as it is count >= 1 times."""
    k: Any = np.int64(0)
    out: Any = np.int64(0)
    if wide:
        size = _BYTES // x.dtype.itemsize
        while k + size <= n and out + size <= count:
            keep = loaded(mask, k, size) != 0
            stored(y, out, packed(loaded(x, k, size), keep))
            out += many(keep)
            k += size
    while k + 8 <= n and out + 8 <= count:
        stored(y, out, loaded(x, k, 8))  # which is all of them where all are kept
        if not (loaded(mask, k, 8) != 0).all():
            for e in range(8):
                out = _kept(x, mask, y, k + e, out)
        else:
            out += 8
        k += 8
    while out < count:
        out = _kept(x, mask, y, k, out)
        k += 1


def _kept(x: Any, mask: Any, y: Any, k: Any, out: Any) -> Any:
    y[out] = x[k]
    return out + mask[k].astype(np.int64)


@parallel
def replaced(x: Any, v: Any, mask: Any, y: Any, n: int, part: int, task: int) -> None:
    """y (n,): x, or v (1,) where the mask is 1. A task writes `part` elements."""
    first = task * part
    _replaced(x, v[0], mask, False, y, first, min(first + part, n))


@making("x")
def replaced_few(
    x: Any, v: Any, mask: Any, single: bool, turned: bool, y: Any, n: int
) -> None:  # fmt: skip
    """`replaced` in a new array; single: v is a number; turned: where the mask is 0."""
    _replaced(x, x.dtype.type(v) if single else v[0], mask, turned, y, 0, n)


@making("x", otherwise=plain_chosen)
def chosen(mask: Any, x: Any, v: Any, y: Any, n: int) -> None:
    """x where the mask is 1, else v, in a new array: `np.where` for arrays of one dtype."""
    whole = n & -_SIDE
    for k in range(0, whole, _SIDE):
        stored(
            y, k, np.where(loaded(mask, k, _SIDE) != 0, loaded(x, k, _SIDE), loaded(v, k, _SIDE))
        )
    for k in range(whole, n):
        y[k] = np.where(mask[k] != 0, x[k], v[k])


def _replaced(
    x: Any, new: Any, mask: Any, turned: bool, y: Any, first: Any, last: Any
) -> None:  # fmt: skip
    whole = first + ((last - first) & -_SIDE)
    for k in range(first, whole, _SIDE):
        here = loaded(mask, k, _SIDE)
        stored(y, k, np.where(here == 0 if turned else here != 0, new, loaded(x, k, _SIDE)))
    for k in range(whole, last):
        y[k] = np.where(mask[k] == 0 if turned else mask[k] != 0, new, x[k])


@kernel
def places(
    x: Any, table: Any, rows: Any, columns: Any, outer: int, n: int, count: int, wide: bool
) -> None:
    """Where x (outer, n) is not 0, as it is count >= 1 times: rows, if outer > 1, and columns.
    table: PLACES.
    """
    out: Any = np.int64(0)
    for o in range(outer):
        start = o * n
        k: Any = np.int64(0)
        if wide:
            here = spread(np.int64(o), 8)
            while k + 8 <= n and out + 8 <= count:
                keep = loaded(x, start + k, 8) != 0
                stored(columns, out, packed(lanes(8, np.int64) + k, keep))
                if outer > 1:
                    stored(rows, out, here)
                out += many(keep)
                k += 8
        else:
            row = spread(np.int64(o), 8)
            while k + 8 <= n and out + 8 <= count:
                chosen = loaded(x, start + k, 8) != 0
                stored(columns, out, loaded(table, bits(chosen) * 8, 8).astype(np.int64) + k)
                if outer > 1:
                    stored(rows, out, row)
                out += many(chosen)
                k += 8
        while k < n and out < count:
            columns[out] = k
            if outer > 1:
                rows[out] = o
            out += np.where(x[start + k] != 0, 1, 0)
            k += 1


@kernel
def zeros(x: Any, y: Any, table: Any, outer: int, n: int, backwards: bool, wide: bool) -> None:
    """Give zeros of y (outer, n), x in ascending order, their signs, as they stand in rows of x.

    backwards: the last of a row of x comes first. table: PLACES.
    """
    if signs_tell(x, outer * n, n):
        for o in range(outer):
            give_signs(x, y, table, o * n, o * n, n, backwards, wide)


def signs_tell(x: Any, size: Any, n: Any) -> Any:
    """Whether zeros of x, of so many elements in rows of n, may have other signs once rows are
    sorted: where these are short, some are -0, which is found sooner in all of x than the place of
    zeros in each row.
    """
    tell = n > _SHORT
    if not tell:
        tell = _negative_zero(x, 0, size) < size
    return tell


def give_signs(
    x: Any, y: Any, table: Any, start: Any, to: Any, n: Any, backwards: bool, wide: bool
) -> None:
    """The same of one row of n elements, which begins in x at start and in y at to."""
    unsigned, signed = _UNSIGNED[x.dtype.itemsize], _SIGNED[x.dtype.itemsize]
    top = unsigned(x.dtype.itemsize * 8 - 1)
    end = start + n
    first = to + _below(y, to, n, False)
    found = first < to + n
    if found:
        found = y[first] == 0
    if found and _negative_zero(x, start, end) < end:
        last = to + _below(y, to, n, True)
        k: Any = start + 0
        out: Any = first + 0
        if wide:
            size = _BYTES // x.dtype.itemsize
            while k + size <= end and out + size <= last:
                v = loaded(x, k, size)
                keep = v == 0
                stored(y, out, packed(v, keep))
                out += many(keep)
                k += size
        else:
            while k + 8 <= end and out + 8 <= last:
                v = loaded(x, k, 8)
                keep = v == 0
                negative = spread(bits(v.view(signed) < 0).astype(unsigned), 8)
                place = loaded(table, bits(keep) * 8, 8).astype(unsigned)
                stored(y, out, ((negative >> place) << top).view(x.dtype.type))
                out += many(keep)
                k += 8
        while out < last:
            y[out] = x[k]
            out += np.where(x[k] == 0, 1, 0)
            k += 1
        if backwards:
            turned_back(y, first, last)


def turned_back(y: Any, first: Any, end: Any) -> None:
    """What stands from `first` to `end` in the other order."""
    a = first
    b = end - 1
    while a < b:
        v = y[a]
        y[a] = y[b]
        y[b] = v
        a += 1
        b -= 1


@kernel
def negative_zero(x: Any, n: int) -> int:
    """Whether some element is -0."""
    if _negative_zero(x, 0, n) < n:
        return 1
    return 0


def _negative_zero(x: Any, start: Any, end: Any) -> Any:
    """Where the first -0 of x[start:end] stands; end where there is none."""
    unsigned = _UNSIGNED[x.dtype.itemsize]
    lowest = unsigned(1 << (x.dtype.itemsize * 8 - 1))
    size = _BYTES // x.dtype.itemsize
    k: Any = start + 0
    while k + size <= end and ~(loaded(x, k, size).view(unsigned) == lowest).any():
        k += size
    while k < end and x[k].view(unsigned) != lowest:
        k += 1
    return k


def _below(y: Any, start: Any, n: Any, zero: bool) -> Any:
    """How many of n > 0 sorted elements of y are below 0; zero: or are 0."""
    at: Any = start + 0
    size = n
    while size > 1:
        half = size >> 1
        v = y[at + half - 1]
        at = np.where(v <= 0 if zero else v < 0, at + half, at)
        size -= half
    v = y[at]
    return np.where(v <= 0 if zero else v < 0, at + 1, at) - start
