"""What code does with names: which globals it reads, and what it does with what it finds there."""

from __future__ import annotations

import dis
import functools
import types
from collections.abc import Iterator
from typing import Any, NamedTuple

__all__ = ["Uses", "codes_in", "globals_of", "uses_of"]


def codes_in(code: types.CodeType) -> Iterator[types.CodeType]:
    """The code of a function and of those that are written in it."""
    yield code
    for c in code.co_consts:
        if isinstance(c, types.CodeType):
            yield from codes_in(c)


def globals_of(code: types.CodeType) -> Iterator[str]:
    """The names that code looks up among globals. `co_names` holds those of attributes too: who
    calls `opt.step` reads no global `step`.
    """
    words, high = code.co_code, 0
    for op, low in zip(words[::2], words[1::2], strict=True):
        at = high << 8 | low
        high = at if op == _EXTENDED else 0
        if op in _LOADS:
            yield code.co_names[at >> 1 if op == _GLOBAL else at]


# The lowest bit of the word that loads a global says whether a call follows.
_GLOBAL, _EXTENDED = dis.opmap["LOAD_GLOBAL"], dis.opmap["EXTENDED_ARG"]
_LOADS = {dis.opmap.get(n) for n in ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS")}


class Uses(NamedTuple):
    """What code does with what it finds under names. asks: attributes and globals that it loads,
    and all constants. walks: containers of which it may read any element: those that it does not
    at once ask for one known key, or for an attribute, as what is walked through, passed on or
    given another name goes where it is not followed. writes: containers that it writes into; reads:
    those of which, or of what else, it uses anything.
    """

    asks: frozenset[Any]
    walks: frozenset[Any]
    writes: frozenset[Any]
    reads: frozenset[Any]


@functools.lru_cache(1024)
def uses_of(code: types.CodeType) -> Uses:
    """What one piece of code does, without those in it."""
    found = [one for i in dis.get_instructions(code) for one in _apart(i)]
    walks: set[Any] = set()
    writes: set[Any] = set()
    reads: set[Any] = set()
    stores: set[Any] = set()
    asks = {k for k in code.co_consts if not isinstance(k, types.CodeType)}
    for k, now in enumerate(found):
        name = now.argval if now.opname in _NAMED else None
        if _subscripts(now) and found[k - 1].opname in _CONSTANT:
            name = found[k - 1].argval  # the element itself is a container, perhaps
        if now.opname == "STORE_ATTR":
            stores.add(now.argval)
        elif now.argval.__class__ is str:
            asks.add(now.argval)
        if name is not None:
            after = found[k + 1 : k + 3]
            (writes if _is_written(after) else reads).add(name)
            if not _asks_for_one(after):
                walks.add(name)
    asks |= {n for n in code.co_names if n not in stores}
    return Uses(*map(frozenset, (asks, walks, writes, reads)))


def _apart(i: dis.Instruction) -> list[dis.Instruction]:
    """An instruction that loads two variables, or stores one first, is one for each."""
    if i.argval.__class__ is tuple and i.opname.endswith(_PAIRS):
        verbs = i.opname.partition("_")[0], "LOAD"
        return [
            i._replace(opname=f"{verb}_FAST", argval=name)
            for verb, name in zip(verbs, i.argval, strict=True)
        ]
    return [] if i.opname in _BESIDE else [i]


def _is_written(after: list[dis.Instruction]) -> bool:
    """Whether the instructions after a load write into the object, whatever it holds."""
    then, last = after[0], after[-1]
    if then.opname in _ATTRIBUTE:
        return then.argval in _WRITING
    return then.opname.startswith("LOAD_") and last.opname == "STORE_SUBSCR"


def _asks_for_one(after: list[dis.Instruction]) -> bool:
    """Whether the instructions after a load ask the object for one attribute, or one known key."""
    then, last = after[0], after[-1]
    if then.opname in _CONSTANT:
        return _subscripts(last)
    if then.opname in _ATTRIBUTE:
        asks = then.argval in _OF_ONE_KEY and last.opname in _CONSTANT
        return asks or not hasattr(dict, then.argval)
    return then.opname == "CONTAINS_OP"


def _subscripts(i: dis.Instruction) -> bool:
    """Whether an instruction reads or writes an element."""
    return i.opname in _SUBSCRIPTS or (i.opname == "BINARY_OP" and i.argrepr == "[]")


_BESIDE = {"COPY", "EXTENDED_ARG", "PUSH_NULL"}
_PAIRS = ("FAST_LOAD_FAST", "BORROW_LOAD_FAST_BORROW")  # since Python 3.13
_CONSTANT = {"LOAD_CONST", "LOAD_SMALL_INT"}
_ATTRIBUTE = {"LOAD_ATTR", "LOAD_METHOD"}
_NAMED = _ATTRIBUTE | {
    "LOAD_FAST", "LOAD_FAST_BORROW", "LOAD_FAST_CHECK", "LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF",
    "LOAD_CLASSDEREF", "LOAD_SUPER_ATTR", "LOAD_FROM_DICT_OR_GLOBALS", "LOAD_FROM_DICT_OR_DEREF",
}  # fmt: skip
_SUBSCRIPTS = {"BINARY_SUBSCR", "STORE_SUBSCR", "DELETE_SUBSCR"}
_WRITING = {"append", "appendleft", "extend", "insert", "add"}
_OF_ONE_KEY = {"get", "pop", "setdefault", "__getitem__", "__contains__"}
