"""`HistogramObserver`: clip rare extremes where that makes the total rounding error smaller.

Note [Bins that merge]
    A bin is [i 2^k, (i + 1) 2^k): its width is a power of two and its edges are multiples of the
    width. Two bins of one width are then exactly one bin of the double width, so histograms merge
    without splitting a count, in any order, and k is the smallest with which the whole range
    fits the number of bins: the state depends on the values alone, not on how they came.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import Any

import attrs
import numpy as np

from funct.quant.observer import Floats, Observer

__all__ = ["Histogram", "HistogramObserver"]

Counts = np.ndarray[Any, np.dtype[np.int64]]
_FINEST = -149  # float32 has no smaller step
_STEP = 1e-5  # share of all values that one step of the search leaves out


@attrs.frozen(eq=False)
class Histogram:
    """counts[j] values lie in bin number start + j, of width 2^exponent; zeros are not counted.

    low and high are the ends of all that was seen, zeros included.
    """

    exponent: int
    start: int
    counts: Counts
    low: float
    high: float


@attrs.frozen(kw_only=True)
class HistogramObserver(Observer):
    """A histogram of all values; the range is searched that has the least squared error.

    bins: at most so many; more than half of them are in use.
    Example:
        >>> from funct import quant
        >>> import numpy as np
        >>> values = np.append(np.linspace(-1.0, 1.0, 10_000), 5.0)  # one value far away
        >>> observer = quant.HistogramObserver(quant_min=0, quant_max=15)
        >>> state = observer.observe(observer.init(), values)
        >>> round(15 * float(observer.qparams(state)[0]), 1)  # the range that is kept, out of 6
        2.0

    Source: torchao's HistogramObserver: the same search and the same norm. There zeros count as
    if they were rounded, the whole range is no candidate, and bins are split when the range grows.
    """

    bins: int = 2048

    def init(self) -> Histogram:
        """No value yet."""
        return Histogram(_FINEST, 0, np.zeros(0, np.int64), np.inf, -np.inf)

    def observe(self, state: Histogram, x: Any) -> Histogram:
        """The histogram with the values of x."""
        values = np.asarray(x, np.float64).ravel()
        if not values.size:
            return state
        low, high = float(values.min()), float(values.max())
        exponent = self._exponent(low, high)
        # exact: a power of two. 0 has a code whatever the range, so zeros are no error to search
        bins = np.floor(np.ldexp(values[values != 0], -exponent))
        start = bins.min() if bins.size else 0.0
        counts = np.bincount((bins - start).astype(np.int64))
        return self.merge(state, Histogram(exponent, int(start), counts, low, high))

    def merge(self, a: Histogram, b: Histogram) -> Histogram:
        """The histogram of both."""
        low, high = min(a.low, b.low), max(a.high, b.high)
        if low > high:
            return a
        exponent = max(a.exponent, b.exponent, self._exponent(low, high))
        parts = [_coarser(h, exponent) for h in (a, b) if h.counts.size]
        start = min((first for first, _ in parts), default=0)
        end = max((first + len(counts) for first, counts in parts), default=0)
        total = np.zeros(end - start, np.int64)
        for first, counts in parts:
            total[first - start : first - start + len(counts)] += counts
        return Histogram(exponent, start, total, low, high)

    def span(self, state: Histogram) -> tuple[Floats, Floats]:
        """The range with the least squared error of rounding and clipping."""
        if state.low >= state.high or not state.counts.size:
            return np.asarray(state.low), np.asarray(state.high)
        first, last = self.limits
        left, right = _search(state.counts, last - first + 1)
        width = np.ldexp(1.0, state.exponent)
        low, high = (state.start + left) * width, (state.start + right + 1) * width
        # the outermost bins are not full: never go beyond what was seen
        return np.asarray(max(low, state.low)), np.asarray(min(high, state.high))

    def _exponent(self, low: float, high: float) -> int:
        """The smallest k for which [low, high] lies in that many bins of width 2^k."""
        if low == high:
            return _FINEST
        k = max(int(np.frexp((high - low) / self.bins)[1]) - 1, _FINEST)
        while np.floor(np.ldexp(high, -k)) - np.floor(np.ldexp(low, -k)) >= self.bins:
            k += 1
        return k


def _coarser(h: Histogram, exponent: int) -> tuple[int, Counts]:
    """First bin number and counts with wider bins."""
    shift = exponent - h.exponent
    # Python's integers: far from 0 a fine bin's number has more than 64 bits
    bins = [(h.start + j) >> shift for j in range(len(h.counts))]
    total = np.zeros(bins[-1] - bins[0] + 1, np.int64)
    np.add.at(total, [b - bins[0] for b in bins], h.counts)
    return bins[0], total


def _search(counts: Counts, levels: int) -> tuple[int, int]:
    """First and last bin of the range to keep: shrink it while the squared error falls."""
    total = int(counts.sum())
    below = (np.cumsum(counts) / total).tolist()
    left, right = 0, len(counts) - 1
    alpha, beta, least = 0.0, 1.0, _squared_error(counts, left, right, levels)
    while alpha < beta and left < right:
        low = min(max(bisect_left(below, alpha + _STEP), left), right)
        high = max(min(bisect_right(below, beta - _STEP) - 1, right), left)
        if low - left > right - high:
            alpha, candidate = alpha + _STEP, (low, right)
        else:
            beta, candidate = beta - _STEP, (left, high)
        if candidate == (left, right):
            continue
        error = _squared_error(counts, *candidate, levels)
        if error > least:
            break
        least, (left, right) = error, candidate
    return left, right


def _squared_error(counts: Counts, left: int, right: int, levels: int) -> float:
    """Squared error when bins left..right are covered by `levels` codes; in bin widths.

    The values of a bin are taken for spread evenly: ∫ t² dt over each piece that one code covers.
    """
    step = (right - left + 1) / levels
    begin = np.arange(len(counts), dtype=np.float64) - left
    end = begin + 1
    first = np.clip(np.floor(begin / step), 0, levels - 1)
    last = np.clip(np.floor(end / step), 0, levels - 1)
    head = _cubed(begin - (first + 0.5) * step, step / 2)
    whole = (last - first - 1) * _cubed(-step / 2, step / 2)
    tail = _cubed(-step / 2, end - (last + 0.5) * step)
    return float((counts * (head + whole + tail)).sum())


def _cubed(begin: Any, end: Any) -> Any:
    return (end**3 - begin**3) / 3
