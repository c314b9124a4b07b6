"""Weighted sums of neighbours along one axis at a time: `interpolate` and adaptive means.

An output element is a sum of `taps`: for each, a place in the axis and a weight, both known before
the data. A separable map of an image is one such sum per axis.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import attrs
import numpy as np

from funct import ops
from funct.array import Array
from funct.array.in_single import SHORT, narrowed, widened
from funct.kernels.cpu.loops import ready
from funct.kernels.windows import resampling as kernels
from funct.nn.functional.compiled import concrete, lies_last
from funct.ops.fast import wrap
from funct.transforms import custom_vjp
from funct.transforms.reverse import ReverseTracer

__all__ = [
    "FLOATS", "Taps", "area_taps", "area_windows", "cubic_taps", "flat_places", "gathered",
    "gathered_at_once", "linear_taps", "nearest_places", "resampled", "sent_back", "smooth_taps",
]  # fmt: skip

FLOATS = (np.dtype(np.float32), np.dtype(np.float64))
_LEAST = 1 << 11  # elements from which on a node with rules of its own costs less than it saves
_MOST = 1 << 20  # places of a table that is kept

Floats = np.ndarray[Any, np.dtype[np.float64]]
Places = np.ndarray[Any, np.dtype[np.int64]]


@attrs.frozen(eq=False)
class Taps:
    """Row k holds the k-th neighbour of every output element and its weight, both (taps, out)."""

    places: Places
    weights: Floats


def gathered(x: Any, places: Places, axis: int) -> Any:
    """The elements of x at these places of axis; x itself if those are all of them, in order."""
    if len(places) == x.shape[axis] and np.array_equal(places, np.arange(len(places))):
        return x
    return ops.take(x, wrap(places), axis)


def flat_places(size: Sequence[int], places: Sequence[Places]) -> Places:
    """Those of the elements at these places of each of several axes, all as one."""
    at = np.zeros(1, np.int64)
    for n, along in zip(size, places, strict=True):
        at = np.add.outer(at * n, along).reshape(-1)
    return at


def gathered_at_once(x: Any, at: Places, lead: int, count: Sequence[int]) -> Any:
    """The elements at `flat_places` of the last axes, in one pass, and one back.

    Programs keep a table for each axis, which is smaller. Of images whose channels are last in
    memory whole pixels are taken, and so the result lies.
    """
    if lead == 2 and lies_last(x):
        (n, channels, *size), end = x.shape, len(x.shape) - 1
        pixels = ops.reshape(ops.move_axis(x, 1, end), (n, math.prod(size), channels))
        taken = ops.reshape(ops.take(pixels, wrap(at), 1), (n, *count, channels))
        return ops.move_axis(taken, end, 1)
    flat = ops.reshape(x, (*x.shape[:lead], math.prod(x.shape[lead:])))
    return ops.reshape(gathered(flat, at, lead), (*x.shape[:lead], *count))


def resampled(x: Any, *taps: tuple[Taps, int]) -> Any:
    """The weighted sums along axes, one after the other. taps: with the axis of each. Those of
    short floats are rounded once.
    """
    if x.dtype in SHORT:
        (wide,) = widened(x)
        return narrowed(resampled(wide, *taps), x)
    if x.__class__ is Array:
        return _summed(x, taps)
    if taps and _spreads(x, taps):
        return _mapped(x, taps, tuple([x.shape[axis] for _, axis in taps]))
    for each, axis in taps:
        x = _composed(x, each, axis)
    return x


def _summed(x: Any, taps: Sequence[tuple[Taps, int]]) -> Any:
    """The sums of an array, by kernels where these serve: along both axes of images by one."""
    if len(taps) == 2 and [axis for _, axis in taps] == [2, 3]:
        between = kernels.resampled_between(x.data, *[_weighed(each) for each, _ in taps])
        if between is not None:
            return wrap(between)
    for each, axis in taps:
        made = kernels.resampled(x.data, *_weighed(each), axis)
        x = _composed(x, each, axis) if made is None else wrap(made)
    return x


def _composed(x: Any, taps: Taps, axis: int) -> Any:
    """The sums along an axis by primitives."""
    behind = (1,) * (len(x.shape) - axis - 1)
    total: Any = None
    for at, weight in zip(*_weighed(taps), strict=True):
        term = gathered(x, at, axis)
        if not (weight == 1.0).all():
            term = term * wrap(weight.astype(x.dtype).reshape(-1, *behind))
        total = term if total is None else total + term
    return total


def _spreads(x: Any, taps: Sequence[tuple[Taps, int]]) -> bool:
    """Whether the way back is a kernel: of many floats on a tape, each of which is read."""
    if x.__class__ is not ReverseTracer or not concrete(x) or x.size < _LEAST:
        return False
    if x.dtype not in FLOATS or not ready(x.size):
        return False
    return all(_transposed(each, x.shape[axis]) is not None for each, axis in taps)


@functools.partial(custom_vjp, nondiff_argnums=(1, 2))
def _mapped(x: Any, taps: Sequence[tuple[Taps, int]], lengths: tuple[int, ...]) -> Any:
    """`resampled`, along axes of these lengths, whose way back are kernels."""
    return resampled(x, *taps)


def _forward(x: Any, taps: Sequence[tuple[Taps, int]], lengths: tuple[int, ...]) -> Any:
    return resampled(x, *taps), None


def _back(taps: Sequence[tuple[Taps, int]], lengths: tuple[int, ...], _: Any, g: Any) -> tuple[Any]:
    return (sent_back(g, *[(*each, n) for each, n in zip(taps, lengths, strict=True)]),)


_mapped.defvjp(_forward, _back)


def sent_back(g: Any, *taps: tuple[Taps, int, int]) -> Any:
    """For the elements of axes the weighted sums of the cotangents of what they are read for.
    taps: with the axis of each, and its length.
    """
    back = [(_transposed(each, n), axis) for each, axis, n in taps]
    return resampled(g, *[(each, axis) for each, axis in back if each is not None])


@functools.lru_cache(64)
def _transposed(taps: Taps, n: int) -> Taps | None:
    """For each of n elements what it is read for; None where one is not, or is for very much."""
    used = taps.weights != 0.0
    read, for_ = taps.places[used], np.broadcast_to(np.arange(used.shape[1]), used.shape)[used]
    count = np.bincount(read, minlength=n)
    if not count.all() or count.max() * n > _MOST:
        return None
    order = np.argsort(read, kind="stable")
    row = np.arange(read.size) - np.repeat(np.cumsum(count) - count, count)
    places, weights = np.zeros((count.max(), n), np.int64), np.zeros((count.max(), n))
    places[row, read[order]] = for_[order]
    weights[row, read[order]] = taps.weights[used][order]
    return Taps(places, weights)


@functools.lru_cache(64)
def _weighed(taps: Taps) -> tuple[Places, Floats]:
    """The places and weights without weights of 0, by which infinite elements would become NaN.

    Elsewhere nothing changes: a tap without weight stands before the first that has some, at its
    place, and takes half of it. These halves add up exactly, the smallest first.
    """
    used = taps.weights != 0.0
    if used.all():
        return taps.places, taps.weights
    some = used.any(1)
    order = np.argsort(used[some], 0, "stable")  # what is not used comes first
    places, weights = (np.take_along_axis(v[some], order, 0) for v in (taps.places, taps.weights))
    first = (~used[some]).sum(0)
    row = np.arange(len(places))[:, None]
    at = np.minimum(first, len(places) - 1)[None]
    places = np.where(row < first, np.take_along_axis(places, at, 0), places)
    share = np.take_along_axis(weights, at, 0) * 2.0 ** (np.maximum(row, 1) - 1.0 - first)
    return places, np.where(row <= first, share, weights)


def _windows(starts: Places, stops: Places, n: int) -> tuple[Places, Any]:
    """Places starts … stops - 1 of each output element, and which of the rows are in use."""
    steps = np.arange(int((stops - starts).max(initial=1)))[:, None]
    used = starts + steps < stops
    return np.where(used, starts + steps, starts).clip(0, n - 1), used


@functools.lru_cache(64)
def area_windows(n: int, out: int) -> Places:
    """The windows from floor(i n / out) to ceil((i + 1) n / out): (out, 2)."""
    i = np.arange(out)
    return np.stack((i * n // out, -((i + 1) * -n // out)), 1)


@functools.lru_cache(64)
def area_taps(n: int, out: int) -> Taps:
    """Means of `area_windows`."""
    starts, stops = area_windows(n, out).T
    places, used = _windows(starts, stops, n)
    with np.errstate(invalid="ignore"):  # the mean of no elements is NaN
        return Taps(places, used / (stops - starts))


def nearest_places(n: int, out: int, scale: float, exact: bool) -> Places:
    """The place below each output element; `exact` compares the centres of the elements."""
    i = np.arange(out) + (0.5 if exact else 0.0)
    return np.minimum(np.floor(i * scale).astype(np.int64), n - 1)


def _positions(out: int, scale: float, align_corners: bool) -> Floats:
    i = np.arange(out, dtype=np.float64)
    return i * scale if align_corners else (i + 0.5) * scale - 0.5


@functools.lru_cache(64)
def linear_taps(n: int, out: int, scale: float, align_corners: bool) -> Taps:
    """Two neighbours, weighted by nearness; beyond the ends the end element."""
    at = np.maximum(_positions(out, scale, align_corners), 0.0)
    low = np.minimum(np.floor(at).astype(np.int64), n - 1)
    part = np.clip(at - low, 0.0, 1.0)
    return Taps(np.stack([low, np.minimum(low + 1, n - 1)]), np.stack([1.0 - part, part]))


def cubic_kernel(t: Any, a: float) -> Any:
    """Keys' kernel at distances t >= 0; it vanishes from 2 on."""
    near = ((a + 2.0) * t - (a + 3.0)) * t * t + 1.0
    far = ((a * t - 5.0 * a) * t + 8.0 * a) * t - 4.0 * a
    return np.where(t <= 1.0, near, np.where(t < 2.0, far, 0.0))


@functools.lru_cache(64)
def cubic_taps(n: int, out: int, scale: float, align_corners: bool) -> Taps:
    """Four neighbours with Keys' kernel, a = -3/4; beyond the ends the end element."""
    at = _positions(out, scale, align_corners)
    low = np.floor(at).astype(np.int64)
    steps = np.arange(-1, 3)[:, None]
    weights = cubic_kernel(np.abs(at - low - steps), -0.75)
    return Taps(np.clip(low + steps, 0, n - 1), weights)


@functools.lru_cache(64)
def smooth_taps(n: int, out: int, scale: float, cubic: bool) -> Taps:
    """The kernel widened by the factor of shrinking, so that it averages what it passes over.

    Source: torch's antialias=True, which is Pillow's resize (a = -1/2 for the cubic).
    """
    stretch = max(scale, 1.0)
    support = (2.0 if cubic else 1.0) * stretch
    i = np.arange(out)
    centre = (i + 0.5) * scale
    starts = np.maximum((centre - support + 0.5).astype(np.int64), 0)
    stops = np.minimum((centre + support + 0.5).astype(np.int64), n)
    places, used = _windows(starts, stops, n)
    far = np.abs(starts + np.arange(len(places))[:, None] - centre + 0.5) / stretch
    weights = cubic_kernel(far, -0.5) if cubic else np.maximum(1.0 - far, 0.0)
    weights = np.where(used, weights, 0.0)
    return Taps(places, weights / weights.sum(0))
