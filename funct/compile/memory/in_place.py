"""Whether a kernel may write one buffer into the memory of another that it reads."""

from __future__ import annotations

import functools
from collections import Counter
from typing import Any

import attrs

from funct.compile.fusion.calls import Address, Call
from funct.compile.loops.kernel import Kernel, Load
from funct.compile.loops.passes import Pass, passes

__all__ = ["in_place"]


@attrs.frozen
class _Walked:
    """What a kernel's call does with its buffers: for each, the accesses by which it is walked; how
    often the call has its address; the kernel's walks along a row.
    """

    accesses: dict[Any, list[int]]
    slots: list[int]
    mentions: Counter[Any]
    walks: tuple[Pass, ...]


@functools.lru_cache(16)
def _walked(call: Call) -> _Walked:
    """Of a call of a Kernel: it is asked for many pairs of buffers."""
    slots, _, _ = call.kernel.slots()
    accesses: dict[Any, list[int]] = {}
    for a, slot in enumerate(slots):
        accesses.setdefault(call.words[slot], []).append(a)
    mentions = Counter([w.of for w in call.words if isinstance(w, Address)])
    return _Walked(accesses, slots, mentions, passes(call.kernel).walks)


def in_place(call: Call, given: Any, result: Any) -> bool:
    """Whether a kernel reads each element of one for the last time where it writes the other's."""
    kernel = call.kernel
    if not isinstance(kernel, Kernel):
        return False
    walked = _walked(call)
    found = [walked.accesses.get(Address(v), []) for v in (given, result)]
    if any(len(f) != 1 for f in found) or walked.mentions[given] + walked.mentions[result] != 2:
        return False
    (a,), (b,) = found
    both, slots = (kernel.accesses[a], kernel.accesses[b]), walked.slots
    words = [call.words[slots[k] + 1 : slots[k] + kernel.accesses[k].words] for k in (a, b)]
    if both[0].inner != "one" or both[0] != both[1] or words[0] != words[1]:
        return False
    reads = {n for n, v in enumerate(kernel.values) if isinstance(v, Load) and v.access == a}
    written = {n for n, access in kernel.stores if access == b}
    if not reads or any(kernel.values[n].kind != "full" for n in (*reads, *written)):
        return False
    asks = [k for k, w in enumerate(walked.walks) if not reads.isdisjoint(w.needed)]
    puts = [k for k, w in enumerate(walked.walks) if not written.isdisjoint(w.roots)]
    return len(puts) == 1 and asks[-1] <= puts[0]  # what a later pass reads must be there still
