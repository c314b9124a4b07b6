"""Loops of many steps as one program: the numbers of a loop in Python, whatever is carried."""

import operator
from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from funct.compile import executable, worth_looping
from funct.transforms.control import scan_loop
from funct.transforms.control.scan_loop import Scan

OUTER = xp.asarray(np.linspace(-0.3, 0.3, 16).reshape(4, 4))


def mixed(c: Any, x: Any) -> Any:
    """A row whose sum is 1."""
    logits = xp.reshape(c, (1, 4)) @ OUTER + x
    e = xp.exp(logits - xp.max(logits))
    return xp.reshape(e / xp.sum(e), (4,))


BODIES: dict[str, Any] = {
    "sum and product": lambda c, x: ((c[0] + x, c[1] * 0.99 + xp.tanh(x)), c[0] * x),
    "carries change places": lambda c, x: ((c[1], c[0] + x * 0.1), c[0]),
    "a carry that stays": lambda c, x: ((c[0], c[1] + x), c[1]),
    "one value twice": lambda c, x: ((c[0] + x, c[0] + x), (c[0] + x, c[0] + x)),
    "a constant": lambda c, x: ((c[0] * 0.5, xp.ones_like(c[1])), xp.zeros(3)),
    "x itself": lambda c, x: ((x, c[1] - x), x),
    "rows and products": lambda c, x: ((mixed(c[0], x), c[1]), xp.max(c[0])),
    "a row of another shape": lambda c, x: (
        (c[0] + x, c[1]), xp.reshape(xp.tanh(xp.reshape(c[0], (1, 4))), (2, 2))
    ),
    "views": lambda c, x: ((c[0][::-1] + x, xp.flip(c[1])), c[0][1:]),
}  # fmt: skip


@pytest.mark.pairwise
@pytest.mark.parametrize("name", BODIES)
@pytest.mark.parametrize("steps", [1, 2, 40, 41])
@pytest.mark.parametrize("reverse", [False, True])
def test_scans(name: str, steps: int, reverse: bool, monkeypatch: Any) -> None:
    """Odd and even numbers of steps, forwards and backwards, and the derivative of each."""
    body = BODIES[name]
    xs = xp.asarray(np.random.default_rng(0).normal(size=(steps, 4)) * 0.1)
    init = (xp.asarray([1.0, 2.0, 3.0, 4.0]), xp.asarray([0.0, 0.5, 0.25, 1.0]))

    def run(init: Any, xs: Any) -> Any:
        return ft.scan(body, init, xs, reverse=reverse)

    def total(init: Any, xs: Any) -> Any:
        return sum([xp.sum(v * v) for v in ft.tree.leaves(run(init, xs))])

    monkeypatch.setattr(executable, "worth", lambda *a, **k: False)  # the loop is by itself
    monkeypatch.setattr(scan_loop, "worth_looping", lambda body, steps: True)
    used: list[int] = []
    whole = Scan._whole
    monkeypatch.setattr(Scan, "_whole", lambda self: used.append(1) or whole(self))
    found = ft.jit(run)(init, xs), ft.jit(ft.grad(total, argnums=(0, 1)))(init, xs)
    assert used
    monkeypatch.setattr(Scan, "_whole", lambda self: None)
    expected = ft.jit(run)(init, xs), ft.jit(ft.grad(total, argnums=(0, 1)))(init, xs)
    for a, e in zip(ft.tree.leaves(found), ft.tree.leaves(expected), strict=True):
        assert a.dtype == e.dtype
        np.testing.assert_allclose(np.asarray(a), np.asarray(e), rtol=1e-10, atol=1e-12)


def test_integers_and_logic_are_carried() -> None:
    """A generator of numbers by shifts, and a flag."""

    def step(c: Any, x: Any) -> Any:
        s, seen = c
        s = s ^ (s << 13)
        s = s ^ (s >> 7)
        s = s ^ (s << 17)
        return (s, seen | (s > x)), s

    init = (xp.asarray(np.asarray([88172645463325252], np.int64)), xp.asarray([False]))
    xs = xp.asarray(np.full((700, 1), 1 << 62))
    found = ft.jit(lambda c, x: ft.scan(step, c, x))(init, xs)
    carry, ys = init, []
    for k in range(700):
        carry, y = step(carry, xs[k])
        ys.append(np.asarray(y))
    np.testing.assert_array_equal(np.asarray(found[1]), np.stack(ys))
    np.testing.assert_array_equal(np.asarray(found[0][0]), np.asarray(carry[0]))
    assert bool(found[0][1][0]) == bool(carry[1][0])


def test_short_loops_stay_in_python() -> None:
    """Which loops become programs follows from their length alone."""
    graph = ft.make_graph(lambda c: operator.mul(c, 2.0) + 1.0)(1.0)
    assert not worth_looping(graph, 20)
    assert worth_looping(graph, 10_000)


def test_steps_of_loops_inside_count() -> None:
    """A few steps of a long loop are many."""

    def outer(c: Any) -> Any:
        short = lambda c: ft.fori_loop(0, 3, lambda i, c: c * 0.5, c)  # noqa: E731
        long = lambda c: ft.while_loop(lambda c: xp.max(c) > 1.0, lambda c: c * 0.5, c)  # noqa: E731
        return short(c), ft.cond(xp.max(c) > 0.0, long, short, c)

    def body(of: Any) -> Any:
        return ft.make_graph(of)(xp.ones(3))

    assert worth_looping(body(outer), 2)
    assert worth_looping(body(lambda c: ft.fori_loop(0, 50, lambda i, c: c * 0.5, c)), 4)
    assert not worth_looping(body(lambda c: ft.fori_loop(0, 3, lambda i, c: c * 0.5, c)), 4)
