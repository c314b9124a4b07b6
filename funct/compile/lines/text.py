"""Lines as LLVM text, and the kernel of a loop over them: its carry stays in registers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import attrs

from funct.compile.lines.dots import DotText
from funct.compile.lines.lines import (
    Argument,
    Chosen,
    Dot,
    Fold,
    Given,
    Joined,
    Kept,
    Line,
    Lines,
    Looped,
    Moved,
    Packed,
    Pick,
    Read,
    Result,
    Room,
    Spilled,
    Taken,
)  # fmt: skip
from funct.compile.loops.kernel import CONTROL_WORDS, WRONG, Constant, Op
from funct.compile.loops.reductions import combine, in_memory, read, write
from funct.compile.loops.updates import updated
from funct.compile.loops.warned import cases
from funct.compile.steps.moves import copy_bytes
from funct.compile.steps.turns import look, now
from funct.compile.steps.walker import pointer, word
from funct.kernels.llvm import BOOL, I64, PTR, Emitter, Module, Value, typed

__all__ = ["Registers", "print_registers"]

_FEW = 4  # rows that are moved one by one


@attrs.frozen
class Registers:
    """The code of a loop whose body is lines.

    bodies: for so many lanes at a time (0: not by columns), the test of the first state and the
    body, whose last result says whether to go on where there is a test. held, carries, rows: bytes
    from column to column of each of them, 0 where all columns have one. strides: of the rows, from
    step to step. inner: how many of the rows are those of xs. columns: how many there are. tables:
    for each carry its bytes if it is a table, else 0.
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


class _Text:
    """Lines as they are printed into a function. space: the workspace."""

    def __init__(
        self, f: Emitter, space: Value, given: Callable[[Given], Value], lines: Lines,
        known: Sequence[Value | None] = (),
    ) -> None:  # fmt: skip
        self.f = f
        self.space = space
        self.given = given
        self.lines = lines.lines
        self.results = lines.results
        self.memo: list[Value | None] = list(known) or [None] * len(lines.lines)
        self.several: dict[int, list[Value]] = {}

    def still(self) -> list[Value | None]:
        """The lines that are the same at all steps; None for the others."""
        same: list[bool] = []
        for n, line in enumerate(self.lines):
            same.append(_is_still(line, same))
            if same[-1]:
                self.memo[n] = self._line(line)
        return self.memo

    def run(self) -> list[Value]:
        """All lines that are not known yet; the results."""
        for n, line in enumerate(self.lines):
            if self.memo[n] is None:
                self.memo[n] = self._line(line, n)
        return [self._at(n) for n in self.results]

    def _at(self, n: int) -> Value:
        found = self.memo[n]
        assert found is not None, "lines stand in order"
        return found

    def _line(self, line: Line, n: int = -1) -> Value:
        f = self.f
        match line:
            case Given():
                return self.given(line)
            case Constant():
                return f.constant(typed(line.element), line.number)
            case Op():
                return line.of(f, [self._at(o) for o in line.operands], self.space)
            case Read():
                place = f.at(self._at(line.place), line.offset, in_memory(line.element))
                return read(f, line.element, place, line.lanes, None)
            case Pick():
                return self._picked(self._at(line.operand), line.which)
            case Joined():
                return f.shuffle(self._at(line.x), self._at(line.y), line.which)
            case Fold():
                return self._folded(line)
            case Argument():
                return self._argument(line)
            case Spilled():
                return self._spilled(self._at(line.operand))
            case Packed():
                return self._packed(line)
            case Room():
                return f.allocate(typed(in_memory(line.element)), line.count)
            case Dot():
                return DotText(f, line, self._at(line.x), self._at(line.y)).run()
            case Taken():
                return self._taken(line)
            case Kept():
                x = self._at(line.operand)
                at = self._at(line.index) * x.type.lanes
                write(f, x, f.at(self._at(line.place), at, in_memory(line.element)), None)
                return f.null()
            case Moved():
                return self._moved(line)
            case Chosen():
                self.several[n] = self._chosen(line)
                return f.null()
            case Looped():
                self.several[n] = self._looped(line)
                return f.null()
            case Result():
                return self.several[line.operand][line.index]
        raise AssertionError(line)

    def _inside(self, lines: Lines, state: Sequence[Value] = ()) -> list[Value]:
        """Lines that stand in these."""

        def given(g: Given) -> Value:
            return state[g.index] if g.kind == "state" else self._at(g.index)

        return _Text(self.f, self.space, given, lines).run()

    def _picked(self, x: Value, which: Sequence[int]) -> Value:
        if x.type.lanes == 1:
            return self.f.splat(x, len(which))
        if len(set(which)) == 1:
            return self.f.splat(self.f.extract(x, which[0]), len(which))
        return self.f.shuffle(x, None, which)

    # Reductions

    def _folded(self, line: Fold) -> Value:
        lanes, count = line.lanes, line.count
        x = self.f.convert(self._at(line.operand), line.element)
        if lanes & (lanes - 1):
            return self._halved(x, line)
        f, size = self.f, count * lanes
        wide = max(lanes, f.module.target.vector_bytes // x.type.bytes)
        parts = [f.piece(x, a, wide) for a in range(0, size - size % wide, wide)]
        while len(parts) > 1:
            odd = parts[len(parts) // 2 * 2 :]
            pairs = zip(parts[::2], parts[1::2], strict=False)
            parts = [*[combine(f, line.how, a, b) for a, b in pairs], *odd]
        while wide > lanes or not parts:  # halves, and what of the rest is as long as they are
            wide //= 2
            if parts:
                low, high = (f.piece(parts[0], a, wide) for a in (0, wide))
                parts = [combine(f, line.how, low, high)]
            if size & wide:
                rest = f.piece(x, size // (2 * wide) * (2 * wide), wide)
                parts = [combine(f, line.how, parts[0], rest) if parts else rest]
        return parts[0]

    def _halved(self, x: Value, line: Fold) -> Value:
        """Rows of as many elements as no vector has."""
        f, lanes, count = self.f, line.lanes, line.count
        rest: Value | None = None
        while count > 1:
            if count % 2:
                last = f.shuffle(x, None, range((count - 1) * lanes, count * lanes))
                rest = last if rest is None else combine(f, line.how, rest, last)
            half = count // 2 * lanes
            low, high = (f.shuffle(x, None, range(a, a + half)) for a in (0, half))
            x, count = combine(f, line.how, low, high), count // 2
        return x if rest is None else combine(f, line.how, x, rest)

    def _argument(self, line: Argument) -> Value:
        f, lanes = self.f, line.lanes
        x = self._at(line.operand)
        if x.type.element == "i1":
            x = f.convert(x, "u8")

        def part(k: int) -> Value:
            return f.shuffle(x, None, range(k * lanes, (k + 1) * lanes))

        best, found = part(0), f.constant(typed("i64", lanes), 0)
        for k in range(1, line.count):
            other = part(k)
            better = f.compare("lt" if line.least else "gt", other, best)
            if x.type.is_float:  # the first NaN is first of all
                better = (better | f.isnan(other)) & ~f.isnan(best)
            best = f.select(better, other, best)
            found = f.select(better, f.constant(found.type, k), found)
        return f.convert(found, line.element)

    # Memory

    def _spilled(self, x: Value) -> Value:
        place = self.f.allocate(typed(in_memory(x.type.element)), x.type.lanes)
        write(self.f, x, place, None)
        return place

    def _packed(self, line: Packed) -> Value:
        f, (rows, columns), (down, along) = self.f, line.shape, line.strides
        element = in_memory(line.element)
        to = f.allocate(typed(element), rows * columns)
        source = f.at(self._at(line.place), line.offset, element)

        def row(i: Value, _: list[Value]) -> list[Value]:
            def one(j: Value, _: list[Value]) -> list[Value]:
                x = f.load(typed(element), f.at(source, i * down + j * along, element))
                f.store(x, f.at(to, i * columns + j, element))
                return []

            f.loop(0, columns, 1, one)
            return []

        f.loop(0, rows, 1, row)
        return to

    def _checked(self, index: Value, length: int) -> Value:
        """An index counted from the begin; 0, and the program stops, where it is outside. Most are
        so counted: of all others it is asked beside the way.
        """
        f = self.f

        def outside(at: Value) -> Value:
            return f.convert(at, "u64") >= length

        def wrong() -> list[Value]:
            f.store(f.constant(I64, WRONG), self.space)
            return [f.constant(I64, 0)]

        def other() -> list[Value]:
            at = index + length
            return f.branch(outside(at), wrong, lambda: [at], rare=True)

        return f.branch(outside(index), other, lambda: [index], rare=True)[0]

    def _taken(self, line: Taken) -> Value:
        f, index = self.f, self._at(line.index)
        at = self._checked(index, line.length) if line.length else index
        if line.place is None:
            return at
        place = f.at(self._at(line.place), at * line.lanes + line.offset, in_memory(line.element))
        return read(f, line.element, place, line.lanes, None)

    def _moved(self, line: Moved) -> Value:
        f, rows, indices = self.f, self._at(line.rows), self._at(line.indices)
        operand = self._at(line.operand)
        place = self._spilled(operand) if line.lanes else operand
        inner = rows.type.lanes // line.count
        element = in_memory(line.element)

        def move(index: Value, row: Value) -> None:
            row_at = self._checked(index, line.length) if line.length else index
            at = f.at(place, row_at * inner, element)
            if line.how != "set":
                old = read(f, line.element, at, inner, None)
                row = updated(f, line.how, old, row, line.element)
            write(f, row, at, None)

        if line.count <= _FEW:
            for k in range(line.count):
                row = f.shuffle(rows, None, range(k * inner, (k + 1) * inner))
                move(f.extract(indices, k), row)
        else:
            from_, among = self._spilled(rows), self._spilled(indices)

            def each(k: Value, _: list[Value]) -> list[Value]:
                row = read(f, line.element, f.at(from_, k * inner, element), inner, None)
                move(f.load(I64, f.at(among, k, "i64")), row)
                return []

            f.loop(0, line.count, 1, each)
        return read(f, line.element, place, line.lanes, None) if line.lanes else place

    # Control flow

    def _chosen(self, line: Chosen) -> list[Value]:
        f, index = self.f, self._at(line.index)

        def way(k: int) -> list[Value]:
            if k == len(line.ways) - 1:
                return self._inside(line.ways[k])
            here = ~index if index.type is BOOL else index <= k
            return f.branch(here, lambda: self._inside(line.ways[k]), lambda: way(k + 1))

        return way(0)

    def _looped(self, line: Looped) -> list[Value]:
        f = self.f
        first = [self._at(n) for n in line.state]
        (go,) = self._inside(line.test, first)

        def back(state: Sequence[Value]) -> list[Value]:
            return [f.arrived(x, of.type.lanes) for x, of in zip(state, first, strict=True)]

        def step(carried: list[Value]) -> list[Value]:
            then, _, *state = carried
            *after, go = self._inside(line.body, back(state))
            count, after = after[0], [f.carried(x) for x in after]
            then = look(f, self.space, count, then)
            return [then, f.bitand(go, f.eq(word(f, self.space), 0)), *after]

        begin = [now(f), go, *[f.carried(x) for x in first]]
        return back(f.while_loop(begin, lambda c: c[1], step)[2:])


def _is_still(line: Line, same: Sequence[bool]) -> bool:
    match line:
        case Given():
            return line.kind == "held"
        case Constant():
            return True
        case Op():  # NumPy warns of nothing where there are no steps
            return all(same[o] for o in line.operands) and not cases(line.name, line.element, None)
        case Pick() | Fold() | Argument() | Spilled():
            return same[line.operand]
        case Read() | Packed():
            return same[line.place]
        case Joined() | Dot():
            return same[line.x] and same[line.y]
    return False


# The loop


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
        self.space = pointer(f, frame)
        self.own = own = f.at(frame, CONTROL_WORDS, "i64")
        given = f.ne(word(f, own, 1), 0)
        self.n = f.branch(given, lambda: [word(f, pointer(f, own, 1))], lambda: [word(f, own)])[0]
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
            start = self.task * word(f, self.own, 3)
            stop = f.intrinsic("smin", start + word(f, self.own, 3), f.constant(I64, r.columns))
            for lanes, test, body in r.bodies:
                end = start + (stop - start) / lanes * lanes
                if lanes == r.columns % r.bodies[0][0]:  # what is left over, in the last task
                    end = f.select(f.eq(stop, r.columns), stop, start)

                def some(column: Value, _: list[Value], test=test, body=body) -> list[Value]:  # type: ignore[no-untyped-def]
                    return [self._steps(column, test, body)]

                (steps,) = f.loop(start, end, lanes, some, [steps], maybe_empty=True)
                start = end
        counts = f.ne(word(f, self.own, 2), 0)
        f.when(counts, lambda: f.store(steps, pointer(f, self.own, 2)))
        f.ret()

    def _place(self, slot: int, column: Value, size: int) -> Value:
        place = pointer(self.f, self.own, slot)
        return self.f.at(place, column * size, "i8") if size else place

    def _steps(self, column: Value, test: Lines | None, body: Lines) -> Value:
        """All steps of some columns; how many they were."""
        f, r = self.f, self.r
        held = [self._place(4 + k, column, size) for k, size in enumerate(r.held)]
        rows = [self._place(self.at_rows + k, column, size) for k, size in enumerate(r.rows)]

        def place(k: int, end: int) -> Value:
            return self._place(self.at_carries + 2 * k + end, column, r.carries[k])

        kinds = {g.index: g for g in body.lines if isinstance(g, Given) and g.kind == "carry"}

        def begin(k: int) -> Value:
            if r.tables[k]:
                return self._table(place(k, 0), place(k, 1), r.tables[k])
            return read(f, kinds[k].element, place(k, 0), kinds[k].lanes, None)

        first = [begin(k) for k in range(len(r.carries))]

        def back(state: Sequence[Value]) -> list[Value]:
            return [f.arrived(x, of.type.lanes) for x, of in zip(state, first, strict=True)]

        def text(lines: Lines, state: list[Value], at: list[Value], known=()) -> _Text:  # type: ignore[no-untyped-def]
            of = {"held": held, "carry": state, "row": at}
            return _Text(f, self.space, lambda g: of[g.kind][g.index], lines, known)

        go = f.constant(BOOL, 1) if test is None else text(test, first, []).run()[0]
        still = text(body, first, rows).still()
        kept = [x and f.carried(x) for x in still]
        xs, ys = range(r.inner), range(r.inner, len(rows))

        def step(carried: list[Value]) -> list[Value]:
            k, then, _, *state = carried
            row = self.n - 1 - k if r.back else k
            at = [f.at(p, row * s, "i8") for p, s in zip(rows, r.strides, strict=True)]
            known = [x and of and f.arrived(x, of.type.lanes)
                     for x, of in zip(kept, still, strict=True)]  # fmt: skip
            found = text(body, back(state), [at[j] for j in xs], known).run()
            for j, x in zip(ys, found[len(state) :], strict=False):
                write(f, x, at[j], None)
            go = f.constant(BOOL, 1) if test is None else found[-1]
            after = [f.carried(x) for x in found[: len(state)]]
            return [k + 1, look(f, self.space, k + 1, then), go, *after]

        def goes_on(carried: list[Value]) -> Value:
            k, _, go, *_ = carried
            return f.compare("lt", k, self.n) & go & f.eq(word(f, self.space), 0)

        begun = [f.constant(I64, 0), now(f), go, *[f.carried(x) for x in first]]
        count, _, _, *last = f.while_loop(begun, goes_on, step)
        for k, x in enumerate(back(last)):
            if not r.tables[k]:
                write(f, x, place(k, 1), None)
        return count

    def _table(self, first: Value, result: Value, size: int) -> Value:
        """The result, which begins as a copy of what is there first."""
        f = self.f
        apart = f.emit(BOOL, f"icmp ne {first!r}, {result.name}")
        f.when(apart, lambda: copy_bytes(f, result, first, f.constant(I64, size)))
        return result
