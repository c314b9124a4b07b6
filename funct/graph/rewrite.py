"""Find parts of a graph that compute what a function computes, and put another function there.

A pattern is a plain function. It is captured for example types, which gives its form: ops, numbers,
and how they hang together. Where that is found in a graph, the pattern is captured once more for
the types that are there, and what was found counts only if it is exactly that, parameters included.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from inspect import signature
from typing import Any

import attrs
import numpy as np

from funct.array import Array
from funct.core import ShapeDtype
from funct.errors import FunctError, GraphError
from funct.graph.check import check
from funct.graph.edit import splice
from funct.graph.ir import Entry, Graph, Node, Var
from funct.graph.passes import (
    eliminate_dead,
    exact,
    fresh_names,
    inline_calls,
    same_type,
    share_common,
    substituted,
)

__all__ = ["Match", "find", "rewrite"]

Fun = Callable[..., Any]
_SWAPS = frozenset({"add", "multiply", "maximum", "minimum", "equal", "not_equal"})


@attrs.frozen(eq=False)
class Match:
    """One place. operands: what stands for the pattern's arguments. nodes: what computes it, the
    last one last. result: its value.
    """

    operands: tuple[Var, ...]
    nodes: tuple[Node, ...]
    result: Var


@attrs.frozen(eq=False)
class _Pattern:
    """A captured pattern."""

    inputs: tuple[Var, ...]
    constants: Mapping[Var, Array]
    makers: Mapping[Var, Node]
    output: Var


def find(
    graph: Graph,
    pattern: Fun,
    like: Sequence[ShapeDtype] | None = None,
    where: Callable[[Match], bool] | None = None,
) -> list[Match]:
    """The places where the graph computes pattern(*operands), without overlap, in order.

    Args: pattern: a function of arrays, of one result, that is more than an argument. like: types
    that it can be captured for; None tries square matrices, vectors and scalars. where: tells which
    places count. Operands of sums and products match in both orders.
    Raises: GraphError: for a pattern that cannot be captured, decides, or does nothing.
    Example:
        >>> import funct as ft, funct.array as xp
        >>> graph = ft.make_graph(lambda x: xp.exp(x) / (1.0 + xp.exp(x)))(xp.ones(3))
        >>> [m.result.name for m in find(graph, lambda x: 1.0 + xp.exp(x))]
        ['v3']
    """
    shape = _skeleton(pattern, like)
    makers = {v: e for e in graph.nodes if isinstance(e, Node) for v in e.results}
    constants = dict(graph.constants)
    taken: set[Node] = set()
    found: list[Match] = []
    for e in graph.nodes:
        if not isinstance(e, Node) or len(e.results) != 1 or e in taken:
            continue
        for bound in _unify(shape, shape.output, e.results[0], {}, makers, constants, loose=True):
            match = _exactly(pattern, shape, bound, e, makers, constants)
            if match is None or not taken.isdisjoint(match.nodes):
                continue
            if where is None or where(match):
                taken.update(match.nodes)
                found.append(match)
                break
    return found


def rewrite(
    graph: Graph,
    pattern: Fun,
    replacement: Fun,
    like: Sequence[ShapeDtype] | None = None,
    where: Callable[[Match], bool] | None = None,
) -> Graph:
    """The graph with pattern(*operands) replaced by replacement(*operands) wherever it is found.

    Args: as `find`; replacement: a function of the same arguments, with the same type of result.
    Values inside of a match that others use are still computed.
    Raises: GraphError: where the replacement has another type.
    Example:
        >>> import funct as ft, funct.array as xp
        >>> graph = ft.make_graph(lambda x: xp.log(1.0 + xp.exp(x)))(xp.ones(3))
        >>> slow, good = lambda x: xp.log(1.0 + xp.exp(x)), lambda x: xp.logaddexp(x, 0.0)
        >>> [e.name for e in rewrite(graph, slow, good).nodes]
        ['logaddexp']
    """
    matches = {m.nodes[-1]: m for m in find(graph, pattern, like, where)}
    if not matches:
        return graph
    fresh = fresh_names(graph)
    alias: dict[Var, Var] = {}
    nodes: list[Entry] = []
    constants = list(graph.constants)
    for e in graph.nodes:
        match = matches.get(e) if isinstance(e, Node) else None
        nodes.append(substituted(e, alias))
        if match is None:
            continue
        operands = [alias.get(v, v) for v in match.operands]
        put = splice(replacement, operands, fresh, match.nodes[-1].site)
        if len(put.outputs) != 1 or not same_type(put.outputs[0], match.result):
            given = ", ".join(f"{v.dtype}{list(v.shape)}" for v in put.outputs)
            wanted = f"{match.result.dtype}{list(match.result.shape)}"
            raise GraphError(
                f"rewrite: the replacement gives {given} for {wanted}", site=match.nodes[-1].site
            )
        nodes += put.entries
        constants += put.constants
        alias[match.result] = put.outputs[0]
    outputs = tuple([alias.get(v, v) for v in graph.outputs])
    new = attrs.evolve(graph, nodes=tuple(nodes), outputs=outputs, constants=tuple(constants))
    return check(eliminate_dead(new))


def _skeleton(pattern: Fun, like: Sequence[ShapeDtype] | None) -> _Pattern:
    count = len(signature(pattern).parameters)
    dtype = np.dtype(np.float64)
    tries = [like] if like is not None else [
        [ShapeDtype(s, dtype)] * count for s in ((3, 3), (3,), (), (2, 3, 3), (2, 2, 3, 3))
    ]  # fmt: skip
    problem: Exception | None = None
    for avals in tries:
        try:
            return _captured(pattern, [Var(f"p{k}", a.shape, a.dtype) for k, a in enumerate(avals)])
        except GraphError:
            raise
        except (FunctError, TypeError, ValueError) as error:
            problem = error
    raise GraphError(
        f"find: the pattern cannot be captured: {problem}",
        fix="say for which types it can be: like=[ShapeDtype(...), ...]",
    )


def _captured(pattern: Fun, operands: Sequence[Var]) -> _Pattern:
    counter = iter(range(1 << 30))
    put = splice(pattern, operands, lambda: f"q{next(counter)}")
    whole = Graph(tuple(operands), put.constants, put.entries, put.outputs)
    whole = eliminate_dead(share_common(inline_calls(whole)))
    makers = {v: e for e in whole.nodes if isinstance(e, Node) for v in e.results}
    if len(whole.outputs) != 1 or whole.outputs[0] not in makers:
        raise GraphError("find: a pattern has one result, and does something")
    return _Pattern(tuple(operands), dict(whole.constants), makers, whole.outputs[0])


def _unify(
    p: _Pattern,
    ours: Any,
    theirs: Any,
    bound: Mapping[Var, Any],
    makers: Mapping[Var, Node],
    constants: Mapping[Var, Array],
    loose: bool,
) -> Iterator[Mapping[Var, Any]]:
    """Ways to take a value of the graph for a value of the pattern. loose: whatever parameters."""
    if not isinstance(ours, Var):
        if not isinstance(theirs, Var) and exact(ours) == exact(theirs):
            yield bound
        return
    if not isinstance(theirs, Var):
        return
    if ours in bound:
        if bound[ours] is theirs:
            yield bound
        return
    if ours in p.constants:
        x, y = p.constants[ours], constants.get(theirs)
        same = y is not None and (loose or same_type(ours, theirs)) and x.size == y.size
        if same and np.array_equal(np.ravel(x.data), np.ravel(y.data), equal_nan=True):  # type: ignore[union-attr]
            yield {**bound, ours: theirs}
        return
    mine = p.makers.get(ours)
    if mine is None:
        if loose or same_type(ours, theirs):
            yield {**bound, ours: theirs}
        return
    node = makers.get(theirs)
    if node is None or node.primitive is not mine.primitive:
        return
    if not loose and exact(node.params) != exact(mine.params):
        return
    if node.results.index(theirs) != mine.results.index(ours):
        return
    orders = [node.operands]
    if node.name in _SWAPS:
        orders.append(node.operands[::-1])
    for order in orders:
        yield from _each(p, mine.operands, order, {**bound, ours: theirs}, makers, constants, loose)


def _each(
    p: _Pattern,
    ours: Sequence[Any],
    theirs: Sequence[Any],
    bound: Mapping[Var, Any],
    makers: Mapping[Var, Node],
    constants: Mapping[Var, Array],
    loose: bool,
) -> Iterator[Mapping[Var, Any]]:
    if not ours:
        yield bound
        return
    for more in _unify(p, ours[0], theirs[0], bound, makers, constants, loose):
        yield from _each(p, ours[1:], theirs[1:], more, makers, constants, loose)


def _exactly(
    pattern: Fun,
    shape: _Pattern,
    bound: Mapping[Var, Any],
    last: Node,
    makers: Mapping[Var, Node],
    constants: Mapping[Var, Array],
) -> Match | None:
    """The match, if the pattern captured for the operands that were found is what is there."""
    operands = tuple([bound[v] for v in shape.inputs if v in bound])
    if len(operands) != len(shape.inputs):
        return None
    try:
        here = _captured(pattern, operands)
    except (FunctError, TypeError, ValueError):
        return None
    fixed = {v: v for v in operands}
    for found in _unify(here, here.output, last.results[0], fixed, makers, constants, loose=False):
        nodes = dict.fromkeys(makers[t] for q, t in found.items() if q in here.makers)
        return Match(operands, (*[n for n in nodes if n is not last], last), last.results[0])
    return None
