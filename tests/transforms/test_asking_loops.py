"""Loops and branches whose steps ask for values: sizes that depend on elements, Python's `if`.

No graph holds them, so jit leaves these to Python: what they give is what they give eagerly.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import funct as ft
import funct.array as xp
from funct.errors import ConcretizationError, TransformError
from tests import laws

STEPS: dict[str, Callable[[Any, Any], Any]] = {
    "nonzero": lambda c, r: c + xp.sum(r[xp.nonzero(r > 0.0)[0]]),
    "mask": lambda c, r: c * 0.5 + xp.sum(xp.sin(r[r > c])),
    "unique": lambda c, r: c + xp.sum(xp.square(xp.unique_values(xp.round(r * 2.0)))) + xp.sum(r),
    "argwhere": lambda c, r: c + 0.1 * xp.argwhere(r > 0.0).shape[0] * r[0],
    "if": lambda c, r: c + xp.sum(r) if xp.sum(r) > c else c - r[0],
    "float": lambda c, r: c * 0.9 + float(xp.max(r)) * xp.sum(r),
    "range": lambda c, r: c + sum((r[k] for k in range(int(xp.sum(r > 0.0)))), start=c * 0.0),
}
LOOPS: dict[str, Callable[[Any], Callable[[Any], Any]]] = {
    "scan": lambda f: lambda x: ft.scan(lambda c, r: (f(c, r), c), xp.asarray(0.25), x),
    "scan of a number": lambda f: lambda x: ft.scan(lambda c, r: (f(c, r), r), 0.25, x)[0],
    "scan back": lambda f: lambda x: ft.scan(
        lambda c, r: (f(c, r), c), xp.asarray(0.25), x, reverse=True
    ),
    "map": lambda f: lambda x: ft.map(lambda r: f(r[-1] * 0.0, r), x),
    "fori": lambda f: lambda x: ft.fori_loop(
        0, x.shape[0], lambda i, c: f(c, x[i]), xp.asarray(0.25)
    ),
    "while": lambda f: lambda x: ft.while_loop(
        lambda s: s[0] < x.shape[0], lambda s: (s[0] + 1, f(s[1], x[s[0]])), (0, xp.asarray(0.25))
    )[1],
    "test": lambda f: lambda x: ft.while_loop(
        lambda s: xp.sum(xp.abs(f(s * 0.0, x[0]))) > s, lambda s: s + 1.5, xp.asarray(0.25)
    ) + xp.sum(x),
    "cond": lambda f: lambda x: ft.cond(
        xp.sum(x) > 0.0, lambda v: f(v[0, 0], v[1]), lambda v: f(v[0, 1], v[0]), x
    ),
    "switch": lambda f: lambda x: ft.switch(
        xp.astype(xp.sum(x) > 0.0, xp.int64), [lambda v: f(v[0, 0], v[1]), lambda v: v[0, 1]], x
    ),
    "nest": lambda f: lambda x: ft.scan(
        lambda c, r: (ft.scan(lambda d, q: (f(d, q * r), None), c, x)[0], c), xp.asarray(0.25), x
    ),
    "beside others": lambda f: lambda x: (
        xp.tanh(x @ x.T), ft.scan(lambda c, r: (f(c, r), c), xp.asarray(0.25), xp.sin(x))
    ),
}  # fmt: skip


def total(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The sum of all that f gives."""
    return lambda x: sum(xp.sum(y) for y in ft.tree.leaves(f(x)))


def rows(seed: int, n: int = 3) -> Any:
    """A few rows of short numbers, so that sums have one value in any order."""
    x = np.random.default_rng(seed).normal(size=(n, 4))
    return xp.asarray(np.round(x * 64) / 64)


@pytest.mark.in_turn
@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("loop", LOOPS)
def test_compiled_loops_that_ask_are_the_eager_ones(loop: str, step: str) -> None:
    """Values, gradients inside and outside, batches; with other values, and with large arrays,
    where what lies between two questions is compiled.
    """
    f = LOOPS[loop](STEPS[step])
    compiled, inside = ft.jit(f), ft.jit(ft.grad(total(f)))
    for x in (rows(0), rows(1), -rows(0), rows(2)):
        laws.close(compiled(x), f(x), 1e-12, 1e-12)
        slope = ft.grad(total(f))(x)
        laws.close(inside(x), slope, 1e-12, 1e-12)
        laws.close(ft.grad(total(compiled))(x), slope, 1e-12, 1e-12)
        laws.close(ft.jit(lambda x: compiled(x * 2.0))(x), f(x * 2.0), 1e-12, 1e-12)
    pair = xp.stack([rows(3), rows(4)])
    laws.close(ft.vmap(compiled)(pair), ft.vmap(f)(pair), 1e-12, 1e-12)
    wide = xp.asarray(np.random.default_rng(5).normal(size=(4, 1 << 15)))
    if step != "range":
        laws.close(compiled(wide), f(wide), 1e-9, 1e-9)


@given(
    st.sampled_from(list(LOOPS)), st.sampled_from(list(STEPS)), st.integers(0, 2**31),
    st.integers(2, 5),
)  # fmt: skip
def test_whatever_the_values_are(loop: str, step: str, seed: int, n: int) -> None:
    """Each call decides anew."""
    f = LOOPS[loop](STEPS[step])
    compiled = ft.jit(f)
    for k in range(3):
        x = rows(seed + k, n)
        laws.close(compiled(x), f(x), 1e-12, 1e-12)


def test_a_function_is_captured_once_for_nothing() -> None:
    """What it asked for is remembered, and told."""
    calls = []

    def f(x: Any) -> Any:
        calls.append(type(x).__name__)
        return LOOPS["scan"](STEPS["mask"])(x)[0]

    compiled = ft.jit(f)
    for k in range(5):
        compiled(rows(k))
    assert calls.count("Array") == 5
    assert len(calls) < 8
    assert "depends on a value" in compiled.explain()


def test_the_whole_graph_is_refused() -> None:
    """Where all is to be one graph, and where one is asked for."""
    f = LOOPS["scan"](STEPS["mask"])
    with pytest.raises(ConcretizationError, match="only shapes are known"):
        ft.jit(f, fullgraph=True)(rows(0))
    with pytest.raises(TransformError, match="only shapes are known"):
        ft.make_graph(f)(rows(0))
    with pytest.raises(TransformError, match="only shapes are known"):
        ft.jit(f).graph(rows(0))


def test_effects_are_done_once() -> None:
    """A callback before the loop runs once per call, although the capture was given up."""
    seen = []

    def f(x: Any) -> Any:
        ft.io_callback(lambda v: seen.append(float(v)), None, xp.sum(x))
        return LOOPS["scan"](STEPS["if"])(x)[0]

    compiled = ft.jit(f)
    for k in range(3):
        compiled(rows(k))
    assert seen == [float(xp.sum(rows(k))) for k in range(3)]


NONE: dict[str, Callable[[Any], Callable[[Any, int], Any]]] = {
    "scan": lambda f: lambda x, n: ft.scan(
        lambda c, r: (f(c, r), {"c": xp.astype(c, xp.float32), "r": r}), xp.asarray(0.25), x[:n]
    ),
    "scan of a number": lambda f: lambda x, n: ft.scan(
        lambda c, r: (f(c, r), r), 0.25, x[:n], unroll=True
    ),
    "scan of a length": lambda f: lambda x, n: ft.scan(
        lambda c, _: (f(c, x[0]), (c, 2)), x[0, 0], None, n
    ),
    "map": lambda f: lambda x, n: ft.map(lambda r: f(r[-1] * 0.0, r), x[:n]),
    "fori": lambda f: lambda x, n: ft.fori_loop(0, n, lambda i, c: f(c, x[i]), x[0, 0]),
    "nest": lambda f: lambda x, n: ft.scan(
        lambda c, r: (ft.scan(lambda d, q: (f(d, q * r), d), c, x[:n])[0], c), x[0, 0], x
    ),
    "none in none": lambda f: lambda x, n: ft.scan(
        lambda c, r: ft.scan(lambda d, q: (f(d, q * r), d), c, x[:0]), x[0, 0], x[:n]
    ),
}  # fmt: skip
WAYS: dict[str, Callable[[Callable[[Any], Any]], Callable[[Any], Any]]] = {
    "eager": lambda f: f,
    "jit": ft.jit,
    "one graph": lambda f: ft.jit(f, fullgraph=True),
    "jvp": lambda f: lambda x: ft.jvp(f, (x,), (x,))[0],
    "vjp": lambda f: lambda x: ft.vjp(f, x)[0],
    "checkpoint": lambda f: lambda x: ft.vjp(ft.checkpoint(f), x)[0],
    "vmap": lambda f: lambda x: ft.tree.map(lambda y: y[0], ft.vmap(f)(x[None])),
}


@pytest.mark.pairwise
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("loop", NONE)
def test_loops_of_no_steps_ask_nobody(loop: str, step: str, way: str) -> None:
    """They give what they began with, and no rows, of the types that a step gives."""
    f = NONE[loop](STEPS[step])
    if (loop, way) == ("nest", "one graph"):  # asks of a row of the outer loop, which has steps
        with pytest.raises(ConcretizationError, match="only shapes are known"):
            WAYS[way](lambda x: f(x, 0))(rows(0))
        return
    found, once = WAYS[way](lambda x: f(x, 0))(rows(0)), f(rows(0), 1)
    assert ft.tree.structure(found) == ft.tree.structure(once)
    for a, b in zip(ft.tree.leaves(found), ft.tree.leaves(once), strict=True):
        assert (a.dtype, a.shape[1:]) == (b.dtype, b.shape[1:])
        if loop != "nest":
            begun = 0.25 if "length" not in loop and loop.startswith("scan") else rows(0)[0, 0]
            assert a.shape[:1] == (0,) or float(a) == float(begun)


def test_what_no_step_does_is_not_done() -> None:
    """A trial for types has no effect, and no value of it is known."""
    seen: list[float] = []

    def act(c: Any) -> Any:
        return ft.io_callback(lambda v: (seen.append(float(v)), v)[1], c, c)

    def f(c: Any, r: Any) -> Any:
        return (c + r if float(c) > 0.0 else c), act(r)

    for way in (WAYS["eager"], WAYS["jit"], WAYS["vjp"]):
        with pytest.raises(ConcretizationError, match="the step that would do this is not taken"):
            way(lambda x: ft.scan(f, x[0, 0], x[:0, 0]))(rows(0))
    assert not seen


def test_gradients_through_no_steps() -> None:
    """The last carry is the first one."""
    f = NONE["fori"](STEPS["if"])
    for g in (ft.grad(lambda x: f(x, 0)), ft.jit(ft.grad(lambda x: f(x, 0)))):
        expected = np.zeros((3, 4))
        expected[0, 0] = 1.0
        laws.close(g(rows(0)), xp.asarray(expected))
