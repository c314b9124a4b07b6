"""How what transforms give is made again: a compiled function of it pickles as the calls that made
it, since Python pickles a function by its name alone, and these have none.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from typing import Any, TypeVar

__all__ = ["as_given", "by_name", "by_recipe", "noted"]

F = TypeVar("F", bound=Callable[..., Any])


def noted(given: F, transform: Callable[..., Any], args: tuple[Any, ...], *named: Any) -> F:
    """A function that is the transform of args, with a note of that: a tuple, it costs less than
    what it is for.

    named: the transform's keywords and their values, by turns.
    """
    given.__recipe__ = id(given), transform, args, named  # type: ignore[attr-defined]
    return given


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
        _, _, args, _ = getattr(f, "__dict__", {}).get("__recipe__", (None, None, (), ()))
        asked += [getattr(f, "__wrapped__", None), *args]
    return None


def _standing(module: str, name: str) -> Any:
    found: Any = importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


class _Recipe:
    """Pickles as a call, and comes back as what that gives."""

    def __init__(self, made: Any, transform: Callable[..., Any], args: tuple[Any, ...],
                 keywords: tuple[Any, ...]) -> None:  # fmt: skip
        self.made = made
        self.transform = transform
        self.args = args
        self.kwargs = dict(zip(keywords[::2], keywords[1::2], strict=True))

    def __reduce__(self) -> Any:
        call = _made, (self.transform, tuple(map(by_recipe, self.args)), self.kwargs)
        return by_name(self.made) or call


def by_recipe(fun: Any) -> Any:
    """fun; in place of what a transform gave, something that pickles and comes back as that."""
    owner, *recipe = getattr(fun, "__dict__", {}).get("__recipe__", (None,))
    if owner != id(fun):  # `functools.wraps` copies notes onto functions that are others
        return fun
    return _Recipe(fun, *recipe)


def as_given(fun: Any) -> Any:
    """What `by_recipe` was given, where what it gave was not pickled but copied."""
    return fun.made if isinstance(fun, _Recipe) else fun


def _made(transform: Callable[..., Any], args: tuple[Any, ...], kwargs: Any) -> Any:
    return transform(*map(as_given, args), **kwargs)
