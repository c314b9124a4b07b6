"""Set functions against NumPy, and their derivatives."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import funct as ft
import funct.array as xp
from tests import laws
from tests.strategies import arrays

KINDS = ["bool", "int8", "uint16", "int64", "float32", "float64", "complex128"]
FUNCTIONS = ["unique_all", "unique_counts", "unique_inverse", "unique_values"]


@st.composite
def repetitive(draw: Any, kinds: list[str] | None = None) -> Any:
    """Arrays with repeated elements and, where the dtype has it, NaN."""
    x = draw(arrays(kinds or KINDS))
    if x.dtype.kind in "fc":
        x = np.asarray(np.round(x)).astype(x.dtype)
        x[x == 1] = np.nan
    return x


@given(repetitive())
def test_unique(x: Any) -> None:
    """unique_all is NumPy's with NaNs distinct; the others are parts of it."""
    names = ["values", "indices", "inverse_indices", "counts"]
    expected = dict(zip(names, np.unique(x, True, True, True, equal_nan=False), strict=True))
    expected["inverse_indices"] = expected["inverse_indices"].reshape(x.shape)
    for name in FUNCTIONS:
        out = getattr(xp, name)(xp.asarray(x))
        parts = {"values": out} if name == "unique_values" else out._asdict()
        for part, value in parts.items():
            laws.same(value, expected[part])


@given(repetitive(["float64", "int64"]))
def test_unique_gives_x_back(x: Any) -> None:
    """values at the inverse indices are x, values at the indices are the values."""
    t = xp.asarray(x)
    values, indices, inverse, counts = xp.unique_all(t)
    if x.size:
        again = np.asarray(xp.take(values, inverse, axis=0))
        assert (again.dtype, again.shape) == (x.dtype, x.shape)
        np.testing.assert_array_equal(again, x)  # 0 and -0 are one value
        laws.same(xp.take(xp.reshape(t, (-1,)), indices), np.asarray(values))
    assert int(xp.sum(counts)) == x.size


@pytest.mark.parametrize("name", FUNCTIONS)
def test_unique_under_jit(name: str) -> None:
    """A compiled set function follows its values: other repetitions are another path."""
    fun = getattr(xp, name)
    compiled = ft.jit(lambda v: tuple(fun(v)) if name != "unique_values" else fun(v))
    for values in ([2.0, 1.0, 2.0], [1.0, 1.0, 1.0], [3.0, 1.0, 2.0], [2.0, 1.0, 2.0]):
        x = xp.asarray(values)
        expected = fun(x)
        laws.same(compiled(x), expected if name == "unique_values" else tuple(expected))


def test_unique_values_carry_derivatives() -> None:
    """The derivative goes to the element that a value was taken from."""
    x = xp.asarray([3.0, 1.0, 3.0, 2.0])
    weights = xp.asarray([10.0, 20.0, 30.0])
    fun = lambda v: xp.sum(xp.unique_values(v) * weights)  # noqa: E731
    laws.same(ft.grad(fun)(x), np.asarray([30.0, 10.0, 0.0, 20.0]))
    laws.same(ft.jit(ft.grad(fun))(x), np.asarray([30.0, 10.0, 0.0, 20.0]))


@given(repetitive(["int8", "int64", "float64", "complex128", "bool"]), st.data(), st.booleans())
def test_isin(x: Any, data: Any, invert: bool) -> None:
    """isin is NumPy's, for numbers on either side too, batched and compiled."""
    pool = data.draw(repetitive([str(x.dtype)]))
    fun = lambda a, b: xp.isin(a, b, invert=invert)  # noqa: E731
    args = [xp.asarray(x), xp.asarray(pool)]
    laws.same(fun(*args), np.isin(x, pool, invert=invert))
    laws.check_jit(fun, args)
    laws.check_batch(fun, args, np.random.default_rng(0))
    laws.same(fun(args[0], 1), np.isin(x, 1, invert=invert))
    laws.same(fun(1, args[1]), np.isin(1, pool, invert=invert))


def test_isin_of_a_number_adopts_the_dtype() -> None:
    """A Python number is compared in the array's dtype, as by ==."""
    x = xp.asarray([0.1, 0.2], dtype="float32")
    assert xp.isin(x, 0.1).tolist() == [True, False]
    assert xp.isin(0.1, x).tolist() is True


def test_dtypes_beyond_the_standard_are_sorted() -> None:
    """NaN of bfloat16 stands last too, in sorts, searches and sets."""
    x = xp.astype(xp.asarray([3.0, np.nan, 1.0, 3.0]), xp.bfloat16)
    assert xp.sort(x).dtype == xp.bfloat16
    assert xp.argsort(x).tolist() == [2, 0, 3, 1]
    assert xp.unique_counts(x).counts.tolist() == [1, 2, 1]
    assert int(xp.searchsorted(xp.sort(x), x[1])) == 3
