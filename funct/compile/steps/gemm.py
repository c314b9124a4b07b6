"""Products of matrices inside of a program in tiles of our own (`funct.kernels.cpu.dense.gemm`).

BLAS lays out both operands, and some writes zeros first, which are added to. Here the left one is
read where it lies, and each task lays out its own columns of the right one. So a product is cut
into tasks by columns or, where the left one is transposed and has to be laid out too, by rows. What
tiles would fill badly, and what is small, is BLAS's; all is where vectors are of 32 bytes: tiles of
six rows read each panel twice as often, and a step of training takes up to a fifth longer by them.
"""

from __future__ import annotations

import math

import numpy as np
from msgspec import Struct

from funct.compile.fusion.calls import Address, Buffer, Call, Word
from funct.compile.loops.scalars import ELEMENTS
from funct.compile.steps.blas import Matrix
from funct.compile.steps.stacks import find_products, stack_words
from funct.device import host
from funct.graph import Var
from funct.kernels.cpu.dense.dots import DOTS, supported
from funct.kernels.cpu.dense.gemm import ARGUMENTS, Cut, Tile, cut, driver_name, foretell
from funct.kernels.llvm import I64, PTR, Module, Value

__all__ = ["gemm", "is_tiled", "print_gemm", "tiles_of"]

_LEAST_ROWS = 4  # which share a panel
_LEAST_TERMS = 8  # which are turned around together
_LEAST_BLOCK = 24  # rows of a task
_MOST_TERMS = 1 << 13  # so that two panels have room in the cache
# multiplications that are worth it, and how many times as many tiles may do; BLAS does transposes
# worse, and small ones worst
_LEAST, _LEAST_TURNED, _LEAST_OF_STACK = (3 << 19, 1.12), (1 << 18, 1.4), 1 << 14
_VECTOR = 64  # bytes
_EVEN = 0.9  # of what tasks of one width would compute, if they compute it at all
_WIDE = 128  # columns or rows of a task of which a core gets two
_TASKS = 4  # for a core, of a stack


class _Split(Struct, frozen=True):
    """How many blocks of rows there are, and of how many columns a task is."""

    row_blocks: int
    columns: int


def is_tiled(a: Matrix, b: Matrix, out: Var, sizes: tuple[int, int, int]) -> bool:
    """Whether a product is worth it; see the module."""
    m, n, k = sizes
    element = ELEMENTS[out.dtype]
    if host().vector_bytes < _VECTOR or not supported(DOTS[element], host()):
        return False
    lanes = host().vector_bytes // out.dtype.itemsize
    least, most = _LEAST_TURNED if b.transposed else _LEAST
    if b.transposed and math.prod(out.shape[:-2]) > 1:
        least = _LEAST_OF_STACK
    if m * n * k <= least or m < _LEAST_ROWS or not _LEAST_TERMS <= k <= _MOST_TERMS:
        return False
    rows = cut(sizes, element, a.leading, host(), turned=a.transposed).rows
    filled = -(-m // rows) * rows * -(-n // lanes) * lanes
    return filled <= most * m * n


class _Tasks(Struct, frozen=True):
    """How a product is split into tasks, how each is cut, and what it takes tiles for."""

    split: _Split
    each: Cut
    narrow: bool  # whether the last columns are a tile of one vector
    tiles: list[Tile]


def _tasks(a: Matrix, out: Var, count: int, sizes: tuple[int, int, int]) -> _Tasks:
    (m, n, k), element = sizes, ELEMENTS[out.dtype]
    lanes = host().vector_bytes // out.dtype.itemsize
    rows_first = a.transposed and m >= n  # each task lays out the whole of the other operand
    whole = _Split(1, n)
    split = whole if count > 1 else _split(m, n, lanes, by_rows=rows_first, once=a.transposed)
    task = (m // split.row_blocks, split.columns, k)
    even = m % split.row_blocks == 0
    each = cut(task, element, a.leading, host(), turned=a.transposed, even=even)
    narrow = any(0 < c % (2 * lanes) <= lanes for c in (split.columns, n % split.columns))
    tiles = [Tile(element, each.rows, v, a.transposed) for v in ((2, 1) if narrow else (2,))]
    return _Tasks(split, each, narrow, tiles)


def tiles_of(a: Matrix, out: Var, count: int, sizes: tuple[int, int, int]) -> list[Tile]:
    """The tiles of a product, or of so many: whose code may be begun before there is a call."""
    return _tasks(a, out, count, sizes).tiles


def gemm(
    a: Matrix, b: Matrix, out: Var, stack: tuple[int, ...], sizes: tuple[int, int, int]
) -> Call:
    """The call. sizes: rows, columns, terms."""
    (m, n, k), byte, element = sizes, out.dtype.itemsize, ELEMENTS[out.dtype]
    count = math.prod(stack)
    made = _tasks(a, out, count, sizes)
    split, each, narrow = made.split, made.each, made.narrow
    column_blocks = -(-n // split.columns)
    group = -(-count // (_TASKS * host().cores))
    tasks = -(-count // group) if stack else split.row_blocks * column_blocks
    room = Buffer(each.scratch * tasks, np.dtype(out.dtype))
    words: list[Word] = [
        Address(a.view.root, a.view.offset * byte), Address(b.view.root, b.view.offset * byte),
        Address(out), Address(room), m, n, k, a.leading, b.leading, int(b.transposed),
        each.rows_at_once, each.columns_at_once, each.terms_at_once, each.scratch,
        split.row_blocks, split.columns, column_blocks, count, group, *stack_words(stack, a, b),
    ]  # fmt: skip
    foretell(made.tiles)
    kernel = ("gemm", element, len(stack), each.rows, a.transposed, narrow)
    return Call(kernel, tuple(words), tasks, (out, room))


def _split(m: int, n: int, lanes: int, *, by_rows: bool, once: bool) -> _Split:
    """About as many tasks as there are cores, or twice as many if they are large.

    once: whether each task lays out the whole of the left operand.
    """
    cores = host().cores
    parts = 2 * cores if max(m, n) >= 2 * cores * _WIDE and not once else cores
    if by_rows and m >= parts * _LEAST_BLOCK:
        return _Split(parts, n)
    ways = [(2 * lanes, parts), (2 * lanes, cores), (lanes, cores)]
    columns = [unit * -(-n // (unit * many)) for unit, many in ways]
    even = [n >= _EVEN * c * many for c, (_, many) in zip(columns, ways, strict=True)]
    if not even[0] and m >= parts * (_WIDE if any(even) else _LEAST_BLOCK):
        return _Split(parts, n)
    return _Split(1, columns[even.index(True) if any(even) else -1])


def print_gemm(
    module: Module, name: str, element: str, depth: int, rows: int, turned: bool, narrow: bool
) -> None:
    """Add the kernel for one task: a block of a product, or some products of a stack. narrow:
    whether there are panels of one vector. Frame: both operands, result, room to lay them out;
    rows, columns, terms; leading dimensions, whether the second operand is transposed; rows,
    columns and terms that are laid out at a time, elements of a task's room; blocks of rows,
    columns of a block, blocks of columns; products, and how many are a task; the stack's axes.
    """
    f = module.function(name, [("frame", PTR), ("task", I64)])
    frame, task = f.arguments
    a, b, c, room = f.pointers(frame, 0, 4)
    (m, n, k, a_row, b_row, b_turned, rows_at_once, columns_at_once, terms_at_once, scratch,
     row_blocks, columns, column_blocks, count, group) = f.words(frame, 4, 15)  # fmt: skip
    tiles = [Tile(element, rows, v, turned).name for v in (2, 1 if narrow else 2)]
    for tile in tiles:
        module.declare(f"@{tile}", f"declare void @{tile}()")
    fixed = {
        "scratch": f.at(room, task * scratch, element),
        "wide": f.address(tiles[0]), "narrow": f.address(tiles[1]),
        "k": k, "a_row": a_row, "a_turned": f.constant(I64, turned), "b_row": b_row,
        "b_turned": b_turned, "c_row": n, "rows": f.constant(I64, rows),
        "rows_at_once": rows_at_once, "columns_at_once": columns_at_once,
        "terms_at_once": terms_at_once,
    }  # fmt: skip

    def product(a: Value, b: Value, c: Value, m: Value, n: Value) -> None:
        given = fixed | {"a": a, "b": b, "c": c, "m": m, "n": n}
        f.call(driver_name(element), None, [given[name] for name in ARGUMENTS])

    if depth:
        axes = [f.words(frame, 19 + 4 * d, 4) for d in range(depth)]

        def one(number: Value, _: list[Value]) -> list[Value]:
            x, y = find_products(f, number, axes, (a, b), element)
            product(x, y, f.at(c, number * m * n, element), m, n)
            return []

        f.loop(task * group, f.min((task + 1) * group, count), 1, one)
    else:
        block = f.div(task, column_blocks)
        first, last = (f.div(i * m, row_blocks) for i in (block, block + 1))
        column = f.rem(task, column_blocks) * columns
        product(
            f.at(a, first if turned else first * a_row, element),
            f.at(b, f.select(f.ne(b_turned, 0), column * b_row, column), element),
            f.at(c, first * n + column, element),
            last - first,
            f.min(columns, n - column),
        )
    f.ret()
