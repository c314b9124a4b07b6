"""The loops of depthwise convolutions, printed: strips of a few lines of the result at a time.

A text is printed for a kernel, its strides and its dilation; sizes and padding are arguments. Lines
are read where they lie: no plane is copied, and none is padded.

Note [Strips]
    A vector of a line of x is loaded once for each tap along the line, and meets all lines of the
    strip that its taps belong to. With weights in registers the products are what bounds: 9 for
    each vector of a 3 × 3 kernel's result.

Note [Shared lines]
    Outputs of the same channels are summed several at a time. A vector that was loaded meets the
    weights of all of them, which are read where they are multiplied; and where a strip has few
    lines its sums alone would be fewer than keep the units busy.

Note [Edges]
    Lines above and below the image are one line of zeros. Vectors that reach over the ends of a
    line read what is there, lines before and behind, and zero it; so the planes at both ends of
    the array are read from copies with room around them. The last vector of a line of the result
    overlaps the one before it. Where lines are shorter than a vector it reaches into the next line,
    which is written later, but for the last one.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Literal

from msgspec import Struct

from funct.device import Host
from funct.kernels.cpu.quantized.narrowing import TO_CODES, to_codes
from funct.kernels.cpu.record import Fields, Record
from funct.kernels.cpu.tasks import deal_out
from funct.kernels.llvm import I64, PTR, Emitter, Module, Type, Value, each, typed

__all__ = [
    "NEAR", "PLANES", "SIZES", "Ends", "Lines", "Pattern", "Strips", "Taps", "begin", "planes_text",
]  # fmt: skip

SIZES = (
    "size0", "size1", "size2", "out0", "out1", "out2", "low0", "low1", "low2",
    "inner_start", "inner_last", "masks", "zeros", "head", "tail", "end_planes", "planes",
)  # fmt: skip
PLANES = Fields((
    "tasks", "units", "outputs", "terms", "shared", "row_unit", "row_step", "inputs", "x", "w", "y",
    "x_zero", "order", *SIZES, *TO_CODES,
))  # fmt: skip

NEAR = 8  # elements of a line apart, and nearer ones are taken from whole vectors

Taps = tuple[tuple[int, int], ...]
Ends = Literal["overlap", "reach", "mask"]


class Pattern(Struct, frozen=True, cache_hash=True):
    """What a text is printed for.

    phases: for each axis, the taps (number, offset) of each class of pixels; see `axes.py`. steps:
    between pixels of a class, in the result; strides: the same in what is read. height: lines of
    a strip. ends: what happens at the end of a line. several: whether planes are summed. codes:
    the elements of x and of the result where these are codes; sums begin with an offset then, which
    has the zero point in it, and what is outside of the image is the zero point. streams: whether
    the result, which is aligned to vectors, is written past the caches. vector_bytes: of the
    widest vectors, where lines are too short for those of the target. sharing: the outputs of the
    same channels that are summed at a time. waits: whether sums wait in memory for the next image.
    """

    element: str
    phases: tuple[tuple[Taps, ...], ...]
    steps: tuple[int, ...]
    strides: tuple[int, ...]
    kernel: tuple[int, ...]
    height: int
    ends: Ends
    several: bool
    codes: tuple[str, str] | None = None
    streams: bool = False
    vector_bytes: int = 1 << 10
    sharing: int = 1
    waits: bool = False


class Lines:
    """Prints loads of a strip's lines. taps0, taps1: of the class of lines; columns: all offsets
    along a line.
    """

    def __init__(
        self, f: Emitter, job: Record, pattern: Pattern, lanes: int, height: int,
        taps0: Taps, taps1: Taps,
    ) -> None:  # fmt: skip
        self.f, self.job, self.pattern, self.lanes = f, job, pattern, lanes
        self.vector: Type = typed(pattern.element, lanes)
        self.read, self.written = pattern.codes or (pattern.element, pattern.element)
        self.height, self.taps0, self.taps1 = height, taps0, taps1
        stride = pattern.strides[1]
        self.rows = sorted({i * stride + o for i in range(height) for _, o in taps1})
        self.columns = sorted({o for taps in pattern.phases[2] for _, o in taps})

    def at(self, pointer: Value, offset: Value | int) -> Value:
        """The address of an element of what is computed with."""
        return self.f.at(pointer, offset, self.pattern.element)

    def of_x(self, pointer: Value, offset: Value | int) -> Value:
        """The address of an element of x."""
        return self.f.at(pointer, offset, self.read)

    def of_y(self, pointer: Value, offset: Value | int) -> Value:
        """The address of an element of the result."""
        return self.f.at(pointer, offset, self.written)

    def pointers(self, plane: Value, i0: Value, i1: Value) -> list[tuple[int, int, Value]]:
        """The lines that the strip at (i0, i1) reads, by taps of the first axis and rows."""
        f, job, strides = self.f, self.job, self.pattern.strides
        unsigned, size1 = typed("u64"), job.size1
        zeros = job.pointer("zeros")
        found = []
        for tap0, offset in self.taps0:
            z = i0 * strides[0] + offset - job.low0
            y = i1 * strides[1] - job.low1
            line = self.of_x(plane, (z * size1 + y) * job.size2)
            y = f.select((z >= 0) & (z < job.size0), y, -(1 << 62))
            for row in self.rows:
                inside = Value(f, (y + row).name, unsigned) < Value(f, size1.name, unsigned)
                here = self.of_x(line, job.size2 * row)
                found.append((tap0, row, f.select(inside, here, zeros)))
        return found

    def source(self, number: Value) -> Value:
        """Plane `number` of x; see Note [Edges]."""
        f, job = self.f, self.job
        size = job.size0 * job.size1 * job.size2
        back = job.planes - number  # from the end
        plane = self.of_x(job.pointer("x"), number * size)
        tail = self.of_x(job.pointer("tail"), -back * size)
        plane = f.select(back <= job.end_planes, tail, plane)
        head = self.of_x(job.pointer("head"), number * size)
        return f.select(number < job.end_planes, head, plane)

    def together(self) -> list[list[int]]:
        """The offsets along a line, those beside each other that are taken of the same vectors."""
        groups = itertools.groupby(self.columns, lambda offset: self._begin(offset)[0])
        return [list(offsets) for _, offsets in groups]

    def _begin(self, offset: int) -> tuple[int, int]:
        """Where the vectors begin of which an offset is taken, and what stands before it there."""
        stride = self.pattern.strides[2]
        before = (offset - self.columns[0]) % stride if stride <= NEAR else 0
        return offset - before, before

    def load(self, line: Value, column: Value, offset: int, mask: Value | None = None) -> Value:
        """Every stride-th element from `column` and an offset on, and what stands for 0 where the
        mask is off.
        """
        f, lanes, stride = self.f, self.lanes, self.pattern.strides[2]
        vector = typed(self.read, lanes)
        begin, before = self._begin(offset)
        first = self.of_x(line, column + begin)
        if stride == 1:
            x = f.load(vector, first)
        elif stride <= NEAR:
            held = [f.load(vector, self.of_x(first, v * lanes)) for v in range(stride)]
            x = _every(f, held, stride, before)
        else:
            x = f.gather(vector, self.of_x(first, f.lanes(typed("i64", lanes)) * stride))
        x = f.convert(x, self.pattern.element)
        if mask is None:
            return x
        if self.pattern.codes is None:
            return self.masked(x, mask)
        zero = f.splat(f.convert(self.job.x_zero, self.pattern.element), lanes)
        return self.masked(x - zero, mask) + zero

    def masked(self, x: Value, mask: Value) -> Value:
        """0 where the mask is off."""
        f = self.f
        return f.bitcast(f.bitcast(x, self.vector.integer) & mask, self.vector)

    def inside(self, block: Value, offset: int) -> Value:
        """Ones in the lanes that count where the vector of a block is read at an offset."""
        f, integers = self.f, self.vector.integer
        place = block * len(self.columns) + self.lanes * self.columns.index(offset)
        return f.load(integers, f.at(self.job.pointer("masks"), place, integers.element))

    def met(self, row: int) -> list[tuple[int, int]]:
        """(line of the strip, tap along the second axis) that read this row."""
        stride = self.pattern.strides[1]
        return [
            (i, k) for i in range(self.height) for k, o in self.taps1 if i * stride + o == row
        ]  # fmt: skip


def _every(f: Emitter, held: list[Value], stride: int, first: int) -> Value:
    """Every stride-th lane of as many vectors, from `first` on. Halves of all lanes, which even
    strides take, serve several first ones, all by the same two orders.
    """
    lanes = held[0].type.lanes
    while stride % 2 == 0:
        order = list(range(first % 2, 2 * lanes, 2))
        held = [f.shuffle(a, b, order) for a, b in zip(held[::2], held[1::2])]
        stride, first = stride // 2, first // 2
    x = held[0]
    for v, further in enumerate(held[1:], 1):  # lanes of those so far stand at the begin
        places = [first + k * stride - v * lanes for k in range(lanes)]  # in this one
        x = f.shuffle(x, further, [
            min(lanes + p, 2 * lanes - 1) if p >= 0 else p + lanes if v == 1 else k
            for k, p in enumerate(places)
        ])  # fmt: skip
    return x


def _woven(f: Emitter, cells: list[Value]) -> list[Value]:
    """The lanes of vectors by turns: of all of them the first lane, then the second one."""
    n, lanes = len(cells), cells[0].type.lanes
    if n == 1:
        return cells
    if n % 2 == 0:
        order = [k for pair in zip(range(lanes), range(lanes, 2 * lanes)) for k in pair]
        pairs = zip(_woven(f, cells[::2]), _woven(f, cells[1::2]))
        return [f.shuffle(a, b, of) for a, b in pairs for of in (order[:lanes], order[lanes:])]
    found = []
    for first in range(0, n * lanes, lanes):
        wanted, x = [divmod(k, n) for k in range(first, first + lanes)], cells[0]
        for c in range(1, n):  # lanes of those before stand in their places by now
            order = [
                lanes + q if of == c else q if c == 1 else k for k, (q, of) in enumerate(wanted)
            ]
            x = f.shuffle(x, cells[c], order)
        found.append(x)
    return found


def begin(target: Host, name: str, work: str, fields: Fields) -> Module:
    """A text whose function `name(job)` deals `work` out to tasks."""
    module = Module(target)
    deal_out(module, name, work, fields)
    return module


# a convolution, or its adjoint in x -------------------------------------------------------------


def planes_text(pattern: Pattern, target: Host, strips: type[Strips] | None = None) -> str:
    """`planes(job)`: the planes of the result, by strips of numbers or by others."""
    strips = strips or Strips
    module = begin(target, "planes", "range", PLANES)
    lanes = target.vector_bytes // typed(pattern.element).bytes
    f = module.function("range", [("job", PTR), ("task", I64)], local=True)
    job, task = Record(f, PLANES, f.arguments[0]), f.arguments[1]
    start = f.div(task * job.units, job.tasks)
    stop = f.div((task + 1) * job.units, job.tasks)

    def unit(u: Value) -> None:
        for taps0, taps1 in itertools.product(*[range(len(p)) for p in pattern.phases[:2]]):
            strips(f, job, pattern, lanes, (taps0, taps1)).print(u)

    each(f, start, stop, unit)
    f.ret()
    return module.text()


class Strips(Lines):
    """Prints all strips of one class of lines in one plane."""

    def __init__(
        self, f: Emitter, job: Record, pattern: Pattern, lanes: int, phase: tuple[int, int]
    ) -> None:
        taps0, taps1 = (p[n] for p, n in zip(pattern.phases, phase))
        super().__init__(f, job, pattern, lanes, pattern.height, taps0, taps1)
        self.phase = phase

    def print(self, u: Value) -> None:
        """All strips of planes u, as many as share lines, of the result."""
        f, job, sharing = self.f, self.job, range(self.pattern.sharing)
        step0, step1, _ = self.pattern.steps
        u = u * len(sharing)
        image = f.div(u, job.outputs)
        k = u - image * job.outputs
        group = f.div(k, job.shared)
        self.first = image * job.inputs + group * job.terms  # plane
        begin = group * job.shared
        self.row = begin * job.terms + (k - begin) * job.row_unit
        self.w = [] if self.pattern.several else self.shared_weights(self.row)
        self.zero, self.end = self.ends_of(k)
        size = job.out0 * job.out1 * job.out2
        y = self.of_y(job.pointer("y"), u * size)
        count0 = f.div(job.out0 - self.phase[0] + step0 - 1, step0)
        count1 = f.div(job.out1 - self.phase[1] + step1 - 1, step1)

        def plane(i0: Value) -> None:
            line0 = (i0 * step0 + self.phase[0]) * job.out1

            def strip(i1: Value) -> None:
                last = count1 - self.height
                i1 = f.select(i1 > last, last, i1)
                lines = [
                    (line0 + (i1 + i) * step1 + self.phase[1]) * job.out2
                    for i in range(self.height)
                ]
                places = [self.of_y(y, size * o + line) for o in sharing for line in lines]
                self.strip(i0, i1, places, f.eq(i1, last))

            each(f, 0, count1, strip, self.height)

        each(f, 0, count0, plane)

    def ends_of(self, channel: Value) -> tuple[Value, Callable[[Value], Value]]:
        """What sums begin with, and what they become."""
        f, job = self.f, self.job
        if self.pattern.codes is None:
            return f.constant(self.vector, 0), lambda sums: sums
        offset, factor = (
            f.splat(f.load(self.vector.scalar, self.at(job.pointer(name), channel)), self.lanes)
            for name in ("bias", "multiplier")
        )  # fmt: skip
        codes = to_codes(f, job, self.written)
        return offset, lambda sums: codes(sums * factor)

    def shared_weights(self, number: Value) -> list[Value]:
        """Those of row `number`, and of the outputs that share its lines."""
        rows = [number + self.job.row_unit * o for o in range(self.pattern.sharing)]
        return [w for row in rows for w in self.weights(row)]

    def weights(self, number: Value) -> list[Value]:
        """Those of a plane, one by one in all lanes."""
        k0, k1, k2 = self.pattern.kernel
        return self.splats(number, k0 * k1 * k2)

    def splats(self, number: Value, count: int) -> list[Value]:
        """Row `number` of the weights, of so many, each in all lanes."""
        f, w = self.f, self.at(self.job.pointer("w"), number * count)
        return [
            f.splat(f.load(self.vector.scalar, self.at(w, t)), self.lanes) for t in range(count)
        ]  # fmt: skip

    def strip(self, i0: Value, i1: Value, places: list[Value], last: Value) -> None:
        """The strip at (i0, i1), to these places; last: whether it is the last of its plane."""
        f, job, ends = self.f, self.job, self.pattern.ends
        together = len(self.pattern.phases[2])
        once = [] if self.pattern.several else self.pointers(self.source(self.first), i0, i1)

        def block(first: Value) -> None:
            q = first
            if ends == "overlap":
                final = f.div(job.out2, together) - self.lanes
                q = f.select(q > final, final, q)

            def sums(block: Value | None) -> list[Value]:
                zeros = [self.zero] * (len(places) * together)
                if not self.pattern.several:
                    return self.products(once, self.w, q, block, zeros)

                def term(t: Value, held: list[Value]) -> list[Value]:
                    lines = self.pointers(self.source(self.first + t), i0, i1)
                    w = self.shared_weights(self.row + t * job.row_step)
                    return self.products(lines, w, q, block, held)

                return f.loop(0, job.terms, 1, term, zeros)

            def inside() -> list[Value]:
                self.write(sums(None), places, q, None)
                return []

            def outside() -> list[Value]:
                self.write(sums(first), places, q, last)
                return []

            inner = (q >= job.inner_start) & (q <= job.inner_last)
            f.branch(inner, inside, outside)

        each(f, 0, f.div(job.out2 + together - 1, together), block, self.lanes)

    def products(
        self, lines: list[tuple[int, int, Value]], w: list[Value], q: Value,
        block: Value | None, held: list[Value],
    ) -> list[Value]:  # fmt: skip
        """The sums of a vector at q in each line of the strip, for each class of columns, output by
        output.

        block: None inside of the image.
        """
        f, (k0, k1, k2) = self.f, self.pattern.kernel
        held = list(held)
        phases, outputs = self.pattern.phases[2], range(self.pattern.sharing)
        column = q * self.pattern.strides[2] - self.job.low2
        for offset, (tap0, row, line) in [
            (offset, line)
            for of in self.together()
            for line, offset in itertools.product(lines, of)
        ]:
            mask = self.inside(block, offset) if block is not None else None
            x = self.load(line, column, offset, mask)
            taps2 = [(b, k) for b, taps in enumerate(phases) for k, o in taps if o == offset]
            for (i, tap1), (b, tap2), o in itertools.product(self.met(row), taps2, outputs):
                weight = w[((o * k0 + tap0) * k1 + tap1) * k2 + tap2]
                cell = (o * self.height + i) * len(phases) + b
                held[cell] = f.fma(x, weight, held[cell])
        return held

    def write(self, sums: list[Value], places: list[Value], q: Value, last: Value | None) -> None:
        """last: whether the strip is the last of its plane; None: all is inside of the image."""
        f, lanes = self.f, self.lanes
        together = len(sums) // len(places)
        masked = last is not None and self.pattern.ends == "mask"
        for i, place in enumerate(places):
            cells = sums[i * together : (i + 1) * together]
            if together > NEAR:
                self._scatter(cells, place, q)
                continue
            for v, cell in enumerate(_woven(f, cells)):
                to = q * together + v * lanes
                mask = f.first_lanes(lanes, f.max(self.job.out2 - to, 0)) if masked else None
                lowest = None if (i + 1) % self.height else last
                self._store(self.end(cell), self.of_y(place, to), mask, lowest)

    def _store(self, x: Value, to: Value, mask: Value | None, last: Value | None) -> None:
        f = self.f
        if last is None or self.pattern.ends != "reach":
            f.store(x, to, mask, streaming=self.pattern.streams)
            return

        def short() -> list[Value]:
            f.store(x, to, f.first_lanes(self.lanes, self.job.out2))
            return []

        def whole() -> list[Value]:
            f.store(x, to)
            return []

        f.branch(last, short, whole)

    def _scatter(self, cells: list[Value], place: Value, q: Value) -> None:
        f = self.f
        for lane, (b, cell) in itertools.product(range(self.lanes), enumerate(cells)):
            to = (q + lane) * len(cells) + b
            f.store(f.extract(cell, lane), self.at(place, to), to < self.job.out2)
