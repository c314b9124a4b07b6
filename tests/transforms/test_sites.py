"""An error at run time names the line of the op that failed, however deep the graphs lie around."""

from collections.abc import Callable
from typing import Any

import pytest

import funct as ft
import funct.array as xp
from funct.errors import LinAlgError

Fun = Callable[[Any], Any]


def body(x: Any) -> Any:
    """Fails where x is singular."""
    y = x + 1.0 - 1.0
    return xp.linalg.solve(y, x)  # guilty


def custom(x: Any) -> Any:
    """The body with a derivative rule of its own."""
    f = ft.custom_jvp(body)
    f.defjvp(lambda primals, tangents: ft.jvp(body, primals, tangents))
    return f(x)


CARRIERS: dict[str, Fun] = {
    "plain": body,
    "cond": lambda x: ft.cond(xp.sum(x) < 9.0, body, lambda x: x, x),
    "scan": lambda x: ft.scan(lambda c, _: (body(c), None), x, length=2)[0],
    "while": lambda x: ft.while_loop(lambda s: s[0] < 2, lambda s: (s[0] + 1, body(s[1])), (0, x)),
    "fori": lambda x: ft.fori_loop(0, 2, lambda i, s: body(s), x),
    "checkpoint": ft.checkpoint(body),
    "jit": ft.jit(body),
    "custom": custom,
    "nested": lambda x: ft.fori_loop(
        0, 2, lambda i, s: ft.cond(xp.sum(s) < 9.0, ft.checkpoint(body), lambda x: x, s), x
    ),
}


def total(f: Fun) -> Fun:
    """The sum of every array that f gives."""
    return lambda x: sum(xp.sum(o) for o in ft.tree.leaves(f(x)))


AROUND: dict[str, Callable[[Fun], Fun]] = {
    "eager": lambda f: f,
    "graph": lambda f: ft.make_graph(f)(xp.eye(2)),
    "jit": ft.jit,
    "grad": lambda f: ft.grad(total(f)),
    "jit-grad": lambda f: ft.jit(ft.grad(total(f))),
    "grad-jit": lambda f: ft.grad(ft.jit(total(f))),
    "vmap": lambda f: lambda x: ft.vmap(f)(xp.stack([x, x])),
    "jit-vmap": lambda f: ft.jit(lambda x: ft.vmap(f)(xp.stack([x, x]))),
}


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("carrier", CARRIERS)
def test_the_line_is_that_of_the_op(carrier: str, around: str) -> None:
    """Not that of the loop, the branch or the call that it happened in."""
    f = AROUND[around](CARRIERS[carrier])
    f(xp.eye(2))
    with pytest.raises(LinAlgError) as caught:
        f(xp.zeros((2, 2)))
    assert caught.value.site is not None
    assert "guilty" in caught.value.site.text
    assert caught.value.site.of == ""
