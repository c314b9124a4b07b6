"""Lines of codes (`lines.py`) met several taps at a time: bytes of x are gathered into words in
registers, and one instruction (of `dense/dots.py`) sums the products of each.

A vector of bytes of a line is loaded once for the taps of a word; a permutation repeats for each
pixel of the result those under its taps. Codes are unsigned here, as `quantized/words.py` says.

    quads (u8s8): four taps, of 64 bytes in any order (AVX-512 VBMI).
    pairs (s16):  two taps, of 16 bytes, which each half of a vector of AVX2 reorders; with zeros
                  between, codes are 16-bit integers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from funct.kernels.cpu.convolution.lines import Pattern, Strips, planes_text
from funct.kernels.cpu.dense.dots import DOTS, supported
from funct.kernels.cpu.dense.words import filled
from funct.kernels.cpu.quantized.narrowing import to_codes
from funct.kernels.llvm import Value, typed

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from funct.device import Host
    from funct.kernels.cpu.convolution.axes import Axis

__all__ = ["Gathering", "byte_planes_text", "gathering"]

_WORD = 4  # bytes
_ZERO = -128  # of an order of pairs: the byte is 0


class Gathering(Struct, frozen=True):
    """How words are made: what sums them, how many taps they hold, how many bytes are loaded for
    them, and the instruction that reorders these.
    """

    dot: str
    taps: int
    loaded: int
    reorders: str

    def words(self, offsets: list[int]) -> list[list[int]]:
        """Offsets of the taps along a line, word by word."""
        return [offsets[k : k + self.taps] for k in range(0, len(offsets), self.taps)]

    def weights(self, w: NDArray[np.int8]) -> NDArray[np.int32]:
        """Words of weights, (…, words along a line)."""
        return filled(w.reshape(-1, w.shape[-1], 1), np.dtype(f"i{_WORD // self.taps}"))

    def known(self, offsets: list[int], stride: int, lanes: int) -> bool:
        """Whether the taps of a word are loaded at once for so many pixels."""
        span = (lanes - 1) * stride + 1 + max([o[-1] - o[0] for o in self.words(offsets)])
        return span <= self.loaded

    def orders(self, offsets: list[int], stride: int, lanes: int) -> NDArray[np.int8]:
        """Which of the bytes that are loaded each word takes, (word, byte)."""
        words = self.words(offsets)
        taps = np.array([[v - o[0] for v in (*o, *[o[-1]] * (self.taps - len(o)))] for o in words])
        order = np.full((len(words), lanes, self.taps, _WORD // self.taps), _ZERO, np.int8)
        order[..., 0] = np.arange(lanes)[:, None] * stride + taps[:, None]
        return order.reshape(len(words), -1)

    def masks(
        self, a: Axis, starts: NDArray[np.int64], offsets: list[int]
    ) -> tuple[NDArray[np.int8], NDArray[np.int64]]:
        """Ones where a byte that is loaded is in its line, (block, word, byte), and its place."""
        first = np.array([o[0] for o in self.words(offsets)])
        place = (starts[:, None] * a.stride + first)[:, :, None] + np.arange(self.loaded) - a.low
        return -((place >= 0) & (place < a.size)).astype(np.int8), place


_QUADS = Gathering("u8s8", 4, 64, "llvm.x86.avx512.permvar.qi.512")
_PAIRS = Gathering("s16", 2, 16, "llvm.x86.avx2.pshuf.b")


def gathering(target: Host) -> Gathering | None:
    """The way of this processor; None where it has none."""
    for way, width, needs in ((_QUADS, 64, ("avx512vbmi",)), (_PAIRS, 32, ("avx2",))):
        able = target.vector_bytes == width and target.has(*needs)
        if able and supported(DOTS[way.dot], target) == width:
            return way
    return None


def byte_planes_text(pattern: Pattern, target: Host) -> str:
    """`planes(job)`: the planes of the result, of codes and words of weights."""
    return planes_text(pattern, target, _ByteStrips)


class _ByteStrips(Strips):
    """Prints strips of sums of words."""

    @property
    def way(self) -> Gathering:
        """How they are gathered."""
        way = gathering(self.f.module.target)
        assert way is not None
        return way

    def weights(self, number: Value) -> list[Value]:
        """Words, by the taps of the first two axes."""
        k0, k1, _ = self.pattern.kernel
        return self.splats(number, k0 * k1 * len(self.way.words(self.columns)))

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
        held, words = list(held), self.way.words(self.columns)
        column = q * self.pattern.strides[2] - self.job.low2
        for n, offsets in enumerate(words):
            mask = self.inside_line(block, n) if block is not None else None
            for tap0, row, line in lines:
                x = self.word(line, column + offsets[0], n, mask)
                for i, tap1 in self.met(row):
                    weight = w[(tap0 * k1 + tap1) * len(words) + n]
                    held[i] = DOTS[self.way.dot].step(f, held[i], x, weight)
        return held

    def inside_line(self, block: Value, n: int) -> Value:
        """Ones in the bytes of the line, of what is loaded for word n of a block."""
        f, count, loaded = self.f, len(self.way.words(self.columns)), self.way.loaded
        place = block * (count * loaded // self.lanes) + n * loaded
        return f.load(typed("i8", loaded), f.at(self.job.pointer("masks"), place, "i8"))

    def word(self, line: Value, column: Value, n: int, mask: Value | None) -> Value:
        """Codes under the taps of word n of each pixel, the zero point where the mask is off."""
        f, loaded, taken = self.f, self.way.loaded, typed("i8", _WORD * self.lanes)
        x = f.load(typed("i8", loaded), self.of_x(line, column))
        if mask is not None:
            zero = f.splat(f.convert(self.job.x_zero, "i8"), loaded)
            x = f.select(mask < 0, x, zero)
        if loaded < taken.lanes:
            x = f.shuffle(x, x, list(range(loaded)) * (taken.lanes // loaded))
        if self.read == "i8":
            x = x ^ -128
        # read, since LLVM makes shuffles of an order that it knows, and 22.1 never ends at some
        order = f.load(taken, f.at(self.job.pointer("order"), n * taken.lanes, "i8"))
        words = f.call(self.way.reorders, taken, [x, order], pure=True)
        assert words is not None
        return f.bitcast(words, self.vector)
