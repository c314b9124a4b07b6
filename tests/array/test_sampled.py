"""convolve, gradient, interp, trapezoid, select, fmod against NumPy, and the laws they obey."""

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import funct as ft
import funct.array as xp
from funct.errors import ArgumentError, ShapeError
from tests import laws
from tests.strategies import arrays, filled, with_axis

RNG = np.random.default_rng
LENGTH = st.integers(1, 7)


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@given(n=LENGTH, m=LENGTH, kind=st.sampled_from(["int64", "float32", "float64", "complex128"]))
def test_convolve(mode: Any, n: int, m: int, kind: str) -> None:
    """convolve is NumPy's in every mode, whichever operand is longer."""
    x, y = filled((n,), kind, 0), filled((m,), kind, 1)
    fun = lambda a, b: xp.convolve(a, b, mode)  # noqa: E731
    args = [xp.asarray(x), xp.asarray(y)]
    laws.close(fun(*args), np.convolve(x, y, mode), 1e-5, 1e-6)
    if kind in ("float64", "complex128"):
        laws.check_derivatives(fun, args, RNG(0), order=1)
    laws.check_jit(fun, args)
    laws.check_batch(fun, args, RNG(0), 1e-5)


@given(arrays(["float64"]), st.integers(1, 6), st.data())
def test_interp(x: Any, n: int, data: Any) -> None:
    """interp is NumPy's: between the points, outside, and with values for outside."""
    at = np.sort(RNG(n).normal(size=n))
    f = RNG(n + 1).normal(size=n)
    side = st.none() | st.just(7.0)
    ends = {"left": data.draw(side), "right": data.draw(side)}
    fun = lambda a, b, c: xp.interp(a, b, c, **ends)  # noqa: E731
    x = np.where(RNG(2).random(x.shape) < 0.2, at[0], x)
    args = [xp.asarray(v) for v in (x, at, f)]
    laws.close(fun(*args), np.asarray(np.interp(x, at, f, **ends)), 1e-9, 1e-9)
    laws.check_jit(fun, args)
    laws.check_batch(lambda a, c: fun(a, args[1], c), [args[0], args[2]], RNG(0))
    smooth = RNG(5).uniform(at[0] - 1, at[-1] + 1, x.shape)
    if smooth.size and np.abs(smooth[..., None] - at).min() > 1e-3:
        laws.check_derivatives(fun, [xp.asarray(smooth), *args[1:]], RNG(0), order=1)


@pytest.mark.parametrize("kind", ["float32", "float16", "complex64"])
def test_interp_of_narrow_numbers_rounds_once(kind: str) -> None:
    """Computed in float64, eagerly and compiled; of coordinates far out nothing is lost."""
    real = "float32" if kind == "complex64" else kind
    x, at = RNG(0).uniform(0, 1, 99).astype(real), np.linspace(0, 1, 7).astype(real)
    f = filled((7,), kind, 1)
    if real == "float32":
        x, at = (v + np.float32(2.0**20) for v in (x, at))
        at = np.unique(at)
        f = f[: len(at)]
    for options in ({}, {"right": 2.5}, {"period": 0.25}):
        fun = lambda *a, o=options: xp.interp(*a, **o)  # noqa: E731
        args = [xp.asarray(v) for v in (x, at, f)]
        wide = fun(*[xp.asarray(np.asarray(v, np.result_type(v, np.float64))) for v in (x, at, f)])
        expected = np.asarray(wide).astype(kind)
        laws.same(fun(*args), expected)
        laws.same(ft.jit(fun)(*args), expected)
    slope = ft.jit(ft.grad(lambda a: xp.sum(xp.real(xp.interp(a, *args[1:])))))(args[0])
    assert slope.dtype == real
    assert bool(xp.all(xp.isfinite(slope)))


@given(arrays(["float64"]), st.integers(1, 6), st.sampled_from([1.0, 2.5, -3.0]))
def test_interp_with_period(x: Any, n: int, period: float) -> None:
    """With a period, points may come in any order."""
    at = RNG(n).uniform(-2, 2, size=n)
    f = RNG(n + 1).normal(size=n)
    assume(len(set(np.round(at % abs(period), 6))) == n)
    out = xp.interp(*[xp.asarray(v) for v in (x, at, f)], period=period)
    laws.close(out, np.asarray(np.interp(x, at, f, period=period)), 1e-9, 1e-9)


@pytest.mark.parametrize("ends", [{}, {"left": -7.0}, {"right": 9.0}, {"left": -7.0, "right": 9.0}])
def test_interp_of_descending_points_is_numpys(ends: Any) -> None:
    """They are a mistake, but the same one in compiled code."""
    at, f, x = np.array([3.0, 2.0, 1.0, 0.0]), np.arange(4.0) + 1, np.linspace(-1, 4, 11)
    fun = lambda *a: xp.interp(*a, **ends)  # noqa: E731
    args = [xp.asarray(v) for v in (x, at, f)]
    for way in (fun, ft.jit(fun), ft.vmap(fun, (0, None, None))):
        np.testing.assert_array_equal(np.asarray(way(*args)), np.interp(x, at, f, **ends))


def test_interp_at_nan_and_infinity() -> None:
    """NaN gives NaN, infinity the values at the ends."""
    at, f = xp.asarray([0.0, 1.0]), xp.asarray([5.0, 6.0])
    with np.errstate(invalid="ignore"):
        out = xp.interp(xp.asarray([np.nan, -np.inf, np.inf]), at, f)
    laws.same(out, np.asarray([np.nan, 5.0, 6.0]))


@given(with_axis(["float64", "float32", "int64", "complex128"]), st.sampled_from([1, 2]))
def test_gradient(case: Any, order: int) -> None:
    """gradient is NumPy's, over steps and over points along the axis; one sample has no slope."""
    f, axis = case
    n = f.shape[axis]
    points = np.cumsum(RNG(n).uniform(0.5, 1.5, n))
    points = points.astype(f.dtype) if f.dtype == np.float32 else points
    for spacing in ((), (0.5,), (2,), (points,)):
        given = [xp.asarray(s) if isinstance(s, np.ndarray) else s for s in spacing]
        fun = lambda v, g=given: xp.gradient(v, *g, axis=axis, edge_order=order)  # noqa: E731
        if n < order + 1:
            with pytest.raises(ShapeError, match=f"gradient: axis .* must have {order + 1} sam"):
                fun(xp.asarray(f))
            continue
        expected = np.gradient(f, *spacing, axis=axis, edge_order=order)
        laws.close(fun(xp.asarray(f)), expected, 1e-5, 1e-5)
        arg = xp.asarray(filled(f.shape, "float64", 2))
        if arg.size:
            laws.check_derivatives(fun, [arg], RNG(0), order=1)
            laws.check_batch(fun, [arg], RNG(0))
            laws.check_jit(fun, [arg])


def test_gradient_along_several_axes() -> None:
    """A slope for each axis, in the order given, each over its own points."""
    f = RNG(0).normal(size=(4, 5))
    points = [np.cumsum(RNG(n).uniform(0.5, 1.5, n)) for n in f.shape]
    for axis, spacing in ((None, points), ((1, 0), points[::-1]), ((0, 1), (2.0,)), (None, ())):
        given = [xp.asarray(s) if isinstance(s, np.ndarray) else s for s in spacing]
        ours = xp.gradient(xp.asarray(f), *given, axis=axis)
        for a, b in zip(ours, np.gradient(f, *spacing, axis=axis), strict=True):
            laws.close(a, b, 1e-12, 1e-12)
    assert xp.gradient(xp.asarray(f), 2.0, axis=0).dtype == xp.float64
    assert xp.gradient(xp.asarray(np.float32(f)), 2.0, axis=0).dtype == xp.float32
    with pytest.raises(ArgumentError, match="edge_order must be 1 or 2, got 3"):
        xp.gradient(xp.asarray(f), edge_order=3)
    with pytest.raises(ArgumentError, match="spacing must be one entry or 2"):
        xp.gradient(xp.asarray(f), 1.0, 1.0, 1.0)
    with pytest.raises(ShapeError, match=r"must be a number or have shape \(4,\), got \(3,\)"):
        xp.gradient(xp.asarray(f), xp.ones(3), axis=0)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_interp_of_many(dtype: str) -> None:
    """Values in any order or in theirs, on points and outside, and slopes that are infinite."""
    points = np.sort(RNG(1).choice(np.arange(-30, 30) / 4, 50)).astype(dtype)  # some twice
    f = (RNG(2).normal(size=50) * 1e30).astype(dtype)
    x = np.concatenate((RNG(3).uniform(-9, 9, 500), points, [np.nan, np.inf, -np.inf])).astype(
        dtype
    )
    for v in (x, np.sort(x), np.resize(x, (31, 19))):
        for left, right in ((None, None), (-7.0, 9)):
            found = xp.interp(xp.asarray(v), xp.asarray(points), xp.asarray(f), left, right)
            expected = np.interp(v, points, f, left, right).astype(dtype)
            np.testing.assert_array_equal(np.asarray(found), expected)


@given(with_axis(["float64", "float32", "int64"]), st.data())
def test_trapezoid(case: Any, data: Any) -> None:
    """trapezoid is NumPy's, over steps, points along the axis, and points of y's shape."""
    y, axis = case
    points = np.cumsum(np.abs(filled(y.shape, "float64", 1)) + 0.1, axis)
    line = np.linspace(0, 1, y.shape[axis]) ** 2
    for x in (None, line, points):
        t = None if x is None else xp.asarray(x)
        fun = lambda v, t=t: xp.trapezoid(v, t, 0.5, axis)  # noqa: E731
        laws.close(fun(xp.asarray(y)) * 1.0, np.asarray(np.trapezoid(y, x, 0.5, axis)), 1e-5, 1e-6)
        arg = xp.asarray(filled(y.shape, "float64", 2))
        if arg.size:
            laws.check_derivatives(fun, [arg], RNG(0), order=1)
        laws.check_batch(fun, [arg], RNG(0))
        laws.check_jit(fun, [arg])


@given(arrays(["float64", "int64"]), st.integers(1, 3))
def test_select(x: Any, n: int) -> None:
    """select takes the first choice whose condition holds."""
    fun = lambda v: xp.select([v > k for k in range(n)], [v * k for k in range(n)], -1)  # noqa: E731
    expected = np.select([x > k for k in range(n)], [x * k for k in range(n)], -1)
    laws.same(fun(xp.asarray(x)), np.asarray(expected))
    arg = xp.asarray(filled(x.shape, "float64", 0) + 0.01)
    laws.check_batch(fun, [arg], RNG(0))
    laws.check_jit(fun, [arg])


@given(arrays(["float64", "float32", "int64"]), st.sampled_from([-2, 3]))
def test_fmod(x: Any, y: int) -> None:
    """fmod has the sign of x, as in C."""
    laws.same(xp.fmod(xp.asarray(x), y), np.asarray(np.fmod(x, y)))
    laws.same(xp.fmod(xp.asarray([-3.0, 3.0]), xp.asarray([2.0, -2.0])), np.asarray([-1.0, 1.0]))


X = xp.ones(3)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (
            lambda: xp.convolve(X, xp.ones((1, 1))),
            ShapeError,
            "convolve: x and y must be 1-D, got (3,) and (1, 1)",
        ),
        (
            lambda: xp.convolve(X, X, "all"),
            ArgumentError,
            "convolve: mode must be 'full', 'same' or 'valid', got 'all'",
        ),
        (
            lambda: xp.interp(X, X, xp.ones(2)),
            ShapeError,
            "interp: xp and fp must be 1-D, of one length and not empty, got (3,) and (2,)",
        ),
        (
            lambda: xp.select([X > 0], []),
            ArgumentError,
            "select: one choice per condition is needed, got 1 conditions and 0 choices",
        ),
    ],
)
def test_errors(call: Any, error: Any, text: str) -> None:
    """The error names function, expectation and value."""
    with pytest.raises(error) as caught:
        call()
    assert caught.value.what == text
