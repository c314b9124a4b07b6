"""Observers: how scale and zero point are found from the values that a tensor takes.

An observer is a frozen record of settings. What it has seen is a separate value, its state:

    state = observer.init()
    state = observer.observe(state, x)
    state = observer.merge(state_of_these_batches, state_of_those)
    scale, zero_point = observer.qparams(state)

Nothing is changed in place, so states of several processes can be merged: observing a, then b,
equals merging what was observed on a with what was observed on b. `HistogramObserver` is in
`histogram.py`.

Note [Scale and zero point]
    The range is widened to contain 0, so that 0 has a code and padding is exact.
    affine:    scale = (max - min) / (quant_max - quant_min)
               zero_point = quant_min - rint(min / scale), clipped to [quant_min, quant_max]
    symmetric: scale = max(|min|, |max|) / ((quant_max - quant_min) / 2); for int8 weights in
               [-127, 127] that is max |w| / 127. zero_point is 0, for unsigned codes the middle.
    A range of zero length has scale 1. Scales are float32, rounded once.
"""

from __future__ import annotations

from typing import Any, ClassVar

import attrs
import numpy as np

from funct.errors import QuantizationError
from funct.quant.spec import QParams, QScheme, code_dtype

__all__ = [
    "MinMaxObserver", "MovingAverageMinMaxObserver", "MovingRange", "Observer",
    "PerChannelMinMaxObserver", "Range",
]  # fmt: skip

Floats = np.ndarray[Any, np.dtype[np.float64]]
_SMALLEST = np.finfo(np.float32).tiny


@attrs.frozen(kw_only=True)
class Observer:
    """Base of the observers: the target of the parameters that they find.

    Example:
        >>> from funct import quant
        >>> observer = quant.MinMaxObserver(dtype="int8", qscheme="per_tensor_symmetric")
        >>> isinstance(observer, quant.Observer), observer.dtype
        (True, dtype('int8'))
    """

    dtype: np.dtype[Any] = attrs.field(default=np.dtype(np.uint8), converter=code_dtype)
    qscheme: QScheme = "per_tensor_affine"
    quant_min: int | None = None
    quant_max: int | None = None
    ch_axis: int | None = None

    per_channel: ClassVar[bool] = False

    def __attrs_post_init__(self) -> None:
        if self.per_channel != (self.qscheme == "per_channel_symmetric"):
            raise QuantizationError(
                f"{type(self).__name__} is {'' if self.per_channel else 'not '}per channel, "
                f"got qscheme {self.qscheme}"
            )

    def init(self) -> Any:
        """The state before any value."""
        raise NotImplementedError(f"{type(self).__name__} must define init")

    def observe(self, state: Any, x: Any) -> Any:
        """The state after the values of x too."""
        raise NotImplementedError(f"{type(self).__name__} must define observe")

    def merge(self, a: Any, b: Any) -> Any:
        """The state after what a has seen and then what b has seen."""
        raise NotImplementedError(f"{type(self).__name__} must define merge")

    def qparams(self, state: Any) -> QParams:
        """scale and zero_point; raises QuantizationError when nothing was observed."""
        return self.qparams_of(*self.span(state))

    def span(self, state: Any) -> tuple[Floats, Floats]:
        """The range that the codes are to cover: its ends."""
        raise NotImplementedError(f"{type(self).__name__} must define span")

    @property
    def limits(self) -> tuple[int, int]:
        """The smallest and the largest code in use."""
        info = np.iinfo(self.dtype)
        low = int(info.min) if self.quant_min is None else self.quant_min
        return low, int(info.max) if self.quant_max is None else self.quant_max

    def qparams_of(self, low: Floats, high: Floats) -> QParams:
        """scale and zero_point of a range; see Note [Scale and zero point]."""
        if np.any(low > high):
            raise QuantizationError("the observer has seen no values")
        low, high = np.minimum(low, 0.0), np.maximum(high, 0.0)
        first, last = self.limits
        symmetric = self.qscheme != "per_tensor_affine"
        width = 2 * np.maximum(-low, high) if symmetric else high - low
        exact = np.where(width > 0, width / (last - first), 1.0)
        # the floor keeps a product of two scales away from 0
        scale = np.asarray(np.maximum(exact, _SMALLEST)).astype(np.float32)
        if not np.all(np.isfinite(scale)):
            raise QuantizationError(f"values up to {np.max(high - low)} have no float32 scale")
        if symmetric:
            zero = np.full(scale.shape, 0 if first < 0 else (first + last + 1) // 2)
        else:
            zero = np.clip(first - np.rint(low / scale), first, last)
        return scale, np.asarray(zero).astype(self.dtype)


@attrs.frozen(eq=False)
class Range:
    """Smallest and largest value seen: 0-d, or one per channel."""

    low: Floats
    high: Floats


def _nothing() -> Range:
    return Range(np.asarray(np.inf), np.asarray(-np.inf))


@attrs.frozen(kw_only=True)
class MinMaxObserver(Observer):
    """The smallest and the largest value ever seen. Batches may come in any order.

    Example:
        >>> import numpy as np
        >>> observer = MinMaxObserver()
        >>> state = observer.observe(observer.init(), np.array([-1.0, 4.1]))
        >>> observer.qparams(state)
        (array(0.02, dtype=float32), array(50, dtype=uint8))
    """

    def init(self) -> Range:
        """An empty range."""
        return _nothing()

    def observe(self, state: Range, x: Any) -> Range:
        """The range widened to contain x."""
        values = np.asarray(x, np.float64)
        if not values.size:
            return state
        over = tuple([a for a in range(values.ndim) if a != self.ch_axis])
        return self.merge(state, Range(np.asarray(values.min(over)), np.asarray(values.max(over))))

    def merge(self, a: Range, b: Range) -> Range:
        """The union of both ranges."""
        return Range(np.asarray(np.minimum(a.low, b.low)), np.asarray(np.maximum(a.high, b.high)))

    def span(self, state: Range) -> tuple[Floats, Floats]:
        """The range seen."""
        return state.low, state.high


@attrs.frozen(kw_only=True)
class PerChannelMinMaxObserver(MinMaxObserver):
    """Smallest and largest value of each channel along ch_axis: the observer of weights.

    Example:
        >>> from funct import quant
        >>> observer = quant.PerChannelMinMaxObserver()
        >>> state = observer.observe(observer.init(), [[1.27, 0.0], [0.0, -2.54]])
        >>> observer.qparams(state)[0].tolist()
        [0.009960784576833248, 0.019921569153666496]
    """

    per_channel: ClassVar[bool] = True

    dtype: np.dtype[Any] = attrs.field(default=np.dtype(np.int8), converter=code_dtype)
    qscheme: QScheme = "per_channel_symmetric"
    ch_axis: int | None = 0


@attrs.frozen(eq=False)
class MovingRange:
    """The range of the first batch, and Σ constant (1 - constant)^(n - i) range_i over all n."""

    count: int
    first: Range
    total: Range


@attrs.frozen(kw_only=True)
class MovingAverageMinMaxObserver(Observer):
    """An exponentially weighted mean of each batch's range; the order of batches matters.

    Maths: range = (1 - c) range + c range_of_batch, from the first batch's range on.
    Example:
        >>> from funct import quant
        >>> observer = quant.MovingAverageMinMaxObserver(averaging_constant=0.5)
        >>> state = observer.init()
        >>> for batch in ([0.0, 1.0], [0.0, 3.0]):
        ...     state = observer.observe(state, batch)
        >>> round(255 * float(observer.qparams(state)[0]), 4)
        2.0
    """

    averaging_constant: float = 0.01

    def init(self) -> MovingRange:
        """No batch yet."""
        zero = Range(np.asarray(0.0), np.asarray(0.0))
        return MovingRange(0, _nothing(), zero)

    def observe(self, state: MovingRange, x: Any) -> MovingRange:
        """One more batch."""
        values = np.asarray(x, np.float64)
        if not values.size:
            return state
        seen = Range(np.asarray(values.min()), np.asarray(values.max()))
        return self.merge(state, MovingRange(1, seen, _weighted(self.averaging_constant, seen)))

    def merge(self, a: MovingRange, b: MovingRange) -> MovingRange:
        """a's batches, then b's. The weights are powers, so runs of batches compose exactly."""
        if not a.count or not b.count:
            return a if a.count else b
        older = _weighted((1 - self.averaging_constant) ** b.count, a.total)
        return MovingRange(a.count + b.count, a.first, _plus(older, b.total))

    def span(self, state: MovingRange) -> tuple[Floats, Floats]:
        """The mean range."""
        if not state.count:
            return state.first.low, state.first.high
        start = _weighted((1 - self.averaging_constant) ** state.count, state.first)
        mean = _plus(start, state.total)
        return mean.low, mean.high


def _weighted(weight: float, r: Range) -> Range:
    return Range(np.asarray(weight * r.low), np.asarray(weight * r.high))


def _plus(a: Range, b: Range) -> Range:
    return Range(np.asarray(a.low + b.low), np.asarray(a.high + b.high))
