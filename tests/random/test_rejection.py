"""Gamma, beta, Dirichlet and Poisson numbers: their distributions, ends and derivatives."""

from typing import Any

import numpy as np
import pytest
import scipy.special
import scipy.stats

import funct as ft
import funct.array as xp
from funct import random
from tests import laws

N = 20_000
KEY = random.key(42)
LEAST = {"float32": float(np.finfo(np.float32).smallest_subnormal), "float64": 5e-324}
BELOW_ONE = {"float32": 2.0**-25, "float64": 2.0**-54}  # what is nearer to 1 is 1
SHAPES = [1e-3, 0.03, 0.3, 0.999, 1.0, 2.3, 50.0, 1e6]
each_dtype = pytest.mark.parametrize("kind", ["float32", "float64"])


def fits(x: Any, cdf: Any, low: float, above: float = 0.0) -> None:
    """Numbers beyond low are distributed as cdf says, and as many are below, and are 1, as should
    be.
    """
    x, below = x.astype(np.float64), float(cdf(low))
    ones = x == 1 if above else np.zeros(x.shape, bool)
    for part, p in ((x <= low, below), (ones, above)):
        assert abs(part.mean() - p) <= 5 * (p * (1 - p) / x.size) ** 0.5 + 1e-9
    inner = x[(x > low) & ~ones]
    if inner.size > 100:
        found = scipy.stats.kstest(inner, lambda v: (cdf(v) - below) / (1 - below - above))
        assert found.pvalue > 1e-3


@each_dtype
@pytest.mark.parametrize("a", SHAPES)
def test_gamma(a: float, kind: str) -> None:
    """Kolmogorov and Smirnov agree; mean and variance lie within five standard errors."""
    x = np.asarray(random.gamma(KEY, a, (N,), kind))
    assert x.dtype == kind
    law = scipy.stats.gamma(a)
    fits(x, law.cdf, LEAST[kind])
    assert abs(x.mean(dtype="float64") - a) < 5 * (a / N) ** 0.5
    assert abs(x.var(dtype="float64") - a) < 5 * a * ((2 + 6 / a) / N) ** 0.5


@each_dtype
@pytest.mark.parametrize(
    ("a", "b"),
    [(1e-3, 1e-3), (1e-3, 4.0), (1e6, 1e-3), (0.5, 0.5), (2.0, 0.5), (7.0, 3.0), (1e6, 1e6)],
)
def test_beta(a: float, b: float, kind: str) -> None:
    """Kolmogorov and Smirnov agree; where both parameters are tiny, numbers are 0 and 1."""
    x = np.asarray(random.beta(KEY, a, b, (N,), kind))
    assert x.dtype == kind
    ones = scipy.special.betainc(b, a, BELOW_ONE[kind])
    fits(x, scipy.stats.beta(a, b).cdf, LEAST[kind], ones)
    mean = a / (a + b)
    assert abs(x.mean(dtype="float64") - mean) < 5 * (mean * (1 - mean) / (a + b + 1) / N) ** 0.5


@each_dtype
@pytest.mark.parametrize("alpha", [[0.5, 2.0, 1.5], [1e-3, 2e-3, 1e-3], [1e3, 1e6, 0.3]])
def test_dirichlet(alpha: list[float], kind: str) -> None:
    """Components are beta numbers, and sum to 1 for tiny parameters too."""
    x = np.asarray(random.dirichlet(KEY, xp.asarray(alpha), (N,), kind))
    assert x.dtype == kind
    np.testing.assert_allclose(x.sum(-1), 1.0, rtol=1e-6 if kind == "float32" else 1e-14)
    for k, a in enumerate(alpha):
        rest = sum(alpha) - a
        ones = scipy.special.betainc(rest, a, BELOW_ONE[kind])
        fits(x[:, k], scipy.stats.beta(a, rest).cdf, LEAST[kind], ones)
    second = x[:, 0].astype(float) * x[:, 1]
    total = sum(alpha)
    expected = alpha[0] * alpha[1] / (total * (total + 1))
    assert abs(second.mean() - expected) < 5 * second.std() / N**0.5


@pytest.mark.parametrize("lam", [0.0, 1e-3, 0.3, 4.0, 9.9, 10.1, 17.0, 400.0, 1e6, 1e9])
def test_poisson(lam: float) -> None:
    """Frequencies agree with the probabilities by chi-square, each of them in the middle."""
    x = np.asarray(random.poisson(KEY, lam, (N,)))
    assert x.dtype == np.int64
    law = scipy.stats.poisson(lam)
    if lam == 0:
        assert not x.any()
        return
    ends = np.unique(law.ppf(np.linspace(0, 1, 80)[1:-1]))
    p = np.diff(law.cdf(ends), prepend=0.0, append=1.0)
    seen = np.bincount(np.searchsorted(ends, x), minlength=p.size)
    assert scipy.stats.chi2.sf(((seen - N * p) ** 2 / (N * p)).sum(), p.size - 1 or 1) > 1e-3
    assert abs(x.mean() - lam) < 5 * (lam / N) ** 0.5
    if lam < 1e3:
        pmf = law.pmf(np.arange(x.max() + 1)) * N
        often = pmf > 20
        assert np.all(np.abs(np.bincount(x) - pmf)[often] < 5 * np.sqrt(pmf[often]))


def test_golden() -> None:
    """The first numbers of key(42). A change breaks every stored result of every user."""
    a = xp.asarray([0.3, 1.0, 2.5, 1e6])
    expected = {
        "gamma": [0.08761385501180763, 0.0026573370844117012, 1.5638770582882453, 998370.253225485],
        "beta": [
            0.020746874702020475,
            0.0020205391977817034,
            0.655864697556062,
            0.9999992682646092,
        ],
        "dirichlet": [0.05296614435341211, 0.0016064685156206948, 0.9454273871309672],
        "poisson": [1, 1, 9, 7, 998414],
    }
    lam = xp.asarray([0.3, 2.0, 9.9, 10.1, 1e6])
    laws.same(random.gamma(KEY, a), np.asarray(expected["gamma"]))
    laws.close(random.beta(KEY, a, 2.0), np.asarray(expected["beta"]), 1e-13, 0.0)
    laws.close(random.dirichlet(KEY, a[:3]), np.asarray(expected["dirichlet"]), 1e-14, 0.0)
    laws.same(random.poisson(KEY, lam), np.asarray(expected["poisson"]))


def test_one_mean_gives_what_many_give() -> None:
    """A draw depends on its own parameter, not on whether others have another one."""
    lam = xp.asarray(np.random.default_rng(0).uniform(0.0, 20.0, 300))
    many, shapes = random.poisson(KEY, lam), random.gamma(KEY, lam + 0.1)
    for i in (0, 17, 299):
        assert int(random.poisson(KEY, lam[i], (300,))[i]) == int(many[i])
        assert float(random.gamma(KEY, lam[i] + 0.1, (300,))[i]) == float(shapes[i])


def test_draws_of_one_key_are_independent() -> None:
    """The two gamma numbers of a beta number are, also of one array; neighbours, other
    distributions and parts of the key are.
    """
    a = xp.full(N, 2.0)
    assert abs(float(xp.var(random.beta(KEY, a, a))) - 0.05) < 0.002
    y = np.asarray(random.gamma(KEY, 2.0, (N,)))
    for other in (y[1:], random.gamma(random.split(KEY)[0], 2.0, (N - 1,)),
                  random.normal(KEY, (N - 1,)), random.poisson(KEY, 5.0, (N - 1,))):  # fmt: skip
        assert abs(np.corrcoef(y[:-1], np.asarray(other))[0, 1]) < 5 / N**0.5


ENDS = [0.0, -1.0, float("nan"), float("inf")]


def test_ends_of_the_domain() -> None:
    """Parameters at the ends give limits, those outside NaN, or -1 for counts, under jit too."""
    nan = float("nan")
    a = xp.asarray(ENDS)
    for f in (lambda f: f, ft.jit):
        laws.same(f(lambda a: random.gamma(KEY, a))(a), np.asarray([0.0, nan, nan, float("inf")]))
        laws.same(f(lambda a: random.beta(KEY, a, 2.0))(a), np.asarray([0.0, nan, nan, 1.0]))
        laws.same(f(lambda a: random.beta(KEY, 2.0, a))(a), np.asarray([1.0, nan, nan, 0.0]))
        laws.same(f(lambda a: random.poisson(KEY, a))(a[:3]), np.asarray([0, -1, -1]))
        points = f(lambda a: random.dirichlet(KEY, a, ()))
        assert float(points(xp.asarray([0.0, 2.0]))[0]) == 0.0
        assert bool(xp.all(xp.isnan(points(xp.asarray([-1.0, 2.0])))))
    for dtype, most in (("int8", 127), ("uint16", 65535), ("int64", 2**63 - 1), (xp.int4, 7)):
        assert int(random.poisson(KEY, 1e300, dtype=dtype)) == most


@pytest.mark.parametrize("lam", [2.0**53, 2.0**61.5, 2.0**62, 2.0**62.9, 2.0**63 - 1e11])
def test_counts_up_to_the_largest(lam: float) -> None:
    """Mean and variance of counts that int64 holds; plain draws have the bits of many."""
    x = np.asarray(random.poisson(KEY, lam, (N,)))
    apart = (x - np.int64(lam)).astype(np.float64) / lam**0.5
    assert abs(apart.mean()) < 5 / N**0.5
    assert abs(apart.var() - 1.0) < 5 * (2 / N) ** 0.5
    laws.same(random.poisson(KEY, lam, (7,)), x[:7])
    laws.same(ft.jit(lambda a: random.poisson(KEY, a, (N,)))(xp.asarray(lam)), x)


def test_counts_beyond_the_largest_are_the_largest() -> None:
    """Half of those whose mean is the first that int64 does not hold, all of far larger means."""
    x = np.asarray(random.poisson(KEY, 2.0**63, (N,)))
    most = x == 2**63 - 1
    assert abs(most.mean() - 0.5) < 5 * 0.5 / N**0.5
    assert x[~most].min() > 2**63 - 10 * 2**31.5 * 2**0.5
    for lam in (2.0**63.5, 2.0**64, 1e30, float("inf")):
        assert (np.asarray(random.poisson(KEY, lam, (1000,))) == 2**63 - 1).all()


# derivatives --------------------------------------------------------------------------------------

CURVED = [0.05, 0.7, 2.5, 6.0, 40.0]


def test_derivatives_of_gamma_are_those_of_the_quantile() -> None:
    """Forward and reverse, first and second: how the point of the draw's own rank moves with a."""
    a = xp.asarray(CURVED)
    x = np.asarray(random.gamma(KEY, a))
    p, h = scipy.special.gammainc(CURVED, x), 1e-4 * np.asarray(CURVED)
    at = [scipy.special.gammaincinv(CURVED + k * h, p) for k in (-2, -1, 0, 1, 2)]
    first = (8 * (at[3] - at[1]) - (at[4] - at[0])) / (12 * h)

    def draw(a: Any) -> Any:
        return random.gamma(KEY, a)

    def quantile(a: Any) -> Any:
        return xp.special.gammaincinv(a, xp.asarray(p))

    for jacobian in (ft.jacfwd, ft.jacrev):
        slopes = np.asarray(jacobian(draw)(a))
        np.testing.assert_allclose(np.diag(slopes), first, rtol=1e-6)
        assert not (slopes - np.diag(np.diag(slopes))).any()
        for outer in (ft.jacfwd, ft.jacrev):
            actual, expected = (outer(jacobian(f))(a) for f in (draw, quantile))
            laws.close(actual, np.asarray(expected), 1e-6)
    laws.close(ft.jit(ft.jacrev(draw))(a), slopes, 1e-12)
    narrow = ft.jvp(lambda a: random.gamma(KEY, a, None, "float32"), (a,), (xp.ones(5),))[1]
    assert narrow.dtype == xp.float32
    np.testing.assert_allclose(np.asarray(narrow), first, rtol=1e-5)


def test_derivatives_with_a_number_are_summed() -> None:
    """One a for many draws gets the sum of their derivatives; lanes of vmap get their own."""
    a = xp.asarray([0.3, 4.0])

    def total(key: Any, a: Any) -> Any:
        return xp.sum(random.gamma(key, a, (50,)))

    one = ft.grad(total, 1)(KEY, a[1])
    laws.close(one, xp.sum(ft.grad(lambda a: xp.sum(random.gamma(KEY, a)))(xp.full(50, 4.0))))
    keys = random.split(KEY, 2)
    lanes = ft.vmap(ft.grad(total, 1))(keys, a)
    laws.close(lanes, xp.stack([ft.grad(total, 1)(k, v) for k, v in zip(keys, a)]), 1e-12)
    shared = ft.vmap(ft.grad(total, 1), (None, 0))(KEY, a)
    laws.close(shared, xp.stack([ft.grad(total, 1)(KEY, v) for v in a]), 1e-12)


@pytest.mark.parametrize("a", [1e-3, 0.3, 3.0, 1e4])
def test_means_of_derivatives_of_gamma(a: float) -> None:
    """The mean of x is a, that of log x is psi(a): so are the derivatives', to second order."""

    def mean(a: Any) -> Any:
        return xp.mean(random.gamma(KEY, a, (N,)))

    def mean_of_log(a: Any) -> Any:
        kinds = (np.dtype(np.float64), True, False)
        return xp.mean(ft.ops.random_gamma(KEY, a, (N,), *kinds))

    at = xp.asarray(a)
    slopes = ft.jvp(lambda a: random.gamma(KEY, a, (N,)), (at,), (xp.ones(()),))[1]
    assert abs(float(xp.mean(slopes)) - 1.0) < 5 * float(xp.std(slopes)) / N**0.5
    assert abs(float(ft.grad(mean)(at)) - float(xp.mean(slopes))) < 1e-9
    if a < 1e3:  # beyond it the differences of psi are lost
        first, second = ft.grad(mean_of_log)(at), ft.grad(ft.grad(mean_of_log))(at)
        assert abs(float(first) / scipy.special.polygamma(1, a) - 1) < 0.1
        assert abs(float(second) / scipy.special.polygamma(2, a) - 1) < 0.2


def test_means_of_derivatives_of_beta() -> None:
    """The mean is a / (a + b), and derivatives of means are means of derivatives."""
    for a, b in ((0.3, 0.7), (2.0, 5.0), (1e-2, 2e-2)):
        of_a, of_b = ft.grad(lambda a, b: xp.mean(random.beta(KEY, a, b, (N,))), (0, 1))(
            xp.asarray(a), xp.asarray(b)
        )
        total = (a + b) ** 2
        assert abs(float(of_a) * total / b - 1) < 0.1
        assert abs(float(of_b) * total / -a - 1) < 0.1


def test_means_of_derivatives_of_dirichlet() -> None:
    """Of the mean and of the second moment of a component, forward and reverse."""
    alpha = xp.asarray([0.4, 1.0, 2.0])

    def moments(alpha: Any) -> Any:
        x = random.dirichlet(KEY, alpha, (N,))
        return xp.mean(x, axis=0), xp.mean(x[:, 0] ** 2)

    def exact(alpha: Any) -> Any:
        total = xp.sum(alpha)
        return alpha / total, alpha[0] * (alpha[0] + 1) / (total * (total + 1))

    expected = ft.jacfwd(exact)(alpha)
    for jacobian in (ft.jacfwd, ft.jacrev):
        for actual, wanted in zip(jacobian(moments)(alpha), expected, strict=True):
            np.testing.assert_allclose(np.asarray(actual), np.asarray(wanted), atol=0.01)
    for hessian in (ft.jacfwd(ft.jacrev(moments)), ft.jacrev(ft.jacfwd(moments))):
        for actual, wanted in zip(hessian(alpha), ft.hessian(exact)(alpha), strict=True):
            np.testing.assert_allclose(np.asarray(actual), np.asarray(wanted), atol=0.03)


def test_derivatives_are_sparse() -> None:
    """A gamma number depends on its own parameter alone."""
    a = xp.asarray(CURVED)
    slopes = ft.sparse_jacobian(lambda a: random.gamma(KEY, a))(a)
    assert slopes.nnz == len(CURVED)
    np.testing.assert_allclose(slopes.toarray(), np.asarray(ft.jacrev(random.gamma, 1)(KEY, a)))


def test_derivatives_are_finite_at_the_ends() -> None:
    """Where a draw does not move with its parameter, the derivative is 0, where there is none NaN;
    tiny draws have one.
    """
    for draw in (random.gamma, lambda k, a: ft.ops.random_gamma(k, a, (4,), np.dtype(float), True,
                                                               False)):  # fmt: skip
        slopes = ft.jvp(lambda a, draw=draw: draw(KEY, a), (xp.asarray(ENDS),), (xp.ones(4),))[1]
        laws.same(slopes, np.asarray([0.0, float("nan"), float("nan"), 0.0]))
    tiny = xp.full(100, 1e-3)
    for draw in (random.gamma, lambda k, a: random.beta(k, a, a), random.dirichlet):
        slopes = ft.grad(lambda a, draw=draw: xp.sum(draw(KEY, a) ** 2))(tiny)
        assert bool(xp.all(xp.isfinite(slopes)))
        curves = ft.hvp(lambda a, draw=draw: xp.sum(draw(KEY, a) ** 2), (tiny,), (xp.ones(100),))
        assert bool(xp.all(xp.isfinite(xp.asarray(curves))))
