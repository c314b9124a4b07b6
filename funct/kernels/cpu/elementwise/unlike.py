"""Operands of two shapes whose last axis is short, `(n, 3) + (3,)` or `(n, 1) == (1, 10)`.

NumPy walks one axis at a time and begins anew for each row of the others, which for short rows
takes several times as long as what it computes. `vector_loops` knows operands that repeat, and
rows of few vectors. Numbers have NumPy's bits, but for what is left in a NaN; nothing warns.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from funct.kernels.cpu.elementwise.vector_loops import computed
from funct.kernels.elementwise.thresholds import SHORT
from funct.kernels.table import permitted

__all__ = ["of_unlike"]

_MANY = 1 << 14  # elements of a result from which on a call costs less than what it saves
_ROWS, _SHORTER = 512, 1 << 8  # the same for rows of up to so many
_LARGE = 5 << 13  # and elements for longer rows, of which NumPy begins fewer
_FEWEST = 8  # rows
_LITTLE = 8  # times that an operand repeats which may be copied first
_BOOL = np.dtype(bool)
_FLOATS = frozenset(map(np.dtype, "fd"))
_NUMBERS = _FLOATS | {np.dtype(np.int32), np.dtype(np.int64)}
_OPS = dict.fromkeys(("add", "subtract", "multiply"), _NUMBERS) | {"divide": _FLOATS}
_TRUTH = frozenset({"equal", "greater", "greater_equal", "less", "less_equal", "not_equal"})


def of_unlike(name: str, raw: Callable[..., Any]) -> Callable[..., Any] | None:
    """What gives the same as raw for two arrays of different shapes; None where NumPy is to do
    it.
    """
    truth = name in _TRUTH
    known = _NUMBERS if truth else _OPS.get(name)
    if known is None:
        return None

    def unlike(x: Any, y: Any) -> Any:
        kind = x.dtype
        if kind is y.dtype and kind in known:
            shape = _of_short_rows(x.shape, y.shape)
            if shape and permitted("llvm"):
                x, y = _dense(x, y), _dense(y, x)
                if x.flags.c_contiguous and y.flags.c_contiguous:
                    return computed(name, (x, y), shape, _BOOL if truth else kind)
        return raw(x, y)

    return unlike


def _dense(x: Any, other: Any) -> Any:
    """x, which is copied if it has gaps and is short beside the other one."""
    return x if x.flags.c_contiguous or _LITTLE * x.size > other.size else x.copy()


@functools.lru_cache(512)
def _of_short_rows(one: tuple[int, ...], other: tuple[int, ...]) -> tuple[int, ...] | None:
    """The shape in which two of those meet, if the result is large and has many rows: the last
    axes, as far as both operands walk them, or the same one.
    """
    try:
        shape = np.broadcast_shapes(one, other)
    except ValueError:
        return None  # NumPy says what is wrong
    rank, count = len(shape), math.prod(shape)
    if count < _MANY or 1 in (math.prod(one), math.prod(other)):
        return None
    row, before = 1, None
    for k in range(1, rank + 1):
        n = shape[-k]
        if n == 1:
            continue
        moves = [k <= len(s) and s[-k] > 1 for s in (one, other)]
        if before not in (None, moves):
            break
        row, before = row * n, moves
    pays = count >= _ROWS * row if row <= _SHORTER else False
    return shape if pays or (row <= SHORT and count >= max(_LARGE, _FEWEST * row)) else None
