"""The loops of the adjoint of convolution in w by squares: what `winograd_weight.py` plans."""

from __future__ import annotations

from funct.device import PARALLEL, Host
from funct.kernels.cpu.convolution.squares import (
    PLACES,
    SQUARES,
    TAPS,
    Squares,
    grid,
    note,
    of_gradients,
    of_sums,
)  # fmt: skip
from funct.kernels.cpu.dense.slab import SLAB
from funct.kernels.cpu.dense.tile import call_tiles
from funct.kernels.cpu.dense.turn import turn_name
from funct.kernels.cpu.record import Fields, Record
from funct.kernels.llvm import I64, PTR, Module, Value, each, typed

__all__ = ["JOB", "text"]

JOB = Fields((
    *SLAB, *SQUARES, "g", "w",
    "g_last",  # where g is with its channels last, or 0: `g` is room for it then
    "partial", "flags", "own",  # offsets in scratch: `own` of the first task's, and in a task's
    "of_g",
    "g_row", "g_plane",  # words from one output, and one place, to the next
    "partial_sums", "partial_words", "sum_plane",
    "splits", "split_outputs", "groups", "group_channels", "group_outputs", "padded_channels",
    "most_rows", "tiles", "rows", "tap",
))  # fmt: skip


def text(element: str, target: Host, last: bool = False) -> str:
    """`squares(job)`: fill w. last: x is (N, *S, C) in memory."""
    module = Module(target)
    module.declare("@funct_parallel", PARALLEL)
    turn = turn_name(element, target.vector_bytes)
    _define_turned(module, element, turn)
    _define_units(module, element, turn, last)
    _define_gather(module, element, turn)
    f = module.function("squares", [("job", PTR)])
    given = f.arguments[0]
    job = Record(f, JOB, given)
    outputs = job.groups * job.group_outputs

    def turned() -> None:
        f.line(f"call void @funct_parallel(ptr @turned, {given!r}, {job.images!r})")

    f.when(f.ne(job.g_last, 0), turned)
    for work, tasks in (("units", job.tasks), ("gather", outputs)):
        f.line(f"call void @funct_parallel(ptr @{work}, {given!r}, {tasks!r})")
    note(f, job, f.at(job.pointer("scratch"), job.flags, element), outputs, 1)
    f.ret()
    return module.text()


class _Unit(Squares):
    """Prints the work on one unit."""

    def gradients(
        self, unit: tuple[Value, Value, Value, Value, Value], output: Value, to: Value
    ) -> None:
        """A g A' of one output in all images of a unit: (place, square)."""
        f, job, lanes = self.f, self.job, self.lanes
        image, images, band, rows, limit = unit
        outputs = job.groups * job.group_outputs
        top = band * job.band_squares << 1
        even, odd = (tuple(range(k, 2 * lanes, 2)) for k in (0, 1))

        def one(k: Value) -> None:
            plane = ((image + k) * outputs + output) * job.out_rows

            def row(i: Value) -> None:
                source = self.at(job.pointer("g"), (plane + top + (i << 1)) * job.out_columns)
                first = self.at(to, (k * rows + i) * job.square_columns)
                below = (i << 1) + 1 < limit

                def some(j: Value) -> None:
                    held = []
                    left = job.out_columns - (j << 1)
                    for down in (0, 1):
                        here = self.at(source, job.out_columns * down + (j << 1))
                        there = f.select(below, left, f.constant(I64, 0)) if down else left
                        a, b = (
                            f.load(self.vector, self.at(here, n), f.first_lanes(lanes, there - n))
                            for n in (0, lanes)
                        )
                        held += [f.shuffle(a, b, even), f.shuffle(a, b, odd)]
                    for t, x in enumerate(grid(f, of_gradients, held)):
                        f.store(x, self.at(first, job.g_plane * t + j))

                each(f, 0, job.square_columns, some, lanes)

            each(f, 0, rows, row)

        each(f, 0, images, one)

    def products(
        self, g: Value, start: Value, stop: Value, count: Value, arrays: tuple[Value, Value, Value],
        add: Value,
    ) -> None:  # fmt: skip
        """Those of a group's outputs and channels, summed over so many squares.

        arrays: of gradients, of pixels, and the sums.
        """
        f, job = self.f, self.job
        of_g, squares, partial = arrays
        pair = 2 * self.lanes
        zero = f.constant(I64, 0)

        def place(t: Value) -> None:
            a = self.at(of_g, t * job.g_plane + g * job.split_outputs * job.g_row)
            sums = (g * job.group_outputs + start) * job.padded_channels
            y = self.at(partial, t * job.sum_plane + sums)

            def block(c: Value) -> None:
                wide = f.min(f.constant(I64, pair), job.padded_channels - c)
                row = f.select(f.eq(wide, self.lanes), job.most_rows + 1, zero)
                tiles = f.at(job.pointer("tiles"), row, "i64")
                b = self.at(squares, t * job.plane + g * job.group_channels + c)
                given = [
                    job.pointer("tap"), f.constant(I64, 1), b, count, job.square_words,
                    self.at(y, c), add,
                ]  # fmt: skip
                rows = job.pointer("rows")
                call_tiles(f, tiles, job.most_rows, a, rows, zero, stop - start, given)

            each(f, 0, job.padded_channels, block, pair)

        each(f, 0, PLACES, place)


def _define_turned(module: Module, element: str, turn: str) -> None:
    """`turned(job, image)`: g of an image, whose channels are last in memory, channels first."""
    f = module.function("turned", [("job", PTR), ("image", I64)], local=True)
    job, image = Record(f, JOB, f.arguments[0]), f.arguments[1]
    outputs, pixels = job.groups * job.group_outputs, job.out_rows * job.out_columns
    source, to = (
        f.at(job.pointer(name), image * outputs * pixels, element) for name in ("g_last", "g")
    )
    f.call(turn, None, [source, to, pixels, outputs, outputs, pixels])
    f.ret()


def _define_units(module: Module, element: str, turn: str, last: bool) -> None:
    """`units(job, task)`: one partial sum of one split of the outputs."""
    f = module.function("units", [("job", PTR), ("task", I64)], local=True)
    job, task = Record(f, JOB, f.arguments[0]), f.arguments[1]
    of = _Unit(f, job, element, turn, last)
    scratch = job.pointer("scratch")
    slab = of.at(scratch, job.own + task * job.scratch_step)
    squares, of_g = of.at(slab, job.squares), of.at(slab, job.of_g)
    number = f.div(task, job.splits)
    start = (task - number * job.splits) * job.split_outputs
    stop = f.min(start + job.split_outputs, job.group_outputs)
    partial = of.at(of.at(scratch, job.partial), number * job.partial_words)

    def unit(u: Value) -> None:
        found = of.unit(u)
        image, images, band, rows, _ = found
        of.read(image, images, band, rows, slab, squares)
        count = images * rows * job.square_columns
        later = Value(f, f.convert(f.ne(u, number), "u64").name, I64)

        def group(g: Value) -> None:
            def output(o: Value) -> None:
                to = of.at(of_g, (g * job.split_outputs + o - start) * job.g_row)
                of.gradients(found, g * job.group_outputs + o, to)

            each(f, start, stop, output)
            of.products(g, start, stop, count, (of_g, squares, partial), later)

        each(f, 0, job.groups, group)

    each(f, number, job.units, unit, job.partial_sums)
    f.ret()


def _define_gather(module: Module, element: str, turn: str) -> None:
    """`gather(job, output)`: add the partial sums of one output up and write its weights."""
    f = module.function("gather", [("job", PTR), ("output", I64)], local=True)
    job, output = Record(f, JOB, f.arguments[0]), f.arguments[1]
    lanes = module.target.vector_bytes // typed(element).bytes
    vector = typed(element, lanes)
    scratch = job.pointer("scratch")
    first = f.at(scratch, job.partial + output * job.padded_channels, element)

    def some(c: Value, found: list[Value]) -> list[Value]:
        here = f.at(first, c, element)
        inside = f.first_lanes(lanes, job.group_channels - c)

        def more(s: Value, held: list[Value]) -> list[Value]:
            there = f.at(here, s * job.partial_words, element)
            return [
                x + f.load(vector, f.at(there, job.sum_plane * t, element))
                for t, x in enumerate(held)
            ]

        places = [f.load(vector, f.at(here, job.sum_plane * t, element)) for t in range(PLACES)]
        places = f.loop(1, job.partial_sums, 1, more, places, maybe_empty=True)
        for t, x in enumerate(grid(f, of_sums, places)):
            f.store(x, f.at(here, job.sum_plane * t, element))
            zero = f.select(inside, x, f.constant(vector, 0)) * 0.0
            found = [found[0] + zero]
        return found

    zeros = [f.constant(vector, 0)]
    (found,) = f.loop(0, job.padded_channels, lanes, some, zeros)
    to = f.at(job.pointer("w"), output * job.group_channels * TAPS, element)
    taps = f.constant(I64, TAPS)
    f.call(turn, None, [first, to, taps, job.group_channels, job.sum_plane, taps])
    flag = f.convert(f.any(f.isnan(found)), "i64")
    f.store(flag, f.at(f.at(scratch, job.flags, element), output, "i64"))
    f.ret()
