"""Woven rows are what NumPy writes out, and the kernel stays within its arrays."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import funct as ft
import funct.array as xp
from funct.kernels import manipulation
from funct.kernels.cpu import loops, scratch
from funct.kernels.cpu.indexing import weaving as cpu
from funct.nn import functional as F  # noqa: N812
from tests import guarded

pytestmark = pytest.mark.skipif(not loops.available(), reason="there is no LLVM to compile with")

DTYPES = ["bool", "int8", "float16", "int32", "float32", "float64", "complex64"]


def permuted(lengths: list[int], order: list[int], dtype: str) -> Any:
    """A dense array between forbidden pages, with axes in another order; all bits occur."""
    bits = np.random.default_rng(0).integers(0, 256, math.prod(lengths) * 8, dtype=np.uint8)
    x = (bits % 2 > 0)[: math.prod(lengths)] if dtype == "bool" else bits.view(dtype)
    return guarded.copy(x[: math.prod(lengths)].reshape(lengths)).transpose(order)


@given(
    st.data(), st.lists(st.integers(1, 5), min_size=2, max_size=6), st.sampled_from(DTYPES),
    st.sampled_from([4, 1 << 15]), st.booleans(),
)  # fmt: skip
def test_any_order_of_axes(
    data: st.DataObject, lengths: list[int], dtype: str, task: int, at_end: bool
) -> None:
    """Those of other orders are declined; in one task and in several."""
    order = data.draw(st.permutations(range(len(lengths))))
    x = permuted(lengths, order, dtype)
    with pytest.MonkeyPatch.context() as patch, guarded.memory(at_end=at_end):
        patch.setattr(cpu, "fresh", scratch.fresh)
        patch.setattr(cpu, "_TASK", task)
        found = cpu.woven(x)
    if found is not None:
        assert (found.shape, found.dtype) == (x.shape, x.dtype)
        assert found.tobytes() == x.tobytes()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("rows", "columns"), [(2, 1), (2, 37), (3, 16), (4, 5)])
def test_rows_are_woven(dtype: str, rows: int, columns: int) -> None:
    """Alone, and behind up to three axes that lie anyhow."""
    for lead, order in (([], []), ([3], [0]), ([2, 3], [1, 0]), ([2, 3, 2], [2, 0, 1])):
        n = len(lead)
        x = permuted([*lead, rows, columns], [*order, n + 1, n], dtype)
        found = cpu.woven(x)
        assert (found is not None) == (columns > 1 and x.dtype.itemsize <= 8)
        assert found is None or found.tobytes() == x.tobytes()
        args = (2, 1, 1, rows * columns, 0, 0, columns, columns, tuple(range(rows)), 1)
        given = np.arange(2 * rows * columns, dtype=np.uint16)
        y = np.zeros_like(given)
        cpu.weave.checked(given, y, *args, 2)
        expected = given.reshape(2, rows, columns).swapaxes(1, 2)
        np.testing.assert_array_equal(y, expected.reshape(-1))


def test_views_of_what_is_no_such_order_are_declined() -> None:
    x = np.zeros((4, 2, 64))
    for v in (x, x[:, :, ::2].swapaxes(1, 2), x[:, :1].swapaxes(1, 2), x[:, ::-1].swapaxes(1, 2)):
        assert cpu.woven(v) is None
    assert cpu.woven(np.broadcast_to(x[:1], (4, 2, 64)).swapaxes(1, 2)) is None


@pytest.mark.parametrize("factor", [2, 3, 4, 5])
@pytest.mark.parametrize("threads", [1, 2])
def test_pixels_of_channels(factor: int, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Layers get what the kernel gives, in the layout that they were given."""
    monkeypatch.setattr(manipulation, "_WOVEN", 1)
    shape = (2, factor**2 * 3, 5, 7)
    x = np.arange(math.prod(shape), dtype=np.float32).reshape(shape)
    expected = x.reshape(2, 3, factor, factor, 5, 7).transpose(0, 1, 4, 2, 5, 3)
    expected = expected.reshape(2, 3, 5 * factor, 7 * factor)
    with ft.config.using(threads=threads):
        for v in (x, np.moveaxis(np.moveaxis(x, 1, -1).copy(), -1, 1)):
            y = F.pixel_shuffle(xp.asarray(v), factor)
            np.testing.assert_array_equal(y.data, expected)
            np.testing.assert_array_equal(F.pixel_unshuffle(y, factor).data, x)


def test_shuffled_channels_keep_their_layout() -> None:
    x = np.arange(2 * 12 * 4 * 5.0).reshape(2, 12, 4, 5)
    last = xp.asarray(np.moveaxis(np.moveaxis(x, 1, -1).copy(), -1, 1))
    y = F.channel_shuffle(last, 3)
    np.testing.assert_array_equal(y.data, F.channel_shuffle(xp.asarray(x), 3).data)
    assert np.moveaxis(y.data, 1, -1).flags.c_contiguous
