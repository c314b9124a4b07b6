"""Reductions of a short axis between others, written out: a term for each of its places.

Steps of filters over few states (`logsumexp(a[:, :, None] + t, axis=1)`) reduce an axis behind
which there are less elements than a vector or two has. Loops over all that is reduced have a row
for each place, in which a vector begins and ends, once for each reduction. Written out there is a
row for what is kept; the terms, and what is made of their maximum or sum, are values of its loops.

Sums add the terms in the order in which loops along the axis do.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeGuard

import attrs

from funct.compile.fusion.groups import MOST_COST, REDUCTIONS, reduction
from funct.compile.loops.scalars import ELEMENTS, printing
from funct.compile.readers import readers
from funct.compile.rewriting.cells import is_elementwise
from funct.compile.rewriting.narrow import FOLDS
from funct.compile.rewriting.new_nodes import NewNodes
from funct.graph import Graph, Guard, Node, Var

__all__ = ["written_out"]

_MOST_PLACES = 16
_SHORT = 32  # elements behind the axis; longer rows are vectors enough
_LEAST_SIZE, _LEAST_IN_BODIES = 1 << 10, 1 << 6  # of what is left without the axis


def written_out(graph: Graph, *, body: bool = False) -> Graph:
    """The graph with such reductions written out. body: of a loop, whose steps are many."""
    walk = _Walk(graph, _LEAST_IN_BODIES if body else _LEAST_SIZE)
    return walk.run() if walk.found else graph


class _Walk(NewNodes):
    """One walk. inner: the axis of what only such reductions read, in whatever way; it is computed
    place by place. found: the reductions.
    """

    prefix = "b"

    def __init__(self, graph: Graph, least: int) -> None:
        super().__init__(graph)
        self.made_by = {v: e for e in graph.nodes if isinstance(e, Node) for v in e.results}
        self.inner: dict[Var, int] = {}
        self.found: set[Node] = set()
        self.least = least
        self.parts: dict[tuple[Var, int], Var] = {}
        self._seek()

    def _seek(self) -> None:
        """Find what is written out, from the last nodes to the first."""
        read_by = readers(self.graph)
        for e in reversed(self.graph.nodes):
            if not isinstance(e, Node) or len(e.results) != 1:
                continue
            v = e.results[0]
            axes = {self._axis_for(r, v) for r in read_by.get(v, ())}
            if len(axes) == 1 and None not in axes and self._is_followed(e):
                self.inner[v] = axes.pop() or 0
        for e in self.graph.nodes:
            if self._is_short(e) and e.operands[0] in self.inner:
                self.found.add(e)

    def _axis_for(self, reader: Any, v: Var) -> int | None:
        """Along which axis a reader wants v place by place; None: it wants v."""
        if self._is_short(reader) and self._pays(reader):
            return _axis(reader)
        same = isinstance(reader, Node) and [r.shape for r in reader.results] == [v.shape]
        return self.inner.get(reader.results[0]) if same else None

    def _is_short(self, e: Any) -> TypeGuard[Node]:
        """Whether a node reduces one short axis, with others before and behind it."""
        if not isinstance(e, Node) or e.name not in REDUCTIONS or reduction(e) != "stretch":
            return False
        x, out = e.operands[0], e.results[0]
        if not isinstance(x, Var) or {x.dtype, out.dtype} - ELEMENTS.keys():
            return False
        wide = x.dtype == out.dtype and (x.dtype.itemsize >= 4 or x.dtype.kind == "b")
        axis = _axis(e)
        if axis is None or not wide or x.shape[axis] > _MOST_PLACES:
            return False
        return math.prod(out.shape) >= self.least and math.prod(x.shape[axis + 1 :]) <= _SHORT

    def _is_followed(self, e: Node) -> bool:
        """Whether a place of the result comes from one of each operand."""
        return e.name == "broadcast_to" or is_elementwise(e)

    def _pays(self, e: Node) -> bool:
        """Whether what is reduced is computed, and its terms are not too much for one loop."""
        x = e.operands[0]
        assert isinstance(x, Var)
        cost, seen, stack = 0, set(), [x]
        axis = _axis(e) or 0
        while stack and cost * x.shape[axis] <= MOST_COST // 2:
            v = stack.pop()
            made = self.made_by.get(v)
            if v in seen or v.shape != x.shape or made is None or not self._is_followed(made):
                continue
            seen.add(v)
            found = printing(made)
            cost += 1 if found is None else found.cost
            stack += [a for a in made.operands if isinstance(a, Var)]
        return 0 < cost * x.shape[axis] <= MOST_COST // 2

    def run(self) -> Graph:
        """Write the graph anew."""
        for e in self.graph.nodes:
            if isinstance(e, Guard) or not self.inner.keys() & {*e.results}:
                self.site = e.site
                if e in self.found:
                    self._write(e)
                else:
                    self.nodes.append(e)
        return attrs.evolve(self.graph, nodes=tuple(self.nodes))

    def _write(self, e: Node) -> None:
        x, out = e.operands[0], e.results[0]
        assert isinstance(x, Var)
        axis = self.inner[x]
        total, *rest = [self._part(x, axis, k) for k in range(x.shape[axis])]
        for p in rest:
            total = self.apply(FOLDS[e.name], (total, p), (), p.shape, p.dtype)
        if e.name == "reduce_sum" and out.dtype.kind == "f":  # which begins with 0: -0 is lost
            total = self.apply("add", (total, 0.0), (), total.shape, out.dtype)
        self.apply_to("reshape", (total,), (out.shape,), out)

    def _part(self, v: Var, axis: int, k: int) -> Var:
        """v at a place of an axis, without it."""
        found = self.parts.get((v, k))
        if found is None:
            seen = self._computed if v in self.inner else self._looked_up
            found = self.parts[v, k] = seen(v, axis, k)
        return found

    def _computed(self, v: Var, axis: int, k: int) -> Var:
        e = self.made_by[v]
        shape = _without(v.shape, axis)
        given = [self._operand(a, axis - len(v.shape), k) for a in e.operands]
        params = (shape,) if e.name == "broadcast_to" else e.params
        return self.apply(e.name, given, params, shape, v.dtype)

    def _operand(self, a: Any, axis: int, k: int) -> Any:
        """The same of an operand, which is broadcast. axis: counted from the last one, -1."""
        if not isinstance(a, Var) or len(a.shape) < -axis:
            return a
        axis += len(a.shape)
        return self._part(a, axis, 0 if a.shape[axis] == 1 else k)

    def _looked_up(self, v: Var, axis: int, k: int) -> Var:
        if v.shape[axis] > 1:
            triples: list[Any] = [(None, None, 1)] * len(v.shape)
            triples[axis] = (k, k + 1, 1)
            shape = [1 if a == axis else n for a, n in enumerate(v.shape)]
            v = self.apply("slice_", (v,), (tuple(triples),), shape, v.dtype)
        return self.reshape(v, _without(v.shape, axis))


def _axis(e: Node) -> int | None:
    """The only axis of more than one element that a reduction reduces."""
    shape, axes = e.operands[0].shape, e.params[0]  # type: ignore[union-attr]
    found = [a for a in axes if shape[a] != 1]
    return found[0] if len(found) == 1 and axes == (found[0],) else None


def _without(shape: Sequence[int], axis: int) -> tuple[int, ...]:
    return (*shape[:axis], *shape[axis + 1 :])
