"""Cofactors: signed minors at every rank, as exact as their terms; in machine code and in NumPy."""

from __future__ import annotations

import functools
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import funct as ft
import funct.array as xp
from funct.kernels import table
from funct.kernels.cpu.small import cofactors as cpu
from funct.kernels.linalg import matrices
from funct.kernels.table import restricted

Matrix = list[list[Fraction]]
Way = Callable[[Any], Any]


def in_numpy(x: Any) -> Any:
    with restricted():
        return matrices.cofactor(x)


WAYS = [
    pytest.param(
        matrices.cofactor, id="machine code",
        marks=pytest.mark.skipif("llvm" not in table.available(), reason="llvmlite is absent"),
    ),
    pytest.param(in_numpy, id="numpy"),
]  # fmt: skip


def exact_det(x: Matrix) -> Fraction:
    """By elimination in rational numbers."""
    x, total = [list(row) for row in x], Fraction(1)
    for k in range(len(x)):
        at = next((i for i in range(k, len(x)) if x[i][k]), None)
        if at is None:
            return Fraction(0)
        if at != k:
            x[k], x[at], total = x[at], x[k], -total
        total *= x[k][k]
        for row in x[k + 1 :]:
            factor = row[k] / x[k][k]
            row[k:] = [a - factor * b for a, b in zip(row[k:], x[k][k:], strict=True)]
    return total


def exact(x: Any) -> Any:
    """The cofactors of a real matrix, as rational numbers; float64 may be too small for them."""
    n = len(x)
    whole = [[Fraction(float(v)) for v in row] for row in x]
    found = np.empty((n, n), object)
    for i in range(n):
        for j in range(n):
            rest = [r[:j] + r[j + 1 :] for k, r in enumerate(whole) if k != i]
            found[i, j] = (-1) ** (i + j) * exact_det(rest)
    return found


def check(found: Any, expected: Any, bound: float) -> None:
    """Each within a share of the largest."""
    most = max([abs(v) for v in expected.flat], default=Fraction(0))
    for a, b in zip(found.flat, expected.flat, strict=True):
        assert abs(Fraction(float(a)) - b) <= Fraction(bound) * most


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 7, 9])
def test_cofactors_are_signed_minors(n: int, dtype: str, way: Way) -> None:
    """Of regular matrices, of those of every lower rank of which some cofactor is not 0, and of
    whole numbers.
    """
    rng = np.random.default_rng(n)
    x = rng.normal(size=(4, n, n)).astype(dtype)
    x[1:3] = rng.integers(-5, 6, (2, n, n))
    x[2, :, -1] = x[2, :, 0]  # of rank n - 1
    found = way(x)
    assert found.dtype == x.dtype
    for a, b in zip(found, x, strict=True):
        check(a, exact(b), 64 * float(np.finfo(dtype).eps))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("unit", [0.0, 1j])
@pytest.mark.parametrize(("n", "rank"), [(n, rank) for n in range(1, 7) for rank in range(n + 1)])
def test_every_rank(n: int, rank: int, unit: complex, way: Way) -> None:
    """Element (i, j) is the signed determinant of what is left without row i and column j."""
    rng = np.random.default_rng(rank)
    left, right = (rng.normal(size=(n, n)) + unit * rng.normal(size=(n, n)) for _ in range(2))
    x = left[:, :rank] @ right[:rank]
    expected = np.empty((n, n), x.dtype)
    for i in range(n):
        for j in range(n):
            rest = np.delete(np.delete(x, i, 0), j, 1)
            expected[i, j] = (-1) ** (i + j) * np.linalg.det(rest)
    np.testing.assert_allclose(way(x), expected, rtol=1e-10, atol=1e-11, strict=True)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("n", [4, 6])
def test_two_ranks_less_are_zero(n: int, way: Way) -> None:
    """Exactly, where elimination is."""
    x = np.zeros((3, n, n))
    x[1] = np.outer([2.0, -4.0] * (n // 2), [1.0, 0.5] * (n // 2))
    x[2, : n - 2, : n - 2] = np.eye(n - 2)
    assert not way(x).any()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("unit", [1.0, 1j])
def test_only_results_overflow(unit: complex, way: Way) -> None:
    """Products of pivots go through no number that is too large or too small, in either order."""
    sizes = [1e200, -1e200, 1e-200, 1e-300, 1e250, 1e-150]
    for order in ([0, 1, 2, 3, 4, 5], [5, 3, 1, 0, 2, 4], [4, 0, 1, 3, 2, 5]):
        diagonal = [sizes[k] for k in order]
        expected = exact(np.diag(diagonal))
        found = way(np.diag(diagonal) * unit)
        for k in range(6):
            power = unit**5
            np.testing.assert_allclose(found[k, k], power * float(expected[k, k]), rtol=1e-14)
    large, small = way(1e150 * np.eye(4)), way(1e-150 * np.eye(4))
    assert not np.isfinite(np.linalg.diagonal(large)).any()
    assert not small.any()


@pytest.mark.parametrize("way", WAYS)
def test_nothing_and_what_is_no_number(way: Way) -> None:
    for shape in ((0, 0), (0, 5, 5), (3, 0, 0), (2, 0, 4, 4)):
        assert way(np.zeros(shape)).shape == shape
    x = np.random.default_rng(0).normal(size=(3, 4, 4))
    x[1, 2, 1], x[2] = np.inf, np.nan
    found = way(x)
    np.testing.assert_allclose(found[0], way(x[0]), rtol=1e-14)
    for k in (1, 2):
        assert not np.isfinite(found[k]).all()


@pytest.mark.parametrize("way", WAYS)
@given(st.integers(4, 6), st.sampled_from([(), (3,), (2, 3)]), st.booleans(), st.booleans())
def test_cofactors_know_products_and_transposes(
    way: Way, n: int, lead: tuple[int, ...], turned: bool, apart: bool
) -> None:
    """cof(x y) = cof(x) cof(y), cof(xᵀ) = cof(x)ᵀ, x cof(x)ᵀ = det(x), from operands that lie in
    any way.
    """
    rng = np.random.default_rng(n)
    x, y = (rng.uniform(-1, 1, (*lead, n, n)) for _ in range(2))
    if turned:
        x = x.mT.copy().mT
    if apart:
        x = np.repeat(x, 2, -1)[..., ::2]
    close = functools.partial(np.testing.assert_allclose, rtol=1e-11, atol=1e-11)
    close(way(x @ y), way(x) @ way(y))
    close(way(x.mT), way(x).mT)
    close(x @ way(x).mT, np.linalg.det(x)[..., None, None] * np.eye(n))


@pytest.mark.skipif("llvm" not in table.available(), reason="llvmlite is absent")
def test_indices_are_in_bounds() -> None:
    """Run as Python, by several tasks of which the last has less to do."""
    rng = np.random.default_rng(0)
    for n in (4, 5):
        x = rng.normal(size=(5, n, n))
        x[1] = 0
        y, z = np.empty_like(x), np.empty_like(x)
        room, orders = np.empty((3, 2 * n + cpu.NUMBERS, n)), np.empty((3, cpu.ORDERS, n), np.int64)
        cpu.cofactors.checked(x, y, room, orders, n, 5, 2, 3)
        cpu.cofactors(x, z, room, orders, n, 5, 2, 3)
        np.testing.assert_array_equal(y, z)
        np.testing.assert_allclose(z, matrices.cofactor(x), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", [4, 6, 16])
def test_stacks_have_the_numbers_of_elimination(n: int, dtype: str) -> None:
    """Regular matrices, and beside them what is near singular, too large, or no number."""
    rng = np.random.default_rng(n)
    x = rng.normal(size=(75, n, n)).astype(dtype)
    eps = np.finfo(dtype).eps
    huge = 1e30 if dtype == "float32" else 1e200
    x[1, :, 0] = x[1, :, 1]
    x[2, :, 0] = x[2, :, 1] * (1 + 8 * eps)
    x[3], x[4], x[5] = 0, huge * x[4], x[5] / huge
    x[6, 0, 0], x[7, 1, 2] = np.nan, np.inf
    x[8] *= x.dtype.type(10.0) ** rng.integers(-20, 20, n)
    with np.errstate(all="ignore"):
        found, expected = matrices.cofactor(x), in_elimination(x)
    assert found.dtype == x.dtype
    np.testing.assert_array_equal(np.isfinite(found), np.isfinite(expected))
    most = np.abs(expected).max((-1, -2), keepdims=True)
    ordinary = np.isfinite(most[:, 0, 0])
    away = np.abs(found[ordinary] - expected[ordinary])
    if dtype == "float32":  # rounded once
        assert (away <= np.spacing(most[ordinary]) + 1e-9 * most[ordinary]).all()
    else:
        assert (away <= 64 * eps * most[ordinary]).all()


@pytest.mark.parametrize("n", [4, 5, 7])
def test_stacks_of_double_precision_lose_no_digits(n: int) -> None:
    """Exact arithmetic says so, of matrices on both sides of where elimination begins."""
    rng = np.random.default_rng(n)
    q, r = (np.linalg.qr(rng.normal(size=(80, n, n)))[0] for _ in range(2))
    x = q * np.geomspace(1, 10.0 ** -np.linspace(0, 2, 80), n).T[:, None, :] @ r
    for a, b in zip(matrices.cofactor(x), x, strict=True):
        check(a, exact(b), 64 * float(np.finfo(np.float64).eps))


def in_elimination(x: Any) -> Any:
    """Fewer than a stack at a time."""
    return np.concatenate([matrices.cofactor(part) for part in np.array_split(x, 5)])


def test_gradients_of_determinants() -> None:
    """In one stack regular matrices, singular ones and zeros: eager, mapped and compiled alike."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(700, 5, 5)).astype(np.float32)
    x[3, :, 0] = x[3, :, 1]
    x[5] = 0
    expected = matrices.cofactor(x)
    whole = ft.grad(lambda v: xp.sum(xp.linalg.det(v)))
    for f in (whole, ft.jit(whole), ft.vmap(ft.grad(xp.linalg.det))):
        np.testing.assert_array_equal(np.asarray(f(xp.asarray(x))), expected)
    assert not expected[5].any()
    check(expected[3], exact(x[3]), 1e-6)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(33, 33), (3, 40, 40)])
def test_those_of_more_rows_are_what_elimination_finds(shape: tuple[int, ...], dtype: str) -> None:
    """By inverses where these keep all digits; a singular matrix among others is eliminated."""
    rng = np.random.default_rng(0)
    x = (rng.standard_normal(shape) / (3 * shape[-1] ** 0.5) + np.eye(shape[-1])).astype(dtype)
    if len(shape) > 2:
        x[1, 5] = x[1, 7]
    expected = in_numpy(x)
    scale = np.max(np.abs(expected), (-2, -1), keepdims=True)
    error = np.abs(matrices.cofactor(x) - expected) / scale
    assert np.max(error) <= 20 * np.finfo(dtype).eps
