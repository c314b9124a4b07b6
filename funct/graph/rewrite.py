"""Find parts of a graph that compute what a function computes, and put another function there.

A pattern is a plain function. It is captured for example types, which gives its form: ops, numbers,
and how they hang together. Where that is found in a graph, the pattern is captured once more for
the types that are there, and what was found counts only if it is exactly that, parameters included.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from inspect import signature
from typing import Any

import attrs
import numpy as np
from msgspec import Struct

from funct.array import Array
from funct.core import ShapeDtype
from funct.errors import FunctError, GraphError
from funct.graph.check import check
from funct.graph.edit import splice
from funct.graph.given import expect, expect_all, expect_taking, of_graph
from funct.graph.ir import Control, Entry, Graph, Guard, Node, Var, acts
from funct.graph.passes import (
    eliminate_dead,
    exact,
    fresh_names,
    inline_calls,
    resolved,
    same_type,
    share_common,
    substituted,
)
from funct.graph.run import same

__all__ = ["Match", "find", "rewrite"]

Fun = Callable[..., Any]
_SWAPS = frozenset({"add", "multiply", "maximum", "minimum", "equal", "not_equal"})


class Match(Struct, frozen=True, eq=False):
    """One place. operands: what stands for the pattern's arguments. nodes: what computes it, in the
    graph's order. results: its values.
    """

    operands: tuple[Var, ...]
    nodes: tuple[Node, ...]
    results: tuple[Var, ...]

    @property
    def result(self) -> Var:
        """Its value, the first of several."""
        return self.results[0]


class _Pattern(Struct, frozen=True, eq=False):
    """A captured pattern."""

    inputs: tuple[Var, ...]
    constants: Mapping[Var, Array]
    makers: Mapping[Var, Node]
    outputs: tuple[Var, ...]


class _Place(Struct, frozen=True, eq=False):
    """A graph in which patterns are looked for. named: its nodes by their primitives. at: where
    each stands.
    """

    graph: Graph
    makers: Mapping[Var, Node]
    constants: Mapping[Var, Array]
    named: Mapping[Any, Sequence[Node]]
    at: Mapping[Node, int]


def _place(graph: Graph) -> _Place:
    nodes = [e for e in graph.nodes if isinstance(e, Node)]
    named: dict[Any, list[Node]] = {}
    for e in nodes:
        named.setdefault(e.primitive, []).append(e)
    makers = {v: e for e in nodes for v in e.results}
    at = {e: k for k, e in enumerate(nodes)}
    return _Place(graph, makers, dict(graph.constants), named, at)


@of_graph
def find(
    graph: Graph,
    pattern: Fun,
    like: Sequence[ShapeDtype] | None = None,
    where: Callable[[Match], bool] | None = None,
) -> list[Match]:
    """The places where the graph computes pattern(*operands), without overlap, in order.

    A body is a graph of its own: what is in it is found there.
    Args: pattern: a function of arrays; each of its results is more than an argument. like: types
    that it can be captured for; None tries square matrices, vectors and scalars. where: tells which
    places count. Operands of sums and products match in both orders. Several results count where
    one op could give them all: where no operand is computed from one of them.
    Raises: GraphError: for a pattern that cannot be captured, decides, or does nothing.
    Example:
        >>> import funct as ft, funct.array as xp
        >>> graph = ft.make_graph(lambda x: xp.exp(x) / (1.0 + xp.exp(x)))(xp.ones(3))
        >>> [m.result.name for m in find(graph, lambda x: 1.0 + xp.exp(x))]
        ['v3']
    """
    _expect("find", like, where, pattern=pattern)
    shape = _skeleton(pattern, like)
    place = _place(graph)
    first = shape.makers[shape.outputs[0]]
    which = first.results.index(shape.outputs[0])
    taken: set[Node] = set()
    found: list[Match] = []
    for e in place.named.get(first.primitive, ()):
        if e in taken:
            continue
        for bound in _unify(shape, shape.outputs[0], e.results[which], {}, place, loose=True):
            match = _first_match(pattern, shape, bound, place, taken, found, where)
            if match is not None:
                taken.update(match.nodes)
                found.append(match)
                break
    return found


def _first_match(
    pattern: Fun, shape: _Pattern, bound: Mapping[Var, Any], place: _Place, taken: set[Node],
    found: Sequence[Match], where: Callable[[Match], bool] | None,
) -> Match | None:  # fmt: skip
    """The first match with that first result, beside those that were found."""
    for whole in _others(shape, shape.outputs[1:], bound, place):
        match = _exactly(pattern, shape, whole, place)
        if match is None or not taken.isdisjoint(match.nodes):
            continue
        alone = len(match.results) == 1 or _can_stand(place.graph, [*found, match])
        if alone and (where is None or where(match)):
            return match
    return None


def _expect(name: str, like: Any, where: Any, **functions: Any) -> None:
    """Raise SignatureError for what is no pattern, no types or no condition."""
    for argument, fun in functions.items():
        expect(name, argument, fun, Callable)
    if like is not None:
        expect_all(name, "like", like, ShapeDtype)
    if where is not None:
        expect(name, "where", where, Callable)


def _others(
    p: _Pattern, outputs: Sequence[Var], bound: Mapping[Var, Any], place: _Place
) -> Iterator[Mapping[Var, Any]]:
    """Ways to find the other results too."""
    if not outputs:
        yield bound
        return
    ours, *rest = outputs
    mine = p.makers[ours]
    which = mine.results.index(ours)
    there = [e.results[which] for e in place.named.get(mine.primitive, ())]
    for theirs in [bound[ours]] if ours in bound else there:
        for more in _unify(p, ours, theirs, bound, place, loose=True):
            yield from _others(p, rest, more, place)


def _can_stand(graph: Graph, matches: Sequence[Match]) -> bool:
    """Whether the results of each match can be computed at once: from nothing that needs one."""
    given = {v for m in matches for v in m.results}
    reads = [_reads(e) for e in graph.nodes] + [m.operands for m in matches]
    makes = [[v for v in _makes(e) if v not in given] for e in graph.nodes]
    return _ordered(reads, [*makes, *[m.results for m in matches]], ()) is not None


@of_graph
def rewrite(
    graph: Graph,
    pattern: Fun,
    replacement: Fun,
    like: Sequence[ShapeDtype] | None = None,
    where: Callable[[Match], bool] | None = None,
) -> Graph:
    """The graph with pattern(*operands) replaced by replacement(*operands) wherever it is found, in
    the bodies of branches and loops too. A function with rules of its own stays what it is:
    `inline_calls` puts its body there.

    Args: as `find`; replacement: a function of the same arguments, with results of the same types.
    Values inside of a match that others use are still computed.
    Raises: GraphError: where the replacement has another type.
    Example:
        >>> import funct as ft, funct.array as xp
        >>> graph = ft.make_graph(lambda x: xp.log(1.0 + xp.exp(x)))(xp.ones(3))
        >>> slow, good = lambda x: xp.log(1.0 + xp.exp(x)), lambda x: xp.logaddexp(x, 0.0)
        >>> [e.name for e in rewrite(graph, slow, good).nodes]
        ['logaddexp']
    """
    _expect("rewrite", like, where, pattern=pattern, replacement=replacement)
    expect_taking("rewrite", "replacement", replacement, _operands(pattern, like))
    graph = _in_bodies(graph, lambda body: rewrite(body, pattern, replacement, like, where))
    matches = {m.nodes[-1]: m for m in find(graph, pattern, like, where)}
    if not matches:
        return graph
    fresh = fresh_names(graph)
    alias: dict[Var, Var] = {}
    nodes: list[Entry] = []
    constants = list(graph.constants)
    for e in graph.nodes:
        nodes.append(e)
        match = matches.get(e) if isinstance(e, Node) else None
        if match is None:
            continue
        put = splice(replacement, match.operands, fresh, e.site)
        if not _alike(put.outputs, match.results):
            given, wanted = (_types(vs) for vs in (put.outputs, match.results))
            raise GraphError(f"rewrite: the replacement gives {given} for {wanted}", site=e.site)
        nodes += put.entries
        constants += put.constants
        alias |= dict(zip(match.results, put.outputs, strict=True))
    nodes = [substituted(e, alias) for e in nodes]
    acting = [k for k, e in enumerate(nodes) if isinstance(e, Guard) or acts(e)]
    order = _ordered([_reads(e) for e in nodes], [_makes(e) for e in nodes], acting)
    assert order is not None, "matches can stand where they are"
    new = attrs.evolve(
        graph, nodes=tuple([nodes[k] for k in order]), constants=tuple(constants),
        outputs=tuple([resolved(v, alias) for v in graph.outputs]),
    )  # fmt: skip
    return check(eliminate_dead(new))


def _in_bodies(graph: Graph, change: Callable[[Graph], Graph]) -> Graph:
    """The graph with other bodies of branches and loops; itself where none is another."""

    def changed(e: Entry) -> Entry:
        if not isinstance(e, Node) or not isinstance(e.primitive, Control):
            return e
        new = {body: change(body) for _, body in e.primitive.bodies}
        if all(body is other for body, other in new.items()):
            return e
        return attrs.evolve(e, primitive=e.primitive.kind.mapped(new.__getitem__).primitive)

    nodes = tuple(map(changed, graph.nodes))
    return graph if nodes == graph.nodes else attrs.evolve(graph, nodes=nodes)


def _alike(given: Sequence[Var], wanted: Sequence[Var]) -> bool:
    return len(given) == len(wanted) and all(map(same_type, given, wanted))


def _types(values: Sequence[Var]) -> str:
    return ", ".join([f"{v.dtype}{list(v.shape)}" for v in values])


def _reads(e: Entry) -> Sequence[Var]:
    if isinstance(e, Guard):
        return () if e.operand is None else (e.operand,)
    return e.reads


def _makes(e: Entry) -> Sequence[Var]:
    return () if isinstance(e, Guard) else e.results


def _ordered(
    reads: Sequence[Sequence[Var]], makes: Sequence[Sequence[Var]], kept: Sequence[int]
) -> list[int] | None:
    """An order in which what is read is made before, as near to the given one as can be; None where
    there is none. kept: those that stay in their order among each other.
    """
    makers = {v: k for k, made in enumerate(makes) for v in made}
    needs = [{makers[v] for v in read if v in makers} for read in reads]
    for before, after in itertools.pairwise(kept):
        needs[after].add(before)
    readers: list[list[int]] = [[] for _ in needs]
    for k, need in enumerate(needs):
        for other in need:
            readers[other].append(k)
    ready = [k for k, need in enumerate(needs) if not need]
    order: list[int] = []
    while ready:
        k = heapq.heappop(ready)
        order.append(k)
        for reader in readers[k]:
            needs[reader].discard(k)
            if not needs[reader]:
                heapq.heappush(ready, reader)
    return order if len(order) == len(needs) else None


def _operands(pattern: Fun, like: Sequence[ShapeDtype] | None) -> int:
    """How many values a pattern is a function of: parameters with a default keep it."""
    if like is not None:
        return len(like)
    return len([p for p in signature(pattern).parameters.values() if p.default is p.empty])


def _skeleton(pattern: Fun, like: Sequence[ShapeDtype] | None) -> _Pattern:
    count = _operands(pattern, like)
    expect_taking("find", "pattern", pattern, count)
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
    if not whole.outputs or not all(v in makers for v in whole.outputs):
        raise GraphError("find: a pattern has results, each of which something computes")
    return _Pattern(tuple(operands), dict(whole.constants), makers, whole.outputs)


def _unify(
    p: _Pattern,
    ours: Any,
    theirs: Any,
    bound: Mapping[Var, Any],
    place: _Place,
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
        x, y = p.constants[ours], place.constants.get(theirs)
        if y is None:
            return
        if loose:  # whatever dtype, too
            fits = np.array_equal(np.ravel(x.data), np.ravel(y.data), equal_nan=True)
        else:
            fits = same_type(ours, theirs) and same(x.data, y.data)
        if fits:
            yield {**bound, ours: theirs}
        return
    mine = p.makers.get(ours)
    if mine is None:
        if loose or same_type(ours, theirs):
            yield {**bound, ours: theirs}
        return
    node = place.makers.get(theirs)
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
        yield from _each(p, mine.operands, order, {**bound, ours: theirs}, place, loose)


def _each(
    p: _Pattern,
    ours: Sequence[Any],
    theirs: Sequence[Any],
    bound: Mapping[Var, Any],
    place: _Place,
    loose: bool,
) -> Iterator[Mapping[Var, Any]]:
    if not ours:
        yield bound
        return
    for more in _unify(p, ours[0], theirs[0], bound, place, loose):
        yield from _each(p, ours[1:], theirs[1:], more, place, loose)


def _exactly(
    pattern: Fun, shape: _Pattern, bound: Mapping[Var, Any], place: _Place
) -> Match | None:
    """The match, if the pattern captured for the operands that were found is what is there."""
    operands = tuple([bound[v] for v in shape.inputs if v in bound])
    if len(operands) != len(shape.inputs):
        return None
    try:
        here = _captured(pattern, operands)
    except (FunctError, TypeError, ValueError):
        return None
    results = tuple([bound[v] for v in shape.outputs])
    fixed = {v: v for v in operands}
    for found in _each(here, here.outputs, results, fixed, place, loose=False):
        nodes = {place.makers[t] for q, t in found.items() if q in here.makers}
        return Match(operands, tuple(sorted(nodes, key=place.at.__getitem__)), results)
    return None
