"""How what transforms give is made again: a compiled function of it pickles as the calls that made
it, since Python pickles a function by its name alone, and these have none.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

__all__ = ["by_recipe", "noted"]

F = TypeVar("F", bound=Callable[..., Any])


def noted(given: F, transform: Callable[..., Any], args: tuple[Any, ...], *named: Any) -> F:
    """A function that is the transform of args, with a note of that: a tuple, it costs less than
    what it is for.

    named: the transform's keywords and their values, by turns.
    """
    given.__recipe__ = id(given), transform, args, named  # type: ignore[attr-defined]
    return given


class _Recipe:
    """Pickles as a call, and comes back as what that gives."""

    def __init__(
        self, transform: Callable[..., Any], args: tuple[Any, ...], named: tuple[Any, ...]
    ) -> None:
        self.transform = transform
        self.args = args
        self.kwargs = dict(zip(named[::2], named[1::2], strict=True))

    def __reduce__(self) -> Any:
        return _made, (self.transform, tuple(map(by_recipe, self.args)), self.kwargs)


def by_recipe(fun: Any) -> Any:
    """fun; in place of what a transform gave, something that pickles and comes back as that."""
    owner, *recipe = getattr(fun, "__dict__", {}).get("__recipe__", (None,))
    if owner != id(fun):  # `functools.wraps` copies notes onto functions that are others
        return fun
    return _Recipe(*recipe)


def _made(transform: Callable[..., Any], args: tuple[Any, ...], kwargs: Any) -> Any:
    return transform(*args, **kwargs)
