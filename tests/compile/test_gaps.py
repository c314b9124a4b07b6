"""Elementwise ops on arrays with gaps of zeros, as gradients of every second element are."""

from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from funct.compile.loops.kernel import Kernel
from tests.compile.test_bounds import made_of

SHAPES = [(6000,), (60, 120), (6, 30, 48), (12, 600, 1)]
RNG = np.random.default_rng(0)


def every(step: int, axis: int) -> Any:
    """Elements at a step of an axis, from each of the first places on."""

    def taken(x: Any) -> list[Any]:
        places = [slice(None)] * len(x.shape)
        found = []
        for first in range(step):
            places[axis] = slice(first, None, step)
            found.append(x[tuple(places)])
        return found

    return taken


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("step", [2, 3, 5])
@pytest.mark.parametrize("axis", [0, -1])
def test_gradients(axis: int, step: int, shape: tuple[int, ...]) -> None:
    x, y = RNG.normal(size=shape), RNG.normal(size=shape)

    def fun(x: Any, y: Any) -> Any:
        first, *rest = every(step, axis)(x)
        if 0 in first.shape:
            return xp.sum(x * y)
        total = xp.sum(x * x * y)
        for other in rest:
            n = min(first.shape[axis % len(shape)], other.shape[axis % len(shape)])
            cut = [slice(None)] * len(shape)
            cut[axis] = slice(n)
            total = total + xp.sum((first[tuple(cut)] * other[tuple(cut)]) ** 2)
        return total

    gradient = ft.grad(fun, argnums=(0, 1))
    expected = gradient(xp.asarray(x), xp.asarray(y))
    for found, e in zip(ft.jit(gradient)(xp.asarray(x), xp.asarray(y)), expected, strict=True):
        np.testing.assert_allclose(np.asarray(found), np.asarray(e), rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("shape", [(60, 120), (6, 30, 48), (2, 30, 24, 10)])
def test_both_axes(shape: tuple[int, ...]) -> None:
    x = RNG.normal(size=shape)

    def pooled(x: Any) -> Any:
        lead = (slice(None),) * (len(shape) - 2)
        places = [lead + (slice(i, None, 2), slice(j, None, 2)) for i in (0, 1) for j in (0, 1)]
        return xp.sum(sum(x[p] for p in places) ** 2 * x[places[0]])

    expected = np.asarray(ft.grad(pooled)(xp.asarray(x)))
    found = np.asarray(ft.jit(ft.grad(pooled))(xp.asarray(x)))
    np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-13)


def test_gaps_in_gaps() -> None:
    """What is put at every second place has gaps itself."""
    x = RNG.normal(size=(24, 800))

    def fun(x: Any) -> Any:
        y = x[::2] * x[1::2]
        z = y[::2] * y[1::2] - y[:6]
        return xp.sum(z * z) + xp.sum(z[:, ::2] * z[:, 1::2])

    expected = np.asarray(ft.grad(fun)(xp.asarray(x)))
    found = np.asarray(ft.jit(ft.grad(fun))(xp.asarray(x)))
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12 * np.abs(expected).max())


def test_beside_rows_and_numbers() -> None:
    x, row = RNG.normal(size=(60, 120)), RNG.normal(size=120)

    def fun(x: Any, row: Any) -> Any:
        return ft.grad(lambda x: xp.sum(x[:, ::2] ** 2))(x) * row + 1.0 - x[:1]

    expected = np.asarray(fun(xp.asarray(x), xp.asarray(row)))
    found = np.asarray(ft.jit(fun)(xp.asarray(x), xp.asarray(row)))
    np.testing.assert_array_equal(found, expected)


def test_one_kernel_reads_and_writes_pairs() -> None:
    x = np.ones(6000)
    (call,) = made_of(ft.grad(lambda x: xp.sum((x[::2] * x[1::2]) ** 2)), x).calls
    assert isinstance(call.kernel, Kernel)
    assert {a.inner for a in call.kernel.accesses} == {2, "none"}  # the other one is 0
