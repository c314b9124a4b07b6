"""Products of sparse matrices: machine code gives what NumPy gives, and refuses what NumPy does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from funct.kernels.cpu import loops
from funct.kernels.cpu.products import csr as cpu
from funct.kernels.linalg import csr as kernels
from funct.settings import config
from tests.kernels.arrays import agree, agree_on_new, misaligned

pytestmark = pytest.mark.skipif(not loops.available(), reason="there is no LLVM to compile with")


@pytest.fixture(autouse=True)
def _always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Products are dealt to several tasks."""
    monkeypatch.setattr(kernels, "_PART", 5)


def _matrix(rng: Any, rows: int, n: int, dtype: str, index: str) -> tuple[Any, Any, Any]:
    """Rows of any length, none included, columns in any order and more than once."""
    counts = rng.integers(0, 5, rows) if n else np.zeros(rows, int)
    indptr = np.concatenate(([0], np.cumsum(counts))).astype(index)
    indices = rng.integers(0, max(n, 1), int(indptr[-1])).astype(index)
    return (rng.integers(-4, 5, len(indices))).astype(dtype), indices, indptr


@given(
    st.integers(0, 9), st.integers(0, 9), st.sampled_from([1, 2, 8, 33, 41]), st.integers(0, 99),
    st.sampled_from(["float32", "float64", "int32"]), st.sampled_from(["int32", "int64", "uint8"]),
    st.booleans(),
)  # fmt: skip
def test_products_are_those_of_numpy(
    rows: int, n: int, k: int, seed: int, dtype: str, index: str, odd: bool
) -> None:
    """All shapes from empty on, dtypes of numbers and indices, strided and misaligned arrays."""
    rng = np.random.default_rng(seed)
    data, indices, indptr = _matrix(rng, rows, n, dtype, index)
    x, g = (rng.integers(-4, 5, (s, 2 * k)).astype(dtype)[:, ::2] for s in (n, rows))
    if odd and data.size:
        data, x = misaligned(data), x if not x.size else misaligned(np.ascontiguousarray(x))
    for given_, transposed in ((x, False), (g, True)):
        args = data, given_, indices, indptr, n, transposed
        expected = kernels.plain_matmul(*args)
        actual = kernels.matmul(*args)
        assert (actual.shape, actual.dtype) == (expected.shape, expected.dtype)
        np.testing.assert_array_equal(actual, expected)
    expected = kernels.plain_sampled(g, x, indices, indptr)
    np.testing.assert_array_equal(kernels.sampled(g, x, indices, indptr), expected)


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize(
    ("indices", "indptr"),
    [([0, 5], [0, 1, 2]), ([0, -1], [0, 1, 2]), ([0, 1], [0, 1, 3]), ([0, 1], [-1, 1, 2]),
     ([0, 1], [0, 3, 2]), (list(range(40)) + [40] + [0] * 40, [0, 1, 81]),
     ([0, 5], [0, 1, 1]), ([-1, 0], [1, 1, 2])],
)  # fmt: skip
def test_what_is_out_of_bounds_is_refused(indices: Any, indptr: Any, k: int, index: Any) -> None:
    """Columns and rows are checked before anything is read, also of entries that no row has."""
    indices, indptr = np.asarray(indices, index), np.asarray(indptr, index)
    n = 40 if len(indices) > 2 else 5
    data, x, g = np.ones(len(indices)), np.ones((n, k)), np.ones((2, k))
    for run in (
        lambda: kernels.matmul(data, x, indices, indptr, n, False),
        lambda: kernels.matmul(data, g, indices, indptr, n, True),
        lambda: kernels.sampled(g, x, indices, indptr),
        lambda: kernels.plain_matmul(data, x, indices, indptr, n, False),
    ):
        with pytest.raises(IndexError):
            run()


@pytest.mark.parametrize("k", [1, 7, 40])
def test_bits_depend_on_no_number_of_threads(k: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A row's sum has the order of its entries, whoever makes it."""
    rng = np.random.default_rng(k)
    data, indices, indptr = _matrix(rng, 500, 60, "float64", "int32")
    data, x = rng.normal(size=data.shape), rng.normal(size=(60, k))
    found = []
    for threads, part in ((1, 1 << 20), (2, 50), (2, 999)):
        monkeypatch.setattr(kernels, "_PART", part)
        with config.using(threads=threads):
            found.append(kernels.matmul(data, x, indices, indptr, 60, False).tobytes())
    assert len(set(found)) == 1


@given(st.integers(1, 9), st.integers(1, 9), st.integers(1, 41), st.integers(0, 99))
def test_no_index_leaves_its_array(rows: int, n: int, k: int, seed: int) -> None:
    """Run as Python, each kernel stays inside and gives what the machine code gives."""
    rng = np.random.default_rng(seed)
    data, indices, indptr = _matrix(rng, rows, n, "float32", "int32")
    x, g = (rng.integers(-4, 5, (s, k)).astype(np.float32) for s in (n, rows))
    if not indices.size:
        return
    agree(cpu.fits, indices, indptr, indices.size, rows, n - 1)
    agree(cpu.fits, indices, indptr, indices.size - 1, rows, max(n - 1 - seed % 2, 0))
    split = 2, -(-rows // 2)
    y, back = np.zeros((rows, k), np.float32), np.zeros((n, k), np.float32)
    one, none, other = x[:, 0].copy(), y[:, 0].copy(), g[:, 0].copy()
    entries, last, wrong = indices.size, max(n - 1 - seed % 2, 0), np.zeros(1, np.int64)
    given_ = data, indices, indptr
    agree(cpu.checked_matvec, *given_, one, none, wrong, entries, rows, last, *split)
    agree(cpu.checked_scattered, *given_, other, back[:, 0].copy(), rows, entries, last)
    agree(cpu.matmul, data, indices, indptr, x, y, rows, k, *split)
    agree(cpu.scattered, data, indices, indptr, g, back, rows, k)
    for k_, x_, g_ in ((k, x, g), (1, x[:, 0].copy(), g[:, 0].copy())):
        for most in (n - 1, max(n - 2, 0)):
            sizes = indices.size, rows, k_, most
            given_ = data, indices, indptr
            new = np.zeros(rows * k_, np.float32)
            agree_on_new(cpu.product_of_few, new, *given_, x_, new.size, *sizes, False, k_ == 1)
            new = np.zeros(n * k_, np.float32)
            agree_on_new(cpu.product_of_few, new, *given_, g_, new.size, *sizes, True, k_ == 1)
    agree(cpu.dots, g, x, indices, indptr, np.zeros_like(data), rows, k, *split)


@pytest.mark.parametrize(
    "lengths", [(9, 9), (8, 30), (0, 40), (0, 200), (300, 600), (5, 6), (3, 3), (1, 5), (2, 2, 90)]
)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
def test_rows_of_middling_length_are_summed_in_order(lengths: tuple[int, ...], dtype: str) -> None:
    """Products of several rows are made together, and have the bits of NumPy's sums; a column that
    there is not is refused wherever it stands, and infinities stay in their rows.
    """
    rng = np.random.default_rng(sum(lengths))
    counts = rng.integers(lengths[0], lengths[1], 77, endpoint=True)
    counts[40:50:4] = lengths[-1]
    indptr = np.concatenate(([0], np.cumsum(counts))).astype(np.int32)
    indices = rng.integers(0, 50, int(indptr[-1])).astype(np.int32)
    data = (1000 * rng.normal(size=len(indices))).astype(dtype)
    if dtype != "int64":
        data[::97] = np.inf
    for transposed, n in ((False, 50), (True, 77)):
        x = (1000 * rng.normal(size=(n, 1))).astype(dtype)
        args = data, x, indices, indptr, 50, transposed
        with np.errstate(invalid="ignore"):
            expected = kernels.plain_matmul(*args)
        np.testing.assert_array_equal(kernels.matmul(*args), expected)
        outside = indices.copy()
        outside[-2] = 50
        with pytest.raises(IndexError):
            kernels.matmul(data, x, outside, indptr, 50, transposed)
