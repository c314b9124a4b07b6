"""Distances of all rows from all, by differences and by products of matrices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from funct.nn import functional as F  # noqa: N812


def by_numpy(x: Any, y: Any, p: float) -> Any:
    """In float64, pair by pair."""
    apart = x[..., :, None, :].astype(np.float64) - y[..., None, :, :]
    return np.linalg.vector_norm(apart, ord=p, axis=-1)


@pytest.mark.parametrize("p", [0.0, 0.5, 1.0, 2.0, 3.0, float("inf")])
@pytest.mark.parametrize(("shape", "other"), [
    ((1, 1), (1, 1)), ((5, 3), (4, 3)), ((40, 16), (30, 16)), ((40, 33), (30, 33)),
    ((0, 3), (2, 3)), ((3, 1, 30, 20), (2, 7, 20)), ((30, 0), (4, 0)),
])  # fmt: skip
def test_every_pair(shape: Any, other: Any, p: float) -> None:
    """Eagerly and compiled, for sizes that go each way; rows of nothing are 0 apart."""
    rng = np.random.default_rng(0)
    x, y = (rng.standard_normal(s).astype(np.float32) for s in (shape, other))
    expected = by_numpy(x, y, p) if shape[-1] else np.zeros((30, 4))
    for fun in (F.cdist, ft.jit(F.cdist, static_argnums=2)):
        if not shape[-1] and p == float("inf"):
            continue  # nothing has no maximum
        found = fun(xp.asarray(x), xp.asarray(y), p)
        assert found.dtype == xp.float32
        np.testing.assert_allclose(found.data, expected, rtol=2e-5, atol=1e-5)


def test_close_rows_keep_their_digits_by_differences() -> None:
    """By products they lose them, which a caller may choose."""
    x = np.random.default_rng(0).standard_normal((30, 64)).astype(np.float32) + 100.0
    y = x + np.float32(1e-3)
    near = F.cdist(xp.asarray(x), xp.asarray(y), compute_mode="donot_use_mm_for_euclid_dist")
    np.testing.assert_allclose(np.diag(near.data), np.diag(by_numpy(x, y, 2.0)), rtol=1e-5)
    assert (F.cdist(xp.asarray(x), xp.asarray(y)).data >= 0).all()


def test_both_ways_have_the_same_derivatives() -> None:
    rng = np.random.default_rng(0)
    x, y = (xp.asarray(rng.standard_normal((n, 20))) for n in (30, 28))

    def total(mode: str) -> Any:
        return lambda x, y: xp.sum(xp.sin(F.cdist(x, y, compute_mode=mode)))

    modes = ("use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist")
    one, other = (ft.grad(total(m), argnums=(0, 1))(x, y) for m in modes)
    for a, b in zip(one, other, strict=True):
        np.testing.assert_allclose(a.data, b.data, rtol=1e-9, atol=1e-9)
