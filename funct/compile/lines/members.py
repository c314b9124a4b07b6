"""Loops over a batch of few numbers each: some members go through all steps at a time."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from msgspec import Struct

from funct.compile.forms import Repeat
from funct.compile.lines.columns import Cells, by_cells
from funct.compile.lines.lines import Cell, Given, Lines, Read, Woven
from funct.compile.lines.registers import Making
from funct.compile.lines.vectors import Array, NoLines
from funct.compile.loops.scalars import ELEMENTS
from funct.compile.loops.views import dense
from funct.device import host
from funct.graph import Graph, Var

__all__ = ["Members", "of_members"]

_MOST = 2048  # members whose cells are near enough to one another


class Members(Struct, frozen=True):
    """A step of so many members of a batch. cells: of each carry. held: the constants, which come
    after all else that is.
    """

    batch: int
    lanes: int
    step: Lines
    cells: tuple[int, ...]
    held: dict[Var, Any]


def of_members(form: Repeat, body: Graph) -> Members | None:
    """The loop so, if a batch is the first axis of what it carries, and others are behind that."""
    c, n = form.constants, form.carry
    carries = [v for v in body.inputs[c : c + n] if math.prod(v.shape) > 1]
    batch = max([v.shape[0] for v in carries], default=0)
    moving = [v for v in (*body.inputs[c:], *body.outputs) if math.prod(v.shape) > 1]
    lanes = host().vector_bytes // max([v.dtype.itemsize for v in moving], default=1)
    if form.test is not None or not lanes <= batch <= _MOST:
        return None
    if all(tuple(v.shape) == (batch,) for v in moving):
        return None  # it is elementwise as it is
    held: dict[Var, Any] = {}
    try:
        graph, inputs, outputs = by_cells(body, batch)
        lines = _Step(form, body, (batch, lanes), held).of(graph, inputs, outputs)
    except NoLines:
        return None
    return Members(batch, lanes, lines, tuple(map(len, inputs[c : c + n])), held)


class _Step:
    """A step of some members: what it is given, and what it gives, as it lies in memory."""

    def __init__(
        self, form: Repeat, body: Graph, columns: tuple[int, int], held: dict[Var, Any]
    ) -> None:
        self.form = form
        self.body = body
        self.batch, self.lanes = columns
        self.making = Making(columns, held=held, first_held=form.constants)

    def of(self, graph: Graph, inputs: list[Cells], outputs: list[Cells]) -> Lines:
        """Its lines."""
        n, making = self.form.carry, self.making
        making.graph(graph, [a for found in self._given(inputs) for a in found])
        after = [
            making.vector(making.of(x), v.shape[:1] if self._is_batched(v) else ())
            for v, cells in zip(self.body.inputs[self.form.constants :], outputs[:n], strict=False)
            for x in cells
        ]
        kept = zip(self.body.outputs[n:], outputs[n:], strict=True)
        return making.lines_of([*after, *[self._together(v, cells) for v, cells in kept]])

    def _given(self, inputs: list[Cells]) -> Iterator[list[Array]]:
        c, first = self.form.constants, 0
        last = c + self.form.carry
        for k, (v, cells) in enumerate(zip(self.body.inputs, inputs, strict=True)):
            if c <= k < last:
                yield [self.making.given(x, "carry", first + j) for j, x in enumerate(cells)]
                first += len(cells)
            else:
                yield self._read(v, cells, *(("held", k) if k < c else ("row", k - last)))

    def _read(self, v: Var, cells: Cells, kind: str, index: int) -> list[Array]:
        element, found = ELEMENTS[v.dtype], []
        place = self.making.add(Given(kind, index, element, 0))
        for k, x in enumerate(cells):
            if not x.shape:
                line = self.making.add(Read(place, k, element, 1))
            elif len(cells) == 1:
                line = self.making.add(Read(place, 0, element, self.lanes))
            else:
                line = self.making.add(Cell(place, len(cells), k, element, self.lanes))
            found.append(Array(line, dense(x), element, False))
        return found

    def _is_batched(self, v: Var) -> bool:
        return tuple(v.shape[:1]) == (self.batch,)

    def _together(self, v: Var, cells: Cells) -> int:
        making = self.making
        shape = (self.batch,) if self._is_batched(v) else ()
        lines = [making.vector(making.of(x), shape) for x in cells]
        if len(lines) == 1:
            return lines[0]
        if not shape:
            at = np.arange(len(lines))
            each = [(line, np.where(at == k, 0, -1)) for k, line in enumerate(lines)]
            return making.joined(each, ELEMENTS[v.dtype])
        return making.add(Woven(tuple(lines), ELEMENTS[v.dtype], self.lanes * len(lines)))
