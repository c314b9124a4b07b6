"""What a mask keeps: both ways of packing give what NumPy gives, and leave no array."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from funct.kernels.cpu import loops
from funct.kernels.cpu.indexing import masked as cpu_masked
from funct.kernels.cpu.indexing import packing as cpu
from funct.kernels.indexing import masks
from funct.kernels.order import searching, sorting
from tests.kernels.arrays import SPECIAL, agree, agree_on_new

pytestmark = pytest.mark.skipif(not loops.available(), reason="there is no LLVM to compile with")

WAYS = [False, True] if loops.available() and masks.wide() else [False]


@pytest.fixture(autouse=True)
def _always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small arrays go to the kernels too."""
    monkeypatch.setattr(loops, "_LEAST", 1)
    monkeypatch.setattr(masks, "_FEW", 1)
    monkeypatch.setattr(masks, "_SOME", 1)


def _mask(seed: int, shape: Any, share: float) -> Any:
    return np.random.default_rng(seed).random(shape) < share


SHARES = st.sampled_from([0.0, 0.05, 0.5, 1.0])
LENGTHS = st.sampled_from([1, 2, 7, 8, 9, 16, 31, 67])


@pytest.mark.parametrize("wide", WAYS)
@given(st.integers(0, 99), LENGTHS, SHARES, st.sampled_from(["float32", "float64", "int64"]))
def test_elements_under_a_mask(wide: bool, seed: int, n: int, share: float, dtype: str) -> None:
    """In their order, with all of what is between them left out."""
    mask = _mask(seed, n, share)
    mask[seed % n] = True
    x, y = np.arange(n).astype(dtype), np.zeros(mask.sum(), dtype)
    agree(cpu.under, x, mask, y.copy(), n, len(y), wide)
    cpu.under(x, mask, y, n, len(y), wide)
    np.testing.assert_array_equal(y, x[mask])


@given(
    st.integers(0, 99),
    LENGTHS,
    SHARES,
    st.sampled_from(["float32", "float64", "int8", "complex64"]),
)
def test_a_number_under_a_mask(seed: int, n: int, share: float, dtype: str) -> None:
    """Of any dtype that fits a word, in any task, and all else as it was."""
    mask = _mask(seed, (2, n), share)
    x, v = np.arange(2 * n).astype(dtype).reshape(2, n), np.full(1, 7, dtype)
    if dtype != "complex64":
        agree(cpu.replaced, x, v, mask, np.zeros_like(x), 2 * n, 9, -(-2 * n // 9))
        agree_on_new(cpu.replaced_few, x, x, v, mask, False, False)
        agree_on_new(cpu.chosen, x, mask, x, x[::-1].copy())
    if dtype[0] == "f":
        agree_on_new(cpu.replaced_few, x, x, 7.0, mask, True, False)
        agree_on_new(cpu.replaced_few, x, x, 7.0, mask, True, True)
    for number in (v, 7.0):
        y = masks.replaced(x, number, mask)
        np.testing.assert_array_equal(y, np.where(mask, v, x), strict=True)
        gaps = masks.replaced(x[:, ::2], number, mask[:, ::2])
        assert gaps is None or np.array_equal(gaps, np.where(mask, v, x)[:, ::2])


CHANGES: Any = {"set": lambda a, v: v, "add": np.add, "min": np.minimum}


@given(
    st.integers(0, 99), LENGTHS, SHARES,
    st.sampled_from([("float16", "add"), ("float64", "min"), ("int8", "set")]),
)  # fmt: skip
def test_rows_and_elements_are_changed_under_a_mask(
    seed: int, n: int, share: float, kind: tuple[str, str]
) -> None:
    """By one number, in any task; and by as many elements as it holds."""
    dtype, mode = kind
    mask, rng = _mask(seed, (n,), share), np.random.default_rng(seed)
    for inner in (1, 3, 20):
        x = rng.integers(-3, 4, (n, inner)).astype(dtype)
        v = np.full(1, 2, dtype)
        agree(cpu_masked.combine_under, x, v, mask, np.zeros_like(x), n, inner, mode, 9, -(-n // 9))
        agree_on_new(cpu_masked.combined_under, x, x, v, mask, n, inner, mode, False)
        expected = x.copy()
        expected[mask] = CHANGES[mode](x[mask], v)
        y = masks.combined_under(x, v, mask, mode)
        np.testing.assert_array_equal(y, expected, strict=True)
        if n > 1:
            assert masks.combined_under(x[::-1], v, mask, mode) is None
    line, w = x[:, 0].copy(), np.arange(mask.sum()).astype(dtype)
    for given_ in (w, np.zeros(len(w) + 1, dtype)):
        if given_.size:
            agree(cpu_masked.fill_under, line, given_, mask, np.zeros_like(line), n, given_.size)
            agree_on_new(cpu_masked.filled_under, line, line, given_, mask, given_.size)
        y = masks.filled_under(line, given_, mask)
        assert (y is None) == (given_ is not w or not w.size)
        if y is not None:
            line[mask] = w
            np.testing.assert_array_equal(y, line, strict=True)


@given(st.integers(0, 99), LENGTHS, SHARES, st.sampled_from(["float32", "float64", "int64"]))
def test_one_of_two_under_a_mask(seed: int, n: int, share: float, dtype: str) -> None:
    """What `np.where` chooses, also of arrays that broadcast or have gaps, which are left to it."""
    mask = _mask(seed, (2, n), share)
    x = np.arange(2 * n).astype(dtype).reshape(2, n)
    y = -x
    for m, a, b in (
        (mask, x, y), (mask[0], x, y), (mask, x[0], y), (mask[:, ::2], x[:, ::2], y[:, ::2]),
        (mask.T, x.T, y.T),
    ):  # fmt: skip
        np.testing.assert_array_equal(searching.where(m, a, b), np.where(m, a, b), strict=True)
        for c, k in ((a, 2.5), (2.5, b)):
            made = searching.where(m, c, k)
            assert made is None or dtype != "int64"
            if made is not None:
                np.testing.assert_array_equal(made, np.where(m, c, k), strict=True)
    assert searching.where(mask, x, y.astype("int8")) is None


@pytest.mark.parametrize("wide", WAYS)
@given(st.integers(0, 99), st.integers(1, 3), LENGTHS, SHARES)
def test_places_in_a_mask(wide: bool, seed: int, outer: int, n: int, share: float) -> None:
    """Rows and columns, or places alone."""
    mask = _mask(seed, (outer, n), share)
    mask[seed % outer, seed % n] = True
    count = int(mask.sum())
    rows, columns = np.zeros((2, count), np.int64)
    agree(cpu.places, mask, cpu.PLACES, rows.copy(), columns.copy(), outer, n, count, wide)
    cpu.places(mask, cpu.PLACES, rows, columns, outer, n, count, wide)
    for a, b in zip((rows, columns), mask.nonzero(), strict=True):
        np.testing.assert_array_equal(a, b)
    cube = np.stack([mask, ~mask, mask], 1)
    more = cube, cube[:, ::-1], cube.T, cube[:, None] * 2
    for x in (mask, mask[0], mask * 0.5, mask[:, ::2], mask.astype(np.float16), mask * 1j, *more):
        for a, b in zip(masks.nonzero(x), x.nonzero(), strict=True):
            np.testing.assert_array_equal(a, b, strict=True)


@pytest.mark.parametrize("wide", WAYS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@given(st.integers(0, 99), st.integers(1, 3), LENGTHS, st.booleans())
def test_signs_of_zeros(
    wide: bool, dtype: Any, seed: int, outer: int, n: int, backwards: bool
) -> None:
    """They stand in a sorted row as they stood before, or the other way round."""
    rng = np.random.default_rng(seed)
    x = rng.choice(np.asarray([0.0, -0.0, 0.0, -0.0, *SPECIAL]), (outer, n)).astype(dtype)
    y = np.sort(np.where(x == 0, dtype(0), x))
    agree(cpu.zeros, x, y.copy(), cpu.PLACES, outer, n, backwards, wide)
    agree(cpu.negative_zero, x, x.size)
    cpu.zeros(x, y, cpu.PLACES, outer, n, backwards, wide)
    expected = sorting.plain_sort(x[:, ::-1] if backwards else x, 1, False)
    np.testing.assert_array_equal(y, expected)
    np.testing.assert_array_equal(np.signbit(y)[y == 0], np.signbit(expected)[y == 0])
    assert cpu.negative_zero(x, x.size) == (np.signbit(x) & (x == 0)).any()
