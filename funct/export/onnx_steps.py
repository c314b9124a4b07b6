"""From graph nodes to steps: what is lowered, after bias additions have joined their products.

Whoever opens the file expects `Conv` with three inputs and `Gemm`, and runtimes fuse those; the
graph has `convolution`, `matmul`, `permute_dims`, `reshape` and `add`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import attrs

from funct.core import Absent, Lowering, Primitive
from funct.graph import Graph, Node, Var
from funct.source import Site

__all__ = ["Step", "steps"]


@attrs.frozen(eq=False)
class Step:
    """One lowering to run: a graph node, or several that became one."""

    primitive: Primitive
    lower: str | Lowering | Absent
    operands: tuple[Any, ...]
    params: tuple[Any, ...]
    results: tuple[Var, ...]
    site: Site | None

    @property
    def name(self) -> str:
        """Name of the primitive."""
        return self.primitive.name


def steps(graph: Graph) -> list[Step]:
    """The steps that compute the graph's outputs, in order."""
    nodes = [e for e in graph.nodes if isinstance(e, Node)]
    finder = _Finder(nodes, graph.outputs)
    found = [_fused(node, finder) or _plain(node) for node in nodes]
    live: set[Var] = set(graph.outputs)
    kept = []
    for step in reversed(found):
        if not live.isdisjoint(step.results):
            kept.append(step)
            live.update(a for a in step.operands if isinstance(a, Var))
    return kept[::-1]


def _plain(node: Node) -> Step:
    return Step(
        node.primitive, node.primitive.onnx, node.operands, node.params, node.results, node.site
    )


class _Finder:
    """Who computes a value, and who else needs it."""

    def __init__(self, nodes: list[Node], outputs: tuple[Var, ...]) -> None:
        self.makers = {v: node for node in nodes for v in node.results}
        self.uses = Counter(
            [*outputs, *(a for n in nodes for a in n.operands if isinstance(a, Var))]
        )

    def maker(self, v: Any, name: str) -> Node | None:
        """The node that computes v, if its primitive has that name."""
        node = self.makers.get(v) if isinstance(v, Var) else None
        return node if node is not None and node.name == name else None


def _fused(node: Node, finder: _Finder) -> Step | None:
    if node.name == "matmul":
        return _gemm(node, None, node, finder)
    if node.name != "add":
        return None
    for product, bias in (node.operands, node.operands[::-1]):
        if isinstance(bias, Var) and isinstance(product, Var) and finder.uses[product] == 1:
            step = _with_bias(node, product, bias, finder)
            if step is not None and _one_dtype(step):
                return step
    return None


def _one_dtype(step: Step) -> bool:
    return len({v.dtype for v in (*step.operands, *step.results)}) == 1


def _with_bias(node: Node, product: Var, bias: Var, finder: _Finder) -> Step | None:
    convolution = finder.maker(product, "convolution")
    if convolution is not None:
        vector = _channels(bias, product, finder)
        return None if vector is None else _conv(node, convolution, vector)
    matmul = finder.maker(product, "matmul")
    return None if matmul is None else _gemm(node, bias, matmul, finder)


def _channels(bias: Var, product: Var, finder: _Finder) -> Var | None:
    """The vector (O,) that bias spreads over (N, O, *T), if it is one."""
    count, rank = product.shape[1], len(product.shape)
    reshape = finder.maker(bias, "reshape")
    if reshape is None or not isinstance(reshape.operands[0], Var):
        return None
    wide = (1,) * (rank - len(bias.shape)) + bias.shape
    if wide != (1, count, *(1,) * (rank - 2)) or reshape.operands[0].shape != (count,):
        return None
    return reshape.operands[0]


def _conv(node: Node, convolution: Node, bias: Var) -> Step:
    prim = convolution.primitive
    operands = (*convolution.operands, bias)
    return Step(
        prim, _three_inputs(prim.onnx), operands, convolution.params, node.results, node.site
    )


def _three_inputs(lower: Any) -> Callable[..., Any]:
    def with_bias(w: Any, x: str, k: str, bias: str, *params: Any) -> Any:
        return lower(w, x, k, *params, bias=bias)

    return with_bias


def _gemm(node: Node, bias: Var | None, matmul: Node, finder: _Finder) -> Step | None:
    """x @ w.T (+ bias) of matrices as Gemm; a product without either stays MatMul."""
    x, y = matmul.operands
    if not isinstance(x, Var) or not isinstance(y, Var) or len(x.shape) != 2 or len(y.shape) != 2:
        return None
    if x.dtype.kind != "f" or (bias is not None and not _row(bias, y.shape[1])):
        return None
    flipped = finder.maker(y, "permute_dims")
    if flipped is None and bias is None:
        return None
    right = y if flipped is None else flipped.operands[0]
    attributes = {} if flipped is None else {"transB": 1}
    operands = (x, right) if bias is None else (x, right, bias)

    def lower(w: Any, *names: str) -> str:
        return str(w.op("Gemm", *names, **attributes))

    return Step(matmul.primitive, lower, operands, (), node.results, node.site)


def _row(bias: Var, count: Any) -> bool:
    return bias.shape in ((count,), (1, count))
