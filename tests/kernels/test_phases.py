"""Complex vectors that are known up to a phase: in machine code, in NumPy, and as Python."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import funct.array as xp
from funct.kernels.cpu.loops import available
from funct.kernels.cpu.small import phases as cpu
from funct.kernels.linalg import matrices
from funct.kernels.linalg.phases import turned, turned_pair
from funct.kernels.table import restricted

SHAPES = [(1, 1), (4, 4), (2, 5), (5, 2), (3, 4, 4), (2, 3, 2, 6), (7, 1), (0, 3), (3, 0)]
DTYPES = ["complex64", "complex128"]
needs_code = pytest.mark.skipif(not available(), reason="llvmlite is absent")


def drawn(shape: tuple[int, ...], dtype: str, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype)


def close(found: Any, expected: Any) -> None:
    assert found.dtype == expected.dtype
    eps = float(np.finfo(expected.dtype).eps)
    np.testing.assert_allclose(found, expected, rtol=0, atol=16 * eps)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("plain", [False, True])
def test_the_largest_component_of_each_column_is_real_and_positive(
    shape: tuple[int, ...], dtype: str, plain: bool
) -> None:
    """And the column is what it was, up to a number of size 1."""
    v = drawn(shape, dtype)
    if plain:
        with restricted():
            found = turned(v.copy())
    else:
        found = turned(v.copy())
    if not v.size:
        assert found.shape == v.shape
        return
    top = np.take_along_axis(found, np.argmax(np.abs(v), -2, keepdims=True), -2)
    close(top, np.abs(top).astype(dtype))
    close(np.abs(found), np.abs(v))
    parallel = np.abs(np.sum(np.conj(found) * v, -2))
    np.testing.assert_allclose(parallel, np.sum(np.abs(v) ** 2, -2), rtol=1e-5)


@pytest.mark.parametrize("first", [0, 1, 3, 4, 9])
@pytest.mark.parametrize("plain", [False, True])
def test_columns_before_the_first_stay(first: int, plain: bool) -> None:
    """The rest is turned as it is alone."""
    v = drawn((2, 3, 4), "complex128")
    rest = turned(v[..., first:].copy())
    if plain:
        with restricted():
            found = turned(v.copy(), first)
    else:
        found = turned(v.copy(), first)
    assert np.array_equal(found[..., :first], v[..., :first])
    close(found[..., first:], rest)


@needs_code
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("left", "right"), [
    ((4, 4), (4, 4)), ((5, 3), (3, 3)), ((3, 3), (5, 5)), ((5, 5), (3, 3)), ((2, 3, 2), (2, 2, 6)),
])  # fmt: skip
def test_pairs_turn_alike_in_machine_code_and_in_numpy(
    left: tuple[int, ...], right: tuple[int, ...], dtype: str
) -> None:
    """With partners, and without."""
    u, vh = drawn(left, dtype), drawn(right, dtype, 1)
    found = turned_pair(u.copy(), vh.copy())
    with restricted():
        expected = turned_pair(u.copy(), vh.copy())
    for a, b in zip(found, expected, strict=True):
        close(a, b)
    k = min(left[-1], right[-2])
    close(found[0][..., :k] @ found[1][..., :k, :], u[..., :k] @ vh[..., :k, :])


@pytest.mark.parametrize("rows", [2, 3, 5])
def test_no_index_is_outside(rows: int) -> None:
    """Run as Python, with every index checked; the numbers are those of NumPy."""
    u, vh = drawn((2, 4, 3), "complex128"), drawn((2, rows, 6), "complex128", 1)
    with restricted():
        expected = turned_pair(u, vh)
    cpu.turn.checked(u, 0, vh, 4, 3, rows, 6, 2)
    cpu.turn_rows.checked(vh, 3, rows, 6, 2)
    close(u, expected[0])
    close(vh, expected[1])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(4, 4), (3, 5), (5, 3), (2, 4, 4)])
@pytest.mark.parametrize("full", [False, True])
def test_factors_give_the_matrix_back(shape: tuple[int, ...], dtype: str, full: bool) -> None:
    """Whoever turned them."""
    x = drawn(shape, dtype)
    u, s, vh = matrices.svd(x, full)
    k = s.shape[-1]
    eps = float(np.finfo(dtype).eps)
    back = (u[..., :k] * s[..., None, :]) @ vh[..., :k, :]
    np.testing.assert_allclose(back, x, rtol=0, atol=100 * eps)
    for q in (u, np.swapaxes(vh, -1, -2)):
        q = q[..., : min(q.shape[-2:])]
        one = np.conj(np.swapaxes(q, -1, -2)) @ q
        np.testing.assert_allclose(
            one, np.broadcast_to(np.eye(one.shape[-1]), one.shape), rtol=0, atol=100 * eps
        )


def test_a_stack_in_another_order_is_turned_as_well() -> None:
    """What NumPy gives for transposed stacks is not contiguous."""
    x = np.swapaxes(drawn((3, 2, 4, 4), "complex128"), 0, 1)
    h = x + np.conj(np.swapaxes(x, -1, -2))
    w, v = xp.linalg.eigh(xp.asarray(h))
    for i in range(2):
        for j in range(3):
            one, each = xp.linalg.eigh(xp.asarray(np.ascontiguousarray(h[i, j])))
            close(np.asarray(v[i, j]), np.asarray(each))
            largest = np.abs(one).max()  # eigenvalues are as exact as that is
            close(np.asarray(w[i, j]) / largest, np.asarray(one) / largest)
