"""Triangular systems in stacks: BLAS called by address for one after the other.

LAPACK takes one matrix, and a call of it from Python costs more than to solve a small one. One
right side of a long system goes to BLAS's function of vectors, which reads the matrix as it lies;
that of matrices lays it out first, for a product with many. In a short system each number waits for
the one before: there a lane of a vector is a system of its own, as many at a time as it has.
"""

from __future__ import annotations

import ctypes
import functools
from math import prod
from typing import Any

import numpy as np

from funct.device import Code, blas, host, printed
from funct.kernels.cpu import scratch
from funct.kernels.cpu.dense.turn import turn_name
from funct.kernels.cpu.record import address
from funct.kernels.llvm import I32, I64, PTR, Emitter, Module, Value, each, typed

__all__ = ["counts_in_64_bits", "print_solution", "solve_triangular", "triangular_symbol"]

# by NumPy's name, and whether numbers are complex
_ELEMENTS = {"f": ("f32", False), "d": ("f64", False), "F": ("f32", True), "D": ("f64", True)}
_LETTERS = {("f32", False): "s", ("f64", False): "d", ("f32", True): "c", ("f64", True): "z"}
_LONG = 16  # rows of a system whose one right side is faster by itself
_SHORT, _SIDES = 64, 16  # rows, and right sides, of systems that are lanes


def counts_in_64_bits(element: str, pairs: bool = False) -> bool | None:
    """How BLAS is told lengths; None where there is none to call. pairs: numbers are complex."""
    letter = _LETTERS[element, pairs]
    one, several = (blas.cblas(letter + name) for name in ("trsv", "trsm"))
    return None if one is None or several is None else several[1]


def print_solution(
    f: Emitter, element: str, wide: bool, lower: bool, a: Value, y: Value, m: Value, n: Value,
    *, pairs: bool = False, turned: bool = False,
) -> None:  # fmt: skip
    """Print: y (m, n), the right sides of one system, becomes the solutions. wide: BLAS counts in
    64 bits. pairs: numbers are complex. turned: columns of the matrix are what lies in memory.
    """
    rows, columns = (v if wide else f.convert(v, "i32") for v in (m, n))
    told = list(blas.TRIANGLE[lower != turned])
    told[3] = blas.TURNED if turned else told[3]
    order, left, *kinds = (f.constant(I32, k) for k in told)
    name = triangular_symbol(element, pairs)

    def one() -> list[Value]:
        f.call(f"{name}_vector", None, [order, *kinds, rows, a, rows, y, columns])
        return []

    def several() -> list[Value]:
        factor = f.constant(typed(element), 1)
        if pairs:  # BLAS takes the address of a complex number
            place = f.allocate(typed(element), 2)
            f.store(factor, place)
            f.store(f.constant(typed(element), 0), f.at(place, 1, element))
            factor = place
        f.call(name, None, [order, left, *kinds, rows, columns, factor, a, rows, y, columns])
        return []

    f.branch(f.eq(n, 1) & (m >= _LONG), one, several)


def triangular_symbol(element: str, pairs: bool = False) -> str:
    """By which name machine code finds BLAS's `trsm` for numbers of a kind."""
    return f"funct_{element}_triangular{'_of_pairs' if pairs else ''}"


for _of, _letter in _LETTERS.items():
    blas.offer(triangular_symbol(*_of), f"cblas_{_letter}trsm")
    blas.offer(f"{triangular_symbol(*_of)}_vector", f"cblas_{_letter}trsv")


def _text(element: str, pairs: bool, wide: bool, lower: bool, turned: bool) -> str:
    """`solve(a, y, count, m, n, room)`: y, which holds the right sides, becomes the solutions; how
    many numbers on diagonals are 0. room: for a vector of systems with their right sides, or null,
    as for complex numbers. turned: see `print_solution`.
    """
    module, parts = Module(host()), 2 if pairs else 1
    turn = turn_name(element, host().vector_bytes)
    names = (("a", PTR), ("y", PTR), ("count", I64), ("m", I64), ("n", I64), ("room", PTR))
    f = module.function("solve", names, I64)
    a, y, count, m, n, room = f.arguments

    def one(k: Value, zeros: list[Value]) -> list[Value]:
        matrix = f.at(a, k * m * m * parts, element)

        def number(i: Value, zeros: list[Value]) -> list[Value]:
            places = [f.at(matrix, i * (m + 1) * parts + part, element) for part in range(parts)]
            zero, *other = [f.eq(f.load(typed(element), place), 0.0) for place in places]
            zero = zero & other[0] if other else zero
            return [f.select(zero, zeros[0] + 1, zeros[0])]

        return f.loop(0, m, 1, number, zeros)

    zeros = f.loop(0, count, 1, one, [f.constant(I64, 0)])[0]

    def solution(k: Value) -> None:
        matrix, sides = (f.at(v, k * m * s * parts, element) for v, s in ((a, m), (y, n)))
        print_solution(
            f, element, wide, lower, matrix, sides, m, n, pairs=pairs, turned=turned
        )

    def one_by_one() -> list[Value]:
        each(f, 0, count, solution)
        return []

    def together() -> list[Value]:
        lanes = _lanes(element)

        def some(k: Value) -> None:
            matrices, sides = f.at(a, k * m * m, element), f.at(y, k * m * n, element)
            real, held = f.min(count - k, lanes), f.at(room, m * m * lanes, element)
            step = f.constant(I64, lanes)
            f.call(turn, None, [matrices, room, real, m * m, m * m, step])
            f.call(turn, None, [sides, held, real, m * n, m * n, step])
            _print_lanes(f, element, lower, room, held, m, n)
            f.call(turn, None, [held, sides, m * n, real, step, m * n])

        each(f, 0, count, some, lanes)
        return []

    if pairs or turned:
        one_by_one()
    else:
        f.branch(f.ne(room, f.null()), together, one_by_one)
    f.ret(zeros)
    return module.text()


def _lanes(element: str) -> int:
    """Systems in a vector."""
    return host().vector_bytes // typed(element).bytes


def _print_lanes(
    f: Emitter, element: str, lower: bool, a: Value, y: Value, m: Value, n: Value
) -> None:
    """Print: y (m, n, lanes), right sides, becomes the solutions of the systems a (m, m, lanes)."""
    vector = typed(element, _lanes(element))

    def number(x: Value, at: Value) -> Value:
        return f.at(x, at * vector.lanes, element)

    def row(step: Value) -> None:
        i = step if lower else m - 1 - step
        first, stop = (0, i) if lower else (i + 1, m)
        pivot = f.load(vector, number(a, i * m + i))

        def side(c: Value) -> None:
            here = number(y, i * n + c)

            def known(j: Value, rest: list[Value]) -> list[Value]:
                factor = f.neg(f.load(vector, number(a, i * m + j)))
                return [f.fma(factor, f.load(vector, number(y, j * n + c)), rest[0])]

            rest = f.loop(first, stop, 1, known, [f.load(vector, here)], maybe_empty=True)
            f.store(rest[0] / pivot, here)

        each(f, 0, n, side)

    each(f, 0, m, row)


@functools.cache
def _entry(kind: str, lower: bool, turned: bool) -> tuple[Code, Any] | None:
    """What keeps the code, and its function; None where there is no BLAS for it."""
    if kind not in _ELEMENTS or (wide := counts_in_64_bits(*_ELEMENTS[kind])) is None:
        return None
    code = printed(_text, *_ELEMENTS[kind], wide, lower, turned)
    return code, ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * 6)(code.address("solve"))


def solve_triangular(a: Any, b: Any, lower: bool) -> Any:
    """See `funct.kernels.linalg.matrices.triangular_solves`."""
    if a.dtype is not b.dtype or a.dtype.char not in _ELEMENTS:
        return NotImplemented
    lead, (m, n) = b.shape[:-2], b.shape[-2:]
    if a.shape[:-2] != lead:
        lead = np.broadcast_shapes(a.shape[:-2], lead)
        a = np.broadcast_to(a, (*lead, m, m))
    element, pairs = _ELEMENTS[a.dtype.char]
    count, lanes = prod(lead), _lanes(element)
    together = not pairs and count >= lanes and m <= _SHORT and n <= _SIDES
    turned = not together and not a.flags.c_contiguous and a.mT.flags.c_contiguous
    if (entry := _entry(a.dtype.char, bool(lower), turned)) is None:
        return NotImplemented
    y = scratch.fresh((*lead, m, n), b.dtype)
    y[...] = b
    if not y.size:
        return y
    if not (turned or a.flags.c_contiguous):
        a = np.ascontiguousarray(a)
    room = scratch.scratch(lanes * m * (m + n) * a.itemsize) if together else 0
    if entry[1](address(a), address(y), count, m, n, room):
        raise np.linalg.LinAlgError
    return y
