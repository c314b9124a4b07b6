"""Each element several times over: a vector is read once and written in vectors that repeat it."""

from __future__ import annotations

import ctypes
import functools
import struct
from typing import Any

from funct.device import Code, Host, host, printed
from funct.kernels.cpu.record import Fields, Record, address
from funct.kernels.cpu.tasks import deal_out
from funct.kernels.llvm import I64, PTR, Module, Value, typed

__all__ = ["LEAST", "MOST", "evenly"]

LEAST = 64  # elements: as many as a vector has
MOST = 8  # times; what is repeated more often is written by NumPy as fast
_PART = 1 << 14  # elements that are worth a task
JOB = Fields(("tasks", "n", "x", "y"))
_job = struct.Struct(f"={len(JOB)}q").pack


def evenly(x: Any, y: Any, times: int) -> None:
    """y: each of x, so many times. Both are dense; x has `LEAST` elements of 1, 2, 4 or 8 bytes."""
    tasks = -(-x.size // _PART)
    _entry(8 * x.itemsize, times)(_job(tasks, x.size, address(x), address(y)))


@functools.cache
def _entry(bits: int, times: int) -> Any:
    return ctypes.CFUNCTYPE(None, ctypes.c_char_p)(_code(bits, times, host()).address("run"))


@functools.cache
def _code(bits: int, times: int, target: Host) -> Code:
    return printed(evenly_text, bits, times, target).keep()


def evenly_text(bits: int, times: int, target: Host) -> str:
    """`run(job)`: words of so many bits, so many times."""
    module = Module(target)
    deal_out(module, "run", "part", JOB)
    f = module.function("part", [("job", PTR), ("task", I64)], local=True)
    job, task = Record(f, JOB, f.arguments[0]), f.arguments[1]
    n, x, y = job.n, job.pointer("x"), job.pointer("y")
    lanes = target.vector_bytes * 8 // bits
    word = f"u{bits}"

    def some(first: Value, held: list[Value]) -> list[Value]:
        i = f.min(first, n - lanes)  # the last ones overlap
        v = f.load(typed(word, lanes), f.at(x, i, word))
        to = f.at(y, i * times, word)
        for k in range(0, lanes * times, lanes):
            order = [(k + lane) // times for lane in range(lanes)]
            f.store(f.shuffle(v, None, order), f.at(to, k, word))
        return held

    start = task * _PART
    f.loop(start, f.min(start + _PART, n), lanes, some)
    f.ret()
    return module.text()
