"""What is worth machine code, and when: a function of shapes and numbers of steps alone."""

from __future__ import annotations

import math

from funct.compile.groups import why_not
from funct.compile.scalars import ELEMENTS
from funct.compile.views import VIEWS
from funct.graph import Graph, Node, Var

__all__ = ["has_numpys_bits", "worth", "worth_looping"]

_ELEMENT_OPS = 1 << 14  # from which loops are made for a graph
_NODE_STEPS = 1 << 8  # from which a loop of known length becomes a program

# Ops whose result is one number, whoever computes it; of extremes the zero's sign is not.
_SAME = frozenset({
    "abs", "add", "bitwise_and", "bitwise_invert", "bitwise_or", "bitwise_xor", "copysign",
    "divide", "equal", "greater", "greater_equal", "isfinite", "isinf", "isnan", "less",
    "less_equal", "logical_and", "logical_not", "logical_or", "logical_xor", "multiply",
    "negative", "not_equal", "reciprocal", "signbit", "sqrt", "square", "subtract", "where",
})  # fmt: skip


def has_numpys_bits(graph: Graph) -> bool:
    """Whether machine code gives what NumPy gives, to the last bit, so that it may come later."""
    return all(
        isinstance(e, Node)
        and (e.name in VIEWS or (e.name in _SAME and not why_not(e)))
        and all(v.dtype in ELEMENTS for v in e.results)
        for e in graph.nodes
    )


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
