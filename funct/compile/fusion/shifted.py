"""What is read shifted, computed again where it is read: differences, stencils, their gradients.

An array that loops read by slices, or with zeros around, can be no member of them: its elements at
other places would have to be there. So it is written first and read back several times. Where it
costs a few additions, the loops compute it at each of these places instead, from shifted views of
what it was made of, and it is never written: f(x)[1:] is f(x[1:]). Where zeros stand around it they
stand around the result, whatever f makes of zeros.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from funct.compile.fusion.groups import Group, reads, walked_through
from funct.compile.loops.scalars import printing
from funct.compile.loops.views import VIEWS
from funct.compile.rewriting.new_nodes import NewNodes
from funct.graph import Graph, Node, Var

if TYPE_CHECKING:
    from funct.compile.fusion.fuse import Fused

__all__ = ["computed_shifted"]

_MOST_COST = 8  # of what is done more than once instead of a write and several reads, in additions
_MOST_NODES = 64
_LEAST_BYTES = 1 << 16  # of an array: less stays in a near cache
_SHIFTS = frozenset({"slice_", "embed"})


class _Chain(Struct, frozen=True):
    """How an array is made: nodes in their order, and what they read, which is in memory."""

    nodes: tuple[Node, ...]
    leaves: frozenset[Var]

    def more(self, times: float) -> float:
        """What it costs to do all of it so many times, more than to do it once and read it."""
        costs = [how.cost for e in self.nodes if (how := printing(e)) is not None]
        return sum(costs) * (times - 1) + (len(self.leaves) - 1) * times


def computed_shifted(fused: Fused) -> Graph:
    """The graph with nodes that compute what its loops read shifted; itself where none should."""
    walk = _Shifted(fused)
    return walk.run() if walk.chains else fused.graph


def _times(y: Var, read: set[Var]) -> float:
    """How often an element of y is computed where it is read; what zeros hide is computed too."""
    return sum([max(math.prod(v.shape) / math.prod(y.shape), 1.0) for v in read])


class _Shifted(NewNodes):
    """One walk over the nodes.

    stays: what lies in memory and is not computed again. shifts: for what is read shifted, the
    nodes between it and what loops make. chains: how what is computed again is made.
    """

    prefix = "h"

    def __init__(self, fused: Fused) -> None:
        graph = fused.graph
        super().__init__(graph)
        self.fused = fused
        self.maker = {v: e for e in graph.nodes if isinstance(e, Node) for v in e.results}
        self.members = {v for s in fused.steps if isinstance(s, Group) for v in s.members}
        self.shifts: dict[Var, tuple[Node, ...]] = {}
        self.chains: dict[Var, _Chain] = {}
        self.made: dict[tuple[Var, tuple[Node, ...]], Var] = {}
        read = self._read_shifted()
        self.stays = {*graph.inputs, *self.constants, *fused.kept} - read.keys()
        for y in [v for v in self.maker if v in read]:
            chain = self._chain(y)
            if chain is not None and chain.more(_times(y, read[y])) <= _MOST_COST:
                self.chains |= dict.fromkeys(read[y], chain)
            else:
                self.stays.add(y)

    def _read_shifted(self) -> dict[Var, set[Var]]:
        """What loops make and nobody reads but other loops, shifted; as what they read it."""
        views, found = self.fused.views, dict[Var, set[Var]]()
        otherwise = {views[v].root for v in self.graph.outputs}
        for step in self.fused.steps:
            walked = walked_through(step) if isinstance(step, Group) else []
            for v in reads(step):
                y, shifts = self._source(v)
                if shifts and v in walked:
                    self.shifts[v] = shifts
                    found.setdefault(y, set()).add(v)
                else:
                    otherwise.add(views[v].root)
        return {y: vs for y, vs in found.items() if y not in otherwise}

    def _source(self, v: Var) -> tuple[Var, tuple[Node, ...]]:
        """What loops make that v is seen of, and by which nodes, the first one first."""
        shifts: list[Node] = []
        while (e := self.maker.get(v)) is not None and e.name in _SHIFTS and e.reads:
            shifts.insert(0, e)
            v = e.reads[0]
        return v, tuple(shifts) if v in self.members and self.fused.views[v].root is v else ()

    def _chain(self, y: Var) -> _Chain | None:
        """How y is made from what lies in memory; None where that is not element by element."""
        if math.prod(y.shape) * y.dtype.itemsize < _LEAST_BYTES:
            return None
        nodes: dict[Node, None] = {}
        leaves: set[Var] = set()
        stack = [y]
        while stack:
            v = stack.pop()
            e = self.maker.get(v)
            if math.prod(v.shape) > 1 and v.shape != y.shape:
                return None
            if v is not y and self.fused.views[v].root in self.stays:
                leaves.add(v)
                continue
            if e is None or v not in self.members or e.name in VIEWS or printing(e) is None:
                return None
            nodes[e] = None
            if len(nodes) > _MOST_NODES:
                return None
            stack += e.reads
        order = [e for e in self.maker.values() if e in nodes]
        return _Chain(tuple(order), frozenset(leaves))

    def run(self) -> Graph:
        """Write the graph anew."""
        for e in self.graph.nodes:
            if isinstance(e, Node) and e.results and e.results[0] in self.chains:
                self.site = e.site
                self._compute(e.results[0], self.chains[e.results[0]])
            else:
                self.nodes.append(e)
        return self.finished({})

    def _compute(self, v: Var, chain: _Chain) -> None:
        """Write v as what its chain makes of shifted leaves."""
        shifts = self.shifts[v]
        *_, last = chain.nodes
        zeros = any(e.name == "embed" for e in shifts)
        for e in chain.nodes:
            operands = [self._shifted(a, shifts) if isinstance(a, Var) else a for a in e.operands]
            (y,) = e.results
            if e is last and not zeros:
                out = v
            else:
                out = self.var(v.shape if y.shape == last.results[0].shape else y.shape, y.dtype)
            self.keep(Node(e.primitive, tuple(operands), e.params, (out,), e.site))
            self.made[y, shifts] = out
        if zeros:
            y = last.results[0]
            inside = self.constant(np.asarray(True))
            everywhere = self.apply("broadcast_to", (inside,), (y.shape,), y.shape, bool)
            mask = self._shifted(everywhere, shifts)
            self.apply_to("where", (mask, self.made[y, shifts], 0), (), v)

    def _shifted(self, x: Var, shifts: tuple[Node, ...]) -> Var:
        """What stands where x does, after the shifts."""
        found = self.made.get((x, shifts))
        if found is None:
            found = x
            for e in shifts if math.prod(x.shape) > 1 else ():
                found = self.apply(e.name, (found,), e.params, e.results[0].shape, x.dtype)
            self.made[x, shifts] = found
        return found
