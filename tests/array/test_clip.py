"""clip against its definition: limits of every kind, NaN, dtypes."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import funct.array as xp
from tests import laws
from tests.strategies import arrays, filled


@given(arrays(["float64"]))
def test_numbers(x: Any) -> None:
    """Limits may be numbers; a side may be open."""
    t = xp.asarray(x)
    laws.same(xp.clip(t, -0.5, 0.5), np.clip(x, -0.5, 0.5))
    laws.same(xp.clip(t, max=0.5), np.clip(x, None, 0.5))
    laws.same(xp.clip(t, min=0.5), np.clip(x, 0.5, None))
    laws.same(xp.clip(t), x)


@pytest.mark.parametrize("limits", [(-0.5, 0.5), (0.5, -0.5), (0.0, 0.5), (np.nan, 1.0)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_many_elements_are_limited_as_few_are(limits: tuple[float, float], dtype: str) -> None:
    """Zeros with their signs and NaN too."""
    x = np.random.default_rng(0).normal(size=(4, 2000)).astype(dtype)
    x[:, :9] = [[0.0, -0.0, np.nan, np.inf, -np.inf, *limits, *map(float.__neg__, limits)]]
    found = np.asarray(xp.clip(xp.asarray(x), *limits))
    few = np.stack([np.asarray(xp.clip(xp.asarray(row), *limits)) for row in x])
    np.testing.assert_array_equal(found, few, strict=True)
    number = ~np.isnan(few)
    np.testing.assert_array_equal(np.signbit(found[number]), np.signbit(few[number]))


@given(arrays(["float64", "float32", "int64"], min_rank=1), st.integers(0, 9))
def test_arrays(x: Any, seed: int) -> None:
    """Limits may be arrays; NaN in any of the three gives NaN."""
    low, high = (filled(x.shape[-1:], x.dtype.name, seed + k) for k in range(2))
    if x.dtype.kind == "f" and low.size:
        low[..., :1] = np.nan
    given_limits = [xp.asarray(v) for v in (x, low, high)]
    laws.same(xp.clip(*given_limits), np.minimum(np.maximum(x, low), high))
    laws.check_jit(xp.clip, given_limits)
    laws.check_batch(xp.clip, given_limits, np.random.default_rng(0))


@given(st.lists(st.integers(-2, 2), min_size=1, max_size=4))
def test_derivatives(values: list[int]) -> None:
    """The derivative goes to x inside, to a limit outside."""
    x = xp.asarray(values) + 0.5
    limits = [xp.full(x.shape, -1.2), xp.full(x.shape, 1.3)]
    laws.check_derivatives(xp.clip, [x, *limits], np.random.default_rng(0))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64", "float32"])
def test_dtype_is_kept(dtype: str) -> None:
    """Limits adopt the dtype of x; integers outside its range limit nothing."""
    x = xp.asarray([1, 5], dtype=dtype)
    for limits in ((0, 3), (-(10**20), 3), (xp.asarray(0, dtype=dtype), 3)):
        out = xp.clip(x, *limits)
        assert out.dtype == x.dtype
        assert out.tolist() == [1, 3]
    assert xp.clip(x, max=10**20).tolist() == [1, 5]


def test_a_wider_limit_does_not_widen() -> None:
    """float64 limits leave float32 as it is; a floating limit of integers promotes as in NumPy."""
    x = xp.asarray([1.0, 2.0], dtype="float32")
    assert xp.clip(x, max=xp.asarray(1.5, dtype="float64")).dtype == xp.float32
    assert xp.clip(xp.asarray([1, 2]), max=1.5).tolist() == [1.0, 1.5]
