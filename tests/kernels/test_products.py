"""Products of matrices: NumPy's values and dtypes for everything, integers modulo their range."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from funct.kernels import table
from funct.kernels.cpu.dense import products as fast
from funct.kernels.linalg.products import integer_matmul, matmul, outer_product
from tests.kernels.arrays import whole_range

INTEGERS = ("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8")
here = pytest.mark.skipif(
    not table.available().issuperset(("llvm", "avx2")), reason="the processor lacks AVX2"
)


@st.composite
def shapes(draw: st.DrawFn) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Of two stacks of matrices that can be multiplied."""
    m, k, n = (draw(st.sampled_from([0, 1, 2, 4, 5, 7, 8, 9, 17, 33])) for _ in range(3))
    lead = draw(st.sampled_from([((), ()), ((3,), ()), ((3,), (3,)), ((2, 1), (3,)), ((), (2,))]))
    return (*lead[0], m, k), (*lead[1], k, n)


@given(shapes(), st.sampled_from(INTEGERS), st.booleans())
def test_integers_wrap_around_as_in_numpy(given: Any, dtype: str, turned: bool) -> None:
    """Whatever computes them, and also of transposed views."""
    x, y = (whole_range(shape, dtype, k) for k, shape in enumerate(given))
    if turned and y.ndim == 2:
        y = np.asfortranarray(y)
    expected = np.matmul(x, y)
    found = [matmul(x, y), integer_matmul(x, y)]
    if table.available().issuperset(("llvm", "avx2")):
        found.append(fast.integer_matmul(x, y))
    for z in found:
        if z is not NotImplemented:
            np.testing.assert_array_equal(z, expected, strict=True)


@here
@pytest.mark.parametrize("dtype", INTEGERS)
def test_large_integer_products(dtype: str) -> None:
    """Through the table, over several bands."""
    x, y = whole_range((3, 70, 130), dtype, 1), whole_range((130, 75), dtype, 2)
    np.testing.assert_array_equal(matmul(x, y), np.matmul(x, y), strict=True)


@pytest.mark.parametrize("x", ["i1", "u1", "i4", "?"])
@pytest.mark.parametrize("y", ["i2", "u8", "?"])
def test_mixed_dtypes_are_numpys(x: str, y: str) -> None:
    a = np.random.default_rng(0).integers(0, 2, (40, 30)).astype(x)
    b = np.random.default_rng(1).integers(0, 2, (30, 50)).astype(y)
    np.testing.assert_array_equal(matmul(a, b), np.matmul(a, b), strict=True)


def test_half_precision_is_summed_in_single() -> None:
    x = np.full((1, 4096), 1.0, np.float16)
    x[0, 0] = 2048
    y = matmul(x, np.ones((4096, 1), np.float16))
    assert y.dtype == np.float16
    assert y[0, 0] == np.float16(2048 + 4095)  # in half precision it would stay 2048


@pytest.mark.parametrize(
    ("x", "y"),
    [((200, 1), (1, 300)), ((2, 200, 1), (3, 1, 1, 300)), ((200, 1), (2, 1, 300)),
     ((0, 200, 1), (1, 300))],
)  # fmt: skip
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
def test_sums_of_one_term_are_numpys(x: Any, y: Any, dtype: str) -> None:
    """Bit for bit, with zeros and infinities."""
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(s).astype(dtype) for s in (x, y))
    a[..., :2, 0], b[..., 0, :3] = 0.0, [-1.0, 0.0, np.inf]
    with np.errstate(invalid="ignore"):
        found, expected = matmul(a, b), np.matmul(a, b)
    np.testing.assert_array_equal(found, expected, strict=True)
    number = ~np.isnan(expected)
    for part in (np.real, np.imag):
        signs = [np.signbit(part(v[number])) for v in (found, expected)]
        np.testing.assert_array_equal(*signs)
    with pytest.raises(ValueError, match="mismatch"):
        matmul(a, np.concatenate([b, b], -2))


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
@pytest.mark.parametrize("terms", [2, 3, 16, 31, 32, 33])
@pytest.mark.parametrize(("rows", "columns"), [(1030, 512), (257, 1024), (70, 4096), (512, 1000)])
def test_sums_of_few_terms(rows: int, columns: int, terms: int, dtype: str) -> None:
    """On both sides of where they are tiles, of whole numbers: their sums are exact."""
    rng = np.random.default_rng(terms)
    x = rng.integers(-8, 9, (rows, terms)).astype(dtype)
    y = rng.integers(-8, 9, (terms, columns)).astype(dtype)
    expected = np.einsum("ij,jk->ik", x, y)
    for a in (x, np.asfortranarray(x)):
        np.testing.assert_array_equal(matmul(a, y), expected, strict=True)
    np.testing.assert_array_equal(matmul(x, y[:, 0]), expected[:, 0], strict=True)
    x[0, 0], y[0, 1] = np.inf, np.nan
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(matmul(x, y), x @ y, strict=True)
    with pytest.raises(ValueError, match=r"matmul|aligned"):
        matmul(x, y[1:])


@given(shapes())
def test_stacks_times_one_matrix(given: Any) -> None:
    x, y = (np.random.default_rng(0).standard_normal(shape) for shape in given)
    expected = np.matmul(x, y)
    z = matmul(x, y)
    assert z.shape == expected.shape
    np.testing.assert_allclose(z, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("dtype", ["f4", "f2", "i4"])
@pytest.mark.parametrize(("x", "y"), [((3, 4), (5, 4)), ((2, 30, 40), (41, 30)), ((), (3,))])
def test_shapes_that_do_not_fit_are_refused(dtype: str, x: Any, y: Any) -> None:
    with pytest.raises(ValueError, match=r"matmul|aligned"):
        matmul(np.zeros(x, dtype), np.zeros(y, dtype))


@pytest.mark.parametrize(("m", "n"), [(150, 130), (700, 600)])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", ml_dtypes.bfloat16])
def test_products_of_a_column_and_a_row(m: int, n: int, dtype: Any) -> None:
    """By each way there is: rounded once, and 0 where a product is -0."""
    rng = np.random.default_rng(0)
    x, y = (rng.standard_normal(s).astype(dtype) for s in ((m, 1), (1, n)))
    x[:2, 0], y[0, :3] = 0.0, [-1.0, 0.0, 2.0]
    expected = x * y
    for z in (matmul(x, y), outer_product(x, y), matmul(x.copy().T.swapaxes(0, 1), y)):
        np.testing.assert_array_equal(z, expected, strict=True)
        assert not np.signbit(z[np.asarray(z == 0)].astype(np.float32)).any()
