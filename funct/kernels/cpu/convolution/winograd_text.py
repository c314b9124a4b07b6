"""The loops of convolution by squares (`squares.py`), and of its adjoint in x: the weights of all
places, then units of images.

Note [Taps of 0]
    Whoever masks taps means that pixels are not read. Here each weight is part of several products,
    so they would be, times what is left of 0 by rounding. Where a tap is 0 for a channel and all
    outputs of a vector, nothing is computed and the flag is set.
"""

from __future__ import annotations

import functools

from funct.device import PARALLEL, Host
from funct.kernels.cpu.convolution.squares import (
    PLACES,
    SQUARES,
    TAPS,
    Squares,
    define_rest,
    grid,
    note,
    of_products,
    of_weights,
)  # fmt: skip
from funct.kernels.cpu.dense.slab import SLAB, clear, copy
from funct.kernels.cpu.dense.tile import call_tiles
from funct.kernels.cpu.dense.turn import turn_name
from funct.kernels.cpu.quantized.codes import Planes
from funct.kernels.cpu.quantized.narrowing import TO_CODES
from funct.kernels.cpu.record import Fields, Record
from funct.kernels.llvm import I64, PTR, Module, Value, each, typed

__all__ = ["CHUNK", "JOB", "text"]

CHUNK = 32  # channels whose weights are transformed at a time
_APART = 8  # words from one flag to the next, a line of the cache

JOB = Fields((
    *SLAB, *SQUARES, "w", "y",
    "panels", "flags", "own",  # offsets in scratch: `own` of the first task's, and in a task's
    "products", "sums",
    "product_plane", "sums_place", "rows",
    "weight_tasks", "weight_units", "chunks", "output_step", "channel_step", "flipped",
    "groups", "group_channels", "group_outputs", "padded_outputs", "blocks",
    "panel_plane", "panel_step", "panel_group",  # from one place, output and group to the next
    "most_rows", "tiles", "tap", *TO_CODES,
))  # fmt: skip


def text(element: str, target: Host, last: bool = False, codes: str = "") -> str:
    """`squares(job)`: fill y. `rest(job)`. last: x and the result are (N, *S, C) in memory.

    codes: of pairs of integers, the element of y, which are the codes of sums. w holds the weights
    of all places then, and there is no rest.
    """
    module = Module(target)
    module.declare("@funct_parallel", PARALLEL)
    turn = turn_name(element, target.vector_bytes)
    _define_units(module, element, turn, last, codes)
    f = module.function("squares", [("job", PTR)])
    given = f.arguments[0]
    job = Record(f, JOB, given)
    if codes:
        f.line(f"call void @funct_parallel(ptr @units, {given!r}, {job.tasks!r})")
        f.ret()
        return module.text()
    _define_weights(module, element, turn)
    define_rest(module)
    flags = f.at(job.pointer("scratch"), job.flags, element)

    def run(work: str, tasks: Value) -> None:
        f.line(f"call void @funct_parallel(ptr @{work}, {given!r}, {tasks!r})")
        note(f, job, flags, tasks, _APART)

    run("weights", job.weight_tasks)
    f.when(f.eq(f.load(I64, job.pointer("flag")), 0), lambda: run("units", job.tasks))
    f.ret()
    return module.text()


def _define_weights(module: Module, element: str, turn: str) -> None:
    """`weights(job, task)`: G w G' of some chunks of channels, as (group, block of outputs, place,
    channel, lane), and whether a tap is 0; see Note [Taps of 0].
    """
    f = module.function("weights", [("job", PTR), ("task", I64)], local=True)
    job, task = Record(f, JOB, f.arguments[0]), f.arguments[1]
    lanes = module.target.vector_bytes // typed(element).bytes
    vector, pair = typed(element, lanes), 2 * lanes
    scratch = job.pointer("scratch")
    room = f.at(scratch, job.own + task * job.scratch_step, element)
    panels = f.at(scratch, job.panels, element)

    def unit(u: Value, found: list[Value]) -> list[Value]:
        rest = f.div(u, job.chunks)
        first = (u - rest * job.chunks) * CHUNK
        g = f.div(rest, job.blocks)
        o = (rest - g * job.blocks) * pair
        count = f.min(f.constant(I64, CHUNK), job.group_channels - first)
        wide = f.min(f.constant(I64, pair), job.padded_outputs - o)
        real = f.min(wide, job.group_outputs - o)
        clear(f, room, count * (TAPS * pair * vector.scalar.bytes))  # lanes beyond the outputs
        begin = g * job.group_channels * job.group_outputs * TAPS
        begin = begin + o * job.output_step + first * job.channel_step
        w = f.at(job.pointer("w"), begin, element)

        def laid(source: Value, to: Value, columns: Value) -> None:
            f.call(turn, None, [source, to, real, columns, job.output_step, f.constant(I64, pair)])

        def adjacent() -> list[Value]:
            laid(w, room, count * TAPS)
            return []

        def apart() -> list[Value]:
            def channel(c: Value) -> None:
                to = f.at(room, c * (TAPS * pair), element)
                laid(f.at(w, c * job.channel_step, element), to, f.constant(I64, TAPS))

            each(f, 0, count, channel)
            return []

        f.branch(f.eq(job.channel_step, TAPS), adjacent, apart)
        block = f.at(panels, g * job.panel_group + o * job.panel_step, element)

        def channel(c: Value, found: list[Value]) -> list[Value]:
            def some(v: Value, found: list[Value]) -> list[Value]:
                here = f.at(room, c * (TAPS * pair) + v, element)
                taps = [f.load(vector, f.at(here, k * pair, element)) for k in range(TAPS)]
                there = [f.any(f.ne(x, 0.0)) for x in taps]
                all_there = functools.reduce(f.bitand, there)
                missing = f.select(all_there, f.constant(I64, 0), f.constant(I64, 1))
                flip = f.ne(job.flipped, 0)
                taps = [f.select(flip, x, y) for x, y in zip(taps[::-1], taps)]
                for t, x in enumerate(grid(f, of_weights, taps)):
                    place = job.panel_plane * t + (first + c) * wide + v
                    f.store(x, f.at(block, place, element))
                return [f.bitor(found[0], missing)]

            return f.loop(0, wide, lanes, some, found)

        return f.loop(0, count, 1, channel, found)

    none, tasks = [f.constant(I64, 0)], job.weight_tasks
    (found,) = f.loop(task, job.weight_units, tasks, unit, none, maybe_empty=True)
    f.store(found, f.at(f.at(scratch, job.flags, element), task * _APART, "i64"))
    f.ret()


class _Unit(Squares):
    """Prints the work on one unit."""

    codes: Planes | None = None

    def products(self, given: tuple[Value, Value, Value, Value, Value], to: Value) -> None:
        """Those of a block of outputs: (place, square, lane). given: squares and their number, the
        block's panel, its width, and the first channel.
        """
        f, job = self.f, self.job
        squares, count, panel, wide, channel = given
        row = f.select(f.eq(wide, self.lanes), job.most_rows + 1, f.constant(I64, 0))
        tiles, zero = f.at(job.pointer("tiles"), row, "i64"), f.constant(I64, 0)

        def place(t: Value) -> None:
            a = self.at(squares, t * job.plane + channel)
            b = self.at(panel, t * job.panel_plane)
            y = self.at(to, t * job.product_plane)
            given = [
                job.pointer("tap"), f.constant(I64, 1), b, job.group_channels, wide, y, zero,
            ]  # fmt: skip
            call_tiles(f, tiles, job.most_rows, a, job.pointer("rows"), zero, count, given)

        each(f, 0, PLACES, place)

    def sums(
        self, products: Value, first: Value, to: Value, rows: Value, limit: Value,
        zeros: list[Value],
    ) -> list[Value]:  # fmt: skip
        """A' m A of an image and one vector of outputs: (pixel, lane). zeros: 0 times all results
        before, which is 0 as long as they are finite; none of integers.
        """
        f, job, pair = self.f, self.job, 2 * self.lanes

        def square(n: Value, i: Value, j: Value, held: list[Value]) -> list[Value]:
            here = self.at(products, n * pair)
            places = [
                f.load(self.vector, self.at(here, job.product_plane * t)) for t in range(PLACES)
            ]
            y = grid(f, of_products, places)
            if not held:  # see Note [Codes] in `squares.py`
                y = [total >> 2 for total in y]
            above = self.at(to, (i * job.out_columns + j) * pair)
            under = self.at(above, job.out_columns * pair)
            beside = j + 1 < job.out_columns

            def row(place: Value, left: Value, right: Value) -> None:
                f.store(left, place)
                f.when(beside, lambda: f.store(right, self.at(place, pair)))

            row(above, y[0], y[1])
            f.when(i + 1 < limit, lambda: row(under, y[2], y[3]))
            return [f.fma((y[0] + y[1]) + (y[2] + y[3]), 0.0, zeros) for zeros in held]

        return self.over(first, rows, square, zeros)

    def write(self, sums: Value, image: Value, channel: Value, pixels: tuple[Value, Value],
              real: Value) -> None:  # fmt: skip
        """Bring them to the result. pixels: the first one's number, and how many. real: lanes."""
        f, job, pair = self.f, self.job, 2 * self.lanes
        outputs = job.groups * job.group_outputs
        plane = job.out_rows * job.out_columns
        if self.codes:
            place = (image * outputs + channel) * plane + pixels[0]
            to = f.at(job.pointer("y"), place, self.codes.element)
            self.codes.write(sums, to, pixels[1], (channel, real), (f.constant(I64, pair), plane))
            return
        if not self.last:
            to = self.at(job.pointer("y"), (image * outputs + channel) * plane + pixels[0])
            self.transpose(sums, to, pixels[1], real, f.constant(I64, pair), plane)
            return
        to = self.at(job.pointer("y"), (image * plane + pixels[0]) * outputs + channel)

        def pixel(p: Value) -> None:
            copy(f, self.at(to, p * outputs), self.at(sums, p * pair), real * self.bytes)

        each(f, 0, pixels[1], pixel)


def _define_units(module: Module, element: str, turn: str, last: bool, codes: str) -> None:
    """`units(job, task)`: the units task, task + tasks, … of (images, band)."""
    f = module.function("units", [("job", PTR), ("task", I64)], local=True)
    job, task = Record(f, JOB, f.arguments[0]), f.arguments[1]
    of = _Unit(f, job, element, turn, last)
    pair = 2 * of.lanes
    if codes:
        of.codes = Planes(f, job, turn, pair, codes)
    scratch = job.pointer("scratch")
    slab = of.at(scratch, job.own + task * job.scratch_step)
    squares, products, sums = (of.at(slab, n) for n in (job.squares, job.products, job.sums))
    panels = job.pointer("w") if codes else of.at(scratch, job.panels)

    def unit(u: Value, found: list[Value]) -> list[Value]:
        image, images, band, rows, limit = of.unit(u)
        of.read(image, images, band, rows, slab, squares)
        of_image = rows * job.square_columns
        pixels = (band * job.band_squares << 1) * job.out_columns, limit * job.out_columns

        def group(g: Value, found: list[Value]) -> list[Value]:
            def block(o: Value, found: list[Value]) -> list[Value]:
                wide = f.min(f.constant(I64, pair), job.padded_outputs - o)
                real = f.min(wide, job.group_outputs - o)
                panel = of.at(panels, g * job.panel_group + o * job.panel_step)
                first = g * job.group_channels
                of.products((squares, images * of_image, panel, wide, first), products)

                def one(k: Value, found: list[Value]) -> list[Value]:
                    here = of.at(sums, k * job.sums_place)

                    def some(v: Value, found: list[Value]) -> list[Value]:
                        places = of.at(products, v), k * of_image, of.at(here, v)
                        return of.sums(*places, rows, limit, found)

                    found = f.loop(0, wide, of.lanes, some, found)
                    of.write(here, image + k, g * job.group_outputs + o, pixels, real)
                    return found

                return f.loop(0, images, 1, one, found)

            return f.loop(0, job.padded_outputs, pair, block, found)

        return f.loop(0, job.groups, 1, group, found)

    zeros = [] if codes else [f.constant(of.vector, 0)]
    for found in f.loop(task, job.units, job.tasks, unit, zeros, maybe_empty=True):
        flag = f.convert(f.any(f.isnan(found)), "i64")
        f.store(flag, f.at(of.at(scratch, job.flags), task * _APART, "i64"))
    f.ret()
