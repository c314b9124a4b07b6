"""Laws of convolutions beside the border of images, where numbers are infinite or none."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import funct.array as xp
from funct.kernels import table
from funct.kernels.channels import channels_first, channels_last
from funct.kernels.windows import inside
from funct.kernels.windows.convolution import convolution, convolution_input, convolution_weight
from funct.kernels.windows.views import Sliding
from funct.nn import functional
from tests.kernels.test_convolution import Case, cases, reals, y_shape

# BLAS's code for long vectors multiplies what is not finite by the lanes that it leaves empty
pytestmark = pytest.mark.filterwarnings("ignore:invalid value")

SPECIAL = st.sampled_from([np.inf, -np.inf, np.nan])


@given(cases(largest=2), SPECIAL, st.integers(0, 99))
def test_zeros_around_are_no_terms(case: Case, special: float, place: int) -> None:
    """So a factor that is infinite or none goes to the pixels that it reaches, and no others."""
    (stride, padding, dilation, groups), close = case["static"], {"rtol": 1e-9, "atol": 1e-12}
    x, w, g = reals(case["x_shape"], 1), reals(case["w_shape"], 2), reals(y_shape(case), 3)
    for factor in (w, g):
        if factor.size:
            factor.flat[place % factor.size] = special
    y, dx, dw = np.zeros_like(g), np.zeros_like(x), np.zeros_like(w)
    for (n, o, *t), (c, *k) in itertools.product(np.ndindex(*g.shape), np.ndindex(*w.shape[1:])):
        at = [a * s + b * d - low for a, s, b, d, (low, _) in zip(t, stride, k, dilation, padding)]
        ends = zip(at, x.shape[2:], padding)
        if all(max(0, -low) <= i < s + min(0, high) for i, s, (low, high) in ends):
            pixel = (n, o // (len(w) // groups) * w.shape[1] + c, *at)
            y[n, o, *t] += x[pixel] * w[o, c, *k]
            dx[pixel] += g[n, o, *t] * w[o, c, *k]
            dw[o, c, *k] += g[n, o, *t] * x[pixel]
    static = case["static"]
    np.testing.assert_allclose(convolution(x, w, *static), y, **close)
    np.testing.assert_allclose(convolution_input(g, w, *static, x.shape[2:]), dx, **close)
    np.testing.assert_allclose(convolution_weight(x, g, *static, w.shape[2:]), dw, **close)


@pytest.mark.parametrize(
    ("x_shape", "w_shape", "stride", "padding", "dilation"),
    [
        ((2, 16, 14, 14), (16, 16, 3, 3), 1, 1, 1), ((2, 3, 14, 14), (32, 3, 3, 3), 1, 1, 1),
        ((2, 16, 13, 13), (16, 1, 3, 3), 2, 1, 1), ((2, 20, 13, 13), (20, 20, 3, 3), 1, 2, 2),
        ((2, 20, 13, 13), (20, 5, 3, 3), 1, 1, 1), ((1, 1, 50), (20, 1, 5), 1, 2, 1),
        ((1, 4, 6, 6, 6), (8, 4, 3, 3, 3), 1, 1, 1), ((1, 64, 64, 64), (2, 64, 3, 3), 1, 1, 1),
        ((2, 8, 9, 9), (8, 8, 1, 1), 2, 1, 1), ((1, 8, 3, 3), (8, 8, 5, 5), 1, 2, 1),
        ((1, 1, 100), (32, 1, 16), 8, 4, 1),
    ],
)  # fmt: skip
@given(special=SPECIAL, place=st.integers(0, 1 << 20), last=st.booleans())
@settings(max_examples=4)
def test_every_row_tells_of_factors_that_are_not_finite(
    x_shape: Any, w_shape: Any, stride: int, padding: int, dilation: int, special: float,
    place: int, last: bool,
) -> None:  # fmt: skip
    d = len(x_shape) - 2
    slide = Sliding(
        (stride,) * d, ((padding, padding),) * d, (dilation,) * d, x_shape[1] // w_shape[1]
    )
    y = (x_shape[0], w_shape[0], *slide.size(x_shape[2:], w_shape[2:]))
    x, w, g = (reals(shape, k).astype(np.float32) for k, shape in enumerate((x_shape, w_shape, y)))
    if last:
        x, g = (channels_first(np.ascontiguousarray(channels_last(v))) for v in (x, g))
    for factor in (w, g):
        factor[np.unravel_index(place % factor.size, factor.shape)] = special
    finite = reals(y, 2).astype(np.float32)
    for name, *operands in (
        ("convolution", x, w, slide), ("convolution_input", finite, w, slide, x_shape[2:]),
        ("convolution_weight", x, g, slide, w_shape[2:]),
    ):  # fmt: skip
        telling = inside.telling(name, x_shape, w_shape, y, slide)
        for row in table.ROWS:
            if row.name == name and table.available().issuperset(row.needs):
                with np.errstate(all="ignore"):
                    found = row.load()(*operands)
                if found is NotImplemented or found is table.UNFIT:
                    continue
                if telling:
                    assert not inside.all_finite(found[telling])
                if row.inside:
                    same(found, getattr(inside, name)(*operands))
    convolved = getattr(functional, f"conv{d}d")
    how = None, stride, padding, dilation, slide.groups
    with np.errstate(all="ignore"):
        found = convolved(xp.asarray(x), xp.asarray(w), *how)
    same(np.asarray(found), inside.convolution(x, w, slide))


def same(found: Any, expected: Any) -> None:
    """Numbers, but for rounding, and what is none."""
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
