"""Algebra that changes no bit: neutral elements, double negation, ops that undo each other.

A rule stands here only if it holds for every element: -0.0, infinities, NaN, the largest integer.
So x * 1 is x, but x + 0.0 is not (-0.0 becomes 0.0) while x - 0.0 is; and no rule for complex
products, in which a real factor of one makes NaN of an infinity.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from funct.core import FLOATING, INEXACT, NARROW, lookup
from funct.graph.given import of_graph
from funct.graph.ir import Graph, Node, Var
from funct.graph.passes.compose_views import VIEWS
from funct.graph.passes.peephole import Maker, Rule, made_by, peephole, rebuilt, same_type

__all__ = ["simplify"]

COMPLEX = INEXACT - FLOATING


@of_graph
def simplify(graph: Graph) -> Graph:
    """The graph without ops that do nothing, and with chains of views composed.

    Every result keeps its bits.
    """
    return peephole(graph, _RULES)


def _alias(node: Node, a: Any) -> Var | None:
    """The operand, where it has the result's type."""
    return a if isinstance(a, Var) and same_type(a, node.results[0]) else None


def _is(a: Any, value: int) -> bool:
    return isinstance(a, bool | int | float) and a == value


def _times_one(node: Node, maker: Maker) -> Var | None:
    x, y = node.operands
    if node.results[0].dtype in COMPLEX:
        return None
    return _alias(node, x) if _is(y, 1) else _alias(node, y) if _is(x, 1) else None


def _over_one(node: Node, maker: Maker) -> Var | None:
    x, y = node.operands
    return _alias(node, x) if _is(y, 1) and node.results[0].dtype not in COMPLEX else None


def _plus_zero(node: Node, maker: Maker) -> Var | None:
    x, y = node.operands
    for a, zero in ((x, y), (y, x)):
        exact = node.results[0].dtype not in INEXACT or (
            isinstance(zero, float) and math.copysign(1.0, zero) < 0
        )
        if _is(zero, 0) and exact and node.results[0].dtype not in COMPLEX:
            return _alias(node, a)
    return None


def _minus_zero(node: Node, maker: Maker) -> Var | None:
    x, y = node.operands
    negative = isinstance(y, float) and math.copysign(1.0, y) < 0
    exact = node.results[0].dtype not in INEXACT or not negative
    fits = _is(y, 0) and exact and node.results[0].dtype not in COMPLEX
    return _alias(node, x) if fits else None


def _undoes(name: str) -> Rule:
    """f(f(x)) is x."""

    def rule(node: Node, maker: Maker) -> Var | None:
        inner = made_by(maker, node.operands[0], name)
        return _alias(node, inner.operands[0]) if inner is not None else None

    return rule


def _again(name: str) -> Rule:
    """f(f(x)) is f(x)."""

    def rule(node: Node, maker: Maker) -> Var | None:
        inner = made_by(maker, node.operands[0], name)
        return _alias(node, node.operands[0]) if inner is not None else None

    return rule


def _negative(node: Node, maker: Maker, a: Any) -> Node | None:
    """What made the operand, if it is a negation in the result's dtype, and that has signs: the
    negative of an unsigned number, or of the least integer, is another one in a wider dtype.
    """
    inner = made_by(maker, a, "negative")
    fits = inner is not None and inner.results[0].dtype == node.results[0].dtype
    return inner if fits and node.results[0].dtype.kind != "u" else None


def _even(node: Node, maker: Maker) -> Any:
    """f(-x) is f(x)."""
    inner = _negative(node, maker, node.operands[0])
    return rebuilt(node, node.primitive, inner.operands) if inner is not None else None


def _plus_negative(node: Node, maker: Maker) -> Any:
    """x + (-y) is x - y, and (-x) + y is y - x."""
    x, y = node.operands
    for a, b in ((x, y), (y, x)):
        inner = _negative(node, maker, b)
        if inner is not None:
            return rebuilt(node, lookup("subtract"), (a, inner.operands[0]))
    return None


def _minus_negative(node: Node, maker: Maker) -> Any:
    """x - (-y) is x + y."""
    x, y = node.operands
    inner = _negative(node, maker, y)
    return rebuilt(node, lookup("add"), (x, inner.operands[0])) if inner is not None else None


def _both_negative(node: Node, maker: Maker) -> Any:
    """(-x) * (-y) is x * y."""
    x, y = (_negative(node, maker, a) for a in node.operands)
    if x is None or y is None:
        return None
    return rebuilt(node, node.primitive, (x.operands[0], y.operands[0]))


def _same_twice(node: Node, maker: Maker) -> Var | None:
    """f(x, x) is x."""
    x, y = node.operands[-2:]
    return _alias(node, x) if x is y else None


def _cast(node: Node, maker: Maker) -> Any:
    """No cast to the dtype that is there; one rounding where the first cast makes none."""
    x = node.operands[0]
    assert isinstance(x, Var)
    (dtype,) = node.params
    if x.dtype == dtype:
        return _alias(node, x)
    inner = made_by(maker, x, "astype")
    if inner is None or not isinstance(inner.operands[0], Var):
        return None
    first = inner.operands[0]
    if not _lossless(first.dtype, x.dtype):
        return None
    if first.dtype == dtype:
        return _alias(node, first)
    if dtype in INEXACT and dtype not in COMPLEX and dtype not in NARROW:
        return rebuilt(node, node.primitive, (first,), (dtype,))
    return None


def _of_one(node: Node, maker: Maker) -> Any:
    """What reduces axes of one element each is a reshape; sums of floats begin with 0, not -0."""
    (x,), out, (axes, _) = node.operands, node.results[0], node.params
    exact = out.dtype not in INEXACT if node.name == "reduce_sum" else out.dtype not in COMPLEX
    assert isinstance(x, Var)
    if not exact or x.dtype != out.dtype or any(repr(x.shape[a]) != "1" for a in axes):
        return None
    reshape = lookup("reshape")
    assert reshape is not None
    return rebuilt(node, reshape, (x,), (out.shape,))


def _of_as_many(node: Node, maker: Maker) -> Any:
    """A size that is open is asked of the first array that has it: what is computed of that one
    then need not be in memory.
    """
    (x,), inner = node.operands, maker(node.operands[0])
    for a in inner.operands if inner is not None else ():
        if isinstance(a, Var) and isinstance(x, Var) and repr(a.shape) == repr(x.shape):
            return rebuilt(node, node.primitive, (a,), node.params)
    return None


def _lossless(small: np.dtype[Any], large: np.dtype[Any]) -> bool:
    if small in NARROW or large in NARROW or small in COMPLEX or large in COMPLEX:
        return False
    grows = small.itemsize < large.itemsize or small.kind == "b"
    return grows and np.can_cast(small, large, "safe")


_RULES: dict[str, tuple[Rule, ...]] = {
    **VIEWS,
    "multiply": (_times_one, _both_negative),
    "divide": (_over_one,),
    "pow": (_over_one,),
    "add": (_plus_zero, _plus_negative),
    "subtract": (_minus_zero, _minus_negative),
    "negative": (_undoes("negative"),),
    "conj": (_undoes("conj"),),
    "logical_not": (_undoes("logical_not"),),
    "bitwise_invert": (_undoes("bitwise_invert"),),
    "abs": (_even, _again("abs")),
    "square": (_even,),
    "astype": (_cast,),
    "size_along": (_of_as_many,),
    **{n: (_again(n),) for n in ("floor", "ceil", "trunc", "round", "relu", "stop_gradient")},
    **{f"reduce_{n}": (_of_one,) for n in ("max", "min", "prod", "sum")},
    **dict.fromkeys(("any", "all"), (_of_one,)),
    **dict.fromkeys(("where", "maximum", "minimum"), (_same_twice,)),
    **dict.fromkeys(("logical_and", "logical_or", "bitwise_and", "bitwise_or"), (_same_twice,)),
}  # fmt: skip
