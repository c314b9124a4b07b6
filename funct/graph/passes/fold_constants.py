"""Evaluate what depends on constants alone."""

from __future__ import annotations

import itertools
from typing import Any

import attrs
import numpy as np

from funct.core import Size
from funct.graph.given import of_graph
from funct.graph.ir import Entry, Graph, Node, Var
from funct.graph.renaming import substituted

__all__ = ["fold_constants"]

_SMALL = 1024  # elements; a fold may make a constant this large from nothing
_KEPT = frozenset({"dequantize"})  # a dequantized weight stays an integer in memory


@of_graph
def fold_constants(graph: Graph) -> Graph:
    """The graph in which nodes with only constant operands have become constants.

    What is much larger than all it is made from (a broadcast) stays computed.
    """
    known: dict[Var, Any] = dict(graph.constants)
    taken = {v.name for v in (*graph.inputs, *known)}
    names = (n for k in itertools.count(len(known)) if (n := f"c{k}") not in taken)
    alias: dict[Var, Var] = {}
    nodes: list[Entry] = []
    for e in graph.nodes:
        e = substituted(e, alias)
        values = _values(e, known) if isinstance(e, Node) and _foldable(e) else None
        if values is None:
            nodes.append(e)
            continue
        for v, x in zip(e.results, values, strict=True):
            alias[v] = attrs.evolve(v, name=next(names))
            known[alias[v]] = x
    if not alias:
        return graph
    outputs = tuple([alias.get(v, v) for v in graph.outputs])
    return attrs.evolve(graph, constants=tuple(known.items()), nodes=tuple(nodes), outputs=outputs)


def _foldable(node: Node) -> bool:
    return not node.primitive.effect and node.name not in _KEPT


def _values(node: Node, known: dict[Var, Any]) -> tuple[Any, ...] | None:
    """The results, or None where they cannot or should not be computed now."""
    if _symbolic((node.params, *[v.shape for v in node.results])):
        return None
    if not all(not isinstance(a, Var) or a in known for a in node.operands):
        return None
    operands = [known[a] if isinstance(a, Var) else a for a in node.operands]
    given = sum(int(np.prod(a.shape)) for a in operands if hasattr(a, "shape"))
    if sum(int(np.prod(v.shape)) for v in node.results) > max(given, _SMALL):
        return None
    try:
        out = node.primitive.fn(*operands, *node.params)
    except Exception:  # the call that needs it raises, with its line
        return None
    return out if node.primitive.results != 1 else (out,)


def _symbolic(tree: Any) -> bool:
    if isinstance(tree, tuple):
        return any(_symbolic(t) for t in tree)
    return isinstance(tree, Size)
