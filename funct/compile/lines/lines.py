"""Lines: what a small body computes, each line a vector in registers or a place in memory.

Operands are positions of earlier lines. Lines are hashable: they are the key under which code is
found again. `registers.py` makes them of a graph, `text.py` prints them.

A table is an array in memory that a loop carries, and changes in place. A line that writes to it
stands for the table after that, so nothing below that line reads the one above: see `is_in_order`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from funct.compile.loops.kernel import Constant, How, Op

__all__ = [
    "Argument", "Cell", "Chosen", "Dot", "Fold", "Given", "Joined", "Kept", "Line", "Lines",
    "Looped", "Moved", "Packed", "Pick", "Read", "Refused", "Result", "Room", "Spilled", "Taken",
    "Woven", "counts", "every_line", "is_in_order",
]  # fmt: skip


class Given(Struct, frozen=True):
    """What comes from outside: a vector, or (lanes 0) an address; a carry or a state that is one is
    a table.

    kind: "held" (the same at all steps), "carry", "row" (of an x), "outer" (of the lines around),
    "state" (of a loop inside).
    """

    kind: str
    index: int
    element: str
    lanes: int


class Read(Struct, frozen=True):
    """Elements in memory, one after the other."""

    place: int
    offset: int
    element: str
    lanes: int


class Cell(Struct, frozen=True):
    """One of so many cells that each of some members has in memory, for all of them."""

    place: int
    cells: int
    which: int
    element: str
    lanes: int


class Woven(Struct, frozen=True):
    """Vectors for each of the cells that members have, as they lie in memory."""

    operands: tuple[int, ...]
    element: str
    lanes: int


class Pick(Struct, frozen=True):
    """Some lanes of a vector."""

    operand: int
    which: tuple[int, ...]
    element: str

    @property
    def lanes(self) -> int:
        """How many."""
        return len(self.which)


class Joined(Struct, frozen=True):
    """Lanes of two vectors of one length; those of the second one count on."""

    x: int
    y: int
    which: tuple[int, ...]
    element: str

    @property
    def lanes(self) -> int:
        """How many."""
        return len(self.which)


class Fold(Struct, frozen=True):
    """A reduction of `count` times as many elements as it gives: lane r of all of them."""

    how: How
    operand: int
    count: int
    element: str
    lanes: int


class Argument(Struct, frozen=True):
    """Where the largest of `count` elements stands, or (least) the smallest, for each lane."""

    operand: int
    count: int
    lanes: int
    least: bool
    element: str = "i64"


class Spilled(Struct, frozen=True):
    """The memory to which a vector is written."""

    operand: int
    element: str
    lanes: int = 0


class Packed(Struct, frozen=True):
    """A matrix of memory with its rows one after the other, in memory of its own."""

    place: int
    offset: int
    strides: tuple[int, int]
    shape: tuple[int, int]
    element: str
    lanes: int = 0


class Dot(Struct, frozen=True):
    """A product of matrices: numbers x[i, l] in memory times rows of y, which lie in memory.

    x, y: places; their first element; strides of i and l, and of l. shape: (rows, terms, columns).
    """

    x: int
    y: int
    offsets: tuple[int, int]
    strides: tuple[int, int, int]
    shape: tuple[int, int, int]
    element: str

    @property
    def lanes(self) -> int:
        """Elements of the result."""
        return self.shape[0] * self.shape[2]


class Taken(Struct, frozen=True):
    """The row of memory that an index says, or (place None) the index counted from the begin.

    length: of the axis that is indexed, which stops the program where the index is outside of it;
    0: the index is good.
    """

    place: int | None
    index: int
    offset: int
    length: int
    element: str
    lanes: int


class Moved(Struct, frozen=True):
    """A vector with rows of another written, or added, where indices say.

    lanes: of the result, 0 where the operand is a table, which is changed in place; length: of the
    axis that is indexed, or 0: the indices are good; how: see `how_updated`.
    """

    operand: int
    indices: int
    rows: int
    count: int
    length: int
    how: str
    element: str
    lanes: int


class Room(Struct, frozen=True):
    """Memory for so many rows, which a loop inside fills. number: no two rooms are one."""

    number: int
    count: int
    element: str
    lanes: int = 0


class Kept(Struct, frozen=True):
    """A row that is written to memory, at an index that is good."""

    place: int
    index: int
    operand: int
    element: str
    lanes: int = 0


class Refused(Struct, frozen=True):
    """What stops the program where one of its elements is true: an op must be done otherwise."""

    operand: int
    element: str = "i1"
    lanes: int = 0


class Chosen(Struct, frozen=True):
    """One of several lines, as an index says. Its results are `Result`s."""

    index: int
    ways: tuple[Lines, ...]
    element: str = "i1"
    lanes: int = 0


class Looped(Struct, frozen=True):
    """Lines that are repeated while the last of their results says so. The others are the next
    state; its last values are `Result`s.

    test: whether there is a first step. state: the first one.
    """

    test: Lines
    body: Lines
    state: tuple[int, ...]
    element: str = "i1"
    lanes: int = 0


class Result(Struct, frozen=True):
    """A result of a line that has several."""

    operand: int
    index: int
    element: str
    lanes: int


Line = (
    Given | Read | Cell | Woven | Pick | Joined | Fold | Argument | Spilled | Packed | Dot | Taken
    | Moved | Room | Kept | Refused | Chosen | Looped | Result | Constant | Op
)  # fmt: skip


class Lines(Struct, frozen=True, cache_hash=True):
    """Lines in order, and which of them are results."""

    lines: tuple[Line, ...]
    results: tuple[int, ...]


def counts(lines: Sequence[Line]) -> list[int]:
    """How many elements each of the lines has; 0 for addresses."""
    found: list[int] = []
    for line in lines:
        match line:
            case Op():
                found.append(max([found[o] for o in line.operands]))
            case Constant():
                found.append(1)
            case _:
                found.append(line.lanes)
    return found


def every_line(lines: Lines) -> Iterator[Line]:
    """The lines, and those within them."""
    for line in lines.lines:
        yield line
        match line:
            case Chosen():
                for way in line.ways:
                    yield from every_line(way)
            case Looped():
                for inner in (line.test, line.body):
                    yield from every_line(inner)


def is_in_order(lines: Lines) -> bool:
    """Whether nothing reads a table that a line above has changed, or the line itself changes."""
    changed: set[int] = set()
    for line in lines.lines:
        read = _operands(line)
        now = _changed(line, lines.lines)
        if not changed.isdisjoint(read) or any(read.count(o) > 1 for o in now):
            return False
        changed.update(now)
    return changed.isdisjoint(lines.results)


def _operands(line: Line) -> list[int]:
    """The lines that a line reads, also from within."""
    match line:
        case Op() | Woven():
            return list(line.operands)
        case Pick() | Fold() | Argument() | Spilled() | Refused() | Result():
            return [line.operand]
        case Read() | Cell() | Packed():
            return [line.place]
        case Joined() | Dot():
            return [line.x, line.y]
        case Taken():
            return [line.index, *([] if line.place is None else [line.place])]
        case Moved():
            return [line.operand, line.indices, line.rows]
        case Kept():
            return [line.place, line.index, line.operand]
        case Chosen():
            return [line.index, *[n for way in line.ways for n in _outer(way)]]
        case Looped():
            return [*line.state, *_outer(line.test), *_outer(line.body)]
    return []


def _outer(lines: Lines) -> set[int]:
    return {g.index for g in lines.lines if isinstance(g, Given) and g.kind == "outer"}


def _changed(line: Line, lines: Sequence[Line]) -> list[int]:
    """The tables that a line changes."""
    match line:
        case Moved() if not line.lanes:
            return [line.operand]
        case Looped():
            return [n for n in line.state if _is_address(lines[n])]
    return []


def _is_address(line: Line) -> bool:
    return not isinstance(line, Constant | Op) and not line.lanes
