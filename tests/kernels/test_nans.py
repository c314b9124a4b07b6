"""NaN and infinities replaced, in vectors as by NumPy, and functions that look past NaN."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import funct.array as xp
from funct.array.direct import DIRECT
from funct.kernels.elementwise import nans
from funct.kernels.elementwise.thresholds import MANY
from funct.kernels.table import restricted
from tests.kernels.arrays import SPECIAL, elsewhere, same_signs

NAMES = [
    "nanargmax", "nanargmin", "nancumprod", "nancumsum", "nanmax", "nanmean", "nanmin", "nanprod",
    "nanstd", "nansum", "nanvar",
]  # fmt: skip


@given(
    n=st.integers(MANY, MANY + 40), dtype=st.sampled_from(["float32", "float64"]),
    seed=st.integers(0, 99),
)  # fmt: skip
def test_vectors_replace_as_numpy_does(n: int, dtype: str, seed: int) -> None:
    """Zeros of both signs among them, however the array lies."""
    x = np.random.default_rng(seed).choice(np.asarray(SPECIAL), (2, n)).astype(dtype)
    for y in (x, *elsewhere(x)):
        for replaced in (nans.half_turns, lambda v: nans.numbers(v, 2.5),
                         lambda v: nans.without(v, -0.0)):  # fmt: skip
            with restricted():
                expected = replaced(x)
            same_signs(replaced(y), expected)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_halves_are_replaced_as_floats_are(dtype: Any) -> None:
    """All of them, some and few, in either order of axes."""
    values = np.arange(1 << 16, dtype=np.uint16).view(dtype)
    most = float(ml_dtypes.finfo(dtype).max)
    for x in (values, values[::70], values[:9], values.reshape(256, 256).T):
        found = xp.nan_to_num(xp.asarray(x), nan=-2.5).data
        with np.errstate(invalid="ignore"):  # NaN that signals
            wide = x.astype(np.float64)
        expected = np.nan_to_num(wide, nan=-2.5, posinf=most, neginf=-most)
        assert found.dtype == x.dtype
        same_signs(found.astype(np.float64), expected)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
@pytest.mark.parametrize("name", NAMES)
def test_many_have_the_bits_of_the_composition(name: str, dtype: str) -> None:
    """A row without any number, infinities, and rows without NaN."""
    way = DIRECT[f"funct.array.nan_statistical.{name}"]
    rng = np.random.default_rng(0)
    x: Any = rng.choice(np.asarray(SPECIAL), (30, 40)).astype(dtype)
    x[rng.random(x.shape) < 0.5] = 1.25
    rows = x.copy()
    rows[0], rows[1] = np.nan, 3.5
    kept = np.where(np.isinf(x), 2.0, x).astype(dtype)
    with np.errstate(all="ignore"):
        for given_ in map(xp.asarray, (x, kept, rows)):
            for axis in (None, 0, 1):
                found, expected = (f(given_, axis=axis) for f in (way.public, way.composed))
                np.testing.assert_array_equal(np.asarray(found), expected, strict=True)
