"""Logarithms of sums of exponentials over the last axes, in few passes over memory."""

from __future__ import annotations

import functools
from math import prod
from typing import Any

import numpy as np

from funct.kernels.cpu.loops import ready
from funct.kernels.cpu.reductions import exponents as cpu
from funct.kernels.cpu.scratch import fresh
from funct.kernels.reductions.statistical import total
from funct.kernels.table import find

__all__ = ["logsumexp"]

_REAL = (np.dtype(np.float32), np.dtype(np.float64))
_PART, _NEAR = 1 << 14, 1 << 17  # elements of a task, and of rows that stay in caches meanwhile


def logsumexp(
    x: Any, axis: Any = None, keepdims: Any = False, b: Any = None, return_sign: Any = False
) -> Any:
    """log(sum(exp(x))), of floats that lie one after the other."""
    d, shape = x.dtype, x.shape
    if b is not None or return_sign is not False or d not in _REAL or not x.size or not shape:
        return None
    first = _first(axis, len(shape))
    if first is None or keepdims.__class__ is not bool or not x.flags.c_contiguous:
        return None
    rows, n = prod(shape[:first]), prod(shape[first:])
    if not ready(x.size):
        return None
    x = x.reshape(rows, n)
    if x.size <= _NEAR:
        highest, weight, rest = _of_rows(x)
    else:
        step = -(-rows // -(-x.size // _NEAR))
        blocks = [_of_rows(x[start : start + step]) for start in range(0, rows, step)]
        highest, weight, rest = map(np.concatenate, zip(*blocks, strict=True))
    found = _chosen("log1p", np.log1p, d)(rest / weight) + _chosen("log", np.log, d)(weight)
    found += highest
    kept = (1,) * (len(shape) - first) if keepdims else ()
    found = found.reshape((*shape[:first], *kept))
    return found if found.ndim else found[()]


def _of_rows(x: Any) -> tuple[Any, Any, Any]:
    """Of each row the greatest, or 0 for what is not finite, how often it is there, and the sum of
    exp(x - it) of the others.
    """
    (rows, n), d = x.shape, x.dtype
    part = max(1, _PART // n)
    tasks = -(-rows // part)
    highest, weight = np.empty(rows, d), np.empty(rows, d)
    y = fresh((rows, n), d)
    cpu.below(x, y, highest, rows, n, part, tasks)
    y = _chosen("exp", np.exp, d)(y)
    cpu.beside(x, y, highest, weight, rows, n, part, tasks)
    return highest, weight, total(y, -1, False)


@functools.lru_cache(64)
def _first(axis: Any, rank: int) -> int | None:
    """The first of the axes, if these are the last ones of so many."""
    axes = range(rank) if axis is None else axis if axis.__class__ is tuple else (axis,)
    if not all(a.__class__ is int and -rank <= a < rank for a in axes):
        return None
    order = sorted([a % rank for a in axes])
    first = rank - len(order)
    return first if order and order == [*range(first, rank)] else None


@functools.cache
def _chosen(name: str, raw: Any, dtype: np.dtype[Any]) -> Any:
    """The function of elements that goes by size."""
    return find("elementwise", dtype)(name, raw, 1)
