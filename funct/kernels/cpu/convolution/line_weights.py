"""The loops of the adjoint in w of depthwise convolutions: lines of x meet lines of g.

Note [Sums of weights]
    A weight is the sum over all images and pixels of one output. A few rows of the kernel have
    their sums in registers, from the first image to the last, and two lines of g at a time share
    the loads of x. Images whose lines would leave many lanes empty are one line (`axes.folded`).
    Where images of a channel are small and lie far apart, those of all channels are read in the
    order in which they lie; so the sums wait in memory for the next image.

Note [Shared lines]
    Several outputs of one channel are summed together, line by line: they share what is read of x,
    which is a load and a mask for each tap. The last of them overlap those before. g is far larger
    than x then and read once, as small images are.
"""

from __future__ import annotations

import itertools
from math import prod

from funct.device import Host
from funct.kernels.cpu.convolution.lines import SIZES, Lines, Pattern, Taps, begin
from funct.kernels.cpu.record import Fields, Record
from funct.kernels.llvm import I64, PTR, Emitter, Value, each, typed

__all__ = ["WEIGHTS", "sharing", "sums", "weights_text"]

WEIGHTS = Fields(
    ("tasks", "units", "outputs", "shared", "images", "inputs", "x", "g", "w", "sums", *SIZES)
)
_SUMS = 12  # registers
_SHARED_SUMS = 27  # of 32 registers, beside three outputs' lines and one of x
_FEW_SHARE = 3  # the loads of x cost less than the products then


def sharing(shared: int, taps: tuple[int, int], vector_bytes: int) -> int:
    """How many of the outputs of a channel are summed at a time, for so many rows and columns of
    the kernel, where there are 32 registers.
    """
    if vector_bytes < 64:
        return 1
    few = min(shared, _FEW_SHARE)
    rows = min(taps[0], max(1, _SHARED_SUMS // (few * taps[1])))
    return max(1, min(shared, _SHARED_SUMS // (rows * taps[1])))


def sums(pattern: Pattern) -> int:
    """Vectors of sums of a unit that wait in memory."""
    return pattern.sharing * prod(pattern.kernel) if pattern.waits else 0


def weights_text(pattern: Pattern, target: Host) -> str:
    """`weights(job)`: of each output over all images in order."""
    module = begin(target, "weights", "range", WEIGHTS)
    lanes = target.vector_bytes // typed(pattern.element).bytes
    f = module.function("range", [("job", PTR), ("task", I64)], local=True)
    job, task = Record(f, WEIGHTS, f.arguments[0]), f.arguments[1]
    start = f.div(task * job.units, job.tasks)
    stop = f.div((task + 1) * job.units, job.tasks)
    (taps0,), (taps1,), (taps2,) = pattern.phases
    registers = _SUMS if pattern.sharing == 1 else _SHARED_SUMS
    together = max(1, registers // (pattern.sharing * len(taps2)))
    passes = [
        Weights(f, job, pattern, lanes, (tap0,), taps1[k : k + together])
        for tap0, k in itertools.product(taps0, range(0, len(taps1), together))
    ]
    print_all = _image_by_image if pattern.waits else _one_by_one
    print_all(f, job, passes, start, stop)
    f.ret()
    return module.text()


def _one_by_one(f: Emitter, job: Record, passes: list[Weights], start: Value, stop: Value) -> None:
    """Sums stay in registers over all images."""

    def output(o: Value) -> None:
        for some in passes:

            def image(n: Value, held: list[Value], some: Weights = some) -> list[Value]:
                x, g = some.planes(n, o)
                return f.loop(0, job.out0, 1, lambda i0, held: some.plane(x, g, i0, held), held)

            zeros = [some.zero] * len(some.cells)
            some.write(o, f.loop(0, job.images, 1, image, zeros, maybe_empty=True))

    each(f, start, stop, output)


def _image_by_image(
    f: Emitter, job: Record, passes: list[Weights], start: Value, stop: Value
) -> None:
    """Sums stay in registers over a plane."""
    pattern, lanes = passes[0].pattern, passes[0].lanes
    together, zero = pattern.sharing, passes[0].zero
    words = sums(pattern) * lanes

    def output(u: Value) -> Value:
        units = f.div(job.shared + (together - 1), together)
        group = f.div(u, units)
        own = (u - group * units) * together
        return group * job.shared + f.min(own, job.shared - together)

    def places(u: Value) -> list[list[Value]]:
        """Of the sums of each pass."""
        first = passes[0].at(job.pointer("sums"), u * words)
        cells = iter(range(0, words, lanes))
        return [[passes[0].at(first, next(cells)) for _ in p.cells] for p in passes]

    def begin(u: Value) -> None:
        for place in itertools.chain(*places(u)):
            f.store(zero, place)

    def add(n: Value) -> None:
        def unit(u: Value) -> None:
            x, g = passes[0].planes(n, output(u))
            ours = places(u)

            def plane(i0: Value) -> None:
                for p, own in zip(passes, ours):
                    held = [f.load(p.vector, place) for place in own]
                    for place, v in zip(own, p.plane(x, g, i0, held)):
                        f.store(v, place)

            each(f, 0, job.out0, plane)

        each(f, start, stop, unit)

    def end(u: Value) -> None:
        for p, own in zip(passes, places(u)):
            p.write(output(u), [f.load(p.vector, place) for place in own])

    each(f, start, stop, begin)
    each(f, 0, job.images, add)
    each(f, start, stop, end)


class Weights(Lines):
    """Prints sums over lines: some rows of the weights of a few outputs."""

    def __init__(
        self, f: Emitter, job: Record, pattern: Pattern, lanes: int, taps0: Taps, taps1: Taps
    ) -> None:
        super().__init__(f, job, pattern, lanes, 1, taps0, taps1)
        outputs = range(pattern.sharing)
        self.cells = list(itertools.product(outputs, taps0, taps1, pattern.phases[2][0]))
        self.zero = f.constant(self.vector, 0)

    def planes(self, n: Value, o: Value) -> tuple[Value, Value]:
        """x and g of image n for the outputs from o on."""
        job = self.job
        x = self.source(n * job.inputs + self.f.div(o, job.shared))
        return x, self.at(job.pointer("g"), (n * job.outputs + o) * self.size)

    @property
    def size(self) -> Value:
        """Elements of an image of one output."""
        return self.job.out0 * self.job.out1 * self.job.out2

    def plane(self, x: Value, g: Value, i0: Value, held: list[Value]) -> list[Value]:
        """Add what lines of one plane give to the sums."""
        f, job, pattern = self.f, self.job, self.pattern

        def strips(height: int, start: Value, stop: Value, held: list[Value]) -> list[Value]:
            lines = Lines(f, job, pattern, self.lanes, height, self.taps0, self.taps1)

            def strip(i1: Value, held: list[Value]) -> list[Value]:
                rows = lines.pointers(x, i0, i1)
                first = self.at(g, (i0 * job.out1 + i1) * job.out2)
                ours = [
                    [self.at(first, self.size * m + job.out2 * i) for i in range(height)]
                    for m in range(pattern.sharing)
                ]
                return _correlated(lines, rows, ours, held)

            return f.loop(start, stop, height, strip, held, maybe_empty=True)

        whole = job.out1 - f.rem(job.out1, pattern.height)
        held = strips(pattern.height, f.constant(I64, 0), whole, held)
        return strips(1, whole, job.out1, held) if pattern.height > 1 else held

    def write(self, o: Value, totals: list[Value]) -> None:
        """The weights of the outputs from o on."""
        f, (k0, k1, k2) = self.f, self.pattern.kernel
        to = self.at(self.job.pointer("w"), o * (k0 * k1 * k2))
        for total, (m, (tap0, _), (tap1, _), (tap2, _)) in zip(totals, self.cells):
            place = self.at(to, ((m * k0 + tap0) * k1 + tap1) * k2 + tap2)
            f.store(f.reduce(total, f.add), place)


def _correlated(
    lines: Lines, rows: list[tuple[int, int, Value]], g: list[list[Value]], held: list[Value]
) -> list[Value]:
    """Add products of each output's lines of g in a strip with the rows of x to the sums."""
    f, job, lanes, vector = lines.f, lines.job, lines.lanes, lines.vector
    taps2 = lines.pattern.phases[2][0]
    place = {k: n for n, (k, _) in enumerate(lines.taps1)}

    def block(q: Value, held: list[Value]) -> list[Value]:
        def sums(edge: bool) -> list[Value]:
            mask = f.first_lanes(lanes, f.min(job.out2 - q, lanes)) if edge else None
            ours = [[f.load(vector, lines.at(line, q), mask) for line in of] for of in g]
            new = list(held)
            column = q * lines.pattern.strides[2] - job.low2
            for (n, (_, offset)), (_, row, line) in itertools.product(enumerate(taps2), rows):
                x = lines.load(line, column, offset, lines.inside(q, offset) if edge else None)
                for (m, of), (i, tap1) in itertools.product(enumerate(ours), lines.met(row)):
                    cell = (m * len(place) + place[tap1]) * len(taps2) + n
                    new[cell] = f.fma(x, of[i], new[cell])
            return new

        inner = (q >= job.inner_start) & (q <= job.inner_last)
        return f.branch(inner, lambda: sums(False), lambda: sums(True))

    return f.loop(0, job.out2, lanes, block, held)
