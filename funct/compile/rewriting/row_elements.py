"""One element of each row, taken or put, by comparing its index with the numbers 0, 1, 2 …

So losses that look up the class of each row, and their gradients, stay in loops. An index is
looked at before the code runs, so it is known or given. A part of the walk of `simplify.py`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from msgspec import Struct

from funct.compile.fusion.groups import why_not
from funct.compile.loops.views import VIEWS
from funct.compile.rewriting.new_nodes import NewNodes
from funct.core import lookup
from funct.graph import Graph, Node, Var
from funct.ops.indexing import check_bounds
from funct.source import Site

__all__ = ["Check", "RowElements"]

_LEAST_SEEN = 1 << 14  # elements of all rows


class Check(Struct, frozen=True):
    """Indices that must lie within an axis before the code runs: op, operand, length. views: what
    leads to the operand from an input.
    """

    op: str
    index: Var
    length: int
    views: tuple[Node, ...]
    site: Site | None


class RowElements(NewNodes):
    """Who takes and puts them. checks: what must hold of the graph's inputs for that; of a body's
    nothing can be known before it runs.
    """

    body: bool

    def __init__(self, graph: Graph) -> None:
        super().__init__(graph)
        self.checks: list[Check] = []

    def _row_index(self, e: Node, i: Any, axis: int, length: int) -> Var | None:
        """The index of each row as one from 0 on, checked before the code runs; None if unknown."""
        rank = len(e.results[0].shape)
        if not isinstance(i, Var) or rank < 2 or axis != rank - 1 or i.shape[-1] != 1:
            return None
        if len(i.shape) != rank or i.dtype.kind != "i" or length == 0:
            return None
        if i in self.constants:
            try:
                check_bounds(e.name, np.asarray(self.constants[i]), length)
            except IndexError:
                return None  # NumPy says so when the code runs
        elif (found := self._seen(i, e)) is not None:
            self.checks.append(Check(e.name, found[0], length, found[1], e.site))
        else:
            return None
        counted = np.dtype(np.int32 if length < 1 << 31 else np.int64)
        if i.dtype.itemsize > counted.itemsize or length > np.iinfo(i.dtype).max:
            i = self.apply("astype", (i,), (counted,), i.shape, counted)
        below = self.apply("less", (i, 0), (), i.shape, bool)
        wrapped = self.apply("add", (i, length), (), i.shape, i.dtype)
        return self.apply("where", (below, wrapped, i), (), i.shape, i.dtype)

    def _seen(self, i: Var, e: Node) -> tuple[Var, tuple[Node, ...]] | None:
        """What has these indices in some shape, and the views that lead to it from an input; None
        if something else does, or the look at them costs more than loops over them (`along.py`).
        """
        same, found = i, list[Node]()
        rows = max([math.prod(v.shape) for v in (*e.reads, *e.results)])
        if i not in self.graph.inputs and rows < _LEAST_SEEN:
            return None
        while (view := self.made_by.get(i)) is not None and view.name in VIEWS:
            (i,) = view.reads
            if view.name == "reshape" and not found:
                same = i
            else:
                found.append(view)
        return None if self.body or i not in self.graph.inputs else (same, tuple(found[::-1]))

    def taken_one(self, e: Node) -> Var | None:
        """One element of each row of what loops compute."""
        x, i = e.operands
        (axis,) = e.params
        source = self.made_by.get(x) if isinstance(x, Var) else None
        if source is None or why_not(source):
            return None  # x is in memory: looking up one element costs less than a row
        assert isinstance(x, Var)
        out = e.results[0]
        if x.shape[:-1] != out.shape[:-1]:
            return None
        index = self._row_index(e, i, axis, x.shape[-1])
        if index is None:
            return None
        hit = self._hits(index, x.shape)
        zero: Any = False if x.dtype.kind == "b" else 0
        chosen = self.apply("where", (hit, x, zero), (), x.shape, x.dtype)
        name = "any" if x.dtype.kind == "b" else "reduce_sum"
        if x.dtype.kind in "iu" and x.dtype.itemsize < 8:
            return None  # a sum of those is wider
        return self.apply(name, (chosen,), ((axis,), True), out.shape, x.dtype)

    def put_one(self, e: Node) -> Var | None:
        """Zeros with one element in each row."""
        g, i = e.operands
        axis, length = e.params
        if not isinstance(g, Var) or g.dtype.kind != "f" or why_not(_as_sum(e)):
            return None
        out = e.results[0]
        if g.shape[:-1] != out.shape[:-1] or g.shape[-1] != 1:
            return None
        index = self._row_index(e, i, axis, length)
        if index is None:
            return None
        hit = self._hits(index, out.shape)
        return self.apply("where", (hit, g, 0.0), (), out.shape, out.dtype)

    def _hits(self, index: Var, shape: Sequence[int]) -> Var:
        """Where a column has its row's index."""
        columns = self.constant(np.arange(shape[-1], dtype=index.dtype))
        return self.apply("equal", (columns, index), (), shape, bool)


def _as_sum(e: Node) -> Node:
    """A node that loops hold if they hold e's result."""
    add = lookup("add")
    assert add is not None
    return Node(add, (e.results[0], e.results[0]), (), e.results)
