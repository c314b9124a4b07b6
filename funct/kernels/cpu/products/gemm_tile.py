"""The tile of a product of float matrices: a few rows of A times a panel of B, in registers.

Note [Widths]
    Three vectors and eight rows need few loads for their products, and of no more rows than fit
    into one place of the first-level cache. A panel of one vector would have too few sums for two
    units of latency 4: where one is left over, it and the three before it are two panels of two.

Note [Masks]
    A load by a mask costs a unit of multiplication. So rows of a panel that is not full are read as
    if it were: behind them are others, and no lane meets another one. For the last rows, behind
    which nothing may be, there is a second loop, with masks.

Note [Asking ahead]
    A turned A, and B beside it, come as a line or three of each term, which may be far away: loads
    that wait for them leave the units idle, as no more terms are under way than the processor holds
    instructions of. So each term also asks for a line of the terms after these. Where there are
    more tiles than such lines, some terms ask for the same one: memory is to have no rest and no
    rush. A straight A has rows that the processor sees coming, but only after a few lines of each:
    where a large A meets few columns, and so each line once or thrice, terms ask for lines of the
    rows below the tile's, of one after the other. Where A lies in the caches that would take a
    twentieth of a tile's time, and gain nothing.

Note [Complex numbers]
    Real and imaginary parts of A are two rows of numbers, each times B as it lies, with sums of its
    own: the parts meet when all terms are summed, and nothing is shuffled before.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

from msgspec import Struct

from funct.kernels.llvm import I64, PTR, Emitter, Module, Type, Value, each, typed
from funct.kernels.llvm.arithmetic import Index

__all__ = [
    "ACROSS", "AHEAD", "LAST", "MOST_ROWS", "STRAIGHT", "WAYS", "Tile", "each_some", "parts_of",
    "print_tile", "some_of",
]  # fmt: skip

LAST = 8  # at least so many are added last: they are turned around together
MOST_ROWS = 14
WAYS = STRAIGHT, AHEAD, ACROSS = "straight", "ahead", "across"
_LINE = 64  # bytes
_SHARE = 4  # rows of A that are found from one pointer, so that no units but the loads' do it


def parts_of(element: str) -> tuple[Type, int]:
    """The real numbers that an element consists of, and how many they are."""
    return typed("f32" if element in ("f32", "c64") else "f64"), 1 + element.startswith("c")


class Tile(Struct, frozen=True):
    """element: f32, f64, c64 or c128. vectors: of columns. way: `ACROSS` where A's columns are what
    lies in memory; `STRAIGHT` where its rows are, or `AHEAD`, which asks for those below.
    """

    element: str
    rows: int
    vectors: int
    way: str

    @property
    def turned(self) -> bool:
        """Whether A's columns are what lies in memory."""
        return self.way == ACROSS

    @property
    def name(self) -> str:
        """Under which text may call it."""
        return f"funct_{self.element}_tile_{self.rows}x{self.vectors}_{self.way}"


def print_tile(module: Module, tile: Tile) -> None:
    """Add a tile, which takes A, elements from row to row of it or, turned, from column to column;
    a panel of B, elements from row to row of it; terms, and those of a sum in registers; C,
    elements from row to row of it; columns, how many terms C has had before, and how many of the
    rows have those of this call already; what to ask for, elements from row to row of it, and the
    logarithm of the terms that ask for the same, see Note [Asking ahead].
    """
    target = module.target
    f = module.function(
        tile.name,
        [
            ("a", PTR), ("a_row", I64), ("b", PTR), ("b_row", I64), ("k", I64), ("most", I64),
            ("c", PTR),
            ("c_row", I64), ("n", I64), ("before", I64), ("made", I64),
            ("ahead", PTR), ("ahead_row", I64), ("slowly", I64),
        ],
    )  # fmt: skip
    a, a_row, b, b_row, terms, most, c, c_row, n, before, made, *asks = f.arguments
    real, parts = parts_of(tile.element)
    wide = real.of(target.vector_bytes // real.bytes)
    lanes, byte = wide.lanes // parts, real.bytes * parts
    apart = [f.opaque(a_row * (m * byte)) for m in range(_SHARE)]
    step = a_row if tile.turned else f.constant(I64, 1)  # elements from term to term
    masks = [f.first_lanes(wide.lanes, (n - v * lanes) * parts) for v in range(tile.vectors)]
    none: list[Value | None] = [None] * tile.vectors
    beyond = tile.vectors * lanes - n  # elements of a row that are not the panel's
    cells = [(m, v) for m in range(tile.rows) for v in range(tile.vectors)]
    groups = 1 if tile.turned else -(-tile.rows // _SHARE)
    pointers = groups + (tile.way == AHEAD)  # into A; the last one goes below the tile
    of_line = _LINE // byte
    row_bytes = f.opaque(a_row * byte)

    def at(place: Value, index: Index) -> Value:
        return f.at(place, index * parts, real.element)

    def term(masks: Sequence[Value | None], t: Value, held: list[Value]) -> list[Value]:
        right, lefts, held = held[0], held[1 : 1 + pointers], held[1 + pointers :]
        if tile.turned:
            ahead, ahead_row, slowly = asks
            f.prefetch(at(ahead, (t >> slowly) * ahead_row), near=False)
        if tile.way == AHEAD:
            for m in range(0, tile.rows, of_line):
                below = ((t & (of_line - 1)) + m) * row_bytes
                f.prefetch(f.at(lefts[-1], below, "i8"), near=False)
        places = [at(right, v * lanes) for v in range(tile.vectors)]
        row = [f.load(wide, place, mask) for place, mask in zip(places, masks, strict=True)]
        sums: list[Value] = []
        for m in range(tile.rows):
            left = at(lefts[0], m)
            if not tile.turned:
                left = f.at(lefts[m // _SHARE], apart[m % _SHARE], "i8")
            for part in range(parts):
                x = f.splat(f.load(real, f.at(left, part, real.element)), wide.lanes)
                sums += [f.fma(x, y, held[len(sums) + v]) for v, y in enumerate(row)]
        return [at(right, b_row), *[at(x, step) for x in lefts], *sums]

    def together(sums: list[Value]) -> list[Value]:
        """The parts' sums, see Note [Complex numbers]."""
        if parts == 1:
            return sums
        around = [i ^ 1 for i in range(wide.lanes)]
        signs = f.vector(wide, [2 * (i % 2) - 1 for i in range(wide.lanes)])
        of_row = [sums[i : i + tile.vectors] for i in range(0, len(sums), tile.vectors)]
        return [
            f.fma(f.shuffle(y, None, around), signs, x)
            for xs, ys in zip(of_row[::2], of_row[1::2], strict=True)
            for x, y in zip(xs, ys, strict=True)
        ]

    def place(m: int, v: int) -> Value:
        return at(at(c, c_row * m), v * lanes)

    def some(first: Value) -> None:
        for m, v in cells:
            f.prefetch(place(m, v), write=True)
        starts = [*range(_SHARE, groups * _SHARE, _SHARE), *[tile.rows] * (pointers - groups)]
        below = [at(a, a_row * m) for m in starts]
        lefts = [f.opaque(at(x, first * step)) for x in (a, *below)]
        zeros = [f.constant(wide, 0)] * (parts * len(cells))
        begin = [at(b, first * b_row), *lefts, *zeros]
        last, fresh = first + some_of(f, terms - first, most), f.eq(first + before, 0)

        def middle() -> Value:
            """The first of the last rows, behind which elements of the panel are none of B's."""
            behind = f.div(beyond + b_row - 1, b_row)
            return f.max(f.min(last, terms - behind), first)

        def summed(*masks: Sequence[Value | None]) -> list[Value]:
            """The sums, by each of the masks some terms, and what was there before."""
            held, start = begin, first
            stops = [last] if len(masks) == 1 else [middle(), last]
            for these, stop in zip(masks, stops, strict=True):
                body = functools.partial(term, these)
                held = f.loop(start, stop, 1, body, held, maybe_empty=len(masks) > 1)
                start = stop
            sums = together(held[1 + pointers :])
            old = [(place(m, v), masks[-1][v]) for m, v in cells]
            return f.branch(
                fresh,
                lambda: sums,
                lambda: [s + f.load(wide, *x) for s, x in zip(sums, old, strict=True)],
            )

        def all_of_them() -> None:
            for (m, v), s in zip(cells, summed(none), strict=True):
                f.store(s, place(m, v))

        def some_of_them() -> None:
            sums = summed(none, masks)

            def row(m: int) -> None:
                for v, mask in enumerate(masks):
                    f.store(sums[m * tile.vectors + v], place(m, v), mask)

            for m in range(tile.rows):
                f.when(made <= m, functools.partial(row, m))

        whole = f.eq(beyond, 0) & f.eq(made, 0)
        f.when(whole, all_of_them)
        f.when(~whole, some_of_them)

    each_some(f, terms, some, most)
    f.ret()


def some_of(f: Emitter, left: Value, terms: Value) -> Value:
    """How many of the terms that are left come next; the last ones come with those before them."""
    return f.select(left > terms + (LAST - 1), terms, left)


def each_some(f: Emitter, k: Value, body: Callable[[Value], None], terms: Value) -> None:
    """From which term on, of k, some come next."""
    each(f, 0, f.max(k - (LAST - 1), 1), body, terms)
