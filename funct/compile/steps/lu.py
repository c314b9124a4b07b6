"""L, U and a permutation of matrices inside of a program: LAPACK's `getrf`, by address.

SciPy, which eager execution asks, calls the same function of a LAPACK of its own. Complex matrices
have a last axis of two.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from funct.compile.fusion.calls import Address, Buffer, Call
from funct.compile.fusion.fuse import Fused
from funct.compile.fusion.groups import arrays
from funct.compile.fusion.lower import places_of
from funct.compile.steps.matrices import call_lapack
from funct.compile.steps.systems import is_systems
from funct.device import blas
from funct.graph import Node
from funct.kernels.llvm import I32, I64, PTR, Module, Value, typed

__all__ = ["is_lu", "lower_lu", "print_lu"]

_INDEX = np.dtype(np.int64)
_NAMES = ("lu", "lu_of_pairs")
_LETTERS = {("f32", 1): "s", ("f64", 1): "d", ("f32", 2): "c", ("f64", 2): "z"}


def is_lu(step: Any) -> bool:
    """Whether a step is that, of matrices with elements that lanes are not for."""
    held = arrays(step, _NAMES)
    if not held or any(v.dtype.char not in "fd" for v in held) or is_systems(step):
        return False
    return _getrf(_LETTERS[_kind(step)]) is not None


def _kind(node: Node) -> tuple[str, int]:
    """The element, and how many numbers one of a matrix is."""
    element = "f64" if node.results[0].dtype.char == "d" else "f32"
    return element, 2 if node.name == "lu_of_pairs" else 1


def _getrf(letter: str) -> tuple[int, bool] | None:
    """The address of the function, and whether it counts in 64 bits."""
    return blas.lapack(f"{letter}getrf")


def lower_lu(node: Node, fused: Fused) -> list[Call]:
    """The call, after a copy of what does not lie one after the other."""
    calls, places = places_of(node.operands, fused)
    x: Any = node.operands[0]
    element, width = _kind(node)
    found = _getrf(_LETTERS[element, width])
    assert found is not None, "asked for by `is_lu`"
    *lead, m, n = x.shape[: len(x.shape) + 1 - width]
    made = Address(Buffer(m * n * width, x.dtype))
    rows = Address(Buffer(m, _INDEX)), Address(Buffer(min(m, n), _INDEX))
    words = (*places, *[Address(v) for v in node.results], made, *rows, math.prod(lead), m, n)
    return [*calls, Call(("lu", element, width, found[1]), words, 1, node.results)]


def print_lu(module: Module, name: str, element: str, width: int, wide: bool) -> None:
    """Add the kernel. Frame: places of x, P, L, U, of a matrix, of a permutation and of pivots;
    numbers of matrices, rows and columns. wide: LAPACK counts in 64 bits.
    """
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
        call_lapack(f, _symbol(element, width), "lu", m, n, given)
        cells(m, least, factor(low, t * m * least, least, True))
        cells(least, n, factor(up, t * least * n, n, False))
        each(m, lambda k: f.store(k, f.at(order, k, "i64")))
        each(least, swapped)
        each(m, one)

    each(count, matrix)
    f.ret()


def _symbol(element: str, width: int) -> str:
    return f"funct_{_LETTERS[element, width]}getrf"


for _held, _letter in _LETTERS.items():
    blas.offer(_symbol(*_held), f"{_letter}getrf_")
