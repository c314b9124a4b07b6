"""Statistics without NaN against NumPy, and the laws they obey."""

import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import funct as ft
import funct.array as xp
from tests import laws
from tests.strategies import arrays, with_axes, with_axis

KINDS = ["float64", "float32", "complex128", "int64"]


def holed(x: Any) -> Any:
    """x with NaN in about a third of its places."""
    if x.dtype.kind not in "fc":
        return x
    y = x.copy()
    y[np.random.default_rng(x.size).random(x.shape) < 0.3] = np.nan
    return y


def reference(name: str, *args: Any, **kwargs: Any) -> Any:
    """NumPy's answer, without its warnings of empty slices."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return np.asarray(getattr(np, name)(*args, **kwargs))


MANY_OPS = ("nanprod", "nanvar")  # which are machine code where arrays are small, too


def check(fun: Any, y: Any, *, rounded: bool = False) -> None:
    """Derivatives where y is no NaN; vmap and jit."""
    rng = np.random.default_rng(0)
    if y.dtype.kind not in "fc" or not y.size:
        return
    hole = xp.asarray(np.isnan(y))
    arg = xp.asarray(rng.normal(size=y.shape))
    total = lambda v: xp.nansum(fun(xp.where(hole, xp.nan, v)))  # noqa: E731
    laws.check_derivatives(total, [arg], rng, order=1)
    laws.check_batch(fun, [arg], rng)
    given = xp.asarray(y)
    if rounded:
        laws.rounded_alike(ft.jit(fun)(given), fun(given))
    else:
        laws.check_jit(fun, [given])


@pytest.mark.parametrize("name", ["nansum", "nanprod", "nanmean", "nanvar", "nanmax", "nanmin"])
@given(case=with_axes(KINDS), keepdims=st.booleans())
def test_reductions(name: str, case: Any, keepdims: bool) -> None:
    """Each is NumPy's, over every axis, also where a slice is all NaN."""
    x, axis = case
    y = holed(x)
    extremum = name in ("nanmax", "nanmin")
    assume(not extremum or (x.size and x.dtype.kind != "c"))
    fun = lambda v: getattr(xp, name)(v, axis, keepdims=keepdims)  # noqa: E731
    laws.close(fun(xp.asarray(y)), reference(name, y, axis, keepdims=keepdims), 1e-5, 1e-6)
    if name != "nanvar" or np.isnan(y).sum() < y.size - 1:
        check(fun, y, rounded=name in MANY_OPS)


@given(with_axes(["float64", "float32"], min_side=1), st.sampled_from([0.0, 1.0, 0.5]))
def test_spread(case: Any, correction: float) -> None:
    """nanvar and nanstd take a correction, and give NaN where no more elements are left."""
    x, axis = case
    y = holed(x)
    expected = reference("nanvar", y, axis, ddof=correction)
    laws.close(xp.nanvar(xp.asarray(y), axis, correction=correction), expected, 1e-5, 1e-6)
    laws.close(xp.nanstd(xp.asarray(y), axis, correction=correction), np.sqrt(expected), 1e-3, 1e-3)


@pytest.mark.parametrize("name", ["nanargmax", "nanargmin"])
@given(case=with_axis(["float64", "int64"], min_side=1), flat=st.booleans(), keepdims=st.booleans())
def test_positions(name: str, case: Any, flat: bool, keepdims: bool) -> None:
    """The first extremum, as in NumPy; -1 where all is NaN."""
    x, axis = case
    axis = None if flat else axis
    y = holed(x)
    empty = np.all(np.isnan(y), axis=axis, keepdims=keepdims)
    with_hole = np.where(np.isnan(y), -np.inf if name == "nanargmax" else np.inf, y)
    found = getattr(np, name)(with_hole, axis=axis, keepdims=keepdims)
    expected = np.where(empty, -1, found)
    fun = lambda v: getattr(xp, name)(v, axis, keepdims=keepdims)  # noqa: E731
    laws.same(fun(xp.asarray(y)), expected)
    laws.check_jit(fun, [xp.asarray(y)])
    laws.check_batch(fun, [xp.asarray(y)], np.random.default_rng(0))


@pytest.mark.pairwise
@pytest.mark.parametrize("name", ["nansum", "nanprod", "nanmean", "nanvar", "nanstd"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
@pytest.mark.parametrize("v", [[np.inf, -np.inf, 1], [np.inf, np.nan, 1], [-np.inf], [np.inf, 0]])
def test_infinite_elements(name: str, dtype: str, v: Any) -> None:
    """What becomes NaN on the way is not left out: only what is NaN in x."""
    with np.errstate(invalid="ignore"):
        y = np.asarray([v], dtype)
        for fun in (getattr(xp, name), ft.jit(getattr(xp, name)), ft.vmap(getattr(xp, name))):
            found = np.asarray(fun(xp.asarray(y))).ravel()[0]
            np.testing.assert_array_equal(found, reference(name, y))


def test_an_infinite_element_is_an_element() -> None:
    """What replaces NaN is not mistaken for an element of the same value."""
    assert int(xp.nanargmax(xp.asarray([np.nan, -np.inf]))) == 1
    assert int(xp.nanargmin(xp.asarray([np.nan, np.inf]))) == 1
    assert float(xp.nanmax(xp.asarray([np.nan, -np.inf]))) == -np.inf


@pytest.mark.parametrize("name", ["nancumsum", "nancumprod"])
@given(case=with_axis(KINDS), flat=st.booleans())
def test_running(name: str, case: Any, flat: bool) -> None:
    """Running sums and products pass over NaN."""
    x, axis = case
    axis = None if flat else axis
    y = holed(x)
    fun = lambda v: getattr(xp, name)(v, axis)  # noqa: E731
    laws.close(fun(xp.asarray(y)), reference(name, y, axis), 1e-5, 1e-6)
    check(fun, y)


@given(arrays(["float64"], min_rank=1, min_side=1))
def test_nan_elements_have_no_derivative(x: Any) -> None:
    """The derivative at a NaN is 0, not NaN."""
    y = holed(x)
    for fun in (xp.nansum, xp.nanprod, xp.nanmax, xp.nancumsum, xp.nanmean):
        g = np.asarray(ft.grad(lambda v, f=fun: xp.nansum(f(v)))(xp.asarray(y)))
        assert np.all(np.isfinite(g))
        assert np.all(g[np.isnan(y)] == 0)


@pytest.mark.parametrize("dtype", [xp.float16, xp.bfloat16, xp.float32])
def test_short_floats_keep_their_dtype(dtype: Any) -> None:
    """What stands in for NaN has x's dtype, also where NumPy would promote a number."""
    x = xp.astype(xp.asarray([1.0, np.nan, 3.0]), dtype)
    for fun in (xp.nansum, xp.nanprod, xp.nanmean, xp.nanmax, xp.nanmedian, xp.median):
        assert fun(x).dtype == dtype
    assert float(xp.nanmean(x)) == float(xp.nanmedian(x)) == 2.0
    assert xp.clip(x, 1.5, 2.5).dtype == dtype


@pytest.mark.parametrize("dtype", ["bool", "int32", "uint8", "float32", "float64"])
@pytest.mark.parametrize("name", ["nanargmax", "nanargmin"])
def test_positions_along_axes_of_large_arrays_are_numpys(name: str, dtype: str) -> None:
    rng = np.random.default_rng(0)
    x = rng.integers(0, 2 if dtype == "bool" else 9, (70, 30, 4)).astype(dtype)
    arrays = [x]
    if dtype[0] == "f":
        arrays.append(np.where(rng.random(x.shape) < 0.3, np.nan, x).astype(dtype))
        arrays[1][:, 3, :] = arrays[1][:, :, 2] = np.nan
    for a in arrays:
        filled = np.nan_to_num(a, nan=-1 if name == "nanargmax" else 99)
        for axis in (0, 1, 2, -1, -3):
            for keepdims in (False, True):
                found = getattr(xp, name)(xp.asarray(a), axis=axis, keepdims=keepdims)
                expected = getattr(np, name)(filled, axis=axis, keepdims=keepdims)
                alone = np.all(np.isnan(a), axis=axis, keepdims=keepdims)
                np.testing.assert_array_equal(found.data, np.where(alone, -1, expected))
