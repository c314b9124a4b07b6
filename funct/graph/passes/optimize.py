"""All passes that every compiled graph goes through, in order."""

from __future__ import annotations

from weakref import WeakKeyDictionary

from funct.graph.check import check
from funct.graph.given import of_graph
from funct.graph.ir import Graph
from funct.graph.passes.eliminate_dead import eliminate_dead
from funct.graph.passes.fold_constants import fold_constants
from funct.graph.passes.share_common import share_common
from funct.graph.passes.simplify import simplify

__all__ = ["optimize"]

_known: WeakKeyDictionary[Graph, dict[bool, Graph]] = WeakKeyDictionary()


@of_graph
def optimize(graph: Graph, *, guards: bool = True) -> Graph:
    """The graph that is compiled: made once for each graph, and only where somebody needs it.

    guards: whether decisions are kept, as in `eliminate_dead`.
    """
    known = _known.setdefault(graph, {})
    if guards not in known:
        whole = share_common(simplify(fold_constants(graph)))
        known[guards] = check(eliminate_dead(whole, guards=guards))
    return known[guards]
