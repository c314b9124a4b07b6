"""Sums of arrays that are broadcast against each other and multiplied are products of matrices."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import funct as ft
import funct.array as xp
from funct.compile.loops.kernel import Kernel
from tests.compile.test_bounds import in_steps, made_of

RNG = np.random.default_rng(0)
BESIDE = ("combine", "zeros", "transposed")  # calls that are no loops, and no products
ROLES = ["x", "y", "both", "neither", "added", "added in x", "added in neither"]
_NOT_X, _NOT_Y = ({r, "neither", "added in neither", f"added in {r}"} for r in "yx")


def whole(*shape: int, dtype: str = "float32") -> Any:
    """Whole numbers, whose sums have the same bits in any order."""
    return RNG.integers(-4, 5, shape).astype(dtype)


def products(f: Any, *given: Any) -> int:
    """How many products of matrices the program calls."""
    kernels = [call.kernel for call in made_of(f, *given).calls]
    others = [k for k in kernels if not isinstance(k, Kernel)]
    return sum(not isinstance(k, tuple) or k[0] not in BESIDE for k in others)


CASES = {
    "over the first axis": (lambda x, y: xp.sum(x[:, :, None] * y[:, None], axis=0), "ki,kj->ij"),
    "turned": (lambda x, y: xp.sum(y[:, :, None] * x[:, None, :], axis=0), "ki,kj->ji"),
    "over the last axis": (lambda x, y: xp.sum(x.T[:, None] * y.T[None], axis=-1), "ki,kj->ij"),
    "over the middle axis": (lambda x, y: xp.sum(x.T[:, :, None] * y, axis=1), "ki,kj->ij"),
    "kept": (lambda x, y: xp.sum(x[:, :, None] * y[:, None], axis=0, keepdims=True), "ki,kj->ij"),
    "mean": (lambda x, y: xp.mean(x[..., None] * y[:, None], axis=0) * x.shape[0], "ki,kj->ij"),
    "broadcast before": (
        lambda x, y: xp.sum(
            xp.broadcast_to(x[..., None], (32, 12, 20)) * xp.broadcast_to(y[:, None], (32, 12, 20)),
            axis=0,
        ),
        "ki,kj->ij",
    ),
}  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", CASES)
def test_sums_of_outer_products_are_products(name: str, dtype: str) -> None:
    f, how = CASES[name]
    x, y = whole(32, 12, dtype=dtype), whole(32, 20, dtype=dtype)
    assert products(f, x, y)
    (found,) = made_of(f, x, y).run(x, y)
    np.testing.assert_allclose(np.squeeze(found), np.einsum(how, x, y), rtol=1e-6)
    (again,) = in_steps(f, x, y)
    np.testing.assert_array_equal(again, found)


@given(
    roles=st.lists(st.sampled_from(ROLES), min_size=1, max_size=5),
    sizes=st.lists(st.sampled_from([1, 2, 9, 16, 17]), min_size=5, max_size=5),
    expanded=st.booleans(),
    keepdims=st.booleans(),
    data=st.data(),
)
@settings(max_examples=3 * settings.default.max_examples)
def test_any_axes_have_eager_bits(
    roles: list[str], sizes: list[int], expanded: bool, keepdims: bool, data: Any
) -> None:
    shape = sizes[: len(roles)]
    axes = tuple([a for a, role in enumerate(roles) if role.startswith("added")])
    of_x = [1 if role in _NOT_X else n for role, n in zip(roles, shape, strict=True)]
    of_y = [1 if role in _NOT_Y else n for role, n in zip(roles, shape, strict=True)]
    x, y = whole(*of_x), whole(*of_y)

    def f(x: Any, y: Any) -> Any:
        terms = xp.multiply(*[xp.broadcast_to(v, shape) if expanded else v for v in (x, y)])
        return xp.sum(terms, axis=axes, keepdims=keepdims)

    expected = np.asarray(f(xp.asarray(x), xp.asarray(y)))
    np.testing.assert_array_equal(np.asarray(ft.jit(f)(x, y)), expected)
    for found in (made_of(f, x, y).run(x, y)[0], in_steps(f, x, y)[0]):
        assert found.shape == expected.shape
        np.testing.assert_array_equal(found, expected)


def test_derivatives_of_sums_along_pairs_are_products() -> None:
    def loss(x: Any, y: Any) -> Any:
        return xp.sum(xp.tanh(0.1 * xp.sum(x[:, None] * y[None], axis=-1)))

    x, y = RNG.normal(size=(40, 24)), RNG.normal(size=(30, 24))
    grad = ft.grad(loss, (0, 1))
    slope = 0.1 * (1 - np.tanh(0.1 * x @ y.T) ** 2)
    for found in (made_of(grad, x, y).run(x, y), ft.jit(grad)(x, y)):
        # terms of size 1 may cancel
        np.testing.assert_allclose(found[0], slope @ y, rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(found[1], slope.T @ x, rtol=1e-12, atol=1e-14)
    assert products(grad, x, y) == 3


def test_what_is_read_elsewhere_or_decides_stays_a_sum() -> None:
    def also(x: Any, y: Any) -> Any:
        terms = x[:, :, None] * y[:, None]
        return terms, xp.sum(terms, axis=0)

    def decides(x: Any, y: Any) -> Any:
        return x if xp.sum(x[:, :, None] * y[:, None], axis=0)[0, 0] > 0 else y

    x, y = whole(32, 12), whole(32, 12)
    assert not products(also, x, y)
    assert not products(decides, x, y)
    assert not products(lambda x, y: xp.sum(x[:, :, None] * y[:, None], axis=0), x[:4], y[:4])


def test_what_was_rewritten_before_is_a_product_too() -> None:
    """Products of one inner term are outer products by then, whoever wrote them."""

    def of_matrices(x: Any, y: Any) -> Any:
        return xp.sum(x[:, :, None] @ y[:, None], axis=0)

    def third_derivative(w: Any, x: Any) -> Any:
        def u(t: Any, row: Any) -> Any:
            return xp.sum(xp.sin((t * row) @ w))

        return xp.sum(ft.vmap(ft.grad(ft.grad(u)), in_axes=(None, 0))(xp.ones(()), x))

    x, y = RNG.normal(size=(64, 24)), RNG.normal(size=(64, 20))
    made = made_of(of_matrices, x, y)
    assert products(of_matrices, x, y)
    np.testing.assert_allclose(made.run(x, y)[0], x.T @ y, rtol=1e-12, atol=1e-12)
    w = RNG.normal(size=(24, 20))
    (found,) = made_of(ft.grad(third_derivative), w, x).run(w, x)
    z = x @ w
    np.testing.assert_allclose(found, x.T @ (-2 * z * np.sin(z) - z * z * np.cos(z)), rtol=1e-9)


@pytest.mark.parametrize("axes", [1, (0, 1)])
def test_axes_that_no_operand_has(axes: Any) -> None:
    """Outer products repeated along another axis, which is kept or added up too."""
    x, y = whole(17, 12), whole(17, 9)

    def f(x: Any, y: Any) -> Any:
        shape = (3, 17, 12, 9)
        terms = xp.broadcast_to(x[:, :, None], shape) * xp.broadcast_to(y[:, None], shape)
        return xp.sum(terms, axis=axes)

    np.testing.assert_array_equal(np.asarray(ft.jit(f)(x, y)), f(xp.asarray(x), xp.asarray(y)))
