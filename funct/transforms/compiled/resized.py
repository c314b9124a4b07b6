"""Functions that know their sizes as numbers: captured for each size, compiled as one program.

`len(x)`, `float(x.shape[0])`, `math.sqrt(n)` and NumPy's arrays of n elements are numbers to
Python, so each size has a graph of its own. Graphs that differ in sizes and numbers alone share
their machine code: it knows no sizes, and numbers that were seen to vary are handed to it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

import attrs
import numpy as np

from funct.graph import Control, Graph, Guard, Node, Var, acts
from funct.transforms.compiled.backends import Compile

__all__ = ["Alike", "outline"]

_Place = tuple[int, int]  # of a number: node and operand; -1 and which of the constants


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
        if isinstance(e, Guard) and e.kind != "array" and e.operand is not None:
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
    return (type(a),) if _dtype(node, i) is not None else (type(a), repr(a))


def _without_sizes(tree: Any) -> Hashable:
    if isinstance(tree, tuple):
        return tuple([_without_sizes(t) for t in tree])
    return int if type(tree) is int else (type(tree), repr(tree))


class Alike:
    """Graphs with one outline: the numbers in the first, and where others have other ones."""

    __slots__ = ("first", "varying")

    def __init__(self, graph: Graph) -> None:
        self.first = _numbers(graph)
        self.varying: frozenset[_Place] = frozenset()

    def takes(self, graph: Graph) -> bool:
        """Whether the code that serves the graphs so far serves this one; else it will from now."""
        found = _numbers(graph)
        other = {at for at, n in self.first.items() if repr(n) != repr(found[at])}
        known = other <= self.varying
        self.varying |= other
        return known

    def compiling(self, compile: Compile, alike: Graph) -> Compile:
        """`compile`; that graph with the numbers that vary handed over."""
        varying = self.varying

        def compiled(graph: Graph, guards: bool) -> Callable[..., Any]:
            open_, numbers = _opened(graph, varying) if graph is alike else (graph, [])
            if not numbers:
                return compile(graph, guards)
            run = compile(open_, guards)
            return lambda *buffers: run(*buffers, *numbers)

        return compiled


def _numbers(graph: Graph) -> dict[_Place, Any]:
    found: dict[_Place, Any] = {}
    for k, (v, x) in enumerate(graph.constants):
        if not v.shape:
            found[-1, k] = x.data[()]
    for k, e in enumerate(graph.nodes):
        if isinstance(e, Node):
            for i, a in enumerate(e.operands):
                if not isinstance(a, Var) and _dtype(e, i) is not None:
                    found[k, i] = a
    return found


def _opened(graph: Graph, places: frozenset[_Place]) -> tuple[Graph, list[Any]]:
    """The graph with further inputs in the place of numbers, and these numbers."""
    inputs, numbers = list(graph.inputs), []

    def further(dtype: Any, value: Any) -> Var:
        inputs.append(Var(f"x{len(inputs)}", (), dtype))
        numbers.append(np.asarray(value, dtype))
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
    ), numbers


def _dtype(node: Node, i: int) -> Any:
    """The dtype of an array that does what the number does as operand i; None if there is none."""
    kinds = [v.dtype for v in node.reads if v.dtype != bool]
    if node.name == "pow" or len(set(kinds)) != 1:  # NumPy knows some powers by their numbers
        return None
    dtype = np.result_type(kinds[0], node.operands[i])
    operands = [Var("n", (), dtype) if k == i else a for k, a in enumerate(node.operands)]
    try:
        found = node.primitive.aval(operands, node.params)
    except Exception:
        return None
    fits = not isinstance(found, tuple) and found.dtype == node.results[0].dtype
    return dtype if fits else None
