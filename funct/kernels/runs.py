"""Runs of elements side by side, repeated, taken from each other or cut at a diagonal: plain, or in
machine code; both give the same bits.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from funct.kernels.cpu.irregular import runs as cpu
from funct.kernels.cpu.loops import pays, ready
from funct.kernels.cpu.scratch import fresh

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["differences", "plain_differences", "plain_triangle", "repeated", "triangle"]

_SOME = 1 << 11  # elements from which on vectors pay for differences
_FEW = 1 << 8  # and for triangles, which NumPy asks element by element, and repetitions
_PART = 1 << 15  # elements of a task
_WORDS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}  # by bytes, what is moved as one
_USUAL = frozenset([np.dtype(c).num for c in "fdl"])  # which have code of their own
_MOST = 1 << 28  # bytes of repeated elements


def differences(x: NDArray[Any], axis: int) -> NDArray[Any]:
    """What each element is above the one before it along axis."""
    n = x.shape[axis]
    if not pays(x, _SOME) or not x.flags.c_contiguous or x.dtype.kind == "b" or n < 2:
        return plain_differences(x, axis)
    outer, inner = prod(x.shape[:axis]), prod(x.shape[axis + 1 :])
    y = fresh((*x.shape[:axis], n - 1, *x.shape[axis + 1 :]), x.dtype)
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
    if n < _FEW or counts.shape != x.shape or x.itemsize not in _WORDS or not pays(counts):
        return None
    size = cpu.total(counts, n)
    if not 0 <= size * x.itemsize < _MOST:
        return None
    y = fresh((size,), x.dtype)
    cpu.repeated(_word(x), counts, _word(y), n, size)
    return y


def _word(x: NDArray[Any]) -> NDArray[Any]:
    """x, or its elements as words, where code for its dtype is not made anyway."""
    return x if x.dtype.num in _USUAL else x.view(_WORDS[x.itemsize])


def triangle(x: NDArray[Any], k: int, lower: bool) -> NDArray[Any] | None:
    """Matrices with zeros above their k-th diagonal, or below it; None where NumPy is to do it."""
    m, n = x.shape[-2:]
    size = x.size
    if size < _FEW or n < cpu.LANES or not x.flags.c_contiguous or not ready(size, 0):
        return None
    if x.itemsize not in _WORDS or x.dtype.hasobject:
        return None
    y = fresh(x.shape, x.dtype)
    lines = size // n
    part = max(1, _PART // n)
    part = part // m * m or part  # whole matrices, where they are small
    k = max(min(k, n), -m - 1)
    cpu.triangle(_word(x), _word(y), lines, m, n, k, lower, part, part % m, -(-lines // part))
    return y


def plain_triangle(x: NDArray[Any], k: int, lower: bool) -> NDArray[Any]:
    """`triangle` in NumPy."""
    return np.tril(x, k) if lower else np.triu(x, k)
