"""Products of a few rows and a matrix, which is read once, where it lies.

BLAS lays out both operands before it multiplies: beside a few rows that takes longer than all else.
Where the columns of the matrix lie in memory, a few rows share what is loaded of a few columns,
along their terms; other rows meet it in the first-level cache. Where its rows do, vectors
of a few of them stay in registers for as long as all rows take to meet them, whose sums lie in the
caches: so the matrix is walked once, along its rows, as memory likes it.

Few columns are rows of the transpose. Turned around first they take long beside few rows, and are
left to tiles (`large_products.py`) where those are quicker.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from funct.device import PARALLEL, Host, host, printed
from funct.kernels import table
from funct.kernels.cpu.products.blas import WORTH_CUTTING
from funct.kernels.cpu.products.tiled import Laid, cost, is_worth, laid
from funct.kernels.cpu.runners import making
from funct.kernels.llvm import I64, PTR, Emitter, Module, Type, Value, each, typed
from funct.kernels.llvm.arithmetic import Index

_Pair = tuple[int, int]

__all__ = ["FEW_ROWS", "are_few", "code_of", "few_rows_words", "large_matmul", "print_few_rows"]

Code = tuple[str, bool, tuple[int, ...], int, bool, bool]  # what `print_few_rows` is told

_VECTOR = 32  # bytes of a vector, of which there are 16
# rows, of a matrix whose columns lie in memory, or whose rows do; of longer vectors the latter
# have tiles from five rows on
_MOST_TURNED, _MOST, _MOST_TURNED_WIDE, _MOST_WIDE = 16, 32, 32, 4
# rows where a sum is so many times as long as the result has columns: rows of the first operand are
# read a few terms at a time
_MOST_LONG, _LONG = 4, 48
# terms along which columns are worth reading, and for each row; and where the result is turned for
# it, if its rows are more than a few
_LEAST_TERMS, _TERMS_OF_ROW, _TERMS_SWAPPED, _FEWEST = 32, 4, 16, 4
# what a product along the terms takes, and what an element of the second operand that is turned for
# it does, of the time of a product of vectors in a tile, which reads that where it lies
_ALONG, _TURNING = 1.25, 6
_LEAST_BYTES = 1 << 10  # of terms, for longer vectors, which take longer to add up
# columns and rows that share what is loaded, where columns lie in memory: of 16 vectors, and of 32
_TOGETHER, _SHARE, _TOGETHER_WIDE, _SHARE_WIDE = 4, 3, 6, 4
_FEW_LEFT = 16  # of so many columns one may be left to be taken alone
# rows of the matrix and vectors of each, in 16 registers and in 32, where those lie so, and bytes
# of sums
_TERMS, _TERMS_WIDE, _BESIDE = 4, 8, 2
_SUMS, _SUMS_WIDE = 1 << 16, 1 << 15
# multiplications that are worth a call, of a matrix of so many elements: of fewer, programs ask
# NumPy's loop
_LEAST, _ELEMENTS = 1 << 14, 1 << 11
FEW_ROWS = "avx2", "fma"  # what is needed of the processor
_ELEMENT = {"f": "f32", "d": "f64"}  # by NumPy's name
_NUMBER, _NUMBER_OF_STACK = 12, 16  # the word behind those of a task: how many there are


def are_few(
    rows: int, terms: int, columns: int, turned: bool, count: int = 1, *, byte: int = 4,
    swapped: bool = False,
) -> bool:  # fmt: skip
    """Whether so many rows are worth it. turned: whether the matrix is. count: of products. byte:
    of a number. swapped: whether it is the transpose of the result that is computed.
    """
    wide = host().vector_bytes > _VECTOR
    if turned:
        most = min(_MOST_TURNED_WIDE if wide else _MOST_TURNED, terms // _TERMS_OF_ROW)
        most = min(most, max(_FEWEST, terms // _TERMS_SWAPPED)) if swapped else most
        least = _LEAST_BYTES // byte if wide and rows > _MOST_WIDE else _LEAST_TERMS
        most = most if terms >= least else 0
    else:
        most = _MOST_WIDE if wide else _MOST_LONG if terms > _LONG * columns else _MOST
    enough = terms * columns >= _ELEMENTS and count * rows * terms * columns > _LEAST
    return 1 < rows <= most and columns >= rows and enough


def _wide(element: str) -> int:
    """Columns that a row meets together."""
    return _BESIDE * host().vector_bytes // typed(element).bytes


def few_rows_words(
    sizes: tuple[int, int, int], steps: _Pair, leading: int, out: _Pair, element: str,
    count: int = 1,
) -> tuple[tuple[int, ...], int]:  # fmt: skip
    """What a task reads behind the addresses, and how many there are. sizes: rows, columns, terms.
    steps: elements from row to row of the first operand, and from term to term. out: from row to
    row of the result, and from column to column, which lie side by side where those of the matrix
    do not. count: of products.
    """
    m, n, k = sizes
    several = host().cores if count < host().cores and m * n * k > WORTH_CUTTING else 1
    even = _wide(element)
    panel = -(-n // (several * even)) * even
    return (m, n, k, *steps, leading, *out, panel), count * -(-n // panel)


def code_of(
    sizes: tuple[int, int, int], element: str, turned: bool, *, stacked: bool = False
) -> Code:
    """The kernel for such sizes: rows, columns, terms. turned: whether the columns are what lies in
    memory.
    """
    m, n, k = sizes
    lanes = host().vector_bytes // typed(element).bytes
    if not turned:
        return element, turned, (), 1, n % _wide(element) == 0, stacked
    wide = host().vector_bytes > _VECTOR
    most = _SHARE_WIDE if wide and (m == _SHARE_WIDE or m > 5) else _SHARE
    fewer = -m % most  # groups of one less
    groups = tuple(g for g, rows in ((most, m - fewer * (most - 1)), (most - 1, fewer)) if rows)
    together = _TOGETHER_WIDE if wide and n % _TOGETHER_WIDE * _FEW_LEFT <= n else _TOGETHER
    even = together == _TOGETHER and not (n % _TOGETHER or k % lanes)
    return element, turned, groups, together, even, stacked


def print_few_rows(
    module: Module, name: str, element: str, turned: bool, groups: tuple[int, ...], together: int,
    even: bool, stacked: bool,
) -> None:  # fmt: skip
    """Add the kernel for a panel of columns. turned: whether the columns are what lies in memory;
    then the terms of the first operand lie so too. groups: how many rows at a time, the more first.
    together: how many columns. even: whether
    neither columns nor vectors are left over, which needs as much code as all else. Frame: both
    operands, the result; the words of `few_rows_words`; of a stack its panels and elements from one
    of either operand, and of the result, to the next.
    """
    f = module.function(name, [("frame", PTR), ("task", I64)])
    frame, task = f.arguments
    places = f.pointers(frame, 0, 3)
    m, n, k, down, along, leading, lower, beside, panel = f.words(frame, 3, 9)
    if stacked:
        panels, *apart = f.words(frame, 12, 4)
        number, task = f.div(task, panels), f.rem(task, panels)
        places = [f.at(p, number * step, element) for p, step in zip(places, apart)]
    x, y, out = places
    start = task * panel
    stop = f.min(start + panel, n)
    lanes = module.target.vector_bytes // typed(element).bytes
    if not turned:
        across = _Across(f, typed(element, lanes), places, (m, k), (down, along, leading, lower))
        across.panel(start, stop, even)
        f.ret()
        return

    sums = _Sums(f, element, lanes, even)

    def columns(count: int) -> Callable[[Value], None]:
        def some(j: Value) -> None:
            of_y = [f.at(y, (j + c) * leading, element) for c in range(count)]

            def body(i: Value, rows: int) -> None:
                of_x = [f.at(x, (i + r) * down, element) for r in range(rows)]
                found = sums.along(of_x, of_y, k)
                for (r, c), total in found.items():
                    f.store(total, f.at(out, (i + r) * lower + (j + c) * beside, element))

            most, fewest = groups[0], groups[-1]
            middle = m if most == fewest else m - f.rem(most - f.rem(m, most), most) * fewest
            each(f, 0, middle, lambda i: body(i, most), most)
            if most != fewest:
                each(f, middle, m, lambda i: body(i, fewest), fewest)

        return some

    middle = stop - f.rem(stop - start, together)
    each(f, start, middle, columns(together), together)
    if not even:
        each(f, middle, stop, columns(1))
    f.ret()


class _Sums:
    """Sums of products of rows and rows. even: whether vectors are whole."""

    def __init__(self, f: Emitter, element: str, lanes: int, even: bool) -> None:
        self.f, self.element, self.lanes, self.even = f, element, lanes, even

    def along(self, xs: list[Value], ys: list[Value], k: Value) -> dict[tuple[int, int], Value]:
        """Those of each x and each y."""
        f, lanes = self.f, self.lanes
        wide = typed(self.element, lanes)
        whole = k - f.rem(k, lanes)

        cells = [(r, c) for c in range(len(ys)) for r in range(len(xs))]

        def term(t: Value, held: list[Value], mask: Value | None = None) -> list[Value]:
            left, right = (
                [f.load(wide, f.at(p, t, self.element), mask) for p in given] for given in (xs, ys)
            )
            return [f.fma(left[r], right[c], s) for (r, c), s in zip(cells, held, strict=True)]

        begin = [f.constant(wide, 0)] * len(cells)
        held = f.loop(0, whole, lanes, term, begin, maybe_empty=True)
        if not self.even:
            rest = f.first_lanes(lanes, k - whole)
            held = f.branch(whole < k, lambda: term(whole, held, rest), lambda: held)
        return {at: f.reduce(s, f.add) for at, s in zip(cells, held, strict=True)}


class _Across:
    """Sums for rows of a matrix that lie in memory, some of its columns at a time. places: of both
    operands and the result. sizes: rows, terms. steps: elements from row to row of the first
    operand, from term to term, and from row to row of the matrix and of the result.
    """

    def __init__(
        self, f: Emitter, wide: Type, places: list[Value], sizes: tuple[Value, Value],
        steps: tuple[Value, Value, Value, Value],
    ) -> None:  # fmt: skip
        self.f, self.wide = f, wide
        self.x, self.y, self.out = places
        self.m, self.k = sizes
        self.down, self.along, self.leading, self.lower = steps
        longer = f.module.target.vector_bytes > _VECTOR
        self.terms, self.most = (_TERMS_WIDE, _SUMS_WIDE) if longer else (_TERMS, _SUMS)
        self.sums = f.allocate(wide, self.most // (wide.lanes * wide.bytes))
        self.numbers = f.allocate(wide.scalar, _MOST * self.terms)  # of the rows, for some terms

    def at(self, place: Value, index: Index) -> Value:
        """The address of an element."""
        return self.f.at(place, index, self.wide.element)

    def panel(self, start: Value, stop: Value, even: bool) -> None:
        """Those for these columns. even: whether they are whole vectors, side by side."""
        f, unit = self.f, _BESIDE * self.wide.lanes
        most = f.div(f.constant(I64, self.most // (unit * self.wide.bytes)), self.m) * unit

        def strip(first: Value) -> None:
            count = f.min(stop - first, most)
            whole = count - f.rem(count, unit)

            def each_place(body: Callable[[Value, int, Value | None], None]) -> None:
                """For each first column how many vectors there are, and which lanes of them."""
                each(f, 0, whole, lambda j: body(j, _BESIDE, None), unit)
                if not even:
                    lanes = self.wide.lanes
                    each(f, whole, count, lambda j: body(j, 1, f.first_lanes(lanes, count - j)),
                         lanes)  # fmt: skip

            each_place(self.clear)
            terms = self.terms
            done = self.k - f.rem(self.k, terms)
            each(f, 0, done, lambda t: self.add(t, terms, first, each_place), terms)
            each(f, done, self.k, lambda t: self.add(t, 1, first, each_place))
            each_place(functools.partial(self.give, first))

        each(f, start, stop, strip, most)

    def each_row(self, j: Value, vectors: int, body: Callable[[Value, list[Value]], None]) -> None:
        """For each row the places of its sums."""
        lanes = self.wide.lanes

        def row(i: Value) -> None:
            place = self.at(self.sums, j * self.m + i * (vectors * lanes))
            body(i, [self.at(place, v * lanes) for v in range(vectors)])

        each(self.f, 0, self.m, row)

    def clear(self, j: Value, vectors: int, _: Value | None) -> None:
        """Begin sums."""

        def row(_: Value, sums: list[Value]) -> None:
            for place in sums:
                self.f.store(self.f.constant(self.wide, 0), place)

        self.each_row(j, vectors, row)

    def add(self, t: Value, terms: int, first: Value, each_place: Callable[..., None]) -> None:
        """So many terms, from that one on."""
        f, wide = self.f, self.wide

        def numbers(i: Value) -> None:
            for s in range(terms):
                x = f.load(wide.scalar, self.at(self.x, i * self.down + (t + s) * self.along))
                f.store(x, self.at(self.numbers, i * terms + s))

        each(f, 0, self.m, numbers)
        rows = [self.at(self.y, (t + s) * self.leading + first) for s in range(terms)]

        def some(j: Value, vectors: int, mask: Value | None) -> None:
            starts = [self.at(row, j) for row in rows]
            y = [[f.load(wide, self.at(p, v * wide.lanes), mask) for v in range(vectors)]
                 for p in starts]  # fmt: skip

            def row(i: Value, sums: list[Value]) -> None:
                held = [f.load(wide, place) for place in sums]
                for s, of_term in enumerate(y):
                    x = f.splat(f.load(wide.scalar, self.at(self.numbers, i * terms + s)),
                                wide.lanes)  # fmt: skip
                    held = [f.fma(x, v, total) for v, total in zip(of_term, held, strict=True)]
                for total, place in zip(held, sums, strict=True):
                    f.store(total, place)

            self.each_row(j, vectors, row)

        each_place(some)

    def give(self, first: Value, j: Value, vectors: int, mask: Value | None) -> None:
        """What the sums are, to the result."""

        def row(i: Value, sums: list[Value]) -> None:
            out = self.at(self.out, i * self.lower + first + j)
            for v, place in enumerate(sums):
                to = self.at(out, v * self.wide.lanes)
                self.f.store(self.f.load(self.wide, place), to, mask)

        self.each_row(j, vectors, row)


def _plan(
    x: tuple[int, ...], y: tuple[int, ...], x_strides: tuple[int, ...], y_strides: tuple[int, ...],
    char: str,
) -> Callable[..., Any] | None:  # fmt: skip
    """x @ y of matrices of one dtype, or of stacks of them, of which the first has few rows, or the
    second few columns and the first its rows in memory. None where it is not worth it, or elements
    of a matrix do not lie so.
    """
    *stack, m, k = x
    *other, terms, n = y
    if max(len(x), len(y)) > 3 or k != terms or 0 in (*x, *y):
        return None
    count = max([1, *stack, *other])
    if not {*stack, *other} <= {1, count}:
        return None
    apart = [s[0] if len(of) == 3 and of[0] > 1 else 0
             for of, s in ((x, x_strides), (y, y_strides))]  # fmt: skip
    shape = (*([count] if stack or other else []), m, n)
    x_strides, y_strides = x_strides[-2:], y_strides[-2:]
    element = _ELEMENT[char]
    byte = typed(element).bytes
    swapped = m > n
    if swapped and _are_tiles_quicker(
        (m, n, k), element, laid(x_strides, m, k, byte), laid(y_strides, k, n, byte), count,
        1 if other else 1 / count,
    ):  # fmt: skip
        return None
    if swapped:
        m, n, y_strides, x_strides = n, m, x_strides[::-1], (byte * k, byte)
        apart = [m * k * byte if apart[1] else 0, apart[0]]
    matrix: Laid | None = laid(y_strides, k, n, byte)
    down, along = x_strides
    if matrix is None or not are_few(m, k, n, matrix.turned, count, byte=byte, swapped=swapped):
        return None
    if any(step % byte for step in (down, along, *apart)):
        return None
    if along != byte if matrix.turned else swapped:
        return None
    result = (1, m) if swapped else (n, 1)
    steps = down // byte, along // byte
    words, tasks = few_rows_words((m, n, k), steps, matrix.leading, result, element, count)
    if count > 1:
        words = (*words, tasks // count, *[step // byte for step in apart], m * n)
    code = _address(code_of((m, n, k), element, matrix.turned, stacked=count > 1))
    most = max(math.prod(x), math.prod(y), math.prod(shape))
    multiply = making(code, shape, np.dtype(char), [*words, tasks], most)
    if not swapped:
        return multiply
    return lambda x, y: multiply(np.ascontiguousarray(y.swapaxes(-1, -2)), x)


def _are_tiles_quicker(
    sizes: tuple[int, int, int], element: str, a: Laid | None, b: Laid | None, count: int,
    turnings: float,
) -> bool:  # fmt: skip
    """Whether few columns are read where they lie in less time than they are turned in and met
    along the terms. sizes: rows, columns, terms. turnings: of right operands, for each product.
    """
    if a is None or b is None or a.turned or b.turned:
        return False
    m, n, _ = sizes
    lanes = host().vector_bytes // typed(element).bytes
    along = (_ALONG * m / lanes + _TURNING * turnings) * n
    several = count > 1
    return cost(sizes, element, a, b) < along and is_worth(sizes, element, a, b, several=several)


large_matmul = table.Planned(_plan)


@functools.cache
def _address(code: Code) -> int:
    return printed(_text, *code, host()).keep().address("multiply")


def _text(
    element: str, turned: bool, groups: tuple[int, ...], together: int, even: bool, stacked: bool,
    target: Host,
) -> str:  # fmt: skip
    """`multiply(job)`: all tasks."""
    module = Module(target)
    module.declare("@funct_parallel", PARALLEL)
    print_few_rows(module, "task", element, turned, groups, together, even, stacked)
    f = module.function("multiply", [("job", PTR)])
    (job,) = f.arguments
    tasks = f.word(job, _NUMBER_OF_STACK if stacked else _NUMBER)
    f.line(f"call void @funct_parallel(ptr @task, {job!r}, {tasks!r})")
    f.ret()
    return module.text()
