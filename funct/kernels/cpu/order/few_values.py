"""Elements of few values, such as rounded ones: each value is counted, and they are written out.

To compare a vector of elements with a value costs one instruction, where a sort that exchanges them
moves each several times.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from funct.kernels.cpu.vectors import loaded, many, room, spread, stored

__all__ = ["sorted_by_values"]

_MOST = 12  # values
_LEAST = 128  # elements; of fewer what goes before costs as much
_BLOCK = 1024  # elements that are compared with each value in turn, in the nearest cache
_BYTES = 64  # that are compared together
_TRIED = 8
_EACH = tuple(range(_TRIED))


def sorted_by_values(x: Any, start: Any, y: Any, to: Any, n: Any) -> Any:
    """Whether n elements of x, from start on, are of `_MOST` values at most. y, from `to` on, is
    then these in ascending order, with zeros as +0; else nothing is written.
    """
    known = n >= _LEAST
    if known:  # of few values, some among the first are alike
        first = loaded(x, start, _TRIED)
        alike = first != first
        for e in _EACH:
            alike = alike | (first == spread(x[start + _TRIED + e], _TRIED))
        known = alike.any()
    if known:
        values, counts = room(x.dtype, _MOST), room(np.int64, 2 * _MOST)
        found: Any = np.int64(0)
        end = start + n
        at: Any = start + 0
        while at < end and found <= _MOST:
            last = min(at + _BLOCK, end)
            seen: Any = np.int64(0)
            for k in range(found):
                often = _how_often(x, at, last, values[k])
                counts[_MOST + k] = often
                seen += often
            if seen == last - at:
                for k in range(found):
                    counts[k] = counts[k] + counts[_MOST + k]
                at = last
            else:
                found = _joined(x, at, last, values, counts, found)
        known = found <= _MOST
        if known:
            _written_out(values, counts, found, y, to, n)
    return known


def _how_often(x: Any, first: Any, last: Any, value: Any) -> Any:
    lanes = _BYTES // x.dtype.itemsize
    whole = first + ((last - first) & -(2 * lanes))
    all_of_it = spread(value, lanes)
    often: Any = np.int64(0)
    also: Any = np.int64(0)
    for i in range(first, whole, 2 * lanes):
        often += many(loaded(x, i, lanes) == all_of_it)
        also += many(loaded(x, i + lanes, lanes) == all_of_it)
    for i in range(whole, last):
        often += np.where(x[i] == value, 1, 0)
    return often + also


def _joined(x: Any, first: Any, last: Any, values: Any, counts: Any, found: Any) -> Any:
    """How many values there are with those between first and last: more than `_MOST` also where one
    is NaN, which equals none.
    """
    lanes = _BYTES // x.dtype.itemsize
    i: Any = first + 0
    while i < last and found <= _MOST:
        end = min(i + lanes, last)
        known = end == i + lanes
        if known:
            v = loaded(x, i, lanes)
            old = v < v
            for k in range(found):
                old = old | (v == spread(values[k], lanes))
            known = old.all()
        if not known:
            for e in range(i, end):
                found = _joined_one(x[e] + x.dtype.type(0), values, counts, found)
        i = end
    return found


def _joined_one(v: Any, values: Any, counts: Any, found: Any) -> Any:
    """How many values there are with v, where there are `_MOST` of them at most."""
    k: Any = np.int64(0)
    while k < min(found, _MOST) and values[k] != v:
        k += 1
    if k == found:
        if found < _MOST:
            values[found] = v
            counts[found] = 0
        found += 1
    return found


def _written_out(values: Any, counts: Any, found: Any, y: Any, to: Any, n: Any) -> None:
    lanes = _BYTES // y.dtype.itemsize
    out: Any = to + 0
    end = to + n
    for _ in range(found):
        least: Any = np.int64(0)
        for k in range(1, found):
            here = (counts[k] > 0) & ((values[k] < values[least]) | (counts[least] == 0))
            least = np.where(here, k, least)
        v = spread(values[least], lanes)
        behind = out + counts[least]
        counts[least] = 0
        while out < behind and out + lanes <= end:  # what is too much, the next one covers
            stored(y, out, v)
            out += lanes
        out = min(out, behind)
        while out < behind:
            y[out] = values[least]
            out += 1
