"""Which results of a graph depend on which of its inputs, branches and loops looked into.

A loop that carries values and tangents is one node, and of its results some depend on the tangents
and some do not; `funct/transforms/vjp.py` judges by that whether a function is linear.
"""

from __future__ import annotations

from collections.abc import Sequence

from funct.graph.given import of_graph
from funct.graph.ir import Call, Control, Graph, Guard, Node, Var

__all__ = ["dependent", "depending"]


@of_graph
def dependent(graph: Graph, flags: Sequence[bool]) -> tuple[bool, ...]:
    """Whether each output depends on a flagged input, where all values are finite: there the
    question whether one is, which products that absorb zeros ask, depends on nothing.

    Where a decision of Python depends on a flagged input every output does.
    """
    live = {v for v, f in zip(graph.inputs, flags, strict=True) if f}
    for e in graph.nodes:
        if isinstance(e, Guard):
            if e.operand in live:
                return (True,) * len(graph.outputs)
        else:
            live.update([v for v, f in zip(e.results, depending(e, live), strict=True) if f])
    return tuple([v in live for v in graph.outputs])


def depending(e: Node | Call, live: set[Var]) -> Sequence[bool]:
    """Whether each result of an entry depends on a live value."""
    if live.isdisjoint(e.reads):
        return (False,) * len(e.results)
    if isinstance(e, Call):
        outer = e.body.inputs[len(e.operands) :]
        return dependent(e.body, [v in live for v in (*e.operands, *outer)])
    if isinstance(e.primitive, Control):
        found: Sequence[bool] = e.primitive.kind.depends([a in live for a in e.operands])
        return found
    return (e.name != "isfinite",) * len(e.results)
