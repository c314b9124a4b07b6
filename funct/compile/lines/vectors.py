"""Arrays as vectors: the lines that have their elements, and where among them they stand."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from funct.compile.lines.lines import (
    Given,
    Joined,
    Line,
    Lines,
    Looped,
    Moved,
    Packed,
    Pick,
    Read,
    Result,
    is_in_order,
)  # fmt: skip
from funct.compile.loops.kernel import Constant, Op
from funct.compile.loops.scalars import ELEMENTS, Printing
from funct.compile.loops.views import View, dense
from funct.graph import Var
from funct.kernels.llvm import typed

__all__ = ["MOST_BYTES", "MOST_MATRIX", "Array", "NoLines", "Vectors"]

MOST_BYTES = 1024  # of an array in registers, or near them
MOST_MATRIX = 1 << 15  # bytes of a matrix that is packed, or kept by a loop inside
_MOST_WORK = 3 << 14  # bytes that a step computes, times their ops' costs: code has its price


class NoLines(Exception):  # noqa: N818
    """Something in a body is no line."""


class Array(Struct, frozen=True):
    """An array: the line that has its elements, and where among them they stand."""

    line: int
    view: View
    element: str
    in_memory: bool


class Vectors:
    """Lines as they are made: arrays, and the vectors that have their elements.

    columns: how many elements are so many lanes at a time, where all is elementwise over them;
    (0, 0): each array is one vector. around: who makes the lines that these stand in. held: gets
    the constants of graphs, which are numbered from first_held on.
    """

    def __init__(
        self, columns: tuple[int, int], around: Vectors | None = None,
        held: dict[Var, Any] | None = None, first_held: int = 0,
    ) -> None:  # fmt: skip
        self.columns = columns
        self.around = around
        self.lines: list[Line] = []
        self.widths: list[int] = []
        self.known: dict[Line, int] = {}
        self.arrays: dict[Var, Array] = {}
        self.held = held if held is not None else {}
        self.first_held = first_held
        self.counted: set[Var] = set()  # constants that are 0, 1, 2 …
        self.work = 0

    def add(self, line: Line, lanes: int | None = None) -> int:
        """Where the line is, which is made if there is none like it."""
        found = self.known.get(line)
        if found is None:
            found = self.known[line] = len(self.lines)
            if lanes is None:
                assert not isinstance(line, Constant | Op), "others say how wide they are"
                lanes = line.lanes
            cost = line.printing.cost if isinstance(line, Op) else 1
            self.price(lanes * typed(line.element).bytes * cost)
            self.lines.append(line)
            self.widths.append(lanes)
        return found

    def price(self, work: int) -> None:
        """Count so much work. Raises: NoLines: where it is too much."""
        self.work += max(8, work)
        if self.work > _MOST_WORK:
            raise NoLines("it is as good as several loops")
        if self.around is not None:
            self.around.price(work)

    def of(self, a: Any) -> Array:
        """An operand. Raises: NoLines: for a number."""
        if not isinstance(a, Var):
            raise NoLines("an operand is a number")
        return self.arrays[a]

    def given(self, v: Var, kind: str, index: int) -> Array:
        """An input. What is carried is in registers if it fits, the rest in memory."""
        if v.dtype not in ELEMENTS:
            raise NoLines(f"no loop has elements of {v.dtype}")
        vector = kind in ("carry", "state") and not self.is_table(v)
        element, lanes = ELEMENTS[v.dtype], self.lanes(v.shape) if vector else 0
        return Array(self.add(Given(kind, index, element, lanes)), dense(v), element, not vector)

    # Tables

    def is_table(self, v: Var) -> bool:
        """Whether an array that is carried stays in memory."""
        return not self.columns[0] and math.prod(v.shape) * v.dtype.itemsize > MOST_BYTES

    def table(self, a: Array) -> Given | None:
        """The input whose memory an array is, to the last element, if that may be changed."""
        line = self.lines[a.line]
        while isinstance(line, Moved | Result) and not line.lanes:
            n = line.operand
            if isinstance(line, Result):
                loop = self.lines[n]
                assert isinstance(loop, Looped), "branches give no tables"
                n = loop.state[line.index]
            line = self.lines[n]
        mine = isinstance(line, Given) and line.kind in ("carry", "state") and not line.lanes
        return line if mine and a.view.is_dense else None  # type: ignore[return-value]

    def carried(self, a: Array, v: Var, place: tuple[str, int] | None = None) -> int:
        """The line of an array as it is given to a loop as v, or by its step to the next one.

        place: the table that it must be in, as an input.
        """
        if not self.is_table(v):
            return self.vector(a)
        table = self.table(a)
        if table is None or place not in (None, (table.kind, table.index)):
            raise NoLines(f"{v.shape} is carried, which is too much for registers")
        return a.line

    def number(self, x: int) -> int:
        """A whole number."""
        return self.add(Constant(x, "i64"), 1)

    def constant(self, v: Var, x: Any) -> Array:
        """A constant of a graph, which is held by the outermost lines."""
        if self.around is not None:
            return self.seen(self.around.constant(v, x))
        if v not in self.held:
            self.held[v] = np.ascontiguousarray(x.data)
        return self.given(v, "held", self.first_held + list(self.held).index(v))

    def seen(self, a: Array) -> Array:
        """An array of the lines around, from within."""
        assert self.around is not None
        lanes = 0 if a.in_memory else self.around.widths[a.line]
        return replace(a, line=self.add(Given("outer", a.line, a.element, lanes)))

    # Vectors

    def lanes(self, shape: Sequence[int]) -> int:
        """Of an array of that shape."""
        n, (columns, lanes) = math.prod(shape), self.columns
        if not columns or n == 1:
            return n
        if n != columns:
            raise NoLines("it is not elementwise over what is carried")
        return lanes

    def vector(self, a: Array, shape: Sequence[int] | None = None) -> int:
        """The line with the elements of an array in order, as an operand of that shape."""
        view = a.view if shape is None else a.view.broadcast(shape)
        if self.columns[0]:
            return self._column(a, view)
        size = typed(a.element).bytes
        if not 0 < view.size * size <= MOST_BYTES:
            raise NoLines(f"an array of shape {view.shape} is not held in registers")
        at = _places(view)
        if not a.in_memory:
            return self.pick(a.line, at, a.element)
        low, high = int(at.min()), int(at.max())
        if (high - low + 1) * size <= 2 * MOST_BYTES:
            base = self.add(Read(a.line, low, a.element, high - low + 1))
            return self.pick(base, at - low, a.element)
        lengths, strides = (1, 1, *view.shape), (0, 0, *view.strides)
        if math.prod(lengths[:-2]) > 1:
            raise NoLines("it reads elements far from one another")
        packed = self.packed(a, view.offset, strides[-2:], lengths[-2:])
        return self.add(Read(packed, 0, a.element, len(at)))

    def packed(self, a: Array, offset: int, strides: Any, shape: Any) -> int:
        """The line with a matrix of memory, its rows one after the other."""
        if math.prod(shape) * typed(a.element).bytes > MOST_MATRIX:
            raise NoLines("a large matrix is transposed")
        return self.add(Packed(a.line, offset, tuple(strides), tuple(shape), a.element))

    def _column(self, a: Array, view: View) -> int:
        if not a.view.is_dense or a.view.size != math.prod(a.view.root.shape):
            raise NoLines("elements change their columns")
        own, wanted = self.lanes(a.view.shape), self.lanes(view.shape)
        line = self.add(Read(a.line, 0, a.element, own)) if a.in_memory else a.line
        return line if own == wanted else self.pick(line, np.zeros(wanted, int), a.element)

    def pick(self, line: int, at: Any, element: str) -> int:
        """The line with these lanes of another."""
        base = self.lines[line]
        if len(at) == self.widths[line] and np.array_equal(at, np.arange(len(at))):
            return line
        if isinstance(base, Pick):
            return self.pick(base.operand, np.asarray(base.which)[at], element)
        return self.add(Pick(line, tuple(at.tolist()), element))

    def made(self, line: int, v: Var) -> Array:
        """An array that a line has, as it is."""
        return Array(line, dense(v), ELEMENTS[v.dtype], not self.widths[line])

    def op(
        self, name: str, how: Printing, operands: Sequence[int], element: str, lanes: int
    ) -> int:
        """The line of an op whose operands are of its kind."""
        line = Op(name, tuple(operands), (None,) * len(operands), element, "full", how)
        return self.add(line, lanes)

    def joined(self, parts: Sequence[tuple[int, Any]], element: str) -> int:
        """One vector of several. parts: lines, and which lane of each a lane is, or -1."""
        (line, at), *rest = parts
        found = self.pick(line, np.maximum(at, 0), element)
        for line, at in rest:
            n = len(at)
            y = self.pick(line, np.maximum(at, 0), element)
            which = np.where(at >= 0, n + np.arange(n), np.arange(n))
            found = self.add(Joined(found, y, tuple(which.tolist()), element)) if n > 1 else y
        return found

    def lines_of(self, results: Sequence[int]) -> Lines:
        """What has been made."""
        lines = Lines(tuple(self.lines), tuple(results))
        if not is_in_order(lines):
            raise NoLines("a table is read as it was before it was changed")
        return lines


def _places(view: View) -> Any:
    """Where the elements stand, in order."""
    at = np.full(view.shape, view.offset)
    for axis, (n, s) in enumerate(zip(view.shape, view.strides, strict=True)):
        at = at + (np.arange(n) * s).reshape(n, *[1] * (len(view.shape) - axis - 1))
    return at.ravel()
