"""Kronecker's product, and sums of diagonals, in code of our own."""

from __future__ import annotations

from typing import Any

import numpy as np

from funct.kernels.cpu.loops import ready
from funct.kernels.cpu.prepared import Plan, Prepared
from funct.kernels.cpu.scratch import fresh
from funct.kernels.cpu.small import kronecker
from funct.kernels.cpu.small.norms import LONGEST

__all__ = ["TRACES", "as_outer", "kron"]

_KINDS = {np.dtype(char) for char in "fdil"}
_LEAST, _FEW = 1 << 10, 1 << 14  # elements of a product, of which a call pays, and is prepared
_TASK = 1 << 18  # elements that are a task


def _plan_of_trace(x: Any, offset: int) -> Plan | None:
    if x.ndim != 2 or x.dtype.char not in "fd" or not x.flags.c_contiguous or not ready(x.size):
        return None
    m, n = x.shape
    count = min(m, n - offset) if offset >= 0 else min(m + offset, n)
    if not 0 < count <= LONGEST:
        return None
    start = offset if offset >= 0 else -offset * n
    room = np.empty(count, x.dtype)
    given = (x, np.empty((), x.dtype), room, start, n + 1, count)
    return Plan(kronecker.trace, given, (0, None), (), x.dtype, 1)


TRACES = Prepared(_plan_of_trace)
"""Sums of the diagonals of matrices of few rows, by their offset."""


def kron(x: Any, y: Any) -> Any:
    """y times each element of x, in its place, of matrices or vectors."""
    if (z := _KRONECKERS.call(x, y)) is not None:
        return z
    if (sizes := _kronecker(x, y)) is None or x.size * y.size < _LEAST or not ready(x.size):
        return None
    m, n, p, q = sizes
    shape = (m * p, n * q) if x.ndim == 2 else (n * q,)
    z, part = fresh(shape, x.dtype), -(-_TASK // (n * p * q))
    kronecker.kron(x, y, z, m, n, p, q, part, -(-m // part))
    return z


def as_outer(x: Any, y: Any) -> Any:
    """Products of all pairs of elements of two vectors; None where NumPy is as quick."""
    if x.dtype is not y.dtype or x.dtype not in _KINDS or not ready(x.size):
        return None
    m, n = x.size, y.size
    if m * n < _LEAST or not (x.flags.c_contiguous and y.flags.c_contiguous):
        return None
    z, part = fresh((m, n), x.dtype), -(-_TASK // n)
    kronecker.kron(x, y, z, m, 1, 1, n, part, -(-m // part))
    return z


def _kronecker(x: Any, y: Any) -> tuple[int, int, int, int] | None:
    if x.ndim != y.ndim or x.ndim not in (1, 2) or not (x.size and y.size):
        return None
    if x.dtype is not y.dtype or x.dtype not in _KINDS:
        return None
    first, second = (v.shape if v.ndim == 2 else (1, *v.shape) for v in (x, y))
    return *first, *second


def _plan_of_kronecker(x: Any, y: Any) -> Plan | None:
    if (sizes := _kronecker(x, y)) is None or x.size * y.size > _FEW or not ready(x.size):
        return None
    m, n, p, q = sizes
    shape = (m * p, n * q) if x.ndim == 2 else (n * q,)
    given = (x, y, np.empty(shape, x.dtype), *sizes)
    return Plan(kronecker.kron_at_once, given, (0, 1), shape, x.dtype, 2)


_KRONECKERS = Prepared(_plan_of_kronecker)
