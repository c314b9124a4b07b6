"""Which results of a program may be written into the memory of which inputs.

A program that is given an input's memory for good may write a result there, once nobody reads the
input any more: a later kernel than the last that does, or the last one itself, where each element
is read for the last time by the very step of its loops that writes there, or where it only changes
some: what an update copies is there already, and so is what a loop carries.

A program that finds at its end that an op must raise is run again, op by op. So whether one must
raise may not depend on what is overwritten.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from typing import Any

from msgspec import Struct

from funct.compile.fusion.calls import Address, Call, every_call
from funct.compile.loops.kernel import Kernel
from funct.compile.memory.carried import CARRY_WORDS, beginning
from funct.graph import Var

__all__ = ["Reusable", "reusable"]

_NEVER = 1 << 30


class Reusable(Struct, frozen=True):
    """When a program's calls leave the memory of inputs to results.

    last: for each input the last call that reads it. first: for each result the first one that
    writes it. begins: (result, input) of one call, which reads each element of the input for the
    last time before it writes there.
    """

    last: tuple[int, ...] = ()
    first: tuple[int, ...] = ()
    begins: tuple[tuple[int, int], ...] = ()

    def among(self, places: Sequence[int], count: int, kept: Container[int]) -> Reusable:
        """The same where the results stand at these places among so many, and some inputs stay."""
        last = [_NEVER if i in kept else k for i, k in enumerate(self.last)]
        first = [-1] * count
        for place, k in zip(places, self.first, strict=True):
            first[place] = k
        begins = [(places[r], i) for r, i in self.begins if i not in kept]
        return Reusable(tuple(last), tuple(first), tuple(begins))

    def taken(
        self, inputs: Sequence[Var], results: Sequence[Var], given: Iterable[int] | None = None
    ) -> dict[int, int]:
        """Which results take the memory of which inputs, of their shape and dtype and, if that is
        said, given away: of a call's own first, then what has been free for the shortest time.
        """
        found: dict[int, int] = {}
        free = set(range(len(self.last)) if given is None else given)
        for r, i in self.begins:
            if r not in found and i in free and _type(results[r]) == _type(inputs[i]):
                found[r] = i
                free.remove(i)
        alike: dict[Any, list[int]] = {}
        for i in sorted(free, key=self.last.__getitem__, reverse=True):
            alike.setdefault(_type(inputs[i]), []).append(i)
        waiting: dict[Any, list[int]] = {}
        for r in sorted(range(len(self.first)), key=self.first.__getitem__):
            if r in found:
                continue
            later, now = alike.get(_type(results[r]), []), waiting.setdefault(_type(results[r]), [])
            while later and self.last[later[-1]] < self.first[r]:
                now.append(later.pop())
            if now:
                found[r] = now.pop()
        return found


def reusable(
    calls: Sequence[Call],
    inputs: Sequence[Var],
    results: Sequence[Var],
    faces: Sequence[Var] | None = None,
) -> Reusable:
    """What may be reused. faces: what the results are for whoever takes them, if something else."""
    first: dict[Any, int] = {}
    last: dict[Any, int] = {}
    for k, c in enumerate(calls):
        for w in [w for inner in every_call([c]) for w in inner.words]:
            if isinstance(w, Address):
                first.setdefault(w.of, k)
                last[w.of] = k
    begun: dict[Any, list[int]] = {}
    for r, (v, face) in enumerate(zip(results, faces or results, strict=True)):
        begun.setdefault((first[v], _type(face)), []).append(r)
    decisive = _decisive(calls)
    lasts = [_NEVER if v in decisive else last.get(v, -1) for v in inputs]
    begins = [
        (r, i)
        for i, (k, v) in enumerate(zip(lasts, inputs, strict=True))
        for r in begun.get((k, _type(v)), ())
        if beginning(calls[k], v, results[r]) is calls[k]
    ]
    return Reusable(tuple(lasts), tuple([first[v] for v in results]), tuple(sorted(begins)))


def _type(v: Var) -> Any:
    return v.shape, v.dtype


def _decisive(calls: Sequence[Call]) -> set[Any]:
    """The buffers on whose elements it depends whether an op of a program must raise."""
    every = list(every_call(calls))
    if any(c.doubts for c in every):  # what does not raise gives results
        return {w.of for c in every for w in c.words if isinstance(w, Address)}
    found = {v for c in every for v in _asked(c)}
    flows = [(set(read), set(written)) for c in every for read, written in _flows(c)]
    count = -1
    while count < len(found):  # loops bring values back
        count = len(found)
        for read, written in reversed(flows):
            if not found.isdisjoint(written):
                found |= read
    return found


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
