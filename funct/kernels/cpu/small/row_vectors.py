"""A matrix whose rows are vectors, for what is computed with one matrix, or few: see
`funct.kernels.linalg.alone`.

It stands in a room whose rows begin with whole vectors, `apart` elements from one to the next, and
so is everything that stands beside it; what fills up the last vector of a row is 0 at first, and
never read. Vectors are as long as a line of the caches. Of complex numbers the imaginary parts of
a row stand `across` elements behind its real parts.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from funct.kernels.cpu.shared import shared
from funct.kernels.cpu.vectors import fused, gathered, lanes, loaded, spread, stored

__all__ = [
    "brought", "brought_pairs", "exchanged", "given", "given_pairs", "products_taken", "whole",
]  # fmt: skip


def whole(n: Any, width: int) -> Any:
    """How many elements the vectors have that hold n of them."""
    return (n + (width - 1)) & -width


def brought(x: Any, start: Any, n: Any, room: Any, to: Any, width: int) -> None:
    """Put a row of n elements into a room."""
    inside = n & -width
    for j in range(0, inside, width):
        stored(room, to + j, loaded(x, start + j, width).astype(room.dtype))
    if inside < n:
        at = lanes(width, np.int64) + inside
        v = gathered(x, np.where(at < n, at, n - 1) + start).astype(room.dtype)
        stored(room, to + inside, np.where(at < n, v, spread(room.dtype.type(0.0), width)))


def given(room: Any, start: Any, n: Any, y: Any, to: Any, width: int) -> None:
    """Take a row of n elements out of a room."""
    inside = n & -width
    for j in range(0, inside, width):
        stored(y, to + j, loaded(room, start + j, width).astype(y.dtype))
    for j in range(inside, n):
        y[to + j] = room[start + j].astype(y.dtype)


def brought_pairs(
    x: Any, start: Any, n: Any, room: Any, to: Any, across: Any, width: int
) -> None:  # fmt: skip
    """Put a row of n complex elements into a room."""
    for j in range(0, n, width):
        at = lanes(width, np.int64) + j
        its = np.where(at < n, at, n - 1) * 2
        zero = spread(room.dtype.type(0.0), width)
        re = gathered(x, its, 2 * start).astype(room.dtype)
        im = gathered(x, its, 2 * start + 1).astype(room.dtype)
        stored(room, to + j, np.where(at < n, re, zero))
        stored(room, to + across + j, np.where(at < n, im, zero))


def given_pairs(room: Any, start: Any, n: Any, y: Any, to: Any, across: Any) -> None:
    """Take a row of n complex elements out of a room."""
    for j in range(n):
        y[2 * (to + j)] = room[start + j].astype(y.dtype)
        y[2 * (to + j) + 1] = room[start + across + j].astype(y.dtype)


def exchanged(room: Any, a: Any, b: Any, length: Any, width: int) -> None:
    """Exchange two rows."""
    for j in range(0, length, width):
        v = loaded(room, a + j, width)
        stored(room, a + j, loaded(room, b + j, width))
        stored(room, b + j, v)


@shared(arrays=("room", "x"), writes=("room",))
def products_taken(
    room: Any, rows: Any, many: Any, apart: Any, x: Any, left: Any, down: Any, along: Any, top: Any,
    terms: Any, start: Any, stop: Any,
) -> None:  # fmt: skip
    """Take from `many` rows, the first at `rows`, between elements start and stop, products with
    the `terms` rows from `top` on: of row i times the numbers of x at left + i · down + k · along.
    """
    width, most = 64 // room.dtype.itemsize, many & -4
    for j in range(start, stop, width):
        at, by = rows + j, left
        for _i in range(0, most, 4):
            a: Any = loaded(room, at, width)
            b: Any = loaded(room, at + apart, width)
            c: Any = loaded(room, at + 2 * apart, width)
            d: Any = loaded(room, at + 3 * apart, width)
            first, second, third, fourth = by, by + down, by + 2 * down, by + 3 * down
            term = top + j
            for _k in range(terms):
                v = loaded(room, term, width)
                a = fused(-x[first], v, a)
                b = fused(-x[second], v, b)
                c = fused(-x[third], v, c)
                d = fused(-x[fourth], v, d)
                first, second, third = first + along, second + along, third + along
                fourth, term = fourth + along, term + apart
            stored(room, at, a)
            stored(room, at + apart, b)
            stored(room, at + 2 * apart, c)
            stored(room, at + 3 * apart, d)
            at, by = at + 4 * apart, by + 4 * down
        for _i in range(most, many):
            one: Any = loaded(room, at, width)
            first, term = by, top + j
            for _k in range(terms):
                one = fused(-x[first], loaded(room, term, width), one)
                first, term = first + along, term + apart
            stored(room, at, one)
            at, by = at + apart, by + down
