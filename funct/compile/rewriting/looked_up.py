"""Functions of looked-up elements, computed once for each element of the table.

`tanh(x[i])` is `tanh(x)[i]`, and has the same bits: a loop computes an element from itself alone.
Where more elements are looked up than there are (messages along edges, embeddings of words), the
table of results costs less than what is left out. What somebody is told of, a division of integers
by 0 or an index off its axis, stays: elements that nobody looks up are nobody's error.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import attrs

from funct.compile.gathered import is_lookup
from funct.compile.loops.scalars import HELD, PRINTINGS
from funct.compile.loops.warned import may_warn
from funct.compile.readers import readers
from funct.compile.rewriting.cells import is_elementwise
from funct.compile.rewriting.new_nodes import NewNodes
from funct.graph import Graph, Guard, Node, Var

__all__ = ["before_they_are_looked_up"]

_LEAST_COST = 12  # of what is computed from an element, for which a table is written
_TIMES = 2  # as often as an element must be looked up


def before_they_are_looked_up(graph: Graph) -> Graph:
    """The graph, where what is computed from looked-up elements alone is so before, if it is dear
    and they are fewer.
    """
    if not any(isinstance(e, Node) and is_lookup(e) and _is_of_few(e) for e in graph.nodes):
        return graph
    walk = _LookedUp(graph)
    return walk.run() if walk.early else graph


def _is_of_few(lookup: Node) -> bool:
    (table, _), (out,) = lookup.reads, lookup.results
    return _TIMES * math.prod(table.shape) <= math.prod(out.shape)


class _LookedUp(NewNodes):
    """One walk over the nodes.

    lookups: how a value is looked up, by the first node that does so. cores: in what, once that is
    written. early: the nodes that are computed before.
    """

    prefix = "l"

    def __init__(self, graph: Graph) -> None:
        super().__init__(graph)
        self.lookups: dict[Var, Node] = {}
        self.cores: dict[Var, Var] = {}
        self.early: set[Node] = set()
        firsts: dict[Any, Node] = {}
        costs: dict[Var, int] = {}  # of an element, from the looked-up one on
        candidates: list[Node] = []
        for e in graph.nodes:
            if not isinstance(e, Node) or len(e.results) != 1:
                continue
            (out,) = e.results
            if is_lookup(e) and _is_of_few(e):
                table, index = e.reads
                self.lookups[out] = firsts.setdefault((e.name, index, e.params, table.shape), e)
            elif (lookup := self._lookup(e)) is not None:
                self.lookups[out] = lookup
                costs[out] = PRINTINGS[e.name].cost + sum([costs.get(v, 0) for v in e.reads])
                candidates.append(e)
        read_by = readers(graph)
        for e in reversed(candidates):
            (out,) = e.results
            if costs[out] >= _LEAST_COST or any(r in self.early for r in read_by.get(out, ())):
                self.early.add(e)

    def _lookup(self, e: Node) -> Node | None:
        """How all that an elementwise node reads is looked up, numbers aside."""
        (out,) = e.results
        many = [v for v in e.reads if v.shape]
        found = {self.lookups.get(v) if v.shape == out.shape else None for v in many}
        silent = not may_warn(e) and e.name != "wrap_index"
        known = e.name in PRINTINGS and out.dtype in HELD and silent and is_elementwise(e)
        return found.pop() if known and len(found) == 1 else None

    def run(self) -> Graph:
        """Write the graph anew."""
        for e in self.graph.nodes:
            if isinstance(e, Node) and e in self.early:
                (out,) = e.results
                operands = [self.cores.get(v, v) if isinstance(v, Var) else v for v in e.operands]
                self.cores[out] = self.var(self.lookups[out].reads[0].shape, out.dtype)
                self.keep(attrs.evolve(e, operands=tuple(operands), results=(self.cores[out],)))
            elif isinstance(e, Node) and is_lookup(e) and e.results[0] in self.lookups:
                self._need(e.reads[:1])  # a table may be looked up itself
                self.cores[e.results[0]] = e.reads[0]
            else:
                self._need((e.operand,) if isinstance(e, Guard) else e.operands)
                self.nodes.append(e)
        self._need(self.graph.outputs)
        return attrs.evolve(self.graph, nodes=tuple(self.nodes))

    def _need(self, read: Iterable[Any]) -> None:
        """Look what is read up in what was computed before, if it is not yet."""
        for v in read:
            if isinstance(v, Var) and v in self.cores and v not in self.made_by:
                lookup = self.lookups[v]
                index = lookup.reads[1]  # which may be looked up itself
                self._need((index,))
                self.keep(attrs.evolve(lookup, operands=(self.cores[v], index), results=(v,)))
