"""The loops of convolution: bands of images, each packed, multiplied tile by tile, and written.

A band is a few rows of one result, along its first spatial axis. What it needs of x is copied to
scratch with zeros around it and the channels last (the slab), so that the channels under a tap are
one run of words. Where they are last already and no class reads zeros, x itself is read. Tiles
(`dense/tile.py`) leave sums in scratch, pixels by channels; a transposing copy brings those of a
block of outputs to the result. All sizes are arguments: one text serves every convolution of a
dtype.

A unit is a band of some groups of one image or, where images are small, of a few whole images:
their weights come from afar, and all the pixels of a unit are cut into tiles together.

A class is a set of pixels that take the same taps (`classes.py`).

Note [Same bits]
    An element is summed tap by tap and channel by channel, in pieces of channels that depend on
    shapes alone. Which band, tile or thread it falls to changes nothing.

Note [Panels of one use]
    Weights are laid out into panels once for all bands. Where one unit holds all images and they
    are many, each piece of a panel is laid out just before its only use instead, and never leaves
    the second-level cache.

Note [Chunks of weights]
    The words of one output that follow each other in w, as many as a vector has lanes, are read for
    as many outputs, transposed, and stored to the rows of the panel where a table wants them. Where
    outputs are adjacent in w, a chunk is one word of each.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

from funct.device import PARALLEL, Code, Host, printed
from funct.device.machine_code import LEAN
from funct.kernels.cpu.dense.copies import copy_pixels
from funct.kernels.cpu.dense.slab import SLAB, Slab
from funct.kernels.cpu.dense.tile import call_tiles
from funct.kernels.cpu.dense.turn import transposed, turn_name
from funct.kernels.cpu.quantized.codes import Planes
from funct.kernels.cpu.quantized.narrowing import TO_CODES
from funct.kernels.cpu.record import Fields, Record
from funct.kernels.llvm import I64, PTR, Module, Value, each, typed

__all__ = ["CLASS", "JOB", "PACK", "entry", "text"]

JOB = Fields((
    *SLAB, "images", "unit_images", "slab_place",
    "in_place",  # whether x is read where it lies, and there is no slab
    "splits", "split_channels", "y", "weights",
    "sums", "sums_pitch",  # offset in the task's scratch; words from one pixel to the next
    "sums_spread",  # 1; or 0 if those of each block of outputs take the place of those before
    "group_blocks",  # which have slabs of their own
    "groups", "group_channels", "depth", "piece", "group_outputs", "padded_outputs",
    "pack", "panel",  # offset in the task's scratch
    "panel_rows", "panel_taps",  # of all classes
    "row_pixels", "out_rows", "out_pixels", "classes", "sets", "row_step",
    "most_rows", "most_alone", "tiles", "lanes",  # alone: of one vector
    "evens",  # of each class, how many pixels tiles of one vector take at a time that lie evenly,
    "most_even",  # or 0, and such tiles; pixels of one
    "ahead",  # whether tiles ask for the pixels of the next one
    *TO_CODES,
))  # fmt: skip

CLASS = Fields((
    "residue", "pixels_per_row", "pixels", "taps", "n_taps",
    "adds",  # to the sums of classes before
))  # fmt: skip

PACK = Fields((
    "tasks", "source", "to", "blocks", "real", "rows", "piece_rows", "pieces", "lane_step",
    "group_step", "chunks", "first_chunks",
))  # fmt: skip


_LINE = 64  # bytes
_AHEAD = 4  # chunks of weights; their lines lie far apart, where the processor does not guess


def text(element: str, target: Host, last: bool = False, codes: str = "") -> str:
    """`convolve(job)` for words of this element, and `pack(job)` for its weights.

    last: x and the result are (N, *S, C) in memory. codes: the element of the result, where it is
    the codes of the sums.
    """
    module = Module(target)
    module.declare("@funct_parallel", PARALLEL)
    turn = turn_name(element, target.vector_bytes)
    _define_panel(module, element)
    _define_band(module, element, turn, last, codes)
    _define_pack(module, element)
    for name, work, fields in (("convolve", "bands", JOB), ("pack", "panels", PACK)):
        f = module.function(name, [("job", PTR)])
        tasks = Record(f, fields, f.arguments[0]).tasks
        f.line(f"call void @funct_parallel(ptr @{work}, {f.arguments[0]!r}, {tasks!r})")
        f.ret()
    return module.text()


class _Pixels(NamedTuple):
    """Those of a unit: its first image and their number, its band and how many rows that has, and
    its first group.
    """

    image: Value
    images: Value
    band: Value
    rows: Value
    group: Value


class _Band(Slab):
    """Prints the work on one band."""

    codes: Planes | None = None

    def multiply(
        self, of: _Pixels, channels: tuple[Value, Value], slab: Value, sums: Value, own: Value
    ) -> None:
        """All tiles of the band. own: room for one panel."""
        self.first_group = of.group
        f, job = self.f, self.job
        of_band = f.at(job.pointer("sets"), of.band << 1, "i64")
        first_class = f.load(I64, of_band)
        last_class = first_class + f.load(I64, f.at(of_band, 1, "i64"))

        def block(g: Value, c: Value, o: Value) -> None:
            def one(k: Value) -> None:
                record = Record(f, CLASS, f.at(job.pointer("classes"), k * len(CLASS), "i64"))
                rows = f.max(of.rows - record.residue, 0)
                rows = f.div(rows + job.row_step - 1, job.row_step)
                count = rows * record.pixels_per_row * of.images
                even = f.at(job.pointer("evens"), k << 1, "i64")
                tiles = functools.partial(
                    self._class, record, count, (g, c, o), slab, sums, b, even
                )
                f.when(count > 0, tiles)

            b = self._panel(g, c, o, own)
            each(f, first_class, last_class, one)
            if not self.last:  # while the sums are in the first-level cache
                here = o, f.min(o + job.lanes * 2, job.padded_outputs)
                done = c + job.piece >= job.depth
                f.when(done, functools.partial(self.write, of, g, here, sums))

        def piece(g: Value, c: Value) -> None:
            each(f, *channels, functools.partial(block, g, c), job.lanes * 2)

        def of_group(g: Value) -> None:
            each(f, 0, job.depth, functools.partial(piece, g), job.piece)

        each(f, 0, job.groups, of_group)

    def _class(
        self, record: Record, count: Value, at: tuple[Value, Value, Value], slab: Value,
        sums: Value, b: Value, even: Value,
    ) -> None:  # fmt: skip
        """The tiles of a class. at: group, first channel of a piece, first output of a block. b:
        the weights of all classes. even: its entry among those.
        """
        f, job, (g, c, o) = self.f, self.job, at
        depth = f.min(job.piece, job.depth - c)
        wide = f.min(job.lanes * 2, job.padded_outputs - o)
        a = self.at(slab, g * job.group_channels + c)

        y = self.at(sums, (g * job.padded_outputs + o) * job.sums_spread)
        alone = f.eq(wide, job.lanes)
        row = f.select(alone, job.most_rows + 1, f.constant(I64, 0))
        most = f.select(alone, job.most_alone, job.most_rows)
        table = f.at(job.pointer("tiles"), row, "i64")
        add = Value(f, f.convert((c > 0) | f.ne(record.adds, 0), "u64").name, I64)
        given = [record.pointer("taps"), record.n_taps, b, depth, wide, y, add]
        pixels, zero = record.pointer("pixels"), f.constant(I64, 0)
        tiles = functools.partial(call_tiles, f, table, most, a, pixels, zero, count, given)

        def ahead(p: Value) -> list[Value]:
            first = f.load(I64, f.at(pixels, f.min(p, count - 1) << 1, "i64"))
            return [self.at(a, first), f.constant(I64, _LINE // self.bytes)]

        def others() -> None:
            f.when(f.eq(job.ahead, 0), tiles)
            f.when(f.ne(job.ahead, 0), functools.partial(tiles, ahead))

        def evenly() -> None:
            def some(p: Value) -> None:
                stop = f.min(p + unit, count)
                call_tiles(f, own, job.most_even, a, pixels, p, stop, given)

            each(f, 0, count, some, unit)

        unit, own = f.load(I64, even), f.load(PTR, f.at(even, 1, "i64"))
        f.when(f.eq(unit, 0), others)
        f.when(f.ne(unit, 0), evenly)

    def _panel(self, g: Value, c: Value, o: Value, own: Value) -> Value:
        """The weights of a piece of the channels and a block of outputs."""
        f, job = self.f, self.job
        of_all = self.first_group + g

        def made() -> list[Value]:
            """For this use alone; see Note [Panels of one use]."""
            block, p = f.div(o, job.lanes * 2), f.div(c, job.piece)
            given = job.pointer("pack"), job.pointer("weights")
            f.call("panel", None, [*given, own, of_all, block, p])
            return [own]

        def kept() -> list[Value]:
            wide = f.min(job.lanes * 2, job.padded_outputs - o)
            first = (of_all * job.padded_outputs + o) * job.panel_rows
            return [self.at(job.pointer("weights"), first + c * job.panel_taps * wide)]

        (found,) = f.branch(f.ne(job.pack, 0), made, kept)
        return found

    def write(self, of: _Pixels, g: Value, channels: tuple[Value, Value], sums: Value) -> None:
        """Bring the sums of some channels of a group to the result."""
        f, job = self.f, self.job
        pixels = of.rows * job.row_pixels
        first = of.band * job.band_rows * job.row_pixels
        outputs = job.group_blocks * job.groups * job.group_outputs
        row = job.sums_pitch
        start = channels[0]
        count = f.min(channels[1], job.group_outputs) - start
        channel = (of.group + g) * job.group_outputs + start
        sums = self.at(sums, (g * job.padded_outputs + start) * job.sums_spread)

        def whole(i: Value) -> None:
            source = self.at(sums, i * job.out_pixels * row)
            if not self.last:
                place = ((of.image + i) * outputs + channel) * job.out_pixels + first
                if self.codes:
                    to = f.at(job.pointer("y"), place, self.codes.element)
                    steps = row, job.out_pixels
                    self.codes.write(source, to, pixels, (channel, count), steps)
                    return
                to = self.at(job.pointer("y"), place)
                self.transpose(source, to, pixels, count, row, job.out_pixels)
                return
            place = ((of.image + i) * job.out_pixels + first) * outputs + channel
            to = self.at(job.pointer("y"), place)
            copy_pixels(f, to, source, pixels, count, (outputs, row), self.element)

        each(f, 0, of.images, whole)


def _define_band(module: Module, element: str, turn: str, last: bool, codes: str) -> None:
    """`bands(job, task)`: the units task, task + tasks, … of (images, block of groups, band,
    split of channels).
    """
    f = module.function("bands", [("job", PTR), ("task", I64)], local=True)
    job, task = Record(f, JOB, f.arguments[0]), f.arguments[1]
    band_of = _Band(f, job, element, turn, last)
    if codes:
        lanes = module.target.vector_bytes // typed(element).bytes
        band_of.codes = Planes(f, job, turn, 2 * lanes, codes)
    slab = band_of.at(job.pointer("scratch"), task * job.scratch_step)
    sums, own = band_of.at(slab, job.sums), band_of.at(slab, job.panel)
    outputs, blocks = job.group_blocks * job.groups * job.group_outputs, job.group_blocks
    # where channels are last and none is padded, sums lie as the result does
    whole = f.eq(job.padded_outputs, job.group_outputs)
    direct = whole & f.eq(job.sums_pitch, outputs) & last

    def unit(u: Value) -> None:
        splits, bands = job.splits, job.bands
        rest = f.div(u, splits)
        split = u - rest * splits
        number = f.div(rest, bands)
        band = rest - number * bands
        several = f.div(number, blocks)
        block = number - several * blocks
        group = block * job.groups
        image = several * job.unit_images
        images = f.min(job.unit_images, job.images - image)
        rows_here = f.min(job.band_rows, job.out_rows - band * job.band_rows)
        start = split * job.split_channels
        channels = start, f.min(start + job.split_channels, job.padded_outputs)
        of = _Pixels(image, images, band, rows_here, group)

        row = job.size1 * job.size2 * job.channels
        start_row = image * job.size0 + band * job.slab_step
        own_image = band_of.at(job.pointer("x"), start_row * row)
        read = f.select(f.ne(job.in_place, 0), own_image, slab)

        def fill(i: Value) -> None:
            of_block = (image + i) * blocks + block
            band_of.fill(of_block, band, band_of.at(slab, i * job.slab_place))

        f.when(f.eq(job.in_place, 0), lambda: each(f, 0, images, fill))
        first = (image * job.out_pixels + band * job.band_rows * job.row_pixels) * outputs
        result = band_of.at(job.pointer("y"), first + group * job.group_outputs)
        place = f.select(direct, result, sums)
        band_of.multiply(of, channels, read, place, own)
        if last:
            write = functools.partial(band_of.write, of, channels=channels, sums=sums)
            f.when(~direct, lambda: each(f, 0, job.groups, write))

    each(f, task, job.units, unit, job.tasks)
    f.ret()


def _define_pack(module: Module, element: str) -> None:
    """`panels(job, task)`: all pieces of panel `task` of the weights."""
    f = module.function("panels", [("job", PTR), ("task", I64)], local=True)
    given, task = f.arguments
    job = Record(f, PACK, given)
    lanes = module.target.vector_bytes // typed(element).bytes
    group = f.div(task, job.blocks)
    block = task - group * job.blocks
    first = block * (2 * lanes)  # channel within the group
    padded = f.div(job.real + (lanes - 1), lanes) * lanes
    wide = f.min(f.constant(I64, 2 * lanes), padded - first)
    to = f.at(job.pointer("to"), (group * padded + first) * job.rows, element)

    def piece(p: Value) -> None:
        here = f.at(to, p * job.piece_rows * wide, element)
        f.call("panel", None, [given, job.pointer("source"), here, group, block, p])

    each(f, 0, job.pieces, piece)
    f.ret()


def _define_panel(module: Module, element: str) -> None:
    """`panel(job, source, to, group, block, p)`: piece p of the weights of a block of outputs,
    (tap, k, lane). Lanes beyond hold weights or zeros: what happens to be in memory may be numbers
    that the processor is slow at.
    """
    f = module.function(
        "panel",
        [("job", PTR), ("source", PTR), ("to", PTR), ("group", I64), ("block", I64), ("p", I64)],
        local=True,
    )
    given, source, to, group, block, p = f.arguments
    job = Record(f, PACK, given)
    lanes = module.target.vector_bytes // typed(element).bytes
    vector = typed(element, lanes)
    first = block * (2 * lanes)  # channel within the group
    padded = f.div(job.real + (lanes - 1), lanes) * lanes
    wide = f.min(f.constant(I64, 2 * lanes), padded - first)
    real = f.min(wide, job.real - first)
    source = f.at(source, group * job.group_step + first * job.lane_step, element)
    chunks, lane_step = job.pointer("chunks"), job.lane_step
    start, stop = (f.load(I64, f.at(job.pointer("first_chunks"), p + i, "i64")) for i in (0, 1))

    def row_of(entry: Value, j: int) -> tuple[Value, Value]:
        row = f.load(I64, f.at(entry, 2 + j, "i64"))
        return row, f.at(to, row * wide, element)

    def chunk(n: Value) -> None:
        entry = f.at(chunks, n * (2 + lanes), "i64")
        here = f.at(source, f.load(I64, entry), element)
        mask = f.first_lanes(lanes, f.load(I64, f.at(entry, 1, "i64")))
        later = f.at(chunks, f.min(n + _AHEAD, stop - 1) * (2 + lanes), "i64")
        there = f.at(source, f.load(I64, later), element)

        def some(i0: Value) -> None:
            for i in range(lanes):
                f.prefetch(f.at(there, f.min(i0 + i, real - 1) * lane_step, element))
            held = [
                f.load(vector, f.at(here, f.min(i0 + i, real - 1) * lane_step, element), mask)
                for i in range(lanes)
            ]
            for j, v in enumerate(transposed(f, held)):
                row, at = row_of(entry, j)
                f.when(row >= 0, functools.partial(f.store, v, f.at(at, i0, element)))

        each(f, 0, wide, some, lanes)

    def row(n: Value) -> None:
        entry = f.at(chunks, n * (2 + lanes), "i64")
        here = f.at(source, f.load(I64, entry), element)
        _, there = row_of(entry, 0)

        def some(i0: Value) -> None:
            x = f.load(vector, f.at(here, i0, element), f.first_lanes(lanes, real - i0))
            f.store(x, f.at(there, i0, element))

        each(f, 0, wide, some, lanes)

    def adjacent() -> list[Value]:
        each(f, start, stop, row)
        return []

    def apart() -> list[Value]:
        each(f, start, stop, chunk)
        return []

    f.branch(f.eq(lane_step, 1), adjacent, apart)
    f.ret()


@functools.cache
def entry(element: str, target: Host, last: bool, name: str, codes: str = "") -> int:
    """The address of `convolve` or `pack` on this machine."""
    return _code(element, target, last, codes).address(name)


@functools.cache
def _code(element: str, target: Host, last: bool, codes: str) -> Code:
    return printed(text, element, target, last, codes, opt=LEAN)
