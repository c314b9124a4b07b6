"""Numbers that are handed over: inputs in the place of literals, which no machine code knows."""

from __future__ import annotations

from collections.abc import Container
from typing import Any

import attrs
import numpy as np

from funct.core import dtype_beside
from funct.graph import Graph, Guard, Node, Var

__all__ = ["Place", "can_be_handed", "handed_over", "numbers"]

Place = tuple[int, int]  # of a number: node and operand; -1 and which of the constants


def numbers(graph: Graph) -> dict[Place, Any]:
    """The numbers that can be inputs, by their places."""
    found: dict[Place, Any] = {}
    for k, (v, x) in enumerate(graph.constants):
        if not v.shape:
            found[-1, k] = x.data[()]
    for k, e in enumerate(graph.nodes):
        if isinstance(e, Node):
            for i, a in enumerate(e.operands):
                if not isinstance(a, Var) and can_be_handed(e, i):
                    found[k, i] = a
    return found


def can_be_handed(node: Node, i: int) -> bool:
    """Whether an array can stand in the place of the number that is operand i."""
    return _dtype(node, i) is not None


def handed_over(graph: Graph, places: Container[Place]) -> tuple[Graph, list[Any]]:
    """The graph with further inputs in the place of numbers, and these numbers."""
    inputs, values = list(graph.inputs), []

    def further(dtype: Any, value: Any) -> Var:
        inputs.append(Var(f"x{len(inputs)}", (), dtype))
        values.append(np.asarray(value, dtype))
        return inputs[-1]

    at = [(v, x, (-1, k) in places) for k, (v, x) in enumerate(graph.constants)]
    new = {v: further(v.dtype, x.data) for v, x, varies in at if varies}
    nodes = list(graph.nodes)
    for k, e in enumerate(nodes):
        if isinstance(e, Guard):
            nodes[k] = attrs.evolve(e, operand=new.get(e.operand, e.operand))  # type: ignore[arg-type]
            continue
        operands = [new.get(a, a) if isinstance(a, Var) else a for a in e.operands]
        if isinstance(e, Node):
            for i, a in enumerate(operands):
                if (k, i) in places:
                    operands[i] = further(_dtype(e, i), a)
        nodes[k] = attrs.evolve(e, operands=tuple(operands))  # type: ignore[arg-type]
    constants = tuple([(v, x) for v, x, varies in at if not varies])
    outputs = tuple([new.get(v, v) for v in graph.outputs])
    return attrs.evolve(
        graph, inputs=tuple(inputs), constants=constants, nodes=tuple(nodes), outputs=outputs
    ), values


def _dtype(node: Node, i: int) -> Any:
    """The dtype of an array that does what the number does as operand i; None if there is none."""
    return dtype_beside(node.primitive, node.operands, node.params, i, node.results[0].dtype)
