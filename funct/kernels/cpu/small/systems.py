"""Elimination and Cholesky's factors of many small matrices, one in each lane of a vector: see
`funct.kernels.linalg.stacks`.

A task brings LANES matrices at a time to its room in double precision, element by element: the
element e of all of them stands from e · LANES on. Lanes behind the last matrix hold it once more.
Rows are an odd number of elements apart where columns are walked, that these find room in the
cache. Pivots are the largest of a column, as LAPACK's; a lane takes its row by selection.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from funct.kernels.cpu.loops import parallel
from funct.kernels.cpu.small.numbers import (
    LANES,
    inverted,
    length_of,
    less,
    matrices_from,
    number,
    of,
    put,
    put_number,
    size_of,
    taken,
    times,
    written,
)
from funct.kernels.cpu.vectors import gathered, many, spread

__all__ = ["cholesky", "cofactors", "det", "solve"]

_LOST = 2.0**-49  # of a pivot's column, what may be left of it by rounding alone
_LARGE = 1e150  # products of two such numbers, or of their inverses, are numbers still


@parallel
def det(
    x: Any, y: Any, room: Any, odd: Any, n: int, count: int, part: int, pairs: bool, task: int
) -> None:  # fmt: skip
    """y (count,): determinants of x (count, n, n). room: (tasks, n + 1, n | 1) numbers of LANES.
    odd (tasks,): 1 where a product on the way was too large or too small. A task takes `part`
    matrices.
    """
    size, apart, parts = n * n, n | 1, 2 if pairs else 1
    base = task * (n + 1) * apart * parts * LANES
    far: Any = np.int64(0)
    for t in range(task * part, min((task + 1) * part, count), LANES):
        first = matrices_from(t, count)
        for i in range(n):
            for j in range(n):
                v = taken(x, first * size + (i * n + j), pairs)
                put_number(room, base, i * apart + j, v, pairs)
        re: Any = _eliminate(room, base, n, n, apart, spread(np.float64(1.0), LANES), pairs)
        im: Any = spread(np.float64(0.0), LANES)
        for k in range(n):
            re, im = times((re, im), number(room, base, k * apart + k, pairs), pairs)
            length = length_of((re, im), pairs)
            beyond = (length > _LARGE) | ((length < 1 / _LARGE) & (length > 0.0))
            far = far + many(beyond)
        put_number(room, base, 0, (re, im), pairs)
        for i in range(min(LANES, count - t)):
            written(y, t + i, room, base, 0, i, pairs)
    odd[task] = np.where(far > 0, 1, 0)


@parallel
def solve(
    a: Any, b: Any, y: Any, room: Any, odd: Any, n: int, m: int, count: int, part: int,
    pairs: bool, task: int,
) -> None:  # fmt: skip
    """y (count, n, m): a⁻¹ b for a (count, n, n) and b like y. room: (tasks, n + 2, n + m | 1)
    numbers of LANES. odd (tasks,): 1 where a pivot is 0, or what rounding may have left of its
    column.
    """
    wide, apart, parts = n + m, n + m | 1, 2 if pairs else 1
    base, largest = task * (n + 2) * apart * parts * LANES, (n + 1) * apart * parts
    lost: Any = np.int64(0)
    for t in range(task * part, min((task + 1) * part, count), LANES):
        first = matrices_from(t, count)
        for i in range(n):
            for j in range(n):
                v = taken(a, first * (n * n) + (i * n + j), pairs)
                put_number(room, base, i * apart + j, v, pairs)
                most: Any = length_of(v, pairs)
                if i > 0:
                    most = _larger(most, of(room, base, largest + j))
                put(room, base, largest + j, most)
            for j in range(m):
                w = taken(b, first * (n * m) + (i * m + j), pairs)
                put_number(room, base, i * apart + n + j, w, pairs)
        _eliminate(room, base, n, wide, apart, spread(np.float64(1.0), LANES), pairs)
        for u in range(n):
            i = n - 1 - u
            pivot = number(room, base, i * apart + i, pairs)
            lost = lost + many(length_of(pivot, pairs) <= of(room, base, largest + i) * _LOST)
            inverse = inverted(pivot, pairs)
            for j in range(n, wide):
                re, im = _substituted(room, base, n, apart, i, j, pairs)
                put_number(room, base, i * apart + j, times((re, im), inverse, pairs), pairs)
        for i in range(min(LANES, count - t)):
            for j in range(n):
                for k in range(m):
                    at = (t + i) * n * m + j * m + k
                    written(y, at, room, base, j * apart + n + k, i, pairs)
    odd[task] = np.where(lost > 0, 1, 0)


def _substituted(
    room: Any, base: Any, n: Any, apart: Any, i: Any, j: Any, pairs: bool
) -> tuple[Any, Any]:
    """Element j of row i, less what the rows below it have in it."""
    re, im = number(room, base, i * apart + j, pairs)
    for k in range(i + 1, n):
        above = number(room, base, i * apart + k, pairs)
        re, im = less((re, im), above, number(room, base, k * apart + j, pairs), pairs)
    return re, im


@parallel
def cofactors(
    x: Any, y: Any, room: Any, near: Any, n: int, count: int, part: int, most: float, task: int,
) -> None:  # fmt: skip
    """y (count, n, n): the determinant of each x (count, n, n) times its inverse transposed. room:
    (tasks, n + 1, 2 n + 1, LANES). near (count,): 1 where the largest elements of a matrix and of
    its inverse, multiplied, are not below `most`, so that digits are lost, or its determinant is no
    usual number.
    """
    wide, apart, size = 2 * n, 2 * n + 1, n * n
    base = task * (n + 1) * apart * LANES
    zero, one = spread(np.float64(0.0), LANES), spread(np.float64(1.0), LANES)
    for t in range(task * part, min((task + 1) * part, count), LANES):
        first = matrices_from(t, count)
        largest: Any = zero
        for i in range(n):
            for j in range(n):
                v = gathered(x, first * size + (i * n + j)).astype(np.float64)
                largest = _larger(size_of(v), largest)
                put(room, base, i * apart + j, v)
                put(room, base, i * apart + n + j, zero)
            put(room, base, i * apart + n + i, one)
        product: Any = _eliminate(room, base, n, wide, apart, one, False)
        for k in range(n):
            product = product * of(room, base, k * apart + k)
        above: Any = zero
        for u in range(n):
            i = n - 1 - u
            inverse = 1.0 / of(room, base, i * apart + i)
            for j in range(n, wide):
                total, _ = _substituted(room, base, n, apart, i, j, False)
                total = total * inverse
                above = _larger(size_of(total), above)
                put(room, base, i * apart + j, total)
        length = size_of(product)
        usual = (length <= _LARGE) & (length >= 1 / _LARGE)
        spare = n * apart  # the row behind the last
        put(room, base, spare, product)
        put(room, base, spare + 1, np.where(usual, largest * above, np.inf))
        for i in range(min(LANES, count - t)):
            determinant = room[base + spare * LANES + i]
            near[t + i] = np.where(room[base + (spare + 1) * LANES + i] < most, 0, 1)
            for j in range(n):
                for k in range(n):
                    e = base + (k * apart + n + j) * LANES + i
                    y[(t + i) * size + j * n + k] = (room[e] * determinant).astype(y.dtype)


@parallel
def cholesky(
    x: Any, y: Any, room: Any, odd: Any, n: int, count: int, part: int, pairs: bool, task: int
) -> None:  # fmt: skip
    """y (count, n, n): lower factors of the Hermitian parts of x. room: (tasks, n, n) numbers of
    LANES. odd (tasks,): 1 where one is not positive definite.
    """
    size, parts = n * n, 2 if pairs else 1
    base = task * size * parts * LANES
    lost: Any = np.int64(0)
    for t in range(task * part, min((task + 1) * part, count), LANES):
        first = matrices_from(t, count)
        for i in range(n):
            for j in range(i + 1):
                below = taken(x, first * size + (i * n + j), pairs)
                above = taken(x, first * size + (j * n + i), pairs)
                middle = below[0] * 0.5 + above[0] * 0.5, below[1] * 0.5 - above[1] * 0.5
                put_number(room, base, i * n + j, middle, pairs)
        for j in range(n):
            pivot, _ = _unlike(room, base, n, j, j, pairs)
            lost = lost + (LANES - many(pivot > 0.0))
            pivot = np.sqrt(pivot)
            inverse = 1.0 / pivot
            put_number(room, base, j * n + j, (pivot, pivot * 0.0), pairs)
            for i in range(j + 1, n):
                re, im = _unlike(room, base, n, i, j, pairs)
                put_number(room, base, i * n + j, (re * inverse, im * inverse), pairs)
        for i in range(min(LANES, count - t)):
            for j in range(n):
                for k in range(j + 1):
                    written(y, (t + i) * size + j * n + k, room, base, j * n + k, i, pairs)
                for k in range((j + 1) * parts, n * parts):
                    y[((t + i) * size + j * n) * parts + k] = y.dtype.type(0.0)
    odd[task] = np.where(lost > 0, 1, 0)


def _unlike(room: Any, base: Any, n: Any, i: Any, j: Any, pairs: bool) -> tuple[Any, Any]:
    """Element j of row i, less the product of what is before it in rows i and j."""
    re, im = number(room, base, i * n + j, pairs)
    for k in range(j):
        v, other = number(room, base, i * n + k, pairs), number(room, base, j * n + k, pairs)
        re, im = less((re, im), v, (other[0], -other[1]), pairs)
    return re, im


def _larger(v: Any, most: Any) -> Any:
    """The larger of two, or NaN."""
    return np.where(v <= most, most, v)


def _eliminate(room: Any, base: Any, n: Any, wide: Any, apart: Any, sign: Any, pairs: bool) -> Any:
    """Leave the upper triangles of the first n of `wide` columns, and what becomes of the rest;
    the row behind the last is used. apart: elements from row to row. Returns the sign, turned where
    rows changed places oddly.
    """
    spare = n * apart
    for k in range(n - 1):
        best: Any = length_of(number(room, base, k * apart + k, pairs), pairs)
        place: Any = spread(np.int64(0), LANES) + k
        for i in range(k + 1, n):
            size = length_of(number(room, base, i * apart + k, pairs), pairs)
            more = size > best
            best = np.where(more, size, best)
            place = np.where(more, i, place)
        sign = np.where(place == k, sign, -sign)
        for j in range(k, wide):
            old = number(room, base, k * apart + j, pairs)
            put_number(room, base, spare + j, old, pairs)
            re, im = old
            for i in range(k + 1, n):
                re, im = _either(place == i, number(room, base, i * apart + j, pairs), (re, im))
            put_number(room, base, k * apart + j, (re, im), pairs)
        pivot = number(room, base, k * apart + k, pairs)
        gone = length_of(pivot, pairs) == 0.0
        inverse = _either(gone, (0.0, 0.0), inverted(pivot, pairs))
        for i in range(k + 1, n):
            here = place == i
            left = number(room, base, i * apart + k, pairs)
            left = _either(here, number(room, base, spare + k, pairs), left)
            factor = times(left, inverse, pairs)
            for j in range(k + 1, wide):
                own = number(room, base, i * apart + j, pairs)
                own = _either(here, number(room, base, spare + j, pairs), own)
                own = less(own, factor, number(room, base, k * apart + j, pairs), pairs)
                put_number(room, base, i * apart + j, own, pairs)
    return sign


def _either(test: Any, a: Any, b: Any) -> tuple[Any, Any]:
    """Numbers of a where the test holds, else of b."""
    return np.where(test, a[0], b[0]), np.where(test, a[1], b[1])
