"""Stacks of matrices on several threads: the bits of each matrix by itself, and its failures."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import funct as ft
from funct.errors import LinAlgError
from funct.kernels.cpu.loops import available
from funct.kernels.linalg import in_parts, lapack, matrices

DTYPES = ["float32", "float64", "complex64", "complex128"]
SQUARE = {
    "cholesky": lambda x: matrices.cholesky(x @ np.conj(np.swapaxes(x, -1, -2)) + 9 * np.eye(5)),
    "det": matrices.det, "eig": matrices.eig, "eigh": matrices.eigh,
    "eigvals": matrices.eigvals, "eigvalsh": matrices.eigvalsh, "inv": matrices.inv,
    "slogdet": matrices.slogdet, "solve": lambda x: matrices.solve(x, x[..., :3] * 2),
    "pinv": lambda x: matrices.pinv(x, 1e-9),
}  # fmt: skip
ANY = {
    "svd": lambda x: matrices.svd(x, False), "svd, full": lambda x: matrices.svd(x, True),
    "svdvals": matrices.svdvals,
}  # fmt: skip


@pytest.fixture
def parts(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """What was computed in parts, of several threads."""
    if not available():  # and from now on it is loaded
        pytest.skip("there is no LLVM to deal parts out with")
    found: list[Any] = []

    def seen(*args: Any) -> Any:
        out = in_parts.in_parts(*args)
        found.append(out)
        return out

    monkeypatch.setattr(lapack, "in_parts", seen)
    for module in (in_parts, lapack):
        monkeypatch.setattr(module, "WORTH", 15_000)
    for name in (*SQUARE, *ANY):  # are in lanes, or rows of vectors
        for others in (matrices.stacks, matrices.few):
            monkeypatch.setattr(others, name, lambda *args: None, raising=False)
    for prepared in matrices.few.ALREADY.values():
        monkeypatch.setattr(prepared, "call", lambda *args: None)
    with ft.config.using(threads=2):
        yield found


def numbers(dtype: str, *shape: int) -> Any:
    rng = np.random.default_rng(0)
    x = rng.normal(size=shape)
    return (x + 1j * rng.normal(size=shape) if dtype.startswith("complex") else x).astype(dtype)


def agree(fun: Any, x: Any) -> None:
    lead = x.shape[:-2]
    alone = [fun(np.array(x[k])) for k in np.ndindex(*lead)]
    for threads in (1, 2, 5):
        with ft.config.using(threads=threads):
            found = fun(x)
        pairs = zip(found, zip(*alone)) if isinstance(found, tuple) else [(found, alone)]
        for y, each in pairs:
            np.testing.assert_array_equal(y, np.reshape(each, y.shape))
            assert y.dtype == np.asarray(each[0]).dtype


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", SQUARE)
def test_each_matrix_has_its_own_bits(parts: list[Any], name: str, dtype: str) -> None:
    agree(SQUARE[name], numbers(dtype, 3, 100, 5, 5))
    assert any(p is not None for p in parts)


@pytest.mark.parametrize("shape", [(300, 4, 7), (300, 7, 4), (5, 40, 6, 6), (200, 1, 30)])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ANY)
def test_of_any_shape(parts: list[Any], name: str, dtype: str, shape: tuple[int, ...]) -> None:
    agree(ANY[name], numbers(dtype, *shape))
    assert any(p is not None for p in parts)


@pytest.mark.parametrize("layout", ["turned", "strided", "backwards", "one for all"])
def test_of_any_layout(parts: list[Any], layout: str) -> None:
    x = numbers("float64", 300, 6, 6)
    x = {
        "turned": lambda: np.swapaxes(x, -1, -2),
        "strided": lambda: np.repeat(x, 2, axis=2)[..., ::2],
        "backwards": lambda: x[::-1, ::-1],
        "one for all": lambda: np.broadcast_to(x[0], x.shape),
    }[layout]()
    agree(matrices.eig, x)
    agree(lambda x: matrices.svd(x, True), x)
    assert any(p is not None for p in parts)


def test_one_matrix_is_lapacks(parts: list[Any]) -> None:
    """However large: there is nothing to deal out."""
    agree(matrices.eigh, numbers("float64", 1, 60, 60))
    assert all(p is None for p in parts)


def test_stacks_that_do_not_fit_or_are_small_are_lapacks(parts: list[Any]) -> None:
    agree(matrices.eigh, numbers("float64", 3, 6, 6))
    agree(matrices.eigh, numbers("float64", 0, 6, 6))
    x, b = numbers("float64", 40, 300, 6, 6)[0], numbers("float64", 6, 3)
    np.testing.assert_array_equal(matrices.solve(x, b)[7], matrices.solve(x[7], b))
    assert all(p is None for p in parts)


@pytest.mark.parametrize("name", ["eigh", "eigvalsh", "svd", "svdvals", "inv", "solve", "cholesky"])
def test_one_matrix_that_fails_is_an_error(parts: list[Any], name: str) -> None:
    x = numbers("float64", 300, 5, 5)
    x[123] = -np.eye(5) if name == "cholesky" else 0 if name in ("inv", "solve") else np.nan
    fun = {**SQUARE, **ANY, "cholesky": matrices.cholesky}[name]
    with pytest.raises(LinAlgError, match=name):
        fun(x)
    assert parts == ([] if name == "svd" else [None])  # which looks at its elements first


def test_what_is_not_a_number_without_a_failure_is_as_with_one_thread(parts: list[Any]) -> None:
    x = numbers("float64", 300, 5, 5)
    x[7] = np.nan
    with np.errstate(invalid="ignore"):
        found = matrices.det(x)
    assert parts == [None]
    np.testing.assert_array_equal(np.isnan(found), np.arange(300) == 7)


@pytest.mark.parametrize("name", [*SQUARE, *ANY])
def test_code_is_looked_for_once(
    name: str, parts: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    fun, x = {**SQUARE, **ANY}[name], numbers("float64", 200, 5, 5)
    fun(x)
    monkeypatch.setattr(in_parts, "printed", None)  # which looks on disk
    parts.clear()
    fun(x)
    assert any(found is not None for found in parts)
