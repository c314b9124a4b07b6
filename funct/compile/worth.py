"""What is worth machine code: a function of shapes and numbers of steps alone."""

from __future__ import annotations

import math

from funct.compile.groups import why_not
from funct.compile.views import VIEWS
from funct.graph import Graph, Node, Var

__all__ = ["worth", "worth_looping"]

_ELEMENT_OPS = 1 << 14  # from which loops are made for a graph
_NODE_STEPS = 1 << 8  # from which a loop of known length becomes a program


def worth(graph: Graph) -> bool:
    """Whether loops over the graph's elements would save more than they cost to make."""
    work = 0
    for e in graph.nodes:
        if isinstance(e, Node) and e.name not in VIEWS and not why_not(e):
            shapes = [v.shape for v in (*e.operands, *e.results) if isinstance(v, Var)]
            work += max([math.prod(s) for s in shapes])
            if work >= _ELEMENT_OPS:
                return True
    return False


def worth_looping(body: Graph, steps: int) -> bool:
    """Whether so many steps save more than the code costs to make."""
    return steps * len(body.nodes) >= _NODE_STEPS
