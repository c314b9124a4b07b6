"""Turn a plan into one Python function on bare buffers.

The function is printed and compiled: a call of a small graph then costs the NumPy calls in it and
nothing else. A guard that does not hold returns MISS. Beside it stands which of its lines came from
which of the user's, for errors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from funct.compile.plan import Plan, plan
from funct.core import NARROW, Size
from funct.graph import Graph, Guard, Node, Var
from funct.source import SITES

__all__ = ["MISS", "build", "source"]

MISS = object()


def build(graph: Graph, *, guards: bool = True, mode: str = "default") -> Callable[..., Any]:
    """`run(*buffers) -> tuple of buffers | MISS` for a graph without outer tracers."""
    text, names = source(plan(graph, guards=guards))
    exec(compile(text, "<funct graph>", "exec"), names)
    return names["run"]


def source(planned: Plan) -> tuple[str, dict[str, Any]]:
    """Text of the function and what its names mean."""
    graph = planned.graph
    names: dict[str, Any] = {
        "MISS": MISS, "dtype": np.dtype, "inf": float("inf"), "nan": float("nan"), "same": _same,
    }  # fmt: skip
    for v, x in graph.constants:
        names[v.name] = x.data
    lines = [f"def run({', '.join(v.name for v in graph.inputs)}):"]
    for s in graph.symbols:
        lines.append(f"    {s.name} = {graph.inputs[s.input].name}.shape[{s.axis}]")
    outputs = set(graph.outputs)
    sites: dict[int, Any] = {}
    for step in planned.steps:
        e = step.entry
        sites[len(lines) + 1] = e.site
        if isinstance(e, Guard):
            lines.append(_guard(e, names))
        else:
            lines.append(_call(e, step.reuse, names))
        made_here = {v.name for v in step.dead if v not in outputs and v.name.startswith("v")}
        if made_here:
            lines.append(f"    del {', '.join(sorted(made_here))}")
    lines.append(f"    return ({''.join(v.name + ', ' for v in graph.outputs)})")
    names[SITES] = sites
    return "\n".join(lines), names


def _call(node: Node, reuse: Var | None, names: dict[str, Any]) -> str:
    prim = node.primitive
    fn = prim.name.replace(":", "_").replace(".", "_") + "_"  # a user's op has a namespace
    names.setdefault(fn, prim.raw)
    if names[fn] is not prim.raw:  # two ops of one name: a user's and ours
        fn = f"{fn}{id(prim)}"
        names[fn] = prim.raw
    args = [a.name if isinstance(a, Var) else _literal(a, names) for a in node.operands]
    args += [_literal(p, names) for p in node.params]
    if reuse is not None:
        args.append(f"out={reuse.name}")
    results = ", ".join(v.name for v in node.results)
    return f"    {results}{' = ' if results else ''}{fn}({', '.join(args)})"


def _guard(guard: Guard, names: dict[str, Any]) -> str:
    if guard.kind == "size":
        return f"    if not ({guard.expected}): return MISS"
    assert guard.operand is not None
    expected = _literal(guard.expected, names)
    if guard.kind == "array":
        return f"    if not same({guard.operand.name}, {expected}): return MISS"
    kind = "int" if guard.kind == "index" else guard.kind
    if guard.expected != guard.expected:
        return f"    if {guard.operand.name} == {guard.operand.name}: return MISS"
    return f"    if {kind}({guard.operand.name}) != {expected}: return MISS"


def _same(found: Any, expected: Any) -> bool:
    return found.shape == expected.shape and bool(np.array_equal(found, expected))


def _literal(p: Any, names: dict[str, Any]) -> str:
    """Python text of a parameter; what has none (nan+infj, say) gets a name."""
    if p is None or isinstance(p, bool | int | float | str):
        return repr(p)
    if isinstance(p, Size):
        return f"({p!r})"
    if isinstance(p, np.dtype) and p not in NARROW:
        return repr(p)
    if isinstance(p, tuple):
        return f"({''.join(_literal(v, names) + ', ' for v in p)})"
    name = f"p{len(names)}"
    names[name] = p
    return name
