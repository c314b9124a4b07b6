"""What transforms are given: functions, and numbers of arguments."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from funct.errors import TransformError

__all__ = ["argument_numbers", "arguments", "expect_function", "expect_functions"]


def expect_functions(name: str, **given: object) -> None:
    """Raise TransformError, with the argument's name, unless each is a function."""
    for argument, fun in given.items():
        expect_function(name, argument, fun)


def expect_function(name: str, argument: str, fun: object) -> None:
    """`expect_functions` of one, at less cost."""
    if not callable(fun):
        raise TransformError(
            f"{name}: {argument} must be a function, got {type(fun).__name__}",
            fix=_FIX if hasattr(fun, "shape") else None,
        )


_FIX = "give the function itself, and call what comes back"


def argument_numbers(name: str, what: str, given: Any) -> tuple[bool, tuple[int, ...]]:
    """Whether an int was given, no sequence, and the positions. TransformError: for anything
    else.
    """
    if given.__class__ is int:
        return True, (given,)
    single = isinstance(given, int | np.integer)
    try:
        numbers = tuple([operator.index(i) for i in ((given,) if single else given)])
    except TypeError:
        kind = "an int or a sequence of ints"
        raise TransformError(f"{name}: {what} must be {kind}, got {given!r}") from None
    return single, numbers


def arguments(
    name: str, args: tuple[Any, ...], numbers: Sequence[int], what: str = "argnums"
) -> tuple[Any, ...]:
    """The positional arguments with these numbers. TransformError: where there is none, or where
    one is named twice.
    """
    for i in numbers:
        if not -len(args) <= i < len(args):
            raise TransformError(f"{name}: {what} names argument {i}, the call has {len(args)}")
    if len({i % len(args) for i in numbers}) < len(numbers):
        raise TransformError(f"{name}: {what} names an argument twice, got {tuple(numbers)}")
    return tuple([args[i] for i in numbers])
