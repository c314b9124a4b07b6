"""Where values go among sorted ones: plain, or in machine code; both give the same places."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from funct.kernels.cpu.loops import pays
from funct.kernels.cpu.order.places import SEARCHED, search
from funct.kernels.cpu.order.presorted import STANDS, in_order
from funct.kernels.cpu.scratch import fresh

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Index = NDArray[np.int64]

__all__ = ["plain_searchsorted", "searchsorted"]

_BYTES = 1 << 8  # values that a byte may have
_MANY = 1 << 6  # values in order for each sorted element: then these are searched for among them
_INDEX = np.dtype(np.int64)
_SEARCHES = 1 << 12  # values that a task searches for: a multiple of `SEARCHED`


def searchsorted(x: NDArray[Any], v: NDArray[Any], side: Any) -> Index:
    """Where each of v would be inserted into the sorted 1-D x."""
    plain = x.dtype.isbuiltin == v.dtype.isbuiltin == 1
    if v.size < SEARCHED or not (plain or x.dtype == v.dtype):
        return plain_searchsorted(x, v, side)
    if x.dtype != v.dtype:  # NumPy compares them in what holds both
        both = np.result_type(x.dtype, v.dtype)
        x, v = x.astype(both, copy=False), v.astype(both, copy=False)
    if not pays(v):
        return plain_searchsorted(x, v, side)
    n = len(x)
    if v.size >= _MANY * n and v.flags.c_contiguous and in_order(v, 1, v.size, False) == STANDS:
        return _merged(x, v, side)
    if v.itemsize == 1 and v.size >= _BYTES:
        each = np.arange(_BYTES, dtype=np.uint8).view(v.dtype)
        return plain_searchsorted(x, each, side).take(v.view(np.uint8))
    known = int(x.searchsorted(np.asarray(np.nan, x.dtype))) if x.dtype.kind == "f" else n
    y = np.empty(v.shape, np.int64)
    tasks = -(-v.size // _SEARCHES)
    search(x, v, y, known, n, v.size, _SEARCHES, side == "left", tasks)
    return y


def _merged(x: NDArray[Any], v: NDArray[Any], side: Any) -> Index:
    """The same of v in order: each of x is before all values from one place on."""
    first = v.reshape(-1).searchsorted(x, "right" if side == "left" else "left").tolist()
    y, begin = fresh((v.size,), _INDEX), 0
    for k, end in enumerate([*first, v.size]):
        y[begin:end] = k
        begin = end
    return y.reshape(v.shape)


def plain_searchsorted(x: NDArray[Any], v: NDArray[Any], side: Any) -> Index:
    """`searchsorted` in NumPy."""
    return np.asarray(x.searchsorted(v, side))
