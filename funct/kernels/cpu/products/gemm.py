"""Products of matrices of floats: C = A B, panel by panel of B's columns.

Some terms at a time: B's rows are laid out in panels, as wide as a tile, some of them at a time,
and A is read where it lies or, where its columns are what lies in memory, some rows at a time laid
out for their tiles. Both stay in the second-level cache. A tile is a few rows times a panel: its
sums are registers, so C is written and, but for long sums, never read.

Note [Same bits]
    An element is summed term after term, and each `_TERMS` of them are added to those before, with
    the last ones if they are few. Which tile, task or thread it falls to changes nothing, and
    neither does what is summed beside it.

Note [One height]
    All tiles of a task have as many rows: the last one ends where the matrix does, and makes rows
    of the one before it again. So one tile is code enough for a product. Of the heights that are
    fast the one that makes fewest rows again is best: 256 rows are 32 tiles of 8, and 19 of 14
    would be 266. What is added to C is not added twice, so where rows are made again, a tile has
    all terms at once.

Note [Rows a page apart]
    Rows of A whose distance is a multiple of 4096 bytes share one place of the first-level cache,
    which holds eight lines: a tile of more rows would read each of them many times.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from msgspec import Struct

from funct.device import Host, host, printed
from funct.device.machine_code import begin, offer
from funct.device.printed import kept
from funct.kernels.cpu.dense.dots import DOTS
from funct.kernels.cpu.dense.tile import most_rows
from funct.kernels.cpu.dense.turn import transposed
from funct.kernels.llvm import I64, PTR, Emitter, Module, Value, each, typed

__all__ = [
    "ARGUMENTS", "Cut", "Tile", "cut", "driver_name", "foretell", "print_driver", "print_tile",
]  # fmt: skip

_TERMS = 512  # of a sum in registers
_LAST = 8  # at least so many are added last: they are turned around together
_PANELS, _STRIPS = 1 << 18, 1 << 19  # bytes of B and of A that are laid out at a time
_PAGE, _LINES = 4096, 8
_ENOUGH = 6  # rows of a tile that is as fast as a higher one
_SQUARE = 32  # bytes
_VECTOR = 16  # elements of the longest one
_ALL = 1 << 40  # rows

ARGUMENTS = (
    "a", "b", "c", "scratch", "wide", "narrow",  # the last two are tiles
    "m", "n", "k",
    "a_row", "a_turned", "b_row", "b_turned",  # how far it is from row to row or, turned, column
    "c_row", "rows", "rows_at_once", "columns_at_once", "terms_at_once",
)  # fmt: skip
_POINTERS = 6  # of them


class Tile(Struct, frozen=True):
    """element: f32 or f64. vectors: of columns. turned: whether A is laid out for it."""

    element: str
    rows: int
    vectors: int
    turned: bool

    @property
    def name(self) -> str:
        """Under which text may call it."""
        layout = "turned" if self.turned else "straight"
        return f"funct_{self.element}_tile_{self.rows}x{self.vectors}_{layout}"


class Cut(Struct, frozen=True):
    """How a task's product is cut. rows: of a tile. rows_at_once: of A, if it is laid out.
    scratch: elements that this takes.
    """

    rows: int
    rows_at_once: int
    columns_at_once: int
    terms_at_once: int
    scratch: int


def cut(
    sizes: tuple[int, int, int], element: str, a_row: int, target: Host, *, turned: bool,
    even: bool = True,
) -> Cut:  # fmt: skip
    """For tasks of so many rows, or of so many at least if not even, columns at most, and terms.

    a_row, turned: how A lies, as the driver is told.
    """
    m, n, k = sizes
    byte = typed(element).bytes
    most = most_rows(DOTS[element], target.vector_bytes)
    if not turned and a_row * byte % _PAGE == 0:
        most = min(most, _LINES)  # see Note [Rows a page apart]
    rows = _height(m, most)
    terms = _TERMS if even and m % rows == 0 else _ALL  # see Note [One height]
    k = min(k, terms + _LAST - 1)
    strips = min(-(-m // rows), max(1, _STRIPS // (byte * k * rows)))
    panel = 2 * target.vector_bytes // byte
    panels = -(-n // panel)
    groups = -(-panels // max(1, _PANELS // (byte * k * panel)))
    columns = panel * -(-panels // groups)
    if not turned:
        return Cut(rows, _ALL, columns, terms, k * columns)
    return Cut(rows, rows * strips, columns, terms, _left(rows * strips, k) + k * columns)


def _height(m: int, most: int) -> int:
    """Rows of a tile; see Note [One height]."""
    if m <= most:
        return m
    return min(range(most, min(most, _ENOUGH) - 1, -1), key=lambda rows: -(-m // rows) * rows)


def _left(rows: Any, k: Any) -> Any:
    """Elements that rows of A take: whole vectors are written, so there is room behind each row."""
    return (rows * (k + _VECTOR) + (_VECTOR - 1)) & -_VECTOR


def driver_name(element: str) -> str:
    """Under which text may call the product of a task; it takes ARGUMENTS."""
    return f"funct_{element}_tiled"


def print_tile(module: Module, tile: Tile) -> None:
    """Add a tile, which takes A, elements from row to row of it, a panel of B, terms, C, elements
    from row to row of it, columns, and how many terms C has had before.
    """
    target = module.target
    f = module.function(
        tile.name,
        [
            ("a", PTR), ("a_row", I64), ("b", PTR), ("k", I64), ("c", PTR), ("c_row", I64),
            ("n", I64), ("before", I64),
        ],
    )  # fmt: skip
    a, a_row, b, terms, c, c_row, n, before = f.arguments
    element = tile.element
    wide = typed(element, target.vector_bytes // typed(element).bytes)
    cells = [(m, v) for m in range(tile.rows) for v in range(tile.vectors)]
    most = f.constant(I64, _TERMS)
    starts = [a if tile.turned else f.at(a, a_row * m, element) for m in range(tile.rows)]

    def term(t: Value, held: list[Value]) -> list[Value]:
        right = held[0]
        row = [f.load(wide, f.at(right, v * wide.lanes, element)) for v in range(tile.vectors)]
        at = f.at(a, t * tile.rows, element) if tile.turned else None
        sums = []
        for m, start in enumerate(starts):
            place = f.at(start, t, element) if at is None else f.at(at, m, element)
            x = f.splat(f.load(wide.scalar, place), wide.lanes)
            sums += [f.fma(x, y, held[1 + m * tile.vectors + v]) for v, y in enumerate(row)]
        return [f.at(right, 2 * wide.lanes, element), *sums]

    def some(first: Value) -> None:
        for m in range(tile.rows):
            for v in range(tile.vectors):
                f.prefetch(f.at(f.at(c, c_row * m, element), v * wide.lanes, element), write=True)
        begin = [f.at(b, first * (2 * wide.lanes), element), *[f.constant(wide, 0) for _ in cells]]
        sums = f.loop(first, first + _some_of(f, terms - first, most), 1, term, begin)[1:]
        columns = [n - v * wide.lanes for v in range(tile.vectors)]
        masks = [f.first_lanes(wide.lanes, left) for left in columns]
        fresh = f.eq(first + before, 0)
        added = [f.select(fresh, f.constant(I64, 0), left) for left in columns]

        def put(masks: list[Value | None]) -> list[Value]:
            for (m, v), s in zip(cells, sums, strict=True):
                place = f.at(f.at(c, c_row * m, element), v * wide.lanes, element)
                x = f.load(wide, place, f.first_lanes(wide.lanes, added[v]))  # 0 at first
                f.store(s + x, place, masks[v])
            return []

        if target.vector_bytes == 64:
            put([*masks])
        else:  # other processors are slow to store by masks
            full = f.eq(n, tile.vectors * wide.lanes)
            f.branch(full, lambda: put([None] * tile.vectors), lambda: put([*masks]))

    _each_some(f, terms, some, most)
    f.ret()


def _some_of(f: Emitter, left: Value, terms: Value) -> Value:
    """How many of the terms that are left come next; the last ones come with those before them."""
    return f.select(left > terms + (_LAST - 1), terms, left)


def _each_some(f: Emitter, k: Value, body: Callable[[Value], None], terms: Value) -> None:
    """From which term on, of k, some come next."""
    each(f, 0, f.max(k - (_LAST - 1), 1), body, terms)


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
        self.f, self.element = f, element
        self.given = dict(zip(ARGUMENTS, f.arguments, strict=True))
        self.wide = typed(element, f.module.target.vector_bytes // typed(element).bytes)
        self.panel = 2 * self.wide.lanes
        self.turned = f.ne(self.given["a_turned"], 0)
        rows = f.select(self.turned, self.given["rows_at_once"], f.constant(I64, 0))
        most = f.min(self.given["k"], self.given["terms_at_once"] + (_LAST - 1))
        self.panels = self.at(self.given["scratch"], _left(rows, most))

    def at(self, place: Value, index: Value | int) -> Value:
        """The address of an element."""
        return self.f.at(place, index, self.element)

    def product(self) -> None:
        """Some terms at a time, for some rows of A at a time, some columns of B at a time."""
        f, whole = self.f, self.given
        one, b_turned = f.constant(I64, 1), f.ne(whole["b_turned"], 0)
        down = {
            "a": f.select(self.turned, whole["a_row"], one),
            "b": f.select(b_turned, one, whole["b_row"]),
        }  # from term to term

        def some(first: Value) -> None:
            here = {x: self.at(whole[x], first * step) for x, step in down.items()}
            k = _some_of(f, whole["k"] - first, whole["terms_at_once"])
            self.given = whole | here | {"k": k, "before": first}
            self._terms()

        _each_some(f, whole["k"], some, whole["terms_at_once"])

    def _terms(self) -> None:
        """The product of some terms, added to that of those before."""
        f, g = self.f, self.given

        def rows(start: Value) -> None:
            stop = f.min(start + g["rows_at_once"], g["m"])
            f.when(self.turned, lambda: self._turn_left(start, stop))

            def columns(first: Value) -> None:
                count = f.min(g["columns_at_once"], g["n"] - first)
                self._either("b_turned", self._turn_right, self._lay_right, first, count)
                each(f, start, stop, lambda i: self._band(i, start, first, count), g["rows"])

            each(f, 0, g["n"], columns, g["columns_at_once"])

        each(f, 0, g["m"], rows, g["rows_at_once"])

    def _either(
        self, which: str, yes: Callable[..., None], no: Callable[..., None], *given: Value
    ) -> None:
        """What is printed by `yes` where the argument is not 0, else by `no`."""
        on = self.f.ne(self.given[which], 0)
        self.f.when(on, lambda: yes(*given))
        self.f.when(~on, lambda: no(*given))

    def _copy(self, source: Value, to: Value, masks: Sequence[Value | None]) -> None:
        """A vector for each mask; zeros where it is off."""
        f, lanes = self.f, self.wide.lanes
        for v, mask in enumerate(masks):
            f.store(f.load(self.wide, self.at(source, v * lanes), mask), self.at(to, v * lanes))

    def _masks(self, length: Value, vectors: int) -> list[Value]:
        lanes = self.wide.lanes
        return [self.f.first_lanes(lanes, length - v * lanes) for v in range(vectors)]

    def _lay_right(self, first: Value, count: Value) -> None:
        """Panels of B, row after row."""
        f, g = self.f, self.given
        rest = f.rem(count, self.panel)
        whole, edge = count - rest, self._masks(rest, 2)

        def row(t: Value) -> None:
            source = self.at(self.at(g["b"], t * g["b_row"]), first)
            to = self.at(self.panels, t * self.panel)

            def copy(j: Value, masks: Sequence[Value | None]) -> None:
                self._copy(self.at(source, j), self.at(to, j * g["k"]), masks)

            each(f, 0, whole, lambda j: copy(j, [None, None]), self.panel)
            f.when(rest > 0, lambda: copy(whole, edge))

        each(f, 0, g["k"], row)

    def _turn_right(self, first: Value, count: Value) -> None:
        """Panels of B, whose columns are what lies in memory: squares that are turned around.

        Squares of 32 bytes: of longer vectors they take as long to run, and to make twice that.
        """
        f, g = self.f, self.given
        lanes = _SQUARE // self.wide.bytes
        some_of = self.wide.of(lanes)

        def some(j: Value) -> None:
            columns = [first + f.min(j + i, count - 1) for i in range(lanes)]
            sources = [self.at(g["b"], c * g["b_row"]) for c in columns]
            inside = f.rem(j, self.panel)
            panel = self.at(self.at(self.panels, (j - inside) * g["k"]), inside)

            def square(t: Value) -> None:
                t = f.min(t, g["k"] - lanes)
                rows = [f.load(some_of, self.at(source, t)) for source in sources]
                for i, x in enumerate(transposed(f, rows)):
                    f.store(x, self.at(panel, (t + i) * self.panel))

            each(f, 0, g["k"], square, lanes)

        each(f, 0, count, some, lanes)

    def _real(self, i: Value) -> Value:
        """Where a tile begins; see Note [One height]."""
        return self.f.min(i, self.given["m"] - self.given["rows"])

    def _laid(self, i: Value, start: Value) -> Value:
        """Where rows of A are laid out, if the first of those is `start`."""
        return self.at(self.given["scratch"], _left(i - start, self.given["k"]))

    def _turn_left(self, start: Value, stop: Value) -> None:
        """Strips of A as high as tiles, term after term."""
        f, g = self.f, self.given
        most = most_rows(DOTS[self.element], f.module.target.vector_bytes)
        masks = self._masks(g["rows"], -(-most // self.wide.lanes))

        def term(t: Value) -> None:
            source, to = self.at(g["a"], t * g["a_row"]), t * g["rows"]

            def strip(i: Value) -> None:
                self._copy(self.at(source, self._real(i)), self.at(self._laid(i, start), to), masks)

            each(f, start, stop, strip, g["rows"])

        each(f, 0, g["k"], term)

    def _band(self, i: Value, start: Value, first: Value, count: Value) -> None:
        """The tiles from row i on, for all panels that are laid out."""
        f, g, row = self.f, self.given, self._real(i)
        left = f.select(self.turned, self._laid(i, start), self.at(g["a"], row * g["a_row"]))
        out = self.at(self.at(g["c"], row * g["c_row"]), first)

        def tile(j: Value) -> None:
            real = f.min(self.panel, count - j)
            which = f.select(real > self.wide.lanes, g["wide"], g["narrow"])
            panel = self.at(self.panels, j * g["k"])
            given = [left, g["a_row"], panel, g["k"], self.at(out, j), g["c_row"], real]
            given.append(g["before"])
            f.line(f"call void {which.name}({', '.join([repr(v) for v in given])})")

        each(f, 0, count, tile, self.panel)


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


for _element in ("f32", "f64"):
    _offer(_driver_text, _element, driver_name(_element))
    for _rows in range(1, 15):
        for _vectors in (1, 2):
            for _turned in (False, True):
                _tile = Tile(_element, _rows, _vectors, _turned)
                _offer(_tile_text, _tile, _tile.name)
