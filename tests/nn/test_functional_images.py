"""Padding, resizing, sampling and windows as columns are torch's for all arguments."""

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import funct as ft
import funct.array as xp
from funct.errors import ArgumentError, ShapeError
from funct.nn import functional as F  # noqa: N812
from funct.nn.functional import adaptive_pooling, resampling
from tests import laws
from tests.nn.cases import wave
from tests.nn.torch_twin import agree_with_torch

sizes = st.integers(1, 6)


@given(data=st.data(), rank=st.integers(1, 3))
def test_pad_is_torchs(data: st.DataObject, rank: int) -> None:
    """All modes, on one to three axes, with negative amounts where torch takes them."""
    mode = data.draw(st.sampled_from(["constant", "reflect", "replicate", "circular"]))
    size = data.draw(st.tuples(*[st.integers(3, 5)] * rank))
    pad = [data.draw(st.integers(-1, 2)) for _ in range(2 * rank)]
    if mode == "circular":  # torch repeats no more than is left
        pairs = zip(pad[::2], pad[1::2], reversed(size), strict=True)
        assume(all(max(a, b) <= n + min(a, 0) + min(b, 0) for a, b, n in pairs))
    keywords = {"value": 2.5} if mode == "constant" else {}
    agree_with_torch("pad", {"input": (1, 2, *size)}, pad=pad, mode=mode, **keywords)


MODES = {1: ["linear"], 2: ["bilinear", "bicubic"], 3: ["trilinear"]}


@given(data=st.data(), rank=st.integers(1, 3))
def test_interpolate_is_torchs(data: st.DataObject, rank: int) -> None:
    """Every mode grows and shrinks as torch does, by sizes and by factors."""
    mode = data.draw(st.sampled_from([*MODES[rank], "nearest", "nearest-exact", "area"]))
    keywords: dict[str, Any] = {"mode": mode}
    if data.draw(st.booleans()):
        keywords["size"] = data.draw(st.tuples(*[sizes] * rank))
    else:
        keywords["scale_factor"] = data.draw(st.sampled_from([0.5, 0.7, 1.0, 1.3, 2.0]))
        if mode != "area":
            keywords["recompute_scale_factor"] = data.draw(st.sampled_from([None, False, True]))
    if mode in MODES[rank]:
        keywords["align_corners"] = data.draw(st.booleans())
        keywords["antialias"] = rank == 2 and data.draw(st.booleans())
    size = data.draw(st.tuples(*[st.integers(2, 6)] * rank))
    fixed = _where_torch_contradicts_itself(mode, size, keywords)
    agree_with_torch("interpolate", {"input": (1, 2, *size)}, fixed=fixed, **keywords)


def _where_torch_contradicts_itself(
    mode: str, size: tuple[int, ...], keywords: dict[str, Any]
) -> tuple[str, ...]:
    """Leave the case out, or only its gradient, where torch has two answers.

    Antialiased images one element wide: all rows are the first, and not so for the transpose. A
    factor under which a length stays: torch's value uses it and the gradient copies (nearest,
    bicubic) or the other way round (antialias), and for nearest images the value depends on how
    large they are.
    """
    antialias, factor = keywords.get("antialias", False), keywords.get("scale_factor", 1.0)
    width = keywords["size"][-1] if "size" in keywords else int(size[-1] * factor)
    assume(not (antialias and width == 1))
    used = factor != 1.0 and not keywords.get("recompute_scale_factor")
    if not (used and any(int(n * factor) == n for n in size)):
        return ()
    assume(mode != "nearest" or len(size) != 2)
    return ("input",) if antialias or mode in ("nearest", "bicubic") else ()


@given(data=st.data(), rank=st.integers(2, 3))
def test_grid_sample_is_torchs(data: st.DataObject, rank: int) -> None:
    """Every mode, inside and far outside of the input."""
    modes = ["bilinear", "nearest", "bicubic"][: 3 if rank == 2 else 2]
    mode = data.draw(st.sampled_from(modes))
    padding = data.draw(st.sampled_from(["zeros", "border", "reflection"]))
    shape = (2, 2, *data.draw(st.tuples(*[st.integers(2, 4)] * rank)))
    scale = data.draw(st.sampled_from([0.4, 1.0, 3.0]))
    grid = wave((2, *(2,) * rank, rank), data.draw(st.floats(0, 3))) * scale
    keywords = {"mode": mode, "padding_mode": padding, "align_corners": data.draw(st.booleans())}
    agree_with_torch("grid_sample", {"input": shape, "grid": grid}, rtol=1e-7, **keywords)


@given(data=st.data())
def test_fold_and_unfold_are_torchs_and_adjoint(data: st.DataObject) -> None:
    """Both agree with torch, and fold is the transpose of unfold."""
    pair = st.tuples(st.integers(1, 2), st.integers(1, 3))
    keywords = {
        "kernel_size": data.draw(pair), "dilation": data.draw(pair), "stride": data.draw(pair),
        "padding": data.draw(st.tuples(st.integers(0, 1), st.integers(0, 2))),
    }  # fmt: skip
    shape = (2, 3, data.draw(st.integers(3, 6)), data.draw(st.integers(5, 7)))
    x = xp.asarray(wave(shape))
    each = zip(shape[2:], keywords["padding"], keywords["dilation"], keywords["kernel_size"])
    if any(n + 2 * p <= d * (k - 1) for n, p, d, k in each):  # no window fits: torch raises too
        with pytest.raises(ShapeError, match="unfold: kernel"):
            F.unfold(x, **keywords)
        with pytest.raises(ShapeError, match="fold: input must have"):
            F.fold(xp.ones((1, 6, 1)), shape[2:], **keywords)
        return
    agree_with_torch("unfold", {"input": shape}, **keywords)
    columns = F.unfold(x, **keywords)
    keywords["output_size"] = shape[2:]
    agree_with_torch("fold", {"input": columns.shape}, **keywords)
    g = xp.asarray(wave(columns.shape, 0.7))
    np.testing.assert_allclose(laws.inner(columns, g), laws.inner(x, F.fold(g, **keywords)))


@given(r=st.integers(1, 3), groups=st.integers(1, 3))
def test_shuffles_are_permutations(r: int, groups: int) -> None:
    """Unshuffling undoes shuffling; shuffling channels by g and C / g does too."""
    x = xp.asarray(wave((2, 2 * r * r, 3, 2)))
    laws.same(F.pixel_unshuffle(F.pixel_shuffle(x, r), r), x)
    y = xp.asarray(wave((2, 2 * groups, 3)))
    laws.same(F.channel_shuffle(F.channel_shuffle(y, groups), 2), y)
    last = xp.asarray(np.moveaxis(np.moveaxis(np.asarray(x), 1, -1).copy(), -1, 1))
    (w, pull), (z, other) = (ft.vjp(lambda v: F.pixel_shuffle(v, r), v) for v in (last, x))
    laws.same(w, z)
    laws.same(pull(z)[0], other(z)[0])
    for mode in ("bilinear", "nearest"):
        laws.same(*[F.interpolate(v, (5, 3), mode=mode) for v in (last, x)])
    deep = xp.asarray(wave((2, 3, 2, 4, 3)))
    turned = xp.asarray(np.moveaxis(np.moveaxis(np.asarray(deep), 1, -1).copy(), -1, 1))
    (w, pull), (z, other) = (
        ft.vjp(lambda v: F.interpolate(v, (5, 3, r)), v) for v in (turned, deep)
    )
    assert np.moveaxis(np.asarray(w), 1, -1).flags.c_contiguous
    laws.same(w, z)
    laws.same(pull(z)[0], other(z)[0])
    agree_with_torch("pixel_shuffle", {"input": x.shape}, upscale_factor=r)
    agree_with_torch("channel_shuffle", {"input": y.shape}, groups=groups)


def test_what_is_cut_off_comes_back_as_it_lies() -> None:
    """Images whose channels are last in memory, and cotangents that are, keep them there."""
    x = np.moveaxis(wave((2, 4, 5, 3)), -1, 1)
    last, first = xp.asarray(x), xp.asarray(x.copy())
    (y, pull), (z, other) = (ft.vjp(lambda v: F.pad(v, (-1, 2, 1, -1)), v) for v in (last, first))
    laws.same(y, z)
    g = xp.asarray(np.moveaxis(wave((2, 4, 6, 3), 0.7), -1, 1))
    laws.same(pull(g)[0], other(g)[0])
    for made in (y, pull(g)[0]):
        assert np.moveaxis(np.asarray(made), 1, -1).flags.c_contiguous


def test_an_infinite_pixel_stays_where_it_is() -> None:
    """Only the neighbours of an infinite element become infinite."""
    x = xp.asarray([[[1.0, float("inf"), 1.0, 1.0, 1.0, 1.0]]])
    with np.errstate(invalid="ignore"):  # 0 · inf, where a neighbour has no weight
        y = np.asarray(F.interpolate(x, 12, mode="linear"))[0, 0]
    assert np.isfinite(y[6:]).all()
    assert not np.isfinite(y[2:4]).any()


def test_grid_sample_knows_nan() -> None:
    """A place that is NaN reads at -1, and its derivative is 0."""
    x = xp.asarray(wave((1, 1, 3, 3)))
    grid = xp.asarray([[[[float("nan"), 0.3]]]])
    at = xp.asarray([[[[-1.0, 0.3]]]])
    laws.same(F.grid_sample(x, grid, align_corners=True), F.grid_sample(x, at, align_corners=True))
    g = ft.grad(lambda v: xp.sum(F.grid_sample(x, v)))(grid)
    assert np.isfinite(np.asarray(g)).all()


X = xp.ones((1, 2, 4, 4))
ERRORS = [
    (lambda: F.pad(X, (1, 2, 3)), ArgumentError,
     "pad: pad must be an even number of ints, got (1, 2, 3)"),
    (lambda: F.pad(X, (4, 0), mode="reflect"), ShapeError,
     "pad: mode 'reflect' takes 1, 2 or 3 axes behind one or two more, got 1 pairs for"),
    (lambda: F.pad(X, (4, 0, 0, 0), mode="reflect"), ArgumentError,
     "pad: mode 'reflect' needs pad below the length 4, got 4, 0"),
    (lambda: F.pad(X, (-1, 4, 0, 0), mode="circular"), ArgumentError,
     "pad: mode 'circular' needs pad up to the length 3, got -1, 4"),
    (lambda: F.pad(X, (-2, -3)), ArgumentError,
     "pad: pad takes more than an axis of length 4: -2, -3"),
    (lambda: F.pad(X, (-6, 1, 0, 0), mode="replicate"), ArgumentError,
     "pad: pad takes more than an axis of length 4: -6, 1"),
    (lambda: F.pad(X, (1, 1), mode="mirror"), ArgumentError, "pad: mode must be one of "),
    (lambda: F.interpolate(X), ArgumentError,
     "interpolate: one of size and scale_factor is needed, got None and None"),
    (lambda: F.interpolate(X, 3, mode="linear"), ShapeError,
     "interpolate: mode 'linear' needs input with 3 axes, got (1, 2, 4, 4)"),
    (lambda: F.interpolate(X, 3, align_corners=True), ArgumentError,
     "interpolate: align_corners does not go with mode 'nearest', got True"),
    (lambda: F.interpolate(X, (3, 3, 3)), ArgumentError,
     "interpolate: size must have 2 entries, got (3, 3, 3)"),
    (lambda: F.interpolate(X, scale_factor=0.1), ArgumentError,
     "interpolate: the result must not be empty, got the size (0, 0)"),
    (lambda: F.grid_sample(X, xp.ones((1, 2, 2, 3))), ShapeError,
     "grid_sample: input (N, C, H, W) needs grid (N, *T, 2)"),
    (lambda: F.grid_sample(X, xp.ones((1, 2, 2, 2)), "linear"), ArgumentError,
     "grid_sample: mode must be 'bilinear', 'nearest' or, for images, 'bicubic', got 'linear'"),
    (lambda: F.affine_grid(xp.ones((1, 2, 3)), (1, 1, 1, 2, 2)), ShapeError,
     "affine_grid: theta must have shape (N, 2, 3) for size (N, C, H, W)"),
    (lambda: F.unfold(X, 5), ShapeError,
     "unfold: kernel (5, 5) is larger than the padded input (1, 2, 4, 4)"),
    (lambda: F.fold(xp.ones((1, 8, 5)), 4, 2), ShapeError,
     "fold: input must have a multiple of 4 rows and 9 columns, got (1, 8, 5)"),
    (lambda: F.pixel_shuffle(X, 2), ArgumentError,
     "pixel_shuffle: channels 2 must be a multiple of the factor, got 4"),
    (lambda: F.channel_shuffle(X, 3), ArgumentError,
     "channel_shuffle: channels 2 must be a multiple of the factor, got 3"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "kind", "text"), ERRORS, ids=[e[2][:30] for e in ERRORS])
def test_wrong_arguments_are_named(call: Any, kind: type[Exception], text: str) -> None:
    """Each error names the function, what was expected and what came."""
    with pytest.raises(kind) as caught:
        call()
    assert str(caught.value).startswith(text)


@given(data=st.data(), rank=st.integers(1, 3), small=st.booleans())
def test_an_infinite_element_is_where_its_weight_is(
    data: st.DataObject, rank: int, small: bool
) -> None:
    """What has no part in a mean or a blend does not make NaN of it, whatever its value."""
    mode = data.draw(st.sampled_from([*MODES[rank], "area", "adaptive", "pool"]))
    size = data.draw(st.tuples(*[sizes if small else st.integers(6, 13)] * rank))
    out = data.draw(st.tuples(*[st.integers(1, 6)] * rank))
    keywords: dict[str, Any] = {}
    if mode in MODES[rank]:
        keywords["align_corners"] = data.draw(st.booleans())
        keywords["antialias"] = rank == 2 and data.draw(st.booleans())

    def fun(x: Any) -> Any:
        if mode == "pool":
            return getattr(F, f"avg_pool{rank}d")(x, 1, 1)
        if mode == "adaptive":
            return getattr(F, f"adaptive_avg_pool{rank}d")(x, out)
        return F.interpolate(x, out, mode=mode, **keywords)

    one = np.zeros((1, 1, *size))
    place = data.draw(st.integers(0, one.size - 1))
    if mode == "bicubic":  # one at an edge comes in several times, with weights of either sign
        at = np.unravel_index(place, size)
        assume(all(2 <= k < n - 2 for k, n in zip(at, size, strict=True)))
    one.reshape(-1)[place] = 1.0
    weights = np.asarray(fun(xp.asarray(one)))
    x = wave(one.shape)
    with np.errstate(invalid="ignore"):
        wanted = np.where(weights == 0.0, np.asarray(fun(xp.asarray(x))), weights * np.inf)
    x[one == 1.0] = np.inf
    for run in (fun, ft.jit(fun)):
        np.testing.assert_allclose(np.asarray(run(xp.asarray(x))), wanted, rtol=1e-12)


MEANS: dict[str, Any] = {
    "larger": lambda x: F.interpolate(x, (31, 47), mode="bilinear"),
    "smaller": lambda x: F.interpolate(x, (9, 21), mode="bicubic", antialias=True),
    "some unread": lambda x: F.interpolate(x, (5, 6), mode="bilinear"),
    "means": lambda x: F.adaptive_avg_pool2d(x, (5, 11)),
    "means of boxes": lambda x: F.adaptive_avg_pool2d(x, (3, 4)),
    "means of boxes of one size": lambda x: F.adaptive_avg_pool2d(x[..., :28], (3, 2)),
    "means of boxes in volumes": lambda x: F.adaptive_avg_pool3d(x[None], (5, 3, None)),
    "means of long windows": lambda x: F.adaptive_avg_pool1d(xp.reshape(x, (2, 2, -1)), 7),
}


@pytest.mark.parametrize("name", MEANS)
def test_ways_back_in_one_kernel_are_those_of_each_tap(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of any order, batched, and along tangents; infinite cotangents reach what they are of."""
    fun, x = MEANS[name], xp.asarray(wave((2, 2, 23, 29)))
    v, many = xp.asarray(wave(x.shape, 0.7)), xp.asarray(wave((3, *x.shape), 0.3))
    g = wave(fun(x).shape, 0.2)
    one = np.where(np.arange(g.size).reshape(g.shape) == g.size // 2, np.inf, 0.0)

    def loss(x: Any) -> Any:
        return xp.sum(fun(x) ** 3)

    def slopes() -> list[Any]:
        pull = ft.vjp(fun, x)[1]
        with np.errstate(invalid="ignore"):
            return [
                pull(xp.asarray(g))[0], pull(xp.asarray(one))[0], ft.grad(loss)(x),
                ft.jvp(ft.grad(loss), (x,), (v,))[1], ft.vmap(ft.grad(loss))(many),
                ft.grad(lambda x: xp.sum(v * ft.grad(loss)(x)))(x), ft.jit(ft.grad(loss))(x),
            ]  # fmt: skip

    monkeypatch.setattr(adaptive_pooling, "LARGE", 0)
    found = slopes()
    for module in (resampling, adaptive_pooling):
        monkeypatch.setattr(module, "_LEAST", 1 << 60)
    for a, b in zip(found, slopes(), strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-12, atol=1e-13)
