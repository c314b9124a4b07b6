"""The domain of a group's loops: its rows, and which views have an element for each place of it."""

from __future__ import annotations

import math

from msgspec.structs import replace

from funct.compile.fusion.fuse import Fused
from funct.compile.fusion.groups import Group, is_weave, reduction
from funct.compile.gathered import is_lookup
from funct.compile.loops.transposes import transposed
from funct.compile.loops.views import View, folded, runs_of
from funct.graph import Node, Var

__all__ = ["Domain", "row_length"]


def row_length(group: Group, fused: Fused) -> int:
    """Columns of a row of the group's loops."""
    return Domain(group, fused).columns


class Domain:
    """A group and the domain of its loops. flat: it is one row, of so many columns."""

    def __init__(self, group: Group, fused: Fused) -> None:
        self.group = group
        self.fused = fused
        self.flat, self.columns = self._shape()
        self.rows = group.size // self.columns if not self.flat else 1

    def _shape(self) -> tuple[bool, int]:
        """Whether the domain is one flat row, and how long its rows are."""
        g = self.group
        if g.columns is not None:
            return False, g.columns
        columns, flat = g.size, True
        for view in self._views():
            runs, _ = folded(runs_of(view))
            if len(runs) < 2:
                continue
            flat = False
            columns = math.gcd(columns, runs[-1].length)
        for e in g.nodes:
            view = self.fused.views[e.results[0]]
            if e.results[0] in self.fused.kept and not view.is_run:
                last = runs_of(view)[-1]
                flat, columns = False, math.gcd(columns, last.length) if last.stride == 1 else 1
        return flat, columns

    def _views(self) -> list[View]:
        """What is walked with an element for each place."""
        g = self.group
        found: list[View] = []
        for e in g.nodes:
            if is_lookup(e):
                table, index = self.looked_up(e)
                both = [table] if e.operands[1] in g.members else [table, index]
                found += both if g.is_full(e.results[0]) else []
                continue
            for v in e.operands:
                if isinstance(v, Var) and v not in g.members and g.is_full(self.shaping(e, v)):
                    view = self.seen(e, v)
                    found += [view] if transposed(view) is None else []  # else it is copied
        return found

    def shaping(self, e: Node, v: Var) -> Var:
        """Whose shape the operand is walked in."""
        out = e.results[0]
        same = math.prod(v.shape) == math.prod(out.shape)
        return v if same or reduction(e) is not None or is_weave(e) else out

    def seen(self, e: Node, v: Var) -> View:
        """The operand as it is walked."""
        return self.fused.views[v].broadcast(self.shaping(e, v).shape)

    def looked_up(self, e: Node, table: View | None = None) -> tuple[View, View]:
        """The table as it is walked where all indices are 0, and the indices, one for each element
        of the result.
        """
        x, i = e.operands
        assert isinstance(x, Var)
        assert isinstance(i, Var)
        (axis,), shape = e.params, tuple(e.results[0].shape)
        table, index = table or self.fused.views[x], self.fused.views[i]
        before, behind = table.strides[:axis], table.strides[axis + 1 :]
        if e.name == "take_along_axis":
            return replace(table, shape=shape, strides=(*before, 0, *behind)), index
        strides = (*before, *[0] * len(index.shape), *behind)
        index = replace(
            index,
            shape=(*index.shape, *[1] * len(behind)),
            strides=(*index.strides, *[0] * len(behind)),
        )
        return replace(table, shape=shape, strides=strides), index.broadcast(shape)
