"""Casts of some elements to float16 and bfloat16 and from them: NumPy goes number by number.

What is narrow is looked up in tables that NumPy makes: bytes become floats by 256 entries where
registers hold them, float16 integers by 65,536. The rest is rounded in vectors: once, or to float32
first where NumPy does so. Nothing warns.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from funct.device import host, printed
from funct.device.fork import whole
from funct.kernels.cpu.elementwise import halves
from funct.kernels.cpu.elementwise.byte_tables import entries, in_registers, looked_up
from funct.kernels.cpu.elementwise.halves import HALVES
from funct.kernels.cpu.elementwise.vector_loops import ELEMENTS, SHORTEST, combined
from funct.kernels.cpu.entries import Entries
from funct.kernels.elementwise.casting import FEW, is_flat
from funct.kernels.llvm import I64, PTR, Module, Value, each, typed

__all__ = ["CASTS", "IN_VECTORS", "cast"]

_HALF, _BRAIN = np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)
_BYTES = frozenset(map(np.dtype, "?bB"))
_WHOLE = frozenset(map(np.dtype, "?bBhHiIlL"))
_FLOATS = frozenset(map(np.dtype, "fd"))
_ROUNDED = {(d, to) for d in HALVES for to in HALVES | _FLOATS if d != to}
_ROUNDED |= {(np.dtype(np.float32), to) for to in HALVES} | {(np.dtype(np.float64), _HALF)}
_ROUNDED |= {(np.dtype(c), _BRAIN) for c in "hHiIlLd"}
_BY_SINGLE = {(np.dtype(c), _HALF) for c in "hHiIlL"}
_LOOKED_UP = {(d, to) for d in _BYTES for to in HALVES}
_TABLED = {(_HALF, d) for d in _WHOLE}
IN_VECTORS = _ROUNDED | _BY_SINGLE
CASTS = frozenset(_ROUNDED | _BY_SINGLE | _LOOKED_UP | _TABLED)


_LIKE = {dtype: np.zeros(1, dtype) for dtype in HALVES | _FLOATS}
_FEW = 1 << 12  # elements for which a call of a loop that broadcasts costs what it saves
_making = whole(threading.RLock())


def cast(x: Any, dtype: np.dtype[Any]) -> Any:
    """x in another dtype."""
    pair = x.dtype, dtype
    if pair in IN_VECTORS and is_flat(x.size) and x.flags.c_contiguous and x.flags.aligned:
        return _some(*pair)(x, _LIKE[dtype])
    if x.size < _FEW:
        return NotImplemented
    if pair in _LOOKED_UP and in_registers(host()):
        return looked_up(x, _entries(*pair))
    if pair in _ROUNDED or pair in _LOOKED_UP:
        return combined("astype", (x,), dtype)
    if pair in _BY_SINGLE:
        return combined("by_single", (x,), dtype)
    return _of_halves(dtype)(x) if pair in _TABLED else NotImplemented


def _some(dtype: np.dtype[Any], to: np.dtype[Any]) -> Callable[..., Any]:
    """What casts arrays of the dtype that are dense; known to `in_dtype` from now on."""
    with _making:
        if (dtype, to) not in FEW:
            code = printed(_entry, ELEMENTS[dtype], ELEMENTS[to], (dtype, to) in _BY_SINGLE)
            entries = Entries("cast", 2, _scattered, result=(0, 1))
            entries.add([dtype, to], code.address("entry"), code)
            FEW[dtype, to] = entries, _LIKE[to]
    call: Callable[..., Any] = FEW[dtype, to][0].call
    return call


def _scattered(x: Any, like: Any) -> Any:
    """What does not lie side by side."""
    found = cast(x, like.dtype)
    return x.astype(like.dtype) if found is NotImplemented else found


def _entry(given: str, made: str, by_single: bool) -> str:
    """`i64 entry(frame)`: the array, one of the dtype, the result and how many elements it has, at
    least those of a vector: the last vector has some for the second time. by_single: they are
    rounded to float32 first.
    """
    module = Module(host())
    f = module.function("entry", [("frame", PTR)], I64)
    x, _, y = f.pointers(f.arguments[0], 0, 3)
    count = f.word(f.arguments[0], 3)

    def some(i: Value, lanes: int) -> None:
        v = f.load(typed(given, lanes), f.at(x, i, given))
        f.store(f.convert(f.convert(v, "f32") if by_single else v, made), f.at(y, i, made))

    lanes = max(SHORTEST, host().vector_bytes // max(typed(e).bytes for e in (given, made)))
    each(f, f.constant(I64, 0), count - lanes, lambda i: some(i, lanes), lanes)
    some(count - lanes, lanes)
    f.ret(f.constant(I64, 0))
    return module.text()


@functools.cache
def _entries(dtype: np.dtype[Any], to: np.dtype[Any]) -> Any:
    return entries(dtype).astype(to)


@functools.cache
def _of_halves(to: np.dtype[Any]) -> Callable[[Any], Any]:
    return halves.tabled(lambda x: x.astype(to))
