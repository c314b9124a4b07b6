"""Graphs put into graphs: tests behind their bodies, and cheap branches as selections.

A branch over few numbers whose functions are plain arithmetic costs more to take than to compute
both ways: `where` picks the result, in the loops that it stands in.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import attrs
import numpy as np

from funct.compile.loops.scalars import is_exact, printing, unsupported
from funct.compile.loops.views import VIEWS
from funct.compile.loops.warned import may_warn
from funct.compile.rewriting.attention import with_attention
from funct.compile.rewriting.composed import composed
from funct.compile.rewriting.pairs import in_pairs
from funct.compile.rewriting.pools import pools_spelled_out
from funct.compile.rewriting.simplify import simplify
from funct.core import lookup
from funct.graph import (
    Control,
    Graph,
    Node,
    Var,
    eliminate_dead,
    inline_calls,
    share_common,
)  # fmt: skip

__all__ = ["plain", "prepared", "put_in", "selected"]

_CHEAP = 128  # element-ops of each function


def plain(graph: Graph) -> Graph:
    """The graph without calls, branches that are cheap, and ops that others write."""
    simple = selected(eliminate_dead(inline_calls(graph), guards=False))
    spelled = pools_spelled_out(composed(with_attention(simple)))
    return eliminate_dead(share_common(spelled), guards=False)


def prepared(graph: Graph) -> Graph | None:
    """The graph as machine code computes it; None where it is not all ops on numbers of one size,
    or something must be checked before it runs.
    """
    found = plain(graph)
    found = in_pairs(found) or found
    plainly = all(isinstance(e, Node) and not e.primitive.effect for e in found.nodes)
    if found.symbols or not plainly:
        return None
    simple, checks = simplify(found)
    return None if checks else simple


def put_in(graph: Graph, given: Sequence[Var]) -> tuple[list[Node], list[Var]]:
    """The nodes of a graph without calls and guards for these inputs, and its outputs."""
    new: dict[Any, Any] = dict(zip(graph.inputs, given, strict=True))
    nodes: list[Node] = []
    for e in graph.nodes:
        assert isinstance(e, Node), "a graph without calls and guards"
        results = tuple([Var(v.name, v.shape, v.dtype) for v in e.results])
        operands = tuple([new.get(a, a) for a in e.operands])
        nodes.append(attrs.evolve(e, operands=operands, results=results))
        new |= dict(zip(e.results, results, strict=True))
    return nodes, [new.get(v, v) for v in graph.outputs]


def selected(graph: Graph) -> Graph:
    """The graph with selections for branches that are cheap in all their functions."""
    nodes: list[Any] = []
    constants = dict(graph.constants)
    for e in graph.nodes:
        ways = _ways(e)
        if not ways:
            nodes.append(e)
            continue
        assert isinstance(e, Node), "branches are nodes"
        nodes += _selection(e, ways)
        constants |= {v: x for way in ways for v, x in way.constants}
    return attrs.evolve(graph, nodes=tuple(nodes), constants=tuple(constants.items()))


def _selection(e: Node, ways: Sequence[Graph]) -> list[Node]:
    """All functions of a branch, each result taken where the index says so."""
    index, *given = e.operands
    nodes, found = put_in(ways[0], given)  # type: ignore[arg-type]
    for k, way in enumerate(ways[1:], 1):
        inner, outs = put_in(way, given)  # type: ignore[arg-type]
        mask, asked = _is(index, k)
        nodes += [*inner, *asked]
        chosen = (
            e.results if k == len(ways) - 1 else [Var(v.name, v.shape, v.dtype) for v in e.results]
        )
        for new, old, out in zip(outs, found, chosen, strict=True):
            nodes.append(_node("where", (mask, new, old), out, e.site))
        found = list(chosen)
    return nodes


def _ways(e: Any) -> tuple[Graph, ...]:
    """The functions of a branch that is to be a selection."""
    if not isinstance(e, Node) or not isinstance(e.primitive, Control):
        return ()
    ways: tuple[Graph, ...] = getattr(e.primitive.kind.form(), "graphs", ())
    return ways if len(ways) > 1 and all(map(_is_cheap, ways)) else ()


def _is_cheap(graph: Graph) -> bool:
    work = 0
    for e in graph.nodes:
        if not isinstance(e, Node) or graph.symbols:
            return False
        if e.name in VIEWS:
            continue
        if printing(e) is None or unsupported(e) or not is_exact(e) or may_warn(e):
            return False  # of what is not taken nobody is warned
        work += math.prod(e.results[0].shape)
    return work + sum([math.prod(v.shape) for v in graph.outputs]) <= _CHEAP


def _is(index: Any, k: int) -> tuple[Any, list[Node]]:
    """Whether the index is k: a boolean is itself."""
    if index.dtype.kind == "b":
        return index, []
    mask = Var(f"is{k}", (), np.dtype(bool))
    return mask, [_node("equal", (index, k), mask, None)]


def _node(name: str, operands: tuple[Any, ...], out: Var, site: Any) -> Node:
    primitive = lookup(name)
    assert primitive is not None
    return Node(primitive, operands, (), (out,), site)
