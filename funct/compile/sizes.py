"""A graph with symbolic sizes as the same graph for sizes that are numbers."""

from __future__ import annotations

from collections.abc import Mapping

from funct.core import size_values
from funct.graph import Call, Graph, Guard, Node, Var

__all__ = ["at_sizes"]


def at_sizes(graph: Graph, sizes: Mapping[str, int]) -> Graph:
    """The graph, without calls, at these sizes; guards on sizes are dropped, for they hold."""
    new: dict[Var, Var] = {}

    def fixed(v: Var) -> Var:
        if v not in new:
            new[v] = Var(v.name, size_values(tuple(v.shape), sizes), v.dtype)
        return new[v]

    nodes: list[Node | Call | Guard] = []
    for e in graph.nodes:
        if isinstance(e, Guard):
            if e.kind != "size":
                operand = fixed(e.operand) if e.operand is not None else None
                nodes.append(Guard(e.kind, operand, e.expected, e.site, e.asked))
            continue
        assert isinstance(e, Node), "calls are inlined"
        operands = tuple([fixed(a) if isinstance(a, Var) else a for a in e.operands])
        params = size_values(e.params, sizes)
        nodes.append(
            Node(e.primitive, operands, params, tuple([fixed(v) for v in e.results]), e.site)
        )
    return Graph(
        tuple([fixed(v) for v in graph.inputs]),
        tuple([(fixed(v), x) for v, x in graph.constants]),
        tuple(nodes),
        tuple([fixed(v) for v in graph.outputs]),
    )
