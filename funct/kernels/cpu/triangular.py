"""Triangular systems in stacks: BLAS called by address for one after the other.

LAPACK takes one matrix, and a call of it from Python costs more than to solve a small one.
"""

from __future__ import annotations

import ctypes
import functools
from math import prod
from typing import Any

import numpy as np

from funct.device import Code, blas, host, printed
from funct.kernels.cpu import scratch
from funct.kernels.cpu.dense.slab import each
from funct.kernels.cpu.record import Fields, Record, address
from funct.kernels.llvm import I32, PTR, Module, Value, typed

__all__ = ["triangular_solve"]

_JOB = Fields(("solver", "a", "y", "count", "m", "n"))
_SOLVERS = {"f": ("f32", "strsm"), "d": ("f64", "dtrsm")}


def _text(element: str, wide: bool, lower: bool) -> str:
    """`solve(job)`: y, which holds the right sides, becomes the solutions. wide: BLAS counts in 64
    bits.
    """
    module = Module(host())
    f = module.function("solve", [("job", PTR)])
    job = Record(f, _JOB, f.arguments[0])
    m, n = (v if wide else f.convert(v, "i32") for v in (job.m, job.n))
    solver, kinds = job.pointer("solver"), blas.TRIANGLE[lower]

    def one(k: Value) -> None:
        a = f.at(job.pointer("a"), k * job.m * job.m, element)
        y = f.at(job.pointer("y"), k * job.m * job.n, element)
        given = [*[f.constant(I32, k) for k in kinds], m, n, f.constant(typed(element), 1)]
        told = ", ".join([repr(v) for v in (*given, a, m, y, n)])
        f.line(f"call void {solver.name}({told})")

    each(f, 0, job.count, one)
    f.ret()
    return module.text()


@functools.cache
def _entry(element: str, wide: bool, lower: bool) -> tuple[Code, Any]:
    code = printed(_text, element, wide, lower)
    return code, ctypes.CFUNCTYPE(None, ctypes.c_int64)(code.address("solve"))


def triangular_solve(a: Any, b: Any, lower: bool) -> Any:
    """See `funct.kernels.linalg.matrices.triangular_solves`."""
    kind = _SOLVERS.get(a.dtype.char)
    found = None if kind is None or a.dtype is not b.dtype else blas.cblas(kind[1])
    if found is None or kind is None:
        return NotImplemented
    lead = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    m, n = b.shape[-2:]
    y = scratch.fresh((*lead, m, n), b.dtype)
    y[...] = b
    if not y.size:
        return y
    if not a.diagonal(0, -2, -1).all():
        raise np.linalg.LinAlgError
    a = np.ascontiguousarray(np.broadcast_to(a, (*lead, m, m)))
    job = _JOB.fill(solver=found[0], a=address(a), y=address(y), count=prod(lead), m=m, n=n)
    _entry(kind[0], found[1], bool(lower))[1](address(job))
    return y
