"""What sums of exponentials need of rows, and of few columns: differences to the greatest, and
which ones are it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from funct.kernels.cpu.loops import kernel, parallel
from funct.kernels.cpu.vectors import lanes, loaded, many, picked, room, spread, stored, written
from funct.kernels.cpu.windows.pooling import larger

__all__ = ["below", "beside", "few_columns"]

_SIZES = 16, 8, 4  # of vectors, of which rows take the longest that they fill
_ABREAST = 4  # vectors that are compared at once: each waits for the one before it
_FROM = {k: tuple(range(k, 2 * k)) for k in (2, 4, 8)} | {0: tuple(range(8))}  # halves of vectors


@parallel
def below(x: Any, y: Any, highest: Any, rows: int, n: int, part: int, task: int) -> None:
    """y = x less the greatest of its row, if that is finite, which is written to highest (rows,).
    x and y: (rows, n). A task takes `part` rows.
    """
    begin, end = task * part, min((task + 1) * part, rows)
    held = room(x.dtype, 2)
    if n >= _SIZES[0]:
        for r in range(begin, end):
            highest[r] = _below(x, y, r * n, n, held, _SIZES[0])
    elif n >= _SIZES[1]:
        for r in range(begin, end):
            highest[r] = _below(x, y, r * n, n, held, _SIZES[1])
    elif n >= _SIZES[2]:
        for r in range(begin, end):
            highest[r] = _below(x, y, r * n, n, held, _SIZES[2])
    else:
        for r in range(begin, end):
            top: Any = x[r * n]
            for e in range(r * n + 1, r * n + n):
                top = larger(x[e], top)
            highest[r] = top
            less = _finite(top)
            for e in range(r * n, r * n + n):
                y[e] = x[e] - less


def _below(x: Any, y: Any, first: Any, n: Any, held: Any, size: int) -> Any:
    """The greatest of a row of `size` elements or more, less which it is written to y."""
    last = first + n - size  # where the last vector begins, which others may overlap
    a: Any = loaded(x, last, size)
    k: Any = first + 0
    if size == _SIZES[0] and n >= _ABREAST * size:
        b, c, d = a, a, a
        while k + _ABREAST * size <= first + n:
            a = larger(loaded(x, k, size), a)
            b = larger(loaded(x, k + size, size), b)
            c = larger(loaded(x, k + 2 * size, size), c)
            d = larger(loaded(x, k + 3 * size, size), d)
            k += _ABREAST * size
        a, c = larger(a, b), larger(c, d)
        a = larger(a, c)
    while k < last:
        a = larger(loaded(x, k, size), a)
        k += size
    for half in (8, 4, 2):
        if half < size:
            a = larger(picked(a, a, _FROM[half]), picked(a, a, _FROM[0][:half]))
    stored(held, 0, a)
    top = larger(held[1], held[0])
    less = _finite(top)
    for e in range(first, last, size):
        stored(y, e, loaded(x, e, size) - less)
    stored(y, last, loaded(x, last, size) - less)
    return top


def _finite(top: Any) -> Any:
    """The greatest, or 0 for what is not finite."""
    return np.where(top - top == 0, top, top.dtype.type(0))


@parallel
def beside(
    x: Any, y: Any, highest: Any, weight: Any, rows: int, n: int, part: int, task: int
) -> None:
    """weight (rows,): how many of x are the greatest of their row, where 1 is taken from y; highest
    becomes what `below` has taken from the row.
    """
    begin, end = task * part, min((task + 1) * part, rows)
    if n >= _SIZES[0]:
        for r in range(begin, end):
            weight[r] = _beside(x, y, r * n, n, highest[r], _SIZES[0]).astype(x.dtype)
    elif n >= _SIZES[1]:
        for r in range(begin, end):
            weight[r] = _beside(x, y, r * n, n, highest[r], _SIZES[1]).astype(x.dtype)
    elif n >= _SIZES[2]:
        for r in range(begin, end):
            weight[r] = _beside(x, y, r * n, n, highest[r], _SIZES[2]).astype(x.dtype)
    else:
        for r in range(begin, end):
            count: Any = np.int64(0)
            for e in range(r * n, r * n + n):
                same = x[e] == highest[r]
                y[e] = y[e] - np.where(same, x.dtype.type(1), x.dtype.type(0))
                count += np.where(same, 1, 0)
            weight[r] = count.astype(x.dtype)
    for r in range(begin, end):
        highest[r] = _finite(highest[r])


def _beside(x: Any, y: Any, first: Any, n: Any, top: Any, size: int) -> Any:
    """How many of a row of `size` elements or more are its greatest."""
    ones, zeros = spread(x.dtype.type(1), size), spread(x.dtype.type(0), size)
    tops = spread(top, size)
    count: Any = np.int64(0)
    k: Any = first + 0
    last = first + n - size
    final = loaded(y, last, size)  # before anything is written that it overlaps
    while k < last:
        same = loaded(x, k, size) == tops
        stored(y, k, loaded(y, k, size) - np.where(same, ones, zeros))
        count += many(same)
        k += size
    same = loaded(x, last, size) == tops
    stored(y, last, final - np.where(same, ones, zeros))
    new = lanes(size, np.int32) >= spread(np.int32(k - last), size)
    return count + many(same & new)


@kernel
def few_columns(x: Any, y: Any, sums: Any, blocks: int, n: int, inner: int) -> None:
    """What `exponent_columns.sums_of_columns` gives, by NumPy's exp, which is that of few elements.

    x: (blocks, n, inner); y: room for as many; sums: (3, blocks, inner).
    """
    if inner >= _SIZES[1]:
        _below_columns(x, y, sums, blocks, n, inner, _SIZES[1])
    else:
        _below_columns(x, y, sums, blocks, n, inner, 1)
    written(np.exp, y, 0, y, 0, blocks * n * inner)
    if inner >= _SIZES[1]:
        _beside_columns(x, y, sums, blocks, n, inner, _SIZES[1])
    else:
        _beside_columns(x, y, sums, blocks, n, inner, 1)
    for c in range(blocks * inner):
        sums[c] = _finite(sums[c])


def _below_columns(
    x: Any, y: Any, highest: Any, blocks: Any, n: Any, inner: Any, size: int
) -> None:  # fmt: skip
    """y = x less the greatest of its column, if that is finite. The last vectors may overlap."""
    for b in range(blocks):
        for k in range(0, inner, size):
            j = min(k, inner - size)
            first = b * n * inner + j
            top: Any = loaded(x, first, size)
            for r in range(1, n):
                top = larger(loaded(x, first + r * inner, size), top)
            stored(highest, b * inner + j, top)
            less = np.where(top - top == 0, top, spread(x.dtype.type(0), size))
            for r in range(n):
                stored(y, first + r * inner, loaded(x, first + r * inner, size) - less)


def _beside_columns(
    x: Any, y: Any, sums: Any, blocks: Any, n: Any, inner: Any, size: int
) -> None:  # fmt: skip
    """How many of x are the greatest of their column, and the sums of y where 1 is taken from
    these, behind the greatest.
    """
    ones, zeros = spread(x.dtype.type(1), size), spread(x.dtype.type(0), size)
    for b in range(blocks):
        for k in range(0, inner, size):
            j = min(k, inner - size)
            first, at = b * n * inner + j, b * inner + j
            top = loaded(sums, at, size)
            count: Any = zeros
            total: Any = zeros
            for r in range(n):
                same = np.where(loaded(x, first + r * inner, size) == top, ones, zeros)
                total = total + (loaded(y, first + r * inner, size) - same)
                count = count + same
            stored(sums, blocks * inner + at, count)
            stored(sums, 2 * blocks * inner + at, total)
