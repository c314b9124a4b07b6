"""Functions that know their sizes as numbers: captured for each size, compiled as one program.

`len(x)`, `float(x.shape[0])`, `math.sqrt(n)` and NumPy's arrays of n elements are numbers to
Python, so each size has a graph of its own. Graphs that differ in sizes and numbers alone share
their machine code: it knows no sizes, and numbers that were seen to vary are handed to it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

from funct.compile import Place, can_be_handed, handed_over, numbers
from funct.graph import Control, Graph, Guard, Node, Var, acts
from funct.transforms.compiled.backends import Compile

__all__ = ["Alike", "outline"]


def outline(graph: Graph) -> Hashable | None:
    """What graphs of one program for several sizes have in common; None where that is not known."""
    number: dict[Var, int] = {}
    lines: list[Hashable] = []

    def name(vs: Sequence[Var]) -> Hashable:
        for v in vs:
            number[v] = len(number)
        return tuple([(len(v.shape), v.dtype) for v in vs])

    kinds = [name(graph.inputs), name([v for v, _ in graph.constants])]
    short = tuple([(k, a, n) for k, v in enumerate(graph.inputs)
                   for a, n in enumerate(v.shape) if n < 2])  # fmt: skip
    for e in graph.nodes:
        if isinstance(e, Guard) and not e.of_elements and e.operand is not None:
            lines.append((e.kind, number[e.operand], repr(e.expected)))
        elif isinstance(e, Node) and not isinstance(e.primitive, Control) and not acts(e):
            operands = [
                number[a] if isinstance(a, Var) else _known(e, i) for i, a in enumerate(e.operands)
            ]
            lines.append((e.name, tuple(operands), _without_sizes(e.params), name(e.results)))
        else:
            return None
    return tuple(kinds), short, tuple(lines), tuple([number[v] for v in graph.outputs])


def _known(node: Node, i: int) -> tuple[Any, ...]:
    """What is known of a number that is an operand."""
    a = node.operands[i]
    return (type(a),) if can_be_handed(node, i) else (type(a), repr(a))


def _without_sizes(tree: Any) -> Hashable:
    if isinstance(tree, tuple):
        return tuple([_without_sizes(t) for t in tree])
    return int if type(tree) is int else (type(tree), repr(tree))


class Alike:
    """Graphs with one outline: the numbers in the first, and where others have other ones."""

    __slots__ = ("first", "varying")

    def __init__(self, graph: Graph) -> None:
        self.first = numbers(graph)
        self.varying: frozenset[Place] = frozenset()

    def takes(self, graph: Graph) -> bool:
        """Whether the code that serves the graphs so far serves this one; else it will from now."""
        found = numbers(graph)
        other = {at for at, n in self.first.items() if repr(n) != repr(found[at])}
        known = other <= self.varying
        self.varying |= other
        return known

    def compiling(self, compile: Compile, alike: Graph) -> Compile:
        """`compile`; that graph with the numbers that vary handed over."""
        varying = self.varying

        def compiled(graph: Graph, guards: bool) -> Callable[..., Any]:
            open_, values = handed_over(graph, varying) if graph is alike else (graph, [])
            if not values:
                return compile(graph, guards)
            run = compile(open_, guards)
            return lambda *buffers: run(*buffers, *values)

        return compiled
