"""Sorting and searching: machine code gives the order of NumPy's stable sort."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ml_dtypes import bfloat16

from funct.device import machine_code
from funct.kernels.cpu import loops, outside
from funct.kernels.cpu.indexing import packing
from funct.kernels.cpu.order import column_sort as cpu_columns
from funct.kernels.cpu.order import ordering as cpu_ordering
from funct.kernels.cpu.order import presorted as cpu_known
from funct.kernels.cpu.order import sorting as cpu
from funct.kernels.cpu.order import words as cpu_words
from funct.kernels.cpu.order.presorted import STANDS, TURNED, in_order
from funct.kernels.indexing.masks import wide
from funct.kernels.order import bisection, columns, distinct, few_rows, sorting
from tests.kernels.arrays import SPECIAL, agree, agree_on_new, arrays, misaligned, same_signs

pytestmark = pytest.mark.skipif(not loops.available(), reason="there is no LLVM to compile with")

DTYPES = ["bool", "int8", "uint16", "int32", "int64", "uint64", "float16", "float32", "float64"]


@pytest.fixture(autouse=True, params=[False, True])
def _always(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """Small arrays go to the kernels too; with quick sorts in vectors, and with slow ones."""
    monkeypatch.setattr(loops, "_LEAST", 1)
    monkeypatch.setattr(sorting, "_LONG", 1)
    monkeypatch.setattr(sorting, "_SHORT", 1)
    monkeypatch.setattr(few_rows, "_SHORT", 2)
    monkeypatch.setattr(few_rows, "_IN_VECTOR", {2: 2, 4: 2, 8: 2})
    monkeypatch.setattr(few_rows, "SHORT", 60)
    monkeypatch.setattr(sorting, "_DIGITS", 1)
    monkeypatch.setattr(columns, "_TOGETHER", (1, 1))
    monkeypatch.setattr(columns, "_IN_SHORT", {4: 1, 8: 1})
    monkeypatch.setattr(columns, "_IN_VECTOR", {4: 1, 8: 1})
    monkeypatch.setattr(columns, "_MIDDLING", 1)
    monkeypatch.setattr(columns, "_NETWORK", 1)
    monkeypatch.setattr(columns, "_SHORTEST", 0)
    monkeypatch.setattr(sorting, "_DIGITS_LEAST", 1)
    monkeypatch.setattr(sorting, "_LONG_LINE", 40)
    monkeypatch.setattr(sorting, "_INSERTED", 20)
    monkeypatch.setattr(sorting, "_PER_SQUARE", 1)
    for module in (sorting, columns):
        monkeypatch.setattr(module, "packs_slowly", lambda: request.param)
    monkeypatch.setattr(columns, "_packs_otherwise", lambda: request.param)
    monkeypatch.setattr(columns, "_beside", columns._beside.__wrapped__)
    monkeypatch.setattr(sorting, "_by_digits", lambda: ((100, 3), (1, 2)))


def _ordered(x: Any, axis: int) -> None:
    for descending in (False, True):
        at = sorting.plain_argsort(x, axis, descending)
        same_signs(sorting.argsort(x, axis, descending), at)
        same_signs(sorting.sort(x, axis, descending), np.take_along_axis(x, at, axis))
    n = x.shape[axis]
    for k in {0, min(1, n), n // 2, n}:
        for a, b in zip(sorting.top_k(x, axis, k), sorting.plain_top_k(x, axis, k)):
            same_signs(a, b)


@given(st.data(), st.sampled_from(DTYPES))
def test_order_is_that_of_numpy(data: st.DataObject, dtype: str) -> None:
    """Any shape from empty on, any axis, steps and turned axes, special values."""
    x = data.draw(arrays(dtype, min_rank=1))
    _ordered(x, data.draw(st.integers(0, x.ndim - 1)))


@given(
    st.sampled_from(DTYPES[3:6] + DTYPES[7:]), st.integers(1, 3), st.integers(2, 70),
    st.integers(1, 40), st.booleans(), st.integers(0, 2**31),
)  # fmt: skip
def test_columns_are_sorted_side_by_side(
    dtype: str, outer: int, n: int, inner: int, special: bool, seed: int
) -> None:
    """Each for itself, in whole vectors and beside them; NaN and -0 are left to others."""
    rng, floats = np.random.default_rng(seed), dtype[0] == "f"
    x = (rng.standard_normal((outer, n, inner)) * 9).astype(dtype)
    if special:
        limits = np.finfo(dtype) if floats else np.iinfo(dtype)
        odd = [limits.min, limits.max, 0, 1, *([np.inf, -np.inf] if floats else [])]
        x = np.where(rng.random(x.shape) < 0.5, rng.choice(np.asarray(odd, dtype), x.shape), x)
    for descending in (False, True):
        found = columns.side_by_side(x, 1, descending)
        assert found is not None
        same_signs(found, sorting.plain_sort(x, 1, descending))
    if floats:
        x[rng.integers(outer), rng.integers(n), rng.integers(inner)] = rng.choice([np.nan, -0.0])
        assert columns.side_by_side(x, 1, False) is None
        _ordered(x, 1)
    assert columns.side_by_side(x[:, ::-1], 1, False) is None


def _long(dtype: str, n: int, kind: str) -> Any:
    rng = np.random.default_rng(n)
    if kind == "special":
        return rng.choice(np.asarray(SPECIAL if dtype[0] == "f" else [0, 1, 3]), n).astype(dtype)
    if kind == "wide" and dtype[0] != "f":
        limits = np.iinfo(dtype)
        return rng.integers(limits.min, limits.max, n, dtype, endpoint=True)
    if kind == "clustered":  # all but one agree in their first bits
        x = rng.integers(0, 200, n).astype(dtype)
        x[n // 2] = np.finfo(dtype).max if dtype[0] == "f" else np.iinfo(dtype).max
        return x
    return np.abs(rng.normal(size=n) * 100).astype(dtype)


@pytest.mark.pairwise
@pytest.mark.parametrize("dtype", DTYPES[1:])
@pytest.mark.parametrize("kind", ["special", "wide", "clustered", "normal"])
@pytest.mark.parametrize("n", [1000, 5_000])
def test_long_rows(dtype: str, kind: str, n: int) -> None:
    """Keys that fit beside the index and keys that do not, ties, and what is in order."""
    x = _long(dtype, n, kind)
    _ordered(np.sort(x), 0)
    _ordered(np.sort(x)[::-1], 0)
    _ordered(x, 0)
    _ordered(misaligned(x), 0)
    for a, b in zip(sorting.top_k(x, 0, n // 10), sorting.plain_top_k(x, 0, n // 10)):
        same_signs(a, b)


@pytest.mark.parametrize("rows", [(), (3,)])
def test_few_of_rows_that_ascend(rows: tuple[int, ...]) -> None:
    """Insertion gives them up, and a bound is sought for fewer words than a vector has."""
    x = np.sort(np.random.default_rng(5).normal(size=(*rows, 2000)), axis=-1)
    for k in (1, 2, 9, 32):
        for a, b in zip(sorting.top_k(x, x.ndim - 1, k), sorting.plain_top_k(x, x.ndim - 1, k)):
            same_signs(a, b)


@pytest.mark.parametrize("dtype", ["int64", "float64"])
def test_too_many_ties_of_cut_keys_are_sorted_by_more_of_them(dtype: str) -> None:
    """Where settling by insertion would take too long, the answer is still right."""
    x = np.arange(2000)[::-1].astype(dtype) + (2**40 if dtype == "float64" else 0)
    x[7] = 2**62
    _ordered(x, 0)


@pytest.mark.parametrize("dtype", ["int32", "int64", "float32", "float64"])
@pytest.mark.parametrize("axis", [0, 1])
def test_rows_by_digits(dtype: str, axis: int) -> None:
    """Each row is sorted for itself, whatever digits its keys have."""
    x = np.random.default_rng(6).normal(size=(4, 300)) * [[1], [1e3], [1e6], [0]]
    _ordered(np.ascontiguousarray(x.astype(dtype).T if axis == 0 else x.astype(dtype)), axis)


@given(
    st.integers(1, 3), st.integers(2, 40), st.booleans(), st.booleans(), st.integers(-1, 39),
    st.sampled_from(["int32", "float16", "float64"]), st.integers(0, 99),
)  # fmt: skip
def test_what_stands_in_order_is_known(
    rows: int, n: int, backwards: bool, descending: bool, odd: int, dtype: str, seed: int
) -> None:
    """Each row is as it is wanted, or strictly the other way; one element says that it is not."""
    rng = np.random.default_rng(seed)
    few = [-3, 0, 1, 7] if dtype == "int32" else SPECIAL
    x = np.sort(rng.choice(np.asarray(few, dtype), (rows, n)), -1)
    if seed % 2:
        x = np.arange(rows * n).reshape(rows, n).astype(dtype)
    x = np.ascontiguousarray(x[:, ::-1] if backwards else x)
    if 0 <= odd < n:
        x[rows - 1, odd] = 5
    agree(cpu_known.in_order, x, rows, n, descending)
    at = sorting.plain_argsort(x, 1, descending)
    stands, turned = ((at == v).all() for v in (np.arange(n), np.arange(n)[::-1]))
    assert in_order(x, rows, n, descending) == (STANDS if stands else TURNED if turned else 0)
    agree_on_new(cpu_known.positions, at[0], n, at[:1, :1], backwards)
    for k in {1, n // 2, n}:
        for line in (x[0], x[0, ::-1]):
            for a, b in zip(sorting.top_k(line, 0, k), sorting.plain_top_k(line, 0, k)):
                same_signs(a, b)


@pytest.mark.parametrize("dtype", ["float64", "int64", "float16"])
@pytest.mark.parametrize("k", [33, 100, 300])
def test_the_last_of_the_largest_may_be_equal_to_others(dtype: str, k: int) -> None:
    """Many are the greatest, or differ in bits alone that keys have no room for."""
    rng = np.random.default_rng(k)
    x = (rng.normal(size=2000) * 100).astype(dtype)
    x[rng.integers(0, 2000, 200)] = np.nan if dtype[0] == "f" else 1 << 62
    y = (1 << 53) + rng.integers(0, 3, 2000)
    for v in (x, y.astype(dtype) if dtype != "float16" else -x):
        for a, b in zip(sorting.top_k(v, 0, k), sorting.plain_top_k(v, 0, k)):
            same_signs(a, b)


@given(st.integers(100, 300), st.integers(1, 40), st.integers(0, 99))
def test_a_bound_of_the_least_words_is_found(n: int, fewest: int, seed: int) -> None:
    """In long rows by some of them, wherever these lie."""
    rng = np.random.default_rng(seed)
    x = np.exp(rng.normal(size=(2, n)) * (1 + seed % 9)).astype(np.int64) * n + np.arange(n)
    x = x.astype(np.uint64)
    most = fewest + cpu_words.SAMPLE
    some = np.zeros((2, most), np.uint64)
    agree(cpu_words.least, x, some, 2, n, fewest, most)
    if not cpu_words.least(x, some, 2, n, fewest, most):
        for row, found in zip(np.sort(x), np.sort(some), strict=True):
            np.testing.assert_array_equal(found[:fewest], row[:fewest])


@pytest.mark.parametrize("axis", [0, 1])
def test_halves_that_numpy_has_no_order_of(axis: int) -> None:
    """bfloat16 in long lines is ordered by its bits, as it is in float32."""
    x = np.random.default_rng(0).choice(np.asarray(SPECIAL), (80, 80)).astype(bfloat16)
    wide = x.astype(np.float32)
    for descending in (False, True):
        at = sorting.plain_argsort(wide, axis, descending)
        np.testing.assert_array_equal(sorting.argsort(x, axis, descending), at)
        found = sorting.sort(x, axis, descending).view(np.int16)
        np.testing.assert_array_equal(found, np.take_along_axis(x, at, axis).view(np.int16))
    for k in (3, 40):
        for a, b in zip(sorting.top_k(x, axis, k), sorting.plain_top_k(wide, axis, k)):
            same_signs(a.astype(b.dtype), b)
    key = np.zeros(x.shape, np.int16)
    agree(cpu_words.turn_halves, x.view(np.int16), key, x.size, 0x7F80)


@given(st.data(), st.sampled_from(DTYPES[1:]), st.sampled_from(["left", "right"]))
def test_places_are_those_of_numpy(data: st.DataObject, dtype: str, side: str) -> None:
    """searchsorted, with ties, NaN on both sides, and from no element on."""
    x = np.sort(data.draw(arrays(dtype, min_rank=1)).reshape(-1))
    v = data.draw(arrays(dtype))
    v = np.concatenate((np.repeat(v.reshape(-1), 9), x)) if data.draw(st.booleans()) else v
    v = np.sort(v, axis=None).repeat(99) if data.draw(st.booleans()) else v  # also many in order
    same_signs(bisection.searchsorted(x, v, side), bisection.plain_searchsorted(x, v, side))


@pytest.mark.parametrize("n", [0, 1, 2, 3, 1000, 4097])
@pytest.mark.parametrize("dtype", ["int32", "float32", "float64"])
def test_many_places(n: int, dtype: str) -> None:
    """Tables of any length, searched for more values than fit the lanes."""
    rng = np.random.default_rng(n)
    x, v = (rng.choice(np.arange(-50, 50) / 4, k).astype(dtype) for k in (n, 203))
    x.sort()
    if dtype[0] == "f":
        x[n - n // 4 :] = np.nan
        v[::7] = np.nan
    for side in ("left", "right"):
        same_signs(bisection.searchsorted(x, v, side), x.searchsorted(v, side))


@pytest.mark.parametrize("table", ["bool", "uint8", "int64", "uint64", "float16", "float64"])
@pytest.mark.parametrize("dtype", ["int16", "int64", "uint64", "float32", "float64", "complex64"])
def test_places_among_elements_of_another_dtype(dtype: str, table: str) -> None:
    """They are compared in what holds both, as NumPy does."""
    rng = np.random.default_rng(0)
    x, v = np.sort(rng.integers(0, 100, 50).astype(table)), rng.normal(40, 30, 203)
    v = np.abs(v).astype(dtype)
    for side in ("left", "right"):
        same_signs(bisection.searchsorted(x, v, side), x.searchsorted(v, side))


@given(st.data(), st.sampled_from(DTYPES))
def test_distinct_elements(data: st.DataObject, dtype: str) -> None:
    """Values, first places, inverse and counts are NumPy's, where every NaN is its own."""
    x = data.draw(arrays(dtype, min_rank=1)).reshape(-1)
    v, *expected = np.unique(x, True, True, True, equal_nan=False)
    same_signs(distinct.distinct_values(x), v)
    for a, b in zip(distinct.distinct_counts(x), (v, expected[-1]), strict=True):
        same_signs(a, b)
    for a, b in zip(distinct.distinct(x, True, True), expected, strict=True):
        same_signs(a, b)


@given(
    st.integers(1, 3), st.integers(2, 70), st.integers(1, 3), st.booleans(), st.integers(0, 99),
    st.sampled_from(["int32", "uint64", "float16", "float64"]),
)  # fmt: skip
def test_rows_of_few_elements_take_one_call(
    outer: int, n: int, inner: int, descending: bool, seed: int, dtype: str
) -> None:
    """Some stand in order, or turned: side by side, wherever they begin, and inside of arrays."""
    rng = np.random.default_rng(seed)
    some = np.asarray(SPECIAL if dtype[0] == "f" else [0, 1, 7, 100], dtype)
    x = rng.choice(some, (outer, n, inner)) if seed % 2 else rng.permutation(outer * n * inner)
    x = x.reshape(outer, n, inner).astype(dtype)
    x[-1] = np.sort(x[-1], 0)[:: 1 - seed // 2 % 2 * 2]
    at = sorting.plain_argsort(x, 1, descending)
    none, like, low = np.empty(0, x.dtype), np.zeros(1, np.int64), (n - 1).bit_length()
    room, words, line = np.zeros(2 * n, x.dtype), np.zeros(n, np.uint64), np.zeros(n, np.int64)
    given_ = (x, like, room if inner > 1 else none, words, line, n, inner, low, descending)
    agree_on_new(cpu_ordering.order_rows, at, *given_)
    if (found := cpu_ordering.order_rows(*given_)) is not None:
        np.testing.assert_array_equal(found, at, strict=True)
    if x.itemsize > 2:
        given_ = (x, room if inner > 1 else none, packing.PLACES, n, inner, descending, False)
        agree_on_new(cpu_ordering.sort_rows, x, *given_)
        found = cpu_ordering.sort_rows(*given_)
        same_signs(found, np.take_along_axis(x, at, 1))
    lines, most, k = np.ascontiguousarray(x[..., 0]), min(n, 40), min(n, 40) - 7 - seed % 33
    if most >= cpu_words.SAMPLE and k > 0:
        words, some = np.zeros(n, np.uint64), np.zeros(most, np.uint64)
        values, places = np.zeros((outer, k), x.dtype), np.zeros((outer, k), np.int64)
        given_ = (lines, words, some, values, places, outer, n, k, low, most)
        agree(cpu_ordering.largest_of_rows, *given_)
        if not cpu_ordering.largest_of_rows(*given_):
            for a, b in zip((values, places), sorting.plain_top_k(lines, 1, k), strict=True):
                same_signs(a, b)


@given(
    st.integers(1, 2), st.integers(128, 2200), st.integers(1, 14), st.booleans(), st.booleans(),
    st.integers(0, 99), st.sampled_from(["int32", "uint64", "float32", "float64"]),
)  # fmt: skip
def test_rows_of_few_values(
    rows: int, n: int, many: int, late: bool, descending: bool, seed: int, dtype: str
) -> None:
    """Up to as many as are counted, and more; some stand only at the end, special ones too."""
    rng = np.random.default_rng(seed)
    some = rng.normal(0, 9, many) if seed % 3 else rng.choice(np.asarray(SPECIAL), many)
    some = np.append(some, [0.0, -0.0]) if dtype[0] == "f" else some[np.isfinite(some)].round()
    some = np.abs(np.append(some, 1)).astype(dtype) if dtype[0] != "f" else some.astype(dtype)
    x = rng.choice(some[: len(some) // 2 + 1] if late else some, (rows, n))
    x[:, n - 40 :] = rng.choice(some, (rows, 40))
    given_ = (x, np.empty(0, dtype), packing.PLACES, n, 1, descending, False)
    agree_on_new(cpu_ordering.sort_rows, x, *given_)
    found = cpu_ordering.sort_rows(*given_)
    expected = sorting.plain_sort(x, 1, descending)
    same_signs(found, expected)


@given(
    st.integers(1, 3), st.integers(2, 70), st.integers(0, 69), st.booleans(), st.integers(0, 99),
    st.sampled_from(["int32", "uint64", "float16", "float64"]),
)  # fmt: skip
def test_the_largest_of_short_rows(
    rows: int, n: int, k: int, special: bool, seed: int, dtype: str
) -> None:
    """As those of a stable sort, or given up; no index leaves its array."""
    rng, k = np.random.default_rng(seed), k % n
    some = np.asarray(SPECIAL if dtype[0] == "f" else [0, 1, 7, 100], dtype)
    x = rng.choice(some, (rows, n)) if special else rng.permutation(rows * n).reshape(rows, n)
    x = x.astype(dtype)

    def largest(run: Any) -> tuple[int, Any, Any]:
        words, few = np.zeros(cpu_ordering.room_of(n), np.uint64), np.zeros(k + 1, np.uint64)
        values, places = np.zeros((rows, k), dtype), np.zeros((rows, k), np.int64)
        sizes = rows, n, k, (n - 1).bit_length()
        return run(x, words, words.view(np.int64), few, values, places, *sizes), values, places

    failed, *found = largest(cpu_ordering.largest_of_short_rows)
    again, *checked = largest(cpu_ordering.largest_of_short_rows.checked)
    assert failed == again
    assert special or not failed
    for a, b, c in zip(found, checked, sorting.plain_top_k(x, 1, k), strict=True):
        same_signs(a, b)
        if not failed:
            same_signs(a, c)


@pytest.mark.parametrize(
    "dtype", ["int16", "uint16", "int32", "uint32", "int64", "uint64", "float32", "float64"]
)
def test_code_on_disk_finds_numpys_sort(dtype: str) -> None:
    """Whose name is known before a text wants it, and which sorts, NaN behind all others."""
    name = outside.sort_of(np.dtype(dtype))
    assert machine_code._offered[name]() == outside.sorts(np.dtype(dtype))
    x = np.asarray([3, 1, 2] * 40, dtype)
    if dtype[0] == "f":
        x[::5] = np.nan
    room = np.empty(0, dtype)
    found = cpu_ordering.sort_rows(x, room, packing.PLACES, len(x), 1, False, False)
    np.testing.assert_array_equal(found, np.sort(x), strict=True)


@given(st.integers(1, 2), st.integers(1, 40), st.integers(0, 99), st.booleans(), st.booleans())
def test_no_index_leaves_its_array(
    rows: int, n: int, seed: int, descending: bool, narrow: bool
) -> None:
    """Run as Python, each kernel stays inside and gives what the machine code gives."""
    rng = np.random.default_rng(seed)
    x = rng.choice(np.asarray(SPECIAL), (rows, n)).astype(np.float32 if narrow else np.float64)
    low = max((n - 1).bit_length(), seed % 60)  # the more, the fewer bits are left to the keys
    words, y = np.zeros(x.shape, np.uint64), np.zeros(x.shape, np.int64)
    room = min(64 - low, 33) if seed % 3 else 64 - low
    agree(cpu_words.pack, x, words, rows, n, low, room, descending)
    cut = cpu_words.pack(x, words, rows, n, low, room, descending) > 1
    other, counts = np.zeros(n, np.uint64), np.zeros(1 << cpu_words.DIGIT, np.int64)
    agree(cpu_words.by_digits, words[0].copy(), other, counts, n, low, 1 + seed % 6)
    words.sort(-1)
    for count in (n, max(n // 2, 1)):
        sizes = rows, n, n, count, low, descending, cut
        agree(cpu_words.unpack, x, words, y[:, :count].copy(), *sizes)
    most = cpu_words.SAMPLE + seed % 9
    if most <= n:
        spare = np.zeros((rows, most), np.uint64)
        agree(cpu_words.least, words, spare, rows, n, 1 + seed % 9, most)
    k = 1 + seed % n
    found = np.zeros((rows, k), x.dtype), np.zeros((rows, k), np.int64)
    agree(cpu.top_k, x, *found, rows, n, k, False)
    table = np.sort(x[0])
    for counted in (False, True):
        often = np.zeros(n if counted else 0, np.int64)
        agree(cpu.distinct, table, np.zeros_like(table), often, n, counted)
    order = np.argsort(x[0], stable=True)
    for lanes in (cpu_columns.QUARTER, 2 * cpu_columns.QUARTER, cpu_columns.LANES):
        side = np.zeros((n, lanes), x.dtype)
        agree_on_new(cpu_columns.sort_columns, x, x, side, n, rows, lanes, descending)
    agree(cpu.numbered, x[0], order, *np.zeros((3, n), np.int64), n)


@given(
    st.lists(st.sampled_from([0, 1, 2, 5, 40, 300]), min_size=1, max_size=3), st.booleans(),
    st.integers(0, 99), st.sampled_from([0.0, 0.1, 0.5, 1.0]),
)  # fmt: skip
def test_truth_is_sorted_by_counting(
    shape: list[int], descending: bool, seed: int, share: float
) -> None:
    """Along each axis, in any layout."""
    x = np.random.default_rng(seed).random(shape[:2] if seed % 3 else shape[:1]) < share
    for v in (x, np.asfortranarray(x), x[::-1]):
        for axis in range(v.ndim):
            found = sorting.sort(v, axis, descending)
            expected = np.sort(v, axis)
            expected = np.flip(expected, axis) if descending else expected
            np.testing.assert_array_equal(found, expected, strict=True)


@pytest.mark.parametrize("dtype", ["int32", "uint32", "int64", "float32", "float64", "int16"])
def test_rows_that_fill_a_vector_at_most(dtype: str) -> None:
    """Of every length; rows with NaN, infinities and zeros of both signs among them."""
    rng = np.random.default_rng(0)
    for n in (2, *range(15, 18), *range(30, 34), *range(62, 66)):
        x = (rng.normal(size=(40, n)) * 9 + (40 if dtype[0] == "u" else 0)).astype(dtype)
        x[1::7] = np.sort(x[1::7], 1)
        if dtype[0] == "f":
            x[::5] = x[::5].round()  # zeros of both signs
            x[2::5, 1], x[3::5, :2], x[4::5, 0] = np.nan, np.inf, -np.inf
        else:
            x[:, 0], x[:, 1] = np.iinfo(dtype).max, np.iinfo(dtype).min
        room = np.empty(0, dtype)
        for descending in (False, True):
            found = cpu_ordering.sort_rows(x, room, packing.PLACES, n, 1, descending, wide())
            given = x[:, ::-1] if descending else x
            expected = np.sort(given, 1, "stable")
            expected = expected[:, ::-1] if descending else expected
            np.testing.assert_array_equal(found, expected, strict=True)
            if dtype[0] == "f":
                zero = expected == 0
                np.testing.assert_array_equal(np.signbit(found[zero]), np.signbit(expected[zero]))
