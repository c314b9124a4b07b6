"""Approximations: errors in ulp as their docstrings say, ends, and that they are shorter."""

import numpy as np
import pytest
import scipy.special

from funct.device.host import Host, host
from funct.kernels.llvm.fast import FAST
from funct.kernels.llvm.functions import FUNCTIONS

from .apply import apply, text
from .drawn import rng

F32, F64 = np.float32, np.float64
LONG = np.longdouble
TARGET = Host("haswell", frozenset({"avx2", "fma"}), 32, 1)

# name: (function with more digits, bound in ulp, from, to)
ONE = {
    "cos": (np.cos, 2, -100, 100),
    "exp": (np.exp, 4, -87, 88),
    "exp2": (np.exp2, 4, -126, 127),
    "expit": (lambda x: 1 / (1 + np.exp(-x)), 5, -80, 80),
    "sin": (np.sin, 2, -100, 100),
    "tanh": (np.tanh, 5, -12, 12),
}


def ulps(found, exact):
    near = exact.astype(found.dtype)
    with np.errstate(over="ignore"):
        return np.abs(found.astype(LONG) - exact) / np.spacing(np.abs(near))


@pytest.mark.parametrize("dtype", [F32, F64])
@pytest.mark.parametrize("name", ONE)
def test_errors_of_one_operand(name, dtype):
    exact, bound, low, high = ONE[name]
    small = 10.0 ** rng.uniform(-30, 0, 5000) * rng.choice([-1, 1], 5000)
    x = np.concatenate([rng.uniform(low, high, 40000), rng.uniform(-1, 1, 10000), small])
    x = x.astype(dtype)
    far = ulps(apply(FAST[name], x), exact(x.astype(LONG)))
    assert far.max() <= bound
    if name != "exp" or host().vector_bytes < 64:  # it is the exact one there
        assert far.max() > 1, "the bound would be that of the exact one"


def test_errors_of_erf():
    x = np.concatenate([rng.uniform(-5, 5, 40000), 10.0 ** rng.uniform(-30, 0, 5000)]).astype(F32)
    assert ulps(apply(FAST["erf"], x), scipy.special.erf(x.astype(F64)).astype(LONG)).max() <= 7
    wide = x.astype(F64)
    np.testing.assert_array_equal(apply(FAST["erf"], wide), apply(FUNCTIONS["erf"], wide))


@pytest.mark.parametrize("dtype", [F32, F64])
def test_errors_of_powers(dtype):
    x = (10.0 ** rng.uniform(-3, 3, 30000)).astype(dtype)
    y = rng.uniform(-5, 5, 30000).astype(dtype)
    exact = np.power(x.astype(LONG), y.astype(LONG))
    far = ulps(apply(FAST["pow"], x, y), exact) / (4 + 2 * np.abs(y * np.log(x)))
    assert far.max() <= 1


@pytest.mark.parametrize("dtype", [F32, F64])
def test_errors_of_logaddexp(dtype):
    x, y = rng.uniform(-30, 30, (2, 30000)).astype(dtype)
    exact = np.logaddexp(x.astype(LONG), y.astype(LONG))
    unit = np.spacing(np.maximum(np.maximum(abs(x), abs(y)), 1))
    assert (np.abs(apply(FAST["logaddexp"], x, y) - exact) / unit).max() <= 2
    x = -np.abs(x) - 1
    tails = apply(FAST["logaddexp"], x, np.zeros_like(x))
    assert ulps(tails, np.log1p(np.exp(x.astype(LONG)))).max() <= 5


@pytest.mark.parametrize("dtype", [F32, F64])
def test_ends(dtype):
    """NaN stays, infinities have their results, what is too small is 0."""
    inf, nan = np.inf, np.nan
    x = np.array([-inf, inf, nan, 0.0, -1000.0, 1000.0], dtype)
    ends = {
        "exp": [0, inf, nan, 1, 0, inf], "expit": [0, 1, nan, 0.5, 0, 1],
        "tanh": [-1, 1, nan, 0, -1, 1], "erf": [-1, 1, nan, 0, -1, 1],
        "sin": [nan, nan, nan, 0, np.sin(-1000.0), np.sin(1000.0)],
        "cos": [nan, nan, nan, 1, np.cos(-1000.0), np.cos(1000.0)],
    }  # fmt: skip
    if dtype is F32:
        ends["exp2"] = [0, inf, nan, 1, 0, inf]
    for name, wanted in ends.items():
        found = apply(FAST[name], x)
        np.testing.assert_allclose(found, np.array(wanted, dtype), rtol=8 * np.finfo(dtype).eps)
    huge = np.array([1e6, -3e7, 1e20, 1e30], dtype)
    np.testing.assert_array_equal(apply(FAST["sin"], huge), apply(FUNCTIONS["sin"], huge))
    x, y = np.array([0, 0, inf, inf, -2, nan, 5e-324, 1], dtype), np.full(8, 1.5, dtype)
    y[1] = y[3] = -1.5
    found = apply(FAST["pow"], x, y)
    np.testing.assert_array_equal(found, np.array([0, inf, inf, 0, nan, nan, 0, 1], dtype))
    x, y = np.array([[-inf, inf, -inf, nan, 3], [-inf, inf, 2, 1, -inf]], dtype)
    with np.errstate(invalid="ignore"):
        wanted = np.logaddexp(x, y)
    np.testing.assert_array_equal(apply(FAST["logaddexp"], x, y), wanted)


@pytest.mark.parametrize("element", ["f32", "f64"])
@pytest.mark.parametrize("name", FAST)
def test_they_are_shorter(name, element):
    """An approximation has a reason: its text has at most five sixths of the operations, on a
    processor that has no tables.
    """
    if (name, element) in {("erf", "f64"), ("pow", "f32")}:
        return  # the same; in float32 instead of float64
    count = 2 if name in ("pow", "logaddexp") else 1

    def operations(table):
        return text(table[name], element, count, 4, TARGET).count(" = ")

    assert operations(FAST) <= 5 / 6 * operations(FUNCTIONS)
