"""Logarithms of sums of exponentials in few passes have the bits of the composition."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from funct.array.direct import DIRECT
from funct.kernels.cpu.loops import available
from funct.kernels.cpu.reductions import exponents as cpu
from funct.kernels.reductions import exponents
from tests.kernels.arrays import SPECIAL, agree

pytestmark = pytest.mark.skipif(not available(), reason="llvmlite is absent")

SHAPES = (
    (1,), (7,), (40, 1), (9, 8), (5, 33), (2, 3, 17), (3, 700), (40, 129), (20_000, 2), (70_000,),
    (1300, 211), (3, 41, 5), (1, 3000, 50), (9, 300, 130), (3000, 16), (2, 5000, 70),
)  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", SHAPES)
def test_sums_have_the_bits_of_the_composition(shape: Any, dtype: str) -> None:
    """Rows of infinities, of nothing else and of equal numbers among them."""
    rng = np.random.default_rng(0)
    for raw in (
        rng.normal(size=shape) * 30,
        rng.choice(np.asarray(SPECIAL), shape),
        np.ones(shape),
    ):
        x = raw.astype(dtype)
        if len(shape) > 1:
            x[0], x[-1, ..., :1] = -np.inf, np.inf
        last = len(shape) - 1
        several = tuple(range(max(0, last - 1), last + 1))
        for axis, keepdims in (
            (-1, False), (last, True), (None, True), (several, False), (0, False),
            (last // 2, True), (tuple(range(max(1, last))), False),
        ):  # fmt: skip
            with np.errstate(all="ignore"):
                found = exponents.logsumexp(x, axis, keepdims)
                expected = DIRECT["funct.array.statistical.logsumexp"].composed(
                    xp.asarray(x), axis=axis, keepdims=keepdims
                )
            expected = np.asarray(expected)
            assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
            np.testing.assert_array_equal(found, expected)


def test_threads_change_no_bit() -> None:
    rng = np.random.default_rng(0)
    for x, axis in ((rng.normal(size=(3000, 40)), -1), (rng.normal(size=(400, 300)), 0)):
        found = []
        for threads in (1, 2):
            with ft.config.using(threads=threads):
                found.append(exponents.logsumexp(x, axis))
        np.testing.assert_array_equal(*found)


def test_what_is_left_to_the_composition() -> None:
    x = np.ones((40, 50))
    for a, axis in ((x, ()), (x[None], (0, 2)), (x, 2), (x.T, 1), (x.astype("f2"), 1), (x * 1j, 1)):
        assert exponents.logsumexp(a, axis) is None
    assert (
        exponents.logsumexp(x, 1, False, x) is exponents.logsumexp(x, 1, False, None, True) is None
    )


@pytest.mark.parametrize("n", [1, 7, 8, 21])
def test_no_index_leaves_arrays(n: int) -> None:
    """Run as Python, in several tasks."""
    x = np.random.default_rng(0).normal(size=(5, n))
    x[2] = x[2, 0]
    top = x.max(1)
    agree(cpu.below, x, np.zeros_like(x), np.zeros(5), 5, n, 2, 3)
    agree(cpu.beside, x, np.exp(x), top, np.zeros(5), 5, n, 2, 3)


@pytest.mark.parametrize("inner", [1, 5, 8, 21, 70])
def test_no_index_of_columns_leaves_arrays(inner: int) -> None:
    """Run as Python, in several tasks."""
    strips = -(-inner // cpu.STRIP)
    x = np.random.default_rng(0).normal(size=(2, 3, inner))
    highest, sums = x[:, 0].copy(), np.zeros((2, 2, inner))
    sizes = 2, 3, inner, strips, 1, 2 * strips
    agree(cpu.below_columns, x, np.zeros_like(x), highest, 3, *sizes)
    top = x.max(1)
    agree(cpu.beside_columns, x, np.exp(x - top[:, None]), top, sums, sums + 1, *sizes)
