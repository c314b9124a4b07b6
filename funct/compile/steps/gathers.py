"""Elements and rows at indices that only the running program knows.

An index outside of its axis touches no memory: the call writes the workspace's first word, the
program says at its end that it is not right, and whoever called goes the slow way, on which the op
raises with the user's line.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from msgspec import Struct

from funct.compile.fusion.calls import Address, Call
from funct.compile.fusion.fuse import Fused
from funct.compile.fusion.lower import places_of
from funct.compile.gathered import INDEX
from funct.compile.loops.kernel import CONTROL_WORDS, WRONG
from funct.compile.loops.scalars import ELEMENTS
from funct.compile.loops.tables import kept_inside, placed
from funct.compile.loops.updates import UPDATES, how_updated, updated
from funct.compile.steps.moves import copied, copy_bytes, zeros
from funct.device import host
from funct.graph import Node, Var
from funct.kernels.llvm import I64, PTR, Emitter, Module, Type, Value, typed

__all__ = ["lower_gather", "print_gather"]

_MUCH, _COLUMNS, _TASKS = 1 << 16, 32, 16  # elements and columns of a task at least, and tasks
_WIDE = 4  # vectors of a row at once
_SHORT = 64  # bytes of rows that have a kernel for each length
_READS = ("take", "wrap_index")


def lower_gather(node: Node, fused: Fused) -> list[Call]:
    """The call, after copies of what does not lie one after the other."""
    calls, places = places_of(node.operands, fused)
    out = node.results[0]
    i = node.operands[INDEX[node.name]]
    assert isinstance(i, Var)
    count, index = math.prod(i.shape), ELEMENTS[i.dtype]
    element = ELEMENTS[out.dtype]
    to = Address(out)
    match node.name:
        case "take":
            x, (axis,) = node.operands[0], node.params
            assert isinstance(x, Var)
            outer, n, inner = _around(x.shape, axis)
        case "put":
            axis, n = node.params
            outer, _, inner = _around(out.shape, axis)
            calls.append(zeros(out))
        case name if name in UPDATES:
            outer, n, inner = _around(out.shape, 0)
            calls.append(copied(out, places.pop(0)))
        case _:
            outer, (n,), inner = 1, node.params, 1
            places = [places[0], places[0]]
    quick = inner == 1 and n < 2**31 and out.dtype.itemsize in (4, 8)
    writes = node.name == "put" or node.name in UPDATES
    op = how_updated(node) if writes else node.name
    lanes = min(1 << inner.bit_length() - 1, host().vector_bytes // out.dtype.itemsize)
    row = inner * out.dtype.itemsize
    moved = row if node.name == "take" and inner > 1 and row <= _SHORT else 0
    kernel = ("gather", op, index, element, lanes if writes else 1, inner == 1, quick, moved)
    rows, part, parts = _parts(outer, count, inner, writes)
    words = (*places, to, outer, n, count, inner, rows, part, parts)
    return [*calls, Call(kernel, words, -(-outer // rows) * parts, (out,), checks=True)]


def _parts(outer: int, count: int, inner: int, writes: bool) -> tuple[int, int, int]:
    """How much of all a task does: what is before the axis, then the indices or, where several of
    them may write to one place, the columns behind the axis; and how many parts those are.
    """
    width = inner if writes else count
    tasks = min(_TASKS, outer * count * inner // _MUCH)
    if tasks < 2 or outer >= tasks:
        return -(-outer // max(1, tasks)), width, 1
    tasks = max(1, min(tasks, inner // _COLUMNS if writes else count))
    part = -(-width // (tasks * _COLUMNS)) * _COLUMNS if writes else -(-width // tasks)
    return outer, part, -(-width // part)


def _around(shape: tuple[int, ...], axis: int) -> tuple[int, int, int]:
    """Elements before, along and behind an axis."""
    return math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :])


def print_gather(
    module: Module, name: str, op: str, index: str, element: str, wide: int, single: bool,
    quick: bool, moved: int,
) -> None:  # fmt: skip
    """Add the kernel of an op: "take", "wrap_index", or how values change a place. Frame: values,
    indices, result; then the lengths before the axis, of it, of the indices and behind it, and what
    a task does of them: see `_parts`. wide: elements of a vector of a row. single: the length
    behind the axis is 1. quick: vectors of indices at once. moved: bytes of a short row, 0 if long.
    """
    f = module.function(name, [("frame", PTR), ("task", I64)])
    frame, task = f.arguments
    space, own = f.load(PTR, frame), f.at(frame, CONTROL_WORDS, "i64")
    values, indices, out = f.pointers(own, 0, 3)
    outer, n, count, inner = f.words(own, 3, 4)
    rows, part, parts = f.words(own, 7, 3)
    start, end = _share(f, f.div(task, parts), rows, outer)
    low, high = _share(f, f.rem(task, parts), part, count if op in _READS else inner)
    first, last = (low, high) if op in _READS else (f.constant(I64, 0), count)
    real = typed("u8" if element == "i1" else element)

    narrow = "i32" if index in ("i8", "u8", "i16", "u16", "i32") else "i64"
    lanes = module.target.vector_bytes // real.bytes if quick else 0

    def each(o: Value, _: list[Value]) -> list[Value]:
        def one(c: Value, _: list[Value]) -> list[Value]:
            given = f.convert(f.load(typed(index), f.at(indices, c, index)), "i64")
            at, outside = placed(f, given, n)
            dense, sparse = o * count + c, o * n + at  # rows of the indices' array, of the axis'

            def move() -> list[Value]:
                whole = inner, single, moved
                row = _Row(f, element, real, *whole, values, out, dense, sparse, at, wide)
                if op == "take":
                    row.take()
                elif op == "wrap_index":
                    row.wrap_index()
                else:
                    row.update(op, low, high)
                return []

            f.branch(outside, refuse, move, rare=True)
            return []

        def many(c: Value, _: list[Value]) -> list[Value]:
            given = f.load(typed(index, lanes), f.at(indices, c, index))
            at, outside = kept_inside(f, f.convert(given, narrow), n)
            f.branch(f.any(outside), refuse, list, rare=True)
            dense = o * count + c
            if op == "take":  # indices of four bytes are what processors gather by
                x = f.elements(element, f.at(values, o * n, element), f.convert(at, "i32"))
                f.store(x, f.at(out, dense, element))
            elif op == "wrap_index":
                f.store(f.convert(at, element), f.at(out, dense, element))
            else:  # one after the other: several may go to one place
                xs = f.load(typed(element, lanes), f.at(values, dense, element))
                for k in range(lanes):
                    place = f.at(out, o * n + f.convert(f.extract(at, k), "i64"), element)
                    x = f.extract(xs, k)
                    old = x if op == "set" else f.load(real, place)
                    f.store(updated(f, op, old, x, element), place)
            return []

        def refuse() -> list[Value]:
            f.store(f.constant(I64, WRONG), space)
            return []

        if lanes:
            whole = first + f.bitand(last - first, -lanes)
            f.loop(first, whole, lanes, many, maybe_empty=True)
            f.loop(whole, last, 1, one, maybe_empty=True)
        else:
            f.loop(first, last, 1, one)
        return []

    f.loop(start, end, 1, each)
    f.ret()


def _share(f: Emitter, which: Value, size: Value, length: Value) -> tuple[Value, Value]:
    """Begin and end of a part of so many."""
    first = which * size
    last = first + size
    return first, f.select(last < length, last, length)


class _Row(Struct, frozen=True):
    """One index on its way: rows of the array that has the indices' shape, and of the axis'."""

    f: Emitter
    element: str
    real: Type
    inner: Value
    single: bool
    moved: int
    values: Value
    out: Value
    dense: Value
    sparse: Value
    at: Value
    wide: int

    def take(self) -> None:
        """result[dense] = x[sparse]."""
        f, real = self.f, self.real
        if self.single:
            x = f.load(real, f.at(self.values, self.sparse, real.element))
            f.store(x, f.at(self.out, self.dense, real.element))
            return
        source = f.at(self.values, self.sparse * self.inner, real.element)
        to = f.at(self.out, self.dense * self.inner, real.element)
        size = f.constant(I64, self.moved) if self.moved else self.inner * real.bytes
        copy_bytes(f, to, source, size)  # of a size that is known, by vectors instead of a call

    def update(self, how: str, first: Value, last: Value) -> None:
        """result[sparse] becomes v[dense], or both together, in columns from first to last."""
        f, element = self.f, self.real.element

        def some(to: Value, of: Value, lanes: int) -> list[Value]:
            place, type = f.at(self.out, to, element), typed(element, lanes)
            new = f.load(type, f.at(self.values, of, element))
            old = new if how == "set" else f.load(type, place)
            f.store(updated(f, how, old, new, self.element), place)
            return []

        if self.single:
            some(self.sparse, self.dense, 1)
            return
        to, of = self.sparse * self.inner, self.dense * self.inner

        def vectors(step: int) -> Callable[[Value, list[Value]], list[Value]]:
            lanes = min(step, self.wide)

            def body(j: Value, _: list[Value]) -> list[Value]:
                for k in range(0, step, lanes):
                    some(to + j + k, of + j + k, lanes)
                return []

            return body

        for step in dict.fromkeys((_WIDE * self.wide, self.wide, 1)):
            end = first + f.bitand(last - first, -step)
            f.loop(first, end, step, vectors(step), maybe_empty=True)
            first = end

    def wrap_index(self) -> None:
        """result[dense] = the index, counted from the begin."""
        self.f.store(self.at, self.f.at(self.out, self.dense, self.real.element))
