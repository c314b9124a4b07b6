"""Functions by their approximations: fewer instructions, and a few ulp of error."""

from __future__ import annotations

from typing import Any

import attrs

from funct.core import FLOATING, Primitive, lookup, variant
from funct.graph.controls import Written, made_again, written
from funct.graph.given import of_graph
from funct.graph.ir import Control, Entry, Graph, Node, Var
from funct.graph.passes.inline_calls import inline_calls

__all__ = ["approximate"]

# What has an approximation that pays, in `funct/kernels/llvm/fast.py`.
_NAMES = ("cos", "erf", "exp", "exp2", "logaddexp", "pow", "sigmoid", "sin", "tanh")


def _fast(name: str) -> tuple[Primitive, Primitive]:
    prim = lookup(name)
    assert prim is not None
    return prim, variant(prim, f"fast_{name}")


_FAST = dict(map(_fast, _NAMES))


@of_graph
def approximate(graph: Graph) -> Graph:
    """The graph with `fast_exp` in place of `exp`, and so on: machine code may err by a few ulp.

    Interpreted, such an op is the exact one; so it is in code of NumPy calls. Powers are left alone
    but for those by a number that is no integer. The bodies of branches and loops are rewritten
    too. Calls are inlined. `jit(f, fast=True)` compiles every graph after this pass.

    Example:
        >>> import funct as ft, funct.array as xp
        >>> from funct.graph import approximate
        >>> graph = approximate(ft.make_graph(lambda x: xp.exp(x) + 1.0)(xp.ones(3)))
        >>> [node.name for node in graph.nodes]
        ['fast_exp', 'add']
    """
    plain = inline_calls(graph)
    return attrs.evolve(plain, nodes=tuple([_approximated(e) for e in plain.nodes]))


def _approximated(e: Entry) -> Entry:
    if not isinstance(e, Node):
        return e
    if isinstance(e.primitive, Control):
        form = written(e.primitive)
        if form is None:  # what it computes is no data: it stays exact
            return e
        bodies = tuple([approximate(g) for g in form.graphs])
        return attrs.evolve(e, primitive=made_again(Written(form.kind, bodies, form.values)))
    fast = _FAST.get(e.primitive)
    values = [v for v in (*e.operands, *e.results) if isinstance(v, Var)]
    if fast is None or not _fits(e) or any(v.dtype not in FLOATING for v in values):
        return e
    return attrs.evolve(e, primitive=fast)


def _fits(e: Node) -> bool:
    """Whether a power is one of positive numbers alone, and NaN below 0."""
    y: Any = e.operands[-1]
    return e.name != "pow" or (isinstance(y, float) and not y.is_integer())
