"""Gather and scatter. Writes happen in the order of the indices, so sums have NumPy's bits.

A kernel gives 0, or 1 + the flat place of the first index that is out of bounds; negative indices
count from the end. i is int64.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from funct.kernels.cpu.loops import kernel, parallel
from funct.kernels.cpu.vectors import loaded, stored

__all__ = [
    "add_elements", "add_rows", "along", "combine", "take_along_line", "take_elements",
]  # fmt: skip

_LANES = 8


@kernel
def add_elements(g: Any, i: Any, y: Any, outer: int, count: int, n: int, drop: bool) -> int:
    """y (outer, n) += g (outer, count) at i (count,). drop: indices outside [0, n) are left out."""
    for o in range(outer):
        last = o * n
        total = y[last]  # the sum at `last` stays in a register while the index stays
        for k in range(count):
            at = i[k]
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


@parallel
def add_rows(
    g: Any, i: Any, y: Any, wrong: Any, outer: int, count: int, n: int, inner: int, drop: bool,
    part: int, task: int,
) -> None:  # fmt: skip
    """y (outer, n, inner) += g (outer, count, inner) at i (count,).

    A task adds `part` columns, so nobody else writes where it does. drop: as above, else wrong is 1
    where an index is out of bounds.
    """
    first = task * part
    last = min(first + part, inner)
    whole = first + ((last - first) & -_LANES)
    for o in range(outer):
        for k in range(count):
            at = i[k]
            if not drop and at < 0:
                at += n
            if at.astype(np.uint64) < np.uint64(n):
                to = (o * n + at) * inner
                source = (o * count + k) * inner
                for j in range(first, whole, _LANES):
                    added = loaded(g, source + j, _LANES)
                    stored(y, to + j, loaded(y, to + j, _LANES) + added)
                for j in range(whole, last):
                    y[to + j] = y[to + j] + g[source + j]
            elif not drop:
                wrong[0] = 1


@parallel
def take_elements(
    x: Any, i: Any, y: Any, wrong: Any, count: int, n: int, part: int, task: int
) -> None:
    """y (count,) = x (n,) at i (count,); wrong: 1 where an index is out of bounds."""
    for k in range(task * part, min((task + 1) * part, count)):
        at = i[k]
        if at < 0:
            at += n
        if at.astype(np.uint64) < np.uint64(n):
            y[k] = x[at]
        else:
            wrong[0] = 1


@kernel
def take_along_line(x: Any, i: Any, y: Any, outer: int, count: int, n: int) -> int:
    """y (outer, count) = x (outer, n) along the last axis, at i (outer, count)."""
    for o in range(outer):
        base = o * n
        for each in range(o * count, (o + 1) * count):
            at = i[each]
            if at < 0:
                at += n
            if at.astype(np.uint64) < np.uint64(n):
                y[each] = x[base + at]
            else:
                return each + 1
    return 0


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
def combine(
    x: Any, v: Any, i: Any, y: Any, count: int, n: int, mode: str, single: bool, fresh: bool
) -> int:
    """y (n,) combined with v at i, both (count,): "set", "add", "multiply", "min", "max".

    single: v is a number. fresh: y is to be x first, or for "factors" 1; of what is added at one
    place the sum comes to x.
    """
    for k in range(n if fresh else 0):
        y[k] = _start(x, k, mode)
    for k in range(count):
        at = i[k]
        if at < 0:
            at += n
        if at.astype(np.uint64) >= np.uint64(n):
            return k + 1
        y[at] = _combined(y[at], _picked(v, k, y.dtype, single), mode)
    for k in range(n if fresh and mode == "add" else 0):
        y[k] = x[k] + y[k]
    return 0


def _start(x: Any, k: Any, mode: str) -> Any:
    if mode == "add":
        return x.dtype.type(0)
    if mode == "factors":
        return x.dtype.type(1)
    return x[k]


def _picked(v: Any, k: Any, dtype: Any, single: bool) -> Any:
    if single:
        return dtype.type(v)
    return v[k]


def _combined(a: Any, b: Any, mode: str) -> Any:
    if mode == "set":
        return b
    if mode == "add":
        return a + b
    if mode == "multiply" or mode == "factors":
        return a * b
    return np.where((a < b if mode == "min" else a > b) | (a != a), a, b)
