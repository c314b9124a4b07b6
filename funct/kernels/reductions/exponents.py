"""Logarithms of sums of exponentials over axes side by side, in few passes over memory."""

from __future__ import annotations

import functools
from math import prod
from typing import Any

import numpy as np

from funct.kernels.cpu.loops import ready
from funct.kernels.cpu.reductions import exponents as cpu
from funct.kernels.cpu.scratch import fresh
from funct.kernels.reductions.statistical import most, total
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
    if not ready(x.size):
        return None
    of = _of_columns
    x = x.reshape(blocks, n, inner)
    if inner == 1:
        x, of = x[..., 0], _of_rows
    step = -(-blocks // -(-x.size // _NEAR))
    parts = [of(x[start : start + step]) for start in range(0, blocks, step)]
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


def _of_columns(x: Any) -> tuple[Any, Any, Any]:
    """The same of columns of blocks of rows (blocks, n, inner), as one line. Of one block that is
    more than what stays in caches some rows go by at a time.
    """
    (blocks, n, inner), d = x.shape, x.dtype
    size, step = blocks * inner, n
    if compared := 0 if blocks == 1 and n * inner > _NEAR else n:
        highest = x[:, 0].flatten()
    else:
        highest, step = most(x, 1, False).reshape(size), -(-n // -(-n * inner // _NEAR))
    sums, after = np.zeros((2, size), d), np.empty((2, size), d)
    strips = -(-inner // cpu.STRIP)
    part = max(1, _PART // (step * min(inner, cpu.STRIP)))
    for k in range(0, n, step):
        some = x[:, k : k + step]
        sizes = *some.shape, strips, part, -(-blocks * strips // part)
        y = fresh(some.shape, d)
        cpu.below_columns(some, y, highest, compared, *sizes)
        cpu.beside_columns(some, _chosen("exp", np.exp, d)(y), highest, sums, after, *sizes)
        sums, after = after, sums
    return np.where(np.isfinite(highest), highest, d.type(0)), *sums


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
