"""Which results of a program may be written into the memory of which inputs.

A program that is given an input's memory for good may write a result there, once nobody reads the
input any more: a later kernel than the last that does, or the last one itself, where each element
is read and written at one place by one step of its loops.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from funct.compile.loops import Kernel, Load, Reduce
from funct.compile.lower import Address, Call
from funct.compile.program import every_call
from funct.graph import Var

__all__ = ["reusable"]


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
            if read < written or (read == written and _in_place(calls[read], given, result)):
                found.append((r, i))
    return tuple(found)


def _in_place(call: Call, given: Var, result: Var) -> bool:
    """Whether the kernel reads each element of one where it writes that of the other, once."""
    kernel = call.kernel
    if not isinstance(kernel, Kernel):
        return False
    if any(isinstance(v, Reduce) and v.over == "row" for v in kernel.values):
        return False  # a later pass along the row reads it again
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
    reads = [v for v in kernel.values if isinstance(v, Load) and v.access == a]
    full = all(v.kind == "full" for v in reads) and both[0].inner == "one"
    return full and both[0] == both[1] and words[0] == words[1]
