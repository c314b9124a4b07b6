"""What sums of exponentials need of rows: differences to the greatest, and which ones are it."""

from __future__ import annotations

from typing import Any

import numpy as np

from funct.kernels.cpu.loops import parallel
from funct.kernels.cpu.vectors import loaded, spread, stored
from funct.kernels.cpu.windows.pooling import larger

__all__ = ["beside", "below"]

_LANES = 8


@parallel
def below(x: Any, y: Any, room: Any, highest: Any, rows: int, n: int, part: int, task: int) -> None:
    """y = x less the greatest of its row, if that is finite, which is written to highest (rows,).
    x and y: (rows, n). room: (tasks, 8). A task takes `part` rows.
    """
    whole = n & -_LANES
    for r in range(task * part, min((task + 1) * part, rows)):
        first = r * n
        top: Any = x[first]
        if whole > 0:
            many: Any = loaded(x, first, _LANES)
            for k in range(_LANES, whole, _LANES):
                many = larger(loaded(x, first + k, _LANES), many)
            stored(room, task * _LANES, many)
            for k in range(_LANES):
                top = larger(room[task * _LANES + k], top)
        for k in range(whole, n):
            top = larger(x[first + k], top)
        highest[r] = top
        less = np.where(top - top == 0, top, x.dtype.type(0))
        for k in range(0, whole, _LANES):
            stored(y, first + k, loaded(x, first + k, _LANES) - less)
        for k in range(whole, n):
            y[first + k] = x[first + k] - less


@parallel
def beside(
    x: Any, y: Any, highest: Any, weight: Any, rows: int, n: int, part: int, task: int
) -> None:
    """weight (rows,): how many of x are the greatest of their row, where 1 is taken from y."""
    whole = n & -_LANES
    one, zero = x.dtype.type(1), x.dtype.type(0)
    for r in range(task * part, min((task + 1) * part, rows)):
        first = r * n
        top = highest[r]
        count: Any = zero
        for k in range(0, whole, _LANES):
            same = loaded(x, first + k, _LANES) == spread(top, _LANES)
            if same.any():
                for e in range(first + k, first + k + _LANES):
                    here = np.where(x[e] == top, one, zero)
                    count = count + here
                    y[e] = y[e] - here
        for e in range(first + whole, first + n):
            here = np.where(x[e] == top, one, zero)
            count = count + here
            y[e] = y[e] - here
        weight[r] = count
