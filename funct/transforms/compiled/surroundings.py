"""What a function can write to besides its result, as something that differs once it was written.

Its code says by name what it reaches: closure cells, globals, attributes of modules and of itself,
defaults; so does the code of what it calls. Besides there is what every function reaches.
"""

from __future__ import annotations

import functools
import os
import sys
import types
from array import array
from collections import deque
from contextvars import ContextVar
from typing import Any

import numpy as np

from funct import tree
from funct.settings import config
from funct.transforms.compiled.places import MAPPINGS
from funct.transforms.compiled.uses import codes_in, globals_of
from funct.transforms.compiled.watched import of_library, slots_of

__all__ = ["surroundings"]

_DEPTH = 3
_METHODS = (types.FunctionType, classmethod, staticmethod, property)


def surroundings(fun: Any, args: Any, kwargs: Any) -> dict[str, Any]:
    """What fun could write to: name -> something that differs if it was written."""
    found: dict[str, Any] = {}
    for path, leaf in tree.flatten_with_path((args, kwargs)):
        if isinstance(leaf, np.ndarray):
            found[f"argument {path.partition('.')[2]}"] = _fingerprint(leaf, 0)
    for which, x in (*enumerate(args), *kwargs.items()):
        leaves, spec = tree.flatten(x)
        held = [id(v) if isinstance(v, np.ndarray) else _fingerprint(v, 0) for v in leaves]
        found[f"contents of argument {which}"] = spec, held
    _function(fun, found, set())
    found["settings of funct"] = config.record
    found["environment of the process"] = dict(os.environ)
    if "numpy.random" in sys.modules:
        state: Any = np.random.get_state()
        found["random state of NumPy"] = (state[1].tobytes(), *state[2:])
    if "random" in sys.modules:
        found["random state of Python"] = hash(sys.modules["random"].getstate())
    return found


def _function(fun: Any, found: dict[str, Any], seen: set[int]) -> None:
    """What a function reaches, and the functions that it names."""
    owner = getattr(fun, "__self__", None)
    if owner is not None and not isinstance(owner, types.ModuleType):
        found["attributes of its object"] = _fingerprint(owner, 0)
    if isinstance(fun, functools.partial):
        found["arguments of a partial function"] = _each(fun.args, fun.keywords)
        fun = fun.func
    while hasattr(fun, "__wrapped__"):
        fun = fun.__wrapped__
    fun = getattr(fun, "__func__", fun)
    if id(fun) in seen or isinstance(fun, types.BuiltinFunctionType):
        return
    seen.add(id(fun))
    code = getattr(fun, "__code__", None)
    name = getattr(fun, "__name__", "the function")
    what = "attributes of the function" if len(seen) == 1 else f"attributes of {name}"
    found[what] = _fingerprint(vars(fun) if code else fun, 0)
    if code is None or (len(seen) > 1 and of_library(fun.__module__)):
        return
    if fun.__defaults__ or fun.__kwdefaults__:
        found[f"defaults of {name}"] = _each(fun.__defaults__, fun.__kwdefaults__)
    named: dict[str, Any] = {}
    for free, cell in zip(code.co_freevars, fun.__closure__ or (), strict=True):
        if cell != types.CellType():
            named[free] = cell.cell_contents
    codes = list(codes_in(code))
    for known in dict.fromkeys([n for c in codes for n in globals_of(c)]):
        if known in fun.__globals__:
            named[known] = fun.__globals__[known]
    for known in list(named):
        module = named[known]
        if isinstance(module, types.ModuleType) and not of_library(module.__name__):
            words = [n for c in codes for n in c.co_names if n in vars(module)]
            named |= {f"{known}.{n}": vars(module)[n] for n in words}
    for known, x in named.items():
        found[f"closure or global `{known}`"] = _fingerprint(x, 0)
        if isinstance(x, types.FunctionType | types.MethodType | functools.partial):
            _function(x, found, seen)


def _each(*held: Any) -> list[Any]:
    return [_fingerprint(x, 0) for x in held]


def _fingerprint(x: Any, depth: int) -> Any:
    """Identity, and for what can be written into the contents, a few levels deep."""
    if isinstance(x, np.ndarray):
        return id(x), x.tobytes()
    if isinstance(x, bool | int | float | complex | str | bytes | type(None)):
        return x if x == x else "nan"
    if isinstance(x, bytearray | array):
        return id(x), bytes(x)
    if depth >= _DEPTH or isinstance(x, types.ModuleType | types.FunctionType):
        return id(x)
    if isinstance(x, MAPPINGS):
        return id(x), _named(x, depth)
    if isinstance(x, list | tuple | set | frozenset | deque):
        return id(x), tuple([_fingerprint(v, depth + 1) for v in list(x)])
    if isinstance(x, ContextVar):
        return id(x), _fingerprint(x.get(None), depth + 1)
    cls = x if isinstance(x, type) else type(x)
    if of_library(cls.__module__) and cls.__module__ not in _HOLDERS:
        return id(x)
    own = {} if x is cls else {**getattr(x, "__dict__", {}), **slots_of(x)}
    return id(x), _named(_shared(cls) | own, depth)


def _named(held: Any, depth: int) -> tuple[Any, ...]:
    return tuple([(str(k), _fingerprint(v, depth + 1)) for k, v in list(held.items())])


_HOLDERS = ("types", "_thread", "builtins")  # of Python's, whose objects have attributes


def _shared(cls: type) -> dict[str, Any]:
    """The attributes of a class that are no methods."""
    own = [c for c in reversed(cls.__mro__) if not of_library(c.__module__)]
    return {
        k: v for c in own for k, v in list(vars(c).items())
        if not isinstance(v, _METHODS) and not (k.startswith("__") and k.endswith("__"))
        and not hasattr(v, "__get__")
    }  # fmt: skip
