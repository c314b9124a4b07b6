"""Eigenvalues and singular values of stacks of small matrices in lanes, and their vectors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import funct as ft
from funct.kernels.cpu.loops import available
from funct.kernels.cpu.small import eigenvalues as cpu_eigenvalues
from funct.kernels.cpu.small import singular as cpu_singular
from funct.kernels.cpu.small.numbers import LANES
from funct.kernels.linalg import matrices, stacks
from funct.kernels.table import restricted
from tests.kernels.test_stacks import close, drawn, regular

pytestmark = pytest.mark.skipif(not available(), reason="llvmlite is absent")


def hermitian(count: int, n: int, dtype: str, seed: int = 0) -> Any:
    """Among them those whose eigenvalues are equal, in full and in part, a diagonal one, one that
    falls into parts, and rows and columns far apart.
    """
    re, im = drawn(count, n, n, "float64", seed), drawn(count, n, n, "float64", seed + 1)
    x = (re + 1j * im).astype(dtype)
    x = x + np.conj(x.mT)
    x[1], x[2], x[3] = 0.0, np.eye(n), 1.0
    x[4] = np.diag(np.arange(n)[::-1])
    x[5] = x[5][:, :1] @ np.conj(x[5][:, :1]).T
    x[6][: n // 2, n // 2 :] = x[6][n // 2 :, : n // 2] = 0.0
    x[7] *= 10.0 ** -(np.arange(n)[:, None] + np.arange(n))
    return x


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@given(n=st.integers(1, 20), count=st.integers(32, 75), seed=st.integers(0, 2**31))
def test_eigenvectors_span_the_matrix(dtype: str, n: int, count: int, seed: int) -> None:
    """Of Hermitian parts, whatever else is in x; values are LAPACK's, in ascending order."""
    h = hermitian(count, n, dtype, seed)
    skew = drawn(count, n, n, "float32", seed + 2)
    found = stacks.eigh(h + (skew - skew.mT).astype(dtype))
    assert found is not None
    w, v = found
    assert (w.dtype, v.dtype) == (h.real.dtype, h.dtype)
    expected = np.linalg.eigvalsh(h.astype(np.complex128))
    scale = np.max(np.abs(expected), -1, initial=1.0)[:, None]
    eps = np.finfo(dtype).eps
    assert np.all(np.abs(w - expected) <= 8 * n * eps * scale)
    assert np.all(np.diff(w) >= 0)
    assert np.array_equal(stacks.eigvalsh(h + (skew - skew.mT).astype(dtype)), w)
    assert np.all(np.abs(np.conj(v.mT) @ v - np.eye(n)) <= 8 * n * eps)
    assert np.all(np.abs(v * w[:, None] @ np.conj(v.mT) - h) <= 8 * n * eps * scale[..., None])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@given(n=st.integers(1, 24), count=st.integers(8, 75), seed=st.integers(0, 2**31))
def test_eigenvalues_of_real_matrices_are_those_of_lapack(
    dtype: str, n: int, count: int, seed: int
) -> None:
    """Of symmetric parts, and in ascending order."""
    x = hermitian(count, n, "complex128", seed).real.astype(dtype)
    skew = drawn(count, n, n, dtype, seed + 2)
    w = stacks.eigvalsh(x + (skew - skew.mT))
    assert w is not None
    expected = np.linalg.eigvalsh(x.astype(np.float64))
    scale = np.max(np.abs(expected), -1, initial=1.0)[:, None]
    assert w.dtype == x.dtype
    assert np.all(np.abs(w - expected) <= 8 * n * np.finfo(dtype).eps * scale)
    assert np.all(np.diff(w) >= 0)


def test_eigenvectors_depend_on_no_thread_and_no_neighbour() -> None:
    """A matrix that is done waits for others, which need more steps."""
    x = hermitian(3000, 5, "complex128")
    with ft.config.using(threads=1):
        one = stacks.eigh(x)
    for other in (stacks.eigh(x), stacks.eigh(x[:37]), stacks.eigh(np.asfortranarray(x))):
        for a, b in zip(one or (), other or (), strict=True):
            assert np.array_equal(a[: len(b)], b)


def complex_stack(count: int, m: int, n: int, dtype: str, seed: int = 0) -> Any:
    """Among them zeros, ranks below the full, equal singular values, and columns far apart."""
    x = drawn(count, m, n, "float64", seed) + 1j * drawn(count, m, n, "float64", seed + 1)
    x[1], x[2], x[3], x[4] = 0.0, np.eye(m, n), 1.0, -1j * np.eye(m, n)[::-1]
    x[5] = x[5][:, :1] @ x[6][:1]
    x[7][:, : n // 2] = 0.0
    x[8] = x[8] * 10.0 ** -np.arange(n)
    x[9] = x[9] * 10.0 ** np.arange(m)[:, None]
    x[10][-1] = x[10][0]
    x[11] = x[11] * (np.arange(n) == 0) * 1e-30
    return x.astype(dtype)


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@given(
    m=st.integers(1, 16), n=st.integers(1, 16), seed=st.integers(0, 2**31), odd=st.integers(0, 9)
)
def test_singular_vectors_span_the_matrix(
    dtype: str, full: bool, m: int, n: int, seed: int, odd: int
) -> None:
    """Values are LAPACK's and descend; bases are orthonormal, also of what vanishes."""
    x = complex_stack(32 + odd, m, n, dtype, seed)
    found = stacks.svd(x, full)
    assert found is not None
    u, s, vh = found
    wanted = np.linalg.svd(x.astype(np.complex128), full)
    for a, b in zip(found, wanted, strict=True):
        assert a.shape == b.shape
    assert (u.dtype, s.dtype, vh.dtype) == (x.dtype, x.real.dtype, x.dtype)
    k, eps = min(m, n), np.finfo(dtype).eps * 8 * max(m, n)
    scale = wanted.S.max(-1, keepdims=True)
    assert np.all(np.abs(s - wanted.S) <= eps * scale)
    assert np.all(np.diff(s) <= 0)
    assert np.all(s >= 0)
    assert np.array_equal(stacks.svdvals(x), s)
    wide_u, wide_vh = u.astype(np.complex128), vh.astype(np.complex128)
    assert np.all(np.abs(np.conj(wide_u.mT) @ wide_u - np.eye(u.shape[-1])) <= eps)
    assert np.all(np.abs(wide_vh @ np.conj(wide_vh.mT) - np.eye(vh.shape[-2])) <= eps)
    product = wide_u[..., :k] * s[..., None, :] @ wide_vh[..., :k, :]
    assert np.all(np.abs(product - x) <= eps * scale[..., None])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@given(
    m=st.integers(1, 20), n=st.integers(1, 20), seed=st.integers(0, 2**31), odd=st.integers(0, 9)
)
def test_singular_values_of_real_matrices_are_those_of_lapack(
    dtype: str, m: int, n: int, seed: int, odd: int
) -> None:
    """In descending order."""
    x = complex_stack(32 + odd, m, n, "complex128", seed).real.astype(dtype)
    s = stacks.svdvals(x)
    assert s is not None
    expected = np.linalg.svdvals(x.astype(np.float64))
    scale = expected.max(-1, keepdims=True)
    assert s.dtype == x.dtype
    assert np.all(np.abs(s - expected) <= 8 * max(m, n) * np.finfo(dtype).eps * scale)
    assert np.all(np.diff(s) <= 0)


def test_singular_values_depend_on_no_thread_and_no_neighbour() -> None:
    """A matrix that is done waits for others, which need more sweeps."""
    x = complex_stack(3000, 5, 7, "complex128")
    for y in (x, np.ascontiguousarray(x.mT)):
        with ft.config.using(threads=1):
            one = stacks.svd(y, True)
        for other in (stacks.svd(y, True), stacks.svd(y[:37], True)):
            for a, b in zip(one or (), other or (), strict=True):
                assert a[: len(b)].tobytes() == b.tobytes()


def test_stacks_whose_singular_values_are_left_to_lapack() -> None:
    """Real ones, few, large, empty, and those with elements whose squares leave the range."""
    x = complex_stack(40, 3, 4, "complex128")
    assert stacks.svd(x, False) is not None
    for y in (x.real.copy(), x[:31], x[0], x[:, :0], x[:0], np.tile(x, (1, 6, 1))):
        assert stacks.svd(y, False) is None
    for scale in (1e-200, 1e200, np.nan):
        y = x.copy()
        y[7] *= scale
        assert stacks.svd(y, False) is None
    with restricted():
        assert stacks.svd(x, False) is None


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_squares_that_leave_the_range_are_left_to_lapack(scale: float) -> None:
    """One matrix is enough."""
    x = hermitian(50, 4, "complex128")
    x[7] *= scale
    assert stacks.eigh(x) is None
    assert stacks.eigvalsh(x.real.copy()) is None
    np.testing.assert_allclose(matrices.eigh(x)[0], np.linalg.eigvalsh(x), rtol=1e-12, atol=1e-13)
    x[7] = np.nan
    assert stacks.eigh(x) is None


@pytest.mark.parametrize(("count", "n", "m"), [(9, 1, 1), (11, 3, 2), (8, 2, 4)])
def test_no_index_of_spectra_is_outside(count: int, n: int, m: int) -> None:
    """Run as Python, with every index checked; two tasks."""
    x, part, tasks = regular(count, n, "float64"), 8, -(-count // 8)
    odd = np.zeros(tasks, np.int64)

    def room(rows: int) -> Any:
        return np.empty((tasks, rows, LANES))

    z = x + 1j * (x - x.mT)
    w, v = np.empty((count, n)), np.empty(z.shape, z.dtype)
    spare = room(2 * n * (2 * (n | 1) + 4))
    cpu_eigenvalues.eigh.checked(z, w, v, spare, odd, n, count, part, 1e-16, True, True, tasks)
    close(w, np.linalg.eigvalsh(z), "float64")
    spare = room(n * (2 * (n | 1) + 4))
    cpu_eigenvalues.eigh.checked(x, w, x, spare, odd, n, count, part, 1e-16, False, False, tasks)
    close(w, np.linalg.eigvalsh(x), "float64")
    for tall, columns in ((True, n), (True, n + m), (False, n), (False, n + m)):
        rows = n + m
        y = complex_stack(12, rows, n, "complex128")[-count:]
        y = y if tall else np.ascontiguousarray(y.mT)
        parts = np.empty((count, n)), np.empty((count, rows, columns), "D"), np.empty(z.shape, "D")
        spare = room(2 * (rows * columns + n * n + rows) + 3 * n)
        cpu_singular.svd.checked(
            y, *parts, spare, odd, rows, n, columns, count, part, 1e-14, tall, True, True, tasks
        )
        close(parts[0], np.linalg.svdvals(y), "float64")
    assert not odd.any()
