"""Logarithms of sums of exponentials over axes side by side, in few passes over memory."""

from __future__ import annotations

import functools
from math import prod
from typing import Any

import numpy as np

from funct.kernels.cpu.elementwise.ufunc_loops import loop_of
from funct.kernels.cpu.loops import ready
from funct.kernels.cpu.reductions import exponents as cpu
from funct.kernels.cpu.reductions.exponent_columns import sums_of_columns
from funct.kernels.cpu.scratch import fresh
from funct.kernels.elementwise.thresholds import MANY
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
    span = _span(axis, shape)
    if span is None or keepdims.__class__ is not bool or not x.flags.c_contiguous:
        return None
    first, behind, blocks, n, inner = span
    if not ready(x.size) or (x.size < MANY and loop_of(np.exp, d) is None):
        return None
    if inner > 1:
        highest, weight, rest = _of_columns(x, blocks, n, inner)
    else:
        x = x.reshape(blocks, n)
        step = -(-blocks // -(-x.size // _NEAR))
        parts = [_of_rows(x[start : start + step]) for start in range(0, blocks, step)]
        highest, weight, rest = (
            parts[0] if len(parts) == 1 else map(np.concatenate, zip(*parts, strict=True))
        )
    found = _chosen("log1p", np.log1p, d)(rest / weight) + _chosen("log", np.log, d)(weight)
    found += highest
    kept = (1,) * (behind - first) if keepdims else ()
    found = found.reshape((*shape[:first], *kept, *shape[behind:]))
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


def _of_columns(x: Any, blocks: int, n: int, inner: int) -> Any:
    """The same of columns of blocks of n rows, each with an axis of blocks before its own."""
    if x.size >= MANY:
        return sums_of_columns(x, blocks, n, inner)
    sums = np.empty((3, blocks, inner), x.dtype)
    cpu.few_columns(x, np.empty_like(x), sums, blocks, n, inner)
    return sums


@functools.lru_cache(64)
def _span(axis: Any, shape: tuple[int, ...]) -> tuple[int, int, int, int, int] | None:
    """The first of axes that lie side by side, what is behind them, and how many elements there are
    before, in and behind them.
    """
    rank = len(shape)
    axes = range(rank) if axis is None else axis if axis.__class__ is tuple else (axis,)
    if not all(a.__class__ is int and -rank <= a < rank for a in axes):
        return None
    order = sorted([a % rank for a in axes])
    if not order or order != [*range(order[0], order[0] + len(order))]:
        return None
    first, behind = order[0], order[-1] + 1
    return first, behind, prod(shape[:first]), prod(shape[first:behind]), prod(shape[behind:])


@functools.cache
def _chosen(name: str, raw: Any, dtype: np.dtype[Any]) -> Any:
    """The function of elements that goes by size."""
    return find("elementwise", dtype)(name, raw, 1)
