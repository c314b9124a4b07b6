"""Depthwise convolutions of codes, plane by plane: words of taps (`quantized/words.py`).

A plane is spread once to what stands in words, with zeros around. One instruction multiplies what
lies side by side there by the weights of a word, and adds the products: a vector that is loaded at
a place serves the taps of the pixels that begin words there and, with the weights one place
further, of those one place further. Nothing is reordered, and nothing at the edges is masked.

The lines of the result follow each other in the slab, and are computed as one: short ones fill
vectors, and what lies between them is computed in vain. Two runs of pixels, one behind the other,
share what weights are loaded. Codes wait beside the slab until they are brought to the result.

A unit is a band of one plane, or some small planes, whose slabs and codes stay in the first-level
cache.
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
from funct.kernels.cpu.record import Fields, Record
from funct.kernels.cpu.tasks import deal_out
from funct.kernels.llvm import I64, PTR, Emitter, Module, Value, each, typed

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from funct.kernels.quantized.affine import Codes
    from funct.kernels.windows.views import Sizes, Sliding

__all__ = ["convolver"]

_TASKS = 4  # per core
_TAPS = 128  # texts grow with them
_SLAB = 12 << 10  # bytes of a band, if it is more than one line,
_TOGETHER = 8 << 10  # and of the slabs and codes of several planes
_LINE = 64  # bytes
_WORD = 4
_PARTS = 4  # vectors of sums that become codes together
_UNROLLED = 4  # vectors of a line
_CLEARED = 32  # bytes at a time
_MOST_STEPS = 2.0**31

JOB = Fields((
    "tasks", "units", "bands", "together", "planes", "shared", "channels", "x", "w", "y", "scratch",
    "scratch_step", "slab_step", "codes", "codes_step", "x_zero", "size1", "size2", "low1",
    "from2", "count2", "to2", "out1", "out2", "pitch", "above", "dilation1", *TO_CODES,
))  # fmt: skip


class Pattern(Struct, frozen=True, cache_hash=True):
    """What a text is printed for.

    word: what stands in a word, of which a vector has so many lanes. kernel: lines, and taps of a
    line, which are `dilation` apart. bounded: whether steps fit into int32. spread, brought: the
    lanes and the number of vectors of a line of x, and of the result; 0: many. codes: the elements
    of x and of the result.
    """

    word: Words
    lanes: int
    kernel: tuple[int, int]
    dilation: int
    bounded: bool
    spread: tuple[int, int]
    brought: tuple[int, int]
    codes: tuple[str, str]

    @property
    def run(self) -> int:
        """Pixels of a vector for each place in a word."""
        return self.word.count * self.lanes

    def words(self) -> list[list[tuple[int, list[int]]]]:
        """For pixels at each place in a word: the places from which words are taken, and the taps
        there, or -1.
        """
        found, count = [], self.word.count
        for first in range(count):
            at = {k * self.dilation + first: k for k in range(self.kernel[1])}
            places = sorted({place - place % count for place in at})
            found.append([(p, [at.get(p + n, -1) for n in range(count)]) for p in places])
        return found

    def weights(
        self, w: NDArray[np.int8], bias: NDArray[np.int32], zero: int
    ) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Words (outputs, lines · words of a line) as in `words`, and what sums begin with."""
        narrow = np.dtype(f"i{_WORD // self.word.count}")
        taps = w.reshape(len(w), *self.kernel).astype(narrow)
        lines = np.concatenate([taps, np.zeros((*taps.shape[:2], 1), narrow)], axis=2)
        order = [k for places in self.words() for _, some in places for k in some]
        words = np.ascontiguousarray(lines[:, :, order]).view(np.int32).reshape(len(w), -1)
        return words, bias - zero * self.word.offset(w)


def _vectors(count: int, most: int) -> tuple[int, int]:
    """Lanes of the vectors of so many elements, and how many if they are few; the last overlaps."""
    lanes = max([n for n in (most, most // 2, most // 4, most // 8) if n <= max(count, 4)])
    number = -(-count // lanes)
    return lanes, number if number <= _UNROLLED and count >= lanes else 0


def convolver(
    x: Sizes, dtype: np.dtype[Any], zero_point: int, w: Sizes, bias: NDArray[np.int32],
    to: Codes, slide: Sliding, words: Words,
) -> Images | None:  # fmt: skip
    """What computes `funct.kernels.quantized.affine.convolution` of images of this shape. None
    where there is more than one channel per group, or three axes, or there are strides.
    """
    size, d = slide.size(x[2:], w[2:]), len(slide.stride)
    if d > 2 or w[1] != 1 or prod(w[2:]) > _TAPS or max(slide.stride) > 1:
        return None
    if not host().has("avx2"):
        return None
    lows = [low for low, _ in slide.padding]
    given = zip(x[2:], w[2:], slide.dilation, lows, size, strict=True)
    lines, line = [(1, 1, 1, 0, 1)] * (2 - d) + list(given)
    (size1, taps1, dilation1, low1, out1), (size2, taps2, dilation2, low2, out2) = lines, line
    above, beside = (taps1 - 1) * dilation1, (taps2 - 1) * dilation2
    to2, from2 = max(0, low2), max(0, -low2)
    count2 = max(0, min(size2 - from2, out2 + beside - to2))
    # zeros are of two lines
    pitch = max(out2, count2 + max(to2, out2 + beside - to2 - count2))
    byte = _WORD // words.count  # bytes of an element
    most = max(1, min(out1, _SLAB // byte // pitch - above))
    bands = -(-out1 // most)
    most = -(-out1 // bands)
    steps = float(np.max(np.abs(to.multiplier))) * farthest(prod(w[1:]), bias.tobytes())
    lanes, zero = supported(DOTS[words.dot], host()) // _WORD, words.zero_point(zero_point, dtype)
    pattern = Pattern(
        words, lanes, (taps1, taps2), dilation2, steps < _MOST_STEPS, _vectors(count2, 32 // byte),
        _vectors(out2, 32), (BYTE[dtype], BYTE[np.dtype(to.dtype)]),
    )  # fmt: skip
    behind = 4 * pattern.run  # elements that the last vectors reach, at most, beyond lines
    slab, codes = byte * ((most + above) * pitch + beside + behind), most * pitch + behind
    slab, codes = (-(-n // _LINE) * _LINE for n in (slab, codes))
    fields, held = to_codes_fields(bias, to)
    planes, shared = x[0] * x[1], len(bias) // x[1]
    together = max(1, min(planes, _TOGETHER // (slab + shared * codes))) if bands == 1 else 1
    units = -(-planes // together) * bands
    tasks, step = min(units, _TASKS * host().cores), together * (slab + shared * codes)
    job = JOB.fill(
        tasks=tasks, units=units, bands=bands, together=together, planes=planes, shared=shared,
        channels=x[1], x=0, w=0, y=0, scratch=0, scratch_step=step, slab_step=slab,
        codes=together * slab, codes_step=codes, x_zero=zero, size1=size1, size2=size2,
        low1=low1, from2=from2, count2=count2, to2=to2, out1=out1, out2=out2, pitch=pitch,
        above=above, dilation1=dilation1, **fields,
    )  # fmt: skip
    code = printed(_text, pattern, host()).keep()
    return Images(
        functools.partial(pattern.weights, bias=bias, zero=zero), (pattern, bias.tobytes(), zero),
        code.address("run"), JOB, job, tasks * step, (x[0], w[0], *size), np.dtype(to.dtype), held,
    )  # fmt: skip


def _text(pattern: Pattern, target: Host) -> str:
    """`run(job)`."""
    module = Module(target)
    f = module.function("planes", [("job", PTR), ("task", I64)], local=True)
    job, task = Record(f, JOB, f.arguments[0]), f.arguments[1]
    start = f.div(task * job.units, job.tasks)
    stop = f.div((task + 1) * job.units, job.tasks)
    slab = f.at(job.pointer("scratch"), task * job.scratch_step, "i8")
    band = _Band(f, job, pattern, slab)
    each(f, 0, job.codes, lambda i: f.store(band.nothing(_CLEARED), f.at(slab, i, "u8")), _CLEARED)
    each(f, start, stop, band.print)
    f.ret()
    deal_out(module, "run", "planes", JOB)
    return module.text()


class _Band:
    """Prints the work on one band."""

    def __init__(self, f: Emitter, job: Record, pattern: Pattern, slab: Value) -> None:
        self.f, self.job, self.pattern, self.slab = f, job, pattern, slab
        self.codes = f.at(slab, job.codes, "i8")
        self.count = pattern.kernel[0] * sum(map(len, pattern.words()))
        self.w = f.allocate(typed("i32"), self.count * pattern.lanes)
        lanes, bounded = pattern.lanes, pattern.bounded
        self.narrowing = Narrowing(f, job, pattern.codes[1], lanes, bounded=bounded)
        self.element = pattern.word.element

    def nothing(self, count: int) -> Value:
        """So many bytes, or elements, that stand for 0."""
        f = self.f
        if self.pattern.word.centred:
            return f.constant(typed(self.element, count), 0)
        return f.splat(f.convert(self.job.x_zero, self.element), count)

    def of_words(self, codes: Value) -> Value:
        """Codes as they stand in words."""
        if self.pattern.word.centred:
            zero = self.f.convert(self.job.x_zero, self.element)
            return self.f.convert(codes, self.element) - self.f.splat(zero, codes.type.lanes)
        return codes ^ -128 if codes.type.is_signed else codes

    def print(self, unit: Value) -> None:
        """Band after band, plane after plane. What is read was stored long before: loads of what
        is on its way to the cache, in other pieces, wait for it.
        """
        f, job = self.f, self.job
        number = f.div(unit, job.bands)
        band, plane = unit - number * job.bands, number * job.together
        planes = f.min(job.planes - plane, job.together)
        first = f.div(band * job.out1, job.bands)
        rows = f.div((band + 1) * job.out1, job.bands) - first
        shared, size, channels = job.shared, job.out1 * job.out2, job.channels * job.shared
        slab_step, codes_step, total = job.slab_step, job.codes_step, planes * shared
        y = f.at(job.pointer("y"), plane * shared * size + first * job.out2, "i8")

        def spread(k: Value) -> None:
            self._spread(f.at(self.slab, k * slab_step, "i8"), plane + k, first, rows)

        def output(k: Value) -> None:
            slab = f.at(self.slab, f.div(k, shared) * slab_step, "i8")
            channel = f.rem(plane * shared + k, channels)
            self._sum(slab, channel, rows, f.at(self.codes, k * codes_step, "i8"))

        def bring(k: Value) -> None:
            codes = f.at(self.codes, k * codes_step, "i8")
            self._bring(codes, rows, f.at(y, k * size, "i8"))

        each(f, 0, planes, spread)
        each(f, 0, total, output)
        each(f, 0, total, bring)

    def _some(
        self, count: Value, vectors: tuple[int, int], body: Callable[[Value, int], None]
    ) -> None:
        """`body(index, lanes)` over a line; see `_vectors`."""
        f, (lanes, number) = self.f, vectors
        if not number:
            spans(f, count, lanes, body)
        for k in range(number):
            body(f.constant(I64, k * lanes) if k < number - 1 else count - lanes, lanes)

    def _spread(self, to: Value, plane: Value, first: Value, rows: Value) -> None:
        """The differences of the lines that the band reads, and zeros for what is outside."""
        f, job, read = self.f, self.job, self.pattern.codes[0]
        x = f.at(job.pointer("x"), plane * (job.size1 * job.size2) + job.from2, read)
        top, count2, vectors = first - job.low1, job.count2, self.pattern.spread
        size1, size2, pitch = job.size1, job.size2, job.pitch
        element = self.element
        slab = f.at(to, job.to2, element)

        def line(r: Value) -> None:
            at = top + r
            to = f.at(slab, r * pitch, element)

            def differences() -> list[Value]:
                def some(k: Value, lanes: int) -> None:
                    codes = f.load(typed(read, lanes), f.at(x, at * size2 + k, read))
                    f.store(self.of_words(codes), f.at(to, k, element))

                self._some(count2, vectors, some)
                return []

            def nothing() -> list[Value]:
                def some(k: Value, lanes: int) -> None:
                    f.store(self.nothing(lanes), f.at(to, k, element))

                self._some(count2, vectors, some)
                return []

            f.branch((at >= 0) & (at < size1), differences, nothing)

        each(f, 0, rows + job.above, line)

    def _sum(self, slab: Value, channel: Value, rows: Value, to: Value) -> None:
        """The codes of one output, block after block."""
        f, job, lanes, run = self.f, self.job, self.pattern.lanes, self.pattern.run
        w = f.at(job.pointer("w"), channel * self.count, "i32")
        for t in range(self.count):
            word = f.splat(f.load(typed("i32"), f.at(w, t, "i32")), lanes)
            f.store(word, f.at(self.w, t * lanes, "i32"))
        self.begin, self.factor = (
            f.splat(f.load(typed(t), f.at(job.pointer(name), channel, t)), lanes)
            for name, t in (("bias", "i32"), ("multiplier", "f32"))
        )
        self.line_step, count = job.dilation1 * job.pitch, rows * job.pitch
        each(f, 0, count - run, lambda q: self._block(slab, to, q, 2), 2 * run)
        q = f.div(count + run - 1, 2 * run) * (2 * run)
        f.when(q < count, lambda: self._block(slab, to, q, 1))

    def _block(self, slab: Value, to: Value, q: Value, runs: int) -> None:
        """So many runs of pixels, from the q-th on."""
        f, words, length = self.f, self.pattern.words(), self.pattern.run
        vector, dot = typed("i32", self.pattern.lanes), DOTS[self.pattern.word.dot]
        weights = (f.load(vector, f.at(self.w, n * vector.lanes, "i32")) for n in itertools.count())
        sums = [[self.begin] * len(words) for _ in range(runs)]
        for tap in range(self.pattern.kernel[0]):
            line = f.at(slab, q + self.line_step * tap, self.element)
            read: dict[int, Value] = {}
            for way, places in enumerate(words):
                for place, _ in places:
                    weight = next(weights)
                    for run in range(runs):
                        if (here := place + run * length) not in read:
                            read[here] = f.load(vector, f.at(line, here, self.element))
                        sums[run][way] = dot.step(f, sums[run][way], read[here], weight)
        steps = [f.convert(s, "f32") * self.factor for run in sums for s in run]
        pixels, count = runs * length, len(words)
        order = [(k // length * count + k % count, k % length // count) for k in range(pixels)]
        together = min(pixels, _PARTS * vector.lanes)
        for k in range(0, pixels, together):
            some = steps[k // vector.lanes :][:_PARTS]
            some = [*some, *some][:_PARTS]  # one run of pairs is taken twice, and given once
            codes = self.narrowing.codes(some, order[:together])
            f.store(codes, f.at(to, q + k, "i8"))

    def _bring(self, codes: Value, rows: Value, y: Value) -> None:
        """The codes to their place in the result."""
        f, out2, pitch = self.f, self.job.out2, self.job.pitch

        def line(i: Value) -> None:
            source, to = f.at(codes, i * pitch, "u8"), f.at(y, i * out2, "u8")

            def some(k: Value, lanes: int) -> None:
                f.store(f.load(typed("u8", lanes), f.at(source, k, "u8")), f.at(to, k, "u8"))

            self._some(out2, self.pattern.brought, some)

        each(f, 0, rows, line)
