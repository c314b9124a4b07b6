"""Distributions with parameters: the right ones, the same bits everywhere, exact derivatives."""

from typing import Any

import numpy as np
import pytest
import scipy.stats

import funct as ft
import funct.array as xp
from funct import random
from funct.errors import DTypeError, FunctError, ShapeError
from tests import laws

N = 20_000
KEY = random.key(42)
COV = np.asarray([[2.0, 0.5], [0.5, 1.0]])

DRAWS: dict[str, Any] = {
    "gamma": lambda k: random.gamma(k, xp.asarray([0.5, 3.0])),
    "beta": lambda k: random.beta(k, 2.0, xp.asarray([0.5, 1.5]), (3, 2)),
    "dirichlet": lambda k: random.dirichlet(k, xp.asarray([0.5, 1.0, 2.0]), (2,)),
    "poisson": lambda k: random.poisson(k, xp.asarray([0.5, 30.0, 9.9, 1e6])),
    "truncated_normal": lambda k: random.truncated_normal(k, -0.5, 1.5, (4,), "float32"),
    "multivariate_normal": lambda k: random.multivariate_normal(k, xp.zeros(2), xp.asarray(COV)),
    "orthogonal": lambda k: random.orthogonal(k, 3),
}


@pytest.mark.parametrize("name", DRAWS)
def test_same_bits_everywhere(name: str) -> None:
    """Eager, jit and vmap give the same bits; a lane of vmap is the call with that lane's key."""
    draw = DRAWS[name]
    keys = random.split(KEY, 3)
    loop = xp.stack([draw(k) for k in keys])
    assert not np.array_equal(np.asarray(loop[0]), np.asarray(loop[1]))
    laws.same(ft.jit(draw)(KEY), draw(KEY))
    if name in ("multivariate_normal", "orthogonal"):  # BLAS rounds stacks in its own way
        laws.close(ft.vmap(draw)(keys), loop)
        return
    laws.same(ft.vmap(draw)(keys), loop)
    laws.same(ft.jit(ft.vmap(draw))(keys), loop)


CONTINUOUS = {
    "truncated": (
        lambda k, d: random.truncated_normal(k, -1.0, 0.5, (N,), d), scipy.stats.truncnorm(-1, 0.5),
    ),
    "tail": (
        lambda k, d: random.truncated_normal(k, 8.0, float("inf"), (N,), d),
        scipy.stats.truncnorm(8.0, np.inf),
    ),
    "multivariate_normal": (
        lambda k, d: random.multivariate_normal(k, xp.ones(2), xp.asarray(COV), (N,), d)[:, 0],
        scipy.stats.norm(1.0, 2.0**0.5),
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", ["float32", "float64"])
@pytest.mark.parametrize("name", CONTINUOUS)
def test_distributions(name: str, kind: str) -> None:
    """Mean and variance lie within five standard errors, and Kolmogorov and Smirnov agree."""
    draw, expected = CONTINUOUS[name]
    x = np.asarray(draw(KEY, kind))
    assert x.dtype == kind
    x = x.astype("float64")
    mean, var, kurtosis = (float(v) for v in expected.stats("mvk"))
    assert abs(x.mean() - mean) < 5 * (var / N) ** 0.5
    assert abs(x.var() - var) < 5 * var * ((kurtosis + 2) / N) ** 0.5
    assert scipy.stats.kstest(x, expected.cdf).pvalue > 1e-3


def _beyond(x: np.ndarray, near: float) -> np.ndarray:
    """Φ(-x) / Φ(-near) for near from 36 on, by Mills' ratio: 1/x - 1/x³ + 3/x⁵."""
    d = x - near
    terms = [1.0 - v**-2.0 + 3.0 * v**-4.0 for v in (x, near)]
    return np.exp(-d * (near + d / 2)) * near / x * terms[0] / terms[1]


FAR = [
    (36.0, float("inf")), (37.9, 37.95), (40.0, float("inf")), (40.0, 41.0), (1e3, 1e4),
    (1e3, 1e3 + 1e-3), (1e6, 2e6),
]  # fmt: skip


@pytest.mark.parametrize("above", [True, False])
@pytest.mark.parametrize(("near", "far"), FAR)
def test_far_tails(near: float, far: float, above: bool) -> None:
    """Where no float is the tail's probability, what part of it lies beyond a draw is uniform."""
    low, high = (near, far) if above else (-far, -near)
    x = abs(np.asarray(random.truncated_normal(KEY, low, high, (N,))))
    assert x.min() >= near
    assert x.max() <= far
    left = _beyond(np.asarray(far), near)
    share = (_beyond(x, near) - left) / (1.0 - left)
    assert scipy.stats.kstest(share, "uniform").pvalue > 1e-3
    limits = xp.asarray([low, -1.0, 0.5]), xp.asarray([high, 2.0, 7.0])
    draw = lambda a, b: random.truncated_normal(KEY, a, b, (3,))  # noqa: E731
    mixed = draw(*limits)
    laws.close(ft.jit(draw)(*limits), mixed)
    laws.same(mixed[0], random.truncated_normal(KEY, low, high, (3,))[0])
    for slope in ft.grad(lambda a, b: draw(a, b).sum(), argnums=(0, 1))(*limits):
        assert np.isfinite(np.asarray(slope)).all()


def test_limits_without_a_square() -> None:
    """What is drawn is the limit nearer to 0: no float lies between it and the draw."""
    for near, far in [(1e150, 1e151), (1e200, 1e300), (1e200, float("inf"))]:
        assert (random.truncated_normal(KEY, near, far, (9,)) == near).all()
        assert (random.truncated_normal(KEY, -far, -near, (9,)) == -near).all()


def test_covariances() -> None:
    """They are those asked for."""
    x = np.asarray(random.multivariate_normal(KEY, xp.zeros(2), xp.asarray(COV), (N,)))
    np.testing.assert_allclose(np.cov(x.T), COV, atol=0.06)


def test_orthogonal() -> None:
    """Q Qᵀ = 1, and both determinants occur."""
    q = random.orthogonal(KEY, 3, (200,))
    np.testing.assert_allclose(
        np.asarray(q @ xp.matrix_transpose(q)), np.broadcast_to(np.eye(3), q.shape), atol=1e-13
    )
    signs = np.linalg.det(np.asarray(q))
    assert 60 < (signs > 0).sum() < 140
    assert abs(np.asarray(q).mean()) < 5 / 1800**0.5


def test_derivatives_in_the_parameters(rng: np.random.Generator) -> None:
    """They are those of the draw at a fixed key, to second order."""
    a = xp.asarray([0.7, 2.5, 6.0])
    low = xp.asarray([-0.5, 1.0, 0.3])
    laws.check_derivatives(lambda a, b: random.truncated_normal(KEY, a, b), [low, a + 1.0], rng)
    laws.check_derivatives(
        lambda m, c: random.multivariate_normal(KEY, m, c @ c.T), [a[:2], xp.asarray(COV)], rng
    )


ENDS = {
    "laplace": lambda k: random.laplace(k, (4,)),
    "truncated_normal": lambda k: random.truncated_normal(k, -float("inf"), float("inf"), (4,)),
}


@pytest.mark.parametrize("end", ["zero", "below one"])
@pytest.mark.parametrize("name", ENDS)
def test_extreme_bits_give_finite_draws(name: str, end: str) -> None:
    """A uniform number of 0 or next to 1 never becomes log(0)."""
    seen = []

    def rule(primitive: Any, operands: Any, params: Any) -> Any:
        if primitive.name != "random_unit":
            return NotImplemented
        shape, dtype = params
        seen.append(primitive)
        most = np.nextafter(np.asarray(1, dtype), np.asarray(0, dtype))
        return xp.full(shape, 0 if end == "zero" else most, dtype=dtype)

    x = np.asarray(ft.intercept(ENDS[name], rule)(KEY))
    assert seen
    assert np.isfinite(x).all()


def test_categorical_of_short_floats() -> None:
    """Noise is drawn in float32 for logits in bfloat16."""
    logits = xp.asarray([0.0, 50.0, 0.0], dtype=xp.bfloat16)
    assert random.categorical(KEY, logits, shape=(4,)).tolist() == [1, 1, 1, 1]


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: random.gamma(KEY, xp.ones(3), (2,)), ShapeError, "random.gamma: .*broadcast"),
        (lambda: random.beta(KEY, xp.ones(3), xp.ones(2)), ShapeError, "random.beta"),
        (lambda: random.gamma(KEY, 1.0, (), "int32"), DTypeError, "random.gamma: dtype"),
        (lambda: random.poisson(KEY, 1.0, (), "float32"), DTypeError, "dtype must be of integers"),
        (lambda: random.gamma(KEY, 1j), DTypeError, "random.gamma: a must be of real numbers"),
        (lambda: random.poisson(KEY, 1.0, (-1,)), ShapeError, "^random.poisson: shape must not be"),
        (lambda: random.dirichlet(KEY, 1.0), ShapeError, "alpha must have an axis"),
        (
            lambda: random.multivariate_normal(KEY, xp.ones(2), xp.eye(3)), ShapeError,
            "mean must be",
        ),
        (lambda: random.orthogonal(KEY, -1), FunctError, "random.orthogonal"),
    ],
)  # fmt: skip
def test_errors(call: Any, error: type[Exception], text: str) -> None:
    """What is wrong is named."""
    with pytest.raises(error, match=text):
        call()


@pytest.mark.parametrize("n", [1, 2, 5, 16, 20])
@pytest.mark.parametrize("shape", [(), (3,), (50,), (4, 100), (3000,)])
@pytest.mark.parametrize("own", [False, True])
def test_compiled_normal_vectors_have_the_eager_bits(n: int, shape: Any, own: bool) -> None:
    """One matrix for all draws, or one for each; alone and beside other ops."""
    lead = shape[-1:] if own else ()
    a = np.random.default_rng(n).normal(size=(*lead, n, n))
    mean, cov = xp.ones(n), xp.asarray(a @ np.swapaxes(a, -1, -2) + np.eye(n))

    def draw(key: Any, mean: Any, cov: Any) -> Any:
        return random.multivariate_normal(key, mean, cov, shape)

    def more(key: Any, mean: Any, cov: Any) -> Any:
        return draw(key, mean, cov) * 2.0 + mean

    for f in (draw, more):
        laws.same(ft.jit(f)(KEY, mean, cov), f(KEY, mean, cov))
