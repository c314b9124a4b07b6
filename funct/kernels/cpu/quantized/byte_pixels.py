"""Convolutions of codes whose pixels are the lanes, and outputs the rows: windows that are single
elements, and those of a few channels.

Pairs of channels of a group's pixels become words (`words.py`), plane beside plane, which one
instruction multiplies by words of weights that are the same in all lanes. So sums lie as the result
does, and become codes in registers: nothing is turned around, and no sums are written.

Where windows are larger, zeros stand around the lines of a plane. The lines of the result follow
each other as these do, and are computed as one: what lies between them is computed in vain, and
codes wait beside the planes until they are brought to the result.

A unit is a band of lines, or of pixels, of a group of an image, whose words stay in the first-level
cache, and all outputs of the group.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct

from funct.device import Host, host, printed
from funct.kernels.cpu import scratch as memory
from funct.kernels.cpu.dense.dots import DOTS
from funct.kernels.cpu.quantized.codes import BYTE, farthest, spans, to_codes_fields
from funct.kernels.cpu.quantized.narrowing import TO_CODES, Narrowing
from funct.kernels.cpu.quantized.words import PAIRS
from funct.kernels.cpu.record import Fields, Record, address
from funct.kernels.cpu.runners import filling
from funct.kernels.cpu.tasks import deal_out_units
from funct.kernels.llvm import I64, Emitter, Module, Value, each, typed
from funct.kernels.windows.views import Sliding

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from funct.kernels.quantized.affine import Codes
    from funct.kernels.windows.views import Sizes

__all__ = ["Pattern", "convolver"]

_ROWS = (6, 4, 2)  # outputs of a tile,
_LANES = 8
_RUN = 2 * _LANES  # and pixels: all sums, what they are made of, and a product fit into registers
_ROOM = 24 << 10  # bytes of the words of a unit
_MOST_CHANNELS = 8  # of a group, whose windows are larger: more fill the rows of tiles
_TASKS = 4  # per core
_MOST_STEPS = 2.0**31
_LINE = 64  # bytes
_POINT = Sliding((1, 1), ((0, 0), (0, 0)), (1, 1), 1)

JOB = Fields((
    "tasks", "units", "parts", "groups", "x", "w", "y", "scratch", "scratch_step", "plane", "codes",
    "codes_step", "offsets", "channels", "planes", "words", "outputs", "x_zero", "size1", "size2",
    "low1", "from2", "count2", "to2", "out1", "out2", "pitch", "above", *TO_CODES,
))  # fmt: skip


class Pattern(Struct, frozen=True, cache_hash=True):
    """What a text is printed for.

    single: whether windows are single elements, and images one line. rows: outputs of a tile.
    bounded: whether steps fit into int32. codes: the elements of x and of the result.
    """

    single: bool
    rows: int
    bounded: bool
    codes: tuple[str, str]

    def weights(self, w: NDArray[np.int8], groups: int) -> NDArray[np.int32]:
        """Words (group, tile, word, output) of weights (O, c, *K); a group's last tile overlaps."""
        words = PAIRS.weights(w.reshape(*w.shape[:2], -1)).reshape(groups, len(w) // groups, -1)
        outputs = words.shape[1]
        first = np.minimum(np.arange(0, outputs, self.rows), outputs - self.rows)
        tiles = words[:, first[:, None] + np.arange(self.rows)]
        return np.ascontiguousarray(tiles.swapaxes(2, 3))


def convolver(
    x: Sizes, dtype: np.dtype[Any], zero_point: int, w: Sizes, bias: NDArray[np.int32],
    to: Codes, slide: Sliding,
) -> tuple[Pattern, Callable[..., None]] | None:  # fmt: skip
    """What fills images of codes from images of codes, the pattern's `weights`, and the result; see
    `funct.kernels.quantized.affine.convolution`. None where there are strides, where larger
    windows have many channels or three axes, or where pixels or outputs are too few
    to fill a tile.
    """
    (channels, *kernel), groups, images = w[1:], slide.groups, x[0] * slide.groups
    outputs, out = w[0] // groups, slide.size(x[2:], w[2:])
    single = prod(kernel) == 1 and slide.pointwise
    few = 1 < channels <= _MOST_CHANNELS and len(kernel) < 3 and max(slide.stride) == 1
    serves = few or (single and channels >= min(groups, 2))
    if not serves or outputs < _ROWS[-1] or not host().has("avx2"):
        return None
    if single:
        x, kernel, out, slide = (*x[:2], prod(out), 1), [1, 1], (prod(out), 1), _POINT
    lows = [low for low, _ in slide.padding]
    axes = [*zip(x[2:], kernel, slide.dilation, lows, out, strict=True)]
    lines, line = [(1, 1, 1, 0, 1)] * (2 - len(axes)) + axes
    (size1, taps1, dilation1, low1, out1), (size2, taps2, dilation2, low2, out2) = lines, line
    above, beside = (taps1 - 1) * dilation1, (taps2 - 1) * dilation2
    to2, from2 = max(0, low2), max(0, -low2)
    count2 = max(0, min(size2 - from2, out2 + beside - to2))
    # zeros are of two lines
    pitch = max(out2, count2 + max(to2, out2 + beside - to2 - count2))
    if out1 * pitch < _RUN:
        return None
    planes = -(-channels // 2)
    most = max(-(-2 * _RUN // pitch), _ROOM // (4 * planes) // pitch - above)
    most = max(1, most // _RUN * _RUN if single else min(most, out1))
    parts = -(-out1 // most)
    plane = (most + above) * pitch + beside + _RUN
    offsets = np.add.outer(
        np.arange(planes) * plane,
        np.add.outer(np.arange(taps1) * (dilation1 * pitch), np.arange(taps2) * dilation2),
    ).ravel()
    able = [n for n in _ROWS if n <= outputs]
    rows = min(able, key=lambda n: -(-outputs // n) * (n + 1))  # one for what is read of x
    codes, codes_step = 4 * planes * plane, -(-(most * pitch + _RUN) // _LINE) * _LINE
    step = -(-(codes + rows * codes_step) // _LINE) * _LINE
    units = images * parts
    tasks = min(units, _TASKS * host().cores)
    fields, held = to_codes_fields(bias, to)
    most_sum = farthest(channels * taps1 * taps2, bias.tobytes())
    bounded = float(np.max(np.abs(to.multiplier))) * most_sum < _MOST_STEPS
    job = JOB.fill(
        tasks=tasks, units=units, parts=parts, groups=groups, x=0, w=0, y=0, scratch=0,
        scratch_step=step, plane=plane, codes=codes, codes_step=codes_step,
        offsets=address(offsets), channels=channels, planes=planes, words=len(offsets),
        outputs=outputs, x_zero=zero_point, size1=size1, size2=size2, low1=low1, from2=from2,
        count2=count2, to2=to2, out1=out1, out2=out2, pitch=pitch, above=above, **fields,
    )  # fmt: skip
    pattern = Pattern(single, rows, bounded, (BYTE[dtype], BYTE[np.dtype(to.dtype)]))
    code = printed(_text, pattern, host()).keep()
    fill = filling(code.address("run"), job, [JOB.place(n) for n in ("x", "w", "y", "scratch")])

    def run(x: NDArray[Any], w: NDArray[Any], y: NDArray[Any], held: Any = (held, offsets)) -> None:
        fill(x, w, y, memory.scratch(tasks * step))

    return pattern, run


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
        self.narrowing = Narrowing(f, job, pattern.codes[1], bounded=pattern.bounded)
        if not pattern.single:
            nothing = f.constant(typed("i8", 32), 0)
            each(f, 0, job.codes, lambda i: f.store(nothing, f.at(self.slab, i, "i8")), 32)

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
        """Words of the differences of two channels from the zero point; of the last of an odd
        number, whose second weight is 0, twice of the same. Zeros for lines outside of the image.
        """
        f, job, read = self.f, self.job, self.pattern.codes[0]
        zero, last, top = f.convert(job.x_zero, "i32"), job.channels - 1, first - job.low1
        size1, size2, from2, count2 = job.size1, job.size2, job.from2, job.count2
        size, pitch = size1 * size2, job.pitch

        def word(k: Value) -> None:
            planes = [f.at(x, f.min(k * 2 + n, last) * size, read) for n in range(2)]
            to = f.at(self.slab, k * job.plane + job.to2, "i32")

            def run(place: Value, to: Value, count: Value) -> None:
                def some(q: Value, lanes: int) -> None:
                    low, high = (
                        f.convert(f.load(typed(read, lanes), f.at(p, place + q, read)), "i32")
                        - f.splat(zero, lanes)
                        for p in planes
                    )
                    f.store((low & 0xFFFF) | (high << 16), f.at(to, q, "i32"))

                spans(f, count, _LANES, some)

            def line(r: Value) -> None:
                at, here = top + r, f.at(to, r * pitch, "i32")

                def differences() -> list[Value]:
                    run(at * size2 + from2, here, count2)
                    return []

                def nothing() -> list[Value]:
                    spans(f, count2, _LANES, lambda q, lanes: f.store(
                        f.constant(typed("i32", lanes), 0), f.at(here, q, "i32")))  # fmt: skip
                    return []

                f.branch((at >= 0) & (at < size1), differences, nothing)

            if self.pattern.single:
                run(first, to, lines)
            else:
                each(f, 0, lines + job.above, line)

        each(f, 0, job.planes, word)

    def _sum(self, w: Value, first: Value, count: Value, to: tuple[Value, Value]) -> None:
        """The codes of a tile's outputs, from `first` of all on, of so many pixels. to: where they
        go, and the elements from one output to the next.
        """
        f, job, vector, rows = self.f, self.job, typed("i32", _LANES), self.pattern.rows
        bias, multiplier = job.pointer("bias"), job.pointer("multiplier")
        offsets, words, (y, step) = job.pointer("offsets"), job.words, to
        last = f.max(count - _RUN, 0)

        def run(q: Value) -> None:
            q = f.min(q, last)
            x = f.at(self.slab, q, "i32")

            def word(k: Value, sums: list[Value]) -> list[Value]:
                here = f.at(x, f.load(I64, f.at(offsets, k, "i64")), "i32")
                of_w = f.at(w, k * rows, "i32")
                pixels = [f.load(vector, f.at(here, n * _LANES, "i32")) for n in range(2)]
                found = []
                for row in range(rows):
                    weight = f.splat(f.load(typed("i32"), f.at(of_w, row, "i32")), _LANES)
                    for n in range(2):
                        of_run = sums[2 * row + n]
                        found.append(DOTS["s16"].step(f, of_run, pixels[n], weight))
                return found

            begin = [
                f.splat(f.load(typed("i32"), f.at(bias, first + row, "i32")), _LANES)
                for row in range(rows)
                for _ in range(2)
            ]
            sums = f.loop(0, words, 1, word, begin)
            for row in range(0, rows, 2):
                factors = [
                    f.splat(f.load(typed("f32"), f.at(multiplier, first + row + n, "f32")), _LANES)
                    for n in range(2)
                ]
                four = sums[2 * row : 2 * row + 4]
                steps = [f.convert(s, "f32") * factors[n // 2] for n, s in enumerate(four)]
                order = [(k // _LANES, k % _LANES) for k in range(2 * _RUN)]
                codes = self.narrowing.codes(steps, order)
                for n in range(2):
                    half = f.shuffle(codes, None, range(n * _RUN, (n + 1) * _RUN))
                    f.store(half, f.at(y, step * (row + n) + q, "i8"))

        each(f, 0, count, run, _RUN)

    def _bring(self, codes: Value, lines: Value, y: Value) -> None:
        """An output's codes to their place in the result."""
        f, out2, pitch = self.f, self.job.out2, self.job.pitch

        def line(i: Value) -> None:
            source, to = f.at(codes, i * pitch, "u8"), f.at(y, i * out2, "u8")
            spans(f, out2, 2 * _RUN, lambda k, lanes: f.store(
                f.load(typed("u8", lanes), f.at(source, k, "u8")), f.at(to, k, "u8")))  # fmt: skip

        each(f, 0, lines, line)
