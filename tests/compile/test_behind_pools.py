"""`relu` behind the maxima of windows: the same numbers, of a quarter of the elements."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import funct as ft
import funct.array as xp
from funct.compile.rewriting.behind_pools import behind_pools
from funct.nn import functional

WINDOWS = [(2, 2, 0), (3, 2, 1), (3, 1, 1), (2, 1, 0), ((2, 3), (1, 2), (0, 1))]


def loss(x: Any, weights: Any, how: Any) -> Any:
    y = functional.max_pool2d(functional.relu(x * 2.0), *how)
    return xp.sum(y * weights[..., : y.shape[-2], : y.shape[-1]])


def moved(f: Any, *args: Any) -> bool:
    graph = ft.make_graph(f)(*args)
    return behind_pools(graph) is not graph


@given(st.integers(0, 99), st.sampled_from(WINDOWS), st.sampled_from([0.0, 0.1]))
def test_values_and_gradients_are_the_same(seed: int, how: Any, part: float) -> None:
    """Ties, windows without a positive element, NaN, windows over each other."""
    rng = np.random.default_rng(seed)
    x = rng.integers(-3, 3, (2, 3, 9, 8)).astype(np.float32)
    x[rng.random(x.shape) < part] = np.nan
    x, weights = xp.asarray(x), xp.asarray(rng.integers(-4, 5, (2, 3, 9, 8)).astype(np.float32))

    def both(x: Any, weights: Any) -> Any:
        return ft.value_and_grad(loss)(x, weights, how)

    assert moved(both, x, weights)
    for found, expected in zip(ft.jit(both)(x, weights), both(x, weights)):
        np.testing.assert_array_equal(found, expected)


def test_it_is_a_quarter() -> None:
    x = xp.ones((2, 3, 8, 8))
    f = ft.jit(lambda x: functional.max_pool2d(functional.relu(x), 2))
    shown = f.show(x, form="loops")
    assert "relu" in shown
    assert f"{2 * 3 * 4 * 4} columns" in shown
    assert f"{2 * 3 * 8 * 8} columns" not in shown


@pytest.mark.parametrize(
    "f",
    [
        lambda y: (functional.max_pool2d(y, 2), y),
        lambda y: functional.max_pool2d(y, 2) + y[..., :4, :4],
        lambda y: functional.avg_pool2d(y, 2),
        lambda y: functional.max_pool2d(y, 2, dilation=2, padding=1, stride=1),
    ],
    ids=["given back", "read elsewhere", "means", "windows of padding alone"],
)
def test_what_others_read_stays(f: Any) -> None:
    x = xp.asarray(np.arange(-64.0, 64.0).reshape(1, 2, 8, 8))
    g = lambda x: f(functional.relu(x))  # noqa: E731
    assert not moved(g, x)
    ft.tree.map(np.testing.assert_array_equal, ft.jit(g)(x), g(x))
