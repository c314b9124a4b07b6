"""The kernel of a loop over lines: its carry stays in registers from step to step."""

from __future__ import annotations

import itertools

from msgspec import Struct

from funct.compile.lines.lines import Given, Lines
from funct.compile.lines.roomy import get, put
from funct.compile.lines.text import LinesText
from funct.compile.loops.kernel import CONTROL_WORDS
from funct.compile.loops.weaving import read_woven, write_woven
from funct.compile.steps.moves import copy_bytes
from funct.compile.steps.turns import look, now
from funct.kernels.llvm import BOOL, I64, PTR, Module, Value

__all__ = ["Registers", "print_registers"]


class Registers(Struct, frozen=True, cache_hash=True):
    """The code of a loop whose body is lines.

    bodies: for so many lanes at a time (0: not by columns), the test of the first state and the
    body, whose last result says whether to go on where there is a test. Columns that are left over
    have a body of their own, or there is one, which then takes some before them once more. held,
    carries, rows: bytes from column to column of each of them, 0 where all columns have one.
    strides: of the rows, from step to step. inner: how many of the rows are those of xs. columns:
    how many there are. tables: for each carry its bytes if it is a table, else 0. cells: how many
    values of the lines each carry is (see `columns.py`).
    """

    bodies: tuple[tuple[int, Lines | None, Lines], ...]
    held: tuple[int, ...]
    carries: tuple[int, ...]
    rows: tuple[int, ...]
    strides: tuple[int, ...]
    inner: int
    back: bool
    columns: int
    tables: tuple[int, ...]
    cells: tuple[int, ...]


def print_registers(module: Module, name: str, r: Registers) -> None:
    """Add the kernel of a loop to a module as a function of that name.

    Its frame: where the workspace is; then steps at most, or if the next word is an address, what
    stands there; where the number of steps that were made is written, or 0; columns of a task;
    addresses: of what is held; of each first carry and of its result; of the rows.
    """
    _Loop(module, name, r).run()


class _Loop:
    def __init__(self, module: Module, name: str, r: Registers) -> None:
        self.r = r
        self.f = f = module.function(name, [("frame", PTR), ("task", I64)])
        frame, self.task = f.arguments
        self.space = f.pointer(frame)
        self.own = own = f.at(frame, CONTROL_WORDS, "i64")
        given = f.ne(f.word(own, 1), 0)
        self.n = f.branch(given, lambda: [f.word(f.pointer(own, 1))], lambda: [f.word(own)])[0]
        self.at_carries = 4 + len(r.held)
        self.at_rows = self.at_carries + 2 * len(r.carries)

    def run(self) -> None:
        """Print the function."""
        f, r = self.f, self.r
        steps = f.constant(I64, 0)
        if not r.columns:
            ((_, test, body),) = r.bodies
            steps = self._steps(f.constant(I64, 0), test, body)
        else:
            start = self.task * f.word(self.own, 3)
            stop = f.intrinsic("smin", start + f.word(self.own, 3), f.constant(I64, r.columns))
            again = len(r.bodies) == 1
            for lanes, test, body in r.bodies:
                end = stop if again else start + (stop - start) / lanes * lanes
                if not again and lanes == r.columns % r.bodies[0][0]:  # left over, in the last task
                    end = f.select(f.eq(stop, r.columns), stop, start)
                last = r.columns - lanes

                def some(
                    column: Value, _: list[Value], test: Lines | None = test, body: Lines = body,
                    last: int = last,
                ) -> list[Value]:  # fmt: skip
                    return [self._steps(f.min(column, last), test, body)]

                (steps,) = f.loop(start, end, lanes, some, [steps], maybe_empty=True)
                start = end
        counts = f.ne(f.word(self.own, 2), 0)
        f.when(counts, lambda: f.store(steps, f.pointer(self.own, 2)))
        f.ret()

    def _place(self, slot: int, column: Value, size: int) -> Value:
        place = self.f.pointer(self.own, slot)
        return self.f.at(place, column * size, "i8") if size else place

    def _steps(self, column: Value, test: Lines | None, body: Lines) -> Value:
        """All steps of some columns; how many they were."""
        f, r = self.f, self.r
        held = [self._place(4 + k, column, size) for k, size in enumerate(r.held)]
        rows = [self._place(self.at_rows + k, column, size) for k, size in enumerate(r.rows)]

        def place(k: int, end: int) -> Value:
            return self._place(self.at_carries + 2 * k + end, column, r.carries[k])

        kinds = {g.index: g for g in body.lines if isinstance(g, Given) and g.kind == "carry"}

        def begin(k: int) -> list[Value]:
            if r.tables[k]:
                return [self._table(place(k, 0), place(k, 1), r.tables[k])]
            given = kinds[sum(r.cells[:k])]
            if r.cells[k] == 1:
                return [get(f, given.element, place(k, 0), given.lanes)]
            return read_woven(
                f, given.element, place(k, 0), r.cells[k], 0, given.lanes, given.lanes
            )

        first = [x for k in range(len(r.carries)) for x in begin(k)]

        def text(lines: Lines, state: list[Value], at: list[Value], known=()) -> LinesText:  # type: ignore[no-untyped-def]
            of = {"held": held, "carry": state, "row": at}
            return LinesText(f, self.space, lambda g: of[g.kind][g.index], lines, known)

        go = f.constant(BOOL, 1) if test is None else text(test, first, []).run()[0]
        still = text(body, first, rows).still()
        xs, ys = range(r.inner), range(r.inner, len(rows))

        def step(carried: list[Value]) -> list[Value]:
            k, then, _, *state = carried
            row = self.n - 1 - k if r.back else k
            at = [f.at(p, row * s, "i8") for p, s in zip(rows, r.strides, strict=True)]
            lines = text(body, state, [at[j] for j in xs], still)
            found = lines.run()
            for j, n in zip(ys, body.results[len(state) :], strict=False):
                lines.write(n, at[j])
            go = f.constant(BOOL, 1) if test is None else found[-1]
            return [k + 1, look(f, self.space, k + 1, then), go, *found[: len(state)]]

        def goes_on(carried: list[Value]) -> Value:
            k, _, go, *_ = carried
            return f.compare("lt", k, self.n) & go & f.eq(f.word(self.space), 0)

        begun = [f.constant(I64, 0), now(f), go, *first]
        count, _, _, *last = f.while_loop(begun, goes_on, step)
        ends = iter(last)
        for k, cells in enumerate(r.cells):
            lanes, found = kinds[sum(r.cells[:k])].lanes, [*itertools.islice(ends, cells)]
            if cells > 1:
                write_woven(f, found, place(k, 1), 0, lanes)
            elif not r.tables[k]:
                put(f, found[0], lanes, place(k, 1))
        return count

    def _table(self, first: Value, result: Value, size: int) -> Value:
        """The result, which begins as a copy of what is there first."""
        f = self.f
        apart = f.emit(BOOL, f"icmp ne {first!r}, {result.name}")
        f.when(apart, lambda: copy_bytes(f, result, first, f.constant(I64, size)))
        return result
