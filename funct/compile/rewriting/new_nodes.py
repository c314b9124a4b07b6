"""Nodes written while a graph is rewritten: what all rewritings for machine code share."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeGuard

import attrs
import numpy as np

from funct.array import Array, asarray
from funct.compile.joins import concat_of
from funct.compile.readers import decisive
from funct.core import lookup
from funct.graph import Graph, Node, Var, capture

__all__ = ["Known", "NewNodes", "renamed", "swaps"]

Known = dict[Var, Array]  # constants of a graph


class NewNodes:
    """The nodes that a walk over a graph has written, and the constants that they read.

    made_by: the node that makes each Var; site: the user's line, which new nodes get.
    """

    prefix = "w"  # of the names of new Vars, behind which their number is one that no Var has

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.nodes: list[Any] = []
        self.constants = dict(graph.constants)
        self.made_by: dict[Var, Node] = {}
        self.site: Any = None
        self._count = _last(self.prefix, graph)

    @functools.cached_property
    def decided(self) -> set[Var]:
        """What guards ask for, which has NumPy's bits."""
        return {v for e in decisive(self.graph) for v in e.results}

    def keep(self, e: Node) -> None:
        """Write a node."""
        self.nodes.append(e)
        for v in e.results:
            self.made_by[v] = e

    def var(self, shape: Sequence[int], dtype: Any) -> Var:
        """A new Var."""
        self._count += 1
        return Var(f"{self.prefix}{self._count}", tuple(shape), np.dtype(dtype))

    def apply(self, name: str, operands: Any, params: Any, shape: Any, dtype: Any) -> Var:
        """The result of an op."""
        return self.apply_to(name, operands, params, self.var(shape, dtype))

    def apply_to(self, name: str, operands: Any, params: Any, out: Var) -> Var:
        """The same, as a Var that is there."""
        primitive = lookup(name)
        assert primitive is not None
        self.keep(Node(primitive, tuple(operands), tuple(params), (out,), self.site))
        return out

    def concat(self, parts: Sequence[Var], axis: int, out: Var) -> Var:
        """Arrays of one dtype one behind the other."""
        primitive = concat_of(len(parts))
        self.keep(Node(primitive, tuple(parts), (axis,), (out,), self.site))
        return out

    def reshape(self, x: Var, shape: Sequence[int]) -> Var:
        """x in this shape: itself if it has it."""
        shape = tuple(shape)
        if shape == tuple(x.shape):
            return x
        return self.apply("reshape", (x,), (shape,), shape, x.dtype)

    def permute(self, x: Var, axes: Sequence[int]) -> Var:
        """x with its axes in this order: itself if they are."""
        if list(axes) == list(range(len(x.shape))):
            return x
        return self.apply("permute_dims", (x,), (tuple(axes),), [x.shape[a] for a in axes], x.dtype)

    def private(
        self, name: str, operands: Sequence[Var], params: Any, *avals: tuple[Any, Any]
    ) -> list[Var]:
        """The results, of these shapes and dtypes, of an op that only programs know."""
        known = lookup("solve")  # what is asked of a primitive that is no loops it answers as well
        assert known is not None
        results = [self.var(*aval) for aval in avals]
        primitive = attrs.evolve(known, name=name)
        self.keep(Node(primitive, tuple(operands), tuple(params), tuple(results), self.site))
        return results

    def finished(self, new: Mapping[Any, Var]) -> Graph:
        """The graph of the nodes that were written; new: what outputs are now, if others."""
        return attrs.evolve(
            self.graph, nodes=tuple(self.nodes), constants=tuple(self.constants.items()),
            outputs=tuple([new.get(v, v) for v in self.graph.outputs]),
        )  # fmt: skip

    def constant(self, x: np.ndarray[Any, Any]) -> Var:
        """An array that is known."""
        v = self.var(x.shape, x.dtype)
        held = asarray(x)
        assert isinstance(held, Array)
        self.constants[v] = held
        return v

    def spelled(self, fn: Callable[..., Any], given: Sequence[Var]) -> list[Any]:
        """The nodes of a function of these arrays, and its results."""
        inner, outer = capture(fn, [v.aval for v in given])
        assert not outer, "a function of its operands alone"
        new: dict[Any, Any] = dict(zip(inner.inputs, given, strict=True))
        for v, x in inner.constants:  # whose names are those of the other graph's constants too
            new[v] = self.var(v.shape, v.dtype)
            self.constants[new[v]] = x
        for e in inner.nodes:
            assert isinstance(e, Node), "it decides on nothing"
            results = tuple([self.var(v.shape, v.dtype) for v in e.results])
            operands = tuple([new.get(a, a) for a in e.operands])
            new |= zip(e.results, results, strict=True)
            self.keep(Node(e.primitive, operands, e.params, results, self.site))
        return [new.get(v, v) for v in inner.outputs]


def renamed(e: Any, new: dict[Any, Any]) -> Any:
    """An entry with other operands for some."""
    if not isinstance(e, Node) or new.keys().isdisjoint(e.operands):
        return e
    return attrs.evolve(e, operands=tuple([new.get(a, a) for a in e.operands]))


def swaps(e: Node | None) -> TypeGuard[Node]:
    """Whether a node turns matrices, and nothing else."""
    if e is None or e.name != "permute_dims":
        return False
    *lead, row, column = e.params[0] if len(e.params[0]) > 1 else (0, 0)
    return list(lead) == list(range(len(lead))) and row == column + 1


def _last(prefix: str, graph: Graph) -> int:
    """The largest number behind a prefix in the names of a graph: rewritings follow each other."""
    made = [v for e in graph.nodes if isinstance(e, Node) for v in e.results]
    names = [v.name for v in (*graph.inputs, *[v for v, _ in graph.constants], *made)]
    numbers = [name.removeprefix(prefix) for name in names if name.startswith(prefix)]
    return max([int(n) for n in numbers if n.isdigit()], default=0)
