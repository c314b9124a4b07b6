"""Replace composite ops, and calls of functions with rules of their own, by primitives."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from funct import ops
from funct.graph.given import expect_taking, of_graph
from funct.graph.ir import Graph, Node
from funct.graph.passes.inline_calls import inline_calls
from funct.graph.run import Transformer

__all__ = ["COMPOSITES", "decompose"]

COMPOSITES: dict[str, Callable[..., Any]] = {
    "square": lambda x: x * x,
    "reciprocal": lambda x: 1.0 / x,
    "relu": lambda x: ops.maximum(x, 0),
    "sigmoid": lambda x: 1.0 / (1.0 + ops.exp(-x)),
    "log2": lambda x: ops.log(x) / 0.6931471805599453,
    "log10": lambda x: ops.log(x) / 2.302585092994046,
    "exp2": lambda x: ops.exp(x * 0.6931471805599453),
    "exp10": lambda x: ops.exp(x * 2.302585092994046),
    "hypot": lambda x, y: ops.sqrt(x * x + y * y),
    "settled": lambda x: x,
    "stop_gradient": lambda x: x,
    "checkpoint_name": lambda x, name: x,
}


@of_graph
def decompose(graph: Graph, table: Mapping[str, Callable[..., Any]] | None = None) -> Graph:
    """The graph with calls inlined and composite ops spelled out.

    Args: table: op name -> function of its operands and parameters; None: `COMPOSITES`, for
    targets with few ops. Values agree up to rounding.
    """
    wanted = COMPOSITES if table is None else table
    graph = inline_calls(graph)
    for e in graph.nodes:
        if isinstance(e, Node) and e.name in wanted:
            count = len(e.operands) + len(e.params)
            expect_taking("decompose", f"table[{e.name!r}]", wanted[e.name], count)

    class Spelled(Transformer):
        def node(self, node: Node, operands: list[Any]) -> tuple[Any, ...]:
            if node.name not in wanted:
                return super().node(node, operands)
            out = wanted[node.name](*operands, *node.params)
            return out if isinstance(out, tuple) else (out,)

    return Spelled(graph).transform()
