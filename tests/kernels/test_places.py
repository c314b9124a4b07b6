"""Places among sorted elements: machine code stays within its arrays and gives NumPy's answers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import funct as ft
from funct.kernels.cpu import loops
from funct.kernels.cpu.order import places as cpu
from funct.kernels.order import counting, searching
from funct.kernels.reductions import sampled
from tests.kernels.arrays import SPECIAL, agree

pytestmark = pytest.mark.skipif(not loops.available(), reason="there is no LLVM to compile with")


@pytest.fixture(autouse=True)
def _always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small arrays go to the kernels too, in several tasks."""
    monkeypatch.setattr(loops, "_LEAST", 1)
    monkeypatch.setattr(sampled, "_MANY", cpu.SEARCHED)
    monkeypatch.setattr(sampled, "_PART", cpu.SEARCHED)
    monkeypatch.setattr(searching, "_PART", 7)


@given(st.integers(1, 90), st.integers(0, 99), st.booleans(), st.sampled_from([32, 64, 1024]))
def test_no_index_leaves_its_array(n: int, seed: int, narrow: bool, part: int) -> None:
    """Run as Python, each kernel stays inside and gives what the machine code gives."""
    rng = np.random.default_rng(seed)
    dtype = np.float32 if narrow else np.float64
    table = np.sort(rng.choice(np.asarray(SPECIAL), n).astype(dtype))
    v = rng.choice(np.asarray(SPECIAL), 32 + n).astype(dtype)
    m, count = int(table.searchsorted(np.nan)), len(v)
    tasks = -(-count // part)
    for left in (False, True):
        agree(cpu.search, table, v, np.zeros(count, np.int64), m, n, count, part, left, tasks)
    if n > 1:
        counts = np.zeros((tasks, n + 1 + cpu.SEARCHED), np.int64)
        agree(cpu.count_between, v, table, counts, count, n - 1, m, part, tasks)
    points, f = np.sort(rng.integers(-4, 4, n)) / 2, rng.normal(size=n)
    agree(cpu.interpolate, v, points, f, np.zeros_like(v), n, count, -1.0, 9.0, part, tasks)
    k = 1 + seed % 5
    agree(cpu.among, v, table[:k].copy(), np.zeros(count, bool), count, min(k, n), part, tasks)
    for x in (v, np.sort(v), points, table):
        agree(cpu.ascend, x, len(x))
        assert cpu.ascend(x, len(x)) == (not (x[1:] < x[:-1]).any())


@given(
    st.integers(0, 90), st.integers(1, 40), st.integers(-20, 20), st.integers(0, 99),
    st.sampled_from(["int8", "uint8", "int32", "uint64", "int64"]),
)  # fmt: skip
def test_marks_are_looked_up_in_their_table(
    n: int, span: int, low: int, seed: int, dtype: str
) -> None:
    """What lies below and beyond has the mark behind the last; the ends of a dtype are far out."""
    rng = np.random.default_rng(seed)
    ends = np.iinfo(dtype)
    x = rng.choice(np.asarray([*range(100), ends.max, ends.min], dtype), n)
    marks = rng.integers(0, 2, span + 1).astype(np.uint8)
    y = np.zeros(n, np.uint8)
    agree(cpu.marked, x, marks, y, low, span, n, 32, -(-n // 32))
    cpu.marked(x, marks, y, low, span, n, 32, -(-n // 32))
    places = [int(v) - low for v in x]
    assert y.tolist() == [marks[k if 0 <= k < span else span] for k in places]


@given(st.integers(2, 90), st.integers(0, 300), st.integers(0, 99), st.booleans())
def test_counts_between_uneven_edges(bins: int, n: int, seed: int, narrow: bool) -> None:
    """On edges, next to them, outside, edges that are equal; nothing counts what is no number."""
    rng = np.random.default_rng(seed)
    dtype = np.float32 if narrow else np.float64
    edges = np.sort(rng.integers(-9, 9, bins + 1) / 3).astype(dtype)
    near = np.concatenate((edges, np.nextafter(edges, dtype(9)), np.nextafter(edges, dtype(-9))))
    x = rng.choice(np.concatenate((near, rng.normal(size=9), SPECIAL)), n).astype(dtype)
    found = counting.histogram_between(x, edges)
    np.testing.assert_array_equal(found, np.histogram(x[x == x], edges)[0])
    np.testing.assert_array_equal(found, counting.plain_histogram(x, edges))
    np.testing.assert_array_equal(found, counting.histogram_between(x[::-1], edges))
    whole = [np.nan_to_num(v * 3, posinf=20, neginf=-20).astype(np.int64) for v in (x, edges)]
    np.testing.assert_array_equal(counting.histogram_between(*whole), np.histogram(*whole)[0])


@given(
    st.integers(1, 40), st.integers(0, 200), st.integers(0, 99), st.booleans(),
    st.sampled_from(["bool", "int8", "uint32", "int64", "float32", "float64"]),
)  # fmt: skip
def test_elements_among_a_few(k: int, n: int, seed: int, invert: bool, dtype: str) -> None:
    """NaN equals none, zeros of both signs each other; of many, those near each other are found."""
    rng = np.random.default_rng(seed)
    pool = np.asarray(SPECIAL) if dtype[0] == "f" else np.arange(60)
    few, x = rng.choice(pool, k).astype(dtype), rng.choice(pool, n).astype(dtype)
    for v in (x, x[::-1], x[: n // 3 * 3].reshape(-1, 3)):
        found = searching.isin(v, few, invert)
        reach = int(few.max()) - int(few.min()) if dtype[0] != "f" else np.inf
        assert k <= 32 or (found is not None) == (reach <= v.size + k)
        assert k > 32 or found is not None or v.size * k > searching._FEW
        if found is not None:
            np.testing.assert_array_equal(found, np.isin(v, few, invert=invert))


def test_threads_change_no_bit() -> None:
    """One thread or several give the same lines and counts."""
    rng = np.random.default_rng(0)
    x, points, f = rng.normal(size=5000), np.sort(rng.normal(size=90)), rng.normal(size=90)
    found = []
    for threads in (1, 2):
        with ft.config.using(threads=threads):
            found.append((sampled.interp(x, points, f), counting.histogram_between(x, points)))
    for a, b in zip(*found, strict=True):
        assert a.tobytes() == b.tobytes()


@given(st.sampled_from(["int8", "uint64", "int32"]), st.integers(0, 40), st.integers(1, 9))
def test_ones_are_put_where_indices_say(dtype: str, n: int, classes: int) -> None:
    """All else is 0, also in the rows of indices outside."""
    x = np.random.default_rng(n).integers(0, 12, n).astype(dtype) - np.asarray(2, dtype)
    expected = (x[:, None] == np.arange(classes, dtype=dtype)).astype(np.float32)
    y = np.full(expected.shape, np.nan, np.float32)
    agree(cpu.hot, x, y, n, classes)
    cpu.hot(x, y, n, classes)
    np.testing.assert_array_equal(y, expected)
