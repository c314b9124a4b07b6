"""Convolutions of float16 and bfloat16: exactly the plain ones, where float32 sums are exact."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import funct as ft
from funct.kernels import table
from funct.kernels.cpu.convolution import half_convolution as fast
from funct.kernels.cpu.convolution import pairs
from funct.kernels.windows import convolution as checked
from funct.kernels.windows import products as plain
from funct.kernels.windows.views import Sliding
from tests import guarded
from tests.kernels.cpu.test_convolution import Case, cases, many, numbers, y_shape

BRAIN = np.dtype(ml_dtypes.bfloat16)
with_llvm = pytest.mark.skipif(
    not table.available().issuperset(("llvm",)), reason="there is no LLVM to compile with"
)
with_pairs = pytest.mark.skipif(
    not table.available().issuperset(("llvm", "avx512bf16", "avx512vl", "avx512bw")),
    reason="the processor does not multiply pairs of bfloat16",
)


@st.composite
def even_cases(draw: st.DrawFn) -> Case:
    """Pairs of channels on both sides, and mostly of pixels."""
    case = draw(cases())
    groups = case["static"].groups
    c, o = (2 * draw(st.integers(2, 10)) for _ in range(2))
    n, _, *size = case["x"]
    static = case["static"]
    stride = static.stride[-1]
    rest = static.size(size, case["w"][2:])[-1] % 2
    size[-1] += draw(st.sampled_from([rest * stride, rest * stride, 0]))
    return {
        "x": (n, c * groups, *size),
        "w": (o * groups, c, *case["w"][2:]),
        "static": static,
    }


@with_pairs
@many
@given(even_cases(), st.booleans(), st.booleans())
def test_pairs_give_the_plain_maps(case: Case, x_last: bool, g_last: bool) -> None:
    """Between forbidden pages, with channels first and last."""
    with guarded.memory(at_end=True):
        x, g = (
            np.moveaxis(guarded.copy(np.moveaxis(v, 1, -1)), -1, 1) if turned else guarded.copy(v)
            for v, turned in (
                (numbers(case["x"], 1, BRAIN), x_last),
                (numbers(y_shape(case), 2, BRAIN), g_last),
            )
        )
        w, static = guarded.copy(numbers(case["w"], 3, BRAIN)), case["static"]
        size, kernel = x.shape[2:], w.shape[2:]
        found = [
            (fast.convolution(x, w, static), plain.convolution(x, w, static)),
            (
                fast.convolution_input(g, w, static, size),
                plain.convolution_input(g, w, static, size),
            ),
        ]
        if g.shape[-1] % 2 == 0:
            found.append((
                fast.convolution_weight(x, g, static, kernel),
                plain.convolution_weight(x, g, static, kernel),
            ))  # fmt: skip
        for y, expected in found:
            if 0 not in expected.shape:
                np.testing.assert_array_equal(y, expected, strict=True)


@with_pairs
def test_what_is_no_pair_is_left() -> None:
    slide = Sliding((1, 1), ((1, 1), (1, 1)), (1, 1), 1)
    for c, o, dtype in ((5, 8, BRAIN), (2, 8, BRAIN), (8, 3, BRAIN), (8, 8, np.float16)):
        x, w = numbers((1, c, 4, 5), 0, dtype), numbers((o, c, 3, 3), 1, dtype)
        assert fast.convolution(x, w, slide) is NotImplemented
    x, g = numbers((1, 8, 4, 5), 0, BRAIN), numbers((1, 8, 4, 5), 1, BRAIN)
    assert fast.convolution_weight(x, g, slide, (3, 3)) is NotImplemented
    w = numbers((7, 8, 3, 3), 1, BRAIN)
    assert fast.convolution_input(numbers((1, 7, 4, 5), 0, BRAIN), w, slide, (4, 5)) is (
        NotImplemented
    )


@with_pairs
def test_sums_are_of_float32_and_rounded_once() -> None:
    """256 ones and 255 halves: no sum of bfloat16 would get there."""
    x, w = np.ones((1, 512, 4, 4), BRAIN), np.ones((8, 512, 1, 1), BRAIN)
    w[:, 256:] = 0.5
    slide = Sliding((1, 1), ((0, 0), (0, 0)), (1, 1), 1)
    assert (fast.convolution(x, w, slide) == 384).all()


@with_pairs
def test_special_numbers_stay_where_they_are_read() -> None:
    x, w = np.ones((1, 4, 6, 6), BRAIN), np.ones((4, 4, 3, 3), BRAIN)
    x[0, 1, 0, 0], x[0, 2, 5, 5] = np.nan, -np.inf
    slide = Sliding((1, 1), ((1, 1), (1, 1)), (1, 1), 1)
    for y, expected in (
        (fast.convolution(x, w, slide), plain.convolution(x, w, slide)),
        (
            fast.convolution_input(x, w, slide, (6, 6)),
            plain.convolution_input(x, w, slide, (6, 6)),
        ),
    ):
        np.testing.assert_array_equal(y.astype(np.float32), expected.astype(np.float32))


@with_pairs
def test_threads_do_not_change_bits() -> None:
    rng = np.random.default_rng(0)
    x, w, g = (
        rng.standard_normal(s).astype(BRAIN)
        for s in ((4, 32, 24, 24), (64, 32, 3, 3), (4, 64, 24, 24))
    )
    static = ((1, 1), ((1, 1), (1, 1)), (1, 1), 1)
    found = []
    for threads in (1, 2):
        with ft.config.using(threads=threads):
            found.append(
                [
                    checked.convolution(x, w, *static),
                    checked.convolution_input(g, w, *static, (24, 24)),
                    checked.convolution_weight(x, g, *static, (3, 3)),
                ]
            )
    for one, two in zip(*found):
        assert one.tobytes() == two.tobytes()


@with_llvm
@pytest.mark.parametrize("dtype", [np.float16, BRAIN], ids=str)
@pytest.mark.parametrize("groups", [1, 3, 24])
def test_the_table_finds_the_plain_maps(dtype: Any, groups: int) -> None:
    """With pairs or without: large enough for machine code."""
    x, w = numbers((2, 24, 30, 30), 0, dtype), numbers((24, 24 // groups, 3, 3), 1, dtype)
    slide = Sliding((1, 1), ((1, 1), (1, 1)), (1, 1), groups)
    y = checked.convolution(x, w, *slide)
    g = numbers(y.shape, 2, dtype)
    for found, expected in (
        (y, plain.convolution(x, w, slide)),
        (
            checked.convolution_input(g, w, *slide, (30, 30)),
            plain.convolution_input(g, w, slide, (30, 30)),
        ),
        (
            checked.convolution_weight(x, g, *slide, (3, 3)),
            plain.convolution_weight(x, g, slide, (3, 3)),
        ),
    ):
        np.testing.assert_array_equal(found, expected, strict=True)


@with_llvm
@pytest.mark.parametrize("lead", [0, 1, 3, 40])
@pytest.mark.parametrize("count", [1, 2, 15, 16, 17, 33])
def test_words_between_forbidden_pages(lead: int, count: int) -> None:
    """Zeros beside the lines, and nothing is read there."""
    for at_end in (False, True):
        with guarded.memory(at_end=at_end):
            x = guarded.copy(np.arange(1, 3 * count + 1, dtype=np.uint16).reshape(3, count),
                             at_end=at_end)  # fmt: skip
            words = pairs.paired(x.view(BRAIN), (3, count + lead), count, count, 0, lead)
        halves = words.view(np.uint16).reshape(3, count + lead, 2)
        np.testing.assert_array_equal(halves[..., 0], np.pad(x, ((0, 0), (lead, 0))))
        np.testing.assert_array_equal(halves[..., 1], np.pad(x, ((0, 0), (0, lead))))
