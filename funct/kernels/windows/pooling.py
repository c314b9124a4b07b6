"""Maximum and sum over sliding windows of the last axes, and their adjoints; no window is copied.

A window is a box and max and sum do not care for order, so the axes are pooled one after the other:
3 × 3 costs 3 + 3 passes, and each pass works on what the one before has left. Padding is never
stored: each tap of the window touches only those outputs for which it meets an element of x.
"""

from __future__ import annotations

import functools
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from funct.kernels.channels import channels_first, channels_last, lie_last
from funct.kernels.cpu.loops import pays, ready
from funct.kernels.cpu.scratch import fresh
from funct.kernels.cpu.windows import pooling as cpu
from funct.kernels.cpu.windows.pooling_last import (
    WIDTHS,
    max_index_last,
    max_spread_last,
    width_of,
)
from funct.kernels.elementwise.casting import in_dtype
from funct.kernels.windows.last import pool_last, rows_last, sums_back_last
from funct.kernels.windows.places import axes_of, in_parts, meeting, met, share
from funct.kernels.windows.pooling_few import (
    FEW,
    means_back_few,
    places_of_few,
    plan_of,
    pooled_few,
    spread_few,
)
from funct.kernels.windows.rows import pool_rows
from funct.kernels.windows.views import (
    known_size,
    last_in_memory,
    sum_dtype,
    windows_adjoint,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

__all__ = [
    "fold_windows", "lowest", "max_pool", "max_pool_index", "max_pool_pull",
    "mean_pool", "mean_pool_pull", "plain_max_pool_index", "sum_pool", "sum_pool_adjoint",
]  # fmt: skip

_IMAGES = 16  # that are tasks enough
_PLANES = 64  # that are turned at once
_NARROW = 1 << 16  # elements of images whose rows have fewer windows than vectors have lanes
_INT = np.dtype(np.int64)

Sizes = tuple[int, ...]
Padding = tuple[tuple[int, int], ...]


def lowest(dtype: np.dtype[Any]) -> Any:
    """What max never chooses over an element: -inf, the smallest integer, False."""
    if dtype.kind in "iu":
        return np.iinfo(dtype).min
    return False if dtype.kind == "b" else -np.inf


def _pool_axis(
    fold: np.ufunc, empty: Any, x: NDArray[Any], axis: int, count: int, window: int, stride: int,
    dilation: int, low: int,
) -> NDArray[Any]:  # fmt: skip
    """Fold the windows of one axis into one element each; `empty` is what padding counts as."""
    before = (slice(None),) * axis
    size = x.shape[axis]
    start = max(0, -(((count - 1) * stride - low) // dilation))  # others meet padding alone
    stop = min(window, (size - 1 + low) // dilation + 1)
    taps = [meeting(t, size, count, stride, dilation, low) for t in range(start, stop)]
    whole = [i for i, (to, _) in enumerate(taps) if to == slice(0, count)]
    if whole:  # a tap that meets an element for each output saves the pass that fills y
        y = x[(*before, taps.pop(whole[0])[1])].copy("K")
    else:
        y = np.full_like(x, empty, shape=(*x.shape[:axis], count, *x.shape[axis + 1 :]))
    for to, at in taps:
        part = y[(*before, to)]
        fold(part, x[(*before, at)], out=part)
    return y


def _pool(
    how: str, x: NDArray[Any], window: Sizes, stride: Sizes, padding: Padding, dilation: Sizes,
    counts: NDArray[Any] | None = None,
) -> NDArray[Any]:  # fmt: skip
    """The "max" of each window, or its "sum", divided by counts, if any."""
    usual = x.dtype.char in "fd" and ready(x.size)
    plan = _plan(x, window, stride, padding, dilation, how == "max") if usual else None
    if plan is not None:  # without padding all counts are equal
        return pooled_few(x, plan, how if counts is None else "mean")
    if usual and x.size < FEW and x.ndim == len(window) + 2 and lie_last(x):
        y = _pool(how, np.ascontiguousarray(x), window, stride, padding, dilation, counts)
        return channels_first(np.ascontiguousarray(channels_last(y)))
    usual = usual and x.flags.c_contiguous
    # -0.0 is what changes no sum.
    fold, empty = (np.maximum, lowest(x.dtype)) if how == "max" else (np.add, -0.0)
    seen = last_in_memory(x, len(window))
    if seen is not None and pays(x, FEW) and x.dtype.kind != "b" and len(window) <= 3:
        pooled = pool_last(how, empty, seen, window, stride, padding, dilation, counts)
        if pooled is not None:
            return pooled
    if usual and len(window) <= 3:
        pooled = pool_rows(how, empty, x, window, stride, padding, dilation, counts)
        if pooled is not None:
            return pooled
    lead = x.ndim - len(window)
    size = known_size(x.shape[lead:], window, stride, padding, dilation)
    # The outer axis first: its passes are over whole rows, and leave less for the strided passes.
    for i, (count, (low, _)) in enumerate(zip(size, padding)):
        x = _pool_axis(fold, empty, x, lead + i, count, window[i], stride[i], dilation[i], low)
    return x if counts is None else x / counts


def _plan(
    x: NDArray[Any], window: Sizes, stride: Sizes, padding: Padding, dilation: Sizes, padded: bool,
    most: int = FEW,
) -> Any:  # fmt: skip
    """That of few elements; None for others."""
    if x.size >= most or not x.size:
        return None
    told = tuple(window), tuple(stride), tuple(padding), tuple(dilation)
    return plan_of(x.shape, *told, padded, most)


def _most(x: NDArray[Any], window: Sizes, stride: Sizes) -> int:
    """Elements below which windows are looked at one by one: more, where neither those of a row nor
    planes fill vectors.
    """
    if not x.flags.c_contiguous or x.shape[-1] >= cpu.LANES * stride[-1]:
        return FEW
    return FEW if prod(x.shape[: -len(window)]) >= cpu.LANES else _NARROW


def _turned(x: NDArray[Any], window: Sizes, count: Sizes) -> NDArray[Any] | None:
    """Images whose rows have too few windows for vectors with their channels last: where these are
    too few as well, planes of several are channels of one. None for others and few elements.
    """
    lead = x.ndim - len(window)
    if count[-1] >= cpu.LANES or window[-1] >= cpu.RUN or x.size < FEW:
        return None
    if not lead or x.shape[lead - 1] < cpu.LANES:
        planes = prod(x.shape[:lead])
        if planes < cpu.LANES:
            return None
        many = _together(planes)
        x, lead = x.reshape(planes // many, many, *x.shape[lead:]), 2
    return np.ascontiguousarray(channels_last(x, lead - 1))


@functools.lru_cache(256)
def _together(planes: int) -> int:
    """How many planes are channels of one image: of those that fill vectors as many as stay in a
    cache while they are turned, or all.
    """
    able = [n for n in range(cpu.LANES, _PLANES + 1) if planes % n == 0]
    return max(able, default=planes)


def _turned_back(y: NDArray[Any], lead: Sizes, size: Sizes) -> NDArray[Any]:
    """Planes of that size of those images, behind each other again."""
    planes = channels_first(y, y.ndim - len(size) - 1)
    return np.ascontiguousarray(planes).reshape(*lead, *size)


def max_pool(
    x: NDArray[Any], window: Sizes, stride: Sizes, padding: Padding, dilation: Sizes
) -> NDArray[Any]:
    """Take the maximum of each window over the last axes.

    Args:    x: (…, *S), real. window, stride, dilation: one int per pooled axis. padding: one
             (low, high) per axis; it counts as -inf (the smallest integer), negative padding crops.
    Returns: (…, *T), *T as in `output_size`, same dtype. NaN if the window has one.
    """
    return _in_single("max", x, window, stride, padding, dilation)


def _in_single(how: str, x: NDArray[Any], *told: Any) -> NDArray[Any]:
    """`_pool` of floats of 2 bytes in float32, rounded once: it has machine code for these."""
    dtype = sum_dtype(x.dtype)
    if dtype is x.dtype:
        return _pool(how, x, *told)
    return in_dtype(_pool(how, in_dtype(x, dtype), *told), x.dtype)


def sum_pool(
    x: NDArray[Any], window: Sizes, stride: Sizes, padding: Padding, dilation: Sizes
) -> NDArray[Any]:
    """Add up each window over the last axes; arguments and result as in `max_pool`.

    Notes: padding counts as 0. 2-byte floats are summed in float32 and rounded once.
    """
    return _in_single("sum", x, window, stride, padding, dilation)


def mean_pool(
    x: NDArray[Any], window: Sizes, stride: Sizes, padding: Padding, counts: NDArray[Any]
) -> NDArray[Any]:
    """`sum_pool` without dilation, divided by counts, (*T), of x's dtype: of 4 bytes or more."""
    return _pool("sum", x, window, stride, padding, (1,) * len(window), counts)


def mean_pool_pull(
    g: NDArray[Any], size: Sizes, window: Sizes, stride: Sizes, padding: Padding,
    counts: NDArray[Any],
) -> NDArray[Any] | None:  # fmt: skip
    """The adjoint of `mean_pool` for images of that size whose channels are last, and for few
    elements; None for others.
    """
    if g.size < FEW and g.dtype.char in "fd" and ready(g.size):
        x = (*g.shape[: g.ndim - len(size)], *size)
        plan = plan_of(x, tuple(window), tuple(stride), tuple(padding), (1,) * len(size), True)
        if plan is not None:
            return means_back_few(g / counts, x, plan)
    seen = last_in_memory(g, len(size)) if g.dtype.char in "fd" and len(size) <= 3 else None
    if seen is None or seen.shape[-1] < cpu.LANES or not pays(g, FEW):
        return None
    shares = seen / (counts[..., None] if counts.ndim else counts)
    return sums_back_last(shares, size, window, stride, padding)


def fold_windows(g: NDArray[Any], shape: Sizes, stride: Sizes, dilation: Sizes) -> NDArray[Any]:
    """As `windows_adjoint`; equal elements in each window, as a mean's pull has, are added once."""
    d, dtype = len(shape), sum_dtype(g.dtype)
    if dtype is not g.dtype:  # rounded once
        some: Any = (..., *(slice(None if any(g.strides[-d:]) else 1),) * d)
        wide = np.broadcast_to(in_dtype(g[some], dtype), g.shape)
        return in_dtype(fold_windows(wide, shape, stride, dilation), g.dtype)
    if g.size < FEW and g.dtype.char in "fd":
        order = _side_by_side(g.shape, tuple(shape), tuple(stride), tuple(dilation))
        if order is not None:  # + 0.0, for that is what a sum with nothing gives of -0.0
            whole = np.add(g.transpose(order), 0.0, order="C")
            return whole.reshape(*g.shape[: g.ndim - 2 * d], *shape)
    apart = all(s >= k for s, k in zip(stride, g.shape[g.ndim - d :]))  # nothing is added up
    if any(g.strides[g.ndim - d :]) or max(dilation, default=2) > 1 or not pays(g, *[1] * apart):
        return windows_adjoint(g, shape, stride, dilation)
    first: Any = (..., *(0,) * d)
    return sum_pool_adjoint(g[first], shape, g.shape[g.ndim - d :], stride)


@functools.lru_cache(256)
def _side_by_side(g: Sizes, shape: Sizes, stride: Sizes, dilation: Sizes) -> Sizes | None:
    """The order of axes in which windows are their image, where they cover it side by side."""
    d = len(shape)
    lead, count, window = len(g) - 2 * d, g[len(g) - 2 * d : len(g) - d], g[len(g) - d :]
    covered = tuple([t * k for t, k in zip(count, window, strict=True)]) == shape
    if not covered or stride != window or max(dilation, default=1) > 1:
        return None
    pairs = [k for i in range(lead, lead + d) for k in (i, i + d)]
    return (*range(lead), *pairs)


def sum_pool_adjoint(g: NDArray[Any], shape: Sizes, window: Sizes, stride: Sizes) -> NDArray[Any]:
    """The adjoint of `sum_pool` without padding: (…, *T) to (…, *shape), in machine code."""
    seen = last_in_memory(g, len(shape))
    if seen is not None and seen.shape[-1] >= cpu.LANES and len(shape) <= 3:
        none = ((0, 0),) * len(shape)
        return sums_back_last(seen, tuple(shape), tuple(window), tuple(stride), none)
    lead = g.ndim - len(shape)
    for i in reversed(range(len(shape))):  # the last axis first, while there is little of it
        outer, count, inner = (
            prod(g.shape[: lead + i]),
            g.shape[lead + i],
            prod(g.shape[lead + i + 1 :]),
        )
        size = (*g.shape[: lead + i], shape[i], *g.shape[lead + i + 1 :])
        some = share(shape[i] * inner, outer)
        split = some, -(-outer // some)
        if inner == 1 and stride[i] == 1:  # what meets an element is a window of g
            y = fresh(size, g.dtype)
            cpu.sum_line(g, y, outer, count, shape[i], window[i], 1 - window[i], *split)
        else:
            y = np.zeros(size, g.dtype)
            cpu.spread_axis(g, y, outer, shape[i], count, inner, window[i], stride[i], *split)
        g = y
    return g


def max_pool_index(
    x: NDArray[Any], window: Sizes, stride: Sizes, padding: Padding, dilation: Sizes
) -> NDArray[np.int64]:
    """Find the first maximum of each window over the last axes; arguments as in `max_pool`.

    Returns: (…, *T) int64, the place in the flat image, 0 … prod(S) - 1; -1 where a window has
             padding alone. Of several NaN the last counts as it, as in torch.
    """
    x = in_dtype(x, dtype) if (dtype := sum_dtype(x.dtype)) is not x.dtype else x
    lead = x.ndim - len(window)
    size = x.shape[lead:]
    known = x.dtype.char in "fd" and ready(x.size)
    most = _most(x, window, stride)
    plan = _plan(x, window, stride, padding, dilation, True, most) if known else None
    if plan is not None:
        return places_of_few(x, plan)
    if len(window) > 3 or not pays(x, 1):
        return plain_max_pool_index(x, window, stride, padding, dilation)
    count, axes = axes_of(size, window, stride, padding, dilation)
    y = fresh((*x.shape[:lead], *count), _INT)
    if not y.size or 0 in size:
        return plain_max_pool_index(x, window, stride, padding, dilation)
    planes, (t, k, step, dil) = prod(x.shape[:lead]), axes[2, 1:5].tolist()
    seen = last_in_memory(x, len(window))
    turned = _turned(x, window, count) if seen is None else None
    seen = seen if turned is None else turned
    if seen is not None and seen.shape[-1] >= cpu.LANES and prod(size) < 1 << 31:
        rows, some, to, _ = rows_last(seen.shape, window, stride, padding, dilation)
        y = fresh(to, _INT)
        taps = met(size, window, stride, padding, dilation)
        inner = seen.shape[-1]
        tasks = -(-rows // some)
        many = width_of(inner, x.dtype)
        max_index_last(seen, y, axes, taps, rows, some, inner, many, tasks)
        if turned is not None:
            return _turned_back(y, x.shape[:lead], count)
        return channels_first(y, lead - 1)
    some = share(prod(size), planes)
    tasks = -(-planes // some)
    inside = window[-1] >= cpu.LANES and set(dilation) == {1} and not any(map(any, padding))
    if t < cpu.LANES and inside and x.flags.c_contiguous:
        best = max_pool(x, window, stride, padding, dilation)
        cpu.max_place(x, best, y, axes, planes, some, tasks)
        return y
    if t < cpu.LANES or prod(size) * step >= 1 << 31:
        cpu.max_index(x, y, axes, planes, some, tasks)
        return y
    taps, phase = in_parts(t, k, step, dil)
    parted = np.empty(tasks * prod(size[:-1]) * step * phase, x.dtype)
    least = np.asarray([lowest(x.dtype)], x.dtype)
    cpu.max_index_rows(x, y, parted, taps, axes, planes, some, phase, least, tasks)
    return y


def max_pool_pull(
    g: NDArray[Any], x: NDArray[Any], window: Sizes, stride: Sizes, padding: Padding,
    dilation: Sizes,
) -> NDArray[Any] | None:  # fmt: skip
    """Zeros of x's shape, with g (…, *T) added at the first maximum of each window of x.

    None where that is left to `max_pool_index` and `put_along`: for images without their channels
    last, where places that are known are no detour, unless rows are short and channels few, and
    dtypes besides float32 and float64.
    """
    most = _most(x, window, stride)
    if x.size < most and x.dtype.char in "fd" and g.dtype is x.dtype and ready(x.size):
        plan = _plan(x, window, stride, padding, dilation, True, most)
        if plan is not None:
            return spread_few(g, x, plan)
    d = len(window)
    if x.dtype.char not in "fd" or g.dtype is not x.dtype or d > 3 or not pays(x, FEW):
        return None
    seen, before, size = last_in_memory(x, d), x.shape[: x.ndim - d], x.shape[x.ndim - d :]
    filled = before and before[-1] >= cpu.LANES  # by channels: to find places first is no slower
    if not g.size or prod(size) >= 1 << 31 or (seen is None and filled):
        return None
    count, axes = axes_of(size, window, stride, padding, dilation)
    turned = _turned(x, window, count) if seen is None else None
    seen = seen if turned is None else turned
    if seen is None or seen.shape[-1] < cpu.LANES:
        return None
    inner, lead = seen.shape[-1], seen.ndim - d - 1
    tiled = window == stride and not any(map(any, padding)) and set(dilation) == {1}
    tiled = tiled and size == tuple([t * k for t, k in zip(count, window, strict=True)])
    images, many = prod(seen.shape[:lead]), width_of(inner, x.dtype)
    width = WIDTHS[many]
    some = inner if inner % width or images >= _IMAGES else width
    z, taps = fresh(seen.shape, x.dtype), met(size, window, stride, padding, dilation)
    if turned is None:
        given = channels_last(g, lead)
    else:
        given = np.ascontiguousarray(g.reshape(images, inner, -1).transpose(0, 2, 1))
    max_spread_last(
        given, seen, z, axes, taps, inner, some, many, tiled, images * (inner // some)
    )  # fmt: skip
    return channels_first(z, lead) if turned is None else _turned_back(z, before, size)


def plain_max_pool_index(
    x: NDArray[Any], window: Sizes, stride: Sizes, padding: Padding, dilation: Sizes
) -> NDArray[np.int64]:
    """`max_pool_index` in NumPy."""
    best = max_pool(x, window, stride, padding, dilation)  # (…, *T)
    places = prod(window)
    has_nan = x.dtype.kind not in "iub" and bool((best != best).any())
    # A maximum of ranks, places - place or of NaN place + 1, in the narrowest integers: these
    # passes are bound by memory, and copying where a mask is set is slow.
    rank = np.zeros(best.shape, np.min_scalar_type(places))
    for place, to, at in _taps(x.shape, best.shape, window, stride, padding, dilation):
        here = x[at]
        part, hit = rank[to], here == best[to]
        np.maximum(part, hit * rank.dtype.type(places - place), out=part)
        if has_nan:
            np.maximum(part, (here != here) * rank.dtype.type(place + 1), out=part)
    found = places - rank.astype(np.int64)
    if has_nan:
        found = np.where(best != best, places - 1 - found, found)
    flat = _flat_places(found, x.shape, window, stride, padding, dilation)
    return np.where(rank == 0, -1, flat)


def _flat_places(
    place: NDArray[Any], shape: Sizes, window: Sizes, stride: Sizes, padding: Padding,
    dilation: Sizes,
) -> NDArray[Any]:  # fmt: skip
    """Places in the window as places in the flat image, axis by axis."""
    d = len(window)
    lead = place.ndim - d
    total = np.zeros_like(place)
    for i in range(d):
        taps = place // prod(window[i + 1 :]) % window[i]
        starts = np.arange(place.shape[lead + i]) * stride[i] - padding[i][0]
        along = taps * dilation[i] + starts.reshape(-1, *(1,) * (d - 1 - i))
        total = total * shape[lead + i] + along
    return total


def _taps(
    shape: Sizes, pooled: Sizes, window: Sizes, stride: Sizes, padding: Padding, dilation: Sizes
) -> Iterator[tuple[int, tuple[Any, ...], tuple[Any, ...]]]:
    """Each flat place of the window, with the outputs and the elements that meet there."""
    lead = len(shape) - len(window)
    for place, taps in enumerate(np.ndindex(*window)):
        hits = [
            meeting(tap, shape[lead + i], pooled[lead + i], stride[i], dilation[i], padding[i][0])
            for i, tap in enumerate(taps)
        ]
        yield place, (..., *[to for to, _ in hits]), (..., *[at for _, at in hits])
