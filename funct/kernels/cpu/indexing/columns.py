"""The same columns of many short lines, which change places in registers: see `gather.py`."""

from __future__ import annotations

from typing import Any

import numpy as np

from funct.kernels.cpu.indexing.gather import outside, place, same_columns
from funct.kernels.cpu.loops import kernel, parallel
from funct.kernels.cpu.vectors import chosen, loaded, picked, stored

__all__ = ["BYTES", "columns_of", "take_columns"]

BYTES = 64  # of a vector


@kernel
def columns_of(i: Any, at: Any, count: int, n: int, lines: int, room: int) -> int:
    """at (room,): the places of so many lines side by side, of n elements each, at i (count,) in
    each of them; then zeros. 1 where an index is out of bounds.
    """
    if outside(i, 0, count, n) > 0:
        return 1
    for o in range(lines):
        for k in range(count):
            at[o * count + k] = at.dtype.type(o * n + place(i[k].astype(np.int64), n))
    for k in range(lines * count, room):
        at[k] = 0
    return 0


@parallel
def take_columns(
    x: Any, i: Any, y: Any, outer: int, count: int, n: int, lines: int, fits: str, end: str,
    part: int, task: int,
) -> None:  # fmt: skip
    """y (outer, count) = x (outer, n) along the last axis, at the same i in [0, n) in each line; a
    task takes `part` times so many lines.

    fits: where so many lines of x are that many vectors at most ("one", "two", "four"), i is that
    of `columns_of`, whole vectors of integers as wide as x, and they are put together in registers.
    Else it is empty. end: the part of the last vector that they need in y: a "quarter", a "half" or
    the "whole"; the next lines cover what is too long.
    """
    first = task * part * lines
    last = min(first + part * lines, outer)
    begun = first + 0
    if fits:
        size = BYTES // x.dtype.itemsize
        final = (count * lines - 1) & -size
        while begun + lines + 4 * size <= last:  # behind others write, and arrays end
            a = loaded(x, begun * n, size)
            b = a if fits == "one" else loaded(x, begun * n + size, size)
            c = loaded(x, begun * n + 2 * size, size) if fits == "four" else a
            d = loaded(x, begun * n + 3 * size, size) if fits == "four" else a
            to = begun * count
            for k in range(0, final, size):
                stored(y, to + k, _put_together(a, b, c, d, loaded(i, k, size), fits))
            v = _put_together(a, b, c, d, loaded(i, final, size), fits)
            if end == "quarter":  # to write less costs less: where memory's lines meet it is twice
                stored(y, to + final, picked(v, v, tuple(range(size >> 2))))
            elif end == "half":
                stored(y, to + final, picked(v, v, tuple(range(size >> 1))))
            else:
                stored(y, to + final, v)
            begun += lines
    same_columns(x, i, y, begun, last, count, n)


def _put_together(a: Any, b: Any, c: Any, d: Any, at: Any, fits: str) -> Any:
    """The elements of two vectors, or four, at a vector of indices."""
    if fits == "four":
        both = 2 * BYTES // a.dtype.itemsize
        inside = at & (both - 1)
        return np.where(at < both, chosen(a, b, inside), chosen(c, d, inside))
    return chosen(a, b, at)
