"""In which order steps run.

Steps are found from the last to the first, each as late as it may be. A step that frees more memory
than it fills is better taken early: the product that makes the gradient of a layer's weights reads
the layer's activations for the last time. Where such steps lower the most that is held at once,
they are taken as soon as what they read is there; where they do not, the order stays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import attrs
from msgspec import Struct

from funct.compile.fusion.calls import size_bytes
from funct.compile.fusion.fuse import Fused
from funct.compile.fusion.groups import Group, reads
from funct.graph import Guard, Node, Var

__all__ = ["Held", "held", "ordered"]


class Held(Struct, frozen=True):
    """The most bytes that are held at once, of what steps make, and at which step."""

    peak: int
    at: int


def held(fused: Fused) -> Held:
    """What is held as the steps run in their order."""
    return _Steps(fused, fused.steps, fused.graph.outputs).held(range(len(fused.steps)))


def ordered(fused: Fused, may_move: Callable[[Any], bool]) -> Fused:
    """The same steps in an order that holds no more, and less where that can be seen.

    may_move: whether a step may be taken before others that it does not read; steps cross none that
    may not.
    """
    steps: list[Group | Node | Guard] = []
    start = 0
    for k, step in enumerate([*fused.steps, None]):
        if step is not None and may_move(step):
            continue
        run: Sequence[Any] = fused.steps[start:k]
        if len(run) > 2:
            later = {v for s in fused.steps[k:] for v in reads(s)}
            run = _early(_Steps(fused, run, [*fused.graph.outputs, *later]))
        steps += run
        if step is not None:
            steps.append(step)
        start = k + 1
    return attrs.evolve(fused, steps=tuple(steps))


def _early(given: _Steps) -> Sequence[Any]:
    """The steps, with what frees memory as early as it can be."""
    found = given.eager()
    usual = range(len(given.steps))
    if given.held(found).peak < given.held(usual).peak:
        return [given.steps[k] for k in found]
    return given.steps


class _Steps:
    """Steps that follow one another, and what they read and make. needed: what others read."""

    def __init__(self, fused: Fused, steps: Sequence[Any], needed: Sequence[Var]) -> None:
        self.steps = steps
        views = fused.views
        self.made = [_made(fused, s) for s in steps]
        maker = {v: k for k, made in enumerate(self.made) for v in made}
        self.reads = [dict.fromkeys([views[v].root for v in reads(s)]) for s in steps]
        self.after = [{maker[v] for v in found if v in maker} for found in self.reads]
        self.readers: dict[Any, set[int]] = {v: set() for v in maker}
        for k, found in enumerate(self.reads):
            for v in found:
                if v in maker:
                    self.readers[v].add(k)
        for v in needed:
            self.readers.pop(views[v].root, None)  # it stays

    def _freed(self, k: int, left: dict[Any, set[int]]) -> int:
        """Bytes that nobody reads after step k."""
        mine = (*self.reads[k], *self.made[k])
        return sum([size_bytes(v) for v in mine if v in left and not left[v] - {k}])

    def held(self, order: Sequence[int]) -> Held:
        """What is held in an order. Loops over elements may write into the place of what they read
        for the last time."""
        left = {v: set(r) for v, r in self.readers.items()}
        now = peak = at = 0
        for k in order:
            made, freed = sum(map(size_bytes, self.made[k])), self._freed(k, left)
            in_place = min(made, freed) if isinstance(self.steps[k], Group) else 0
            if now + made - in_place > peak:
                peak, at = now + made - in_place, k
            now += made - freed
            for v in self.reads[k]:
                if v in left:
                    left[v].discard(k)
        return Held(peak, at)

    def eager(self) -> list[int]:
        """The steps in order, but each that frees more than it fills as soon as it can run."""
        left = {v: set(r) for v, r in self.readers.items()}
        missing = [len(found) for found in self.after]
        readers: dict[int, list[int]] = {}
        for k, found in enumerate(self.after):
            for m in found:
                readers.setdefault(m, []).append(k)
        order: list[int] = []
        done: set[int] = set()
        for k in range(len(self.steps)):
            stack = [k]
            while stack:
                m = stack.pop()
                if m in done:
                    continue
                order.append(m)
                done.add(m)
                asked = set()
                for n in readers.get(m, ()):
                    missing[n] -= 1
                    if not missing[n]:
                        asked.add(n)
                for v in self.reads[m]:
                    if v in left:
                        left[v].discard(m)
                        asked |= left[v] if len(left[v]) == 1 else set()
                stack += [n for n in sorted(asked, reverse=True) if self._pays(n, missing, left)]
        return order

    def _pays(self, k: int, missing: list[int], left: dict[Any, set[int]]) -> bool:
        return not missing[k] and self._freed(k, left) > sum(map(size_bytes, self.made[k]))


def _made(fused: Fused, step: Any) -> list[Var]:
    """The arrays that a step makes for others."""
    if isinstance(step, Guard):
        return []
    made = [v for e in step.nodes for v in e.results] if isinstance(step, Group) else step.results
    return [v for v in made if v in fused.kept and fused.views[v].root is v]
