"""Rules that are no true derivatives tell the second derivative where they stand: the same in every
loop, branch and checkpoint, eagerly and compiled.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp

X = xp.asarray([0.5, -1.25, 2.0])
POLICIES = ft.checkpoint_policies


def reversed_rule() -> Any:
    """A custom_vjp whose forward part is plain ops."""
    f: Any = ft.custom_vjp(xp.tanh)
    f.defvjp(lambda x: (xp.tanh(x), x), lambda x, g: (2.0 * g * x,))
    return f


def forward_rule() -> Any:
    """A custom_jvp that calls its own function."""
    f: Any = ft.custom_jvp(xp.tanh)
    f.defjvp(lambda primals, tangents: (f(*primals), 2.0 * tangents[0] * primals[0]))
    return f


def steps(f: Callable[[Any], Any], x: Any) -> Any:
    """Three steps of a loop, written out."""
    c = x
    for _ in range(3):
        c = f(c) * 0.5 + x
    return c


def scanned(f: Callable[[Any], Any], x: Any) -> Any:
    """The same steps as a scan."""
    return ft.scan(lambda c, a: (f(c) * 0.5 + a, None), x, xp.stack([x, x, x]))[0]


def looped(f: Callable[[Any], Any], x: Any) -> Any:
    """The same steps as a while loop."""
    body = lambda s: (f(s[0]) * 0.5 + x, s[1] + 1)  # noqa: E731
    return ft.while_loop(lambda s: s[1] < 3, body, (x, 0))[0]


WAYS: dict[str, Callable[[Any, Any], Any]] = {
    "scan": scanned,
    "while_loop": looped,
    "fori_loop": lambda f, x: ft.fori_loop(0, 3, lambda _, c: f(c) * 0.5 + x, x),
    "cond": lambda f, x: steps(lambda c: ft.cond(xp.sum(c) > -9.0, f, lambda c: c, c), x),
    "checkpoint": lambda f, x: steps(ft.checkpoint(f), x),
    "a checkpoint that closes over x": lambda f, x: ft.checkpoint(lambda c: steps(f, c) * x)(x) / x,
    "a policy": lambda f, x: steps(ft.checkpoint(f, policy=POLICIES.everything_saveable), x),
    "a checkpoint in one": lambda f, x: ft.checkpoint(lambda c: steps(ft.checkpoint(f), c))(x),
    "a checkpoint of a scan": lambda f, x: ft.checkpoint(lambda c: scanned(f, c))(x),
    "a checkpoint of a loop": lambda f, x: ft.checkpoint(lambda c: looped(f, c))(x),
    "a scan of checkpoints": lambda f, x: scanned(ft.checkpoint(f), x),
    "a loop of checkpoints": lambda f, x: looped(ft.checkpoint(f), x),
    "jit": lambda f, x: steps(ft.jit(f), x),
    "a checkpoint of jit": lambda f, x: steps(ft.checkpoint(ft.jit(f)), x),
}

SECOND: dict[str, Callable[[Any], Any]] = {
    "jvp of grad": lambda s: lambda x: ft.jvp(ft.grad(s), (x,), (2.0 * x,))[1],
    "grad of grad": lambda s: ft.grad(lambda x: xp.sum(xp.sin(ft.grad(s)(x)))),
    "vmap of the hessian": lambda s: lambda x: ft.vmap(ft.hessian(s))(xp.stack([x, 2.0 * x])),
}


@pytest.mark.parametrize("rule", [reversed_rule, forward_rule])
@pytest.mark.parametrize("way", WAYS)
def test_second_derivatives_do_not_depend_on_where_a_rule_stands(way: str, rule: Any) -> None:
    """What is written out plainly says what they are."""
    f = rule()
    plain = lambda x: xp.sum(steps(f, x) ** 2)  # noqa: E731
    other = lambda x: xp.sum(WAYS[way](f, x) ** 2)  # noqa: E731
    for second in SECOND.values():
        expected = second(plain)(X)
        np.testing.assert_allclose(second(other)(X), expected, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(ft.jit(second(other))(X), expected, rtol=1e-9, atol=1e-9)
