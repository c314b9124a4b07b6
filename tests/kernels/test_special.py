"""The special functions: values from the tables, laws that tie them, dtypes, and a lazy SciPy."""

from __future__ import annotations

import math
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from funct.kernels.special import functions as special
from funct.kernels.special import gamma
from funct.kernels.special.incomplete_slopes import _plateau

ALL = [special.erf, special.erfc, special.erfinv, gamma.gammaln, gamma.digamma]
by_name = pytest.mark.parametrize("function", ALL, ids=lambda f: f.__name__)


@given(st.floats(-5, 5))
def test_erf_and_erfc_are_those_of_the_c_library(x: float) -> None:
    """erf and erfc equal Python's own."""
    at = np.array([x])
    np.testing.assert_allclose(special.erf(at), [math.erf(x)], rtol=1e-13)
    np.testing.assert_allclose(special.erfc(at), [math.erfc(x)], rtol=1e-13)


@given(st.floats(-0.999, 0.999))
def test_erfinv_is_the_inverse(p: float) -> None:
    """erf(erfinv(p)) is p."""
    back = special.erf(special.erfinv(np.array([p])))
    np.testing.assert_allclose(back, [p], rtol=1e-13, atol=1e-300)  # subnormals are coarse


@given(st.floats(1e-3, 1e5))
def test_gammaln_is_that_of_the_c_library(x: float) -> None:
    """gammaln equals Python's own, close to its zeros up to an absolute error."""
    actual = gamma.gammaln(np.array([x]))
    np.testing.assert_allclose(actual, [math.lgamma(x)], rtol=1e-13, atol=1e-14)


@given(st.floats(1e-2, 1e3))
def test_digamma_obeys_its_recurrence(x: float) -> None:
    """ψ(x + 1) = ψ(x) + 1 / x."""
    below, above = gamma.digamma(np.array([x])), gamma.digamma(np.array([x + 1]))
    np.testing.assert_allclose(above, below + 1 / x, rtol=1e-11, atol=1e-11)


def test_digamma_is_minus_gamma_at_one() -> None:
    """ψ(1) is −γ, Euler's constant."""
    np.testing.assert_allclose(gamma.digamma(np.ones(1)), -np.euler_gamma, rtol=1e-15)


def test_ends_of_the_domains() -> None:
    """Limits are limits, poles are infinite, and outside of the domain there is NaN."""
    inf, nan = np.inf, np.nan
    assert special.erf(np.array([inf, -inf])).tolist() == [1, -1]
    assert special.erfc(np.array([inf, -inf])).tolist() == [0, 2]
    np.testing.assert_array_equal(special.erfinv(np.array([1.0, -1, 2])), [inf, -inf, nan])
    assert gamma.gammaln(np.array([0.0, -1, inf])).tolist() == [inf, inf, inf]
    assert np.isnan(gamma.digamma(np.array([-1.0, nan]))).all()


@by_name
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_dtype_is_kept(function: Any, dtype: str) -> None:
    """Every float dtype stays, with the value of float64 rounded to it."""
    ml_dtypes = pytest.importorskip("ml_dtypes", reason="bfloat16 is a dtype of ml_dtypes")
    kind = np.dtype(getattr(ml_dtypes, dtype, dtype))
    x = np.array([[0.25, 0.5], [0.625, 0.75]], kind)
    y = function(x)
    assert y.dtype == kind
    assert y.shape == x.shape
    eps = float(ml_dtypes.finfo(kind).eps)
    expected = function(x.astype(np.float64))
    np.testing.assert_allclose(y.astype(np.float64), expected, rtol=4 * eps)


@by_name
def test_integers_become_floats(function: Any) -> None:
    """An integer is taken as float64."""
    x = np.array([1, 1])
    np.testing.assert_array_equal(function(x), function(x.astype(np.float64)), strict=True)


def test_scipy_waits_for_the_first_call() -> None:
    """Importing the kernels imports no SciPy; the first value does."""
    code = """
import sys
import numpy
import funct.kernels.windows.convolution, funct.kernels.windows.pooling, funct.kernels.random.bits
from funct.kernels.special import functions as special
from funct.kernels.special import gamma
from funct.kernels.special.incomplete_slopes import _plateau
assert "scipy" not in sys.modules
special.erf(numpy.zeros(1))
assert "scipy.special" in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_panels_that_nobody_reaches_are_left_out() -> None:
    """The integral of 1 is the length; nothing is asked for beyond the last end."""
    for ends, panels in (([], 0), ([0.0, 0.0], 0), ([0.2, 0.6], 2), ([3.0, 100.0], 20)):
        asked: list[Any] = []
        found = _plateau(lambda s, to=asked: to.append(s) or np.ones_like(s), np.asarray(ends))
        np.testing.assert_allclose(found, ends, rtol=1e-14)
        assert len(asked) == panels
