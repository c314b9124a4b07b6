"""Convolutions of codes whose pixels are the lanes, and outputs the rows.

Channels of a group's pixels become words (`words.py`), plane beside plane, which one instruction
multiplies by words of weights that are the same in all lanes. So sums lie as the result does, and
become codes in registers: nothing is turned around, and no sums are written.

Where windows are larger than single elements, zeros stand around the lines of a plane. The lines of
the result follow each other as these do, and are computed as one: what lies between them is
computed in vain, and codes wait beside the planes until they are brought to the result. Of windows
that lie two apart, a word has a plane for each residue of lines and columns: in each, what one tap
reads is adjacent.

A unit is a band of lines, or of pixels, of a group of an image, and all outputs of the group. Of
its words a tile reads two vectors for a dozen products of each, so they may lie in the second-level
cache: bands are as long as leaves the fewest lanes empty in their last runs.
"""

from __future__ import annotations

import functools
import itertools
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct

from funct.device import Host, host, printed
from funct.kernels.cpu.dense.dots import DOTS, supported
from funct.kernels.cpu.quantized.codes import BYTE, farthest, spans, to_codes_fields
from funct.kernels.cpu.quantized.images import Images
from funct.kernels.cpu.quantized.narrowing import TO_CODES, Narrowing
from funct.kernels.cpu.quantized.words import Words
from funct.kernels.cpu.record import Fields, Record, address
from funct.kernels.cpu.tasks import deal_out_units
from funct.kernels.llvm import I64, Emitter, Module, Value, each, typed
from funct.kernels.windows.views import Sliding

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from funct.kernels.quantized.affine import Codes
    from funct.kernels.windows.views import Sizes

__all__ = ["Pattern", "convolver"]

# outputs of a tile, by registers: all sums of two vectors of pixels, what they are made of, and a
# product fit into these
_ROWS = {8: range(2, 7), 16: range(2, 15)}
_ROOM = 128 << 10  # bytes of the words of a unit, which stay in the second-level cache
_SPREAD = 8  # cycles to spread a vector of words
_WAYS = 4  # times as many bands as there must be are thought of
_MOST_CHANNELS = 8  # of a group, whose windows are larger: more pairs fill the rows of tiles
_TASKS = 4  # per core,
_TASK = 1 << 18  # of so many products at least
_SHARE = 1 << 20  # products of an image that are cut for a core
_MOST_STRIDE = 2
_MOST_STEPS = 2.0**31
_LINE = 64  # bytes
_WORD = 4  # bytes
_BROUGHT = 32  # bytes at a time
_POINT = Sliding((1, 1), ((0, 0), (0, 0)), (1, 1), 1)

JOB = Fields((
    "tasks", "units", "parts", "groups", "x", "w", "y", "scratch", "scratch_step", "part", "codes",
    "codes_step", "offsets", "channels", "planes", "words", "outputs", "x_zero", "size1", "size2",
    "low1", "columns", "out1", "out2", "pitch", "above", *TO_CODES,
))  # fmt: skip


class Pattern(Struct, frozen=True, cache_hash=True):
    """What a text is printed for.

    words: those of x and of weights, of which a vector has so many lanes. single: whether windows
    are single elements, and images one line. rows: outputs of a tile. strides: of lines and of
    columns. residues: by them, of the lines and of the columns that are read. bounded: whether
    steps fit into int32. codes: the elements of x and of the result.
    """

    words: Words
    lanes: int
    single: bool
    rows: int
    strides: tuple[int, int]
    residues: tuple[tuple[int, ...], tuple[int, ...]]
    bounded: bool
    codes: tuple[str, str]

    @property
    def run(self) -> int:
        """Pixels of a tile."""
        return 2 * self.lanes

    def weights(
        self, w: NDArray[np.int8], groups: int, bias: NDArray[np.int32], zero: int
    ) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Words (group, tile, word, output) of weights (O, c, *K); a group's last tile overlaps.
        And what sums begin with.
        """
        words = self.words.weights(np.ascontiguousarray(w).reshape(*w.shape[:2], -1))
        words = words.reshape(groups, len(w) // groups, -1)
        outputs = words.shape[1]
        first = np.minimum(np.arange(0, outputs, self.rows), outputs - self.rows)
        tiles = words[:, first[:, None] + np.arange(self.rows)]
        return np.ascontiguousarray(tiles.swapaxes(2, 3)), bias - zero * self.words.offset(w)


class _Axis(Struct, frozen=True):
    """Lines or columns: how many are read and written, and how taps lie."""

    size: int
    taps: int
    dilation: int
    low: int
    out: int
    stride: int

    @property
    def offsets(self) -> NDArray[np.int64]:
        """Of the taps."""
        return np.arange(self.taps) * self.dilation

    @property
    def residues(self) -> tuple[int, ...]:
        """Of the offsets, by the stride."""
        return tuple(np.unique(self.offsets % self.stride).tolist())

    @property
    def beside(self) -> int:
        """The farthest offset, among those of its residue."""
        return (self.taps - 1) * self.dilation // self.stride

    def columns(self) -> NDArray[np.int64]:
        """Of each residue the first that is read, how many are, and the place of the first."""
        found = []
        for residue in self.residues:
            first = max(0, -self.low)
            first += (residue - first - self.low) % self.stride
            to = (first + self.low) // self.stride
            count = -(-(self.size - first) // self.stride)
            found.append((first, max(0, min(count, self.out + self.beside - to)), to))
        return np.array(found, np.int64)


def convolver(
    x: Sizes, dtype: np.dtype[Any], zero_point: int, w: Sizes, bias: NDArray[np.int32],
    to: Codes, slide: Sliding, words: Words,
) -> Images | None:  # fmt: skip
    """What computes `funct.kernels.quantized.affine.convolution` of images of this shape. None
    where strides are long, where larger windows have many channels or three axes, or where pixels
    or outputs are too few to fill a tile.
    """
    (channels, *kernel), groups, images = w[1:], slide.groups, x[0] * slide.groups
    outputs, out = w[0] // groups, slide.size(x[2:], w[2:])
    shape = (x[0], w[0], *out)
    lanes = supported(DOTS[words.dot], host()) // _WORD
    single = prod(kernel) == 1 and slide.pointwise
    few = 1 < channels <= _MOST_CHANNELS or not words.centred
    few = few and channels > 1 and len(kernel) < 3 and max(slide.stride) <= _MOST_STRIDE
    serves = few or (single and channels >= min(groups, 2))
    if not serves or lanes not in _ROWS or outputs < min(_ROWS[lanes]):
        return None
    if single:
        x, kernel, out, slide = (*x[:2], prod(out), 1), [1, 1], (prod(out), 1), _POINT
    lows = [low for low, _ in slide.padding]
    given = zip(x[2:], kernel, slide.dilation, lows, out, slide.stride, strict=True)
    axes = [_Axis(1, 1, 1, 0, 1, 1)] * (2 - len(kernel)) + [_Axis(*a) for a in given]
    lines, line = axes
    above, beside, columns, run = lines.beside, line.beside, line.columns(), 2 * lanes
    # zeros are of two lines
    ends = [(to + count, line.out + beside - to) for _, count, to in columns.tolist()]
    pitch = max(line.out, *map(max, ends))
    if lines.out * pitch < run:
        return None
    parts_of_word = len(lines.residues) * len(line.residues)
    planes = -(-channels // words.count)
    products = images * outputs * prod(out) * channels * prod(kernel)
    able = [n for n in _ROWS[lanes] if n <= outputs]
    rows = min(able, key=lambda n: -(-outputs // n) * (n + 1))  # one for what is read of x
    of_run = prod(kernel) * -(-outputs // rows) * (rows + 1)
    of_line = _SPREAD * parts_of_word * pitch / lanes
    bands = _bands(
        lines.out, (pitch, above, run), _ROOM // (_WORD * planes * parts_of_word),
        (of_run, of_line), -(-min(host().cores, products // _SHARE) // images),
    )  # fmt: skip
    most = -(-lines.out // bands)
    # an odd number of vectors, so that planes fall into different places of the cache
    part = (-(-((most + above) * pitch + beside + run) // lanes) | 1) * lanes
    at1, at2 = (np.searchsorted(a.residues, a.offsets % a.stride) for a in axes)
    down = at1 * (len(line.residues) * part) + lines.offsets // lines.stride * pitch
    along = at2 * part + line.offsets // line.stride
    offsets = np.add.outer(
        np.arange(planes) * (parts_of_word * part), np.add.outer(down, along)
    ).ravel()
    codes = _WORD * planes * parts_of_word * part
    codes_step = -(-(most * pitch + run) // _LINE) * _LINE
    step = -(-(codes + rows * codes_step) // _LINE) * _LINE
    units = images * bands
    tasks = max(1, min(units, _TASKS * host().cores, products // _TASK))
    fields, held = to_codes_fields(bias, to)
    most_sum = farthest(channels * prod(kernel), bias.tobytes())
    bounded = float(np.max(np.abs(to.multiplier))) * most_sum < _MOST_STEPS
    zero = words.zero_point(zero_point, dtype)
    job = JOB.fill(
        tasks=tasks, units=units, parts=bands, groups=groups, x=0, w=0, y=0, scratch=0,
        scratch_step=step, part=part, codes=codes, codes_step=codes_step,
        offsets=address(offsets), channels=channels, planes=planes, words=len(offsets),
        outputs=outputs, x_zero=zero, size1=lines.size, size2=line.size, low1=lines.low,
        columns=address(columns), out1=lines.out, out2=line.out, pitch=pitch, above=above, **fields,
    )  # fmt: skip
    pattern = Pattern(
        words, lanes, single, rows, (lines.stride, line.stride), (lines.residues, line.residues),
        bounded, (BYTE[dtype], BYTE[np.dtype(to.dtype)]),
    )  # fmt: skip
    code = printed(_text, pattern, host()).keep()
    return Images(
        functools.partial(pattern.weights, groups=groups, bias=bias, zero=zero),
        (pattern, groups, bias.tobytes(), zero), code.address("run"), JOB, job, tasks * step, shape,
        np.dtype(to.dtype), (held, offsets, columns),
    )  # fmt: skip


def _bands(
    out: int, sizes: tuple[int, int, int], room: int, cycles: tuple[float, float], wanted: int
) -> int:
    """Into how many bands the lines of an image are cut: those of the fewest cycles, as runs that
    end behind a band compute in vain, and bands read lines of each other.

    sizes: pixels of a line, lines that a band reads more than it writes, pixels of a run. room:
    pixels that a band may read. cycles: of a run, and to spread a line. wanted: for threads to
    share.
    """
    pitch, above, run = sizes
    least = min(out, -(-2 * run // pitch))
    fewest = -(-out // max(least, room // pitch - above))
    most = max(1, out // least)

    def cost(bands: int) -> float:
        low, more = divmod(out, bands)
        runs = (bands - more) * -(-low * pitch // run) + more * -(-(low + 1) * pitch // run)
        return runs * cycles[0] + (out + bands * above) * cycles[1]

    first = max(fewest, min(wanted, most))
    return min(range(first, max(first, min(most, _WAYS * first)) + 1), key=cost)


def _text(pattern: Pattern, target: Host) -> str:
    """`run(job)`."""
    module = Module(target)

    def units(f: Emitter, job: Record) -> tuple[Value, Callable[[Value], None]]:
        return job.units, _Unit(f, job, pattern).print

    deal_out_units(module, "run", JOB, units)
    return module.text()


class _Unit:
    """Prints the work on a band of a group of an image."""

    def __init__(self, f: Emitter, job: Record, pattern: Pattern) -> None:
        self.f, self.job, self.pattern = f, job, pattern
        self.slab = f.at(job.pointer("scratch"), f.arguments[1] * job.scratch_step, "i8")
        self.codes = f.at(self.slab, job.codes, "i8")
        self.narrowing = Narrowing(f, job, pattern.codes[1], pattern.lanes, bounded=pattern.bounded)
        if not pattern.single:
            zeros = self._nothing(_BROUGHT)
            each(f, 0, job.codes, lambda i: f.store(zeros, f.at(self.slab, i, "i8")), _BROUGHT)

    def _nothing(self, bytes: int) -> Value:
        """What stands for 0 in words."""
        f = self.f
        zero = f.constant(I64, 0) if self.pattern.words.centred else self.job.x_zero
        return f.splat(f.convert(zero, "i8"), bytes)

    def print(self, unit: Value) -> None:
        """Some lines."""
        f, job = self.f, self.job
        image = f.div(unit, job.parts)
        part = unit - image * job.parts
        group = f.rem(image, job.groups)
        first = f.div(part * job.out1, job.parts)
        lines = f.div((part + 1) * job.out1, job.parts) - first
        size = job.out1 * job.out2
        x = image * job.channels * (job.size1 * job.size2)
        self._spread(f.at(job.pointer("x"), x, self.pattern.codes[0]), first, lines)
        y = f.at(job.pointer("y"), image * job.outputs * size + first * job.out2, "i8")
        rows = self.pattern.rows
        last, of_group = job.outputs - rows, group * job.outputs
        tile, tiles = job.words * rows, f.div(job.outputs + (rows - 1), rows)
        w = f.at(job.pointer("w"), group * tiles * tile, "i32")

        def some(k: Value) -> None:
            at = f.min(k, last)
            of_w, to = f.at(w, f.div(k, rows) * tile, "i32"), f.at(y, at * size, "i8")
            if self.pattern.single:
                self._sum(of_w, of_group + at, lines, (to, size))
                return
            self._sum(of_w, of_group + at, lines * job.pitch, (self.codes, job.codes_step))
            for row in range(rows):
                codes = f.at(self.codes, job.codes_step * row, "i8")
                self._bring(codes, lines, f.at(to, size * row, "i8"))

        each(f, 0, job.outputs, some, rows)

    def _spread(self, x: Value, first: Value, lines: Value) -> None:
        """Words of a band's channels; those behind the last one, whose weights are 0, are like it.
        Zeros for lines outside of the image.
        """
        f, job, read, count = self.f, self.job, self.pattern.codes[0], self.pattern.words.count
        residues, (stride1, stride2) = self.pattern.residues, self.pattern.strides
        last, size1, size2, pitch = job.channels - 1, job.size1, job.size2, job.pitch
        size, part, columns = size1 * size2, job.part, job.pointer("columns")
        table = [
            [f.load(I64, f.at(columns, 3 * k + n, "i64")) for n in range(3)]
            for k in range(len(residues[1]))
        ]
        parts = list(itertools.product(range(len(residues[0])), range(len(residues[1]))))

        def word(k: Value) -> None:
            planes = [f.at(x, f.min(k * count + n, last) * size, read) for n in range(count)]
            to = f.at(self.slab, k * (part * len(parts)), "i32")

            def run(place: Value, to: Value, many: Value) -> None:
                def some(q: Value, lanes: int) -> None:
                    codes = [self._codes(f.at(p, place + q * stride2, read), lanes) for p in planes]
                    f.store(self._word(codes), f.at(to, q, "i32"))

                spans(f, many, self.pattern.lanes, some)

            def line(r: Value) -> None:
                for number, (n1, n2) in enumerate(parts):
                    at = (first + r) * stride1 + (residues[0][n1] - job.low1)
                    from2, many, to2 = table[n2]
                    here = f.at(to, r * pitch + to2 + part * number, "i32")

                    def words(
                        at: Value = at, from2: Value = from2, many: Value = many, here: Value = here
                    ) -> list[Value]:
                        run(at * size2 + from2, here, many)
                        return []

                    def nothing(many: Value = many, here: Value = here) -> list[Value]:
                        spans(f, many, self.pattern.lanes, lambda q, lanes: f.store(
                            self._nothing(_WORD * lanes), f.at(here, q, "i32")))  # fmt: skip
                        return []

                    f.branch((at >= 0) & (at < size1), words, nothing)

            if self.pattern.single:
                run(first, to, lines)
            else:
                each(f, 0, lines + job.above, line)

        each(f, 0, job.planes, word)

    def _codes(self, x: Value, lanes: int) -> Value:
        """Codes that lie strides apart. What is behind the last one is not read."""
        f, read = self.f, self.pattern.codes[0]
        codes = f.load(typed(read, lanes), x)
        if self.pattern.strides[1] == 1 or lanes == 1:
            return codes
        others = f.load(typed(read, lanes), f.at(x, lanes - 1, read))
        order = [*range(0, lanes, 2), *range(lanes + 1, 2 * lanes, 2)]
        return f.shuffle(codes, others, order)

    def _word(self, codes: list[Value]) -> Value:
        """Words of codes of several channels: differences from the zero point, or bytes."""
        f, words = self.f, self.pattern.words
        if words.centred:
            zero = f.splat(f.convert(self.job.x_zero, "i32"), codes[0].type.lanes)
            low, high = (f.convert(c, "i32") - zero for c in codes)
            return (low & 0xFFFF) | (high << 16)
        total = None
        for n, c in enumerate(codes):
            code = c ^ -128 if c.type.is_signed else c
            wide = f.convert(Value(f, code.name, code.type.unsigned), "u32") << (8 * n)
            total = wide if total is None else total | wide
        assert total is not None
        return total

    def _sum(self, w: Value, first: Value, count: Value, to: tuple[Value, Value]) -> None:
        """The codes of a tile's outputs, from `first` of all on, of so many pixels. to: where they
        go, and the elements from one output to the next.
        """
        f, job, rows, lanes = self.f, self.job, self.pattern.rows, self.pattern.lanes
        vector, many, dot = typed("i32", lanes), self.pattern.run, DOTS[self.pattern.words.dot]
        bias, multiplier = job.pointer("bias"), job.pointer("multiplier")
        offsets, words, (y, step) = job.pointer("offsets"), job.words, to
        last = f.max(count - many, 0)

        def run(q: Value) -> None:
            q = f.min(q, last)
            x = f.at(self.slab, q, "i32")

            def word(k: Value, sums: list[Value]) -> list[Value]:
                here = f.at(x, f.load(I64, f.at(offsets, k, "i64")), "i32")
                of_w = f.at(w, k * rows, "i32")
                pixels = [f.load(vector, f.at(here, n * lanes, "i32")) for n in range(2)]
                found = []
                for row in range(rows):
                    weight = f.splat(f.load(typed("i32"), f.at(of_w, row, "i32")), lanes)
                    for n in range(2):
                        of_run = sums[2 * row + n]
                        found.append(dot.step(f, of_run, pixels[n], weight))
                return found

            begin = [
                f.splat(f.load(typed("i32"), f.at(bias, first + row, "i32")), lanes)
                for row in range(rows)
                for _ in range(2)
            ]
            sums = f.loop(0, words, 1, word, begin)
            steps = []
            for row in range(rows):
                factor = f.load(typed("f32"), f.at(multiplier, first + row, "f32"))
                two = sums[2 * row : 2 * row + 2]
                steps.append([f.convert(s, "f32") * f.splat(factor, lanes) for s in two])
            order = [divmod(k, lanes) for k in range(2 * many)]
            for row in range(0, rows, 2):
                some = steps[row : row + 2]  # the last one alone is taken twice
                codes = self.narrowing.codes([*some[0], *some[-1]], order)
                for n in range(len(some)):
                    half = f.shuffle(codes, None, range(n * many, (n + 1) * many))
                    f.store(half, f.at(y, step * (row + n) + q, "i8"))

        each(f, 0, count, run, many)

    def _bring(self, codes: Value, lines: Value, y: Value) -> None:
        """An output's codes to their place in the result."""
        f, out2, pitch = self.f, self.job.out2, self.job.pitch

        def line(i: Value) -> None:
            source, to = f.at(codes, i * pitch, "u8"), f.at(y, i * out2, "u8")
            spans(f, out2, _BROUGHT, lambda k, lanes: f.store(
                f.load(typed("u8", lanes), f.at(source, k, "u8")), f.at(to, k, "u8")))  # fmt: skip

        each(f, 0, lines, line)
