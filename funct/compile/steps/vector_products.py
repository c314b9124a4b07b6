"""Products of a matrix and a vector, as loops of our own.

BLAS packs a matrix first where it is asked for a product of two, and has threads of its own where
it is asked for one with a vector. Rows that lie along the sum are multiplied by the vector, eight
at a time, whose lanes are added up side by side; where rows lie along the result, so many columns
at a time are summed in registers. Where these are few and the sum is long, tasks take parts of the
sum, which are added up afterwards.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from funct.compile.fusion.calls import Address, Buffer, Call, Word
from funct.compile.loops.scalars import ELEMENTS
from funct.compile.steps.stacks import each_product
from funct.graph import Var
from funct.kernels.cpu.products.tiled import find_products
from funct.kernels.llvm import I64, PTR, Emitter, Module, Value, typed
from funct.kernels.llvm.shuffles import first_blocks, first_halves

__all__ = ["print_columns", "print_rows", "side_by_side", "vector_product", "vector_products"]

_TASK = 1 << 16  # elements of the matrix that are worth a task of their own
_MOST_TASKS = 16
_SUMS = 8  # vectors that are added to side by side: a sum must not wait for itself
_ROWS = _SUMS  # that share what is read of the vector
_EDGE = 4  # of them where columns end
_TERMS = 512  # after which sums go to memory: so they stay short, and pages in reach


def vector_product(
    matrix: Address, vector: Address, out: Var, terms: int, leading: int, *, across: bool
) -> list[Call]:
    """The calls. across: whether the matrix's rows lie along the result, not along the sum."""
    length, element = math.prod(out.shape), ELEMENTS[out.dtype]
    wanted = min(_MOST_TASKS, -(-length * terms // _TASK))
    if not across:
        panel = _even(length, wanted, _ROWS)
        words: tuple[Word, ...] = (matrix, vector, Address(out), length, terms, leading, panel)
        return [Call(("rows", element, 0), words, -(-length // panel), (out,))]
    columns = _SUMS * 64 // out.dtype.itemsize  # of two of the largest vectors there are
    if wanted == 1 or length >= wanted * columns:
        panel = _even(length, wanted, columns)
        words = (matrix, vector, Address(out), length, terms, leading, panel, panel, terms, 0, 0)
        return [Call(("columns", element, 0), words, -(-length // panel), (out,))]
    part = _even(terms, wanted, _ROWS)
    count = -(-terms // part)
    parts = Buffer(length * count, np.dtype(out.dtype))
    places = (matrix, vector, Address(parts), length, terms, leading)
    words = (*places, length, 0, part, part, length)
    combined = (Address(parts), Address(out), count, length, length)
    return [
        Call(("columns", element, 0), words, count, (parts,)),
        Call(("combine", "sum", element), combined, 1, (out,)),
    ]


def vector_products(
    matrix: Address, vector: Address, out: Var, sizes: tuple[int, int, int],
    stack: tuple[tuple[int, ...], list[int]], *, across: bool,
) -> Call:  # fmt: skip
    """The call for a stack of them, each whole in one task. sizes: elements of a result, terms,
    elements from row to row. stack: its shape, and where its products lie (`stack_words`).
    """
    shape, axes = stack
    (length, terms, leading), count = sizes, math.prod(shape)
    wanted = max(1, min(_MOST_TASKS, count, -(-count * length * terms // _TASK)))
    several = -(-count // wanted)
    words: tuple[Word, ...] = (
        matrix, vector, Address(out), length, terms, leading, count, several, *axes,
    )  # fmt: skip
    kernel = ("columns" if across else "rows", ELEMENTS[out.dtype], len(shape))
    return Call(kernel, words, -(-count // several), (out,))


def _even(length: int, tasks: int, step: int) -> int:
    """Of how many a task is, if there are to be so many of them."""
    return -(-math.ceil(length / tasks) // step) * step


def print_rows(module: Module, name: str, element: str, depth: int) -> None:
    """Add the kernel for rows along the sum. Frame: matrix, vector, result; elements of the result,
    terms of the sum, elements from row to row; rows of a task, or for a stack of that depth what
    `_each_of_stack` reads.
    """
    f = module.function(name, [("frame", PTR), ("task", I64)])
    frame, task = f.arguments
    matrix, vector, out = f.pointers(frame, 0, 3)
    length, terms, leading = f.words(frame, 3, 3)
    lanes = module.target.vector_bytes // typed(element).bytes
    wide, zero = typed(element, lanes), f.constant(typed(element, lanes), 0)
    bulk = terms - f.rem(terms, lanes)

    def some_rows(matrix: Value, vector: Value, out: Value, first: Value, stop: Value) -> None:
        def rows(i: Value, _: list[Value]) -> list[Value]:
            places = [f.intrinsic("smin", i + r, stop - 1) for r in range(_ROWS)]  # the last again
            starts = [f.at(matrix, p * leading, element) for p in places]

            def some(t: Value, sums: list[Value], mask: Value | None = None) -> list[Value]:
                x = f.load(wide, f.at(vector, t, element), mask)
                read = [f.load(wide, f.at(s, t, element), mask) for s in starts]
                return [f.fma(a, x, total) for a, total in zip(read, sums, strict=True)]

            def rest(t: Value, sums: list[Value]) -> list[Value]:
                return some(t, sums, f.first_lanes(lanes, terms - t))

            sums = f.loop(0, bulk, lanes, some, [zero] * _ROWS, maybe_empty=True)
            sums = f.loop(bulk, terms, lanes, rest, sums, maybe_empty=True)
            at = i
            for found in side_by_side(f, sums):
                count = found.type.lanes
                f.store(found, f.at(out, at, element), _inside(f, count, stop - at))
                at = at + count
            return []

        f.loop(first, stop, _ROWS, rows)

    if depth:

        def whole(matrix: Value, vector: Value, out: Value) -> None:
            some_rows(matrix, vector, out, f.constant(I64, 0), length)

        _each_of_stack(f, (matrix, vector, out), length, depth, element, whole)
        return
    panel = f.word(frame, 6)
    first = task * panel
    some_rows(matrix, vector, out, first, f.intrinsic("smin", first + panel, length))
    f.ret()


def _each_of_stack(
    f: Emitter, places: tuple[Value, Value, Value], length: Value, depth: int, element: str,
    product: Callable[[Value, Value, Value], None],
) -> None:  # fmt: skip
    """Each product of this task: matrix, vector, result. Frame, behind six words: how many products
    there are, how many are a task, and the stack's axes (`find_products`).
    """
    frame = f.arguments[0]
    matrix, vector, out = places
    count, group = f.words(frame, 6, 2)
    axes = [f.words(frame, 8 + 4 * axis, 4) for axis in range(depth)]

    def one(number: Value) -> None:
        found = find_products(f, number, axes, (matrix, vector), element)
        product(*found, f.at(out, number * length, element))

    each_product(f, (count, group), one)


def side_by_side(f: Emitter, rows: list[Value]) -> list[Value]:
    """The sum of the lanes of each vector, one after the other, in the order of a tree.

    Two vectors become one with half as many terms of each: within 128 bits first, where shuffles
    cost least. Their number is that of the lanes there or a multiple, a power of two.
    """
    lanes = rows[0].type.lanes
    unit = min(lanes, 16 // rows[0].type.bytes)
    block, run = 1, lanes
    while block < unit:
        rows = _paired(f, rows, first_blocks(lanes, unit, block), unit // 2)
        block *= 2
    while run > unit:  # terms of the same rows
        low = first_halves(rows[0].type.lanes, run, min(2, len(rows)))
        rows = _paired(f, rows, low, run // 2)
        run //= 2
    return rows


def _paired(f: Emitter, rows: list[Value], low: list[int], half: int) -> list[Value]:
    """These lanes of two vectors each, and those so far behind them, added."""
    others: list[Value | None] = [*rows[1::2]] if len(rows) > 1 else [None]
    high = [k + half for k in low]
    pairs = zip(rows[::2], others, strict=True)
    return [f.shuffle(x, y, low) + f.shuffle(x, y, high) for x, y in pairs]


def print_columns(module: Module, name: str, element: str, depth: int) -> None:
    """Add the kernel for rows along the result. Frame: matrix, vector, result; elements of the
    result, terms of the sum, elements from row to row; for a stack of that depth what
    `_each_of_stack` reads, else columns of a task, and how far a task moves along them; terms of a
    task, and how far it moves along these; how far it moves in the result.
    """
    f = module.function(name, [("frame", PTR), ("task", I64)])
    frame, task = f.arguments
    matrix, vector, out = f.pointers(frame, 0, 3)
    length, terms, leading = f.words(frame, 3, 3)
    if depth:
        zero = f.constant(I64, 0)

        def whole(matrix: Value, vector: Value, out: Value) -> None:
            _columns(f, (matrix, vector, out), leading, element, (zero, length), (zero, terms))

        _each_of_stack(f, (matrix, vector, out), length, depth, element, whole)
        return
    panel, move, part, along, down = f.words(frame, 6, 5)
    first, begin = task * move, task * along
    stop = f.intrinsic("smin", first + panel, length)
    end = f.intrinsic("smin", begin + part, terms)
    out = f.at(out, task * down, element)
    _columns(f, (matrix, vector, out), leading, element, (first, stop), (begin, end))
    f.ret()


def _columns(
    f: Emitter, places: tuple[Value, Value, Value], leading: Value, element: str,
    columns: tuple[Value, Value], terms: tuple[Value, Value],
) -> None:  # fmt: skip
    """Sums of these terms for these columns. places: matrix, vector, result."""
    matrix, vector, out = places
    (first, stop), (begin, end) = columns, terms
    lanes = f.module.target.vector_bytes // typed(element).bytes

    def strip(j: Value, t: Value, until: Value, vectors: int, edge: Value | None) -> None:
        """Sums of some terms for so many vectors of columns, up to the edge if there is one."""
        masks = [None if edge is None else _inside(f, lanes, edge - j - u * lanes)
                 for u in range(vectors)]  # fmt: skip
        wide = typed(element, lanes)

        def term(t: Value, sums: list[Value]) -> list[Value]:
            x = f.splat(f.load(typed(element), f.at(vector, t, element)), lanes)
            row = f.at(matrix, t * leading + j, element)
            read = [f.load(wide, f.at(row, u * lanes, element), m) for u, m in enumerate(masks)]
            return [f.fma(x, a, s) for a, s in zip(read, sums, strict=True)]

        sums = f.loop(t, until, 1, term, [f.constant(wide, 0)] * vectors)
        for u, (s, m) in enumerate(zip(sums, masks, strict=True)):
            place = f.at(out, j + u * lanes, element)
            before = f.select(t > begin, f.load(wide, place, m), f.constant(wide, 0))
            f.store(s + before, place, m)

    def block(t: Value, _: list[Value]) -> list[Value]:
        until = f.intrinsic("smin", t + _TERMS, end)
        whole = stop - f.rem(stop - first, _SUMS * lanes)
        for low, high, vectors, edge in ((first, whole, _SUMS, None), (whole, stop, _EDGE, stop)):

            def one(j: Value, _: list[Value]) -> list[Value]:
                strip(j, t, until, vectors, edge)  # noqa: B023
                return []

            f.loop(low, high, vectors * lanes, one, maybe_empty=True)
        return []

    f.loop(begin, end, _TERMS, block)


def _inside(f: Emitter, lanes: int, count: Value) -> Value:
    return f.first_lanes(lanes, f.intrinsic("smax", count, f.constant(I64, 0)))
