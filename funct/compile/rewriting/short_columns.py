"""Arrays of many short rows whose columns are what matters: some rows lie side by side as one.

A bias, the mean of a batch, a softmax of axis 0: what is computed of (…, 10) with a number for each
column has loops along rows of ten, of which eight are a vector and two are none. The same memory is
(n, 80): rows of whole vectors, beside which the numbers of the columns stand eight times, and
columns are reduced eight times before what is found is reduced once more.

It is done where nothing looks along such rows: of a shape with all that loops compute in it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from funct.compile.fusion.groups import REDUCTIONS
from funct.compile.loops.scalars import ELEMENTS
from funct.compile.loops.views import VIEWS
from funct.compile.readers import readers
from funct.compile.rewriting.cells import is_elementwise
from funct.compile.rewriting.new_nodes import NewNodes
from funct.graph import Graph, Node, Var

__all__ = ["rows_together"]

_MATRIX, _VECTOR = 2, 8
_SHORTEST, _LONGEST = 9, 63  # of fewer, columns are taken apart (`narrow.py`)
_TOGETHER = (8, 4)  # rows
_LEAST_ROWS = 1 << 9

Shape = tuple[int, ...]


def rows_together(graph: Graph) -> Graph:
    """The graph with such arrays in longer rows."""
    nodes = [e for e in graph.nodes if isinstance(e, Node)]
    shapes = {v.shape: None for e in nodes for v in e.reads if _is_short(v.shape)}
    for shape in shapes:
        walk = _Walk(graph, shape)
        if walk.pays():
            graph = walk.run()
    return graph


def _is_short(shape: Sequence[Any]) -> bool:
    if len(shape) < _MATRIX or not _SHORTEST <= shape[-1] <= _LONGEST or not shape[-1] % _VECTOR:
        return False
    rows = math.prod(shape[:-1])
    return rows >= _LEAST_ROWS and not rows % _TOGETHER[-1]


class _Walk(NewNodes):
    """One walk, for one shape. inner: the nodes that are computed in longer rows."""

    prefix = "s"

    def __init__(self, graph: Graph, shape: Shape) -> None:
        super().__init__(graph)
        self.made_by = {v: e for e in graph.nodes if isinstance(e, Node) for v in e.results}
        self.shape = shape
        rows, self.length = math.prod(shape[:-1]), shape[-1]
        self.rows = next(k for k in _TOGETHER if not rows % k)
        self.wide = (rows // self.rows, self.length * self.rows)
        nodes = [e for e in graph.nodes if isinstance(e, Node)]
        self.inner = {e for e in nodes if self._is_inner(e)}
        self.found: dict[Var, Var] = {}  # by what it is, in longer rows

    def _is_inner(self, e: Node) -> bool:
        """Whether a node computes, or reduces the columns of, arrays of the shape."""
        if len(e.results) != 1:
            return False
        if e.name in REDUCTIONS:
            x = e.operands[0]
            along = isinstance(x, Var) and x.shape == self.shape and x.dtype in ELEMENTS
            all_rows = tuple(e.params[0]) == tuple(range(len(self.shape) - 1))
            return along and all_rows and e.results[0] not in self.decided
        if e.results[0].shape != self.shape or e.results[0] in self.decided:
            return False
        return e.name == "broadcast_to" or is_elementwise(e)

    def pays(self) -> bool:
        """Whether there are columns, and nothing in loops that looks along rows."""
        read_by = readers(self.graph)
        if not any(self._columns(e) for e in self.inner):
            return False
        for e in self.inner:
            if not all(self._can_be(a) for a in e.reads):
                return False
            (v,) = e.results
            if v.shape == self.shape and not all(map(self._is_none_of_loops, read_by.get(v, ()))):
                return False
        return True

    def _columns(self, e: Node) -> bool:
        return e.name in REDUCTIONS or any(self._is_row(a) for a in e.reads)

    def _is_row(self, v: Var) -> bool:
        """Whether it is a number for each column."""
        return v.shape[-1:] == self.shape[-1:] and math.prod(v.shape) == self.length

    def _can_be(self, v: Var) -> bool:
        """Whether an operand has longer rows at no cost, or is one of few numbers."""
        if self._is_row(v) or v.shape == ():
            return True
        maker = self.made_by.get(v)
        if v.shape != self.shape or maker in self.inner:
            return v.shape == self.shape
        if maker is None:
            return True
        if maker.name == "reshape":
            return maker.operands[0] not in self.made_by
        return self._is_none_of_loops(maker)

    def _is_none_of_loops(self, e: Any) -> bool:
        """Whether it is computed here, or with arrays that lie in memory, as for the caller."""
        if e is None or e in self.inner:
            return True
        if not isinstance(e, Node):
            return False
        return not (e.name in VIEWS or e.name in REDUCTIONS or is_elementwise(e))

    def run(self) -> Graph:
        """Write the graph anew."""
        outputs = set(self.graph.outputs)
        read = {a for e in self.graph.nodes if e not in self.inner for a in _reads(e)}
        for e in self.graph.nodes:
            if e not in self.inner:
                self.keep(e) if isinstance(e, Node) else self.nodes.append(e)
                continue
            assert isinstance(e, Node)
            self.site, (out,) = e.site, e.results
            if e.name in REDUCTIONS:
                self._reduce(e)
                continue
            given = tuple([self._longer(a) if isinstance(a, Var) else a for a in e.operands])
            params = (self.wide,) if e.name == "broadcast_to" else e.params
            y = self.found[out] = self.var(self.wide, out.dtype)
            self.keep(Node(e.primitive, given, params, (y,), e.site))
            if out in outputs or out in read:
                self.apply_to("reshape", (y,), (self.shape,), out)
        return self.finished({})

    def _longer(self, v: Var) -> Var:
        """v in longer rows; what there is for each column, once for each row in one."""
        if v.shape == ():
            return v
        if v not in self.found:
            if v.shape == self.shape:
                self.found[v] = self.reshape(v, self.wide)
            else:
                row = self.reshape(v, (1, self.length))
                self.found[v] = self.concat(
                    [row] * self.rows, 1, self.var((1, self.wide[1]), v.dtype)
                )
        return self.found[v]

    def _reduce(self, e: Node) -> None:
        (x,), (out,) = e.operands, e.results
        assert isinstance(x, Var)
        params, dtype = ((0,), False), out.dtype
        some = self.apply(e.name, (self._longer(x),), params, self.wide[1:], dtype)
        some = self.reshape(some, (self.rows, self.length))
        found = self.apply(e.name, (some,), params, (self.length,), dtype)
        self.apply_to("reshape", (found,), (out.shape,), out)


def _reads(e: Any) -> Iterable[Any]:
    return e.operands if isinstance(e, Node) else (e.operand,)
