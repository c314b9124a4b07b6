"""Stacks of small matrices in lanes: LAPACK's numbers, its errors, and no element of others."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import scipy.linalg
from hypothesis import given
from hypothesis import strategies as st

import funct as ft
import funct.array as xp
from funct.errors import LinAlgError
from funct.kernels.cpu.loops import available
from funct.kernels.cpu.small import factors as cpu_factors
from funct.kernels.cpu.small import systems as cpu
from funct.kernels.cpu.small.numbers import LANES
from funct.kernels.linalg import matrices, stacks
from funct.kernels.table import restricted

pytestmark = pytest.mark.skipif(not available(), reason="llvmlite is absent")

CALLS = {
    "det": (stacks.det, np.linalg.det),
    "slogdet": (stacks.slogdet, np.linalg.slogdet),
    "inv": (stacks.inv, np.linalg.inv),
    "cholesky": (stacks.cholesky, np.linalg.cholesky),
}


def drawn(count: int, n: int, m: int, dtype: str, seed: int = 0) -> Any:
    return np.random.default_rng(seed).standard_normal((count, n, m)).astype(dtype)


def numbers(count: int, n: int, m: int, dtype: str, seed: int = 0) -> Any:
    """Complex, where the dtype is."""
    x = drawn(count, n, m, "float64", seed)
    return (x + 1j * drawn(count, n, m, "float64", seed + 7) if dtype[0] == "c" else x).astype(
        dtype
    )


def regular(count: int, n: int, dtype: str, seed: int = 0) -> Any:
    """Hermitian, with eigenvalues of at least 1."""
    x = numbers(count, n, n, "complex128" if dtype[0] == "c" else "float64", seed)
    return (x @ np.conj(x.mT) / n + np.eye(n)).astype(dtype)


def wide(x: Any) -> Any:
    return x.astype(np.result_type(x, np.float64))


def close(found: Any, expected: Any, dtype: str) -> None:
    assert found is not None
    parts = found if isinstance(found, tuple) else (found,)
    wanted = expected if isinstance(expected, tuple) else (expected,)
    for a, b in zip(parts, wanted, strict=True):
        assert a.shape == b.shape
        assert a.dtype == (
            np.dtype(dtype) if b.dtype.kind == "c" else np.zeros(0, dtype).real.dtype
        )
        scale = np.max(np.abs(b), initial=1.0)
        np.testing.assert_allclose(a, b, rtol=0, atol=1000 * np.finfo(dtype).eps * scale)


ALL = ["float32", "float64", "complex64", "complex128"]
ROWS = st.integers(1, stacks.MOST - 1)


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("dtype", ALL)
@given(n=ROWS, count=st.integers(32, 75), seed=st.integers(0, 2**32 - 1))
def test_numbers_are_those_of_lapack(name: str, dtype: str, n: int, count: int, seed: int) -> None:
    """Also behind the last whole vector of matrices."""
    ours, theirs = CALLS[name]
    x = regular(count, n, dtype, seed)
    if name in ("det", "slogdet") and dtype[0] == "c":
        x[:, 0] *= 1j
    expected = theirs(wide(x))
    close(ours(x), tuple(expected) if name == "slogdet" else expected, dtype)


@pytest.mark.parametrize("dtype", ALL)
@given(n=ROWS, m=st.integers(1, 16), seed=st.integers(0, 2**32 - 1))
def test_systems_are_solved(dtype: str, n: int, m: int, seed: int) -> None:
    """Whose pivots lie anywhere."""
    a, b = regular(40, n, dtype, seed), numbers(40, n, m, dtype, seed + 1)
    a = np.ascontiguousarray(a[:, np.random.default_rng(seed).permutation(n)])
    close(stacks.solve(a, b), np.linalg.solve(wide(a), wide(b)), dtype)


@pytest.mark.parametrize("dtype", ALL)
@given(m=st.integers(1, 32), n=st.integers(1, 32), seed=st.integers(0, 2**32), low=st.booleans())
def test_factors_are_those_of_lapack(dtype: str, m: int, n: int, seed: int, low: bool) -> None:
    """Signs and permutations too; of matrices that lack rank, what they are made of is."""
    x = numbers(521 // (m * n) + 9, m, n, dtype, seed)
    double = wide(x)
    for complete in (False, m > n):
        q, r = np.linalg.qr(double, mode="complete" if complete else "reduced")
        found = stacks.qr(x, complete)
        assert found is not None
        size = min(m, n)  # of further columns LAPACK has the same, which depend on x much more
        close((found[0][..., :size], found[1]), (q[..., :size], r), dtype)
        unit = np.conj(wide(found[0]).mT) @ found[0]
        one = np.eye(unit.shape[-1], dtype=unit.dtype)
        close(unit.astype(dtype), np.broadcast_to(one, unit.shape), dtype)
    if low:
        x[::2] = x[::2, :1] * np.ones_like(x[::2])  # rows are alike
        x[1, :, n // 2] = x[2] = 0.0
        q2, r2 = matrices.qr(x, False)  # by LAPACK where what is left of a column is too short
        close(q2 @ r2, x, dtype)
    factors = stacks.lu(x)
    assert factors is not None
    p, lower, upper = factors
    assert [v.shape[1:] for v in factors] == [(m, m), (m, min(m, n)), (min(m, n), n)]
    assert np.array_equal(p.sum(-1), np.ones(p.shape[:-1]))
    assert set(p.flat) <= {0.0, 1.0}
    assert np.array_equal(np.tril(lower), lower)
    assert np.abs(lower).max() <= 2**0.5  # of pivots with the largest parts
    assert p.dtype == x.real.dtype
    assert np.array_equal(np.triu(upper), upper)
    close(p @ lower @ upper, x, dtype)
    expected = scipy.linalg.lu(double) if not low else None
    if expected is not None and dtype in ("float64", "complex128"):
        assert np.array_equal(p, expected[0])


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e200, 1e-200])
def test_columns_beyond_the_range_of_squares_are_left_to_lapack(value: float) -> None:
    """Whose factors are scaled on the way."""
    x = drawn(64, 4, 4, "float64")
    good = stacks.qr(x, False)
    assert good is not None
    x[5, :, 2:] = value * np.arange(1, 9).reshape(4, 2)
    x[5, :, :2] *= 1e-290 if value < 1 else 1.0
    with np.errstate(invalid="ignore", over="ignore"):
        found = [stacks.qr(x, False), matrices.qr(x, False)]
    assert found[0] is None
    for a, b in zip(found[1], good, strict=True):  # type: ignore[arg-type]
        close(np.delete(a, 5, 0), np.delete(b, 5, 0), "float64")


def test_signs_follow_the_order_of_rows() -> None:
    """The determinant of a permutation is its sign."""
    rng = np.random.default_rng(0)
    x = np.stack([np.eye(5)[rng.permutation(5)] for _ in range(64)])
    assert np.array_equal(stacks.det(x), np.linalg.det(x))


@pytest.mark.parametrize("dtype", ["float64", "complex64"])
@pytest.mark.parametrize("name", ["inv", "solve", "cholesky"])
def test_one_singular_matrix_among_others_is_an_error(name: str, dtype: str) -> None:
    """As it is alone."""
    x = regular(100, 4, dtype)
    x[63] = 0.0
    call: Any = getattr(matrices, name)
    with pytest.raises(LinAlgError):
        call(x, x) if name == "solve" else call(x)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_a_singular_matrix_has_the_determinant_0(dtype: str) -> None:
    """And the logarithm -inf, without a warning."""
    x = regular(100, 4, dtype)
    x[7] = np.outer(np.arange(1.0, 5.0), np.arange(1.0, 5.0))
    x[8] = 0.0
    assert np.array_equal(np.asarray(stacks.det(x))[7:9], [0.0, 0.0])
    sign, size = stacks.slogdet(x)  # type: ignore[misc]
    assert np.array_equal(sign[7:9], [0.0, 0.0])
    assert np.array_equal(size[7:9], [-np.inf, -np.inf])


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("scale", [1e-120, 1e120])
def test_products_that_leave_the_range_are_left_to_lapack(scale: float, dtype: str) -> None:
    """Here only on the way: the last rows bring the determinants back."""
    x = regular(50, 4, dtype)
    x[:, :2] *= scale
    x[:, 2:] /= scale
    assert stacks.det(x) is None
    np.testing.assert_allclose(matrices.det(x), np.linalg.det(x), rtol=1e-10)


@pytest.mark.parametrize("dtype", ["float64", "complex64"])
@pytest.mark.parametrize("name", ["det", "inv"])
def test_what_is_not_finite_stays_in_its_matrix(name: str, dtype: str) -> None:
    """NaN is a result as elsewhere."""
    x = regular(64, 3, dtype)
    good = np.asarray(CALLS[name][0](x))
    x[5, 1, 1] = np.nan
    found = np.asarray(CALLS[name][0](x))
    assert np.isnan(found[5]).all()
    assert np.array_equal(np.delete(found, 5, 0), np.delete(good, 5, 0))


@pytest.mark.parametrize("name", CALLS)
def test_bits_depend_on_no_thread_and_no_neighbour(name: str) -> None:
    """Nor on the order in memory."""
    x = regular(5000, 4, "float64")
    call = CALLS[name][0]
    with ft.config.using(threads=1):
        one = call(x)
    with ft.config.using(threads=2):
        two = call(x)
    apart = call(np.asfortranarray(x))
    few = call(x[:37].copy())
    assert all(
        np.array_equal(a[:37], b)
        for fun in (stacks.lu, lambda v: stacks.qr(v, False))
        for a, b in zip(fun(np.asfortranarray(x)), fun(x[:37].copy()), strict=True)  # type: ignore[arg-type]
    )
    for k, first in enumerate(one if name == "slogdet" else (one,)):  # type: ignore[arg-type]
        for other in (two, apart, few):
            v = other[k] if name == "slogdet" else other  # type: ignore[index]
            assert np.array_equal(first[: len(v)], v)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@given(n=st.integers(1, 18), more=st.integers(-3, 3), count=st.integers(0, 3),
       seed=st.integers(0, 2**32 - 1))  # fmt: skip
def test_few_complex_matrices(dtype: str, n: int, more: int, count: int, seed: int) -> None:
    """One alone, and few: LAPACK's factors, whoever finds them."""
    few = [v[0] if not count else v for v in (
        regular(max(count, 1), n, dtype, seed), numbers(max(count, 1), n, 2, dtype, seed),
        numbers(max(count, 1), n, max(n + more, 1), dtype, seed),
    )]  # fmt: skip
    a, b, x = few
    close(matrices.cholesky(a), np.linalg.cholesky(wide(a)), dtype)
    close(np.asarray(matrices.det(a)), np.asarray(np.linalg.det(wide(a))), dtype)
    close(matrices.solve(a, b), np.linalg.solve(wide(a), wide(b)), dtype)
    q, r = matrices.qr(x, False)
    close(q @ r, wide(x), dtype)
    close(np.abs(r), np.abs(np.linalg.qr(wide(x))[1]), dtype)
    assert not np.linalg.diagonal(r).imag.any()
    with pytest.raises(LinAlgError, match="cholesky: x must be positive definite"):
        matrices.cholesky(-a)


@pytest.mark.parametrize("shape", [(5, 4, 4), (64, 49, 49), (4, 4), (0, 4, 4), (64, 0, 0)])
def test_other_stacks_are_left_to_lapack(shape: tuple[int, ...]) -> None:
    """Of few matrices, of large ones, of none."""
    assert stacks.det(np.ones(shape)) is None
    assert stacks.qr(np.ones(shape), False) is None
    assert shape == (5, 4, 4) or stacks.lu(np.ones(shape)) is None
    assert stacks.lu(np.ones((64, 49, 2))) is None
    assert stacks.lu(np.ones((1, 17, 17), np.complex64)) is None
    assert stacks.solve(np.ones((64, 4, 4)), np.ones((1, 4, 4))) is None
    assert stacks.inv(np.ones((64, 32, 32), np.float32)) is None
    with restricted():
        assert stacks.det(np.ones((64, 4, 4))) is None


@pytest.mark.parametrize(("count", "n", "m"), [(9, 1, 1), (11, 3, 2), (8, 2, 4)])
def test_no_index_is_outside(count: int, n: int, m: int) -> None:
    """Run as Python, with every index checked; two tasks."""
    x, b = regular(count, n, "float64"), drawn(count, n, m, "float64")
    part, odd = 8, np.zeros(2, np.int64)
    tasks = -(-count // part)

    def room(rows: int) -> Any:
        return np.empty((tasks, rows, LANES))

    for pairs in (False, True):
        z = numbers(count, n, n, "complex128") if pairs else x
        y: Any = np.empty(count, z.dtype)
        given = room((1 + pairs) * (n + 1) * (n | 1))
        cpu.det.checked(z, y, given, odd, n, count, part, pairs, tasks)
        close(y, np.linalg.det(z), z.dtype.name)
        sides = b.astype(z.dtype)
        y = np.empty_like(sides)
        given = room((1 + pairs) * (n + 2) * (n + m | 1))
        cpu.solve.checked(z, sides, y, given, odd, n, m, count, part, pairs, tasks)
        close(y, np.linalg.solve(z, sides), z.dtype.name)
        z = regular(count, n, z.dtype.name)
        y, given = np.empty_like(z), room((1 + pairs) * n * n)
        cpu.cholesky.checked(z, y, given, odd, n, count, part, pairs, tasks)
        close(y, np.linalg.cholesky(z), z.dtype.name)
    assert not odd.any()
    y = np.empty_like(x)
    near = np.ones(count, np.int64)
    cpu.cofactors.checked(x, y, room((n + 1) * (2 * n + 1)), near, n, count, part, 1e4, tasks)
    close(y, np.linalg.det(x)[:, None, None] * np.linalg.inv(x).mT, "float64")
    assert not odd.any()
    assert not near.any()


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("shape", [(1, 1), (3, 3), (2, 5), (16, 9), (1, 7, 7), (9, 32, 32)])
def test_factors_of_few_are_those_of_scipy(shape: tuple[int, ...], dtype: str) -> None:
    """Of one matrix too, and of more rows where there are several."""
    x = numbers(math.prod(shape[:-2]), *shape[-2:], dtype).reshape(shape)
    found, expected = matrices.lu(x), scipy.linalg.lu(wide(x))
    assert stacks.lu(x if x.ndim > 2 else x[None]) is not None
    assert [v.dtype for v in found] == [x.real.dtype, x.dtype, x.dtype]
    for v, w in zip(found, expected, strict=True):
        assert v.shape == w.shape
        assert np.max(np.abs(v - w)) <= 300 * np.finfo(dtype).eps * np.max(np.abs(w))


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("shape", [(2, 2), (4, 3), (16, 16), (17, 17), (3, 4, 4), (50, 5, 5)])
def test_programs_take_complex_matrices_apart_as_eager_execution(
    shape: tuple[int, ...], dtype: str
) -> None:
    """Of equal pivots both choose the same one."""
    rng = np.random.default_rng(0)
    x = (rng.integers(-2, 3, shape) + 1j * rng.integers(-2, 3, shape)).astype(dtype)
    both = matrices.lu(x), ft.jit(xp.linalg.lu)(xp.asarray(x))
    tolerance = 50 * float(np.finfo(dtype).eps)
    for v, w in zip(*both, strict=True):
        np.testing.assert_allclose(np.asarray(w), v, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("pairs", [False, True])
@pytest.mark.parametrize(("m", "n"), [(1, 1), (3, 3), (2, 5), (5, 2)])
def test_no_index_of_factors_is_outside(m: int, n: int, pairs: bool) -> None:
    """L and U, Q and R, run as Python with every index checked; two tasks."""
    count, part, tasks, k, parts = 11, 8, 2, min(m, n), 1 + pairs
    dtype = "complex128" if pairs else "float64"
    x, odd = numbers(count, m, n, dtype), np.zeros(tasks, np.int64)

    def room(rows: int) -> Any:
        return np.empty((tasks, rows * parts, LANES))

    p = np.empty((count, m, m))
    low, up = (np.empty((count, *s), dtype) for s in ((m, k), (k, n)))
    sizes = m, n, count, part, pairs, tasks
    cpu_factors.lu.checked(x, p, low, up, room(m * (n + 1) + 1), odd, *sizes)
    close(p @ low @ up, x, dtype)
    for columns in (k, m):
        q, r = np.empty((count, m, columns), dtype), np.empty((count, columns, n), dtype)
        given = room(m * (n + columns) + n)
        cpu_factors.qr.checked(x, q, r, given, odd, m, n, columns, *sizes[2:])
        close(q @ r, x, dtype)
    assert not odd.any()
