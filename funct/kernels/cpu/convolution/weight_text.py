"""The text of the adjoint of convolution in w: what `weight_gradient.py` plans, and says why."""

from __future__ import annotations

from funct.device import PARALLEL, Host
from funct.kernels.cpu.dense.slab import SLAB, STACK, Slab
from funct.kernels.cpu.dense.tile import call_tiles
from funct.kernels.cpu.dense.turn import turn_name
from funct.kernels.cpu.record import Fields, Record
from funct.kernels.llvm import I64, PTR, Module, Value, each, typed

__all__ = ["JOB", "text"]

JOB = Fields((
    *SLAB, "partial_sums", "splits", "split_outputs", "partial", "partial_words", "g",
    "g_pitch", "g_step",  # words from one output of g to the next, and from one pixel
    "w", "group_blocks", "groups", "group_channels", "group_outputs", "depth", "padded_depth",
    "lanes", "out_rows", "row_pixels", "out_pixels", "row_runs", "run", "run_is_rows",
    "chunk", "chunk_images", "images", "unit_images", "slab_place",
    "lays", "panel",  # see Note [Panels of pixels]; offset in the task's scratch
    "kept",  # see Note [Zeros above and below]: of each tap
    "once", "direct",  # direct: whether partial sums are w as they lie
    "row_words", "tap_words",  # of partial sums, from one output and one tap to the next
    *STACK,
    "step", "rows", "in_order", "slab_taps", "n_taps", "most_rows",
    "tile_rows", "alone_rows",  # of tiles of two vectors, and of one
    "tiles", "laid_tiles",  # of the first rows, and of others
    "depths", "taps",
))  # fmt: skip


def text(element: str, target: Host, last: bool = False, g_last: bool = False) -> str:
    """`gradient(job)`: partial sums, then `w`. last: x is (N, *S, C) in memory. g_last: so is g."""
    module = Module(target)
    module.declare("@funct_parallel", PARALLEL)
    turn = turn_name(element, target.vector_bytes)
    _define_sums(module, element, turn, last, g_last)
    _define_gather(module, element, turn, target.vector_bytes // typed(element).bytes)
    f = module.function("gradient", [("job", PTR)])
    (given,) = f.arguments
    job = Record(f, JOB, given)
    outputs = job.group_blocks * job.groups * job.group_outputs

    f.line(f"call void @funct_parallel(ptr @sums, {given!r}, {job.tasks!r})")

    def gathered() -> None:
        f.line(f"call void @funct_parallel(ptr @gather, {given!r}, {outputs!r})")

    f.when(f.eq(job.once | job.direct, 0), gathered)
    f.ret()
    return module.text()


def _define_sums(module: Module, element: str, turn: str, last: bool, g_last: bool) -> None:
    """`sums(job, task)`: one partial sum of one split of the outputs of a block of groups."""
    f = module.function("sums", [("job", PTR), ("task", I64)], local=True)
    job, task = Record(f, JOB, f.arguments[0]), f.arguments[1]
    slab_of = Slab(f, job, element, turn, last, stacks=True)
    slab = slab_of.at(job.pointer("scratch"), task * job.scratch_step)
    rest = f.div(task, job.splits)
    start = (task - rest * job.splits) * job.split_outputs
    sum_number = f.div(rest, job.group_blocks)
    own_block = rest - sum_number * job.group_blocks
    first_group = own_block * job.groups
    stop = f.min(start + job.split_outputs, job.group_outputs)
    own_sums = slab_of.at(job.pointer("partial"), sum_number * job.partial_words)
    partial = f.select(f.ne(job.direct, 0), job.pointer("w"), own_sums)
    all_outputs = job.group_blocks * job.groups * job.group_outputs
    rows = stop - start
    table, zero = job.pointer("rows"), f.constant(I64, 0)
    once = f.ne(job.once, 0)
    panel = slab_of.at(slab, job.panel)

    def unit(u: Value) -> None:
        several = f.div(u, job.bands)
        band = u - several * job.bands
        image = several * job.unit_images
        images = f.min(job.unit_images, job.images - image)
        rows_here = f.min(job.band_rows, job.out_rows - band * job.band_rows)
        first_pixel = band * job.band_rows * job.row_pixels

        def fill(i: Value) -> None:
            of_block = (image + i) * job.group_blocks + own_block
            slab_of.fill(of_block, band, slab_of.at(slab, i * job.slab_place))

        each(f, 0, images, fill)
        by_rows = f.ne(job.run_is_rows, 0)
        image_runs = f.select(by_rows, f.constant(I64, 1), rows_here * job.row_runs)
        length = f.select(by_rows, rows_here, job.run)
        first_run = band * job.band_rows * job.row_runs

        def group(g: Value) -> None:
            of_all = first_group + g
            own_image = image * all_outputs * job.out_pixels
            first_row = (of_all * job.group_outputs + start) * job.g_pitch
            a = slab_of.at(job.pointer("g"), own_image + first_row + first_pixel * job.g_step)

            def chunk(i: Value, r: Value) -> None:
                n_images = f.min(job.chunk_images, images - i)
                several_images = job.chunk_images > 1
                later = f.convert(f.ne(u, sum_number) | (i + r > 0), "u64")
                add = Value(f, later.name, I64)

                def block(c: Value) -> None:
                    wide = f.min(job.lanes * 2, job.padded_depth - c)
                    alone = f.eq(wide, job.lanes)
                    kind = f.select(alone, job.most_rows + 1, f.constant(I64, 0))
                    most = f.select(alone, job.alone_rows, job.tile_rows)
                    some_tiles = f.div(rows + most - 1, most)
                    of_first = f.div(rows + some_tiles - 1, some_tiles)  # rows of the first tile
                    tables = [f.at(job.pointer(n), kind, "i64") for n in ("tiles", "laid_tiles")]
                    first = f.select(once, f.constant(I64, 0), c)

                    def tap(t: Value) -> None:
                        here = f.load(I64, f.at(job.pointer("slab_taps"), t, "i64"))
                        b = slab_of.at(slab, here + g * job.group_channels + c)
                        row = f.select(once, t, of_all * job.n_taps + t)
                        place = row * job.tap_words + start * job.row_words + first
                        behind = [slab_of.at(partial, place), add]
                        kept = f.at(job.pointer("kept"), t << 2, "i64")
                        begin, end = (w - first_run for w in f.words(kept, 0, 2))
                        runs, of_images = f.pointers(kept, 2, 2)
                        begin, end = f.max(begin, r), f.min(f.min(end, image_runs), r + job.chunk)
                        of_image = f.max(end - begin, 0)
                        n_runs = of_image * n_images
                        begin = i * image_runs + f.min(begin, image_runs - 1)
                        begin = f.select(several_images, i * of_image, begin)
                        runs = f.at(runs, begin << 1, "i64")
                        given = [runs, n_runs, b, length, job.step, *behind]
                        across = [job.g_step] * g_last

                        def one_tile() -> None:
                            call_tiles(f, tables[0], most, a, table, zero, rows, [*given, *across])

                        def several() -> None:
                            of_tile = [*given, panel, *across]
                            call_tiles(f, tables[0], most, a, table, zero, of_first, of_tile)
                            f.when(of_first < rows, others)

                        def others() -> None:
                            a_here = slab_of.at(a, f.load(I64, runs))
                            pixels = of_image * length
                            given = [of_images, n_images, panel, pixels, pixels]
                            given += [*behind, *across]
                            call_tiles(f, tables[1], most, a_here, table, of_first, rows, given)

                        f.when(f.eq(job.lays, 0), one_tile)
                        f.when(f.ne(job.lays, 0), several)

                    def done(o: Value) -> None:
                        source = slab_of.at(partial, o * job.row_words)
                        place = ((of_all * job.group_outputs + o) * job.depth + c) * job.n_taps
                        to = slab_of.at(job.pointer("w"), place)
                        columns = f.min(job.lanes * 2, job.depth - c)
                        slab_of.transpose(
                            source, to, job.n_taps, columns, job.tap_words, job.n_taps
                        )

                    each(f, 0, job.n_taps, tap)
                    f.when(once, lambda: each(f, start, stop, done))

                each(f, 0, job.padded_depth, block, job.lanes * 2)

            def some(i: Value) -> None:
                each(f, 0, image_runs, lambda r: chunk(i, r), job.chunk)

            each(f, 0, images, some, job.chunk_images)

        each(f, 0, job.groups, group)

    each(f, sum_number, job.units, unit, job.partial_sums)
    f.ret()


def _define_gather(module: Module, element: str, turn: str, lanes: int) -> None:
    """`gather(job, output)`: add the partial sums of one output up and write its weights."""
    f = module.function("gather", [("job", PTR), ("output", I64)], local=True)
    job, output = Record(f, JOB, f.arguments[0]), f.arguments[1]
    scalar, vector = typed(element), typed(element, lanes)
    group = f.div(output, job.group_outputs)
    o = output - group * job.group_outputs
    to = f.at(job.pointer("w"), output * job.depth * job.n_taps, element)
    taps, depths, words = job.pointer("taps"), job.pointer("depths"), job.partial_words

    def row_of(t: Value) -> Value:
        place = ((group * job.n_taps + t) * job.group_outputs + o) * job.padded_depth
        return f.at(job.pointer("partial"), place, element)

    def add(t: Value) -> None:
        def some(c: Value) -> None:
            first = f.at(row_of(t), c, element)

            def more(s: Value, held: list[Value]) -> list[Value]:
                return [held[0] + f.load(vector, f.at(first, s * words, element))]

            start = [f.load(vector, first)]
            (total,) = f.loop(1, job.partial_sums, 1, more, start)
            f.store(total, first)

        each(f, 0, job.padded_depth, some, lanes)

    def scatter(t: Value) -> None:
        row = row_of(t)
        into = f.at(to, f.load(I64, f.at(taps, t, "i64")), element)

        def write(k: Value) -> None:
            x = f.load(scalar, f.at(row, k, element))
            f.store(x, f.at(into, f.load(I64, f.at(depths, k, "i64")), element))

        each(f, 0, job.depth, write)

    def turned() -> list[Value]:
        step = job.group_outputs * job.padded_depth
        given = [row_of(f.constant(I64, 0)), to, job.n_taps, job.depth, step, job.n_taps]
        f.call(turn, None, given)
        return []

    def scattered() -> list[Value]:
        each(f, 0, job.n_taps, scatter)
        return []

    f.when(job.partial_sums > 1, lambda: each(f, 0, job.n_taps, add))
    f.branch(f.ne(job.in_order, 0), turned, scattered)
    f.ret()
