"""Who reads what in a graph without calls, and what is decided by it."""

from __future__ import annotations

from typing import Any

from funct.graph import Graph, Guard, Node, Var

__all__ = ["decisive", "readers"]


def readers(graph: Graph) -> dict[Var, list[Any]]:
    """For each value that is read the nodes and guards that read it, once for each time; None
    stands for the caller.
    """
    found: dict[Var, list[Any]] = {v: [None] for v in graph.outputs}
    for e in graph.nodes:
        for a in (e.operand,) if isinstance(e, Guard) else e.operands:
            if isinstance(a, Var):
                found.setdefault(a, []).append(e)
    return found


def decisive(graph: Graph) -> set[Node]:
    """The nodes on which a guard's outcome depends."""
    found: set[Node] = set()
    asked: set[Var] = set()
    for e in reversed(graph.nodes):
        if isinstance(e, Guard):
            asked.update([e.operand] if e.operand is not None else [])
        elif isinstance(e, Node) and not asked.isdisjoint(e.results):
            found.add(e)
            asked.update([v for v in e.operands if isinstance(v, Var)])
    return found
