"""What a compiled path takes for granted of the world outside of its function.

The function's code says by name what it reads: closure cells, globals, attributes, keys. Each
place where an array that the graph holds was found, or a number under such a name, is looked at
before a call; where another object stands there now, the path does not serve. NumPy's arrays may be
written into: their elements are compared.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Iterator
from typing import Any

import numpy as np

from funct.array import Tensor
from funct.graph import Call, Control, Graph, Node

__all__ = ["Elements", "Watched", "meant", "watched"]

_DEEP = 4  # attributes and elements from a name to an array
_MOST = 256  # places: what looks at more costs more than the call
_PUT: Any = object.__setattr__  # of objects that are not frozen
_PLAIN = (bool, int, float, complex, str, type(None))


Watched = tuple[Any, Any, Any]  # a place, a name, what place.get(name) was


class _Cell:
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


class _Items:
    """A list as a place, its length under the name "len"."""

    __slots__ = ("items",)

    def __init__(self, items: list[Any]) -> None:
        self.items = items

    def get(self, name: Any) -> Any:
        """An element, or None where there is none."""
        if name == "len":
            return len(self.items)
        return self.items[name] if name < len(self.items) else None


class Elements:
    """An array of NumPy's as a place: itself under any name, while it has the elements it had."""

    __slots__ = ("array", "seen")

    def __init__(self, array: Any) -> None:
        self.array = array
        self.seen = self._now()

    def _now(self) -> Any:
        return self.array.dtype, self.array.shape, self.array.tobytes()

    def get(self, name: Any) -> Any:
        """The array, or None when it was written into."""
        return self.array if self._now() == self.seen else None


def meant(x: Any) -> Any:
    """x, or the Tensor that it stands for now: an array that may be written into stays the same
    object.
    """
    return x.__funct_array__() if hasattr(type(x), "__funct_array__") else x


def watched(fun: Any, graph: Graph) -> tuple[Watched, ...]:
    """The places that the code of fun names and that this graph depends on."""
    names: set[Any] = set()
    while True:  # code that is found late may name what was passed by
        found = _Places(graph, names)
        found.called(fun, whole=True)
        if found.names == names:
            return tuple(found.places)
        names = found.names


class _Places:
    """The places, as they are found."""

    def __init__(self, graph: Graph, names: set[Any]) -> None:
        self.places: list[Watched] = []
        self.held = set(_constants(graph))
        self.names = set(names)
        self.seen: set[int] = set()

    def called(self, fun: Any, *, whole: bool = False) -> None:
        """What a call of something reads. whole: functions and classes that it names as well."""
        if isinstance(fun, functools.partial):
            self.called(fun.func, whole=whole)
            self.inside((fun.args, fun.keywords), _DEEP)
        elif isinstance(fun, types.MethodType):
            self.called(fun.__func__, whole=whole)
            self.inside(fun.__self__, _DEEP)
        elif isinstance(fun, types.FunctionType):
            self._code(fun, whole)
        elif hasattr(fun, "__wrapped__"):
            self.called(fun.__wrapped__, whole=whole)
        elif isinstance(own := getattr(type(fun), "__call__", None), types.FunctionType):  # noqa: B004
            self._code(own, whole)
            self.inside(fun, _DEEP)

    def _code(self, fun: types.FunctionType, whole: bool) -> None:
        if id(fun) in self.seen:
            return
        self.seen.add(id(fun))
        read: list[tuple[Any, str, Any]] = []
        for name, cell in zip(fun.__code__.co_freevars, fun.__closure__ or (), strict=True):
            place = _Cell(cell)
            if place.get(name) is not None:  # else it is filled later: the function's own name, say
                read.append((place, name, place.get(name)))
        of_ours = (fun.__module__ or "").startswith("funct.")
        if not of_ours:  # else a transform of what it closes over
            codes = list(_codes(fun.__code__))
            for c in codes:
                self.names |= {*c.co_names, *[k for k in c.co_consts if isinstance(k, str | int)]}
            self.names |= set(fun.__code__.co_freevars)
            for name in dict.fromkeys([n for c in codes for n in c.co_names]):
                value = fun.__globals__.get(name)
                if value is not None and not isinstance(value, types.ModuleType):
                    read.append((fun.__globals__, name, value))
        if whole:
            self.places += [(place, name, meant(value)) for place, name, value in read]
        for place, name, value in read:
            if callable(value):
                self.called(value)
            self.entry(place, name, value, _DEEP, known=whole)

    def inside(self, x: Any, deep: int, name: Any = "an array") -> None:
        """The attributes and elements of an object that the code may read."""
        if deep == 0 or id(x) in self.seen or len(self.places) > _MOST:
            return
        if isinstance(x, (Tensor, types.ModuleType, types.FunctionType, *_PLAIN)):
            return
        self.seen.add(id(x))
        if isinstance(x, np.ndarray):
            if x.flags.writeable or x.base is not None:
                self.places.append((Elements(x), name, x))
        elif isinstance(x, dict):
            for key, value in x.items():
                self.entry(x, key, value, deep)
        elif isinstance(x, list):
            items = _Items(x)
            for k, value in enumerate(x):
                self.entry(items, k, value, deep)
            if any(w[0] is items for w in self.places):
                self.places.append((items, "len", len(x)))
        elif isinstance(x, tuple):
            for value in x:
                self.inside(value, deep - 1, name)
        elif isinstance(x, type) or _PUT is getattr(type(x), "__setattr__", None):
            if callable(x) and not isinstance(x, type):
                self.called(x)
            places: tuple[Any, ...] = getattr(x, "__dict__", {}), type(x).__dict__
            for own in places:
                for name in [n for n in own if n in self.names]:
                    self.entry(own, name, own[name], deep)

    def entry(self, place: Any, name: Any, value: Any, deep: int, *, known: bool = False) -> None:
        """A place, if something at it or below may be read. known: it is among them already."""
        value = meant(value)
        if isinstance(value, types.FunctionType):  # a method
            self.called(value)
        plain = isinstance(value, _PLAIN) and name in self.names
        if id(value) in self.held or plain or known:
            if not known:
                self.places.append((place, name, value))
            self.inside(value, deep, name)
            return
        before = len(self.places)
        self.inside(value, deep - 1, name)
        if len(self.places) > before:
            self.places.append((place, name, value))


def _constants(graph: Graph) -> Iterator[int]:
    """The arrays that a graph and the bodies in it hold, by identity."""
    yield from (id(x) for _, x in graph.constants)
    for e in graph.nodes:
        if isinstance(e, Call):
            yield from _constants(e.body)
        elif isinstance(e, Node) and isinstance(e.primitive, Control):
            for _, body in e.primitive.bodies:
                yield from _constants(body)


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    """The code of a function and of those that are written in it."""
    yield code
    for c in code.co_consts:
        if isinstance(c, types.CodeType):
            yield from _codes(c)
