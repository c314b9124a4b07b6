"""Transposing copies: the change between channels first and channels last.

Square tiles of one vector's width are transposed in registers; a tile at the edge overlaps the one
before it. So are a few rows, as of the colours of an image, with zeros for those that lack. Where
any other side is shorter than a vector, as in images of 14 x 14, masks cut tiles; processors that
mask slowly copy element by element, and so do all where the other side has a few elements too.

Note [Asking ahead]
    A tile reads a line of the cache from each of many rows that lie far apart, as channels of an
    image do; the processor's own guesses follow few of them. So each load asks for what stands
    some lines later in its row, or in the rows of pixels behind it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

from funct.device import Host, host, printed
from funct.device.machine_code import LEAN, offer
from funct.kernels.llvm import I64, PTR, Emitter, Module, Value, each, typed

__all__ = ["define_turn", "transposed", "turn_name", "turn_text"]

_LANE = 16  # bytes within which x86 interleaves in one instruction
_FEW = (1, 2, 3, 4)  # rows
_AHEAD = 256  # bytes; see Note [Asking ahead]


def turn_name(element: str, width: int) -> str:
    """The name under which any text may call `define_turn`'s function: to make its code takes
    longer than that of most who call it, so there is one for all.
    """
    return f"funct_turn_{element}_{width}"


def define_turn(module: Module, element: str, width: int) -> None:
    """Print `to[j * to_row + i] = source[i * row + j]` for i < rows, j < columns.

    The function takes (source, to, rows, columns, row, to_row). The two do not overlap.
    """
    f = module.function(
        turn_name(element, width),
        [
            ("source", PTR),
            ("to", PTR),
            ("rows", I64),
            ("columns", I64),
            ("row", I64),
            ("to_row", I64),
        ],
    )
    source, to, rows, columns, row, to_row = f.arguments
    lanes = width // typed(element).bytes
    vector = typed(element, lanes)
    group = min(_LANE // vector.scalar.bytes, lanes)

    def edge(start: Value, stop: Value) -> Value:
        last = stop - lanes
        return f.select(start > last, last, start)

    def ask(first: Value) -> None:
        for i in range(lanes):
            f.prefetch(f.at(first, row * i + _AHEAD // vector.scalar.bytes, element))

    def tile(i0: Value, j0: Value) -> None:
        first = f.at(f.at(source, i0 * row, element), j0, element)
        ask(first)
        held = [f.load(vector, f.at(first, row * i, element)) for i in range(lanes)]
        begin = f.at(f.at(to, j0 * to_row, element), i0, element)
        for j, v in enumerate(transposed(f, held)):
            f.store(v, f.at(begin, to_row * j, element))

    def down(j: Value, _: list[Value]) -> list[Value]:
        j0 = edge(j, columns)

        def across(i: Value, _: list[Value]) -> list[Value]:
            tile(edge(i, rows), j0)
            return []

        f.loop(0, rows, lanes, across)
        return []

    def one(i: Value, j: Value) -> None:
        x = f.load(vector.scalar, f.at(source, i * row + j, element))
        f.store(x, f.at(to, j * to_row + i, element))

    def by_columns() -> list[Value]:
        each(f, 0, columns, lambda j: each(f, 0, rows, lambda i: one(i, j)))
        return []

    def by_rows() -> list[Value]:
        each(f, 0, rows, lambda i: each(f, 0, columns, lambda j: one(i, j)))
        return []

    def masked(j0: Value, _: list[Value]) -> list[Value]:
        """A tile of as many rows and columns as are left."""
        columns_here = columns - j0
        read = f.first_lanes(lanes, columns_here)

        def across(i0: Value, _: list[Value]) -> list[Value]:
            first = f.at(f.at(source, i0 * row, element), j0, element)
            ask(first)
            last = rows - i0 - 1
            held = [
                f.load(vector, f.at(first, f.min(last, i) * row, element), read)
                for i in range(lanes)
            ]
            written = f.first_lanes(lanes, rows - i0)
            begin = f.at(f.at(to, j0 * to_row, element), i0, element)
            for j, v in enumerate(transposed(f, held)):
                place = f.at(begin, to_row * j, element)
                f.when(columns_here > j, functools.partial(f.store, v, place, written))
            return []

        f.loop(0, rows, lanes, across, maybe_empty=True)
        return []

    def few(count: int) -> Callable[[Value, list[Value]], list[Value]]:
        """Some columns of so many rows."""

        def some(j: Value, _: list[Value]) -> list[Value]:
            j0 = edge(j, columns)
            first = f.at(source, j0, element)
            begin = f.at(to, j0 * to_row, element)
            for i in range(0, count, group):
                here = range(i, min(i + group, count))
                held = [f.load(vector, f.at(first, row * k, element)) for k in here]
                for k, v in enumerate(_groups(f, held, group)):
                    v = f.piece(v, 0, len(here))
                    f.store(v, f.at(f.at(begin, to_row * k, element), i, element))
            return []

        return some

    def single(j: Value, _: list[Value]) -> list[Value]:
        """Some columns of one row, each by itself."""
        j0 = edge(j, columns)
        first, begin = f.at(source, j0, element), f.at(to, j0 * to_row, element)
        for k in range(lanes):
            x = f.load(vector.scalar, f.at(first, k, element))
            f.store(x, f.at(begin, to_row * k, element))
        return []

    def tiles() -> list[Value]:
        f.loop(0, columns, lanes, down)
        return []

    def pieces() -> list[Value]:
        if not module.target.has("avx512vl"):
            return by_columns()

        def by_tiles() -> list[Value]:
            f.loop(0, columns, lanes, masked, maybe_empty=True)
            return []

        def others() -> list[Value]:
            return f.branch(columns <= _FEW[1], by_columns, by_tiles)

        return f.branch((columns < lanes) & (rows <= _FEW[-1]), by_rows, others)

    def narrow(counts: Sequence[int]) -> Callable[[], list[Value]]:
        """For these numbers of rows in tiles, for others in pieces."""
        if not counts:
            return pieces

        def these() -> list[Value]:
            f.loop(0, columns, lanes, few(counts[0]) if counts[0] > 1 else single)
            return []

        def choose() -> list[Value]:
            return f.branch(f.eq(rows, counts[0]), these, narrow(counts[1:]))

        return choose

    def lines() -> list[Value]:
        return f.branch(rows >= lanes, tiles, narrow([n for n in _FEW if n < lanes]))

    f.branch(columns >= lanes, lines, pieces)
    f.ret()


@functools.cache
def turn_text(element: str, width: int, target: Host) -> str:
    """The function as a text of its own."""
    module = Module(target)
    define_turn(module, element, width)
    return module.text()


@functools.cache
def _address(element: str, width: int) -> int:
    code = printed(turn_text, element, width, host(), opt=LEAN)
    return code.keep().address(turn_name(element, width))


for _element in ("f32", "f64", "i32"):
    for _width in (16, 32, 64):
        offer(turn_name(_element, _width), functools.partial(_address, _element, _width))


def _groups(f: Emitter, rows: list[Value], group: int) -> list[Value]:
    """The columns of a few rows, 16 bytes each, behind which lies anything if there are less."""
    lanes = rows[0].type.lanes
    rows = rows + rows[:1] * (group - len(rows))
    half = 1
    while half < group:  # pairs of words that were adjacent in a column go on together
        low, high = (
            [
                k + apart
                for first in range(start, lanes, group)
                for unit in range(first, first + group // 2, half)
                for apart in (0, lanes)
                for k in range(unit, unit + half)
            ]
            for start in (0, group // 2)
        )
        step = len(rows) // 2 if half > 1 else 1
        pairs = [(k, k + step) for k in range(len(rows)) if not k & step]
        rows = [f.shuffle(rows[a], rows[b], which) for a, b in pairs for which in (low, high)]
        half *= 2
    return [f.piece(rows[k % group], k // group * group, group) for k in range(lanes)]


def transposed(f: Emitter, rows: list[Value]) -> list[Value]:
    """A square of vectors, transposed: interleaving inside of 16 bytes, then moving 16 at once."""
    n = len(rows)
    group = _LANE // rows[0].type.bytes
    half = 1
    while half < min(group, n):
        low, high = [], []
        for start in range(0, n, group):
            for unit in range(0, group // 2, half):
                one = range(start + unit, start + unit + half)
                low += [*one, *[n + k for k in one]]
                one = range(start + group // 2 + unit, start + group // 2 + unit + half)
                high += [*one, *[n + k for k in one]]
        rows = _paired(f, rows, half, low, high)
        half *= 2
    order = [_reversed_bits(k % group, group) + k // group * group for k in range(n)]
    rows = [rows[k] for k in order]
    while half < n:
        low = [k if not k & half else n + k - half for k in range(n)]
        high = [k + half if not k & half else n + k for k in range(n)]
        rows = _paired(f, rows, half, low, high)
        half *= 2
    return rows


def _paired(
    f: Emitter, rows: list[Value], apart: int, low: list[int], high: list[int]
) -> list[Value]:
    out = list(rows)
    for i in range(len(rows)):
        if not i & apart:
            out[i] = f.shuffle(rows[i], rows[i + apart], low)
            out[i + apart] = f.shuffle(rows[i], rows[i + apart], high)
    return out


def _reversed_bits(k: int, n: int) -> int:
    out = 0
    while n > 1:
        out, k, n = out << 1 | k & 1, k >> 1, n >> 1
    return out
