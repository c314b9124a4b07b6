"""Pools of few elements: one call for all windows, as images and volumes lie in memory.

`plan_of` says how they slide, for each shape once; the rest takes arrays for which there is a plan.
"""

from __future__ import annotations

import functools
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from funct.kernels.channels import channels_first, channels_last
from funct.kernels.cpu.windows import pooling_few as cpu
from funct.kernels.windows.views import output_size

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["FEW", "means_back_few", "plan_of", "places_of_few", "pooled_few", "spread_few"]

FEW = 1 << 12  # elements for which the calls of NumPy are the whole cost

_AXES = 3
_INT = np.dtype(np.int64)
_empty = np.empty

Sizes = tuple[int, ...]
# Shapes of results and what kernels are told, and whether there is one axis less, and padding.
Plan = tuple[Sizes, Sizes, Sizes | None, Sizes | None, bool, bool]


@functools.lru_cache(256)
def plan_of(
    x: Sizes, window: Sizes, stride: Sizes, padding: tuple[tuple[int, int], ...], dilation: Sizes,
    padded: bool, most: int = FEW,
) -> Plan | None:  # fmt: skip
    """The shape of the result, what kernels are told, and both with channels last; None where that
    does not serve. padded: whether windows may reach beyond the image, as those of maxima may: the
    kernel folds these in the order of passes over axes. most: elements, and more.
    """
    d = len(window)
    if d > _AXES or set(dilation) != {1} or 0 in window or 0 in x or prod(x) >= most:
        return None
    each = zip(padding, window, strict=True)
    if any(not 0 <= min(p) <= max(p) < k or (any(p) and not padded) for p, k in each):
        return None
    lead, size = x[: len(x) - d], x[len(x) - d :]
    t = output_size(size, window, stride, padding, dilation)
    if min(t) < 1:
        return None
    lows = [low for low, _ in padding]
    axes = [(1, 1, 1, 0, 1)] * (_AXES - d) + list(zip(size, window, stride, lows, t, strict=True))
    told = tuple([n for axis in axes for n in axis])
    first = (*lead, *t), (prod(lead), *told, 1)
    how = d < _AXES, any(map(any, padding))
    if len(lead) != 2:
        return (*first, None, None, *how)
    return (*first, (lead[0], *t, lead[1]), (lead[0], *told, lead[1]), *how)


def pooled_few(x: NDArray[Any], plan: Plan, how: str) -> NDArray[Any]:
    """The "sum" of each window, its "mean" or "max"."""
    to, told, to_last, told_last, flat, padded = plan
    if x.flags.c_contiguous:
        y = _empty(to, x.dtype)
        cpu.few_windows(x, y, *told, flat, True, padded, how)
        return y
    seen = _seen(x, plan)
    if seen is None or to_last is None or told_last is None:
        return pooled_few(np.ascontiguousarray(x), plan, how)
    y = _empty(to_last, x.dtype)
    cpu.few_windows(seen, y, *told_last, flat, False, padded, how)
    return channels_first(y)


def places_of_few(x: NDArray[Any], plan: Plan) -> NDArray[np.int64]:
    """The place of the maximum of each window in its flat image."""
    to, told, to_last, told_last, *_ = plan
    if x.flags.c_contiguous:
        y = _empty(to, _INT)
        cpu.few_places(x, y, *told)
        return y
    seen = _seen(x, plan)
    if seen is None or to_last is None or told_last is None:
        return places_of_few(np.ascontiguousarray(x), plan)
    y = _empty(to_last, _INT)
    cpu.few_places(seen, y, *told_last)
    return channels_first(y)


def spread_few(g: NDArray[Any], x: NDArray[Any], plan: Plan) -> NDArray[Any]:
    """Zeros like x, with g, of its dtype, added where the maxima of windows are."""
    told, told_last = plan[1], plan[3]
    if x.flags.c_contiguous:
        y = _empty(x.shape, x.dtype)
        cpu.few_spread(np.ascontiguousarray(g), x, y, *told)
        return y
    seen = _seen(x, plan)
    if seen is None or told_last is None:
        return spread_few(g, np.ascontiguousarray(x), plan)
    y = _empty(seen.shape, x.dtype)
    cpu.few_spread(np.ascontiguousarray(channels_last(g)), seen, y, *told_last)
    return channels_first(y)


def means_back_few(g: NDArray[Any], x: Sizes, plan: Plan) -> NDArray[Any]:
    """For images of that shape what comes to each element from the windows that it is in, added up
    from the last window on, as taps come.
    """
    told, told_last = plan[1], plan[3]
    if g.flags.c_contiguous or told_last is None:
        y = _empty(x, g.dtype)
        cpu.few_sums_back(np.ascontiguousarray(g), y, *told)
        return y
    y = _empty((x[0], *x[2:], x[1]), g.dtype)
    cpu.few_sums_back(np.ascontiguousarray(channels_last(g)), y, *told_last)
    return channels_first(y)


def _seen(x: NDArray[Any], plan: Plan) -> NDArray[Any] | None:
    """x with its channels last, if so it lies."""
    if plan[2] is None:
        return None
    seen = channels_last(x)
    return seen if seen.flags.c_contiguous else None
