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
from funct.kernels.cpu.vectors import gathered, lanes, loaded, many, spread, stored

__all__ = [
    "LANES", "cholesky", "cofactors", "det", "matrices_from", "of", "put", "size_of", "solve",
]  # fmt: skip

LANES = 8
_LOST = 2.0**-49  # of a pivot's column, what may be left of it by rounding alone
_LARGE = 1e150  # products of two such numbers, or of their inverses, are numbers still


@parallel
def det(
    x: Any, y: Any, room: Any, odd: Any, n: int, count: int, part: int, task: int
) -> None:  # fmt: skip
    """y (count,): determinants of x (count, n, n). room: (tasks, n + 1, n | 1, LANES). odd
    (tasks,): 1 where a product on the way was too large or too small. A task takes `part` matrices.
    """
    size, apart = n * n, n | 1
    base = task * (n + 1) * apart * LANES
    far: Any = np.int64(0)
    for t in range(task * part, min((task + 1) * part, count), LANES):
        first = matrices_from(t, count)
        for i in range(n):
            for j in range(n):
                v = gathered(x, first * size + (i * n + j)).astype(np.float64)
                put(room, base, i * apart + j, v)
        sign: Any = _eliminate(room, base, n, n, apart, spread(np.float64(1.0), LANES))
        for k in range(n):
            sign = sign * of(room, base, k * apart + k)
            length = size_of(sign)
            beyond = (length > _LARGE) | ((length < 1 / _LARGE) & (length > 0.0))
            far = far + many(beyond)
        put(room, base, 0, sign)
        for i in range(min(LANES, count - t)):
            y[t + i] = room[base + i].astype(y.dtype)
    odd[task] = np.where(far > 0, 1, 0)


@parallel
def solve(
    a: Any, b: Any, y: Any, room: Any, odd: Any, n: int, m: int, count: int, part: int, task: int,
) -> None:  # fmt: skip
    """y (count, n, m): a⁻¹ b for a (count, n, n) and b like y. room: (tasks, n + 2, n + m | 1,
    LANES). odd (tasks,): 1 where a pivot is 0, or what rounding may have left of its column.
    """
    wide, apart = n + m, n + m | 1
    base, largest = task * (n + 2) * apart * LANES, (n + 1) * apart
    lost: Any = np.int64(0)
    for t in range(task * part, min((task + 1) * part, count), LANES):
        first = matrices_from(t, count)
        for i in range(n):
            for j in range(n):
                at = first * (n * n) + (i * n + j)
                v = gathered(a, at).astype(np.float64)
                put(room, base, i * apart + j, v)
                most: Any = size_of(v)
                if i > 0:
                    most = _larger(most, of(room, base, largest + j))
                put(room, base, largest + j, most)
            for j in range(m):
                at = first * (n * m) + (i * m + j)
                put(room, base, i * apart + n + j, gathered(b, at).astype(np.float64))
        _eliminate(room, base, n, wide, apart, spread(np.float64(1.0), LANES))
        for u in range(n):
            i = n - 1 - u
            pivot = of(room, base, i * apart + i)
            lost = lost + many(size_of(pivot) <= of(room, base, largest + i) * _LOST)
            inverse = 1.0 / pivot
            for j in range(n, wide):
                total: Any = of(room, base, i * apart + j)
                for k in range(i + 1, n):
                    total = total - of(room, base, i * apart + k) * of(room, base, k * apart + j)
                put(room, base, i * apart + j, total * inverse)
        for i in range(min(LANES, count - t)):
            for j in range(n):
                for k in range(m):
                    e = base + (j * apart + n + k) * LANES + i
                    y[(t + i) * n * m + j * m + k] = room[e].astype(y.dtype)
    odd[task] = np.where(lost > 0, 1, 0)


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
        product: Any = _eliminate(room, base, n, wide, apart, one)
        for k in range(n):
            product = product * of(room, base, k * apart + k)
        above: Any = zero
        for u in range(n):
            i = n - 1 - u
            inverse = 1.0 / of(room, base, i * apart + i)
            for j in range(n, wide):
                total: Any = of(room, base, i * apart + j)
                for k in range(i + 1, n):
                    total = total - of(room, base, i * apart + k) * of(room, base, k * apart + j)
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
    x: Any, y: Any, room: Any, odd: Any, n: int, count: int, part: int, task: int
) -> None:  # fmt: skip
    """y (count, n, n): lower factors of the Hermitian parts of x. room: (tasks, n, n, LANES). odd
    (tasks,): 1 where one is not positive definite.
    """
    size = n * n
    base = task * size * LANES
    lost: Any = np.int64(0)
    for t in range(task * part, min((task + 1) * part, count), LANES):
        first = matrices_from(t, count)
        for i in range(n):
            for j in range(i + 1):
                below = gathered(x, first * size + (i * n + j)).astype(np.float64)
                above = gathered(x, first * size + (j * n + i)).astype(np.float64)
                put(room, base, i * n + j, below * 0.5 + above * 0.5)
        for j in range(n):
            pivot: Any = of(room, base, j * n + j)
            for k in range(j):
                v = of(room, base, j * n + k)
                pivot = pivot - v * v
            lost = lost + (LANES - many(pivot > 0.0))
            pivot = np.sqrt(pivot)
            inverse = 1.0 / pivot
            put(room, base, j * n + j, pivot)
            for i in range(j + 1, n):
                total: Any = of(room, base, i * n + j)
                for k in range(j):
                    total = total - of(room, base, i * n + k) * of(room, base, j * n + k)
                put(room, base, i * n + j, total * inverse)
        for i in range(min(LANES, count - t)):
            for j in range(n):
                for k in range(n):
                    e = base + (j * n + min(k, j)) * LANES + i
                    v = room[e].astype(y.dtype)
                    y[(t + i) * size + j * n + k] = np.where(k > j, y.dtype.type(0.0), v)
    odd[task] = np.where(lost > 0, 1, 0)


def matrices_from(t: Any, count: Any) -> Any:
    """Which matrix each lane has, from matrix t on."""
    here = lanes(LANES, np.int64) + t
    return np.where(here < count, here, count - 1)


def of(room: Any, base: Any, e: Any) -> Any:
    """Element e of the matrix of each lane."""
    return loaded(room, base + e * LANES, LANES)


def put(room: Any, base: Any, e: Any, v: Any) -> None:
    """Make v that element."""
    stored(room, base + e * LANES, v)


def _larger(v: Any, most: Any) -> Any:
    """The larger of two, or NaN."""
    return np.where(v <= most, most, v)


def size_of(v: Any) -> Any:
    """How large numbers are, without their signs."""
    return np.where(v < 0.0, -v, v)


def _eliminate(room: Any, base: Any, n: Any, wide: Any, apart: Any, sign: Any) -> Any:
    """Leave the upper triangles of the first n of `wide` columns, and what becomes of the rest;
    the row behind the last is used. apart: elements from row to row. Returns the sign, turned where
    rows changed places oddly.
    """
    spare = n * apart
    for k in range(n - 1):
        best: Any = size_of(of(room, base, k * apart + k))
        place: Any = spread(np.int64(0), LANES) + k
        for i in range(k + 1, n):
            size = size_of(of(room, base, i * apart + k))
            more = size > best
            best = np.where(more, size, best)
            place = np.where(more, i, place)
        sign = np.where(place == k, sign, -sign)
        for j in range(k, wide):
            old = of(room, base, k * apart + j)
            put(room, base, spare + j, old)
            top: Any = old
            for i in range(k + 1, n):
                top = np.where(place == i, of(room, base, i * apart + j), top)
            put(room, base, k * apart + j, top)
        pivot = of(room, base, k * apart + k)
        inverse = np.where(pivot == 0.0, 0.0, 1.0 / pivot)
        for i in range(k + 1, n):
            here = place == i
            left = np.where(here, of(room, base, spare + k), of(room, base, i * apart + k))
            factor = left * inverse
            for j in range(k + 1, wide):
                own = np.where(here, of(room, base, spare + j), of(room, base, i * apart + j))
                put(room, base, i * apart + j, own - factor * of(room, base, k * apart + j))
    return sign
