"""Derivatives where formulas lose them: at infinities, at 0, and where digits cancel."""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np
import pytest
import scipy.special

import funct as ft
import funct.array as xp

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

WAYS = [lambda f: f, ft.jit]


def numbers(*values: float) -> list[Any]:
    return [xp.asarray(float(v)) for v in values]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("x1", "x2"), [(1, inf), (1, -inf), (-1, inf), (-1, -inf), (0, inf)])
def test_remainders_of_infinite_divisors(way: Any, x1: float, x2: float) -> None:
    """They are those of a large one: x1, or x1 + x2 where the signs differ."""
    found = way(ft.grad(xp.remainder, (0, 1)))(*numbers(x1, x2))
    near = ft.grad(xp.remainder, (0, 1))(*numbers(x1, np.copysign(1e9, x2)))
    assert [float(v) for v in found] == [float(v) for v in near]


def hessian(f: Any, *point: float) -> np.ndarray[Any, Any]:
    """Second derivatives, one after the other: none is multiplied by another's infinity."""
    each = range(len(point))
    rows = [[ft.grad(ft.grad(f, i), j)(*numbers(*point)) for j in each] for i in each]
    return np.array([[float(v) for v in row] for row in rows])


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("x", [0.0, 0.3, 1.0, 2.0, 1e-200, inf])
def test_powers_change_with_an_exponent_of_zero(way: Any, x: float) -> None:
    """x**y is 1 + y log(x) there: its slope in x is 0, and that one's slope in y is 1 / x."""
    slope = ft.grad(xp.pow)
    assert float(way(slope)(*numbers(x, 0.0))) == 0
    assert float(way(ft.grad(slope))(*numbers(x, 0.0))) == 0
    bent = float(way(ft.grad(slope, 1))(*numbers(x, 0.0)))
    if x not in (0.0, 1e-200, inf):
        np.testing.assert_allclose(bent, 1 / x, 1e-15)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("far", [inf, -inf])
@pytest.mark.parametrize("near", [0.0, 1.0, -1e300])
def test_lengths_and_angles_of_infinite_vectors(way: Any, far: float, near: float) -> None:
    """A length grows as its infinite element does, and nothing turns such a vector."""
    for f, expected in ((xp.hypot, np.sign(far)), (xp.atan2, 0.0)):
        both = way(ft.grad(f, (0, 1)))
        assert [float(v) for v in both(*numbers(far, near))] == [expected, 0]
        assert [float(v) for v in both(*numbers(near, far))] == [0, expected]
        for point in ((far, near), (near, far)):
            np.testing.assert_array_equal(hessian(f, *point), 0)
    np.testing.assert_array_equal(hessian(xp.atan2, far, far), 0)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("name", "end", "slope"),
    [
        ("ellipk", -inf, 0), ("ellipe", -inf, 0), ("ellipkm1", inf, 0), ("exprel", -inf, 0),
        ("rgamma", inf, 0), ("wrightomega", inf, 1), ("wrightomega", -inf, 0),
    ],
)  # fmt: skip
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_slopes_of_special_functions_at_infinity(
    way: Any, name: str, end: float, slope: float, dtype: str
) -> None:
    """What they tend to, and beside them what they are."""
    f = ft.grad(lambda x: xp.sum(getattr(xp.special, name)(x)))
    x = xp.asarray([end, 0.25], dtype=dtype)
    found = np.asarray(way(f)(x))
    np.testing.assert_array_equal(found, [slope, np.asarray(f(x[1:]))[0]])
    assert found.dtype == dtype
    assert float(way(ft.grad(lambda x: xp.sum(f(x))))(x)[0]) == 0


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("name", "point", "slopes"),
    [
        ("owens_t", (0.0, inf), (0, 0)), ("owens_t", (inf, 0.0), (0, 0)),
        ("owens_t", (0.0, 1e300), (0, 0)), ("owens_t", (-inf, inf), (0, 0)),
        ("pseudo_huber", (1.0, inf), (inf, 1)), ("pseudo_huber", (2.0, -inf), (inf, -2)),
        ("gammainc", (inf, 1.0), (0, 0)), ("gammaincc", (inf, 2.5), (0, 0)),
        ("gammainc", (2.0, inf), (0, 0)), ("chdtr", (inf, 3.0), (0, 0)),
    ],
)  # fmt: skip
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_slopes_in_two_operands_at_infinity(
    way: Any, name: str, point: Any, slopes: Any, dtype: str
) -> None:
    """An infinite parameter, and an infinite argument, leave what neighbours tend to."""
    found = way(ft.grad(getattr(xp.special, name), (0, 1)))(
        *[xp.asarray(v, dtype=dtype) for v in point]
    )
    np.testing.assert_allclose([float(v) for v in found], slopes, 0, 1e-290)


@pytest.mark.parametrize("name", ["iv", "ive", "jv", "kv", "kve", "yv"])
def test_slopes_in_orders_without_end(name: str) -> None:
    """One order that is huge, infinite or none is no error, and no other element knows of it."""
    orders = xp.asarray([2.5, 1e300, 1e17, inf, -inf, np.nan, -1e300])
    slope = ft.grad(lambda v: xp.sum(getattr(xp.special, name)(v, xp.asarray(1.5))))
    np.testing.assert_allclose(float(slope(orders)[0]), float(slope(orders[:1])[0]), 1e-14)


@pytest.mark.parametrize("x", [0.0, 5e-324, 1e-300, 1e-9, 0.2, 0.6, 1.0, 5.0])
def test_densities_far_below_their_peak(x: float) -> None:
    """x exp(-x) and exp(-x), the densities of 2 and of 1, have all derivatives from 0 on."""
    two, one = (lambda x, a=a: xp.special.gammainc(xp.asarray(a), x) for a in (2.0, 1.0))
    none = lambda m: xp.special.pdtr(xp.asarray(0.0), m)  # noqa: E731
    for n in range(4):
        two, one, none = ft.grad(two), ft.grad(one), ft.grad(none)
        sign, decay = (-1.0) ** n, np.exp(-x)
        (at,) = numbers(x)
        np.testing.assert_allclose(float(two(at)), sign * (x - n) * decay, 1e-12, 1e-15)
        np.testing.assert_allclose(float(one(at)), sign * decay, 1e-14)
        np.testing.assert_allclose(float(none(at)), -sign * decay, 1e-14)


def test_acosh_bends_without_end_at_1() -> None:
    """As beside 1, in every order."""
    f = xp.acosh
    for expected in (inf, -inf, inf):
        f = ft.grad(f)
        assert float(f(*numbers(1.0))) == expected


def slopes(f: Any, x: float, order: int) -> list[float]:
    """The first derivatives, as many as that."""
    found = []
    for _ in range(order):
        f = ft.grad(f)
        found.append(float(f(*numbers(x))))
    return found


@pytest.mark.parametrize("x", [0.0, 1e-300, 1e-9, 0.3, 0.5, 1 - 1e-9, 1.0])
@pytest.mark.parametrize("a", [1, 2, 3, 5])
@pytest.mark.parametrize("b", [1, 2, 3])
def test_polynomial_densities(x: float, a: int, b: int) -> None:
    """betainc of whole parameters is a polynomial, from one end to the other."""
    one = np.polynomial.Polynomial([0.0, 1.0])
    density = one ** (a - 1) * (1 - one) ** (b - 1) / float(scipy.special.beta(a, b))
    expected = [density(x), density.deriv(1)(x), density.deriv(2)(x)]
    found = slopes(lambda x: xp.special.betainc(*numbers(a, b), x), x, 3)
    np.testing.assert_allclose(found, expected, 1e-9, 1e-6)


@pytest.mark.parametrize("x", [0.0, 1e-300, 1e-12])
def test_distributions_at_their_start(x: float) -> None:
    """1 - (1 + x/2)**-2, and 1 - (1 + 1.5 x) exp(-1.5 x), to the fourth order."""
    f = slopes(lambda x: xp.special.fdtr(*numbers(2, 4), x), x, 4)
    np.testing.assert_allclose(f, [1, -1.5, 3, -7.5], 1e-10)
    g = slopes(lambda x: xp.special.gdtr(*numbers(1.5, 2), x), x, 4)
    np.testing.assert_allclose(g, [2.25 * x, 2.25, -6.75, 15.1875], 1e-10, 1e-20)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("name", "slope"), [("log", 1.0), ("log2", np.log2(np.e)), ("log10", np.log10(np.e))]
)
def test_slopes_of_logarithms_of_the_largest_numbers(
    way: Any, dtype: str, name: str, slope: float
) -> None:
    """They are subnormal, and no 0."""
    x = xp.asarray(np.finfo(dtype).max * np.array([0.3, 0.5, 1.0], dtype))
    f = way(ft.grad(lambda x: xp.sum(getattr(xp, name)(x))))
    least = float(np.finfo(dtype).smallest_subnormal)
    expected = slope / np.asarray(x, np.float64)
    np.testing.assert_allclose(np.asarray(f(x), np.float64), expected, 1e-6, 2 * least)
