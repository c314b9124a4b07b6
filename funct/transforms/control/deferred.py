"""Sums over a loop's steps that one product after the loop gives.

The cotangent of what a loop holds is a sum over its steps. Where each term is a product of matrices
that are smaller than the sum (the weights of a recurrent layer: a column times a row), the steps
give the factors, and one product of all of them is the sum: each step then writes a few vectors,
not a matrix.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs

from funct import ops
from funct.graph import Graph, Node, Var

__all__ = ["Deferred", "deferred"]


@attrs.frozen(eq=False)
class Deferred:
    """graph: gives, for its first `count` outputs, those that are still added up step by step; then
    all others; then the two factors of each sum that is not. late: which of the sums those are.
    """

    graph: Graph
    count: int
    late: tuple[int, ...]

    def sums(self, added: Sequence[Any], factors: Sequence[Any]) -> list[Any]:
        """All sums in order. factors: with the steps on axis 0."""
        early, pairs = iter(added), iter(zip(factors[::2], factors[1::2], strict=True))
        total = self.count + len(self.late)
        return [_product(*next(pairs)) if k in self.late else next(early) for k in range(total)]


def _product(x: Any, y: Any) -> Any:
    """The sum over the steps of x @ y."""
    steps, m, k = x.shape
    left = ops.reshape(ops.permute_dims(x, (1, 0, 2)), (m, steps * k))
    return ops.matmul(left, ops.reshape(y, (steps * k, y.shape[2])))


def deferred(graph: Graph, count: int, steps: Any) -> Deferred:
    """A body whose first `count` outputs are to be added up over so many steps."""
    made = {v: e for e in graph.nodes if isinstance(e, Node) for v in e.results}
    late: list[int] = []
    factors: list[Var] = []
    for k, out in enumerate(graph.outputs[:count]):
        e = made.get(out)
        if e is None or e.name != "matmul" or not isinstance(steps, int):
            continue  # factors are kept for a number of steps that is known
        x, y = e.operands
        if isinstance(x, Var) and isinstance(y, Var) and _pays(x, y, out):
            late.append(k)
            factors += [x, y]
    early = [v for k, v in enumerate(graph.outputs[:count]) if k not in late]
    outputs = (*early, *graph.outputs[count:], *factors)
    return Deferred(attrs.evolve(graph, outputs=outputs), len(early), tuple(late))


def _pays(x: Var, y: Var, out: Var) -> bool:
    """Whether the factors are matrices, fewer elements than their product, and of its dtype."""
    if {x.dtype, y.dtype} != {out.dtype}:
        return False
    sizes = [*x.shape, *y.shape]
    if len(x.shape) != 2 or len(y.shape) != 2 or not all(isinstance(n, int) for n in sizes):
        return False
    (m, k), n = x.shape, y.shape[1]
    return k * (m + n) < m * n
