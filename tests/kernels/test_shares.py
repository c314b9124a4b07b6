"""Shares of gamma numbers: logistic functions, with one rounding wherever they are made."""

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from funct import ops
from funct.kernels.cpu.random import shares as cpu
from funct.kernels.elementwise.thresholds import FAR
from funct.kernels.random.elementary import logistic
from funct.kernels.random.shares import plain_shares, share, shares

KEY = ft.random.key(42)


def test_shares_are_logistic_with_the_same_bits_everywhere():
    """NumPy, machine code for large arrays and compiled loops; infinite and tiny ones too."""
    r = np.random.default_rng(0)
    x = np.concatenate([r.normal(size=FAR) * s for s in (1e-9, 1.0, 40.0, 400.0)])
    ends = [0.0, -0.0, np.inf, -np.inf, np.nan, 745.2, -745.2, -1e308, 36.8, -708.5]
    x = np.concatenate([x, ends, r.uniform(-760, -700, 1000)])
    with np.errstate(all="ignore"):
        plain = logistic(x)
    np.testing.assert_array_equal(share(x), plain)
    for n in (0, 1, 15, 16, 17, 1000):
        np.testing.assert_array_equal(cpu.few_shares(x[:n]), plain[:n])
    compiled = ft.jit(lambda x: ops.random_share(x) * 1.0)(xp.asarray(x))
    np.testing.assert_array_equal(np.asarray(compiled), plain)
    with np.errstate(all="ignore"):
        exact = 1 / (1 + np.exp(-x.astype(np.longdouble)))
    np.testing.assert_allclose(plain, exact, rtol=2**-51, atol=5e-324)  # 2 ulp
    single = x[:1000].astype(np.float32)
    rounded = share(single.astype(np.float64)).astype("f4")
    np.testing.assert_array_equal(share(single), rounded)
    compiled = ft.jit(lambda x: ops.random_share(x) * 1)(xp.asarray(single))
    np.testing.assert_array_equal(np.asarray(compiled), rounded)


def test_shares_stay_inside():
    for n in (1, 16, 17, 31, 100):
        x, y = np.linspace(-3, 3, n), np.full(n, np.nan)
        cpu.share_few.checked(x, y, n)
        np.testing.assert_array_equal(y, logistic(x))


@pytest.mark.parametrize("n", [1, 2, 4, 9, 130])
def test_shares_of_rows_have_the_bits_of_numpy(n):
    """Also of rows with nothing, with what is endless, and NaN; no index leaves its array."""
    x = np.random.default_rng(n).normal(size=(40, n)) * 10
    odd = [-np.inf, np.inf, np.nan, -np.nan, 0.0]
    x[:5, -1] = odd
    x[5:10] = np.array(odd)[:, None]
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(cpu.shares_of_rows(x), plain_shares(x))
        np.testing.assert_array_equal(shares(x.T), plain_shares(x.T))
        y = np.empty((2, *x.shape))
        cpu.below_greatest.checked(x, y[0], *x.shape)
        cpu.below_greatest(x, y[1], *x.shape)
        np.testing.assert_array_equal(*y)
        y = np.exp(y)
        cpu.by_sums.checked(y[0], *x.shape)
        cpu.by_sums(y[1], *x.shape)
        np.testing.assert_array_equal(*y)


@pytest.mark.parametrize("n", [7, 1000, 3000, 9000, 16000, 40000])
@pytest.mark.parametrize("dtype", [xp.float32, xp.float64])
def test_compiled_beta_numbers_have_the_eager_bits(n, dtype):
    """However many are drawn, alone and beside other ops."""

    def draw(key):
        return ft.random.beta(key, 2.5, 1.5, (n,), dtype)

    for f in (draw, lambda key: draw(key) * 2 + 1):
        np.testing.assert_array_equal(np.asarray(ft.jit(f)(KEY)), np.asarray(f(KEY)))


@pytest.mark.parametrize("n", [7, 1000, 9000])
@pytest.mark.parametrize("dtype", [xp.float16, xp.float32, xp.float64])
@pytest.mark.parametrize("k", [1, 3, 40])
def test_compiled_points_of_dirichlet_distributions_have_the_eager_bits(n, dtype, k):
    """However many are drawn, alone, beside other ops, and under vmap."""
    alpha = xp.linspace(0.2, 5.0, k)

    def draw(key):
        return ft.random.dirichlet(key, alpha, (n,), dtype)

    for f in (draw, lambda key: draw(key) * 2 + 1):
        np.testing.assert_array_equal(np.asarray(ft.jit(f)(KEY)), np.asarray(f(KEY)))
    keys = ft.random.split(KEY, 2)
    lanes = np.asarray(ft.jit(ft.vmap(draw))(keys))
    np.testing.assert_array_equal(lanes, [np.asarray(draw(k)) for k in keys])
