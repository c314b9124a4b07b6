"""Loops over few elements, or elementwise over columns, as one kernel without calls."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from funct.compile.forms import Repeat
from funct.compile.fusion.calls import Address, Call, Word, size_bytes
from funct.compile.lines.kernel import Registers
from funct.compile.lines.lines import Given, Line, Lines, Moved, Refused, Taken, every_line
from funct.compile.lines.members import of_members
from funct.compile.lines.registers import Making
from funct.compile.lines.vectors import NoLines
from funct.compile.loops.kernel import Op
from funct.compile.loops.scalars import ELEMENTS
from funct.compile.loops.warned import refuses
from funct.compile.rewriting.select import prepared
from funct.device import host
from funct.graph import Graph, Var

__all__ = ["SmallLoop", "in_registers"]

_MOST_COLUMNS = 2048  # steps of more stand too far apart in memory
_BLOCK = 128  # columns of a task
_TURN = 8  # elements in short rows that cost what a step does


class SmallLoop(Struct, frozen=True, eq=False):
    """A loop as lines. constants: arrays that come after all else that is held."""

    form: Repeat
    code: Registers
    constants: dict[Var, Any]

    @property
    def is_endless(self) -> bool:
        """Whether nothing known here ends it: its steps are counted when it is called."""
        return self.form.steps is None and self.form.test is None

    @property
    def checks(self) -> bool:
        """Whether an op in it may have to raise."""
        return any(map(_checks, self._every()))

    @property
    def doubts(self) -> bool:
        """Whether an op in it may have to be done otherwise, which raises or not."""
        return any(map(_refuses, self._every()))

    def _every(self) -> list[Line]:
        bodies = [x for _, *both in self.code.bodies for x in both if x is not None]
        return [line for x in bodies for line in every_line(x)]

    def repeat(
        self, operands: Sequence[Address], results: Sequence[Address],
        limit: Address | None = None, count: Address | None = None,
    ) -> list[Call]:  # fmt: skip
        """The loop, of at most `limit` steps if that is given; how many they were in `count`."""
        c, n, columns = self.form.constants, self.form.carry, self.code.columns
        most = (max(self.code.cells, default=1) - 1).bit_length()
        block = max(self.code.bodies[0][0], _BLOCK >> most)
        tasks = 1 if columns < 2 * block else -(-columns // block)
        words: list[Word] = [self.form.most, limit or 0, count or 0]
        words += [columns if tasks == 1 else block, *operands[:c], *map(Address, self.constants)]
        for pair in zip(operands[c : c + n], results[:n], strict=True):
            words += pair
        words += [*operands[c + n :], *results[n:]]
        writes = tuple([a.of for a in results])
        kernel = "registers", self.code
        return [
            Call(
                kernel, tuple(words), tasks, writes, checks=self.checks, stops=True,
                doubts=self.doubts, turns=self.form.most * _TURN,
            )
        ]  # fmt: skip


def _checks(line: Line) -> bool:
    if isinstance(line, Op):
        return refuses(line.name, line.element, None)
    return _refuses(line) or (isinstance(line, Taken | Moved) and line.length > 0)


def _refuses(line: Line) -> bool:
    return isinstance(line, Refused)


def in_registers(form: Repeat) -> SmallLoop | str:
    """The loop as lines, or why it is none."""
    body = prepared(form.body)
    test = prepared(form.test) if form.test is not None else None
    if body is None or (form.test is not None and test is None):
        return "its body has guards, effects, symbolic sizes, or what is checked before it runs"
    moving = [*body.inputs[form.constants :], *body.outputs]
    if any(v.dtype not in ELEMENTS for v in (*body.inputs, *body.outputs)):
        return "its body has a dtype that loops do not know"
    found = of_members(form, body)
    if found is not None:
        step = ((found.lanes, None, found.step),)
        code = _code(form, body, step, [*found.held], found.batch, found.cells)
        return SmallLoop(form, code, found.held)
    sizes = {math.prod(v.shape) for v in moving} - {1}
    reason = ""
    for columns in (*(sizes if len(sizes) == 1 else ()), 0):
        wide = max([v.dtype.itemsize for v in moving if math.prod(v.shape) == columns], default=1)
        lanes = 2 * host().vector_bytes // wide
        if columns and not lanes < columns <= _MOST_COLUMNS:
            continue
        held: dict[Var, Any] = {}
        parts = [0] if not columns else [lanes, columns % lanes] if columns % lanes else [lanes]
        try:
            bodies = tuple([(n, *_lines(form, body, test, columns, n, held)) for n in parts])
        except NoLines as why:
            reason = str(why)
            continue
        return SmallLoop(form, _code(form, body, bodies, [*held], columns), held)
    return reason


def _lines(
    form: Repeat, body: Graph, test: Graph | None, columns: int, lanes: int, held: dict[Var, Any]
) -> tuple[Lines | None, Lines]:
    """The test of the first state, and a step, which ends with the test of the next one."""
    c, n = form.constants, form.carry

    def begun() -> tuple[Making, list[Any]]:
        making = Making((columns, lanes), held=held, first_held=c)
        kinds = [("held", k) for k in range(c)] + [("carry", k) for k in range(n)]
        return making, [making.given(v, *k) for v, k in zip(body.inputs, kinds, strict=False)]

    step, given = begun()
    rows = [step.given(v, "row", k) for k, v in enumerate(body.inputs[c + n :])]
    found = step.graph(body, [*given, *rows])
    results = [
        step.carried(a, v, ("carry", k))
        for k, (a, v) in enumerate(zip(found[:n], body.outputs, strict=False))
    ]
    results += [step.vector(a) for a in found[n:]]
    if test is None:
        return None, step.lines_of(results)
    (goes_on,) = step.graph(test, [*given[:c], *found[:n]])
    first, given = begun()
    (starts,) = first.graph(test, given)
    asks = first.lines_of([first.vector(starts)])
    return asks, step.lines_of([*results, step.vector(goes_on)])


def _code(
    form: Repeat, graph: Graph, bodies: Any, constants: Sequence[Var], columns: int,
    cells: tuple[int, ...] = (),
) -> Registers:  # fmt: skip
    c, n = form.constants, form.carry
    rows = (*graph.inputs[c + n :], *graph.outputs[n:])

    def column(vs: Sequence[Var]) -> tuple[int, ...]:
        sizes = [v.shape[:1] if cells else (math.prod(v.shape),) for v in vs]
        return tuple(
            [
                size_bytes(v) // columns if columns and size == (columns,) else 0
                for v, size in zip(vs, sizes, strict=True)
            ]
        )

    ends = bodies[0][2].lines
    inputs = {g.index for g in ends if isinstance(g, Given) and g.kind == "carry" and not g.lanes}
    tables = tuple(
        [
            size_bytes(v) if k in inputs and not cells else 0
            for k, v in enumerate(graph.inputs[c : c + n])
        ]
    )
    return Registers(
        bodies, column([*graph.inputs[:c], *constants]), column(graph.inputs[c : c + n]),
        column(rows), tuple([math.prod(v.shape) * v.dtype.itemsize for v in rows]),
        len(graph.inputs) - c - n, form.back, columns, tables, cells or (1,) * n,
    )  # fmt: skip
