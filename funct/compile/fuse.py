"""Which nodes share their loops.

Nodes are visited from the last to the first, and each joins the loops of those that read it, if all
of them stand in one place and its elements are theirs (`Group.holds`); otherwise it opens loops of
its own, before all that stand there so far. So what is computed is computed as late as possible and
read while it is in registers. A second walk, forwards, merges loops over the same domain that read
the same buffers or each other's results, where nothing that must come between them is in the way.

A group has a domain of `size` elements in rows of `columns`. Within it a value is full or one for
each row; whatever has another shape is read from memory by an index map (`views.py`). Every node
that is neither of a group nor a mere view is a step of its own, computed by its kernel.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import attrs

from funct.compile.loops import How, Over
from funct.compile.scalars import ELEMENTS, is_exact, printing, unsupported
from funct.compile.views import VIEWS, View, dense, through
from funct.graph import Graph, Guard, Node, Var

__all__ = ["Fused", "Group", "REDUCTIONS", "fuse", "reduction", "why_not"]

REDUCTIONS: dict[str, How] = {
    "reduce_sum": "sum", "reduce_prod": "prod", "reduce_max": "max", "reduce_min": "min",
    "any": "any", "all": "all",
}  # fmt: skip

_MOST_COST = 600  # of one group, in additions: code of one block is made in more than linear time
_FLAT_ROW = 8192  # a reduction of everything is along one row up to here
_ORDERED = frozenset({"reshape", "broadcast_to", "stop_gradient", "checkpoint_name"})


def _cost(nodes: Sequence[Node]) -> int:
    return sum([1 if (p := printing(e)) is None else p.cost for e in nodes])


class Group:
    """Nodes in one nest of loops. columns: None while no value is one for each row."""

    def __init__(self, size: int, columns: int | None = None) -> None:
        self.size = size
        self.columns = columns
        self.nodes: list[Node] = []
        self.members: set[Var] = set()

    def is_full(self, v: Var) -> bool:
        """Whether v has an element at each place of the domain."""
        return math.prod(v.shape) == self.size

    def holds(self, node: Node, operand: Var) -> bool | int:
        """Whether an operand of a member can be a member: True, or if so many columns are a row."""
        over = reduction(node)
        narrow = math.prod(operand.shape)
        if over is not None:
            row = self.columns is not None and narrow * self.columns == self.size
            return narrow == self.size or (over == "all" and row)
        wide = math.prod(node.results[0].shape)
        if wide == narrow:
            return True
        columns = _row_length(node.results[0].shape, operand.shape)
        if wide != self.size or columns is None or (narrow == 1 and self.size > _FLAT_ROW):
            return False
        return True if columns == self.columns else columns

    def take(self, node: Node) -> None:
        """Make the node a member."""
        self.nodes.append(node)
        self.members.add(node.results[0])


@attrs.frozen(eq=False)
class Fused:
    """A graph as steps in order: groups, and entries that are computed by themselves.

    views: for each Var, which dense buffer it is read from. copies: nodes that look elsewhere in a
    way that no index map gives. kept: the Vars whose buffers must be there for other steps or for
    the caller. reasons: for each step that is a node, why it is none of loops.
    """

    graph: Graph
    steps: tuple[Group | Node | Guard, ...]
    views: dict[Var, View]
    copies: frozenset[Node]
    kept: frozenset[Var]
    reasons: dict[Node, str]


def reduction(node: Node) -> Over | None:
    """ "row", "column" or "all": what a reduction is over; None for other nodes and other axes."""
    if node.name not in REDUCTIONS:
        return None
    shape, axes = node.operands[0].shape, node.params[0]  # type: ignore[union-attr]
    longer = [a for a, n in enumerate(shape) if n != 1]
    gone = [a for a in longer if a in axes]
    if not gone:
        return None
    if gone == longer:
        return "row" if math.prod(shape) <= _FLAT_ROW else "all"
    if gone == longer[-len(gone) :]:
        return "row"
    return "column" if gone == longer[: len(gone)] else None


def _row_length(wide: Sequence[int], narrow: Sequence[int]) -> int | None:
    """Columns of a row of `wide` if `narrow` has one element for each row, else None."""
    lead = len(wide) - len(narrow)
    if lead < 0:
        return None
    narrow = (*[1] * lead, *narrow)
    k = len(wide)
    while k and narrow[k - 1] == 1:
        k -= 1
    return math.prod(wide[k:]) if tuple(narrow[:k]) == tuple(wide[:k]) else None


def why_not(node: Node) -> str:
    """Why the node is no part of loops; empty where it is."""
    if not node.results:
        return "it has no result"
    out = node.results[0]
    if any(0 in v.shape for v in (*node.operands, *node.results) if isinstance(v, Var)):
        return "there are no elements"
    if node.name in REDUCTIONS:
        operand = node.operands[0]
        assert isinstance(operand, Var)
        if operand.dtype not in ELEMENTS or out.dtype not in ELEMENTS:
            return f"{operand.dtype} is computed by NumPy"
        if reduction(node) is None:
            return "it reduces axes between others"
        return ""
    if node.name in VIEWS:
        return "" if out.dtype in ELEMENTS else f"{out.dtype} is computed by NumPy"
    return unsupported(node)


@attrs.define
class _Use:
    """Somebody who reads a Var: at which place, counted from the end, and as which member."""

    place: int
    group: Group | None = None
    node: Node | None = None


class _Walk:
    """The walk from the last node to the first."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.views: dict[Var, View] = {}
        self.reasons: dict[Node, str] = {}
        self.copies: set[Node] = set()  # views that no index map gives
        self.decisive = _decisive(graph)
        self.places: list[Group | Node | Guard] = []
        self.uses: dict[Var, list[_Use]] = {}

    def run(self) -> None:
        """Fill `places`, the last step first."""
        self._look()
        for v in self.graph.outputs:
            self._read(v, _Use(0))
        for e in reversed(self.graph.nodes):
            if isinstance(e, Guard):
                if e.operand is not None:
                    self._read(e.operand, _Use(len(self.places) + 1))
                self.places.append(e)
            elif isinstance(e, Node):
                self._visit(e)

    def _look(self) -> None:
        for v in (*self.graph.inputs, *[v for v, _ in self.graph.constants]):
            self.views[v] = dense(v)
        for e in self.graph.nodes:
            if not isinstance(e, Node):
                continue
            if e.name in VIEWS and isinstance(e.operands[0], Var) and not why_not(e):
                seen = through(e, self.views[e.operands[0]])
                if seen is not None:
                    self.views[e.results[0]] = seen
                    continue
                self.copies.add(e)
            for v in e.results:
                self.views[v] = dense(v)

    def _read(self, v: Any, use: _Use) -> None:
        if isinstance(v, Var):
            self.uses.setdefault(v, []).append(use)

    def _visit(self, e: Node) -> None:
        uses = [u for v in e.results for u in self.uses.pop(v, ())]
        if not uses and not e.primitive.effect:
            return
        why = why_not(e)
        if e in self.decisive and not why and not is_exact(e):
            why = "a decision depends on it, which was taken with NumPy's bits"
        if not why and (self._join(e, uses) or self._stand_beside(e, uses)):
            return
        before = max([u.place + (u.group is not None) for u in uses], default=0)
        if not why and e.name in VIEWS and e not in self.copies:
            self._read(e.operands[0], _Use(before))
            return
        if why:
            self.reasons[e] = why
            self.places.append(e)
            for v in e.operands:
                self._read(v, _Use(len(self.places)))
            return
        self._open(e)

    def _join(self, e: Node, uses: list[_Use]) -> bool:
        """Make e a member of the group that reads it, if one stands where e must stand."""
        place = max([u.place for u in uses], default=-1)
        here = [u for u in uses if u.place == place and u.group is not None]
        if not here or e in self.copies or len(e.results) != 1:
            return False
        group = here[0].group
        assert group is not None
        if (e.name in VIEWS and e.name not in _ORDERED) or _cost(group.nodes) >= _MOST_COST:
            return False
        before = group.size, group.columns
        if self._fits(group, e, here):
            self._enter(group, place, e)
            return True
        group.size, group.columns = before
        return False

    def _stand_beside(self, e: Node, uses: list[_Use]) -> bool:
        """Make e a member of a group that reads an operand of it, though not e itself."""
        if e in self.copies or e.name in VIEWS or len(e.results) != 1:
            return False
        before = max([u.place + (u.group is not None) for u in uses], default=0)
        for v in e.operands:
            for u in self.uses.get(v, ()) if isinstance(v, Var) else ():
                group = u.group
                assert isinstance(v, Var)
                if group is None or u.place < before or _cost(group.nodes) >= _MOST_COST:
                    continue
                had = group.size, group.columns
                if group.is_full(v) and self._fits(group, e, []):
                    self._enter(group, u.place, e)
                    return True
                group.size, group.columns = had
        return False

    def _fits(self, group: Group, e: Node, here: list[_Use]) -> bool:
        """Whether e can be a member; the group's rows may be given a length for that."""
        result = e.results[0]
        over = reduction(e)
        if over is not None:
            operand = e.operands[0]
            assert isinstance(operand, Var)
            if over != "row":
                return not here and self._fits_barrier(group, e, over)
            columns = math.prod(operand.shape) // math.prod(result.shape)
            if group.columns is None and group.is_full(result):
                # so far these were loops over what is now one element for each row
                group.size, group.columns = math.prod(operand.shape), columns
            elif group.columns is None:
                group.columns = columns
            if columns != group.columns or not group.is_full(operand):
                return False
        for u in here:
            assert u.node is not None
            held = group.holds(u.node, result)
            if held is False:
                return False
            if held is not True:
                if group.columns is not None:
                    return False
                group.columns = int(held)
        return group.is_full(result) or self._is_row(group, e)

    def _fits_barrier(self, group: Group, e: Node, over: Over) -> bool:
        """Whether a reduction that ends the group's loops can be a member."""
        operand = e.operands[0]
        assert isinstance(operand, Var)
        if not group.is_full(operand):
            return False
        if over == "column":
            columns = math.prod(e.results[0].shape)
            if group.columns not in (None, columns):
                return False
            group.columns = columns
        return True

    def _is_row(self, group: Group, e: Node) -> bool:
        return group.columns is not None and (
            math.prod(e.results[0].shape) * group.columns == group.size
        )

    def _open(self, e: Node) -> None:
        over = reduction(e)
        if over is not None:
            operand, result = e.operands[0], e.results[0]
            assert isinstance(operand, Var)
            size = math.prod(operand.shape)
            columns = {"row": size // math.prod(result.shape), "column": math.prod(result.shape)}
            group = Group(size, columns.get(over))
        else:
            group = Group(math.prod(e.results[0].shape))
        self.places.append(group)
        self._enter(group, len(self.places) - 1, e)

    def _enter(self, group: Group, place: int, e: Node) -> None:
        group.take(e)
        for v in e.operands:
            if isinstance(v, Var):
                apart = e in self.copies or group.holds(e, v) is False
                self._read(v, _Use(place + 1) if apart else _Use(place, group, e))


def _decisive(graph: Graph) -> set[Node]:
    """The nodes on which a guard's outcome depends."""
    found: set[Node] = set()
    asked: set[Var] = set()
    for e in reversed(graph.nodes):
        if isinstance(e, Guard):
            asked.update([e.operand] if e.operand is not None else [])
        elif isinstance(e, Node) and not asked.isdisjoint(e.results):
            found.add(e)
            asked.update([v for v in e.operands if isinstance(v, Var)])
    return found


def fuse(graph: Graph) -> Fused:
    """Put the nodes of a graph without calls into steps. Its sizes are numbers."""
    walk = _Walk(graph)
    walk.run()
    steps = list(reversed(walk.places))
    for s in steps:
        if isinstance(s, Group):
            s.nodes.reverse()
    steps = _merged(steps, walk.views)
    kept = _kept(steps, walk.views, graph.outputs)
    return Fused(graph, tuple(steps), walk.views, frozenset(walk.copies), kept, walk.reasons)


def _merged(
    steps: Sequence[Group | Node | Guard], views: dict[Var, View]
) -> list[Group | Node | Guard]:
    """The steps with groups joined to the last one that makes what they read, where that is right.

    All else that they read was there before it, so they can be as early.
    """
    found: list[Group | Node | Guard | None] = list(steps)
    made: dict[Var, int] = {}  # at which step
    for t, step in enumerate(steps):
        at = t
        if isinstance(step, Group):
            last = max([made.get(views[v].root, -1) for v in outside(step)], default=-1)
            maker = found[last] if last >= 0 else None
            if isinstance(maker, Group) and _take_over(maker, step, views):
                found[t], at = None, last
            for v in step.members:
                made[v] = at
        elif isinstance(step, Node):
            made |= dict.fromkeys(step.results, at)
    return [s for s in found if s is not None]


def _take_over(first: Group, second: Group, views: dict[Var, View]) -> bool:
    """Make the members of a group members of an earlier one that makes what they read, if all of
    that is known where it is read.
    """
    if first.size != second.size or _cost(first.nodes) + _cost(second.nodes) > _MOST_COST:
        return False
    if first.columns is not None and second.columns not in (None, first.columns):
        return False
    both = Group(first.size, first.columns or second.columns)
    ends = {e.results[0] for e in first.nodes if reduction(e) in ("column", "all")}
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
    first.columns = both.columns
    for e in second.nodes:
        first.take(e)
    return True


def _is_held(group: Group, e: Node) -> bool:
    """Whether the node's result is full, or one for each row, or a reduction's that ends loops."""
    size = math.prod(e.results[0].shape)
    row = group.columns is not None and size * group.columns == group.size
    return size == group.size or row or reduction(e) in ("column", "all")


def outside(group: Group) -> Iterable[Var]:
    """What members read from memory."""
    return [
        v for e in group.nodes for v in e.operands if v not in group.members and isinstance(v, Var)
    ]


def _kept(
    steps: Sequence[Group | Node | Guard], views: dict[Var, View], outputs: Sequence[Var]
) -> frozenset[Var]:
    read: set[Var] = set(outputs)
    for s in steps:
        if isinstance(s, Group):
            read.update(outside(s))
        elif isinstance(s, Guard):
            read.update([s.operand] if s.operand is not None else [])
        else:
            read.update([v for v in s.operands if isinstance(v, Var)])
    return frozenset([views[v].root for v in read])
