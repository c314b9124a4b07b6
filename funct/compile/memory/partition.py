"""Cut a joint graph in two: which values does the backward half keep, and which does it make again?

The joint graph computes results and gradients. What depends on a cotangent runs backward. Of the
values that this needs, a cheap one (elementwise, a view) may be computed again from others that are
kept: the choice with the fewest bytes is a minimal cut of a network whose capacities are bytes, and
maximal flow finds it. What is dear is kept: products, reductions, sorts, random numbers, loops. A
budget below one lets go of the dear values with the most bytes for their work as well.

A graph that has no cotangents, as that of a compiled gradient, is cut at a place in its order.

Source: Chen et al., "Training Deep Nets with Sublinear Memory Cost" (2016), for the trade; the cut
is that of the min-cut partitioner of PyTorch's AOTAutograd.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence, Set
from math import prod
from typing import Any

import attrs
from msgspec import Struct

from funct.compile.loops.scalars import is_exact
from funct.compile.rewriting.logistic import slope_of
from funct.core import INEXACT, Absent, size_values
from funct.graph import Call, Control, Graph, Guard, Node, Var, eliminate_dead, share_common

__all__ = ["Halves", "partition", "recomputed"]

Entry = Node | Call

# Besides elementwise ops that have scalar code: ops that only move elements.
_MOVES = frozenset({"reshape", "broadcast_to", "permute_dims", "slice_", "flip", "windows"})
_PRODUCTS = frozenset({
    "matmul", "contract", "convolution", "convolution_input", "convolution_weight",
})  # fmt: skip
_INFINITE = 1 << 62
_FAR = 1.1  # a value is dearer the further from its use it is kept: shorter chains to do again
_COPIED = 1.25  # so is what only moves elements, which is copied to be kept


class Halves(Struct, frozen=True, eq=False):
    """forward: inputs -> (*outputs, *residuals). backward: (*residuals, *cotangents) -> gradients.

    residuals: the kept values, as the joint graph names them. undecided: whether a decision depends
    on a cotangent, so that no forward half can take it.
    """

    forward: Graph
    backward: Graph
    residuals: tuple[Var, ...]
    undecided: bool


def partition(
    joint: Graph,
    n_in: int,
    n_out: int,
    *,
    budget: float = 1.0,
    given: Sequence[bool] | None = None,
    again: Callable[[Entry], bool | None] = lambda e: None,
) -> Halves:
    """Forward and backward halves with the fewest kept bytes.

    Args: joint: inputs are n_in values and then cotangents; outputs are n_out results and then
    gradients. budget: 1 makes cheap values again; below, no more than this part of the bytes that
    are kept then is kept, as far as that can be done; 0 keeps inputs alone. given: which inputs the
    backward half has anyway; None: all of them, and the results. again: whether what an entry gives
    is made again and never kept (True), or kept where it is needed (False); None: as bytes say.
    """
    joint = eliminate_dead(share_common(joint))
    split = _Split(joint, n_in, n_out, given, again)
    kept = split.cut(frozenset())
    if budget < 1.0:
        kept = split.within(budget, kept)
    return split.halves(kept)


def recomputed(graph: Graph, after: Set[Entry], part: float, mark: str) -> Graph:
    """The same function, which makes values again for the entries after a place rather than hold
    them there: as few bytes as can be had for little work, and at most this part of them.

    after: what runs after that place; no Guard among it. mark: of the names of what is made again.
    """
    late = {v for e in after for v in e.results}
    order = sorted(graph.outputs, key=late.__contains__)
    joint = attrs.evolve(graph, outputs=tuple(order))
    split = _Split(joint, len(graph.inputs), sum([v not in late for v in order]), after=after)
    kept = split.cut(frozenset())
    if part < 1.0:
        kept = split.within(part, kept)
    names: dict[Var, Var] = {}
    nodes = [e for e in graph.nodes if isinstance(e, Guard) or e not in split.later]
    for e in split.run_late({*graph.inputs, *kept}):
        if e not in split.later:
            again = tuple([Var(v.name + mark, v.shape, v.dtype) for v in e.results])
            names |= zip(e.results, again, strict=True)
            e = attrs.evolve(e, results=again)
        assert isinstance(e, Node), "calls are inlined"
        operands = tuple([names.get(a, a) if isinstance(a, Var) else a for a in e.operands])
        nodes.append(attrs.evolve(e, operands=operands))
    return eliminate_dead(attrs.evolve(graph, nodes=tuple(nodes)), guards=True)


class _Split:
    """A joint graph and what is known of its values. after: what is of the second half anyway."""

    def __init__(
        self,
        joint: Graph,
        n_in: int,
        n_out: int,
        given: Sequence[bool] | None = None,
        rule: Callable[[Entry], bool | None] = lambda e: None,
        after: Set[Entry] = frozenset(),
    ) -> None:
        self.joint = joint
        self.rule = rule
        self.inputs = joint.inputs[:n_in]
        self.cts = joint.inputs[n_in:]
        self.results = joint.outputs[:n_out]
        self.gradients = joint.outputs[n_out:]
        there = self.inputs if given is None else [v for v, g in zip(self.inputs, given) if g]
        self.constants = {v for v, _ in joint.constants}  # both halves have them
        self.free = {*there, *(self.results if given is None else ())} - self.constants
        self.entries = [e for e in joint.nodes if not isinstance(e, Guard)]
        self.maker: dict[Var, Entry] = {v: e for e in self.entries for v in e.results}
        self.late: set[Var] = set(self.cts)
        self.later: set[Entry] = set()  # one for its effect has no result
        for e in self.entries:
            if e in after or not self.late.isdisjoint(e.reads):
                self.late.update(e.results)
                self.later.add(e)
        reads = [v for e in self.entries if e in self.later for v in e.reads]
        needed = dict.fromkeys([*reads, *self.gradients])
        self.spare = self._in_slopes()
        self.free -= self.spare
        self.decides = any(_decides(e) for e in self.entries if e not in self.later)
        self.decided: set[Entry] = set()  # comparisons that are never made again
        self.wanted = [v for v in needed if v not in self.late and v not in self.constants]

    def _in_slopes(self) -> set[Var]:
        """Sigmoids that only their slope reads: of x, that takes one exponential with or without
        them.
        """
        often = Counter([v for e in self.entries for v in e.reads])
        found = [slope_of(e, self.maker) for e in self.entries]
        return {f[1] for f in found if f is not None and often[f[1]] == 1}

    def again(self, v: Var, let_go: frozenset[Var]) -> Entry | None:
        """The entry that may make a value again; None where the value is kept or given."""
        e = self.maker.get(v)
        if e is None or e in self.decided:
            return None
        said = self.rule(e)
        return e if (_cheap(e) or v in let_go if said is None else said) else None

    def cut(self, let_go: frozenset[Var]) -> list[Var]:
        """The values to keep: the fewest bytes with which both halves decide alike."""
        while True:
            kept = self._smallest(let_go)
            torn = self._torn(kept) if self.decides else None
            if not torn:
                return kept
            self.decided |= torn

    def _torn(self, kept: Sequence[Var]) -> set[Entry]:
        """Comparisons that the second half would make again between a value that was kept, and one
        that it makes again: a function need not have the bits there that it had in the first half,
        so what was equal would not be (as the largest of some values and the value that it is).
        """
        there = {*kept, *self.free}.difference(self.inputs)
        held: set[Var] = set()  # what follows from kept values
        other: set[Var] = set()  # what may have other bits now
        torn: set[Entry] = set()
        for e in self.run_late({*kept, *self.free, *self.cts}):
            if e in self.later:
                continue
            reads = set(e.reads)
            if not reads.isdisjoint(there) or not reads.isdisjoint(held):
                held.update(e.results)
            if not reads.isdisjoint(other) or not (_cheap(e) and _has_its_bits(e)):
                other.update(e.results)
            if _decides(e) and not (held.isdisjoint(e.results) or other.isdisjoint(reads)):
                torn.add(e)
        return torn

    def _smallest(self, let_go: frozenset[Var]) -> list[Var]:
        """A minimal cut between what is there and what is wanted."""
        number: dict[Var, int] = {}
        far: dict[Var, int] = {}
        todo = deque((v, 0) for v in self.wanted)
        while todo:
            v, distance = todo.popleft()
            if v in number:
                continue
            number[v], far[v] = len(number), distance
            e = self.again(v, let_go)
            reads = [u for u in (e.reads if e else ()) if u not in self.constants]
            if e is not None and e.name in _MOVES:
                todo.extendleft((u, distance) for u in reads)
            else:
                todo.extend((u, distance + 1) for u in reads)
        flow = _Flow(2 * len(number) + 2)
        source, sink = 2 * len(number), 2 * len(number) + 1
        for v, k in number.items():
            e = self.again(v, let_go)
            price = 1 if v in self.free else _bytes(v) * min(_FAR ** far[v], 1e4)
            if e is not None and e.name in _MOVES:
                price *= _COPIED
            if v in self.spare or (e is not None and self.rule(e)):
                price = _INFINITE - 1
            flow.connect(2 * k, 2 * k + 1, int(price) + 1)
            if e is None:
                flow.connect(source, 2 * k, _INFINITE)
            for u in e.reads if e else ():
                if u in number:
                    flow.connect(2 * number[u] + 1, 2 * k, _INFINITE)
        for v in self.wanted:
            flow.connect(2 * number[v] + 1, sink, _INFINITE)
        near = flow.run(source, sink)
        return [v for v, k in number.items() if near[2 * k] and not near[2 * k + 1]]

    def within(self, budget: float, kept: list[Var]) -> list[Var]:
        """A cut that keeps at most that part of the bytes: more and more dear values are let go,
        those with the most bytes for their work first.
        """

        def total(found: Iterable[Var]) -> int:
            return sum(_bytes(v) for v in found if v not in self.free)

        allowed = budget * total(kept)
        dear = [
            v
            for e in self.entries
            if isinstance(e, Node) and not _cheap(e) and not e.primitive.effect
            if self.late.isdisjoint(e.results)
            for v in e.results
        ]
        order = sorted(dear, key=lambda v: _work(self.maker[v]) / (_bytes(v) + 1))
        low, high, best = 0, len(order), self.cut(frozenset(order))
        while low < high:  # the smallest number that is enough
            middle = (low + high) // 2
            found = self.cut(frozenset(order[:middle]))
            if total(found) <= allowed:
                high, best = middle, found
            else:
                low = middle + 1
        return best

    def halves(self, kept: Sequence[Var]) -> Halves:
        """Both graphs."""
        order = {v: k for k, v in enumerate([*self.inputs, *self.maker])}
        residuals = sorted(self._read({*kept, *self.free}), key=order.__getitem__)
        residuals += self._carriers(residuals)
        early = [e for e in self.joint.nodes if self._early(e)]
        undecided = any(isinstance(e, Guard) and not self._early(e) for e in self.joint.nodes)
        forward = attrs.evolve(
            self.joint,
            inputs=self.inputs,
            nodes=tuple(early),
            outputs=(*self.results, *residuals),
        )
        inputs = (*residuals, *self.cts)
        backward = attrs.evolve(
            self.joint,
            inputs=inputs,
            nodes=tuple(self.run_late({*residuals, *self.cts})),
            outputs=self.gradients,
            symbols=_symbols(self.joint, inputs),
        )
        return Halves(forward, backward, tuple(residuals), undecided)

    def _read(self, there: Set[Var]) -> Set[Var]:
        """Of the values that are there, those that the second half reads: a result, which costs no
        memory, is not made again, and what it was made of may not be needed.
        """
        late = self.run_late({*there, *self.cts})
        return there & {*self.gradients, *[v for e in late for v in e.reads]}

    def run_late(self, there: Set[Var]) -> list[Entry]:
        """The second half, in order. What is made again is made just before it is needed."""
        known = {*there, *self.constants}
        late: list[Entry] = []
        for e in [*[e for e in self.entries if e in self.later], None]:
            todo = list(self.gradients if e is None else e.reads)[::-1]
            while todo:
                v = todo[-1]
                if v in known or v in self.late:
                    todo.pop()
                    continue
                need = self.maker[v]
                missing = [u for u in need.reads if u not in known]
                todo += missing
                if not missing:
                    late.append(self._beside(need, known))
                    known.update(need.results)
            if e is not None:
                late.append(e)
        return late

    def _beside(self, e: Entry, known: Set[Var]) -> Entry:
        """An entry that is made again for some of its results, where others are there."""
        if known.isdisjoint(e.results):
            return e
        taken = {v.name for v in (*self.inputs, *self.cts, *self.maker, *self.constants)}
        results = []
        for v in e.results:
            name = v.name
            while v in known and name in taken:
                name += "_"
            results.append(attrs.evolve(v, name=name) if v in known else v)
        return attrs.evolve(e, results=tuple(results))

    def _early(self, e: Any) -> bool:
        if isinstance(e, Guard):
            return e.operand is None or e.operand not in self.late
        return e not in self.later

    def _carriers(self, residuals: Sequence[Var]) -> list[Var]:
        """Inputs that the backward half gets besides, because a symbol is read off them."""
        lengths = {str(n) for v in (*residuals, *self.cts) for n in v.shape}
        more: dict[Var, None] = {}
        for s in self.joint.symbols:
            if s.name not in lengths:
                v = self.joint.inputs[s.input]
                if v not in residuals and v not in self.cts:
                    more[v] = None
        return list(more)


def _symbols(joint: Graph, inputs: Sequence[Var]) -> Any:
    """Where each symbol is read off other inputs."""
    found = []
    for s in joint.symbols:
        places = [
            (k, axis)
            for k, v in enumerate(inputs)
            for axis, n in enumerate(v.shape)
            if str(n) == s.name
        ]
        if places:
            found.append(attrs.evolve(s, input=places[0][0], axis=places[0][1]))
    return tuple(found)


def _cheap(e: Entry) -> bool:
    """Whether an entry is as cheap to do again as to read its result from memory."""
    if not isinstance(e, Node) or e.primitive.effect:
        return False
    fuses = e.primitive.spread is not None and not isinstance(e.primitive.code, Absent)
    return fuses or e.name in _MOVES or e.name == "absorb"


def _has_its_bits(e: Entry) -> bool:
    return isinstance(e, Node) and (e.name in _MOVES or is_exact(e))


def _decides(e: Entry) -> bool:
    """Whether an entry gives truths or integers of floats: the least bit may change them."""
    return any(v.dtype in INEXACT for v in e.reads) and all(
        v.dtype not in INEXACT for v in e.results
    )


def _bytes(v: Var) -> int:
    return int(prod(size_values(v.shape))) * int(v.dtype.itemsize)


def _work(e: Entry) -> int:
    """Multiplications and additions, roughly."""
    sizes = [prod(size_values(v.shape)) for v in e.reads]
    if e.name == "matmul":
        return 2 * prod(size_values(e.results[0].shape)) * int(size_values(e.reads[0].shape)[-1])
    if e.name in _PRODUCTS:
        return prod(sizes) // max(1, min(sizes, default=1)) * 2
    if isinstance(e, Node) and isinstance(e.primitive, Control):  # each step makes some of it
        made = sum([prod(size_values(v.shape)) for v in e.results])
        return (sum(sizes) + made) * 4 * sum([len(g.nodes) for _, g in e.primitive.bodies])
    return sum(sizes) * 4


class _Flow:
    """Dinic's maximal flow, without recursion. The reverse of edge k is edge k ^ 1."""

    def __init__(self, count: int) -> None:
        self.edges: list[list[int]] = [[] for _ in range(count)]
        self.to: list[int] = []
        self.room: list[int] = []

    def connect(self, a: int, b: int, capacity: int) -> None:
        """An edge from a to b."""
        self.edges[a].append(len(self.to))
        self.edges[b].append(len(self.to) + 1)
        self.to += [b, a]
        self.room += [capacity, 0]

    def run(self, source: int, sink: int) -> list[bool]:
        """Which nodes the source still reaches when no more can flow."""
        while True:
            level = self._levels(source)
            if level[sink] < 0:
                return [k >= 0 for k in level]
            following = [0] * len(self.edges)
            while self._push(source, sink, level, following):
                pass

    def _levels(self, source: int) -> list[int]:
        level = [-1] * len(self.edges)
        level[source] = 0
        todo = deque([source])
        while todo:
            a = todo.popleft()
            for k in self.edges[a]:
                b = self.to[k]
                if self.room[k] and level[b] < 0:
                    level[b] = level[a] + 1
                    todo.append(b)
        return level

    def _push(self, source: int, sink: int, level: list[int], following: list[int]) -> int:
        """Send as much as one path takes; 0 where no path is left."""
        path: list[int] = []
        a = source
        while a != sink:
            edges = self.edges[a]
            while following[a] < len(edges):
                k = edges[following[a]]
                if self.room[k] and level[self.to[k]] == level[a] + 1:
                    break
                following[a] += 1
            else:
                if not path:
                    return 0
                a = self.to[path.pop() ^ 1]
                following[a] += 1
                continue
            path.append(k)
            a = self.to[k]
        sent = min(self.room[k] for k in path)
        for k in path:
            self.room[k] -= sent
            self.room[k ^ 1] += sent
        return sent
