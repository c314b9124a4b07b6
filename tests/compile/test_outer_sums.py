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
ROLES = ["x", "y", "both", "added", "added in x"]


def whole(*shape: int, dtype: str = "float32") -> Any:
    """Whole numbers, whose sums have the same bits in any order."""
    return RNG.integers(-4, 5, shape).astype(dtype)


def is_product(f: Any, *given: Any) -> bool:
    """Whether the program calls what is no loops over elements."""
    return any(not isinstance(call.kernel, Kernel) for call in made_of(f, *given).calls)


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
    assert is_product(f, x, y)
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
@settings(max_examples=150, deadline=None)
def test_any_axes_have_eager_bits(
    roles: list[str], sizes: list[int], expanded: bool, keepdims: bool, data: Any
) -> None:
    shape = sizes[: len(roles)]
    axes = tuple([a for a, role in enumerate(roles) if role.startswith("added")])
    of_x = [1 if role == "y" else n for role, n in zip(roles, shape, strict=True)]
    of_y = [1 if role in ("x", "added in x") else n for role, n in zip(roles, shape, strict=True)]
    x, y = whole(*of_x), whole(*of_y)

    def f(x: Any, y: Any) -> Any:
        both = xp.broadcast_arrays(x, y) if expanded else (x, y)
        terms = both[0] * both[1]
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
        np.testing.assert_allclose(found[0], slope @ y, rtol=1e-12)
        np.testing.assert_allclose(found[1], slope.T @ x, rtol=1e-12)
    elements = [call.kernel for call in made_of(grad, x, y).calls]
    assert sum(not isinstance(k, Kernel) for k in elements) >= 3


def test_what_is_read_elsewhere_or_decides_stays_a_sum() -> None:
    def also(x: Any, y: Any) -> Any:
        terms = x[:, :, None] * y[:, None]
        return terms, xp.sum(terms, axis=0)

    def decides(x: Any, y: Any) -> Any:
        return x if xp.sum(x[:, :, None] * y[:, None], axis=0)[0, 0] > 0 else y

    x, y = whole(32, 12), whole(32, 12)
    assert not is_product(also, x, y)
    assert not is_product(decides, x, y)
    assert not is_product(lambda x, y: xp.sum(x[:, :, None] * y[:, None], axis=0), x[:4], y[:4])
