"""Loops in registers: the values are those of the steps one by one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from funct.device import host

STEPS = 1500
Step = Callable[[Any, Any, Any], tuple[Any, Any]]

BODIES: dict[str, Step] = {
    "filter": lambda w, c, x: (c * w + x, c),
    "what is carried is kept": lambda w, c, x: (x - c, c),
    "kept twice": lambda w, c, x: (c + x, (c, c * 2, c)),
    "extremes": lambda w, c, x: (xp.maximum(c * 0.5, x), xp.where(c > x, c, w)),
    "held": lambda w, c, x: (c * xp.abs(w) * 0.5 + x, w),
    "two carries": lambda w, c, x: (
        ((c[1], c[0] * 0.5 + x), c[0] - c[1]) if isinstance(c, tuple) else (c, x)
    ),
    "whole numbers": lambda w, c, x: (c + xp.sign(x), xp.astype(c > 0, "int32")),
    "functions": lambda w, c, x: (xp.tanh(c * w + x), xp.exp(c)),
}


def ways_of(f: Any, *args: Any) -> list[str]:
    """The loops of a program that are in registers: by columns, or not."""
    lines = f.show(*args, form="loops").splitlines()
    found = [line for line in lines if line.startswith("# a loop in registers")]
    return [line.split(", ")[2] for line in found]


def lanes_of(dtype: str) -> int:
    """Columns that go through the steps together."""
    return 2 * host().vector_bytes // np.dtype(dtype).itemsize


def by_steps(body: Step, w: Any, c: Any, xs: Any, reverse: bool) -> tuple[Any, Any]:
    """The loop in Python."""
    order = range(xs.shape[0])
    kept = []
    for k in reversed(order) if reverse else order:
        c, y = body(w, c, xs[k])
        kept.append(y)
    if reverse:
        kept.reverse()
    return c, ft.tree.map(lambda *rows: xp.stack(rows), *kept)


@pytest.mark.pairwise
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("shape", [(), (1,), (3,), (2, 8), (37,), (300,)], ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", BODIES)
def test_steps(name: str, dtype: str, shape: tuple[int, ...], reverse: bool) -> None:
    """One column, some of a vector, several tasks; the bits are eager's where ops are exact."""
    body, rng = BODIES[name], np.random.default_rng(0)
    w = xp.asarray(rng.uniform(-0.9, 0.9, shape).astype(dtype))
    xs = xp.asarray(rng.normal(size=(STEPS, *shape)).astype(dtype))
    c = xp.zeros(shape, dtype=dtype)
    start: Any = (c, c + 1) if name == "two carries" else c
    f = ft.jit(lambda w, c, xs: ft.scan(lambda c, x: body(w, c, x), c, xs, reverse=reverse))
    n = int(np.prod(shape))
    assert ways_of(f, w, start, xs) == [f"{n} columns" if n > lanes_of(dtype) else "no columns"]
    found, expected = f(w, start, xs), by_steps(body, w, start, xs, reverse)
    for a, e in zip(ft.tree.leaves(found), ft.tree.leaves(expected), strict=True):
        assert a.dtype == e.dtype
        assert a.shape == e.shape
        if name == "functions":  # what one step loses the next ones shrink: |w| < 1
            np.testing.assert_allclose(
                np.asarray(a), np.asarray(e), rtol=0, atol=2e3 * float(np.finfo(dtype).eps)
            )
        else:
            np.testing.assert_array_equal(np.asarray(a), np.asarray(e))


@pytest.mark.parametrize("shape", [(), (5,)], ids=str)
def test_a_row_may_be_one_number(shape: tuple[int, ...]) -> None:
    """An x, or what the body holds, that is spread over what is carried."""
    rng = np.random.default_rng(1)
    xs, w = xp.asarray(rng.normal(size=STEPS)), xp.asarray(0.5)
    c = xp.zeros(shape)
    f = ft.jit(lambda w, c, xs: ft.scan(lambda c, x: (c * w + x, c * x), c, xs))
    assert len(ways_of(f, w, c, xs)) == 1
    found = f(w, c, xs)
    expected = by_steps(lambda w, c, x: (c * w + x, c * x), w, c, xs, False)
    for a, e in zip(ft.tree.leaves(found), ft.tree.leaves(expected), strict=True):
        np.testing.assert_array_equal(np.asarray(a), np.asarray(e))


def test_derivatives_are_recurrences_too() -> None:
    """The gradient of a filter by its signal and start, against differences."""
    xs, c = xp.asarray(np.random.default_rng(2).normal(size=100)), xp.asarray(0.3)

    def loss(c: Any, xs: Any) -> Any:
        return xp.sum(ft.scan(lambda c, x: (0.9 * c + x, c * c), c, xs)[1])

    g = ft.jit(ft.grad(loss, argnums=(0, 1)))
    assert ways_of(g, c, xs) == ["no columns"] * 2
    ft.check_grads(loss, (c, xs), order=1)
    for a, e in zip(g(c, xs), ft.grad(loss, argnums=(0, 1))(c, xs), strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(e), rtol=1e-12)


@pytest.mark.parametrize("n", [7, 40])
def test_what_goes_by_no_columns(n: int) -> None:
    """A body that looks at its neighbours, or at all of what is carried, has it whole."""
    xs, c = xp.asarray(np.random.default_rng(3).normal(size=(STEPS, n))), xp.zeros(n)
    for body in (
        lambda c, x: (c - xp.mean(c) + x, c),
        lambda c, x: (xp.roll(c, 1) * 0.5 + x, c),
        lambda c, x: (c[::-1] * 0.5 + x, c),
        lambda c, x: (c[0] * 0.5 + x, c),
    ):
        f = ft.jit(lambda c, xs, body=body: ft.scan(body, c, xs))
        assert ways_of(f, c, xs) == ["no columns"]
        expected = by_steps(lambda w, c, x, body=body: body(c, x), None, c, xs, False)
        for a, e in zip(ft.tree.leaves(f(c, xs)), ft.tree.leaves(expected), strict=True):
            np.testing.assert_allclose(np.asarray(a), np.asarray(e), rtol=1e-12, atol=1e-12)
