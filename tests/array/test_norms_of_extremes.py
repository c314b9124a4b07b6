"""Norms where squares overflow or underflow, and of infinite elements: values and derivatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

L = xp.linalg
NORMS: dict[str, Callable[[Any], Any]] = {
    "vector_norm": L.vector_norm,
    "rows": lambda x: xp.sum(L.vector_norm(x[None, :], axis=1)),
    "kept": lambda x: xp.sum(L.vector_norm(x, keepdims=True)),
    "beside ordinary ones": lambda x: L.vector_norm(xp.stack([xp.ones_like(x), x]), axis=1)[1],
    "matrix_norm": lambda x: L.matrix_norm(xp.reshape(x, (1, -1))),
    "norm": L.norm,
}
SIZES = {
    "float32": [1e-45, 1e-40, 1e-30, 1e-19, 1e-13, 1.0, 1e13, 1e18, 1e20, 1e30, 3e37],
    "float64": [5e-324, 1e-310, 1e-200, 1e-160, 1e-135, 1.0, 1e130, 1e153, 1e155, 1e200, 1e307],
    "complex128": [1e-310, 1e-200, 1e-160, 1.0, 1e153, 1e155, 1e200, 1e307],
}
SHAPE = np.array([2.0, 0.0, -3.0, 6.0])  # of length 7


@pytest.mark.parametrize("name", NORMS)
@pytest.mark.parametrize("dtype", SIZES)
def test_of_any_size(dtype: str, name: str) -> None:
    """Those of the same vector, scaled to 1, in every way of asking but compiled."""
    f = NORMS[name]
    turn = 1j if dtype == "complex128" else 1.0
    for size in SIZES[dtype]:
        real = (SHAPE * size).astype("float32" if dtype == "float32" else "float64")
        x = (real * turn).astype(dtype)
        scale = float(np.max(np.abs(real)))
        unit = real.astype("float64") / scale * turn
        length = float(np.linalg.norm(unit))
        given = xp.asarray(x)
        rtol = 1e-6 if dtype == "float32" else 1e-14
        least = float(np.finfo(dtype).smallest_subnormal)
        close = {"rtol": rtol, "atol": least}
        np.testing.assert_allclose(float(f(given)), length * scale, **close)
        np.testing.assert_allclose(np.asarray(ft.vmap(f)(given[None])), [length * scale], **close)
        slope = unit / length
        rtol = max(rtol, least / scale)  # the norm of subnormal numbers is rounded to one
        for way in (ft.grad(f), ft.vmap(ft.grad(f)), lambda v: ft.vjp(f, v)[1](xp.ones(()))[0]):
            batched = getattr(way, "__name__", "").startswith("vmap")
            found = np.asarray(way(given[None] if batched else given)).reshape(-1)
            np.testing.assert_allclose(found, slope, rtol, 1e-300)
        y, along = ft.jvp(f, (given,), (xp.asarray(slope.astype(dtype)),))
        np.testing.assert_allclose(float(along), 1.0, rtol)
        np.testing.assert_allclose(float(y), length * scale, **close)


@pytest.mark.parametrize("size", [1e-150, 1e-145, 1.0, 1e150, 1e155, 1e200])
def test_second_derivatives(size: float) -> None:
    """(1 - u u') / n, with u = x / n."""
    u = SHAPE / 7.0
    wanted = (np.eye(4) - np.outer(u, u)) / 7.0
    found = np.asarray(ft.hessian(L.vector_norm)(xp.asarray(SHAPE * size)))
    np.testing.assert_allclose(found * size, wanted, 1e-12, 1e-15)


@pytest.mark.parametrize("name", NORMS)
@pytest.mark.parametrize(
    ("x", "slopes"),
    [
        ([1.0, np.inf], [0.0, 1.0]), ([-np.inf, 1e200], [-1.0, 0.0]),
        ([np.inf, 0.0], [1.0, 0.0]), ([np.nan, 1.0], [np.nan, np.nan]),
    ],
)  # fmt: skip
def test_infinite_elements(x: list[float], slopes: list[float], name: str) -> None:
    """What the derivatives beside them tend to, in both modes."""
    f, given = NORMS[name], xp.asarray(x)
    np.testing.assert_array_equal(np.asarray(f(given)), np.linalg.norm(x))
    np.testing.assert_array_equal(np.asarray(ft.grad(f)(given)), slopes)
    for k in (0, 1):
        along = ft.jvp(f, (given,), (xp.asarray(np.eye(2)[k]),))[1]
        np.testing.assert_array_equal(np.asarray(along), slopes[k])


@pytest.mark.parametrize("f", [L.vector_norm, ft.grad(L.vector_norm), ft.vmap(L.vector_norm)])
def test_a_program_does_not_keep_what_it_saw_first(f: Any) -> None:
    """Compiled for one size of elements, it is right for the others that it can compute."""
    compiled = ft.jit(f)
    for size in (1.0, 1e100, 1e-100):
        x = xp.asarray(SHAPE * size)
        x = x[None] if f.__name__.startswith("vmap") else x
        np.testing.assert_allclose(np.asarray(compiled(x)), np.asarray(f(x)), 1e-15)
    fresh = ft.jit(f)  # captured where squares overflow, it is the same program
    for size in (1e200, 1.0):
        x = xp.asarray(SHAPE * size)
        x = x[None] if f.__name__.startswith("vmap") else x
        np.testing.assert_array_equal(np.asarray(fresh(x)), np.asarray(compiled(x)))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_of_halves(dtype: str) -> None:
    """Squares of halves are taken in float32."""
    x = xp.astype(xp.asarray([300.0, 400.0]), getattr(xp, dtype))
    for f in (L.vector_norm, ft.jit(L.vector_norm)):
        y = f(x)
        assert y.dtype == x.dtype
        assert abs(float(y) - 500.0) <= 2.0


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 2, 3), (2, 0, 0)])
def test_of_nothing(shape: tuple[int, ...]) -> None:
    """No rows, and rows of nothing, with their derivatives."""
    x = xp.zeros(shape)
    f = lambda v: xp.sum(L.vector_norm(v, axis=-1)) + xp.sum(L.matrix_norm(v))  # noqa: E731
    assert float(f(x)) == 0.0
    assert ft.grad(f)(x).shape == shape
