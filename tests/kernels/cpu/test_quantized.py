"""Layers on codes in machine code equal the plain ones, code by code."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from funct.device import host
from funct.kernels import table
from funct.kernels.cpu.convolution import byte_planes
from funct.kernels.cpu.products import integer_rows
from funct.kernels.cpu.products import integers as products
from funct.kernels.cpu.quantized import byte_pixels, weight_only
from funct.kernels.cpu.quantized import layers as fast
from funct.kernels.cpu.quantized.words import PAIRS, Words, best
from funct.kernels.quantized import affine as plain
from funct.kernels.quantized import weight_only as few_bits
from funct.kernels.windows.views import Sliding
from tests import guarded
from tests.kernels.arrays import whole_range as codes

pytestmark = pytest.mark.skipif(
    not table.available().issuperset(("llvm", "avx2")), reason="the processor lacks AVX2"
)
many = settings(max_examples=2 * settings.default.max_examples)
BYTES = st.sampled_from([np.uint8, np.int8])
WORDS = sorted({PAIRS, best()}, key=lambda words: words.dot)  # all that this processor multiplies


@contextmanager
def taken(words: Words) -> Iterator[None]:
    """As on a processor whose best words these are."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fast, "best", lambda: words)
        yield


def zero_points(dtype: Any) -> st.SearchStrategy[int]:
    """Any, the extreme ones often."""
    limits = np.iinfo(dtype)
    low, high = int(limits.min), int(limits.max)
    return st.sampled_from([low, high, low + 1, high - 1]) | st.integers(low, high)


@st.composite
def to_codes(draw: st.DrawFn, outputs: int) -> tuple[Any, plain.Codes]:
    """A bias, and how its sums become codes."""
    dtype = draw(BYTES)
    limits = np.iinfo(dtype)
    zero = draw(st.integers(int(limits.min), int(limits.max)))
    relu = draw(st.booleans())
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    size = 10.0 ** draw(st.integers(-6, 0))
    shape = (outputs,) if draw(st.booleans()) else ()
    multiplier = (size * rng.uniform(0.5, 2, shape)).astype(np.float32)
    bias = rng.integers(-9999, 9999, outputs).astype(np.int32)
    lowest = zero if relu else int(limits.min)
    return bias, plain.Codes(multiplier, zero, lowest, int(limits.max), dtype)


@many
@given(st.data())
def test_linear_is_the_plain_one(data: st.DataObject) -> None:
    rows, depth, outputs = (
        data.draw(st.sampled_from([1, 2, 3, 7, 8, 9, 16, 17, 33, 64, 71])) for _ in range(3)
    )
    dtype = data.draw(BYTES)
    lead = data.draw(st.sampled_from([(), (2,)]))
    x, w = codes((*lead, rows, depth), dtype, 1), codes((outputs, depth), np.int8, 2)
    zero = data.draw(zero_points(dtype))
    rest = data.draw(to_codes(outputs))
    with taken(data.draw(st.sampled_from(WORDS))):
        y = fast.linear(x, zero, w, *rest)
    np.testing.assert_array_equal(y, plain.plain_linear(x, zero, w, *rest), strict=True)


@pytest.mark.parametrize("words", WORDS, ids=lambda words: words.dot)
@pytest.mark.parametrize("rows", [4, 61, 130])
def test_units_of_rows_and_outputs_meet(rows: int, words: Words) -> None:
    """Larger than one unit of work in each direction, and no multiple of one."""
    x, w = codes((rows, 3001), np.uint8, 1), codes((331, 3001), np.int8, 2)
    how = plain.Codes(np.linspace(1e-6, 1e-5, 331, dtype=np.float32), 7, 7, 255, np.uint8)
    given = (x, 99, w, np.arange(331, dtype=np.int32), how)
    with taken(words):
        y = fast.linear(*given)
    np.testing.assert_array_equal(y, plain.plain_linear(*given), strict=True)


@pytest.mark.parametrize("words", WORDS, ids=lambda words: words.dot)
@pytest.mark.parametrize(("dtype", "code", "zero"), [
    (np.uint8, 255, 0), (np.uint8, 0, 255), (np.int8, 127, -128), (np.int8, -128, 127),
])  # fmt: skip
@pytest.mark.parametrize("weight", [-128, 127])
@pytest.mark.parametrize("rows", [1, 9])
def test_the_largest_sums_are_exact(
    rows: int, weight: int, dtype: Any, code: int, zero: int, words: Words
) -> None:
    """Every product as far from 0 as there are, of as many as int32 holds."""
    depth = 2**31 // (255 * 128) - 1
    x, w = np.full((rows, depth), code, dtype), np.full((5, depth), weight, np.int8)
    bias = np.array([0, 1, -1, 9, -9], np.int32)
    given = (x, zero, w, bias, plain.Codes(np.float32(5e-8), 3, -128, 127, np.int8))
    with taken(words):
        y = fast.linear(*given)
    np.testing.assert_array_equal(y, plain.plain_linear(*given), strict=True)
    assert abs(int(y[0, 0]) - 3) > 90


@pytest.mark.parametrize("dot", [None, "s16"])
@given(
    st.integers(32, 40), st.integers(64, 90), st.integers(32, 70), BYTES, st.booleans(),
)  # fmt: skip
def test_products_of_bytes_wrap_around(
    dot: str | None, rows: int, depth: int, columns: int, dtype: Any, turned: bool
) -> None:
    """Modulo 256, whichever instruction multiplies them and however they lie."""
    x = codes((rows, depth), dtype, 1)
    y = codes((columns, depth), dtype, 2).T if turned else codes((depth, columns), dtype, 2)
    with pytest.MonkeyPatch.context() as patch:
        if dot is not None:
            patch.setattr(products, "_narrow", lambda _: (dot, np.dtype(np.int16)))
        product = products._product(x, y)  # however few rows there are
    np.testing.assert_array_equal(product, np.matmul(x, y), strict=True)


@many
@given(st.data())
def test_convolution_is_the_plain_one(data: st.DataObject) -> None:
    d = data.draw(st.integers(1, 3))
    groups = data.draw(st.integers(1, 2))
    c, o = (
        data.draw(st.sampled_from([1, 2, 3, 4, 5, 8, 9])),
        data.draw(st.sampled_from([1, 3, 4, 8, 9, 17])),
    )
    kernel = [data.draw(st.integers(1, 3)) for _ in range(d)]
    stride = tuple([data.draw(st.integers(1, 2)) for _ in range(d)])
    dilation = tuple([data.draw(st.integers(1, 2)) for _ in range(d)])
    padding = tuple([(data.draw(st.integers(-1, 2)), data.draw(st.integers(0, 2))) for _ in kernel])
    size = [2 * k + 2 + data.draw(st.integers(0, 9)) for k in kernel]
    dtype = data.draw(BYTES)
    x, w = codes((2, c * groups, *size), dtype, 1), codes((o * groups, c, *kernel), np.int8, 2)
    zero = data.draw(zero_points(dtype))
    slide = Sliding(stride, padding, dilation, groups)
    assert min(slide.size(tuple(size), tuple(kernel))) > 0
    rest = data.draw(to_codes(len(w)))
    with taken(data.draw(st.sampled_from(WORDS))):
        y = fast.convolution(x, zero, w, *rest, slide)
    assert y is not NotImplemented or len(w) // groups < 4
    if y is not NotImplemented:
        expected = plain.plain_convolution(x, zero, w, *rest, slide)
        np.testing.assert_array_equal(y, expected, strict=True)


@pytest.mark.parametrize("words", WORDS, ids=lambda words: words.dot)
@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
@pytest.mark.parametrize(("channels", "outputs", "kernel", "stride", "dilation", "low"), [
    (1, 1, (3, 3), (1, 1), (1, 1), 1), (1, 2, (1, 4), (2, 2), (1, 1), 2),
    (2, 1, (2, 5), (1, 1), (1, 3), 3), (1, 1, (1, 9), (1, 2), (1, 2), 0),
    (1, 1, (2, 2), (1, 1), (2, 20), -1), (1, 1, (1, 3), (1, 2), (1, 30), 4),
])  # fmt: skip
def test_few_channels_per_group_are_the_plain_ones(
    channels: int, outputs: int, kernel: Any, stride: Any, dilation: Any, low: int, dtype: Any,
    words: Words,
) -> None:  # fmt: skip
    """Along lines: kernels wider than a word or than what is loaded at once, vectors and rests."""
    limits = np.iinfo(dtype)
    padding = ((low, 0), (low, 2))
    reach = [(k - 1) * by + 1 for k, by in zip(kernel, dilation, strict=True)]
    slide = Sliding(stride, padding, dilation, 3)
    w = codes((outputs * 3, channels, *kernel), np.int8, 2)
    bias = np.arange(len(w), dtype=np.int32)
    how = plain.Codes(np.float32(3e-3), 5, limits.min, limits.max, dtype)
    for width, height in ((3, 4), (15, 31), (16, 4), (17, 4), (33, 31), (70, 4)):
        x = codes((2, channels * 3, reach[0] + height, reach[1] + width), dtype, 1)
        for zero in (int(limits.min), int(limits.max), 7):
            with guarded.memory(at_end=width % 2 > 0), taken(words):
                y = fast.convolution(x, zero, w, bias, how, slide)
            if y is not NotImplemented:
                expected = plain.plain_convolution(x, zero, w, bias, how, slide)
                np.testing.assert_array_equal(y, expected, strict=True)


@given(st.data())
def test_planes_of_one_channel_per_group_are_the_plain_ones(data: st.DataObject) -> None:
    """Lines of any length, with zeros of any width around or cropped, in one band or in several;
    steps that leave int32.
    """
    d = data.draw(st.integers(1, 2))
    kernel = [data.draw(st.integers(1, 7)) for _ in range(d)]
    dilation = tuple([data.draw(st.integers(1, 3)) for _ in kernel])
    reach = [(k - 1) * by + 1 for k, by in zip(kernel, dilation)]
    ends = [st.integers(-3, r + 1) for r in reach]
    padding = tuple([(data.draw(end), data.draw(end)) for end in ends])
    out = [data.draw(st.integers(1, 70 if k == d - 1 else 9)) for k in range(d)]
    size = [o + r - 1 - sum(p) for o, r, p in zip(out, reach, padding)]
    assume(min(size) > 0)
    n, channels, shared = (data.draw(st.integers(1, most)) for most in (2, 3, 3))
    dtype = data.draw(BYTES)
    w = codes((channels * shared, 1, *kernel), np.int8, 2)
    bias, to = data.draw(to_codes(len(w)))
    to = to._replace(multiplier=to.multiplier * np.float32(data.draw(st.sampled_from([1, 1e9]))))
    slide = Sliding((1,) * d, padding, dilation, channels)
    given = data.draw(zero_points(dtype)), w, bias, to, slide
    at_end = data.draw(st.booleans())
    with pytest.MonkeyPatch.context() as patch, guarded.memory(at_end=at_end), taken(PAIRS):
        patch.setattr(byte_planes, "_SLAB", data.draw(st.sampled_from([300, 12 << 10])))
        fast.convolver.cache_clear()
        x = guarded.copy(codes((n, channels, *size), dtype, 1), at_end=at_end)
        y = fast.convolution(x, *given)
        expected = plain.plain_convolution(x, *given)
        np.testing.assert_array_equal(y, expected, strict=True)


@given(st.data())
def test_pixels_that_are_lanes_are_the_plain_ones(data: st.DataObject) -> None:
    """Windows of single elements: any number of pixels, in one part or several, and of outputs."""
    d = data.draw(st.integers(1, 3))
    size = [data.draw(st.integers(1, 90 if k == d - 1 else 3)) for k in range(d)]
    n, c, o = (data.draw(st.integers(*ends)) for ends in ((1, 3), (1, 9), (6, 20)))
    assume(np.prod(size) >= 16)
    dtype = data.draw(BYTES)
    zero = data.draw(zero_points(dtype))
    w = codes((o, c, *[1] * d), np.int8, 2)
    bias, to = data.draw(to_codes(o))
    to = to._replace(multiplier=to.multiplier * np.float32(data.draw(st.sampled_from([1, 1e9]))))
    slide = Sliding((1,) * d, ((0, 0),) * d, (1,) * d, 1)
    at_end = data.draw(st.booleans())
    with pytest.MonkeyPatch.context() as patch, guarded.memory(at_end=at_end), taken(PAIRS):
        patch.setattr(byte_pixels, "_ROOM", data.draw(st.sampled_from([0, 16 << 10])))
        fast.convolver.cache_clear()
        x = guarded.copy(codes((n, c, *size), dtype, 1), at_end=at_end)
        y = fast.convolution(x, zero, w, bias, to, slide)
        assert byte_pixels.convolver(x.shape, x.dtype, zero, w.shape, bias, to, slide) is not None
        expected = plain.plain_convolution(x, zero, w, bias, to, slide)
        np.testing.assert_array_equal(y, expected, strict=True)


@pytest.mark.skipif(
    not host().has("avx512vnni", "avx512vbmi"),
    reason="lines are met in words of bytes nowhere else",
)
def test_sums_along_lines_may_be_larger_than_floats_hold() -> None:
    x, w = np.full((1, 300, 3, 40), 255, np.uint8), np.full((1, 300, 3, 3), -127, np.int8)
    slide = Sliding((1, 1), ((1, 1), (1, 1)), (1, 1), 1)
    how = plain.Codes(np.float32(1e-6), 120, -128, 127, np.int8)
    given = (x, 0, w, np.array([1], np.int32), how, slide)
    y = fast.convolution(*given)
    np.testing.assert_array_equal(y, plain.plain_convolution(*given), strict=True)


@many
@given(
    st.lists(st.floats(width=32), min_size=1, max_size=40), st.floats(2.0**-20, 2.0**20, width=32),
    st.integers(0, 255), BYTES,
)  # fmt: skip
def test_quantize_is_the_plain_one(
    numbers: list[float], scale: float, zero: int, dtype: Any
) -> None:
    """For every float32, NaN and infinities among them."""
    limits = np.iinfo(dtype)
    zero += int(limits.min)
    given = (np.array(numbers, np.float32), np.float32(scale), zero, limits.min, limits.max, dtype)
    with np.errstate(all="ignore"):
        expected = plain.plain_quantize(*given, 0)
    np.testing.assert_array_equal(fast.quantize(*given, 0), expected, strict=True)


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
@pytest.mark.parametrize("scale", [1.0, 0.1, 1e-40, 3e38, np.inf, np.nan, -2.5])
@given(st.data())
def test_dequantize_is_the_plain_one(dtype: Any, scale: float, data: st.DataObject) -> None:
    """For every code and zero point, scales of every kind, and any number of codes."""
    count = data.draw(st.integers(1, 70))
    q = np.resize(np.arange(256).astype(dtype), (count,) if count % 2 else (7, count))
    q = q[..., :: data.draw(st.sampled_from([1, -1, 3]))]
    given = (q, np.float32(scale), data.draw(zero_points(dtype)), 0, np.float32)
    with np.errstate(all="ignore"):
        expected = plain.plain_dequantize(*given)
    y = fast.dequantize(*given)
    np.testing.assert_array_equal(y, expected, strict=True)
    numbers = ~np.isnan(expected)  # the signs of NaN are anyone's
    assert y[numbers].tobytes() == expected[numbers].tobytes()


def test_ties_are_rounded_to_even() -> None:
    x = np.arange(-40, 41, dtype=np.float32) / 2
    given = (x, np.float32(1), 3, 0, 255, np.uint8, 0)
    np.testing.assert_array_equal(fast.quantize(*given), plain.plain_quantize(*given))


@pytest.mark.parametrize("words", WORDS, ids=lambda words: words.dot)
@given(st.integers(1, 20), st.integers(1, 80), st.integers(1, 20), BYTES, st.booleans())
def test_nothing_outside_of_the_arrays_is_touched(
    words: Words, rows: int, depth: int, outputs: int, dtype: Any, at_end: bool
) -> None:
    """Operands, results and scratch stand between forbidden pages."""
    rest = (np.zeros(outputs, np.int32), plain.Codes(np.float32(1e-2), 0, -128, 127, np.int8))
    with guarded.memory(at_end=at_end), taken(words):
        x, w = (
            guarded.copy(codes(shape, t, 1), at_end=at_end)
            for shape, t in (((rows, depth), dtype), ((outputs, depth), np.int8))
        )
        y = fast.linear(x, 3, w, *rest)
        np.testing.assert_array_equal(y, plain.plain_linear(x, 3, w, *rest))
        numbers = guarded.copy(np.ones((rows, depth), np.float32), at_end=at_end)
        ones = fast.quantize(numbers, np.float32(0.5), 1, 0, 255, np.uint8, 0)
        assert (ones == 3).all()
        ones = guarded.copy(ones, at_end=at_end)
        assert (fast.dequantize(ones, np.float32(0.5), 1, 0, np.float32) == 1).all()
        image, kernels = x.reshape(1, rows, 1, depth), w.reshape(outputs, 1, 1, depth)
        if outputs % rows == 0:
            static = Sliding((1, 1), ((1, 0), (0, 2)), (1, 1), rows)
            z = fast.convolution(image, 3, kernels, *rest, static)
            expected = plain.plain_convolution(image, 3, kernels, *rest, static)
            np.testing.assert_array_equal(z, expected)
        lines = guarded.copy(codes((2, outputs, 3, depth), dtype, 2), at_end=at_end)
        taps = guarded.copy(codes((outputs, 1, 3, 2), np.int8, 3), at_end=at_end)
        static = Sliding((1, 1), ((1, 1), (1, 0)), (1, 1), outputs)
        z = fast.convolution(lines, 3, taps, *rest, static)
        np.testing.assert_array_equal(z, plain.plain_convolution(lines, 3, taps, *rest, static))
        for kernel in (products.integer_matmul, integer_rows.integer_matmul):
            for right in (np.ascontiguousarray(w.T), w):
                laid = guarded.copy(right.astype(dtype), at_end=at_end)
                product = kernel(x, laid.T if right is w else laid)
                if product is not NotImplemented:
                    np.testing.assert_array_equal(product, np.matmul(x, w.T.astype(dtype)))
        weights = guarded.copy(codes((outputs, 32), np.uint8, 1), at_end=at_end)
        row = guarded.copy(np.ones((1, 64), np.float32), at_end=at_end)
        scale = guarded.copy(np.ones((outputs, 2), np.float32), at_end=at_end)
        np.testing.assert_array_equal(
            weight_only.weight_only_linear(row, weights, scale),
            few_bits.plain_weight_only_linear(row, weights, scale),
        )


_WITHOUT_AVX512 = """
import sys
import numpy as np
import funct.device
machine = sys.modules["funct.device.host"]
features = frozenset([f for f in machine._named()[1] if not f.startswith("avx512")])
machine._named = lambda: ("alderlake", features)
machine.host.cache_clear()
from funct.kernels.cpu.dense.dots import DOTS, supported
from funct.kernels.cpu.quantized import layers
from funct.kernels.cpu.quantized.words import QUADS, best
from funct.kernels.quantized import affine
from funct.kernels.windows.views import Sliding
assert best() is QUADS and supported(DOTS["u8s8"], machine.host()) == 32
rng = np.random.default_rng(0)
w = rng.integers(-128, 128, (37, 70)).astype(np.int8)
how = np.arange(37, dtype=np.int32), affine.Codes(np.float32(1e-3), 3, -128, 127, np.int8)
for rows in (1, 3, 5, 61):
    for dtype, zero in ((np.uint8, 255), (np.int8, -128)):
        x = rng.integers(0, 256, (rows, 70)).astype(dtype)
        y = layers.linear(x, zero, w, *how)
        np.testing.assert_array_equal(y, affine.plain_linear(x, zero, w, *how), strict=True)
        slide = Sliding((1, 1), ((1, 1), (0, 1)), (1, 1), 1)
        given = x.reshape(rows, 7, 2, 5), zero, w[:, :42].reshape(37, 7, 2, 3), *how, slide
        y, expected = layers.convolution(*given), affine.plain_convolution(*given)
        np.testing.assert_array_equal(y, expected, strict=True)
"""


@pytest.mark.skipif(not host().has("avxvnni"), reason="the processor lacks AVX-VNNI")
def test_processors_without_avx512_multiply_bytes_in_fours() -> None:
    """As on one that has AVX-VNNI alone: in a process of its own, for what is kept of a host."""
    command = [sys.executable, "-c", _WITHOUT_AVX512]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert not done.returncode, done.stderr


def test_weights_that_change_in_place_are_laid_out_again() -> None:
    """What is kept of an address is compared with what is there."""
    x, w = codes((9, 40), np.uint8, 1), codes((16, 40), np.int8, 2)
    rest = (np.zeros(16, np.int32), plain.Codes(np.float32(1e-4), 0, -128, 127, np.int8))
    for _ in range(3):
        w[3, 7] += 1
        y = fast.linear(x, 7, w, *rest)
        np.testing.assert_array_equal(y, plain.plain_linear(x, 7, w, *rest))


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
def test_all_that_depthwise_weights_are_prepared_with_is_asked(dtype: Any) -> None:
    """What changes in place, and each of the numbers beside: none is taken from an earlier call."""
    x, w = codes((2, 8, 9, 11), dtype, 1), codes((8, 1, 3, 3), np.int8, 2)
    slide = Sliding((1, 1), ((1, 1), (1, 1)), (1, 1), 8)
    bias, factor = np.arange(8, dtype=np.int32), np.full(8, 1e-2, np.float32)
    to = plain.Codes(factor, 3, 3, 250, np.uint8)

    def check(zero_point: int, to: plain.Codes) -> None:
        y = fast.convolution(x, zero_point, w, bias, to, slide)
        expected = plain.plain_convolution(x, zero_point, w, bias, to, slide)
        np.testing.assert_array_equal(y, expected, strict=True)

    check(7, to)
    w[3, 0, 1, 1] ^= 63
    check(7, to)
    check(9, to)
    bias[2] += 900
    check(9, to)
    factor[5] = 0.5
    check(9, to)
    check(9, to._replace(zero_point=20, low=20))
    check(9, to._replace(high=99))
    check(9, to._replace(zero_point=-3, low=-128, high=127, dtype=np.int8))


def test_sums_that_could_leave_int32_are_left_to_the_plain_one() -> None:
    x, w = codes((4, 70_000), np.uint8, 1), codes((4, 70_000), np.int8, 2)
    rest = (np.zeros(4, np.int32), plain.Codes(np.float32(1e-4), 0, -128, 127, np.int8))
    assert fast.linear(x, 0, w, *rest) is NotImplemented
    w = codes((4, 40), np.int8, 2)
    large = np.full(4, 2**31 - 1, np.int32)
    assert fast.linear(x[:, :40], 0, w, large, *rest[1:]) is NotImplemented


@pytest.mark.parametrize("shape", [(3, 4), (5,), (2, 3, 4)])
def test_shapes_that_do_not_fit_never_reach_machine_code(shape: tuple[int, ...]) -> None:
    x, w = codes((1000, 1000), np.uint8, 1), codes(shape, np.int8, 2)
    rest = (np.zeros(5, np.int32), plain.Codes(np.float32(1e-4), 0, -128, 127, np.int8))
    with pytest.raises(ValueError, match="do not fit"):
        plain.linear(x, 0, w, *rest)


@many
@given(
    st.integers(1, 4), st.sampled_from([1, 3, 4, 9, 33]), st.integers(1, 5),
    st.sampled_from([32, 64, 96]), st.booleans(),
)  # fmt: skip
def test_weights_of_four_bits(rows: int, outputs: int, groups: int, size: int, one: bool) -> None:
    """Every code, in every place of a group; exactly, for integers and powers of two. Of 8 too."""
    depth = groups * size
    rng = np.random.default_rng(0)
    weights = codes((outputs, depth // 2), np.uint8, 1)
    scale = (2.0 ** rng.integers(-3, 3, (outputs, groups))).astype(np.float32)
    x = rng.integers(-99, 99, (depth,) if one else (rows, depth)).astype(np.float32)
    y = weight_only.weight_only_linear(x, weights, scale)
    np.testing.assert_array_equal(
        y, few_bits.plain_weight_only_linear(x, weights, scale), strict=True
    )
    low, high = (weights & 15).astype(int), (weights >> 4).astype(int)
    signed = np.stack([low, high], -1).reshape(outputs, groups, size)
    signed = np.where(signed > 7, signed - 16, signed) * scale[:, :, None]
    np.testing.assert_array_equal(y, x @ signed.reshape(outputs, depth).T.astype(np.float32))
    steps = few_bits.steps(weights)
    np.testing.assert_array_equal(few_bits.pack(steps), weights, strict=True)
    bytes_ = weight_only.weight_only_linear(x, steps, scale)
    np.testing.assert_array_equal(bytes_, y, strict=True)


def test_weights_of_four_bits_that_do_not_fit_are_refused() -> None:
    x, scale = np.ones((1, 64), np.float32), np.ones((8, 2), np.float32)
    weights = codes((8, 32), np.uint8, 1)
    assert few_bits.weight_only_linear(x, weights, scale).shape == (1, 8)
    for bad in ((x[:, :62], weights, scale), (x, weights, scale[:7]), (x, weights, scale[:, :0])):
        with pytest.raises(ValueError, match="do not fit"):
            few_bits.weight_only_linear(*bad)
