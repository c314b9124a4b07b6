"""Copies of planes: pieces of an image go where each line has its zeros beside it, and back."""

from __future__ import annotations

from collections.abc import Callable

from funct.kernels.cpu.record import Fields, Record
from funct.kernels.cpu.slab import each
from funct.kernels.llvm import Emitter, Value, typed

__all__ = ["PIECE", "SPREAD", "Plane"]

# A copy of planes: pieces are runs along the last axis, rectangles of (count0, count1).
SPREAD = (
    "pieces", "n_pieces", "plane_words", "flat", "flat_bytes",
)  # fmt: skip
PIECE = Fields((
    "count0", "count1", "count2", "from", "from0", "from1", "from2", "to", "to0", "to1", "to2",
))  # fmt: skip


class Plane:
    """Prints copies between planes."""

    def __init__(self, f: Emitter, element: str, lanes: int) -> None:
        self.f, self.element, self.lanes = f, element, lanes
        self.vector = typed(element, lanes)

    def at(self, pointer: Value, offset: Value | int) -> Value:
        """The address so many elements further on."""
        return self.f.at(pointer, offset, self.element)

    def spread(self, x: Value, pieces: Value, n_pieces: Value | int, to: Value) -> None:
        """Copy the pieces of x to their places."""
        f = self.f

        def piece(k: Value) -> None:
            p = Record(f, PIECE, f.at(pieces, k * len(PIECE), "i64"))
            source, target = self.at(x, getattr(p, "from")), self.at(to, p.to)

            def one(i: Value) -> None:
                def two(j: Value) -> None:
                    first = self.at(source, i * p.from0 + j * p.from1)
                    place = self.at(target, i * p.to0 + j * p.to1)
                    self.row(first, p.from2, place, p.to2, p.count2)

                each(f, 0, p.count1, two)

            each(f, 0, p.count0, one)

        each(f, 0, n_pieces, piece)

    def row(self, source: Value, step: Value, to: Value, to_step: Value, count: Value) -> None:
        """Copy elements in steps; by vectors where they are adjacent, or every second is taken."""
        f = self.f
        dense = f.eq(to_step, 1) & f.eq(step, 1)
        wide = count >= self.lanes

        def scalars() -> list[Value]:
            def one(k: Value) -> None:
                x = f.load(self.vector.scalar, self.at(source, k * step))
                f.store(x, self.at(to, k * to_step))

            each(f, 0, count, one)
            return []

        def second() -> list[Value]:
            half = self.lanes // 2
            n = self.lanes
            picked = [*range(0, n, 2), *range(n + 1, 2 * n, 2)]
            assert len(picked) == 2 * half

            def take(k: Value) -> Value:
                low = f.load(self.vector, self.at(source, k << 1))
                # from one before: nothing behind the last element is read
                high = f.load(self.vector, self.at(self.at(source, k << 1), n - 1))
                return f.shuffle(low, high, picked)

            self._overlapping(to, count, take)
            return []

        def adjacent() -> list[Value]:
            self._overlapping(to, count, lambda k: f.load(self.vector, self.at(source, k)))
            return []

        def short() -> list[Value]:
            mask = f.first_lanes(self.lanes, count)
            f.store(f.load(self.vector, source, mask), to, mask)
            return []

        def stepping() -> list[Value]:
            every_second = wide & f.eq(to_step, 1) & f.eq(step, 2)
            return f.branch(every_second, second, scalars)

        f.branch(dense, lambda: f.branch(wide, adjacent, short), stepping)

    def _overlapping(self, to: Value, count: Value, take: Callable[[Value], Value]) -> None:
        f = self.f
        last = count - self.lanes

        def one(k: Value) -> None:
            k = f.select(k > last, last, k)
            f.store(take(k), self.at(to, k))

        each(f, 0, count, one, self.lanes)
