"""The tile of a product of float matrices: a few rows of A times a panel of B, in registers.

Note [Widths]
    Three vectors and eight rows need few loads for their products, and of no more rows than fit
    into one place of the first-level cache. A panel of one vector would have too few sums for two
    units of latency 4: where one is left over, it and the three before it are two panels of two.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

from msgspec import Struct

from funct.kernels.llvm import I64, PTR, Emitter, Module, Value, each, typed

__all__ = ["LAST", "MOST_ROWS", "Tile", "each_some", "print_tile", "some_of"]

LAST = 8  # at least so many are added last: they are turned around together
MOST_ROWS = 14
_SHARE = 4  # rows of A that are found from one pointer, so that no units but the loads' do it


class Tile(Struct, frozen=True):
    """element: f32 or f64. vectors: of columns. turned: whether A's columns are what lies
    in memory.
    """

    element: str
    rows: int
    vectors: int
    turned: bool

    @property
    def name(self) -> str:
        """Under which text may call it."""
        layout = "turned" if self.turned else "straight"
        return f"funct_{self.element}_tile_{self.rows}x{self.vectors}_{layout}"


def print_tile(module: Module, tile: Tile) -> None:
    """Add a tile, which takes A, elements from row to row of it or, turned, from column to column;
    a panel of B, elements from row to row of it; terms, and those of a sum in registers; C,
    elements from row to row of it; columns, how many terms C has had before, and how many of the
    rows have those of this call already.
    """
    target = module.target
    f = module.function(
        tile.name,
        [
            ("a", PTR), ("a_row", I64), ("b", PTR), ("b_row", I64), ("k", I64), ("most", I64),
            ("c", PTR),
            ("c_row", I64), ("n", I64), ("before", I64), ("made", I64),
        ],
    )  # fmt: skip
    a, a_row, b, b_row, terms, most, c, c_row, n, before, made = f.arguments
    element = tile.element
    wide = typed(element, target.vector_bytes // typed(element).bytes)
    byte = typed(element).bytes
    apart = [f.opaque(a_row * (m * byte)) for m in range(_SHARE)]
    step = a_row if tile.turned else f.constant(I64, 1)  # elements from term to term
    columns = [n - v * wide.lanes for v in range(tile.vectors)]
    masks = [f.first_lanes(wide.lanes, left) for left in columns]
    full = f.eq(n, tile.vectors * wide.lanes)
    cells = [(m, v) for m in range(tile.rows) for v in range(tile.vectors)]
    groups = 1 if tile.turned else -(-tile.rows // _SHARE)

    def term(masks: Sequence[Value | None], t: Value, held: list[Value]) -> list[Value]:
        right, lefts, held = held[0], held[1 : 1 + groups], held[1 + groups :]
        places = [f.at(right, v * wide.lanes, element) for v in range(tile.vectors)]
        row = [f.load(wide, place, mask) for place, mask in zip(places, masks, strict=True)]
        sums = []
        for m in range(tile.rows):
            if tile.turned:
                at = f.at(lefts[0], m, element)
            else:
                at = f.at(lefts[m // _SHARE], apart[m % _SHARE], "i8")
            x = f.splat(f.load(wide.scalar, at), wide.lanes)
            sums += [f.fma(x, y, held[m * tile.vectors + v]) for v, y in enumerate(row)]
        return [f.at(right, b_row, element), *[f.at(x, step, element) for x in lefts], *sums]

    def place(m: int, v: int) -> Value:
        return f.at(f.at(c, c_row * m, element), v * wide.lanes, element)

    def some(first: Value) -> None:
        for m, v in cells:
            f.prefetch(place(m, v), write=True)
        below = [f.at(a, a_row * (g * _SHARE), element) for g in range(1, groups)]
        lefts = [f.at(x, first * step, element) for x in (a, *below)]
        lefts = [f.opaque(x) for x in lefts]
        begin = [f.at(b, first * b_row, element), *lefts, *[f.constant(wide, 0) for _ in cells]]
        last, fresh = first + some_of(f, terms - first, most), f.eq(first + before, 0)

        def summed(masks: Sequence[Value | None]) -> list[Value]:
            """The sums, and what was there before."""
            sums = f.loop(first, last, 1, functools.partial(term, masks), begin)[1 + groups :]
            old = [(place(m, v), masks[v]) for m, v in cells]
            return f.branch(
                fresh,
                lambda: sums,
                lambda: [s + f.load(wide, *x) for s, x in zip(sums, old, strict=True)],
            )

        def all_of_them() -> None:
            for (m, v), s in zip(cells, summed([None] * tile.vectors), strict=True):
                f.store(s, place(m, v))

        def some_of_them() -> None:
            sums = summed(masks)

            def row(m: int) -> None:
                for v, mask in enumerate(masks):
                    f.store(sums[m * tile.vectors + v], place(m, v), mask)

            for m in range(tile.rows):
                f.when(made <= m, functools.partial(row, m))

        whole = full & f.eq(made, 0)
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
