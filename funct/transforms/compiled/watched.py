"""What a compiled path takes for granted of the world outside of its function.

The function's code says by name what it reads: closure cells, globals, attributes, keys; so does
the code of what it calls. Each place that stands under such a name, or where an array that the
graph holds was found, is looked at before a call; where another object stands there now, the path
does not serve. What can be written into as it is (NumPy's arrays, containers of numbers) is
compared with what it held.

Objects among the arguments are read in the same way: they are told apart by what they are, and
their attributes may change. Attributes whose names no code mentions may change as they like: a
counter that an object keeps for others compiles nothing anew.
"""

from __future__ import annotations

import builtins
import contextlib
import functools
import itertools
import os
import re
import sys
import types
import weakref
from array import array
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextvars import ContextVar
from typing import Any

import numpy as np

from funct.array import Tensor
from funct.graph import Call, Control, Graph, Node
from funct.transforms.compiled.places import (
    MAPPINGS,
    PLAIN,
    Cell,
    Elements,
    Environment,
    Items,
    Keys,
    Makeup,
    Slots,
    Variable,
    meant,
)
from funct.transforms.compiled.uses import Uses, codes_in, globals_of, uses_of

__all__ = ["Watched", "of_library", "slots_of", "watched"]

_DEEP = 12  # attributes and elements from a name to an array
_UNNAMED = "an array"  # what was found under no name that code has
_MOST = 20_000  # objects: a function that reaches more reaches what it does not read
_METHODS = (types.FunctionType, staticmethod, classmethod)
_LISTS = (list, deque, set, bytearray, array)
_FUNCTIONS = (types.FunctionType, types.BuiltinFunctionType, type)

# Words of code that reads attributes by names that it does not have.
_ATTRIBUTES = {"vars", "__dict__", "__slots__", "attrgetter", "asdict", "astuple"}
_OF_THE_PROCESS = {"environ", "getenv"}
_BY_TEXT = {"globals", "eval", "exec"}  # read globals by names that stand in strings
_ASKING = {"getattr", "hasattr"}  # for an attribute that may not be there
# Methods that no operator, call or subscript calls.
_PASSIVE = {
    "__init__", "__new__", "__post_init__", "__attrs_init__", "__del__", "__repr__", "__str__",
    "__setattr__", "__delattr__", "__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__",
    "__hash__", "__getstate__", "__setstate__", "__reduce__", "__reduce_ex__", "__copy__",
    "__deepcopy__", "__replace__", "__init_subclass__", "__dir__", "__sizeof__",
}  # fmt: skip


Watched = tuple[Any, Any, Any]  # a place, a name, what place.get(name) was


def watched(
    fun: Any, graph: Graph | None, given: Sequence[Any] = ()
) -> tuple[tuple[Watched, ...], frozenset[Any]]:
    """The places that the code of fun names and that this graph depends on; all names in the code.

    graph: None before there is one. given: fun's arguments that are no arrays.
    """
    uses = [frozenset[Any]()] * len(Uses._fields)
    while True:  # code that is found late may name what was passed by
        found = _Places(fun, graph, Uses(*uses))
        found.called(fun, whole=True)
        for x in given:
            found.inside(x, _DEEP)
        if found.uses == uses:
            return tuple(found.places), found.names
        uses = found.uses


class _Places:
    """The places, as they are found. uses: by all code that is known, as in `Uses`."""

    def __init__(self, fun: Any, graph: Graph | None, uses: Uses) -> None:
        self.package = (getattr(fun, "__module__", None) or "").partition(".")[0]
        self.places: list[Watched] = []
        self.held = set(() if graph is None else _constants(graph))
        self.uses = list(uses)
        self.names, self.walked, self.written, self.read = uses
        self.seen: dict[int, Any] = {}  # by identity; held, so that no other takes its place

    # code -----------------------------------------------------------------------------------------

    def called(self, fun: Any, *, whole: bool = False) -> None:
        """What a call of something reads. whole: functions and classes that it names as well."""
        if isinstance(fun, functools.partial):
            self.called(fun.func, whole=whole)
            for name, value in [*zip(itertools.repeat(_UNNAMED), fun.args), *fun.keywords.items()]:
                self.inside(value, _DEEP, name)
        elif isinstance(fun, types.MethodType):
            self.called(fun.__func__, whole=whole)
            self.inside(fun.__self__, _DEEP)
        elif isinstance(fun, types.FunctionType):
            self._code(fun, whole)
        elif "__wrapped__" in (attributes := getattr(fun, "__dict__", {})):
            self.called(attributes["__wrapped__"], whole=whole)
        elif isinstance(own := getattr(type(fun), "__call__", None), types.FunctionType):  # noqa: B004
            self._code(own, whole)
            self.inside(fun, _DEEP)

    def _code(self, fun: types.FunctionType, whole: bool) -> None:
        if id(fun) in self.seen:
            return
        self.seen[id(fun)] = fun
        read: list[tuple[Any, str, Any]] = []
        for name, cell in zip(fun.__code__.co_freevars, fun.__closure__ or (), strict=True):
            place = Cell(cell)
            value = place.get(name)
            if isinstance(value, types.ModuleType):
                self.places.append((place, name, value))
                self._module(value)
            elif value is not None:  # else it is filled later: the function's own name, say
                read.append((place, name, value))
        if not of_library(fun.__module__):  # else a transform, say, of what it closes over
            if not whole:
                self.places.append((Makeup(fun), fun.__name__, fun))
            codes = list(codes_in(fun.__code__))
            for c in codes:
                self.uses = [a | b for a, b in zip(self.uses, uses_of(c), strict=True)]
            self.uses[0] |= set(fun.__code__.co_freevars)
            self.names, self.walked, self.written, self.read = self.uses
            for name, value in _defaults(fun):
                self.inside(value, _DEEP, name)
            named = dict.fromkeys([n for c in codes for n in globals_of(c)])
            if not named.keys().isdisjoint(_BY_TEXT):
                named |= dict.fromkeys(_words(codes) & fun.__globals__.keys())
            for name in () if self._foreign(fun.__module__, fun.__code__.co_filename) else named:
                value = fun.__globals__.get(name)
                if isinstance(value, types.ModuleType):
                    self._module(value)
                elif value is not None:
                    read.append((fun.__globals__, name, value))
                elif hasattr(builtins, name):  # a global of that name may come
                    self.places.append((fun.__globals__, name, None))
        if whole:
            self.places += [(place, name, meant(value)) for place, name, value in read]
        for place, name, value in read:
            if whole or isinstance(value, _FUNCTIONS):
                self.inside(meant(value), _DEEP, name)
            else:
                self.entry(place, name, value, _DEEP)

    def _foreign(self, module: str | None, file: str | None) -> bool:
        """Whether a module's globals are another package's affair."""
        if of_library(module):
            return True
        own = (module or "").partition(".")[0] == self.package
        return not own and "site-packages" in (file or "")

    def _module(self, module: types.ModuleType) -> None:
        """What code reads by a module's name, if the module is the user's."""
        if module is os and self.names & _OF_THE_PROCESS:
            self.inside(os.environ, _DEEP)
        if id(module) in self.seen or self._foreign(
            module.__name__, getattr(module, "__file__", None)
        ):
            return
        self.seen[id(module)] = module
        for name in [n for n in vars(module) if n in self.names]:
            value = vars(module)[name]
            if isinstance(value, types.ModuleType):
                self._module(value)
            elif isinstance(value, _FUNCTIONS):
                self.inside(value, _DEEP, name)
            else:
                self.entry(vars(module), name, value, _DEEP)

    # objects --------------------------------------------------------------------------------------

    def entry(self, place: Any, name: Any, value: Any, deep: int, within: Any = None) -> None:
        """A place that is read, and what is read below it. within: the name of a container that
        code walks through, where it calls what it finds there by other names.
        """
        value = meant(value)
        self.places.append((place, name, value))
        self.inside(value, deep - 1, name if within is None else within)

    def passed(self, place: Any, name: Any, value: Any, deep: int, within: Any = None) -> None:
        """A place that leads to what may be read."""
        if id(meant(value)) in self.held:
            self.entry(place, name, value, deep, within)
            return
        before = len(self.places)
        self.inside(meant(value), deep - 1, name if within is None else within)
        if len(self.places) > before:
            self.places.append((place, name, meant(value)))

    def inside(self, x: Any, deep: int, name: Any = _UNNAMED) -> None:
        """The attributes and elements of an object that the code may read."""
        if deep == 0 or id(x) in self.seen or len(self.seen) > _MOST:
            return
        if isinstance(x, (Tensor, types.ModuleType, *PLAIN)):
            return
        if x is os.environ or x is os.getenv:
            self.places.append((Environment(), "environ", os.environ))
            return
        if isinstance(x, types.FunctionType):
            self.called(x)
            return
        self.seen[id(x)] = x
        if isinstance(x, weakref.ref):
            self.inside(x(), deep, name)
        elif callable(x) and not isinstance(x, type):
            self.called(x)
        if name in self.written and name not in self.read and isinstance(x, (*_LISTS, *MAPPINGS)):
            return
        if isinstance(x, memoryview):
            x = np.asarray(x)
        if isinstance(x, np.ndarray):
            if x.flags.writeable or x.base is not None:
                self.places.append((Elements(x), name, x))
        elif isinstance(x, MAPPINGS):
            self._dict(x, deep, name)
        elif isinstance(x, ContextVar):
            self.entry(Variable(x), name, x.get(None), deep)
        elif isinstance(x, _LISTS):
            if all([isinstance(v, PLAIN) for v in x]):  # noqa: C419  a list is faster here
                self.places.append((Elements(x), name, x))
            elif not isinstance(x, set | array):
                self.places.append((Keys(x), name, x))
                within = name if name in self.walked else None
                for k, value in enumerate(x):
                    self.entry(Items(x), k, value, deep, within)
        elif isinstance(x, tuple):
            for value in x:
                self.inside(meant(value), deep - 1, name)
        elif isinstance(x, type):
            self._classes(x, {}, deep)
        else:
            self._attributes(x, deep)

    def _dict(self, x: Any, deep: int, name: Any) -> None:
        named = self.names.intersection(x)
        walked = name in self.walked or name == _UNNAMED
        any_key = walked or not named
        if any_key and all([isinstance(v, PLAIN) for v in x.values()]):  # noqa: C419
            self.places.append((Elements(x), name, x))
            return
        self.places.append((Keys(x), name, x))  # code asks for keys that are not there, too
        for key, value in x.items():
            read = self.entry if any_key or key in named else self.passed
            read(x, key, value, deep, name if walked else None)

    def _attributes(self, x: Any, deep: int) -> None:
        cls, found = type(x), getattr(x, "__dict__", {})
        slots = slots_of(x)
        own = {**found, **slots}
        shared = self._classes(cls, own, deep)
        if isinstance(found, dict) and not _frozen(cls):  # the class's may become the object's
            self.places += [(found, name, None) for name in shared]
        named = own.keys() & self.names
        every = not self.names.isdisjoint(_ATTRIBUTES) or (not named and "getattr" in self.names)
        if isinstance(found, dict) and not _frozen(cls) and (every or self.names & _ASKING):
            self.places.append((Keys(found), "attributes", found))
        for name, value in own.items():
            place = Slots(x) if name in slots else found
            if not every and name not in named and id(meant(value)) not in self.held:
                continue
            if _frozen(cls):
                self.inside(meant(value), deep - 1, name)
            else:
                self.entry(place, name, value, deep)

    def _classes(self, cls: type, own: Mapping[str, Any], deep: int) -> list[str]:
        """What methods, properties and operators read, and class attributes: the names under which
        the object may come to have something of its own.
        """
        shared: list[str] = []
        before: list[type] = []  # they may come to have a method of their own, too
        for c in cls.__mro__:
            if of_library(c.__module__):
                continue
            for name, value in list(vars(c).items()):
                fun = _function(value)
                special = name.startswith("__") and name.endswith("__")
                if fun is not None:
                    if name in self.names or (special and name not in _PASSIVE):
                        if id(fun) not in self.seen:
                            self.places.append((vars(c), name, value))
                        self.called(fun)
                    if name in self.names and name not in own and isinstance(value, _METHODS):
                        shared.append(name)
                        nearer = [vars(b) for b in before if name not in vars(b)]
                        self.places += [(place, name, None) for place in nearer]
                elif name in self.names and name not in own:
                    get = getattr(type(value), "__get__", None)
                    if get is None or isinstance(get, types.FunctionType):
                        self.entry(vars(c), name, value, deep)
                        shared.append(name)
                    if get is not None:
                        self.called(get)
            before.append(c)
        return shared


def _words(codes: Sequence[types.CodeType]) -> set[str]:
    """The words of all strings in code."""
    texts = [k for c in codes for k in c.co_consts if isinstance(k, str)]
    return {w for text in texts for w in re.findall(r"\w+", text)}


def _defaults(fun: types.FunctionType) -> list[tuple[str, Any]]:
    """The parameters of a function that have defaults, and these."""
    values = fun.__defaults__ or ()
    first = fun.__code__.co_argcount - len(values)
    return [*zip(fun.__code__.co_varnames[first:], values, strict=False),
            *(fun.__kwdefaults__ or {}).items()]  # fmt: skip


def slots_of(x: Any) -> dict[str, Any]:
    """The attributes of an object that stand in no dict."""
    found = {}
    for c in type(x).__mro__:
        for name, member in vars(c).items():
            if isinstance(member, types.MemberDescriptorType):
                with contextlib.suppress(AttributeError):  # it was not set
                    found[name] = member.__get__(x)
    return found


def _function(x: Any) -> Any:
    """The Python function behind what stands in a class; None if there is none."""
    for name in ("fget", "func", "__func__", "__wrapped__"):
        x = getattr(x, name, x)
    return x if isinstance(x, types.FunctionType) else None


def _frozen(cls: type) -> bool:
    """Whether a class's attributes stay what they are: attrs' and dataclasses' frozen ones."""
    if getattr(cls, "__dataclass_params__", None) is not None:
        return bool(cls.__dataclass_params__.frozen)  # type: ignore[attr-defined]
    return getattr(cls.__setattr__, "__name__", "") == "_frozen_setattrs"


def of_library(name: str | None) -> bool:
    """Whether a module is Python's, NumPy's or ours."""
    root = (name or "builtins").partition(".")[0]
    return root in sys.stdlib_module_names or root in ("funct", "numpy", "attr", "attrs")


def _constants(graph: Graph) -> Iterator[int]:
    """The arrays that a graph and the bodies in it hold, by identity."""
    yield from (id(x) for _, x in graph.constants)
    for e in graph.nodes:
        if isinstance(e, Call):
            yield from _constants(e.body)
        elif isinstance(e, Node) and isinstance(e.primitive, Control):
            for _, body in e.primitive.bodies:
                yield from _constants(body)
