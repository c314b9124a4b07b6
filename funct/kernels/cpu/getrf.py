"""L, U and a permutation of matrices by LAPACK's `getrf`, called by address: around it SciPy's
function takes as long as it does with twenty rows.

Complex matrices are pairs of numbers.
"""

from __future__ import annotations

import ctypes
import functools
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from funct.device import Code, blas, host, printed
from funct.kernels.cpu import scratch
from funct.kernels.cpu.record import address
from funct.kernels.llvm import I32, I64, PTR, Emitter, Module, Value, typed

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["counts_in_64_bits", "getrf", "print_factors"]

_LETTERS = {("f32", 1): "s", ("f64", 1): "d", ("f32", 2): "c", ("f64", 2): "z"}


@functools.cache
def counts_in_64_bits(element: str, width: int) -> bool | None:
    """How LAPACK is told lengths; None where there is none to call. width: numbers of a number."""
    found = blas.lapack(f"{_LETTERS[element, width]}getrf")
    return None if found is None else found[1]


def print_factors(
    module: Module, name: str, element: str, width: int,
    call: Callable[[Emitter, str, Value, Value, list[Value]], None],
) -> None:  # fmt: skip
    """Add `name(frame, task)`. Frame: places of x, P, L, U, of a matrix, of a permutation and of
    pivots; numbers of matrices, rows and columns. width: numbers of a number. call: prints the call
    of LAPACK's function by a name, of so many rows and columns.
    """
    wide = counts_in_64_bits(element, width)
    f = module.function(name, [("frame", PTR), ("task", I64)])
    frame, _ = f.arguments
    x, p, low, up, made, order, pivots = f.pointers(frame, 0, 7)
    count, m, n = f.words(frame, 7, 3)
    least, real, integer = f.min(m, n), typed(element), I64 if wide else I32
    sizes = f.allocate(integer, 3)
    index = integer.element
    for k, size in enumerate((m, n)):
        f.store(size if wide else f.convert(size, "i32"), f.at(sizes, k, index))

    def each(number: Value, body: Any) -> None:
        def one(k: Value, _: list[Value]) -> list[Value]:
            body(k)
            return []

        f.loop(0, number, 1, one)

    def cells(rows: Value, columns: Value, body: Any) -> None:
        each(rows, lambda i: each(columns, lambda j: body(i, j)))

    def matrix(t: Value) -> None:
        def turned(i: Value, j: Value) -> None:  # LAPACK's matrices have their columns one by one
            for part in range(width):
                v = f.load(real, f.at(x, ((t * m + i) * n + j) * width + part, element))
                f.store(v, f.at(made, (j * m + i) * width + part, element))

        def factor(to: Value, first: Value, row: Value, below: bool) -> Any:
            def cell(i: Value, j: Value) -> None:
                kept = f.compare("lt", j, i) if below else f.compare("le", i, j)
                for part in range(width):
                    v = f.load(real, f.at(made, (j * m + i) * width + part, element))
                    unit = f.select(f.eq(i, j), f.constant(real, float(below and not part)),
                                    f.constant(real, 0.0))  # fmt: skip
                    at = (first + i * row + j) * width + part
                    f.store(f.select(kept, v, unit), f.at(to, at, element))

            return cell

        def swapped(k: Value) -> None:
            found = f.load(integer, f.at(pivots, k, index))
            other = (found if wide else f.convert(found, "i64")) - 1
            a, b = (f.word(order, at) for at in (k, other))
            f.store(b, f.at(order, k, "i64"))
            f.store(a, f.at(order, other, "i64"))

        def one(i: Value) -> None:
            row = f.word(order, i)
            each(m, lambda j: f.store(f.constant(real, 0.0), f.at(p, (t * m + j) * m + i, element)))
            f.store(f.constant(real, 1.0), f.at(p, (t * m + row) * m + i, element))

        cells(m, n, turned)
        rows, columns = (f.at(sizes, k, index) for k in range(2))
        given = [rows, columns, made, rows, pivots, f.at(sizes, 2, index)]
        call(f, _symbol(element, width), m, n, given)
        cells(m, least, factor(low, t * m * least, least, True))
        cells(least, n, factor(up, t * least * n, n, False))
        each(m, lambda k: f.store(k, f.at(order, k, "i64")))
        each(least, swapped)
        each(m, one)

    each(count, matrix)
    f.ret()


def _text(element: str, width: int) -> str:
    module = Module(host())

    def call(f: Emitter, name: str, m: Value, n: Value, given: list[Value]) -> None:
        f.call(name, None, given)

    print_factors(module, "lu", element, width, call)
    return module.text()


@functools.cache
def _entry(element: str, width: int) -> tuple[Code, Any]:
    """What keeps the code, and its function."""
    code = printed(_text, element, width)
    return code, ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)(code.address("lu"))


def getrf(x: Any) -> tuple[Any, Any, Any] | None:
    """See `funct.kernels.linalg.matrices.lu`. None where there is no LAPACK."""
    (*lead, m, n), k, width = x.shape, min(x.shape[-2:]), 2 if x.dtype.kind == "c" else 1
    element = f"f{8 * x.itemsize // width}"
    if counts_in_64_bits(element, width) is None:
        return None
    if not (x.flags.c_contiguous and x.flags.aligned):
        x = x.copy()
    p = scratch.fresh((*lead, m, m), x.real.dtype)
    low, up = scratch.fresh((*lead, m, k), x.dtype), scratch.fresh((*lead, k, n), x.dtype)
    made = -(-m * n * x.itemsize // 8) * 8
    room = scratch.scratch(made + 8 * (m + k))
    places = *map(address, (x, p, low, up)), room, room + made, room + made + 8 * m
    frame = np.array([*places, math.prod(lead), m, n], np.int64)
    _entry(element, width)[1](address(frame), 0)
    return p, low, up


def _symbol(element: str, width: int) -> str:
    return f"funct_{_LETTERS[element, width]}getrf"


for _held, _letter in _LETTERS.items():
    blas.offer(_symbol(*_held), f"{_letter}getrf_")
