"""What transforms give: functions that pickle, as the calls that made them. Python pickles a
function by its name alone, and these have none.
"""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Callable
from types import MethodType
from typing import Any

__all__ = ["Made", "by_name", "noted"]


class Made(functools.partial[Any]):
    """A function with a note of how it was made: a partial function without arguments, which
    Python calls from C. Attributes are the function's own.
    """

    def __getattr__(self, name: str) -> Any:
        return getattr(self.func, name)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    def __repr__(self) -> str:
        return f"<function {self.__name__} at {id(self):#x}>"

    def __reduce__(self) -> Any:
        transform, args, named = self.__recipe__
        keywords = dict(zip(named[::2], named[1::2], strict=True))
        return by_name(self) or (_made, (transform, args, keywords))


def noted(
    given: Callable[..., Any], transform: Callable[..., Any], args: tuple[Any, ...], *named: Any
) -> Made:
    """A function that is the transform of args, with a note of that: a tuple, it costs less than
    what it is for.

    named: the transform's keywords and their values, by turns.
    """
    made = Made(given)
    own = made.__dict__
    own.update(given.__dict__)
    own["__recipe__"] = transform, args, named
    own["__doc__"], own["__module__"] = given.__doc__, given.__module__
    return made


def by_name(given: Any) -> Any:
    """How what stands in a module comes back, for `__reduce__`; None where it stands in none.

    A decorated function has the name there, not the function in it: it is looked for under the
    names of all that it was made from.
    """
    asked, seen = [given], set()
    while asked:
        f = asked.pop()
        if id(f) in seen or not callable(f):
            continue
        seen.add(id(f))
        at = str(getattr(f, "__module__", "")), str(getattr(f, "__qualname__", ""))
        if at[0] in sys.modules and _standing(*at) is given:
            return _standing, at
        args = f.__recipe__[1] if isinstance(f, Made) else ()
        asked += [getattr(f, "__wrapped__", None), *args]
    return None


def _standing(module: str, name: str) -> Any:
    found: Any = importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


def _made(transform: Callable[..., Any], args: tuple[Any, ...], keywords: Any) -> Any:
    return transform(*args, **keywords)
