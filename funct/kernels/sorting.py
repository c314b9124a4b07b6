"""Sorting and searching: plain, or in machine code; both give the same order.

Equal elements keep their order, also in descending order; NaN is the largest, -0 equals 0.
"""

from __future__ import annotations

import functools
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from funct.kernels import counting
from funct.kernels.cpu import sorting as cpu
from funct.kernels.cpu.loops import pays
from funct.kernels.scans import running_sum

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Index = NDArray[np.int64]

__all__ = [
    "argsort", "distinct", "distinct_values", "plain_argsort", "plain_searchsorted", "plain_sort",
    "plain_top_k", "searchsorted", "sort", "top_k",
]  # fmt: skip

_SHORT = 512  # rows up to here are merged quicker than they are counted
_LONG = 1 << 14  # from here on passes over more bits are quicker,
_HUGE = 1 << 21  # and from here on so many parts are too many pages to write to
_SEARCHES = 1 << 12  # values that a task searches for: a multiple of `cpu.SEARCHED`
_FEW = 32  # of so few the largest are found by insertion
_SPARSE = 8  # up to every eighth element the largest are found by partition


def argsort(x: NDArray[Any], axis: int, descending: bool) -> Index:
    """The stable permutation that sorts x along axis."""
    n = x.shape[axis]
    if n < _SHORT or not pays(x):
        return plain_argsort(x, axis, descending)
    last = axis == x.ndim - 1
    rows = np.ascontiguousarray(x if last else x.swapaxes(axis, -1))
    y = np.empty(rows.shape, np.int64)
    ends = np.empty(2, np.uint64)
    cpu.span(rows, ends, rows.size)
    bits, low = int(ends[1] - ends[0]).bit_length(), (n - 1).bit_length()
    # Twice the bits of the index tell most keys apart; what they do not is settled by insertion.
    digit = 11 if _LONG <= n < _HUGE else 8
    enough = -(-(2 * low + 4) // digit) * digit
    scratch = np.empty(2 * n, np.uint64), np.empty(1 << digit, np.int64), ends
    for kept in dict.fromkeys((min(bits, enough, 64 - low), min(bits, 64 - low))):
        sizes = rows.size // n, n, low, bits - kept, -(-kept // digit)
        if not cpu.argsort[digit](rows, y, *scratch, *sizes, descending, kept < bits):
            return y if last else y.swapaxes(axis, -1)
    return plain_argsort(x, axis, descending)


def plain_argsort(x: NDArray[Any], axis: int, descending: bool) -> Index:
    """`argsort` in NumPy."""
    if not descending:
        return x.argsort(axis, "stable")
    n = x.shape[axis]  # sort the reversed axis, reverse the permutation
    return _turned(n - 1 - _turned(x, axis).argsort(axis, "stable"), axis)


def _turned(x: NDArray[Any], axis: int) -> NDArray[Any]:
    return x[(slice(None),) * axis + (slice(None, None, -1),)]


def sort(x: NDArray[Any], axis: int, descending: bool) -> NDArray[Any]:
    """x sorted along axis."""
    if x.dtype.itemsize < 4 or x.dtype.kind == "c":  # counted by NumPy, or of two keys
        return plain_sort(x, axis, descending)
    out = counting.sort(x) if x.ndim == 1 else None
    if out is None:
        out = x.copy("K")
        out.sort(axis)
    # An unstable sort is quicker. It tells only in zeros, whose signs it may even lose.
    if x.dtype.kind == "f":
        if x.ndim == 1:
            first = out.searchsorted(_zero(x.dtype))
            if first < len(out) and out[first] == 0:
                zeros = x[x == 0]
                out[first : first + len(zeros)] = zeros[::-1] if descending else zeros
        elif np.signbit(x[x == 0]).any():
            return plain_sort(x, axis, descending)
    return _turned(out, axis) if descending else out


@functools.cache
def _zero(dtype: np.dtype[Any]) -> NDArray[Any]:
    return np.zeros((), dtype)


def plain_sort(x: NDArray[Any], axis: int, descending: bool) -> NDArray[Any]:
    """`sort` by NumPy's stable sort."""
    out = (_turned(x, axis) if descending else x).copy("K")
    out.sort(axis, "stable")
    return _turned(out, axis) if descending else out


def top_k(x: NDArray[Any], axis: int, k: int) -> tuple[NDArray[Any], Index]:
    """The k largest along axis in descending order, and where they stand."""
    n = x.shape[axis]
    if k == 0 or not pays(x):
        return plain_top_k(x, axis, k)
    if k <= _FEW:
        rows = x.swapaxes(axis, -1)
        lead = rows.shape[:-1]
        values, places = np.empty((*lead, k), x.dtype), np.empty((*lead, k), np.int64)
        cpu.top_k(rows, values, places, prod(lead), n, k)
        return values.swapaxes(axis, -1), places.swapaxes(axis, -1)
    if x.ndim == 1 and k * _SPARSE <= n:
        return _by_partition(x, k)
    at = argsort(x, axis, True)[(slice(None),) * axis + (slice(k),)]
    return np.take_along_axis(x, at, axis), at


def _by_partition(x: NDArray[Any], k: int) -> tuple[NDArray[Any], Index]:
    n = len(x)
    least = np.partition(x, n - k)[n - k : n - k + 1]
    if least != least:  # all of them are NaN
        at = np.flatnonzero(x != x)[:k]
        return x[at], at
    room = k + 1
    values, at, same = np.empty(room, x.dtype), np.empty(room, np.int64), np.empty(room, np.int64)
    above = cpu.largest(x, least, values, at, same, n, k)
    order = argsort(values[:above], 0, True)
    at = np.concatenate((at[order], same[: k - above]))
    return x[at], at


def plain_top_k(x: NDArray[Any], axis: int, k: int) -> tuple[NDArray[Any], Index]:
    """`top_k` by sorting all."""
    at = plain_argsort(x, axis, True)[(slice(None),) * axis + (slice(k),)].copy()
    return x[at] if x.ndim == 1 else np.take_along_axis(x, at, axis), at


def distinct_values(x: NDArray[Any]) -> NDArray[Any]:
    """The distinct elements of 1-D x in ascending order; every NaN is one of its own."""
    few = counting.distinct(x, False, False)
    if few is not None:
        return x[few[0]]
    y = sort(x, 0, False)
    if not pays(y):
        return y[_first(y)]
    found = np.empty_like(y)
    return found[: cpu.distinct(y, found, len(y))].copy()


def distinct(x: NDArray[Any], inverse: bool, counts: bool) -> list[Index]:
    """The first place of each of those; for each of x the number of its value; how many each is."""
    few = counting.distinct(x, inverse, counts)
    if few is not None:
        return few
    at = argsort(x, 0, False)
    first = _first(x[at])
    starts = np.flatnonzero(first)
    found = [at[starts]]
    if inverse:
        back = np.empty(len(x), np.int64)
        back[at] = running_sum(first, 0) - 1
        found.append(back)
    if counts:
        found.append(np.diff(starts, append=len(x)))
    return found


def _first(y: NDArray[Any]) -> NDArray[np.bool_]:
    """Whether each element of sorted y is another than the one before it."""
    new = np.ones(len(y), bool)
    np.not_equal(y[1:], y[:-1], out=new[1:])
    return new


def searchsorted(x: NDArray[Any], v: NDArray[Any], side: Any) -> Index:
    """Where each of v would be inserted into the sorted 1-D x."""
    if x.dtype != v.dtype or v.size < cpu.SEARCHED or not pays(v):
        return plain_searchsorted(x, v, side)
    n = len(x)
    known = int(x.searchsorted(np.asarray(np.nan, x.dtype))) if x.dtype.kind == "f" else n
    y = np.empty(v.shape, np.int64)
    tasks = -(-v.size // _SEARCHES)
    cpu.search(x, v, y, known, n, v.size, _SEARCHES, side == "left", tasks)
    return y


def plain_searchsorted(x: NDArray[Any], v: NDArray[Any], side: Any) -> Index:
    """`searchsorted` in NumPy."""
    return np.asarray(x.searchsorted(v, side))
