"""Convolutions and pooling in one to three dimensions are torch's for all windows."""

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import funct as ft
import funct.array as xp
from funct.errors import ArgumentError, IndexOutOfBoundsError, ShapeError
from funct.nn import functional as F  # noqa: N812
from tests import laws
from tests.nn.cases import wave
from tests.nn.torch_twin import agree_with_torch

small = st.integers(1, 3)


def per_axis(data: st.DataObject, rank: int, low: int = 1, high: int = 3) -> tuple[int, ...]:
    """One int per axis."""
    return data.draw(st.tuples(*[st.integers(low, high)] * rank))


@given(data=st.data(), rank=st.integers(1, 3))
def test_conv_is_torchs(data: st.DataObject, rank: int) -> None:
    """Stride, padding, dilation and groups mean what they mean in torch."""
    groups, kernel = data.draw(small), per_axis(data, rank)
    keywords = {
        "stride": per_axis(data, rank), "dilation": per_axis(data, rank, high=2),
        "padding": per_axis(data, rank, 0, 2), "groups": groups,
    }  # fmt: skip
    size = per_axis(data, rank, 5, 6)
    inputs = {"input": (2, 2 * groups, *size), "weight": (groups * data.draw(small), 2, *kernel)}
    agree_with_torch(f"conv{rank}d", inputs, **keywords)


@given(data=st.data(), rank=st.integers(1, 3))
def test_conv_transpose_is_torchs(data: st.DataObject, rank: int) -> None:
    """Output padding and the order of groups and channels mean what they mean in torch."""
    groups, kernel = data.draw(small), per_axis(data, rank)
    stride, dilation = per_axis(data, rank), per_axis(data, rank, high=2)
    each = zip(stride, dilation, strict=True)
    extra = tuple([data.draw(st.integers(0, max(s, d) - 1)) for s, d in each])
    padding = tuple([data.draw(st.integers(0, k // 2)) for k in kernel])
    inputs = {
        "input": (2, 2 * groups, *per_axis(data, rank, 2, 4)),
        "weight": (2 * groups, data.draw(small), *kernel),
    }
    inputs["bias"] = (inputs["weight"][1] * groups,)
    agree_with_torch(
        f"conv_transpose{rank}d", inputs, stride=stride, padding=padding, output_padding=extra,
        groups=groups, dilation=dilation,
    )  # fmt: skip


@given(data=st.data(), rank=st.integers(1, 3))
def test_conv_transpose_is_the_transpose_of_conv(data: st.DataObject, rank: int) -> None:
    """<conv(x), y> = <x, conv_transpose(y)>: needs no torch."""
    stride, padding = per_axis(data, rank, high=2), per_axis(data, rank, 0, 1)
    keywords: dict[str, Any] = {"stride": stride, "padding": padding}
    w = xp.asarray(wave((4, 3, *per_axis(data, rank, 2, 3))))
    x = xp.asarray(wave((2, 3, *per_axis(data, rank, 4, 6)), 0.4))
    y = getattr(F, f"conv{rank}d")(x, w, **keywords)
    g = xp.asarray(wave(y.shape, 1.1))
    plain = getattr(F, f"conv_transpose{rank}d")(g, w, **keywords)
    rest = tuple([n - m for n, m in zip(x.shape[2:], plain.shape[2:], strict=True)])
    back = getattr(F, f"conv_transpose{rank}d")(g, w, output_padding=rest, **keywords)
    np.testing.assert_allclose(laws.inner(y, g), laws.inner(x, back), rtol=1e-9)


@given(data=st.data(), rank=st.integers(1, 3), kind=st.sampled_from(["max", "avg", "lp"]))
def test_pools_are_torchs(data: st.DataObject, rank: int, kind: str) -> None:
    """Kernel, stride, padding, dilation and ceil_mode mean what they mean in torch."""
    kernel, ceil = per_axis(data, rank), data.draw(st.booleans())
    stride = data.draw(st.one_of(st.none(), st.tuples(*[small] * rank)))
    shape = (2, 2, *per_axis(data, rank, 3, 6))
    keywords: dict[str, Any] = {"kernel_size": kernel, "stride": stride, "ceil_mode": ceil}
    span = kernel
    if kind != "lp":
        keywords["padding"] = tuple([data.draw(st.integers(0, k // 2)) for k in kernel])
    if kind == "max":
        dilation = per_axis(data, rank, high=2)
        span = tuple([d * (k - 1) + 1 for d, k in zip(dilation, kernel, strict=True)])
        keywords |= {"dilation": dilation, "return_indices": data.draw(st.booleans())}
    elif kind == "avg":
        keywords["count_include_pad"] = data.draw(st.booleans())
        if rank > 1:
            keywords["divisor_override"] = data.draw(st.one_of(st.none(), st.integers(1, 5)))
    else:
        keywords["norm_type"] = data.draw(st.sampled_from([1, 2, 4]))
    pads = keywords.get("padding", (0,) * rank)
    if kind == "lp" and rank == 1:  # torch takes no tuple there
        keywords |= {"kernel_size": kernel[0], "stride": stride and stride[0]}
    assume(all(n + 2 * p >= s for n, p, s in zip(shape[2:], pads, span, strict=True)))
    agree_with_torch(f"{kind}_pool{rank}d", {"input": shape}, **keywords)


@given(data=st.data(), rank=st.integers(1, 3), kind=st.sampled_from(["max", "avg"]))
def test_adaptive_pools_are_torchs(data: st.DataObject, rank: int, kind: str) -> None:
    """All pairs of input and output sizes, also outputs that are larger."""
    size = per_axis(data, rank, 1, 7)
    keywords = {"return_indices": data.draw(st.booleans())} if kind == "max" else {}
    shape = (2, *per_axis(data, rank, 1, 7))
    name = f"adaptive_{kind}_pool{rank}d"
    agree_with_torch(name, {"input": shape}, output_size=size, **keywords)


@pytest.mark.parametrize("sizes", [(56, 5), (57, 7), (23, 11), (13, 12), (12, 13), (58, 5)])
@pytest.mark.parametrize("kind", ["max", "avg"])
@pytest.mark.parametrize("last", [False, True])
def test_adaptive_pools_of_images_are_torchs(
    sizes: tuple[int, int], kind: str, last: bool
) -> None:
    """Large enough for machine code; windows that share an element with the next, and that do not
    lie at equal distances; NaN stays in the windows that it is in.
    """
    torch = pytest.importorskip("torch")
    n, out = sizes
    x = wave((2, 9, n, n)).astype(np.float32)
    x[0, 0, n // 2, 0] = np.nan
    if last:
        x = np.moveaxis(np.moveaxis(x, 1, -1).copy(), -1, 1)
    fun, name = getattr(F, f"adaptive_{kind}_pool2d"), f"adaptive_{kind}_pool2d"
    leaf = torch.from_numpy(x).requires_grad_()
    wanted = getattr(torch.nn.functional, name)(leaf, out)
    g = wave(tuple(wanted.shape), 0.5).astype(np.float32)
    wanted.backward(torch.from_numpy(g))
    y, pull = ft.vjp(lambda v: fun(v, out), xp.asarray(x))
    np.testing.assert_allclose(np.asarray(y), wanted.detach().numpy(), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(
        np.asarray(pull(xp.asarray(g))[0]), leaf.grad.numpy(), rtol=1e-5, atol=1e-6
    )


@pytest.mark.parametrize(
    "pool",
    [
        lambda x: F.avg_pool2d(x, 2), lambda x: F.avg_pool2d(x, (3, 2), (2, 1), 1),
        lambda x: F.avg_pool2d(x, 3, 2, 1, ceil_mode=True, count_include_pad=False),
        lambda x: F.max_pool2d(x, 3, 2, 1), lambda x: F.adaptive_avg_pool2d(x, 1),
        lambda x: F.adaptive_avg_pool2d(x, (4, 5)), lambda x: F.adaptive_avg_pool2d(x, (13, 3)),
    ],
)  # fmt: skip
@pytest.mark.parametrize("channels", [9, 40])
def test_images_are_pooled_as_they_lie(pool: Any, channels: int) -> None:
    """Whichever axis is the last one in memory, and their cotangents; the results lie so too."""
    x = wave((2, 17, 16, channels), 0.4)
    last, first = np.moveaxis(x, -1, 1), np.moveaxis(x, -1, 1).copy()
    wanted, wanted_pull = ft.vjp(pool, xp.asarray(first))
    g = wave((*[wanted.shape[k] for k in (0, 2, 3, 1)],), 0.7)
    cotangents = [np.moveaxis(g, -1, 1), np.moveaxis(g, -1, 1).copy()]
    there = wanted_pull(xp.asarray(cotangents[1]))[0]
    for image, cotangent in product((last, first), cotangents):
        y, pull = ft.vjp(pool, xp.asarray(image))
        np.testing.assert_allclose(np.asarray(y), np.asarray(wanted), rtol=1e-13, atol=1e-15)
        back = np.asarray(pull(xp.asarray(cotangent))[0])
        np.testing.assert_allclose(back, np.asarray(there), rtol=1e-13, atol=1e-15)
        if image is last and y.size > y.shape[0] * y.shape[1]:
            assert np.moveaxis(np.asarray(y), 1, -1).flags.c_contiguous


@given(data=st.data(), rank=st.integers(1, 3))
def test_unpooling_undoes_pooling(data: st.DataObject, rank: int) -> None:
    """Every maximum comes back to its place, for every size that pools to the same."""
    kernel = per_axis(data, rank, 2, 3)
    size = tuple([k * data.draw(small) + data.draw(st.integers(0, k - 1)) for k in kernel])
    x = xp.asarray(wave((2, 3, *size)))
    y, at = getattr(F, f"max_pool{rank}d")(x, kernel, return_indices=True)
    back = getattr(F, f"max_unpool{rank}d")(y, at, kernel, output_size=size)
    assert back.shape == x.shape
    kept = back != 0
    laws.same(xp.where(kept, x, 0.0), back)
    assert int(xp.sum(xp.astype(kept, xp.int64))) == y.size
    agree_with_torch(
        f"max_unpool{rank}d", {"input": y.shape, "indices": np.asarray(at)}, kernel_size=kernel,
        output_size=size,
    )  # fmt: skip


def test_indices_follow_nan_and_ties() -> None:
    """The first of equal maxima is given, and NaN wins."""
    x = xp.asarray([[1.0, 1.0, float("nan"), 2.0, 0.0, 0.0]])
    for y, at in (
        F.max_pool1d(x, 2, return_indices=True), F.adaptive_max_pool1d(x, 3, return_indices=True)
    ):  # fmt: skip
        assert at.tolist() == [[0, 2, 4]]
        assert np.isnan(np.asarray(y)).tolist() == [[False, True, False]]
    g = ft.grad(lambda v: xp.sum(F.adaptive_max_pool1d(v, 3)))(xp.asarray([[1.0, 1, 2, 2, 3, 3]]))
    assert g.tolist() == [[1.0, 0.0, 1.0, 0.0, 1.0, 0.0]]


@given(data=st.data(), rank=st.integers(2, 3), by_ratio=st.booleans())
def test_fractional_pools_are_torchs(data: st.DataObject, rank: int, by_ratio: bool) -> None:
    """Windows begin where torch lets them begin for the same samples, and every key gives some."""
    # Windows that fit exactly: 4 of 3 elements in 6. torch takes such images but no such volumes.
    kernel, size = per_axis(data, rank, 1, 3), per_axis(data, rank, 6 if rank == 2 else 7, 8)
    out = per_axis(data, rank, 1, 4)
    wanted = {"output_ratio": (0.5,) * rank} if by_ratio else {"output_size": out}
    samples = np.abs(wave((2, 2, rank), data.draw(st.floats(0, 3)))) / 2.01
    name = f"fractional_max_pool{rank}d"
    inputs = {"input": (2, 2, *size), "_random_samples": samples}
    keywords = {"kernel_size": kernel, "return_indices": True, **wanted}
    agree_with_torch(name, inputs, fixed=("_random_samples",), **keywords)
    x = xp.asarray(wave((2, 2, *size)))
    fun = getattr(F, name)
    y, at = fun(x, kernel, **wanted, return_indices=True, key=ft.random.key(1))
    flat = xp.reshape(x, (2, 2, -1))
    picked = xp.take_along_axis(flat, xp.reshape(at, (2, 2, -1)), axis=2)
    laws.same(xp.reshape(picked, y.shape), y)
    laws.same(
        fun(x[0], kernel, **wanted, _random_samples=xp.asarray(samples[:1])),
        fun(x[:1], kernel, **wanted, _random_samples=xp.asarray(samples[:1]))[0],
    )


@pytest.mark.parametrize("rank", [2, 3])
def test_fractional_pools_of_an_exact_fit_step_by_one(rank: int) -> None:
    """Where windows fit one way only, nothing is left to chance."""
    x = xp.asarray(wave((2, 2, *(6,) * rank)))
    drawn = getattr(F, f"fractional_max_pool{rank}d")(x, 3, 4, key=ft.random.key(0))
    laws.same(drawn, getattr(F, f"max_pool{rank}d")(x, 3, 1))


def test_lp_pool_is_smooth_at_nothing() -> None:
    """A window of zeros has derivative 0, not NaN."""
    g = ft.grad(lambda v: xp.sum(F.lp_pool1d(v, 2, 2)))(xp.asarray([[0.0, 0.0, 3.0, 4.0]]))
    np.testing.assert_allclose(np.asarray(g), [[0.0, 0.0, 0.6, 0.8]])


X = xp.ones((1, 2, 4, 4))
W = xp.ones((2, 3, 2, 2))
ERRORS = [
    (lambda: F.conv3d(X[0, 0], xp.ones((1, 1, 1, 1, 1))), ShapeError,
     "conv3d: input must have shape (N, C, D, H, W) or (C, D, H, W)"),
    (lambda: F.conv_transpose2d(xp.ones((1, 3, 4, 4)), W), ShapeError,
     "conv_transpose2d: input must have 2 channels, got (1, 3, 4, 4)"),
    (lambda: F.conv_transpose2d(X, W, output_padding=1), ArgumentError,
     "conv_transpose2d: output_padding must be less than stride (1, 1) or dilation (1, 1), "
     "got (1, 1)"),
    (lambda: F.conv_transpose2d(X, W, groups=3), ArgumentError,
     "conv_transpose2d: groups must divide 2 input channels, got 3"),
    (lambda: F.conv_transpose2d(X, W, padding=4), ShapeError,
     "conv_transpose2d: padding (4, 4) leaves nothing of the result, its size is (-3, -3)"),
    (lambda: F.adaptive_avg_pool2d(X, 0), ArgumentError,
     "adaptive_avg_pool2d: output_size must be a positive int, None, or 2 of these, got 0"),
    (lambda: F.lp_pool2d(X, 0, 2), ArgumentError, "lp_pool2d: norm_type must not be 0"),
    (lambda: F.max_unpool2d(X, xp.zeros((1, 2, 4), dtype=xp.int64), 2), ShapeError,
     "max_unpool2d: indices must have input's shape (1, 2, 4, 4), got (1, 2, 4)"),
    (lambda: F.max_unpool2d(X, xp.zeros(X.shape, dtype=xp.int64), 2, output_size=(9, 99)),
     ArgumentError,
     "max_unpool2d: output_size must be within a stride (2, 2) of (8, 8), got (9, 99)"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "kind", "text"), ERRORS, ids=[e[2][:30] for e in ERRORS])
def test_wrong_arguments_are_named(call: Any, kind: type[Exception], text: str) -> None:
    """Each error names the function, what was expected and what came."""
    with pytest.raises(kind) as caught:
        call()
    assert str(caught.value).startswith(text)


@pytest.mark.parametrize("pool", [F.max_pool2d, F.avg_pool2d])
@pytest.mark.parametrize(
    "way", [ft.vmap, lambda f: ft.jit(ft.vmap(f)), lambda f: ft.vmap(ft.jit(f))]
)
@pytest.mark.parametrize("padding", [0, 1])
def test_a_window_larger_than_the_image_raises(pool: Any, way: Any, padding: int) -> None:
    """Eagerly too, where torch raises as well; no empty result."""
    with pytest.raises(ShapeError, match=r"window \(7, 7\) is larger than the padded shape"):
        way(lambda x: pool(x, 7, padding=padding))(xp.ones((2, 3, 3, 4, 4)))


@pytest.mark.parametrize("place", [4, -1])
def test_a_place_outside_raises(place: int) -> None:
    """No maximum lands in another channel."""
    with pytest.raises(IndexOutOfBoundsError):
        F.max_unpool1d(xp.ones((1, 2, 2)), xp.asarray([[[0, place], [0, 1]]]), 2)
