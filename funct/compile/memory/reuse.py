"""Which results of a program may be written into the memory of which inputs.

A program that is given an input's memory for good may write a result there, once nobody reads the
input any more: a later kernel than the last that does, or the last one itself, where each element
is read for the last time by the very step of its loops that writes there, or where it only changes
some: what an update copies is there already, and so is what a loop carries.

A program that finds at its end that an op must raise is run again, op by op. So whether one must
raise may not depend on what is overwritten.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from funct.compile.fusion.calls import Address, Call, every_call
from funct.compile.loops.kernel import Kernel
from funct.compile.memory.carried import CARRY_WORDS, beginning
from funct.graph import Var

__all__ = ["one_to_one", "reusable"]

_COUNT = 4  # the word of a loop that says where its number of steps is written


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
    for i, given in enumerate(inputs):
        decides: bool | None = None
        for r, result in enumerate(results):
            if (math.prod(given.shape), given.dtype) != (math.prod(result.shape), result.dtype):
                continue
            read, written = last.get(given, -1), first[result]
            begins = read == written and beginning(calls[read], given, result) is calls[read]
            if read < written or begins:
                decides = _decides(calls, given) if decides is None else decides
                if not decides:
                    found.append((r, i))
    return tuple(sorted(found))


def _decides(calls: Sequence[Call], given: Any) -> bool:
    """Whether an op of a program may or may not raise, depending on the elements of an input."""
    if not any(c.checks for c in every_call(calls)):
        return False
    from_it, count = {given}, 0
    while count < len(from_it):  # loops bring values back
        count = len(from_it)
        for c in every_call(calls):
            if not from_it.isdisjoint(_asked(c)):
                return True
            for read, written in _flows(c):
                if not from_it.isdisjoint(read):
                    from_it.update(written)
    return False


def _asked(c: Call) -> Iterator[Any]:
    """The buffers on whose elements it depends whether a call finds that an op must raise."""
    if c.blocks and any(inner.checks for inner in every_call([c])):
        words = c.words[:CARRY_WORDS] if _kind(c) == "repeat" else c.words
        yield from [w.of for w in words if isinstance(w, Address)]
    elif c.checks:
        words = c.words[1:2] if _kind(c) == "gather" else c.words
        if isinstance(c.kernel, Kernel):
            slots, _, _ = c.kernel.slots()
            words = tuple([c.words[slots[a]] for a in c.kernel.deciding()])
        yield from [w.of for w in words if isinstance(w, Address)]


def _flows(c: Call) -> Iterator[tuple[list[Any], list[Any]]]:
    """From which buffers a call brings values into which others."""
    if _kind(c) != "repeat":
        yield [w.of for w in c.words if isinstance(w, Address)], list(c.writes)
        return
    for carry in zip(*[iter(c.words[CARRY_WORDS:])] * 4, strict=False):
        both = [w.of for w in carry if isinstance(w, Address)]
        yield both, both


def _kind(c: Call) -> Any:
    return c.kernel[0] if isinstance(c.kernel, tuple) else ""


def one_to_one(pairs: Iterable[tuple[int, int]]) -> dict[int, int]:
    """Which result takes which input's memory, where each does so once."""
    found: dict[int, int] = {}
    taken: set[int] = set()
    for r, i in pairs:
        if r not in found and i not in taken:
            found[r] = i
            taken.add(i)
    return found
