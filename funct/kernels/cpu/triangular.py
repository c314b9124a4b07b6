"""Triangular systems in stacks: BLAS called by address for one after the other.

LAPACK takes one matrix, and a call of it from Python costs more than to solve a small one. One
right side of a long system goes to BLAS's function of vectors, which reads the matrix as it lies;
that of matrices lays it out first, for a product with many.
"""

from __future__ import annotations

import ctypes
import functools
from math import prod
from typing import Any

import numpy as np

from funct.device import Code, blas, host, printed
from funct.device.machine_code import offer
from funct.kernels.cpu import scratch
from funct.kernels.cpu.record import address
from funct.kernels.llvm import I32, I64, PTR, Emitter, Module, Value, typed

__all__ = ["counts_in_64_bits", "print_solution", "triangular_solve"]

_ELEMENTS = {"f": "f32", "d": "f64"}
_LETTERS = {"f32": "s", "f64": "d"}
_LONG = 128  # rows of a system whose one right side is faster by itself


def counts_in_64_bits(element: str) -> bool | None:
    """How BLAS is told lengths; None where there is none to be called."""
    one, several = (blas.cblas(_LETTERS[element] + name) for name in ("trsv", "trsm"))
    return None if one is None or several is None else several[1]


def print_solution(
    f: Emitter, element: str, wide: bool, lower: bool, a: Value, y: Value, m: Value, n: Value
) -> None:
    """Print: y (m, n), the right sides of one system, becomes the solutions. wide: BLAS counts in
    64 bits.
    """
    rows, columns = (v if wide else f.convert(v, "i32") for v in (m, n))
    order, left, *kinds = (f.constant(I32, k) for k in blas.TRIANGLE[lower])
    name = f"funct_{element}_triangular"

    def one() -> list[Value]:
        f.call(f"{name}_vector", None, [order, *kinds, rows, a, rows, y, columns])
        return []

    def several() -> list[Value]:
        factor = f.constant(typed(element), 1)
        f.call(name, None, [order, left, *kinds, rows, columns, factor, a, rows, y, columns])
        return []

    f.branch(f.eq(n, 1) & (m >= _LONG), one, several)


def _offered(name: str) -> int:
    found = blas.cblas(name)
    assert found is not None, "asked for by text that was printed for it"
    return found[0]


for _element, _letter in _LETTERS.items():
    offer(f"funct_{_element}_triangular", functools.partial(_offered, f"{_letter}trsm"))
    offer(f"funct_{_element}_triangular_vector", functools.partial(_offered, f"{_letter}trsv"))


def _text(element: str, wide: bool, lower: bool) -> str:
    """`solve(a, y, count, m, n)`: y, which holds the right sides, becomes the solutions; how many
    numbers on diagonals are 0.
    """
    module = Module(host())
    names = (("a", PTR), ("y", PTR), ("count", I64), ("m", I64), ("n", I64))
    f = module.function("solve", names, I64)
    a, y, count, m, n = f.arguments

    def one(k: Value, zeros: list[Value]) -> list[Value]:
        matrix = f.at(a, k * m * m, element)

        def number(i: Value, zeros: list[Value]) -> list[Value]:
            zero = f.eq(f.load(typed(element), f.at(matrix, i * (m + 1), element)), 0.0)
            return [f.select(zero, zeros[0] + 1, zeros[0])]

        zeros = f.loop(0, m, 1, number, zeros)
        print_solution(f, element, wide, lower, matrix, f.at(y, k * m * n, element), m, n)
        return zeros

    f.ret(f.loop(0, count, 1, one, [f.constant(I64, 0)])[0])
    return module.text()


@functools.cache
def _entry(kind: str, lower: bool) -> tuple[Code, Any] | None:
    """What keeps the code, and its function; None where there is no BLAS for it."""
    element = _ELEMENTS.get(kind)
    wide = counts_in_64_bits(element) if element else None
    if wide is None:
        return None
    code = printed(_text, element, wide, lower)
    return code, ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * 5)(code.address("solve"))


def triangular_solve(a: Any, b: Any, lower: bool) -> Any:
    """See `funct.kernels.linalg.matrices.triangular_solves`."""
    entry = _entry(a.dtype.char, bool(lower)) if a.dtype is b.dtype else None
    if entry is None:
        return NotImplemented
    lead, (m, n) = b.shape[:-2], b.shape[-2:]
    if a.shape[:-2] != lead:
        lead = np.broadcast_shapes(a.shape[:-2], lead)
        a = np.broadcast_to(a, (*lead, m, m))
    y = scratch.fresh((*lead, m, n), b.dtype)
    y[...] = b
    if not y.size:
        return y
    if not a.flags.c_contiguous:
        a = np.ascontiguousarray(a)
    if entry[1](address(a), address(y), prod(lead), m, n):
        raise np.linalg.LinAlgError
    return y
