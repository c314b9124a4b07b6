"""Views: ops that only say where elements are. Chains of them become one, or none."""

from __future__ import annotations

from typing import Any

from funct.core import lookup
from funct.graph.given import of_graph
from funct.graph.ir import Graph, Node, Var
from funct.graph.passes.peephole import (
    Maker,
    Rule,
    fresh_names,
    made_by,
    peephole,
    rebuilt,
    same_type,
)

__all__ = ["VIEWS", "compose_views", "sink_views"]


@of_graph
def compose_views(graph: Graph) -> Graph:
    """The graph with chains of transposes, reshapes, broadcasts and flips composed, and those that
    do nothing left out.
    """
    return peephole(graph, VIEWS)


@of_graph
def sink_views(graph: Graph) -> Graph:
    """The graph with transposes moved below elementwise ops, where they meet and cancel.

    So what lies between two transposes is computed in the layout of its operands.
    """
    fresh = fresh_names(graph)

    def sink(node: Node, maker: Maker) -> Any:
        moved = [made_by(maker, a, "permute_dims") for a in node.operands]
        held = [m for a, m in zip(node.operands, moved, strict=True) if isinstance(a, Var)]
        if not held or None in held or len({m.params for m in held if m is not None}) != 1:
            return None
        if node.primitive.results != 1:
            return None
        operands = [m.operands[0] if m is not None else a
                    for a, m in zip(node.operands, moved, strict=True)]  # fmt: skip
        aval = node.primitive.aval(operands, node.params)
        assert not isinstance(aval, tuple)
        below = Var(fresh(), aval.shape, aval.dtype)
        inner = Node(node.primitive, tuple(operands), node.params, (below,), node.site)
        first = held[0]
        assert first is not None
        return [inner, *rebuilt(node, lookup("permute_dims"), (below,), first.params)]

    names = {e.name for e in graph.nodes if isinstance(e, Node) and e.primitive.spread is not None}
    rules: dict[str, tuple[Rule, ...]] = dict.fromkeys(names, (sink,))
    return peephole(graph, rules | VIEWS)


def _nothing(node: Node, maker: Maker) -> Var | None:
    """A view of the shape that is there already."""
    x = node.operands[0]
    return x if isinstance(x, Var) and same_type(x, node.results[0]) else None


def _last_counts(node: Node, maker: Maker) -> Any:
    """The second of two reshapes, or of two broadcasts, says it all."""
    inner = made_by(maker, node.operands[0], node.name)
    return rebuilt(node, node.primitive, inner.operands, node.params) if inner else None


def _permuted(node: Node, maker: Maker) -> Any:
    (axes,) = node.params
    if tuple(axes) == tuple(range(len(axes))):
        x = node.operands[0]
        return x if isinstance(x, Var) else None
    inner = made_by(maker, node.operands[0], "permute_dims")
    if inner is None:
        return None
    both = tuple([inner.params[0][a] for a in axes])
    return rebuilt(node, node.primitive, inner.operands, (both,))


def _flipped(node: Node, maker: Maker) -> Any:
    (axes,) = node.params
    x = node.operands[0]
    if not axes:
        return x if isinstance(x, Var) else None
    inner = made_by(maker, x, "flip")
    if inner is None:
        return None
    both = tuple(sorted(set(axes) ^ set(inner.params[0])))
    return rebuilt(node, node.primitive, inner.operands, (both,))


VIEWS: dict[str, tuple[Rule, ...]] = {
    "reshape": (_nothing, _last_counts),
    "broadcast_to": (_nothing, _last_counts),
    "permute_dims": (_permuted,),
    "flip": (_flipped,),
}
