"""Kronecker's product and sums of diagonals have NumPy's bits, whoever finds them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import funct as ft
import funct.array as xp
from funct.kernels.cpu.loops import available
from funct.kernels.cpu.small import kronecker as cpu
from funct.kernels.linalg import functions, kronecker

pytestmark = pytest.mark.skipif(not available(), reason="llvmlite is absent")

LENGTHS = st.one_of(st.integers(1, 9), st.sampled_from([16, 17, 33]))
KINDS = st.sampled_from(["float32", "float64", "int32", "int64"])


def drawn(shape: tuple[int, ...], dtype: str, seed: int) -> Any:
    rng = np.random.default_rng(seed)
    x = (rng.standard_normal(shape) * 9).astype(dtype)
    if dtype[0] == "f":
        x[rng.random(shape) < 0.1] = np.nan
        x[rng.random(shape) < 0.1] = -0.0
    return x if seed % 3 else np.asfortranarray(x)


@given(m=LENGTHS, n=LENGTHS, p=LENGTHS, q=LENGTHS, kind=KINDS, flat=st.booleans(),
       seed=st.integers(0, 2**32 - 1))  # fmt: skip
def test_products_are_those_of_numpy(
    m: int, n: int, p: int, q: int, kind: str, flat: bool, seed: int
) -> None:
    """Of vectors and matrices in any order in memory, called once and often."""
    kronecker._KRONECKERS.load()
    x, y = (drawn(s[1:] if flat else s, kind, seed + s[1]) for s in ((m, n), (p, q)))
    expected = np.kron(x, y)
    for _ in range(3):
        found = kronecker.kron(x, y)
        np.testing.assert_array_equal(xp.kron(xp.asarray(x), xp.asarray(y)), expected)
        assert found is None or np.array_equal(found, expected, equal_nan=kind[0] == "f")
    assert found is not None or not all(v.flags.c_contiguous for v in (x, y))


@given(m=st.integers(1, 70), n=st.integers(1, 140), kind=KINDS, seed=st.integers(0, 2**32 - 1))
def test_outer_products_are_those_of_numpy(m: int, n: int, kind: str, seed: int) -> None:
    """And with steps between their elements NumPy has them."""
    x, y = drawn((m,), kind, seed), drawn((2 * n,), kind, seed + 1)
    for v in (y[:n], y[::2]):
        expected = np.multiply.outer(x, v)
        np.testing.assert_array_equal(xp.linalg.outer(xp.asarray(x), xp.asarray(v)), expected)
        found = kronecker.as_outer(x, v)
        assert found is None or np.array_equal(found, expected, equal_nan=kind[0] == "f")


def test_threads_change_nothing() -> None:
    """And what is in no class of arrays is left to the composition."""
    x = drawn((70, 70), "float64", 1)
    with ft.config.using(threads=1):
        one = kronecker.kron(x, x[:20])
    with ft.config.using(threads=2):
        two = kronecker.kron(x, x[:20])
    assert np.array_equal(one, two, equal_nan=True)
    assert np.array_equal(one, np.kron(x, x[:20]), equal_nan=True)
    for other in (x + 0j, x.astype(np.float16), x[0], x[:0]):
        assert kronecker.kron(x, other) is None


@given(m=st.integers(1, 40), n=st.integers(1, 40), offset=st.integers(-42, 42), kind=KINDS,
       seed=st.integers(0, 2**32 - 1))  # fmt: skip
def test_sums_of_diagonals_are_those_of_numpy(
    m: int, n: int, offset: int, kind: str, seed: int
) -> None:
    """To the bit, called once and often."""
    kronecker.TRACES.load()
    x = np.nan_to_num(drawn((m, n), kind, seed))
    expected = np.trace(x, offset)
    for _ in range(3):
        assert np.array_equal(functions.trace(x, offset), expected)
    if not offset and m == n:
        assert np.array_equal(functions.einsum(x, "ii->"), expected)


def test_no_index_is_outside() -> None:
    """Run as Python, with every index checked."""
    x, y = drawn((3, 2), "float64", 1), drawn((2, 9), "float64", 2)
    found, again = np.empty((6, 18)), np.empty((6, 18))
    cpu.kron.checked(x, y, found, 3, 2, 2, 9, 2, 2)
    cpu.kron_at_once.checked(x, y, again, 3, 2, 2, 9)
    assert np.array_equal(found, np.kron(x, y), equal_nan=True)
    assert np.array_equal(again, found, equal_nan=True)
    total = np.empty(1)
    cpu.trace.checked(y, total, np.empty(2), 1, 10, 2)
    assert np.array_equal(total[0], y[0, 1] + y[1, 2], equal_nan=True)
