"""Runs of elements: machine code gives NumPy's bits, and stays within its arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ml_dtypes import bfloat16

import funct as ft
from funct.kernels import manipulation
from funct.kernels.cpu import loops
from funct.kernels.cpu.indexing import repeats
from funct.kernels.cpu.indexing import runs as cpu
from funct.kernels.indexing import runs as kernels
from tests import guarded
from tests.kernels.arrays import SPECIAL, agree, agree_on_new, arrays

pytestmark = pytest.mark.skipif(not loops.available(), reason="there is no LLVM to compile with")

DTYPES = ["int8", "uint16", "int32", "int64", "uint64", "float32", "float64"]
MOVED = [*DTYPES, "bool", "float16", "complex64"]


@pytest.fixture(autouse=True)
def _always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small arrays go to the kernels too, in several tasks."""
    monkeypatch.setattr(loops, "_LEAST", 1)
    monkeypatch.setattr(kernels, "_SOME", 1)
    monkeypatch.setattr(kernels, "_FEW", 1)
    monkeypatch.setattr(kernels, "_PART", 30)
    monkeypatch.setattr(kernels, "_PIECES", 40)


def _same(a: Any, b: Any) -> None:
    assert (a.shape, a.dtype) == (b.shape, b.dtype)
    assert np.ascontiguousarray(a).tobytes() == np.ascontiguousarray(b).tobytes()


@given(st.data(), st.sampled_from(DTYPES))
def test_differences(data: st.DataObject, dtype: str) -> None:
    """Any shape from empty on, any axis, steps and turned axes, special values."""
    x = data.draw(arrays(dtype, min_rank=1, max_length=12))
    axis = data.draw(st.integers(0, x.ndim - 1))
    for v in (x, np.ascontiguousarray(x)):
        with np.errstate(all="ignore"):
            ours, plain = kernels.differences(v, axis), kernels.plain_differences(v, axis)
        assert (ours.shape, ours.dtype) == (plain.shape, plain.dtype)
        np.testing.assert_array_equal(ours, plain)
        nan = ours != ours
        np.testing.assert_array_equal(np.signbit(ours)[~nan], np.signbit(plain)[~nan])


@given(
    st.sampled_from([*MOVED, "bfloat16"]), st.lists(st.integers(0, 9), min_size=1, max_size=18),
    st.sampled_from([(4, 5), (17,), (2, 9)]), st.sampled_from([(), (1,), (3,)]),
    st.sampled_from([64, 1 << 18]),
)  # fmt: skip
def test_rows_of_several_arrays(
    dtype: str, lengths: list[int], lead: Any, behind: Any, block: int
) -> None:
    """Joined along an axis or along a new one, in blocks, of any lengths, none included."""
    kind = np.dtype(bfloat16 if dtype == "bfloat16" else dtype)
    parts = [np.arange(np.prod([*lead, n, *behind])) for n in lengths]
    given_ = [p.astype(kind).reshape(*lead, n, *behind) for p, n in zip(parts, lengths)]
    axis = len(lead)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernels, "_BLOCK", block)
        found = kernels.rows(given_, axis, False)
        same = [given_[0] + kind.type(k) for k in range(3)]
        stacked = kernels.rows(same, axis, True)
    for made, expected in (
        (found, np.concatenate(given_, axis)), (stacked, np.stack(same, axis)),
    ):  # fmt: skip
        if made is not None:
            _same(made, expected)
    whole = max(lengths) * int(np.prod(behind)) * kind.itemsize
    many = int(np.prod(lead)) * len(lengths) >= kernels._PIECES
    assert (found is not None) == (whole >= kernels._LEAST and many)
    turned = [np.asfortranarray(p) for p in given_]
    assert all(p.flags.c_contiguous for p in turned) or kernels.rows(turned, axis, False) is None


@given(st.data(), st.sampled_from(MOVED), st.integers(0, 40), st.sampled_from([1, 3, 30]))
def test_repetitions(data: st.DataObject, dtype: str, n: int, most: int) -> None:
    """Counts of any integer dtype, zeros among them; negative ones are left to others."""
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    x = rng.integers(0, 100, n).astype(dtype)
    counts = rng.integers(0, most + 1, n).astype(data.draw(st.sampled_from(DTYPES[:5])))
    found = kernels.repeated(x, counts)
    if n:
        _same(found, x.repeat(counts.astype(np.int64)))
    if n and counts.dtype.kind == "i":
        counts[n // 2] = -1
        assert kernels.repeated(x, counts) is None
    wide = counts.astype(np.int64)
    wide[:1] = 1 << 40
    assert kernels.repeated(x, wide) is None


@pytest.mark.parametrize("dtype", MOVED)
@pytest.mark.parametrize("times", [2, 3, 4, 7, 8])
def test_each_as_often(dtype: str, times: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whole vectors and odd rests, in several tasks; what is left to NumPy."""
    monkeypatch.setattr(repeats, "_PART", 128)
    repeats._entry.cache_clear()
    repeats._code.cache_clear()
    for n in (64, 65, 127, 128, 191, 500):
        x = guarded.copy(np.arange(n).astype(dtype), at_end=n % 2 > 0)
        with guarded.memory(at_end=n % 2 > 0):
            _same(kernels.evenly(x, times, 0), x.repeat(times))
    x = np.arange(3 * 66).astype(dtype).reshape(3, 66)
    for v, axis in ((x, 1), (x, -1), (x, None), (x[:, :, None], 1), (x[:, :, None], -1)):
        _same(kernels.evenly(v, times, axis), v.repeat(times, axis))
    for v, axis in ((x, 0), (x.T, 1), (x[:, ::2], 1), (x, 2), (x[:0], 1), (x[:1, :60], 1)):
        assert kernels.evenly(v, times, axis) is None
    assert kernels.evenly(x, 1, 1) is None
    repeats._entry.cache_clear()
    repeats._code.cache_clear()


@given(st.data(), st.sampled_from(MOVED), st.booleans())
def test_triangles(data: st.DataObject, dtype: str, lower: bool) -> None:
    """Matrices of any number and shape, diagonals inside and outside of them."""
    shape = data.draw(st.tuples(*[st.integers(0, k) for k in (3, 9, 40)]))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    kind = np.dtype(dtype).kind
    x = (rng.choice(SPECIAL, shape) if kind in "fc" else rng.integers(0, 9, shape)).astype(dtype)
    k = data.draw(st.integers(-12, 45) | st.sampled_from([-(1 << 40), 1 << 40]))
    for v in (x, x[0] if len(x) else x):
        found = kernels.triangle(v, k, lower)
        near = max(min(k, 99), -99)
        if found is None:
            assert v.size == 0 or v.shape[-1] < cpu.LANES
        else:
            _same(found, (np.tril if lower else np.triu)(v, near))


@pytest.mark.parametrize("n", [1, 2, 7, 8, 9, 40])
def test_no_index_is_outside(n: int) -> None:
    """Run as Python with every index checked, kernels write what machine code writes."""
    rng = np.random.default_rng(n)
    counts, x = rng.integers(0, 20, n), rng.integers(0, 99, 96 * n)
    agree(cpu.total, counts, n)
    y = np.zeros(int(counts.sum()) + 1, np.int64)
    for often in (counts, counts // 8):
        total = int(often.sum())
        agree(cpu.repeated, x, often, y, n, total)
        agree_on_new(cpu.repetitions, y[:total], x, often, total, n)
    for dtype in (np.int8, np.int16, np.int64):
        v = x.astype(dtype)
        agree(cpu.backward, v, np.zeros_like(v), 32 * n, 3, 2, 2)
        agree(cpu.backward, v, np.zeros_like(v), 3 * n, 32, 5, 7)
        agree_on_new(cpu.backwards_few, v, v, 3 * n, 32)
    agree(cpu.differences, x, np.zeros(3 * n * 16, np.int64), 3, 2, 16 * n, 2, 2)
    for lower in (False, True):
        agree(cpu.triangle, x, np.zeros_like(x), 6, 3, 8 * n, 1, lower, 4, 1, 2)
        agree_on_new(cpu.triangles, x[: 48 * n], x[: 48 * n], 6, 3, 8 * n, 1, lower)
    for widths in ((70, 9), (16 * n, 3), (1, 40), (n, 3), (1, 1)):
        for dtype in (np.int64, np.int16, np.int8):  # with other vectors for short pieces
            v, w = (np.resize(x, 43 * k).astype(dtype) for k in widths)
            room = np.zeros(43 * sum(widths), dtype)
            agree_on_new(cpu.lines, room, v, w, v.size, room.size)
            agree(cpu.joined, v, w, room, *(k for m in widths for k in (m, 0, m)), 43, 20, 3)
            eight = np.array([*widths, 0, *widths[:1], 0, 0, 0, 0])
            room = np.zeros(43 * (eight.sum() + 2), dtype)
            for covers in (0, 1):
                lies = 1, int(eight.sum()) + 2, covers, 2, 43, 20, 3
                agree(cpu.beside, v, w, *[v] * 6, room, eight, *lies)
                agree(cpu.beside_few, v, w, *[v] * 6, room, eight, *lies[1:3], 43)


def test_threads_change_no_bit() -> None:
    """One thread or several write the same."""
    x = np.random.default_rng(0).normal(size=(50, 7, 40))
    found = []
    for threads in (1, 2):
        with ft.config.using(threads=threads):
            found.append((kernels.differences(x, 1), kernels.triangle(x, 2, True)))
    for a, b in zip(*found, strict=True):
        _same(a, b)


@pytest.mark.parametrize("dtype", MOVED)
@pytest.mark.parametrize("rows", [16, 17, 61, 300])
def test_rows_are_joined_and_rolled(dtype: str, rows: int) -> None:
    """Rows of any width, in one axis and in several, in several tasks."""
    rng = np.random.default_rng(rows)
    for widths in ((1, 1), (1, 9), (3, 4), (5, 8), (7, 16), (15, 17), (31, 33), (2, 100), (4, 0)):
        a, b = (guarded.copy(rng.integers(0, 99, (rows, w)).astype(dtype)) for w in widths)
        for v, w, axis in ((a, b, 1), (a, b, -1), (a[:, :, None], b[:, :, None], 1)):
            with guarded.memory(at_end=widths[0] % 2 > 0):
                found = kernels.joined(v, w, axis)
            if 0 in widths:
                assert found is None
            else:
                _same(found, np.concatenate([v, w], axis))
        for at in range(1, sum(widths), 3):
            x = guarded.copy(np.concatenate([a, b], 1))
            with guarded.memory(at_end=at % 2 > 0):
                _same(kernels.rolled(x, at, 1), np.roll(x, -at, 1))
    x = rng.integers(0, 99, (rows, 3, 5)).astype(dtype)
    _same(kernels.joined(x, x[:, :2].copy(), 1), np.concatenate([x, x[:, :2]], 1))
    _same(kernels.rolled(x, 2, 1), np.roll(x, -2, 1))
    x = guarded.copy(rng.integers(0, 99, (rows, 700)).astype(dtype))
    for axis in (None, 1, -1, 0):
        with guarded.memory(at_end=rows % 2 > 0):
            found = manipulation.flip(x, axis)
        _same(np.ascontiguousarray(found), np.ascontiguousarray(np.flip(x, axis)))
        assert found.flags.c_contiguous == (axis != 0 and x.itemsize < 4)
    x = rng.integers(0, 99, (rows, 3, 5)).astype(dtype)
    for v, w, axis in (
        (x, x[:, :, :2], 2), (x, x[:8], 1), (x, x, 0), (x, x, 3), (x, x, None), (x, x[0], 1),
        (x, x.astype("V3"), 1), (x.T, x.T, 1),
    ):  # fmt: skip
        assert kernels.joined(v, w, axis) is None
