"""Which nodes share their loops.

Nodes are visited from the last to the first, and each joins the loops of those that read it, if all
of them stand in one place and its elements are theirs (`Group.holds`); otherwise it opens loops of
its own, before all that stand there so far. So what is computed is computed as late as possible and
read while it is in registers. A second walk, forwards (`merge.py`), joins loops over one domain.
Every node that is neither of a group nor a mere view is a step of its own, computed by its kernel.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from typing import Any

import attrs
from msgspec import Struct

from funct.compile.fusion.again import computed_again
from funct.compile.fusion.groups import (
    MOST_COST,
    Group,
    along,
    ends_loops,
    is_weave,
    reads,
    reduction,
    why_not,
)
from funct.compile.fusion.merge import merged
from funct.compile.fusion.shifted import computed_shifted
from funct.compile.gathered import is_lookup
from funct.compile.loops.scalars import ELEMENTS, is_exact, printing
from funct.compile.loops.views import VIEWS, View, dense, embedded, through
from funct.compile.readers import decisive, readers
from funct.graph import Graph, Guard, Node, Var

__all__ = ["Fused", "fuse"]

_LEAST_EMBEDDED = 1 << 12  # elements: around fewer, zeros are written
_MOST_READ = 6  # times that zeros around are seen to: for more, they are written
_MANY_ROWS = 1 << 9  # of which one element for each is worth loops of its own
_COSTLY, _ROW_COST = 10, 16  # additions
_ORDERED = frozenset({"reshape", "broadcast_to", "settled", "stop_gradient", "checkpoint_name"})


@attrs.frozen(eq=False)
class Fused:
    """A graph as steps in order: groups, and entries that are computed by themselves.

    views: for each Var, which dense buffer it is read from. copies: nodes that look elsewhere in a
    way that no index map gives. kept: the Vars whose buffers must be there for other steps or for
    the caller. results: those of them that only the caller reads. reasons: for each step that is a
    node, why it is none of loops. still: inputs that are the same in each step of a loop.
    """

    graph: Graph
    steps: tuple[Group | Node | Guard, ...]
    views: dict[Var, View]
    copies: frozenset[Node]
    kept: frozenset[Var]
    results: frozenset[Var]
    reasons: dict[Node, str]
    still: frozenset[Var] = frozenset()

    @functools.cached_property
    def result_bytes(self) -> int:
        """Of what only the caller reads."""
        return sum([math.prod(v.shape) * v.dtype.itemsize for v in self.results])


class _Use(Struct):
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
        self.looks: set[Node] = set()  # what only looks elsewhere
        self.decisive = decisive(graph)
        self.places: list[Group | Node | Guard] = []
        self.uses: dict[Var, list[_Use]] = {}
        self.readers = readers(graph)
        self.made_by = {v: e for e in graph.nodes if isinstance(e, Node) for v in e.results}
        # what must raise is found late, and all is done again
        self.is_pure = not any(isinstance(e, Node) and e.primitive.effect for e in graph.nodes)

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
                    self.looks.add(e)
                    continue
                self.copies.add(e)
            if e.name == "embed" and (seen := self._embedded(e)) is not None:
                self.views[e.results[0]] = seen
                self.looks.add(e)
                continue
            for v in e.results:
                self.views[v] = dense(v)

    def _embedded(self, e: Node) -> View | None:
        """What `embed` gives, where loops read it where it comes from, with zeros around."""
        g, out, (index, _) = e.operands[0], e.results[0], e.params
        if not isinstance(g, Var) or g.dtype != out.dtype or out.dtype not in ELEMENTS:
            return None
        small = 0 in g.shape or math.prod(out.shape) < _LEAST_EMBEDDED
        if small or not _has_no_gaps(index) or self.views[g].within is not None:
            return None
        readings = list(self._readers_of(out))
        read = len(readings) <= _MOST_READ and all(map(self._takes, readings))
        return embedded(e, self.views[g]) if read else None

    def _readers_of(self, v: Var) -> Iterator[tuple[Any, Var]]:
        """Who reads v, or a slice of it, and what."""
        for e in self.readers.get(v, ()):
            if isinstance(e, Node) and e.name == "slice_" and _has_no_gaps(e.params[0]):
                yield from self._readers_of(e.results[0])
            else:
                yield e, v

    def _takes(self, reading: tuple[Any, Var]) -> bool:
        """Whether loops compute an element of the reader from that element of what it reads."""
        e, v = reading
        if not isinstance(e, Node) or e.name in VIEWS or reduction(e) or is_weave(e):
            return False
        return not why_not(e) and e.results[0].shape == v.shape and e not in self.decisive

    def _read(self, v: Any, use: _Use) -> None:
        if isinstance(v, Var):
            self.uses.setdefault(v, []).append(use)

    def _visit(self, e: Node) -> None:
        uses = [u for v in e.results for u in self.uses.pop(v, ())]
        if not uses and not e.primitive.effect:
            return
        before = max([u.place + (u.group is not None) for u in uses], default=0)
        if e in self.looks and e.name not in VIEWS:
            self._read(e.operands[0], _Use(before))
            return
        why = why_not(e)
        if not why and e in self.decisive and not is_exact(e):
            why = "a decision depends on it, which was taken with NumPy's bits"
        if not why and (self._join(e, uses) or self._stand_beside(e, uses)):
            return
        if is_lookup(e) and self.is_pure and self._join(e, uses):
            return
        if not why and e in self.looks:
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
        if (e.name in VIEWS and e.name not in _ORDERED) or group.cost >= MOST_COST:
            return False
        if not self._fits(group, e, here):
            return False
        self._enter(group, place, e)
        return True

    def _stand_beside(self, e: Node, uses: list[_Use]) -> bool:
        """Make e a member of a group that reads an operand of it, though not e itself."""
        if e in self.copies or e.name in VIEWS or len(e.results) != 1:
            return False
        before = max([u.place + (u.group is not None) for u in uses], default=0)
        for v in e.operands:
            for u in self.uses.get(v, ()) if isinstance(v, Var) else ():
                group = u.group
                assert isinstance(v, Var)
                if group is None or u.place < before or group.cost >= MOST_COST:
                    continue
                if group.is_full(v) and self._fits(group, e, []):
                    self._enter(group, u.place, e)
                    return True
        return False

    def _fits(self, group: Group, e: Node, here: list[_Use]) -> bool:
        """Whether e can be a member; the group's rows may be given a length for that."""
        had = group.size, group.columns, group.stretch
        fits = self._shape(group, e, here) and group.has_its_rows
        fits = fits and (not is_lookup(e) or group.has_rows_of(e))
        if not fits:
            group.size, group.columns, group.stretch = had
        return fits

    def _shape(self, group: Group, e: Node, here: list[_Use]) -> bool:
        result = e.results[0]
        over = reduction(e)
        if ends_loops(e):
            return not here and self._fits_barrier(group, e)
        if over is not None:
            operand = e.operands[0]
            assert isinstance(operand, Var)
            columns = math.prod(operand.shape) // math.prod(result.shape)
            if group.columns is None and group.is_full(result) and not group.weaves:
                if _waits_for_scalars(group, columns):
                    return False
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

    def _fits_barrier(self, group: Group, e: Node) -> bool:
        """Whether a reduction that ends the group's loops can be a member."""
        operand = e.operands[0]
        assert isinstance(operand, Var)
        if not group.is_full(operand):
            return False
        if is_weave(e):
            return True
        over, (count, columns) = reduction(e), along(e)
        if over == "all":
            return True
        if group.columns not in (None, columns):
            return False
        group.columns = columns
        if over == "stretch":
            if group.stretch not in (None, count):
                return False
            group.stretch = count
        return True

    def _is_row(self, group: Group, e: Node) -> bool:
        if group.columns is None or math.prod(e.results[0].shape) * group.columns != group.size:
            return False
        return not self._is_costly_row(group, e)

    def _is_costly_row(self, group: Group, e: Node) -> bool:
        """Whether a function of one element for each row, for which no row is reduced, takes about
        as long as the row: a scalar waits for itself, and in loops of their own such elements are
        vectors.
        """
        found, rows = printing(e), math.prod(e.results[0].shape)
        assert group.columns is not None
        costly = found is not None and found.cost >= max(_COSTLY, group.columns // _ROW_COST)
        if not costly or is_exact(e) or rows < _MANY_ROWS:
            return False
        seen, waiting = {e}, [e]
        while waiting:
            of = waiting.pop()
            if reduction(of) is not None:
                return False
            made = [self.made_by.get(v) for v in of.reads if math.prod(v.shape) == rows]
            new = {m for m in made if m is not None and m not in seen and not why_not(m)}
            seen |= new
            waiting += new
        return True

    def _open(self, e: Node) -> None:
        over = reduction(e)
        if over is not None:
            count, columns = along(e)
            group = Group(count * math.prod(e.results[0].shape))
            group.columns = {"row": count, "all": None}.get(over, columns)
            group.stretch = count if over == "stretch" else None
        else:
            places = len(e.operands) if is_weave(e) else 1
            group = Group(math.prod(e.results[0].shape) // places)
        self.places.append(group)
        self._enter(group, len(self.places) - 1, e)

    def _enter(self, group: Group, place: int, e: Node) -> None:
        group.take(e)
        for v in e.operands:
            if isinstance(v, Var):
                apart = e in self.copies or group.holds(e, v) is False
                self._read(v, _Use(place + 1) if apart else _Use(place, group, e))


def _waits_for_scalars(group: Group, columns: int) -> bool:
    """Whether what a group computes, once it is one element for each row, would take about as long
    as the row: a scalar waits for itself, and in loops of their own such elements are vectors.
    """
    return group.size >= _MANY_ROWS and group.cost >= max(_COSTLY, columns // _ROW_COST)


def _has_no_gaps(index: Any) -> bool:
    """Whether slices take elements that lie side by side, in their order."""
    return all(step in (1, None) for _, _, step in index)


def fuse(graph: Graph) -> Fused:
    """Put the nodes of a graph without calls into steps. Its sizes are numbers."""
    found = _fused(graph)
    more = computed_again(graph, found.steps)
    found = found if more is graph else min(_fused(more), found, key=_kept_bytes)
    while (more := computed_shifted(found)) is not found.graph:  # from what was computed so
        best = min(found, _fused(more), key=_kept_bytes)
        if best is found:
            break
        found = best
    return found


def _kept_bytes(fused: Fused) -> int:
    return sum([math.prod(v.shape) * v.dtype.itemsize for v in fused.kept])


def _fused(graph: Graph) -> Fused:
    walk = _Walk(graph)
    walk.run()
    steps = list(reversed(walk.places))
    for s in steps:
        if isinstance(s, Group):
            s.nodes.reverse()
    steps = merged(steps, walk.views, graph.outputs)
    read = frozenset([walk.views[v].root for s in steps for v in reads(s)])
    given = frozenset([walk.views[v].root for v in graph.outputs])
    copies = frozenset(walk.copies)
    return Fused(
        graph, tuple(steps), walk.views, copies, given | read, given - read, walk.reasons
    )  # fmt: skip
