"""Matrix kernels: what NumPy alone does needs no SciPy; errors are typed; stacks are loops."""

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from funct.device import Host, machine_code
from funct.device.host import vector_bytes
from funct.errors import LinAlgError
from funct.kernels import table
from funct.kernels.cpu import triangular
from funct.kernels.cpu.small import hermitian as cpu
from funct.kernels.linalg import matrices
from funct.settings import config


def test_scipy_waits_for_what_numpy_lacks() -> None:
    """Decompositions of NumPy's import no SciPy; the exponential does."""
    code = """
import sys
import numpy
from funct.kernels.linalg import matrices
eye = numpy.eye(2)
for name in ("cholesky", "cofactor", "det", "eig", "eigh", "inv", "slogdet", "svdvals"):
    getattr(matrices, name)(eye)
matrices.solve(eye, eye)
assert "scipy" not in sys.modules
matrices.expm(eye)
assert "scipy.linalg" in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("kind", ["float32", "float64", "complex64", "complex128"])
def test_exponentials_of_many_are_those_of_each(kind: str) -> None:
    """Small, squared never or often, of a large norm that means nothing, and not finite; those of
    Hermitian matrices have the exponentials of their eigenvalues, to what an error of the
    elements' last place does to them.
    """
    rng = np.random.default_rng(0)
    size = np.asarray([0.0, 1e-3, 0.3, 1.0, 2.0, 5.0, 9.0, 30.0])
    for n in (1, 3, 5, 16):
        x = rng.normal(size=(8, 3, n, n)) + 1j * rng.normal(size=(8, 3, n, n))
        x = x / np.linalg.norm(x, 1, (-2, -1))[..., None, None] * size[:, None, None, None]
        x = (x if kind[0] == "c" else x.real).astype(kind)
        x = (x + np.conj(np.swapaxes(x, -1, -2))) / 2
        w, v = np.linalg.eigh(x.astype(np.result_type(x, np.float64)))
        expected = (v * np.exp(w)[..., None, :]) @ np.conj(np.swapaxes(v, -1, -2))
        found = matrices.expm(x)
        near = 20 * np.finfo(kind).eps * (1 + size[:, None]) * np.exp(w).max(-1)
        assert found.dtype == x.dtype
        assert (np.abs(found - expected).max((-2, -1)) <= near).all()
    x = np.zeros((20, 2, 2), kind)
    x[:, 0, 1], x[3, 1, 1] = 1e6, np.nan
    found = matrices.expm(x)
    assert np.isnan(found[3]).any()
    np.testing.assert_allclose(found[4:], np.broadcast_to([[1, 1e6], [0, 1]], (16, 2, 2)), 1e-6)


@pytest.mark.parametrize("kind", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("lower", [True, False])
def test_triangular_solve_reads_one_triangle(kind: str, lower: bool) -> None:
    """Stacks broadcast, any memory order; the other triangle may hold anything."""
    rng = np.random.default_rng(0)
    a = rng.normal(size=(2, 1, 3, 3)).astype(kind) + 4 * np.eye(3, dtype=kind)
    b = rng.normal(size=(4, 3, 2)).astype(kind)
    triangle = np.tril(a) if lower else np.triu(a)
    a = np.where(triangle == 0, np.asarray(np.nan, kind), a)
    expected = np.linalg.solve(triangle, np.broadcast_to(b, (2, 4, 3, 2)))
    tol = 1e-5 if kind in ("float32", "complex64") else 1e-12
    for first, second in ((a, b), (np.asfortranarray(a), np.asfortranarray(b))):
        got = matrices.solve_triangular(first, second, lower)
        assert got.dtype == np.dtype(kind)
        np.testing.assert_allclose(got, expected, rtol=tol, atol=tol)
    with pytest.raises(LinAlgError, match="solve_triangular: a has a 0 on its diagonal"):
        matrices.solve_triangular(np.zeros((2, 2), kind), np.ones((2, 1), kind), lower)


@pytest.mark.parametrize("kind", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize(
    ("count", "m", "n"),
    [
        (5, 1, 1), (6, 7, 3), (4, 33, 20), (3, 0, 2), (7, 4, 0), (3, 130, 1), (8, 1, 1),
        (9, 5, 2), (19, 17, 1), (16, 64, 16), (8, 65, 2), (8, 9, 17),
    ],
)  # fmt: skip
def test_stacks_are_solved_as_one_by_one(
    kind: str, lower: bool, count: int, m: int, n: int
) -> None:
    rng = np.random.default_rng(0)
    a = (rng.normal(size=(2, count, m, m)) / max(m, 16) ** 0.5 * 4 + 4 * np.eye(m)).astype(kind)
    b = rng.normal(size=(count, m, n)).astype(kind)
    if kind[0] == "c":
        a, b = a + np.asarray(0.1j, kind) * a.mT, b * np.asarray(1j, kind) + b[::-1]
    unread = np.triu(np.ones((m, m), bool), 1) if lower else np.tril(np.ones((m, m), bool), -1)
    a[..., unread] = np.nan
    kept = a.copy(), b.copy()
    got = matrices.solve_triangular(a, b, lower)
    plain = matrices.triangular_solves(a, b, lower)
    tol = 1e-5 if kind in ("float32", "complex64") else 1e-13
    np.testing.assert_allclose(got, plain, rtol=tol, atol=tol, strict=True)
    for x, before in zip((a, b), kept, strict=True):
        np.testing.assert_array_equal(x, before)
    if m and n:
        a[1, -1, 0, 0] *= 0
        if kind[0] == "c" and m > 1:
            a[0, 0, 1, 1] = 1j  # is no 0
        with pytest.raises(LinAlgError, match="a has a 0 on its diagonal"):
            matrices.solve_triangular(a, b, lower)


@pytest.mark.skipif("llvm" not in table.available(), reason="llvmlite is absent")
@pytest.mark.parametrize("element", ["f32", "f64"])
@pytest.mark.parametrize("wide", [True, False])
@pytest.mark.parametrize(
    ("name", "features"),
    [
        ("haswell", {"avx", "avx2", "fma"}),
        ("znver4", {"avx", "avx2", "fma", "avx512f", "avx512dq", "avx512bw", "avx512vl"}),
    ],
)
def test_code_for_other_processors(
    monkeypatch: pytest.MonkeyPatch, element: str, wide: bool, name: str, features: set[str]
) -> None:
    """Made, not run."""
    target = Host(name, frozenset(features), vector_bytes(features), 1)
    monkeypatch.setattr(triangular, "host", lambda: target)
    for lower in (True, False):
        for pairs, turned in ((True, False), (False, False), (False, True)):
            text = triangular._text(element, pairs, wide, lower, turned)
            assert machine_code.emit(text, target)[:4] == b"\x7fELF"


@pytest.mark.parametrize("kind", ["float32", "complex64", "float64"])
@pytest.mark.parametrize("lead", [(), (2,)])
def test_large_matrices(kind: str, lead: tuple[int, ...]) -> None:
    """Large ones in single precision are computed in it, within what it can give; also from
    operands that lie otherwise, one or both broadcast.
    """
    rng = np.random.default_rng(1)
    m, n, k = 70, 130, 3

    def drawn(*shape: int) -> Any:
        x = rng.normal(size=(*lead, *shape)) + (
            1j * rng.normal(size=shape) if kind[0] == "c" else 0
        )
        return x.astype(kind)

    a, wide, b = drawn(m, m), drawn(n, m), drawn(m, k)
    near = a @ np.conj(a.mT) + 10 * np.eye(m, dtype=kind)
    eps = float(np.finfo(kind).eps)

    def close(x: Any, y: Any, scale: float = 1.0) -> None:
        assert x.dtype == y.dtype
        size = np.max(np.abs(y))
        assert np.max(np.abs(x - y)) < 60 * m * eps * scale * max(size, 1.0)

    for v in (near, near.mT.copy().mT):
        low = matrices.cholesky(v)
        close(low @ np.conj(low.mT), v)
        w, q = matrices.eigh(v)
        close(v @ q, q * w[..., None, :])
        close(matrices.eigvalsh(v), w)
        close(v @ matrices.inv(v), np.broadcast_to(np.eye(m, dtype=kind), v.shape))
        close(v @ matrices.solve(v, b), b)
        close(matrices.slogdet(v)[1], np.sum(np.log(w), -1).astype(w.dtype))
        for lower, part in ((True, np.tril(v)), (False, np.triu(v))):
            x = matrices.solve_triangular(part, v, lower)
            close(part @ x, v, float(np.max(np.linalg.cond(part))) ** 0.5)
    for v in (wide, np.conj(wide).mT, wide.mT.copy().mT, a):
        for complete in (False, True):
            q, r = matrices.qr(v, complete)
            assert q.dtype == r.dtype == v.dtype
            close(q @ r, v)
            close(
                np.conj(q.mT) @ q,
                np.broadcast_to(np.eye(q.shape[-1], dtype=kind), r.shape[:-2] + (q.shape[-1],) * 2),
            )
            assert not np.tril(r, -1).any()
            diagonal = np.linalg.diagonal(r)
            np.testing.assert_array_equal(diagonal.imag, 0)
            u, s, vh = matrices.svd(v, complete)
            close((u[..., : s.shape[-1]] * s[..., None, :]) @ vh[..., : s.shape[-1], :], v)
            close(matrices.svdvals(v), s)
        x, rank, s = matrices.lstsq(v, v[..., :k], 1e-6)
        close(v @ x, v[..., :k])
        assert np.all(rank == min(v.shape[-2:]))
        assert s.dtype == v.real.dtype
    values, vectors = matrices.eig(a)
    close(a @ vectors, vectors * values[..., None, :])
    with pytest.raises(LinAlgError, match="cholesky: x must be positive definite"):
        matrices.cholesky(-near)
    with pytest.raises(LinAlgError, match="inv: x is singular"):
        matrices.inv(np.zeros((64, 64), kind))


def test_hermitian_parts_of_large_matrices_stay_finite() -> None:
    """No sum of two elements overflows on the way."""
    x = np.full((2, 2), 1.5e308)
    assert np.all(np.isfinite(matrices.eigvalsh(x * np.eye(2))))


@pytest.mark.parametrize("char", "fdFD")
@pytest.mark.parametrize("shape", [(1, 1), (4, 4), (3, 5, 5), (2, 0, 0), (64, 64), (65, 65)])
def test_hermitian_parts_are_the_same_in_machine_code(shape: tuple[int, ...], char: str) -> None:
    """And a Hermitian matrix is its own, to the last bit."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal(shape) + (1j * rng.standard_normal(shape) if char in "FD" else 0)
    x = x.astype(char)
    found = matrices._hermitian(x)
    with table.restricted():
        expected = matrices._hermitian(x)
    assert found.dtype == expected.dtype == x.dtype
    assert np.array_equal(found, expected)
    assert np.array_equal(matrices._hermitian(found), found)
    assert np.array_equal(found, np.conj(np.swapaxes(found, -1, -2)))


@pytest.mark.parametrize("char", "dD")
def test_no_index_of_hermitian_parts_is_outside(char: str) -> None:
    """Run as Python, with every index checked."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((3, 4, 4)).astype(char)
    if char == "D":
        x += 1j * rng.standard_normal((3, 4, 4))
    y = np.empty_like(x)
    cpu.hermitian.checked(x, y, 4, 3, char == "D")
    np.testing.assert_allclose(y, (x + np.conj(np.swapaxes(x, -1, -2))) / 2, rtol=1e-14)


@pytest.mark.parametrize("kind", ["float32", "float64", "complex64", "complex128"])
def test_few_rows_have_the_same_bits_on_any_number_of_threads(kind: str) -> None:
    """LAPACK takes other ways where it has threads, and beside other work they take milliseconds
    that wait for each other.
    """
    rng = np.random.default_rng(0)

    def results(a: Any, b: Any, stack: Any) -> list[Any]:
        one = [matrices.cholesky, matrices.det, matrices.eigh, matrices.eigvals, matrices.expm,
               matrices.inv, matrices.lu, matrices.slogdet, matrices.svdvals]  # fmt: skip
        found = [f(x) for f in one for x in (a, stack)]
        found += [matrices.solve(a, b), matrices.solve_triangular(a, b, True)]
        found += [matrices.triangular_solves(stack, b, False), matrices.lstsq(a, b, None)]
        found += [matrices.qr(a, False), matrices.svd(a, True), matrices.pinv(a, 1e-3)]
        return [y for x in found for y in (x if isinstance(x, tuple) else (x,))]

    for n in (5, 40, 95):
        a = rng.normal(size=(2, n, n)).astype(kind)
        a = a @ a.swapaxes(-1, -2) / n + np.eye(n, dtype=kind)
        b = rng.normal(size=(n, 13)).astype(kind)
        with config.using(threads=1):
            expected = results(a[0], b, a)
        with config.using(threads=2):
            for x, y in zip(results(a[0], b, a), expected, strict=True):
                np.testing.assert_array_equal(x, y)
