"""Compute equal expressions once (common-subexpression elimination). Every primitive is pure."""

from __future__ import annotations

from typing import Any

import attrs

from funct.graph.ir import Entry, Graph, Node, Var
from funct.graph.passes.inline_calls import substituted

__all__ = ["share_common"]


def share_common(graph: Graph) -> Graph:
    """The graph in which no primitive is applied twice to the same operands and parameters."""
    alias: dict[Var, Var] = {}
    seen: dict[Any, Node] = {}
    nodes: list[Entry] = []
    for e in graph.nodes:
        e = substituted(e, alias)
        if isinstance(e, Node):
            first = seen.setdefault(_key(e), e)
            if first is not e:
                alias.update(zip(e.results, first.results, strict=True))
                continue
        nodes.append(e)
    outputs = tuple([alias.get(v, v) for v in graph.outputs])
    return attrs.evolve(graph, nodes=tuple(nodes), outputs=outputs)


def _key(node: Node) -> Any:
    # by text, type and identity: 1 == 1.0 == True, and 0.0 == -0.0, but they compute differently
    operands = tuple([a if isinstance(a, Var) else (type(a), repr(a)) for a in node.operands])
    return node.primitive.name, operands, repr(node.params)
