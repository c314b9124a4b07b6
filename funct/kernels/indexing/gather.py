"""Gather along an axis, plain or in machine code; both give the same bits.

The adjoints are `scattering.py`, what is under a mask is `masks.py`.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from funct.kernels.cpu.indexing import columns
from funct.kernels.cpu.indexing import gather as cpu
from funct.kernels.cpu.loops import ready
from funct.kernels.cpu.prepared import Plan, Prepared
from funct.kernels.cpu.scratch import fresh
from funct.kernels.dtypes import MOVED, USUAL, as_words
from funct.kernels.indexing.masks import under, wide
from funct.kernels.indexing.positions import (
    PLACES,
    alike,
    as_int64,
    checked,
    extents,
    flat,
    inside,
    refuse_outside,
    signed,
)
from funct.kernels.windows.views import inverse_order, memory_order

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Index = NDArray[Any]

__all__ = [
    "few_along", "few_taken", "picked", "picked_at", "plain_take_along", "take", "take_along",
]  # fmt: skip

_INT64 = np.dtype(np.int64)
_REALS: dict[int, np.dtype[Any]] = {  # by bytes, as what elements are moved
    4: np.dtype(np.float32), 8: np.dtype(np.float64),
}  # fmt: skip
_SOME = 1 << 11  # elements that are taken quicker than by NumPy, one for each index
_FEW = 256  # and those of which each line has indices of its own
_PART = 1 << 15  # elements of a task
_MANY = 1 << 13  # elements whose order in memory is asked for, and that NumPy takes by a call more
_ROW = 1 << 9  # bytes of a row that NumPy copies as well
_LINES = 1 << 10  # of which the same columns are taken, and looked at before


def take(x: NDArray[Any], i: Index, axis: int) -> NDArray[Any]:
    """As `x.take(i, axis)`, which copies rows well."""
    i = i if i.dtype is _INT64 else signed(i)  # no call for the usual
    if x.size * i.size < _SOME:  # as many as there may be at most
        return x.take(i, axis)
    rank = x.ndim
    if rank == 1:
        if i.size >= _SOME and _moves(x, i, i.size):
            return _elements(x, i)
    elif axis == rank - 1 and i.ndim == 1:
        count = x.size // x.shape[-1] * i.size
        if count >= _SOME and _moves(x, i, count):
            return _lines(x, i, (*x.shape[:-1], i.size), True)
    elif axis == 0:
        width = x.size // len(x) if x.size else 0
        if width * i.size >= _SOME and width * x.itemsize <= _ROW and _moves(x, i, i.size):
            return _rows(x, i, width)
    order = memory_order(x) if i.ndim == 1 and x.size >= _MANY else None
    if order is None:
        return x.take(i, axis)
    found = take(x.transpose(order), i, order.index(axis))
    return found.transpose(inverse_order(order))


def _moves(x: NDArray[Any], i: Index, count: int) -> bool:
    """Whether a kernel is to be preferred to take so many elements of x, as words, at i."""
    if i.dtype.num not in PLACES or not ready(count, 0):
        return False
    # x may lie on another device
    return x.itemsize in MOVED and x.flags.c_contiguous and x.__class__ is np.ndarray


def _elements(x: NDArray[Any], i: Index) -> NDArray[Any]:
    """1-D x at i."""
    count = i.size
    y = fresh(i.shape, x.dtype)
    wrong = np.zeros(1, np.int64)
    cpu.take_elements(as_words(x), i, as_words(y), wrong, count, len(x), _PART, -(-count // _PART))
    return checked(y, wrong)


def _rows(x: NDArray[Any], i: Index, width: int) -> NDArray[Any]:
    """x at i along its first axis, whose rows have so many elements."""
    word = MOVED.get(x.itemsize * width)
    if word is not None:
        words = x.reshape(len(x), width).view(word).reshape(-1)
        if words.flags.aligned:
            return _elements(words, i).view(x.dtype).reshape(i.shape + x.shape[1:])
    y, count, wrong = fresh(i.shape + x.shape[1:], x.dtype), i.size, np.zeros(1, np.int64)
    part = max(1, _PART // width)
    told = count, len(x), width, part, -(-count // part)
    cpu.take_rows(as_words(x), i, as_words(y), wrong, *told)
    return checked(y, wrong)


def _lines(x: NDArray[Any], i: Index, shape: tuple[int, ...], shared: bool) -> NDArray[Any]:
    """x at i along the last axis; shared: at the same indices in each of its lines."""
    y = fresh(shape, x.dtype)
    size, count = y.size, shape[-1]
    if not size:
        return y
    outer, given = size // count, (as_words(x), i, as_words(y))
    sizes = outer, count, x.shape[-1], shared
    if size <= _PART:
        refuse_outside(cpu.take_few(*given, *sizes))
        return y
    if shared and outer >= _LINES:
        _columns(*given, outer, count, x.shape[-1])
        return y
    part = max(1, _PART // count)
    wrong = np.zeros(1, np.int64)
    cpu.take_lines(*given, wrong, *sizes, part, -(-outer // part))
    return checked(y, wrong)


def _columns(x: NDArray[Any], i: Index, y: NDArray[Any], outer: int, count: int, n: int) -> None:
    """y: words at i in each of many lines of n words; short lines are taken several at a time."""
    size, longest = x.itemsize, max(n, count)
    lanes = columns.BYTES // size
    lines, room, fits, end = 1, count, "", ""
    if wide() and size >= 4 and longest <= 4 * lanes:
        lines = max(1, 2 * lanes // longest)
        room = -(-lines * count // lanes) * lanes
        last = lines * count - room + lanes
        end = "quarter" if 4 * last <= lanes else "half" if 2 * last <= lanes else "whole"
        fits = "one" if lines * n <= lanes else "two" if lines * n <= 2 * lanes else "four"
    at = np.empty(room, f"i{size}" if fits else np.int64)
    refuse_outside(columns.columns_of(i, at, count, n, lines, room))
    part = max(1, _PART // (count * lines))
    tasks = -(-outer // (part * lines))
    columns.take_columns(x, at, y, outer, count, n, lines, fits, end, part, tasks)


def picked(x: NDArray[Any], at: NDArray[Any]) -> NDArray[Any] | None:
    """x[at] where `at`, of many positions or a mask, is left to a kernel; rows to NumPy's `take`,
    which copies short ones better than its indexing does.
    """
    if at.dtype.num in PLACES and x.ndim > 1:
        return take(x, at, 0) if x.flags.c_contiguous else None
    if not x.ndim or at.size < _SOME:
        return None
    if at.dtype.num in PLACES:
        return take(x, at, 0)
    if at.dtype.kind != "b" or at.shape != x.shape:
        return None
    if x.ndim == 1:
        return under(x, at)
    return under(x.reshape(-1), at.reshape(-1)) if x.flags.c_contiguous else None


def picked_at(x: NDArray[Any], at: tuple[Any, ...]) -> NDArray[Any] | None:
    """x[at] for many positions on each of its first axes, two at least; None where NumPy is to do
    it, which walks through all of them side by side.
    """
    if not 1 < len(at) <= x.ndim or at[0].size < _FEW or not alike(at):
        return None
    if x.__class__ is not np.ndarray or not x.flags.c_contiguous or not ready(at[0].size, 0):
        return None
    if len(at) == x.ndim <= 3 and x.itemsize in MOVED and x.size:
        return _cells(x, at)
    if at[0].size < _SOME:
        return None
    places, n = flat(at, x.shape)
    rows = x.reshape(n, *x.shape[len(at) :])
    return take(rows, places, 0)


def _cells(x: NDArray[Any], at: tuple[Any, ...]) -> NDArray[Any]:
    """Elements of x, of two or three axes, at positions on each."""
    i, j, k, three = at[0], at[1], at[-1], len(at) == 3
    n, m, behind = x.shape if three else (*x.shape, 1)
    count = i.size
    if count <= _PART and x.dtype.num in USUAL:
        return inside(cpu.picked(x, i, j, k, n, m, behind, three))
    y, wrong = fresh(i.shape, x.dtype), np.zeros(1, np.int64)
    cpu.pick(
        as_words(x), i, j, k, as_words(y), wrong, count, n, m, behind, three, _PART,
        -(-count // _PART),
    )  # fmt: skip
    return checked(y, wrong)


def take_along(x: NDArray[Any], i: Index, axis: int) -> NDArray[Any]:
    """As `numpy.take_along_axis`, for shapes that agree except on axis."""
    i = i if i.dtype is _INT64 else signed(i)
    rank, count = x.ndim, i.size
    least = _SOME if rank == 1 else _FEW if x.flags.c_contiguous else max(_FEW, x.size // 8)
    if count < least or not _moves(x, i, count):
        return plain_take_along(x, i, axis)
    if rank == 1:
        return _elements(x, i)
    if axis == rank - 1 and i.flags.c_contiguous:
        if count <= _PART and x.itemsize in _REALS and i.dtype is _INT64:
            width, given = i.shape[axis], x.view(_REALS[x.itemsize])
            few = inside(cpu.taken_along(given, i, count // width, width, x.shape[axis]))
            return few.view(x.dtype)
        return _lines(x, i, i.shape, False)
    order = memory_order(i)
    if order is not None:
        found = take_along(x.transpose(order), i.transpose(order), order.index(axis))
        return found.transpose(inverse_order(order))
    if axis == rank - 1:
        return _lines(x, i, i.shape, False)
    y = fresh(i.shape, x.dtype)
    refuse_outside(
        cpu.along(as_words(x), as_int64(i), as_words(y), *extents(i, x.shape[axis], axis), True)
    )
    return y


def _along(x: Any, i: Any, axis: Any) -> Plan | None:
    """How few elements are taken along the last axis."""
    rank, shape = x.ndim, i.shape
    if axis.__class__ is not int or not rank or shape[:-1] != x.shape[:-1] or len(shape) != rank:
        return None
    if axis not in (-1, rank - 1) or not _is_moved(x, i, i.size):
        return None
    outer = i.size // shape[-1]
    given = as_words(x), i, outer, shape[-1], x.shape[-1]
    return Plan(cpu.taken_along, given, (0, 1, None), shape, x.dtype)


def _taken(x: Any, i: Any, axis: Any) -> Plan | None:
    """How few elements are taken from 1-D x, few rows, or the same elements of each line."""
    rank, shape = x.ndim, x.shape
    if axis is None and rank == 1:
        axis = 0
    if axis.__class__ is not int or not -rank <= axis < rank:
        return None
    axis %= rank
    size = x.size // shape[axis] * i.size if x.size else 0
    if not _is_moved(x, i, size):
        return None
    y = np.empty((*shape[:axis], *i.shape, *shape[axis + 1 :]), x.dtype)
    given = as_words(x), i, as_words(y)
    if rank > 1 and axis == 0:
        rows = *given, i.size, shape[0], x.size // shape[0]
        return Plan(cpu.take_few_rows, rows, (0, 1, None), y.shape, x.dtype, 2)
    if axis != rank - 1 or (rank > 1 and i.ndim != 1):
        return None
    lines = *given, x.size // shape[-1], i.size, shape[-1], rank > 1
    return Plan(cpu.take_few, lines, (0, 1, None), y.shape, x.dtype, 2)


def _is_moved(x: Any, i: Any, count: int) -> bool:
    """Whether so many elements are few, and code is made to move them as words."""
    return 0 < count <= _PART and i.dtype.num in PLACES and x.itemsize in MOVED and x.size > 0


few_along, few_taken = Prepared(_along), Prepared(_taken)


def plain_take_along(x: NDArray[Any], i: Index, axis: int) -> NDArray[Any]:
    """`take_along` in NumPy."""
    if x.ndim == 1:
        return x.take(i)
    if i.size >= _MANY or x.__class__ is not np.ndarray:  # which may lie on another device
        return np.take_along_axis(x, i, axis)
    places = _places(i.shape)
    found: NDArray[Any] = x[(*places[:axis], i, *places[axis + 1 :])]
    return found


@functools.lru_cache(256)
def _places(shape: tuple[int, ...]) -> tuple[Any, ...]:
    """The indices of all elements, as arrays that broadcast."""
    return np.ix_(*map(range, shape))
