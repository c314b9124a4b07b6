"""`relu` behind the maxima of windows instead of before them: on a quarter of the numbers.

`max_pool(relu(x))` is `relu(max_pool(x))`. So is it backwards: a maximum's gradient goes to an
element that equals it, so whether that is positive can be asked of the maximum. Where no element of
a window is positive x may have another first maximum than relu(x), which is 0 all over; nothing
goes to either.
"""

from __future__ import annotations

from typing import Any

import attrs

from funct.compile.readers import readers
from funct.compile.rewriting.new_nodes import NewNodes
from funct.graph import Graph, Guard, Node, Var
from funct.ops.pooling import always_meet

__all__ = ["behind_pools"]


def behind_pools(graph: Graph) -> Graph:
    """The graph with such `relu` behind their pools."""
    if not any(isinstance(e, Node) and e.name == "max_pool" for e in graph.nodes):
        return graph
    walk = _Walk(graph)
    return walk.run() if walk.before else graph


class _Walk(NewNodes):
    """One walk.

    before: what `relu` makes and is x again, its operand. pulled: gradients before the mask, by
    those behind it. pooled: the maxima whose sign masks what is put.
    """

    prefix = "q"

    def __init__(self, graph: Graph) -> None:
        super().__init__(graph)
        self.read_by = readers(graph)
        self.origin = {v: e for e in graph.nodes if isinstance(e, Node) for v in e.results}
        self.before: dict[Var, Var] = {}
        self.pulled: dict[Var, Var] = {}
        self.pooled: dict[Node, Var] = {}
        for e in graph.nodes:
            if isinstance(e, Node) and e.name == "relu" and isinstance(e.operands[0], Var):
                self._seek(e.results[0], e.operands[0])

    def _seek(self, y: Var, x: Var) -> None:
        """Whether only pools, and the gradients of their maxima, read y."""
        pools: dict[Any, Var] = {}
        pulled: dict[Var, Var] = {}
        pooled: dict[Node, Var] = {}
        for e in self.read_by.get(y, ()):
            if isinstance(e, Node) and e.name == "max_pool" and always_meet(*_reach(e)):
                pools[e.params] = e.results[0]
        for e in self.read_by.get(y, ()):
            if not isinstance(e, Node) or not pools:
                return
            if e.name == "max_pool_index" and e.params in pools:
                for put in self._puts(e.results[0]):
                    found = None if put is None else self._masked(put, y)
                    if put is None or found is None:
                        return
                    pooled[put] = pools[e.params]
                    pulled |= found
            elif not ((e.name == "max_pool" and e.params in pools) or _is_sign(e, y)):
                return
        signs = [e.results[0] for e in self.read_by[y] if _is_sign(e, y)]
        masked = [r for v in signs for r in self.read_by.get(v, ())]
        if all(isinstance(e, Node) and e.results[0] in pulled for e in masked):
            self.before[y] = x
            self.pulled |= pulled
            self.pooled |= pooled

    def _puts(self, index: Var) -> list[Node | None]:
        """Who puts something there; None: who does something else with the places."""
        found: list[Node | None] = []
        for e in self.read_by.get(index, ()):
            if isinstance(e, Node) and e.name == "reshape":
                found += self._puts(e.results[0])
            elif isinstance(e, Node) and e.name == "put_along_axis" and e.operands[1] is index:
                found.append(e)
            else:
                found.append(None)
        return found

    def _masked(self, put: Node, y: Var) -> dict[Var, Var] | None:
        """What masks by the sign of y make of what is put, and that; None: something else is made
        of it.
        """
        held = put.results[0]
        while len(self.read_by.get(held, ())) == 1:
            (e,) = self.read_by[held]
            if not isinstance(e, Node) or e.name != "reshape":
                break
            held = e.results[0]
        found: dict[Var, Var] = {}
        for e in self.read_by.get(held, ()):
            if not isinstance(e, Node):
                return None
            if e.name == "where" and self._is_masked(e, held, y):
                found[e.results[0]] = held
            elif e.name != "absorb" or e.operands[0] is not held:
                return None
        return found if held.shape == y.shape else None

    def _is_masked(self, e: Node, held: Var, y: Var) -> bool:
        mask, kept, zero = e.operands
        made = self.origin.get(mask) if isinstance(mask, Var) else None
        plain = zero.__class__ in (int, float) and zero == 0
        return kept is held and plain and made is not None and _is_sign(made, y)

    def run(self) -> Graph:
        """Write the graph anew."""
        new: dict[Var, Var] = {}
        for e in self.graph.nodes:
            if isinstance(e, Guard):
                operand = new.get(e.operand, e.operand) if e.operand is not None else None
                self.nodes.append(attrs.evolve(e, operand=operand))
                continue
            assert isinstance(e, Node), "calls are inlined"
            self.site = e.site
            if e.results[0] in self.pulled:
                held = self.pulled[e.results[0]]
                new[e.results[0]] = new.get(held, held)
                continue
            operands = [new.get(v, v) if isinstance(v, Var) else v for v in e.operands]
            y = e.operands[0] if e.operands and isinstance(e.operands[0], Var) else None
            if e in self.pooled:
                operands[0] = self._signed(operands[0], self.pooled[e])
            elif y in self.before and e.name == "max_pool":
                (out,) = e.results
                most = self.apply(e.name, (self.before[y],), e.params, out.shape, out.dtype)
                self.apply_to("relu", (most,), (), out)
                continue
            elif y in self.before and e.name == "max_pool_index":
                operands[0] = self.before[y]
            self.keep(attrs.evolve(e, operands=tuple(operands)))
        outputs = tuple([new.get(v, v) for v in self.graph.outputs])
        return attrs.evolve(self.graph, nodes=tuple(self.nodes), outputs=outputs)

    def _signed(self, g: Any, pooled: Var) -> Var:
        """g where the maxima are positive, else 0."""
        sign = self.apply("greater", (pooled, 0), (), pooled.shape, bool)
        return self.apply("where", (self.reshape(sign, g.shape), g, 0.0), (), g.shape, g.dtype)


def _is_sign(e: Any, y: Var) -> bool:
    """Whether a node asks where y is positive."""
    if not isinstance(e, Node) or e.name != "greater" or e.operands[0] is not y:
        return False
    return e.operands[1].__class__ in (int, float) and e.operands[1] == 0


def _reach(e: Node) -> Any:
    window, _, padding, dilation = e.params
    return window, padding, dilation
