"""Compute equal expressions once (common-subexpression elimination)."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import attrs
import numpy as np

from funct.core import Size
from funct.graph.given import of_graph
from funct.graph.ir import Entry, Graph, Node, Var
from funct.graph.renaming import substituted

__all__ = ["exact", "share_common"]


@of_graph
def share_common(graph: Graph) -> Graph:
    """The graph in which no primitive is applied twice to the same operands and parameters."""
    alias: dict[Var, Var] = {}
    seen: dict[Any, Node] = {}
    nodes: list[Entry] = []
    for e in graph.nodes:
        e = substituted(e, alias)
        if isinstance(e, Node) and not e.primitive.effect:
            first = seen.setdefault(_key(e), e)
            if first is not e:
                alias.update(zip(e.results, first.results, strict=True))
                continue
        nodes.append(e)
    outputs = tuple([alias.get(v, v) for v in graph.outputs])
    return attrs.evolve(graph, nodes=tuple(nodes), outputs=outputs)


def _key(node: Node) -> Any:
    return node.primitive, exact(node.operands), exact(node.params)


def exact(x: Any) -> Hashable:
    """A key that tells apart what computes differently: 1, 1.0 and True, 0.0 and -0.0."""
    if isinstance(x, tuple):
        return tuple([exact(v) for v in x])
    if x is None or isinstance(x, bool | int | float | complex | str | np.dtype | Size):
        return type(x), repr(x)
    return id(x)  # a Var, or a parameter of which only identity is certain
