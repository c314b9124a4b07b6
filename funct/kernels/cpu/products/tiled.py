"""Products of matrices as tasks of tiles (`gemm.py`): which are worth it, how they are cut.

BLAS lays out both operands, and some writes zeros first, which are added to. Here operands of few
rows and columns are read where they lie, and others are laid out by each task for its own rows and
columns. So a product is cut into tasks by columns or, where the left one is transposed and each
task lays out the other, by rows. What tiles would fill badly, and what is small, is BLAS's; all is
where vectors are of 32 bytes: tiles of six rows read each panel twice as often, and a step of
training takes up to a fifth longer by them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from msgspec import Struct

from funct.device import host
from funct.kernels.cpu.dense.dots import DOTS, supported
from funct.kernels.cpu.products.blas import WORTH_CUTTING
from funct.kernels.cpu.products.gemm import (
    ARGUMENTS,
    TURNED,
    Cut,
    cut,
    driver_name,
    turned_together,
)
from funct.kernels.cpu.products.gemm_tile import ACROSS, AHEAD, STRAIGHT, Tile, parts_of
from funct.kernels.llvm import I64, PTR, Emitter, Module, Value

__all__ = [
    "LEAST", "Laid", "Tasks", "as_vectors", "cost", "each_product", "find_products", "follows",
    "is_worth", "laid", "print_tasks", "tasks_of",
]  # fmt: skip

LEAST = 1 << 15  # multiplications that are worth it
_LEAST_ROWS = 4  # which share a panel
_LEAST_TERMS = 8  # which are turned around together
_LEAST_BLOCK = 24  # rows of a task
_MOST_TERMS = 1 << 13  # so that two panels have room in the cache,
# but where BLAS would lay out an element for each so many multiplications, or for fewer rows and
# columns than these, which tiles read as they lie: pixels whose channels are last
_LAID_OUT, _IN_PLACE = 32, 512
# elements that tiles may make for each of the result: of a single product of so many terms, which
# BLAS lays out, of others, and of few multiplications of those, for which BLAS has kernels of its
# own that are slow by a right operand that is transposed alone
_MOST_MADE_LONG, _MOST_MADE, _MOST_MADE_SMALL, _SMALL = 2, 1.6, 1.12, 1_000_000
_LONG = 48
_ALONE = 1.3  # times as long as beside others a vector takes: there is a load for each product
# multiplications of each of several, by a transpose, or by what lies as it is
_LEAST_OF_STACK, _LEAST_STRAIGHT = 1 << 14, 1 << 18
# the same of complex numbers, for which BLAS has no kernels that are as fast
_LEAST_COMPLEX, _LEAST_ROWS_COMPLEX, _MOST_MADE_COMPLEX = 1 << 11, 2, 4
_VECTOR = 64  # bytes
_EVEN = 0.9  # of what tasks of one width would compute, if they compute it at all
_WIDE = 128  # columns or rows of a task of which a core gets two
_MANY = 1024  # rows for which tasks lay out columns of their own, not all of them
_TASKS = 4  # for a core, of a stack
# panels of columns that a left operand meets as it comes, if it has more bytes than stay in caches
_FEW_PANELS, _HELD = 3, 1 << 20
_PAGE = 4096
_ASKED = 0.7  # what a vector of those then takes, of the usual time


class Laid(Struct, frozen=True):
    """How an operand lies: whether its columns are what lies in memory, and elements from row to
    row or, turned, from column to column.
    """

    turned: bool
    leading: int


def laid(strides: tuple[int, ...], rows: int, columns: int, byte: int) -> Laid | None:
    """How a matrix lies; None where neither its rows nor its columns are dense."""
    down, along = strides
    if along == byte or columns == 1:
        if rows == 1:
            return Laid(False, columns)
        if down >= columns * byte and not down % byte:
            return Laid(False, down // byte)
    if (down == byte or rows == 1) and along >= rows * byte and not along % byte:
        return Laid(True, along // byte)
    return None


def follows(shape: tuple[int, ...], strides: tuple[int, ...], byte: int) -> bool:
    """Whether elements follow each other."""
    steps = [byte * math.prod(shape[k + 1 :]) for k in range(len(shape))]
    return all(n == 1 or s == step for n, s, step in zip(shape, strides, steps, strict=True))


def as_vectors(
    x: tuple[int, ...], y: tuple[int, ...], x_strides: tuple[int, ...], y_strides: tuple[int, ...]
) -> tuple[tuple[int, ...], ...]:
    """Shapes and strides of two operands, where a matrix that is one row, or the second one that is
    one column, is a vector.
    """
    if len(x) == len(y) == 2:
        if x[0] == 1:
            return x[1:], y, x_strides[1:], y_strides
        if y[1] == 1:
            return x, y[:1], x_strides, y_strides[:1]
    return x, y, x_strides, y_strides


def is_worth(
    sizes: tuple[int, int, int], element: str, a: Laid, b: Laid, *, several: bool = False
) -> bool:
    """Whether a product, or one of several, is worth it; see the module. sizes: rows, columns,
    terms.
    """
    m, n, k = sizes
    real, parts = parts_of(element)
    if host().vector_bytes < _VECTOR or not supported(DOTS[real.element], host()):
        return False
    lanes = host().vector_bytes // (real.bytes * parts)
    fewest, least, terms = _LEAST_ROWS, LEAST, _LEAST_TERMS
    if parts > 1:
        terms = turned_together(element) if b.turned else 1
        fewest, least = _LEAST_ROWS if b.turned else _LEAST_ROWS_COMPLEX, _LEAST_COMPLEX
    elif several:
        least = _LEAST_OF_STACK if b.turned else _LEAST_STRAIGHT
    if m * n * k <= least or m < fewest or k < terms:
        return False
    few = m * n <= _LAID_OUT * (m + n) or max(m, n) < _IN_PLACE
    as_they_lie = a.turned and not b.turned and few
    if k > _MOST_TERMS and not as_they_lie:
        return False
    rows, vectors = _made(sizes, element, a, b)
    filled = rows * vectors * lanes
    if parts > 1:
        return n > 1 and filled <= _MOST_MADE_COMPLEX * m * n
    if k >= _LONG and not several:
        return filled <= _MOST_MADE_LONG * m * n
    small = m * n * k <= _SMALL and (a.turned or not b.turned)
    return filled <= (_MOST_MADE_SMALL if small else _MOST_MADE) * m * n


def _made(sizes: tuple[int, int, int], element: str, a: Laid, b: Laid) -> tuple[int, int]:
    """Rows that tiles make, some of them again, and vectors of each."""
    m, n, _ = sizes
    real, parts = parts_of(element)
    lanes = host().vector_bytes // (real.bytes * parts)
    rows = _cut(sizes, element, a, b).rows
    return -(-m // rows) * rows, -(-n // lanes)


def _cut(sizes: tuple[int, int, int], element: str, a: Laid, b: Laid) -> Cut:
    return cut(sizes, element, a.leading, b.leading, host(), turned=a.turned, b_turned=b.turned)


def _comes_once(sizes: tuple[int, int, int], element: str, each: Cut) -> bool:
    """Whether a straight left operand is too large for the caches, and met by a few panels."""
    (m, n, k), (real, parts) = sizes, parts_of(element)
    byte = real.bytes * parts
    few = n * byte <= _FEW_PANELS * each.vectors[0] * host().vector_bytes
    return few and m * k * byte > _HELD


def cost(sizes: tuple[int, int, int], element: str, a: Laid, b: Laid) -> float:
    """Multiplications of vectors for each term, of floats of which no operand is turned, in units
    of the time that one takes in a tile of several vectors. One whose left operand comes from afar
    is cheap beside what `few_rows.py` takes then: it asks for what comes next, but where rows a
    page apart drive each other out.
    """
    rows, vectors = _made(sizes, element, a, b)
    asks = _comes_once(sizes, element, _cut(sizes, element, a, b))
    cheap = asks and a.leading * parts_of(element)[0].bytes % _PAGE
    return rows * (vectors if vectors > 1 else _ALONE) * (_ASKED if cheap else 1)


class _Split(Struct, frozen=True):
    """How many blocks of rows there are, and of how many columns a task is."""

    row_blocks: int
    columns: int


class Tasks(Struct, frozen=True):
    """Products that are split into tasks. count: how many, of which a task computes `group`. sizes:
    rows, columns, terms. narrow: whether some columns are left to the narrow tile.
    """

    sizes: tuple[int, int, int]
    element: str
    a: Laid
    b: Laid
    count: int
    split: _Split
    each: Cut
    narrow: bool

    @property
    def column_blocks(self) -> int:
        """Blocks of columns of a product."""
        return -(-self.sizes[1] // self.split.columns)

    @property
    def group(self) -> int:
        """Products of a task."""
        return -(-self.count // (_TASKS * host().cores))

    @property
    def number(self) -> int:
        """How many tasks there are: blocks of one product, or some of several."""
        if self.count > 1:
            return -(-self.count // self.group)
        return self.split.row_blocks * self.column_blocks

    @property
    def room(self) -> int:
        """Elements that all tasks take to lay out operands."""
        return self.each.scratch * self.number

    @property
    def kind(self) -> tuple[int, str, int, int]:
        """What `print_tasks` is to be told of them."""
        wide, narrow = self.each.vectors
        return self.each.rows, self._way, wide, narrow if self.narrow else wide

    @property
    def _way(self) -> str:
        """That of the tiles, see Note [Asking ahead] in `gemm_tile.py`."""
        if self.a.turned:
            return ACROSS
        return AHEAD if _comes_once(self.sizes, self.element, self.each) else STRAIGHT

    def tiles(self) -> list[Tile]:
        """The tiles that they call."""
        rows, way, *vectors = self.kind
        return [Tile(self.element, rows, v, way) for v in dict.fromkeys(vectors)]

    def words(self) -> list[int]:
        """What a task reads behind the addresses: rows, columns, terms; how the operands lie; rows,
        columns and terms that are taken at a time, and of a sum; a task's room; blocks of rows,
        columns of a block, blocks of columns; products, and how many are a task.
        """
        (m, n, k), each = self.sizes, self.each
        return [
            m, n, k, self.a.leading, self.b.leading, each.a_way, each.b_way, each.rows_at_once,
            each.columns_at_once, each.terms_at_once, each.terms, each.scratch,
            self.split.row_blocks, self.split.columns, self.column_blocks, self.count, self.group,
        ]  # fmt: skip


def tasks_of(sizes: tuple[int, int, int], element: str, a: Laid, b: Laid, count: int = 1) -> Tasks:
    """The tasks of a product, or of so many."""
    m, n, k = sizes
    real, parts = parts_of(element)
    lanes = host().vector_bytes // (real.bytes * parts)
    rows_first = a.turned and m >= n  # each task lays out the whole of the other operand
    whole = _Split(1, n)
    alone = count > 1 or m * n * k * parts**2 <= WORTH_CUTTING
    split = whole if alone else _split(m, n, lanes, by_rows=rows_first, once=a.turned)
    task = (m // split.row_blocks, split.columns, k)
    each = _cut(task, element, a, b)
    wide = each.vectors[0]
    narrow = any(-(-c // lanes) % wide for c in (split.columns, n % split.columns))
    return Tasks(sizes, element, a, b, count, split, each, narrow)


def _split(m: int, n: int, lanes: int, *, by_rows: bool, once: bool) -> _Split:
    """About as many tasks as there are cores, or twice as many if they are large.

    once: whether each task lays out the whole of the left operand.
    """
    cores = host().cores
    parts = 2 * cores if max(m, n) >= 2 * cores * _WIDE and not once else cores
    if by_rows and m >= parts * _LEAST_BLOCK:
        return _Split(parts, n)
    unit = lanes if m >= _MANY and n >= parts * _WIDE else 3 * lanes
    ways = [(unit, parts), (3 * lanes, cores), (lanes, cores)]
    columns = [unit * -(-n // (unit * many)) for unit, many in ways]
    even = [n >= _EVEN * c * many for c, (_, many) in zip(columns, ways, strict=True)]
    if not even[0] and m >= parts * (_WIDE if any(even) else _LEAST_BLOCK):
        return _Split(parts, n)
    return _Split(1, columns[even.index(True) if any(even) else -1])


def print_tasks(
    module: Module, name: str, element: str, depth: int, rows: int, way: str, *vectors: int
) -> None:
    """Add the kernel for one task: a block of a product, or some products of a stack of so many
    axes. vectors: of the wide tile and of the narrow one. Frame: addresses of both operands, of the
    result and of room; `Tasks.words`; of each axis of the stack how many products are below it, its
    length, and elements from one to the next of both operands.
    """
    f = module.function(name, [("frame", PTR), ("task", I64)])
    frame, task = f.arguments
    a, b, c, room = f.pointers(frame, 0, 4)
    (m, n, k, a_row, b_row, a_way, b_way, rows_at_once, columns_at_once, terms_at_once, terms,
     scratch, row_blocks, columns, column_blocks, count, group) = f.words(frame, 4, 17)  # fmt: skip
    tiles = [Tile(element, rows, v, way).name for v in vectors]
    real, parts = parts_of(element)
    lanes = module.target.vector_bytes // (real.bytes * parts)

    def at(place: Value, index: Value) -> Value:
        return f.at(place, index * parts, real.element)

    panel, edge = (f.constant(I64, v * lanes) for v in vectors)
    for tile in tiles:
        module.declare(f"@{tile}", f"declare void @{tile}()")
    fixed = {
        "scratch": at(room, task * scratch),
        "wide": f.address(tiles[0]), "narrow": f.address(tiles[1]),
        "k": k, "a_row": a_row, "a_way": a_way, "b_row": b_row,
        "b_way": b_way, "c_row": n, "rows": f.constant(I64, rows), "panel": panel, "edge": edge,
        "rows_at_once": rows_at_once, "columns_at_once": columns_at_once,
        "terms_at_once": terms_at_once, "terms": terms,
    }  # fmt: skip

    def product(a: Value, b: Value, c: Value, m: Value, n: Value) -> None:
        given = fixed | {"a": a, "b": b, "c": c, "m": m, "n": n}
        f.call(driver_name(element), None, [given[name] for name in ARGUMENTS])

    if depth:
        axes = [f.words(frame, 21 + 4 * d, 4) for d in range(depth)]

        def one(number: Value, _: list[Value]) -> list[Value]:
            steps = [(below, length, *[s * parts for s in apart]) for below, length, *apart in axes]
            x, y = find_products(f, number, steps, (a, b), real.element)
            product(x, y, at(c, number * m * n), m, n)
            return []

        f.loop(task * group, f.min((task + 1) * group, count), 1, one)
    else:
        block = f.div(task, column_blocks)
        first, last = (f.div(i * m, row_blocks) for i in (block, block + 1))
        column = f.rem(task, column_blocks) * columns
        product(
            at(a, first if way == ACROSS else first * a_row),
            at(b, f.select(f.eq(b_way, TURNED), column * b_row, column)),
            at(c, first * n + column),
            last - first,
            f.min(columns, n - column),
        )
    f.ret()


def find_products(
    f: Emitter, number: Value, axes: Sequence[Sequence[Value]], places: tuple[Value, Value],
    element: str,
) -> tuple[Value, Value]:  # fmt: skip
    """Both operands of a product of a stack. axes: for each how many products are below it, its
    length, and elements from one to the next of both.
    """
    a, b = places
    for below, length, step_a, step_b in axes:
        index = f.rem(f.div(number, below), length)
        a, b = f.at(a, index * step_a, element), f.at(b, index * step_b, element)
    return a, b


def each_product(f: Emitter, words: tuple[Value, Value], body: Callable[[Value], None]) -> None:
    """The products of this task. words: how many there are, and how many are a task."""
    count, group = words
    first = f.arguments[1] * group

    def one(number: Value, _: list[Value]) -> list[Value]:
        body(number)
        return []

    f.loop(first, f.intrinsic("smin", first + group, count), 1, one)
    f.ret()
