"""What bodies of branches and loops close over.

What a body does is done in it, also to values that it closes over, and its graph takes these as
further inputs. So a branch that is not taken raises nothing and prints nothing. What is the same in
all steps of a loop is computed once, before the loop, where that can do no harm.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import attrs

from funct.array import Tensor
from funct.compile import may_warn
from funct.core import INEXACT, Linear, ShapeDtype, lookup
from funct.graph import (
    Call,
    Capture,
    Control,
    Graph,
    GraphTracer,
    Guard,
    Node,
    acts,
    eliminate_dead,
    writing,
    written,
)  # fmt: skip

__all__ = ["always", "captured", "decides", "hoisted", "reaches_out", "safely"]


def captured(x: Any) -> bool:
    """Whether x stands, at some level, for a value that is written down."""
    while isinstance(x, Tensor) and x.level.transforms:
        if isinstance(x.level, Capture):
            return True
        x = x.value
    return False


def decides() -> bool:
    """Whether values are given where something is written down: steps may ask for them then."""
    level = writing()
    return level is not None and level.decides


def reaches_out(name: str, fun: Callable[..., Any], avals: Sequence[ShapeDtype]) -> bool:
    """Whether a flat function of arrays closes over a value that is written down."""
    if writing() is None:
        return False
    level = Capture(name, fun)
    ins = [GraphTracer.unknown(level, level.fresh(a.shape, a.dtype)) for a in avals]
    try:
        with written(level, body=True):
            fun(*ins)
    except Exception:  # it decides on values, or is wrong: step by step it says so
        return False
    return any(captured(x) for _, x in level.constants.values())


def always(e: Node | Call) -> bool:
    """What a function that is called at least once does at every call."""
    return not acts(e)


# Elementwise and other ops of several rules, whose slopes are finite where their operands are
_FINITE_SLOPES = frozenset({
    "abs", "add", "atan", "complex_of", "concat", "conj", "cos", "cosh", "erf", "erfc", "exp",
    "exp2", "expm1", "imag", "linear_recurrence", "maximum", "minimum", "multiply", "negative",
    "real", "reduce_max", "reduce_min", "relu", "scatter", "scatter_add", "sigmoid", "sign", "sin",
    "sinh", "sort", "square", "subtract", "tanh", "top_k", "where",
})  # fmt: skip


def _slopes_are_finite(e: Node) -> bool:
    prim = e.primitive
    linear = all(rule is None or isinstance(rule, Linear) for rule in prim.rules)
    return linear or prim.name in _FINITE_SLOPES or INEXACT.isdisjoint(v.dtype for v in e.results)


def safely(e: Node | Call) -> bool:
    """What may be done as well where the function is not called: it raises and warns of nothing,
    and no infinite slope makes NaN of the cotangent 0 that it has then.
    """
    if isinstance(e, Call):
        inner = e.body.nodes
    elif isinstance(e.primitive, Control):
        inner = tuple([n for _, g in e.primitive.bodies for n in g.nodes])
    else:
        known = lookup(e.name) is e.primitive and "::" not in e.name  # no function of the user's
        harmless = known and not e.primitive.raises and not may_warn(e)
        return harmless and always(e) and _slopes_are_finite(e)
    return always(e) and all(isinstance(n, Guard) or safely(n) for n in inner)


def hoisted(
    graph: Graph, outer: tuple[Any, ...], hoist: Callable[[Node | Call], bool]
) -> tuple[Graph, tuple[Any, ...]]:
    """The graph and what it closes over, after entries were computed that need nothing else."""
    own = len(graph.inputs) - len(outer)
    there = set(graph.inputs[own:])
    constants = {v for v, _ in graph.constants}
    early: list[Node | Call] = []
    late: list[Node | Call] = []
    for e in graph.nodes:
        assert not isinstance(e, Guard), "the body has none"
        mine = not there.isdisjoint(e.reads)
        if mine and there.issuperset(set(e.reads) - constants) and hoist(e):
            early.append(e)
            there.update(e.results)
        else:
            late.append(e)
    if not early:
        return graph, outer
    rest = eliminate_dead(attrs.evolve(graph, nodes=tuple(late)), guards=False)
    used = {v for e in late for v in e.reads} | set(graph.outputs)
    made = [v for e in early for v in e.results if v in used]
    first = Graph(graph.inputs[own:], graph.constants, tuple(early), tuple(made))
    kept = [(v, x) for v, x in zip(graph.inputs[own:], outer, strict=True) if v in used]
    found = [*kept, *zip(made, eliminate_dead(first)(*outer), strict=True)]
    inputs = (*graph.inputs[:own], *[v for v, _ in found])
    return attrs.evolve(rest, inputs=inputs), tuple([x for _, x in found])
