"""Rules that are no true derivatives tell the second derivative where they stand, and rules with
another value than the function's tell whether they were asked: the same in every loop, branch and
checkpoint, eagerly and compiled.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any
from weakref import WeakSet

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from funct.transforms.compiled import paths

checkpoints = import_module("funct.transforms.remat")  # the name is the function's
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


def reversed_value() -> Any:
    """A custom_vjp whose forward part is another function."""
    f: Any = ft.custom_vjp(xp.tanh)
    f.defvjp(lambda x: (1.1 * xp.sin(x), x), lambda x, g: (2.0 * g * x,))
    return f


def forward_value() -> Any:
    """A custom_jvp whose value is another function."""
    f: Any = ft.custom_jvp(xp.tanh)
    f.defjvp(lambda primals, tangents: (1.1 * xp.sin(*primals), 2.0 * tangents[0] * primals[0]))
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

FIRST: dict[str, Callable[[Any], Any]] = {
    "value and gradient": ft.value_and_grad,
    "vjp": lambda s: lambda x: ft.vjp(s, x)[0],
    "jvp": lambda s: lambda x: ft.jvp(s, (x,), (2.0 * x,)),
    "linearize": lambda s: lambda x: ft.linearize(s, x)[0],
    "jvp of linearize": lambda s: lambda x: ft.jvp(lambda x: ft.linearize(s, x)[0], (x,), (x,)),
    "vmap": lambda s: lambda x: ft.vmap(ft.value_and_grad(s))(xp.stack([x, 2.0 * x])),
}

SECOND: dict[str, Callable[[Any], Any]] = {
    "jvp of grad": lambda s: lambda x: ft.jvp(ft.grad(s), (x,), (2.0 * x,))[1],
    "grad of grad": lambda s: ft.grad(lambda x: xp.sum(xp.sin(ft.grad(s)(x)))),
    "vmap of the hessian": lambda s: lambda x: ft.vmap(ft.hessian(s))(xp.stack([x, 2.0 * x])),
}


RULES = (reversed_rule, forward_rule, reversed_value, forward_value)


@pytest.mark.pairwise
@pytest.mark.parametrize("first", FIRST)
@pytest.mark.parametrize("rule", [reversed_value, forward_value])
@pytest.mark.parametrize("way", WAYS)
def test_values_do_not_depend_on_where_a_rule_stands(way: str, rule: Any, first: str) -> None:
    """Where a derivative is taken the value is that of the rule, in graphs or not."""
    f = rule()
    plain = lambda x: xp.sum(steps(f, x) ** 2)  # noqa: E731
    other = lambda x: xp.sum(WAYS[way](f, x) ** 2)  # noqa: E731
    value, _ = ft.value_and_grad(plain)(X)
    assert abs(value - plain(X)) > 0.01
    asked = FIRST[first]
    expected = ft.tree.leaves(asked(plain)(X))
    for run in (asked(other), asked(other), ft.jit(asked(other))):
        for a, b in zip(ft.tree.leaves(run(X)), expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)
    if first in ("jvp", "linearize", "vjp"):
        np.testing.assert_allclose(expected[0], value, rtol=1e-9)


@pytest.mark.pairwise
@pytest.mark.parametrize("calls", [0, 1, 5])
@pytest.mark.parametrize("rule", [reversed_value, forward_value])
@pytest.mark.parametrize("wrap", [ft.jit, lambda f: ft.jit(ft.jit(f)), lambda f: f])
@pytest.mark.parametrize("way", WAYS)
def test_code_that_was_there_before_tells_of_its_rules(
    way: str, wrap: Any, rule: Any, calls: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An eager checkpoint calls what is compiled: for the first time, or in machine code by then;
    with a graph that is run again as well.
    """
    monkeypatch.setattr(paths, "_OFTEN", 2)
    x0 = xp.tile(X, (4000,))  # enough for machine code that serves whole calls
    f = rule()
    expected, _ = ft.value_and_grad(lambda x: xp.sum(steps(f, x)))(x0)
    ways = {
        "a function": lambda x: WAYS[way](f, x),
        "a graph": ft.make_graph(lambda x: WAYS[way](f, x))(x0),
    }
    for name, made in ways.items():
        inner = wrap(made)
        for _ in range(calls):
            inner(x0)
        monkeypatch.setattr(checkpoints, "_with_rules", WeakSet())
        block = ft.checkpoint(lambda x, inner=inner: xp.sum(_first(inner(x))))
        for _ in range(2):
            found, _ = ft.value_and_grad(block)(x0)
            np.testing.assert_allclose(found, expected, rtol=1e-9, err_msg=name)


def _first(out: Any) -> Any:
    return out[0] if isinstance(out, tuple) else out


@pytest.mark.pairwise
@pytest.mark.parametrize("second", SECOND)
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("way", WAYS)
def test_second_derivatives_do_not_depend_on_where_a_rule_stands(
    way: str, rule: Any, second: str
) -> None:
    """What is written out plainly says what they are."""
    f = rule()
    plain = lambda x: xp.sum(steps(f, x) ** 2)  # noqa: E731
    other = lambda x: xp.sum(WAYS[way](f, x) ** 2)  # noqa: E731
    asked = SECOND[second]
    expected = asked(plain)(X)
    np.testing.assert_allclose(asked(other)(X), expected, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(ft.jit(asked(other))(X), expected, rtol=1e-9, atol=1e-9)
