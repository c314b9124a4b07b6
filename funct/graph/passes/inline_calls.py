"""Replace calls by their bodies: what runs has no use for derivative rules."""

from __future__ import annotations

import attrs

from funct.graph.given import of_graph
from funct.graph.ir import Call, Control, Entry, Graph, Node, Var
from funct.graph.renaming import resolved, substituted

__all__ = ["inline_calls", "own_rules"]


@of_graph
def inline_calls(graph: Graph) -> Graph:
    """The same graph without Call entries."""
    if not any(isinstance(e, Call) for e in graph.nodes):
        return graph
    alias: dict[Var, Var] = {}
    nodes: list[Entry] = []
    _splice(graph.nodes, alias, nodes)
    outputs = tuple([resolved(v, alias) for v in graph.outputs])
    return attrs.evolve(graph, nodes=tuple(nodes), outputs=outputs)


def own_rules(graph: Graph) -> list[str]:
    """Names of the functions in it with derivative rules that are not those of their bodies."""
    found: dict[str, bool] = {}
    for e in graph.nodes:
        if isinstance(e, Call):
            inside = own_rules(e.body)
            found |= dict.fromkeys([e.name, *inside] if e.region.own else inside, True)
        elif isinstance(e, Node) and isinstance(e.primitive, Control):
            for _, body in e.primitive.bodies:
                found |= dict.fromkeys(own_rules(body), True)
    return list(found)


def _splice(entries: tuple[Entry, ...], alias: dict[Var, Var], nodes: list[Entry]) -> None:
    for e in entries:
        if isinstance(e, Call):
            _splice(e.body.nodes, alias, nodes)
            alias.update(zip(e.results, e.body.outputs, strict=True))
        else:
            nodes.append(substituted(e, alias))
