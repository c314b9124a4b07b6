"""Boolean sparse matrices, and the COO arrays that users get. SciPy is imported at the first call.

A `Rows` matrix has one row for each element of an array, and says which of n things it depends on.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "Rows", "coo", "filled", "identity", "linked", "nothing", "pattern_of", "places", "stacked",
    "turned", "union",
]  # fmt: skip

Rows: TypeAlias = Any  # scipy.sparse.csr_array of bool
Index: TypeAlias = "NDArray[np.int64]"


@functools.cache
def _scipy() -> Any:
    # SciPy costs 50 ms and most programs never need it, so it waits for the first call.
    import scipy.sparse

    return scipy.sparse


def identity(n: int) -> Rows:
    """Row k depends on thing k alone."""
    every = np.arange(n)
    return _rows(every, every, (n, n))


def nothing(rows: int, things: int) -> Rows:
    """No row depends on anything."""
    return _scipy().csr_array((rows, things), dtype=np.bool_)


def linked(d: Rows, out: Index, source: Index, size: int) -> Rows:
    """Row out[k] of the result depends on what row source[k] of d depends on, for every k."""
    return _rows(out, source, (size, d.shape[0])) @ d


def union(a: Rows, b: Rows) -> Rows:
    """Each row depends on what it depends on in a or in b."""
    return a + b


def stacked(parts: Sequence[Rows]) -> Rows:
    """The rows of all parts."""
    return _scipy().vstack(parts, format="csr", dtype=np.bool_)


def turned(d: Rows) -> Rows:
    """Which rows depend on each thing."""
    return d.T.tocsr()


def filled(d: Rows) -> NDArray[np.bool_]:
    """Which rows depend on anything."""
    return np.asarray(np.diff(d.indptr) > 0)


def pattern_of(matrix: Any) -> Rows:
    """The entries of any matrix of SciPy, whatever their values."""
    d = _scipy().csr_array(matrix)
    return _scipy().csr_array((np.ones(d.nnz, np.bool_), d.indices, d.indptr), shape=d.shape)


def places(d: Rows) -> tuple[Index, Index]:
    """Row and column of each entry of a matrix, in C order and without repetition."""
    d.sum_duplicates()
    rows = np.repeat(np.arange(d.shape[0]), np.diff(d.indptr))
    return rows.astype(np.int64), d.indices.astype(np.int64)


def coo(values: NDArray[Any], rows: Index, columns: Index, shape: tuple[int, int]) -> Any:
    """scipy.sparse.coo_array with these entries, zeros among the values included."""
    return _scipy().coo_array((values, (rows, columns)), shape=shape)


def _rows(out: Index, source: Index, shape: tuple[int, int]) -> Rows:
    ones = np.ones(len(out), np.bool_)
    return _scipy().csr_array((ones, (out, source)), shape=shape)
