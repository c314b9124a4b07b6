"""Convolutions of codes whose windows are single elements: pixels are the lanes, outputs the rows.

Pairs of channels of a few pixels become words (`words.py`), plane beside plane, which one
instruction multiplies by words of weights that are the same in all lanes. So sums lie as the result
does, and become codes in registers: nothing is turned around, and no sums are written.

A unit is a few pixels of an image, whose words stay in the first-level cache, and all outputs.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from funct.device import Host, host, printed
from funct.kernels.cpu import scratch as memory
from funct.kernels.cpu.dense.dots import DOTS
from funct.kernels.cpu.quantized.codes import BYTE, farthest, spans, to_codes_fields
from funct.kernels.cpu.quantized.narrowing import TO_CODES, Narrowing
from funct.kernels.cpu.quantized.words import PAIRS
from funct.kernels.cpu.record import Fields, Record
from funct.kernels.cpu.runners import filling
from funct.kernels.cpu.tasks import deal_out_units
from funct.kernels.llvm import Emitter, Module, Value, each, typed

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from funct.kernels.quantized.affine import Codes
    from funct.kernels.windows.views import Sizes, Sliding

__all__ = ["ROWS", "convolver", "weights"]

ROWS = 6  # outputs of a tile,
_LANES = 8
_RUN = 2 * _LANES  # and pixels: all sums, what they are made of, and a product fit into registers
_ROOM = 16 << 10  # bytes of the words of a unit
_TASKS = 4  # per core
_MOST_STEPS = 2.0**31

JOB = Fields((
    "tasks", "units", "parts", "x", "w", "y", "scratch", "scratch_step", "part_pixels", "pixels",
    "channels", "words", "outputs", "x_zero", *TO_CODES,
))  # fmt: skip


def weights(w: NDArray[np.int8]) -> NDArray[np.int32]:
    """Words (tile, word, output) of weights (O, C, 1 …); the last tile overlaps."""
    words = PAIRS.weights(w.reshape(*w.shape[:2], 1))[:, :, 0]  # (O, words)
    first = np.minimum(np.arange(0, len(w), ROWS), len(w) - ROWS)
    return np.ascontiguousarray(words[first[:, None] + np.arange(ROWS)].swapaxes(1, 2))


def convolver(
    x: Sizes, dtype: np.dtype[Any], zero_point: int, w: Sizes, bias: NDArray[np.int32],
    to: Codes, slide: Sliding,
) -> Callable[..., None] | None:  # fmt: skip
    """What fills images of codes from images of codes, `weights`, and the result; see
    `funct.kernels.quantized.affine.convolution`. None where windows are larger or apart, there are
    groups, or pixels or outputs are too few to fill a tile.
    """
    pixels, (outputs, channels) = prod(x[2:]), w[:2]
    single = prod(w[2:]) == 1 and slide.groups == 1 and slide.pointwise
    if not single or pixels < _RUN or outputs < ROWS or not host().has("avx2"):
        return None
    words = -(-channels // 2)
    most = max(2 * _RUN, _ROOM // (4 * words) // _RUN * _RUN)
    parts = -(-pixels // most)
    units = x[0] * parts
    tasks, step = min(units, _TASKS * host().cores), 4 * words * most
    fields, held = to_codes_fields(bias, to)
    steps = float(np.max(np.abs(to.multiplier))) * farthest(channels, bias.tobytes())
    job = JOB.fill(
        tasks=tasks, units=units, parts=parts, x=0, w=0, y=0, scratch=0, scratch_step=step,
        part_pixels=most, pixels=pixels, channels=channels, words=words, outputs=outputs,
        x_zero=zero_point, **fields,
    )  # fmt: skip
    codes = BYTE[dtype], BYTE[np.dtype(to.dtype)]
    code = printed(_text, *codes, steps < _MOST_STEPS, host()).keep()
    fill = filling(code.address("run"), job, [JOB.place(n) for n in ("x", "w", "y", "scratch")])

    def run(x: NDArray[Any], w: NDArray[Any], y: NDArray[Any], held: Any = held) -> None:
        fill(x, w, y, memory.scratch(tasks * step))

    return run


def _text(read: str, written: str, bounded: bool, target: Host) -> str:
    """`run(job)`."""
    module = Module(target)

    def units(f: Emitter, job: Record) -> tuple[Value, Callable[[Value], None]]:
        return job.units, _Unit(f, job, read, written, bounded).print

    deal_out_units(module, "run", JOB, units)
    return module.text()


class _Unit:
    """Prints the work on some pixels of an image."""

    def __init__(self, f: Emitter, job: Record, read: str, written: str, bounded: bool) -> None:
        self.f, self.job, self.read, self.written = f, job, read, written
        self.words = f.at(job.pointer("scratch"), f.arguments[1] * job.scratch_step, "i8")
        self.narrowing = Narrowing(f, job, written, bounded=bounded)

    def print(self, unit: Value) -> None:
        """Some pixels."""
        f, job = self.f, self.job
        image = f.div(unit, job.parts)
        part, pixels = unit - image * job.parts, job.pixels
        first = f.div(part * pixels, job.parts)
        count = f.div((part + 1) * pixels, job.parts) - first
        x = f.at(job.pointer("x"), image * job.channels * pixels + first, self.read)
        self._spread(x, count)
        y = f.at(job.pointer("y"), image * job.outputs * pixels + first, "i8")
        last = job.outputs - ROWS
        tile_words, w = job.words * ROWS, job.pointer("w")

        def rows(k: Value) -> None:
            of_w = f.at(w, f.div(k, ROWS) * tile_words, "i32")
            self._rows(of_w, f.min(k, last), y, count)

        each(f, 0, job.outputs, rows, ROWS)

    def _spread(self, x: Value, count: Value) -> None:
        """Words of the differences of two channels from the zero point; of the last of an odd
        number, whose second weight is 0, twice of the same.
        """
        f, job, read = self.f, self.job, self.read
        zero, pixels, last, pitch = (
            f.convert(job.x_zero, "i32"),
            job.pixels,
            job.channels - 1,
            job.part_pixels,
        )

        def word(k: Value) -> None:
            rows = [f.at(x, f.min(k * 2 + n, last) * pixels, read) for n in range(2)]
            to = f.at(self.words, k * pitch, "i32")

            def some(q: Value, lanes: int) -> None:
                low, high = (
                    f.convert(f.load(typed(read, lanes), f.at(row, q, read)), "i32")
                    - f.splat(zero, lanes)
                    for row in rows
                )
                f.store((low & 0xFFFF) | (high << 16), f.at(to, q, "i32"))

            spans(f, count, _LANES, some)

        each(f, 0, job.words, word)

    def _rows(self, w: Value, first: Value, y: Value, count: Value) -> None:
        """The codes of a few outputs, from `first` on."""
        f, job, vector = self.f, self.job, typed("i32", _LANES)
        pitch, bias, multiplier = job.part_pixels, job.pointer("bias"), job.pointer("multiplier")
        y, step, words = f.at(y, first * job.pixels, "i8"), job.pixels, job.words

        def run(q: Value) -> None:
            q = f.min(q, count - _RUN)
            x = f.at(self.words, q, "i32")

            def word(k: Value, sums: list[Value]) -> list[Value]:
                here, of_w = f.at(x, k * pitch, "i32"), f.at(w, k * ROWS, "i32")
                pixels = [f.load(vector, f.at(here, n * _LANES, "i32")) for n in range(2)]
                found = []
                for row in range(ROWS):
                    weight = f.splat(f.load(typed("i32"), f.at(of_w, row, "i32")), _LANES)
                    for n in range(2):
                        of_run = sums[2 * row + n]
                        found.append(DOTS["s16"].step(f, of_run, pixels[n], weight))
                return found

            begin = [
                f.splat(f.load(typed("i32"), f.at(bias, first + row, "i32")), _LANES)
                for row in range(ROWS)
                for _ in range(2)
            ]
            sums = f.loop(0, words, 1, word, begin)
            for row in range(0, ROWS, 2):
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
