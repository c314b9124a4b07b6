"""Classes of single taps: as many sums, added to one another."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import funct as ft
from funct.kernels import channels, table
from funct.kernels.cpu.convolution import bands, classes, geometry
from funct.kernels.cpu.convolution import convolution as fast
from funct.kernels.cpu.convolution.convolution import convolver
from funct.kernels.windows import products as plain
from funct.kernels.windows.views import Sliding

pytestmark = pytest.mark.skipif(
    not table.available().issuperset(("llvm", "avx2", "fma")), reason="the processor lacks AVX2"
)

SHAPES = [  # images, channels and outputs of a group, groups, size, kernel, stride, low, dilation
    (4, 33, 40, 1, (6, 7), (5, 7), 1, 3, 1), (3, 24, 17, 2, (9, 5), (3, 3), 2, 1, 1),
    (2, 64, 8, 1, (4, 5, 6), (3, 5, 3), 1, 2, 1), (5, 20, 36, 1, (11,), (5,), 1, 2, 2),
    (2, 48, 24, 1, (7, 7), (2, 2), 3, 0, 1), (1, 300, 16, 1, (5, 5), (5, 5), 2, 4, 1),
    (7, 18, 64, 3, (6, 20), (3, 4), 1, -1, 2),
]  # fmt: skip


def numbers(shape: tuple[int, ...], seed: int, dtype: Any) -> Any:
    """Integers, whose sums are exact."""
    return np.random.default_rng(seed).integers(-3, 4, shape).astype(dtype)


def last(x: Any) -> Any:
    """The same numbers, channels last in memory."""
    return channels.channels_first(np.ascontiguousarray(channels.channels_last(x)))


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Each tap is a class, whether that is less work or not."""
    monkeypatch.setattr(classes, "_WORTH_TAPS", np.inf)
    for cached in (geometry.plan, fast.convolver, fast.convolution, fast.convolution_input):
        getattr(cached, "cache_clear", lambda: None)()
    yield
    for cached in (geometry.plan, fast.convolver):
        cached.cache_clear()


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("laid", [np.asarray, last])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_tap_at_a_time_is_the_plain_one(shape: Any, laid: Any, dtype: Any) -> None:
    """Of any stride, dilation and padding, in groups, in one band and in several."""
    n, c, o, groups, size, kernel, stride, low, dilation = shape
    d = len(size)
    slide = Sliding((stride,) * d, ((low, low + 1),) * d, (dilation,) * d, groups)
    x, w = numbers((n, c * groups, *size), 1, dtype), numbers((o * groups, c, *kernel), 2, dtype)
    expected = plain.convolution(x, w, slide)
    np.testing.assert_array_equal(fast.convolution(laid(x), w, slide), expected)
    g = numbers(expected.shape, 3, dtype)
    dx = fast.convolution_input(laid(g), w, slide, size)
    np.testing.assert_array_equal(dx, plain.convolution_input(g, w, slide, size))


@pytest.mark.parametrize("adjoint", [False, True])
def test_each_tap_is_met_by_the_pixels_it_reads(adjoint: bool) -> None:
    """Large windows on small images take no product of zeros: (6 · 7)² of (12 · 7)²."""
    slide = Sliding((1, 1), ((0, 0) if adjoint else (6, 6),) * 2, (1, 1), 1)
    made = convolver("f32", (4, 64, 6, 6), (64, 64, 7, 7), (12, 12), slide, adjoint)
    table = made._plan.classes.table
    place = bands.CLASS.place
    per_row, taps, adds = (table[:, place(name)] for name in ("pixels_per_row", "n_taps", "adds"))
    assert per_row @ taps == (6 * 7) ** 2
    assert set(taps[adds == 1]) == {1}
    assert set(taps[adds == 0]) == {0}


def test_the_bits_do_not_depend_on_threads() -> None:
    """Taps follow each other in one order."""
    rng = np.random.default_rng(1)
    g = rng.standard_normal((4, 64, 6, 6), np.float32)
    w = rng.standard_normal((64, 64, 7, 7), np.float32)
    slide = Sliding((1, 1), ((0, 0),) * 2, (1, 1), 1)
    found = []
    for threads in (1, 2):
        with ft.config.using(threads=threads):
            found.append(fast.convolution_input(g, w, slide, (12, 12)))
    np.testing.assert_array_equal(*found)
