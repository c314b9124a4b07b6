"""The loops of products of half-precision matrices: packed, multiplied tile by tile, rounded once.

A unit is a block of rows of one product of the stack, times a range of its columns. The right
operand is packed for tiles (`dense/tile.py`) where it is multiplied, a piece of the depth by some
columns at a time, which stays in the second-level cache; the left one is read where it lies if its
words are there as they are. Words are float32, converted as they are packed, or pairs of bfloat16
along the depth, as `vdpbf16ps` takes them. All sizes are arguments: one text serves every product
of a dtype.

Note [Same bits]
    An element is summed along the depth, word by word, in one sum. Which unit, tile or thread it
    falls to changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from funct.device import PARALLEL, Host
from funct.kernels.cpu.dense.dots import DOTS, Dot
from funct.kernels.cpu.dense.slab import clear
from funct.kernels.cpu.dense.tile import call_tiles
from funct.kernels.cpu.dense.turn import turn_name
from funct.kernels.cpu.products.half_columns import FEW_TURNED, few_rows_by_columns
from funct.kernels.cpu.products.half_rows import AHEAD, NARROWEST, few_rows
from funct.kernels.cpu.record import Fields, Record
from funct.kernels.llvm import I64, PTR, Emitter, Module, Value, each, typed

__all__ = ["CALL", "JOB", "STRIP", "text"]

# The fields that a call fills in: addresses, and how the operands lie. x_row, y_row: elements from
# one run of elements to the next, which are rows or, where `turned`, columns.
CALL = (
    "scratch", "x", "y", "out", "x_places", "y_places", "x_row", "x_turned", "y_row", "y_turned",
)  # fmt: skip

# A word is 4 bytes. left, panels, sums, lines: offsets in a task's scratch, in words.
JOB = Fields((
    *CALL, "tasks", "units", "scratch_step", "rows", "columns", "depth", "blocks", "block_rows",
    "splits", "split_columns", "chunk", "piece", "left", "left_row", "panels", "sums", "lines",
    "pixels", "taps", "tiles", "most_rows", "lanes", "few",
))  # fmt: skip

STRIP = 64  # words along the depth that are laid out, then transposed, at a time


class _Words(Struct, frozen=True):
    """Prints how elements become words."""

    f: Emitter
    job: Record
    element: str
    dot: Dot
    turn: str
    lay: str

    @property
    def as_they_lie(self) -> bool:
        """Whether words along a run are there in memory."""
        return self.dot.per_word > 1

    def place(self, pointer: Value, offset: Value) -> Value:
        """The address of an element."""
        return self.f.at(pointer, offset, self.element)

    def transpose(
        self, source: Value, to: Value, rows: Value, columns: Value, row: Value, to_row: Value
    ) -> None:
        """`dense/turn.py`'s copy."""
        self.f.call(self.turn, None, [source, to, rows, columns, row, to_row])

    def spread(
        self, source: Value, to: Value, rows: Value, columns: Value, row: Value, to_row: Value,
        to_panel: Value | None = None,
    ) -> None:  # fmt: skip
        """`_define_lay`'s copy, into panels or into one array."""
        to_panel = self.job.lanes * 2 if to_panel is None else to_panel
        self.f.call(self.lay, None, [source, to, rows, columns, row, to_row, to_panel])

    def strips(self, depth: Value, body: Callable[[Value, Value], None]) -> None:
        """body(first, count) for each strip of the depth."""
        f = self.f
        each(f, 0, depth, lambda k: body(k, f.min(depth - k, STRIP)), STRIP)

    def fill_left(self, source: Value, to: Value, lines: Value, count: Value) -> None:
        """`count` rows of words, from columns of elements if x is turned."""
        f, job, per = self.f, self.job, self.dot.per_word

        def turned(k: Value, depth: Value) -> None:
            self.spread(self.place(source, k * per * job.x_row), lines, depth, count, job.x_row,
                        count)  # fmt: skip
            target = f.at(to, k, self.dot.word)
            self.transpose(lines, target, depth, count, count, job.left_row)

        def straight() -> list[Value]:
            run = f.eq(job.x_row, job.depth) & f.eq(job.left_row, job.depth)
            rows = f.select(run, f.constant(I64, 1), count)
            along = f.select(run, count * job.depth, job.depth)
            self.spread(source, to, rows, along, job.x_row, job.left_row)
            return []

        def columns() -> list[Value]:
            self.strips(job.depth, turned)
            return []

        if self.as_they_lie:
            columns()
        else:
            f.branch(f.ne(job.x_turned, 0), columns, straight)

    def fill_panels(
        self, source: Value, to: Value, lines: Value, depth: Value, columns: Value
    ) -> None:
        """Panels (depth, columns of two vectors), of which the last may be narrower."""
        f, job = self.f, self.job
        full = job.lanes * 2
        whole = columns - f.rem(columns, full)
        rest = columns - whole
        wide = f.select(rest > job.lanes, full, job.lanes)
        end = f.at(to, whole * depth, self.dot.word)
        f.when((rest > 0) & (rest < wide), lambda: clear(f, end, depth * wide * 4))

        def columns_of(o: Value) -> None:
            real = f.min(full, columns - o)
            panel = f.select(o < whole, full, wide)
            begin = self.place(source, o * job.y_row)
            self._fill_turned(begin, f.at(to, o * depth, self.dot.word), lines, depth, real, panel)

        def turned() -> list[Value]:
            each(f, 0, columns, columns_of, full)
            return []

        def straight() -> list[Value]:
            self.spread(source, to, depth, whole, job.y_row, full, depth * full)
            self.spread(self.place(source, whole), end, depth, rest, job.y_row, wide)
            return []

        f.branch(f.ne(job.y_turned, 0), turned, straight)

    def _fill_turned(
        self, source: Value, to: Value, lines: Value, depth: Value, real: Value, wide: Value
    ) -> None:
        """One panel, of whose columns so many are runs of elements."""
        f, job, row = self.f, self.job, self.f.constant(I64, STRIP)
        if self.as_they_lie:
            self.transpose(source, to, real, depth, f.div(job.y_row, self.dot.per_word), wide)
            return

        def strip(k: Value, count: Value) -> None:
            begin, target = self.place(source, k), f.at(to, k * wide, self.dot.word)

            def one_by_one() -> list[Value]:
                self.spread(begin, lines, real, count, job.y_row, row)
                self.transpose(lines, target, real, count, row, wide)
                return []

            def pairs() -> list[Value]:
                self.transpose(begin, lines, real, count >> 1, job.y_row >> 1, wide)
                each(f, 0, count >> 1, lambda i: self._split(lines, target, i, wide))
                return []

            f.branch(f.eq((count | job.y_row) & 1, 0), pairs, one_by_one)

        self.strips(depth, strip)

    def _split(self, pairs: Value, to: Value, i: Value, wide: Value) -> None:
        """Two rows of words from a row of pairs of elements; that is half of the moves."""
        f, lanes = self.f, self.f.module.target.vector_bytes // 4

        def some(j: Value) -> None:
            both = f.load(typed("u32", lanes), f.at(pairs, i * wide + j, self.dot.word))
            for k, bits in enumerate((both, both >> 16)):
                half = f.bitcast(f.convert(bits, "u16"), typed(self.element, lanes))
                at = f.at(to, (i * 2 + k) * wide + j, self.dot.word)
                f.store(f.convert(half, self.dot.word), at)

        each(f, 0, wide, some, lanes)


def text(element: str, dot: str, target: Host) -> str:
    """`multiply(job)`: float16 or bfloat16 in, and out."""
    module = Module(target)
    module.declare("@funct_parallel", PARALLEL)
    made = DOTS[dot]
    turn = turn_name(made.word, target.vector_bytes)
    lay = _define_lay(module, element, made)
    _define_unit(module, element, made, turn, lay)
    f = module.function("multiply", [("job", PTR)])
    tasks = Record(f, JOB, f.arguments[0]).tasks
    f.line(f"call void @funct_parallel(ptr @units, {f.arguments[0]!r}, {tasks!r})")
    f.ret()
    return module.text()


def _define_lay(module: Module, element: str, dot: Dot) -> str:
    """Print `to[p, i, j] = word of source[per i + (0, …, per - 1), p * wide + j]`; its name.

    wide: two vectors, a panel's columns. The function takes (source, to, rows of words, columns,
    row, to_row, to_panel).
    """
    names = (("source", PTR), ("to", PTR), *[(n, I64) for n in _LAY])
    f = module.function("lay", names, local=True)
    source, to, rows, columns, row, to_row, to_panel = f.arguments
    lanes = wide = 2 * module.target.vector_bytes // 4

    def line(i: Value) -> None:
        begin = f.at(source, i * row * dot.per_word, element)
        target = f.at(to, i * to_row, dot.word)
        for ahead in range(dot.per_word):  # rows may be too far apart for the processor to guess
            f.prefetch(f.at(begin, (AHEAD * dot.per_word + ahead) * row, element))

        def some(j: Value, lanes: int) -> None:
            panel = f.div(j, wide)
            here = f.at(begin, j, element)
            there = f.at(target, panel * to_panel + (j - panel * wide), dot.word)
            x = f.load(typed(element, lanes), here)
            if dot.per_word == 1:
                f.store(f.convert(x, dot.word), there)
                return
            other = f.load(typed(element, lanes), f.at(here, row, element))
            if lanes == 1:
                low, high = (Value(f, v.name, typed("u16")) for v in (x, other))
                f.store(f.convert(low, "u32") | f.convert(high, "u32") << 16, there)
                return
            half = lanes // 2
            for part in range(2):
                order = [k for n in range(part * half, (part + 1) * half) for k in (n, lanes + n)]
                f.store(f.shuffle(x, other, order), f.at(there, part * half, dot.word))

        _in_vectors(f, columns, lanes, some)

    each(f, 0, rows, line)
    f.ret()
    return f.name


_LAY = ("rows", "columns", "row", "to_row", "to_panel")


def _define_unit(module: Module, element: str, dot: Dot, turn: str, lay: str) -> None:
    """`units(job, task)`: the units task, task + tasks, …"""
    f = module.function("units", [("job", PTR), ("task", I64)], local=True)
    job, task = Record(f, JOB, f.arguments[0]), f.arguments[1]
    words = _Words(f, job, element, dot, turn, lay)
    word, per = dot.word, dot.per_word

    def room(name: str) -> Value:
        own = f.at(job.pointer("scratch"), task * job.scratch_step, word)
        return f.at(own, getattr(job, name), word)

    def operand(name: str, n: Value) -> Value:
        return f.at(job.pointer(name), f.load(I64, f.at(job.pointer(f"{name}_places"), n, "i64")),
                    element)  # fmt: skip

    def unit(u: Value) -> None:
        rest = f.div(u, job.splits)
        split = u - rest * job.splits
        n = f.div(rest, job.blocks)
        first = (rest - n * job.blocks) * job.block_rows
        count = f.min(job.block_rows, job.rows - first)
        turned = f.ne(job.x_turned, 0)
        begin = words.place(operand("x", n), f.select(turned, first, first * job.x_row))

        def packed() -> list[Value]:
            words.fill_left(begin, room("left"), room("lines"), count)
            return [room("left")]

        (left,) = f.branch(turned, packed, lambda: [begin]) if words.as_they_lie else packed()
        start = split * job.split_columns
        stop = f.min(start + job.split_columns, job.columns)
        out = words.place(job.pointer("out"), (n * job.rows + first) * job.columns)
        y = operand("y", n)

        def chunk(c: Value) -> None:
            wide = f.min(job.chunk, stop - c)
            multiply(left, y, count, c, wide)
            _round(words, room("sums"), words.place(out, c), count, wide)

        def few() -> list[Value]:
            begin = left, words.place(y, start), words.place(out, start)
            few_rows(f, job, element, dot, *begin, room("sums"), count, stop - start)
            return []

        def many() -> list[Value]:
            each(f, start, stop, chunk, job.chunk)
            return []

        def by_columns() -> list[Value]:
            few_rows_by_columns(
                f, job, element, dot, left, words.place(y, start * job.y_row),
                words.place(out, start), count, stop - start,
            )  # fmt: skip
            return []

        def turned_or_many() -> list[Value]:
            wide = stop - start >= module.target.vector_bytes // 4
            here = f.ne(job.y_turned, 0) & (job.rows <= FEW_TURNED) & wide
            return f.branch(here, by_columns, many)

        f.branch(
            f.ne(job.few, 0) & f.eq(job.y_turned, 0), few, turned_or_many if per == 1 else many
        )

    def multiply(left: Value, y: Value, count: Value, c: Value, columns: Value) -> None:
        panels, sums, lines = room("panels"), room("sums"), room("lines")

        def piece(k: Value) -> None:
            depth = f.min(job.piece, job.depth - k)
            add = Value(f, f.convert(k > 0, "u64").name, I64)

            at, deep = c, k * per
            turned = f.ne(job.y_turned, 0)
            place = f.select(turned, at * job.y_row + deep, deep * job.y_row + at)
            begin = words.place(y, place)

            def panel(o: Value) -> None:
                wide = f.select(columns - o > job.lanes, job.lanes * 2, job.lanes)
                b = f.at(panels, o * depth, word)
                row = f.select(f.eq(wide, job.lanes), job.most_rows + 1, f.constant(I64, 0))
                table = f.at(job.pointer("tiles"), row, "i64")
                given = [
                    job.pointer("taps"), f.constant(I64, 1), b, depth, wide, f.at(sums, o, word),
                    add,
                ]  # fmt: skip
                a, zero = f.at(left, k, word), f.constant(I64, 0)
                call_tiles(f, table, job.most_rows, a, job.pointer("pixels"), zero, count, given)

            words.fill_panels(begin, panels, lines, depth, columns)
            each(f, 0, columns, panel, job.lanes * 2)

        each(f, 0, job.depth, piece, job.piece)

    each(f, task, job.units, unit, job.tasks)
    f.ret()


def _round(words: _Words, sums: Value, out: Value, count: Value, columns: Value) -> None:
    """Bring sums to the result."""
    f, job, element = words.f, words.job, words.element
    lanes = words.f.module.target.vector_bytes // 4

    def row(m: Value) -> None:
        source = f.at(sums, m * job.chunk, "f32")
        to = words.place(out, m * job.columns)

        def some(j: Value, lanes: int) -> None:
            x = f.load(typed("f32", lanes), f.at(source, j, "f32"))
            f.store(f.convert(x, element), f.at(to, j, element))

        _in_vectors(f, columns, lanes, some)

    each(f, 0, count, row)


def _in_vectors(f: Emitter, count: Value, lanes: int, some: Callable[[Value, int], None]) -> None:
    """some(first, lanes) for so many elements: in the widest vectors first, the rest one by one."""

    def vectors(start: Value | int, lanes: int) -> None:
        stop = count & -lanes
        each(f, start, stop, lambda j: some(j, lanes), lanes)
        if lanes > 1:
            narrower = lanes // 2 if lanes > NARROWEST else 1
            f.when(stop < count, lambda: vectors(stop, narrower))

    vectors(0, lanes)
