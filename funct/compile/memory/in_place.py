"""Whether a kernel may write one buffer into the memory of another that it reads."""

from __future__ import annotations

import functools
from collections import Counter
from typing import Any

from msgspec import Struct

from funct.compile.fusion.calls import Address, Call
from funct.compile.loops.kernel import Kernel, Load
from funct.compile.loops.passes import passes

__all__ = ["in_place"]


class _Walked(Struct, frozen=True):
    """What a kernel's call does with its buffers: for each, the accesses that begin where it does;
    how often the call has its address; the words of each access. By accesses: the last of the
    kernel's walks along a row that reads its elements, and the only one that writes them, where
    these are full rows.
    """

    accesses: dict[Any, list[int]]
    mentions: Counter[Any]
    words: list[tuple[Any, ...]]
    read: dict[int, int]
    written: dict[int, int]


@functools.lru_cache(16)
def _walked(call: Call) -> _Walked:
    """Of a call of a Kernel: it is asked for many pairs of buffers."""
    kernel = call.kernel
    slots, _, _ = kernel.slots()
    accesses: dict[Any, list[int]] = {}
    for a, slot in enumerate(slots):
        word = call.words[slot]
        if isinstance(word, Address) and word.offset == 0:
            accesses.setdefault(word.of, []).append(a)
    words = [call.words[s + 1 : s + kernel.accesses[a].words] for a, s in enumerate(slots)]
    loads: dict[int, set[int]] = {}
    for n, v in enumerate(kernel.values):
        if isinstance(v, Load):
            loads.setdefault(v.access, set()).add(n)
    stores: dict[int, set[int]] = {}
    for n, a in kernel.stores:
        stores.setdefault(a, set()).add(n)
    walks = passes(kernel).walks
    read, written = {}, {}
    for a, values in loads.items():
        asks = [k for k, w in enumerate(walks) if not values.isdisjoint(w.needed)]
        if asks and all(kernel.values[n].kind == "full" for n in values):
            read[a] = asks[-1]
    for a, values in stores.items():
        puts = [k for k, w in enumerate(walks) if not values.isdisjoint(w.roots)]
        if len(puts) == 1 and all(kernel.values[n].kind == "full" for n in values):
            (written[a],) = puts
    mentions = Counter([w.of for w in call.words if isinstance(w, Address)])
    return _Walked(accesses, mentions, words, read, written)


def in_place(call: Call, given: Any, result: Any) -> bool:
    """Whether a kernel reads each element of one for the last time where it writes the other's."""
    if not isinstance(call.kernel, Kernel):
        return False
    walked, accesses = _walked(call), call.kernel.accesses
    found = [walked.accesses.get(v, []) for v in (given, result)]
    if any(len(f) != 1 for f in found) or walked.mentions[given] + walked.mentions[result] != 2:
        return False
    (a,), (b,) = found
    if a not in walked.read or b not in walked.written:
        return False
    if accesses[a].inner != "one" or accesses[a] != accesses[b]:
        return False
    if walked.words[a] != walked.words[b]:
        return False
    return walked.read[a] <= walked.written[b]  # what a later pass reads must be there still
