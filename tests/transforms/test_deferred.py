"""Gradients of what a loop holds: sums over its steps that one product after the loop gives."""

from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp

STEPS, ROWS, N, M = 5, 3, 7, 6


def given() -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(0)
    w, h, xs = (rng.normal(size=s) * 0.3 for s in ((N, M), (ROWS, M), (STEPS, ROWS, N)))
    return xp.asarray(w), xp.asarray(h), xp.asarray(xs)


def by_rows(w: Any, h: Any, xs: Any) -> Any:
    """Both factors as they lie: what a step reads, times what it makes."""
    return lambda h, x: (xp.tanh(h + x @ w), h * 2)


def by_columns(w: Any, h: Any, xs: Any) -> Any:
    """The weights transposed."""
    return lambda h, x: (xp.tanh(h + (w.mT @ x.mT).mT), h * 2)


def of_the_carry(w: Any, h: Any, xs: Any) -> Any:
    """The factor is what the step before made."""
    return lambda h, x: (xp.tanh((h @ w.mT + x) @ w), xp.sin(h))


def twice(w: Any, h: Any, xs: Any) -> Any:
    """Two products add to one sum, which no product alone is."""
    return lambda h, x: (xp.tanh(h + x @ w), xp.sin(x) @ w)


def squared(w: Any, h: Any, xs: Any) -> Any:
    """The weights through a function."""
    return lambda h, x: (xp.tanh(h + x @ (w * w)), xp.sum(h))


def read_whole(w: Any, h: Any, xs: Any) -> Any:
    """A cotangent of the carry itself is a factor."""
    return lambda h, x: (h * 0.5 + x @ w, h)


BODIES = [by_rows, by_columns, of_the_carry, twice, squared, read_whole]


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("body", BODIES, ids=lambda b: b.__name__)
def test_gradients_are_those_of_the_steps_written_out(body: Any, reverse: bool) -> None:
    def looped(w: Any, h: Any, xs: Any) -> Any:
        last, ys = ft.scan(body(w, h, xs), h, xs, reverse=reverse)
        return xp.sum(last * last) + xp.sum(ys * ys)

    def written_out(w: Any, h: Any, xs: Any) -> Any:
        step, total = body(w, h, xs), 0.0
        for k in range(STEPS)[:: -1 if reverse else 1]:
            h, y = step(h, xs[k])
            total = total + xp.sum(y * y)
        return xp.sum(h * h) + total

    expected = ft.grad(written_out, argnums=(0, 1, 2))(*given())
    for wrap in (lambda f: f, ft.jit):
        found = wrap(ft.grad(looped, argnums=(0, 1, 2)))(*given())
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-13)
    second = ft.grad(lambda w: xp.sum(ft.grad(looped)(w, *given()[1:]) ** 2))(given()[0])
    exact = ft.grad(lambda w: xp.sum(ft.grad(written_out)(w, *given()[1:]) ** 2))(given()[0])
    np.testing.assert_allclose(second, exact, rtol=1e-11, atol=1e-12)


def test_what_steps_read_is_not_written_again() -> None:
    """The loop that goes back gives the cotangents' rows; the other factor is there."""

    def looped(w: Any, h: Any, xs: Any) -> Any:
        return xp.sum(ft.scan(by_rows(w, h, xs), h, xs)[0])

    graph = ft.make_graph(ft.grad(looped))(*given())
    loops = [n for n in graph.nodes if getattr(n, "name", "") == "scan"]
    assert [len(n.results) for n in loops] == [3, 2]  # carry, y, what is kept; carry, its factor
