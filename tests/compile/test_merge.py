"""Loops that read one large array are one, where nothing between them stands in the way."""

from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from funct.compile.fusion.groups import reads
from funct.nn import functional as F  # noqa: N812
from tests.compile.test_native import compiled

RNG = np.random.default_rng(0)
X, G = (RNG.normal(size=(4, 16, 32, 32)).astype("f") for _ in range(2))
W, B = (RNG.normal(size=16).astype("f") for _ in range(2))
NORMS = {
    "group_norm": lambda x, w, b: F.group_norm(x, 4, w, b),
    "batch_norm": lambda x, w, b: F.batch_norm(x, None, None, w, b, True),
    "instance_norm": lambda x, w, b: F.instance_norm(x, None, None, w, b),
    "layer_norm": lambda x, w, b: F.layer_norm(x * w[:, None, None] + b[:, None, None], (32, 32)),
}


def readers(made: Any, k: int) -> int:
    """How many steps read input k."""
    root = made.fused.graph.inputs[k]
    return sum([root in [made.fused.views[v].root for v in reads(s)] for s in made.fused.steps])


@pytest.mark.parametrize("name", NORMS)
def test_gradients_of_norms_pass_over_memory_few_times(name: str) -> None:
    """Images are read for their means, for all other sums at once, and for the result; layer norms
    have their rows at hand.
    """

    def gradient(x: Any, w: Any, b: Any, g: Any) -> Any:
        return ft.vjp(NORMS[name], x, w, b)[1](g)

    made = compiled(gradient, X, W, B, G)
    rows = name == "layer_norm"
    assert readers(made, 0) <= (2 if rows else 3)
    assert readers(made, 3) <= (1 if rows else 2)
    expected = gradient(*map(xp.asarray, (X, W, B, G)))
    for a, e in zip(made.run(X, W, B, G), expected, strict=True):
        np.testing.assert_allclose(a, e, rtol=2e-4, atol=2e-3)


def test_loops_stand_behind_what_they_wait_for() -> None:
    """A sum is computed beside a later one, and what follows from it behind them both."""

    def f(x: Any, y: Any) -> Any:
        first = xp.sum(x * 2.0, axis=1)
        second = xp.cumulative_sum(y, axis=1)  # is no loops, and none of it is first's
        third = second * x
        return first @ first, third @ third.mT, xp.sum(third, axis=1)

    x, y = G.reshape(512, 128), X.reshape(512, 128)
    made = compiled(f, x, y)
    assert readers(made, 0) == 1
    for a, e in zip(made.run(x, y), f(xp.asarray(x), xp.asarray(y)), strict=True):
        np.testing.assert_allclose(a, e, rtol=2e-4, atol=2e-3)


def test_nothing_large_waits_for_other_loops() -> None:
    """Where products follow from the earlier loops, they stay: what they free would be held."""

    def f(x: Any, y: Any) -> Any:
        first = x * 2.0
        second = first @ first.mT
        third = xp.cumulative_sum(y, axis=1) * x
        return xp.sum(second, axis=1), third @ third.mT

    x, y = G.reshape(512, 128), X.reshape(512, 128)
    made = compiled(f, x, y)
    assert readers(made, 0) == 2
    for a, e in zip(made.run(x, y), f(xp.asarray(x), xp.asarray(y)), strict=True):
        np.testing.assert_allclose(a, e, rtol=2e-4, atol=2e-2)
