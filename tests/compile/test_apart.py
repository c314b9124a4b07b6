"""What no step of a loop waits for is computed before and behind it, with the same numbers."""

from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from funct.compile import apart, build, native
from funct.compile.apart import loops_apart
from funct.graph import Control, Graph, Node, eliminate_dead, inline_calls
from tests import laws

RNG = np.random.default_rng(0)
STEPS = 2000


def rows(*shape: int, dtype: str = "float32") -> Any:
    return xp.asarray((RNG.normal(size=(STEPS, *shape))).astype(dtype))


def variance(th: Any, xs: Any) -> Any:
    """Numbers before, a chain, numbers behind; rows that nobody reads."""

    def step(s: Any, r: Any) -> Any:
        s = th[0] + th[1] * r * r + th[2] * s
        return s, (xp.log(s) + r * r / s, xp.exp(s))

    last, (y, _) = ft.scan(step, xp.asarray(1.0, dtype=xs.dtype), xs)
    return last, y


def turning(th: Any, xs: Any) -> Any:
    """Vectors of a few numbers, in parts, and numbers that all of them meet."""

    def step(c: Any, x: Any) -> Any:
        angle, size = xp.sin(x[:2]) * th[0], xp.sqrt(xp.abs(x[0]) + 1)
        c = c * 0.5 + angle * th[1:] + size
        return c, (xp.tanh(c) * size, xp.exp(-c[:1]), x[1] / 3.0, c)

    return ft.scan(step, th[1:] * 0, xs)


def backwards(th: Any, xs: Any) -> Any:
    """From the last row to the first; whole numbers and truth among rows."""

    def step(c: Any, x: Any) -> Any:
        up = xp.cos(x) > 0
        return xp.where(up, c * th[0], th[1] - c), (up, xp.astype(xp.floor(c * 9), "int32"))

    return ft.scan(step, th[2], xs, reverse=True)


def summed(th: Any, xs: Any) -> Any:
    """What is computed behind is added up."""
    return xp.sum(variance(th, xs)[1] * th[0])


def nothing(th: Any, xs: Any) -> Any:
    """Rows that are as they were given, constants, and the carry before the step."""
    step = lambda c, x: (c * th[0] + x, (c, x, th[1], xp.sin(x) * 0 + 1))  # noqa: E731
    return ft.scan(step, th[0] * 0, xs)


PROGRAMS = {f.__name__: f for f in (variance, turning, backwards, summed, nothing)}
PROGRAMS |= {
    "gradient": ft.grad(summed), "curvature": ft.hessian(summed),
    "pushed": lambda th, xs: ft.jvp(lambda t: variance(t, xs), (th,), (th,))[1],
    "lanes": lambda th, xs: ft.vmap(summed, in_axes=(0, None))(xp.stack([th, th * 0.5]), xs),
    "gradients": lambda th, xs: ft.vmap(ft.grad(summed))(xp.stack([th, th]), xp.stack([xs, -xs])),
}  # fmt: skip


def flat(fun: Any, *args: Any) -> Graph:
    """The graph as machine code is made of it."""
    return eliminate_dead(inline_calls(ft.make_graph(fun)(*args)), guards=False)


def bodies(graph: Graph) -> list[Graph]:
    """Those of its loops."""
    found = [e for e in graph.nodes if isinstance(e, Node) and isinstance(e.primitive, Control)]
    return [e.primitive.kind.form().body for e in found]  # type: ignore[attr-defined]


@pytest.mark.in_turn
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_loops_in_parts_give_what_whole_ones_give(
    name: str, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is read of them."""
    fun = PROGRAMS[name]
    shape = (2,) if name == "turning" else ()
    args = xp.asarray([0.1, 0.2, 0.7], dtype=dtype), rows(*shape, dtype=dtype)
    graph = flat(fun, *args)
    found = build(graph, mode="reduce-overhead")(*[x.data for x in args])
    monkeypatch.setattr(native, "loops_apart", lambda graph, lowered: graph)
    monkeypatch.setattr(apart, "_STEPS", STEPS + 1)
    whole = native.native(graph).run(*[x.data for x in args])
    for a, b in zip(found, whole, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5 if dtype == "float32" else 1e-13, atol=1e-6)
    close = 2e-4 if dtype == "float32" else 1e-9
    laws.close(ft.jit(fun)(*args), fun(*args), close, close)


def test_steps_hold_what_waits_alone() -> None:
    """A multiplication and an addition, of all that such a step computes; both ways."""
    args = xp.asarray([0.1, 0.2, 0.7], dtype="float32"), rows()
    graph = loops_apart(flat(variance, *args), lambda step: True)
    (body,) = bodies(graph)
    assert sorted(e.name for e in body.nodes) == ["add", "multiply"]
    assert all(e.name != "exp" for e in graph.nodes), "nobody reads that"
    slow = {"log", "divide", "exp"}
    for body in bodies(loops_apart(flat(ft.grad(summed), *args), lambda step: True)):
        assert slow.isdisjoint([e.name for e in body.nodes])


def test_other_loops_stay_as_they_are() -> None:
    """Those of few steps, of vectors, of cheap steps, and what is no part of a program."""
    th, xs = xp.asarray([0.1, 0.2, 0.7], dtype="float32"), rows()
    wide = lambda xs: ft.scan(lambda c, x: (c * 0.5 + xp.sin(x), c), xs[0], xs)[1]  # noqa: E731
    cheap = lambda xs: ft.scan(lambda c, x: (c * 0.5 + x * x, c), xs[0], xs)[1]  # noqa: E731
    for graph in (flat(wide, rows(64)), flat(cheap, xs)):
        assert loops_apart(graph, lambda step: True) is graph or bodies(graph) == bodies(
            loops_apart(graph, lambda step: True)
        )
    graph = flat(variance, th, xs)
    assert bodies(loops_apart(graph, lambda step: False)) == bodies(graph)


def test_no_room_is_made_for_rows_that_nobody_reads() -> None:
    """A million rows that are not asked for take no memory."""
    xs = xp.asarray(np.zeros(1_000_000, np.float32))

    def f(xs: Any) -> Any:
        return ft.scan(lambda c, x: (c * 0.5 + x, xp.exp(c)), xs[0], xs)[0]

    (program,) = native.native(flat(f, xs)).programs
    assert program.workspace < 1_000_000
