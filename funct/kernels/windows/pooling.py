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

from funct.kernels.cpu.irregular import pooling as cpu
from funct.kernels.cpu.loops import pays, ready
from funct.kernels.windows.views import known_size, output_size, sum_dtype, windows_adjoint

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

__all__ = [
    "few", "few_pooled", "fold_windows", "max_pool", "max_pool_index", "plain_max_pool_index",
    "sum_pool", "sum_pool_adjoint",
]  # fmt: skip

_FEW = 1 << 12  # elements for which the calls of NumPy are the whole cost
_TASK = 1 << 15  # elements of a task
_TASKS = 64  # at most

Sizes = tuple[int, ...]
Padding = tuple[tuple[int, int], ...]


def _lowest(dtype: np.dtype[Any]) -> Any:
    """What max never chooses over an element: -inf, the smallest integer, False."""
    if dtype.kind in "iu":
        return np.iinfo(dtype).min
    return False if dtype.kind == "b" else -np.inf


def _meeting(
    tap: int, size: int, count: int, stride: int, dilation: int, low: int
) -> tuple[slice, slice]:
    """The outputs whose tap number `tap` lies inside the axis, and the elements it meets there."""
    shift = tap * dilation - low  # output t meets element t * stride + shift
    first = max(0, -(shift // stride))
    last = max(first, min(count, (size - 1 - shift) // stride + 1))
    start = first * stride + shift
    return slice(first, last), slice(start, start + (last - first) * stride, stride)


def _pool_axis(
    fold: np.ufunc, empty: Any, x: NDArray[Any], axis: int, count: int, window: int, stride: int,
    dilation: int, low: int,
) -> NDArray[Any]:  # fmt: skip
    """Fold the windows of one axis into one element each; `empty` is what padding counts as."""
    before = (slice(None),) * axis
    size = x.shape[axis]
    start = max(0, -(((count - 1) * stride - low) // dilation))  # others meet padding alone
    stop = min(window, (size - 1 + low) // dilation + 1)
    taps = [_meeting(t, size, count, stride, dilation, low) for t in range(start, stop)]
    whole = [i for i, (to, _) in enumerate(taps) if to == slice(0, count)]
    if whole:  # a tap that meets an element for each output saves the pass that fills y
        y = x[(*before, taps.pop(whole[0])[1])].copy()
    else:
        y = np.full((*x.shape[:axis], count, *x.shape[axis + 1 :]), empty, x.dtype)
    for to, at in taps:
        part = y[(*before, to)]
        fold(part, x[(*before, at)], out=part)
    return y


def _pool(
    fold: np.ufunc, empty: Any, x: NDArray[Any], window: Sizes, stride: Sizes, padding: Padding,
    dilation: Sizes,
) -> NDArray[Any]:  # fmt: skip
    if x.size < _FEW and x.dtype.char in "fd" and x.flags.c_contiguous and ready(x.size):
        plan = few(x.shape, window, stride, padding, dilation)
        if plan is not None:
            return few_pooled(x, plan, "sum" if fold is np.add else "max")
    lead = x.ndim - len(window)
    size = known_size(x.shape[lead:], window, stride, padding, dilation)
    # The outer axis first: its passes are over whole rows, and leave less for the strided passes.
    for i, (count, (low, _)) in enumerate(zip(size, padding)):
        x = _pool_axis(fold, empty, x, lead + i, count, window[i], stride[i], dilation[i], low)
    return x


def few_pooled(x: NDArray[Any], plan: Any, how: str) -> NDArray[Any]:
    """The "sum" of each window, its "mean" or "max", for few elements that are C-contiguous."""
    shape, *rest = plan
    y = np.empty(shape, x.dtype)
    cpu.few_windows(x, y, np.empty(x.shape[-1], x.dtype), *rest, how)
    return y


@functools.lru_cache(256)
def few(x: Sizes, window: Sizes, stride: Sizes, padding: Padding, dilation: Sizes) -> Any:
    """The plan of `few_pooled`: the shape of the result, and what `cpu.few_windows` is told; None
    where that does not serve.
    """
    d = len(window)
    if d > 2 or any(map(any, padding)) or set(dilation) != {1} or 0 in window:
        return None
    t = output_size(x[len(x) - d :], window, stride, padding, dilation)
    if min(t) < 1 or 0 in x:
        return None
    one = (1,) * (2 - d)
    (h, w), (k0, k1), (s0, s1), (t0, t1) = (
        (*one, *v) for v in (x[len(x) - d :], window, stride, t)
    )
    return (*x[: len(x) - d], *t), prod(x[: len(x) - d]), h, w, k0, s0, t0, k1, s1, t1


def max_pool(
    x: NDArray[Any], window: Sizes, stride: Sizes, padding: Padding, dilation: Sizes
) -> NDArray[Any]:
    """Take the maximum of each window over the last axes.

    Args:    x: (…, *S), real. window, stride, dilation: one int per pooled axis. padding: one
             (low, high) per axis; it counts as -inf (the smallest integer), negative padding crops.
    Returns: (…, *T), *T as in `output_size`, same dtype. NaN if the window has one.
    """
    return _pool(np.maximum, _lowest(x.dtype), x, window, stride, padding, dilation)


def sum_pool(
    x: NDArray[Any], window: Sizes, stride: Sizes, padding: Padding, dilation: Sizes
) -> NDArray[Any]:
    """Add up each window over the last axes; arguments and result as in `max_pool`.

    Notes: padding counts as 0. 2-byte floats are summed in float32 and rounded once.
    """
    dtype = sum_dtype(x.dtype)
    if dtype is x.dtype:
        return _pool(np.add, 0, x, window, stride, padding, dilation)
    return _pool(np.add, 0, x.astype(dtype), window, stride, padding, dilation).astype(x.dtype)


def fold_windows(g: NDArray[Any], shape: Sizes, stride: Sizes, dilation: Sizes) -> NDArray[Any]:
    """As `windows_adjoint`; equal elements in each window, as a mean's pull has, are added once."""
    d = len(shape)
    apart = all(s >= k for s, k in zip(stride, g.shape[g.ndim - d :]))  # nothing is added up
    if any(g.strides[g.ndim - d :]) or max(dilation, default=2) > 1 or not pays(g, *[1] * apart):
        return windows_adjoint(g, shape, stride, dilation)
    first: Any = (..., *(0,) * d)
    return sum_pool_adjoint(g[first], shape, g.shape[g.ndim - d :], stride)


def _share(each: int, count: int) -> int:
    """How many of `count` things with so many elements each make a task."""
    return max(1, min(count, _TASK // max(1, each)), -(-count // _TASKS))


def sum_pool_adjoint(g: NDArray[Any], shape: Sizes, window: Sizes, stride: Sizes) -> NDArray[Any]:
    """The adjoint of `sum_pool` without padding: (…, *T) to (…, *shape), in machine code."""
    lead = g.ndim - len(shape)
    for i in reversed(range(len(shape))):  # the last axis first, while there is little of it
        outer, count, inner = (
            prod(g.shape[: lead + i]),
            g.shape[lead + i],
            prod(g.shape[lead + i + 1 :]),
        )
        size = (*g.shape[: lead + i], shape[i], *g.shape[lead + i + 1 :])
        some = _share(shape[i] * inner, outer)
        split = some, -(-outer // some)
        if inner == 1 and stride[i] == 1:  # what meets an element is a window of g
            y = np.empty(size, g.dtype)
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
             padding alone. The first NaN counts as the maximum.
    """
    lead = x.ndim - len(window)
    size = x.shape[lead:]
    if len(window) > 3 or not pays(x, 1):
        return plain_max_pool_index(x, window, stride, padding, dilation)
    count, axes = _axes(size, window, stride, padding, dilation)
    y = np.empty((*x.shape[:lead], *count), np.int64)
    if not y.size or 0 in size:
        return plain_max_pool_index(x, window, stride, padding, dilation)
    planes, (t, k, step, dil) = prod(x.shape[:lead]), axes[2, 1:5].tolist()
    if t < cpu.LANES or prod(size) * step >= 1 << 31:
        cpu.max_index(x, y, axes, planes)
        return y
    phase = -(-((t - 1) * step + (k - 1) * dil + 1) // step)
    offsets = np.arange(k) * dil
    taps = offsets % step * phase + offsets // step
    some = _share(prod(size), planes)
    tasks = -(-planes // some)
    parted = np.empty(tasks * prod(size[:-1]) * step * phase, x.dtype)
    least = np.asarray([_lowest(x.dtype)], x.dtype)
    cpu.max_index_rows(x, y, parted, taps, axes, planes, some, phase, least, tasks)
    return y


@functools.lru_cache(256)
def _axes(size: Sizes, window: Sizes, stride: Sizes, padding: Padding, dilation: Sizes) -> Any:
    """The number of windows along each axis, and what kernels are told of three axes."""
    count = known_size(size, window, stride, padding, dilation)
    axes = np.ones((3, 8), np.int64)
    axes[:, 5:7] = 0  # axes that are not there begin at 0
    for row, n, t, k, s, d, (low, high) in zip(
        axes[3 - len(size) :], size, count, window, stride, dilation, padding
    ):
        row[:] = n, t, k, s, d, -low, max(0, -low), n + min(0, high)
    axes.flags.writeable = False
    return count, axes


def plain_max_pool_index(
    x: NDArray[Any], window: Sizes, stride: Sizes, padding: Padding, dilation: Sizes
) -> NDArray[np.int64]:
    """`max_pool_index` in NumPy."""
    best = max_pool(x, window, stride, padding, dilation)  # (…, *T)
    places = prod(window)
    has_nan = x.dtype.kind not in "iub" and bool((best != best).any())
    # A maximum of ranks, places - place, in the narrowest integers: these passes are bound by
    # memory, and copying where a mask is set is slow.
    rank = np.zeros(best.shape, np.min_scalar_type(places))
    for place, to, at in _taps(x.shape, best.shape, window, stride, padding, dilation):
        here = x[at]
        hit = here == best[to]
        if has_nan:
            hit |= here != here
        part = rank[to]
        np.maximum(part, hit * rank.dtype.type(places - place), out=part)
    return np.where(rank == 0, -1, _flat_places(places - rank.astype(np.int64), x.shape, window,
                                                stride, padding, dilation))  # fmt: skip


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
        met = [
            _meeting(tap, shape[lead + i], pooled[lead + i], stride[i], dilation[i], padding[i][0])
            for i, tap in enumerate(taps)
        ]
        yield place, (..., *[to for to, _ in met]), (..., *[at for _, at in met])
