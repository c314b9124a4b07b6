"""Graphs that are linear in cotangents, where some of these are absent.

A result that nothing used has no cotangent. In eager code the walk over the tape does not come by
there; a graph made for the cotangents of all results would have to be given a zero, and 0 * inf is
NaN. So it is made again for those that came: what depends on absent ones alone is absent itself,
and of a sum the other term is left.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from funct.core import ShapeDtype, size_values
from funct.graph import Call, Control, Graph, Interpreter, Node, Var, depending
from funct.transforms.control.bodies import SizeError, chosen, regraph, symbols_of, zeros_of

__all__ = ["without"]


def without(
    graph: Graph, moving: Sequence[bool], absent: Sequence[bool], wanted: Sequence[bool]
) -> Graph:
    """The graph of the inputs that are not absent, for the outputs that are wanted. An output that
    depends on absent inputs, and on none that moves, is zero. Raises SizeError.

    moving, absent: the inputs that came and that did not, of those the graph is linear in.
    """
    types = [v.aval for v in graph.inputs]
    here = [not a for a in absent]
    known = {s.name for s in symbols_of([t.shape for t in chosen(types, here)])}
    if not known.issuperset([s.name for s in graph.symbols]):
        raise SizeError(())

    def run(*xs: Any) -> list[Any]:
        given = iter(xs)
        full = [next(given) if h else zeros_of([t])[0] for t, h in zip(types, here, strict=True)]
        found = chosen(_Present(graph, moving, absent).run(*full), wanted)
        outs = chosen(graph.outputs, wanted)
        return [zeros_of([v.aval])[0] if x is None else x for x, v in zip(found, outs, strict=True)]

    return regraph(run, chosen(types, here))


class _Present(Interpreter):
    """Evaluate what depends on no absent input, or on a moving one as well."""

    def __init__(self, graph: Graph, moving: Sequence[bool], absent: Sequence[bool]) -> None:
        super().__init__(graph)
        self.moving = set(chosen(graph.inputs, moving))
        self.absent = set(chosen(graph.inputs, absent))

    def _is_absent(self, e: Node | Call) -> bool:
        """Whether all results are, where it is known which of the operands are."""
        self.moving.update(chosen(e.results, depending(e, self.moving)))
        lost = chosen(e.results, depending(e, self.absent))
        self.absent.update(set(lost) - self.moving)
        return self.absent.issuperset(e.results)

    def node(self, node: Node, operands: list[Any]) -> tuple[Any, ...]:
        """One primitive, on zeros where it needs something absent."""
        if self._is_absent(node):
            return (None,) * len(node.results)
        lost = [a in self.absent for a in node.operands]
        if not any(lost):
            return super().node(node, operands)
        if node.name == "add" and all(x.aval == node.results[0].aval for x in node.reads):
            return (operands[lost.index(False)],)
        if isinstance(node.primitive, Control):
            moving = tuple([a in self.moving for a in node.operands])
            given = [None if gone else x for x, gone in zip(operands, lost, strict=True)]
            outs: tuple[Any, ...] = node.primitive.kind.on_some(given, moving)
            gone = chosen(node.results, [x is None for x in outs])  # a loop knows each step
            self.absent.update(gone)
            self.moving.difference_update(gone)
            return outs
        return super().node(node, self._filled(node, operands))

    def call(self, call: Call, operands: list[Any]) -> tuple[Any, ...]:
        """One call of a function with its own rules, on zeros where it needs something absent."""
        if self._is_absent(call):
            return (None,) * len(call.results)
        return super().call(call, self._filled(call, operands))

    def _filled(self, e: Node | Call, operands: list[Any]) -> list[Any]:
        return [
            zeros_of([ShapeDtype(size_values(a.shape, self.sizes), a.dtype)])[0]
            if isinstance(a, Var) and a in self.absent
            else x
            for a, x in zip(e.operands, operands, strict=True)
        ]
