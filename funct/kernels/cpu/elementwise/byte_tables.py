"""Functions of one byte (uint8, int8, bool) that give floats: tables of its 256 values.

Results of 16 bits are taken from registers where AVX-512 holds the table in them: 64 words at a
time, the upper two bits of a byte choose between four of those. The others are read from memory.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from funct.device import Code, Host, host, printed
from funct.kernels.cpu import scratch as memory
from funct.kernels.cpu.elementwise.halves import HALVES, look_up
from funct.kernels.cpu.elementwise.vector_loops import combined
from funct.kernels.cpu.record import Fields, Record, address
from funct.kernels.cpu.tasks import deal_out
from funct.kernels.llvm import I64, PTR, Emitter, Module, Value, typed

__all__ = ["entries", "in_registers", "looked_up", "tabled_bytes"]

_CODES = 256
_PART = 1 << 14  # elements that are worth a task
_LANES = 32  # 16-bit words of a vector
_REAL = frozenset(map(np.dtype, "fd"))
JOB = Fields(("tasks", "n", "x", "table", "y"))


def tabled_bytes(
    name: str, raw: Callable[..., Any], least: int
) -> Callable[[np.ndarray[Any, Any]], Any]:
    """What gives the function of that name on an array of bytes, as the same numbers would have it
    in the floats that raw makes of them; None where raw makes none, and where floats are too few
    to be computed by the functions of compiled programs.
    """

    @functools.cache
    def table(kind: np.dtype[Any]) -> np.ndarray[Any, Any] | None:
        values = entries(kind)
        to = raw(values[:0]).dtype
        if to not in _REAL and to not in HALVES:
            return None
        floats = values.astype(to)
        if to in _REAL:
            made = combined(name, (floats,), to)
        else:
            with np.errstate(all="ignore"):
                made = raw(floats)
        return np.ascontiguousarray(made)

    def large(x: np.ndarray[Any, Any]) -> Any:
        held = table(x.dtype)
        if held is None or (held.dtype in _REAL and x.size < least):
            return None
        return looked_up(x, held)

    return large


def entries(kind: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """The numbers of that dtype whose tables are looked up, by their bytes."""
    return np.arange(_CODES, dtype=np.uint8).astype(kind)


def looked_up(x: np.ndarray[Any, Any], table: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The place in the table of each byte."""
    if x.flags.f_contiguous and not x.flags.c_contiguous:
        return looked_up(x.T, table).T
    y = memory.fresh(x.shape, table.dtype)
    codes = np.ascontiguousarray(x).view(np.uint8).reshape(-1)
    n, tasks = x.size, -(-x.size // _PART)
    if table.itemsize == 2 and in_registers(host()):
        given = tasks, n, address(codes), address(table), address(y)
        job = JOB.fill(**dict(zip(JOB.names, given, strict=True)))
        _entry()(address(job))
    else:
        word = np.dtype(f"u{table.itemsize}")
        look_up(codes, table.view(word), y.view(word).reshape(-1), n, _PART, tasks)
    return y


def in_registers(target: Host) -> bool:
    """Whether tables of words are taken from there."""
    return target.vector_bytes == 2 * _LANES and target.has("avx512bw")


@functools.cache
def _entry() -> Any:
    return ctypes.CFUNCTYPE(None, ctypes.c_int64)(_code(host()).address("run"))


@functools.cache
def _code(target: Host) -> Code:
    return printed(words_text, target).keep()


def words_text(target: Host) -> str:
    """`run(job)`: words of a table for at least as many bytes as are taken at a time."""
    module = Module(target)
    deal_out(module, "run", "part", JOB)
    f = module.function("part", [("job", PTR), ("task", I64)], local=True)
    job, task = Record(f, JOB, f.arguments[0]), f.arguments[1]
    n, x, y, table = job.n, job.pointer("x"), job.pointer("y"), job.pointer("table")
    words = typed("u16", _LANES)
    parts = [f.load(words, f.at(table, k, "u16")) for k in range(0, _CODES, _LANES)]

    def some(first: Value) -> None:
        i = f.min(first, n - _LANES)  # the last one overlaps
        codes = f.convert(f.load(typed("u8", _LANES), f.at(x, i, "u8")), "u16")
        f.store(_words(f, parts, codes), f.at(y, i, "u16"))

    start = task * _PART

    def body(first: Value, held: list[Value]) -> list[Value]:
        some(first)
        return held

    f.loop(start, f.min(start + _PART, n), _LANES, body)
    f.ret()
    return module.text()


def _words(f: Emitter, parts: list[Value], codes: Value) -> Value:
    """Those at the codes, of eight vectors."""
    name = "llvm.x86.avx512.vpermi2var.hi.512"  # takes the lower six bits of each code
    quarters = []
    for low, high in zip(parts[::2], parts[1::2], strict=True):
        found = f.call(name, codes.type, [low, codes, high], pure=True)
        assert found is not None
        quarters.append(found)
    upper, odd = (f.ne(codes & bit, 0) for bit in (128, 64))
    halves = [f.select(odd, b, a) for a, b in (quarters[:2], quarters[2:])]
    return f.select(upper, halves[1], halves[0])
