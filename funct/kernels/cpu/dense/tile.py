"""The micro-kernel: a few rows times a few vectors of sums, held in registers.

    C[m, v] = (C[m, v] or 0) + Σ_tap Σ_k dot(A[row m + tap + k], B[tap + k step + v])

A is read where it lies: the offsets of its rows and of the taps come from tables, so a row may be a
row of a matrix or a pixel of an image with its channels, and a tap a block of columns or a tap of
a convolution. Where C's rows lie comes from a table too.

Note [Size of a tile]
    The accumulators, a row of B and one word of A must fit into the registers: 6 × 2 of 16 with
    AVX2, 14 × 2 of 32 with AVX-512. Where products are no part of their sums' instruction they need
    registers too. Two vectors a row make enough independent sums for two units
    of latency 4, and one load of A serves two of them. Of one vector, as in groups of few outputs,
    as many rows are taken as have pointers in registers: six sums leave the units idle. Rows that
    lie evenly, as words beside each other do, and pixels of one line of an image, need one pointer
    for all of them.

Note [Steps of a turn]
    A turn of the loop is one k. Its own two instructions are few beside 12 products with AVX2 or 28
    with AVX-512, and LLVM takes half of the time. Where it sees several k of 28 at a time, it loads
    later rows of B early and keeps sums on the stack instead, which takes twice the time.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterable, Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from funct.device import Code, Host, host, printed, printed_all
from funct.kernels.cpu.dense.dots import DOTS, Dot
from funct.kernels.llvm import I64, PTR, Emitter, Module, Value, typed

__all__ = ["Shape", "address", "call_tiles", "even_table", "most_rows", "text", "tile_table"]

_POINTERS = {16: 10, 32: 11}  # of rows of one vector, in general registers: by those of vectors
_LATER = 24  # steps of k that rows beside each other are asked for before
_PIECES = 4  # of a table: as many pieces of code are made side by side

_lock = threading.Lock()
_tables: dict[tuple[str, int, bool, bool, bool, bool], NDArray[np.int64]] = {}
_evens: dict[tuple[str, int, int], NDArray[np.int64]] = {}


class Shape(Struct, frozen=True):
    """What a tile is printed for.

    width: bytes of a vector. rows, vectors: of sums. packed: rows of B follow each other. lays:
    rows of B are also stored packed, at `panel`. ahead: each k brings as many lines of what is read
    next into the caches, at `ahead`; the next k those so many words further. across: the rows of A
    are adjacent words, from where the first one begins, and each k is so many words further. apart:
    so many words lie between rows of A that follow each other evenly from where the first one
    begins; 0 if each has a place of its own.
    """

    dot: Dot
    width: int
    rows: int
    vectors: int
    packed: bool = True
    lays: bool = False
    ahead: bool = False
    across: bool = False
    apart: int = 0

    @property
    def lanes(self) -> int:
        """Words of one vector."""
        return self.width // typed(self.dot.word).bytes

    @property
    def columns(self) -> int:
        """Sums of one row."""
        return self.lanes * self.vectors

    @property
    def name(self) -> str:
        """A name for the function."""
        packed = "packed" if self.packed else "strided"
        more = "_lays" * self.lays + "_ahead" * self.ahead + "_across" * self.across
        more += f"_by_{self.apart}" * (self.apart > 0)
        return f"tile_{self.dot.name}_{self.rows}x{self.columns}_{packed}{more}"


def most_rows(dot: Dot, width: int, vectors: int = 2, even: bool = False) -> int:
    """Rows of the largest tile; see Note [Size of a tile]. even: whether they lie so."""
    registers = 32 if width == 64 else 16
    most = (registers - vectors - 1 - dot.beside) // vectors
    return most if even or vectors > 1 else min(most, _POINTERS[registers])


def text(shape: Shape, target: Host) -> str:
    """The LLVM text of one tile.

    Its function takes A, rows: pairs of i64 (offset in A, offset in C), taps: pairs (offset in A,
    offset in B), the number of taps, B, the number of k, the step of B in words, C, and whether to
    add to C. Where B is packed, its step is the width of the tile, and offsets in it count rows.
    """
    return _together([shape], target)


def _together(shapes: Sequence[Shape], target: Host) -> str:
    """The LLVM text of several tiles."""
    module = Module(target)
    for shape in shapes:
        _print(module, shape)
    return module.text()


def _print(module: Module, shape: Shape) -> None:
    word, total = typed(shape.dot.word), typed(shape.dot.sum, shape.lanes)
    f = module.function(
        shape.name,
        [
            ("A", PTR), ("rows", PTR), ("taps", PTR), ("n_taps", I64), ("B", PTR), ("K", I64),
            ("step", I64), ("C", PTR), ("add", I64),
            *[("panel", PTR)] * shape.lays, *[("ahead", PTR), ("ahead_step", I64)] * shape.ahead,
            *[("across", I64)] * shape.across,
        ],
    )  # fmt: skip
    a, rows, taps, n_taps, b, k_count, step, c, add, *more = f.arguments
    across = more.pop() if shape.across else None
    steps: list[Value | int] = [shape.columns] * shape.lays
    if shape.ahead:
        steps.append(more.pop())
    if shape.packed:
        step = f.constant(I64, shape.columns)
    apart = 1 if shape.across else shape.apart
    begins = range(1 if apart else shape.rows)
    left = [f.at(a, f.load(I64, f.at(rows, 2 * m, "i64")), word.element) for m in begins]

    def place(m: int, v: int) -> Value:
        offset = f.load(I64, f.at(rows, 2 * m + 1, "i64"))
        return f.at(f.at(c, offset, total.element), v * shape.lanes, total.element)

    cells = [(m, v) for m in range(shape.rows) for v in range(shape.vectors)]

    def fresh() -> list[Value]:
        """What is written in the end comes from afar meanwhile."""
        for m, v in cells:
            f.prefetch(place(m, v), write=True)
        return [f.constant(total, 0) for _ in cells]

    begin = f.branch(f.ne(add, 0), lambda: [f.load(total, place(m, v)) for m, v in cells], fresh)

    def tap(r: Value, held: list[Value]) -> list[Value]:
        pair = f.at(taps, r << 1, "i64")
        from_a, from_b = f.load(I64, pair), f.load(I64, f.at(pair, 1, "i64"))
        here = [f.at(p, from_a, word.element) for p in left]
        first = f.at(b, from_b * step if shape.packed else from_b, word.element)

        def step_of(k: Value, held: list[Value]) -> list[Value]:
            right, sums, others = held[0], held[1 : 1 + len(cells)], held[1 + len(cells) :]
            panel = others[0] if shape.lays else None
            further = k if across is None else k * across
            words = [f.at(p, further, word.element) for p in here]
            if apart:
                words += [f.at(words[0], m * apart, word.element) for m in range(1, shape.rows)]
            if across is not None:
                f.prefetch(f.at(words[-1], across * _LATER, word.element))
            sums = _step(f, shape, words, right, sums, panel)
            if shape.ahead:
                for v in range(shape.vectors):
                    f.prefetch(f.at(others[-1], v * shape.lanes, word.element))
            others = [f.at(p, n, word.element) for p, n in zip(others, steps, strict=True)]
            return [f.at(right, step, word.element), *sums, *others]

        return f.loop(0, k_count, 1, step_of, [first, *held], maybe_empty=True)[1:]

    found = f.loop(0, n_taps, 1, tap, [*begin, *more], maybe_empty=True)
    for (m, v), s in zip(cells, found):
        f.store(s, place(m, v))
    f.ret()


def _step(
    f: Emitter, shape: Shape, left: list[Value], right: Value, sums: list[Value],
    panel: Value | None,
) -> list[Value]:  # fmt: skip
    """All products of one k. panel: where to store its row of B."""
    words = typed(shape.dot.word, shape.lanes)
    b = [f.load(words, f.at(right, v * shape.lanes, words.element)) for v in range(shape.vectors)]
    if panel is not None:
        for v, x in enumerate(b):
            f.store(x, f.at(panel, v * shape.lanes, words.element))
    out = []
    for m, p in enumerate(left):
        a = f.splat(f.load(words.scalar, p), shape.lanes)
        for v in range(shape.vectors):
            out.append(shape.dot.step(f, sums[m * shape.vectors + v], a, b[v]))
    return out


def call_tiles(
    f: Emitter, table: Value, most: Value, a: Value, rows: Value, start: Value, stop: Value,
    given: list[Value], ahead: Callable[[Value], list[Value]] | None = None,
) -> None:  # fmt: skip
    """Print calls of tiles for the rows start … stop of the table `rows`, cut about equally.

    table: addresses of the tiles by their rows. given: the arguments behind the rows. ahead: gives
    those behind them, of the number of the first row of the next tile.
    """
    count = stop - start
    tiles = f.div(count + most - 1, most)
    small = f.div(count, tiles)
    turn = start + (count - small * tiles) * (small + 1)  # so many have a row more

    def run(first: Value, last: Value, size: Value) -> None:
        function = f.load(PTR, f.at(table, size, "i64"))

        def tile(p: Value, _: list[Value]) -> list[Value]:
            more = ahead(p + size) if ahead else []
            operands = [a, f.at(rows, p << 1, "i64"), *given, *more]
            f.line(f"call void {function.name}({', '.join([repr(v) for v in operands])})")
            return []

        f.loop(first, last, size, tile, maybe_empty=True)

    run(start, turn, small + 1)
    run(turn, stop, small)


def tile_table(
    dot: str, width: int, counts: Iterable[int], columns: int, packed: bool = True,
    most: int | None = None, alone: int | None = None, lays: bool = False,
    ahead: bool = False, across: bool = False,
) -> NDArray[np.int64]:  # fmt: skip
    """Addresses of tiles on this machine: of two vectors, then of one, by the number of rows.

    There are those that `call_tiles` comes to for so many rows at a time, `most` of them in a
    tile (as many as the largest of two vectors has), and so many columns, which are a multiple of
    a vector's. alone: the same as `most` for tiles of one vector. One array for all who ask: it
    lives for ever, so its address may be passed on. Tiles of one vector begin where those of two
    end; behind the last one is a word that is read where no tile has a row more.
    """
    largest = most_rows(DOTS[dot], width)
    most = most or largest
    lanes = width // typed(DOTS[dot].word).bytes
    vectors = [v for v in (2, 1) if (columns >= 2 * lanes if v == 2 else columns // lanes % 2)]
    sizes = {
        v: sorted({rows for count in counts for rows in _cut(count, limit)})
        for v, limit in ((2, most), (1, alone or most))
    }
    place = {2: 0, 1: largest + 1}
    kind = dot, width, packed, lays, ahead, across
    with _lock:
        found = _tables.get(kind)
        if found is None:
            others = max(largest, most_rows(DOTS[dot], width, 1, across))
            found = _tables[kind] = np.zeros(largest + others + 3, np.int64)
        new = [(v, rows) for v in vectors for rows in sizes[v] if not found[place[v] + rows]]
        how = packed, lays, ahead, across
        shapes = [Shape(DOTS[dot], width, rows, v, *how) for v, rows in new]
        for shape, at in _made(shapes):
            found[place[shape.vectors] + shape.rows] = at
        return found


def even_table(dot: str, width: int, apart: int, counts: Iterable[int]) -> NDArray[np.int64]:
    """Addresses of tiles of one vector, by their rows, which lie evenly, `apart` words from one to
    the next: those that `call_tiles` comes to for so many rows at a time.
    """
    most = most_rows(DOTS[dot], width, 1, even=True)
    rows = {n for count in counts for n in _cut(count, most)}
    with _lock:
        found = _evens.setdefault((dot, width, apart), np.zeros(most + 3, np.int64))
        shapes = [Shape(DOTS[dot], width, n, 1, apart=apart) for n in sorted(rows) if not found[n]]
        for shape, at in _made(shapes):
            found[shape.rows] = at
    return found


def _made(shapes: Sequence[Shape]) -> list[tuple[Shape, int]]:
    """Their addresses. Code lives for ever."""
    pieces = [shapes[k::_PIECES] for k in range(min(_PIECES, len(shapes)))]
    codes = printed_all([(_together, (tuple(p), host())) for p in pieces])
    return [(s, code.keep().address(s.name)) for p, code in zip(pieces, codes) for s in p]


def _cut(count: int, most: int) -> list[int]:
    """Rows of the tiles that `call_tiles` cuts so many rows into."""
    small, more = divmod(count, -(-count // most)) if count > 0 else (0, 0)
    return [n for n, there in ((small, count > 0), (small + 1, more)) if there]


@functools.cache
def address(shape: Shape, target: Host) -> int:
    """The tile's function on this machine."""
    return _code(shape, target).address(shape.name)


@functools.cache
def _code(shape: Shape, target: Host) -> Code:
    return printed(text, shape, target)
