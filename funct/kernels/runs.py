"""Runs of elements side by side, repeated, taken from each other or cut at a diagonal: plain, or in
machine code; both give the same bits.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from funct.kernels.cpu import scratch as memory
from funct.kernels.cpu.irregular import repeats
from funct.kernels.cpu.irregular import runs as cpu
from funct.kernels.cpu.loops import pays, ready
from funct.kernels.dtypes import MOVED, USUAL, as_words

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "beside", "differences", "evenly", "joined", "plain_differences", "plain_triangle", "repeated",
    "rolled", "triangle",
]  # fmt: skip

_SOME = 1 << 11  # elements from which on machine code pays where rows are short
_FEW = 1 << 8  # and for differences, repetitions, and triangles, which NumPy asks one by one
_ROWS, _SHORT = 16, 1 << 12  # rows, and bytes of one up to which NumPy loses time between them
_LINES, _NARROW = 64, 128  # rows, and elements of one, of which few are joined sooner than by NumPy
_PART = 1 << 15  # elements of a task
_MOST = 1 << 28  # bytes of repeated elements


def differences(x: NDArray[Any], axis: int) -> NDArray[Any]:
    """What each element is above the one before it along axis."""
    shape, size = x.shape, x.size
    n = shape[axis]
    if n < 2 or not pays(x, _FEW) or not x.flags.c_contiguous or x.dtype.kind == "b":
        return plain_differences(x, axis)
    behind = shape[axis + 1 :]
    inner = prod(behind) if behind else 1
    outer = size // (n * inner)
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
    if axis.__class__ is not int or a.dtype is not b.dtype or not -a.ndim <= axis < a.ndim:
        return None
    axis %= a.ndim
    if a.ndim != b.ndim or a.shape[:axis] != b.shape[:axis]:
        return None
    if a.shape[axis + 1 :] != b.shape[axis + 1 :] or not _in_rows(a, axis) or not _in_rows(b, axis):
        return None
    first, second = (prod(v.shape[axis:]) for v in (a, b))
    shape = (*a.shape[:axis], a.shape[axis] + b.shape[axis], *a.shape[axis + 1 :])
    y = memory.fresh(shape, a.dtype)
    _join(a, b, y, prod(a.shape[:axis]), (first, 0, first, second, 0, second))
    return y


def beside(a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any] | None:
    """Rows of two matrices of few elements beside each other; None where NumPy is to do it."""
    (rows, n), (others, m), d = a.shape, b.shape, a.dtype
    count = rows * (n + m)
    if rows != others or d is not b.dtype or rows < _LINES or not _FEW <= count < _PART:
        return None
    if count > rows * _NARROW or d.num not in USUAL or not ready(count, 0):
        return None
    y = np.empty((rows, n + m), d)
    cpu.joined(a, b, y, n, 0, n, m, 0, m, rows, rows, 1)
    return y


def rolled(x: NDArray[Any], at: int, axis: int) -> NDArray[Any] | None:
    """x from place `at` of an axis on, and then what is before it, of short rows; None where NumPy
    is to do it.
    """
    if not _in_rows(x, axis):
        return None
    inner = prod(x.shape[axis + 1 :])
    width, before = x.shape[axis] * inner, at * inner
    y = memory.fresh(x.shape, x.dtype)
    rows = prod(x.shape[:axis])
    _join(x, x, y, rows, (width, before, width - before, width, 0, before))
    return y


def _in_rows(x: NDArray[Any], axis: int) -> bool:
    """Whether x lies in short rows of what is along axis and behind, many of them."""
    width = prod(x.shape[axis:])
    return (
        x.flags.c_contiguous
        and x.itemsize in MOVED
        and not x.dtype.hasobject
        and x.size >= max(_SOME, _ROWS * width)
        and width * x.itemsize <= _SHORT
        and ready(x.size, 0)
    )


def _join(
    a: NDArray[Any], b: NDArray[Any], y: NDArray[Any], rows: int, lies: tuple[int, ...]
) -> None:
    """lies: how rows lie in a and in b: how far one is from the next, from where on, how wide."""
    part = max(1, _PART * rows // y.size)
    cpu.joined(as_words(a), as_words(b), as_words(y), *lies, rows, part, -(-rows // part))


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


def plain_triangle(x: NDArray[Any], k: int, lower: bool) -> NDArray[Any]:
    """`triangle` in NumPy."""
    return np.tril(x, k) if lower else np.triu(x, k)
