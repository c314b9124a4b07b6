"""Reductions of short last axes that lie in memory: read in whole vectors, a place at a time."""

from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from funct.compile.fusion.worth import worth
from funct.compile.loops.kernel import Kernel, Op
from tests.compile.checked import checking, run
from tests.compile.test_bounds import made_of

RNG = np.random.default_rng(0)
SPECIAL = [np.nan, np.inf, -np.inf, 0.0, -0.0, 5e-324, 1e-45, 7.0]
HOW = ["sum", "prod", "max", "min", "any", "all"]
ROWS = 4099  # more than the least that is taken apart, and not in whole vectors


def numbers(dtype: str, *shape: int) -> Any:
    if dtype == "bool":
        return RNG.random(shape) > 0.4
    if dtype.startswith(("int", "uint")):
        return RNG.integers(-3 if dtype.startswith("int") else 0, 9, shape).astype(dtype)
    x = RNG.normal(size=shape).astype(dtype)
    with np.errstate(under="ignore"):
        x.flat[: 5 * len(SPECIAL) : 5] = np.asarray(SPECIAL, dtype)
    return x


def of_numbers(how: str, dtype: str, **_: Any) -> bool:
    return dtype != "bool" or how not in ("max", "min")


@pytest.mark.pairwise(where=of_numbers)
@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64", "uint8", "bool"])
@pytest.mark.parametrize("places", [2, 3, 4, 5, 8, 15, 16, 17])
def test_a_reduction_is_numpys(how: str, dtype: str, places: int) -> None:
    x = numbers(dtype, ROWS, places)
    with np.errstate(invalid="ignore"):
        expected = np.asarray(getattr(xp, how)(xp.asarray(x), axis=-1))
    made = made_of(lambda x: getattr(xp, how)(x, axis=-1), x)
    with checking():
        (found,) = run(made_of(lambda x: getattr(xp, how)(x, axis=-1), x), x)
    (again,) = made.run(x)
    for y in (found, again):
        assert y.dtype == expected.dtype
        if how in ("sum", "prod") and dtype.startswith("float"):
            rtol = 1e-5 if dtype == "float32" else 1e-13  # 17 terms in another order
            np.testing.assert_allclose(y, expected, rtol=rtol, atol=20 * rtol)
        else:
            np.testing.assert_array_equal(y, expected)


@pytest.mark.parametrize("places", [2, 3, 10, 16])
@pytest.mark.parametrize("how", ["max", "sum"])
def test_the_axis_is_read_as_woven_places(how: str, places: int) -> None:
    x = np.ones((1 << 14, places), np.float32)
    (call,) = made_of(lambda x: getattr(xp, how)(x, axis=-1), x).calls
    assert isinstance(call.kernel, Kernel)
    assert {a.inner for a in call.kernel.accesses} == {places, "one"}


@pytest.mark.pairwise(where=of_numbers)
@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "bool"])
@pytest.mark.parametrize("axes", [(1, 3), (0, 2), (0, 3), (1, 2, 4)])
def test_axes_with_others_between_them_are_worth_loops(
    how: str, dtype: str, axes: tuple[int, ...]
) -> None:
    x = numbers(dtype, 9, 16, 2, 33, 2)
    fun = lambda x: getattr(xp, how)(x, axis=axes)  # noqa: E731
    assert worth(ft.make_graph(fun)(xp.asarray(x)))
    with np.errstate(invalid="ignore", over="ignore"):
        expected = np.asarray(fun(xp.asarray(x)))
        with checking():
            (found,) = run(made_of(fun, x), x)
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    rtol = {"float32": 2e-4, "float64": 1e-12}.get(dtype, 0)
    exact = how not in ("sum", "prod")
    np.testing.assert_allclose(
        found, expected, rtol=0 if exact else rtol, atol=0 if exact else 20 * rtol
    )


def test_halves_are_left_to_numpy() -> None:
    """Their sums would be rounded between the axes."""
    x = xp.asarray(RNG.normal(size=(9, 16, 2, 33, 2)).astype("float16"))
    fun = lambda x: xp.sum(x, axis=(1, 3))  # noqa: E731
    assert not worth(ft.make_graph(fun)(x))
    assert xp.all(ft.jit(fun)(x) == fun(x))


HEAVY = ("exp", "log", "tanh", "sqrt")


def heavy_rows(f: Any, *given: Any) -> list[str]:
    """The functions that the kernels of a program compute one number at a time, once a row."""
    kernels = [call.kernel for call in made_of(f, *given).calls]
    values = [v for k in kernels if isinstance(k, Kernel) for v in k.values]
    return [v.name for v in values if isinstance(v, Op) and v.kind == "row" and v.name in HEAVY]


@pytest.mark.parametrize("name", HEAVY)
@pytest.mark.parametrize("how", ["sum", "max", "mean"])
@pytest.mark.parametrize("columns", [24, 33, 64])
def test_functions_of_short_rows_are_computed_in_vectors(name: str, how: str, columns: int) -> None:
    def of_pairs(x: Any) -> Any:
        d = getattr(xp, how)((x[:, None] - x[None]) ** 2, axis=-1)
        return getattr(xp, name)(2 + d)

    def summed(x: Any) -> Any:
        return xp.sum(of_pairs(x))

    def of_rows(x: Any) -> Any:
        return getattr(xp, name)(2 + getattr(xp, how)(x * x, axis=-1))

    points = (0.1 * RNG.normal(size=(80, columns))).astype(np.float32)
    rows = (0.1 * RNG.normal(size=(5000, columns))).astype(np.float32)
    for f, x in ((of_pairs, points), (summed, points), (of_rows, rows)):
        assert not heavy_rows(f, x)
        a = xp.asarray(x)
        np.testing.assert_allclose(ft.jit(f)(a), np.asarray(f(a)), rtol=1e-5)


@pytest.mark.parametrize("name", ["exp", "log", "tanh"])
def test_functions_that_short_rows_read_are_computed_in_vectors(name: str) -> None:
    """Where one element for each row is given, and not where the row is reduced to it."""

    def outer(x: Any, y: Any) -> Any:
        return y * getattr(xp, name)(x)[:, None] + 1

    x, y = (RNG.uniform(1, 2, n).astype(np.float32) for n in (700, 64))
    assert not heavy_rows(outer, x, y)
    expected = np.asarray(outer(*map(xp.asarray, (x, y))))
    np.testing.assert_allclose(ft.jit(outer)(*map(xp.asarray, (x, y))), expected, rtol=1e-6)
    summed = lambda x: x - getattr(xp, name)(xp.sum(x, axis=-1, keepdims=True))  # noqa: E731
    assert heavy_rows(summed, np.ones((700, 64), np.float32)) == [name]


def test_functions_of_rows_stay_in_their_loops_where_rows_are_long_or_read_them() -> None:
    def softmax(x: Any) -> Any:
        return xp.exp(x) / xp.sum(xp.exp(x), axis=-1, keepdims=True)

    assert heavy_rows(lambda x: xp.log(xp.sum(x * x, axis=-1)), np.ones((900, 4000), "float32"))
    assert heavy_rows(
        lambda x: x / xp.sqrt(xp.sum(x * x, axis=-1, keepdims=True)), np.ones((900, 40))
    )
    (call,) = made_of(softmax, np.ones((4000, 40), np.float32)).calls
    assert isinstance(call.kernel, Kernel)
