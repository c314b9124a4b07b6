"""Gather and scatter: machine code gives the bits of NumPy, and refuses what it refuses."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from funct.kernels.cpu import loops
from funct.kernels.cpu.indexing import columns as cpu_columns
from funct.kernels.cpu.indexing import combining as cpu_combining
from funct.kernels.cpu.indexing import gather as cpu
from funct.kernels.indexing import gather as kernels
from funct.kernels.indexing import masks, scattering
from tests import guarded
from tests.kernels.arrays import INDICES, agree, agree_on_new, alike, arrays, indices

pytestmark = pytest.mark.skipif(not loops.available(), reason="there is no LLVM to compile with")

DTYPES = ["int8", "uint16", "int32", "int64", "uint64", "float32", "float64"]
MOVED = [*DTYPES, "bool", "float16", "complex64", "complex128"]


@pytest.fixture(autouse=True)
def _always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small arrays go to the kernels too."""
    monkeypatch.setattr(loops, "_LEAST", 1)
    monkeypatch.setattr(kernels, "_MANY", 1)
    monkeypatch.setattr(kernels, "_SOME", 1)
    monkeypatch.setattr(kernels, "_FEW", 1)
    monkeypatch.setattr(kernels, "_PART", 3)
    monkeypatch.setattr(scattering, "_MUCH", 1)
    monkeypatch.setattr(scattering, "_COLUMNS", 8)
    monkeypatch.setattr(masks, "_SOME", 1)
    monkeypatch.setattr(masks, "_FEW", 1)
    monkeypatch.setattr(masks, "_PART", 3)


@given(
    st.data(), st.sampled_from(MOVED), st.sampled_from([0, 1, 5, 33, 70]), st.integers(2, 3)
)  # fmt: skip
def test_elements_at_a_position_on_each_axis(
    data: st.DataObject, dtype: str, count: int, rank: int
) -> None:
    shape = tuple(data.draw(st.lists(st.integers(1, 5), min_size=rank, max_size=rank)))
    x = np.random.default_rng(0).integers(0, 9, shape).astype(dtype)
    kinds = (np.int32, np.int64)
    at = tuple([
        indices(data, (count,), n).astype(data.draw(st.sampled_from(kinds))) for n in shape
    ])  # fmt: skip
    for part in (3, 1 << 15):
        with pytest.MonkeyPatch.context() as m:
            m.setattr(kernels, "_PART", part)
            if count and x.itemsize <= 8:
                alike(lambda: kernels.picked_at(x, at), lambda: x[at])


@given(st.data(), st.sampled_from(["bool", "complex64", "complex128"]))
def test_sums_of_truth_and_of_complex_numbers(data: st.DataObject, dtype: str) -> None:
    x = data.draw(arrays(dtype, min_rank=1))
    ids = indices(data, x.shape[:1], 5)
    alike(
        lambda: scattering.segment_sum(x, ids, 4), lambda: scattering.plain_segment_sum(x, ids, 4)
    )


def _turned(x: Any, order: Any) -> Any:
    """x with its axes in another order in memory."""
    return np.array(x.transpose(order), order="C").transpose(np.argsort(order))


@given(st.data(), st.sampled_from(DTYPES))
def test_along_an_axis(data: st.DataObject, dtype: str) -> None:
    """take and put, with any shapes, strides and dtypes of values and indices."""
    x = data.draw(arrays(dtype, min_rank=1))
    axis = data.draw(st.integers(0, x.ndim - 1))
    n = x.shape[axis]
    i = indices(data, tuple(data.draw(st.lists(st.integers(0, 4), max_size=2))), n)
    alike(lambda: kernels.take(x, i, axis), lambda: np.asarray(x.take(i, axis)))
    if i.size and n:
        g = np.asarray(x.take(np.clip(i, 0, n - 1), axis))
        m = max(0, n - data.draw(st.integers(0, 1)))
        alike(lambda: scattering.put(g, i, axis, m), lambda: scattering.plain_put(g, i, axis, m))
    ids = indices(data, x.shape[:1], 5)
    alike(
        lambda: scattering.segment_sum(x, ids, 4), lambda: scattering.plain_segment_sum(x, ids, 4)
    )


@given(st.data(), st.sampled_from(DTYPES))
def test_axes_in_another_order(data: st.DataObject, dtype: str) -> None:
    """take and put go along an axis as memory does, and so does what they give."""
    shape = data.draw(st.permutations((2, 3, 4)))
    order = data.draw(st.permutations(range(3)))
    axis = data.draw(st.integers(0, 2))
    x = _turned(np.arange(24).reshape(shape).astype(dtype), order)
    i = np.random.default_rng(data.draw(st.integers(0, 9))).integers(-shape[axis], shape[axis], 5)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernels, "_MANY", 1)
        taken = kernels.take(x, i, axis)
    np.testing.assert_array_equal(taken, np.take(x, i, axis), strict=True)
    added = scattering.put(taken, i, axis, shape[axis])
    np.testing.assert_array_equal(added, scattering.plain_put(taken, i, axis, shape[axis]))
    assert taken.transpose(order).flags.c_contiguous
    assert not loops.available() or added.transpose(order).flags.c_contiguous or dtype == "bool"


@given(st.data(), st.sampled_from(MOVED), st.sampled_from([1, 31, 32, 33, 100]))
def test_lines_at_the_same_indices(data: st.DataObject, dtype: str, count: int) -> None:
    """All that fits a word is taken by its bits, whatever the dtypes."""
    x = np.arange(3 * 7).reshape(3, 7).astype(dtype)
    i = indices(data, (count,), 7)
    alike(lambda: kernels.take(x, i, 1), lambda: x.take(i, 1))
    alike(lambda: kernels.take(x[1], i, 0), lambda: x[1].take(i))
    each = indices(data, (3, count), 7)
    alike(lambda: kernels.take_along(x, each, 1), lambda: np.take_along_axis(x, each, 1))


@given(st.data(), st.sampled_from(DTYPES))
def test_one_element_per_index(data: st.DataObject, dtype: str) -> None:
    """take_along and put_along."""
    x = data.draw(arrays(dtype, min_rank=1))
    axis = data.draw(st.integers(0, x.ndim - 1))
    n = x.shape[axis]
    shape = (*x.shape[:axis], data.draw(st.integers(0, 4)), *x.shape[axis + 1 :])
    i = indices(data, shape, n)
    alike(lambda: kernels.take_along(x, i, axis), lambda: kernels.plain_take_along(x, i, axis))
    if n:
        g = np.resize(x, shape)
        alike(
            lambda: scattering.put_along(g, i, axis, n),
            lambda: scattering.plain_put_along(g, i, axis, n),
        )
        order = data.draw(st.permutations(range(x.ndim)))
        g, i = (_turned(v, order) for v in (g, i))
        alike(
            lambda: scattering.put_along(g, i, axis, n),
            lambda: scattering.plain_put_along(g, i, axis, n),
        )
        alike(lambda: kernels.take_along(x, i, axis), lambda: kernels.plain_take_along(x, i, axis))


@pytest.mark.parametrize("dtype", INDICES)
@pytest.mark.parametrize("count", [31, 32, 33, 64, 100])
def test_many_indices_are_looked_at_together(
    count: int, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All inside, one from the end, one outside, wherever it stands."""
    monkeypatch.setattr(kernels, "_PART", 64)
    x, rng = np.arange(7.0), np.random.default_rng(count)
    for odd in (3, -1, -7, -8, 7, 100):
        if odd < 0 and dtype[0] == "u":
            continue
        for place in (0, 1, 30, count - 1):
            i = rng.integers(0, 7, count).astype(dtype)
            i[place] = odd
            alike(lambda i=i: kernels.take(x, i, 0), lambda i=i: x.take(i))


@pytest.mark.pairwise
@pytest.mark.parametrize("dtype", INDICES)
@pytest.mark.parametrize("lines", [1, 7, 8, 9, 40])
@pytest.mark.parametrize("columns", [1, 3, 130, 600])
def test_the_same_columns_of_many_lines(
    lines: int, columns: int, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Inside, from the end and outside, for indices that do not hold the number of columns too."""
    monkeypatch.setattr(kernels, "_LINES", 1)
    monkeypatch.setattr(kernels, "_PART", 64)
    rng = np.random.default_rng(lines)
    x = rng.normal(size=(lines, columns)).astype(np.float32)
    for odd in (0, -1, -columns, -columns - 1, columns - 1, columns):
        if (odd < 0 and dtype[0] == "u") or abs(odd) > 127:
            continue
        i = rng.integers(0, min(columns, 127), 70).astype(dtype)
        i[rng.integers(70)] = odd
        alike(lambda i=i: kernels.take(x, i, 1), lambda i=i: x.take(i, 1))
        at, y = i.astype(np.int64) % columns, np.zeros((lines, 70), np.float32)
        agree(cpu_columns.take_columns, x, at, y, lines, 70, columns, 1, "", "", 9, -(-lines // 9))


@pytest.mark.pairwise
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "uint32", "complex64"])
@pytest.mark.parametrize("lines", [1, 33, 130])
@pytest.mark.parametrize("columns", [1, 3, 8, 10, 16, 17, 32, 33])
def test_the_same_columns_of_short_lines(
    columns: int, lines: int, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Put together in registers, without a look behind the last line; in one task and in several.

    Where the processor has no such vectors, Python says what the kernel would do.
    """
    monkeypatch.setattr(kernels, "_LINES", 1)
    rng = np.random.default_rng(lines)
    x = guarded.copy(rng.integers(0, 99, (lines, columns)).astype(dtype))
    for count in (1, 4, 7, 8, 9, 32, 33):
        i = rng.integers(-columns, columns, count)
        for part in (64, 640, 2000):
            monkeypatch.setattr(kernels, "_PART", part)
            with guarded.memory(at_end=count % 2 > 0):
                np.testing.assert_array_equal(kernels.take(x, i, 1), np.take(x, i, 1))
        monkeypatch.setattr(kernels, "_PART", 40)
        y, word = np.zeros((lines, count), dtype), f"u{x.itemsize}"
        with monkeypatch.context() as one:
            one.setattr(kernels, "wide", lambda: True)
            one.setattr(cpu_columns, "take_columns", cpu_columns.take_columns.checked)
            one.setattr(cpu_columns, "columns_of", cpu_columns.columns_of.checked)
            given = x.copy().view(word), i, y.view(word)
            kernels._columns(*given, lines, count, columns)
        np.testing.assert_array_equal(y, np.take(x, i, 1))


@given(st.data(), st.sampled_from([*DTYPES, "bool", "float16", "complex64"]))
def test_what_is_under_a_mask(data: st.DataObject, dtype: str) -> None:
    """Of no elements, of all of them, and of strided ones."""
    n = data.draw(st.sampled_from([1, 2, 5, 37, 300]))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    x = rng.integers(0, 9, 2 * n).astype(dtype)[:: data.draw(st.sampled_from([1, 2]))][:n]
    mask = rng.random(2 * n)[::2] < data.draw(st.sampled_from([0.0, 0.1, 0.9, 1.0]))
    alike(lambda: masks.under(x, mask), lambda: x[mask])


@pytest.mark.parametrize("inner", [1, 2, 8, 13])
@pytest.mark.parametrize("kind", ["few", "sorted", "many"])
def test_sums_have_the_order_of_the_indices(inner: int, kind: str) -> None:
    """Bits are those of a loop over the indices, however often one repeats."""
    rng = np.random.default_rng(0)
    ids = rng.integers(0, 500 if kind == "many" else 7, 3000)
    ids = np.sort(ids) if kind == "sorted" else ids
    g = rng.normal(size=(3000, inner)).astype(np.float32)
    expected = np.zeros((500, inner), np.float32)
    for k, at in enumerate(ids):
        expected[at] += g[k]
    assert scattering.put(g, ids, 0, 500).tobytes() == expected.tobytes()
    assert scattering.put(g.T, ids, 1, 500).tobytes() == np.ascontiguousarray(expected.T).tobytes()
    assert scattering.segment_sum(g, ids, 500).tobytes() == expected.tobytes()


@given(
    st.integers(1, 2), st.sampled_from([0, 1, 3, 5, 32, 39, 67]),
    st.sampled_from([1, 2, 4, 33, 66]), st.integers(1, 17), st.booleans(), st.booleans(),
    st.integers(0, 2),
)  # fmt: skip
def test_no_index_leaves_its_array(
    outer: int, count: int, n: int, inner: int, drop: bool, far: bool, slip: int
) -> None:
    """Run as Python, each kernel stays inside and gives what the machine code gives."""
    rng = np.random.default_rng(count)
    x = rng.normal(size=(outer, n, inner)).astype(np.float32)
    g = rng.normal(size=(outer, count, inner)).astype(np.float32)
    i, each = (rng.integers(-n, n, s) for s in (count, g.shape))
    if slip and i.size:  # one index is out of bounds
        for at in (i, each):
            at[tuple([rng.integers(k) for k in at.shape])] = n if slip == 1 else -n - 1
    sizes = outer, count, n
    line = np.ascontiguousarray(g[..., 0]), i, np.ascontiguousarray(x[..., 0])
    rows = g, i, x.copy(), np.zeros(1, int)
    whole = *sizes, inner, inner, 0
    j = each[0, :, 0] % inner
    cube, tasks = (outer, n, inner, True), -(-count // 40)
    lines, short, by = each[..., 0].copy(), i.astype(np.int32), (8, -(-inner // 8))
    ends = np.clip(i[:5], -inner - (slip == 2), inner - 1 + (slip == 1))
    columns = x[0], np.resize(g if g.size else x, (n, ends.size)), ends
    wide = n, ends.size, inner
    args: tuple[Any, ...]
    for k, args in (
        (cpu_combining.add_elements, (*line, *sizes, "add", drop)),
        (cpu_combining.add_elements, (*line, *sizes, "max", drop)),
        (cpu_combining.combine_rows, (*rows, *whole, 1, False, "add", drop, far, *by)),
        (cpu_combining.combine_rows, (*rows, *whole, 1, False, "max", drop, far, *by)),
        (
            cpu_combining.combine_rows,
            (
                g[..., ::2].copy(), *rows[1:], *sizes, -(-inner // 2), inner, 0, 2, True, "add",
                drop, far, inner, 1,
            ),
        ),
        (
            cpu_combining.combine_rows,
            (
                g[..., :1].copy(), *rows[1:], *sizes, 1, inner, inner - 1, 1, False, "add", drop,
                far, 1, 1,
            ),
        ),
        (
            cpu_combining.combine_columns,
            (*columns, x[0].copy(), np.zeros(1, int), *wide, "add", 12, -(-n // 12)),
        ),
        (cpu.along, (x, each, g.copy(), *sizes, inner, True)),
        (cpu.take_few, (line[2], lines, line[0], *sizes, False)),
        (cpu.take_few, (line[2], short, line[0], *sizes, True)),
        (cpu.take_few_rows, (x[0], i, g[0].copy(), count, n, inner)),
        (
            cpu.take_rows,
            (x[0], i, g[0].copy(), np.zeros(1, int), count, n, inner, 5, -(-count // 5)),
        ),
        (cpu.take_lines, (line[2], lines, line[0], np.zeros(1, int), *sizes, False, 1, outer)),
        (cpu.take_lines, (line[2], short, line[0], np.zeros(1, int), *sizes, True, 1, outer)),
        (cpu.along, (g, each, x.copy(), *sizes, inner, False)),
        (
            cpu.take_elements,
            (
                x[0, :, 0].copy(),
                i,
                g[0, :, 0].copy(),
                np.zeros(1, int),
                count,
                n,
                40,
                -(-count // 40),
            ),
        ),
        (
            cpu_combining.add_elements,
            (line[0], i.astype(np.int32), line[2].copy(), *sizes, "add", drop),
        ),
        (cpu_combining.combine, (line[0][0], i, line[2][0], count, n, "max")),
        (cpu_combining.combine, (line[0][0], i, line[2][0], count, n, "set")),
        (cpu.pick, (x, i * 0, i, j, line[0][0].copy(), np.zeros(1, int), count, *cube, 40, tasks)),
    ):
        agree(k, *args)
    one, new = line[2][0], line[0][0]
    for k, like, args in (
        (cpu_combining.combined, one, (one, 1.5, i.astype("i4"), count, n, 1, 0, "add", True)),
        (cpu_combining.combined, one, (one, 1.5, i, count, n, 1, 0, "add", True)),
        (cpu_combining.combined, one, (one, 1.5, i, count, n, 1, 0, "factors", True)),
        (cpu_combining.combined, one, (one, new, i, count, n, 1, 0, "set", False)),
        (cpu_combining.combined, x[0], (x[0], new, i, count, n, inner, inner - 1, "add", False)),
        (cpu_combining.combined_pairs, x[0], (x[0], new, i, j, count, n, inner, "add", False)),
        (cpu_combining.combined_pairs, x[0], (x[0], new, short, j, count, n, inner, "set", False)),
        (
            cpu_combining.combined_rows, x[0],
            (x[0], g[0], i, count, n, inner, inner, 0, "max", False),
        ),
        (
            cpu_combining.combined_rows, x[0],
            (x[0], 2.5, short, count, n, inner - 1, inner, 1, "add", True),
        ),
        (cpu_combining.combined_view, one, (one, one, 0, 1, 0, n, 1, "add", False, True)),
        (cpu_combining.combined_view, one, (one, 2.5, n - 1, 1, 0, n, -1, "set", True, False)),
        (cpu_combining.combined_columns, x[0], (*columns, *wide, "max")),
        (cpu.placed, i, (i, short, n, inner)),
        (cpu_combining.summed, one, (new, i, n, count, "add")),
        (cpu_combining.summed, one, (new, short, n, count, "max")),
        (cpu.taken_along, line[0], (line[2], lines, outer, count, n)),
        (cpu.picked, i.astype(np.float32), (x[0], i, j, j, n, inner, 1, False)),
        (cpu.picked, i.astype(np.float32), (x, i * 0, short, j, outer, n, inner, True)),
    ):
        agree_on_new(k, like, *args)


@given(
    st.data(), st.sampled_from([*MOVED, "bfloat16"]), st.integers(1, 19),
    st.sampled_from([1, 3, 34]), st.sampled_from([np.int32, np.int64]), st.booleans(),
)  # fmt: skip
def test_short_rows(
    data: st.DataObject, dtype: str, width: int, count: int, kind: Any, crooked: bool
) -> None:
    """Rows that are one word, of one to two vectors, and longer; also between words."""
    n = data.draw(st.integers(1, 9))
    raw = np.random.default_rng(width).integers(0, 2, (n, width))
    x = raw.astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    if crooked:  # as far into a word as its dtype allows
        room = np.zeros(x.nbytes + 64, np.uint8)
        begin = -room.ctypes.data % 64 + x.itemsize
        x = room[begin : begin + x.nbytes].view(x.dtype).reshape(x.shape)
        x[...] = raw
    i = indices(data, (count,), n).astype(kind)
    alike(lambda: kernels.take(x, i, 0), lambda: x.take(i, 0))


@given(st.data(), st.sampled_from([np.float16, ml_dtypes.bfloat16]), st.integers(0, 2))
def test_sums_of_halves_at_few_places(data: st.DataObject, dtype: Any, axis: int) -> None:
    """Each is a sum in float32 that is rounded once, as where all places are met."""
    i = indices(data, data.draw(st.sampled_from([(1,), (5,), (2, 3)])), 7).astype(np.int8)
    rest = [3, 5]
    shape = (*rest[:axis], *i.shape, *rest[axis:])
    g = np.random.default_rng(0).standard_normal(shape).astype(dtype)
    alike(lambda: scattering.put(g, i, axis, 200), lambda: _summed_in_single(g, i, axis, 200))


def _summed_in_single(g: Any, i: Any, axis: int, n: int) -> Any:
    i = np.arange(n)[i]  # refused where it is out of bounds; int8 has no 200
    return scattering.plain_put(g.astype(np.float32), i, axis, n).astype(g.dtype)
