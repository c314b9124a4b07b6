"""Reductions of several axes of what is broadcast along some of them: eager's numbers, no copy."""

from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from tests import laws

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("name", ["sum", "max", "min", "mean", "prod"])
@pytest.mark.parametrize("shape", [(5, 6, 32), (3, 2, 40, 17), (4, 1, 64), (2, 3, 200)])
def test_of_crossed_operands(name: str, shape: tuple[int, ...]) -> None:
    """Outer products, sums and pairs, reduced for each example."""
    rest = shape[:-1]
    x, y = xp.asarray(RNG.normal(size=shape)), xp.asarray(RNG.normal(size=(*rest, 48)))
    axes = tuple(range(1, len(shape) + 1))

    def run(x: Any, y: Any) -> Any:
        pairs = 1 + xp.tanh(x[..., :, None] * y[..., None, :]) / 8
        return getattr(xp, name)(pairs, axis=axes)

    compiled = ft.jit(run)
    laws.close(compiled(x, y), run(x, y), 64)
    assert "_copy[i, j] = " not in compiled.show(x, y)


def test_of_what_is_reduced_before() -> None:
    """Operands that are sums themselves, and have fewer axes than what is reduced."""
    x, y = xp.asarray(RNG.normal(size=(5, 40, 30))), xp.asarray(RNG.normal(size=(40, 30)))

    def run(x: Any, y: Any) -> Any:
        return xp.sum(x * xp.sin(xp.sum(y * y, axis=0)) + xp.cos(y), axis=(1, 2))

    laws.close(ft.jit(run)(x, y), run(x, y), 1 << 12)


def test_energies_of_many_clouds() -> None:
    """Pairs of points under vmap, and their gradients."""
    clouds = xp.asarray(RNG.normal(size=(4, 40, 3)))

    def energy(x: Any) -> Any:
        d = x[:, None] - x[None]
        return xp.sum(1 / xp.sqrt(xp.sum(d * d, axis=-1) + 0.1))

    for run in (ft.vmap(energy), ft.vmap(ft.grad(energy))):
        laws.close(ft.jit(run)(clouds), run(clouds), 1 << 12)
    assert "_copy[i, j] = " not in ft.jit(ft.vmap(energy)).show(clouds)  # nothing of all pairs


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("axes", [(1, 2), (0, 2), (0,)])
def test_decisions_have_eager_bits(axes: tuple[int, ...], turned: bool) -> None:
    """Sums that a function branches on are those of eager code, to the last bit."""
    x, y = (xp.asarray(RNG.normal(size=(5, 64)).astype("f")) for _ in range(2))

    def sums(x: Any, y: Any) -> Any:
        terms = x[:, :, None] * y[:, None, :]
        return xp.sum(xp.permute_dims(terms, (1, 2, 0)) if turned else terms, axis=axes)

    exact, traces = sums(x, y), []

    def run(x: Any, y: Any) -> Any:
        traces.append(x)
        return x + 1 if xp.all(sums(x, y) == exact) else x - 1

    compiled = ft.jit(run)
    for _ in range(3):
        laws.same(compiled(x, y), x + 1)
    assert len(traces) == 1  # other bits would have it decide anew
