"""Casts of large arrays to float16 and bfloat16 and from them, where NumPy goes number by number.

What is narrow is looked up in tables that NumPy makes: bytes become floats by 256 entries where
registers hold them, float16 integers by 65,536. The rest is rounded in vectors: once, or to float32
first where NumPy does so. Nothing warns.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from funct.device import host
from funct.kernels.cpu.elementwise import halves
from funct.kernels.cpu.elementwise.byte_tables import entries, in_registers, looked_up
from funct.kernels.cpu.elementwise.halves import HALVES
from funct.kernels.cpu.elementwise.vector_loops import combined

__all__ = ["CASTS", "cast"]

_HALF, _BRAIN = np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)
_BYTES = frozenset(map(np.dtype, "?bB"))
_WHOLE = frozenset(map(np.dtype, "?bBhHiIlL"))
_FLOATS = frozenset(map(np.dtype, "fd"))
_ROUNDED = {(d, to) for d in HALVES for to in HALVES | _FLOATS if d != to}
_ROUNDED |= {(np.dtype(np.float32), to) for to in HALVES} | {(np.dtype(np.float64), _HALF)}
_BY_SINGLE = {(np.dtype(c), to) for c in "hHiIlL" for to in HALVES}
_BY_SINGLE |= {(np.dtype(np.float64), _BRAIN)}
_LOOKED_UP = {(d, to) for d in _BYTES for to in HALVES}
_TABLED = {(_HALF, d) for d in _WHOLE}
CASTS = frozenset(_ROUNDED | _BY_SINGLE | _LOOKED_UP | _TABLED)


def cast(x: Any, dtype: np.dtype[Any]) -> Any:
    """x in another dtype."""
    pair = x.dtype, dtype
    if pair in _LOOKED_UP and in_registers(host()):
        return looked_up(x, _entries(*pair))
    if pair in _ROUNDED or pair in _LOOKED_UP:
        return combined("astype", (x,), dtype)
    if pair in _BY_SINGLE:
        return combined("by_single", (x,), dtype)
    return _of_halves(dtype)(x) if pair in _TABLED else NotImplemented


@functools.cache
def _entries(dtype: np.dtype[Any], to: np.dtype[Any]) -> Any:
    return entries(dtype).astype(to)


@functools.cache
def _of_halves(to: np.dtype[Any]) -> Callable[[Any], Any]:
    return halves.tabled(lambda x: x.astype(to))
