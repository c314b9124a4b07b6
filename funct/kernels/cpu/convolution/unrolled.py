"""Convolution of few channels: what all pixels read, tap by tap, is a matrix, which the weights are
multiplied by (im2col), a block of pixels at a time.

Tiles whose lanes are outputs bring their sums to planes of pixels in the end, which takes as long
as the products of a few channels do. Here lanes are pixels and rows are outputs: weights are read
where they lie, and sums are stored where they belong.

An image is copied once, between zeros, its columns dealt out by the stride: what a tap reads of a
line is one run then. Those of a block are laid one after the other, so that a vector of pixels may
go on in the next line, and stay in the second-level cache while all outputs are multiplied by them.
"""

from __future__ import annotations

import functools
import itertools
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct

from funct.device import Code, Host, host, printed
from funct.device.machine_code import LEAN
from funct.kernels.channels import lie_last
from funct.kernels.cpu import scratch as memory
from funct.kernels.cpu.convolution.axes import Axis, filled
from funct.kernels.cpu.dense.dots import DOTS, supported
from funct.kernels.cpu.dense.slab import clear
from funct.kernels.cpu.dense.tile import call_tiles, most_rows, tile_table
from funct.kernels.cpu.record import Fields, Record, address
from funct.kernels.cpu.runners import filling
from funct.kernels.cpu.tasks import deal_out
from funct.kernels.llvm import I64, PTR, Emitter, Module, Value, each, typed
from funct.kernels.table import Fitted

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from funct.kernels.windows.views import Sizes, Sliding

    _Way = Callable[..., NDArray[Any]]  # the map, of operands that lie as those it was made for

__all__ = ["JOB", "Plan", "convolution", "convolution_input", "entry", "plan", "serves", "text"]

JOB = Fields((
    "tasks", "images", "blocks",  # of an image
    "x", "w", "y", "scratch", "scratch_step", "panel",  # offset in a task's scratch
    "image_words", "in_place",  # whether x needs no copy
    "channels", "size0", "size1", "size2", "slab_words", "slab0", "slab1", "slab2",
    "from0", "count0", "to0", "from1", "count1", "to1", "phases", "stride2",
    "lines", "line_blocks", "pieces", "out1", "out2", "down0", "down1",
    "depth", "offsets", "pitch",
    "outputs", "out_pixels", "rows", "chunk", "most_rows", "tiles", "tap",
))  # fmt: skip
_ELEMENT = {np.dtype(np.float32): "f32", np.dtype(np.float64): "f64"}
_PANEL_BYTES = 96 << 10  # of a block's pixels, which stay in the second-level cache
_PIXELS = (64, 1024)  # of a block, at least and at most
_WIDE = 64  # bytes of a vector: shorter ones leave tiles of outputs less empty
_CHUNK = 2  # tiles whose outputs are stored together: so many planes are written side by side
_LEAST_PIXELS = 32  # of an image: fewer leave tiles empty
_MOST_DEPTH = 48  # products of a sum; of more, other tiles' last step is little
_LEAST_OUTPUTS = 8  # for which a copy is worth it, or for each so many; or of one more
_SLOW, _LINE = 8, 16  # where lines are shorter than a vector, and again where strides are long
_ALONE = 1 << 20  # products that are no work for threads


class Plan(Struct, frozen=True, eq=False):
    """job: all but the addresses of arrays. tables: what it points to."""

    job: NDArray[np.int64]
    scratch_bytes: int
    tables: tuple[NDArray[np.int64], ...]


@functools.lru_cache(512)
def plan(dot: str, x: Sizes, w: Sizes, slide: Sliding) -> Plan:
    """What is known of shapes, of an image that has at least `_LEAST_PIXELS` of the result."""
    out = slide.size(x[2:], w[2:])
    axes, _ = filled(x[2:], out, w[2:], slide, False)
    width, word = supported(DOTS[dot], host()), typed(DOTS[dot].word).bytes
    lanes, line, depth = width // word, 64 // word, prod(w[1:])
    stride = axes[2].stride
    plain = stride == 1 and all(a.low <= 0 and a.reach() - a.low <= a.size for a in axes)
    sizes = [a.size for a in axes]
    if plain:
        slab, lows = sizes, [a.low for a in axes]
    else:
        reach = [a.reach() for a in axes]
        slab, lows = [*reach[:2], -(-reach[2] // stride)], [0, 0, 0]
    row = stride * slab[2]
    at = [slab[1] * row, row]  # from one line of a plane, and of an image, to the next
    taps = [[offset - low for _, offset in a.phases[0].taps] for a, low in zip(axes, lows)]
    offsets = np.array([
        c * slab[0] * at[0] + o0 * at[0] + o1 * at[1] + o2 % stride * slab[2] + o2 // stride
        for c, o0, o1, o2 in itertools.product(range(w[1]), *taps)
    ], np.int64)  # fmt: skip
    lines, columns = axes[0].out * axes[1].out, axes[2].out
    pixels = min(max(_PANEL_BYTES // (depth * word), _PIXELS[0]), _PIXELS[1])
    pieces = max(1, columns // pixels)
    line_blocks = max(1, lines // max(1, pixels // columns))
    most_pixels = -(-lines // line_blocks) * -(-columns // pieces)
    pitch = (-(-most_pixels // line) | 1) * line
    slab_words = w[1] * slab[0] * at[0]
    panel = 0 if plain else (slab_words // line + 2) * line
    most = most_rows(DOTS[dot], width)
    outputs, out_pixels, o = w[0], lines * columns, np.arange(w[0])
    chunk = -(-outputs // -(-outputs // (_CHUNK * most)))
    rows = np.stack([o * depth, o * out_pixels], axis=1)
    tap = np.zeros(2, np.int64)
    phases = _phases(axes[2], stride, slab[2])
    blocks, cores = line_blocks * pieces, host().cores
    tasks = min(4 * cores, x[0]) if x[0] >= cores else min(cores, x[0] * blocks)
    if x[0] * out_pixels * outputs * depth <= _ALONE:
        tasks = 1
    fields = {
        "tasks": tasks, "images": x[0], "blocks": blocks,
        "scratch_step": panel + depth * pitch + line, "panel": panel,
        "image_words": prod(x[1:]), "in_place": int(plain), "channels": w[1],
        **{f"size{k}": n for k, n in enumerate(sizes)},
        **{f"slab{k}": n for k, n in enumerate(slab)},
        "slab_words": slab_words, "phases": address(phases), "stride2": stride,
        "lines": lines, "line_blocks": line_blocks, "pieces": pieces, "out1": axes[1].out,
        "out2": columns, "down0": axes[0].stride * at[0], "down1": axes[1].stride * at[1],
        "depth": depth, "offsets": address(offsets), "pitch": pitch, "outputs": outputs,
        "out_pixels": out_pixels, "rows": address(rows), "chunk": chunk, "most_rows": most,
    }  # fmt: skip
    for k, a in enumerate(axes[:2]):
        first, to = max(0, -a.low), max(0, a.low)
        count = max(0, min(a.size - first, slab[k] - to))
        fields |= {f"from{k}": first, f"count{k}": count, f"to{k}": to}
    counts = {chunk, outputs % chunk or chunk}
    table = tile_table(dot, width, counts, 3 * lanes, packed=False)
    job = JOB.fill(
        **fields, x=0, w=0, y=0, scratch=0, tiles=address(table), tap=address(tap)
    )  # fmt: skip
    tables = (offsets, rows, tap, phases)
    return Plan(job, tasks * fields["scratch_step"] * word, tables)


def _phases(a: Axis, stride: int, width: int) -> NDArray[np.int64]:
    """For each residue by the stride: (first column of the image, count, place in a line of the
    copy), of which `width` columns are for it.
    """
    found = []
    for r in range(stride):
        first = max(0, -((r - a.low) // stride))
        stop = min(width, (a.size - 1 + a.low - r) // stride + 1)
        found.append((first * stride + r - a.low, max(0, stop - first), r * width + first))
    return np.array(found, np.int64)


def text(element: str, target: Host) -> str:
    """`convolve(job)`: images, a block of pixels after the other."""
    module = Module(target)
    f = module.function("blocks", [("job", PTR), ("task", I64)], local=True)
    job, task = Record(f, JOB, f.arguments[0]), f.arguments[1]
    of = _Blocks(f, job, element, target.vector_bytes)
    blocks = job.blocks
    units = job.images * blocks
    start, stop = f.div(task * units, job.tasks), f.div((task + 1) * units, job.tasks)
    scratch = of.at(job.pointer("scratch"), task * job.scratch_step)
    panel = of.at(scratch, job.panel)

    def image(n: Value) -> None:
        x = of.at(job.pointer("x"), n * job.image_words)
        f.when(f.eq(job.in_place, 0), lambda: of.copy(x, scratch))
        slab = f.select(f.ne(job.in_place, 0), x, scratch)
        y = of.at(job.pointer("y"), n * job.outputs * job.out_pixels)

        def block(u: Value) -> None:
            of.block(u - n * blocks, slab, panel, y)

        each(f, f.max(start, n * blocks), f.min(stop, (n + 1) * blocks), block)

    each(f, f.div(start, blocks), f.div(stop + blocks - 1, blocks), image)
    f.ret()
    deal_out(module, "convolve", "blocks", JOB)
    return module.text()


class _Blocks:
    """Prints the work on blocks of pixels."""

    def __init__(self, f: Emitter, job: Record, element: str, width: int) -> None:
        self.f, self.job, self.element = f, job, element
        self.lanes = width // typed(element).bytes
        self.vector = typed(element, self.lanes)

    def at(self, pointer: Value, offset: Value | int) -> Value:
        """The address of an element."""
        return self.f.at(pointer, offset, self.element)

    def copy(self, x: Value, slab: Value) -> None:
        """An image between zeros, columns a stride apart side by side."""
        f, job = self.f, self.job
        clear(f, slab, job.slab_words * self.vector.scalar.bytes)

        def plane(c: Value) -> None:
            def of_first(i0: Value) -> None:
                def of_second(i1: Value) -> None:
                    line = (c * job.size0 + job.from0 + i0) * job.size1 + job.from1 + i1
                    source = self.at(x, line * job.size2)
                    row = (c * job.slab0 + job.to0 + i0) * job.slab1 + job.to1 + i1
                    to = self.at(slab, row * (job.stride2 * job.slab2))
                    each(f, 0, job.stride2, lambda r: phase(r, source, to))

                each(f, 0, job.count1, of_second)

            each(f, 0, job.count0, of_first)

        def phase(r: Value, source: Value, to: Value) -> None:
            here = f.at(job.pointer("phases"), r * 3, "i64")
            first, count, place = f.words(here, 0, 3)
            source, to = self.at(source, first), self.at(to, place)

            def dense() -> list[Value]:
                self.run(to, source, count)
                return []

            def others() -> list[Value]:
                def second() -> list[Value]:
                    each(f, 0, count, lambda j: self._every_second(to, source, count, j), lanes)
                    return []

                def any_stride() -> list[Value]:
                    def one(j: Value) -> None:
                        x = f.load(self.vector.scalar, self.at(source, j * job.stride2))
                        f.store(x, self.at(to, j))

                    each(f, 0, count, one)
                    return []

                return f.branch(f.eq(job.stride2, 2), second, any_stride)

            f.branch(f.eq(job.stride2, 1), dense, others)

        lanes = self.lanes
        each(f, 0, job.channels, plane)

    def _every_second(self, to: Value, source: Value, count: Value, j: Value) -> None:
        f, lanes = self.f, self.lanes
        left = (count - j) * 2 - 1
        first = self.at(source, j * 2)
        low = f.load(self.vector, first, f.first_lanes(lanes, left))
        beyond = f.first_lanes(lanes, f.max(left - lanes, 0))
        high = f.load(self.vector, self.at(first, lanes), beyond)
        x = f.shuffle(low, high, list(range(0, 2 * lanes, 2)))
        f.store(x, self.at(to, j), f.first_lanes(lanes, count - j))

    def run(self, to: Value, source: Value, count: Value) -> None:
        """Copy elements that follow each other."""
        f, lanes = self.f, self.lanes

        def some(j: Value) -> None:
            mask = f.first_lanes(lanes, count - j)
            f.store(f.load(self.vector, self.at(source, j), mask), self.at(to, j), mask)

        each(f, 0, count, some, lanes)

    def block(self, b: Value, slab: Value, panel: Value, y: Value) -> None:
        """What the pixels of a block read, and all of their sums."""
        f, job = self.f, self.job
        of_lines = f.div(b, job.pieces)
        piece = b - of_lines * job.pieces
        first = f.div(of_lines * job.lines, job.line_blocks)
        last = f.div((of_lines + 1) * job.lines, job.line_blocks)
        column = f.div(piece * job.out2, job.pieces)
        count = f.div((piece + 1) * job.out2, job.pieces) - column
        table, pitch = job.pointer("offsets"), job.pitch

        def line(i: Value) -> None:
            i0 = f.div(i, job.out1)
            i1 = i - i0 * job.out1
            source = self.at(slab, i0 * job.down0 + i1 * job.down1 + column)
            to = self.at(panel, (i - first) * count)

            def tap(k: Value) -> None:
                self.run(self.at(to, k * pitch), self.at(source, f.word(table, k)), count)

            each(f, 0, job.depth, tap)

        each(f, first, last, line)
        self._products(panel, self.at(y, first * job.out2 + column), (last - first) * count)

    def _products(self, panel: Value, y: Value, pixels: Value) -> None:
        """The sums of so many pixels, the last ones of which may be those before them again."""
        f, job, pair = self.f, self.job, 2 * self.lanes
        rows, zero = job.pointer("rows"), f.constant(I64, 0)
        tiles = job.pointer("tiles")

        def some(o: Value) -> None:
            stop = f.min(o + job.chunk, job.outputs)

            def vectors(q: Value) -> None:
                alone = pixels - q <= self.lanes
                q = f.select(alone, pixels - self.lanes, f.min(q, pixels - pair))
                table = f.at(tiles, f.select(alone, job.most_rows + 1, zero), "i64")
                given = [
                    job.pointer("tap"), f.constant(I64, 1), self.at(panel, q), job.depth,
                    job.pitch, self.at(y, q), zero,
                ]  # fmt: skip
                call_tiles(f, table, job.most_rows, job.pointer("w"), rows, o, stop, given)

            each(f, 0, pixels, vectors, pair)

        each(f, 0, job.outputs, some, job.chunk)


@functools.lru_cache(512)
def serves(x: Sizes, w: Sizes, slide: Sliding) -> bool:
    """Whether there are so few channels and short windows that it is quicker, by the shapes."""
    size, depth, outputs = slide.size(x[2:], w[2:]), prod(w[1:]), w[0]
    if len(size) > 3 or min(*x, *w, *size) < 1 or slide.groups > 1:
        return False
    few = _LEAST_OUTPUTS + host().loads_keep_pace  # where lines are as quick
    least = few * _SLOW ** ((size[-1] < _LINE) + (slide.stride[-1] > 2))
    able = prod(size) >= _LEAST_PIXELS and host().vector_bytes >= _WIDE
    return able and prod(w[2:]) > 1 and depth <= _MOST_DEPTH and outputs >= least


def _convolution(x: NDArray[Any], w: NDArray[Any], slide: Sliding) -> _Way | None:
    if x.dtype != w.dtype or lie_last(x) or not serves(x.shape, w.shape, slide):
        return None
    size, dot = slide.size(x.shape[2:], w.shape[2:]), _ELEMENT[x.dtype]
    made = plan(dot, x.shape, w.shape, slide)
    make = memory.maker((len(x), len(w), *size), x.dtype)
    run = filling(entry(dot), made.job, _PLACES)
    dense = x.flags.c_contiguous and w.flags.c_contiguous

    def way(x: NDArray[Any], w: NDArray[Any], *_: Any) -> NDArray[Any]:
        y = make()
        if not dense:
            x, w = np.ascontiguousarray(x), np.ascontiguousarray(w)
        run(x, w, y, memory.scratch(made.scratch_bytes))
        return y

    return way


def _convolution_input(
    g: NDArray[Any], w: NDArray[Any], slide: Sliding, size: Sizes
) -> _Way | None:
    """Without strides it is a convolution with turned taps."""
    if max(slide.stride) > 1 or slide.groups > 1 or 0 in size:
        return None
    axes = tuple(range(2, w.ndim))
    lows = [d * (k - 1) - low for d, k, (low, _) in zip(slide.dilation, w.shape[2:], slide.padding)]
    reach = [d * (k - 1) for d, k in zip(slide.dilation, w.shape[2:])]
    ends = [s - 1 + r + 1 - t - low for s, r, t, low in zip(size, reach, g.shape[2:], lows)]
    turned = slide._replace(padding=tuple(zip(lows, ends)))

    def flipped(w: NDArray[Any]) -> NDArray[Any]:
        return np.ascontiguousarray(np.flip(w, axes).swapaxes(0, 1))

    way = _convolution(g, flipped(w), turned)
    return way and (lambda g, w, *_: way(g, flipped(w)))


# See the functions of these names in `funct.kernels.windows.convolution`.
convolution, convolution_input = Fitted(_convolution), Fitted(_convolution_input)
_PLACES = tuple([JOB.place(name) for name in ("x", "w", "y", "scratch")])


def entry(element: str) -> int:
    """The address of `convolve` on this machine."""
    return _code(element, host()).address("convolve")


@functools.cache
def _code(element: str, target: Host) -> Code:
    return printed(text, element, target, opt=LEAN)
