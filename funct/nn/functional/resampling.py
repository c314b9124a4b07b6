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
from funct.kernels.channels import channels_first, channels_last
from funct.kernels.cpu.loops import pays, ready
from funct.kernels.indexing.gather import take
from funct.kernels.windows import resampling as kernels
from funct.nn.functional.compiled import concrete, lies_last
from funct.nn.functional.own_rules import ruled
from funct.ops.fast import wrap
from funct.transforms.reverse import ReverseTracer

__all__ = [
    "FLOATS", "Taps", "area_taps", "area_windows", "by_primitives", "cubic_taps", "flat_places",
    "gathered", "gathered_at_once", "linear_taps", "nearest_places", "resampled", "sent_back",
    "smooth_taps",
]  # fmt: skip

FLOATS = (np.dtype(np.float32), np.dtype(np.float64))
_LEAST = 1 << 9  # elements from which on a node with rules of its own costs less than it saves
_MOST = 1 << 20  # places of a table that is kept
_LAYOUTS = 256  # of arrays, with taps, that are known

Floats = np.ndarray[Any, np.dtype[np.float64]]
Places = np.ndarray[Any, np.dtype[np.int64]]


@attrs.frozen(eq=False)
class Taps:
    """Row k holds the k-th neighbour of every output element and its weight, both (taps, out). An
    element whose first place is below 0 has none: its sum is 0.
    """

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
    last = lead == 2 and lies_last(x)
    if x.__class__ is Array:
        return wrap(_taken(x.data, at, lead, tuple(count), last))
    return _taken_at_once(x, at, lead, tuple(count), tuple(x.shape), last)


def _by_takes(
    x: Any, at: Places, lead: int, count: tuple[int, ...], shape: tuple[int, ...], last: bool
) -> Any:
    """`gathered_at_once` of what has that shape; last: of pixels."""
    size = math.prod(shape[lead:])
    if last:
        end = len(shape) - 1
        pixels = ops.reshape(ops.move_axis(x, 1, end), (shape[0], size, shape[1]))
        taken = ops.reshape(ops.take(pixels, wrap(at), 1), (shape[0], *count, shape[1]))
        return ops.move_axis(taken, end, 1)
    flat = ops.reshape(x, (*shape[:lead], size))
    return ops.reshape(gathered(flat, at, lead), (*shape[:lead], *count))


def _put_back(
    at: Places, lead: int, count: tuple[int, ...], shape: tuple[int, ...], last: bool, _: Any,
    g: Any,
) -> tuple[Any]:  # fmt: skip
    """What comes back from there."""
    places, size = len(at), math.prod(shape[lead:])
    if last:
        end = len(shape) - 1
        pixels = ops.reshape(ops.move_axis(g, 1, end), (shape[0], places, shape[1]))
        put = ops.reshape(ops.put(pixels, wrap(at), 1, size), (shape[0], *shape[2:], shape[1]))
        return (ops.move_axis(put, end, 1),)
    flat = ops.reshape(g, (*shape[:lead], places))
    return (ops.reshape(ops.put(flat, wrap(at), lead, size), shape),)


_taken_at_once = ruled(
    _by_takes,
    lambda x, at, lead, count, shape, last: (wrap(_taken(x.data, at, lead, count, last)), ()),
    _put_back, fixed=5, masks=lambda *_: True,
)  # fmt: skip


def _taken(x: Any, at: Places, lead: int, count: tuple[int, ...], last: bool) -> Any:
    """The same of a buffer."""
    shape = x.shape
    if last:
        pixels = channels_last(x).reshape(shape[0], math.prod(shape[2:]), shape[1])
        return channels_first(take(pixels, at, 1).reshape(shape[0], *count, shape[1]))
    return take(x.reshape(*shape[:lead], math.prod(shape[lead:])), at, lead).reshape(
        *shape[:lead], *count
    )


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
    return by_primitives(x, taps)


def by_primitives(x: Any, taps: Sequence[tuple[Taps, int]]) -> Any:
    """`resampled` by ops that every level knows."""
    for each, axis in taps:
        x = _composed(x, each, axis)
    return x


def _summed(x: Any, taps: Sequence[tuple[Taps, int]]) -> Any:
    """The sums of an array, by kernels where these serve: along both axes of images by one."""
    d = x.data
    if d.__class__ is np.ndarray and pays(d):
        how = d.shape, d.strides, d.dtype, *taps
        run = _runs.get(how, _runs)
        if run is _runs:  # what is not known yet
            if len(_runs) >= _LAYOUTS:
                _runs.clear()
            told = [(_weighed(each), axis) for each, axis in taps]
            run = _runs[how] = kernels.resampling(d, told)
        if run is not None:
            return wrap(run(d))
    for each, axis in taps:
        made = kernels.resampled(x.data, *_weighed(each), axis)
        x = _composed(x, each, axis) if made is None else wrap(made)
    return x


_runs: dict[Any, Any] = {}  # what computes sums, by how arrays lie and the taps


def _composed(x: Any, taps: Taps, axis: int) -> Any:
    """The sums along an axis by primitives."""
    behind = (1,) * (len(x.shape) - axis - 1)
    total: Any = None
    places, weights = _weighed(taps)
    for at, weight in zip(np.maximum(places, 0), weights, strict=True):
        term = gathered(x, at, axis)
        if not (weight == 1.0).all():
            term = term * wrap(weight.astype(x.dtype).reshape(-1, *behind))
        total = term if total is None else total + term
    if not _is_whole(taps):
        total = ops.where(wrap((places[0] >= 0).reshape(-1, *behind)), total, 0.0)
    return total


def _spreads(x: Any, taps: Sequence[tuple[Taps, int]]) -> bool:
    """Whether the way back is a kernel: of many floats on a tape."""
    if x.__class__ is not ReverseTracer or not concrete(x) or x.size < _LEAST:
        return False
    if x.dtype not in FLOATS or not ready(x.size):
        return False
    return all(_transposed(each, x.shape[axis]) is not None for each, axis in taps)


def _elsewhere(x: Any, taps: Sequence[tuple[Taps, int]], lengths: tuple[int, ...]) -> Any:
    """`_mapped` of what is no tape above an array."""
    return _everywhere(x, taps, lengths) if _all_read(taps, lengths) else by_primitives(x, taps)


def _forward(x: Any, taps: Any, lengths: Any) -> tuple[Any, tuple[Any, ...]]:
    return resampled(x, *taps), ()


def _back(taps: Sequence[tuple[Taps, int]], lengths: tuple[int, ...], _: Any, g: Any) -> tuple[Any]:
    return (sent_back(g, *[(*each, n) for each, n in zip(taps, lengths, strict=True)]),)


def _all_read(taps: Sequence[tuple[Taps, int]], lengths: tuple[int, ...]) -> bool:
    """Whether each element of axes of these lengths is read."""
    back = [_transposed(each, n) for (each, _), n in zip(taps, lengths, strict=True)]
    return all(each is not None and _is_whole(each) for each in back)


@functools.lru_cache(64)
def _is_whole(taps: Taps) -> bool:
    return int(taps.places.min(initial=0)) >= 0


# `resampled` of what is on tapes, along axes of these lengths, whose way back are kernels: what is
# not read gets a structural zero, which rules of any level do not tell
_everywhere = ruled(lambda *given: _forward(*given)[0], _forward, _back, fixed=2)
_mapped = ruled(
    _elsewhere, _forward, _back, fixed=2, masks=lambda taps, lengths: not _all_read(taps, lengths)
)


def sent_back(g: Any, *taps: tuple[Taps, int, int]) -> Any:
    """For the elements of axes the weighted sums of the cotangents of what they are read for.
    taps: with the axis of each, and its length.
    """
    back = [(_transposed(each, n), axis) for each, axis, n in taps]
    return resampled(g, *[(each, axis) for each, axis in back if each is not None])


@functools.lru_cache(64)
def _transposed(taps: Taps, n: int) -> Taps | None:
    """For each of n elements what it is read for; None where one is for very much."""
    used = taps.weights != 0.0
    read, for_ = taps.places[used], np.broadcast_to(np.arange(used.shape[1]), used.shape)[used]
    count = np.bincount(read, minlength=n)
    if count.max(initial=0) * n > _MOST:
        return None
    order = np.argsort(read, kind="stable")
    row = np.arange(read.size) - np.repeat(np.cumsum(count) - count, count)
    most = max(1, count.max(initial=0))
    places, weights = np.zeros((most, n), np.int64), np.zeros((most, n))
    places[:, count == 0] = -1
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
    some[0] |= not some.any()
    order = np.argsort(used[some], 0, "stable")  # what is not used comes first
    places, weights = (np.take_along_axis(v[some], order, 0) for v in (taps.places, taps.weights))
    first = (~used[some]).sum(0)
    row = np.arange(len(places))[:, None]
    at = np.minimum(first, len(places) - 1)[None]
    places = np.where(row < first, np.take_along_axis(places, at, 0), places)
    places[1:] = np.maximum(places[1:], 0)  # none is said by the first
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
