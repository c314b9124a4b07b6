"""The convolutions in machine code equal the plain ones: exactly, on integers."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

import funct as ft
import funct.array as xp
from funct.device import host
from funct.kernels import channels, table
from funct.kernels.cpu.convolution import (
    bands,
    classes,
    depthwise,
    depthwise_last,
    geometry,
    points,
    weight_gradient,
)
from funct.kernels.cpu.convolution import convolution as fast
from funct.kernels.cpu.convolution.axes import filled, folded
from funct.kernels.cpu.convolution.convolution import convolver
from funct.kernels.cpu.convolution.panels import batch_of
from funct.kernels.windows import convolution as checked
from funct.kernels.windows import products as plain
from funct.kernels.windows.views import Sliding
from funct.nn import functional
from tests import guarded

pytestmark = pytest.mark.skipif(
    not table.available().issuperset(("llvm", "avx2", "fma")), reason="the processor lacks AVX2"
)


Case = dict[str, Any]
many = settings(max_examples=4 * settings.default.max_examples)
DTYPES = (np.float32, np.float64)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Sizes around the widths of vectors and tiles, with every parameter."""
    d = draw(st.integers(1, 3))
    groups = draw(st.integers(1, 3))
    c, o = (
        draw(st.sampled_from([1, 2, 3, 7, 8, 9, 16, 17, 20])),
        draw(st.sampled_from([1, 3, 8, 9, 16, 17, 33])),
    )
    kernel = [draw(st.integers(1, 3)) for _ in range(d)]
    stride = [draw(st.integers(1, 3)) for _ in range(d)]
    dilation = [draw(st.integers(1, 2)) for _ in range(d)]
    padding = [(draw(st.integers(-2, 3)), draw(st.integers(-2, 3))) for _ in range(d)]
    size = [
        max(1, dil * (k - 1) + 1 - low - high) + draw(st.integers(0, 12 if d < 3 else 5))
        for k, dil, (low, high) in zip(kernel, dilation, padding)
    ]
    return {
        "x": (draw(st.integers(1, 3)), c * groups, *size),
        "w": (o * groups, c, *kernel),
        "static": Sliding(tuple(stride), tuple(padding), tuple(dilation), groups),
    }


def numbers(shape: tuple[int, ...], seed: int, dtype: Any) -> np.ndarray[Any, Any]:
    """Integers: their sums are exact in any order."""
    return np.random.default_rng(seed).integers(-8, 9, shape).astype(dtype)


def y_shape(case: Case) -> tuple[int, ...]:
    x, w = case["x"], case["w"]
    return (x[0], w[0], *case["static"].size(x[2:], w[2:]))


@many
@given(cases(), st.sampled_from(DTYPES))
def test_convolution_is_the_plain_one(case: Case, dtype: Any) -> None:
    x, w = numbers(case["x"], 1, dtype), numbers(case["w"], 2, dtype)
    expected = plain.convolution(x, w, case["static"])
    for maps in (fast, depthwise):
        y = maps.convolution(x, w, case["static"])
        if y is not NotImplemented:
            np.testing.assert_array_equal(y, expected, strict=True)


@many
@given(cases(), st.sampled_from(DTYPES))
def test_the_adjoint_in_x_is_the_plain_one(case: Case, dtype: Any) -> None:
    g, w = numbers(y_shape(case), 1, dtype), numbers(case["w"], 2, dtype)
    size = case["x"][2:]
    expected = plain.convolution_input(g, w, case["static"], size)
    for maps in (fast, depthwise):
        x = maps.convolution_input(g, w, case["static"], size)
        if x is not NotImplemented:
            np.testing.assert_array_equal(x, expected, strict=True)


@many
@given(cases(), st.sampled_from(DTYPES))
def test_channels_may_be_last(case: Case, dtype: Any) -> None:
    """In memory: then those of the result are, both ways, and nothing is copied there and back."""
    x, w, static = numbers(case["x"], 1, dtype), numbers(case["w"], 2, dtype), case["static"]
    g = numbers(y_shape(case), 3, dtype)
    pairs = [
        (fast.convolution(last(x), w, static), plain.convolution(x, w, static), x),
        (
            fast.convolution_input(last(g), w, static, x.shape[2:]),
            plain.convolution_input(g, w, static, x.shape[2:]),
            g,
        ),
    ]
    for y, expected, read in pairs:
        if y is not NotImplemented:
            assert np.moveaxis(y, 1, -1).flags.c_contiguous or last(read).flags.c_contiguous
            np.testing.assert_array_equal(y, expected, strict=True)


def last(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The same images with their channels last in memory."""
    return np.moveaxis(np.ascontiguousarray(np.moveaxis(x, 1, -1)), -1, 1)


@st.composite
def single_cases(draw: st.DrawFn) -> tuple[Case, int]:
    """Windows of one element: shapes on both sides of where tiles begin and end, and pixels."""
    c, outputs = (draw(st.sampled_from([1, 16, 33, 64, 127, 128, 257])) for _ in range(2))
    size = draw(st.sampled_from([(1,), (16,), (16, 8), (5, 3), (4, 4, 4)]))
    d, n = len(size), draw(st.sampled_from([1, 4, 8, 33]))
    static = Sliding((1,) * d, ((0, 0),) * d, (1,) * d, 1)
    case = {"x": (n, c, *size), "w": (outputs, c, *[1] * d), "static": static}
    return case, n * int(np.prod(size))


@many
@given(single_cases(), st.sampled_from(DTYPES), st.booleans(), st.booleans())
def test_of_single_elements_many_pixels_are_read_where_they_lie(
    drawn: tuple[Case, int], dtype: Any, x_last: bool, g_last: bool
) -> None:
    """Of images whose channels are first; the function that is called has the plain one's sums."""
    (case, pixels), rest = drawn, (drawn[0]["static"], drawn[0]["w"][2:])
    x, g = numbers(case["x"], 1, dtype), numbers(y_shape(case), 2, dtype)
    expected = plain.convolution_weight(x, g, *rest)
    x, g = (last(v) if turned else v for v, turned in ((x, x_last), (g, g_last)))
    found = weight_gradient.pointwise_weight(x, g, *rest)
    if found is NotImplemented:
        most = 1 << (13 if host().vector_bytes <= 32 else 16)
        few = pixels < 512 or not 1 << 11 <= x.shape[1] * g.shape[1] <= most
        assert few or x.shape[1] * x.itemsize > 1024 or channels.lie_last(x) or channels.lie_last(g)
    else:
        np.testing.assert_array_equal(found, expected, strict=True)
    found = checked.convolution_weight(x, g, *case["static"], rest[1])
    np.testing.assert_array_equal(found, expected, strict=True)


@pytest.mark.parametrize("dtype", DTYPES)
def test_pixels_may_be_asked_for_before_their_tile(
    dtype: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of single elements, whose channels are last: those of the last tile ask for its own."""
    monkeypatch.setattr(geometry, "_AFAR_BYTES", 0)
    for c, outputs, size in ((16, 33, (5, 7)), (40, 64, (9,)), (3, 8, (4, 3, 4)), (32, 16, (1, 1))):
        for plans in (geometry.plan, convolver):
            plans.cache_clear()
        x, w = numbers((2, c, *size), 1, dtype), numbers((outputs, c, *[1] * len(size)), 2, dtype)
        for stride in (1, 2):
            static = Sliding((stride,) * len(size), ((0, 0),) * len(size), (1,) * len(size), 1)
            found = fast.convolution(last(x), w, static)
            np.testing.assert_array_equal(found, plain.convolution(x, w, static), strict=True)


@st.composite
def thin_cases(draw: st.DrawFn) -> Case:
    """One channel of x per group, any number of outputs."""
    case = draw(cases())
    channels, multiplier = draw(st.integers(1, 5)), draw(st.integers(1, 7))
    n, _, *size = case["x"]
    _, _, *kernel = case["w"]
    return {
        "x": (n, channels, *size),
        "w": (channels * multiplier, 1, *kernel),
        "static": case["static"]._replace(groups=channels),
    }


@many
@given(thin_cases(), st.sampled_from(DTYPES))
def test_depthwise_convolution_and_its_adjoints_are_the_plain_ones(case: Case, dtype: Any) -> None:
    x, w, g = (
        numbers(shape, k, dtype) for k, shape in enumerate((case["x"], case["w"], y_shape(case)))
    )
    for y, expected in _all_three(depthwise, depthwise, x, w, g, case["static"]):
        np.testing.assert_array_equal(y, expected, strict=True)


@st.composite
def narrow_cases(draw: st.DrawFn) -> Case:
    """Small images of one channel per group whose lines stay as long as they are."""
    kernel = [draw(st.integers(1, 3)) for _ in range(2)]
    dilation = [draw(st.integers(1, 2)) for _ in range(2)]
    least, beyond = (d * (k - 1) for d, k in zip(dilation, kernel))
    low = draw(st.integers(0, beyond))
    tall = draw(st.integers(0, 3)), draw(st.integers(0, 3))
    height, width = draw(st.integers(max(1, least - sum(tall) + 1), 12)), draw(st.integers(1, 12))
    channels = draw(st.integers(1, 4))
    return {
        "x": (draw(st.integers(1, 3)), channels, height, width),
        "w": (channels * draw(st.integers(1, 7)), 1, *kernel),
        "static": Sliding((1, 1), (tall, (low, beyond - low)), tuple(dilation), channels),
    }


# blocks that lie within one line, and between them one that does not
_BETWEEN: Case = {
    "x": (1, 1, 4, 11), "w": (1, 1, 1, 2),
    "static": Sliding((1, 1), ((0, 0), (0, 1)), (1, 1), 1),
}  # fmt: skip


@many
@given(narrow_cases(), st.sampled_from(DTYPES), st.booleans())
@example(_BETWEEN, np.float64, False)
def test_lines_that_leave_lanes_empty_are_one(case: Case, dtype: Any, at_end: bool) -> None:
    with guarded.memory(at_end=at_end):
        x, w, g = (
            guarded.copy(numbers(shape, k, dtype), at_end=at_end)
            for k, shape in enumerate((case["x"], case["w"], y_shape(case)))
        )
        for y, expected in _all_three(depthwise, depthwise, x, w, g, case["static"]):
            np.testing.assert_array_equal(y, expected)


@pytest.mark.parametrize("outputs", [2, 3, 4, 16, 32])
@pytest.mark.parametrize("kernel", [(3,), (40,), (3, 3), (5, 4), (7, 7), (3, 3, 3)], ids=str)
def test_outputs_that_share_lines_have_sums_of_their_own(
    kernel: tuple[int, ...], outputs: int
) -> None:
    """Two channels; the last outputs of each overlap those before where they do not come out."""
    d = len(kernel)
    static = Sliding((1,) * d, ((1, 2),) * d, (1,) * d, 2)
    x = numbers((3, 2, *(9, 10, 60)[-d:]), 1, np.float32)
    size = static.size(x.shape[2:], kernel)
    g = numbers((3, 2 * outputs, *size), 2, np.float32)
    expected = plain.convolution_weight(x, g, static, kernel)
    found = []
    for threads in (1, 2):
        with ft.config.using(threads=threads):
            found.append(depthwise.convolution_weight(x, g, static, kernel))
    for w in found:
        np.testing.assert_array_equal(w, expected, strict=True)


@pytest.mark.pairwise
@pytest.mark.parametrize("outputs", [2, 3, 5, 6, 8])
@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("image", [(60,), (12,), (7, 9), (5, 13), (3, 5, 13)], ids=str)
@pytest.mark.parametrize("cores", [1, 64])
def test_outputs_of_the_same_channels_share_their_lines(
    image: tuple[int, ...], stride: int, outputs: int, cores: int, monkeypatch: Any
) -> None:
    """As many as leave cores enough; lines that vectors reach beyond end where they end."""
    d = len(image)
    static = Sliding((stride,) * d, ((1, 2),) * d, (1,) * d, 2)
    with monkeypatch.context() as patch:
        patch.setattr(depthwise, "_ALONE", 0)
        patch.setattr(depthwise, "host", lambda: replace(host(), cores=cores))
        depthwise.planes.cache_clear()
        x, w = numbers((2, 6, *image), 1, np.float32), numbers((2 * outputs, 3, *(3,) * d), 2, "f")
        expected = plain.convolution(x, w, static)
        y = depthwise.convolution(x, w, static)
        if y is not NotImplemented:
            np.testing.assert_array_equal(y, expected)
        g = numbers((2, 6, *expected.shape[2:]), 3, "f")
        w = numbers((6, outputs, *(3,) * d), 4, "f")
        dx = depthwise.convolution_input(g, w, static, image)
        if dx is not NotImplemented:
            np.testing.assert_array_equal(dx, plain.convolution_input(g, w, static, image))
    depthwise.planes.cache_clear()


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("image", [(50,), (7, 7), (9, 20), (3, 4, 5)], ids=str)
def test_sums_may_wait_for_the_next_image(
    image: tuple[int, ...], stride: int, monkeypatch: Any
) -> None:
    """Those of small images of many channels, which are read in the order in which they lie; here
    any are many.
    """
    d = len(image)
    static = Sliding((stride,) * d, ((1, 2),) * d, (1,) * d, 5)
    x, kernel = numbers((3, 5, *image), 1, np.float32), (3,) * d
    g = numbers((3, 5, *static.size(image, kernel)), 2, np.float32)
    small = replace(host(), cache_bytes=1)
    monkeypatch.setattr(depthwise, "host", lambda: small)
    depthwise.weight_planes.cache_clear()
    found = []
    for threads in (1, 2):
        with ft.config.using(threads=threads):
            found.append(depthwise.convolution_weight(x, g, static, kernel))
    depthwise.weight_planes.cache_clear()
    for w in found:
        np.testing.assert_array_equal(w, plain.convolution_weight(x, g, static, kernel))


def test_small_images_are_one_line() -> None:
    slide = Sliding((1, 1), ((1, 1), (1, 1)), (1, 1), 8)
    lines = [filled((n, n), (n, n), (3, 3), slide, False) for n in (7, 14)]
    small, large = (folded(axes, kernel, 16) for axes, kernel in lines)
    assert small is not None
    assert small.axes[2].out == 49
    assert large is None  # a seventh is left empty


@st.composite
def last_cases(draw: st.DrawFn) -> Case:
    """As many outputs as channels, around the numbers that fill vectors and blocks of them."""
    case = draw(cases())
    channels = draw(st.sampled_from([3, 4, 5, 8, 9, 15, 16, 17, 24, 33, 40]))
    group = draw(st.sampled_from([n for n in (1, 1, 2, 4, 8) if channels % n == 0]))
    return {
        "x": (case["x"][0], channels, *case["x"][2:]),
        "w": (channels, group, *case["w"][2:]),
        "static": case["static"]._replace(groups=channels // group),
    }


@many
@given(last_cases(), st.sampled_from(DTYPES), st.booleans())
def test_channels_of_small_groups_may_be_last(case: Case, dtype: Any, at_end: bool) -> None:
    """Between forbidden pages; results are laid out as what is read."""
    with guarded.memory(at_end=at_end):
        x, g = (
            np.moveaxis(guarded.copy(np.moveaxis(v, 1, -1), at_end=at_end), -1, 1)
            for v in (numbers(case["x"], 1, dtype), numbers(y_shape(case), 2, dtype))
        )
        w = guarded.copy(numbers(case["w"], 3, dtype), at_end=at_end)
        for y, expected in _all_three(depthwise_last, depthwise_last, x, w, g, case["static"]):
            np.testing.assert_array_equal(y, expected, strict=True)
            assert y.shape == w.shape or np.moveaxis(y, 1, -1).flags.c_contiguous


@pytest.mark.in_turn
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("size", "kernel", "stride", "padding"),
    [
        ((4, 4, 4), 5, 1, 2),
        ((4, 4, 4), 5, 2, 2),
        ((2, 7), 2, 5, 0),
        ((5, 5), 5, 1, 0),
        ((9,), 7, 3, 3),
    ],
    ids=str,
)
@pytest.mark.parametrize("channels", [3, 16, 37])
def test_images_of_few_pixels_a_line_are_turned(
    size: tuple[int, ...], kernel: int, stride: int, padding: int, channels: int, dtype: Any
) -> None:
    """Whose channels are first, and so are those of the result; fewer than a vector has are not."""
    d = len(size)
    slide = Sliding((stride,) * d, ((padding, padding),) * d, (1,) * d, channels)
    x = numbers((3, channels, *size), 1, dtype)
    w = numbers((channels, 1, *(kernel,) * d), 2, dtype)
    g = numbers((3, channels, *slide.size(size, w.shape[2:])), 3, dtype)
    with pytest.MonkeyPatch.context() as patch, guarded.memory(at_end=channels == 16):
        patch.setattr(depthwise_last, "_FEW_PRODUCTS", 0)
        patch.setattr(depthwise_last, "_FEW_TAPS", 0)
        patch.setattr(depthwise_last, "_FEW_BYTES", host().vector_bytes)
        found = _all_three(depthwise_last, depthwise_last, x, w, g, slide)
        assert len(found) == (2 if channels >= host().vector_bytes // x.itemsize else 0)
        for y, expected in found:
            np.testing.assert_array_equal(y, expected, strict=True)
            assert y.flags.c_contiguous
        patch.setattr(depthwise_last, "_FEW_PRODUCTS", x.size * w.size)
        assert not _all_three(depthwise_last, depthwise_last, x, w, g, slide)


@given(st.data(), st.sampled_from(DTYPES), st.booleans())
def test_windows_of_single_elements_are_tiles_of_planes(
    data: st.DataObject, dtype: Any, at_end: bool
) -> None:
    """Between forbidden pages: channels in one piece or several, one tile or more."""
    d, n = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 3))
    size = tuple([data.draw(st.integers(1, 90 if d == 1 else 11)) for _ in range(d)])
    c, o = (data.draw(st.sampled_from([1, 2, 7, 15, 16, 33, 40])) for _ in range(2))
    if data.draw(st.booleans()):
        c = 300  # more than are laid out at a time
    slide = Sliding((1,) * d, ((0, 0),) * d, (1,) * d, 1)
    with pytest.MonkeyPatch.context() as patch, guarded.memory(at_end=at_end):
        patch.setattr(points, "_WIDE", host().vector_bytes)
        patch.setattr(points, "_LEAST", 0)
        patch.setattr(points, "_THIN", 0)
        patch.setattr(points, "_EVEN", 0)
        points._filling.cache_clear()
        x, w, g = (
            guarded.copy(numbers(shape, seed, dtype), at_end=at_end)
            for seed, shape in enumerate([(n, c, *size), (o, c, *(1,) * d), (n, o, *size)])
        )
        y, dx = points.convolution(x, w, slide), points.convolution_input(g, w, slide, size)
    points._filling.cache_clear()
    few = np.prod(size) < 2 * host().vector_bytes // x.itemsize
    assert (y is NotImplemented) == (few or 1 in (c, o))
    if y is not NotImplemented:
        np.testing.assert_array_equal(y, plain.convolution(x, w, slide), strict=True)
        expected = plain.convolution_input(g, w, slide, size)
        np.testing.assert_array_equal(dx, expected, strict=True)


def test_small_groups_have_as_many_outputs_as_channels() -> None:
    """Others are left to tiles."""
    slide = Sliding((1, 1), ((0, 0), (0, 0)), (1, 1), 1)
    last = np.moveaxis(np.ones((2, 6, 6, 16), np.float32), -1, 1)
    for c, o in ((16, 48), (48, 16)):
        w = np.ones((o, c, 1, 1), np.float32)
        if c == last.shape[1]:
            assert depthwise_last.convolution(last, w, slide) is NotImplemented
        else:
            assert depthwise_last.convolution_input(last, w, slide, (6, 6)) is NotImplemented


@given(last_cases(), st.booleans())
def test_strips_of_long_lines_ask_ahead(case: Case, at_end: bool) -> None:
    """For what may stand outside of all arrays; here every line is long."""
    with pytest.MonkeyPatch.context() as patch, guarded.memory(at_end=at_end):
        patch.setattr(depthwise_last, "_LONG_LINE", 0)
        depthwise_last._plan.cache_clear()
        x, g = (
            np.moveaxis(guarded.copy(np.moveaxis(v, 1, -1), at_end=at_end), -1, 1)
            for v in (numbers(case["x"], 1, np.float32), numbers(y_shape(case), 2, np.float32))
        )
        w = guarded.copy(numbers(case["w"], 3, np.float32), at_end=at_end)
        for y, expected in _all_three(depthwise_last, depthwise_last, x, w, g, case["static"]):
            np.testing.assert_array_equal(y, expected, strict=True)
    depthwise_last._plan.cache_clear()


@pytest.mark.in_turn
@pytest.mark.parametrize("kernel", [(9,), (20,), (3, 17)], ids=str)
@pytest.mark.parametrize(("stride", "dilation"), [(1, 1), (2, 1), (3, 2)])
def test_depthwise_rows_of_many_taps_with_channels_last(
    kernel: tuple[int, ...], stride: int, dilation: int
) -> None:
    """More than have their sums in registers at a time."""
    d = len(kernel)
    static = Sliding((stride,) * d, ((4, 5),) * d, (dilation,) * d, 37)
    shape, w = (2, 37, *(7, 45)[-d:]), numbers((37, 1, *kernel), 1, np.float32)
    x = numbers(shape, 2, np.float32)
    g = numbers((2, 37, *static.size(shape[2:], kernel)), 3, np.float32)
    found = _all_three(depthwise_last, depthwise_last, last(x), w, last(g), static)
    assert len(found) == 3
    for y, expected in found:
        np.testing.assert_array_equal(y, expected, strict=True)


def test_depthwise_with_channels_last_is_found_where_it_applies() -> None:
    """Images laid out otherwise, other dtypes and several outputs of a channel are left."""
    x, w = numbers((2, 16, 9, 9), 1, np.float32), numbers((16, 1, 3, 3), 2, np.float32)
    slide = Sliding((1, 1), ((1, 1), (1, 1)), (1, 1), 16)
    found = [
        depthwise_last.convolution(v, w, slide) is not NotImplemented
        for v in (last(x), x, last(x)[:, :, ::2], last(x).astype(np.float64))
    ]
    assert found == [True, False, False, False]
    wide = numbers((32, 1, 3, 3), 2, np.float32)  # two outputs of each channel
    assert depthwise_last.convolution(last(x), wide, slide) is NotImplemented


@pytest.mark.parametrize("crop", [(-2, -3), (-5, 0), (0, -5)])
def test_what_is_cropped_of_images_with_channels_last_lies_between(crop: tuple[int, int]) -> None:
    """One column is left, whose pixels are no run of memory where the image is read in place."""
    x, w = last(numbers((2, 8, 17, 6), 1, np.float32)), numbers((9, 8, 4, 1), 2, np.float32)
    for padding in ((0, 0), (-1, 1)):
        slide = Sliding((2, 1), (padding, crop), (1, 1), 1)
        y = fast.convolution(x, w, slide)
        np.testing.assert_array_equal(y, plain.convolution(x, w, slide))


@pytest.mark.parametrize("maps", [depthwise, depthwise_last], ids=["first", "last"])
@pytest.mark.parametrize("offset", [0, 8])
def test_large_results_go_past_the_caches(maps: Any, offset: int, monkeypatch: Any) -> None:
    """Where they are aligned to vectors; here every result is too large."""
    x, w = numbers((2, 16, 9, 32), 1, np.float32), numbers((16, 1, 3, 3), 2, np.float32)
    static = Sliding((1, 1), ((1, 1), (1, 1)), (1, 1), 16)
    small, room = replace(host(), cache_bytes=1), np.empty(x.nbytes + 64, np.uint8)
    begin = -room.ctypes.data % 32 + offset
    y = room[begin : begin + x.nbytes].view(np.float32)
    for cached in (depthwise.planes, depthwise_last._plan):
        monkeypatch.setattr(cached.__module__ + ".host", lambda: small)
        cached.cache_clear()
    monkeypatch.setattr("funct.kernels.cpu.scratch.fresh", lambda shape, _: y.reshape(shape))
    seen = x if maps is depthwise else last(x)
    found = maps.convolution(seen, w, static)
    depthwise.planes.cache_clear()
    depthwise_last._plan.cache_clear()
    assert np.shares_memory(found, y)
    np.testing.assert_array_equal(found, plain.convolution(x, w, static), strict=True)


@pytest.mark.parametrize(
    ("size", "outputs", "stride", "tiles"),
    [(90, 7, 2, False), (90, 7, 4, False), (90, 7, 5, True), (90, 9, 1, False), (90, 9, 2, None),
     (16, 9, 1, None)],
)  # fmt: skip
def test_one_channel_of_outputs_that_fill_tiles_is_left_to_them(
    size: int, outputs: int, stride: int, tiles: bool | None
) -> None:
    """Lines would be short, or taken apart for each output, which the adjoint in x need not. None:
    where vectors are short.
    """
    x, w = numbers((2, 1, size), 1, np.float32), numbers((outputs, 1, 5), 2, np.float32)
    slide = Sliding((stride,), ((0, 0),), (1,), 1)
    g = numbers((2, outputs, *slide.size((size,), (5,))), 3, np.float32)
    left = [
        depthwise.convolution(x, w, slide) is NotImplemented,
        depthwise.convolution_weight(x, g, slide, (5,)) is NotImplemented,
        depthwise.convolution_input(g, w, slide, (size,)) is NotImplemented,
    ]
    tiles = host().vector_bytes <= 32 if tiles is None else tiles
    assert left == [tiles, tiles, False]


@pytest.mark.parametrize(
    ("kernel", "outputs", "dilation", "tiles"),
    [((25,), 16, 1, True), ((25,), 15, 1, False), ((9,), 16, 1, False), ((5, 5), 16, 1, True),
     ((5, 5), 16, 2, False), ((3, 3), 16, 1, False), ((3, 3, 3), 16, 1, False)],
)  # fmt: skip
def test_many_taps_of_one_channel_are_left_to_tiles(
    kernel: tuple[int, ...], outputs: int, dilation: int, tiles: bool
) -> None:
    """Of vectors of 64 bytes, which they fill; gradients of weights of many outputs."""
    d = len(kernel)
    static = Sliding((1,) * d, ((0, 0),) * d, (dilation,) * d, 1)
    x = numbers((1, 1, *(20, 60, 60)[-d:]), 1, np.float32)
    g = numbers((1, outputs, *static.size(x.shape[2:], kernel)), 2, np.float32)
    found = depthwise.convolution_weight(x, g, static, kernel)
    assert (found is NotImplemented) == (tiles and host().vector_bytes == 64)


@pytest.mark.pairwise
@pytest.mark.parametrize("kernel", [(3, 3), (5, 5), (3, 1), (1, 3), (3, 3, 3)], ids=str)
@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("width", [5, 8, 15, 16, 17, 40])
@pytest.mark.parametrize(("outputs", "dtype"), [(3, np.float32), (6, np.float32), (3, np.float64)])
def test_depthwise_lines_of_any_length(
    kernel: tuple[int, ...], stride: int, width: int, outputs: int, dtype: Any
) -> None:
    """Several lines are summed at once, and long ones are written to the result at once."""
    d = len(kernel)
    case: Case = {
        "x": (2, 3, *(4, 9, width)[3 - d :]),
        "w": (outputs, 1, *kernel),
        "static": Sliding((stride,) * d, ((2, 1),) * d, (1,) * d, 3),
    }
    with guarded.memory(at_end=True):
        x, w, g = (
            guarded.copy(numbers(shape, k, dtype))
            for k, shape in enumerate((case["x"], case["w"], y_shape(case)))
        )
        for y, expected in _all_three(depthwise, depthwise, x, w, g, case["static"]):
            np.testing.assert_array_equal(y, expected, strict=True)


def _all_three(maps: Any, weight: Any, x: Any, w: Any, g: Any, static: Any) -> Any:
    pairs = [
        (maps.convolution(x, w, static), plain.convolution(x, w, static)),
        (
            maps.convolution_input(g, w, static, x.shape[2:]),
            plain.convolution_input(g, w, static, x.shape[2:]),
        ),
        (
            weight.convolution_weight(x, g, static, w.shape[2:]),
            plain.convolution_weight(x, g, static, w.shape[2:]),
        ),
    ]
    return [(y, expected) for y, expected in pairs if y is not NotImplemented]


@many
@given(cases(), st.sampled_from(DTYPES))
def test_the_adjoint_in_w_is_the_plain_one(case: Case, dtype: Any) -> None:
    g, x = numbers(y_shape(case), 1, dtype), numbers(case["x"], 2, dtype)
    size = case["w"][2:]
    w = weight_gradient.convolution_weight(x, g, case["static"], size)
    if w is not NotImplemented:
        expected = plain.convolution_weight(x, g, case["static"], size)
        np.testing.assert_array_equal(w, expected, strict=True)


@contextmanager
def panels_of_pixels() -> Iterator[None]:
    """As if outputs were many, and few pixels filled the cache: all are laid side by side."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(weight_gradient, "_PANEL_OUTPUTS", 1)
        patch.setattr(weight_gradient, "_CHUNK", 20)
        weight_gradient.plan.cache_clear()
        yield
    weight_gradient.plan.cache_clear()


@many
@given(cases(), st.sampled_from(DTYPES), st.booleans())
def test_pixels_may_be_laid_side_by_side(case: Case, dtype: Any, at_end: bool) -> None:
    with panels_of_pixels(), guarded.memory(at_end=at_end):
        g, x = (
            guarded.copy(numbers(shape, k, dtype), at_end=at_end)
            for k, shape in enumerate((y_shape(case), case["x"]))
        )
        size = case["w"][2:]
        expected = plain.convolution_weight(x, g, case["static"], size)
        turned = (
            np.moveaxis(guarded.copy(np.moveaxis(v, 1, -1), at_end=at_end), -1, 1) for v in (x, g)
        )
        for images in itertools.product(*zip((x, g), turned)):
            w = weight_gradient.convolution_weight(*images, case["static"], size)
            if w is not NotImplemented:
                np.testing.assert_array_equal(w, expected, strict=True)


@pytest.mark.parametrize("outputs", [1, 7, 8, 15, 40])
@pytest.mark.parametrize("size", [(512,), (16, 32), (32, 32), (8, 8, 16)])
@pytest.mark.parametrize("dtype", DTYPES)
def test_channels_that_lie_pages_apart_are_few_to_a_tile(
    outputs: int, size: tuple[int, ...], dtype: Any, monkeypatch: Any
) -> None:
    d, channels = len(size), 20
    static, kernel = Sliding((1,) * d, ((1, 1),) * d, (1,) * d, 1), (3,) * d
    x, g = numbers((2, channels, *size), 1, dtype), numbers((2, outputs, *size), 2, dtype)
    asked: list[int] = []
    table_of = weight_gradient.tile_table
    monkeypatch.setattr(
        weight_gradient, "tile_table",
        lambda *a, most, **k: asked.append(most) or table_of(*a, most=most, **k),
    )  # fmt: skip
    weight_gradient.plan.cache_clear()
    w = weight_gradient.convolution_weight(x, g, static, kernel)
    assert max(asked) <= 7
    np.testing.assert_array_equal(w, plain.convolution_weight(x, g, static, kernel), strict=True)


@st.composite
def colours(draw: st.DrawFn) -> Case:
    """Few channels, kernels and images of several lines: a pixel of the slab may hold several."""
    d = draw(st.integers(2, 3))
    kernel = [draw(st.integers(2, 7 if d == 2 else 4)) for _ in range(d)]
    stride = [draw(st.integers(1, 3)) for _ in range(d)]
    dilation = [draw(st.integers(1, 3)), *[draw(st.integers(1, 2)) for _ in range(d - 2)], 1]
    padding = [(draw(st.integers(-2, 4)), draw(st.integers(-2, 4))) for _ in range(d)]
    size = [
        max(1, dil * (k - 1) + 1 - low - high) + draw(st.integers(0, 25 if d < 3 else 6))
        for k, dil, (low, high) in zip(kernel, dilation, padding)
    ]
    c, o = draw(st.integers(1, 4)), draw(st.sampled_from([5, 16, 40]))
    return {
        "x": (draw(st.sampled_from([1, 2, 9])), c, *size),
        "w": (o, c, *kernel),
        "static": Sliding(tuple(stride), tuple(padding), tuple(dilation), 1),
    }


@many
@given(colours(), st.sampled_from(DTYPES), st.booleans())
def test_lines_of_few_channels_stand_in_one_pixel(case: Case, dtype: Any, at_end: bool) -> None:
    with guarded.memory(at_end=at_end):
        g, x = (
            guarded.copy(numbers(shape, k, dtype), at_end=at_end)
            for k, shape in enumerate((y_shape(case), case["x"]))
        )
        size = case["w"][2:]
        expected = plain.convolution_weight(x, g, case["static"], size)
        turned = (
            np.moveaxis(guarded.copy(np.moveaxis(v, 1, -1), at_end=at_end), -1, 1) for v in (x, g)
        )
        for images in itertools.product(*zip((x, g), turned)):
            w = weight_gradient.convolution_weight(*images, case["static"], size)
            if w is not NotImplemented:
                np.testing.assert_array_equal(w, expected, strict=True)


def test_which_lines_stand_in_one_pixel() -> None:
    def found(c: int, o: int, *kernel: int, along: int = 2, stride: int = 1) -> tuple[int, ...]:
        batch = batch_of(8, 1, c, o, "f32")
        return weight_gradient._stacked(replace(batch, lanes=16), kernel, along, stride)

    assert found(3, 32, 3, 1, 3) == (0,)
    assert found(1, 16, 3, 3, 3) == (0, 1)
    assert found(8, 16, 3, 1, 3) == found(16, 32, 3, 1, 3) == found(3, 1, 3, 1, 3) == ()
    assert found(1, 128, 3, 1, 3, along=-1) == (0, 2)
    assert found(1, 128, 3, 1, 3, along=-1, stride=2) == (0,)
    assert found(32, 128, 3, 1, 3, along=-1) == ()


@contextmanager
def many_weights() -> Iterator[None]:
    """As if there were: sums of one unit go to the result block by block."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(weight_gradient, "_SUMS_BYTES", 0)
        patch.setattr(weight_gradient, "_PARTIAL_SUMS", 1)
        weight_gradient.plan.cache_clear()
        yield
    weight_gradient.plan.cache_clear()


@many
@given(cases(), st.integers(1, 5), st.sampled_from(DTYPES), st.booleans())
def test_sums_of_one_unit_are_the_same(case: Case, images: int, dtype: Any, at_end: bool) -> None:
    case = {**case, "x": (2 * images, *case["x"][1:])}
    with many_weights(), guarded.memory(at_end=at_end):
        x, w, g = (
            guarded.copy(numbers(shape, k, dtype), at_end=at_end)
            for k, shape in enumerate((case["x"], case["w"], y_shape(case)))
        )
        for y, expected in _all_three(fast, weight_gradient, x, w, g, case["static"]):
            np.testing.assert_array_equal(y, expected)


@given(st.one_of(cases(), thin_cases()), st.sampled_from(DTYPES), st.booleans())
def test_nothing_outside_of_the_arrays_is_touched(case: Case, dtype: Any, at_end: bool) -> None:
    """Operands, result and scratch stand between forbidden pages, and begin as NaN."""
    with guarded.memory(at_end=at_end):
        x, w, g = (
            guarded.copy(numbers(shape, k, dtype), at_end=at_end)
            for k, shape in enumerate((case["x"], case["w"], y_shape(case)))
        )
        found = _all_three(fast, weight_gradient, x, w, g, case["static"])
        found += _all_three(depthwise, depthwise, x, w, g, case["static"])
        for y, expected in found:
            np.testing.assert_array_equal(y, expected)


@contextmanager
def weights_from_afar() -> Iterator[None]:
    """As if weights were many: each panel is made for one use, in pieces of few channels."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("_WEIGHTS_BYTES", "_PANEL_BYTES", "_SHARE"):
            patch.setattr(geometry, name, 0)
        for cached in (geometry.plan, fast.convolver):
            cached.cache_clear()
        yield
    for cached in (geometry.plan, fast.convolver):
        cached.cache_clear()


@many
@given(cases(), st.sampled_from(DTYPES), st.booleans())
def test_panels_of_one_use_are_the_same(case: Case, dtype: Any, at_end: bool) -> None:
    with weights_from_afar(), guarded.memory(at_end=at_end):
        x, w, g = (
            guarded.copy(numbers(shape, k, dtype), at_end=at_end)
            for k, shape in enumerate((case["x"], case["w"], y_shape(case)))
        )
        for y, expected in _all_three(fast, weight_gradient, x, w, g, case["static"]):
            np.testing.assert_array_equal(y, expected)


def test_panels_of_one_use_come_with_few_pixels_and_many_weights() -> None:
    slide = Sliding((1, 1), ((1, 1), (1, 1)), (1, 1), 1)
    many, few = (
        fast.convolver("f32", (images, 512, 7, 7), (512, 512, 3, 3), (7, 7), slide, False)
        for images in (64 * host().cores, 1)
    )
    assert few.once
    assert not many.once


@pytest.mark.parametrize("at_end", [False, True])
@pytest.mark.parametrize(
    ("images", "channels", "outputs", "stride", "groups"),
    [
        (4 * 2 + 3, 5, 9, 2, 1), (4 * 2 + 3, 8, 40, 1, 2), (5, 256, 144, 1, 1), (5, 256, 144, 2, 1),
        (7, 128, 256, 3, 1), (3, 1024, 64, 1, 4),
    ],
)  # fmt: skip
def test_small_images_are_taken_together(
    images: int, channels: int, outputs: int, stride: int, groups: int, at_end: bool
) -> None:
    """Several of them, the last ones fewer, also where pixels lie a power of two apart."""
    x_shape, w_shape = (images * host().cores, channels, 5, 4), (outputs, channels // groups, 3, 3)
    x_shape = (x_shape[0] - 1, *x_shape[1:])
    static = Sliding((stride,) * 2, ((1, 1),) * 2, (1, 1), groups)
    shapes = x_shape, w_shape, (x_shape[0], outputs, *static.size((5, 4), (3, 3)))
    with guarded.memory(at_end=at_end):
        x, w, g = (
            guarded.copy(numbers(shape, k, np.float32), at_end=at_end)
            for k, shape in enumerate(shapes)
        )
        for y, expected in _all_three(fast, weight_gradient, x, w, g, static):
            np.testing.assert_array_equal(y, expected)
        for y, expected in _all_three(fast, weight_gradient, last(x), w, last(g), static):
            np.testing.assert_array_equal(y, expected)


LARGE = [
    ((2, 64, 30, 20), (70, 64, 3, 3), 1, 1),
    ((3, 40, 7, 7), (300, 40, 3, 3), 1, 1),
    ((1, 3, 60, 50), (64, 3, 7, 7), 2, 1),
    ((2, 24, 500), (40, 12, 5), 2, 2),
    ((1, 700, 9, 9), (24, 700, 3, 3), 1, 1),
    ((1, 16, 9, 10, 11), (24, 16, 3, 3, 3), 2, 1),
    ((11, 256, 3, 4), (300, 256, 3, 3), 1, 1),
    ((35, 5, 4, 4), (9, 5, 3, 3), 2, 1),
    ((9, 512, 5, 5), (260, 512, 3, 3), 1, 1),
    ((1, 300, 6, 6), (512, 300, 3, 3), 2, 1),
    ((20, 256, 4, 3), (200, 256, 3, 3), 1, 1),
    ((20, 512, 4, 3), (400, 256, 3, 3), 1, 2),
]


def large(x_shape: Any, w_shape: Any, stride: int, groups: int) -> tuple[Any, ...]:
    d = len(x_shape) - 2
    rng = np.random.default_rng(0)
    x, w = (rng.standard_normal(s).astype(np.float32) for s in (x_shape, w_shape))
    return x, w, Sliding((stride,) * d, ((1, 1),) * d, (1,) * d, groups)


@pytest.mark.parametrize("case", LARGE, ids=str)
def test_many_bands_splits_and_pieces(case: Any) -> None:
    x, w, static = large(*case)
    y = fast.convolution(x, w, static)
    expected = plain.convolution(x.astype(np.float64), w.astype(np.float64), static)
    np.testing.assert_allclose(y, expected, atol=1e-5 * np.abs(expected).max())
    dx = fast.convolution_input(y, w, static, x.shape[2:])
    wide = plain.convolution_input(y.astype(np.float64), w.astype(np.float64), static, x.shape[2:])
    np.testing.assert_allclose(dx, wide, atol=1e-5 * np.abs(wide).max())
    dw = weight_gradient.convolution_weight(x, y, static, w.shape[2:])
    wide = plain.convolution_weight(x.astype(np.float64), y.astype(np.float64), static, w.shape[2:])
    np.testing.assert_allclose(dw, wide, atol=1e-5 * np.abs(wide).max())


@pytest.mark.parametrize("case", LARGE, ids=str)
def test_the_bits_do_not_depend_on_the_number_of_threads(case: Any) -> None:
    x, w, static = large(*case)
    found = []
    for threads in (1, 2, 3):
        with ft.config.using(threads=threads):
            y = fast.convolution(x, w, static)
            dx = fast.convolution_input(y, w, static, x.shape[2:])
            dw = weight_gradient.convolution_weight(x, y, static, w.shape[2:])
            c = min(x.shape[1], len(w))
            thin = depthwise.convolution(x[:, :c], w[:c, :1], static._replace(groups=c))
            found.append([a.tobytes() for a in (y, dx, dw, thin)])
    assert found[1:] == found[:1] * 2


def test_sums_of_weights_do_not_depend_on_the_number_of_threads() -> None:
    """Of depthwise convolutions with channels last: so many parts whatever the threads."""
    x, g = (last(np.random.default_rng(k).standard_normal((3, 20, 13, 11))) for k in range(2))
    static = Sliding((1, 1), ((1, 1), (1, 1)), (1, 1), 20)
    found = set()
    for threads in (1, 2, 3):
        with ft.config.using(threads=threads):
            found.add(depthwise_last.convolution_weight(x, g, static, (3, 3)).tobytes())
    assert len(found) == 1


def test_views_are_taken() -> None:
    """Transposed, reversed, strided and misaligned operands."""
    room = np.random.default_rng(0).integers(-8, 9, (9, 20, 21, 12)).astype(np.float32)
    x = room.transpose(3, 1, 0, 2)[:2, ::-1, :, 1::2]
    w = numbers((17, 20, 3, 3), 1, np.float32)[:, :, ::-1]
    raw = np.empty(w.nbytes + 2, np.uint8)[2:].view(np.float32)
    odd = raw.reshape(w.shape)
    odd[...] = w
    static = Sliding((1, 1), ((1, 1), (1, 1)), (1, 1), 1)
    expected = plain.convolution(x, w, static)
    np.testing.assert_array_equal(fast.convolution(x, w, static), expected)
    np.testing.assert_array_equal(fast.convolution(x, odd, static), expected)


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("low", [0, 1, 2])
@pytest.mark.parametrize(
    ("size", "kernel", "dilation"),
    [((7, 7), (3, 3), 1), ((9, 5), (3, 3), 2), ((6, 8), (2, 3), 1), ((11,), (3,), 1),
     ((4, 5, 6), (3, 1, 3), 1), ((3, 3), (3, 3), 1)],
)  # fmt: skip
def test_zeros_around_small_images_are_left_out(
    size: tuple[int, ...], kernel: tuple[int, ...], dilation: int, low: int, stride: int
) -> None:
    """Pixels at borders read the taps inside: alone and with others, and in the adjoint."""
    d = len(size)
    static = Sliding((stride,) * d, ((low, 1),) * d, (dilation,) * d, 2)
    for images in (1, 5):
        x = numbers((images, 40, *size), 1, np.float32)
        w = numbers((72, 20, *kernel), 2, np.float32)
        if min(static.size(size, kernel)) < 1:
            continue
        expected = plain.convolution(x, w, static)
        np.testing.assert_array_equal(fast.convolution(x, w, static), expected)
        g = numbers(expected.shape, 3, np.float32)
        dx = fast.convolution_input(g, w, static, size)
        np.testing.assert_array_equal(dx, plain.convolution_input(g, w, static, size))
        of_w = plain.convolution_weight(x, g, static, kernel)
        for laid in (lambda v: v, last):
            dw = weight_gradient.convolution_weight(laid(x), laid(g), static, kernel)
            np.testing.assert_array_equal(dw, of_w)


@pytest.mark.parametrize("most", [1, 3, 12, 125])
def test_pixels_are_told_apart_along_some_axes(most: int, monkeypatch: Any) -> None:
    """Where they would be too many classes along all: those which leave out the most."""
    slide = Sliding((1,) * 3, ((2, 2), (1, 1), (2, 2)), (1,) * 3, 1)
    x, w = numbers((3, 24, 4, 5, 8), 1, np.float32), numbers((32, 24, 5, 3, 5), 2, np.float32)
    expected = plain.convolution(x, w, slide)
    with monkeypatch.context() as patch:
        patch.setattr(classes, "_MOST", most)
        patch.setattr(classes, "_WORTH_TAPS", 0)  # nor is each tap one
        for cached in (geometry.plan, fast.convolver):
            cached.cache_clear()
        np.testing.assert_array_equal(fast.convolution(x, w, slide), expected)
        found = convolver("f32", x.shape, w.shape, y_size := expected.shape[2:], slide, False)
        of_bands = found._plan.classes.sets[:, 1]
        assert 1 <= of_bands.min() <= of_bands.max() <= most
        assert most == 1 or of_bands.max() > 1
        dx = fast.convolution_input(expected, w, slide, y_size)
        np.testing.assert_array_equal(dx, plain.convolution_input(expected, w, slide, y_size))
    for cached in (geometry.plan, fast.convolver):
        cached.cache_clear()


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize(
    ("size", "kernel", "dilation", "padding"),
    [((37, 30), (3, 3), 9, 9), ((40, 23), (3, 2), 16, 20), ((64,), (5,), 11, 22),
     ((9, 31, 8), (1, 3, 3), 4, 4), ((30, 29), (3, 3), 3, 0), ((33, 20), (1, 1), 1, 0)],
)  # fmt: skip
def test_zeros_around_bands_are_left_out(
    size: tuple[int, ...], kernel: tuple[int, ...], dilation: int, padding: int, groups: int,
    stride: int,
) -> None:  # fmt: skip
    """So they are in bands of an image, each of which lies in it in its own way; images whose
    channels are last are read where they lie then, and nothing beside them. Gradients of weights
    sum the rows that a tap reads.
    """
    d = len(size)
    static = Sliding((stride,) * d, ((padding, padding),) * d, (dilation,) * d, groups)
    x = numbers((3, 24 * groups, *size), 1, np.float32)
    w = numbers((20 * groups, 24, *kernel), 2, np.float32)
    expected = plain.convolution(x, w, static)
    g = numbers(expected.shape, 3, np.float32)
    dx = plain.convolution_input(g, w, static, size)
    dw = plain.convolution_weight(x, g, static, kernel)
    for laid in (lambda v: v, last):
        found = weight_gradient.convolution_weight(laid(x), laid(g), static, kernel)
        np.testing.assert_array_equal(found, dw)
        np.testing.assert_array_equal(fast.convolution(laid(x), w, static), expected)
        np.testing.assert_array_equal(fast.convolution_input(laid(g), w, static, size), dx)


@pytest.mark.parametrize("adjoint", [False, True])
def test_how_much_is_left_out(adjoint: bool) -> None:
    """Of 7 x 7 pixels by 3 x 3 taps those that are inside: 19² of 21²."""
    slide = Sliding((1, 1), ((1, 1), (1, 1)), (1, 1), 1)
    shapes = (8, 512, 7, 7), (512, 512, 3, 3), (7, 7)
    made = convolver("f32", *shapes, slide, adjoint)._plan.classes.table
    place = bands.CLASS.place
    per_row, taps, adds = (
        made[:, place(name)] for name in ("pixels_per_row", "n_taps", "adds")
    )
    assert per_row[adds == 0].sum() == 49
    assert per_row @ taps == 19**2
    codes = convolver("s32", *shapes, slide, adjoint)._plan.classes.table
    assert len(codes) == 1  # what stands around codes may be any byte


@given(
    st.integers(1, 2), st.sampled_from([2, 17, 40]), st.integers(1, 9),
    st.lists(st.tuples(st.integers(1, 3), st.integers(1, 40)), min_size=1, max_size=2),
    st.sampled_from(DTYPES),
)  # fmt: skip
def test_windows_side_by_side_are_tiles(
    n: int, c: int, o: int, axes: list[tuple[int, int]], dtype: Any
) -> None:
    """Where few pixels make that slower and vectors are short, or few channels the adjoint in x,
    BLAS has them, and lines those of few outputs.
    """
    kernel, places = zip(*axes)
    size = tuple([k * t for k, t in axes])
    d, pixels = len(axes), n * int(np.prod(places))
    slide = Sliding(kernel, ((0, 0),) * d, (1,) * d, 1)
    x, w = numbers((n, c, *size), 1, dtype), numbers((o, c, *kernel), 2, dtype)
    g = numbers((n, o, *places), 3, dtype)
    some = host().vector_bytes >= 64 or pixels >= (96 if c > 16 else 1024)
    quick = some and max(kernel) > 1
    for found, expected, taken in (
        (fast.beside(x, w, slide), plain.convolution(x, w, slide), quick and o > 4),
        (fast.beside_input(g, w, slide, size), plain.convolution_input(g, w, slide, size),
         quick and c > 16),
        (weight_gradient.beside_weight(x, g, slide, kernel),
         plain.convolution_weight(x, g, slide, kernel), quick),
    ):  # fmt: skip
        assert (found is not NotImplemented) == taken
        if taken:
            np.testing.assert_array_equal(found, expected, strict=True)


def test_special_values_pass() -> None:
    """NaN and infinities reach the windows that hold them, and no others."""
    x = np.zeros((1, 9, 12, 12), np.float32)
    x[0, 3, 5, 5], x[0, 2, 0, 11] = np.nan, np.inf
    w = np.ones((9, 9, 3, 3), np.float32)
    static = Sliding((1, 1), ((1, 1), (1, 1)), (1, 1), 1)
    y = fast.convolution(x, w, static)
    np.testing.assert_array_equal(y, plain.convolution(x, w, static))


@pytest.mark.parametrize(
    ("x", "w", "groups"),
    [
        ((1, 8, 64, 64), (8, 7, 9, 9), 1), ((1, 8, 64, 64), (9, 4, 9, 9), 2),
        ((1, 8, 64), (8, 8, 9, 9), 1), ((1, 8, 5, 64), (64, 8, 9, 9), 1),
    ],
)  # fmt: skip
def test_shapes_that_do_not_fit_never_reach_machine_code(x: Any, w: Any, groups: int) -> None:
    zeros = np.zeros(x, np.float32), np.zeros(w, np.float32)
    static = ((1, 1), ((0, 0), (0, 0)), (1, 1), groups)
    with pytest.raises(ValueError, match="do not fit"):
        checked.convolution(*zeros, *static)
    g = np.zeros((1, w[0], 60, 60), np.float32)
    with pytest.raises(ValueError, match="do not fit"):
        checked.convolution_input(g, zeros[1], *static, x[2:])
    with pytest.raises(ValueError, match="do not fit"):
        checked.convolution_weight(zeros[0], g, *static, w[2:])


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_half_precision_is_summed_in_single_and_rounded_once(dtype: Any) -> None:
    x, w = numbers((1, 16, 40, 40), 1, dtype), numbers((16, 16, 3, 3), 2, dtype)
    static = Sliding((1, 1), ((1, 1), (1, 1)), (1, 1), 1)
    y = checked.convolution(x, w, *static)
    exact = plain.convolution(x.astype(np.float64), w.astype(np.float64), static)
    np.testing.assert_array_equal(y, exact.astype(dtype), strict=True)
    g = numbers(y.shape, 3, dtype)
    dx = checked.convolution_input(g, w, *static, (40, 40))
    dw = checked.convolution_weight(x, g / 64, *static, (3, 3))
    assert dx.dtype == dw.dtype == dtype


def test_layers_keep_channels_last() -> None:
    """Through convolution, bias and relu no image of a network is laid out anew."""
    x = xp.asarray(numbers((4, 12, 10, 16), 1, np.float32))
    w, v, b = (
        xp.asarray(numbers(shape, k, np.float32))
        for k, shape in enumerate([(24, 16, 3, 3), (40, 24, 3, 3), (24,)])
    )
    first = xp.permute_dims(x, (0, 3, 1, 2))
    y = functional.relu(functional.conv2d(first, w, b, padding=1))
    z = functional.conv2d(y, v, stride=2, padding=1)
    for image in (y, z):
        assert np.moveaxis(np.asarray(image), 1, -1).flags.c_contiguous
    other = np.ascontiguousarray(np.asarray(first))
    expected = functional.relu(functional.conv2d(xp.asarray(other), w, b, padding=1))
    np.testing.assert_array_equal(np.asarray(y), np.asarray(expected))


@pytest.mark.parametrize("adjoint", [False, True])
def test_lanes_beyond_the_outputs_hold_numbers(adjoint: bool) -> None:
    """Not what happens to be in memory, which may be numbers that processors are slow at."""
    slide, w = Sliding((2, 2), ((0, 0), (0, 0)), (1, 1), 1), np.ones((20, 5, 1, 1), np.float32)
    channels = 20 if adjoint else 5
    size, of = ((17, 15), (9, 8)) if adjoint else ((9, 8), (17, 15))
    with guarded.memory(at_end=True):
        made = convolver("f32", (2, channels, *of), w.shape, size, slide, adjoint)
        assert np.isfinite(made.panels(w)).all()


@pytest.mark.parametrize("at_end", [False, True])
@given(
    st.integers(1, 3), st.sampled_from([1, 3, 16]), st.integers(1, 40), st.integers(2, 7),
    st.integers(2, 3), st.integers(-1, 4), st.integers(1, 70), st.sampled_from(DTYPES),
)  # fmt: skip
def test_taps_apart_of_signals_are_stacked_by_lines(
    at_end: bool, n: int, c: int, o: int, k: int, apart: int, low: int, out: int, dtype: Any
) -> None:
    slide = Sliding((1,), ((low, 2),), (apart,), 1)
    size = max(1, out - 1 + apart * (k - 1) + 1 - low - 2)
    x = numbers((n, c, size), 1, dtype)
    g = numbers((n, o, *slide.size((size,), (k,))), 2, dtype)
    expected = plain.convolution_weight(x, g, slide, (k,))
    with guarded.memory(at_end=at_end):
        x, g = (guarded.copy(v, at_end=at_end) for v in (x, g))
        found = weight_gradient.convolution_weight(x, g, slide, (k,))
    np.testing.assert_array_equal(found, expected, strict=True)
