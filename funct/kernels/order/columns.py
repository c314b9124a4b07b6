"""Columns of few elements, which are sorted together: a vector holds an element of each."""

from __future__ import annotations

import functools
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from funct.device.host import host
from funct.device.memory import LARGE, serve
from funct.kernels.cpu.loops import ready
from funct.kernels.cpu.order.column_sort import LANES, QUARTER, sort_columns
from funct.kernels.cpu.prepared import Plan
from funct.kernels.cpu.scratch import aligned, workspace

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["packs_short", "packs_slowly", "plan", "side_by_side"]

_NETWORK, _COLUMN = 1 << 11, 1 << 12  # bytes that NumPy has networks for; elements at most, and
_TOGETHER = 16, 8  # columns at least, that are sorted together; where NumPy packs slowly
_SHORTEST, _LESS = 32, 2  # elements of columns of which so many are enough everywhere
_LONGEST, _IN_SHORT = 64, {4: 5, 8: 4}  # bytes of a vector; columns by bytes of an element
_NEAR, _MIDDLING = 48 << 10, 128  # bytes of the first cache; elements of columns of which
_IN_VECTOR = {4: 8, 8: 6}  # QUARTER in a vector are enough, and how many of longer ones


def side_by_side(x: NDArray[Any], axis: int, descending: bool) -> NDArray[Any] | None:
    """Columns sorted together; None where NumPy is to do it."""
    inner, lanes = _beside(x.shape, axis, x.itemsize)
    if not lanes or not x.size or not x.flags.c_contiguous or not ready(x.size, 0):
        return None
    n = x.shape[axis]
    if x.nbytes >= LARGE:
        serve(x.nbytes)
    y: NDArray[Any] | None
    y = sort_columns(x, workspace(n * lanes, x.dtype), n, inner, lanes, descending)
    return y


def plan(x: NDArray[Any], axis: int, descending: bool) -> Plan | None:
    """The same of few elements, for calls that are alike."""
    inner, lanes = _beside(x.shape, axis, x.itemsize)
    if not lanes:
        return None
    n = x.shape[axis]
    given = x, aligned(n * lanes, x.dtype), n, inner, lanes, descending
    return Plan(sort_columns, given, (0, None, None), x.shape, x.dtype)


@functools.lru_cache(256)
def _beside(shape: tuple[int, ...], axis: int, size: int) -> tuple[int, int]:
    """How many columns stand beside each other, and how many are sorted together; 0: none."""
    n, inner = shape[axis], prod(shape[axis + 1 :])
    if size not in _IN_SHORT or n > _COLUMN:
        return inner, 0
    if n > _SHORTEST and host().vector_bytes >= _LONGEST and not _packs_otherwise():
        return inner, _in_cache(n, inner, size)
    return inner, LANES if inner >= _worth_it(n, n * size) else 0


def _in_cache(n: int, inner: int, size: int) -> int:
    """How many are sorted together where NumPy sorts columns in vectors of 64 bytes: as many as the
    first cache holds. Each vector takes as long, however many columns are in it.
    """
    lanes = next((k for k in (LANES, LANES >> 1) if n * k * size <= _NEAR), 0)
    if not lanes:
        return 0
    whole, rest = divmod(inner, lanes)
    vectors = whole * -(-lanes * size // _LONGEST) - (-_up(rest) * size // _LONGEST)
    return lanes if inner >= vectors * (_IN_VECTOR[size] if n > _MIDDLING else QUARTER) else 0


def _up(columns: int) -> int:
    """In how many lanes so many are sorted."""
    return -(-columns // QUARTER) * QUARTER


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
def _packs_otherwise() -> bool:
    """Whether what NumPy sorts with takes another time than elsewhere: Zen 4 packs slowly, and
    Zen 5 shuffles two vectors at once.
    """
    return packs_slowly() or host().name == "znver5"


@functools.cache
def packs_slowly() -> bool:
    """Whether NumPy's sorts of long vectors take several times as long as they do elsewhere: what
    they are made of, packing a vector under a mask into memory, Zen 4 does in microcode.
    """
    return host().name == "znver4"


@functools.cache
def packs_short() -> bool:
    """Whether NumPy has a quick sort in vectors of 16 bits."""
    return host().has("avx512vbmi2") and not packs_slowly()
