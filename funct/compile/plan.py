"""Plan a graph for repeated execution: which buffers die when, and which results may reuse one.

A result may be written into an operand's buffer when the op is a NumPy ufunc, shape and dtype
agree, and that buffer was made by this graph, dies here, and nothing that lives on is a view of it.
Nor may the order of elements in memory differ from that of a fresh result (Note [Layouts]).

Note [Layouts]: NumPy lays a fresh result out like its operands, rows or columns first, and sums in
memory order. A reused buffer that is laid out otherwise gives, some sums later, other last bits
than eager execution. So a buffer is taken over only where every operand that has a say is laid out
like it. What has another kernel for many elements (`asks`) makes its results itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from funct.compile.text import asks
from funct.core import is_one
from funct.graph import Graph, Guard, Node, Var, eliminate_dead, inline_calls, share_common
from funct.kernels.elementwise.functions import is_ufunc

__all__ = ["Plan", "Step", "makes_new_buffer", "plan"]

# Besides ufuncs, the ops whose results never share memory with an operand. Any other op is taken
# to return a view of all its operands: that costs a buffer now and then, never a wrong number.
_NEW = frozenset({
    "all", "any", "argmax", "argmin", "argsort", "astype", "avg_pool", "concat", "contract",
    "convolution", "convolution_input", "convolution_weight", "cumulative_prod", "cumulative_sum",
    "embed", "fold_windows", "linear_recurrence", "matmul", "max_pool", "max_pool_index", "put",
    "put_along_axis", "reduce_max", "reduce_min", "reduce_prod", "reduce_sum", "scatter",
    "scatter_add", "scatter_combine", "sort", "take", "take_along_axis", "top_k", "where",
})  # fmt: skip


# Of those, the ones besides ufuncs whose result has no gaps: it is what a ufunc would have made.
_DENSE = frozenset({"astype", "concat", "matmul", "reduce_max", "reduce_min", "reduce_sum"})


class Step(Struct, frozen=True, eq=False):
    """One entry, the Var whose buffer its result takes over, and the Vars that die after it."""

    entry: Node | Guard
    reuse: Var | None
    dead: tuple[Var, ...]


class Plan(Struct, frozen=True, eq=False):
    """A graph without calls, in execution order with lifetimes."""

    graph: Graph
    steps: tuple[Step, ...]


def makes_new_buffer(node: Node) -> bool:
    """Whether no result of the node shares memory with an operand."""
    return is_ufunc(node.primitive.raw) or node.name in _NEW


def plan(graph: Graph, *, guards: bool = True) -> Plan:
    """Inline, share, drop the dead, and find lifetimes."""
    graph = eliminate_dead(share_common(inline_calls(graph)), guards=guards)
    last = _last_uses(graph)
    buffers = _buffers(graph)
    until = _lifetimes(buffers, last)
    layouts = _layouts(graph)
    steps: list[Step] = []
    taken: set[Var] = set()
    for k, e in enumerate(graph.nodes):
        assert isinstance(e, Node | Guard), "calls are inlined"
        reuse = _reusable(e, k, buffers, until, layouts, taken) if isinstance(e, Node) else None
        if reuse is not None:
            taken.add(reuse)
        steps.append(Step(e, reuse, _deaths(e, k, last)))
    return Plan(graph, tuple(steps))


def _last_uses(graph: Graph) -> dict[Var, int]:
    last: dict[Var, int] = {}
    for k, e in enumerate(graph.nodes):
        for v in (e.operand,) if isinstance(e, Guard) else e.operands:
            if isinstance(v, Var):
                last[v] = k
    for v in graph.outputs:
        last[v] = len(graph.nodes)
    return last


def _buffers(graph: Graph) -> dict[Var, frozenset[Var]]:
    """For each result, the results whose buffers it may read: itself where it is new.

    Inputs and constants have no entry: their buffers are not ours. Neither have new results that
    nothing may take over: 0-d ones, which NumPy gives as scalars, and those with gaps.
    """
    found: dict[Var, frozenset[Var]] = {}
    for e in graph.nodes:
        if not isinstance(e, Node):
            continue
        seen = [found[a] for a in e.operands if isinstance(a, Var) and a in found]
        shared = frozenset[Var]().union(*seen)
        dense = is_ufunc(e.primitive.raw) or e.name in _DENSE
        for v in e.results:
            mine = frozenset([v] if dense and v.shape else [])
            found[v] = mine if makes_new_buffer(e) else shared
    return found


def _lifetimes(buffers: Mapping[Var, frozenset[Var]], last: Mapping[Var, int]) -> dict[Var, int]:
    """The last use of each buffer, through any of its views."""
    until: dict[Var, int] = {}
    for v, held in buffers.items():
        for b in held:
            until[b] = max(until.get(b, -1), last.get(v, -1))
    return until


def _layouts(graph: Graph) -> dict[Var, Any]:
    """A token for each Var; equal tokens mean the same order of elements in memory."""
    found: dict[Var, Any] = {v: v for v in (*graph.inputs, *[v for v, _ in graph.constants])}
    mixed: dict[tuple[Any, ...], object] = {}  # one token per mixture: tuples of tuples would grow
    for e in graph.nodes:
        if isinstance(e, Node):
            for v in e.results:
                found[v] = v
            if is_ufunc(e.primitive.raw) and not asks(e):
                tokens = tuple(dict.fromkeys(found[a] for a in _shaping(e)))
                found[e.results[0]] = (
                    tokens[0] if len(tokens) == 1 else mixed.setdefault(tokens, object())
                )
    return found


def _shaping(node: Node) -> list[Var]:
    """The operands that decide the layout of a ufunc's result: those with two axes or more."""
    held = [a for a in node.operands if isinstance(a, Var)]
    return [v for v in held if sum(not is_one(n) for n in v.shape) > 1]


def _reusable(
    node: Node,
    k: int,
    buffers: Mapping[Var, frozenset[Var]],
    until: Mapping[Var, int],
    layouts: Mapping[Var, Any],
    taken: set[Var],
) -> Var | None:
    if not is_ufunc(node.primitive.raw) or node.params or asks(node):
        return None
    out = node.results[0]
    if len({layouts[v] for v in _shaping(node)}) > 1:
        return None
    for v in node.operands:
        if (
            not isinstance(v, Var)
            or v in taken
            or buffers.get(v) != frozenset([v])
            or until[v] != k
        ):
            continue
        if repr(v.shape) == repr(out.shape) and v.dtype == out.dtype:
            return v
    return None


def _deaths(e: Any, k: int, last: Mapping[Var, int]) -> tuple[Var, ...]:
    used = (e.operand,) if isinstance(e, Guard) else (*e.operands, *e.results)
    names = dict.fromkeys(v for v in used if isinstance(v, Var))
    return tuple([v for v in names if last.get(v, k) <= k])
