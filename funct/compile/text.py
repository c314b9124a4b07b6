"""Calls and guards as lines of the Python function that a graph becomes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from funct.core import NARROW, Size
from funct.graph import Graph, Guard, Node, Var, same
from funct.kernels.elementwise.thresholds import EXACT, MANY, SLOW
from funct.ops.by_size import chosen

__all__ = ["MISS", "asks", "call_text", "guard_text", "literal", "scope"]

MISS = object()
_ASKING = SLOW - EXACT


def scope(graph: Graph) -> dict[str, Any]:
    """What the names in such lines mean: constants of the graph, and what literals are made of."""
    names: dict[str, Any] = {
        "MISS": MISS, "dtype": np.dtype, "inf": float("inf"), "nan": float("nan"), "same": same,
    }  # fmt: skip
    return names | {v.name: x.data for v, x in graph.constants}


def asks(node: Node) -> bool:
    """Whether eager execution has another kernel for so many elements, or may have one: where their
    number is not known the kernel is asked for at each call.
    """
    if node.name not in _ASKING:
        return False
    shapes = [v.shape for v in node.reads]
    known = all(isinstance(n, int) for shape in shapes for n in shape)
    return not known or any(math.prod(shape) >= MANY for shape in shapes)


def call_text(node: Node, reuse: Var | None, names: dict[str, Any]) -> str:
    """The line that computes a node, into the buffer of `reuse` where one is given."""
    prim = node.primitive
    fn = prim.name.replace(":", "_").replace(".", "_") + "_"  # a user's op has a namespace
    raw = prim.raw
    if asks(node):
        fn, raw = f"{fn}of_many_", chosen(prim)
    if names.setdefault(fn, raw) is not raw:  # two ops of one name: a user's and ours
        fn = f"{fn}{id(prim)}"
        names[fn] = raw
    args = [a.name if isinstance(a, Var) else literal(a, names) for a in node.operands]
    args += [literal(p, names) for p in node.params]
    if reuse is not None:
        args.append(f"out={reuse.name}")
    results = ", ".join(v.name for v in node.results)
    return f"    {results}{' = ' if results else ''}{fn}({', '.join(args)})"


def guard_text(guard: Guard, names: dict[str, Any]) -> str:
    """The line that leaves the function where a guard does not hold."""
    if guard.kind == "size":
        return f"    if not ({guard.expected}): return MISS"
    assert guard.operand is not None
    expected = literal(guard.expected, names)
    if guard.of_elements:
        return f"    if not same({guard.operand.name}, {expected}): return MISS"
    seen = f"{'int' if guard.kind == 'index' else guard.kind}({guard.operand.name}.item())"
    if guard.kind == "complex" or (guard.kind == "float" and not abs(guard.expected) > 0.0):
        # NaN is as NaN, and -0 not as 0
        return f"    if repr({seen}) != {repr(guard.expected)!r}: return MISS"
    return f"    if {seen} != {expected}: return MISS"


def literal(p: Any, names: dict[str, Any]) -> str:
    """Python text of a parameter; what has none (nan+infj, say) gets a name."""
    if p is None or isinstance(p, bool | int | float | str):
        return repr(p)
    if isinstance(p, Size):
        return f"({p!r})"
    if isinstance(p, np.dtype) and p not in NARROW:
        return repr(p)
    if isinstance(p, tuple):
        return f"({''.join(literal(v, names) + ', ' for v in p)})"
    name = f"param{len(names)}"  # which no value is called
    names[name] = p
    return name
