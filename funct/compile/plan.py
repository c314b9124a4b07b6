"""Plan a graph for repeated execution: which buffers die when, and which results may reuse one.

A result may be written into an operand's buffer when the op is a NumPy ufunc, shape and dtype
agree, and that buffer was made by this graph, dies here, and nothing that lives on is a view of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs
import numpy as np

from funct.graph import Graph, Guard, Node, Var, eliminate_dead, inline_calls, share_common

__all__ = ["Plan", "Step", "plan"]

# What these return may share memory with their operand.
_VIEWS = frozenset({
    "reshape", "broadcast_to", "permute_dims", "slice_", "flip", "windows", "stop_gradient", "real",
    "imag", "absorb",
})  # fmt: skip


@attrs.frozen(eq=False)
class Step:
    """One entry, the Var whose buffer its result takes over, and the Vars that die after it."""

    entry: Node | Guard
    reuse: Var | None
    dead: tuple[Var, ...]


@attrs.frozen(eq=False)
class Plan:
    """A graph without calls, in execution order with lifetimes."""

    graph: Graph
    steps: tuple[Step, ...]


def plan(graph: Graph, *, guards: bool = True) -> Plan:
    """Inline, share, drop the dead, and find lifetimes."""
    graph = eliminate_dead(share_common(inline_calls(graph)), guards=guards)
    root: dict[Var, Var] = {}
    last = _last_uses(graph)
    # a buffer lives as long as the last view of it
    owners: dict[Var, int] = {}
    for k, e in enumerate(graph.nodes):
        if isinstance(e, Node):
            for v in e.results:
                source = (
                    e.operands[-1] if e.name == "absorb" else e.operands[0] if e.operands else None
                )
                shared = e.name in _VIEWS and isinstance(source, Var)
                root[v] = root.get(source, source) if shared else v  # type: ignore[arg-type]
                if not shared and _fresh(e):
                    owners[v] = k
    alive_until = dict(last)
    for v, r in root.items():
        if r is not v:
            alive_until[r] = max(alive_until.get(r, -1), last.get(v, -1))
    steps: list[Step] = []
    taken: set[Var] = set()
    for k, e in enumerate(graph.nodes):
        assert isinstance(e, Node | Guard)
        reuse = _reusable(e, k, owners, alive_until, taken) if isinstance(e, Node) else None
        if reuse is not None:
            taken.add(reuse)
        steps.append(Step(e, reuse, _deaths(e, k, last)))
    return Plan(graph, tuple(steps))


def _fresh(node: Node) -> bool:
    """Whether the result is a new buffer that nobody else holds; 0-d ones are NumPy scalars."""
    is_array = bool(node.results[0].shape)
    return is_array and (
        isinstance(node.primitive.raw, np.ufunc) or node.name in ("matmul", "convolution")
    )


def _last_uses(graph: Graph) -> dict[Var, int]:
    last: dict[Var, int] = {}
    for k, e in enumerate(graph.nodes):
        for v in (e.operand,) if isinstance(e, Guard) else e.operands:
            if isinstance(v, Var):
                last[v] = k
    for v in graph.outputs:
        last[v] = len(graph.nodes)
    return last


def _reusable(
    node: Node, k: int, owners: Mapping[Var, int], alive_until: Mapping[Var, int], taken: set[Var]
) -> Var | None:
    if not isinstance(node.primitive.raw, np.ufunc) or node.params:
        return None
    out = node.results[0]
    for v in node.operands:
        dies = isinstance(v, Var) and v in owners and v not in taken and alive_until.get(v) == k
        if dies and repr(v.shape) == repr(out.shape) and v.dtype == out.dtype:
            return v
    return None


def _deaths(e: Any, k: int, last: Mapping[Var, int]) -> tuple[Var, ...]:
    used = (e.operand,) if isinstance(e, Guard) else (*e.operands, *e.results)
    names = dict.fromkeys(v for v in used if isinstance(v, Var))
    return tuple([v for v in names if last.get(v, k) <= k])
