"""A last axis of few elements, taken apart: an array for each place in it.

Distances of points are sums of three squares for every pair, and rows of three elements are no work
for vectors. What is reduced is followed back to where it comes from, and computed for each place
along the last axis by itself; loops over all the rest then hold the whole. That always pays up to
four elements, whose sums keep NumPy's order; up to sixteen where all comes from arrays that are
read often, as points are by pairs: a few columns are copied, so that vectors lie along pairs.
"""

from __future__ import annotations

import math
from typing import Any, TypeGuard

import attrs

from funct.compile.fusion.groups import REDUCTIONS, why_not
from funct.compile.loops.scalars import ELEMENTS
from funct.compile.loops.views import VIEWS
from funct.compile.rewriting.new_nodes import NewNodes
from funct.graph import Graph, Node, Var, eliminate_dead

__all__ = ["taken_apart"]

_FEW_PLACES, _MOST_PLACES = 4, 16
_OFTEN = 8  # times that an array is read where more than a few places pay
_MOST_NODES = 60  # that are followed back from one reduction
_MOST_PARTS = 160  # nodes written for one of more than a few places
_LEAST_SIZE = 1 << 12  # of what is left without the axis

_FOLDS = {
    "reduce_sum": "add", "reduce_prod": "multiply", "reduce_max": "maximum",
    "reduce_min": "minimum", "any": "logical_or", "all": "logical_and",
}  # fmt: skip


def taken_apart(graph: Graph) -> Graph:
    """The graph with reductions of arrays whose last axis is short written for each place in it."""
    walk = _Apart(graph)
    return walk.run() if any(walk.wanted(e) for e in graph.nodes) else graph


class _Apart(NewNodes):
    """One walk over the nodes."""

    prefix = "p"

    def __init__(self, graph: Graph) -> None:
        super().__init__(graph)
        self.made_by = {v: e for e in graph.nodes if isinstance(e, Node) for v in e.results}
        self.parts: dict[tuple[Var, int], Var] = {}

    def run(self) -> Graph:
        """Write the graph anew."""
        for e in self.graph.nodes:
            if not self.wanted(e):
                self.nodes.append(e)
                continue
            self.site = e.site
            found = self._reduced(e)
            self.apply_to("reshape", (found,), (e.results[0].shape,), e.results[0])
        return eliminate_dead(attrs.evolve(self.graph, nodes=tuple(self.nodes)), guards=True)

    def wanted(self, e: Any) -> TypeGuard[Node]:
        """Whether a node reduces what loops compute along a short last axis."""
        if not isinstance(e, Node) or e.name not in REDUCTIONS or not e.params[0]:
            return False
        x, out = e.operands[0], e.results[0]
        if (
            not isinstance(x, Var)
            or not x.shape
            or x.dtype != out.dtype
            or out.dtype not in ELEMENTS
        ):
            return False
        size, places = math.prod(x.shape), x.shape[-1]
        if not 1 < places <= _MOST_PLACES or size < _LEAST_SIZE * places:
            return False
        depth, largest = self._behind(x)
        if places > _FEW_PLACES and (
            depth * places > _MOST_PARTS or largest * _OFTEN > size or x.dtype.kind != "f"
        ):
            return False
        return 0 < depth <= _MOST_NODES

    def _behind(self, x: Var) -> tuple[int, int]:
        """How many elementwise nodes stand behind x; the size of the largest array behind those."""
        seen: set[Var] = set()
        stack, largest = [x], 0
        while stack and len(seen) <= _MOST_NODES:
            v = stack.pop()
            e = self.made_by.get(v)
            if v in seen or v.shape[-1:] != x.shape[-1:]:
                continue
            if e is None or not _follows(e):
                largest = max(largest, math.prod(v.shape))
                continue
            seen.add(v)
            stack += [a for a in e.operands if isinstance(a, Var)]
        return len(seen), largest

    def _reduced(self, e: Node) -> Var:
        """What the reduction gives, but for the shape."""
        x, (axes, _) = e.operands[0], e.params
        assert isinstance(x, Var)
        last = len(x.shape) - 1
        parts = [self._part(x, k) for k in range(x.shape[-1])]
        rest = tuple([a for a in axes if a != last])
        if last in axes:
            total = parts[0]
            for p in parts[1:]:
                total = self.apply(_FOLDS[e.name], (total, p), (), p.shape, p.dtype)
            return self._along(e.name, total, rest) if rest else total
        ends = [self._along(e.name, p, rest) for p in parts]
        joined = self._column(ends[0])
        for end in ends[1:]:
            shape = (*joined.shape[:-1], joined.shape[-1] + 1)
            given = (joined, self._column(end))
            joined = self.apply("concat", given, (len(shape) - 1,), shape, joined.dtype)
        return joined

    def _along(self, name: str, x: Var, axes: tuple[int, ...]) -> Var:
        shape = [n for a, n in enumerate(x.shape) if a not in axes]
        return self.apply(name, (x,), (axes, False), shape, x.dtype)

    def _column(self, x: Var) -> Var:
        shape = (*x.shape, 1)
        return self.apply("reshape", (x,), (shape,), shape, x.dtype)

    # One place

    def _part(self, v: Var, k: int) -> Var:
        """v[..., k], or v[..., 0] where its last axis has one element."""
        if not v.shape:
            return v
        found = self.parts.get((v, k))
        if found is None:
            found = self.parts[v, k] = self._new_part(v, k)
        return found

    def _new_part(self, v: Var, k: int) -> Var:
        e, shape = self.made_by.get(v), v.shape[:-1]
        if v.shape[-1] == 1:
            return self.apply("reshape", (v,), (shape,), shape, v.dtype)
        if e is None or not _follows(e):
            triples = (*[(None, None, 1)] * len(shape), (k, k + 1, 1))
            one = self.apply("slice_", (v,), (triples,), (*shape, 1), v.dtype)
            return self.apply("reshape", (one,), (shape,), shape, v.dtype)
        given = [self._part(a, k) if isinstance(a, Var) else a for a in e.operands]
        params = (shape, *e.params[1:]) if e.name in ("reshape", "broadcast_to") else e.params
        return self.apply(e.name, given, params, shape, v.dtype)


def _follows(e: Node) -> bool:
    """Whether a place of the result's last axis comes from that place of the operands'."""
    if why_not(e) or e.name in REDUCTIONS or len(e.results) != 1:
        return False
    out, x = e.results[0], e.operands[0]
    if e.name == "broadcast_to":
        return isinstance(x, Var)
    if e.name == "reshape":
        return isinstance(x, Var) and x.shape[-1:] == out.shape[-1:] and x.dtype == out.dtype
    return e.name not in VIEWS or e.name == "stop_gradient"
