"""The loops of convolutions of small groups whose channels are last: vectors lie along channels.

A text is printed for a kernel, its strides and its dilation; sizes and padding are arguments. Lines
above and below the image are one line of zeros, which pixels beside it read as well.

Where a group has more channels than one, a vector holds whole groups, and meets the weights of one
channel of each after the other: that channel is put where those of its group are.

Note [Packed weights]
    Channels are dealt out in blocks of a few vectors, the last of which overlaps the one before
    it. Weights stand block by block, all taps of a block one after the other: a strip of pixels
    reads them from one address.

Note [Asking ahead]
    A strip of the adjoint in w reads many streams, a little of each. So it asks for what the line
    of g, and the lowest of the lines of x, hold some pixels later; lines above were read before.
    Strips of a convolution do so where a line of x fills the first-level cache; of shorter ones
    what is asked for is there.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from math import prod

from msgspec import Struct

from funct.device import Host
from funct.kernels.cpu.convolution.lines import Taps, begin
from funct.kernels.cpu.record import Fields, Record
from funct.kernels.llvm import I64, PTR, Emitter, Value, each, typed

__all__ = ["PIXELS", "Pattern", "pixels_text", "strip_pixels", "sums_text"]

PIXELS = Fields((
    "tasks", "lines", "channels", "x", "w", "y", "zeros", "size0", "size1", "size2", "out0", "out1",
    "out2", "low0", "low1", "low2",
))  # fmt: skip
# pixels of a strip, and of one in short lines; fewer where they read columns that lie apart: what
# memory is asked for in small pieces of many places comes late
_WIDTH = {16: (4, 2), 32: (8, 4)}  # by registers, in which their sums are,
_HELD = {16: 3, 32: 11}  # and weights of so many taps
_TOGETHER = 8  # taps whose sums are in registers,
_MET = {16: (4, 1), 32: (9, 3, 1)}  # beside a strip of so many pixels of g, by registers
_AHEAD = 2048  # bytes; see Note [Asking ahead]
_CACHE_LINE = 64


class Pattern(Struct, frozen=True, cache_hash=True):
    """What a text is printed for; phases, steps, strides and kernel are those of `lines.Pattern`.

    vectors: of a block of channels. group: channels of a group, of which a vector holds some whole
    ones. streams: as there. asks: whether strips ask ahead. short: whether lines are shorter than
    the strips of others.
    """

    element: str
    phases: tuple[tuple[Taps, ...], ...]
    steps: tuple[int, ...]
    strides: tuple[int, ...]
    kernel: tuple[int, int, int]
    vectors: int
    group: int = 1
    streams: bool = False
    asks: bool = False
    short: bool = False


class _Line:
    """Prints the work on one line of the result, the pixels of one class."""

    def __init__(
        self, f: Emitter, job: Record, pattern: Pattern, target: Host, taps: tuple[Taps, ...]
    ) -> None:
        self.f, self.job, self.pattern, self.taps = f, job, pattern, taps
        self.lanes = target.vector_bytes // typed(pattern.element).bytes
        self.vector = typed(pattern.element, self.lanes)
        self.block = self.lanes * pattern.vectors
        self.columns = sorted({o for _, o in taps[2]})
        self.registers = _registers(target)

    def at(self, pointer: Value, offset: Value | int) -> Value:
        """The address of an element."""
        return self.f.at(pointer, offset, self.pattern.element)

    def rows(self, n: Value, i0: Value, i1: Value) -> list[tuple[int, int, Value]]:
        """The lines of image n that pixels of the class at (i0, i1) read, by taps."""
        f, job, strides = self.f, self.job, self.pattern.strides
        found = []
        for (tap0, o0), (tap1, o1) in itertools.product(*self.taps[:2]):
            z, y = i0 * strides[0] + (o0 - job.low0), i1 * strides[1] + (o1 - job.low1)
            inside = (z >= 0) & (z < job.size0) & (y >= 0) & (y < job.size1)
            line = ((n * job.size0 + z) * job.size1 + y) * (job.size2 * job.channels)
            row = f.select(inside, self.at(job.pointer("x"), line), job.pointer("zeros"))
            found.append((tap0, tap1, row))
        return found

    def weight(self, tap0: int, tap1: int, tap2: int, turn: int = 0) -> int:
        """Where the weights of a tap, for one channel of each group, begin in a block."""
        _, k1, k2 = self.pattern.kernel
        tap = (tap0 * k1 + tap1) * k2 + tap2
        return (tap * self.pattern.group + turn) * self.block

    def turned(self, x: Value, turn: int) -> Value:
        """Where each channel is, that one of its group."""
        group = self.pattern.group
        if group == 1:
            return x
        return self.f.shuffle(x, None, [k - k % group + turn for k in range(self.lanes)])

    def inner(self, q: Value, width: int) -> Value:
        """Whether the pixels from q on read no column beside the image."""
        if not self.columns:
            return self.f.eq(q, q)
        first = q * self.pattern.strides[2] - self.job.low2
        reach = (width - 1) * self.pattern.strides[2] + self.columns[-1]
        return (first + self.columns[0] >= 0) & (first + reach < self.job.size2)

    def places(
        self, rows: list[tuple[int, int, Value]], q: Value, width: int, inner: bool
    ) -> dict[tuple[int, int, int], Value]:
        """The address of the pixel that each row, at each column from q on, is read at."""
        f, job, stride = self.f, self.job, self.pattern.strides[2]
        wanted = sorted({j * stride + o for j in range(width) for o in self.columns})
        found = {}
        for column in wanted:
            at = q * stride + (column - job.low2)
            offset = at * job.channels
            for tap0, tap1, row in rows:
                place = self.at(row, offset)
                if not inner:
                    place = f.select((at >= 0) & (at < job.size2), place, job.pointer("zeros"))
                found[tap0, tap1, column] = place
        return found

    def ahead(self, places: dict[tuple[int, int, int], Value], width: int) -> list[Value]:
        """The pixels of a strip that no line above and no strip before has read."""
        (taps0, taps1, _), stride = self.taps, self.pattern.strides[2]
        if not (self.pattern.asks and taps0 and taps1 and self.columns):
            return []
        rows = [(taps0[-1][0], k) for k, o in taps1 if o > taps1[-1][1] - self.pattern.strides[1]]
        columns = sorted({c for _, _, c in places})[-width * stride :]
        return [places[*row, c] for row in rows for c in columns]

    def blocks(self, body: Callable[[Value, Value], None]) -> None:
        """`body(first channel, place of its block among the weights)` for each block."""
        taps = prod(self.pattern.kernel) * self.pattern.group
        last = self.job.channels - self.block

        def one(c: Value) -> None:
            body(self.f.min(c, last), c * taps)

        each(self.f, 0, self.job.channels, one, self.block)


def _dealt(name: str, target: Host, line: Callable[..., None]) -> str:
    """A text whose tasks take some lines each: `line(f, job, task, number, (image, i0, i1))`."""
    module = begin(target, name, "range", PIXELS)
    f = module.function("range", [("job", PTR), ("task", I64)], local=True)
    job, task = Record(f, PIXELS, f.arguments[0]), f.arguments[1]

    def unit(u: Value) -> None:
        plane = f.div(u, job.out1)
        image = f.div(plane, job.out0)
        line(f, job, task, u, (image, plane - image * job.out0, u - plane * job.out1))

    each(f, f.div(task * job.lines, job.tasks), f.div((task + 1) * job.lines, job.tasks), unit)
    f.ret()
    return module.text()


# a convolution, or its adjoint in x -------------------------------------------------------------


def pixels_text(pattern: Pattern, target: Host) -> str:
    """`pixels(job)`: the lines of the result."""

    def line(f: Emitter, job: Record, _: Value, u: Value, place: tuple[Value, ...]) -> None:
        n, t0, t1 = place
        step0, step1 = pattern.steps[:2]
        i0, i1 = f.div(t0, step0), f.div(t1, step1)
        y = f.at(job.pointer("y"), u * job.out2 * job.channels, pattern.element)
        for b0, b1 in itertools.product(*[range(len(p)) for p in pattern.phases[:2]]):

            def of_class(b0: int = b0, b1: int = b1) -> None:
                for b2, taps2 in enumerate(pattern.phases[2]):
                    taps = (pattern.phases[0][b0], pattern.phases[1][b1], taps2)
                    _convolved(_Line(f, job, pattern, target, taps), b2, y, n, i0, i1)

            ours = f.eq(t0 - i0 * step0, b0) & f.eq(t1 - i1 * step1, b1)
            f.when(ours, of_class)

    return _dealt("pixels", target, line)


def _convolved(line: _Line, first: int, y: Value, n: Value, i0: Value, i1: Value) -> None:
    """The pixels `first`, `first + step`, … of the line at y."""
    f, job = line.f, line.job
    step = line.pattern.steps[2]
    rows = line.rows(n, i0, i1)
    count = f.div(job.out2 - first + (step - 1), step)

    def strip(q: Value, width: int, inner: bool) -> list[Value]:
        places = line.places(rows, q, width, inner)
        targets = [line.at(y, ((q + j) * step + first) * job.channels) for j in range(width)]

        ahead = line.ahead(places, width)

        def block(c: Value, packed: Value) -> None:
            w = line.at(job.pointer("w"), packed)
            for place in ahead:
                f.prefetch(line.at(place, c + _AHEAD // line.vector.bytes * line.lanes))
            for j, v, total in _sums(line, places, w, c, width):
                to = line.at(targets[j], c + v * line.lanes)
                f.store(total, to, streaming=line.pattern.streams)

        line.blocks(block)
        return []

    def strips(width: int) -> list[Value]:
        def one(q: Value) -> None:
            q = f.min(q, count - width)
            f.branch(
                line.inner(q, width), lambda: strip(q, width, True), lambda: strip(q, width, False)
            )

        each(f, 0, count, one, width)
        return []

    width = strip_pixels(line.pattern.strides[2], f.module.target, line.pattern.short)
    f.branch(count >= width, lambda: strips(width), lambda: strips(1))


def strip_pixels(stride: int, target: Host, short: bool) -> int:
    """Of the strips of a convolution."""
    return max(1, _WIDTH[_registers(target)][short] // stride)


def _registers(target: Host) -> int:
    return 32 if target.vector_bytes == 64 else 16


def _widths(pixels: Sequence[int], pattern: Pattern) -> list[int]:
    """Of strips, the widest first."""
    return sorted({max(1, count // pattern.strides[2]) for count in pixels}, reverse=True)


def _sums(
    line: _Line, places: dict[tuple[int, int, int], Value], w: Value, c: Value, width: int
) -> list[tuple[int, int, Value]]:
    """(pixel, vector, sum over taps) of a block of channels from c on. Pixels are loaded once for
    some taps of a row, whose weights are in registers beside the sums.
    """
    f, stride, group = line.f, line.pattern.strides[2], line.pattern.group
    held = dict.fromkeys(
        itertools.product(range(width), range(line.pattern.vectors)), f.constant(line.vector, 0)
    )
    most = _HELD[line.registers]
    pieces = [line.taps[2][k : k + most] for k in range(0, len(line.taps[2]), most)]
    rows = itertools.product(line.taps[0], line.taps[1], pieces)
    for (tap0, _), (tap1, _), taps2 in rows:
        columns = sorted({j * stride + o for j in range(width) for _, o in taps2})
        for v, turn in itertools.product(range(line.pattern.vectors), range(group)):
            of_vector = line.at(w, v * line.lanes)
            weights = {
                o: f.load(line.vector, line.at(of_vector, line.weight(tap0, tap1, k, turn)))
                for k, o in taps2
            }
            for column in columns:
                place = line.at(places[tap0, tap1, column], c + v * line.lanes)
                x = line.turned(f.load(line.vector, place), turn)
                for o, weight in weights.items():
                    j, apart = divmod(column - o, stride)
                    if (j, v) in held and not apart:
                        held[j, v] = f.fma(x, weight, held[j, v])
    return [(j, v, total) for (j, v), total in held.items()]


# the adjoint in w -------------------------------------------------------------------------------


def sums_text(pattern: Pattern, target: Host) -> str:
    """`sums(job)`: each task adds the products of its lines of y with x to weights of its own.

    w: one packed array of weights for each task, zeros before.
    """

    def line(f: Emitter, job: Record, task: Value, u: Value, place: tuple[Value, ...]) -> None:
        taps0, taps1, taps2 = (p[0] for p in pattern.phases)
        n, i0, i1 = place
        g = f.at(job.pointer("y"), u * job.out2 * job.channels, pattern.element)
        blocks = f.div(job.channels + lanes - 1, lanes)
        own = task * blocks * (lanes * prod(pattern.kernel) * pattern.group)
        w = f.at(job.pointer("w"), own, pattern.element)
        _correlated(_Line(f, job, pattern, target, (taps0, taps1, taps2)), w, g, n, i0, i1)

    lanes = target.vector_bytes // typed(pattern.element).bytes * pattern.vectors
    return _dealt("sums", target, line)


def _correlated(line: _Line, w: Value, g: Value, n: Value, i0: Value, i1: Value) -> None:
    """Add the products of a line of g with the rows that its taps read to their weights."""
    f, job, stride = line.f, line.job, line.pattern.strides[2]
    rows = line.rows(n, i0, i1)
    start = f.max(f.min(f.div(job.low2 + (stride - 1), stride), job.out2), 0)
    stop = f.div(f.max(job.size2 + job.low2 - line.columns[-1] + (stride - 1), 0), stride)
    stop = f.max(f.min(stop, job.out2), start)

    def pixels(first: Value | int, last: Value, width: int, inner: bool) -> None:
        def strip(q: Value) -> None:
            places = line.places(rows, q, width, inner)
            met = [line.at(g, (q + j) * job.channels) for j in range(width)]
            line.blocks(lambda c, packed: _add(line, places, met, line.at(w, packed), c))

        each(f, first, last, strip, width)

    pixels(0, start, 1, False)
    for width in _widths(_MET[line.registers], line.pattern):
        whole = stop - f.rem(stop - start, width)
        pixels(start, whole, width, True)
        start = whole
    pixels(stop, job.out2, 1, False)


def _add(
    line: _Line, places: dict[tuple[int, int, int], Value], met: list[Value], w: Value, c: Value
) -> None:
    """Add to the weights of a block of channels what a strip gives: those of a row of taps are in
    registers while the row's pixels are loaded, each once.
    """
    f, stride = line.f, line.pattern.strides[2]
    terms = [(turn, k, o) for turn in range(line.pattern.group) for k, o in line.taps[2]]
    pieces = [
        (tap0, tap1, terms[k : k + _TOGETHER])
        for (tap0, _), (tap1, _) in itertools.product(*line.taps[:2])
        for k in range(0, len(terms), _TOGETHER)
    ]
    lowest = line.taps[0][-1][0], line.taps[1][-1][0]
    behind = [places[(*lowest, j * stride + line.columns[0])] for j in range(len(met))]
    for v in range(line.pattern.vectors):
        at = c + v * line.lanes
        ours = [f.load(line.vector, line.at(g, at)) for g in met]
        if v * line.lanes * line.vector.bytes % _CACHE_LINE == 0:  # see Note [Asking ahead]
            for pixel in (*met, *behind):
                f.prefetch(line.at(pixel, at + _AHEAD // line.vector.bytes))
        for tap0, tap1, some in pieces:
            first = line.at(w, v * line.lanes)
            cells = {
                (turn, k): line.at(first, line.weight(tap0, tap1, k, turn)) for turn, k, _ in some
            }
            totals = {k: f.load(line.vector, cell) for k, cell in cells.items()}
            for column in sorted({j * stride + o for j in range(len(ours)) for *_, o in some}):
                x = f.load(line.vector, line.at(places[tap0, tap1, column], at))
                for turn in sorted({turn for turn, *_ in some}):
                    turned = line.turned(x, turn)
                    for (other, k, o), (j, g) in itertools.product(some, enumerate(ours)):
                        if other == turn and j * stride + o == column:
                            totals[turn, k] = f.fma(turned, g, totals[turn, k])
            for key, cell in cells.items():
                f.store(totals[key], cell)
