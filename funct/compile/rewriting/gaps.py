"""Elementwise ops on arrays with gaps of zeros: gradients of every second element, or third.

What `embed` puts at every s-th place of an axis is an array with one place more, of s, where it is
at one of them and zeros are at the others (`loops/views.py` reads that where it is). Elementwise
ops on it are computed in that shape, and what somebody reads otherwise is their result, reshaped.
"""

from __future__ import annotations

import math
from typing import Any

from funct.compile.loops.scalars import ELEMENTS
from funct.compile.readers import readers
from funct.compile.rewriting.cells import is_elementwise, takes
from funct.compile.rewriting.new_nodes import NewNodes
from funct.graph import Graph, Guard, Node, Var, eliminate_dead

__all__ = ["without_gaps"]

_LEAST_SIZE = 1 << 12  # of what has gaps: of less, writing it costs less
Steps = tuple[int, ...]


def without_gaps(graph: Graph) -> Graph:
    """The graph, where elementwise ops read arrays with gaps in the shape that has none."""
    if not any(isinstance(e, Node) and e.name == "embed" for e in graph.nodes):
        return graph
    walk = _Gaps(graph)
    found = walk.run()
    return eliminate_dead(found, guards=True) if walk.split else graph


class _Gaps(NewNodes):
    """One walk over the nodes. split: what is written in a shape where each axis is two, the second
    as long as a step, and the steps.
    """

    prefix = "g"

    def __init__(self, graph: Graph) -> None:
        super().__init__(graph)
        self.readers = readers(graph)
        self.split: dict[Var, tuple[Var, Steps]] = {}
        self.whole: set[Var] = set()

    def run(self) -> Graph:
        """Write the graph anew."""
        for e in self.graph.nodes:
            if not isinstance(e, Node) or not (self._is_embedded(e) or self._is_computed(e)):
                for a in (e.operand,) if isinstance(e, Guard) else e.operands:
                    self._needs(a)
                self.nodes.append(e)
        for v in self.graph.outputs:
            self._needs(v)
        return self.finished({})

    def _needs(self, v: Any) -> None:
        """Write v in its own shape, if it is not."""
        if isinstance(v, Var) and v in self.split and v not in self.whole:
            self.whole.add(v)
            self.apply_to("reshape", (self.split[v][0],), (tuple(v.shape),), v)

    def _is_embedded(self, e: Node) -> bool:
        """Whether the node puts elements at every so many places, for elementwise ops."""
        if e.name != "embed" or not isinstance(e.operands[0], Var):
            return False
        g, out, (index, shape) = e.operands[0], e.results[0], e.params
        ranges = [range(*slice(*t).indices(n)) for t, n in zip(index, shape, strict=True)]
        steps = tuple([r.step for r in ranges])
        if math.prod(shape) < _LEAST_SIZE or out.dtype not in ELEMENTS or set(steps) == {1}:
            return False
        if not all(_is_whole(r, n) for r, n in zip(ranges, shape, strict=True)):
            return False
        if not all(takes(r, out) for r in self.readers.get(out, ())):
            return False
        self._needs(g)
        self.site = e.site
        fine = _fine(shape, steps)
        triples = [t for r in ranges for t in _places(r)]
        apart = self.reshape(g, [n for m in g.shape for n in (m, 1)])
        self.split[out] = (
            self.apply("embed", (apart,), (tuple(triples), fine), fine, out.dtype),
            steps,
        )
        return True

    def _is_computed(self, e: Node) -> bool:
        """Whether the node is written on operands in their split shape."""
        given = [a for a in e.operands if isinstance(a, Var) and a in self.split]
        if not given or not is_elementwise(e):
            return False
        out, steps = e.results[0], self.split[given[0]][1]
        if any(self.split[a][1] != steps or a.shape != out.shape for a in given):
            return False
        self.site = e.site
        operands = [self._operand(a, steps) if isinstance(a, Var) else a for a in e.operands]
        found = self.var(_fine(out.shape, steps), out.dtype)
        self.keep(Node(e.primitive, tuple(operands), e.params, (found,), e.site))
        self.split[out] = found, steps
        return True

    def _operand(self, a: Var, steps: Steps) -> Var:
        """An operand in the split shape: one of fewer axes, or of one element, has it there too."""
        if a in self.split:
            return self.split[a][0]
        mine = steps[len(steps) - len(a.shape) :]
        return self.reshape(a, _fine(a.shape, mine))


def _fine(shape: Any, steps: Steps) -> Steps:
    """The shape with each axis as two, the second as long as the step."""
    pairs = [(1, 1) if n == 1 else (n // s, s) for n, s in zip(shape, steps, strict=True)]
    return tuple([n for pair in pairs for n in pair])


def _is_whole(r: range, n: int) -> bool:
    """Whether each stretch of as many places as a step has one of them."""
    return r.step == 1 or (n % r.step == 0 and len(r) == n // r.step and r.start < r.step)


def _places(r: range) -> list[tuple[int | None, int | None, int]]:
    """Where along both axes the elements are."""
    if r.step == 1:
        return [(r.start, r.stop, 1), (None, None, 1)]
    return [(None, None, 1), (r.start, r.start + 1, 1)]
