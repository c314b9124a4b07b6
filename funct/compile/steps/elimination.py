"""Factors of matrices, and systems by them, inside of a program: LAPACK and BLAS, by address.

`rewriting/factored.py` and `triangles.py` write these nodes: what is only copied around a call is
part of the graph, and mostly of loops that are there anyway. LAPACK's matrices stand turned: their
columns lie one behind the other, as do the right sides of a system and its solutions.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from funct.compile.fusion.calls import Address, Call
from funct.compile.fusion.fuse import Fused
from funct.compile.fusion.lower import places_of
from funct.compile.loops.kernel import CONTROL_WORDS, WRONG
from funct.compile.steps.matrices import call_alone, call_lapack
from funct.compile.steps.moves import copy_bytes
from funct.device import blas
from funct.graph import Node
from funct.kernels.llvm import I32, I64, PTR, Emitter, Module, Value, each, typed

__all__ = [
    "FACTORED", "SOLVED", "is_elimination", "lower_elimination", "numbers_told", "pivots",
    "sides_of_a_task",
]  # fmt: skip

FACTORED, SOLVED = "lu_factored", "lu_solved"
_LEAST_SIDES, _TASK = 16, 1 << 20  # right sides of a task, and multiplications
_LETTERS = {"f32": "s", "f64": "d"}


def pivots() -> np.dtype[Any] | None:
    """The dtype of LAPACK's integers; None where it is not there."""
    found = [blas.lapack(f"{letter}{name}") for letter in "sd" for name in ("getrf", "getrs")]
    if None in found or found[0] is None:
        return None
    return np.dtype(np.int64 if found[0][1] else np.int32)


def is_elimination(step: Any) -> bool:
    """Whether a step is one of these."""
    return isinstance(step, Node) and step.name in (FACTORED, SOLVED)


def lower_elimination(node: Node, fused: Fused) -> list[Call]:
    """The call, after copies of what does not lie one after the other."""
    calls, places = places_of(node.operands, fused)
    operands: Any = node.operands
    *lead, n, _ = operands[0].shape
    element = "f64" if operands[0].dtype.itemsize == 8 else "f32"
    words: Any = (*places, *[Address(v) for v in node.results], math.prod(lead), n)
    (flag,) = node.params
    if node.name == FACTORED:
        kernel: Any = ("factored", element, flag)
        return [*calls, Call(kernel, words, 1, node.results, checks=flag, doubts=flag)]
    sides = operands[-1].shape[-2]
    part = sides_of_a_task(n)
    words = (*words, sides, part)
    tasks = math.prod(lead) * -(-sides // part)
    return [*calls, Call(("solved", element, flag), words, tasks, node.results)]


def sides_of_a_task(rows: int) -> int:
    """Of how many right sides a thread solves systems of so many rows."""
    return max(_LEAST_SIDES, -(-_TASK // rows**2))


def print_factored(module: Module, name: str, element: str, fails: bool) -> None:
    """Add what makes the factors. Frame: places of matrices, of factors and pivots; numbers of
    matrices and rows. fails: a matrix that is singular is refused.
    """
    f = module.function(name, [("frame", PTR), ("task", I64)])
    frame, _ = f.arguments
    own = f.at(frame, CONTROL_WORDS, "i64") if fails else frame
    x, lu, order = f.pointers(own, 0, 3)
    count, n = f.words(own, 3, 2)
    size = n * n
    copy_bytes(f, lu, x, count * size * typed(element).bytes)
    integer, (rows, told) = numbers_told(f, [n, None])

    def one(t: Value) -> None:
        place, changed = f.at(lu, t * size, element), f.at(order, t * n, integer)
        given = [rows, rows, place, rows, changed, told]
        call_lapack(f, _symbol(element, "getrf"), "solve", n, n, given)
        if fails:
            singular = f.ne(f.load(typed(integer), told), 0)
            f.when(singular, lambda: f.store(f.constant(I64, WRONG), f.load(PTR, frame)))

    each(f, 0, count, one)
    f.ret()


def print_solved(module: Module, name: str, element: str, turned: bool) -> None:
    """Add what solves systems. Frame: places of factors, of pivots, right sides and solutions;
    numbers of matrices, of rows, of right sides and of those of a task. turned: the systems are
    those of the transposes.
    """
    f = module.function(name, [("frame", PTR), ("task", I64)])
    frame, task = f.arguments
    lu, order, b, x = f.pointers(frame, 0, 4)
    n, m, part = f.words(frame, 5, 3)
    parts = f.div(m + part - 1, part)
    t, first = f.div(task, parts), f.rem(task, parts) * part
    some = f.min(m - first, part)
    integer, (rows, sides, told) = numbers_told(f, [n, some, None])
    letter = f.allocate(typed("i8"), 1)
    f.store(f.constant(typed("i8"), ord("T" if turned else "N")), letter)
    given, place = (f.at(v, (t * m + first) * n, element) for v in (b, x))
    copy_bytes(f, place, given, n * some * typed(element).bytes)
    factors, swaps = f.at(lu, t * n * n, element), f.at(order, t * n, integer)
    length = f.constant(I64, 1)  # of a text, which Fortran is told behind the rest
    operands = [letter, rows, sides, factors, rows, swaps, place, rows, told, length]
    call_alone(f, _symbol(element, "getrs"), operands)
    f.ret()


def numbers_told(f: Emitter, numbers: list[Value | None]) -> tuple[str, list[Value]]:
    """LAPACK's integers, and places of these numbers; None: of one that it tells."""
    kind = pivots()
    assert kind is not None, "there is LAPACK where matrices are factored"
    integer = I64 if kind.itemsize == 8 else I32
    room = f.allocate(integer, len(numbers))
    places = [f.at(room, k, integer.element) for k in range(len(numbers))]
    for number, place in zip(numbers, places, strict=True):
        if number is not None:
            f.store(number if integer is I64 else f.convert(number, "i32"), place)
    return integer.element, places


def _symbol(element: str, name: str) -> str:
    return f"funct_{element}_{name}"


for _element, _letter in _LETTERS.items():
    for _name in ("getrf", "getrs"):
        blas.offer(_symbol(_element, _name), f"{_letter}{_name}_")
