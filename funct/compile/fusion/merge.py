"""Loops over one domain, of which the later reads what the earlier makes, become one; and so do
loops that read the same large array.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

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
    one behind it that reads a large array of theirs, if what they make is small or for the caller:
    else it would be held longer.
    """
    read_by_steps = {views[v].root for s in steps for v in reads(s)}
    held = read_by_steps - {views[v].root for v in outputs}
    found: list[Group | Node | Guard | None] = list(steps)
    made: dict[Var, int] = {}  # at which step
    read: dict[Var, int] = {}  # large arrays, and the last loops over all of each
    for t, step in enumerate(steps):
        at = t
        if isinstance(step, Group):
            last = max([made.get(views[v].root, -1) for v in outside(step)], default=-1)
            maker = found[last] if last >= 0 else None
            if isinstance(maker, Group) and _take_over(maker, step, views):
                found[t], at = None, last
            for v in _large(step, views) if at == t and _may_be_early(step, held) else ():
                near = read.get(v, -1)
                reader = found[near] if near > last else None
                if isinstance(reader, Group) and _take_over(reader, step, views):
                    found[t], at = None, near
                    break
            for v in step.members:
                made[v] = at
            read |= dict.fromkeys(_large(step, views), at)
        elif isinstance(step, Node):
            made |= dict.fromkeys(step.results, at)
    return [s for s in found if s is not None]


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
