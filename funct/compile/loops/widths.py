"""Of how many registers a kernel's vectors are.

Of several, so that one instruction need not wait for another; of one where a body has as much side
by side as a processor can, since code for more takes its time.
"""

from __future__ import annotations

from collections.abc import Sequence

from funct.compile.loops.kernel import Expression, Kernel, Load, Reduce
from funct.compile.loops.passes import Pass, Passes, side_by_side
from funct.compile.loops.reductions import in_memory
from funct.device import host
from funct.kernels.llvm import typed

__all__ = ["WIDEST", "lanes_of", "registers"]

WIDEST = 4  # registers of a vector
_CHEAP = 12  # of a step of reductions, in additions: running results would wait for one another
_LONG = 64  # of a walk, in additions: code for a second vector of it takes its time
_WAITS, _TOO_LONG = 24, 96  # of a walk that waits for itself, and may be printed for more vectors
_SHORT = 4  # what costs more is a function, whose code is twice as long as it takes
_FEW = 3  # arrays of which registers hold that many


def registers(kernel: Kernel, passes: Passes, walk: Pass, sums: Sequence[int]) -> int:
    """Of how many registers a vector of a walk is. sums: its reductions along the row."""
    cost = sum(map(kernel.cost, walk.needed))
    if sums and cost < _CHEAP:
        return kernel.widest
    needed = set(walk.needed)
    costs = [kernel.cost(n) if n in needed else 0 for n in range(len(kernel.values))]
    at_once = side_by_side(kernel, costs)
    if _is_woven(kernel, walk) or (cost >= _LONG and at_once >= host().operations_at_once):
        return 1
    code = cost + sum([c for c in costs if c > _SHORT])
    waits = cost >= _WAITS and code < _TOO_LONG and at_once < 2
    alone = kernel.flat and not passes.staged and len(kernel.accesses) <= _FEW
    return min(WIDEST if alone and waits else 2, kernel.widest)


def _is_woven(kernel: Kernel, walk: Pass) -> bool:
    """Whether a walk moves woven places: those are vectors enough that need not wait."""
    stored = dict(kernel.stores)
    loads = [v.access for n in walk.needed if isinstance(v := kernel.values[n], Load)]
    moved = [*loads, *[stored[n] for n in walk.roots if n in stored]]
    return any(isinstance(kernel.accesses[a].inner, int) for a in moved)


def lanes_of(values: Sequence[Expression], register: int) -> int:
    """Elements of a register: as many floats as fit, or integers if there are none."""
    elements = {v.element for v in values if v.kind == "full"} or {"f64"}
    elements |= {v.element for v in values if isinstance(v, Reduce)}
    sizes = {e: typed(in_memory(e)).bytes for e in elements}
    floats = [n for e, n in sizes.items() if e in ("f32", "f64")]
    return max(2, register // max(floats or [max(4, *sizes.values())]))
