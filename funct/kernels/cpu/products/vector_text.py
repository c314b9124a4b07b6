"""The text of products of a matrix and a vector.

BLAS packs a matrix first where it is asked for a product of two, and has threads of its own where
it is asked for one with a vector. Here memory is read as it lies, a few rows beside each other.
Rows that lie along the sum share what is read of the vector, and their lanes are added up side by
side. Of rows that lie along the result as many sums as the first-level cache holds are kept there,
to which some rows at a time are added; where the sum is long, tasks take parts of it, which are
added up afterwards. Halves are summed in float32. What is left of them behind whole vectors is read
with elements before it: no processor without AVX-512 has masks for them.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

from msgspec import Struct

from funct.kernels.cpu.products.tiled import each_product, find_products
from funct.kernels.llvm import I64, PTR, Emitter, Module, Type, Value, each, typed
from funct.kernels.llvm.shuffles import first_blocks, first_halves

__all__ = [
    "TASK", "Cut", "cut", "cut_stack", "print_columns", "print_rows", "side_by_side", "summed_in",
]  # fmt: skip

TASK = 1 << 16  # elements of the matrix that are worth a task of their own
_MOST_TASKS, _MOST_PARTS = 16, 8
_LEAST_PART = 48  # rows, beside which the sums of a part are little to write and read again
_COLUMNS = 128  # of two of the largest vectors there are
_BESIDE, _SUMS = 4, 2  # rows along the sum, and sums of each: one must not wait for itself
_SHORT = 512  # elements of a stack's rows that processors do not foresee, as they end too soon
_TOGETHER = 4, 2, 1  # rows along the result, which are added to the same sums,
_VECTORS = 2  # and vectors of them, which do not wait for each other
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
    wanted = min(_MOST_TASKS, -(-length * terms // TASK))
    if not across:
        panel = _even(length, wanted, _BESIDE)
        return Cut((length, terms, leading, panel), -(-length // panel))
    parts = min(wanted, _MOST_PARTS, terms // _LEAST_PART)
    if parts > 1:
        part = _even(terms, parts, _TOGETHER[0])
        parts = -(-terms // part)
        return Cut((length, terms, leading, length, 0, part, part, length), parts, parts)
    panel = _even(length, wanted, _COLUMNS)
    return Cut((length, terms, leading, panel, panel, terms, 0, 0), -(-length // panel))


def cut_stack(count: int, length: int, terms: int, leading: int) -> Cut:
    """The same of so many products, each whole in one task; the stack's axes follow its words."""
    wanted = max(1, min(_MOST_TASKS, count, -(-count * length * terms // TASK)))
    several = -(-count // wanted)
    return Cut((length, terms, leading, count, several), -(-count // several))


def _even(length: int, tasks: int, step: int) -> int:
    """Of how many a task is, if there are to be so many of them."""
    return -(-math.ceil(length / tasks) // step) * step


def summed_in(element: str) -> str:
    """The element of sums."""
    return "f32" if element.endswith("16") else element


def print_rows(module: Module, name: str, element: str, depth: int) -> None:
    """Add the kernel for rows along the sum. Frame: matrix, vector, result; the words of `cut` or,
    for a stack of that depth, of `cut_stack`.
    """
    sum_element = summed_in(element)
    f = module.function(name, [("frame", PTR), ("task", I64)])
    frame, task = f.arguments
    matrix, vector, out = f.pointers(frame, 0, 3)
    length, terms, leading = f.words(frame, 3, 3)
    lanes = module.target.vector_bytes // typed(sum_element).bytes
    zero = f.constant(typed(sum_element, lanes), 0)
    bulk, left = terms - f.rem(terms, lanes * _SUMS), f.rem(terms, lanes)
    ahead = f.select(leading <= _SHORT, leading * _BESIDE, f.constant(I64, 0))

    def some_rows(places: tuple[Value, Value, Value], first: Value | int, stop: Value) -> None:
        matrix, vector, out = places

        def rows(i: Value) -> None:
            numbers = [f.min(i + r, stop - 1) for r in range(_BESIDE)]
            starts = [f.at(matrix, n * leading, element) for n in numbers]  # the last again

            def some(
                t: Value, sums: list[Value], mask: Value | None = None, on: Value | None = None
            ) -> list[Value]:
                x, *read = (
                    _read(f, element, lanes, f.at(p, t, element), mask) for p in (vector, *starts)
                )
                if on is not None:
                    x, *read = (f.select(on, v, zero) for v in (x, *read))
                return [f.fma(a, x, total) for a, total in zip(read, sums, strict=True)]

            def several(t: Value, sums: list[Value]) -> list[Value]:
                for start in starts if depth else []:
                    f.prefetch(f.at(start, t + ahead, element))
                return [
                    found for s in range(_SUMS)
                    for found in some(t + s * lanes, sums[s * _BESIDE : (s + 1) * _BESIDE])
                ]  # fmt: skip

            def rest(sums: list[Value]) -> list[Value]:
                def masked() -> list[Value]:
                    return some(terms - left, sums, f.first_lanes(lanes, left))

                def again() -> list[Value]:
                    return some(terms - lanes, sums, on=~f.first_lanes(lanes, lanes - left))

                if element == sum_element:
                    return masked()
                return f.branch(terms < lanes, masked, again)

            held = [zero] * (_SUMS * _BESIDE)
            held = f.loop(0, bulk, lanes * _SUMS, several, held, maybe_empty=True)
            sums = [sum(held[r + _BESIDE :: _BESIDE], held[r]) for r in range(_BESIDE)]
            sums = f.loop(bulk, terms - left, lanes, some, sums, maybe_empty=True)
            sums = f.branch(left > 0, lambda: rest(sums), lambda: sums)
            at = i
            for total in side_by_side(f, sums):
                _put(f, f.convert(total, element), f.at(out, at, element), stop - at)
                at = at + total.type.lanes

        each(f, first, stop, rows, _BESIDE)

    if depth:
        _each_of_stack(f, (matrix, vector, out), length, depth, element,
                       lambda places: some_rows(places, 0, length))  # fmt: skip
        return
    panel = f.word(frame, 6)
    first = task * panel
    some_rows((matrix, vector, out), first, f.min(first + panel, length))
    f.ret()


def _put(f: Emitter, x: Value, place: Value, left: Value) -> None:
    """Store as many as are left: all but the last by no mask, by which processors are slow."""
    lanes = x.type.lanes

    def whole() -> list[Value]:
        f.store(x, place)
        return []

    def some() -> list[Value]:
        f.store(x, place, f.first_lanes(lanes, f.max(left, 0)))
        return []

    f.branch(left >= lanes, whole, some)


def _read(f: Emitter, element: str, lanes: int, place: Value, mask: Value | None = None) -> Value:
    """So many elements as what they are summed in."""
    return f.convert(f.load(typed(element, lanes), place, mask), summed_in(element))


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


def print_columns(
    module: Module, name: str, element: str, depth: int, *, parted: bool = False
) -> None:
    """Add the kernel for rows along the result. Frame: matrix, vector, result; the words of `cut`
    or, for a stack of that depth, of `cut_stack`. parted: whether results are parts of sums.
    """
    sum_element = summed_in(element)
    to = sum_element if parted else element
    f = module.function(name, [("frame", PTR), ("task", I64)])
    frame, task = f.arguments
    matrix, vector, out = f.pointers(frame, 0, 3)
    length, terms, leading = f.words(frame, 3, 3)
    wide = typed(sum_element, module.target.vector_bytes // typed(sum_element).bytes)
    kept = f.allocate(wide, _KEPT // module.target.vector_bytes)
    zero = f.constant(I64, 0)

    def columns(
        places: tuple[Value, Value, Value], some: tuple[Value, Value], terms: tuple[Value, Value]
    ) -> None:
        _columns(f, (kept, wide, element, to), (*places, leading), some, terms)

    if depth:

        def whole(places: tuple[Value, Value, Value]) -> None:
            columns(places, (zero, length), (zero, terms))

        _each_of_stack(f, (matrix, vector, out), length, depth, element, whole)
        return
    panel, move, part, along, down = f.words(frame, 6, 5)
    first, begin, out = task * move, task * along, f.at(out, task * down, to)
    some = first, f.min(first + panel, length)
    columns((matrix, vector, out), some, (begin, f.min(begin + part, terms)))
    f.ret()


def _columns(
    f: Emitter, kinds: tuple[Value, Type, str, str], places: tuple[Value, Value, Value, Value],
    columns: tuple[Value, Value], terms: tuple[Value, Value],
) -> None:  # fmt: skip
    """Sums of these terms for these columns. kinds: room for sums, a vector of them, elements of
    both operands and of the result. places: matrix, vector, result, elements from row to row.
    """
    (kept, wide, element, to), (matrix, vector, out, leading) = kinds, places
    (first, stop), (begin, end) = columns, terms
    lanes = wide.lanes

    def strip(start: Value) -> None:
        count = f.min(stop - start, _KEPT // wide.scalar.bytes)
        whole = count - f.rem(count, lanes)

        def each_vector(body: Callable[[Value, Value, Value | None], None]) -> None:
            """For each the place of its sums, its first column, and which others there are."""
            left, few = whole < count, count < lanes
            even = whole - f.rem(whole, _VECTORS * lanes)

            def several(c: Value) -> None:
                for v in range(_VECTORS):
                    body(c + v * lanes, c + v * lanes, None)

            each(f, 0, even, several, _VECTORS * lanes)
            each(f, even, whole, lambda c: body(c, c, None), lanes)
            f.when(left & few, lambda: body(whole, whole, f.first_lanes(lanes, count)))
            f.when(left & ~few, lambda: body(whole, count - lanes, None))

        def add(t: Value, several: int) -> None:
            ways = [f.splat(_read(f, element, 1, f.at(vector, t + r, element)), lanes)
                    for r in range(several)]  # fmt: skip
            rows = [f.at(matrix, (t + r) * leading + start, element) for r in range(several)]

            def some(place: Value, c: Value, mask: Value | None) -> None:
                held = [f.load(wide, place := f.at(kept, place, wide.element))]
                for k, (x, row) in enumerate(zip(ways, rows, strict=True)):
                    read = _read(f, element, lanes, f.at(row, c, element), mask)
                    if k == _TOGETHER[1]:  # another sum, for one would wait for itself
                        held.append(x * read)
                    else:
                        held[-1] = f.fma(x, read, held[-1])
                f.store(sum(held[1:], held[0]), place)

            each_vector(some)

        zero, result = f.constant(wide, 0), f.at(out, start, to)
        each_vector(lambda place, *_: f.store(zero, f.at(kept, place, wide.element)))
        done = begin
        for several in _TOGETHER:
            many = end - f.rem(end - done, several)
            each(f, done, many, functools.partial(add, several=several), several)
            done = many

        def give(place: Value, c: Value, mask: Value | None) -> None:
            total = f.load(wide, f.at(kept, place, wide.element))
            f.store(f.convert(total, to), f.at(result, c, to), mask)

        each_vector(give)

    each(f, first, stop, strip, _KEPT // wide.scalar.bytes)
