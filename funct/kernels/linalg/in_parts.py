"""LAPACK on large stacks of small matrices, a part of them on each thread.

NumPy's loops walk over a stack on the thread that calls. Their code takes addresses, lengths and
strides, so a task of the pool calls it for matrices of its own. Which matrix a thread computes
changes no bit of any.
"""

from __future__ import annotations

import ctypes
import functools
import re
from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from funct.device import PARALLEL
from funct.device.machine_code import Code
from funct.device.printed import printed
from funct.kernels.cpu.loops import ready
from funct.kernels.cpu.record import Fields, Record, address
from funct.kernels.llvm import I64, PTR, Module
from funct.settings import config

__all__ = ["WORTH", "in_parts"]

WORTH = 200_000  # ns from which on two threads are sooner done; to ask the other takes 50,000
_TASK = 20_000
_RUN = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)
_NAMES = r"\(([^)]*)\)"
# what a task is told; behind it stand the addresses of the arrays
_FIELDS = Fields(("loop", "count", "each", "lengths", "strides"))


def in_parts(found: Any, at: int, operands: Sequence[Any], types: str, cost: int) -> Any:
    """What a loop of NumPy's gives for stacks of one shape, or None where one thread is to call it,
    or where a result is not a number: it may be that LAPACK failed.

    at: the loop's address. types: NumPy's characters of what it takes and gives, `dd->d`. cost: of
    one matrix, in ns.
    """
    first = operands[0]
    lead, (m, n) = first.shape[:-2], first.shape[-2:]
    count = prod(lead)
    alike = all(o.shape[:-2] == lead for o in operands)
    few = count < 2 or count * cost < WORTH or config.record.threads == 1
    if few or not alike or not ready(first.size):
        return None
    inputs, outputs = _axes(found.signature)
    known = {"m": m, "n": n, "p": min(m, n)}
    for o, names in zip(operands, inputs, strict=True):
        known |= dict(zip(names, o.shape[-2:], strict=True))
    given, made = types.split("->")
    held = [np.ascontiguousarray(o, t) for o, t in zip(operands, given, strict=True)]
    out = [
        np.empty((*lead, *[known[k] for k in names]), t)
        for names, t in zip(outputs, made, strict=True)
    ]
    cores = [*inputs, *outputs]
    arrays = [*held, *out]
    order = dict.fromkeys([k for names in cores for k in names])
    each = max(1, _TASK // cost)
    lengths = np.array([0, *[known[k] for k in order]], np.int64)
    steps = np.array([a.itemsize * prod(a.shape[len(lead) :]) for a in arrays], np.int64)
    steps = np.append(steps, [s for a in arrays for s in a.strides[len(lead) :]])
    told = _FIELDS.fill(
        loop=at, count=count, each=each, lengths=address(lengths), strides=address(steps)
    )
    told = np.append(told, [address(a) for a in arrays])
    _entry(len(arrays), len(lengths))[1](address(told), -(-count // each))
    if any(np.isnan(a).any() for a in out):
        return None
    return tuple(out) if len(out) > 1 else out[0]


@functools.cache
def _axes(signature: str) -> list[list[tuple[str, ...]]]:
    """The names of the axes of each operand, and of each result: `(m,n),(m)->(n)`."""
    return [
        [tuple(filter(None, re.split(r"[ ,]+", names))) for names in re.findall(_NAMES, side)]
        for side in signature.split("->")
    ]


@functools.cache
def _entry(arrays: int, lengths: int) -> tuple[Code, Any]:
    code = printed(_text, arrays, lengths, opt=0)
    return code, _RUN(code.address("run"))


def _text(arrays: int, lengths: int) -> str:
    """`run(told, tasks)` for loops of so many arrays and lengths, that of stacks included."""
    module = Module()
    f = module.function("part", [("told", PTR), ("task", I64)], local=True)
    place, task = f.arguments
    told = Record(f, _FIELDS, place)
    start = task * told.each
    table, own = f.allocate(PTR, arrays), f.allocate(I64, lengths)
    for k in range(arrays):
        a = f.load(PTR, f.at(place, len(_FIELDS) + k, "i64"))
        step = f.load(I64, f.at(told.pointer("strides"), k, "i64"))
        f.store(f.at(a, start * step, "i8"), f.at(table, k, "i64"))
    f.store(f.min(told.each, told.count - start), own)
    for k in range(1, lengths):
        f.store(f.load(I64, f.at(told.pointer("lengths"), k, "i64")), f.at(own, k, "i64"))
    given = ", ".join([repr(v) for v in (table, own, told.pointer("strides"), f.null())])
    f.line(f"call void {told.pointer('loop').name}({given})")
    f.ret()
    run = module.function("run", [("told", PTR), ("tasks", I64)])
    place, tasks = run.arguments
    module.declare("@funct_parallel", PARALLEL)
    run.line(f"call void @funct_parallel(ptr @part, {place!r}, {tasks!r})")
    run.ret()
    return module.text()
