"""The text of products of a matrix and a vector.

BLAS packs a matrix first where it is asked for a product of two, and has threads of its own where
it is asked for one with a vector. Here memory is read as it lies, a few rows beside each other.
Rows that lie along the sum share what is read of the vector, and their lanes are added up side by
side. Of rows that lie along the result as many sums as the first-level cache holds are kept there,
to which some rows at a time are added; where the sum is long, tasks take parts of it, which are
added up afterwards.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from msgspec import Struct

from funct.kernels.cpu.products.tiled import each_product, find_products
from funct.kernels.llvm import I64, PTR, Emitter, Module, Type, Value, each, typed
from funct.kernels.llvm.shuffles import first_blocks, first_halves

__all__ = ["Cut", "cut", "cut_stack", "print_columns", "print_rows", "side_by_side"]

_TASK = 1 << 16  # elements of the matrix that are worth a task of their own
_MOST_TASKS, _MOST_PARTS = 16, 8
_LEAST_PART = 64  # rows, beside which the sums of a part are little to write and read again
_COLUMNS = 128  # of two of the largest vectors there are
_BESIDE, _SUMS = 4, 2  # rows along the sum, and sums of each: one must not wait for itself
_TOGETHER = 8  # rows along the result, which are added to the same sums
_KEPT = 1 << 14  # bytes of sums


class Cut(Struct, frozen=True):
    """How a product is cut. words: what a task reads behind the addresses of matrix, vector and
    result. parts: of the sum, whose results lie one behind the other, if there are several.
    """

    words: tuple[int, ...]
    tasks: int
    parts: int = 1


def cut(length: int, terms: int, leading: int, *, across: bool) -> Cut:
    """A product of so many sums of so many terms, by elements from row to row. across: whether rows
    lie along the result, not along the sum.
    """
    wanted = min(_MOST_TASKS, -(-length * terms // _TASK))
    if not across:
        panel = _even(length, wanted, _BESIDE)
        return Cut((length, terms, leading, panel), -(-length // panel))
    parts = min(wanted, _MOST_PARTS)
    if parts > 1 and terms >= parts * _LEAST_PART:
        part = _even(terms, parts, _TOGETHER)
        parts = -(-terms // part)
        return Cut((length, terms, leading, length, 0, part, part, length), parts, parts)
    panel = _even(length, wanted, _COLUMNS)
    return Cut((length, terms, leading, panel, panel, terms, 0, 0), -(-length // panel))


def cut_stack(count: int, length: int, terms: int, leading: int) -> Cut:
    """The same of so many products, each whole in one task; the stack's axes follow its words."""
    wanted = max(1, min(_MOST_TASKS, count, -(-count * length * terms // _TASK)))
    several = -(-count // wanted)
    return Cut((length, terms, leading, count, several), -(-count // several))


def _even(length: int, tasks: int, step: int) -> int:
    """Of how many a task is, if there are to be so many of them."""
    return -(-math.ceil(length / tasks) // step) * step


def print_rows(module: Module, name: str, element: str, depth: int) -> None:
    """Add the kernel for rows along the sum. Frame: matrix, vector, result; the words of `cut` or,
    for a stack of that depth, of `cut_stack`.
    """
    f = module.function(name, [("frame", PTR), ("task", I64)])
    frame, task = f.arguments
    matrix, vector, out = f.pointers(frame, 0, 3)
    length, terms, leading = f.words(frame, 3, 3)
    lanes = module.target.vector_bytes // typed(element).bytes
    wide, zero = typed(element, lanes), f.constant(typed(element, lanes), 0)
    bulk = terms - f.rem(terms, lanes * _SUMS)

    def some_rows(places: tuple[Value, Value, Value], first: Value | int, stop: Value) -> None:
        matrix, vector, out = places

        def rows(i: Value) -> None:
            numbers = [f.min(i + r, stop - 1) for r in range(_BESIDE)]
            starts = [f.at(matrix, n * leading, element) for n in numbers]  # the last again

            def some(t: Value, sums: list[Value], mask: Value | None = None) -> list[Value]:
                x = f.load(wide, f.at(vector, t, element), mask)
                read = [f.load(wide, f.at(s, t, element), mask) for s in starts]
                return [f.fma(a, x, total) for a, total in zip(read, sums, strict=True)]

            def several(t: Value, sums: list[Value]) -> list[Value]:
                return [
                    found for s in range(_SUMS)
                    for found in some(t + s * lanes, sums[s * _BESIDE : (s + 1) * _BESIDE])
                ]  # fmt: skip

            def rest(t: Value, sums: list[Value]) -> list[Value]:
                return some(t, sums, f.first_lanes(lanes, terms - t))

            held = [zero] * (_SUMS * _BESIDE)
            held = f.loop(0, bulk, lanes * _SUMS, several, held, maybe_empty=True)
            sums = [sum(held[r + _BESIDE :: _BESIDE], held[r]) for r in range(_BESIDE)]
            sums = f.loop(bulk, terms, lanes, rest, sums, maybe_empty=True)
            at = i
            for total in side_by_side(f, sums):
                count = total.type.lanes
                inside = f.first_lanes(count, f.max(stop - at, 0))
                f.store(total, f.at(out, at, element), inside)
                at = at + count

        each(f, first, stop, rows, _BESIDE)

    if depth:
        _each_of_stack(f, (matrix, vector, out), length, depth, element,
                       lambda places: some_rows(places, 0, length))  # fmt: skip
        return
    panel = f.word(frame, 6)
    first = task * panel
    some_rows((matrix, vector, out), first, f.min(first + panel, length))
    f.ret()


def _each_of_stack(
    f: Emitter, places: tuple[Value, Value, Value], length: Value, depth: int, element: str,
    product: Callable[[tuple[Value, Value, Value]], None],
) -> None:  # fmt: skip
    """Each product of this task: matrix, vector, result. Frame, behind six words: how many products
    there are, how many are a task, and the stack's axes (`find_products`).
    """
    frame = f.arguments[0]
    matrix, vector, out = places
    axes = [f.words(frame, 8 + 4 * axis, 4) for axis in range(depth)]

    def one(number: Value) -> None:
        found = find_products(f, number, axes, (matrix, vector), element)
        product((*found, f.at(out, number * length, element)))

    count, group = f.words(frame, 6, 2)
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
    """Add the kernel for rows along the result. Frame: matrix, vector, result; the words of `cut`
    or, for a stack of that depth, of `cut_stack`.
    """
    f = module.function(name, [("frame", PTR), ("task", I64)])
    frame, task = f.arguments
    matrix, vector, out = f.pointers(frame, 0, 3)
    length, terms, leading = f.words(frame, 3, 3)
    wide = typed(element, module.target.vector_bytes // typed(element).bytes)
    kept = f.allocate(wide, _KEPT // module.target.vector_bytes)
    zero = f.constant(I64, 0)

    def columns(
        places: tuple[Value, Value, Value], some: tuple[Value, Value], terms: tuple[Value, Value]
    ) -> None:
        _columns(f, kept, wide, (*places, leading), some, terms)

    if depth:

        def whole(places: tuple[Value, Value, Value]) -> None:
            columns(places, (zero, length), (zero, terms))

        _each_of_stack(f, (matrix, vector, out), length, depth, element, whole)
        return
    panel, move, part, along, down = f.words(frame, 6, 5)
    first, begin, out = task * move, task * along, f.at(out, task * down, element)
    some = first, f.min(first + panel, length)
    columns((matrix, vector, out), some, (begin, f.min(begin + part, terms)))
    f.ret()


def _columns(
    f: Emitter, kept: Value, wide: Type, places: tuple[Value, Value, Value, Value],
    columns: tuple[Value, Value], terms: tuple[Value, Value],
) -> None:  # fmt: skip
    """Sums of these terms for these columns. kept: room for sums. places: matrix, vector, result,
    elements from row to row.
    """
    matrix, vector, out, leading = places
    (first, stop), (begin, end) = columns, terms
    element, lanes = wide.element, wide.lanes

    def strip(start: Value) -> None:
        count = f.min(stop - start, _KEPT // wide.scalar.bytes)
        whole = count - f.rem(count, lanes)

        def each_vector(body: Callable[[Value, Value | None], None]) -> None:
            each(f, 0, whole, lambda c: body(c, None), lanes)
            f.when(whole < count, lambda: body(whole, f.first_lanes(lanes, count - whole)))

        def add(t: Value, several: int) -> None:
            ways = [f.splat(f.load(wide.scalar, f.at(vector, t + r, element)), lanes)
                    for r in range(several)]  # fmt: skip
            rows = [f.at(matrix, (t + r) * leading + start, element) for r in range(several)]

            def some(c: Value, mask: Value | None) -> None:
                held = [f.load(wide, place := f.at(kept, c, element))]
                for k, (x, row) in enumerate(zip(ways, rows, strict=True)):
                    read = f.load(wide, f.at(row, c, element), mask)
                    if k == _TOGETHER // 2:  # another sum, for one would wait for itself
                        held.append(x * read)
                    else:
                        held[-1] = f.fma(x, read, held[-1])
                f.store(sum(held[1:], held[0]), place)

            each_vector(some)

        zero, result = f.constant(wide, 0), f.at(out, start, element)
        many = end - f.rem(end - begin, _TOGETHER)
        each_vector(lambda c, _: f.store(zero, f.at(kept, c, element)))
        each(f, begin, many, lambda t: add(t, _TOGETHER), _TOGETHER)
        each(f, many, end, lambda t: add(t, 1))

        def give(c: Value, mask: Value | None) -> None:
            f.store(f.load(wide, f.at(kept, c, element)), f.at(result, c, element), mask)

        each_vector(give)

    each(f, first, stop, strip, _KEPT // wide.scalar.bytes)
