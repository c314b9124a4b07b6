"""Convolutions by blocks of pixels: exact for integers, within their memory, for any threads."""

from __future__ import annotations

import functools
from contextlib import nullcontext
from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import funct as ft
import funct.array as xp
from funct import ops
from funct.device import host
from funct.kernels.channels import channels_first, channels_last
from funct.kernels.cpu import scratch
from funct.kernels.cpu.convolution import unrolled
from funct.kernels.windows import products
from funct.kernels.windows.views import Sliding
from tests import guarded

pytestmark = pytest.mark.skipif(
    not host().has("avx2"), reason="without vectors rows of the table that need none serve"
)


def integers(shape: Any, seed: int, dtype: Any = np.float32) -> Any:
    return np.random.default_rng(seed).integers(-8, 9, shape).astype(dtype)


@st.composite
def cases(draw: st.DrawFn) -> tuple[Any, Any, Sliding]:
    """Shapes of x and w, and how windows slide over images of at least 32 pixels of the result."""
    d = draw(st.integers(1, 3))
    least = {1: 32, 2: 6, 3: 4}[d]
    size, kernel, stride, dilation, padding = [], [], [], [], []
    for _ in range(d):
        k, s, apart = (draw(st.integers(1, most)) for most in (4, 4 - d // 3, 2))
        out = draw(st.integers(least, least + (40 if d < 3 else 4)))
        low, high = draw(st.integers(-2, 3)), draw(st.integers(-2, 3))
        needed = (out - 1) * s + apart * (k - 1) + 1 - low - high
        size.append(max(1, needed + draw(st.integers(0, s - 1))))
        kernel.append(k)
        stride.append(s)
        dilation.append(apart)
        padding.append((low, high))
    n, c, o = (draw(st.integers(1, most)) for most in (3, 3, 90))
    slide = Sliding(tuple(stride), tuple(padding), tuple(dilation), 1)
    return (n, c, *size), (o, c, *kernel), slide


@given(cases(), st.sampled_from([np.float32, np.float64]), st.sampled_from(["", "end", "start"]))
def test_blocks_of_pixels_are_sums_over_taps(case: Any, dtype: Any, guard: str) -> None:
    """And the adjoint where there are no strides, for operands with any strides of their own."""
    x_shape, w_shape, slide = case
    x, w = integers(x_shape, 1, dtype), integers(w_shape, 2, dtype)
    plain = slide._replace(stride=(1,) * len(slide.stride))
    g = integers((len(x), len(w), *plain.size(x.shape[2:], w.shape[2:])), 3, dtype)
    if guard:
        x, w, g = (guarded.copy(v, at_end=guard == "end") for v in (x, w, g))
    else:
        x, w, g = (np.repeat(v, 2, 1)[:, ::2] for v in (x, w, g))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(unrolled, "serves", lambda x, w, slide: pixels(x, w, slide) >= 32)
        patch.setattr(scratch, "maker", lambda *like: functools.partial(scratch.fresh, *like))
        with guarded.memory(at_end=guard == "end") if guard else nullcontext():
            found = unrolled.convolution(x, w, slide)
            back = unrolled.convolution_input(g, w, plain, x.shape[2:])
    assert found is not NotImplemented
    np.testing.assert_array_equal(found, products.convolution(x, w, slide), strict=True)
    if back is not NotImplemented:
        expected = products.convolution_input(g, w, plain, x.shape[2:])
        np.testing.assert_array_equal(back, expected, strict=True)


def pixels(x: Any, w: Any, slide: Sliding) -> int:
    return prod(slide.size(x[2:], w[2:]))


@pytest.mark.parametrize("shape", [((1, 3, 70, 61), (40, 3, 3, 3)), ((5, 1, 3000), (33, 1, 12))])
def test_bits_are_those_of_one_thread_and_of_programs(shape: Any) -> None:
    x, w = (np.random.default_rng(k).standard_normal(s, np.float32) for k, s in enumerate(shape))
    d = x.ndim - 2
    static: Any = (2,) * d, ((1, 2),) * d, (1,) * d, 1
    arrays = xp.asarray(x), xp.asarray(w)
    found = []
    for threads in (1, 2):
        with ft.config.using(threads=threads):
            found.append(np.asarray(ops.convolution(*arrays, *static)))
            run = ft.jit(lambda x, w: ops.convolution(x, w, *static))
            found.append(np.asarray(run(*arrays)))
    for other in found[1:]:
        np.testing.assert_array_equal(found[0], other)


@pytest.mark.skipif(host().vector_bytes < 64, reason="shorter vectors leave it to tiles")
def test_few_channels_and_short_windows_are_served() -> None:
    slide = Sliding((1, 1), ((1, 1), (1, 1)), (1, 1), 1)
    assert unrolled.serves((1, 3, 32, 32), (32, 3, 3, 3), slide)
    for x, w, how in (
        ((1, 3, 4, 4), (32, 3, 3, 3), slide), ((1, 16, 32, 32), (32, 16, 3, 3), slide),
        ((1, 3, 32, 32), (4, 3, 3, 3), slide), ((1, 3, 32, 8), (32, 3, 3, 3), slide),
        ((1, 3, 32, 32), (32, 3, 1, 1), slide), ((0, 3, 32, 32), (32, 3, 3, 3), slide),
        ((1, 6, 32, 32), (32, 3, 3, 3), slide._replace(groups=2)),
    ):  # fmt: skip
        assert not unrolled.serves(x, w, how)
    last = channels_first(channels_last(integers((1, 3, 32, 32), 1)).copy())
    assert unrolled.convolution(last, integers((32, 3, 3, 3), 2), slide) is NotImplemented
