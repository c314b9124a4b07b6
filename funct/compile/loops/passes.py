"""What each walk along a row computes.

A reduction along the row ends a pass, because only then does its value exist. A later pass computes
again what it needs of the values before, unless it finds them in memory: stored for the caller, or,
where they are costly, kept in a row of their own.

A long flat body in which values wait for each other is walked in stages, strip by strip: a
processor looks a few hundred instructions ahead, and finds work that does not wait only where the
next elements are that near. So is one that computes for long with elements that it looks up one by
one.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence, Set

from msgspec import Struct

from funct.compile.loops.kernel import Kernel, Load, Reduce
from funct.compile.loops.reductions import in_memory
from funct.device import host
from funct.kernels.llvm import typed

__all__ = ["STRIP", "Pass", "Passes", "bytes_of_kept", "passes", "side_by_side"]

STRIP = 512  # elements: what stages keep of them stays in the first cache
_STAGE = 48  # cost of a stage; of less than two of them no stages are made
_BEHIND = 12  # cost of what is computed with elements looked up, from which on they are a stage
_KEPT_COST = 8  # what costs that is kept for the passes to come, not computed again


class Pass(Struct, frozen=True):
    """One walk. roots: what it is there for, which are values that are stored, and reductions.

    needed: the values that it holds, in order. known: those of them that lie in memory.
    """

    roots: tuple[int, ...]
    needed: tuple[int, ...]
    known: frozenset[int]


class Passes(Struct, frozen=True):
    """All walks along a row, in order. kept: the values that have a row of their own. staged:
    whether the walks are stages, along one strip after the other.
    """

    walks: tuple[Pass, ...]
    kept: frozenset[int]
    staged: bool


def passes(kernel: Kernel) -> Passes:
    """The walks of a kernel."""
    return _Planning(kernel).run()


def bytes_of_kept(kernel: Kernel) -> int:
    """Bytes for each column of the rows that are kept."""
    values = kernel.values
    return sum(typed(in_memory(values[n].element)).bytes for n in passes(kernel).kept)


class _Planning:
    """One kernel's passes as they are found."""

    def __init__(self, kernel: Kernel) -> None:
        self.k = kernel
        self.stored = {n for n, _ in kernel.stores}
        self.kept: set[int] = set()
        self.first = _first_passes(kernel)
        stages = _stages(kernel)
        self.staged = max(stages, default=0) > 0
        self.handed: set[int] = set()  # from one stage to later ones
        if self.staged:
            self.first = stages
            every = range(len(kernel.values))
            later = {o for n in every for o in kernel.operands(n) if stages[o] < stages[n]}
            self.handed = set(filter(self._is_costly, later))

    def run(self) -> Passes:
        """Find all passes that have roots."""
        found = []
        held: set[int] = set()  # what earlier passes computed
        for p in range(max(self.first, default=0) + 1):
            roots = self._roots(p)
            if not roots:
                continue
            needed = self._needed(roots, held)
            known = needed & held & (self.stored | self.kept)
            held |= needed
            found.append(Pass(tuple(roots), tuple(sorted(needed)), frozenset(known)))
        return Passes(tuple(found), frozenset(self.kept), self.staged)

    def _roots(self, p: int) -> list[int]:
        """What pass p is there for."""
        found = []
        for n, v in enumerate(self.k.values):
            if isinstance(v, Reduce):
                # what a row's value adds to everything's is added once a row, after its passes
                once = v.over == "all" and self.k.values[v.operand].kind == "row"
                here = self.first[n] - (v.over == "row") == p and not once
            else:
                wanted = n in self.stored or n in self.handed
                here = v.kind == "full" and wanted and self.first[n] == p
            if here:
                found.append(n)
        return found

    def _needed(self, roots: list[int], held: set[int]) -> set[int]:
        """What the roots of a pass are computed from; what lies in memory ends the search."""
        found: set[int] = set()
        values = self.k.values
        stack = [v.operand if isinstance(v := values[n], Reduce) else n for n in roots]
        while stack:
            n = stack.pop()
            v = values[n]
            if n in found:
                continue
            found.add(n)
            if v.kind != "full":
                continue
            if n in held and n not in self.stored and self._is_costly(n):
                self.kept.update([n] if self.k.kept or self.staged else [])
            if n not in held or n not in self.stored | self.kept:
                stack += self.k.operands(n)
        return found

    def _is_costly(self, n: int) -> bool:
        """Whether computing a value again, from what lies in memory, costs more than reading it."""
        cost, seen, stack = 0, set(), [n]
        while stack and cost < _KEPT_COST:
            m = stack.pop()
            if m in seen or m in self.stored | self.kept:
                continue
            seen.add(m)
            if self.k.values[m].kind == "full":
                cost += self.k.cost(m)
                stack += self.k.operands(m)
        return cost >= _KEPT_COST


def _first_passes(kernel: Kernel) -> list[int]:
    """The first pass in which each value can be computed."""
    first: list[int] = []
    for n, v in enumerate(kernel.values):
        if isinstance(v, Reduce):
            first.append(first[v.operand] + (v.over == "row"))
        else:
            first.append(max([first[o] for o in kernel.operands(n)], default=0))
    return first


def _stages(kernel: Kernel) -> list[int]:
    """The stage of each value; all 0 where the body is short, not flat, or reduces something, or
    there is one vector.
    """
    every = range(len(kernel.values))
    gathers = {n for n in every if isinstance(kernel.values[n], Load) and kernel.cost(n)}
    costs = [0 if n in gathers else kernel.cost(n) for n in every]  # to look up is to wait
    if kernel.alone or not kernel.flat or any(isinstance(v, Reduce) for v in kernel.values):
        return [0] * len(every)
    if sum(costs) < 2 * _STAGE or 2 * side_by_side(kernel, costs) >= host().operations_at_once:
        return _behind_gathers(kernel, gathers, sum(costs))
    return [before // _STAGE for before in itertools.accumulate(costs[:-1], initial=0)]


def side_by_side(kernel: Kernel, costs: Sequence[int]) -> float:
    """How many operations of one vector can be done at a time. costs: of each value."""
    depth: list[int] = []
    for n, cost in enumerate(costs):
        depth.append(cost + max([depth[o] for o in kernel.operands(n)], default=0))
    return sum(costs) / max(1, *depth)


def _behind_gathers(kernel: Kernel, gathers: Set[int], work: int) -> list[int]:
    """The same of a short body: a stage more for what is made of elements that are looked up."""
    every = range(len(kernel.values))
    if work < _BEHIND:
        return [0] * len(every)
    found: list[int] = []
    for n in every:
        found.append(max([found[o] + (o in gathers) for o in kernel.operands(n)], default=0))
    return found
