"""Norms of short vectors in one pass have the bits of NumPy's calls, or leave the work to them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from funct.kernels.cpu.loops import available
from funct.kernels.cpu.small import norms as cpu
from funct.kernels.linalg import functions
from funct.kernels.table import restricted

pytestmark = pytest.mark.skipif(not available(), reason="llvmlite is absent")

SHAPES = [
    (1,), (7,), (8,), (9,), (16,), (127,), (128,), (129,), (4, 4), (1, 7), (7, 1), (2, 9), (3, 33),
    (4, 40), (33, 3), (40, 100), (300, 9), (2, 3, 4), (3, 1, 4), (2, 2, 2, 3),
]  # fmt: skip


@pytest.fixture(autouse=True, scope="module")
def kept() -> None:
    """The code that adds up squares of arrays that lie as others did, from their second time on."""
    functions._SQUARES.load()


def drawn(shape: tuple[int, ...], char: str) -> Any:
    rng = np.random.default_rng(0)
    x = rng.standard_normal(shape)
    return (x + 1j * rng.standard_normal(shape) if char in "FD" else x).astype(char)


def same(a: Any, b: Any) -> None:
    a, b = np.asarray(a), np.asarray(b)
    assert (a.shape, a.dtype, a.tobytes()) == (b.shape, b.dtype, b.tobytes())


@pytest.mark.pairwise
@pytest.mark.parametrize("char", "fdFD")
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("keepdims", [False, True])
def test_norms_have_the_bits_of_the_long_way(
    shape: tuple[int, ...], char: str, keepdims: bool
) -> None:
    """Along every axis, and of all elements."""
    x = drawn(shape, char)
    for axis in (None, *range(-len(shape), len(shape))):
        for _ in range(2):
            found = functions.vector_norm(x, axis, keepdims)
        with restricted():
            same(found, functions.vector_norm(x, axis, keepdims))
    if len(shape) > 1:
        found = functions.matrix_norm(x, keepdims)
        with restricted():
            same(found, functions.matrix_norm(x, keepdims))


@pytest.mark.parametrize("char", "fd")
@pytest.mark.parametrize("extreme", [1e-30, 1e30, 1e-200, 1e200, math.inf, math.nan, 0.0])
def test_what_overflows_or_loses_digits_is_left_to_the_long_way(char: str, extreme: float) -> None:
    """One odd sum among others is enough."""
    with np.errstate(over="ignore"):
        x = np.asarray([[1.0, 2.0], [extreme, extreme], [3.0, 4.0]]).astype(char)
    for y, axis in ((x, 1), (np.repeat(x, 99), None)):
        with np.errstate(all="ignore"):
            found = [functions.vector_norm(y, axis) for _ in range(2)][-1]
        with restricted(), np.errstate(all="ignore"):
            expected = functions.vector_norm(y, axis)
        if expected is None:
            assert found is None
        else:
            same(found, expected)


@pytest.mark.parametrize(("outer", "n", "inner"), [(2, 3, 4), (1, 16, 1), (3, 9, 1), (1, 1, 5)])
@pytest.mark.parametrize("pairs", [False, True])
def test_no_index_is_outside(outer: int, n: int, inner: int, pairs: bool) -> None:
    """Run as Python, with every index checked."""
    x = drawn((outer, n, inner), "D" if pairs else "d")
    y = np.empty((outer, inner))
    assert cpu.lengths.checked(x, y, np.zeros(8, y.dtype), outer, n, inner, 2.0**-900, pairs) == 0
    np.testing.assert_allclose(y, np.sqrt(np.sum(np.abs(x) ** 2, 1)), rtol=1e-14)
