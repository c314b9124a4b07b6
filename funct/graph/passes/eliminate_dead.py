"""Drop what no output and no guard needs."""

from __future__ import annotations

import attrs

from funct.graph.given import of_graph
from funct.graph.ir import Call, Entry, Graph, Guard, Var, acts

__all__ = ["eliminate_dead"]


@of_graph
def eliminate_dead(graph: Graph, *, guards: bool = True) -> Graph:
    """The graph without dead nodes and constants; guards are kept unless told otherwise."""
    live: set[Var] = set(graph.outputs)
    kept: list[Entry] = []
    for e in reversed(graph.nodes):
        if isinstance(e, Guard):
            if guards:
                kept.append(e)
                if e.operand is not None:
                    live.add(e.operand)
            continue
        if live.isdisjoint(e.results) and not acts(e):
            continue
        kept.append(e)
        live.update(a for a in e.operands if isinstance(a, Var))
        if isinstance(e, Call):
            live.update(e.body.inputs)
    constants = tuple([(v, x) for v, x in graph.constants if v in live])
    return attrs.evolve(graph, nodes=tuple(kept[::-1]), constants=constants)
