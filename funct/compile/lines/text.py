"""Lines as LLVM text: one value for each, printed into the function that `kernel.py` makes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec.structs import replace

from funct.compile.lines.dots import DotText
from funct.compile.lines.lines import (
    Argument,
    Cell,
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
    Refused,
    Result,
    Room,
    Spilled,
    Taken,
    Woven,
    counts,
)  # fmt: skip
from funct.compile.lines.roomy import (
    filled,
    get,
    lanes_for,
    once,
    put,
    turned_around,
)  # fmt: skip
from funct.compile.loops.kernel import WRONG, Constant, Op
from funct.compile.loops.reductions import combine, in_memory
from funct.compile.loops.updates import updated
from funct.compile.loops.warned import cases, refuses
from funct.compile.loops.weaving import read_woven, write_woven
from funct.compile.steps.turns import look, now
from funct.kernels.llvm import BOOL, I64, Emitter, Value, typed

__all__ = ["LinesText"]

_FEW = 4  # rows that are moved one by one


class LinesText:
    """Lines as they are printed into a function. space: the workspace. counts: of each line the
    elements that count (see `roomy.py`).
    """

    def __init__(
        self, f: Emitter, space: Value, given: Callable[[Given], Value], lines: Lines,
        known: Sequence[Value | None] = (),
    ) -> None:  # fmt: skip
        self.f = f
        self.space = space
        self.given = given
        self.lines = lines.lines
        self.results = lines.results
        self.counts = counts(lines.lines)
        self.memo: list[Value | None] = list(known) or [None] * len(lines.lines)
        self.several: dict[int, list[Value]] = {}
        self.apart: dict[Cell, list[Value]] = {}

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

    def write(self, n: int, place: Value) -> None:
        """Put the elements of a line in memory, from the place on."""
        line = self.lines[n]
        if isinstance(line, Woven):
            cells = [self._at(o) for o in line.operands]
            write_woven(self.f, cells, place, 0, cells[0].type.lanes)
        else:
            put(self.f, self._at(n), self.counts[n], place)

    def _at(self, n: int) -> Value:
        found = self.memo[n]
        assert found is not None, "lines stand in order"
        return found

    def _cells(self, line: Cell) -> list[Value]:
        """All cells that the line is one of: they are taken apart together."""
        whole = replace(line, which=0)
        if whole not in self.apart:
            self.apart[whole] = read_woven(
                self.f, line.element, self._at(line.place), line.cells, 0, line.lanes, line.lanes
            )
        return self.apart[whole]

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
                return get(f, line.element, place, line.lanes)
            case Cell():
                return self._cells(line)[line.which]
            case Woven():
                return f.null()  # it is nowhere but in memory: `write`
            case Pick():
                return self._picked(self._at(line.operand), line.which)
            case Joined():
                return self._joined(line)
            case Fold():
                return self._folded(line)
            case Argument():
                return self._argument(line)
            case Spilled():
                return self._spilled(line.operand)
            case Packed():
                return self._packed(line)
            case Room():
                return f.allocate(typed(in_memory(line.element)), line.count)
            case Dot():
                return DotText(f, line, self._at(line.x), self._at(line.y)).run()
            case Taken():
                return self._taken(line)
            case Kept():
                n = self.counts[line.operand]
                at = self._at(line.index) * n
                place = f.at(self._at(line.place), at, in_memory(line.element))
                put(f, self._at(line.operand), n, place)
                return f.null()
            case Moved():
                return self._moved(line)
            case Refused():
                self._refused(line)
                return f.null()
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

        return LinesText(self.f, self.space, given, lines).run()

    def _picked(self, x: Value, which: Sequence[int]) -> Value:
        lanes = lanes_for(self.f, len(which))
        if x.type.lanes == 1:
            return self.f.splat(x, lanes)
        if len(set(which)) == 1:
            return self.f.splat(self.f.extract(x, which[0]), lanes)
        if (turned := turned_around(self.f, x, which)) is not None:
            return turned
        x, which = once(self.f, x, which)
        return self.f.shuffle(x, None, filled(self.f, which))

    def _joined(self, line: Joined) -> Value:
        x, y = self._at(line.x), self._at(line.y)
        beyond = x.type.lanes - self.counts[line.x]  # lanes of x that no line counts
        which = [k + beyond if k >= self.counts[line.x] else k for k in line.which]
        return self.f.shuffle(x, y, filled(self.f, which))

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
                last = self._picked(x, range((count - 1) * lanes, count * lanes))
                rest = last if rest is None else combine(f, line.how, rest, last)
            half = count // 2 * lanes
            low, high = (self._picked(x, range(a, a + half)) for a in (0, half))
            x, count = combine(f, line.how, low, high), count // 2
        return x if rest is None else combine(f, line.how, x, rest)

    def _argument(self, line: Argument) -> Value:
        f, lanes = self.f, line.lanes
        x = self._at(line.operand)
        if x.type.element == "i1":
            x = f.convert(x, "u8")

        def part(k: int) -> Value:
            return self._picked(x, range(k * lanes, (k + 1) * lanes))

        best, found = part(0), f.constant(typed("i64", lanes_for(f, lanes)), 0)
        for k in range(1, line.count):
            other = part(k)
            better = f.compare("lt" if line.least else "gt", other, best)
            if x.type.is_float:  # the first NaN is first of all
                better = (better | f.isnan(other)) & ~f.isnan(best)
            best = f.select(better, other, best)
            found = f.select(better, f.constant(found.type, k), found)
        return f.convert(found, line.element)

    # Memory

    def _spilled(self, n: int) -> Value:
        x, count = self._at(n), self.counts[n]
        place = self.f.allocate(typed(in_memory(x.type.element)), count)
        put(self.f, x, count, place)
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

    def _refused(self, line: Refused) -> None:
        f, wrong = self.f, self._at(line.operand)
        some = f.any(wrong)
        f.when(some, lambda: f.store(f.constant(I64, WRONG), self.space))

    def _taken(self, line: Taken) -> Value:
        f, index = self.f, self._at(line.index)
        at = self._checked(index, line.length) if line.length else index
        if line.place is None:
            return at
        place = f.at(self._at(line.place), at * line.lanes + line.offset, in_memory(line.element))
        return get(f, line.element, place, line.lanes)

    def _moved(self, line: Moved) -> Value:
        f, rows, indices = self.f, self._at(line.rows), self._at(line.indices)
        place = self._spilled(line.operand) if line.lanes else self._at(line.operand)
        inner = self.counts[line.rows] // line.count
        element = in_memory(line.element)

        def move(index: Value, row: Value) -> None:
            row_at = self._checked(index, line.length) if line.length else index
            at = f.at(place, row_at * inner, element)
            if line.how != "set":
                old = get(f, line.element, at, inner)
                row = updated(f, line.how, old, row, line.element)
            put(f, row, inner, at)

        if line.count <= _FEW:
            for k in range(line.count):
                row = self._picked(rows, range(k * inner, (k + 1) * inner))
                move(f.extract(indices, k), row)
        else:
            from_, among = self._spilled(line.rows), self._spilled(line.indices)

            def each(k: Value, _: list[Value]) -> list[Value]:
                row = get(f, line.element, f.at(from_, k * inner, element), inner)
                move(f.word(among, k), row)
                return []

            f.loop(0, line.count, 1, each)
        return get(f, line.element, place, line.lanes) if line.lanes else place

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

        def step(carried: list[Value]) -> list[Value]:
            then, _, *state = carried
            *after, go = self._inside(line.body, state)
            then = look(f, self.space, after[0], then)
            return [then, f.bitand(go, f.eq(f.word(self.space), 0)), *after]

        return f.while_loop([now(f), go, *first], lambda c: c[1], step)[2:]


def _is_still(line: Line, same: Sequence[bool]) -> bool:
    match line:
        case Given():
            return line.kind == "held"
        case Constant():
            return True
        case Op():  # NumPy warns of nothing where there are no steps, and refuses nothing
            told = cases(line.name, line.element, None) or refuses(line.name, line.element, None)
            return all(same[o] for o in line.operands) and not told
        case Pick() | Fold() | Argument() | Spilled():
            return same[line.operand]
        case Read() | Cell() | Packed():
            return same[line.place]
        case Woven():
            return all(same[o] for o in line.operands)
        case Joined() | Dot():
            return same[line.x] and same[line.y]
    return False
