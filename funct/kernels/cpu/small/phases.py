"""Columns and rows of complex matrices turned so that their largest component is real: see
`funct.kernels.linalg.phases`. Complex numbers are their parts, side by side.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from funct.kernels.cpu.loops import kernel

__all__ = ["turn", "turn_rows"]


@kernel
def turn(
    v: Any, first: int, back: Any, m: int, n: int, rows: int, width: int, count: int
) -> None:  # fmt: skip
    """Turn the columns of each of v (count, m, n) from the first on, and rows of back (count, rows,
    width), as far as there are such, the other way.
    """
    for t in range(count):
        for j in range(first, n):
            start = (t * m * n + j) * 2
            re, im = _phase(v, start, m, n)
            _multiply(v, start, m, n, re, im)
            if j < rows:
                _multiply(back, (t * rows + j) * width * 2, width, 1, re, -im)


@kernel
def turn_rows(v: Any, first: int, rows: int, width: int, count: int) -> None:
    """Turn the rows of each of v (count, rows, width) from the first on."""
    for t in range(count):
        for i in range(first, rows):
            start = (t * rows + i) * width * 2
            re, im = _phase(v, start, width, 1)
            _multiply(v, start, width, 1, re, im)


def _phase(v: Any, first: Any, count: Any, step: Any) -> Any:
    """The factor for `count` numbers, by its parts."""
    best: Any = v.dtype.type(-1.0)
    at: Any = first
    for i in range(count):
        e = first + i * step * 2
        size = v[e] * v[e] + v[e + 1] * v[e + 1]
        at = np.where(size > best, e, at)
        best = np.where(size > best, size, best)
    length = np.sqrt(v[at] * v[at] + v[at + 1] * v[at + 1])
    return v[at] / length, -v[at + 1] / length


def _multiply(v: Any, first: Any, count: Any, step: Any, re: Any, im: Any) -> None:
    for i in range(count):
        e = first + i * step * 2
        x = v[e]
        y = v[e + 1]
        v[e] = x * re - y * im
        v[e + 1] = x * im + y * re
