"""Products of a sparse matrix by rows: entries of row r stand at indptr[r] … indptr[r + 1].

Where there are tasks, each takes `part` rows. `fits` says whether all indices are in bounds; the
others take that for granted.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from funct.kernels.cpu.indexing.filling import cleared
from funct.kernels.cpu.loops import kernel, making, parallel
from funct.kernels.cpu.vectors import loaded, spread, stored

__all__ = ["LANES", "dots", "fits", "matmul", "matvec", "product_of_few", "scattered"]

LANES = 8
_BLOCK = 4 * LANES  # columns whose sums stay in registers


_UNSIGNED = {4: np.uint32, 8: np.uint64}
_MANY = 32


@kernel
def fits(indices: Any, indptr: Any, entries: int, rows: int, most: int) -> int:
    """1 if columns are in [0, most], a number of their dtype, and rows begin in order."""
    if _misfits(indices, indptr, entries, rows, most):
        return 0
    return 1


def _misfits(indices: Any, indptr: Any, entries: Any, rows: Any, most: Any) -> Any:
    unsigned = _UNSIGNED[indices.dtype.itemsize]  # in which what is negative is beyond all columns
    last = unsigned(most)
    whole = entries & -_MANY
    greatest = spread(unsigned(0), _MANY)
    for e in range(0, whole, _MANY):
        at = loaded(indices, e, _MANY).view(unsigned)
        greatest = np.where(at > greatest, at, greatest)
    bad = (greatest > last).any()
    for e in range(whole, entries):
        bad = bad | (indices[e].view(unsigned) > last)
    whole = rows & -LANES
    for r in range(0, whole, LANES):
        bad = bad | (loaded(indptr, r, LANES) > loaded(indptr, r + 1, LANES)).any()
    for r in range(whole, rows):
        bad = bad | (indptr[r] > indptr[r + 1])
    bad = bad | (indptr[0] < 0) | (indptr[rows].astype(np.int64) > entries)
    return bad


@parallel
def matvec(
    data: Any, indices: Any, indptr: Any, x: Any, y: Any, rows: int, part: int, task: int
) -> None:  # fmt: skip
    """y (rows,): the matrix times x (n,)."""
    _vector(data, indices, indptr, x, y, task * part, min((task + 1) * part, rows))


def _vector(
    data: Any, indices: Any, indptr: Any, x: Any, y: Any, begin: Any, end: Any
) -> None:  # fmt: skip
    for r in range(begin, end):
        total = y.dtype.type(0)
        for e in range(indptr[r].astype(np.int64), indptr[r + 1].astype(np.int64)):
            total = total + data[e] * x[indices[e].astype(np.int64)]
        y[r] = total


@parallel
def matmul(
    data: Any, indices: Any, indptr: Any, x: Any, y: Any, rows: int, k: int, part: int,
    task: int,
) -> None:  # fmt: skip
    """y (rows, k): the matrix times x (n, k)."""
    _matrix(data, indices, indptr, x, y, k, task * part, min((task + 1) * part, rows))


def _matrix(
    data: Any, indices: Any, indptr: Any, x: Any, y: Any, k: Any, begin: Any, end: Any
) -> None:  # fmt: skip
    for r in range(begin, end):
        first = indptr[r].astype(np.int64)
        last = indptr[r + 1].astype(np.int64)
        j = 0
        while j + _BLOCK <= k:
            a = spread(y.dtype.type(0), LANES)
            b = a
            c = a
            d = a
            for e in range(first, last):
                v = spread(data[e], LANES)
                at = indices[e].astype(np.int64) * k + j
                a = a + v * loaded(x, at, LANES)
                b = b + v * loaded(x, at + LANES, LANES)
                c = c + v * loaded(x, at + 2 * LANES, LANES)
                d = d + v * loaded(x, at + 3 * LANES, LANES)
            stored(y, r * k + j, a)
            stored(y, r * k + j + LANES, b)
            stored(y, r * k + j + 2 * LANES, c)
            stored(y, r * k + j + 3 * LANES, d)
            j += _BLOCK
        while j + LANES <= k:
            a = spread(y.dtype.type(0), LANES)
            for e in range(first, last):
                at = indices[e].astype(np.int64) * k + j
                a = a + spread(data[e], LANES) * loaded(x, at, LANES)
            stored(y, r * k + j, a)
            j += LANES
        while j < k:
            total = y.dtype.type(0)
            for e in range(first, last):
                total = total + data[e] * x[indices[e].astype(np.int64) * k + j]
            y[r * k + j] = total
            j += 1


@kernel
def scattered(
    data: Any, indices: Any, indptr: Any, x: Any, y: Any, rows: int, k: int
) -> None:  # fmt: skip
    """y (n, k) += the transpose of the matrix times x (rows, k)."""
    if k == 1:
        _scattered_vector(data, indices, indptr, x, y, rows)
    else:
        _scattered_matrix(data, indices, indptr, x, y, rows, k)


def _scattered_vector(data: Any, indices: Any, indptr: Any, x: Any, y: Any, rows: Any) -> None:
    for r in range(rows):
        v = x[r]
        for e in range(indptr[r].astype(np.int64), indptr[r + 1].astype(np.int64)):
            at = indices[e].astype(np.int64)
            y[at] = y[at] + data[e] * v


def _scattered_matrix(
    data: Any, indices: Any, indptr: Any, x: Any, y: Any, rows: Any, k: Any
) -> None:  # fmt: skip
    whole = k & -LANES
    for r in range(rows):
        for e in range(indptr[r].astype(np.int64), indptr[r + 1].astype(np.int64)):
            v = data[e]
            at = indices[e].astype(np.int64) * k
            for j in range(0, whole, LANES):
                added = spread(v, LANES) * loaded(x, r * k + j, LANES)
                stored(y, at + j, loaded(y, at + j, LANES) + added)
            for j in range(whole, k):
                y[at + j] = y[at + j] + v * x[r * k + j]


@making("size", "data")
def product_of_few(
    data: Any, indices: Any, indptr: Any, x: Any, size: int, entries: int, rows: int, k: int,
    most: int, transposed: bool, vector: bool, y: Any, n: int,
) -> int:  # fmt: skip
    """Either product in a new array of `size` numbers, after `fits`; vector: k is 1."""
    if _misfits(indices, indptr, entries, rows, most):
        return 1
    if transposed:
        cleared(y, n)
        if vector:
            _scattered_vector(data, indices, indptr, x, y, rows)
        else:
            _scattered_matrix(data, indices, indptr, x, y, rows, k)
    elif vector:
        _vector(data, indices, indptr, x, y, 0, rows)
    else:
        _matrix(data, indices, indptr, x, y, k, 0, rows)
    return 0


@parallel
def dots(
    g: Any, x: Any, indices: Any, indptr: Any, h: Any, rows: int, k: int, part: int,
    task: int,
) -> None:  # fmt: skip
    """h: for each entry the product of its row of g (rows, k) and its column's row of x (n, k)."""
    for r in range(task * part, min((task + 1) * part, rows)):
        for e in range(indptr[r].astype(np.int64), indptr[r + 1].astype(np.int64)):
            at = indices[e].astype(np.int64) * k
            total = h.dtype.type(0)
            for j in range(k):
                total = total + g[r * k + j] * x[at + j]
            h[e] = total
