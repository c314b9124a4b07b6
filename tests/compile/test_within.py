"""`memory_budget` of a program that is compiled whole: less is held at once, no bit changes."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import funct as ft
import funct.array as xp
from funct.compile.memory.order import held
from funct.nn import functional
from tests import laws
from tests.compile.test_native import compiled
from tests.strategies import inputs, programs

RNG = np.random.default_rng(0)
X = RNG.normal(size=(512, 32)).astype("f")
WS = [RNG.normal(size=s).astype("f") / 8 for s in [(32, 128), (128, 32)] * 4]


def loss(*ws: Any) -> Any:
    """Blocks whose inside is wider than what goes from one to the next."""
    h = xp.asarray(X)
    for up, down in zip(ws[::2], ws[1::2], strict=True):
        h = h + functional.gelu(h @ up, "tanh") @ down
    return xp.sum(h * h)


gradient = ft.grad(loss, argnums=tuple(range(len(WS))))


def test_the_peak_falls_with_the_budget() -> None:
    """As the allocator counts it, with the results of the program that holds all it likes."""
    f = ft.jit(gradient)
    ws = [xp.asarray(w) for w in WS]
    peaks, found = [], []
    for budget in (1.0, 0.7, 0.4, 0.0):
        with ft.config.using(memory_budget=budget):
            f(*ws)
            with ft.device.memory_scope() as scope:
                found.append(f(*ws))
        peaks.append(scope.peak)
    assert peaks == sorted(peaks, reverse=True)
    assert peaks[1] < 0.75 * peaks[0]
    assert peaks[2] < 0.5 * peaks[0]
    for other in found[1:]:
        laws.same(other, found[0])


def test_another_budget_is_another_program() -> None:
    """The same one is not, however it is written."""
    f, ws = ft.jit(gradient), [xp.asarray(w) for w in WS]
    for budget in (1.0, 1, 0.5, float("0.5")):
        with ft.config.using(memory_budget=budget):
            f(*ws)
    assert f.cache_info().misses == 2


def test_what_costs_little_is_made_again_first() -> None:
    """A budget that elementwise ops can meet repeats no product."""

    def products(budget: float) -> tuple[int, int]:
        with ft.config.using(memory_budget=budget):
            made = compiled(gradient, *WS)
        names = [e.name for e in made.fused.graph.nodes]
        return names.count("matmul"), held(made.fused).peak

    (usual, whole), (same, most), (more, least) = map(products, (1.0, 0.9, 0.0))
    assert usual == same < more
    assert whole > most > least


def decided(x: Any) -> Any:
    """A gradient that asks for a value on its way."""
    y = xp.exp(xp.sin(x))
    if xp.sum(y) > 0:
        y = y * 2.0
    return xp.sum(y * y)


@pytest.mark.parametrize("fun", [
    decided, lambda x: xp.sum(ft.random.normal(ft.random.key(0), x.shape) * xp.exp(x) ** 2),
    lambda x: ft.scan(lambda c, r: (xp.tanh(c * r), xp.sum(c)), x[0], xp.exp(x))[1][-1],
    lambda x: xp.sum(xp.sort(xp.exp(x @ x.mT), axis=0) * 2.0),
])  # fmt: skip
def test_decisions_draws_loops_and_sorts(fun: Any) -> None:
    """Whatever else stands in a program."""
    x = xp.asarray(RNG.normal(size=(128, 128)) / 8)
    expected = ft.jit(ft.grad(fun))(x)
    for budget in (0.5, 0.0):
        with ft.config.using(memory_budget=budget):
            laws.same(ft.jit(ft.grad(fun))(x), expected)


@settings(max_examples=2 * settings.default.max_examples)
@given(program=programs(max_steps=12), budget=st.sampled_from([0.7, 0.3, 0.0]))
def test_random_programs(program: Any, budget: float) -> None:
    """Gradients have the same bits, whatever is made again."""

    def total(*xs: Any) -> Any:
        return sum([xp.sum(o) for o in program(*xs)])

    xs = inputs(40)
    usual = compiled(ft.grad(total, (0, 1)), *xs)
    with ft.config.using(memory_budget=budget):
        made = compiled(ft.grad(total, (0, 1)), *xs)
    assert held(made.fused).peak <= held(usual.fused).peak
    for a, b in zip(made.run(*xs), usual.run(*xs), strict=True):
        np.testing.assert_array_equal(a, b)
