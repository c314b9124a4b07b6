"""Laws of maxima and means over boxes of several sizes."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import funct as ft
import funct.array as xp
from funct.kernels.cpu.loops import available
from funct.kernels.table import restricted
from funct.nn import functional
from funct.nn.functional.resampling import area_windows
from tests.kernels.arrays import agree

if not available():
    pytest.skip("there is no LLVM here", allow_module_level=True)

from funct.kernels.cpu.windows import boxes as cpu

_axis = st.tuples(st.integers(1, 6), st.lists(st.tuples(st.integers(0, 5), st.integers(1, 6))))


@given(st.lists(_axis, min_size=3, max_size=3), st.integers(1, 3), st.integers(0, 9))
def test_no_index_leaves_its_array(axes: list[Any], planes: int, seed: int) -> None:
    """Run as Python, the kernel stays inside and gives what the machine code gives."""
    size, ends, count = [], [], []
    for n, boxes in axes:
        inside = [(a, min(b, n)) for a, b in boxes if a < min(b, n)] or [(0, n)]
        size.append(n)
        count.append(len(inside))
        ends += inside
    x = np.random.default_rng(seed).integers(-2, 3, planes * prod(size)).astype(np.float32)
    x[x == 2] = np.nan
    y = np.zeros(planes * prod(count), np.int64)
    agree(cpu.max_index_boxes, x, y, np.asarray(ends), *size, *count, planes, 2, -(-planes // 2))
    tasks = -(-planes // 2)
    room, y = (np.zeros(n, np.float32) for n in (tasks * size[2], planes * prod(count)))
    agree(cpu.mean_boxes, x, y, np.asarray(ends), room, *size, *count, planes, 2, tasks)


@given(
    st.lists(st.tuples(st.integers(1, 20), st.integers(1, 6)), min_size=3, max_size=3),
    st.integers(1, 3),
)
def test_what_means_send_back_is_added_up(axes: list[tuple[int, int]], planes: int) -> None:
    """Of boxes that cover everything, it stays inside too, and is the shares of all of them."""
    size, count = zip(*axes, strict=True)
    ends = [area_windows(n, out) for n, out in axes]
    g = np.random.default_rng(planes).standard_normal((planes, *count))
    tasks = -(-planes // 2)
    y, room = np.zeros((planes, *size)), np.zeros(tasks * size[2])
    given = (g, y, np.concatenate(ends), room, *size, *count, planes, 2, tasks)
    agree(cpu.mean_boxes_back, *given)
    cpu.mean_boxes_back(*given)
    shares = []
    for n, (start, stop) in zip(size, [e.T for e in ends], strict=True):
        k = np.arange(n)[:, None]
        shares.append(((k >= start) & (k < stop)) / (stop - start))
    wanted = np.einsum("pijk,ai,bj,ck->pabc", g, *shares)
    np.testing.assert_allclose(y, wanted, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize(
    ("size", "out"), [((13, 9), (5, 2)), ((7, 6, 5), (3, 4, 2)), ((31,), (7,))]
)
@pytest.mark.parametrize("channels", [8, 19])
def test_maxima_of_channels_that_are_last_are_those_of_others(
    size: tuple[int, ...], out: tuple[int, ...], channels: int
) -> None:
    """Values, pulls, and the derivatives of both; with ties and several NaN in a window."""
    rng = np.random.default_rng(channels)
    x = rng.integers(-2, 3, (4, *size, channels)).astype(np.float32)
    x[rng.random(x.shape) < 0.1] = np.nan
    last = xp.asarray(np.moveaxis(x, -1, 1))
    first = xp.asarray(np.moveaxis(x, -1, 1).copy())
    pool = getattr(functional, f"adaptive_max_pool{len(size)}d")
    (y, pull), (z, other) = (ft.vjp(lambda v: pool(v, out), image) for image in (last, first))
    g = xp.asarray(rng.integers(-3, 4, y.shape).astype(np.float32))
    t = xp.asarray(rng.integers(-3, 4, first.shape).astype(np.float32))
    found = [y, pool(last, out), *pull(g), *pull(xp.asarray(np.moveaxis(
        np.moveaxis(np.asarray(g), 1, -1).copy(), -1, 1)))]  # fmt: skip
    for one in found[:2]:
        np.testing.assert_array_equal(np.asarray(one), np.asarray(z), strict=True)
    for one in found[2:]:
        np.testing.assert_array_equal(np.asarray(one), np.asarray(other(g)[0]), strict=True)
    seconds = [ft.vjp(p, g)[1]((t,))[0] for p in (pull, other)]
    pushed = [ft.jvp(lambda v: pool(v, out), (v,), (t,))[1] for v in (last, first)]
    for a, b in (seconds, pushed):
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b), strict=True)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.float16])
@pytest.mark.parametrize(("size", "out"), [
    ((997,), (13,)), ((13, 24), (5, 7)), ((7, 6, 11), (3, 4, 5)), ((3, 40), (5, 9)),
])  # fmt: skip
def test_adaptive_maxima_are_those_of_gathered_windows(
    size: tuple[int, ...], out: tuple[int, ...], dtype: Any
) -> None:
    """Values and places, with ties and, where the dtype has it, NaN; of any order in memory."""
    x = np.random.default_rng(1).integers(-9, 9, (2, *size, 3)).astype(dtype)
    if x.dtype.kind == "f":
        x.reshape(-1)[::17] = np.nan
    pool = getattr(functional, f"adaptive_max_pool{len(size)}d")
    for image in (np.moveaxis(x, -1, 1), np.moveaxis(x, -1, 1).copy()):
        found = pool(xp.asarray(image), out, return_indices=True)
        with restricted():
            wanted = pool(xp.asarray(image), out, return_indices=True)
        for a, b in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(np.asarray(a), np.asarray(b), strict=True)


@given(st.integers(1, 3), st.integers(1, 5), st.integers(1, 6), st.integers(0, 99))
def test_distinct_places_are_known(planes: int, count: int, n: int, seed: int) -> None:
    """Of each image by itself; no place that is outside is looked at."""
    i = np.random.default_rng(seed).integers(-1, n + 1, (planes, count))
    if seed % 2:
        i = np.stack([np.random.default_rng(seed).permutation(n)[:count] for _ in range(planes)])
    seen = np.zeros(planes * n, np.uint8)
    agree(cpu.distinct, i, seen, planes, i.shape[1], n)
    inside = bool((i >= 0).all() and (i < n).all())
    wanted = inside and all(len(set(row)) == len(row) for row in i.tolist())
    assert cpu.distinct(i, seen, planes, i.shape[1], n) == wanted


def test_maxima_go_back_alike_with_and_without() -> None:
    """Where windows share places, too, and along tapes."""
    x = np.random.default_rng(3).standard_normal((2, 3, 12, 12)).astype(np.float32)
    for stride in (2, 1):
        y, at = functional.max_pool2d(xp.asarray(x), 2, stride, return_indices=True)

        def back(y: Any, at: Any = at, stride: int = stride) -> Any:
            return functional.max_unpool2d(y, at, 2, stride, output_size=(12, 12))

        def both(y: Any) -> Any:
            return back(y), ft.grad(lambda y: xp.sum(back(y) ** 2))(y)

        found = both(y)
        with restricted():
            wanted = both(y)
        for a, b in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(np.asarray(a), np.asarray(b), strict=True)
