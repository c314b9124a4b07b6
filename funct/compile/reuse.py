"""Which results of a program may be written into the memory of which inputs.

A program that is given an input's memory for good may write a result there, once nobody reads the
input any more: a later kernel than the last that does, or the last one itself, where each element
is read for the last time by the very step of its loops that writes there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from funct.compile.loops import Kernel, Load
from funct.compile.lower import Address, Call, every_call
from funct.compile.passes import passes
from funct.graph import Var

__all__ = ["in_place", "one_to_one", "reusable"]


def reusable(
    calls: Sequence[Call], inputs: Sequence[Var], results: Sequence[Var]
) -> tuple[tuple[int, int], ...]:
    """All such (result, input), by their positions: whoever gives memory away takes his pick."""
    first: dict[Any, int] = {}
    last: dict[Any, int] = {}
    for k, c in enumerate(calls):
        for w in [w for inner in every_call([c]) for w in inner.words]:
            if isinstance(w, Address):
                first.setdefault(w.of, k)
                last[w.of] = k
    found: list[tuple[int, int]] = []
    for r, result in enumerate(results):
        for i, given in enumerate(inputs):
            if (given.shape, given.dtype) != (result.shape, result.dtype):
                continue
            read, written = last.get(given, -1), first[result]
            if read < written or (read == written and in_place(calls[read], given, result)):
                found.append((r, i))
    return tuple(found)


def one_to_one(pairs: Iterable[tuple[int, int]]) -> dict[int, int]:
    """Which result takes which input's memory, where each does so once."""
    found: dict[int, int] = {}
    taken: set[int] = set()
    for r, i in pairs:
        if r not in found and i not in taken:
            found[r] = i
            taken.add(i)
    return found


def in_place(call: Call, given: Any, result: Any) -> bool:
    """Whether a kernel reads each element of one for the last time where it writes the other's."""
    kernel = call.kernel
    if not isinstance(kernel, Kernel):
        return False
    slots, _, _ = kernel.slots()
    places = {
        v: [a for a, slot in enumerate(slots) if call.words[slot] == Address(v)]
        for v in (given, result)
    }
    mentions = [w.of for w in call.words if isinstance(w, Address)]
    if any(len(p) != 1 or mentions.count(v) != 1 for v, p in places.items()):
        return False
    a, b = places[given][0], places[result][0]
    both = kernel.accesses[a], kernel.accesses[b]
    words = [call.words[slots[k] + 1 : slots[k] + kernel.accesses[k].words] for k in (a, b)]
    if both[0].inner != "one" or both[0] != both[1] or words[0] != words[1]:
        return False
    reads = {n for n, v in enumerate(kernel.values) if isinstance(v, Load) and v.access == a}
    written = [n for n, access in kernel.stores if access == b]
    if not reads or any(kernel.values[n].kind != "full" for n in (*reads, *written)):
        return False
    walks = [k for k, w in enumerate(passes(kernel).walks) if not reads.isdisjoint(w.needed)]
    puts = [k for k, w in enumerate(passes(kernel).walks) if not set(written).isdisjoint(w.roots)]
    return len(puts) == 1 and walks[-1] <= puts[0]  # what a later pass reads must be there still
