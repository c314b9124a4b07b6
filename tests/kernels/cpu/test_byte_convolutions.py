"""Convolutions of codes by planes and by pixels equal the plain ones, code by code."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from funct.kernels import table
from funct.kernels.cpu.convolution import byte_planes
from funct.kernels.cpu.quantized import byte_pixels
from funct.kernels.cpu.quantized import layers as fast
from funct.kernels.quantized import affine as plain
from funct.kernels.windows.views import Sliding
from tests import guarded
from tests.kernels.arrays import whole_range as codes
from tests.kernels.cpu.coded import BYTES, WORDS, taken, to_codes, zero_points

pytestmark = pytest.mark.skipif(
    not table.available().issuperset(("llvm", "avx2")), reason="the processor lacks AVX2"
)
few = settings(max_examples=max(1, settings.default.max_examples // 4))  # a text is made for each


@few
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
    at_end, words = data.draw(st.booleans()), data.draw(st.sampled_from(WORDS))
    with pytest.MonkeyPatch.context() as patch, guarded.memory(at_end=at_end), taken(words):
        patch.setattr(byte_planes, "_SLAB", data.draw(st.sampled_from([300, 12 << 10])))
        fast.convolver.cache_clear()
        x = guarded.copy(codes((n, channels, *size), dtype, 1), at_end=at_end)
        y = fast.convolution(x, *given)
        expected = plain.plain_convolution(x, *given)
        np.testing.assert_array_equal(y, expected, strict=True)


@few
@given(st.data())
def test_pixels_that_are_lanes_are_the_plain_ones(data: st.DataObject) -> None:
    """Windows of single elements of any number of channels, and larger ones of a few, side by side
    or two apart, in groups: any number of pixels, in one part or several, and of outputs; steps
    that leave int32.
    """
    words = data.draw(st.sampled_from(WORDS))
    windows = data.draw(st.booleans())
    d, n, groups = (data.draw(st.integers(1, most)) for most in (2 if windows else 3, 2, 3))
    kernel = [data.draw(st.integers(1, 4 if windows else 1)) for _ in range(d)]
    dilation = tuple([data.draw(st.integers(1, 2 if windows else 1)) for _ in kernel])
    reach = [(k - 1) * by + 1 for k, by in zip(kernel, dilation)]
    ends = [st.integers(-2, r) if windows else st.just(0) for r in reach]
    padding = tuple([(data.draw(end), data.draw(end)) for end in ends])
    out = [data.draw(st.integers(1, 90 if k == d - 1 else 4)) for k in range(d)]
    stride = tuple([data.draw(st.integers(1, 2 if windows else 1)) for _ in kernel])
    size = [(t - 1) * s + r - sum(p) for t, s, r, p in zip(out, stride, reach, padding)]
    c, o = data.draw(st.integers(2, 8 if windows else 9)), data.draw(st.integers(2, 20))
    assume(min(size) > 0 and np.prod(out) >= 32)
    dtype = data.draw(BYTES)
    zero = data.draw(zero_points(dtype))
    w = codes((o * groups, c, *kernel), np.int8, 2)
    bias, to = data.draw(to_codes(len(w)))
    to = to._replace(multiplier=to.multiplier * np.float32(data.draw(st.sampled_from([1, 1e9]))))
    slide = Sliding(stride, padding, dilation, groups)
    at_end = data.draw(st.booleans())
    with pytest.MonkeyPatch.context() as patch, guarded.memory(at_end=at_end), taken(words):
        patch.setattr(byte_pixels, "_ROOM", data.draw(st.sampled_from([0, 24 << 10])))
        fast.convolver.cache_clear()
        x = guarded.copy(codes((n, c * groups, *size), dtype, 1), at_end=at_end)
        y = fast.convolution(x, zero, w, bias, to, slide)
        given = x.shape, x.dtype, zero, w.shape, bias, to, slide, words
        assert byte_pixels.convolver(*given) is not None
        expected = plain.plain_convolution(x, zero, w, bias, to, slide)
        np.testing.assert_array_equal(y, expected, strict=True)


@pytest.mark.parametrize("channels", [1, 2])
def test_zeros_beside_images_may_be_wider_than_windows_reach(channels: int) -> None:
    """The last pixels of the last line see nothing but zeros, and are computed all the same."""
    slide = Sliding((1, 1), ((0, 0), (3, 3)), (1, 1), 8)
    x = codes((1, 8 * channels, 16, 9), np.uint8, 1)
    w, to = codes((16, channels, 1, 2), np.int8, 2), plain.Codes(np.float32(1), 0, 0, 255, np.uint8)
    biases = np.arange(16, dtype=np.int32), np.arange(16, 32, dtype=np.int32)
    for words, bias in itertools.product(WORDS, biases):
        with taken(words):
            y = fast.convolution(x, 9, w, bias, to, slide)
            expected = plain.plain_convolution(x, 9, w, bias, to, slide)
            np.testing.assert_array_equal(y, expected)
