"""Quantization kernels against integer and rational arithmetic."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from funct.errors import QuantizationError
from funct.kernels.quantized.affine import (
    convolution_accumulate,
    dequantize,
    linear_accumulate,
    output_multiplier,
    quantize,
    requantize,
)

BYTES = hnp.arrays(np.uint8, hnp.array_shapes(min_dims=2, max_dims=3, max_side=5))
SCALES = st.floats(2.0**-20, 2.0**20, width=32)
BIASES = st.integers(-(2**30), 2**30)
Case = dict[str, Any]


def nearest_code(value: Fraction, zero_point: int, qmin: int, qmax: int) -> int:
    """Round half to even in exact arithmetic, then saturate."""
    return min(max(round(value) + zero_point, qmin), qmax)


# ------------------------------------------------------------------------- quantize, dequantize


@given(
    x=hnp.arrays(np.float32, 8, elements=st.floats(width=32, allow_nan=False)),
    scale=SCALES,
    zero_point=st.integers(0, 255),
)
def test_quantize_is_the_formula_of_onnx(
    x: NDArray[np.float32], scale: float, zero_point: int
) -> None:
    """Codes are saturate(rint(x / scale) + zero_point), with the division rounded to float32."""
    with np.errstate(over="ignore"):
        steps = x / np.float32(scale)
        q = quantize(x, np.float32(scale), zero_point, 0, 255, np.uint8, 0)
    bounded = np.clip(steps.astype(np.float64), -1e6, 1e6)
    expected = [nearest_code(Fraction(float(v)), zero_point, 0, 255) for v in bounded]
    assert q.dtype == np.uint8
    assert q.tolist() == expected


def test_quantize_rounds_half_to_even_before_the_zero_point() -> None:
    """An odd zero point does not change which neighbour a tie goes to."""
    x = np.array([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5], np.float32)
    for zero_point in (128, 129):
        q = quantize(x, np.float32(1), zero_point, 0, 255, np.uint8, 0)
        assert (q.astype(int) - zero_point).tolist() == [-2, -2, 0, 0, 2, 2]


@pytest.mark.parametrize(("dtype", "qmin", "qmax"), [(np.uint8, 0, 255), (np.int8, -127, 127)])
def test_quantize_saturates_and_maps_nan_to_the_lowest_code(
    dtype: Any, qmin: int, qmax: int
) -> None:
    """Infinities and large numbers give the extreme codes, NaN the lowest."""
    x = np.array([np.inf, 1e30, -1e30, -np.inf, np.nan], np.float32)
    q = quantize(x, np.float32(0.5), 3, qmin, qmax, dtype, 0)
    assert q.tolist() == [qmax, qmax, qmin, qmin, qmin]


def test_quantize_to_int32_saturates_at_its_limits() -> None:
    """The limits of int32, which float32 cannot hold, are reached and not passed."""
    x = np.array([3e9, 2.0**31, -3e9, 7.0], np.float32)
    limits = np.iinfo(np.int32)
    q = quantize(x, np.float32(1), 0, limits.min, limits.max, np.int32, 0)
    assert q.tolist() == [limits.max, limits.max, limits.min, 7]


@given(q=BYTES, axis=st.integers(-1, 1), data=st.data())
def test_per_channel_is_per_tensor_on_each_slice(
    q: NDArray[np.uint8], axis: int, data: st.DataObject
) -> None:
    """One scale and zero point per slice give what each slice gives alone, both ways."""
    n = q.shape[axis]
    scale = data.draw(hnp.arrays(np.float32, n, elements=SCALES))
    zero_point = data.draw(hnp.arrays(np.uint8, n))
    x = dequantize(q, scale, zero_point, axis, np.float32)
    back = quantize(x, scale, zero_point, 0, 255, np.uint8, axis)
    for i in range(n):
        one = np.take(q, i, axis)
        real = dequantize(one, scale[i], zero_point[i], 0, np.float32)
        assert np.array_equal(np.take(x, i, axis), real)
        assert np.array_equal(
            np.take(back, i, axis), quantize(real, scale[i], zero_point[i], 0, 255, np.uint8, 0)
        )


@given(q=BYTES, scale=SCALES, zero_point=st.integers(0, 255))
def test_codes_survive_the_way_to_reals_and_back(
    q: NDArray[np.uint8], scale: float, zero_point: int
) -> None:
    """Quantize inverts dequantize, so fake quantization is idempotent."""
    x = dequantize(q, np.float32(scale), zero_point, 0, np.float32)
    assert x.dtype == np.float32
    assert np.array_equal(quantize(x, np.float32(scale), zero_point, 0, 255, np.uint8, 0), q)


@given(q=hnp.arrays(np.int32, 5), scale=SCALES)
def test_dequantize_of_int32_rounds_once_before_the_scale(
    q: NDArray[np.int32], scale: float
) -> None:
    """A bias is float32(q) * scale, also where float32 cannot hold q."""
    x = dequantize(q, np.float32(scale), np.int32(0), 0, np.float32)
    assert np.array_equal(x, q.astype(np.float32) * np.float32(scale))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_dtypes_are_those_asked_for(dtype: Any) -> None:
    """Dequantize gives the floating dtype it is asked for, and quantize takes it back."""
    q = np.arange(256, dtype=np.uint8)
    x = dequantize(q, np.float32(0.25), np.uint8(100), 0, dtype)
    assert x.dtype == dtype
    assert np.array_equal(quantize(x, np.float32(0.25), np.uint8(100), 0, 255, np.uint8, 0), q)


# ---------------------------------------------------------------------------------- requantize


@given(
    acc=hnp.arrays(np.int32, (3, 2), elements=st.integers(-(2**31), 2**31 - 1)),
    scales=hnp.arrays(np.float32, (2, 3), elements=st.floats(2.0**-10, 2.0**10, width=32)),
    zero_point=st.integers(0, 255),
)
def test_requantize_is_one_product_in_float32(
    acc: NDArray[np.int32], scales: NDArray[np.float32], zero_point: int
) -> None:
    """The sum is rounded to float32, multiplied, rounded half to even, shifted and saturated."""
    multiplier = output_multiplier(scales[0, 0], scales[1, :2], scales[0, 2])
    y = requantize(acc, multiplier, zero_point, 0, 255, np.uint8, 1)
    for i, j in itertools.product(range(3), range(2)):
        product = np.float32(acc[i, j]) * multiplier[j]
        assert y[i, j] == nearest_code(Fraction(float(product)), zero_point, 0, 255)


def test_requantize_rounds_ties_to_even() -> None:
    """With a multiplier of 1/2 every odd sum is a tie."""
    acc = np.array([-5, -3, -1, 1, 3, 5], np.int32)
    y = requantize(acc, np.float32(0.5), 101, 0, 255, np.uint8, 0)
    assert (y.astype(int) - 101).tolist() == [-2, -2, 0, 0, 2, 2]


def test_requantize_from_the_zero_point_up_is_relu() -> None:
    """With qmin at the zero point negative sums give the code of zero."""
    acc = np.array([-70, -1, 0, 1, 70], np.int32)
    y = requantize(acc, np.float32(1), 20, 20, 255, np.uint8, 0)
    assert y.tolist() == [20, 20, 20, 21, 90]


def test_multiplier_rounds_the_product_before_the_division() -> None:
    """3 · 0.25 · 0.6 / 0.9 is 0.50000003 by the float32 scales; the multiplier makes it a tie."""
    x, w, y = np.float32(0.25), np.float32(0.6), np.float32(0.9)
    multiplier = output_multiplier(x, w, y)
    assert multiplier == (x * w) / y
    assert requantize(np.array([3], np.int32), multiplier, 0, 0, 255, np.uint8, 0).tolist() == [0]


# -------------------------------------------------------------------------------------- layers


@given(x=BYTES, zero_point=st.integers(0, 255), outputs=st.integers(0, 4), data=st.data())
def test_linear_is_exact(
    x: NDArray[np.uint8], zero_point: int, outputs: int, data: st.DataObject
) -> None:
    """The sums are those of int64 arithmetic."""
    w = data.draw(hnp.arrays(np.int8, (outputs, x.shape[-1])))
    bias = data.draw(st.none() | hnp.arrays(np.int32, outputs, elements=BIASES))
    expected = (x.astype(np.int64) - zero_point) @ w.T.astype(np.int64)
    expected += 0 if bias is None else bias
    acc = linear_accumulate(x, np.uint8(zero_point), w, bias)
    assert acc.dtype == np.int32
    assert np.array_equal(acc, expected)


@pytest.mark.parametrize("inputs", [500, 520, 40_000])
def test_linear_is_exact_on_both_sides_of_float32(inputs: int, rng: np.random.Generator) -> None:
    """Extreme codes, just below and above 2^24 and far beyond it, lose nothing."""
    x = rng.integers(254, 256, (3, inputs)).astype(np.uint8)
    w = rng.choice([-127, 126, 127], (4, inputs), p=[0.02, 0.49, 0.49]).astype(np.int8)
    expected = x.astype(np.int64) @ w.T.astype(np.int64)
    assert np.array_equal(linear_accumulate(x, 0, w, None), expected)


def test_linear_refuses_what_int32_cannot_hold() -> None:
    """A sum beyond int32 is an error, not a number of the other sign."""
    x, w = np.full((1, 4), 255, np.uint8), np.full((1, 4), 127, np.int8)
    bias = np.array([2**31 - 1], np.int32)
    with pytest.raises(QuantizationError, match="must fit into int32, got 2147613187"):
        linear_accumulate(x, 0, w, bias)
    assert linear_accumulate(x, 0, -w, bias).tolist() == [[2**31 - 1 - 4 * 255 * 127]]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """A small convolution of codes: x (N, C, *S), w (O, C / groups, *K), static parameters."""
    d = draw(st.integers(1, 2))
    groups, c, o = draw(st.integers(1, 3)), draw(st.integers(1, 3)), draw(st.integers(1, 3))
    kernel = draw(st.tuples(*[st.integers(1, 3)] * d))
    size = draw(st.tuples(*[st.integers(5, 7)] * d))
    return {
        "x": draw(hnp.arrays(np.uint8, (2, groups * c, *size))),
        "x_zero_point": draw(st.integers(0, 255)),
        "w": draw(hnp.arrays(np.int8, (groups * o, c, *kernel))),
        "bias": draw(st.none() | hnp.arrays(np.int32, groups * o, elements=BIASES)),
        "stride": draw(st.tuples(*[st.integers(1, 2)] * d)),
        "padding": draw(st.tuples(*[st.tuples(*[st.integers(0, 2)] * 2)] * d)),
        "dilation": draw(st.tuples(*[st.integers(1, 2)] * d)),
        "groups": groups,
    }


def naive_convolution(
    x: NDArray[Any], x_zero_point: int, w: NDArray[Any], bias: Any, stride: Any, padding: Any,
    dilation: Any, groups: int,
) -> NDArray[np.int64]:  # fmt: skip
    """Add up, tap by tap and group by group, in int64."""
    d, out, c = w.ndim - 2, len(w) // groups, w.shape[1]
    padded = np.pad(x.astype(np.int64) - x_zero_point, [(0, 0), (0, 0), *padding])
    size = [
        (n - r * (k - 1) - 1) // s + 1
        for n, k, s, r in zip(padded.shape[2:], w.shape[2:], stride, dilation)
    ]
    acc = np.zeros((len(x), len(w), *size), np.int64)
    for tap in itertools.product(*map(range, w.shape[2:])):
        at = tuple(
            slice(t * r, t * r + (n - 1) * s + 1, s)
            for t, r, n, s in zip(tap, dilation, size, stride)
        )
        for g in range(groups):
            ins, outs = slice(g * c, g * c + c), slice(g * out, g * out + out)
            taps = w[(outs, slice(None), *tap)].astype(np.int64)  # (O / groups, C / groups)
            acc[:, outs] += np.einsum("nc...,oc->no...", padded[(slice(None), ins, *at)], taps)
    return acc + (0 if bias is None else bias.reshape(-1, *[1] * d))


@settings(max_examples=3 * settings.default.max_examples)
@given(cases())
def test_convolution_is_exact(case: Case) -> None:
    """The sums are those of int64 arithmetic; padding counts as real zero."""
    acc = convolution_accumulate(**case)
    assert acc.dtype == np.int32
    assert np.array_equal(acc, naive_convolution(**case))


@pytest.mark.parametrize("channels", [57, 59, 700])
def test_convolution_is_exact_on_both_sides_of_float32(
    channels: int, rng: np.random.Generator
) -> None:
    """Extreme codes, just below and above 2^24 and beyond it, lose nothing."""
    x = rng.integers(254, 256, (1, channels, 4, 4)).astype(np.uint8)
    w = rng.integers(126, 128, (2, channels, 3, 3)).astype(np.int8)
    layer = {"bias": None, "stride": (1, 1), "padding": ((1, 0), (0, 1)), "dilation": (1, 1)}
    acc = convolution_accumulate(x, 0, w, groups=1, **layer)  # type: ignore[arg-type]
    assert np.array_equal(acc, naive_convolution(x, 0, w, groups=1, **layer))
