"""Polynomials: their roots are NumPy's."""

from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from funct.errors import ShapeError
from tests import laws

CASES = [
    [1.0, -6.0, 11.0, -6.0], [0.0, 0.0, 2.0, 1.0], [1.0, 2.0j, 3.0], [2.0, 1.0, 0.0, 0.0],
    [3, 2, 1], [5.0], [0.0, 0.0], [], [1.0, 1.0, 0.0], [1.0, -2.0, 0.0, 0.0, 0.0],
]  # fmt: skip


@pytest.mark.parametrize("p", CASES, ids=str)
def test_roots(p: Any) -> None:
    """What NumPy finds, in its order, complex always, also where outer coefficients are 0."""
    for fun in (xp.roots, ft.jit(xp.roots)):
        got = fun(xp.asarray(p))
        expected = np.roots(p)
        assert got.shape == expected.shape
        assert got.dtype == np.complex128
        laws.close(got, expected.astype(np.complex128), rtol=1e-7)


def test_derivatives_and_lanes(rng: np.random.Generator) -> None:
    """Of polynomials with simple roots; what they multiply to is known."""
    p = xp.asarray(np.poly([1.0, 2.5, -0.7]) * 2.0)
    fun = lambda p: xp.sum(xp.abs(xp.roots(p)) ** 2)  # noqa: E731
    laws.check_derivatives(fun, [p], rng, order=1)
    laws.check_batch(fun, [p], rng)
    slope = ft.grad(lambda p: xp.real(xp.prod(xp.roots(p))))(p)
    expected = np.asarray([float(p[3] / p[0] ** 2), 0.0, 0.0, -1.0 / float(p[0])])
    laws.close(slope, expected, rtol=1e-7, atol=1e-9)


def test_refused() -> None:
    """A matrix is no polynomial."""
    with pytest.raises(ShapeError, match="roots: p must have rank 1"):
        xp.roots(xp.ones((2, 2)))


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "complex128"])
@pytest.mark.parametrize("columns", [0, 1, 7, 40, 41, 5000])
@pytest.mark.parametrize("rows", [0, 1, 3])
def test_as_many_powers_as_are_asked_for(
    dtype: str, columns: int, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Columns are NumPy's on either side of the number from which on they are running products."""
    monkeypatch.setattr("funct.array.polynomials._MOST", 40)  # thousands compile for seconds
    x = np.asarray([1, -1, 0][:rows]).astype(dtype)
    for run in (xp.vander, ft.jit(xp.vander, static_argnums=1)):
        found = run(xp.asarray(x), columns)
        laws.same(found, np.vander(x, columns).astype(found.dtype))
