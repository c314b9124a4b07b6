"""Laws of elements at places that are data: the kernels stay inside, and are the composition."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import funct as ft
import funct.array as xp
from funct.kernels.channels import lie_last
from funct.kernels.cpu.loops import available
from funct.kernels.cpu.windows import grids as cpu_grids
from funct.kernels.cpu.windows import sampling as cpu
from funct.kernels.table import restricted
from funct.kernels.windows import sampling as kernels
from funct.nn import functional
from tests.kernels.arrays import SPECIAL, agree

pytestmark = pytest.mark.skipif(not available(), reason="there is no LLVM to compile with")


@settings(max_examples=25)
@given(*[st.integers(1, n) for n in (2, 6, 5, 3, 9)], st.integers(0, 99))
def test_no_index_leaves_its_array(
    images: int, channels: int, size: int, taps: int, count: int, seed: int
) -> None:
    """Run as Python, with every index checked."""
    rng = np.random.default_rng(seed)
    x, g = (rng.normal(size=(images, channels, n)) for n in (size, count))
    places = rng.integers(-1, size, (images, taps, count)).astype(np.int32)
    weights = rng.normal(size=places.shape)
    groups = -(-channels // cpu.CHANNELS)
    sizes, dealt = (channels, size, taps, count), (groups, 2, images * groups, images * groups)
    planes = images * channels
    agree(cpu.picked, x, places, weights, np.zeros_like(g), *sizes, 2, planes, -(-planes // 2))
    agree(cpu.picked_back, g, places, weights, np.zeros_like(x), *sizes, *dealt)
    parts = -(-count // 4)
    y = np.zeros_like(weights)
    agree(cpu.weights_back, x, places, g, y, *sizes, parts, 4, images * parts)
    for wide in (False, True):
        _turned_agree(images, channels + 7 + 8 * wide, size, taps, count, wide, rng)
    channels += 15 + channels // 6 * 15  # which have one block, or two
    x, g = (rng.normal(size=(images, n, channels)) for n in (size, count))
    pixels, blocks = images * count, channels // cpu.LANES
    sizes, tasks = (channels, size, taps, count), -(-pixels // 2)
    agree(cpu.picked_last, x, places, weights, np.zeros_like(g), *sizes, 2, pixels, tasks)
    back = *sizes, blocks, images * blocks
    agree(cpu.picked_back_last, g, places, weights, np.zeros_like(x), *back)


_GRIDS = [(m, p) for m in ("bilinear", "nearest", "bicubic") for p in ("zeros", "border")]


@pytest.mark.parametrize("corners", [False, True])
@pytest.mark.parametrize(("mode", "padding"), _GRIDS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_few_channels_have_the_bits_of_the_composition(
    dtype: Any, mode: str, padding: str, corners: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At places in the image, on its edges and beyond, NaN or infinite, of whatever is there; as
    Python with every index checked; for 1 and 2 threads.
    """
    rng = np.random.default_rng(0)
    edges = np.asarray([-1, 1, 0, -0.0, 0.5, 1e30, np.inf, -np.inf, np.nan, 1.001, -1.2])
    for images, channels, h, w, count in ((2, 3, 5, 9, 611), (1, 1, 1, 300, 17), (2, 5, 16, 2, 16)):
        x = rng.normal(size=(images, channels, h, w)).astype(dtype)
        x.flat[::7] = rng.choice(np.asarray(SPECIAL), x.size // 7 + 1)[: len(x.flat[::7])]
        grid = rng.uniform(-1.3, 1.3, (images, 1, count, 2)).astype(dtype)
        grid.flat[::5] = rng.choice(edges, len(grid.flat[::5]))
        with restricted(), np.errstate(all="ignore"):
            wanted = functional.grid_sample(xp.asarray(x), xp.asarray(grid), mode, padding, corners)
        monkeypatch.setattr(kernels, "_LEAST", 1)
        for threads in (1, 2):
            monkeypatch.setattr(ft.config, "threads", threads)
            found = kernels.grid_sampled(x, grid, mode, padding, corners)
            assert found is not None
            assert np.array_equal(found, np.asarray(wanted), equal_nan=True)
        y = np.zeros((images, channels, count), dtype)
        told = channels, h, w, count, mode, padding, corners, -(-count // 200), 200
        x, grid = (np.clip(np.nan_to_num(v), -9, 9) for v in (x, grid))  # NaN has any sign
        agree(cpu_grids.grid_sums, x, grid, y, *told, images * -(-count // 200))


def _turned_agree(
    images: int, channels: int, size: int, taps: int, count: int, wide: bool, rng: Any
) -> None:
    """Of so many channels, and of some pixels more than a vector has elements."""
    width = 16 if wide else 8
    size, count = (n + width - 1 for n in (size, count))
    x, y = rng.normal(size=(images, channels, size)), np.zeros((images, channels, count))
    places = rng.integers(-1, size, (images, taps, count)).astype(np.int32)
    weights = rng.normal(size=places.shape)
    blocks = -(-channels // width)
    told = blocks, 2, width, wide, images * blocks * 2  # of two parts one may be empty
    pixels = np.zeros((images, blocks, size, width))
    agree(cpu.turned, x, pixels, channels, size, *told)
    pixels = rng.normal(size=pixels.shape)
    agree(cpu.picked_turned, pixels, places, weights, y, channels, size, taps, count, *told)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("channels", "size", "count"), [(8, 17, 8), (11, 40, 301), (16, 16, 33), (37, 600, 700)]
)
def test_turned_images_have_the_bits_of_planes(
    channels: int, size: int, count: int, dtype: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is in them, and for 1 and 2 threads."""
    turns = []

    def turned(*xs: Any) -> None:
        turns.append(xs)
        cpu.turned(*xs)

    monkeypatch.setattr(kernels, "turned", turned)
    monkeypatch.setattr(kernels, "_TURNED", 1 << 12)
    rng = np.random.default_rng(channels)
    x = rng.choice(np.asarray(SPECIAL), (2, channels, size)).astype(dtype)
    places = rng.integers(-1, size, (2, 16, count)).astype(np.int32)
    weights = rng.normal(size=places.shape).astype(dtype)
    wanted = np.zeros((2, channels, count), dtype)
    planes = 2 * channels
    with np.errstate(all="ignore"):
        cpu.picked(x, places, weights, wanted, *(channels, size, 16, count), 1, planes, planes)
        for threads in (1, 2):
            monkeypatch.setattr(ft.config, "threads", threads)
            found = kernels.sampled(x, places, weights)
            assert np.array_equal(found, wanted, equal_nan=True)
            assert np.array_equal(np.signbit(found[found == 0]), np.signbit(wanted[wanted == 0]))
    assert len(turns) == 2


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("channels", [16, 19, 37])
def test_pixels_have_the_bits_of_planes(channels: int, dtype: Any) -> None:
    """Where channels are last, whatever is in them, and so the results lie."""
    rng = np.random.default_rng(channels)
    x = rng.choice(np.asarray(SPECIAL), (2, channels, 7, 9)).astype(dtype)
    grid = xp.asarray(rng.uniform(-1.2, 1.2, (2, 11, 16, 2)).astype(dtype))
    last = xp.asarray(np.moveaxis(np.moveaxis(x, 1, -1).copy(), -1, 1), copy=False)
    for mode in ("bilinear", "nearest"):
        with np.errstate(all="ignore"):
            found, wanted = (functional.grid_sample(v, grid, mode) for v in (last, xp.asarray(x)))
        assert np.array_equal(np.asarray(found), np.asarray(wanted), equal_nan=True)
        assert lie_last(found.data)


@pytest.mark.parametrize(
    ("mode", "rank", "padding"),
    [("bilinear", 2, "zeros"), ("bilinear", 3, "border"), ("nearest", 2, "reflection"),
     ("bicubic", 2, "zeros")],
)  # fmt: skip
@pytest.mark.parametrize("last", [False, True])
def test_samples_and_slopes_are_those_of_the_composition(
    mode: str, rank: int, padding: str, last: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where pixels and places are infinite, and in second slopes; in either layout."""
    monkeypatch.setattr(kernels, "_MANY", 1)
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2, 18 if last else 5, *(5, 4, 3)[:rank]))
    if last:
        x = np.moveaxis(np.moveaxis(x, 1, -1).copy(), -1, 1)
    grid = rng.uniform(-1.6, 1.6, (2, *(3, 2, 2)[:rank], rank))
    odd = x.copy("K"), grid.copy()
    odd[0].flat[::7], odd[1].flat[::5] = np.inf, -np.inf

    def sample(x: Any, grid: Any) -> Any:
        return functional.grid_sample(x, grid, mode, padding, align_corners=rank == 3)

    def slopes(x: Any, grid: Any) -> Any:
        return ft.grad(lambda *xs: xp.sum(xp.sin(sample(*xs))), (0, 1))(x, grid)

    def again(x: Any, grid: Any) -> Any:
        def total(*xs: Any) -> Any:
            return sum([xp.sum(xp.sin(v)) for v in slopes(*xs)])

        return ft.grad(total, (0, 1))(x, grid)

    orders = [(sample, odd), (slopes, (x, grid)), (slopes, odd)]
    for fun, arrays in [*orders, (again, (x, grid))] if (mode, rank) == ("bilinear", 2) else orders:
        with np.errstate(all="ignore"):
            found = fun(*map(xp.asarray, arrays))
            with restricted():
                wanted = fun(*map(xp.asarray, arrays))
        for a, b in zip(ft.tree.leaves(found), ft.tree.leaves(wanted)):
            np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-9, atol=1e-12)
