"""Columns of few elements, which are sorted together: a vector holds an element of each."""

from __future__ import annotations

import functools
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from funct.device.host import host
from funct.device.memory import LARGE, serve
from funct.kernels.cpu.loops import ready
from funct.kernels.cpu.order.column_sort import LANES, sort_columns
from funct.kernels.cpu.scratch import workspace

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["packs_slowly", "side_by_side"]

_NETWORK, _COLUMN = 1 << 11, 1 << 12  # bytes that NumPy has networks for; elements at most, and
_TOGETHER = 16, 8  # columns at least, that are sorted together; where NumPy packs slowly
_SHORTEST, _LESS = 32, 2  # elements of columns of which so many are enough everywhere
_LONGEST, _IN_SHORT = 64, {4: 5, 8: 4}  # bytes of a vector; columns by bytes of an element


def side_by_side(x: NDArray[Any], axis: int, descending: bool) -> NDArray[Any] | None:
    """Columns sorted together; None where NumPy is to do it."""
    inner = _beside(x.shape, axis, x.itemsize)
    if not inner or not x.size or not x.flags.c_contiguous or not ready(x.size, 0):
        return None
    n = x.shape[axis]
    if x.nbytes >= LARGE:
        serve(x.nbytes)
    y: NDArray[Any] | None = sort_columns(x, workspace(n * LANES, x.dtype), n, inner, descending)
    return y


@functools.lru_cache(256)
def _beside(shape: tuple[int, ...], axis: int, size: int) -> int:
    """How many columns that are sorted together stand beside each other; 0: none."""
    n, inner = shape[axis], prod(shape[axis + 1 :])
    worth = size in (4, 8) and n <= _COLUMN and inner >= _worth_it(n, n * size)
    return inner if worth else 0


def _worth_it(n: int, column_bytes: int) -> float:
    """How many columns of n elements are sorted together sooner than by NumPy."""
    if n <= _SHORTEST:
        return _LESS
    if host().vector_bytes < _LONGEST:  # then NumPy packs no vectors
        return _IN_SHORT[column_bytes // n]
    if column_bytes > _NETWORK:
        return _TOGETHER[packs_slowly()]
    return _TOGETHER[0] if packs_slowly() and column_bytes < _NETWORK >> 1 else np.inf


@functools.cache
def packs_slowly() -> bool:
    """Whether NumPy's sorts of long vectors take several times as long as they do elsewhere: what
    they are made of, packing a vector under a mask into memory, Zen 4 does in microcode.
    """
    return host().name == "znver4"
