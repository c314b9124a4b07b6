"""Sums of many numbers that lie side by side, in NumPy's order and so with its bits, in vectors.

NumPy halves a row down to 128 terms, and adds those in eight sums side by side, number by number.
"""

from __future__ import annotations

import ctypes
import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from funct.device import PARALLEL, Host, host, printed
from funct.kernels.cpu.loops import ready
from funct.kernels.cpu.record import Fields, Record, address
from funct.kernels.cpu.scratch import fresh
from funct.kernels.llvm import I64, PTR, Emitter, Module, Value, typed

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["LONG", "SUMS", "of_long_rows", "paired", "text"]

LONG = 1 << 15  # elements from which on a call costs less than what it saves
SUMS = 8

_FIELDS = Fields(("x", "y", "tasks", "rows", "length"))
_BLOCK = 128  # terms that are no more halved
_TASK = 1 << 15  # elements that are worth a task
_ELEMENTS = {np.dtype(np.float32): "f32", np.dtype(np.float64): "f64"}


def of_long_rows(x: NDArray[Any], axis: Any, keepdims: bool) -> Any:
    """The sum of all elements, or over the last axis; None where that is not known here."""
    rank = x.ndim
    if axis.__class__ is tuple and len(axis) == 1:
        (axis,) = axis
    element = _ELEMENTS.get(x.dtype)
    if element is None or not x.flags.c_contiguous or not x.flags.aligned or not rank:
        return None
    if axis is None or (axis.__class__ is tuple and len(axis) == rank) or rank == 1:
        if rank == 1 and axis.__class__ is int and axis not in (0, -1):
            return None
        length, lead = x.size, (1,) * rank if keepdims else ()
    elif axis.__class__ is int and axis in (-1, rank - 1):
        length, lead = x.shape[-1], (*x.shape[:-1], 1) if keepdims else x.shape[:-1]
    else:
        return None
    if length <= _BLOCK or not ready(x.size):
        return None
    y = fresh(lead, x.dtype)
    tasks = max(1, min(y.size, x.size // _TASK, 4 * host().cores))
    job = np.array((address(x), address(y), tasks, y.size, length), np.int64)
    _entry(element)(address(job))
    return y if y.ndim else y[()]


@functools.cache
def _entry(element: str) -> Any:
    code = printed(text, element, host()).keep()
    return ctypes.CFUNCTYPE(None, ctypes.c_int64)(code.address("reduce"))


def text(element: str, target: Host) -> str:
    """`reduce(job)`."""
    module = Module(target)
    module.declare("@funct_parallel", PARALLEL)
    one = typed(element)
    f = module.function("total", [("x", PTR), ("n", I64)], one, local=True)
    x, n = f.arguments
    (found,) = f.branch(n <= _BLOCK, lambda: [_of_block(f, x, n, element)],
                        lambda: [_of_halves(f, x, n, element)])  # fmt: skip
    f.ret(found)
    f = module.function("some", [("job", PTR), ("task", I64)], local=True)
    job, task = Record(f, _FIELDS, f.arguments[0]), f.arguments[1]

    def row(r: Value, _: list[Value]) -> list[Value]:
        start = f.at(job.pointer("x"), r * job.length, element)
        found = f.call("total", one, [start, job.length])
        assert found is not None
        f.store(found + 0, f.at(job.pointer("y"), r, element))
        return []

    first, last = (f.div((task + k) * job.rows, job.tasks) for k in range(2))
    f.loop(first, last, 1, row, maybe_empty=True)
    f.ret()
    f = module.function("reduce", [("job", PTR)])
    (given,) = f.arguments
    f.line(f"call void @funct_parallel(ptr @some, {given!r}, {Record(f, _FIELDS, given).tasks!r})")
    f.ret()
    return module.text()


def _of_halves(f: Emitter, x: Value, n: Value, element: str) -> Value:
    half = f.div(n, 2) & -SUMS
    one = typed(element)
    low = f.call("total", one, [x, half])
    high = f.call("total", one, [f.at(x, half, element), n - half])
    assert low is not None
    assert high is not None
    return low + high


def _of_block(f: Emitter, x: Value, n: Value, element: str) -> Value:
    """Of 64 terms or more, in no loop: none ends where the processor expects it."""
    whole = n & -SUMS
    kind = typed(element, SUMS)
    sums = f.load(kind, x)
    for i in range(SUMS, _BLOCK, SUMS):
        if i < _BLOCK // 2:
            sums = sums + f.load(kind, f.at(x, i, element))
            continue
        v = f.load(kind, f.at(x, f.min(f.constant(I64, i), whole - SUMS), element))
        sums = f.select(whole > i, sums + v, sums)

    def single(i: Value, totals: list[Value]) -> list[Value]:
        return [totals[0] + f.load(typed(element), f.at(x, i, element))]

    return f.loop(whole, n, 1, single, [paired(f, sums)], maybe_empty=True)[0]


def paired(f: Emitter, sums: Value) -> Value:
    """The lanes of a vector, added in pairs."""
    while (lanes := sums.type.lanes) > 1:
        even, odd = (f.shuffle(sums, None, range(k, lanes, 2)) for k in range(2))
        sums = even + odd
    return sums
