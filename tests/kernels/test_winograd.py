"""Laws of convolution by squares: exact for integers, no less exact than tap by tap, as finite."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

import funct as ft
import funct.array as xp
from funct import ops
from funct.device import host
from funct.kernels import table
from funct.kernels.cpu.convolution import (
    convolution,
    panels,
    weight_gradient,
    winograd,
    winograd_weight,
)  # fmt: skip
from funct.kernels.cpu.quantized import layers
from funct.kernels.cpu.quantized.words import PAIRS
from funct.kernels.quantized import affine as quantized
from funct.kernels.windows import products
from funct.kernels.windows.views import Sliding
from tests import guarded

pytestmark = pytest.mark.skipif(
    not host().has("avx2"), reason="without vectors rows of the table that need none serve"
)

NAMES = ("convolution", "convolution_input", "convolution_weight")
BY_SQUARES = {
    "convolution": winograd.convolution, "convolution_input": winograd.convolution_input,
    "convolution_weight": winograd_weight.convolution_weight,
}  # fmt: skip
BY_TAPS = {
    "convolution": convolution.convolution, "convolution_input": convolution.convolution_input,
    "convolution_weight": weight_gradient.convolution_weight,
}  # fmt: skip


@pytest.fixture(autouse=True)
def always(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Squares also where they are not worth it, and words of pairs."""
    monkeypatch.setattr(layers, "best", lambda: PAIRS)
    for module in (winograd, winograd_weight):
        monkeypatch.setattr(module, "worth", lambda *shapes: True)
    kept = winograd.plan, winograd_weight.plan, layers.convolver
    for plans in kept:
        plans.cache_clear()
    yield
    for plans in kept:
        plans.cache_clear()


def operands(
    n: int, c: int, o: int, size: tuple[int, int], padding: Any, groups: int, make: Any
) -> dict[str, tuple[Any, ...]]:
    """What each of the three maps takes."""
    slide = Sliding((1, 1), padding, (1, 1), groups)
    out = slide.size(size, (3, 3))
    x, w, g = (
        make(shape)
        for shape in ((n, c * groups, *size), (o * groups, c, 3, 3), (n, o * groups, *out))
    )
    return {
        "convolution": (x, w, slide), "convolution_input": (g, w, slide, size),
        "convolution_weight": (x, g, slide, (3, 3)),
    }  # fmt: skip


@st.composite
def cases(draw: st.DrawFn) -> tuple[Any, ...]:
    n, groups = draw(st.integers(1, 5)), draw(st.integers(1, 2))
    c, o = draw(st.integers(1, 40)), draw(st.integers(1, 40))
    padding = tuple([(draw(st.integers(-1, 3)), draw(st.integers(-1, 3))) for _ in range(2)])
    size = [max(1, 3 - sum(p)) + draw(st.integers(0, 12)) for p in padding]
    crop = [max(0, -low) + max(0, -high) for low, high in padding]
    return n, c, o, tuple([s + k for s, k in zip(size, crop)]), padding, groups


@given(cases(), st.sampled_from(NAMES), st.sampled_from(["float32", "float64"]), st.integers(0, 5))
def test_integers_are_exact(case: Any, name: str, dtype: str, layout: int) -> None:
    """In any layout, at any address, for sizes that are odd, cropped and grouped; no word before or
    behind the arrays is touched.
    """
    rng = np.random.default_rng(1)

    def make(shape: tuple[int, ...]) -> Any:
        x = rng.integers(-9, 10, shape).astype(dtype)
        x[x == 0] = 7  # taps of 0 are left to others
        if layout == 1:
            return np.moveaxis(np.ascontiguousarray(np.moveaxis(x, 1, -1)), -1, 1)
        if layout == 2:
            return np.repeat(x, 2, 1)[:, ::2]
        if layout == 3:  # between two words
            bytes_of = np.zeros(x.nbytes + 1, np.uint8)
            y = bytes_of[1:].view(dtype).reshape(shape)
            y[...] = x
            return y
        return x if layout < 4 else guarded.copy(x, at_end=layout == 4)

    given = operands(*case, make)[name]
    with guarded.memory(at_end=layout == 4) if layout >= 4 else nullcontext():
        found = BY_SQUARES[name](*given)
    expected = getattr(products, name)(*given)
    np.testing.assert_array_equal(found, expected, strict=True)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "shape", [(2, 40, 50, (13, 18)), (40, 70, 24, (8, 8)), (3, 16, 90, (30, 41))]
)
def test_no_less_exact_than_tap_by_tap(name: str, shape: Any) -> None:
    """Half the error where channels are summed; weights of few images come tap by tap from shorter
    partial sums.
    """
    rng = np.random.default_rng(2)
    given = operands(
        *shape, ((1, 1), (1, 1)), 1, lambda s: rng.standard_normal(s).astype(np.float32)
    )[name]
    wide = [a.astype(np.float64) if isinstance(a, np.ndarray) else a for a in given]
    exact = BY_TAPS[name](*wide)
    fast, plain = [np.abs(f[name](*given) - exact) for f in (BY_SQUARES, BY_TAPS)]
    most = 2 if name == "convolution_weight" else 0.9
    assert np.sqrt(np.mean(fast**2)) <= most * np.sqrt(np.mean(plain**2))
    assert fast.max() <= (most + 0.5) * plain.max()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("special", [np.inf, -np.inf, np.nan, 3e38])
@pytest.mark.parametrize("operand", [0, 1])
def test_what_is_not_finite_is_found(name: str, special: float, operand: int) -> None:
    """It is left to others, and the table finds them: what is infinite is no NaN."""
    rng = np.random.default_rng(3)
    given = list(
        operands(
            2, 20, 24, (13, 18), ((1, 1), (1, 1)), 1,
            lambda s: rng.standard_normal(s).astype(np.float32),
        )[name]
    )  # fmt: skip
    given[operand] = given[operand].copy()
    given[operand][1, 3, 2, 1] = special
    assert BY_SQUARES[name](*given) is table.UNFIT
    expected = BY_TAPS[name](*given)
    found = table.call(name, given[0].dtype, 1 << 40, *given)
    np.testing.assert_array_equal(found, expected)
    assert not np.isfinite(found).all()
    assert np.isfinite(found).any()


def codes_by_squares(x: Any, zero: int, w: Any, slide: Sliding) -> tuple[Any, Any]:
    """A layer on codes, in pairs, and the same in NumPy."""
    sums = quantized.convolution_accumulate(x, zero, w, None, *slide)
    factor = np.float32(100 / max(1, int(np.abs(sums).max(initial=0))))
    to = quantized.Codes(np.full(len(w), factor), 7, -128, 127, np.int8)
    bias = np.arange(len(w), dtype=np.int32) - 2
    found = layers.convolution(x, zero, w, bias, to, slide)
    return found, quantized.plain_convolution(x, zero, w, bias, to, slide)


@settings(max_examples=settings.default.max_examples // 4)
@given(cases(), st.sampled_from([np.uint8, np.int8]), st.integers(0, 255), st.integers(0, 3))
def test_codes_are_exact(case: Any, dtype: Any, zero: int, far: int) -> None:
    """Also the farthest there are, of any zero point."""
    n, c, o, size, padding, groups = case
    rng = np.random.default_rng(2)
    x, w = rng.integers(0, 256, (n, c * groups, *size)), rng.integers(0, 256, (o * groups, c, 3, 3))
    if far & 1:
        x = x // 128 * 255
    if far & 2:
        w = w // 128 * 255
    x, zero = (x, zero) if dtype == np.uint8 else (x - 128, zero - 128)
    slide = Sliding((1, 1), padding, (1, 1), groups)
    found, expected = codes_by_squares(x.astype(dtype), zero, (w - 128).astype(np.int8), slide)
    if found is not NotImplemented:
        np.testing.assert_array_equal(found, expected, strict=True)


@pytest.mark.parametrize("channels", [1827, 1828])  # four times their largest sums fit, or do not
def test_the_largest_sums_of_codes_are_exact(
    channels: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    plans: list[Any] = []
    monkeypatch.setattr(layers, "plan", lambda *how: plans.append(winograd.plan(*how)) or plans[-1])
    x, w = np.full((1, channels, 4, 4), 255, np.uint8), np.full((4, channels, 3, 3), -128, np.int8)
    w[1::2] = 127
    slide = Sliding((1, 1), ((1, 1), (1, 1)), (1, 1), 1)
    found, expected = codes_by_squares(x, 0, w, slide)
    np.testing.assert_array_equal(found, expected, strict=True)
    assert len(plans) == (channels == 1827)


@pytest.mark.parametrize("name", NAMES)
def test_threads_change_no_bits(name: str) -> None:
    rng = np.random.default_rng(4)
    given = operands(
        9, 37, 70, (13, 18), ((1, 1), (1, 0)), 2,
        lambda s: rng.standard_normal(s).astype(np.float32),
    )[name]  # fmt: skip
    found = []
    for threads in (1, 2, 3):
        with ft.config.using(threads=threads):
            found.append(BY_SQUARES[name](*given))
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])


@pytest.mark.parametrize("name", NAMES[:2])
def test_images_do_not_know_of_each_other(name: str) -> None:
    """The bits of an image are those that it has alone."""
    rng = np.random.default_rng(5)
    x, *rest = operands(
        11, 33, 40, (8, 7), ((1, 1), (1, 1)), 1, lambda s: rng.standard_normal(s).astype(np.float32)
    )[name]
    together = BY_SQUARES[name](x, *rest)
    alone = np.concatenate([BY_SQUARES[name](x[k : k + 1], *rest) for k in range(len(x))])
    np.testing.assert_array_equal(together, alone)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("change", [{"stride": (1, 2)}, {"dilation": (2, 1)}])
def test_what_has_no_squares_is_left_to_others(name: str, change: Any) -> None:
    slide = Sliding((1, 1), ((1, 1), (1, 1)), (1, 1), 1)._replace(**change)
    x, w = np.ones((2, 20, 9, 9), np.float32), np.ones((20, 20, 3, 3), np.float32)
    g = np.ones((2, 20, *slide.size((9, 9), (3, 3))), np.float32)
    given = {
        "convolution": (x, w, slide), "convolution_input": (g, w, slide, (9, 9)),
        "convolution_weight": (x, g, slide, (3, 3)),
    }[name]  # fmt: skip
    assert BY_SQUARES[name](*given) is NotImplemented


@pytest.mark.parametrize("special", [1.0, np.inf])
@pytest.mark.parametrize("name", NAMES)
def test_loops_do_the_same(name: str, special: float) -> None:
    """In machine code, too, what is not finite is computed anew, and has eager execution's bits."""
    rng = np.random.default_rng(6)
    x = rng.standard_normal((3, 2, 20, 13, 18)).astype(np.float32)
    x[1, 1, 3, 2, 1] = special
    other = (24, 20, 3, 3) if name != "convolution_weight" else (2, 24, 13, 18)
    if name == "convolution_input":
        other = (20, 24, 3, 3)
    w = rng.standard_normal((3, *other)).astype(np.float32)
    how = (1, 1), ((1, 1), (1, 1)), (1, 1), 1
    size = {"convolution_input": ((13, 18),), "convolution_weight": ((3, 3),)}

    def f(x: Any, w: Any) -> Any:
        return getattr(ops, name)(x, w, *how, *size.get(name, ()))

    run = ft.jit(lambda x, w: ft.scan(lambda c, v: (c + 1.0, f(*v)), 0.0, (x, w))[1])
    found = run(*[xp.asarray(np.tile(a, (200, 1, 1, 1, 1))) for a in (x, w)])
    expected = [f(xp.asarray(a), xp.asarray(b)) for a, b in zip(x, w)]
    for k, y in enumerate(expected):
        np.testing.assert_array_equal(found[k], y)
        assert np.isfinite(np.asarray(y)).all() == (special == 1.0 or k != 1)


@pytest.mark.parametrize("name", NAMES)
def test_cores_change_no_bits(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor does the number of those that the machine has, who share one image as well."""
    rng = np.random.default_rng(7)
    images = 40 if name == "convolution_weight" else 1
    given = operands(
        images, 20, 70, (17, 18), ((1, 1), (1, 1)), 1,
        lambda s: rng.standard_normal(s).astype(np.float32),
    )[name]  # fmt: skip
    found = []
    for cores in (1, 2, 64):
        monkeypatch.setattr(panels, "host", lambda cores=cores: replace(host(), cores=cores))
        for module in (winograd, winograd_weight):
            module.plan.cache_clear()
        found.append(BY_SQUARES[name](*given))
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])


@pytest.mark.parametrize("name", NAMES[:2])
def test_a_result_is_made_of_what_its_taps_read(name: str) -> None:
    """Other pixels change no bits; nor do pixels under taps that are masked."""
    rng = np.random.default_rng(8)
    x, w, *rest = operands(
        2, 33, 40, (12, 11), ((1, 1), (1, 1)), 1,
        lambda s: rng.standard_normal(s).astype(np.float32),
    )[name]  # fmt: skip
    changed = x.copy()
    changed[:, 3, 5, 6] = 1e6
    ones, near = np.ones_like(w[:1, :1]), np.zeros((1, 1, 12, 11), np.float32)
    near[..., 5, 6] = 1
    masked = w.copy()
    masked[:, :, 2, 1:] = masked[:, :, 1, 2] = 0  # what a causal kernel does not read
    for kernel in (w, masked):
        taps = (kernel[:1, :1] != 0) * ones
        how = rest if name == "convolution" else [rest[0], (12, 11)]
        reached = BY_TAPS[name](near, taps.astype(np.float32), *how)[0, 0] != 0
        one, other = (table.call(name, x.dtype, 1 << 40, a, kernel, *rest) for a in (x, changed))
        assert reached.sum() == (taps != 0).sum()
        np.testing.assert_array_equal(one[..., ~reached], other[..., ~reached])
        assert (one[..., reached] != other[..., reached]).all()
    assert BY_SQUARES[name](x, masked, *rest) is table.UNFIT


@pytest.mark.parametrize(("images", "side"), [(8, 4), (8, 8), (64, 4), (3, 20), (1, 20)])
def test_units_that_write_all_sums_have_squares_enough(images: int, side: int) -> None:
    """Or are two."""
    shape, slide = (images, 64, side, side), Sliding((1, 1), ((1, 1),) * 2, (1, 1), 1)
    made = winograd_weight.plan("f32", shape, shape, slide)
    assert made is not None
    units, together, of_image = (
        int(made.job[made.fields.place(n)]) for n in ("units", "unit_images", "square_rows")
    )
    assert units <= 2 or together * of_image**2 >= winograd_weight._FEWEST // 2
