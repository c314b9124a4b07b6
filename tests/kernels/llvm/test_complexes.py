"""Functions of complex numbers: each part against more digits, special values against C's."""

from fractions import Fraction

import numpy as np
import pytest

from funct.kernels.elementwise import functions as elementwise
from funct.kernels.llvm.complexes import COMPLEX, part_of

from .apply import apply
from .drawn import rng
from .test_functions import TARGETS, any_bits

F32, F64 = np.float32, np.float64
LONG = np.clongdouble
# name: bound in ulp of each part
BOUNDS = {
    "acos": 4, "acosh": 4, "asin": 4, "asinh": 4, "atan": 4, "atanh": 4, "cos": 4, "cosh": 4,
    "exp": 3, "expm1": 3, "log": 3, "log10": 3, "log1p": 3, "log2": 3, "reciprocal": 3, "sin": 4,
    "sinh": 4, "sqrt": 2.1, "tan": 7, "tanh": 7,
}  # fmt: skip
ANY = ("acos", "acosh", "asin", "asinh", "atan", "atanh", "log", "log10", "log1p", "log2", "sqrt")

pytestmark = pytest.mark.filterwarnings("ignore:.* encountered:RuntimeWarning")


def edges(dtype):
    """Parts at which functions have their ends and signs."""
    info = np.finfo(dtype)
    some = [0, 0.5, 1, np.pi / 2, 3, 20, np.inf, np.nan, info.tiny, info.eps, info.max / 8]
    return np.concatenate([np.asarray(some, dtype), -np.asarray(some, dtype)])


def given(dtype, name):
    """Numbers of all sizes; around 0, the unit circle, and where powers overflow."""
    a = rng.uniform(-4, 4, 20000)
    b = rng.uniform(-4, 4, 20000)
    turn = rng.uniform(-np.pi, np.pi, 5000)
    most = {F32: 88.7, F64: 709.7}[dtype]
    parts = [(a, b), (np.cos(turn), np.sin(turn)), (rng.uniform(-most, most, 3000), turn[:3000])]
    small = 10.0 ** rng.uniform(-30, 3, (2, 5000)) * rng.choice([-1, 1], (2, 5000))
    parts.append(tuple(small))
    if name in ANY:
        parts.append((any_bits(dtype, 20000), any_bits(dtype, 20000)))
    return [np.concatenate([np.asarray(p[k], dtype) for p in parts]) for k in (0, 1)]


def found(name, a, b, target=None):
    return [apply(_PARTS[name, k], a, b, target=TARGETS.get(target)) for k in (0, 1)]


_PARTS = {(name, k): part_of(name, k) for name in COMPLEX for k in (0, 1)}


def joined(re, im, kind):
    z = np.empty(re.shape, kind)
    z.real, z.imag = re, im
    return z


def exactly(name, z):
    """The function, in more digits."""
    if name != "log1p":
        return getattr(np, name)(z)
    found, a, b = np.log1p(z), z.real, z.imag
    for i in np.flatnonzero(np.abs(2 * a + (a * a + b * b)) < 0.1):  # NumPy's has few left there
        found.real[i] = np.log1p(beyond_one(float(a[i]), float(b[i]))) / 2
    return found


def beyond_one(a, b):
    """|1 + a + ib|² - 1, without a rounding but the last."""
    a, b = Fraction(a), Fraction(b)
    exact = 2 * a + a * a + b * b
    first = float(exact)
    return LONG(first).real + float(exact - Fraction(first))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", [F32, F64])
@pytest.mark.parametrize("name", COMPLEX)
def test_parts_have_their_digits(name, dtype, target):
    a, b = given(dtype, name)
    expected = exactly(name, joined(a, b, LONG))
    for mine, exact in zip(found(name, a, b, target), (expected.real, expected.imag), strict=True):
        near = exact.astype(dtype)
        usual = np.isfinite(near) & np.isfinite(mine) & np.isfinite(a) & np.isfinite(b)
        # the logarithm of what differs from 1 by less than a float's digits twice has fewer
        least = np.finfo(F64 if name[:3] == "log" else dtype)
        least = dtype(least.eps if name[:3] == "log" else least.tiny)
        size = np.abs(near[usual] if name != "expm1" else expected[usual])  # -1 takes digits
        steps = np.spacing(np.clip(size, least, np.finfo(dtype).max).astype(dtype))
        away = np.abs(mine[usual] - exact[usual]) / steps
        assert away.max() <= BOUNDS[name], (a[usual][away.argmax()], b[usual][away.argmax()])
        rest = ~usual & np.isfinite(a) & np.isfinite(b)
        np.testing.assert_array_equal(mine[rest], near[rest])


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", [F32, F64])
@pytest.mark.parametrize("name", COMPLEX)
def test_special_values_are_cs(name, dtype, target):
    a, b = [v.ravel() for v in np.meshgrid(edges(dtype), edges(dtype))]
    z = joined(a, b, {F32: np.complex64, F64: np.complex128}[dtype])
    expected = getattr(elementwise if name in ("expm1", "log1p") else np, name)(z)
    # C leaves signs open beside NaN and of NaN, and of two infinities
    known = ~(
        np.isnan(expected.real)
        | np.isnan(expected.imag)
        | np.isnan(z)
        | (np.isinf(a) & np.isinf(b))
    )
    known |= np.isfinite(z)
    if name in ("tan", "tanh"):
        known &= np.isfinite(z)  # the standard's zeros are others
    for mine, told in zip(found(name, a, b, target), (expected.real, expected.imag), strict=True):
        np.testing.assert_array_equal(np.isnan(mine), np.isnan(told))
        np.testing.assert_array_equal(np.isinf(mine), np.isinf(told))
        np.testing.assert_array_equal(mine == 0, told == 0)
        np.testing.assert_array_equal(np.signbit(mine[known]), np.signbit(told[known]))
