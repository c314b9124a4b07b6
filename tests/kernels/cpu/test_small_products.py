"""Stacks of small products: NumPy's values, one order of sums, nothing read or written outside."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import funct.array as xp
from funct.device import machine_code
from funct.device.host import Host, vector_bytes
from funct.kernels import table
from funct.kernels.cpu.small import products
from funct.kernels.linalg.products import matmul
from funct.kernels.table import restricted
from tests import guarded

if "llvm" not in table.available():
    pytest.skip("there is no LLVM here", allow_module_level=True)

SIDES = (0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16)
LEADS = (
    ((7,), (7,)), ((1,), (5,)), ((), (5,)), ((5,), ()), ((2, 3), (2, 3)), ((0,), (0,)),
    ((1, 1), (3,)), ((2, 3), (3,)),
)  # fmt: skip
DTYPES = ("float32", "float64")
COMPLEX = ("complex64", "complex128")


def drawn(shape: Any, dtype: str, layout: str, seed: int, at_end: bool) -> np.ndarray[Any, Any]:
    """Whole numbers, of which every sum is exact, between pages that may not be touched."""
    rng = np.random.default_rng(seed)
    x = rng.integers(-9, 9, shape) + (1j * rng.integers(-9, 9, shape) if dtype in COMPLEX else 0)
    x = x.astype(dtype)
    if layout == "turned":
        return guarded.copy(x.mT.copy(), at_end=at_end).mT
    if layout == "apart":
        wide = guarded.empty((*shape[:-1], 2 * shape[-1]), dtype, at_end=at_end)
        wide[..., ::2] = x
        return wide[..., ::2]
    if layout == "every other" and shape[:-2]:
        wide = guarded.empty((2 * shape[0], *shape[1:]), dtype, at_end=at_end)
        wide[::2] = x
        return wide[::2]
    if layout == "backwards" and shape[:-2]:
        return guarded.copy(x[::-1], at_end=at_end)[::-1]
    return guarded.copy(x, at_end=at_end)


layouts = st.sampled_from(["dense", "turned", "apart", "every other", "backwards"])


@given(
    st.tuples(*[st.sampled_from(SIDES)] * 3), st.sampled_from(LEADS),
    st.sampled_from(DTYPES + COMPLEX),
    layouts, layouts, st.booleans(),
)  # fmt: skip
def test_every_sum_is_right(
    sizes: Any, leads: Any, dtype: str, first: str, second: str, at_end: bool
) -> None:
    (m, k, n), (of_x, of_y) = sizes, leads
    x = drawn((*of_x, m, k), dtype, first, 1, at_end)
    y = drawn((*of_y, k, n), dtype, second, 2, at_end)
    before = x.copy(), y.copy()
    multiply = products.complex_matmul if dtype in COMPLEX else products.matmul
    with guarded.memory(at_end=at_end):
        z = multiply(x, y)
    if z is not NotImplemented:
        np.testing.assert_array_equal(z, np.matmul(x, y), strict=True)
    np.testing.assert_array_equal(x, before[0])
    np.testing.assert_array_equal(y, before[1])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("side", [2, 3, 4, 5, 6, 7, 8])
def test_small_ones_are_taken(side: int, dtype: str) -> None:
    """In each layout, by matrices and by vectors: the test above would not see one refused."""
    for columns in (1, side):
        for first in ("dense", "turned"):
            for second in ("dense", "turned"):
                x = drawn((9, side, side), dtype, first, 1, True)
                y = drawn((9, side, columns), dtype, second, 2, True)
                assert products.matmul(x, y) is not NotImplemented


@pytest.mark.parametrize("dtype", DTYPES)
def test_bits_do_not_depend_on_strides(dtype: str) -> None:
    rng = np.random.default_rng(0)
    for m, k, n in ((5, 5, 5), (8, 8, 1), (3, 7, 4), (1, 5, 6), (6, 4, 1)):
        x, y = (rng.normal(size=(11, *s)).astype(dtype) for s in ((m, k), (k, n)))
        expected = products.matmul(x, y).tobytes()
        for a in (x, x.mT.copy().mT, np.repeat(x, 2, 0)[::2]):
            for b in (y, y.mT.copy().mT, np.repeat(y, 2, 0)[::2]):
                assert products.matmul(a, b).tobytes() == expected
        single = [products.matmul(x[i : i + 1], y[i : i + 1]) for i in range(11)]
        assert np.concatenate(single).tobytes() == expected


@pytest.mark.parametrize("dtype", DTYPES)
def test_rounding_is_that_of_products_in_order(dtype: str) -> None:
    """Within k roundings of the sum of absolute values, whatever cancels."""
    rng = np.random.default_rng(0)
    x, y = (rng.normal(size=(99, 7, 7)).astype(dtype) for _ in range(2))
    z = products.matmul(x, y)
    exact = x.astype(np.longdouble) @ y.astype(np.longdouble)
    bound = 7 * np.finfo(dtype).eps * (np.abs(x).astype(np.longdouble) @ np.abs(y))
    assert np.all(np.abs(z - exact) <= bound)


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_numbers_that_are_none_stay_in_their_sums() -> None:
    x = np.ones((9, 5, 5))
    x[4, 2, 3], x[5, 0, 0] = np.nan, np.inf
    for y in (np.ones((9, 5, 5)), np.ones((9, 5, 1))):
        np.testing.assert_array_equal(products.matmul(x, y), np.matmul(x, y))


def test_many_are_many_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(products, "_TASK", 64)
    for count in (1, 2, 3, 31, 1000):
        x = np.random.default_rng(count).integers(-9, 9, (count, 3, 3)).astype(np.float64)
        np.testing.assert_array_equal(products.matmul(x, x), x @ x)


def test_the_array_function_takes_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """From so many matrices on; without LLVM, of other dtypes and where shapes do not fit, NumPy
    does.
    """
    asked = []
    found = products.matmul
    monkeypatch.setattr(products, "matmul", lambda x, y: asked.append(1) or found(x, y))
    table._load.cache_clear()
    rng = np.random.default_rng(0)
    try:
        x = rng.normal(size=(1000, 5, 5))
        z = xp.asarray(x) @ xp.asarray(x)
        assert asked == [1]
        np.testing.assert_allclose(np.asarray(z), x @ x, rtol=1e-13, atol=1e-13)
        with restricted():
            np.testing.assert_array_equal(matmul(x, x), x @ x)
        matmul(x[:4], x[:4])
        matmul(x.astype(complex), x)
        matmul(x, x.astype(np.float32))
        with pytest.raises(ValueError, match="matmul"):
            matmul(x, x[:, :4])
        with pytest.raises(ValueError, match=r"matmul|broadcast"):
            matmul(x, x[:999])
        assert asked == [1, 1]  # the last, which is then NumPy's to refuse
        y = rng.normal(size=(200, 8, 8))
        np.testing.assert_allclose(matmul(y, y), y @ y, rtol=1e-13, atol=1e-13)
        matmul(y[:100], y[:100])
        matmul(x[:200, :4, :4], x[:200, :4, :4])
        assert asked == [1, 1, 1]  # some, if there is more to multiply
    finally:
        table._load.cache_clear()


@pytest.mark.parametrize(
    ("name", "features"),
    [
        ("haswell", {"avx", "avx2", "fma"}),
        ("znver4", {"avx", "avx2", "fma", "avx512f", "avx512dq", "avx512bw", "avx512vl"}),
    ],
)
def test_code_for_other_processors(name: str, features: set[str]) -> None:
    """Made, not run."""
    target = Host(name, frozenset(features), vector_bytes(frozenset(features)), 1)
    for sizes, steps in (
        ((5, 5, 5), ((5, 1), (5, 1))), ((1, 5, 5), ((5, 1), (1, 5))),
        ((2, 13, 9), ((13, 1), (1, 13))),
    ):  # fmt: skip
        for element in ("f32", "f64"):
            made = products.text(element, sizes, steps, target)
            assert machine_code.emit(made, target)[:4] == b"\x7fELF"
