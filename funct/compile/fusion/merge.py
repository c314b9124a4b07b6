"""Loops over one domain, of which the later reads what the earlier makes, become one; and so do
loops that read the same large array.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Sequence

from funct.compile.fusion.groups import (
    MOST_COST,
    Group,
    ends_loops,
    outside,
    reads,
    walked_through,
)
from funct.compile.loops.views import View
from funct.graph import Guard, Node, Var

__all__ = ["merged"]

_LEAST_BYTES = 1 << 16  # of an array that is read once instead of twice


def merged(
    steps: Sequence[Group | Node | Guard], views: dict[Var, View], outputs: Sequence[Var]
) -> list[Group | Node | Guard]:
    """The steps with groups joined to the last one that makes what they read, where that is right.

    All else that they read was there before it, so they can be as early. The others are joined to
    one before them that reads a large array of theirs, where it stands if what they make is small
    or for the caller (else it would be held longer), or where they stand: then what follows from
    the earlier one stands behind them both.
    """
    return _Walk(steps, views, outputs).run()


class _Walk:
    """The walk over the steps, which it leaves in `found`, with None for what stands elsewhere."""

    def __init__(
        self, steps: Sequence[Group | Node | Guard], views: dict[Var, View], outputs: Sequence[Var]
    ) -> None:
        self.views = views
        self.rest = deque(steps)
        self.found: list[Group | Node | Guard | None] = []
        self.made: dict[Var, int] = {}  # at which step
        self.read: dict[Var, int] = {}  # large arrays, and the last loops over all of each
        by_steps = [dict.fromkeys([views[v].root for v in reads(s)], s) for s in steps]
        self.last = {v: s for read in by_steps for v, s in read.items()}  # who reads it last
        self.places = {id(s): t for t, s in enumerate(steps)}
        self.held = self.last.keys() - {views[v].root for v in outputs}
        self.computed = {v for s in steps for v in _results(s)}

    def run(self) -> list[Group | Node | Guard]:
        """The steps as they stand then."""
        while self.rest:
            step = self.rest.popleft()
            at = len(self.found)
            self.found.append(step)
            if isinstance(step, Group):
                at = self._joined(step, at)
                self.read |= dict.fromkeys(_large(step, self.views), at)
            self.made |= dict.fromkeys(_results(step), at)
        return [s for s in self.found if s is not None]

    def _joined(self, step: Group, at: int) -> int:
        """Where the loops of the last step in `found` stand, with others or without."""
        last = self._earliest(step)
        maker = self.found[last] if last >= 0 else None
        if isinstance(maker, Group) and _take_over(maker, step, self.views):
            self.found[at] = None
            self._bring(step, maker, last)
            return last
        early = _may_be_early(step, self.held)
        for v in _large(step, self.views):
            near = self.read.get(v, -1)
            reader = self.found[near] if near >= 0 else None
            if not isinstance(reader, Group):
                continue
            if early and near > last and _take_over(reader, step, self.views):
                self.found[at] = None
                return near
            after = self._following(near, at) if self._may_be_late(reader, step) else None
            if after is not None and _take_over(reader, step, self.views):
                return self._move(reader, near, after, at)
        return at

    def _earliest(self, step: Group) -> int:
        """Where the last of what the step reads is made; -1 where all is there from the start."""
        return max([self.made.get(self.views[v].root, -1) for v in outside(step)], default=-1)

    def _bring(self, step: Group, maker: Group, at: int) -> None:
        """Join to the loops that took a step over those behind them that read an array of its."""
        for v in _large(step, self.views):
            near = self.read.get(v, -1)
            other = self.found[near] if near > at else None
            if not isinstance(other, Group) or not _may_be_early(other, self.held):
                continue
            if self._earliest(other) < at and _take_over(maker, other, self.views):
                self.found[near] = None
                self.made |= dict.fromkeys(other.members, at)

    def _may_be_late(self, reader: Group, step: Group) -> bool:
        """Whether what loops read is there anyway where a later step stands."""
        place = self.places[id(step)]
        roots = {self.views[v].root for v in outside(reader)}
        large = [v for v in roots & self.computed if math.prod(v.shape) * 8 > reader.size]
        return all(self.places[id(self.last[v])] >= place for v in large)

    def _following(self, near: int, at: int) -> list[int] | None:
        """The steps that follow from one and stand before another; None where they cannot stand
        behind it, or hold memory that they would hold longer there.
        """
        made = set(_results(self.found[near]))
        after = []
        for t in range(near + 1, at + 1):
            step = self.found[t]
            if step is not None and any(self.views[v].root in made for v in reads(step)):
                if t == at or not _is_small(step):
                    return None
                made |= set(_results(step))
                after.append(t)
        return after

    def _move(self, reader: Group, near: int, after: list[int], at: int) -> int:
        self.rest.extendleft([s for t in reversed(after) if (s := self.found[t]) is not None])
        for t in (near, *after):
            self.found[t] = None
        self.found[at] = reader
        self.read |= dict.fromkeys(_large(reader, self.views), at)
        self.made |= dict.fromkeys(reader.members, at)
        return at


def _is_small(step: Group | Node | Guard) -> bool:
    """Whether it can be at any time: it has no effect, and what it reads and makes is small."""
    if isinstance(step, Guard) or (isinstance(step, Node) and step.primitive.effect):
        return False
    return all(_bytes(v) < _LEAST_BYTES for v in (*reads(step), *_results(step)))


def _bytes(v: Var) -> int:
    return math.prod(v.shape) * v.dtype.itemsize


def _results(step: Group | Node | Guard | None) -> Iterable[Var]:
    if isinstance(step, Group):
        return step.members
    return step.results if isinstance(step, Node) else ()


def _large(group: Group, views: dict[Var, View]) -> list[Var]:
    """What a group reads all of, as it lies there, that does not stay in a near cache."""
    full = [v for v in walked_through(group) if views[v].root is v and group.is_full(v)]
    return [v for v in dict.fromkeys(full) if group.size * v.dtype.itemsize >= _LEAST_BYTES]


def _may_be_early(group: Group, held: set[Var]) -> bool:
    """Whether what the group makes for others takes no memory that it would not take anyway."""
    made = [v for e in group.nodes for v in e.results if v in held]
    return all(math.prod(v.shape) * 8 <= group.size for v in made)


def _take_over(first: Group, second: Group, views: dict[Var, View]) -> bool:
    """Make the members of a group members of an earlier one that makes what they read, if all of
    that is known where it is read.
    """
    if first.size != second.size or first.cost + second.cost > MOST_COST:
        return False
    if first.columns is not None and second.columns not in (None, first.columns):
        return False
    if first.stretch is not None and second.stretch not in (None, first.stretch):
        return False
    both = Group(first.size, first.columns or second.columns)
    ends = {e.results[0] for e in first.nodes if ends_loops(e)}
    for e in second.nodes:
        for v in e.operands:
            if not isinstance(v, Var) or v in second.members:
                continue
            if views[v].root in first.members and v not in first.members:
                return False
            if v in first.members and (v in ends or both.holds(e, v) is not True):
                return False
    if any(not _is_held(both, e) for e in (*first.nodes, *second.nodes)):
        return False
    both.lookups = [*first.lookups, *second.lookups]
    if not both.has_its_rows:
        return False
    first.columns = both.columns
    first.stretch = first.stretch or second.stretch
    for e in second.nodes:
        first.take(e)
    return True


def _is_held(group: Group, e: Node) -> bool:
    """Whether the node's result is full, or one for each row, or a reduction's that ends loops."""
    size = math.prod(e.results[0].shape)
    row = group.columns is not None and size * group.columns == group.size
    return size == group.size or row or ends_loops(e)
