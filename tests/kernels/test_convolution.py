"""Laws of the convolution kernels: equal to a naive loop, adjoint, exact for integers."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import funct as ft
import funct.array as xp
from funct import ops
from funct.device import host
from funct.kernels import table
from funct.kernels.channels import channels_first, channels_last, lie_last
from funct.kernels.cpu.convolution import sent as cpu_sent
from funct.kernels.cpu.loops import available
from funct.kernels.windows import patches, pointwise, reached, subsampled
from funct.kernels.windows import products as convolution_products
from funct.kernels.windows.convolution import (
    convolution,
    convolution_input,
    convolution_weight,
)
from funct.kernels.windows.views import Sliding, output_size, windows, windows_adjoint
from tests.kernels.arrays import agree

Case = dict[str, Any]

# Small arrays are quick, and the ways to combine their parameters are many.
many = settings(max_examples=10 * settings.default.max_examples)


@st.composite
def cases(draw: st.DrawFn, largest: int = 4, axes: int = 3, torchs: bool = False) -> Case:
    """A small convolution: x (N, C, *S), w (O, C / groups, *K) and its static parameters.

    torchs: only what torch takes, the same padding >= 0 at both ends and nothing that is empty.
    """
    d = draw(st.integers(1, axes))
    groups = draw(st.integers(1, 3))
    least = int(torchs)
    n, c, o = [draw(st.integers(least, largest)) for _ in range(3)]
    kernel = [draw(st.integers(1, 3)) for _ in range(d)]
    stride = [draw(st.integers(1, 3)) for _ in range(d)]
    dilation = [draw(st.integers(1, 2)) for _ in range(d)]
    size, padding = [], []
    for k, dil in zip(kernel, dilation):
        low, high = (
            [draw(st.integers(0, 3))] * 2
            if torchs
            else [draw(st.integers(-2, 3)) for _ in range(2)]
        )
        shortest = max(0, dil * (k - 1) - low - high)  # one less than fits: no outputs at all
        size.append(shortest + draw(st.integers(least, 4)))
        padding.append((low, high))
    return {
        "x_shape": (n, c * groups, *size),
        "w_shape": (o * groups, c, *kernel),
        "static": (tuple(stride), tuple(padding), tuple(dilation), groups),
    }


def integers(shape: tuple[int, ...], seed: int, dtype: Any = np.int64) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).integers(-9, 10, shape).astype(dtype)


def reals(shape: tuple[int, ...], seed: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).standard_normal(shape)


def y_shape(case: Case) -> tuple[int, ...]:
    x, w = case["x_shape"], case["w_shape"]
    return (x[0], w[0], *output_size(x[2:], w[2:], *case["static"][:3]))


def naive_convolution(x: Any, w: Any, stride: Any, padding: Any, dilation: Any, groups: int) -> Any:
    """The defining sum, one product at a time."""
    size = output_size(x.shape[2:], w.shape[2:], stride, padding, dilation)
    y = np.zeros((x.shape[0], w.shape[0], *size), x.dtype)
    per_group = w.shape[0] // groups
    for n, o, *t in np.ndindex(*y.shape):
        for c, *k in np.ndindex(*w.shape[1:]):
            at = [
                a * s + b * d - low for a, s, b, d, (low, _) in zip(t, stride, k, dilation, padding)
            ]
            ends = [s + min(0, high) for s, (_, high) in zip(x.shape[2:], padding)]
            starts = [max(0, -low) for low, _ in padding]
            if all(a <= i < b for a, i, b in zip(starts, at, ends)):
                channel = o // per_group * w.shape[1] + c
                y[(n, o, *t)] += x[(n, channel, *at)] * w[(o, c, *k)]
    return y


@many
@given(cases(largest=2))
def test_convolution_is_its_defining_sum(case: Case) -> None:
    """In integers the kernel equals the defining sum exactly, for any shape and parameters."""
    x, w = integers(case["x_shape"], 1), integers(case["w_shape"], 2)
    actual = convolution(x, w, *case["static"])
    expected = naive_convolution(x, w, *case["static"])
    assert actual.dtype == x.dtype
    np.testing.assert_array_equal(actual, expected, strict=True)


@many
@given(cases())
def test_the_three_maps_are_adjoint(case: Case) -> None:
    """<g, x * w>, <input(g, w), x> and <weight(x, g), w> are one number."""
    x, w, g = reals(case["x_shape"], 1), reals(case["w_shape"], 2), reals(y_shape(case), 3)
    static = case["static"]
    expected = np.vdot(g, convolution(x, w, *static))
    dx = convolution_input(g, w, *static, x.shape[2:])
    dw = convolution_weight(x, g, *static, w.shape[2:])
    assert dx.shape == x.shape
    assert dw.shape == w.shape
    np.testing.assert_allclose(np.vdot(dx, x), expected, rtol=1e-10, atol=1e-9)
    np.testing.assert_allclose(np.vdot(dw, w), expected, rtol=1e-10, atol=1e-9)


@given(cases())
def test_taps_that_reach_no_pixel_are_left_out(case: Case) -> None:
    """Where there are some, and others, the maps are those of smaller kernels, without tiles."""
    slide, (x, w, g) = Sliding(*case["static"]), (
        integers(shape, k, np.float32)
        for k, shape in enumerate((case["x_shape"], case["w_shape"], y_shape(case)))
    )  # fmt: skip
    given = (x, w, slide), (g, w, slide, x.shape[2:]), (x, g, slide, w.shape[2:])
    ones = np.ones((1, 1, *x.shape[2:])), np.ones((1, 1, *g.shape[2:]))
    alone = slide._replace(groups=1)
    met = convolution_products.convolution_weight(*ones, alone, w.shape[2:])[0, 0]
    whole = all((met > 0).any(tuple({*range(met.ndim)} - {k}))[[0, -1]].all()
                for k in range(met.ndim))  # fmt: skip
    names = "convolution", "convolution_input", "convolution_weight"
    for name, operands in zip(names, given):
        with table.restricted():
            found = getattr(reached, name)(*operands)
        assert (found is NotImplemented) == (whole or not met.any())
        if found is not NotImplemented:
            expected = getattr(convolution_products, name)(*operands)
            np.testing.assert_array_equal(found, expected, strict=True)


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize(
    ("stride", "dilation", "padding", "kernel"),
    [
        ((2, 2), (2, 2), ((2, 2), (2, 1)), (3, 3)),
        ((2, 3), (2, 3), ((3, 0), (1, -4)), (2, 3)),
        ((2, 2), (4, 2), ((-3, 1), (0, 5)), (3, 1)),
        ((4, 1), (2, 1), ((-1, -1), (1, 1)), (2, 3)),
        ((6,), (4,), ((5, 9),), (3,)),
        ((2, 2, 2), (2, 2, 2), ((2, 2), (1, 0), (-1, 3)), (2, 3, 2)),
    ],
)
def test_pixels_that_no_tap_reads_are_left_out(
    monkeypatch: pytest.MonkeyPatch, stride: Any, dilation: Any, padding: Any, kernel: Any,
    last: bool,
) -> None:  # fmt: skip
    """Where stride and dilation have a divisor in common, exactly, for whatever size is left."""
    for name, value in (("_LEAST", 0), ("_ALONE", 16), ("_FEW_CHANNELS", 3)):
        monkeypatch.setattr(subsampled, name, value)
    for n, size in ((2, 9), (40, 12), (40, 13)):
        slide = Sliding(stride, padding, dilation, 1)
        image = (size,) * len(kernel)
        shapes = (n, 16, *image), (3, 16, *kernel), (n, 3, *slide.size(image, kernel))
        x, w, g = (integers(shape, k, np.float32) for k, shape in enumerate(shapes))
        if last:
            x, g = (channels_first(np.ascontiguousarray(channels_last(v))) for v in (x, g))
        whole = {*np.floor_divide(stride, np.gcd(stride, dilation))} == {1}
        whole &= all(d == s or k == 1 for s, d, k in zip(stride, dilation, kernel))
        whole &= g[:, 0].size >= 256
        given = (x, w, slide), (g, w, slide, image), (x, g, slide, kernel)
        squares = whole and (kernel == (3, 3) or len(kernel) == 3)
        names = "convolution", "convolution_input", "convolution_weight"
        for name, taken, operands in zip(names, (whole, squares, True), given):
            found = getattr(subsampled, name)(*operands)
            assert (found is not NotImplemented) == taken
            if found is not NotImplemented:
                expected = getattr(convolution_products, name)(*operands)
                np.testing.assert_array_equal(found, expected, strict=True)


@given(cases())
def test_pixels_between_those_that_are_read_do_not_matter(case: Case) -> None:
    """Of any case that is taken, the map is that of all pixels."""
    slide, (x, w, g) = Sliding(*case["static"]), (
        integers(shape, k, np.float32)
        for k, shape in enumerate((case["x_shape"], case["w_shape"], y_shape(case)))
    )  # fmt: skip
    given = (x, w, slide), (g, w, slide, x.shape[2:]), (x, g, slide, w.shape[2:])
    for name, operands in zip(("convolution", "convolution_input", "convolution_weight"), given):
        found = getattr(subsampled, name)(*operands)
        if found is not NotImplemented:
            expected = getattr(convolution_products, name)(*operands)
            np.testing.assert_array_equal(found, expected, strict=True)


@pytest.mark.parametrize("name", ["convolution", "convolution_input", "convolution_weight"])
@pytest.mark.parametrize("groups", [1, 8])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_plans_of_wide_strides_are_no_longer_than_the_result(
    name: str, groups: int, dtype: Any
) -> None:
    """What is planned pixel by pixel of a stride is left to others: in every row of the table."""
    size, static = (1, 100_001), ((1, 100_000), ((0, 0), (1, 1)), (1, 1), groups)
    channels = 8 // groups
    x, g = integers((1, 8, *size), 1, dtype), integers((1, 8, 1, 2), 2, dtype)
    w = integers((8, channels, 1, 2), 3, dtype)
    given: Any = {
        "convolution": (x, w, Sliding(*static)),
        "convolution_input": (g, w, Sliding(*static), size),
        "convolution_weight": (x, g, Sliding(*static), (1, 2)),
    }[name]
    expected = getattr(convolution_products, name)(*given)
    for row in table.ROWS:
        if row.name == name and table.available().issuperset(row.needs):
            for images in (given[0], channels_first(np.ascontiguousarray(channels_last(given[0])))):
                found = row.load()(images, *given[1:])
                if found is not NotImplemented:
                    np.testing.assert_array_equal(found, expected)
    arrays = [xp.asarray(v) for v in given[:2]]
    compiled = ft.jit(lambda a, b: getattr(ops, name)(a, b, *given[2], *given[3:]))
    np.testing.assert_array_equal(np.asarray(compiled(*arrays)), expected)


def wide_cases() -> list[Any]:
    """Enough channels for the path of shared rows, and images for several blocks on either path."""
    shapes = [
        ("rows", (5, 16, 9, 7), (6, 16, 3, 3), (1, 1)),
        ("rows, strided", (5, 16, 9, 8), (6, 16, 3, 2), (2, 1)),
        ("rows, grouped", (3, 32, 6, 5), (4, 16, 3, 3), (1, 2)),
        ("rows, three axes", (2, 8, 4, 5, 6), (3, 8, 2, 3, 2), (1, 2, 1)),
        ("one position", (70, 16, 3, 3), (5, 16, 3, 3), (1, 1)),
        ("pointwise", (70, 6, 4, 4), (5, 6, 1, 1), (1, 1)),
        ("pointwise, many positions", (3, 6, 20, 20), (5, 6, 1, 1), (1, 1)),
        ("depthwise", (4, 12, 9, 9), (24, 1, 3, 3), (1, 1)),
        ("few in, many out", (4, 2, 9, 9), (40, 2, 3, 3), (1, 1)),
        ("several blocks", (9, 20, 30, 30), (2, 20, 3, 3), (1, 1)),
        ("several blocks of columns", (40, 3, 26, 26), (2, 3, 3, 3), (1, 1)),
        ("several blocks, folded", (9, 20, 30, 30), (2, 20, 3, 3), (2, 2)),
    ]
    return [pytest.param(*rest, id=name) for name, *rest in shapes]


@pytest.mark.parametrize(("x_shape", "w_shape", "stride"), wide_cases())
def test_every_path_gives_the_same(
    x_shape: tuple[int, ...], w_shape: tuple[int, ...], stride: tuple[int, ...]
) -> None:
    """Whatever path the sizes choose, all three maps equal sums over taps, exactly in integers."""
    d = len(stride)
    groups = x_shape[1] // w_shape[1]
    static = (stride, ((1, 0), (0, 2), (1, 1))[:d], (1,) * d, groups)
    x, w = integers(x_shape, 1, np.float64), integers(w_shape, 2, np.float64)
    g = integers(y_shape({"x_shape": x_shape, "w_shape": w_shape, "static": static}), 3, float)
    y, dx, dw = by_taps(x, w, g, *static)
    np.testing.assert_array_equal(convolution(x, w, *static), y)
    np.testing.assert_array_equal(convolution_input(g, w, *static, x.shape[2:]), dx)
    np.testing.assert_array_equal(convolution_weight(x, g, *static, w.shape[2:]), dw)


def by_taps(x: Any, w: Any, g: Any, stride: Any, padding: Any, dilation: Any, groups: int) -> Any:
    """All three maps, one tap of the kernel at a time, for non-negative padding."""
    padded = np.pad(x, ((0, 0), (0, 0), *padding))
    xs, gs = np.split(padded, groups, 1), np.split(g, groups, 1)
    ws = np.split(w, groups, 0)
    y, dx, dw = [np.zeros_like(a) for a in (g, padded, w)]
    ys, dxs, dws = np.split(y, groups, 1), np.split(dx, groups, 1), np.split(dw, groups, 0)
    for tap in itertools.product(*[range(k) for k in w.shape[2:]]):
        hit = [
            slice(k * dil, k * dil + s * (t - 1) + 1, s)
            for k, dil, s, t in zip(tap, dilation, stride, g.shape[2:])
        ]
        for i in range(groups):
            met, taken = xs[i][(..., *hit)], ws[i][(..., *tap)]
            ys[i][...] += np.einsum("nc...,oc->no...", met, taken)
            dxs[i][(..., *hit)] += np.einsum("no...,oc->nc...", gs[i], taken)
            flat = [a.reshape(*a.shape[:2], -1) for a in (met, gs[i])]
            dws[i][(..., *tap)] += np.einsum("nct,not->oc", *flat)
    inside = [slice(low, low + s) for s, (low, _) in zip(x.shape[2:], padding)]
    return y, dx[(..., *inside)], dw


DTYPES = ["int8", "uint8", "int16", "int32", "uint64", "float32", "complex64", "complex128"]


@pytest.mark.parametrize("dtype", [*DTYPES, "longdouble"])
def test_dtype_is_kept(dtype: str) -> None:
    """All three maps compute in the dtype given; integers wrap around as NumPy's sums do."""
    x, w = integers((2, 4, 7, 6), 1, dtype) * 11, integers((6, 2, 3, 2), 2, dtype) * 7
    static = ((2, 1), ((1, 0), (0, 1)), (1, 2), 2)
    g = integers((2, 6, 3, 5), 3, dtype) * 5
    y, dx, dw = by_taps(x, w, g, *static)
    for actual, expected in [
        (convolution(x, w, *static), y),
        (convolution_input(g, w, *static, x.shape[2:]), dx),
        (convolution_weight(x, g, *static, w.shape[2:]), dw),
    ]:
        np.testing.assert_array_equal(actual, expected, strict=True)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_is_rounded_once(dtype: str) -> None:
    """The 2-byte floats are summed in float32: 4096 ones and a half give no 2048, as in float16."""
    ml_dtypes = pytest.importorskip("ml_dtypes", reason="bfloat16 is a dtype of ml_dtypes")
    half = np.dtype(getattr(ml_dtypes, dtype, dtype))
    x, w = np.ones((1, 4096, 1), half), np.ones((1, 4096, 1), half)
    static = ((1,), ((0, 0),), (1,), 1)
    y = convolution(x, w, *static)
    assert y.dtype == half
    assert float(y[0, 0, 0]) == 4096
    dw = convolution_weight(x.reshape(4096, 1, 1), w.reshape(4096, 1, 1), *static, (1,))
    assert dw.dtype == half
    assert float(dw[0, 0, 0]) == 4096
    dx = convolution_input(y, w, *static, (1,))
    assert dx.dtype == half
    assert float(dx[0, 0, 0]) == 4096


def test_operands_may_have_any_strides() -> None:
    """Transposed, reversed and broadcast operands give what their copies give."""
    x = reals((6, 5, 20, 3), 1).T[:, ::-1]  # (3, 20, 5, 6)
    w = np.broadcast_to(reals((20, 3, 3), 2), (4, 20, 3, 3))
    g = reals((3, 5, 6, 4), 3).transpose(0, 3, 1, 2)  # (3, 4, 5, 6)
    static = ((1, 1), ((1, 1), (1, 1)), (1, 1), 1)
    xc, wc, gc = x.copy(), w.copy(), g.copy()
    np.testing.assert_allclose(convolution(x, w, *static), convolution(xc, wc, *static))
    np.testing.assert_allclose(
        convolution_input(g, w, *static, (5, 6)), convolution_input(gc, wc, *static, (5, 6))
    )
    np.testing.assert_allclose(
        convolution_weight(x, g, *static, (3, 3)), convolution_weight(xc, gc, *static, (3, 3))
    )


def test_results_are_fresh() -> None:
    """A result never shares memory with an operand, not even where there is nothing to unfold."""
    x, w = np.ones((1, 1, 3)), np.ones((1, 1, 1))
    static = ((1,), ((0, 0),), (1,), 1)
    for y in [
        convolution(x, w, *static),
        convolution_input(x, w, *static, (3,)),
        convolution_weight(x, x, *static, (1,)),
    ]:
        assert y.flags.writeable
        assert y.flags.c_contiguous
        assert not np.shares_memory(y, x)
        assert not np.shares_memory(y, w)


@settings(max_examples=5 * settings.default.max_examples)
@given(cases(torchs=True))
def test_agrees_with_torch(case: Case) -> None:
    """torch's convolution and its two gradients are ours, where torch has the padding."""
    torch = pytest.importorskip("torch", reason="torch is one of the oracles")
    static = case["static"]
    stride, padding, dilation, groups = static
    x, w, g = reals(case["x_shape"], 1), reals(case["w_shape"], 2), reals(y_shape(case), 3)
    tx, tw = [torch.from_numpy(a).requires_grad_() for a in (x, w)]
    function = [torch.conv1d, torch.conv2d, torch.conv3d][len(stride) - 1]
    ty = function(tx, tw, None, stride, [low for low, _ in padding], dilation, groups)
    ty.backward(torch.from_numpy(g))
    close = {"rtol": 1e-9, "atol": 1e-9}
    np.testing.assert_allclose(convolution(x, w, *static), ty.detach().numpy(), **close)
    dx = convolution_input(g, w, *static, x.shape[2:])
    np.testing.assert_allclose(dx, tx.grad.numpy(), **close)
    dw = convolution_weight(x, g, *static, w.shape[2:])
    np.testing.assert_allclose(dw, tw.grad.numpy(), **close)


@given(
    st.integers(1, 3), st.integers(1, 9), st.integers(1, 9),
    st.lists(st.integers(1, 6), min_size=1, max_size=3), st.sampled_from([np.float32, np.float64]),
    st.booleans(), st.integers(1, 3), st.booleans(),
)  # fmt: skip
def test_windows_of_one_element_are_products_of_matrices(
    n: int, c: int, o: int, size: list[int], dtype: Any, strided: bool, groups: int, last: bool
) -> None:
    d = len(size)
    slide = Sliding((1,) * d, ((0, 0),) * d, (2,) * d, groups)
    x, g = (integers((n, groups * k, *size), k, dtype) for k in (c, o))
    w = integers((groups * o, c, *[1] * d), 3, dtype)
    if strided:
        w = np.repeat(w, 2, 1)[:, ::2]
    if last:
        x, g = (channels_first(np.ascontiguousarray(channels_last(v))) for v in (x, g))
    one, whole = (1,) * d, tuple(size)
    for name, *rest in (
        ("convolution", x, w, slide), ("convolution_input", g, w, slide, whole),
        ("convolution_weight", x, g, slide, one),
    ):  # fmt: skip
        found = getattr(pointwise, name)(*rest)
        if found is NotImplemented:
            assert np.prod(size) < 16 or last
        else:
            expected = getattr(convolution_products, name)(*rest)
            np.testing.assert_array_equal(found, expected, strict=True)


@given(
    st.integers(1, 3), st.integers(1, 9), st.integers(1, 9),
    st.lists(st.integers(1, 5), min_size=1, max_size=3), st.integers(1, 3),
    st.sampled_from([np.float32, np.float64]), st.booleans(),
)  # fmt: skip
def test_images_that_are_one_window_are_rows_of_a_matrix(
    n: int, c: int, o: int, size: list[int], stride: int, dtype: Any, strided: bool
) -> None:
    d, whole = len(size), tuple(size)
    slide = Sliding((stride,) * d, ((0, 0),) * d, (1,) * d, 1)
    x, w = integers((n, c, *size), 1, dtype), integers((o, c, *size), 2, dtype)
    g = integers((n, o, *[1] * d), 3, dtype)
    if strided:
        w, g = [np.repeat(v, 2, 1)[:, ::2] for v in (w, g)]
    for name, *rest in (
        ("convolution", x, w, slide), ("convolution_input", g, w, slide, whole),
        ("convolution_weight", x, g, slide, whole),
    ):  # fmt: skip
        found = getattr(pointwise, name)(*rest)
        if np.prod(size) > 1:
            expected = getattr(convolution_products, name)(*rest)
            np.testing.assert_array_equal(found, expected, strict=True)


@given(
    st.integers(1, 3), st.integers(1, 9), st.integers(1, 9),
    st.lists(st.tuples(st.integers(1, 40), st.integers(1, 4)), min_size=1, max_size=3),
    st.sampled_from([np.float32, np.float64]), st.booleans(),
)  # fmt: skip
def test_single_elements_that_lie_apart_are_products_too(
    n: int, c: int, o: int, axes: list[tuple[int, int]], dtype: Any, last: bool
) -> None:
    size, stride = zip(*axes)
    slide = Sliding(stride, ((0, 0),) * len(axes), (1,) * len(axes), 1)
    x = integers((n, c, *size), 1, dtype)
    g = integers((n, o, *slide.size(size, (1,) * len(axes))), 2, dtype)
    expected = convolution_products.convolution_weight(x, g, slide, (1,) * len(axes))
    if last:
        x, g = [np.moveaxis(np.ascontiguousarray(np.moveaxis(v, 1, -1)), -1, 1) for v in (x, g)]
    found = pointwise.convolution_weight(x, g, slide, (1,) * len(axes))
    if found is NotImplemented:  # sums of lines
        assert n > c == o == max(stride) == 1
    else:
        np.testing.assert_array_equal(found, expected, strict=True)
    w = integers((o, c, *[1] * len(axes)), 3, dtype)
    for name, *rest in (("convolution", x, w, slide), ("convolution_input", g, w, slide, size)):
        found = getattr(pointwise, name)(*rest)
        if found is not NotImplemented:
            expected = getattr(convolution_products, name)(*rest)
            np.testing.assert_array_equal(found, expected, strict=True)


@pytest.mark.filterwarnings("ignore:invalid value")  # of BLAS, by the lanes that it leaves empty
@given(
    st.integers(1, 3), st.integers(2, 4), st.integers(1, 3), st.integers(1, 9),
    st.lists(st.integers(1, 12), min_size=1, max_size=3), st.sampled_from([np.float32, np.float64]),
)  # fmt: skip
def test_groups_of_few_channels_that_are_last_are_met_by_all_outputs(
    n: int, groups: int, c: int, o: int, size: list[int], dtype: Any
) -> None:
    """In one product, of which each group takes its own: what is not finite stays there as well."""
    d = len(size)
    slide = Sliding((1,) * d, ((0, 0),) * d, (1,) * d, groups)
    x, g = (np.abs(integers((n, groups * k, *size), k, dtype)) + 1 for k in (c, o))
    x[:, 0] = np.inf
    expected = convolution_products.convolution_weight(x, g, slide, (1,) * d)
    last = [channels_first(np.ascontiguousarray(channels_last(v))) for v in (x, g)]
    found = pointwise.convolution_weight(*last, slide, (1,) * d)
    if found is not NotImplemented:
        np.testing.assert_array_equal(found, expected, strict=True)
    assert found is not NotImplemented or last[0].flags.c_contiguous or o == 1 or groups * c > 8


def test_what_is_no_product_of_matrices_is_left_to_others() -> None:
    x, w = np.ones((2, 4, 6, 6), np.float32), np.ones((4, 4, 1, 1), np.float32)
    slide = Sliding((1, 1), ((0, 0), (0, 0)), (1, 1), 1)
    assert pointwise.convolution(x, w, slide) is not NotImplemented
    padded = slide._replace(padding=((0, 0), (1, 0)))
    assert pointwise.convolution(x, w, padded) is NotImplemented
    last = np.moveaxis(np.ones((2, 6, 6, 4), np.float32), -1, 1)
    assert pointwise.convolution(last, w, slide) is NotImplemented


@pytest.mark.parametrize(("n", "c", "o"), [(7, 3, 4), (9, 200, 160)])
@pytest.mark.parametrize("last", [False, True])
def test_products_of_pixels_are_summed_over_images(n: int, c: int, o: int, last: bool) -> None:
    """Image by image, several images at once, or all at once where channels are last in memory."""
    slide = Sliding((1, 1), ((0, 0),) * 2, (1, 1), 1)
    x, g = integers((n, c, 15, 16), 1, np.float32), integers((n, o, 15, 16), 2, np.float32)
    expected = convolution_products.convolution_weight(x, g, slide, (1, 1))
    if last:
        x, g = [np.moveaxis(np.ascontiguousarray(np.moveaxis(v, 1, -1)), -1, 1) for v in (x, g)]
    found = pointwise.convolution_weight(x, g, slide, (1, 1))
    np.testing.assert_array_equal(found, expected, strict=True)


@given(
    st.integers(1, 3), st.sampled_from([1, 3, 16, 17, 130]), st.sampled_from([1, 17, 33]),
    st.lists(st.tuples(st.integers(1, 5), st.integers(1, 6), st.integers(0, 2)), min_size=1,
             max_size=3),
    st.sampled_from([np.float32, np.float64]), st.booleans(),
)  # fmt: skip
def test_windows_side_by_side_are_rows_of_a_matrix(
    n: int, c: int, o: int, axes: list[tuple[int, int, int]], dtype: Any, strided: bool
) -> None:
    """Also where the image goes on behind the last one; for operands with any strides. Few outputs
    are left to tiles, and so are all where vectors are long, whose adjoints are not.
    """
    long_vectors = host().vector_bytes >= 64
    kernel, places, _ = zip(*axes)
    size = tuple([k * t + min(m, k - 1) for k, t, m in axes])
    slide = Sliding(kernel, ((0, 0),) * len(axes), (1,) * len(axes), 1)
    x, w = integers((n, c, *size), 1, dtype), integers((o, c, *kernel), 2, dtype)
    g = integers((n, o, *places), 3, dtype)
    if strided:
        x, w, g = [np.repeat(v, 2, 1)[:, ::2] for v in (x, w, g)]
    for name, *rest in (
        ("convolution", x, w, slide), ("convolution_input", g, w, slide, size),
        ("convolution_weight", x, g, slide, kernel),
    ):  # fmt: skip
        found = getattr(patches, name)(*rest)
        long = c * np.prod(kernel) >= 512
        taken = np.prod(kernel) > 1 and (long or (name == "convolution_input" and c <= 16))
        few = o <= (16 if name == "convolution_weight" else 32)
        if name == "convolution_input":
            sent = c < 8 and o > 32 and not long_vectors and not lie_last(g)
            few = (few and (c >= 8 or np.prod(kernel) <= 16)) or sent
        taken = taken and not (few or (name == "convolution" and long_vectors))
        assert (found is not NotImplemented) == taken
        if taken:
            expected = getattr(convolution_products, name)(*rest)
            np.testing.assert_array_equal(found, expected, strict=True)


@pytest.mark.parametrize(
    "change", [{"stride": (8, 7)}, {"padding": ((0, 0), (1, 0))}, {"dilation": (1, 2)}]
)
def test_windows_that_are_not_side_by_side_are_left_to_others(change: Any) -> None:
    x, g = np.ones((2, 9, 32, 32), np.float32), np.ones((2, 40, 4, 4), np.float32)
    slide = Sliding((8, 8), ((0, 0), (0, 0)), (1, 1), 1)
    assert patches.convolution_weight(x, g, slide, (8, 8)) is not NotImplemented
    changed = slide._replace(**change)
    assert patches.convolution_weight(x, g, changed, (8, 8)) is NotImplemented


@given(
    st.integers(0, 3), st.sampled_from([1, 2, 3]), st.sampled_from([15, 16, 20]),
    st.integers(1, 21), st.integers(1, 6), st.integers(0, 3), st.integers(0, 3), st.integers(0, 9),
)  # fmt: skip
def test_windows_that_overlap_a_few_times_are_added_up(
    n: int, c: int, o: int, k: int, stride: int, low: int, high: int, more: int
) -> None:
    """The adjoint in x along one axis, to one or two channels of many outputs."""
    slide = Sliding((stride,), ((low, high),), (1,), 1)
    size = (max(1, k - low - high) + more,)
    g = integers((n, o, *slide.size(size, (k,))), 1, np.float32)
    w = integers((o, c, k), 2, np.float32)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cpu_sent, "_SHORT", 0)  # as where vectors are long
        patch.setattr(cpu_sent, "_TO_ADD", 1 << 30)
        found = cpu_sent.convolution_input(g, w, slide, size)
    taken = c <= 2 and o >= 16 and k <= 4 * stride and stride >= 4 and n > 0 and available()
    assert (found is not NotImplemented) == taken
    if found is not NotImplemented:
        expected = convolution_products.convolution_input(g, w, slide, size)
        np.testing.assert_array_equal(found, expected, strict=True)


@many
@given(cases(), st.sampled_from([np.float32, np.float64]), st.booleans(), st.booleans())
def test_what_pixels_send_is_added_up(case: Case, dtype: Any, last: bool, small: bool) -> None:
    """For any parameters, image by image and all at once."""
    stride, padding, dilation, _ = case["static"]
    slide = Sliding(stride, padding, dilation, 1)
    (n, c, *size), (o, _, *kernel) = case["x_shape"], case["w_shape"]
    x, w = integers((n, c, *size), 1, dtype), integers((o, c, *kernel), 2, dtype)
    g = integers((n, o, *slide.size(tuple(size), tuple(kernel))), 3, dtype)
    plain = slide._replace(stride=(1,) * len(size))
    expected = convolution_products.convolution_input(g, w, slide, tuple(size))
    straight = convolution_products.convolution(x, w, plain)
    if last:
        x, g = [np.moveaxis(np.ascontiguousarray(np.moveaxis(v, 1, -1)), -1, 1) for v in (x, g)]
    with pytest.MonkeyPatch.context() as patch:
        for name in ("_MANY_TERMS", "_MANY_PIXELS", *(["_ROOM"] if small else [])):
            patch.setattr(cpu_sent, name, 0)
        for found, of in (
            (cpu_sent.convolution_input(g, w, slide, tuple(size)), expected),
            (cpu_sent.convolution(x, w, plain), straight),
        ):
            if found is not NotImplemented:
                np.testing.assert_array_equal(found, of, strict=True)


@given(cases(), st.sampled_from([np.float32, np.float64]), st.booleans())
def test_groups_send_each_to_its_own(case: Case, dtype: Any, small: bool) -> None:
    """The adjoint in x to few channels of each group, where vectors are short."""
    slide = Sliding(*case["static"])
    x, w = case["x_shape"], integers(case["w_shape"], 2, dtype)
    g = integers((x[0], len(w), *slide.size(x[2:], w.shape[2:])), 1, dtype)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cpu_sent, "_ROOMS", {0: 1 << 24})
        patch.setattr(cpu_sent, "_ROOM", 0 if small else 1 << 20)
        patch.setattr(cpu_sent, "_SHORT", 64)
        found = cpu_sent.convolution_input(g, w, slide, x[2:])
    taken = available() and np.prod(w.shape[2:]) > 1 and 0 not in (*g.shape, *w.shape, *x)
    assert (found is not NotImplemented) >= taken
    if found is not NotImplemented:
        expected = convolution_products.convolution_input(g, w, slide, x[2:])
        np.testing.assert_array_equal(found, expected, strict=True)


@pytest.mark.parametrize(
    "change", [{"c": 8}, {"o": 63}, {"size": 63}, {"groups": 2}, {"kernel": 1}, {}], ids=str
)
@pytest.mark.skipif(not available(), reason="there is no LLVM to compile with")
def test_few_channels_of_many_terms_are_sent(
    change: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cpu_sent, "_SHORT", 0)  # as where vectors are long
    monkeypatch.setattr(cpu_sent, "_TO_ADD", 1 << 30)
    at = {"c": 2, "o": 64, "size": 64, "groups": 1, "kernel": 3} | change
    d, per = at["size"], at["c"] // at["groups"]
    slide = Sliding((1, 1), ((at["kernel"] // 2,) * 2,) * 2, (1, 1), at["groups"])
    g, w = np.ones((1, at["o"], d, d)), np.ones((at["o"], per, at["kernel"], at["kernel"]))
    found = cpu_sent.convolution_input(g, w, slide, (d, d))
    assert (found is NotImplemented) == bool(change)


@pytest.mark.parametrize(("size", "kernel", "stride", "taken"), [
    (9, 5, 1, True), (20, 5, 1, False), (8, 3, 1, False), (11, 7, 2, True), (24, 7, 2, False),
])  # fmt: skip
@pytest.mark.skipif(not available(), reason="there is no LLVM to compile with")
def test_windows_that_reach_far_beyond_images_are_sent(
    size: int, kernel: int, stride: int, taken: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of one image and many terms; tiles take several a tap at a time."""
    monkeypatch.setattr(cpu_sent, "_SHORT", 0)  # as where vectors are long
    slide = Sliding((stride,) * 2, ((0, 0),) * 2, (1, 1), 1)
    w = integers((65, 17, kernel, kernel), 2, np.float32)
    for images in (1, 2):
        g = integers((images, 65, *slide.size((size,) * 2, (kernel,) * 2)), 1, np.float32)
        found = cpu_sent.convolution_input(g, w, slide, (size, size))
        assert (found is not NotImplemented) == (taken and images == 1)
        if found is not NotImplemented:
            expected = convolution_products.convolution_input(g, w, slide, (size, size))
            np.testing.assert_array_equal(found, expected, strict=True)


@pytest.mark.parametrize(
    "change", [{"c": 9}, {"o": 12}, {"groups": 2}, {"kernel": 1}, {"last": 1}, {}], ids=str
)
@pytest.mark.skipif(not available(), reason="there is no LLVM to compile with")
def test_few_channels_are_sent_where_vectors_are_long(
    change: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """From more outputs than taps on, also of small images, whatever the direction."""
    monkeypatch.setattr(cpu_sent, "_SHORT", 0)
    monkeypatch.setattr(cpu_sent, "_in_lines", lambda *_: False)
    at = {"c": 4, "o": 14, "groups": 1, "kernel": 3, "last": 0} | change
    k, per = at["kernel"], at["c"] // at["groups"]
    slide = Sliding((1, 1), ((k // 2,) * 2,) * 2, (1, 1), at["groups"])
    g = integers((2, at["o"], 9, 8), 1, np.float32)
    w = integers((at["o"], per, k, k), 2, np.float32)
    g = channels_first(np.ascontiguousarray(channels_last(g))) if at["last"] else g
    found = cpu_sent.convolution_input(g, w, slide, (9, 8))
    assert (found is NotImplemented) == bool(change)
    if not change:
        expected = convolution_products.convolution_input(g, w, slide, (9, 8))
        np.testing.assert_array_equal(found, expected, strict=True)
        turned = np.ascontiguousarray(np.flip(w, (2, 3)).swapaxes(0, 1))
        np.testing.assert_array_equal(cpu_sent.convolution(g, turned, slide), expected)


def test_what_is_sent_stays_within_images() -> None:
    """The kernel as Python, with every index checked: whole vectors, ends of rows and strides."""
    for step, row, x in ((1, 21, np.zeros(2 * 63)), (2, 42, np.zeros(2 * 126))):
        parts, y = np.array([[0, 0, 3, 21], [63, 0, 2, 19]]), np.arange(4.0 * 63)
        agree(cpu_sent.add_sent, y, x, parts, 2, 2, 1, 126, len(x) // 2, 0, 0, 21, row, step)


def test_output_size_counts_positions() -> None:
    """The size is the floor of the textbook formula, 0 where the window just does not fit."""
    assert output_size((7, 8), (3, 3), (2, 2), ((1, 1), (1, 1)), (1, 1)) == (4, 4)
    assert output_size((5,), (3,), (1,), ((0, 0),), (2,)) == (1,)
    assert output_size((4,), (3,), (1,), ((0, 0),), (2,)) == (0,)
    assert output_size((4,), (1,), (3,), ((-1, 2),), (1,)) == (2,)


class Affine:
    """An int-like of which only + - * // and nothing else is known."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __add__(self, other: object) -> Affine:
        return Affine(f"({self.text} + {other})")

    def __sub__(self, other: object) -> Affine:
        return Affine(f"({self.text} - {other})")

    def __floordiv__(self, other: object) -> Affine:
        return Affine(f"({self.text} // {other})")

    def __str__(self) -> str:
        return self.text


def test_output_size_takes_symbols() -> None:
    """A size that knows arithmetic only passes through and can be evaluated later."""
    (size,) = output_size((Affine("s"),), (3,), (2,), ((1, 1),), (2,))
    assert eval(str(size), {"s": 9}) == output_size((9,), (3,), (2,), ((1, 1),), (2,))[0]


@many
@given(cases())
def test_windows_are_slices(case: Case) -> None:
    """Window t holds x[stride t + dilation k] for each k, and looks at the memory of x."""
    (stride, _, dilation, _), size = case["static"], case["w_shape"][2:]
    d = len(size)
    x = integers(case["x_shape"], 1)
    count = output_size(x.shape[2:], size, stride, ((0, 0),) * d, dilation)
    if min(count) < 0:
        return
    v = windows(x, size, stride, dilation)
    assert v.shape == (*x.shape[:2], *count, *size)
    assert not v.flags.writeable
    assert v.size == 0 or np.shares_memory(v, x)
    for at in np.ndindex(*count):
        box = tuple([slice(a * s, a * s + dil * (k - 1) + 1, dil)
                     for a, s, k, dil in zip(at, stride, size, dilation)])  # fmt: skip
        window = v[(slice(None), slice(None), *at)]
        np.testing.assert_array_equal(window, x[(slice(None), slice(None), *box)])


@many
@given(cases())
def test_windows_adjoint_is_the_adjoint(case: Case) -> None:
    """<g, windows(x)> equals <windows_adjoint(g), x>, exactly in integers."""
    (stride, _, dilation, _), size = case["static"], case["w_shape"][2:]
    x = integers(case["x_shape"], 1)
    if min(output_size(x.shape[2:], size, stride, ((0, 0),) * len(size), dilation)) < 0:
        return
    v = windows(x, size, stride, dilation)
    g = integers(v.shape, 2)
    folded = windows_adjoint(g, x.shape[2:], stride, dilation)
    assert folded.shape == x.shape
    assert folded.dtype == g.dtype
    assert (g * v).sum() == (folded * x).sum()


@pytest.mark.parametrize("dtype", ["int32", "float32", "float64"])
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_a_result_without_room_is_refused_before_anything_is_planned(rank, dtype, monkeypatch):
    monkeypatch.setattr(table, "call", lambda *_: pytest.fail("planned"))
    x, w = np.ones((1, 1, *[4] * rank), dtype), np.ones((1, 1, *[3] * rank), dtype)
    for axis in range(rank):
        padding = tuple([(1, 1 << 46 if k == axis else 1) for k in range(rank)])
        with pytest.raises(MemoryError):
            convolution(x, w, (1,) * rank, padding, (1,) * rank, 1)
        stride = tuple([1 << 46 if k == axis else 1 for k in range(rank)])
        size = tuple([3 * s + 3 for s in stride])
        with pytest.raises(MemoryError):
            convolution_input(x, w, stride, ((0, 0),) * rank, (1,) * rank, 1, size)
