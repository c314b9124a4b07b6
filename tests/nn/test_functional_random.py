"""Functions that draw from a key: what is drawn, what stays, and that the key is all there is."""

from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from funct.errors import ArgumentError, MissingKeyError, ShapeError
from funct.nn import functional as F  # noqa: N812
from tests import laws
from tests.nn.cases import wave

KEY = ft.random.key(5)
N = 40_000


def share(hits: Any) -> float:
    """The mean of booleans."""
    return float(np.mean(np.asarray(hits)))


@pytest.mark.parametrize(("name", "rank"), [("dropout1d", 1), ("dropout2d", 2), ("dropout3d", 3)])
def test_channels_fall_as_a_whole(name: str, rank: int) -> None:
    """Each channel is 0 or scaled, with its own decision for each sample, batched or not."""
    fun = getattr(F, name)
    y = np.asarray(fun(xp.ones((30, 40, *(2,) * rank)), 0.3, key=KEY)).reshape(30, 40, -1)
    assert (y == y[..., :1]).all()
    assert abs(share(y[..., 0] == 0) - 0.3) < 5 * (0.3 * 0.7 / 1200) ** 0.5
    assert set(np.unique(y)) == {0.0, 1.0 / 0.7}
    single = np.asarray(fun(xp.ones((40, *(2,) * rank)), 0.3, key=KEY)).reshape(40, -1)
    assert (single == single[:, :1]).all()
    assert len(np.unique(single)) == 2


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
def test_alpha_dropout_keeps_mean_and_variance(p: float) -> None:
    """Standard normal input stays of mean 0 and variance 1; the fallen share one value."""
    x = ft.random.normal(ft.random.key(1), (N,))
    y = np.asarray(F.alpha_dropout(x, p, True, key=KEY))
    assert abs(y.mean()) < 0.05
    assert abs(y.var() - 1.0) < 0.1
    values, counts = np.unique(y, return_counts=True)
    assert abs(counts.max() / N - p) < 5 * (p * (1 - p) / N) ** 0.5
    fallen = values[counts.argmax()]
    a = (1.7580993408473766**2 * p + 1) ** -0.5 * (1 - p) ** -0.5
    np.testing.assert_allclose(fallen, -1.7580993408473766 * a * (1 - p), rtol=1e-12)


def test_feature_alpha_dropout_takes_channels() -> None:
    """A channel is moved as a whole."""
    y = np.asarray(F.feature_alpha_dropout(xp.ones((20, 30, 3)), 0.4, True, key=KEY))
    assert (y == y[..., :1]).all()
    assert abs(share(y[..., 0] < 0) - 0.4) < 5 * (0.24 / 600) ** 0.5


def test_rrelu_draws_slopes_from_its_range() -> None:
    """Slopes are uniform on [lower, upper]; in inference it is their mean; positives stay."""
    y = np.asarray(F.rrelu(xp.full((N,), -1.0), 0.2, 0.6, True, key=KEY))
    assert -0.6 <= y.min() < -0.59
    assert -0.21 < y.max() <= -0.2
    assert abs(y.mean() + 0.4) < 0.01
    assert F.rrelu(xp.asarray([3.0]), 0.2, 0.6, True, key=KEY).tolist() == [3.0]
    assert F.rrelu(xp.asarray([-2.0]), 0.25, 0.75).tolist() == [-1.0]


def test_gumbel_softmax_draws_the_categorical() -> None:
    """Hard samples are one-hot with the frequencies of softmax, and the soft sample's gradient."""
    logits = xp.asarray([0.0, 1.0, 2.0])
    many = xp.broadcast_to(logits, (N, 3))
    y = np.asarray(F.gumbel_softmax(many, hard=True, key=KEY))
    np.testing.assert_allclose(y.sum(1), 1.0, rtol=1e-12)
    assert (np.abs(y - np.round(y)) < 1e-12).all()
    np.testing.assert_allclose(y.mean(0), np.asarray(F.softmax(logits, 0)), atol=0.015)
    w = xp.asarray([1.0, -2.0, 0.5])
    hard, soft = (
        ft.grad(lambda v, h=h: xp.sum(w * F.gumbel_softmax(v, 0.7, h, key=KEY)))(logits)
        for h in (True, False)
    )
    laws.close(hard, soft)
    first = F.gumbel_softmax(xp.ones((3, 4)), dim=0, key=KEY)
    np.testing.assert_allclose(np.asarray(first).sum(0), 1.0)


CALLS = [
    ("dropout", lambda x, key: F.dropout(x, 0.4, key=key)),
    ("dropout1d", lambda x, key: F.dropout1d(x, 0.4, key=key)),
    ("alpha_dropout", lambda x, key: F.alpha_dropout(x, 0.4, True, key=key)),
    ("feature_alpha_dropout", lambda x, key: F.feature_alpha_dropout(x, 0.4, True, key=key)),
    ("rrelu", lambda x, key: F.rrelu(x, training=True, key=key)),
    ("gumbel_softmax", lambda x, key: F.gumbel_softmax(x, 0.8, key=key)),
    (
        "attention",
        lambda x, key: F.scaled_dot_product_attention(x, x, x, None, 0.4, dropout_key=key),
    ),
]  # fmt: skip
each_call = pytest.mark.parametrize("fun", [c[1] for c in CALLS], ids=[c[0] for c in CALLS])


@each_call
def test_the_key_is_all_there_is(fun: Any, rng: np.random.Generator) -> None:
    """One key, one result, under every transform; lanes with keys of their own differ."""
    x = xp.asarray(wave((2, 3, 4)))
    laws.same(fun(x, KEY), fun(x, KEY))
    laws.check_derivatives(lambda v: fun(v, KEY), [x], rng, order=2)
    laws.check_jit(fun, [x, KEY])
    keys = ft.random.split(KEY, 3)
    lanes = ft.vmap(fun, in_axes=(None, 0))(x, keys)
    laws.close(lanes, xp.stack([fun(x, k) for k in keys]), 1e-12, 1e-12)
    assert not np.array_equal(np.asarray(lanes[0]), np.asarray(lanes[1]))
    half = xp.asarray(wave((2, 3, 4)), dtype=xp.float32)
    assert fun(half, KEY).dtype == xp.float32


@each_call
def test_a_missing_key_is_named(fun: Any) -> None:
    """Nothing is ever drawn from anywhere else."""
    with pytest.raises(MissingKeyError, match="a key is needed"):
        fun(xp.ones((2, 3, 4)), None)


def test_nothing_is_drawn_outside_of_training() -> None:
    """Inference gives the input itself, without a key; p = 1 gives zeros."""
    x = xp.asarray(wave((2, 3, 4)))
    assert F.alpha_dropout(x) is x
    assert F.feature_alpha_dropout(x) is x
    assert F.dropout1d(x, training=False) is x
    assert F.dropout1d(x, 0.0) is x
    laws.same(F.alpha_dropout(x, 1.0, True, key=KEY), xp.zeros_like(x))
    with pytest.raises(ArgumentError, match="dropout1d: p must be between 0 and 1, got -1"):
        F.dropout1d(x, -1, False)
    with pytest.raises(ShapeError, match="dropout2d: input must have 3 or 4 axes"):
        F.dropout2d(xp.ones((2, 3)))
    with pytest.raises(ArgumentError, match="rrelu: lower must not be above upper"):
        F.rrelu(x, 0.5, 0.1)
    with pytest.raises(ArgumentError, match="gumbel_softmax: tau must be positive, got 0"):
        F.gumbel_softmax(x, 0, key=KEY)
