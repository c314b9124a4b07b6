"""The slab: what a band reads of its images, in scratch, channels last and with a byte around it.

The byte is 0, or the zero point of codes.
"""

from __future__ import annotations

from collections.abc import Callable

from funct.kernels.cpu.dense.copies import copy_pixels
from funct.kernels.cpu.record import Record
from funct.kernels.llvm import I64, Emitter, Value, each, typed

__all__ = ["SLAB", "STACK", "Slab", "clear", "copy", "each"]

SLAB = (
    "tasks", "units", "bands", "band_rows", "scratch", "scratch_step", "x",
    "channels", "pitch",
    "x_pitch",  # words from one pixel of x to the next, where channels are last in it
    "size0", "size1", "size2",
    "slab_rows", "slab1", "slab2", "slab_words", "clear", "around", "whole",
    "slab_step", "slab_start", "from1", "count1", "to1", "from2", "count2", "to2",
)  # fmt: skip

STACK = (  # for each axis; of the third a line is a column, and columns follow each other
    "stack0", "stack1", "stack2",  # taps whose lines lie in one pixel of the slab
    "apart0", "apart1", "apart2",  # lines of the image from one such tap to the next
    "down0", "down1",  # and from one line of the slab to the next
)  # fmt: skip


def clear(f: Emitter, to: Value, size_bytes: Value, around: Value | int = 0) -> None:
    """Bytes that are all the same, the lowest of a number."""
    f.module.declare("@llvm.memset", "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1 immarg)")
    same = f.constant(I64, around) if isinstance(around, int) else around
    byte = f.convert(same, "i8")
    f.line(f"call void @llvm.memset.p0.i64({to!r}, {byte!r}, {size_bytes!r}, i1 false)")


def copy(f: Emitter, to: Value, source: Value, size_bytes: Value) -> None:
    """Copy bytes."""
    f.module.declare(
        "@llvm.memcpy", "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1 immarg)"
    )
    f.line(f"call void @llvm.memcpy.p0.p0.i64({to!r}, {source!r}, {size_bytes!r}, i1 false)")


class Slab:
    """Prints the work on slabs. last: whether channels are last in x too. stacks: whether the job
    has fields for several rows in a pixel.
    """

    def __init__(
        self, f: Emitter, job: Record, element: str, turn: str, last: bool, *, stacks: bool = False
    ) -> None:
        self.f, self.job, self.element, self.turn, self.last = f, job, element, turn, last
        self.stacks = stacks
        self.bytes = typed(element).bytes

    def at(self, pointer: Value, offset: Value | int) -> Value:
        """The address of a word."""
        return self.f.at(pointer, offset, self.element)

    def transpose(
        self, source: Value, to: Value, rows: Value, columns: Value, row: Value, to_row: Value
    ) -> None:
        """`turn.py`'s copy."""
        self.f.call(self.turn, None, [source, to, rows, columns, row, to_row])

    def fill(self, image: Value, band: Value, slab: Value) -> None:
        """Copy what the band reads, channels last, between bytes that stand for 0.

        image: its number times that of the blocks of channels, which have slabs of their own.
        """
        f, job = self.f, self.job
        size = job.slab_words * self.bytes
        f.when(f.ne(job.clear, 0), lambda: clear(f, slab, size, job.around))
        start = band * job.slab_step + job.slab_start
        zero = f.constant(I64, 0)
        low = f.max(start, zero)
        high = f.min(start + job.slab_rows, job.size0)
        plane = job.size1 * job.size2
        pixels = job.size0 * plane
        if self.last:
            number = f.div(image * job.channels, job.x_pitch)
            block = image * job.channels - number * job.x_pitch
            x = self.at(job.pointer("x"), number * job.x_pitch * pixels + block)
        else:
            x = self.at(job.pointer("x"), image * job.channels * pixels)

        def rows(source: Value, to: Value, count: Value, slot: Value | int) -> None:
            """`count` pixels in a row; source: the first one's number. slot: a place in theirs."""
            channels = job.channels
            target = self.at(slab, to * job.pitch + slot)
            if self.last:
                first = self.at(x, source * job.x_pitch)

                def adjacent() -> list[Value]:
                    copy(f, target, first, count * channels * self.bytes)
                    return []

                def apart() -> list[Value]:
                    steps = job.pitch, job.x_pitch
                    copy_pixels(f, target, first, count, channels, steps, self.element)
                    return []

                same = f.eq(job.pitch, channels) & f.eq(job.x_pitch, channels)
                f.branch(same, adjacent, apart)
            else:
                first = self.at(x, source)

                def alone() -> list[Value]:
                    """A pixel: a call for it takes longer than it does."""
                    number = typed(self.element)

                    def channel(c: Value) -> None:
                        f.store(f.load(number, self.at(first, c * pixels)), self.at(target, c))

                    each(f, 0, channels, channel)
                    return []

                def together() -> list[Value]:
                    self.transpose(first, target, channels, count, pixels, job.pitch)
                    return []

                f.branch(f.eq(count, 1), alone, together)

        def whole() -> None:
            rows(low * plane, (low - start) * plane, (high - low) * plane, 0)

        def parts() -> None:
            def one(i0: Value) -> None:
                def two(i1: Value) -> None:
                    source = (i0 * job.size1 + job.from1 + i1) * job.size2 + job.from2
                    row = (i0 - start) * job.slab1 + job.to1 + i1
                    rows(source, row * job.slab2 + job.to2, job.count2, 0)

                each(f, 0, job.count1, two)

            each(f, low, high, one)

        def some() -> None:
            f.branch(f.ne(job.whole, 0), _nothing(whole), _nothing(parts))

        def tap(t0: Value) -> None:
            def line(row0: Value, i0: Value) -> None:
                def second(t1: Value) -> None:
                    def one(row1: Value, i1: Value) -> None:
                        def third(t2: Value) -> None:
                            slot = ((t0 * job.stack1 + t1) * job.stack2 + t2) * job.channels
                            column = job.from2 - job.to2 + t2 * job.apart2
                            left = f.max(-column, 0)
                            count = f.min(job.slab2, job.size2 - column) - left
                            source = (i0 * job.size1 + i1) * job.size2 + column + left
                            place = (row0 * job.slab1 + row1) * job.slab2 + left
                            f.when(count > 0, lambda: rows(source, place, count, slot))

                        each(f, 0, job.stack2, third)

                    first = job.from1 - job.to1 + t1 * job.apart1
                    self._inside(first, job.down1, job.slab1, job.size1, one)

                each(f, 0, job.stack1, second)

            first = start + t0 * job.apart0
            self._inside(first, job.down0, job.slab_rows, job.size0, line)

        def apart() -> None:
            f.when(low < high, some)

        if not self.stacks:
            apart()
            return
        stacked = _nothing(lambda: each(f, 0, job.stack0, tap))
        f.branch(job.stack0 * job.stack1 * job.stack2 > 1, stacked, _nothing(apart))

    def _inside(
        self, first: Value, down: Value, rows: Value, size: Value, body: Callable[..., None]
    ) -> None:
        """body(row, i) for the rows of the slab, i = first + row · down, that the image has."""
        f, zero = self.f, self.f.constant(I64, 0)
        top = f.div(f.max(zero - first, zero) + down - 1, down)
        bottom = f.min(f.div(f.max(size - first, zero) + down - 1, down), rows)
        each(f, top, bottom, lambda row: body(row, first + row * down))


def _nothing(body: Callable[[], None]) -> Callable[[], list[Value]]:
    def run() -> list[Value]:
        body()
        return []

    return run
