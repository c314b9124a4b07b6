"""Rows of few elements sorted, or their order, by one call in which NumPy's sort is called; None
where others are to do it.
"""

from __future__ import annotations

import functools
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from funct.device.memory import LARGE, serve
from funct.kernels.cpu.indexing.packing import PLACES
from funct.kernels.cpu.loops import ready
from funct.kernels.cpu.order.networks import SHORTEST
from funct.kernels.cpu.order.ordering import (
    largest_of_rows,
    largest_of_short_rows,
    order_rows,
    room_of,
    sort_rows,
)
from funct.kernels.cpu.order.words import SAMPLE
from funct.kernels.cpu.outside import sorts
from funct.kernels.cpu.prepared import LATER, Plan, Prepared
from funct.kernels.cpu.scratch import workspace
from funct.kernels.cpu.vectors import HALVES
from funct.kernels.dtypes import NATIVE
from funct.kernels.indexing.masks import wide
from funct.kernels.order import columns
from funct.kernels.order.counting import SORTED, seem_close

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["SHORT", "argsort", "few_sorted", "line", "sort", "top_k"]

SHORT = 256  # elements of a row up to which its columns are sorted to find the largest
_SHORT = 32  # elements of a line up to which it is sorted quicker by insertion
_IN_VECTOR = {4: 9, 8: 11}  # and of a row from which on a vector is sooner, by their bytes
_PREPARED = 4  # and of one whose sort is prepared
_FEW = 1 << 12  # elements of arrays whose sorts are prepared, which no other Python thread shares
_WORDS = "fdiIlL"  # which NumPy sorts in vectors
_SHORT_WORDS = "hH"  # and which it sorts so on some processors
_REALS = frozenset("fd")
_WORD = np.dtype(np.uint64)
_LIKE = np.zeros(1, np.int64)  # what places are


@functools.cache
def _in_vectors() -> dict[str, NDArray[Any]]:
    """No elements of each dtype whose sort of NumPy's can be called by kernels."""
    known = _WORDS + _SHORT_WORDS if columns.packs_short() else _WORDS
    return {c: np.empty(0, c) for c in known if sorts(np.dtype(c))}


@functools.cache
def _ordered() -> dict[np.dtype[Any], NDArray[Any]]:
    """And of those whose order is not said sooner by their few digits."""
    known = (*map(np.dtype, _WORDS), *HALVES)
    return {d: np.empty(0, d) for d in known} if sorts(_WORD) else {}


def line(x: NDArray[Any], size: int, descending: bool) -> NDArray[Any] | None:
    """A line of so many elements, sorted."""
    room, counted, packs = _LINES.get(x.dtype) or _of_line(x.dtype)
    if room is None or size < _SHORT or not ready(size, 0):
        return None
    if counted and seem_close(x):
        return None
    y: NDArray[Any] = sort_rows(x, room, PLACES, size, 1, descending, packs)
    return y


def _of_line(dtype: np.dtype[Any]) -> tuple[NDArray[Any] | None, bool, bool]:
    """Of a dtype what `line` asks at every call: no elements, if NumPy's sort can be called;
    whether those close together are counted; whether vectors are packed.
    """
    counted = dtype.char not in _REALS and dtype.itemsize > 2
    found = _LINES[dtype] = _in_vectors().get(dtype.char), counted, wide()
    return found


_LINES: dict[np.dtype[Any], tuple[NDArray[Any] | None, bool, bool]] = {}


def sort(x: NDArray[Any], size: int, axis: int, descending: bool) -> NDArray[Any] | None:
    """x, of that many elements, sorted along axis."""
    room = _in_vectors().get(x.dtype.char)
    if room is None or not ready(size, 0):
        return None
    if x.ndim == 1:
        return line(x, size, descending)
    n = x.shape[axis]
    if n < _IN_VECTOR.get(x.itemsize, SHORTEST) or not x.flags.c_contiguous:
        return None
    inner = prod(x.shape[axis + 1 :])
    if x.nbytes >= LARGE:
        serve(x.nbytes)
    if inner > 1:
        room = workspace(2 * n, x.dtype)
    y: NDArray[Any] = sort_rows(x, room, PLACES, n, inner, descending, wide())
    return y


def _sorted(x: Any, axis: int, descending: bool) -> Plan | None:
    """How few elements are sorted in a way that does not depend on what they are."""
    if not -x.ndim <= axis < x.ndim or x.dtype.num >= NATIVE or not 0 < x.size < _FEW:
        return None
    if not ready(x.size, 0):
        return LATER
    axis %= x.ndim
    room, counted, packs = _LINES.get(x.dtype) or _of_line(x.dtype)
    n, inner = x.shape[axis], prod(x.shape[axis + 1 :])
    if inner > 1:
        if room is not None and (beside := columns.plan(x, axis, descending)) is not None:
            return beside
        room = None if room is None else np.empty(2 * n, x.dtype)
    close = counted and x.ndim == 1 and x.nbytes >= SORTED
    if room is None or n < _PREPARED or close:
        return None
    given = x, room, PLACES, n, inner, descending, packs
    return Plan(sort_rows, given, (0, None, None), x.shape, x.dtype)


few_sorted = Prepared(_sorted)


def argsort(x: NDArray[Any], axis: int, n: int, descending: bool) -> NDArray[np.int64] | None:
    """The order of each row of n elements; None also where their keys are alike for long."""
    room = _ordered().get(x.dtype)
    if n < _SHORT or room is None or not ready(x.size, 0) or not x.flags.c_contiguous:
        return None
    inner, line = 1 if x.ndim == 1 else prod(x.shape[axis + 1 :]), _LIKE
    if inner > 1:
        room, line = np.empty(n, x.dtype), np.empty(n, np.int64)
    words, low = workspace(n, _WORD), (n - 1).bit_length()
    y: NDArray[np.int64] | None
    y = order_rows(x, _LIKE, room, words, line, n, inner, low, descending)
    return y


def top_k(x: NDArray[Any], k: int) -> tuple[NDArray[Any], NDArray[np.int64]] | None:
    """The k largest of each row along the last axis, and where they stand."""
    n, lead = x.shape[-1], x.shape[:-1]
    short, most = n <= SHORT and k < n, k + (k >> 2) + SAMPLE + 1
    if x.dtype not in _ordered() or not (short or most <= n) or not ready(x.size, 0):
        return None
    rows, low = prod(lead), (n - 1).bit_length()
    values, places = np.empty((*lead, k), x.dtype), np.empty((*lead, k), np.int64)
    if short:
        words, some = workspace(room_of(n), _WORD), np.empty(k + 1, _WORD)
        signed = words.view(np.int64)
        failed = largest_of_short_rows(x, words, signed, some, values, places, rows, n, k, low)
    else:
        words, some = workspace(n, _WORD), np.empty(most, _WORD)
        failed = largest_of_rows(x, words, some, values, places, rows, n, k, low, most)
    return None if failed else (values, places)
