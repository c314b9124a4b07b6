"""Channels as pixels: kernels stay inside, and are what NumPy's axes in another order give."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from funct.kernels.channels import lie_last
from funct.kernels.cpu import loops
from funct.kernels.cpu.windows import shuffling as cpu
from funct.kernels.windows.shuffling import pixel_shuffle, pixel_unshuffle
from tests.kernels.arrays import agree

pytestmark = pytest.mark.skipif(not loops.available(), reason="there is no LLVM to compile with")


@given(*[st.integers(1, 4)] * 5, st.sampled_from(["f4", "f8"]))
def test_few_pixels(n: int, c: int, r: int, h: int, w: int, dtype: str) -> None:
    """In both layouts, and back; as Python with every index checked."""
    x = np.random.default_rng(0).normal(size=(n, c * r * r, h, w)).astype(dtype)
    axes = x.reshape(n, c, r, r, h, w).transpose(0, 1, 4, 2, 5, 3)
    pixels = axes.reshape(n, c, h * r, w * r)
    last = np.moveaxis(np.moveaxis(x, 1, -1).copy(), -1, 1)
    for image in (x, last):
        found = pixel_shuffle(image, r)
        assert found is not None
        assert np.array_equal(found, pixels)
        assert lie_last(image) <= (lie_last(found) or bool(found.flags.c_contiguous))
    back = pixel_unshuffle(pixels, r)
    assert back is not None
    assert np.array_equal(back, x)
    flat, y = x.reshape(-1), np.zeros(x.size, dtype)
    for way in (False, True):
        agree(cpu.few_pixels, flat, y, n * c, r, h, w, way)
    agree(cpu.few_pixels_last, flat, y, n * h, r, w, c)
