"""Logarithms of sums of exponentials in few passes have the bits of the composition."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

import funct as ft
import funct.array as xp
from funct.array.direct import DIRECT
from funct.device import assemble, host
from funct.kernels.cpu.loops import available
from funct.kernels.cpu.reductions import exponent_columns
from funct.kernels.cpu.reductions import exponents as cpu
from funct.kernels.cpu.reductions.exponent_columns import sums_of_columns
from funct.kernels.elementwise.thresholds import MANY
from funct.kernels.reductions import exponents
from tests.kernels.arrays import SPECIAL, agree

pytestmark = pytest.mark.skipif(not available(), reason="llvmlite is absent")

SHAPES = (
    (1,), (7,), (40, 1), (9, 8), (5, 33), (2, 3, 17), (3, 700), (40, 129), (20_000, 2), (70_000,),
    (1300, 211), (3, 41, 5), (2, 19, 11), (1, 3000, 50), (9, 300, 130), (3000, 16), (2, 5000, 70),
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
def test_no_index_of_few_columns_leaves_arrays(inner: int) -> None:
    x = np.random.default_rng(0).normal(size=(2, 3, inner))
    agree(cpu.few_columns, x, np.zeros_like(x), np.zeros((3, 2, inner)), 2, 3, inner)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("inner", [2, 7, 15, 16, 31, 33, 70, 700])
def test_sums_of_columns(inner: int, dtype: str) -> None:
    """Strips that are filled, short ones, and some that overlap; of rows all, or some at a time."""
    for n in (1, 3, 300):
        x = (np.random.default_rng(inner).normal(size=(2, n, inner)) * 9).astype(dtype)
        top = x.max(1)
        same, shifted = x == top[:, None], np.resize(x - top[:, None], max(x.size, MANY))
        beside = np.asarray(xp.exp(xp.asarray(shifted)))[: x.size].reshape(x.shape) - same
        found = sums_of_columns(x, 2, n, inner)
        np.testing.assert_array_equal(found[0], top)
        np.testing.assert_array_equal(found[1], same.sum(1))
        np.testing.assert_array_equal(found[2], np.add.accumulate(beside, 1)[:, -1])


@pytest.mark.parametrize(("inner", "lanes"), [(5, 8), (8, 8), (21, 16)])
def test_sums_of_columns_by_narrower_vectors(inner: int, lanes: int) -> None:
    x = np.random.default_rng(0).normal(size=(2, 37, inner)).astype(np.float32)
    x[0, :, 1], x[1, 3, 2] = 2.0, np.inf
    narrow = replace(host(), vector_bytes=32, features=frozenset({"avx2", "fma"}))
    code = assemble(exponent_columns.text("f32", lanes, inner < lanes, narrow))
    found, strips = np.empty((3, 2, inner), np.float32), -(-inner // lanes)
    job = exponent_columns.FIELDS.fill(
        x=x.ctypes.data, y=found.ctypes.data, tasks=1, blocks=2, rows=37, columns=inner,
        strips=strips, pieces=strips, together=16,
    )  # fmt: skip
    ctypes.CFUNCTYPE(None, ctypes.c_int64)(code.address("sums"))(job.ctypes.data)
    wide = sums_of_columns(x, 2, 37, inner)
    np.testing.assert_array_equal(found[:2], wide[:2])
    np.testing.assert_allclose(found[2], wide[2], rtol=1e-6)  # another polynomial is its exp
