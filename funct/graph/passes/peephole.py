"""Local rewriting: rules that look at one node and at what made its operands.

Every node is rewritten until no rule applies, in order, so what it is made from is in its final
form already: one walk reaches the fixpoint, in time linear in the graph.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs

from funct.graph.ir import Call, Entry, Graph, Node, Var
from funct.graph.renaming import resolved, substituted

__all__ = ["Maker", "Rule", "fresh_names", "made_by", "peephole", "rebuilt", "same_type"]

Maker = Callable[[Any], Node | None]  # the node that made an operand
# What a node becomes: another Var, or nodes of which the last one has the node's results.
Rule = Callable[[Node, Maker], Var | Sequence[Node] | None]


def peephole(graph: Graph, rules: Mapping[str, Sequence[Rule]]) -> Graph:
    """The graph after rewriting; `rules` by the name of the op that they look at."""
    alias: dict[Var, Var] = {}
    makers: dict[Var, Node] = {}
    nodes: list[Entry] = []
    done: set[Node] = set()
    for e in graph.nodes:
        todo: list[Entry] = [substituted(e, alias)]
        while todo:
            e = todo.pop()
            if not isinstance(e, Node) or e.primitive.effect:
                nodes.append(e)
                continue
            found = None if e in done else _first(rules.get(e.name, ()), e, makers.get)
            if found is None:
                nodes.append(e)
                makers.update(dict.fromkeys(e.results, e))
            elif isinstance(found, Var):
                alias[e.results[0]] = found
            else:
                done.update(found[:-1])  # made by the rule for the last one: final already
                todo += found[::-1]
    outputs = tuple([resolved(v, alias) for v in graph.outputs])
    return attrs.evolve(graph, nodes=tuple(nodes), outputs=outputs)


def _first(rules: Sequence[Rule], node: Node, maker: Maker) -> Any:
    return next((f for rule in rules if (f := rule(node, maker)) is not None), None)


def same_type(v: Var, w: Var) -> bool:
    """Whether two values have one shape and dtype; sizes are compared as text, unguarded."""
    return v.dtype == w.dtype and repr(tuple(v.shape)) == repr(tuple(w.shape))


def made_by(maker: Maker, a: Any, *names: str) -> Node | None:
    """The node that made an operand, if it is an op of one of these names."""
    node = maker(a) if isinstance(a, Var) else None
    return node if node is not None and node.name in names else None


def rebuilt(node: Node, primitive: Any, operands: Sequence[Any], params: Any = ()) -> list[Node]:
    """The node as another op with the same results."""
    return [Node(primitive, tuple(operands), tuple(params), node.results, node.site)]


def fresh_names(graph: Graph) -> Callable[[], str]:
    """Names for values that no value of the graph has."""
    taken = {v.name for v in graph.inputs} | {v.name for v, _ in graph.constants}
    for e in graph.nodes:
        taken.update(v.name for v in getattr(e, "results", ()))
        inner = e.body.nodes if isinstance(e, Call) else ()
        taken.update(v.name for n in inner for v in getattr(n, "results", ()))
    counter = itertools.count(len(taken) + 1)

    def fresh() -> str:
        return next(n for k in counter if (n := f"v{k}") not in taken)

    return fresh
