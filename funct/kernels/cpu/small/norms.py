"""Norms of a few short vectors in one pass, with the bits of NumPy's sums: NumPy takes a call for
each step, and Python looks at the sums in between.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from funct.kernels.cpu.loops import kernel
from funct.kernels.cpu.vectors import loaded, stored

__all__ = ["LONGEST", "lengths"]

LONGEST = 128  # elements side by side, of which NumPy adds up every eighth


@kernel
def lengths(
    x: Any, y: Any, room: Any, outer: int, n: int, inner: int, least: float, pairs: bool
) -> int:  # fmt: skip
    """y (outer, inner): roots of the sums of squares of x (outer, n, inner). pairs: numbers are
    complex, and so their parts side by side. room: for 8 numbers.

    Returns: whether one of the sums is below the least, infinite or NaN.
    """
    odd: Any = np.int64(0)
    for o in range(outer):
        for i in range(inner):
            first = o * n * inner + i
            total: Any = y.dtype.type(0.0)
            if inner == 1 and n > 7:
                if pairs:
                    total = _of_eighths(x, first, n & -8, pairs)
                else:
                    total = _of_vectors(x, first, n & -8, room)
                for k in range(n & -8, n):
                    total = total + _square(x, first + k, pairs)
            else:
                for k in range(n):
                    total = total + _square(x, first + k * inner, pairs)
            wide = total.astype(np.float64)
            odd = np.where(wide >= least, odd, 1)
            odd = np.where(wide < np.inf, odd, 1)
            y[o * inner + i] = np.sqrt(total)
    return odd


def _of_vectors(x: Any, first: Any, n: Any, room: Any) -> Any:
    """As `_of_eighths`, the eight sums side by side."""
    v = loaded(x, first, 8)
    many: Any = v * v
    for k in range(8, n, 8):
        v = loaded(x, first + k, 8)
        many = many + v * v
    stored(room, 0, many)
    left = (room[0] + room[1]) + (room[2] + room[3])
    return left + ((room[4] + room[5]) + (room[6] + room[7]))


def _of_eighths(x: Any, first: Any, n: Any, pairs: Any) -> Any:
    left = _half(x, first, n, pairs)
    return left + _half(x, first + 4, n, pairs)


def _half(x: Any, first: Any, n: Any, pairs: Any) -> Any:
    a = _eighth(x, first, n, pairs) + _eighth(x, first + 1, n, pairs)
    b = _eighth(x, first + 2, n, pairs) + _eighth(x, first + 3, n, pairs)
    return a + b


def _eighth(x: Any, first: Any, n: Any, pairs: Any) -> Any:
    total = _square(x, first, pairs)
    for k in range(8, n, 8):
        total = total + _square(x, first + k, pairs)
    return total


def _square(x: Any, e: Any, pairs: Any) -> Any:
    if pairs:
        return x[2 * e] * x[2 * e] + x[2 * e + 1] * x[2 * e + 1]
    return x[e] * x[e]
