"""One matrix, or few, by vectors of rows: LAPACK's numbers, its errors, no element of others."""

from __future__ import annotations

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
from funct.kernels.cpu.small import row_factors as cpu_factors
from funct.kernels.cpu.small import row_systems as cpu_systems
from funct.kernels.cpu.small import row_triangles as cpu_triangles
from funct.kernels.linalg import few, matrices
from funct.kernels.table import restricted

pytestmark = pytest.mark.skipif(not available(), reason="llvmlite is absent")

ROWS = st.one_of(st.integers(1, 20), st.sampled_from([31, 32, 33, 48, 63, 64, 65, 100]))
STACKS = st.sampled_from([(), (), (1,), (2,), (3, 2)])
SEEDS = st.integers(0, 2**32 - 1)
NAMES = ("det", "slogdet", "inv", "cholesky")


def numbers(shape: tuple[int, ...], dtype: str, seed: int) -> Any:
    """Regular ones, if square, whose pivots lie anywhere; not always dense."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(shape)
    if shape[-1] == shape[-2]:
        x = (x / (3 * shape[-1] ** 0.5) + np.eye(shape[-1]))[..., rng.permutation(shape[-1]), :]
    x = x.astype(dtype)
    return x if seed % 3 else np.asfortranarray(x)


def definite(shape: tuple[int, ...], dtype: str, seed: int) -> Any:
    x = np.random.default_rng(seed).standard_normal(shape)
    return (x @ x.mT / shape[-1] + np.eye(shape[-1])).astype(dtype)


def close(found: Any, expected: Any, dtype: str, rows: int) -> None:
    parts = found if isinstance(found, tuple) else (found,)
    wanted = expected if isinstance(expected, tuple) else (expected,)
    for a, b in zip(parts, wanted, strict=True):
        assert a.shape == b.shape
        assert a.dtype == dtype
        scale = np.max(np.abs(b), initial=1.0)
        atol = 20 * max(rows, 5) * np.finfo(dtype).eps * scale
        np.testing.assert_allclose(a, b, rtol=0, atol=atol)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@given(n=ROWS, lead=STACKS, seed=SEEDS)
def test_numbers_are_those_of_lapack(
    name: str, dtype: str, n: int, lead: tuple[int, ...], seed: int
) -> None:
    """Of matrices in any order in memory."""
    make = definite if name == "cholesky" else numbers
    x = make((*lead, n, n), dtype, seed)
    expected: Any = getattr(np.linalg, name)(x.astype(np.float64))
    found: Any = getattr(few, name)(x)
    close(found, tuple(expected) if name == "slogdet" else expected, dtype, n)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@given(n=ROWS, m=st.integers(1, 20), lead=STACKS, shared=st.booleans(), seed=SEEDS)
def test_systems_are_solved(
    dtype: str, n: int, m: int, lead: tuple[int, ...], shared: bool, seed: int
) -> None:
    """Also where all matrices have the same right sides."""
    a = numbers((*lead, n, n), dtype, seed)
    b = np.random.default_rng(seed).standard_normal((*(() if shared else lead), n, m)).astype(dtype)
    found = few.solve(a, b)
    if m > max(n, 16):
        assert found is None
        found = matrices.solve(a, b)
    close(found, np.linalg.solve(a.astype(np.float64), b), dtype, n)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@given(m=ROWS, n=ROWS, lead=STACKS, complete=st.booleans(), seed=SEEDS)
def test_factors_are_those_of_lapack(
    dtype: str, m: int, n: int, lead: tuple[int, ...], complete: bool, seed: int
) -> None:
    """Signs and permutations too."""
    x = numbers((*lead, m, n), dtype, seed)
    double, size = x.astype(np.float64), min(m, n)
    q, r = np.linalg.qr(double, mode="complete" if complete else "reduced")
    found: Any = few.qr(x, complete)
    assert [v.shape for v in found] == [q.shape, r.shape]
    assert np.array_equal(np.triu(found[1]), found[1])
    eps = 40 * max(m, n, 5) * np.finfo(dtype).eps
    assert np.max(np.abs(found[0] @ found[1] - x)) <= eps * np.max(np.abs(x))
    assert np.max(np.abs(found[0].mT @ found[0] - np.eye(q.shape[-1]))) <= eps
    diagonals = [np.diagonal(v, axis1=-2, axis2=-1) for v in (found[1], r)]
    near = np.abs(diagonals[1]) > 1e-3 * np.max(np.abs(x))
    assert np.array_equal(np.sign(diagonals[0])[near], np.sign(diagonals[1])[near])
    square = x[..., :size, :size]
    p, low, up = few.lu(square)  # type: ignore[misc]
    close(p @ low @ up, square.astype(np.float64), dtype, size)
    assert np.array_equal(np.tril(low), low)
    assert np.max(np.abs(low)) == 1.0
    assert np.array_equal(np.triu(up), up)
    if dtype == "float64":
        assert np.array_equal(p, scipy.linalg.lu(square)[0])


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@given(m=ROWS, n=ROWS, lead=STACKS, complete=st.booleans(), seed=SEEDS)
def test_complex_factors_are_those_of_lapack(
    dtype: str, m: int, n: int, lead: tuple[int, ...], complete: bool, seed: int
) -> None:
    """The diagonal is real, with LAPACK's signs."""
    parts = [numbers((*lead, m, n), "float64", s).astype(dtype) for s in (seed, seed // 2 + 1)]
    x = parts[0] + 1j * parts[1]
    q, r = np.linalg.qr(x.astype(np.complex128), mode="complete" if complete else "reduced")
    found: Any = few.qr(x, complete)
    if complete and m > n:  # columns beyond those of x have a phase
        assert found is None
        return
    assert [(v.shape, v.dtype) for v in found] == [(q.shape, dtype), (r.shape, dtype)]
    assert np.array_equal(np.triu(found[1]), found[1])
    assert not np.linalg.diagonal(found[1]).imag.any()
    eps = 40 * max(m, n, 5) * np.finfo(dtype).eps
    assert np.max(np.abs(found[0] @ found[1] - x)) <= eps * np.max(np.abs(x))
    unit = np.conj(found[0].mT) @ found[0]
    assert np.max(np.abs(unit - np.eye(q.shape[-1]))) <= eps
    diagonals = [np.linalg.diagonal(v).real for v in (found[1], r)]
    near = np.abs(diagonals[1]) > 1e-3 * np.max(np.abs(x))
    assert np.array_equal(np.sign(diagonals[0])[near], np.sign(diagonals[1])[near])
    for a, b in zip(matrices.qr(x, complete), found, strict=True):
        assert np.array_equal(a, b)


def test_q_of_columns_that_are_ended_is_what_lapack_makes() -> None:
    """Of zeros, and of what is triangular already; of vectors of zeros too."""
    kinds: list[Any] = [
        np.zeros((4, 3)), np.triu(np.ones((3, 5))), np.eye(3)[:, ::-1], np.zeros((3, 1)),
    ]  # fmt: skip
    for x in [*kinds, *(k * (1 + 0j) for k in kinds), *(k * (0.6 - 0.8j) for k in kinds)]:
        expected = np.linalg.qr(x)
        found: Any = few.qr(x, False)
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_allclose(a, b, atol=1e-15)


@pytest.mark.parametrize("unit", [1.0, 1.0 + 0j, 1j])
@pytest.mark.parametrize("value", [np.nan, np.inf, 1e200, 1e-200])
def test_columns_beyond_the_range_of_squares_are_left_to_lapack(
    value: float, unit: complex
) -> None:
    """Whose factors are scaled on the way."""
    x = unit * np.random.default_rng(0).standard_normal((5, 5)) * 1e-290
    x[:, 2] = value * np.arange(1.0, 6.0)
    with np.errstate(invalid="ignore", over="ignore"):
        expected = np.linalg.qr(x)
        found = matrices.qr(x, False)
    assert few.qr(x, False) is None
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-13, atol=0)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@given(
    n=ROWS, m=st.integers(1, 40), lead=STACKS, lower=st.booleans(), turned=st.booleans(),
    shared=st.booleans(), seed=SEEDS,
)  # fmt: skip
def test_triangles_are_solved(
    dtype: str, n: int, m: int, lead: tuple[int, ...], lower: bool, turned: bool, shared: bool,
    seed: int,
) -> None:  # fmt: skip
    """What stands in the other triangle is not read."""
    rng = np.random.default_rng(seed)
    shapes = (*lead, n, n), (*(() if shared else lead), n, m)
    a, b = (np.asarray(rng.standard_normal(s)) for s in shapes)
    if np.dtype(dtype).kind == "c":
        a, b = (v + 1j * rng.standard_normal(v.shape) for v in (a, b))
    a, b = (a / n + 2 * np.eye(n)).astype(dtype), b.astype(dtype)
    triangle = (np.tril if lower else np.triu)(a).astype(np.result_type(dtype, np.float64))
    a += (np.triu if lower else np.tril)(np.full_like(a, np.nan), 1 if lower else -1)
    a = np.ascontiguousarray(a.mT).mT if turned else a
    close(few.solve_triangular(a, b, lower), np.linalg.solve(triangle, b), dtype, n)
    a[..., n // 2, n // 2] = 0.0
    with pytest.raises(np.linalg.LinAlgError):
        few.solve_triangular(a, b, lower)


@pytest.mark.parametrize("size", [1e-30, 1e30])
def test_numbers_on_diagonals_are_far_from_1(size: float) -> None:
    """Their squares are beyond what single precision holds."""
    a = (np.eye(3) * size * (3 + 4j)).astype(np.complex64)
    found: Any = few.solve_triangular(a, np.full((3, 2), size, np.complex64), True)
    np.testing.assert_allclose(found, (3 - 4j) / 25, rtol=1e-6)


@pytest.mark.parametrize("n", [1, 5, 40])
@pytest.mark.parametrize("name", ["inv", "solve", "cholesky"])
def test_a_singular_matrix_is_an_error(name: str, n: int) -> None:
    """Or one that is not definite."""
    call: Any = getattr(matrices, name)
    for x in (np.zeros((n, n)), np.ones((n, n)) - (n == 1)):
        with pytest.raises(LinAlgError):
            call(x, x) if name == "solve" else call(x)


@pytest.mark.parametrize("n", [3, 40])
def test_determinants_have_the_sign_of_zero_and_of_permutations(n: int) -> None:
    """Their logarithms too, without a warning."""
    rng = np.random.default_rng(0)
    for _ in range(4):
        x = np.eye(n)[rng.permutation(n)]
        assert few.det(x) == np.linalg.det(x)
        assert np.array_equal(np.asarray(few.slogdet(x)), [np.linalg.det(x), 0.0])
    assert few.det(np.zeros((n, n))) == 0.0
    assert np.array_equal(np.asarray(few.slogdet(np.zeros((n, n)))), [0.0, -np.inf])


@pytest.mark.parametrize("scale", [1e-120, 1e120])
def test_products_that_leave_the_range_come_back(scale: float) -> None:
    """They leave it on the way: the last rows bring the determinants back, or not."""
    x = numbers((4, 4), "float64", 1)
    x[:2] *= scale
    expected = np.linalg.det(x / np.asarray([[scale], [scale], [1], [1]]))
    x[2:] /= scale
    np.testing.assert_allclose(np.asarray(few.det(x)), expected, rtol=1e-10)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(few.det(x * scale), np.linalg.det(x * scale))


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
def test_calls_that_came_before_have_the_same_bits(dtype: str) -> None:
    """And errors; right sides are those of each system, of all of them, or a vector."""
    for prepared in few.ALREADY.values():
        prepared.load()
    for shape in [(1, 1), (3, 3), (9, 9), (32, 32), (33, 33), (2, 5, 5), (0, 3, 3), (90, 4, 4)]:
        x = definite(shape, dtype, 0)
        n = shape[-1]
        right = [np.ones((*shape[:-1], 2), dtype), np.ones((n, 3), dtype), np.ones(n, dtype)]
        calls: list[Any] = [matrices.inv, matrices.det, matrices.cholesky]
        calls += [lambda v, b=b: matrices.solve(v, b) for b in right[:2]]
        calls += [lambda v: xp.linalg.solve(xp.asarray(v), xp.asarray(right[2]))]  # noqa: B023
        calls += [lambda v, b=b: matrices.solve_triangular(v, b, True) for b in right[:2]]
        calls += [lambda v, b=right[0]: matrices.solve_triangular(v.mT, b, False)]
        for call in calls:
            first = np.asarray(call(x))
            for _ in range(3):
                assert np.array_equal(np.asarray(call(x)), first)
                assert np.array_equal(np.asarray(call(np.asfortranarray(x))), first)
            if x.size and call is not calls[1]:
                for _ in range(3):
                    with pytest.raises(LinAlgError):
                        call(np.zeros_like(x))


def test_what_is_not_finite_is_a_result() -> None:
    """As elsewhere."""
    x = numbers((3, 4, 4), "float64", 1)
    good = np.asarray(few.det(x))
    x[1, 2, 2] = np.nan
    assert np.isnan(np.asarray(few.det(x))[1])
    assert np.array_equal(np.asarray(few.det(x))[[0, 2]], good[[0, 2]])
    assert np.isnan(matrices.inv(x)[1]).all()


def test_bits_depend_on_no_thread_and_no_neighbour() -> None:
    """Nor on the order in memory."""
    x = definite((3, 130, 130), "float64", 0)
    calls: list[Any] = [
        few.det, few.inv, few.cholesky, lambda v: few.solve(v, v[..., :3]),
        lambda v: np.stack(few.lu(v)),  # type: ignore[arg-type]
        lambda v: np.stack(few.qr(v[..., :99, :99], False)),  # type: ignore[arg-type]
        lambda v: np.stack(few.qr(v[..., :99, :99] * (1 + 1j * v[..., 1:100, :1]), True)),  # type: ignore[arg-type]
    ]  # fmt: skip
    for call in calls:
        with ft.config.using(threads=1):
            one = call(x)
        with ft.config.using(threads=2):
            two = call(np.asfortranarray(x))
        assert np.array_equal(one, two)
        assert np.array_equal(one[..., 1, :, :] if one.ndim > 1 else one[1], call(x[1]))


@pytest.mark.parametrize("shape", [(301, 301), (0, 4, 4), (0, 0), (2, 0, 0)])
def test_other_matrices_are_left_to_lapack(shape: tuple[int, ...]) -> None:
    """Large ones, and none; complex ones."""
    assert few.det(np.ones(shape)) is None
    assert few.qr(np.ones(shape), False) is None
    assert few.inv(np.ones((4, 4), np.complex64)) is None
    assert few.solve(np.ones((4, 4)), np.ones((4, 0))) is None
    with restricted():
        assert few.det(np.ones((4, 4))) is None


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("n", "m"), [(1, 1), (3, 2), (9, 3), (17, 17)])
def test_no_index_is_outside(n: int, m: int, dtype: str) -> None:
    """Run as Python, with every index checked; two tasks."""
    x, b = definite((3, n, n), dtype, 1), numbers((3, n, m + 0), dtype, 1)
    b = np.ascontiguousarray(b)
    odd, wide, width = np.ones(2, np.int64), np.dtype(dtype), 64 // np.dtype(dtype).itemsize
    whole = -(-n // width) * width
    beside = -(-max(n, m) // width) * width
    apart = whole + beside
    room: Any = np.empty((2, n + 1, apart), wide)
    rest, whole_stack = (3, 2), (3, 3, 0)
    y, z, places = np.empty(3, dtype), np.empty(3, dtype), np.empty((2, n), np.int64)
    cpu_systems.det.checked(x, y, room, odd, n, apart, *rest, 2)
    double = x.astype(np.float64)
    close(y, np.linalg.det(double), dtype, n)
    cpu_systems.slogdet.checked(x, y, z, room, odd, n, apart, 0, *rest, 2)
    close((y, z), tuple(np.linalg.slogdet(double)), dtype, n)
    y = np.empty_like(b)
    cpu_systems.solve.checked(x, b, y, room, odd, n, m, n * m, apart, *rest, 2)
    close(y, np.linalg.solve(double, b), dtype, n)
    y = np.empty_like(x)
    cpu_systems.inv.checked(x, y, places, room, odd, n, apart, *rest, 2)
    close(y, np.linalg.inv(double), dtype, n)
    definite_too: Any = cpu_factors.cholesky, np.linalg.cholesky
    for call, found in ((cpu_systems.det, np.linalg.det), definite_too):
        y = np.empty_like(found(x))
        call.alone().checked(x, y, room, odd[:1], n, apart, *whole_stack)
        close(y, found(double), dtype, n)
    y, z = np.empty_like(x), np.empty_like(b)
    cpu_systems.inv.alone().checked(x, y, places, room, odd[:1], n, apart, *whole_stack)
    cpu_systems.solve.alone().checked(x, b, z, room, odd[:1], n, m, n * m, apart, *whole_stack)
    close((y, z), (np.linalg.inv(double), np.linalg.solve(double, b)), dtype, n)
    p, low, up = np.empty_like(x), np.empty_like(x), np.empty_like(x)
    cpu_systems.lu.checked(x, p, low, up, places, room, odd, n, apart, *rest, 2)
    close(p @ low @ up, double, dtype, n)
    cpu_factors.cholesky.checked(x, y, room, odd, n, apart, *rest, 2)
    close(y, np.linalg.cholesky(double), dtype, n)
    for columns in (min(n, m), n):
        q, r = np.empty((3, n, columns), dtype), np.empty((3, columns, m), dtype)
        room = np.empty((2, n * 2 * apart + -(-2 * n // width) * width), wide)
        cpu_factors.qr.checked(b, q, r, room, odd, n, m, columns, apart, apart, False, 0, *rest, 2)
        close(q @ r, b.astype(np.float64), dtype, n)
        both = np.empty(q.size + r.size, dtype)
        cpu_factors.qr.alone().checked(
            b, both, both, room, odd[:1], n, m, columns, apart, apart, False, q.size, *whole_stack
        )
        assert np.array_equal(both, np.concatenate([q.ravel(), r.ravel()]))
        c = np.ascontiguousarray(b + 1j * b[:, ::-1, ::-1])
        q, r = np.empty(q.shape, c.dtype), np.empty(r.shape, c.dtype)
        room = np.empty((2, n * 4 * apart + -(-4 * n // width) * width), wide)
        given_too = (v.view(dtype).ravel() for v in (c, q, r))
        sizes = n, m, columns, 2 * apart, 2 * apart, True, 0
        cpu_factors.qr.checked(*given_too, room, odd, *sizes, *rest, 2)
        np.testing.assert_allclose(q @ r, c, rtol=0, atol=float(99 * n * np.finfo(dtype).eps))
    for lower in (False, True):
        y, z = np.empty_like(b), np.empty_like(b)
        expected = np.linalg.solve((np.tril if lower else np.triu)(double), b)
        given = x, b, y, np.empty(4 * (n * width + whole), wide), odd, n, m, n * m, 1, 3, lower
        cpu_triangles.solve_triangular.checked(*given, False, 2, m, 2)
        given = x, b, z, given[3], odd[:1], *given[5:]
        cpu_triangles.solve_triangular.alone().checked(*given, False, 3, m, 0)
        close((y, z), (expected, expected), dtype, n)
    both = np.empty((2, 3), dtype)
    cpu_systems.slogdet.alone().checked(x, both, both, room, odd[:1], n, apart, 3, *whole_stack)
    close(tuple(both), tuple(np.linalg.slogdet(double)), dtype, n)
    assert not odd.any()
