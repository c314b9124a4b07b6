"""Places outside of a function: what stands there now, by `place.get(name)`.

Dicts (globals, attributes, keys) are places as they are. None is what stands where nothing does.
"""

from __future__ import annotations

import os
from array import array
from collections import ChainMap, UserDict
from operator import is_
from types import MappingProxyType
from typing import Any
from weakref import WeakKeyDictionary, WeakValueDictionary

import numpy as np

from funct.records import identity

__all__ = [
    "MAPPINGS", "PLAIN", "Cell", "Elements", "Environment", "Items", "Keys", "Makeup", "Slots",
    "Variable", "alike", "changed", "meant", "spot",
]  # fmt: skip

PLAIN = (bool, int, float, complex, str, type(None))
MAPPINGS = (dict, MappingProxyType, ChainMap, UserDict, WeakKeyDictionary, WeakValueDictionary)


class Cell:
    """A closure cell as a place; empty, it holds None."""

    __slots__ = ("cell",)

    def __init__(self, cell: Any) -> None:
        self.cell = cell

    def get(self, name: str) -> Any:
        """What it holds."""
        try:
            return self.cell.cell_contents
        except ValueError:
            return None


class Makeup:
    """What a function does as a place: itself, while it has the code and the defaults it had."""

    __slots__ = ("fun", "keywords", "program", "values")

    def __init__(self, fun: Any) -> None:
        self.fun = fun
        self.program = fun.__code__
        self.values = fun.__defaults__
        self.keywords = fun.__kwdefaults__

    def get(self, name: Any) -> Any:
        """The function, or None when it was given others."""
        fun = self.fun
        same = fun.__code__ is self.program and fun.__defaults__ is self.values
        return fun if same and fun.__kwdefaults__ is self.keywords else None


class Slots:
    """An object whose attributes stand in no dict."""

    __slots__ = ("owner",)

    def __init__(self, owner: Any) -> None:
        self.owner = owner

    def get(self, name: str) -> Any:
        """An attribute, or None where it was not set."""
        return getattr(self.owner, name, None)


class Variable:
    """A context variable as a place."""

    __slots__ = ("variable",)

    def __init__(self, variable: Any) -> None:
        self.variable = variable

    def get(self, name: Any) -> Any:
        """What it holds here, or None."""
        return self.variable.get(None)


class Environment:
    """That of the process as a place: itself under any name, while nothing in it is another."""

    __slots__ = ("held", "seen")

    def __init__(self) -> None:
        self.held = vars(os.environ)["_data"]  # to ask it by its own methods costs 0.2 ms
        self.seen = dict(self.held)

    def get(self, name: Any) -> Any:
        """The environment, or None when it is another."""
        return os.environ if self.held == self.seen else None


class Items:
    """A list or deque as a place."""

    __slots__ = ("items",)

    def __init__(self, items: Any) -> None:
        self.items = items

    def get(self, name: int) -> Any:
        """An element, or None where there is none."""
        try:
            return self.items[name]
        except IndexError:
            return None


class Keys:
    """Which keys, or how many elements, a container has: itself, while these are the same."""

    __slots__ = ("items", "now", "seen")

    def __init__(self, items: Any) -> None:
        self.items = items
        self.now = list if isinstance(items, MAPPINGS) else len
        self.seen = self.now(items)

    def get(self, name: Any) -> Any:
        """The container, or None when it has other keys, or more elements or fewer."""
        return self.items if self.now(self.items) == self.seen else None


class Elements:
    """What may be written into as a place: itself under any name, while it has the elements it had.

    An array, or a container of numbers and strings. These never change, so where the same objects
    stand in it nobody needs to ask what they are.
    """

    __slots__ = ("bare", "holder", "keyed", "seen")

    def __init__(self, holder: Any) -> None:
        self.holder = holder
        self.bare = isinstance(holder, (np.ndarray, array, bytearray))  # holds no objects
        self.keyed = isinstance(holder, MAPPINGS)
        self.seen = self._now()

    def _now(self) -> Any:
        x = self.holder
        if self.bare:
            return (x.dtype, x.shape, x.tobytes()) if isinstance(x, np.ndarray) else bytes(x)
        return [*x, *x.values()] if self.keyed else [*x]

    def get(self, name: Any) -> Any:
        """The holder, or None when it was written into."""
        now, seen = self._now(), self.seen
        if self.bare:
            return self.holder if now == seen else None
        same = len(now) == len(seen) and (all(map(is_, now, seen)) or _all_alike(now, seen))
        return self.holder if same else None


def _all_alike(now: list[Any], seen: list[Any]) -> bool:
    return [identity(v) for v in now] == [identity(v) for v in seen]


def alike(x: Any, y: Any) -> bool:
    """Whether two objects are one number or one string, or slices or tuples of the same."""
    return _is_plain(x) and _is_plain(y) and bool(identity(x) == identity(y))


def _is_plain(x: Any) -> bool:
    if isinstance(x, slice):
        return _is_plain((x.start, x.stop, x.step))
    if isinstance(x, tuple):
        return all(map(_is_plain, x))
    return x is ... or isinstance(x, PLAIN)


def changed(place: Any, name: Any, seen: Any) -> bool:
    """Whether something else than what was seen stands there now."""
    now = place.get(name)
    return now is not seen and meant(now) is not seen and not alike(now, seen)


def spot(place: Any, name: Any) -> tuple[int, Any]:
    """What a place is the same as another by."""
    for slot in getattr(place, "__slots__", ())[:1]:
        place = getattr(place, slot)
    return id(place), name


def meant(x: Any) -> Any:
    """x, or the Tensor that it stands for now: an array that may be written into stays the same
    object.
    """
    return x.__funct_array__() if hasattr(type(x), "__funct_array__") else x
