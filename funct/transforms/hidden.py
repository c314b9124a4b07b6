"""Results that hide a traced value: in an object that is no pytree, no transform finds it.

It would leave its transform as a tracer, and fail far away, where somebody computes with it.
"""

from __future__ import annotations

import contextlib
import functools
import types
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Set
from typing import Any

import attrs
import numpy as np

from funct import pytree
from funct.array import Tensor, asarray
from funct.array.trees import flat_arrays
from funct.core import Level
from funct.errors import DTypeError, TransformError
from funct.graph import Capture
from funct.records import opened

__all__ = ["as_result", "flat_results", "visible"]

_MOST = 10_000  # objects that are looked at: who returns more of them gets no better message
_LEAVES = (Tensor, np.ndarray, np.generic, bool, int, float, complex, str, bytes, type(None))


def visible(name: str, out: Any, level: Level) -> tuple[list[Any], pytree.Structure]:
    """The leaves of a function's result, and its structure. TransformError if a leaf that is no
    array holds a value of this level, naming its class.
    """
    leaves, structure = pytree.flatten(out)
    for leaf in leaves:
        if not isinstance(leaf, _LEAVES):
            where = _tracer_in(leaf, level)
            if where is not None:
                if opened([leaf]):
                    return visible(name, out, level)
                raise TransformError(
                    f"{name}: the function returns a {type(leaf).__name__}, which is no pytree and "
                    f"holds a traced array: {where}",
                    fix=_fix(leaf),
                )
    return leaves, structure


def as_result(name: str, x: Any) -> Tensor:
    """A leaf of a function's result as an array. TransformError for what is none."""
    if isinstance(x, Tensor):
        return x
    try:
        return asarray(x)
    except DTypeError:
        if isinstance(x, _LEAVES):
            raise
        text = f"{name}: the function returns a {type(x).__name__}, neither a pytree nor an array"
        raise TransformError(text, fix=_fix(x)) from None


def flat_results(name: str, out: Any) -> tuple[list[Any], pytree.Structure]:
    """The leaves of a function's result as arrays, and its structure."""
    return flat_arrays(out, functools.partial(as_result, name))


def _fix(leaf: Any) -> str:
    cls = type(leaf)
    if isinstance(leaf, types.FunctionType | types.MethodType | functools.partial):
        return "return the arrays, and make the function of them outside"
    if cls.__module__ == "builtins":
        return "return a tuple, a list or a dict"
    described = attrs.has(cls) or hasattr(cls, "__dataclass_fields__")
    more = "" if described else ", flatten, unflatten"
    return f"tree.register({cls.__name__}{more}) makes it a pytree"


def _tracer_in(x: Any, level: Level) -> str | None:
    """Where in an object a value of this level stands, the nearest first; None if there is none."""
    seen: dict[int, Any] = {}
    todo = deque([("", x)])
    while todo and len(seen) < _MOST:
        path, value = todo.popleft()
        if isinstance(value, Tensor) and _is_of(value, level):
            return path
        if isinstance(value, (*_LEAVES, type, types.ModuleType)) or id(value) in seen:
            continue
        seen[id(value)] = value
        todo += [(path + step, v) for step, v in _parts(value)]
    return None


def _is_of(x: Tensor, level: Level) -> bool:
    while x.level.transforms:
        if x.level is level:
            return True
        if isinstance(x.level, Capture):
            return False  # its value may not be computed yet, and is of levels below
        x = x.value
    return False


def _parts(x: Any) -> Iterator[tuple[str, Any]]:
    """What an object holds, and how it is reached."""
    if isinstance(x, Mapping):
        yield from [(f"[{k!r}]", v) for k, v in x.items()]
    elif isinstance(x, list | tuple | deque):
        yield from [(f"[{k}]", v) for k, v in enumerate(x)]
    elif isinstance(x, Set):
        yield from [("{…}", v) for v in x]
    elif isinstance(x, types.FunctionType):
        cells: Iterable[Any] = x.__closure__ or ()
        for variable, cell in zip(x.__code__.co_freevars, cells, strict=True):
            with contextlib.suppress(ValueError):  # it is filled later
                yield f"its {variable}", cell.cell_contents
        yield "its defaults", x.__defaults__
    elif isinstance(x, types.MethodType):
        yield ".__self__", x.__self__
    elif isinstance(x, functools.partial):
        yield from [(".func", x.func), (".args", x.args), (".keywords", x.keywords)]
    else:
        slots = [n for c in type(x).__mro__ if "__slots__" in vars(c) for n in vars(c)]
        names = dict.fromkeys([*getattr(x, "__dict__", ()), *slots])
        yield from [(f".{n}", getattr(x, n, None)) for n in names if not n.startswith("__")]
