"""Who reads what in a graph without calls."""

from __future__ import annotations

from typing import Any

from funct.graph import Graph, Guard, Var

__all__ = ["readers"]


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
