"""Products of matrices of floats and complex numbers: C = A B, panel by panel of B's columns.

Some terms at a time: B is read where it lies or, where many rows meet it or its columns are what
lies in memory, its rows are laid out in panels, as wide as a tile. So is A read where it lies or,
turned and for many columns, some rows at a time laid out for their tiles. Both stay in the
second-level cache. A tile is a few rows times a panel: its sums are registers, so C is read and
written once for many terms.

Note [Where B lies]
    To lay B out takes a time for each of its elements, in which a tile multiplies a few of them by
    sixteen rows. What is gained are lines that follow each other: where B lies, each term of a
    panel is at another place, perhaps on another page. So few terms are taken at a time, whose rows
    of B stay in the caches, and a panel meets all rows before the next one does.

Note [Same bits]
    An element is summed term after term, and each `terms` of them are added to those before, with
    the last ones if they are few. Which tile, task or thread it falls to changes nothing.

Note [One height]
    All tiles of a task have as many rows: the last one ends where the matrix does, and makes rows
    of the one before it again. So one tile is code enough for a product. Of the heights that are
    fast the one that makes fewest rows again is best: 256 rows are 32 tiles of 8, and 29 of 9
    would be 261. What is added to C is not added twice: a tile is told how many of its rows have
    been made.

Note [Rows a page apart]
    Rows of A whose distance is a multiple of 4096 bytes share one place of the first-level cache,
    which holds eight lines: a tile of more rows would read each of them many times.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any

from msgspec import Struct

from funct.device import Host, host, printed
from funct.device.machine_code import begin, offer
from funct.device.printed import kept
from funct.kernels.cpu.dense.dots import DOTS
from funct.kernels.cpu.dense.tile import most_rows
from funct.kernels.cpu.dense.turn import transposed
from funct.kernels.cpu.products.gemm_tile import (
    LAST,
    MOST_ROWS,
    WAYS,
    Tile,
    each_some,
    parts_of,
    print_tile,
    some_of,
)
from funct.kernels.llvm import I64, PTR, Emitter, Module, Value, each, typed

__all__ = [
    "ARGUMENTS", "INSIDE", "LAID", "TURNED", "Cut", "cut", "driver_name", "foretell",
    "print_driver", "turned_together",
]  # fmt: skip

_TERMS, _LAID = 128, 512  # of a sum in registers, and of what is laid out at a time
# bytes of B that are laid out, or read where they lie, and of A that are laid out at a time
_PANELS, _INSIDE, _STRIPS = 1 << 19, 1 << 19, 1 << 22
_MANY = 512  # rows from which on B is laid out, and columns from which on A is
_ENOUGH_COLUMNS = 256  # for A, if B is and many terms are taken at once, each on a page of its own
_LINE, _SLOWLY = 64, 3  # bytes; the logarithm of the most tiles that ask for one of each term
_PAGE, _LINES, _PAGES = 4096, 8, 64  # pages whose places the processor has at hand
_ENOUGH = {1: 8, 2: 6, 3: 5}  # rows of a tile of so many vectors that is as fast as a higher one
# of so many bytes: elements that are turned around together, and what holds them
_SQUARES = {4: (8, typed("f32", 8)), 8: (4, typed("f64", 4)), 16: (1, typed("f64", 2))}
_VECTOR = 16  # elements of the longest one
_WIDE = 64  # bytes of vectors of which there are 32
_ALL = 1 << 40  # rows

ARGUMENTS = (
    "a", "b", "c", "scratch", "wide", "narrow",  # the last two are tiles
    "m", "n", "k",
    "a_row", "a_way", "b_row", "b_way",  # how far it is from row to row or, turned, column
    "c_row", "rows", "panel", "edge",  # of tiles: rows, and columns of both
    "rows_at_once", "columns_at_once", "terms_at_once", "terms",  # the last ones are of a sum
)  # fmt: skip
_POINTERS = 6  # of them
# A and B are read where they lie, laid out, or turned: A is read so, B is laid out so
INSIDE, LAID, TURNED = range(3)


class Cut(Struct, frozen=True):
    """How a task's product is cut. rows: of a tile. vectors: of the wide one and of the narrow one.
    a_way, b_way: `INSIDE`, `LAID` or `TURNED`. rows_at_once: of A, if it is laid out. scratch:
    elements that this takes. terms: of a sum in registers.
    """

    rows: int
    vectors: tuple[int, int]
    a_way: int
    b_way: int
    rows_at_once: int
    columns_at_once: int
    terms_at_once: int
    terms: int
    scratch: int


def cut(
    sizes: tuple[int, int, int], element: str, a_row: int, b_row: int, target: Host, *,
    turned: bool, b_turned: bool,
) -> Cut:  # fmt: skip
    """For tasks of so many rows, or of so many at least, columns at most, and terms.

    a_row, b_row, turned, b_turned: how A and B lie, as the driver is told.
    """
    m, n, k = sizes
    real, parts = parts_of(element)
    byte = real.bytes * parts
    lanes = target.vector_bytes // byte
    wide, narrow = vectors = _widths(n, lanes, target)
    most = min(most_rows(DOTS[real.element], target.vector_bytes, wide), MOST_ROWS) // parts
    if not turned and a_row * byte % _PAGE == 0:
        most = min(most, _LINES)  # see Note [Rows a page apart]
    rows = _height(m, most, -(-_ENOUGH[wide] // parts))
    b_way = TURNED if b_turned else LAID if m >= _MANY else INSIDE
    many = _ENOUGH_COLUMNS if b_way == LAID and k > _TERMS else _MANY
    a_way = INSIDE if not turned else LAID if n >= many else TURNED
    far = b_way == INSIDE and b_row * byte >= _PAGE  # each term of a panel is on another page
    terms = _PAGES if far else _TERMS
    at_once, room = (terms, _INSIDE) if b_way == INSIDE else (_LAID, _PANELS)
    k = min(k, at_once + LAST - 1)
    strips = min(-(-m // rows), max(1, _STRIPS // (byte * k * rows)))
    unit = lanes if wide > narrow else wide * lanes  # any vectors but a single one fill both tiles
    units = -(-n // unit)
    groups = -(-units // max(1, room // (byte * k * unit)))
    columns = max(unit * -(-units // groups), narrow * lanes)
    if groups > 1:  # but the wide one is quicker
        columns = -(-columns // (wide * lanes)) * wide * lanes
    laid = 0 if b_way == INSIDE else k * columns
    if a_way != LAID:
        return Cut(rows, vectors, a_way, b_way, _ALL, columns, at_once, terms, laid)
    left = _left(rows * strips, k)
    return Cut(rows, vectors, a_way, b_way, rows * strips, columns, at_once, terms, left + laid)


def _widths(n: int, lanes: int, target: Host) -> tuple[int, int]:
    """Vectors of the two tiles for so many columns, see Note [Widths] in `gemm_tile.py`."""
    if n <= lanes:
        return 1, 1
    return (3, 2) if n > 2 * lanes and target.vector_bytes == _WIDE else (2, 2)


def _height(m: int, most: int, enough: int) -> int:
    """Rows of a tile; see Note [One height]."""
    if m <= most:
        return m
    return min(range(most, min(most, enough) - 1, -1), key=lambda rows: -(-m // rows) * rows)


def _left(rows: Any, k: Any) -> Any:
    """Elements that rows of A take: whole vectors are written, so there is room behind each row."""
    return (rows * (k + _VECTOR) + (_VECTOR - 1)) & -_VECTOR


def turned_together(element: str) -> int:
    """Terms that a B whose columns lie in memory has at least."""
    real, parts = parts_of(element)
    return _SQUARES[real.bytes * parts][0]


def driver_name(element: str) -> str:
    """Under which text may call the product of a task; it takes ARGUMENTS."""
    return f"funct_{element}_tiled"


def print_driver(module: Module, element: str) -> None:
    """Add the product of one task."""
    f = module.function(
        driver_name(element),
        [(name, PTR if k < _POINTERS else I64) for k, name in enumerate(ARGUMENTS)],
    )
    _Driver(f, element).product()
    f.ret()


class _Driver:
    """Prints the product of one task."""

    def __init__(self, f: Emitter, element: str) -> None:
        self.f = f
        self.real, self.parts = parts_of(element)
        self.given = dict(zip(ARGUMENTS, f.arguments, strict=True))
        self.wide = self.real.of(f.module.target.vector_bytes // self.real.bytes)
        self.lanes = self.wide.lanes // self.parts  # elements of a vector
        self.line = _LINE // (self.real.bytes * self.parts)
        self.turned = f.ne(self.given["a_way"], INSIDE)
        self.laid = f.eq(self.given["a_way"], LAID)
        rows = f.select(self.laid, self.given["rows_at_once"], f.constant(I64, 0))
        most = f.min(self.given["k"], self.given["terms_at_once"] + (LAST - 1))
        self.panels = self.at(self.given["scratch"], _left(rows, most))

    def at(self, place: Value, index: Value | int) -> Value:
        """The address of an element."""
        return self.f.at(place, index * self.parts, self.real.element)

    def product(self) -> None:
        """Some terms at a time, for some rows of A at a time, some columns of B at a time."""
        f, whole = self.f, self.given
        one, b_turned = f.constant(I64, 1), f.eq(whole["b_way"], TURNED)
        down = {
            "a": f.select(self.turned, whole["a_row"], one),
            "b": f.select(b_turned, one, whole["b_row"]),
        }  # from term to term

        def some(first: Value) -> None:
            here = {x: self.at(whole[x], first * step) for x, step in down.items()}
            k = some_of(f, whole["k"] - first, whole["terms_at_once"])
            self.given = whole | here | {"k": k, "before": first, "left": whole["k"] - first - k}
            self._terms()

        each_some(f, whole["k"], some, whole["terms_at_once"])

    def _terms(self) -> None:
        """The product of some terms, added to that of those before."""
        f, g = self.f, self.given

        def rows(start: Value) -> None:
            stop = f.min(start + g["rows_at_once"], g["m"])
            f.when(self.laid, lambda: self._turn_left(start, stop))

            def columns(first: Value) -> None:
                count = f.min(g["columns_at_once"], g["n"] - first)
                for way, lay in ((LAID, self._lay_right), (TURNED, self._turn_right)):
                    f.when(f.eq(g["b_way"], way), functools.partial(lay, first, count))
                self._tiles((start, stop), first, count)

            each(f, 0, g["n"], columns, g["columns_at_once"])

        each(f, 0, g["m"], rows, g["rows_at_once"])

    def _panels(self, count: Value, body: Callable[[Value, Value, str], None]) -> None:
        """Where each panel of so many columns begins, how many it has, and its tile; see
        Note [Widths].
        """
        f, g, lanes = self.f, self.given, self.lanes
        wide, edge = g["panel"], g["edge"]
        vectors = count + (lanes - 1)
        vectors = vectors - f.rem(vectors, lanes)
        rest = f.rem(vectors, wide)
        rest = f.select(f.eq(rest, lanes), rest + wide, rest)
        whole = f.select(f.eq(wide, edge), f.constant(I64, 0), f.max(vectors - rest, 0))
        each(f, 0, whole, lambda j: body(j, f.min(wide, count - j), "panel"), wide)
        each(f, whole, count, lambda j: body(j, f.min(edge, count - j), "edge"), edge)

    def _copy(self, source: Value, to: Value, masks: Sequence[Value | None]) -> None:
        """A vector for each mask; zeros where it is off."""
        f, lanes = self.f, self.lanes
        for v, mask in enumerate(masks):
            f.store(f.load(self.wide, self.at(source, v * lanes), mask), self.at(to, v * lanes))

    def _mask(self, length: Value) -> Value:
        """The first elements of a vector."""
        return self.f.first_lanes(self.wide.lanes, length * self.parts)

    def _lay_right(self, first: Value, count: Value) -> None:
        """Panels of B, row after row."""
        f, g = self.f, self.given

        def row(t: Value) -> None:
            source = self.at(self.at(g["b"], t * g["b_row"]), first)

            def copy(j: Value, columns: Value, kind: str) -> None:
                to = self.at(self.at(self.panels, j * g["k"]), t * g[kind])
                here = self.at(source, j)

                def vector(v: Value) -> None:
                    self._copy(self.at(here, v), self.at(to, v), [self._mask(columns - v)])

                each(f, 0, g[kind], vector, self.lanes)

            self._panels(count, copy)

        each(f, 0, g["k"], row)

    def _turn_right(self, first: Value, count: Value) -> None:
        """Panels of B, whose columns are what lies in memory: squares that are turned around.

        Squares of 32 bytes: of longer vectors they take as long to run, and to make twice that.
        """
        f, g = self.f, self.given
        lanes, some_of = _SQUARES[self.real.bytes * self.parts]

        def panel(start: Value, columns: Value, kind: str) -> None:
            panel = self.at(self.panels, start * g["k"])

            def some(j: Value) -> None:
                sources = [
                    self.at(g["b"], (first + start + f.min(j + i, columns - 1)) * g["b_row"])
                    for i in range(lanes)
                ]

                def square(t: Value) -> None:
                    t = f.min(t, g["k"] - lanes)
                    rows = [f.load(some_of, self.at(source, t)) for source in sources]
                    for i, x in enumerate(transposed(f, rows)):
                        f.store(x, self.at(self.at(panel, (t + i) * g[kind]), j))

                each(f, 0, g["k"], square, lanes)

            each(f, 0, columns, some, lanes)
            zeros = f.constant(some_of, 0)

            def rest(j: Value) -> None:  # a tile reads it, see Note [Masks] there
                each(f, 0, g["k"], lambda t: f.store(zeros, self.at(panel, t * g[kind] + j)))

            done = f.div(columns + (lanes - 1), lanes) * lanes
            each(f, done, g[kind], rest, lanes)

        self._panels(count, panel)

    def _real(self, i: Value) -> Value:
        """Where a tile begins; see Note [One height]."""
        return self.f.min(i, self.given["m"] - self.given["rows"])

    def _laid(self, i: Value, start: Value) -> Value:
        """Where rows of A are laid out, if the first of those is `start`."""
        return self.at(self.given["scratch"], _left(i - start, self.given["k"]))

    def _turn_left(self, start: Value, stop: Value) -> None:
        """Strips of A as high as tiles, term after term."""
        f, g = self.f, self.given
        masks = [self._mask(g["rows"] - v) for v in range(0, MOST_ROWS, self.lanes)]

        def term(t: Value) -> None:
            source, to = self.at(g["a"], t * g["a_row"]), t * g["rows"]

            def strip(i: Value) -> None:
                self._copy(self.at(source, self._real(i)), self.at(self._laid(i, start), to), masks)

            each(f, start, stop, strip, g["rows"])

        each(f, 0, g["k"], term)

    def _tiles(self, rows: tuple[Value, Value], first: Value, count: Value) -> None:
        """Those of these rows and columns. Panels that lie in memory stay in the first-level cache
        while all rows meet them; rows meet all panels that are laid out, one after the other.
        """
        f, g = self.f, self.given
        inside, nothing = f.eq(g["b_way"], INSIDE), [f.constant(I64, 0)] * 2

        def panels(body: Callable[[Value, Value, str], None]) -> None:
            self._panels(count, body)

        def bands(body: Callable[[Value], None]) -> None:
            each(f, *rows, body, g["rows"])

        def here(i: Value, j: Value, columns: Value, kind: str) -> None:
            panel = self.at(self.at(g["b"], first), j)
            asked = functools.partial(self._next_terms, i, rows, j, (first, count))
            ahead = f.branch(self.turned, asked, lambda: [panel, *nothing])
            self._tile(i, rows[0], first + j, columns, kind, (panel, g["b_row"]), ahead)

        def laid(i: Value, j: Value, columns: Value, kind: str) -> None:
            panel = self.at(self.panels, j * g["k"]), g[kind]
            self._tile(i, rows[0], first + j, columns, kind, panel, [panel[0], *nothing])

        f.when(inside, lambda: panels(lambda *panel: bands(lambda i: here(i, *panel))))
        f.when(~inside, lambda: bands(lambda i: panels(lambda *panel: laid(i, *panel))))

    def _next_terms(
        self, i: Value, rows: tuple[Value, Value], j: Value, columns: tuple[Value, Value]
    ) -> list[Value]:
        """What a tile asks for of the terms after these; see Note [Asking ahead] in `gemm_tile.py`.

        A tile, or as many as a power of two, ask for a line of each: first for B's, then for A's.
        """
        f, g, line, zero = self.f, self.given, self.line, self.f.constant(I64, 0)
        (start, stop), (first, count), k = rows, columns, g["k"]
        of_a, of_b = (f.div(n + (line - 1), line) for n in (stop - start, count))
        bands = f.div(stop - start + (g["rows"] - 1), g["rows"])
        panel = f.div(j + (g["panel"] - g["edge"]), g["panel"])
        number = panel * bands + f.div(i - start, g["rows"])
        slowly = zero
        for more in range(1, _SLOWLY + 1):
            enough = (of_a + of_b) << more <= f.div(count * bands, g["panel"])
            slowly = f.select(enough, f.constant(I64, more), slowly)
        at, part = number >> slowly, number & ((f.constant(I64, 1) << slowly) - 1)
        right, there = at < of_b, (at < of_a + of_b) & (g["left"] > 0)
        b, a = (self.at(g["b"], first + at * line), self.at(g["a"], start + (at - of_b) * line))
        row = f.select(there, f.select(right, g["b_row"], g["a_row"]), zero)
        return [self.at(f.select(right, b, a), (k + (part * k >> slowly)) * row), row, slowly]

    def _tile(
        self, i: Value, start: Value, j: Value, columns: Value, kind: str,
        panel: tuple[Value, Value], ahead: list[Value],
    ) -> None:  # fmt: skip
        """The tile from row i and column j on. start: of rows laid out. ahead: what it asks for."""
        f, g, row = self.f, self.given, self._real(i)
        here = self.at(g["a"], f.select(self.turned, row, row * g["a_row"]))
        left = f.select(self.laid, self._laid(i, start), here)
        a_row = f.select(self.laid, g["rows"], g["a_row"])
        out = self.at(self.at(g["c"], row * g["c_row"]), j)
        made = f.select(f.eq(g["before"], 0), f.constant(I64, 0), i - row)
        given = [left, a_row, *panel, g["k"], g["terms"], out, g["c_row"], columns]
        given += [g["before"], made, *ahead]
        which = g["wide" if kind == "panel" else "narrow"]
        f.line(f"call void {which.name}({', '.join([repr(v) for v in given])})")


@functools.lru_cache(16)  # asked for where its code is begun, and where it is called
def _tile_text(tile: Tile, target: Host) -> str:
    module = Module(target)
    print_tile(module, tile)
    return module.text()


@functools.lru_cache(4)
def _driver_text(element: str, target: Host) -> str:
    module = Module(target)
    print_driver(module, element)
    return module.text()


_Text = Callable[..., str]


def foretell(tiles: Sequence[Tile]) -> None:
    """Begin to make code for tiles that will be called, and what calls them."""
    asked: list[tuple[_Text, Tile | str]] = [(_tile_text, tile) for tile in tiles]
    asked.append((_driver_text, tiles[0].element))
    new = [a for a in asked if a not in _foretold]
    _foretold.update(new)
    begin([t(x, host()) for t, x in new if not kept(t, x, host())], 1)


_foretold: set[tuple[_Text, Tile | str]] = set()


@functools.cache
def _address(text: _Text, given: Tile | str, name: str) -> int:
    return printed(text, given, host()).keep().address(name)


def _offer(text: _Text, given: Tile | str, name: str) -> None:
    offer(name, functools.partial(_address, text, given, name))


for _element in ("f32", "f64", "c64", "c128"):
    _offer(_driver_text, _element, driver_name(_element))
    for _rows, _vectors, _way in itertools.product(range(1, MOST_ROWS + 1), (1, 2, 3), WAYS):
        _tile = Tile(_element, _rows, _vectors, _way)
        _offer(_tile_text, _tile, _tile.name)
