"""Which of the values that a loop carries are changed in place.

A step gives the next value in a buffer of its own, and the loop goes back and forth between two. A
table of which a step writes one element would be copied at each. Where the call that begins the new
value reads the old one for the last time, element by element, both stand in one place: whoever else
reads the old value is called before. Such calls may stand in a row, and in branches and loops
inside.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from funct.compile.fusion.calls import Address, Call, Word, every_call, size_bytes
from funct.compile.memory.in_place import in_place

__all__ = ["CARRY_WORDS", "beginning", "chained", "moved", "stay"]

CARRY_WORDS = 8  # of a loop, behind which those of its carries begin: see `steps/turns.py`
REGISTER_WORDS = 4  # of a loop over lines, behind which those of what it holds begin
_LARGE = 256  # bytes from which a copy is worth avoiding


def stay(
    calls: Sequence[Call], carried: Sequence[tuple[Any, Any]], results: Collection[Any]
) -> tuple[tuple[Call, ...], frozenset[int]]:
    """The calls of a step in their new order, and which of the carried values stay.

    carried: for each, the buffers that it is read from and written to. results: all buffers that
    somebody reads after the step, each of which needs a place of its own.
    """
    found: dict[int, tuple[Any, Any]] = {}
    now = tuple(calls)
    for k, pair in enumerate(carried):
        large = size_bytes(pair[0]) >= _LARGE
        then = _in_one_place(now, *pair, results) if large else None
        if then is not None and all(_last(then, *other) == then for other in found.values()):
            now = then
            found[k] = pair
    return now, frozenset(found)


def _in_one_place(
    calls: Sequence[Call], given: Any, result: Any, results: Collection[Any]
) -> tuple[Call, ...] | None:
    """The calls, where the result and all that it is made of on the way from what is given stand
    in one place, whose address is the result's; None if the result needs its own.
    """
    now: tuple[Call, ...] | None = tuple(calls)
    while now is not None:
        begins = next((c for c in now if result in c.writes), None)
        if begins is None:
            return None
        found = _last(now, given, result)
        if found is not None:
            return found
        made = {v for c in now for v in c.writes if size_bytes(v) == size_bytes(result)}
        made.difference_update(results)
        steps = [(v, _last(now, v, result)) for v in _touched(begins) if v in made]
        v, now = next(((v, n) for v, n in steps if n is not None), (None, None))
        if now is not None:
            one = [moved(c, {v: Address(result)}) for c in now]
            now = tuple([c for c in one if not _is_nothing(c)])
    return None


def chained(calls: Sequence[Call], kept: Collection[Any]) -> list[Call]:
    """The calls of a program, without copies of what the program made and nobody reads afterwards:
    updates of updates stand in one place.

    kept: the buffers that are given, or read after the program.
    """
    now = list(calls)
    for c in calls:
        if c.kernel != ("copied",) or not isinstance(c.words[1], Address):
            continue
        (new,), old = c.writes, c.words[1].of
        made = any(old in other.writes for other in now) and old not in kept
        k = next((k for k, other in enumerate(now) if new in other.writes), None)
        if k is None or not made or size_bytes(old) != size_bytes(new):
            continue
        if now[k].words[:2] == (Address(new), Address(old)) and not any(
            old in _touched(other) for other in now[k + 1 :]
        ):
            one = [moved(other, {old: Address(new)}) for other in now]
            now = [other for other in one if not _is_nothing(other)]
    return now


def _is_nothing(c: Call) -> bool:
    return c.kernel == ("copied",) and c.words[0] == c.words[1]


def _last(calls: Sequence[Call], given: Any, result: Any) -> tuple[Call, ...] | None:
    """The calls, those that make the result last and those that wait for one of them; None where
    the result needs its own place.
    """
    begins = next((k for k, c in enumerate(calls) if result in c.writes), None)
    first = None if begins is None else beginning(calls[begins], given, result)
    if begins is None or first is None:
        return None
    before, after = list(calls[:begins]), [first]
    made, read = set(first.writes), set(_touched(first))
    for c in calls[begins + 1 :]:
        touched = _touched(c)
        if made.isdisjoint(touched) and read.isdisjoint(c.writes):
            before.append(c)
        else:
            after.append(c)
            made.update(c.writes)
            read.update(touched)
    if any(given in _touched(c) for c in after[1:]):
        return None
    return (*before, *after)


def beginning(c: Call, given: Any, result: Any) -> Call | None:
    """The call, if it is right where both are one place."""
    old, new = Address(given), Address(result)
    kind = c.kernel[0] if isinstance(c.kernel, tuple) else ""
    if kind == "copied" and c.words[:2] == (new, old):
        return c
    if kind == "repeat":
        quads = zip(*[iter(c.words[CARRY_WORDS:])] * 4, strict=False)
        once = [w.of for i in every_call([c]) for w in i.words if isinstance(w, Address)]
        here = (old, new, new) in [q[:3] for q in quads]
        return c if here and once.count(given) == 1 else None
    if kind == "registers":
        code = c.kernel[1]
        pairs = c.words[REGISTER_WORDS + len(code.held) :]
        tables = [pairs[2 * k : 2 * k + 2] for k, size in enumerate(code.tables) if size]
        named = [w.of for w in c.words if isinstance(w, Address)]
        return c if named.count(given) == 1 and (old, new) in tables else None
    if kind == "choose":
        blocks = [_last(b, given, result) for b in c.blocks]
        return None if None in blocks else _with_blocks(c, blocks)
    return c if in_place(c, given, result) else None


def _with_blocks(c: Call, blocks: Sequence[Any]) -> Call:
    """The call; itself if these are its blocks."""
    return c if tuple(blocks) == c.blocks else replace(c, blocks=tuple(blocks))


def _touched(c: Call) -> dict[Any, None]:
    """The buffers that a call reads or writes, in order."""
    every = list(every_call([c]))
    read = [w.of for i in every for w in i.words if isinstance(w, Address)]
    return dict.fromkeys([*read, *[v for i in every for v in i.writes]])


def moved(c: Call, places: Mapping[Any, Address]) -> Call:
    """The call, which reads and writes at these places."""
    words: list[Word] = []
    for w in c.words:
        if isinstance(w, Address) and w.of in places:
            to = places[w.of]
            w = Address(to.of, to.offset + w.offset)
        words.append(w)
    writes = [places[v].of if v in places else v for v in c.writes]
    blocks = [tuple([moved(inner, places) for inner in b]) for b in c.blocks]
    return replace(c, words=tuple(words), writes=tuple(writes), blocks=tuple(blocks))
