"""Medians and quantiles against NumPy, and the laws they obey."""

import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import funct as ft
import funct.array as xp
from funct.errors import ArgumentError, DTypeError, ShapeError
from funct.kernels.table import restricted
from tests import laws
from tests.strategies import REAL, with_axes

METHODS = [
    "averaged_inverted_cdf", "closest_observation", "hazen", "higher",
    "interpolated_inverted_cdf", "inverted_cdf", "linear", "lower", "median_unbiased", "midpoint",
    "nearest", "normal_unbiased", "weibull",
]  # fmt: skip
FRACTIONS = st.one_of(
    st.sampled_from([0.0, 0.25, 0.5, 0.7, 1.0]),
    st.lists(st.floats(0, 1, allow_subnormal=False), max_size=3),
)


def check(fun: Any, x: Any) -> None:
    """Derivatives, vmap and jit of a function of one floating array without ties."""
    rng = np.random.default_rng(0)
    arg = xp.asarray(rng.normal(size=x.shape))
    laws.check_derivatives(fun, [arg], rng, order=1)
    laws.check_batch(fun, [arg], rng)
    laws.check_jit(fun, [arg])


def holed(x: Any) -> Any:
    """x with some NaNs."""
    return np.where(np.random.default_rng(3).random(x.shape) < 0.3, np.nan, x).astype(x.dtype)


@given(with_axes(REAL, min_side=1), st.booleans())
def test_median(case: Any, keepdims: bool) -> None:
    """median is NumPy's in value, shape and dtype."""
    x, axis = case
    fun = lambda v: xp.median(v, axis, keepdims=keepdims)  # noqa: E731
    laws.close(fun(xp.asarray(x)), np.asarray(np.median(x, axis, keepdims=keepdims)), 1e-6)
    check(fun, x)


@given(with_axes(["float64", "float32"], min_side=1), st.booleans())
def test_nan(case: Any, keepdims: bool) -> None:
    """NaN gives NaN in median and quantile, and is passed over in nanmedian and nanquantile."""
    x, axis = case
    y = holed(x)
    laws.close(xp.median(xp.asarray(y), axis), np.asarray(np.median(y, axis)), 1e-6)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NumPy warns of slices that are all NaN
        expected = np.asarray(np.nanmedian(y, axis, keepdims=keepdims))
        thirds = np.asarray(np.nanquantile(y, 0.3, axis, keepdims=keepdims))
    # a mean of two numbers of opposite sign keeps the rounding of the larger
    laws.close(xp.nanmedian(xp.asarray(y), axis, keepdims=keepdims), expected, 1e-6, 1e-6)
    out = xp.nanquantile(xp.asarray(y), 0.3, axis, keepdims=keepdims)
    laws.close(out, thirds.astype(x.dtype), 1e-5, 1e-6)
    hole = np.array(np.isnan(y))
    hole.flat[:1] = False
    check(lambda v: xp.nanmedian(xp.where(xp.asarray(hole), xp.nan, v)), x)


@pytest.mark.parametrize("method", METHODS)
@given(case=with_axes(["float64", "int64"], min_side=1), q=FRACTIONS, keepdims=st.booleans())
def test_quantile(method: Any, case: Any, q: Any, keepdims: bool) -> None:
    """Every method of NumPy gives NumPy's values; the axes of q come first."""
    x, axis = case
    fun = lambda v: xp.quantile(v, q, axis, method=method, keepdims=keepdims)  # noqa: E731
    expected = np.quantile(x, q, axis, method=method, keepdims=keepdims)
    laws.close(fun(xp.asarray(x)), np.asarray(expected, "float64"), 1e-9, 1e-9)
    if method in ("linear", "nearest"):  # one of each kind
        check(fun, x)


@given(with_axes(["float64"], min_side=1), FRACTIONS, st.booleans())
def test_weights(case: Any, q: Any, skip: bool) -> None:
    """Weighted quantiles are NumPy's; a weight of 0 leaves an element out."""
    x, axis = case
    w = np.random.default_rng(1).integers(0, 3, x.shape).astype(float)
    assume(np.all(np.sum(w, axis=axis) > 0))
    fun, ref = (xp.nanquantile, np.nanquantile) if skip else (xp.quantile, np.quantile)
    expected = np.asarray(ref(x, q, axis, method="inverted_cdf", weights=w))
    given_weights = xp.asarray(w)
    run = lambda v: fun(v, q, axis, method="inverted_cdf", weights=given_weights)  # noqa: E731
    laws.close(run(xp.asarray(x)), expected)
    check(run, x)


def test_weights_along_one_axis() -> None:
    """1-D weights lie along the axis."""
    x, w = np.random.default_rng(0).normal(size=(2, 4, 3)), np.asarray([1.0, 0.0, 2.0, 1.0])
    out = xp.quantile(xp.asarray(x), 0.6, 1, method="inverted_cdf", weights=w)
    laws.close(out, np.quantile(x, 0.6, 1, method="inverted_cdf", weights=w))


@given(st.lists(st.floats(0.01, 0.99), min_size=1, max_size=3))
def test_derivative_in_q(q: list[float]) -> None:
    """q may be traced: it has a derivative, a batch, and needs no value under jit."""
    x = xp.asarray(np.random.default_rng(0).normal(size=7))
    assume(all(abs(v * 6 - round(v * 6)) > 1e-3 for v in q))
    rng = np.random.default_rng(0)
    args = [x, xp.asarray(q)]
    laws.check_derivatives(xp.quantile, args, rng, order=1)
    laws.check_jit(xp.quantile, args)
    laws.check_batch(lambda v: xp.quantile(x, v * 0.5), [args[1]], rng)
    assert ft.eval_shape(xp.quantile, *args).shape == (len(q),)


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_infinite_elements() -> None:
    """Between finite elements nothing infinite is felt, and equal infinities are themselves."""
    inf = np.inf
    x = xp.asarray([-inf, 1.0, 2.0, 3.0, inf, inf])
    out = xp.quantile(x, [0.0, 0.1, 0.2, 0.5, 0.7, 0.9, 1.0]).tolist()
    assert out == [-inf, -inf, 1.0, 2.5, inf, inf, inf]


def test_precision_is_that_of_x() -> None:
    """A Python q leaves float32 alone, an array of float64 does not."""
    x = xp.asarray([1.0, 2.0], dtype="float32")
    assert xp.quantile(x, 0.3).dtype == xp.float32
    assert xp.quantile(x, [0.3]).dtype == xp.float32
    assert xp.quantile(x, xp.asarray([0.3])).dtype == xp.float64
    assert xp.median(x).dtype == xp.float32


def test_nothing_has_no_median() -> None:
    """The median over no elements is NaN."""
    laws.same(xp.median(xp.zeros((2, 0)), axis=1), np.asarray([np.nan, np.nan]))
    assert xp.quantile(xp.zeros((0, 3)), [0.5, 0.1], 0).shape == (2, 3)


X = xp.ones((2, 3))


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (
            lambda: xp.quantile(X, 1.5),
            ArgumentError,
            "quantile: q must lie between 0 and 1, got 1.5",
        ),
        (lambda: xp.median(X * 1j), DTypeError, "median: x must be real, got complex128"),
        (
            lambda: xp.quantile(X, 0.5, weights=X),
            ArgumentError,
            "quantile: weights need method='inverted_cdf', got 'linear'",
        ),
        (
            lambda: xp.quantile(X, 0.5, method="inverted_cdf", weights=X[0]),
            ShapeError,
            "quantile: weights must have x's shape (2, 3) or lie along one axis, got (3,)",
        ),
        (
            lambda: xp.median(X, 2),
            ShapeError,
            "median: axis 2 is out of range for an array of rank 2",
        ),
    ],
)
def test_errors(call: Any, error: Any, text: str) -> None:
    """The error names function, expectation and value."""
    with pytest.raises(error) as caught:
        call()
    assert caught.value.what == text


@pytest.mark.parametrize("shape", [(300,), (7, 1000), (1000, 7), (5, 60, 11)])
@pytest.mark.parametrize("dtype", ["float64", "float32", "int32"])
def test_many_elements(shape: tuple[int, ...], dtype: str) -> None:
    """Where machine code sorts, along each axis, a pair of axes and over all."""
    x = (np.random.default_rng(1).normal(size=shape) * 100).astype(dtype)
    axes: list[Any] = [None, *range(len(shape)), *([(0, 1), (-1, 0)] if len(shape) > 1 else [])]
    for axis in axes:
        for y in (x, x[..., ::-1]):
            laws.close(xp.median(xp.asarray(y), axis), np.asarray(np.median(y, axis)), 1e-6)
            found = xp.quantile(xp.asarray(y), [0.1, 0.8], axis, keepdims=True)
            expected = np.quantile(y, [0.1, 0.8], axis, keepdims=True)
            laws.close(found, expected.astype(found.dtype), 1e-5, 1e-5)


@pytest.mark.parametrize("method", ["linear", "lower", "higher", "midpoint", "nearest"])
@pytest.mark.parametrize("shape", [(700,), (3000, 4), (20_001,)])
@pytest.mark.parametrize("dtype", ["float64", "float32", "int16"])
def test_what_is_selected_is_what_sorting_gives(
    method: Any, shape: tuple[int, ...], dtype: str
) -> None:
    """One fraction is selected, of many the elements are sorted: the same bits, with ties, and
    zeros of both signs.
    """
    rng = np.random.default_rng(2)
    x = rng.choice([-0.0, 0.0, -1.5, 2.0, 7.0], size=shape) * rng.integers(0, 3, shape)
    x = np.where(rng.random(shape) < 0.5, x, rng.normal(size=shape) * 9).astype(dtype)
    fractions = [0.0, 0.1, 0.3, 0.4, 0.45, 0.5, 0.55, 0.7, 1.0]
    together = xp.quantile(xp.asarray(x), fractions, 0, method=method)
    for q, expected in zip(fractions, together, strict=True):
        laws.same(xp.quantile(xp.asarray(x), q, 0, method=method), np.asarray(expected))


@pytest.mark.parametrize("odd", [np.nan, np.inf, -np.inf])
def test_elements_that_are_not_finite_among_many(odd: float) -> None:
    """NaN gives NaN; an infinite element is one like others."""
    x = np.random.default_rng(4).normal(size=5001)
    x[[3, 4000]] = odd
    ordered = np.sort(x)
    for q, place in ((0.0, 0), (0.25, 1250), (0.5, 2500), (1.0, 5000)):
        expected = np.nan if np.isnan(odd) else ordered[place]
        laws.same(xp.quantile(xp.asarray(x), q), np.asarray(expected))


@pytest.mark.parametrize("name", ["quantile", "percentile", "nanquantile", "nanpercentile"])
@pytest.mark.parametrize("q", [np.nan, -0.01, -1e300, 100.01, np.inf, -np.inf])
def test_a_fraction_that_is_none(name: str, q: float) -> None:
    """A number is refused, which jit keeps open too; of a traced array only the quantile is NaN."""
    fun: Any = getattr(xp, name)
    x = xp.asarray([3.0, 1.0, 2.0])
    of_numbers = ft.jit(fun)
    for number in (0.25, 0.5, q):
        for call in (fun, of_numbers, lambda x, q: fun(x, xp.asarray([0.5, q]))):
            if number is q:
                with pytest.raises(ArgumentError, match=rf"^{name}: .*q must lie between"):
                    call(x, number)
            else:
                call(x, number)
    qs = xp.asarray([0.5, q, 1.0])
    for found in (ft.jit(fun)(x, qs), ft.vmap(lambda q: fun(x, q))(qs)):
        assert np.array_equal(np.isnan(found), [False, True, False])
    slopes = ft.grad(lambda x: xp.sum(ft.jit(fun)(x, qs)[::2]))(x)
    assert np.isfinite(slopes).all()


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int64"])
@pytest.mark.parametrize("shape", [(1001,), (100, 3)])
@pytest.mark.parametrize("turned", [False, True])
def test_runs_in_order_have_the_quantiles_of_others(
    dtype: str, shape: tuple[int, ...], turned: bool
) -> None:
    """Those that ascend, with both zeros, and those that descend strictly, to the bit."""
    x = (np.arange(np.prod(shape)) - 400).reshape(shape).astype(dtype)
    if not turned:
        x = np.where(np.abs(x) < 90, x * 0, x).astype(dtype)
    x = x[::-1].copy() if turned else x
    mixed = np.random.default_rng(1).permuted(x, axis=0)
    for q, method in ((0.5, "linear"), (0.31, "nearest"), (1.0, "linear"), (0.0, "midpoint")):
        found = np.asarray(xp.quantile(xp.asarray(x), q, axis=0, method=method))
        with restricted():
            expected = np.asarray(xp.quantile(xp.asarray(x), q, axis=0, method=method))
        assert found.tobytes() == expected.tobytes()
        others = np.asarray(xp.quantile(xp.asarray(mixed), q, axis=0, method=method))
        np.testing.assert_array_equal(found, others, strict=True)
