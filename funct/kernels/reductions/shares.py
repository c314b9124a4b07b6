"""Sums of exponentials of few elements, and what share of them each element has.

Each gives, bit for bit, what the function of its name in `funct.array.special` and in
`funct.nn.functional` composes of primitives, or None: for arguments that are seldom given, and from
FEW elements on.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from funct.kernels.cpu import neural as cpu
from funct.kernels.cpu.loops import ready
from funct.kernels.elementwise.thresholds import MANY

__all__ = ["FEW", "in_code", "is_few", "log_softmax", "softmax"]

FEW = 1 << 12  # elements from which on a call of compiled code costs less than what it saves

_add: Any = np.add.reduce
_maximum: Any = np.maximum.reduce
_empty = np.empty
_SINGLE, _DOUBLE = np.dtype(np.float32), np.dtype(np.float64)


def is_few(x: Any) -> bool:
    """Whether x has elements, and few."""
    dtype = x.dtype
    return (dtype is _SINGLE or dtype is _DOUBLE) and 0 < x.size < FEW


def in_code(x: Any) -> bool:
    """Whether there is machine code for x, which has few elements. NumPy adds other layouts up in
    other orders.
    """
    return ready(x.size) and cpu.usable() and bool(x.flags.c_contiguous)


def _columns(x: Any, dim: int) -> tuple[int, int, int] | None:
    """How many images of so many rows, of so many elements each, x is, with dim along the rows;
    None where there is no machine code.
    """
    rank = x.ndim
    if not in_code(x) or not -rank <= dim < rank:
        return None
    shape = x.shape
    behind = math.prod(shape[dim % rank + 1 :])
    return x.size // (shape[dim] * behind), shape[dim], behind


def softmax(x: Any, dim: Any, dtype: Any = None) -> Any:
    """exp(x) / Σ exp(x) along dim."""
    if dtype is not None or dim.__class__ is not int or not is_few(x) or not x.ndim:
        return None
    if columns := _columns(x, dim):
        y = _empty(x.shape, x.dtype)
        images, n, behind = columns
        if behind == 1:
            cpu.softmax(x, y, images, n)
        else:
            cpu.softmax_of_columns(x, y, *columns)
        return y
    if x.size >= MANY:
        return None  # functions of so many are code of our own
    e = x - _maximum(x, dim, None, None, True)
    np.exp(e, e)
    e *= 1.0 / _add(e, dim, None, None, True)
    return e


def log_softmax(x: Any, dim: Any, dtype: Any = None) -> Any:
    """log(softmax(x)) along dim."""
    if dtype is not None or dim.__class__ is not int or not is_few(x) or not x.ndim:
        return None
    if columns := _columns(x, dim):
        y, room = _empty(x.shape, x.dtype), _empty(x.size, x.dtype)
        images, n, behind = columns
        if behind == 1:
            cpu.log_softmax(x, y, room, images, n)
        else:
            cpu.log_softmax_of_columns(x, y, room, *columns)
        return y
    if x.size >= MANY:
        return None
    shifted = x - _maximum(x, dim, None, None, True)
    shifted -= np.log(_add(np.exp(shifted), dim, None, None, True))
    return shifted
