"""Lines of codes (`lines.py`) met four taps at a time: bytes of x are gathered into words in
registers, and one instruction (`u8s8` of `dots.py`) sums the products of each.

A vector of bytes of a line is loaded once for four taps along it; a permutation repeats for each
pixel of the result those under its taps. Codes are unsigned here, as `words.py` says.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from funct.kernels.cpu.dense.dots import DOTS, supported
from funct.kernels.cpu.dense.lines import Pattern, Strips, planes_text
from funct.kernels.cpu.quantized.codes import to_codes
from funct.kernels.llvm import Value, typed

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from funct.device import Host
    from funct.kernels.cpu.dense.axes import Axis

__all__ = ["byte_planes_text", "fours", "known", "masks", "orders"]

_TAPS = 4  # of a word
_BYTES = 64  # that are loaded at once


def fours(offsets: list[int]) -> list[list[int]]:
    """Offsets of the taps along a line, word by word."""
    return [offsets[k : k + _TAPS] for k in range(0, len(offsets), _TAPS)]


def known(offsets: list[int], stride: int, target: Host) -> bool:
    """Whether the processor permutes bytes, and four taps of all pixels are loaded at once."""
    span = (_BYTES // 4 - 1) * stride + 1 + max([o[-1] - o[0] for o in fours(offsets)])
    able = target.has("avx512vbmi") and supported(DOTS["u8s8"], target) == _BYTES
    return able and target.vector_bytes == _BYTES and span <= _BYTES


def orders(offsets: list[int], stride: int) -> NDArray[np.int8]:
    """Which of the bytes that are loaded each word takes, (word, byte)."""
    taps = np.array([[v - o[0] for v in (*o, *[o[-1]] * (_TAPS - len(o)))] for o in fours(offsets)])
    order = np.arange(_BYTES // 4)[:, None] * stride + taps[:, None]
    return order.reshape(-1, _BYTES).astype(np.int8)


def masks(
    a: Axis, starts: NDArray[np.int64], offsets: list[int]
) -> tuple[NDArray[np.int8], NDArray[np.int64]]:
    """Ones where a byte that is loaded is in its line, (block, word, byte), and its place there."""
    first = np.array([o[0] for o in fours(offsets)])
    place = (starts[:, None] * a.stride + first)[:, :, None] + np.arange(_BYTES) - a.low
    return -((place >= 0) & (place < a.size)).astype(np.int8), place


def byte_planes_text(pattern: Pattern, target: Host) -> str:
    """`planes(job)`: the planes of the result, of codes and words of weights."""
    return planes_text(pattern, target, _ByteStrips)


class _ByteStrips(Strips):
    """Prints strips of sums of words."""

    def weights(self, number: Value) -> list[Value]:
        """Words, by the taps of the first two axes."""
        k0, k1, _ = self.pattern.kernel
        return self.splats(number, k0 * k1 * len(fours(self.columns)))

    def ends_of(self, channel: Value) -> tuple[Value, Callable[[Value], Value]]:
        """What sums begin with, and what they become."""
        f, job, number = self.f, self.job, typed("f32")
        offset = f.load(self.vector.scalar, f.at(job.pointer("bias"), channel, "i32"))
        factor = f.splat(
            f.load(number, f.at(job.pointer("multiplier"), channel, "f32")), self.lanes
        )
        codes = to_codes(f, job, self.written)
        return f.splat(offset, self.lanes), lambda sums: codes(f.convert(sums, "f32") * factor)

    def products(
        self, lines: list[tuple[int, int, Value]], w: list[Value], q: Value,
        block: Value | None, held: list[Value],
    ) -> list[Value]:  # fmt: skip
        """The sums of a vector at q in each line of the strip. block: None inside of the image."""
        f, (_, k1, _) = self.f, self.pattern.kernel
        held, words = list(held), fours(self.columns)
        column = q * self.pattern.strides[2] - self.job.low2
        for n, offsets in enumerate(words):
            mask = self.inside_line(block, n) if block is not None else None
            for tap0, row, line in lines:
                x = self.word(line, column + offsets[0], n, mask)
                for i, tap1 in self.met(row):
                    weight = w[(tap0 * k1 + tap1) * len(words) + n]
                    held[i] = DOTS["u8s8"].step(f, held[i], x, weight)
        return held

    def inside_line(self, block: Value, n: int) -> Value:
        """Ones in the bytes of the line, of what is loaded for word n of a block."""
        f, count = self.f, len(fours(self.columns))
        place = block * (count * _BYTES // self.lanes) + n * _BYTES
        return f.load(typed("i8", _BYTES), f.at(self.job.pointer("masks"), place, "i8"))

    def word(self, line: Value, column: Value, n: int, mask: Value | None) -> Value:
        """Codes under the taps of word n of each pixel, the zero point where the mask is off."""
        f, vector = self.f, typed("i8", _BYTES)
        x = f.load(vector, self.of_x(line, column))
        if mask is not None:
            zero = f.splat(f.convert(self.job.x_zero, "i8"), _BYTES)
            x = x & mask | zero & ~mask
        if self.read == "i8":
            x = x ^ -128
        # read, since LLVM makes shuffles of an order that it knows, and 22.1 never ends at some
        order = f.load(vector, f.at(self.job.pointer("order"), n * _BYTES, "i8"))
        taken = f.call("llvm.x86.avx512.permvar.qi.512", vector, [x, order], pure=True)
        assert taken is not None
        return f.bitcast(taken, self.vector)
