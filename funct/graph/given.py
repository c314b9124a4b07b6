"""What functions of graphs are given: a graph, functions, values of it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from inspect import signature
from typing import Any, TypeVar, cast

from funct.core import ShapeDtype
from funct.errors import SignatureError
from funct.graph.ir import Graph, Var

__all__ = ["expect", "expect_all", "expect_taking", "of_graph"]

F = TypeVar("F", bound=Callable[..., Any])
_WORDS: dict[Any, str] = {
    Graph: "a Graph", Var: "a Var", ShapeDtype: "a ShapeDtype", Callable: "a function",
}  # fmt: skip


def of_graph(fun: F) -> F:
    """fun, which says so where its first argument, `graph`, is none."""

    @functools.wraps(fun)
    def checked(graph: Any, *args: Any, **kwargs: Any) -> Any:
        expect(fun.__name__, "graph", graph, Graph)
        return fun(graph, *args, **kwargs)

    return cast(F, checked)


def expect(name: str, argument: str, x: object, kind: Any) -> None:
    """Raise SignatureError, with the argument's name, unless x is of that class."""
    if not isinstance(x, kind):
        raise SignatureError(f"{name}: {argument} must be {_WORDS[kind]}, got {type(x).__name__}")


def expect_all(name: str, argument: str, xs: Any, kind: Any) -> None:
    """`expect` of each in a sequence."""
    if not isinstance(xs, tuple | list):
        text = f"{argument} must be a sequence, got {type(xs).__name__}"
        raise SignatureError(f"{name}: {text}")
    for k, x in enumerate(xs):
        expect(name, f"{argument}[{k}]", x, kind)


def expect_taking(name: str, argument: str, fun: Any, count: int) -> None:
    """Raise SignatureError, with the argument's name, unless fun can be called with so many."""
    try:
        form = signature(fun)
    except ValueError:  # some builtins do not say what they take
        return
    try:
        form.bind(*range(count))
    except TypeError:
        raise SignatureError(
            f"{name}: {argument} must take {count} values, it takes {form}"
        ) from None
