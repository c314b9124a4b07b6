"""Functions of the elements of large complex arrays: loops of machine code over both parts, which
lie side by side.
"""

from __future__ import annotations

import ctypes
import functools
from typing import Any

import numpy as np

from funct.device import Code, assemble, host
from funct.kernels.cpu import scratch
from funct.kernels.cpu.record import Fields, Record, address
from funct.kernels.cpu.tasks import deal_out
from funct.kernels.llvm import I64, PTR, Emitter, Module, Value, each, typed
from funct.kernels.llvm.complexes import COMPLEX

__all__ = ["function_of"]

_PARTS = {np.dtype(np.complex64): "f32", np.dtype(np.complex128): "f64"}
_FIELDS = Fields(("y", "x", "count", "tasks"))
_TASK = 1 << 13  # elements that are worth a task


def function_of(name: str, x: Any) -> Any:
    """The function, of COMPLEX, of an array of at least as many as a vector holds."""
    x = np.ascontiguousarray(x) if not x.flags.forc or not x.flags.aligned else x
    y = scratch.fresh(x.shape, x.dtype) if x.flags.c_contiguous else np.empty_like(x)
    tasks = max(1, min(x.size // _TASK, 4 * host().cores))
    job = _FIELDS.fill(y=address(y), x=address(x), count=x.size, tasks=tasks)
    _entry(name, _PARTS[x.dtype])[1](address(job))
    return y


@functools.cache
def _entry(name: str, element: str) -> tuple[Code, Any]:
    code = assemble(_text(name, element))
    return code, ctypes.CFUNCTYPE(None, ctypes.c_int64)(code.address("run"))


def _text(name: str, element: str) -> str:
    """`run(job)`."""
    module = Module(host())
    lanes = host().vector_bytes // typed(element).bytes
    f = module.function("some", [("job", PTR), ("task", I64)], local=True)
    job, task = Record(f, _FIELDS, f.arguments[0]), f.arguments[1]
    x, y = job.pointer("x"), job.pointer("y")
    start, stop = (f.div(k * job.count, job.tasks) for k in (task, task + 1))
    whole = stop - f.rem(stop - start, lanes)

    def vector(k: Value) -> None:
        _vector(f, name, element, lanes, f.at(x, k * 2, element), f.at(y, k * 2, element))

    each(f, start, whole, vector, lanes)
    f.when(whole < stop, lambda: vector(stop - lanes))  # some for the second time
    f.ret()
    deal_out(module, "run", "some", _FIELDS)
    return module.text()


def _vector(f: Emitter, name: str, element: str, lanes: int, x: Value, y: Value) -> None:
    """The function of so many numbers that stand there."""
    both = f.load(typed(element, 2 * lanes), x)
    parts = [f.shuffle(both, None, range(k, 2 * lanes, 2)) for k in (0, 1)]
    re, im = COMPLEX[name](f, *parts)
    f.store(f.shuffle(re, im, [k + h for k in range(lanes) for h in (0, lanes)]), y)
