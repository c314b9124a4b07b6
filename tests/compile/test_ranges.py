"""Ranges of indices: what is left out because of them changes no number and hides no error."""

from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

import funct as ft
import funct.array as xp
from funct.compile.loops.ranges import ANYTHING, is_short, range_of
from funct.errors import IndexOutOfBoundsError

DTYPES = ["int8", "uint8", "int16", "int32", "uint32", "int64"]
OPS: dict[str, Any] = {
    "add": np.add, "subtract": np.subtract, "multiply": np.multiply,
    "maximum": np.maximum, "minimum": np.minimum,
}  # fmt: skip


@given(
    name=st.sampled_from(sorted(OPS)), dtype=st.sampled_from(DTYPES),
    ends=st.lists(st.integers(-(1 << 40), 1 << 40), min_size=4, max_size=4),
    inside=st.tuples(st.floats(0, 1), st.floats(0, 1)), unknown=st.integers(0, 3),
)  # fmt: skip
@settings(max_examples=15 * settings.default.max_examples)
def test_results_lie_in_their_range(
    name: str, dtype: str, ends: list[int], inside: tuple[float, float], unknown: int
) -> None:
    held = np.iinfo(dtype)
    ends = [min(max(e, int(held.min)), int(held.max)) for e in ends]
    pairs = [tuple(sorted(ends[:2])), tuple(sorted(ends[2:]))]
    numbers = [lo + int((hi - lo) * part) for (lo, hi), part in zip(pairs, inside, strict=True)]
    told = [ANYTHING if unknown >> k & 1 else p for k, p in enumerate(pairs)]
    least, most = range_of(name, (), told, np.dtype(dtype))
    with np.errstate(over="ignore"):
        found = int(OPS[name](*[np.asarray([n], dtype) for n in numbers])[0])
    assert least <= found <= most


def test_what_four_bytes_hold() -> None:
    assert is_short((-(2**31), 2**31 - 1))
    assert not is_short((0, 2**31))
    assert not is_short((-(2**31) - 1, 0))
    assert not is_short(ANYTHING)


@given(
    seed=st.integers(0, 2**32 - 1), index=st.sampled_from(["int8", "int32", "int64"]),
    lengths=st.tuples(st.integers(1, 9), st.integers(1, 9), st.integers(1, 5)),
)  # fmt: skip
def test_programs_of_indices(seed: int, index: str, lengths: tuple[int, int, int]) -> None:
    """What is looked up, the places themselves, and what is made of them as numbers."""
    rng = np.random.default_rng(seed)
    m, n, k = lengths
    table = xp.asarray(rng.normal(size=lengths))
    i, j = (xp.asarray(rng.integers(-s, s, 700).astype(index)) for s in (m, n))
    raw = xp.asarray(rng.integers(-100, 100, 700).astype(index))
    base = xp.asarray(rng.normal(size=m * n))

    def f(table: Any, i: Any, j: Any, raw: Any) -> Any:
        kept = xp.clip(raw, 0, m - 1)
        flat = xp.astype(kept, xp.int64) * n + xp.clip(raw, 0, n - 1)
        return (
            table[i, j, 0] * table[kept, j, k - 1], table[:, :, 0][kept], base[flat] * 2.0,
            flat, flat * 3_000_000_000, xp.sum(flat), xp.astype(flat, xp.float64) / 2,
            xp.zeros((m, n)).at[i, j].add(1.0), xp.zeros(m).at[kept].add(table[kept, 0, 0]),
            xp.zeros(m, dtype=xp.int64).at[kept].max(flat),
        )  # fmt: skip

    for found, expected in zip(ft.jit(f)(table, i, j, raw), f(table, i, j, raw), strict=True):
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(found, expected, rtol=1e-13)


@pytest.mark.parametrize("wrong", [(6, 0), (-7, 0), (0, 5), (0, -6)])
def test_what_is_off_its_axis_is_refused_though_the_flat_place_would_be_there(
    wrong: tuple[int, int],
) -> None:
    table = xp.reshape(xp.arange(6.0 * 5), (6, 5))
    i, j = (xp.asarray(np.full(300, w)) for w in wrong)
    for f in (
        lambda t, i, j: t[i, j] * 2.0,
        lambda t, i, j: t.at[i, j].add(1.0),
        lambda t, i, j: t[i * 1, j + 0] + t[j * 0, i * 0],
    ):
        with pytest.raises(IndexOutOfBoundsError):
            ft.jit(f)(table, i, j)


def test_bounds_that_are_too_wide_are_looked_at() -> None:
    x, i = xp.arange(10.0), xp.asarray(np.full(400, 11))
    with pytest.raises(IndexOutOfBoundsError):
        ft.jit(lambda x, i: x[xp.clip(i, 0, 10)] * 2.0)(x, i)
    np.testing.assert_array_equal(ft.jit(lambda x, i: x[xp.clip(i, -3, 9)] * 2.0)(x, i), 18.0)
    np.testing.assert_array_equal(ft.jit(lambda x, i: x[xp.clip(-i, -3, 9)] * 2.0)(x, i), 14.0)


def test_sums_that_wrap_around_are_looked_at() -> None:
    """100 + 100 in a byte is -56: off an axis that 200 would be on."""
    x, i = xp.arange(256.0), xp.asarray(np.full(400, 120, np.int8))
    with pytest.raises(IndexOutOfBoundsError):
        ft.jit(lambda x, i: x[:50][xp.clip(i, 0, 100) + xp.clip(i, 0, 100)] * 2.0)(x, i)
    both = ft.jit(lambda x, i: x[xp.clip(i, 0, 100) + xp.clip(i, 0, 100)] * 2.0)(x, i)
    np.testing.assert_array_equal(both, 400.0)  # -56 from the end
