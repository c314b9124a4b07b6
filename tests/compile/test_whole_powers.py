"""Powers of a whole number of factors in loops: products, rounded once, or wrapped around."""

from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from funct.errors import ArgumentError
from tests.compile.test_bounds import made_of

WIDE = {np.float32: np.float64, np.float64: np.longdouble}


def power(x: Any, n: int) -> Any:
    """x to the power n, in loops."""
    fun = ft.jit(lambda x: x**n, mode="reduce-overhead")
    return np.asarray(fun(xp.asarray(x)))


@pytest.mark.parametrize("dtype", WIDE)
@pytest.mark.parametrize("n", [-16, -7, -4, -3, 5, 6, 7, 10, 12, 16])
def test_they_are_rounded_once(n: int, dtype: Any) -> None:
    """Within 0.51 ulp, and within 1.5 where what a rounding lost is below the least number."""
    wide, limits = WIDE[dtype], np.finfo(dtype)
    if np.finfo(wide).nmant == limits.nmant:
        pytest.skip("there are no wider numbers here")
    rng = np.random.default_rng(abs(n))
    least, most = (np.log2(float(v)) / abs(n) * 0.99 for v in (limits.tiny, limits.max))
    x = (2.0 ** rng.uniform(least, most, 20_000) * rng.choice([-1, 1], 20_000)).astype(dtype)
    expected = np.prod([x.astype(wide)] * abs(n), axis=0)
    expected = 1 / expected if n < 0 else expected
    size = np.abs(expected.astype(dtype))
    ulp = np.abs(power(x, n).astype(wide) - expected) / np.spacing(size)
    assert np.max(ulp) < 1.5
    assert np.max(ulp[size > limits.tiny * 2.0 ** (limits.nmant + 4)]) < (1.0 if n < 0 else 0.51)


@pytest.mark.parametrize("dtype", WIDE)
@pytest.mark.parametrize("n", [-6, -5, -3, 5, 6, 11])
def test_special_numbers_are_those_of_numpy(n: int, dtype: Any) -> None:
    """Zeros with their signs, infinities, NaN, and what is too large or too small."""
    limits = np.finfo(dtype)
    ends = [limits.max, limits.tiny, limits.smallest_subnormal]
    x = np.asarray([0.0, np.inf, np.nan, 1.0, 2.0, 0.5, *ends], dtype)
    x = np.concatenate([x, -x])
    with np.errstate(all="ignore"):
        expected, found = np.power(x, dtype(n)), power(x, n)
    assert np.array_equal(found, expected, equal_nan=True)
    real = ~np.isnan(expected)
    assert np.array_equal(np.signbit(found)[real], np.signbit(expected)[real])


def test_slopes_are_such_powers() -> None:
    """Of x⁶ and x⁻⁵, by differences."""
    x = np.linspace(0.5, 2, 40)
    for n in (6, -5):
        slope = ft.jit(ft.grad(lambda x, n=n: xp.sum(x**n)), mode="reduce-overhead")(xp.asarray(x))
        assert np.allclose(np.asarray(slope), n * x ** (n - 1), rtol=1e-14)


INTEGERS = ["int8", "uint8", "int16", "int32", "uint32", "int64", "uint64"]


@pytest.mark.parametrize("largest", [1, 9, 1 << 62])
@pytest.mark.parametrize("dtype", INTEGERS)
def test_powers_of_integers_wrap_around_as_numpys(dtype: str, largest: int) -> None:
    rng, info = np.random.default_rng(0), np.iinfo(dtype)
    x = rng.integers(info.min, info.max, 1003, dtype=dtype, endpoint=True)
    y = rng.integers(0, min(largest, info.max), 1003, dtype=dtype, endpoint=True)
    (found,) = made_of(lambda x, y: x**y, x, y).run(x, y)
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, x**y)
    for n in (0, 1, 2, 7, 100):
        for f, given in ((lambda x, n=n: x**n, x), (lambda y, n=n: n**y, y)):
            np.testing.assert_array_equal(made_of(f, given).run(given)[0], f(given))


def test_negative_powers_of_integers_raise_as_eagerly() -> None:
    x, y = np.arange(1001, dtype="int32"), np.full(1001, 3, "int32")
    power = ft.jit(lambda x, y: x**y + 1, mode="reduce-overhead")
    np.testing.assert_array_equal(power(x, y), x**y + 1)
    y[1000] = -1
    with pytest.raises(ArgumentError, match="negative integer powers"):
        power(x, y)


@pytest.mark.parametrize("columns", [3, 300])
def test_steps_that_are_not_taken_refuse_no_power(columns: int) -> None:
    def powers(x: Any, rows: Any) -> Any:
        return ft.scan(lambda x, n: ((x**n) % 1001, x), x, rows)

    def chosen(p: Any, x: Any, n: Any) -> Any:
        return ft.cond(p, lambda: x**n, lambda: x)

    x, rows = np.arange(columns, dtype="int32"), np.full((40, columns), 3, "int32")
    program, either = (ft.jit(f, mode="reduce-overhead") for f in (powers, chosen))
    for expected, found in zip(powers(xp.asarray(x), xp.asarray(rows)), program(x, rows)):
        np.testing.assert_array_equal(found, expected)
    rows[7, 2] = -3
    with pytest.raises(ArgumentError, match="negative integer powers"):
        program(x, rows)
    np.testing.assert_array_equal(program(x, rows[:0])[0], x)
    np.testing.assert_array_equal(either(False, x, rows[7]), x)
    with pytest.raises(ArgumentError, match="negative integer powers"):
        either(True, x, rows[7])
