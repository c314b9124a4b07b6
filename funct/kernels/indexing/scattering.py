"""Sums at positions of zeros, adjoints of `gather.py`; plain and in machine code the same bits.

What changes an array at positions is `combining.py`.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from funct.kernels.cpu.indexing import combining
from funct.kernels.cpu.indexing import gather as cpu
from funct.kernels.cpu.loops import ready
from funct.kernels.cpu.prepared import Plan, Prepared
from funct.kernels.cpu.scratch import fresh
from funct.kernels.dtypes import is_half
from funct.kernels.elementwise.casting import in_dtype
from funct.kernels.indexing.positions import (
    as_int64,
    checked,
    extents,
    fits,
    in_parts,
    refuse_outside,
    signed,
)
from funct.kernels.reductions.scans import through_single
from funct.kernels.windows.views import inverse_order, memory_order

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Index = NDArray[Any]

__all__ = [
    "combine_rows", "few_summed", "plain_put", "plain_put_along", "plain_segment_sum", "put",
    "put_along", "segment_sum", "sums_of_few",
]  # fmt: skip

_INT64, _SINGLE = map(np.dtype, (np.int64, np.float32))
_SUMMED = frozenset([np.dtype(c).num for c in "bBhHiIlLqQfd"])
_SPARSE = 2  # times as many places as indices, of which not all are widened
_FAR = 1 << 24  # bytes that caches hold in part at most
_MUCH, _COLUMNS, _TASKS = 1 << 16, 64, 16  # elements and columns of a task at least, and tasks


def put(g: NDArray[Any], i: Index, axis: int, n: int) -> NDArray[Any]:
    """Zeros of length n along axis, with g added at the indices i, which stand for g's axes there.

    Two writes to one place are added in the order of the indices; halves in float32, and the sum is
    rounded once.
    """
    i = signed(i)
    if is_half(g.dtype):
        if i.ndim and g.size and _SPARSE * i.size <= n:
            return _put_sparsely(g, i, axis, n)
        return through_single(put, g, i, axis, n)
    if not fits(g):
        return plain_put(g, i, axis, n)
    order = memory_order(g) if i.ndim == 1 else None
    if order is not None:
        found = put(g.transpose(order), i, order.index(axis), n)
        return found.transpose(inverse_order(order))
    y = np.zeros((*g.shape[:axis], n, *g.shape[axis + i.ndim :]), g.dtype)
    if y.size:
        _add(g, i, y, axis, "add", False)
    else:
        refuse_outside(int(bool(i.size)))
    return y


def _put_sparsely(g: NDArray[Any], i: Index, axis: int, n: int) -> NDArray[Any]:
    """`put` of halves, mostly of zeros: in float32 are the places alone that are met."""
    i = as_int64(i)
    refuse_outside(int(bool((i < -n).any() or (i >= n).any())))
    met, which = np.unique(np.where(i < 0, i + n, i), return_inverse=True)
    sums = through_single(put, g, which.reshape(i.shape), axis, len(met))
    y = np.zeros((*g.shape[:axis], n, *g.shape[axis + i.ndim :]), g.dtype)
    y[(slice(None),) * axis + (met,)] = sums
    return y


def _add(g: NDArray[Any], i: Index, y: NDArray[Any], axis: int, mode: str, drop: bool) -> None:
    if y.ndim == 1:
        refuse_outside(combining.add_elements(g, i, y, 1, i.size, y.size, mode, drop))
        return
    outer, n, inner = prod(y.shape[:axis]), y.shape[axis], prod(y.shape[axis + 1 :])
    if inner == 1:
        refuse_outside(combining.add_elements(g, i, y, outer, i.size, n, mode, drop))
    else:
        combine_rows(g, i, y, (outer, i.size, n, inner), mode, drop)


def combine_rows(
    g: NDArray[Any], i: Index, y: NDArray[Any], sizes: tuple[int, int, int, int], mode: str,
    drop: bool, width: int = 0, begin: int = 0, step: int = 1,
) -> None:  # fmt: skip
    """Combine rows of g (outer, count, inner) with those of y (outer, n, inner) at i (count,), in
    y itself. sizes: outer, count, n, inner. drop: indices outside [0, n) are left out. width: that
    of y's rows where it is another, of which every `step`-th column from `begin` on is changed.
    """
    outer, count, _, inner = sizes
    wrong = np.zeros(1, np.int64)
    part = inner
    if count * inner * outer >= 2 * _MUCH:
        tasks = max(1, min(_TASKS, inner // _COLUMNS, count * inner * outer // _MUCH))
        part = -(-inner // (tasks * 8)) * 8
    far = y.nbytes >= _FAR
    tasks = -(-inner // part)
    place = width or inner, begin, step, step > 1
    g, i = np.ascontiguousarray(g), as_int64(i)
    combining.combine_rows(g, i, y, wrong, *sizes, *place, mode, drop, far, part, tasks)
    checked(y, wrong)


def plain_put(g: NDArray[Any], i: Index, axis: int, n: int) -> NDArray[Any]:
    """`put` in NumPy."""
    rows = g.reshape((*g.shape[:axis], i.size, *g.shape[axis + i.ndim :]))
    y = np.zeros((*g.shape[:axis], n, *g.shape[axis + i.ndim :]), g.dtype)
    into = np.moveaxis(y, axis, 0) if axis else y
    np.add.at(into, i.reshape(-1), np.moveaxis(rows, axis, 0) if axis else rows)
    return y


def segment_sum(data: NDArray[Any], ids: Index, n: int) -> NDArray[Any]:
    """Sums of the rows of data with one id, (n, ...); ids outside [0, n) are left out.

    Halves are summed in float32, and rounded once.
    """
    if is_half(data.dtype):
        return through_single(segment_sum, data, ids, n)
    parts = in_parts(data) if data.dtype.kind == "c" and n else None
    if parts is not None:
        sums = segment_sum(parts, ids, n)
        return sums.view(data.dtype).reshape(n, *data.shape[1:])
    truth = data.dtype.kind == "b"  # whether there is a true one
    x = data.view(np.uint8) if truth else data
    if not fits(x) or not n:
        return plain_segment_sum(data, ids, n)
    y = np.zeros((n, *x.shape[1:]), x.dtype)
    _add(x, ids, y, 0, "max" if truth else "add", True)
    return y.view(bool) if truth else y


def sums_of_few(data: NDArray[Any], ids: Index, n: int) -> NDArray[Any] | None:
    """`segment_sum` of few numbers by a kernel; None for dtypes and machines that have none."""
    d, count = data.dtype, data.size
    if ids.dtype is not _INT64 or not ready(count, 0):
        return None
    made: NDArray[Any]
    if d.num in _SUMMED:
        made = combining.summed(data, ids, n, count, "add")
        return made
    if d.kind == "b":
        made = combining.summed(data.view(np.uint8), ids, n, count, "max")
        return made.view(d)
    if not is_half(d):
        return None
    made = combining.summed(in_dtype(data, _SINGLE), ids, n, count, "add")
    return made.astype(d)


def _summed(data: Any, ids: Any, n: Any) -> Plan | None:
    """How few numbers are summed by their ids."""
    d, count = data.dtype, data.size
    if n.__class__ is not int or not 0 < n <= _MUCH or not 0 < count <= _MUCH:
        return None
    if ids.dtype is not _INT64 or ids.ndim != 1 or data.shape != ids.shape or d.num not in _SUMMED:
        return None
    return Plan(combining.summed, (data, ids, n, count, "add"), (0, 1, None), (n,), d)


few_summed = Prepared(_summed)


def plain_segment_sum(data: NDArray[Any], ids: Index, n: int) -> NDArray[Any]:
    """`segment_sum` in NumPy: one row more takes what belongs to none."""
    ids = ids.astype(np.int64)
    return plain_put(data, np.where((ids >= 0) & (ids < n), ids, n), 0, n + 1)[:-1]


def put_along(g: NDArray[Any], i: Index, axis: int, n: int) -> NDArray[Any]:
    """Adjoint of `take_along`: zeros of length n along axis, with g added at i, of g's shape."""
    i = signed(i)
    if not fits(g, 1) or g.shape != i.shape:
        return plain_put_along(g, i, axis, n)
    order = memory_order(i)
    if order is not None:
        found = put_along(g.transpose(order), i.transpose(order), order.index(axis), n)
        return found.transpose(inverse_order(order))
    y = fresh((*g.shape[:axis], n, *g.shape[axis + 1 :]), g.dtype)
    g = np.ascontiguousarray(g)  # as one number for all is not: kernels take Python to copy it
    refuse_outside(cpu.along(g, as_int64(i), y, *extents(i, n, axis), False))
    return y


def plain_put_along(g: NDArray[Any], i: Index, axis: int, n: int) -> NDArray[Any]:
    """`put_along` in NumPy."""
    y = np.zeros((*g.shape[:axis], n, *g.shape[axis + 1 :]), g.dtype)
    where = list(np.ogrid[tuple(slice(k) for k in i.shape)])
    where[axis] = i
    np.add.at(y, tuple(where), g)
    return y
