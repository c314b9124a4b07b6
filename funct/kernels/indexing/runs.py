"""Runs of elements side by side, repeated, taken from each other or cut at a diagonal: plain, or in
machine code; both give the same bits.
"""

from __future__ import annotations

import functools
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from funct.kernels.cpu import scratch as memory
from funct.kernels.cpu.indexing import repeats
from funct.kernels.cpu.indexing import runs as cpu
from funct.kernels.cpu.loops import pays, ready
from funct.kernels.cpu.prepared import Plan, Prepared
from funct.kernels.dtypes import MOVED, USUAL, as_words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = [
    "backward", "differences", "evenly", "few_joined", "joined", "plain_differences",
    "repeated", "rolled", "rows", "triangle",
]  # fmt: skip

_SOME = 1 << 11  # elements from which on machine code pays where rows are short
_FEW = 1 << 8  # and for differences, repetitions, and triangles, which NumPy asks one by one
_ROWS, _SHORT = 16, 1 << 12  # rows, and bytes of one up to which NumPy loses time between them
_PIECES = 100  # rows of several arrays, between which NumPy loses more time than a call
_EIGHT = 8  # arrays of one call
_LEAST, _MOST_BYTES = 12, 1 << 10  # of the longest row that is joined sooner than by NumPy,
_BLOCK = 1 << 18  # and of a result that a cache keeps
_PART = 1 << 15  # elements of a task
_NARROW = "bBhH"  # integers of which few are turned round in one call
_MOST = 1 << 28  # bytes of repeated elements


def backward(x: NDArray[Any], n: int) -> NDArray[Any] | None:
    """Rows of n elements from their ends, where they are narrow numbers, which are then worth
    vectors to whoever reads them; None where a view will do.
    """
    size = x.size
    if x.itemsize > 2 or n < _FEW or not x.flags.c_contiguous or not ready(size, 0):
        return None
    if size < _PART and x.dtype.char in _NARROW:
        few: NDArray[Any] = cpu.backwards_few(x, n, size // n)
        return few
    if size < _SHORT or x.dtype.hasobject:
        return None
    y, rows = memory.fresh(x.shape, x.dtype), size // n
    part = max(1, _PART // n)
    cpu.backward(as_words(x), as_words(y), n, rows, part, -(-rows // part))
    return y


def differences(x: NDArray[Any], axis: int) -> NDArray[Any]:
    """What each element is above the one before it along axis."""
    shape, size = x.shape, x.size
    n = shape[axis]
    if n < 2 or n == size or not pays(x, _FEW) or not x.flags.c_contiguous or x.dtype.kind == "b":
        return plain_differences(x, axis)
    behind = shape[axis + 1 :]
    inner = prod(behind) if behind else 1
    outer = size // (n * inner)
    if outer == 1:  # two runs, which NumPy takes from each other as quickly
        return plain_differences(x, axis)
    y = memory.fresh((*shape[:axis], n - 1, *behind), x.dtype)
    part = max(1, _PART // (n * inner))
    cpu.differences(x, y, outer, n, inner, part, -(-outer // part))
    return y


def plain_differences(x: NDArray[Any], axis: int) -> NDArray[Any]:
    """`differences` in NumPy."""
    before: Any = (slice(None),) * axis
    late: NDArray[Any] = x[(*before, slice(1, None))]
    return late - x[(*before, slice(None, -1))]


def repeated(x: NDArray[Any], counts: NDArray[Any]) -> NDArray[Any] | None:
    """Elements of 1-D x, each as often as counts say; None where these are negative or huge."""
    n = x.size
    if n < _FEW or counts.shape != x.shape or x.itemsize not in MOVED or not pays(counts):
        return None
    size = cpu.total(counts, n)
    if not 0 <= size * x.itemsize < _MOST:
        return None
    if size < _PART and x.dtype.num in USUAL:
        few: NDArray[Any] = cpu.repetitions(x, counts, size, n)
        return few
    y = memory.fresh((size,), x.dtype)
    cpu.repeated(as_words(x), counts, as_words(y), n, size)
    return y


def evenly(x: NDArray[Any], times: int, axis: int | None) -> NDArray[Any] | None:
    """Each element of x so many times along an axis (None: of the flattened x); None where NumPy
    is to do it.
    """
    shape = (x.size,) if axis is None else x.shape
    axis = 0 if axis is None else axis + x.ndim * (axis < 0)
    if not 2 <= times <= repeats.MOST or not x.flags.c_contiguous or not 0 <= axis < len(shape):
        return None
    if prod(shape[axis + 1 :]) != 1 or x.size < repeats.LEAST or x.itemsize not in MOVED:
        return None
    if x.dtype.hasobject or x.nbytes * times >= _MOST or not ready(x.size, 0):
        return None
    y = memory.fresh((*shape[:axis], shape[axis] * times, *shape[axis + 1 :]), x.dtype)
    repeats.evenly(x, y, times)
    return y


def joined(a: NDArray[Any], b: NDArray[Any], axis: Any) -> NDArray[Any] | None:
    """Two arrays joined along an axis, of short rows; None where NumPy is to do it."""
    if axis.__class__ is not int or a.dtype is not b.dtype:
        return None
    plan = _joining(a.shape, b.shape, a.dtype, axis)
    if plan is None or not (a.flags.c_contiguous and b.flags.c_contiguous) or not ready(a.size, 0):
        return None
    shape, lies = plan
    y = memory.fresh(shape, a.dtype)
    cpu.joined(as_words(a), as_words(b), as_words(y), *lies)
    return y


@functools.lru_cache(256)
def _joining(
    a: tuple[int, ...], b: tuple[int, ...], dtype: np.dtype[Any], axis: int
) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """The shape of what is joined, and how rows lie, for `cpu.joined`."""
    if not -len(a) <= axis < len(a) or len(a) != len(b):
        return None
    axis %= len(a)
    if a[:axis] != b[:axis] or a[axis + 1 :] != b[axis + 1 :]:
        return None
    if not _are_rows(a, dtype, axis) or not _are_rows(b, dtype, axis):
        return None
    first, second, rows = prod(a[axis:]), prod(b[axis:]), prod(a[:axis])
    shape = (*a[:axis], a[axis] + b[axis], *a[axis + 1 :])
    return shape, (first, 0, first, second, 0, second, *_tasks(rows, prod(shape)))


def _tasks(rows: int, size: int) -> tuple[int, int, int]:
    """Rows, those of a task, and tasks."""
    part = max(1, _PART * rows // size)
    return rows, part, -(-rows // part)


def rows(arrays: Sequence[NDArray[Any]], axis: int, stacked: bool) -> NDArray[Any] | None:
    """Arrays of short rows joined along an axis, or a new one; None where NumPy is to do it."""
    d, shape, shapes = arrays[0].dtype, arrays[0].shape, []
    if (shape[0] if axis == 1 else prod(shape[:axis])) * len(arrays) < _PIECES:
        return None
    for a in arrays:
        if a.dtype is not d or not a.flags.c_contiguous:
            return None
        shapes.append(a.shape)
    plan = _rows(tuple(shapes), d, axis, stacked)
    if plan is None or not ready(arrays[0].size, 0):
        return None
    shape, calls = plan
    y, given = memory.fresh(shape, d), list(arrays)
    words = y
    if d.num not in USUAL:
        words, given = as_words(y), [as_words(a) for a in arrays]
    given += given[:1] * (-len(given) % _EIGHT)
    for k, widths, lies in calls:
        cpu.beside(*given[k : k + _EIGHT], words, widths, *lies)
    return y


@functools.lru_cache(256)
def _rows(
    shapes: tuple[tuple[int, ...], ...], dtype: np.dtype[Any], axis: int, stacked: bool
) -> tuple[tuple[int, ...], list[tuple[int, NDArray[Any], tuple[int, ...]]]] | None:
    """The shape of what is joined; and for each call the first array that it takes, the widths of
    these, and how their rows lie.
    """
    shape = shapes[0]
    lead, before, behind = prod(shape[:axis]), shape[:axis], shape[axis + (not stacked) :]
    size = dtype.itemsize
    if size not in MOVED or dtype.hasobject:
        return None
    for other in shapes:
        if len(other) != len(shape) or other[:axis] != before:
            return None
        if other[axis + (not stacked) :] != behind:
            return None
    widths = [prod(other[axis:]) for other in shapes]
    pitch = sum(widths)
    if not _LEAST <= max(widths) * size <= _MOST_BYTES or lead * pitch < _SOME:
        return None
    padded = np.array(widths + [0] * (-len(widths) % _EIGHT)).reshape(-1, _EIGHT)
    block = max(1, _BLOCK // (pitch * size)) if len(padded) > 1 else lead
    calls: list[tuple[int, NDArray[Any], tuple[int, ...]]] = []
    for r in range(0, lead, block):
        last = min(r + block, lead)
        part, tasks = _tasks(last - r, (last - r) * pitch)[1:]
        for k, eight in enumerate(padded):
            covers = int(not k and max(widths) * size <= cpu.NARROW)  # others are written already
            lies = int(padded[:k].sum()), pitch, covers, r, last, part, tasks
            calls.append((_EIGHT * k, eight, lies))
    more = len(shapes) if stacked else sum([other[axis] for other in shapes])
    return (*before, more, *behind), calls


def _joined(*given: Any) -> Plan | None:
    """How few elements of arrays are joined along an axis, which comes behind them."""
    *arrays, axis = given
    if axis.__class__ is not int or not all(a.__class__ is np.ndarray for a in arrays):
        return None
    first = arrays[0]
    d, rank = first.dtype, first.ndim
    if not -rank <= axis < rank or {a.dtype for a in arrays} != {d} or d.itemsize not in MOVED:
        return None
    axis %= rank
    before, behind = first.shape[:axis], first.shape[axis + 1 :]
    for a in arrays:
        if a.ndim != rank or a.shape[:axis] != before or a.shape[axis + 1 :] != behind:
            return None
    shape = (*before, sum([a.shape[axis] for a in arrays]), *behind)
    count, empty = prod(shape), as_words(np.empty(0, d))
    if not 0 < count <= _PART:
        return None
    widths = np.zeros(_EIGHT, np.int64)
    widths[: len(arrays)] = [prod(a.shape[axis:]) for a in arrays]
    words = [as_words(a) for a in arrays] + [empty] * (_EIGHT - len(arrays))
    covers = int(max(widths) * d.itemsize <= cpu.NARROW)
    told = *words, as_words(np.empty(count, d)), widths, int(widths.sum()), covers, prod(before)
    return Plan(cpu.beside_few, told, (*range(len(arrays)), None), shape, d, _EIGHT)


few_joined = Prepared(_joined)


def rolled(x: NDArray[Any], at: int, axis: int) -> NDArray[Any] | None:
    """x from place `at` of an axis on, and then what is before it, of short rows; None where NumPy
    is to do it.
    """
    shape = x.shape
    if not _are_rows(shape, x.dtype, axis) or not x.flags.c_contiguous or not ready(x.size, 0):
        return None
    inner = prod(shape[axis + 1 :])
    width, before = shape[axis] * inner, at * inner
    y, words = memory.fresh(shape, x.dtype), as_words(x)
    lies = width, before, width - before, width, 0, before
    cpu.joined(words, words, as_words(y), *lies, *_tasks(prod(shape[:axis]), x.size))
    return y


@functools.lru_cache(256)
def _are_rows(shape: tuple[int, ...], dtype: np.dtype[Any], axis: int) -> bool:
    """Whether arrays are short rows of what is along axis and behind, many of them."""
    width, size = prod(shape[axis:]), dtype.itemsize
    if size not in MOVED or dtype.hasobject or width * size > _SHORT:
        return False
    return prod(shape) >= max(_SOME, _ROWS * width)


def triangle(x: NDArray[Any], k: int, lower: bool) -> NDArray[Any] | None:
    """Matrices with zeros above their k-th diagonal, or below it; None where NumPy is to do it."""
    m, n = x.shape[-2:]
    size = x.size
    if size < _FEW or n < cpu.LANES or not ready(size, 0):
        return None
    k = max(min(k, n), -m - 1)
    lines = size // n
    if size < _PART and x.dtype.num in USUAL:
        few: NDArray[Any] = cpu.triangles(x, lines, m, n, k, lower)
        return few
    if not x.flags.c_contiguous or x.itemsize not in MOVED or x.dtype.hasobject:
        return None
    y = memory.fresh(x.shape, x.dtype)
    part = max(1, _PART // n)
    part = part // m * m or part  # whole matrices, where they are small
    cpu.triangle(as_words(x), as_words(y), lines, m, n, k, lower, part, part % m, -(-lines // part))
    return y
