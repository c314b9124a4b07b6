"""The reductions that end a kernel's loops: where their results, or parts of them, are gathered.

Those of columns stay in registers, for some columns side by side, while rows go by: that is done
where the loops are there for nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct

from funct.compile.loops.kernel import Kernel, Op, Over, Reduce
from funct.compile.loops.passes import Passes
from funct.compile.loops.reductions import combine, in_memory, neutral, read, write
from funct.kernels.llvm import I64, Emitter, Value, each, typed

__all__ = ["Barriers", "Widths", "are_abreast"]

_SOON = 4  # of what is computed for a row, in additions: each strip of columns does it again
_TOGETHER = 16  # rows that a strip goes through before the next: memory is read nearly as it lies
_NEAR = 1 << 11  # elements of the rows of one strip, if those are more rows


class Widths(Struct, frozen=True):
    """Lanes of a walk's vectors, and of what may be left over; 0: nothing is. masked: whether that
    is not always a whole vector.
    """

    wide: int
    rest: int
    masked: bool


def are_abreast(kernel: Kernel, passes: Passes) -> bool:
    """Whether a kernel is there for reductions over rows, or stretches of them, alone, and what it
    computes for a row by itself is computed soon.
    """
    values = kernel.values
    over = {v.over for v in values if isinstance(v, Reduce)}
    for_rows = [v.printing.cost for v in values if isinstance(v, Op) and v.kind == "row"]
    alone = over in ({"column"}, {"stretch"}) and not kernel.stores
    return alone and len(passes.walks) == 1 and max(for_rows, default=0) <= _SOON


class Barriers:
    """Those of one kernel as it is printed.

    partial: where the results of this task stand; opens: whether the row is the first that goes
    there. start: the first row of the task, or the first column.
    """

    def __init__(self, f: Emitter, kernel: Kernel, frame: Value, task: Value) -> None:
        self.k = kernel
        self.f = f
        self.frame = frame
        self.task = task
        _, slots, _ = kernel.slots()
        self.barrier_at = dict(zip(kernel.barriers, slots, strict=True))
        self.partial: dict[int, Value] = {}
        self.opens: dict[int, Value] = {}
        self.columns = self.start = f.constant(I64, 0)

    def neutral(self, n: int, lanes: int) -> Value:
        """What a reduction starts from."""
        v = self.k.values[n]
        assert isinstance(v, Reduce)
        return self.f.constant(typed(v.element, lanes), neutral(v.how, v.element))

    def combined(self, n: int, x: Value, y: Value) -> Value:
        """Two running results in one."""
        v = self.k.values[n]
        assert isinstance(v, Reduce)
        return combine(self.f, v.how, x, y)

    def open_barriers(self) -> None:
        """Where this task's part of what is over everything stands, set to what changes nothing."""
        f = self.f
        for n, v, slot in self._of("all"):
            self.partial[n] = f.at(f.pointer(self.frame, slot), self.task, in_memory(v.element))
            write(f, self.neutral(n, 1), self.partial[n], None)

    def place_partials(self, row: Value) -> None:
        """Where what columns have in the row goes, and whether it is the first that does."""
        f = self.f
        for n, v, slot in self._of("column", "stretch"):
            part, self.opens[n] = self.task, f.eq(row, self.start)
            if v.over == "stretch":
                stretch = self.f.word(self.frame, slot + 1)
                part, self.opens[n] = f.div(row, stretch), f.eq(f.rem(row, stretch), 0)
            if self.k.across:  # and there is one part
                part, self.opens[n] = f.constant(I64, 0), f.eq(row, 0)
            element = in_memory(v.element)
            self.partial[n] = f.at(f.pointer(self.frame, slot), part * self.columns, element)

    def _of(self, *over: Over) -> Iterator[tuple[int, Reduce, int]]:
        """The reductions that are over these, with their slots."""
        for n, slot in self.barrier_at.items():
            v = self.k.values[n]
            if isinstance(v, Reduce) and v.over in over:
                yield n, v, slot

    def add_to_partial(self, n: int, x: Value) -> None:
        """Combine x with what is there."""
        f, v = self.f, self.k.values[n]
        held = read(f, v.element, self.partial[n], 1, None)
        write(f, self.combined(n, held, x), self.partial[n], None)

    def held(self, n: int, column: Value, lanes: int, mask: Value | None) -> tuple[Value, Value]:
        """What columns have so far, and where it stands."""
        f, v = self.f, self.k.values[n]
        address = f.at(self.partial[n], column, in_memory(v.element))
        found = read(f, v.element, address, lanes, mask)
        return f.select(self.opens[n], self.neutral(n, lanes), found), address

    # Columns side by side

    def abreast(
        self, rows: Sequence[Value], columns: Sequence[Value], widths: Widths,
        step: Callable[[Value, Value, int, Value | None, list[Value]], list[Value]],
    ) -> None:  # fmt: skip
        """Walk strips of columns, through some rows at a time. rows, columns: the first ones, and
        the ends. step: the results with one row more, for a row and a column.
        """
        f, sums = self.f, list(self.barrier_at)
        end, stop = columns[1], rows[1]
        at_once = f.max(f.div(f.constant(I64, _NEAR), self.columns), f.constant(I64, _TOGETHER))
        (_, reduce, slot), *_ = self._of("column", "stretch")

        def strip(first: Value, last: Value, lanes: int, masked: bool, column: Value) -> None:
            mask = f.first_lanes(lanes, end - column) if masked else None
            before = [self.held(n, column, lanes, mask) for n in sums]
            carried = [x for x, _ in before]
            found = f.loop(
                first, last, 1, lambda r, held: step(r, column, lanes, mask, held), carried
            )
            for (_, address), x in zip(before, found, strict=True):
                write(f, x, address, mask)

        def some(last: Value, first: Value) -> None:
            last = f.min(first + at_once, last)
            self.place_partials(first)
            begin, wide = columns[0], widths.wide
            bulk = begin + (end - begin & -wide) if widths.rest else end
            if wide > widths.rest:
                each(f, begin, bulk, lambda c: strip(first, last, wide, False, c), wide)
                begin = bulk
            if widths.rest:
                rest, masked = widths.rest, widths.masked
                each(f, begin, end, lambda c: strip(first, last, rest, masked, c), rest)

        def whole(first: Value) -> None:
            last = f.min(first + length, stop)
            each(f, first, last, lambda r: some(last, r), at_once)

        length = f.word(self.frame, slot + 1) if reduce.over == "stretch" else stop - rows[0]
        each(f, rows[0], stop, whole, length)
