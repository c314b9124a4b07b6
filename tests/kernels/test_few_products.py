"""Convolutions of small images as lists of products."""

from __future__ import annotations

import numpy as np
import pytest

from funct.kernels.cpu.convolution import few_products as cpu
from funct.kernels.cpu.loops import available
from funct.kernels.table import restricted
from funct.kernels.windows.convolution import convolution, convolution_input, convolution_weight
from tests.kernels.arrays import agree

pytestmark = pytest.mark.skipif(not available(), reason="there is no LLVM to compile with")


def test_no_index_leaves_its_array() -> None:
    """The kernel as Python, with every index checked, gives what it gives compiled."""
    x, at = np.random.default_rng(0).normal(size=59), np.arange(59)
    agree(cpu.add_products, x, x, np.zeros(30), at, at[::-1].copy(), at // 2, 59)


@pytest.mark.parametrize("padding", [0, 1])
@pytest.mark.parametrize("groups", [1, 2])
def test_small_convolutions_are_the_large_ones(groups: int, padding: int) -> None:
    """All three maps, over one to three axes, next to products of matrices."""
    rng = np.random.default_rng(1)
    for size, taps, stride, dilation in (
        ((9,), (3,), (2,), (1,)),
        ((5, 6), (3, 2), (1, 2), (2, 1)),
        ((3, 4, 3), (2, 2, 2), (1, 1, 1), (1, 1, 1)),
    ):
        how = (stride, ((padding, padding),) * len(size), dilation, groups)
        x, w = rng.normal(size=(2, 4, *size)), rng.normal(size=(6, 4 // groups, *taps))
        y = convolution(x, w, *how)
        maps = (
            lambda x=x, w=w, how=how: convolution(x, w, *how),
            lambda y=y, w=w, how=how, size=size: convolution_input(y, w, *how, size),
            lambda x=x, y=y, how=how, taps=taps: convolution_weight(x, y, *how, taps),
        )
        for run in maps:
            with restricted():
                expected = run()
            np.testing.assert_allclose(run(), expected, rtol=1e-12, atol=1e-12)
