"""Cross products in one pass have the bits of the composition."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import funct.array as xp
from funct.kernels.cpu.loops import available
from funct.kernels.cpu.small import crossed as cpu_crossed
from funct.kernels.linalg import functions
from tests.kernels.arrays import SPECIAL, agree

pytestmark = pytest.mark.skipif(not available(), reason="llvmlite is absent")


@given(
    rows=st.integers(1, 40), lead=st.sampled_from([(), (2,), (1, 3)]), seed=st.integers(0, 99),
    dtype=st.sampled_from(["float32", "float64", "int32", "int64"]),
)  # fmt: skip
def test_products_have_the_bits_of_the_composition(
    rows: int, lead: Any, seed: int, dtype: str
) -> None:
    """Infinities, zeros of both signs and integers that wrap around among them."""
    rng = np.random.default_rng(seed)
    values = np.asarray(SPECIAL) if dtype[0] == "f" else np.asarray([0, 1, -1, 7, 2**31 - 1])
    x, y = rng.choice(values, (2, *lead, rows, 3)).astype(dtype)
    found = functions.cross(x, y)
    assert found is not None
    with np.errstate(all="ignore"):
        expected = xp.linalg.cross(
            *(xp.asarray(np.asfortranarray(v)[..., ::-1, :]) for v in (x, y))
        )
    expected = np.asarray(expected)[..., ::-1, :]
    np.testing.assert_array_equal(found, expected, strict=True)
    zero = found == 0
    assert np.array_equal(np.signbit(found[zero]), np.signbit(expected[zero]))


def test_what_is_left_to_the_composition() -> None:
    x = np.ones((40, 3))
    for a, b, axis in (
        (x.T, x.T, 0), (x, x[0], -1), (x, x.astype("f4"), -1), (x[:, :2], x[:, :2], -1),
        (x * 1j, x * 1j, -1), (x[::2], x[::2], -1), (x, x, 0), (x, x, True),
    ):  # fmt: skip
        assert functions.cross(a, b, axis) is None


def test_no_index_leaves_arrays() -> None:
    """Run as Python, in several tasks."""
    x, y = np.random.default_rng(0).normal(size=(2, 20, 3))
    agree(cpu_crossed.crossed, x, y, np.zeros_like(x), 20, 7, 3)
