"""Observers: what they find, and that their states merge."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from funct import quant
from funct.errors import QuantizationError
from funct.kernels.quantized.affine import dequantize, quantize

MERGING = [
    quant.MinMaxObserver(),
    quant.MovingAverageMinMaxObserver(averaging_constant=0.1),
    quant.HistogramObserver(),
    quant.HistogramObserver(bins=16),
    quant.PerChannelMinMaxObserver(ch_axis=1),
]
ORDERLESS = [MERGING[0], MERGING[2], MERGING[3], MERGING[4]]


def seen(observer: quant.Observer, batches: list[Any]) -> Any:
    """The state after these batches."""
    state = observer.init()
    for x in batches:
        state = observer.observe(state, x)
    return state


def found(observer: quant.Observer, batches: list[Any]) -> list[Any]:
    """scale and zero point after these batches, as lists."""
    return [v.tolist() for v in observer.qparams(seen(observer, batches))]


def draw(seed: int, count: int) -> list[Any]:
    """Batches of very different ranges."""
    rng = np.random.default_rng(seed)
    return [rng.normal(size=(5, 3)) * 10.0 ** rng.integers(-6, 4) for _ in range(count)]


@pytest.mark.parametrize("observer", MERGING, ids=repr)
@given(seed=st.integers(0, 2**32), split=st.integers(0, 6))
def test_merging_is_observing_one_after_the_other(
    observer: quant.Observer, seed: int, split: int
) -> None:
    """merge(state of a, state of b) has the parameters of a followed by b."""
    batches = draw(seed, 6)
    merged = observer.merge(seen(observer, batches[:split]), seen(observer, batches[split:]))
    scale, zero = observer.qparams(merged)
    expected, expected_zero = observer.qparams(seen(observer, batches))
    np.testing.assert_allclose(scale, expected, rtol=1e-6)
    np.testing.assert_array_equal(zero, expected_zero)


@pytest.mark.parametrize("observer", ORDERLESS, ids=repr)
@given(seed=st.integers(0, 2**32))
def test_the_order_of_batches_does_not_matter(observer: quant.Observer, seed: int) -> None:
    """Ranges and histograms depend on the values alone."""
    batches = draw(seed, 5)
    assert found(observer, batches) == found(observer, batches[::-1])


@given(seed=st.integers(0, 2**32))
def test_a_histogram_counts_every_value_in_its_bin(seed: int) -> None:
    """However the values came, each lies in the bin that holds it; zeros are left out."""
    observer = quant.HistogramObserver(bins=64)
    batches = draw(seed, 4)
    state = seen(observer, [*batches, np.zeros(9)])
    values = np.concatenate([b.ravel() for b in batches])
    bins = np.floor(np.ldexp(values, -state.exponent)).astype(np.int64) - state.start
    assert len(state.counts) <= 64
    np.testing.assert_array_equal(np.bincount(bins, minlength=len(state.counts)), state.counts)


def test_a_histogram_joins_values_far_apart() -> None:
    """A tiny and a huge batch merge, in either order."""
    observer = quant.HistogramObserver()
    batches = [np.array([-1e-30, 1e-30]), np.array([3e38]), np.zeros(3), np.array([5.0])]
    state = seen(observer, batches)
    assert state.counts.sum() == 4
    assert found(observer, batches) == found(observer, batches[::-1])


@pytest.mark.parametrize(
    ("dtype", "limits", "qscheme", "values", "scale", "zero"),
    [
        ("uint8", (None, None), "per_tensor_affine", [-1.0, 4.1], 0.02, 50),
        ("uint8", (None, None), "per_tensor_affine", [1.0, 5.1], 0.02, 0),
        ("uint8", (None, None), "per_tensor_affine", [-5.1, -1.0], 0.02, 255),
        ("int8", (None, None), "per_tensor_affine", [-1.0, 4.1], 0.02, -78),
        ("int8", (-127, 127), "per_tensor_symmetric", [-1.0, 2.54], 0.02, 0),
        ("int8", (None, None), "per_tensor_symmetric", [-2.55, 1.0], 0.02, 0),
        ("uint8", (None, None), "per_tensor_symmetric", [-2.55, 1.0], 0.02, 128),
        ("uint8", (0, 127), "per_tensor_affine", [0.0, 2.54], 0.02, 0),
        ("uint8", (None, None), "per_tensor_affine", [0.0, 0.0], 1.0, 0),
    ],
)
def test_formulas(
    dtype: str, limits: Any, qscheme: Any, values: list[float], scale: float, zero: int
) -> None:
    """scale and zero point are those of the stated formulas, with 0 in the range."""
    observer = quant.MinMaxObserver(
        dtype=dtype, qscheme=qscheme, quant_min=limits[0], quant_max=limits[1]
    )
    got_scale, got_zero = observer.qparams(seen(observer, [np.array(values, np.float32)]))
    assert got_scale.dtype == np.float32
    np.testing.assert_allclose(got_scale, scale, rtol=1e-6)
    assert got_zero.dtype == np.dtype(dtype)
    assert got_zero == zero


def test_moving_average() -> None:
    """The range moves by a hundredth towards that of each batch, from the first one on."""
    observer = quant.MovingAverageMinMaxObserver()
    low, high = observer.span(seen(observer, [np.array([-1.0, 1.0]), np.array([-2.0, 3.0])]))
    assert low == pytest.approx(-1.0 + 0.01 * -1.0)
    assert high == pytest.approx(1.0 + 0.01 * 2.0)


def test_each_channel_has_its_scale() -> None:
    """The scale of a channel is its largest weight over 127, and 1 where all weights are 0."""
    observer = quant.PerChannelMinMaxObserver(quant_min=-127, quant_max=127)
    w = np.array([[1.27, -0.5], [0.0, 0.0], [0.1, -2.54]], np.float32)
    scale, zero = observer.qparams(seen(observer, [w]))
    np.testing.assert_array_equal(scale, [np.float32(1.27) / np.float32(127), 1, np.float32(0.02)])
    assert zero.tolist() == [0, 0, 0]


def error_of(observer: quant.Observer, x: Any) -> float:
    """Squared error of quantizing x with what the observer finds in x."""
    scale, zero = observer.qparams(seen(observer, [x]))
    codes = quantize(x, scale, zero, 0, 255, np.uint8, 0)
    return float(((dequantize(codes, scale, zero, 0, np.float32) - x) ** 2).sum())


def test_clipping_outliers_beats_the_whole_range(rng: np.random.Generator) -> None:
    """With rare large values the histogram's range has a much smaller error than min and max."""
    x = rng.normal(size=1_000_000).astype(np.float32)
    x[:3] = [25.0, -30.0, 28.0]
    assert error_of(quant.HistogramObserver(), x) < 0.5 * error_of(quant.MinMaxObserver(), x)


def test_without_outliers_the_histogram_keeps_the_range(rng: np.random.Generator) -> None:
    """Evenly spread values are not clipped to any harm."""
    x = rng.uniform(-1, 3, 100_000).astype(np.float32)
    assert error_of(quant.HistogramObserver(), x) < 1.02 * error_of(quant.MinMaxObserver(), x)


@pytest.mark.parametrize("observer", MERGING, ids=repr)
def test_nothing_seen_is_an_error(observer: quant.Observer) -> None:
    """An observer without values has no parameters; empty batches are no values."""
    empty = seen(observer, [np.zeros((0, 3))])
    with pytest.raises(QuantizationError, match="has seen no values"):
        observer.qparams(empty)


@pytest.mark.parametrize("observer", MERGING, ids=repr)
def test_observing_changes_no_state(observer: quant.Observer, rng: np.random.Generator) -> None:
    """A state is a value: what is observed later does not show in it."""
    state = seen(observer, [rng.normal(size=(4, 3))])
    before = [v.tolist() for v in observer.qparams(state)]
    observer.observe(state, 100 * rng.normal(size=(4, 3)))
    assert [v.tolist() for v in observer.qparams(state)] == before
