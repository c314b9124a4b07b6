"""Is a graph well-formed? Run after capture and after every pass."""

from __future__ import annotations

from typing import Any

from funct.core import ShapeDtype
from funct.errors import GraphError
from funct.graph.ir import Call, Graph, Guard, Node, Var

__all__ = ["check"]


def check(graph: Graph) -> Graph:
    """The graph itself, or GraphError naming the entry that breaks a rule.

    Rules: every Var is defined once, before it is used; the shapes and dtypes written on results
    are those that the primitive's abstract rule gives; names are unique.
    """
    known: set[Var] = set()
    names: set[str] = set()

    def define(v: Var, by: str) -> None:
        if v in known:
            raise GraphError(f"graph: {v.name} is defined twice, again by {by}")
        if v.name in names:
            raise GraphError(f"graph: two values are named {v.name}")
        known.add(v)
        names.add(v.name)

    for v in graph.inputs:
        define(v, "an input")
    for v, x in graph.constants:
        define(v, "a constant")
        if tuple(x.shape) != v.shape or x.dtype != v.dtype:
            raise GraphError(
                f"graph: constant {v.name} is {x.dtype}{list(x.shape)}, typed {v.aval}"
            )
    for e in graph.nodes:
        operands: tuple[Any, ...] = (e.operand,) if isinstance(e, Guard) else e.operands
        for a in operands:
            if isinstance(a, Var) and a not in known:
                raise GraphError(f"graph: {a.name} is used before it is defined", site=e.site)
        if isinstance(e, Guard):
            continue
        if isinstance(e, Node):
            _check_types(e)
        if isinstance(e, Call) and len(e.results) != len(e.body.outputs):
            raise GraphError(
                f"graph: {e.name} has {len(e.results)} results, its body {len(e.body.outputs)}"
            )
        for v in e.results:
            define(v, e.name)
    for v in graph.outputs:
        if v not in known:
            raise GraphError(f"graph: output {v.name} is not defined")
    return graph


def _check_types(node: Node) -> None:
    avals = node.primitive.aval(node.operands, node.params)
    expected = avals if isinstance(avals, tuple) else (avals,)
    got = tuple([v.aval for v in node.results])
    if len(got) != len(expected) or not all(
        _same(a, b) for a, b in zip(got, expected, strict=True)
    ):
        raise GraphError(
            f"graph: {node.name} gives {expected}, its results are typed {got}", site=node.site
        )


def _same(a: ShapeDtype, b: ShapeDtype) -> bool:
    return a.dtype == b.dtype and repr(a.shape) == repr(
        b.shape
    )  # text: comparing Sizes would guard
