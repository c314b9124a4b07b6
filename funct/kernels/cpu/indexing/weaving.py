"""A few long rows, of which an element each comes in turn: what makes pixels of channels.

NumPy writes such arrays out number by number, and asks for each row anew at every few of them.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from funct.kernels.cpu.loops import parallel
from funct.kernels.cpu.scratch import fresh

__all__ = ["weave", "woven"]

_ROWS = (2, 3, 4)
_AXES = 3  # in front of those of columns and rows, that are no part of their neighbours
_TASK = 1 << 15  # elements
_WORDS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


@parallel
def weave(
    x: Any, y: Any, n0: int, n1: int, n2: int, s0: int, s1: int, s2: int, apart: int, columns: int,
    rows: Any, some: int, task: int,
) -> None:  # fmt: skip
    """y (n0, n1, n2, columns, rows): the elements of x, of which so many `s0` to `s2` and `apart`
    are between neighbours along the axes but for columns, that lie in one. rows: their numbers. A
    task writes `some` of the tables.
    """
    for r in range(task * some, min((task + 1) * some, n0 * n1 * n2)):
        outer = np.int64(np.uint64(r) // np.uint64(n2))
        first = np.int64(np.uint64(outer) // np.uint64(n1))
        at = first * s0 + (outer - first * n1) * s1 + (r - outer * n2) * s2
        to = r * columns * len(rows)
        for i in range(columns):
            for j in rows:
                y[to + i * len(rows) + j] = x[at + i + j * apart]


def woven(x: Any) -> Any:
    """The elements of x, in C's order, in a new array of its shape; None for what is no dense array
    with its axes in another order, whose last one is of few such rows.
    """
    word = _WORDS.get(x.dtype.itemsize)
    axes = _merged(x)
    if word is None or not 2 <= len(axes) <= _AXES + 2:
        return None
    *lead, (columns, step), (rows, apart) = axes
    if rows not in _ROWS or step != 1:
        return None
    flat = x.transpose(sorted(range(x.ndim), key=lambda a: -x.strides[a]))
    if not flat.flags.c_contiguous or not flat.flags.aligned:
        return None
    lead = [(1, 0)] * (_AXES - len(lead)) + lead
    y = fresh(x.shape, x.dtype)
    tables = math.prod([n for n, _ in lead])
    some = max(1, _TASK // (columns * rows))
    weave(
        flat.reshape(-1).view(word), y.reshape(-1).view(word), *[n for n, _ in lead],
        *[s for _, s in lead], apart, columns, tuple(range(rows)), some, -(-tables // some),
    )  # fmt: skip
    return y


def _merged(x: Any) -> list[tuple[int, int]]:
    """Lengths of axes and how far apart elements are, of what is no part of the axis before."""
    axes: list[tuple[int, int]] = []
    for n, step in zip(x.shape, x.strides, strict=True):
        apart = step // x.itemsize
        if axes and axes[-1][1] == n * apart:
            axes[-1] = axes[-1][0] * n, apart
        elif n > 1:
            axes.append((n, apart))
    return axes
