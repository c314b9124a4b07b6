"""Logarithms of sums of exponentials over axes side by side, in few passes over memory."""

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
    span = _span(axis, shape)
    if span is None or keepdims.__class__ is not bool or not x.flags.c_contiguous:
        return None
    first, behind, blocks, n, inner = span
    if not ready(x.size):
        return None
    of, several = (_of_rows, _rows) if inner == 1 else (_of_columns, _columns)
    parts = [of(*some) for some in several(x, blocks, n, inner)]
    highest, weight, rest = (
        parts[0] if len(parts) == 1 else map(np.concatenate, zip(*parts, strict=True))
    )
    found = _chosen("log1p", np.log1p, d)(rest / weight) + _chosen("log", np.log, d)(weight)
    found += highest
    kept = (1,) * (behind - first) if keepdims else ()
    found = found.reshape((*shape[:first], *kept, *shape[behind:]))
    return found if found.ndim else found[()]


def _rows(x: Any, rows: int, n: int, _: int) -> list[tuple[Any]]:
    """Rows that stay in caches meanwhile, in turn."""
    x = x.reshape(rows, n)
    if x.size <= _NEAR:
        return [(x,)]
    step = -(-rows // -(-x.size // _NEAR))
    return [(x[start : start + step],) for start in range(0, rows, step)]


def _columns(x: Any, blocks: int, n: int, inner: int) -> list[tuple[Any, int, int]]:
    """Blocks of rows, or columns of a block, that stay in caches meanwhile, in turn: blocks, and
    which of their columns.
    """
    x = x.reshape(blocks, n, inner)
    if x.size <= _NEAR:
        return [(x, 0, inner)]
    if (size := n * inner) <= _NEAR:
        step = -(-blocks // -(-x.size // _NEAR))
        return [(x[start : start + step], 0, inner) for start in range(0, blocks, step)]
    step = -(-inner // -(-size // _NEAR))
    step += -step % cpu.STRIP
    return [
        (x[k : k + 1], start, min(step, inner - start))
        for k in range(blocks) for start in range(0, inner, step)
    ]  # fmt: skip


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


def _of_columns(x: Any, start: int, width: int) -> tuple[Any, Any, Any]:
    """The same of columns of blocks of rows (blocks, n, inner), as one line."""
    (blocks, n, inner), d = x.shape, x.dtype
    part = max(1, _PART // (n * min(width, cpu.STRIP)))
    strips = -(-width // cpu.STRIP)
    tasks = -(-blocks * strips // part)
    highest, weight, rest = (np.empty(blocks * width, d) for _ in range(3))
    y = fresh((blocks, n, width), d)
    sizes = blocks, n, inner, start, width, strips, part, tasks
    cpu.below_columns(x, y, highest, *sizes)
    y = _chosen("exp", np.exp, d)(y)
    cpu.beside_columns(x, y, highest, weight, rest, *sizes)
    return np.where(np.isfinite(highest), highest, d.type(0)), weight, rest


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
