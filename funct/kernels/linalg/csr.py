"""Products of a sparse matrix and a dense one: plain, or in machine code.

The matrix is compressed by rows: data (p,) and indices (p,), the columns, in the order of the rows,
and indptr (m + 1,), where each row begins. Sums have the order of the entries. A column out of
bounds, or rows that do not fit the entries, raise IndexError.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from funct.kernels.cpu.loops import KNOWN, ready
from funct.kernels.cpu.products import csr as cpu

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Index = NDArray[np.integer[Any]]
    DType = np.dtype[Any]

__all__ = [
    "last", "matmul", "parts", "plain_matmul", "plain_sampled", "product", "sampled", "takes",
]  # fmt: skip

_DOUBLE, _INDEX = np.dtype(np.float64), np.dtype(np.int32)  # what SciPy gives
_REALS = (_DOUBLE, np.dtype(np.float32))
_OUTSIDE = "an index of the sparse matrix is out of bounds"
_MOST = (1 << 31) - 1  # of 4 bytes
_PART = 1 << 14  # products of a task


@functools.cache
def takes(a: DType, b: DType, indices: DType, indptr: DType) -> bool:
    """Whether there is machine code for two arrays of numbers and the indices, by dtype."""
    narrow = [i.kind != "i" or i.itemsize < 4 for i in (indices, indptr)]
    return a == b and a.char in KNOWN and a.kind != "b" and not any(narrow)


def _pays(a: NDArray[Any], b: NDArray[Any], indices: Index, indptr: Index, k: int) -> bool:
    """Whether products of numbers are left to machine code, k for each entry."""
    d, i, j = a.dtype, indices.dtype, indptr.dtype
    if not ready((indices.size + indptr.size) * k):
        return False
    usual = d is b.dtype and d is _DOUBLE and i is j and i is _INDEX
    return usual or takes(d, b.dtype, i, j)


def parts(rows: int, products: int) -> tuple[int, int]:
    """Rows of a task, and how many tasks."""
    if products <= _PART:
        return max(1, rows), 1 if rows else 0
    part = max(1, min(rows, _PART * rows // products))
    return part, -(-rows // part)


def product(
    data: NDArray[Any], x: NDArray[Any], indices: Index, indptr: Index, n: int, transposed: bool
) -> NDArray[Any] | None:
    """`matmul` of a vector as well; None for dtypes that take more care, and what is refused."""
    if data.dtype is not x.dtype or data.dtype not in _REALS:
        return None
    try:
        if x.ndim == 1:
            return matmul(data, x.reshape(-1, 1), indices, indptr, n, transposed).reshape(-1)
        return matmul(data, x, indices, indptr, n, transposed)
    except (IndexError, MemoryError):
        return None


def matmul(
    data: NDArray[Any], x: NDArray[Any], indices: Index, indptr: Index, n: int, transposed: bool
) -> NDArray[Any]:
    """The matrix (m, n) times x (n, k); transposed: its transpose times x (m, k)."""
    k, rows, entries = x.shape[1], indptr.size - 1, data.size
    if not _pays(data, x, indices, indptr, k):
        return plain_matmul(data, x, indices, indptr, n, transposed)
    if entries * k <= _PART and n:
        length = n if transposed else rows
        few = cpu.product_of_few(
            data, indices, indptr, x, length * k, entries, rows, k, last(indices.dtype, n),
            transposed, k == 1,
        )  # fmt: skip
        if few is None:
            raise _misfit(indices, indptr, n)
        return few.reshape(length, k)
    if k == 1:
        if not n or indptr[0] or indptr[-1] != entries:
            _check(indices, indptr, n)
        return _of_vector(data, x, indices, indptr, n, transposed)
    _check(indices, indptr, n)
    if transposed:
        y = np.zeros((n, k), data.dtype)
        cpu.scattered(data, indices, indptr, x, y, rows, k)
    else:
        y = np.empty((rows, k), data.dtype)
        cpu.matmul(data, indices, indptr, x, y, rows, k, *parts(rows, data.size * k))
    return y


def _of_vector(
    data: NDArray[Any], x: NDArray[Any], indices: Index, indptr: Index, n: int, transposed: bool
) -> NDArray[Any]:
    """`matmul` of a vector (n, 1); columns are checked on the way."""
    rows, entries, most = indptr.size - 1, data.size, last(indices.dtype, n)
    if transposed:
        y = np.zeros((n, 1), data.dtype)
        wrong = cpu.checked_scattered(data, indices, indptr, x, y, rows, entries, most)
    else:
        y, found = np.empty((rows, 1), data.dtype), np.zeros(1, np.int64)
        dealt = parts(rows, entries)
        cpu.checked_matvec(data, indices, indptr, x, y, found, entries, rows, most, *dealt)
        wrong = found[0]
    if wrong:
        raise _misfit(indices, indptr, n)
    return y


def last(indices: DType, n: int) -> int:
    """The last of n columns, as far as indices of that dtype reach."""
    return min(n - 1, _MOST if indices.itemsize == 4 else n) if n else 0


def _check(indices: Index, indptr: Index, n: int) -> None:
    entries = indices.size
    if n == 0 and entries:
        raise IndexError("there are no columns")
    if not cpu.fits(indices, indptr, entries, len(indptr) - 1, last(indices.dtype, n)):
        raise _misfit(indices, indptr, n)


def _misfit(indices: Index, indptr: Index, n: int) -> IndexError:
    """What is wrong with indices that a kernel refused."""
    try:
        _rows(indices, indptr, n)
    except IndexError as error:
        return error
    return IndexError(_OUTSIDE)  # in what is between the rows


def _rows(indices: Index, indptr: Index, n: int) -> Index:
    """The row of each entry."""
    counts = np.diff(indptr)
    if (counts < 0).any() or indptr[0] < 0 or int(indptr[-1]) > len(indices):
        raise IndexError("the rows of the sparse matrix do not fit its entries")
    if indices.size and not (indices.min() >= 0 and indices.max() < n):
        raise IndexError(_OUTSIDE)
    return np.repeat(np.arange(len(counts)), counts)


def plain_matmul(
    data: NDArray[Any], x: NDArray[Any], indices: Index, indptr: Index, n: int, transposed: bool
) -> NDArray[Any]:
    """`matmul` in NumPy."""
    rows = _rows(indices, indptr, n)
    part = slice(int(indptr[0]), int(indptr[0]) + len(rows))
    to, source = (indices[part], rows) if transposed else (rows, indices[part])
    y = np.zeros((n if transposed else len(indptr) - 1, x.shape[1]), np.result_type(data, x))
    np.add.at(y, to, data[part, None] * x[source])
    return y


def sampled(g: NDArray[Any], x: NDArray[Any], indices: Index, indptr: Index) -> NDArray[Any]:
    """g (m, k) times the transpose of x (n, k), at the entries of a matrix (m, n) alone: (p,)."""
    k, rows = x.shape[1], len(indptr) - 1
    if not _pays(g, x, indices, indptr, k):
        return plain_sampled(g, x, indices, indptr)
    _check(indices, indptr, len(x))
    h = np.zeros(indices.size, g.dtype)
    cpu.dots(g, x, indices, indptr, h, rows, k, *parts(rows, indices.size * k))
    return h


def plain_sampled(g: NDArray[Any], x: NDArray[Any], indices: Index, indptr: Index) -> NDArray[Any]:
    """`sampled` in NumPy."""
    rows = _rows(indices, indptr, len(x))
    first = int(indptr[0])
    h = np.zeros(indices.size, np.result_type(g, x))
    part = slice(first, first + len(rows))
    h[part] = (g[rows] * x[indices[part]]).sum(-1, dtype=h.dtype)
    return h
