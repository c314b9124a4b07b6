"""Cholesky's factors and triangular systems of large matrices inside of a program: LAPACK's and
BLAS's, by address.

`rewriting/triangles.py` writes these nodes: copies around a call are part of the graph, and mostly
of loops that are there anyway. A thread takes some of the right sides.
"""

from __future__ import annotations

import math
from typing import Any

from funct.compile.fusion.calls import Address, Call
from funct.compile.fusion.fuse import Fused
from funct.compile.fusion.lower import places_of
from funct.compile.loops.kernel import CONTROL_WORDS
from funct.compile.steps.elimination import numbers_told, sides_of_a_task
from funct.compile.steps.matrices import call_alone, call_lapack, refuse
from funct.compile.steps.moves import copy_bytes
from funct.device import blas
from funct.graph import Node
from funct.kernels.cpu.triangular import counts_in_64_bits, triangular_symbol
from funct.kernels.llvm import I32, I64, PTR, Module, Value, each, typed

__all__ = [
    "CHOLESKY", "TRIANGULAR", "has_triangles", "is_triangle", "lower_triangle", "print_cholesky",
    "print_triangles",
]  # fmt: skip

CHOLESKY, TRIANGULAR = "cholesky_turned", "triangular_solved"
_LETTERS = {"f32": "s", "f64": "d"}
_LEFT, _RIGHT, _PLAIN, _TURNED = 141, 142, 111, 112  # of CBLAS


def has_triangles() -> bool:
    """Whether LAPACK and BLAS are there to be called."""
    factors = [blas.lapack(f"{letter}potrf") for letter in "sd"]
    return None not in (*factors, *map(counts_in_64_bits, _LETTERS))


def is_triangle(step: Any) -> bool:
    """Whether a step is one of these."""
    return isinstance(step, Node) and step.name in (CHOLESKY, TRIANGULAR)


def lower_triangle(node: Node, fused: Fused) -> list[Call]:
    """The call, after copies of what does not lie one after the other."""
    calls, places = places_of(node.operands, fused)
    (out,), x = node.results, node.reads[0]
    *lead, n, _ = x.shape
    element = "f64" if x.dtype.itemsize == 8 else "f32"
    words: Any = (*places, Address(out), n)
    if node.name == CHOLESKY:
        kernel: Any = ("cholesky", element)
        tasks = math.prod(lead)
    else:
        lower, turned, right = node.params
        sides = out.shape[-2 if right else -1]
        part = sides_of_a_task(n)
        tasks, words = math.prod(lead) * -(-sides // part), (*words, sides, part)
        kernel = ("triangles", element, lower, turned, right)
    return [*calls, Call(kernel, words, tasks, node.results, checks=True, doubts=True)]


def print_cholesky(module: Module, name: str, element: str) -> None:
    """Add what makes upper factors of symmetric matrices, whose lower triangles are left as they
    are; a task makes one. Frame: places of matrices and of factors; number of rows.
    """
    f = module.function(name, [("frame", PTR), ("task", I64)])
    frame, task = f.arguments
    own = f.at(frame, CONTROL_WORDS, "i64")
    x, out = f.pointers(own, 0, 2)
    n = f.word(own, 2)
    x, out = (f.at(v, task * n * n, element) for v in (x, out))
    copy_bytes(f, out, x, n * n * typed(element).bytes)
    integer, (rows, told) = numbers_told(f, [n, None])
    letter = f.allocate(typed("i8"), 1)
    f.store(f.constant(typed("i8"), ord("L")), letter)
    given = [letter, rows, out, rows, told, f.constant(I64, 1)]
    call_lapack(f, f"funct_{element}_potrf", "cholesky_lo", n, n, given)
    failed = f.ne(f.load(typed(integer), told), 0)
    refuse(f, f.constant(I64, 1), f.load(PTR, frame), lambda _: failed)
    f.ret()


def print_triangles(
    module: Module, name: str, element: str, lower: bool, turned: bool, right: bool
) -> None:
    """Add what solves systems of one triangle of a matrix, or of its transpose. Frame: places of
    matrices, right sides and solutions; numbers of rows, of right sides and of those of a task.
    right: right sides and solutions are rows.
    """
    f = module.function(name, [("frame", PTR), ("task", I64)])
    frame, task = f.arguments
    own = f.at(frame, CONTROL_WORDS, "i64")
    a, b, x = f.pointers(own, 0, 3)
    n, m, part = f.words(own, 3, 3)
    parts = f.div(m + part - 1, part)
    t, first = f.div(task, parts), f.rem(task, parts) * part
    some, size = f.min(m - first, part), typed(element).bytes
    matrix = f.at(a, t * n * n, element)

    def zero(i: Value) -> Value:
        return f.eq(f.load(typed(element), f.at(matrix, i * (n + 1), element)), 0.0)

    refuse(f, n, f.load(PTR, frame), zero)
    begin = t * n * m + first * (n if right else 1)
    given, place = (f.at(v, begin, element) for v in (b, x))

    def row(i: Value) -> None:
        copy_bytes(f, f.at(place, i * m, element), f.at(given, i * m, element), some * size)

    if right:
        copy_bytes(f, place, given, some * n * size)
    else:
        each(f, 0, n, row)
    order, _, triangle, _, unit = blas.TRIANGLE[lower]
    flags = [order, _RIGHT if right else _LEFT, triangle, _TURNED if turned else _PLAIN, unit]
    sizes = [some, n, n, n] if right else [n, some, n, m]  # of the right sides, and row lengths
    rows, columns, lead, wide = (
        v if counts_in_64_bits(element) else f.convert(v, "i32") for v in sizes
    )
    one = f.constant(typed(element), 1)
    told = [*[f.constant(I32, k) for k in flags], rows, columns, one, matrix, lead, place, wide]
    call_alone(f, triangular_symbol(element), told)
    f.ret()


for _element, _letter in _LETTERS.items():
    blas.offer(f"funct_{_element}_potrf", f"{_letter}potrf_")
