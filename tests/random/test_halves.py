"""Draws of 16 bits: numbers drawn wider and rounded once, the same everywhere, in their range."""

from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from funct import random
from tests import laws

KEY = random.key(3)
MEAN = xp.asarray([1.0, -2.0])
DRAWS: dict[str, Any] = {
    "normal": lambda k, n, d: random.normal(k, (n,), d),
    "exponential": lambda k, n, d: random.exponential(k, (n,), d),
    "gumbel": lambda k, n, d: random.gumbel(k, (n,), d),
    "laplace": lambda k, n, d: random.laplace(k, (n,), d),
    "truncated_normal": lambda k, n, d: random.truncated_normal(k, -1.0, 2.0, (n,), d),
    "gamma": lambda k, n, d: random.gamma(k, 2.5, (n,), d),
    "beta": lambda k, n, d: random.beta(k, 2.0, 3.0, (n,), d),
    "dirichlet": lambda k, n, d: random.dirichlet(k, xp.ones(3), (n,), d),
    "multivariate_normal": lambda k, n, d: random.multivariate_normal(k, MEAN, xp.eye(2), (n,), d),
    "orthogonal": lambda k, n, d: random.orthogonal(k, 3, (n,), d),
}
WIDE = dict.fromkeys(("normal", "exponential", "gumbel", "laplace", "orthogonal"), "float32")
UNIFORM: dict[str, Any] = {
    "uniform": lambda k, n, d: random.uniform(k, (n,), d),
    "uniform_between": lambda k, n, d: random.uniform(k, (n,), d, -0.1, 3.0),
}
HALVES = pytest.mark.parametrize("dtype", [xp.float16, xp.bfloat16])


@HALVES
@pytest.mark.parametrize("name", DRAWS)
def test_they_are_rounded_once(name: str, dtype: Any) -> None:
    """From what is drawn in float32, or in float64 where that is what the draw computes in."""
    x = DRAWS[name](KEY, 1000, dtype)
    wide = DRAWS[name](KEY, 1000, WIDE.get(name, "float64"))
    assert x.dtype == dtype
    assert len(set(x.reshape((-1,)).tolist())) > 50
    laws.same(x, xp.astype(wide, dtype))


@HALVES
@pytest.mark.parametrize("name", [*DRAWS, *UNIFORM])
@pytest.mark.parametrize("n", [7, 20_000])
def test_they_are_the_same_everywhere(name: str, n: int, dtype: Any) -> None:
    """Compiled, in a batch, and with one thread."""
    draw = (DRAWS | UNIFORM)[name]
    n = n if name != "orthogonal" else 3  # BLAS rounds large stacks in its own way
    expected = draw(KEY, n, dtype)
    laws.same(ft.jit(lambda k: draw(k, n, dtype))(KEY), expected)
    with ft.config.using(threads=1):
        laws.same(draw(KEY, n, dtype), expected)
    if name != "orthogonal":
        keys = random.split(KEY, 2)
        laws.same(ft.vmap(lambda k: draw(k, n, dtype))(keys)[1], draw(keys[1], n, dtype))


@HALVES
def test_uniform_never_reaches_its_end(dtype: Any) -> None:
    """Although a part of what is drawn in float32 rounds to it; both neighbours of an end come."""
    x = random.uniform(KEY, (100_000,), dtype)
    assert x.dtype == dtype
    assert float(x.min()) >= 0.0
    assert float(x.max()) == 1.0 - xp.finfo(dtype).eps / 2
    assert abs(np.asarray(x, np.float64).mean() - 0.5) < 5 * (1 / 12 / len(x)) ** 0.5 + 0.001
    low, high = xp.asarray(-1.0, dtype=dtype), xp.asarray(3.0, dtype=dtype)
    y = random.uniform(KEY, (100_000,), dtype, -1.0, 3.0)
    assert float(y.min()) == float(low)
    assert float(y.max()) == float(xp.nextafter(high, low))


@HALVES
def test_uniform_with_limits_at_the_ends_of_the_dtype(dtype: Any) -> None:
    """Their difference has no number of 16 bits, and needs none."""
    most = xp.finfo(dtype).max if dtype is xp.float16 else 2.0**126
    x = random.uniform(KEY, (1000,), dtype, -most, most)
    assert bool(xp.all(xp.isfinite(x)))
    assert bool(xp.any(x < 0))
    assert bool(xp.any(x > 0))


@HALVES
def test_exponential_numbers_are_not_zero(dtype: Any) -> None:
    """So that their logarithm is finite, as that of wider ones is."""
    x = random.exponential(KEY, (1_000_000,), dtype)
    assert float(x.min()) > 0.0
    smallest = -np.log1p(np.float32(-(2.0**-24)))
    assert float(xp.asarray(smallest, dtype=dtype)) > 0.0


@HALVES
def test_derivatives_in_parameters(dtype: Any) -> None:
    """They go through the rounding as through a cast."""
    slopes = ft.grad(
        lambda a, b: xp.sum(random.uniform(KEY, (50,), dtype, a, b)), argnums=(0, 1)
    )(-1.0, 3.0)
    assert float(random.uniform(KEY, (50,), xp.bfloat16, -1.0, 3.0).max()) == 3.0 - 2.0**-6
    assert abs(float(slopes[0] + slopes[1]) - 50.0) < 0.5  # of draws put below their end too
    slope = ft.grad(lambda a: xp.sum(random.gamma(KEY, a, (50,), dtype)))(2.0)
    wide = ft.grad(lambda a: xp.sum(random.gamma(KEY, a, (50,))))(2.0)
    assert abs(float(slope) - float(wide)) < 0.02 * abs(float(wide))
