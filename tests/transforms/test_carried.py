"""vmap and jvp of jitted functions: compiled once as graphs of their own, with eager's results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given

import funct as ft
import funct.array as xp
from funct.graph import Graph
from tests import laws
from tests.strategies import inputs, programs
from tests.transforms.test_grad import arr

WAYS: dict[str, Callable[[Any], Callable[..., Any]]] = {
    "vmap": lambda f: lambda x: ft.vmap(f)(xp.stack([x, 0.5 * x])),
    "vmap of vmap": lambda f: lambda x: ft.vmap(ft.vmap(f))(xp.stack([x, 0.5 * x])[None]),
    "jvp": lambda f: lambda x: ft.jvp(f, (x,), (xp.ones_like(x),)),
    "jvp of jvp": lambda f: lambda x: ft.jvp(lambda y: ft.jvp(f, (y,), (x,))[1], (x,), (x,)),
    "vmap of jvp": lambda f: lambda x: ft.vmap(lambda y: ft.jvp(f, (y,), (x,)))(xp.stack([x, -x])),
    "jvp of vmap": lambda f: lambda x: ft.jvp(ft.vmap(f), (x[None],), (x[None],)),
    "jvp of grad": lambda f: (
        lambda x: ft.jvp(ft.grad(lambda y: xp.sum(f(y))), (x,), (xp.ones_like(x),))
    ),
    "grad of vmap": lambda f: ft.grad(lambda x: xp.sum(ft.vmap(f)(xp.stack([x, 0.5 * x])))),
}


@pytest.mark.parametrize("way", WAYS)
@given(program=programs())
def test_compiled_functions_are_what_they_are_eagerly(way: str, program: Any) -> None:
    """On a batch, with tangents, and both at once."""
    x, y = [xp.asarray(v) for v in inputs(3)]
    one = lambda v: xp.tanh(program(v, y)[0])  # noqa: E731
    laws.close(WAYS[way](ft.jit(one))(x), WAYS[way](one)(x), 1e-9, 1e-9)


def _settling(x: Any) -> Any:
    """Lanes take different numbers of steps."""
    return ft.while_loop(lambda v: xp.max(xp.abs(v)) > 0.3, lambda v: v * 0.7 - 0.01, x)


def _scanning(x: Any) -> Any:
    """A branch in a loop, and a row for each step."""

    def step(c: Any, k: Any) -> Any:
        c = ft.cond(c[0] > k, xp.sin, lambda v: v * 0.5 + 0.3, c)
        return c, xp.sum(c)

    return xp.concat(ft.scan(step, x, xp.linspace(-0.5, 0.5, 5)))


def _switching(x: Any) -> Any:
    """Each lane its branch, one of them with a loop."""
    k = xp.astype(xp.abs(x[0]) * 3.0, "int64")
    loop = lambda v: ft.fori_loop(0, 3, lambda i, v: v * v + i * 0.1, v)  # noqa: E731
    return ft.switch(k, [xp.cos, loop, lambda v: -v], x)


@ft.custom_vjp
def _clipped(x: Any) -> Any:
    return xp.clip(x, -0.5, 0.5)


_clipped.defvjp(lambda x: (_clipped(x), x), lambda x, g: (g * xp.cos(x),))


@ft.custom_jvp
def _smooth(x: Any) -> Any:
    return xp.tanh(x)


_smooth.defjvp(lambda xs, ts: (_smooth(xs[0]), ts[0] * 2.0))


def _rooted(x: Any) -> Any:
    """A solver, whose derivative is that of its equation."""
    solve = lambda f, v: ft.fori_loop(0, 30, lambda _, v: v - 0.3 * f(v), v)  # noqa: E731
    tangent = lambda g, y: y / g(xp.ones_like(y))  # noqa: E731
    return ft.custom_root(lambda v: v**3 + v - x, xp.zeros_like(x), solve, tangent)


LOOPS: dict[str, Callable[..., Any]] = {
    "while": _settling, "scan": _scanning, "switch": _switching, "root": _rooted,
    "checkpoint": ft.checkpoint(lambda x: xp.sin(xp.sin(x))), "custom_vjp": _clipped,
    "custom_jvp": _smooth,
}  # fmt: skip
# a function with a pull alone has no tangents
BOTH = [(name, way) for name in LOOPS for way in WAYS if name != "custom_vjp" or "jvp" not in way]


@pytest.mark.parametrize(("name", "way"), BOTH)
def test_loops_and_own_rules_are_part_of_the_graph(name: str, way: str) -> None:
    """Values and derivatives are eager's; a second call compiles nothing."""
    one = LOOPS[name]
    seen: list[Graph] = []

    def spy(graph: Graph) -> Any:
        seen.append(graph)
        return graph

    x = arr([0.9, -0.4, 1.7])
    compiled = WAYS[way](ft.jit(lambda v: one(v) * 1.5, backend=spy))
    expected = WAYS[way](lambda v: one(v) * 1.5)
    laws.close(compiled(x), expected(x), 1e-12, 1e-12)
    count = len(seen)
    assert count
    laws.close(compiled(0.5 * x), expected(0.5 * x), 1e-12, 1e-12)
    assert len(seen) == count


def test_each_is_compiled_once() -> None:
    """A user's backend makes it: one graph for the first batch, one for all other sizes of it."""
    seen: list[Graph] = []

    def spy(graph: Graph) -> Any:
        seen.append(graph)
        return graph

    f = ft.jit(lambda x, w: xp.sum(xp.sin(x) * w), backend=spy)
    w, rows = arr([2.0, 3.0]), xp.asarray(np.arange(14.0).reshape(7, 2))
    wanted = np.sum(np.sin(np.asarray(rows)) * np.asarray(w), axis=1)
    for n in (3, 3, 4, 7, 1, 5, 3, 0):
        laws.close(ft.vmap(f, (0, None))(rows[:n], w), wanted[:n], 1e-12, 1e-12)
    assert len(seen) == 2
    for k in range(3):
        out, tangent = ft.jvp(f, (rows[k], w), (xp.ones(2), xp.zeros(2)))
        laws.close(out, wanted[k], 1e-12, 1e-12)
        laws.close(tangent, xp.sum(xp.cos(rows[k]) * w), 1e-12, 1e-12)
    assert len(seen) == 3


def test_decisions_lead_each_lane_and_each_tangent_its_way() -> None:
    """Lanes that disagree part; a tangent follows the path of its value."""
    f = ft.jit(lambda x: x * x if xp.sum(x) > 0 else -x)
    laws.same(ft.vmap(f)(arr([[1.0, 2.0], [-1.0, -3.0]])), arr([[1.0, 4.0], [1.0, 3.0]]))
    for sign, slope in ((1.0, 2.0), (-1.0, -1.0), (1.0, 2.0)):
        laws.same(ft.jvp(f, (arr([sign]),), (arr([1.0]),))[1], arr([slope]))


def test_sizes_stay_open() -> None:
    """A path for all lengths has one graph for them on a batch, and one with tangents."""
    seen: list[Graph] = []

    def spy(graph: Graph) -> Any:
        seen.append(graph)
        return graph

    f = ft.jit(lambda x: xp.cumulative_sum(xp.sin(x)) / x.shape[0], backend=spy, dynamic=True)
    eager = f.__wrapped__
    for n in (3, 4, 5, 9):
        x = xp.linspace(0.0, 1.0, n)
        laws.close(ft.vmap(f)(x[None]), ft.vmap(eager)(x[None]), 1e-12, 1e-12)
        laws.close(ft.jvp(f, (x,), (x,)), ft.jvp(eager, (x,), (x,)), 1e-12, 1e-12)
    assert len(seen) == 3, "the function, which is made at once where sizes are open, and both"


def test_errors_keep_their_lines() -> None:
    """An index out of bounds in a compiled batch is eager's error."""
    f = ft.jit(lambda x, i: xp.take(x, i, axis=0) * 2.0)
    x, good, bad = arr([1.0, 2.0]), xp.asarray([[0], [1]]), xp.asarray([[0], [7]])
    laws.same(ft.vmap(f, (None, 0))(x, good), arr([[2.0], [4.0]]))
    with pytest.raises(ft.errors.IndexOutOfBoundsError, match="index 7 is out of bounds") as caught:
        ft.vmap(f, (None, 0))(x, bad)
    assert "xp.take(x, i, axis=0)" in str(caught.value)
