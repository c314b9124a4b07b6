"""Elements where a mask is true: taken, replaced, or their places; NumPy asks one by one."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np
from ml_dtypes import bfloat16

from funct.device.host import host
from funct.kernels.cpu.indexing import masked, packing
from funct.kernels.cpu.loops import pays, ready
from funct.kernels.cpu.scratch import fresh
from funct.kernels.dtypes import MOVED, USUAL, as_words
from funct.kernels.reductions.statistical import counted

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Index = NDArray[Any]

__all__ = ["CODED", "combined_under", "filled_under", "nonzero", "replaced", "under", "wide"]

_DOUBLE = np.dtype(np.float64)
CODED = frozenset([np.dtype(c).num for c in "bBhHiIlLqQfde"] + [np.dtype(bfloat16).num])
_SOME = 1 << 11  # elements whose places are found quicker than by NumPy
_FEW = 256  # elements of rows
_PART = 1 << 15  # elements of a task


def under(x: NDArray[Any], mask: NDArray[np.bool_]) -> NDArray[Any]:
    """x[mask] of 1-D x, for a mask of its length."""
    if not pays(mask) or x.itemsize not in MOVED:
        return x.compress(mask)
    count = int(counted(mask))
    y = fresh((count,), x.dtype)
    if count:
        packing.under(as_words(x), mask, as_words(y), len(x), count, x.itemsize >= 4 and wide())
    return y


def replaced(x: NDArray[Any], v: Any, mask: NDArray[np.bool_]) -> NDArray[Any] | None:
    """x with v, a float or an element of its dtype, under a mask of its shape; None where NumPy is
    to do it.

    NumPy asks element by element, and guesses wrong in every other one of an irregular mask.
    """
    n, d = x.size, x.dtype
    if x.itemsize not in MOVED or not ready(n, 0):
        return None
    single = v.__class__ is float and d is _DOUBLE
    v = v if single else np.asarray(v, d)
    if n <= _PART and d.num in USUAL:
        few: NDArray[Any] = packing.replaced_few(x, v, mask, single, False)
        return few
    if not (x.flags.c_contiguous and mask.flags.c_contiguous):
        return None
    v = np.asarray(v, d)
    y = fresh(x.shape, x.dtype)
    packing.replaced(as_words(x), as_words(v), mask, as_words(y), n, _PART, -(-n // _PART))
    return y


def combined_under(
    x: NDArray[Any], v: Any, mask: NDArray[np.bool_], mode: str
) -> NDArray[Any] | None:
    """x combined with one number of its dtype where a mask of its first axes holds; None where
    NumPy is to do it.
    """
    d, rank = x.dtype, mask.ndim
    if d.num not in CODED or not rank or mask.shape != x.shape[:rank] or not ready(x.size, 0):
        return None
    v = np.asarray(v, d)
    if v.size != 1 or v.ndim > x.ndim - rank + 1 or not x.size:
        return None
    if not (x.flags.c_contiguous and mask.flags.c_contiguous):
        return None
    y, n = fresh(x.shape, d), mask.size
    part = max(1, _PART * n // x.size)
    masked.combine_under(x, v, mask, y, n, x.size // n, mode, part, -(-n // part))
    return y


def filled_under(x: NDArray[Any], v: Any, mask: NDArray[np.bool_]) -> NDArray[Any] | None:
    """x with elements v of its dtype in their order where a mask of its shape holds; None where
    NumPy is to do it.
    """
    if x.itemsize not in MOVED or x.dtype.hasobject or v.__class__ is not np.ndarray:
        return None
    if v.dtype is not x.dtype or v.ndim != 1 or not v.size or mask.shape != x.shape:
        return None
    if not (x.flags.c_contiguous and mask.flags.c_contiguous and ready(x.size, 0)):
        return None
    y = fresh(x.shape, x.dtype)
    wrong = masked.fill_under(as_words(x), as_words(v), mask, as_words(y), x.size, v.size)
    return None if wrong else y


def nonzero(x: NDArray[Any]) -> tuple[Index, ...]:
    """As `x.nonzero()`."""
    rank = x.ndim
    if not rank or x.size < (_SOME if rank == 1 else _FEW) or not ready(x.size, 0):
        return x.nonzero()
    if rank > 2:  # tables say which rows are where
        *lead, n = x.shape
        rows, columns = nonzero(x.reshape(-1, n))
        return (*[table.take(rows) for table in _of_rows(tuple(lead))], columns)
    mask = x if x.dtype.kind == "b" else x != 0
    count = int(counted(mask))
    columns = np.empty(count, np.int64)
    rows = np.empty(count if rank == 2 else 0, np.int64)
    if count:
        outer, n = x.shape if rank == 2 else (1, len(x))
        packing.places(mask, packing.PLACES, rows, columns, outer, n, count, wide())
        if outer == 1:
            rows.fill(0)
    return (rows, columns) if rank == 2 else (columns,)


def _of_rows(lead: tuple[int, ...]) -> list[Index]:
    """For each axis the index of every row of an array with these axes and one more."""
    grid = np.ix_(*map(np.arange, lead))
    return [np.broadcast_to(i, lead).reshape(-1) for i in grid]


@functools.cache
def wide() -> bool:
    """Whether the processor packs vectors."""
    return host().has("avx512f", "avx512vl")
