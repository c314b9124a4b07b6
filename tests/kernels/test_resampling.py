"""Weighted sums along an axis are the sums of what `take` gives, bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import funct as ft
import funct.array as xp
from funct import ops
from funct.kernels.cpu import loops
from funct.kernels.cpu.windows import resampling as cpu_resampling
from funct.kernels.table import restricted
from funct.kernels.windows.resampling import resampled, resampling
from funct.nn import functional
from tests.kernels.arrays import SPECIAL, agree


def composed(x: Any, places: Any, weights: Any, axis: int) -> Any:
    total: Any = None
    for at, weight in zip(places, weights.astype(x.dtype)):
        term = np.take(x, at, axis) * weight.reshape(-1, *(1,) * (x.ndim - axis - 1))
        total = term if total is None else total + term
    none = (places[0] < 0).reshape(-1, *(1,) * (x.ndim - axis - 1))
    return np.where(none, x.dtype.type(0), total)


def unread(places: Any, seed: int) -> Any:
    """The places, at some of which nothing is."""
    if seed % 3 == 0:
        places[0, :: 1 + seed % 4] = -1
    return places


@pytest.mark.skipif(not loops.available(), reason="there is no LLVM to compile with")
@given(data=st.data(), dtype=st.sampled_from(["float32", "float64"]), seed=st.integers(0, 99))
def test_sums_are_those_of_taken_elements(data: Any, dtype: str, seed: int) -> None:
    """Of any axis, also where what is taken is nothing, infinite or no number; in any layout."""
    rng = np.random.default_rng(seed)
    shape = data.draw(st.lists(st.sampled_from([1, 2, 3, 7, 8, 33, 70]), min_size=1, max_size=3))
    axis, taps, out = (
        data.draw(st.integers(a, b)) for a, b in ((0, len(shape) - 1), (1, 4), (1, 40))
    )
    x = rng.choice(np.asarray(SPECIAL), shape).astype(dtype)
    x = x if seed % 2 else np.asfortranarray(x)
    places = unread(rng.integers(0, shape[axis], (taps, out)), seed)
    weights = rng.normal(size=(taps, out))
    with np.errstate(all="ignore"):
        expected = composed(x, places, weights, axis)
    found = resampled(x, places, weights, axis)
    assert found is None or np.array_equal(found, expected, equal_nan=True)
    assert found is None or (np.signbit(found) == np.signbit(expected))[expected == 0].all()
    assert found is not None or x.size < 1 << 12


@pytest.mark.skipif(not loops.available(), reason="there is no LLVM to compile with")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(2, 9, 11, 40), (3, 40, 5, 9), (1, 33, 13, 8), (2, 3, 1, 64)])
@pytest.mark.parametrize("taps", [1, 2])
def test_sums_along_two_axes_are_those_of_one_after_the_other(
    shape: Any, dtype: str, taps: int
) -> None:
    """Of images whose channels are last, and others, bit for bit, whatever is in them."""
    rng = np.random.default_rng(0)
    x = np.moveaxis(rng.choice(np.asarray(SPECIAL), shape).astype(dtype), -1, 1)
    pairs = [(unread(rng.integers(0, n, (taps, out)), len(x) - 1), rng.normal(size=(taps, out)))
             for n, out in zip(shape[1:3], (40, 23))]  # fmt: skip
    with np.errstate(all="ignore"):
        expected = composed(composed(x, *pairs[0], 2), *pairs[1], 3)
    for lying in (x, x.copy()):
        run = resampling(lying, [(pair, 2 + k) for k, pair in enumerate(pairs)])
        assert run is not None
        found = run(lying)
        assert np.array_equal(found, expected, equal_nan=True)
        assert (np.signbit(found) == np.signbit(expected))[expected == 0].all()


@pytest.mark.parametrize("mode", ["bilinear", "bicubic", "area"])
@pytest.mark.parametrize("shape", [(1, 3, 20, 30), (2, 2, 1, 9), (1, 1, 64, 100)])
def test_images_have_the_same_bits_with_and_without(mode: str, shape: Any) -> None:
    """Magnified or made smaller."""
    x = xp.asarray(np.random.default_rng(0).normal(size=shape).astype(np.float32))
    for size in ((40, 60), (7, 100), (1, 1), shape[2:]):
        found = functional.interpolate(x, size, mode=mode)
        with restricted():
            assert ops.equal(found, functional.interpolate(x, size, mode=mode)).data.all()


@pytest.mark.parametrize("size", [(11, 9), (7, 5), (40, 20)])
@pytest.mark.parametrize("last", [False, True])
def test_what_comes_back_along_two_axes_is_what_the_primitives_send(last: bool, size: Any) -> None:
    """Of images on a tape, whose channels are last in memory or not; and in second slopes. Of those
    that become smaller not every pixel is read.
    """
    x = np.random.default_rng(0).normal(size=(1, 20, 16, 8))
    x = np.moveaxis(x, -1, 1) if last else np.moveaxis(x, -1, 1).copy()

    def slope(x: Any) -> Any:
        def total(x: Any) -> Any:
            return xp.sum(xp.sin(functional.interpolate(x, size, mode="bilinear")))

        return ft.grad(total)(x)

    def again(x: Any) -> Any:
        return ft.grad(lambda x: xp.sum(xp.sin(slope(x))))(x)

    for fun in (slope, again):
        found = fun(xp.asarray(x))
        with restricted():
            wanted = fun(xp.asarray(x))
        np.testing.assert_allclose(np.asarray(found), np.asarray(wanted), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("mode", ["bilinear", "bicubic", "nearest"])
@pytest.mark.parametrize("last", [False, True])
def test_pixels_that_are_not_read_have_structural_zeros(last: bool, mode: str) -> None:
    """An infinite slope below them does not make them no numbers."""
    x = np.ones((1, 4, 30, 28))
    x = np.moveaxis(np.moveaxis(x, 1, -1).copy(), -1, 1) if last else x

    def total(x: Any) -> Any:
        return xp.sum(functional.interpolate(xp.sqrt(x), (5, 7), mode=mode))

    slope = ft.grad(total)
    far = np.asarray(slope(xp.asarray(x))) == 0
    assert 100 < far.sum() < x.size
    x[far] = 0.0
    with np.errstate(all="ignore"):
        found = np.asarray(slope(xp.asarray(x)))
        again = np.asarray(ft.grad(lambda x: xp.sum(slope(x)))(xp.asarray(x)))
    assert np.array_equal(found == 0, far)
    assert np.array_equal(again == 0, far)


@pytest.mark.skipif(not loops.available(), reason="there is no LLVM to compile with")
@pytest.mark.parametrize("inner", [2, 9, 40])
def test_no_index_leaves_arrays(inner: int) -> None:
    """Run as Python, with every index checked."""
    rng = np.random.default_rng(0)
    n, out, taps = 5, 11, 3
    places, weights = unread(rng.integers(0, n, (taps, out)), 0), rng.normal(size=(taps, out))
    x, y = rng.normal(size=2 * n * inner), np.zeros(2 * out * inner)
    agree(cpu_resampling.across, x, places, weights, y, n, out, inner, taps, 2 * out, 5, 5)
    if inner >= cpu_resampling.LANES:
        rows, columns = (rng.integers(0, n, (2, out)) for n in (2, 5))
        image, made = rng.normal(size=3 * 2 * 5 * inner), np.zeros(3 * out * out * inner)
        sizes = (2, 5, out, out, inner, 3 * out)
        agree(
            cpu_resampling.between, image, rows, rng.normal(size=(2, out)), columns,
            rng.normal(size=(2, out)), made, *sizes, 5, False, -(-3 * out // 5),
        )  # fmt: skip
    agree(
        cpu_resampling.along,
        x,
        places,
        weights,
        np.zeros(2 * inner * out),
        n,
        out,
        taps,
        2 * inner,
        3,
        -(-2 * inner // 3),
    )
