"""The loops of the adjoint in w of depthwise convolutions: lines of x meet lines of g.

Note [Sums of weights]
    A weight is the sum over all images and pixels of one output. A few rows of the kernel have
    their sums in registers, from the first image to the last, and two lines of g at a time share
    the loads of x. Images whose lines would leave many lanes empty are one line (`axes.folded`).
"""

from __future__ import annotations

import itertools

from funct.device import Host
from funct.kernels.cpu.dense.lines import SIZES, Lines, Pattern, Taps, begin
from funct.kernels.cpu.dense.slab import each
from funct.kernels.cpu.record import Fields, Record
from funct.kernels.llvm import I64, PTR, Emitter, Value, typed

__all__ = ["WEIGHTS", "weights_text"]

WEIGHTS = Fields(("tasks", "outputs", "shared", "images", "inputs", "x", "g", "w", *SIZES))
_SUMS = 12  # registers


def weights_text(pattern: Pattern, target: Host) -> str:
    """`weights(job)`: of each output over all images in order."""
    module = begin(target, "weights", "range", WEIGHTS)
    lanes = target.vector_bytes // typed(pattern.element).bytes
    f = module.function("range", [("job", PTR), ("task", I64)], local=True)
    job, task = Record(f, WEIGHTS, f.arguments[0]), f.arguments[1]
    start = f.div(task * job.outputs, job.tasks)
    stop = f.div((task + 1) * job.outputs, job.tasks)
    (taps0,), (taps1,), (taps2,) = pattern.phases
    together = max(1, _SUMS // len(taps2))

    def output(o: Value) -> None:
        for tap0, k in itertools.product(taps0, range(0, len(taps1), together)):
            _weights_of(f, job, pattern, lanes, o, (tap0,), taps1[k : k + together])

    each(f, start, stop, output)
    f.ret()
    return module.text()


def _weights_of(
    f: Emitter, job: Record, pattern: Pattern, lanes: int, o: Value, taps0: Taps, taps1: Taps
) -> None:
    """Some rows of the weights of one output: their sums stay in registers."""
    vector = typed(pattern.element, lanes)
    taps2 = pattern.phases[2][0]
    zero = f.constant(vector, 0)

    def image(n: Value, held: list[Value]) -> list[Value]:
        reader = Lines(f, job, pattern, lanes, 1, taps0, taps1)
        x = reader.source(n * job.inputs + f.div(o, job.shared))
        place = (n * job.outputs + o) * (job.out0 * job.out1 * job.out2)
        g = f.at(job.pointer("g"), place, pattern.element)

        def plane(i0: Value, held: list[Value]) -> list[Value]:
            def strips(height: int, start: Value, stop: Value, held: list[Value]) -> list[Value]:
                lines = Lines(f, job, pattern, lanes, height, taps0, taps1)

                def strip(i1: Value, held: list[Value]) -> list[Value]:
                    rows = lines.pointers(x, i0, i1)
                    first = lines.at(g, (i0 * job.out1 + i1) * job.out2)
                    return _correlated(lines, rows, first, held)

                return f.loop(start, stop, height, strip, held, maybe_empty=True)

            whole = job.out1 - f.rem(job.out1, pattern.height)
            held = strips(pattern.height, f.constant(I64, 0), whole, held)
            return strips(1, whole, job.out1, held) if pattern.height > 1 else held

        return f.loop(0, job.out0, 1, plane, held)

    sums = f.loop(0, job.images, 1, image, [zero] * (len(taps1) * len(taps2)), maybe_empty=True)
    _, k1, k2 = pattern.kernel
    to = f.at(job.pointer("w"), o * (pattern.kernel[0] * k1 * k2), pattern.element)
    for total, ((tap0, _), (tap1, _), (tap2, _)) in zip(
        sums, itertools.product(taps0, taps1, taps2)
    ):
        place = f.at(to, (tap0 * k1 + tap1) * k2 + tap2, pattern.element)
        f.store(f.reduce(total, f.add), place)


def _correlated(
    lines: Lines, rows: list[tuple[int, int, Value]], g: Value, held: list[Value]
) -> list[Value]:
    """Add the products of the strip's lines of g with the rows of x to the sums."""
    f, job, lanes, vector = lines.f, lines.job, lines.lanes, lines.vector
    taps2 = lines.pattern.phases[2][0]
    place = {k: n for n, (k, _) in enumerate(lines.taps1)}

    def block(q: Value, held: list[Value]) -> list[Value]:
        def sums(edge: bool) -> list[Value]:
            mask = f.first_lanes(lanes, f.min(job.out2 - q, lanes)) if edge else None
            ours = [
                f.load(vector, lines.at(g, job.out2 * i + q), mask) for i in range(lines.height)
            ]
            new = list(held)
            column = q * lines.pattern.strides[2] - job.low2
            for (n, (_, offset)), (_, row, line) in itertools.product(enumerate(taps2), rows):
                x = lines.load(line, column + offset, lines.inside(q, offset) if edge else None)
                for i, tap1 in lines.met(row):
                    cell = place[tap1] * len(taps2) + n
                    new[cell] = f.fma(x, ours[i], new[cell])
            return new

        inner = (q >= job.inner_start) & (q <= job.inner_last)
        return f.branch(inner, lambda: sums(False), lambda: sums(True))

    return f.loop(0, job.out2, lanes, block, held)
