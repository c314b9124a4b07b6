"""Places where elements lie: the host, and devices through the library that holds their bytes.

Arrays on a device are buffers of that library; NumPy's functions, called on them, are the library's
(`__array_ufunc__`, `__array_function__`), so one implementation serves every place. A `Place` says
what else is needed: the way there and back. `cuda.py` makes those of CuPy.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from msgspec import Struct

__all__ = [
    "BUFFERS", "Place", "device_kinds", "find_place", "known_places", "place_at", "place_of",
    "register_place",
]  # fmt: skip


class Place(Struct, frozen=True, eq=False):
    """One device that is not the host.

    name: as `x.device` has it. buffer: the class of its buffers; number: which of the places with
    that class a buffer lies on. put: a buffer there, of an ndarray; a copy. get: an ndarray of a
    buffer; a copy. take: a buffer there, of what has `__dlpack__` and lies there; shared.
    special: its function of scipy.special's name, or None.
    add_at: adds the rows v into y at the positions i, add_at(y, i, v). active: the context in which
    functions on its buffers are called.
    """

    name: str
    buffer: type
    number: Callable[[Any], int]
    put: Callable[[Any], Any]
    get: Callable[[Any], Any]
    take: Callable[[Any], Any]
    special: Callable[[str], Callable[..., Any] | None]
    add_at: Callable[[Any, Any, Any], None]
    active: Callable[[], AbstractContextManager[Any]]


Opener = Callable[[int], Place]  # the place of this number; raises ArgumentError without one

_NAME = r"([a-z]+)(?::(\d+))?"


def find_place(name: str) -> Place | None:
    """The place "kind" or "kind:number"; None where no kind has that name.

    Raises: MissingExtraError: without the library. ArgumentError: when the machine has no such one.
    """
    found = re.fullmatch(_NAME, name)
    if found is None or found[1] not in _OPENERS:
        return None
    return _opened(found[1], int(found[2] or 0))


@functools.cache
def _opened(kind: str, number: int) -> Place:
    place = _OPENERS[kind][0](number)
    BUFFERS[place.buffer] = kind, place.number
    return place


BUFFERS: dict[type, tuple[str, Callable[[Any], int]]] = {}  # the classes of opened places' buffers


def place_of(buffer: Any) -> Place:
    """Where a buffer lies whose class is in BUFFERS."""
    kind, number = BUFFERS[buffer.__class__]
    return _opened(kind, number(buffer))


def place_at(code: int, number: int) -> Place | None:
    """The place that DLPack gives these numbers; None for a kind that nobody registered.

    Raises: as `find_place`.
    """
    for kind, (_, _, known) in _OPENERS.items():
        if known == code:
            return _opened(kind, number)
    return None


def register_place(kind: str, opener: Opener, count: Callable[[], int], code: int) -> None:
    """Let "kind:number" name what `opener` gives, for numbers below `count()`.

    code: the kind's number in DLPack (`DLDeviceType`).
    """
    _OPENERS[kind] = (opener, count, code)


def device_kinds() -> list[str]:
    """The kinds of devices that have names, with or without one in this machine."""
    return list(_OPENERS)


def known_places() -> list[Place]:
    """Every place that the machine has now."""
    return [_opened(kind, n) for kind, (_, count, _) in _OPENERS.items() for n in range(count())]


_OPENERS: dict[str, tuple[Opener, Callable[[], int], int]] = {}
