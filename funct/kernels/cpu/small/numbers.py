"""Numbers of many small matrices, one in each lane of a vector, real or complex: see
`funct.kernels.linalg.stacks`.

Elements are in a task's room in double precision: element e of all matrices stands from e · LANES
on, that of complex ones as two, a real part and an imaginary one. What is computed with is a pair;
of a real number the second part is 0, and in no sum. pairs: whether numbers are complex.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from funct.kernels.cpu.vectors import gathered, lanes, loaded, spread, stored

__all__ = [
    "LANES", "inverted", "length_of", "less", "matrices_from", "number", "of", "over", "put",
    "put_number", "size_of", "square_of", "taken", "times", "written",
]  # fmt: skip

LANES = 8


def matrices_from(t: Any, count: Any) -> Any:
    """Which matrix each lane has, from matrix t on."""
    here = lanes(LANES, np.int64) + t
    return np.where(here < count, here, count - 1)


def of(room: Any, base: Any, e: Any) -> Any:
    """Vector e of a room."""
    return loaded(room, base + e * LANES, LANES)


def put(room: Any, base: Any, e: Any, v: Any) -> None:
    """Make v that vector."""
    stored(room, base + e * LANES, v)


def number(room: Any, base: Any, e: Any, pairs: bool) -> tuple[Any, Any]:
    """Element e of the matrix of each lane."""
    if pairs:
        return of(room, base, 2 * e), of(room, base, 2 * e + 1)
    return of(room, base, e), spread(np.float64(0.0), LANES)


def put_number(room: Any, base: Any, e: Any, v: Any, pairs: bool) -> None:
    """Make v that element."""
    if pairs:
        put(room, base, 2 * e, v[0])
        put(room, base, 2 * e + 1, v[1])
    else:
        put(room, base, e, v[0])


def taken(x: Any, at: Any, pairs: bool) -> tuple[Any, Any]:
    """The elements of an array at a vector of places."""
    if pairs:
        re = gathered(x, at * 2).astype(np.float64)
        return re, gathered(x, at * 2 + 1).astype(np.float64)
    return gathered(x, at).astype(np.float64), spread(np.float64(0.0), LANES)


def written(
    y: Any, at: Any, room: Any, base: Any, e: Any, lane: Any, pairs: bool
) -> None:  # fmt: skip
    """Make element `at` of an array element e of one lane."""
    if pairs:
        y[2 * at] = room[base + 2 * e * LANES + lane].astype(y.dtype)
        y[2 * at + 1] = room[base + (2 * e + 1) * LANES + lane].astype(y.dtype)
    else:
        y[at] = room[base + e * LANES + lane].astype(y.dtype)


def less(v: Any, a: Any, b: Any, pairs: bool) -> tuple[Any, Any]:
    """v - a b."""
    if pairs:
        re = v[0] - (a[0] * b[0] - a[1] * b[1])
        return re, v[1] - (a[0] * b[1] + a[1] * b[0])
    return v[0] - a[0] * b[0], v[1]


def times(a: Any, b: Any, pairs: bool) -> tuple[Any, Any]:
    """a b."""
    if pairs:
        return a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]
    return a[0] * b[0], a[1]


def inverted(v: Any, pairs: bool) -> tuple[Any, Any]:
    """1 / v; of 0 it is no number."""
    if pairs:  # squares of what is divided by its size are neither too large nor too small
        size = length_of(v, pairs)
        re, im = v[0] / size, v[1] / size
        below = (re * re + im * im) * size
        return re / below, -im / below
    return 1.0 / v[0], v[1]


def over(a: Any, b: Any, pairs: bool) -> tuple[Any, Any]:
    """a / b."""
    return times(a, inverted(b, pairs), pairs) if pairs else (a[0] / b[0], a[1])


def square_of(v: Any, pairs: bool) -> Any:
    """The square of the absolute value."""
    return v[0] * v[0] + v[1] * v[1] if pairs else v[0] * v[0]


def length_of(v: Any, pairs: bool) -> Any:
    """How large numbers are: as LAPACK compares them, the sum of both parts without their signs."""
    return size_of(v[0]) + size_of(v[1]) if pairs else size_of(v[0])


def size_of(v: Any) -> Any:
    """Parts without their signs."""
    return np.where(v < 0.0, -v, v)
