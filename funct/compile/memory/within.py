"""Less memory at once, for more work: `config.memory_budget` of a program that is compiled whole.

Where the program would hold most it is cut in two, and what the second part reads of the first is
kept, or made again just before it is read (`partition.py`): first what costs little, then products
as well. Then most is held in another place, and the program is cut there.
"""

from __future__ import annotations

from collections.abc import Callable

from funct.compile.fusion.fuse import Fused
from funct.compile.fusion.groups import Group
from funct.compile.memory.order import Held, held
from funct.compile.memory.partition import recomputed
from funct.graph import Graph, Guard, Node

__all__ = ["within"]

_MOST_CUTS = 24
_PARTS = (1.0, 0.5, 0.0)  # of what is held across a cut, more work with each


def within(budget: float, fused: Fused, arrange: Callable[[Graph], Fused]) -> Fused:
    """The same program, holding at once at most this part of what it holds now, or as little as
    cuts give. arrange: a graph's steps in order.
    """
    if budget == 1.0:
        return fused
    now = held(fused)
    allowed = budget * now.peak
    for k in range(_MOST_CUTS):
        found = None if now.peak <= allowed else _lower(fused, now, f"r{k}", arrange)
        if found is None:
            break
        fused, now = found
    return fused


def _lower(
    fused: Fused, now: Held, mark: str, arrange: Callable[[Graph], Fused]
) -> tuple[Fused, Held] | None:
    """The program cut where it holds most; None where that gives nothing."""
    late = fused.steps[now.at :]
    if any(isinstance(s, Guard) for s in late):
        return None
    after: set[Node] = set()
    for s in late:
        after.update(s.nodes if isinstance(s, Group) else [s])  # type: ignore[list-item]
    for part in _PARTS:
        found = arrange(recomputed(fused.graph, after, part, mark))
        then = held(found)
        if then.peak < now.peak:
            return found, then
    return None
