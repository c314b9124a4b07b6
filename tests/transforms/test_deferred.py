"""Sums over a loop's steps that are one product after it: recurrent layers' weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from tests import laws

STEPS, WIDTH = 300, 6
RNG = np.random.default_rng(0)
W = xp.asarray(RNG.normal(size=(WIDTH, WIDTH)) / 3)
XS = xp.asarray(RNG.normal(size=(STEPS, WIDTH)) / 3)
H = xp.zeros(WIDTH)


def looped(w: Any, h: Any, xs: Any) -> Any:
    """A recurrent layer: a matrix, a bias and a number are held."""

    def step(h: Any, x: Any) -> tuple[Any, Any]:
        h = xp.tanh(h @ w + x * w[0, 0])
        return h, xp.sum(h * h)

    h, ys = ft.scan(step, h, xs)
    return xp.sum(ys) + xp.sum(h)


def unrolled(w: Any, h: Any, xs: Any) -> Any:
    """The same without a loop."""
    total: Any = 0.0
    for k in range(xs.shape[0]):
        h = xp.tanh(h @ w + xs[k] * w[0, 0])
        total = total + xp.sum(h * h)
    return total + xp.sum(h)


@pytest.mark.parametrize("steps", [1, 2, STEPS])
def test_gradients_are_those_of_the_steps(steps: int) -> None:
    """By the weights, the start and the rows; compiled, batched, forward over reverse."""
    xs = XS[:steps]
    found = ft.jit(ft.grad(looped, argnums=(0, 1, 2)))(W, H, xs)
    laws.close(found, ft.grad(unrolled, argnums=(0, 1, 2))(W, H, xs))
    ws = xp.stack([W, W * 0.5])
    lanes = ft.jit(ft.vmap(ft.grad(looped), in_axes=(0, None, None)))(ws, H, xs)
    laws.close(lanes, xp.stack([ft.grad(unrolled)(w, H, xs) for w in (W, W * 0.5)]))
    if steps < STEPS:
        push = [ft.jvp(ft.grad(f), (W, H, xs), (W, H, xs))[1] for f in (looped, unrolled)]
        laws.close(ft.jit(lambda: push[0])(), push[1])


def test_the_steps_write_vectors() -> None:
    """Of the weights' cotangent no step makes a matrix: a product after the loop has all of it."""
    text = str(ft.jit(ft.grad(looped)).show(W, H, XS))
    made = [
        line for line in text.splitlines() if f"float64[{WIDTH}, {WIDTH}]" in line and "=" in line
    ]
    products = [line for line in made if "= matmul(" in line]
    assert len(products) == 1
    assert not products[0].startswith("        ")  # not in a loop's body
    assert f"float64[{WIDTH}, {STEPS}]" in text


def test_what_is_no_smaller_than_its_product_is_added_up() -> None:
    """Rows as long as the matrix is high: the factors would be more than the sums."""
    xs = xp.asarray(RNG.normal(size=(STEPS, 20, WIDTH)))

    def f(w: Any) -> Any:
        return ft.scan(lambda c, x: (c + xp.sum(xp.sin(x @ w)), None), xp.asarray(0.0), xs)[0]

    assert f"float64[{WIDTH}, {20 * STEPS}]" not in str(ft.jit(ft.grad(f)).show(W))
    expected = ft.grad(lambda w: xp.sum(xp.sin(xs @ w)))(W)
    laws.close(ft.jit(ft.grad(f))(W), expected)
