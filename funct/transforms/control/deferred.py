"""Sums over a loop's steps that one product after the loop gives.

The cotangent of what a loop holds is a sum over its steps. Where each term is a product of matrices
that are smaller than the sum (the weights of a recurrent layer: a column times a row), the steps
give the factors, and one product of all of them is the sum: each step then writes a few vectors,
not a matrix.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import Any

import attrs
from msgspec import Struct

from funct import ops
from funct.graph import Graph, Node, Var

__all__ = ["Deferred", "deferred"]


class Factor(Struct, frozen=True):
    """One factor of a step's product. given: which input of the body it is, which needs not be
    written again; None: the steps give it. turned: whether the factor is that matrix transposed.
    """

    given: int | None
    turned: bool


class Deferred(Struct, frozen=True, eq=False):
    """graph: gives, for its first `count` outputs, those that are still added up step by step; then
    all others; then what is made for the sums that are not. late: which of the sums those are.
    factors: two for each of them.
    """

    graph: Graph
    count: int
    late: tuple[int, ...]
    factors: tuple[Factor, ...]

    @property
    def made(self) -> int:
        """How many factors the steps give."""
        return sum(f.given is None for f in self.factors)

    def sums(self, added: Sequence[Any], made: Sequence[Any], given: Sequence[Any]) -> list[Any]:
        """All sums in order. made: what the steps gave for the factors; given: the inputs of the
        body; both with the steps on axis 0.
        """
        early, left = iter(added), iter(made)
        held = [(next(left) if f.given is None else given[f.given], f.turned) for f in self.factors]
        pairs = iter(zip(held[::2], held[1::2], strict=True))
        total = self.count + len(self.late)
        return [_product(*next(pairs)) if k in self.late else next(early) for k in range(total)]


def _product(x: tuple[Any, bool], y: tuple[Any, bool]) -> Any:
    """The sum over the steps of x @ y; None where one is absent."""
    if x[0] is None or y[0] is None:
        return None
    return ops.matmul(_side_by_side(*x, axis=1), _side_by_side(*y, axis=0))


def _side_by_side(x: Any, turned: bool, axis: int) -> Any:
    """The matrices of all steps as one, along an axis; transposed where they are turned."""
    if turned:
        return ops.permute_dims(_side_by_side(x, False, 1 - axis), (1, 0))
    if axis == 1:
        x = ops.permute_dims(x, (1, 0, 2))
        return ops.reshape(x, (x.shape[0], x.shape[1] * x.shape[2]))
    return ops.reshape(x, (x.shape[0] * x.shape[1], x.shape[2]))


def deferred(graph: Graph, count: int, given: Container[int], steps: Any) -> Deferred:
    """A body whose first `count` outputs are to be added up over so many steps. given: which of its
    inputs are a row of an array in each.
    """
    made = {v: e for e in graph.nodes if isinstance(e, Node) for v in e.results}
    rows = {v: k for k, v in enumerate(graph.inputs) if k in given}
    late: list[int] = []
    factors: list[Factor] = []
    written: list[Var] = []
    for k, out in enumerate(graph.outputs[:count]):
        e = made.get(out)
        if e is None or e.name != "matmul" or not isinstance(steps, int):
            continue  # factors are kept for a number of steps that is known
        x, y = e.operands
        if isinstance(x, Var) and isinstance(y, Var) and _pays(x, y, out):
            late.append(k)
            for v in (x, y):
                before = _before_turned(v, made)
                factors.append(Factor(rows.get(before), before is not v))
                written += [before] if before not in rows else []
    early = [v for k, v in enumerate(graph.outputs[:count]) if k not in late]
    outputs = (*early, *graph.outputs[count:], *written)
    changed = attrs.evolve(graph, outputs=outputs)
    return Deferred(changed, len(early), tuple(late), tuple(factors))


def _before_turned(v: Var, made: Mapping[Var, Node]) -> Var:
    """The matrix that a transpose is of."""
    e = made.get(v)
    if e is not None and e.name == "permute_dims" and tuple(e.params[0]) == (1, 0):
        (before,) = e.operands
        return before if isinstance(before, Var) else v
    return v


def _pays(x: Var, y: Var, out: Var) -> bool:
    """Whether the factors are matrices, fewer elements than their product, and of its dtype."""
    if {x.dtype, y.dtype} != {out.dtype}:
        return False
    sizes = [*x.shape, *y.shape]
    if len(x.shape) != 2 or len(y.shape) != 2 or not all(isinstance(n, int) for n in sizes):
        return False
    (m, k), n = x.shape, y.shape[1]
    return k * (m + n) < m * n
