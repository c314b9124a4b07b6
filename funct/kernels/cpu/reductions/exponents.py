"""What sums of exponentials need of rows: differences to the greatest, and which ones are it."""

from __future__ import annotations

from typing import Any

import numpy as np

from funct.kernels.cpu.loops import parallel
from funct.kernels.cpu.vectors import loaded, many, picked, room, spread, stored
from funct.kernels.cpu.windows.pooling import larger

__all__ = ["beside", "below"]

_LANES = 16
_ABREAST = 4 * _LANES  # elements that are compared at once: each waits for the one before it
_FROM = {k: tuple(range(k, 2 * k)) for k in (2, 4, 8)} | {0: tuple(range(8))}  # halves of vectors


@parallel
def below(x: Any, y: Any, highest: Any, rows: int, n: int, part: int, task: int) -> None:
    """y = x less the greatest of its row, if that is finite, which is written to highest (rows,).
    x and y: (rows, n). A task takes `part` rows.
    """
    whole = n & -_LANES
    held = room(x.dtype, 2)
    for r in range(task * part, min((task + 1) * part, rows)):
        first = r * n
        top: Any = x[first]
        if whole > 0:
            a: Any = loaded(x, first, _LANES)
            k: Any = np.int64(0)
            if n >= _ABREAST:
                b, c, d = a, a, a
                while k + _ABREAST <= n:
                    at = first + k
                    a = larger(loaded(x, at, _LANES), a)
                    b = larger(loaded(x, at + _LANES, _LANES), b)
                    c = larger(loaded(x, at + 2 * _LANES, _LANES), c)
                    d = larger(loaded(x, at + 3 * _LANES, _LANES), d)
                    k += _ABREAST
                a, c = larger(a, b), larger(c, d)
                a = larger(a, c)
            while k < whole:
                a = larger(loaded(x, first + k, _LANES), a)
                k += _LANES
            for half in (8, 4, 2):
                a = larger(picked(a, a, _FROM[half]), picked(a, a, _FROM[0][:half]))
            stored(held, 0, a)
            top = larger(held[0], top)
            top = larger(held[1], top)
        for e in range(whole, n):
            top = larger(x[first + e], top)
        highest[r] = top
        less = np.where(top - top == 0, top, x.dtype.type(0))
        for e in range(0, whole, _LANES):
            stored(y, first + e, loaded(x, first + e, _LANES) - less)
        for e in range(whole, n):
            y[first + e] = x[first + e] - less


@parallel
def beside(
    x: Any, y: Any, highest: Any, weight: Any, rows: int, n: int, part: int, task: int
) -> None:
    """weight (rows,): how many of x are the greatest of their row, where 1 is taken from y."""
    whole = n & -_LANES
    one, zero = x.dtype.type(1), x.dtype.type(0)
    ones, zeros = spread(one, _LANES), spread(zero, _LANES)
    for r in range(task * part, min((task + 1) * part, rows)):
        first = r * n
        top = highest[r]
        count: Any = np.int64(0)
        for k in range(first, first + whole, _LANES):
            same = loaded(x, k, _LANES) == spread(top, _LANES)
            stored(y, k, loaded(y, k, _LANES) - np.where(same, ones, zeros))
            count += many(same)
        for e in range(first + whole, first + n):
            same = x[e] == top
            y[e] = y[e] - np.where(same, one, zero)
            count += np.where(same, 1, 0)
        weight[r] = count.astype(x.dtype)
