"""Counting: machine code gives NumPy's integers, for any shape, dtype and stride."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from funct.kernels.cpu import loops
from funct.kernels.cpu.order import counting as cpu
from funct.kernels.order import counting, sorting
from tests.kernels.arrays import agree, agree_on_new, arrays, misaligned

pytestmark = pytest.mark.skipif(not loops.available(), reason="there is no LLVM to compile with")

INTEGERS = ["int8", "uint16", "int32", "int64"]


@pytest.fixture(autouse=True)
def _always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small arrays go to the kernels too, in several tasks."""
    monkeypatch.setattr(loops, "_LEAST", 1)
    monkeypatch.setattr(counting, "_LEAST", 1)
    monkeypatch.setattr(counting, "SORTED", 2)
    monkeypatch.setattr(counting, "_PART", 7)


@given(st.data(), st.sampled_from(INTEGERS))
def test_integers_are_counted(data: st.DataObject, dtype: str) -> None:
    """bincount, sort and distinct elements, from no element on, with steps and turned axes."""
    x = data.draw(arrays(dtype, min_rank=1)).reshape(-1)
    positive = x - min(x, default=0)
    for least in (0, 3, 9):
        expected = np.bincount(positive, None, least)
        np.testing.assert_array_equal(counting.bincount(positive, least), expected)
    found = counting.sort(x)
    assert found is None or np.array_equal(found, np.sort(x))
    found = counting.distinct(x, True, True)
    expected = np.unique(x, True, True, True)[1:]
    assert (found is None) == (x.size == 0)
    for a, b in zip(found or (), expected):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("n", [1, 15, 16, 17, 1000])
def test_the_least_and_the_greatest(dtype: str, n: int) -> None:
    """Whole vectors and what is left over, wherever the two stand."""
    limits = np.iinfo(dtype)
    x = np.random.default_rng(n).integers(limits.min, limits.max, n, dtype, endpoint=True)
    for k in range(min(n, 40)):
        y = np.roll(x, k)
        assert counting.bounds(y) == (int(x.min()), int(x.max()))
    assert counting.bounds(misaligned(x)) == (int(x.min()), int(x.max()))


def test_integers_that_lie_far_apart_are_left_to_sorting() -> None:
    """No table of counters is made that is longer than what is counted."""
    x = np.asarray([0, 2**62, -(2**62), 5] * 10)
    assert counting.sort(x) is None
    assert counting.distinct(x, False, False) is None
    np.testing.assert_array_equal(sorting.sort(x, 0, False), np.sort(x))
    with pytest.raises(ValueError, match="negative"):
        counting.bincount(x, 0)


@given(
    st.lists(st.floats(-4, 4, width=32) | st.sampled_from([0.0, -0.0, np.nan, np.inf, 0.1, 0.3])),
    st.integers(1, 9), st.sampled_from(["float32", "float64"]),
)  # fmt: skip
def test_bins_are_told_by_their_edges(values: list[float], bins: int, dtype: str) -> None:
    """What lies on an edge, next to it, outside and nowhere is counted as a search would."""
    edges = -1.0 + np.arange(bins + 1) * (2.7 / bins)
    near = np.concatenate((edges, np.nextafter(edges, -9), np.nextafter(edges, 9), values))
    x = near.astype(dtype)
    expected = counting.plain_histogram(x, edges)
    np.testing.assert_array_equal(counting.histogram(x, edges), expected)
    np.testing.assert_array_equal(counting.histogram(x[::-1], edges), expected)
    np.testing.assert_array_equal(expected, np.histogram(x, edges)[0])


@given(st.integers(1, 40), st.integers(1, 9), st.integers(1, 50), st.integers(0, 99))
def test_no_index_leaves_its_array(n: int, bins: int, part: int, seed: int) -> None:
    """Run as Python, each kernel stays inside and gives what the machine code gives."""
    rng = np.random.default_rng(seed)
    x = rng.integers(-3, 9, n).astype(np.int32)
    tasks = -(-n // part)
    agree(cpu.bounds, x, np.zeros(2 + 2 * cpu.LANES, np.int32), n)
    for values in (x, x + 3, x.astype(np.int8), (x + 3).astype(np.uint16)):
        agree(cpu.span, values, n, bins)
        if values.min() >= 0:
            agree_on_new(cpu.counted, np.zeros(20, np.int64), values, 20, counting._LIKE, n)
    for tables, low in ((1, 0), (cpu.TABLES, -2)):
        counts = np.zeros((tasks * tables, bins), np.int64)
        agree(cpu.count, x, counts, n, bins, low, tables, part, tasks)
    edges = np.linspace(-1.0, 1.0, bins + 1)
    counts = np.zeros((tasks * cpu.TABLES, bins + 1 + cpu.SIDE), np.int64)
    for near in (1e-9, 1.0):
        agree(cpu.count_bins, x / 3, edges, counts, n, bins, -1.0, bins / 2.0, near, part, tasks)
    if n >= cpu.LANES:
        for reals in (x / 3, np.where(x == x[-1], np.nan, x).astype(np.float32)):
            agree(cpu.limits, reals, np.zeros(2 + 2 * cpu.LANES, reals.dtype), n)
    low, span = int(x.min()), int(np.ptp(x)) + 1
    if n > 1:
        for wide, many in product((np.int32, np.int64), (x, np.tile(x, 9))):
            for room in (span, span - 1):
                y = np.zeros_like(many)
                agree(cpu.sort, many, np.zeros(span, wide), y, len(many), room)
            cpu.sort(many, np.zeros(span, wide), y, len(many), span)
            np.testing.assert_array_equal(y, np.sort(many))
    first, places = np.full(span, n), np.zeros(min(span, n), np.int64)
    agree(cpu.first_places, x, first, low, n)
    cpu.first_places(x, first, low, n)
    agree(cpu.ranks, first, places, span, n)
    cpu.ranks(first, places, span, n)
    agree(cpu.numbered, x, first, np.zeros(n, np.int64), low, n, part, tasks)


def test_counts_do_not_depend_on_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor on how the elements are shared out."""
    rng = np.random.default_rng(0)
    x, v = rng.integers(0, 50, 100_000), rng.normal(size=100_000)
    edges = np.histogram_bin_edges(v, 40)
    found: list[Any] = []
    for part in (7, 1 << 12, 1 << 20):
        monkeypatch.setattr(counting, "_PART", part)
        found.append((counting.bincount(x, 0), counting.histogram(v, edges)))
    for a, b in found:
        np.testing.assert_array_equal(a, np.bincount(x))
        np.testing.assert_array_equal(b, np.histogram(v, edges)[0])


@given(st.lists(st.booleans(), max_size=70), st.integers(1, 3))
def test_truth_is_told_apart_by_one_look(given: list[bool], step: int) -> None:
    """Of no elements, of one kind and of both, in any layout."""
    x = np.asarray(given, bool)[::step]
    values, first, inverse, often = np.unique(x, True, True, True)
    found = counting.distinct(x, True, True)
    assert found is not None
    for a, b in zip(found, (first, inverse, often), strict=True):
        np.testing.assert_array_equal(a, b)
        assert a.dtype == np.int64
    np.testing.assert_array_equal(x[found[0]], values)
