"""A function may return what it likes, but no traced value in an object that no transform opens."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import attrs
import pytest

import funct as ft
import funct.array as xp
from funct.errors import TransformError

X = xp.asarray([1.0, 2.0])


class Box:
    def __init__(self, v: Any) -> None:
        self.v = v

    def method(self) -> Any:
        return self.v


class Slotted:
    __slots__ = ("v",)

    def __init__(self, v: Any) -> None:
        self.v = {"deep": [v]}


@attrs.define(slots=False)
class Record:
    """With an attribute that is no field, which no tree would keep."""

    v: Any

    def __attrs_post_init__(self) -> None:
        self.more = 2 * self.v


@dataclasses.dataclass
class Plain:
    v: Any

    def __post_init__(self) -> None:
        self.more = 2 * self.v


HIDING: dict[str, tuple[Callable[[Any], Any], str, str]] = {
    "object": (Box, "Box", "tree.register(Box, flatten, unflatten)"),
    "slots": (Slotted, "Slotted", "tree.register(Slotted, flatten, unflatten)"),
    "attrs": (Record, "Record", "tree.register(Record) makes it a pytree"),
    "dataclass": (Plain, "Plain", "tree.register(Plain) makes it a pytree"),
    "function": (lambda v: lambda: v, "function", "make the function of them outside"),
    "default": (lambda v: lambda x=v: x, "function", "make the function of them outside"),
    "partial": (lambda v: functools.partial(max, v), "partial", "return the arrays"),
    "method": (lambda v: Box(v).method, "method", "return the arrays"),
    "nested": (lambda v: Box(Box([Box(v)])), "Box", "tree.register(Box"),
}  # fmt: skip
RETURNING: dict[str, Callable[[Callable[[Any], Any]], Any]] = {
    "jit": lambda make: ft.jit(lambda x: (x, make(x * 2.0)))(X),
    "vmap": lambda make: ft.vmap(lambda x: {"a": make(x * 2.0)})(X),
    "vjp": lambda make: ft.vjp(lambda x: make(x * 2.0), X),
    "jvp": lambda make: ft.jvp(lambda x: make(x * 2.0), (X,), (X,)),
    "aux of grad": lambda make: ft.grad(lambda x: (xp.sum(x), make(x * 2.0)), has_aux=True)(X),
    "aux of vjp": lambda make: ft.vjp(lambda x: (x, make(x * 2.0)), X, has_aux=True),
    "aux of jvp": lambda make: ft.jvp(lambda x: (x, [make(x)]), (X,), (X,), has_aux=True),
    "jit of vmap": lambda make: ft.jit(ft.vmap(lambda x: make(x * 2.0)))(X),
    "below another": lambda make: ft.jit(
        lambda x: (xp.sum(ft.vmap(lambda y: y * 2.0)(x)), make(ft.vmap(xp.sin)(x)))
    )(X),
}  # fmt: skip


@pytest.mark.parametrize("hiding", HIDING)
@pytest.mark.parametrize("returning", RETURNING)
def test_it_is_refused_by_name(returning: str, hiding: str) -> None:
    """The error says the class, and what makes it a pytree."""
    make, cls, fix = HIDING[hiding]
    with pytest.raises(TransformError, match=f"the function returns a {cls}") as caught:
        RETURNING[returning](make)
    assert fix in str(caught.value)


@pytest.mark.parametrize("returning", ["jit", "aux of grad", "aux of vjp", "aux of jvp"])
def test_other_objects_come_back_as_they_are(returning: str) -> None:
    """Objects without traced values, arrays of their own or themselves in them."""
    loop = Box(None)
    loop.v = loop
    for given in (
        Box(1),
        Box(X),
        loop,
        len,
        lambda: X,
        frozenset([1]),
        Box,
        functools.partial(len),
    ):
        out = RETURNING[returning](lambda _, given=given: given)  # type: ignore[misc]
        assert any(x is given for x in ft.tree.leaves(out))
