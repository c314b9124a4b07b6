"""Pools of images whose channels are last in memory: what their kernels are told.

Boxes of several sizes are windows like others: they all begin at the corner of the image, and meet
what they hold.
"""

from __future__ import annotations

import functools
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from funct.kernels.channels import channels_first
from funct.kernels.cpu.scratch import fresh
from funct.kernels.cpu.windows.pooling import LANES
from funct.kernels.cpu.windows.pooling_last import (
    WIDTHS,
    fold_last,
    max_index_last,
    max_spread_last,
    spread_last,
    width_of,
)
from funct.kernels.windows.places import axes_of, ends, order, share
from funct.kernels.windows.views import Padding, Sizes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = [
    "first_maxima_last", "maxima_back_last", "maxima_last", "means_back_last", "means_last",
    "pool_last", "rows_last", "sums_back_last",
]  # fmt: skip

_INT = np.dtype(np.int64)


def pool_last(
    how: str, empty: Any, seen: NDArray[Any], window: Sizes, stride: Sizes, padding: Padding,
    dilation: Sizes, counts: NDArray[Any] | None,
) -> NDArray[Any] | None:  # fmt: skip
    """Fold the windows of images seen with their channels last; None for too few of them. The
    arguments: as of `pool_rows`.
    """
    dtype = seen.dtype
    if counts is not None and counts.dtype is not dtype:
        return None
    plan = _plan(seen.shape, dtype, window, stride, padding, dilation)
    return None if plan is None else _folded(how, empty, seen, plan, counts, len(window))


def _folded(
    how: str, empty: Any, seen: NDArray[Any], plan: Any, counts: NDArray[Any] | None, d: int
) -> NDArray[Any]:
    to, room, tables, rest, alone, tasks = plan
    dtype = seen.dtype
    y, none = fresh(to, dtype), np.array([empty], dtype)
    how, divisors = (how, none) if counts is None else ("mean", counts)
    fold_last(
        seen, y, np.empty(room, dtype), *tables, none, divisors, *rest, how, alone, tasks
    )  # fmt: skip
    return channels_first(y, y.ndim - d - 1)


@functools.lru_cache(256)
def _plan(
    shape: Sizes, dtype: np.dtype[Any], window: Sizes, stride: Sizes, padding: Padding,
    dilation: Sizes,
) -> Any:  # fmt: skip
    """The shape of the result, the elements of the room, what `fold_last` is told before and
    behind the arrays, and its tasks; None for too few channels.
    """
    inner = shape[-1]
    if inner < LANES:
        return None
    rows, some, to, axes = rows_last(shape, window, stride, padding, dilation)
    size = shape[-1 - len(window) : -1]
    taps, found = order(size, window, stride, padding, dilation, inner)
    column = prod(window[:-1])
    alone = column * window[-1] <= column * stride[-1] + window[-1]  # folds of each are fewer
    return _told(shape, dtype, to, rows, some, axes, taps, found, alone)


def _told(
    shape: Sizes, dtype: np.dtype[Any], to: Sizes, rows: int, some: int, axes: Any, taps: Any,
    found: Any, alone: bool,
) -> Any:  # fmt: skip
    tasks = -(-rows // some)
    room = 0 if alone else tasks * prod(shape[-2:])
    rest = rows, some, shape[-1], width_of(shape[-1], dtype)
    return to, room, (axes, taps, found), rest, alone, tasks


def rows_last(
    shape: Sizes, window: Sizes, stride: Sizes, padding: Padding, dilation: Sizes
) -> tuple[int, int, Sizes, Any]:
    """Rows of results of images with their channels last, how many make a task, the shape of the
    results, and what kernels are told of the axes.
    """
    lead = len(shape) - len(window) - 1
    count, axes = axes_of(shape[lead:-1], window, stride, padding, dilation)
    rows = prod((*shape[:lead], *count[:-1]))
    some = share(prod(shape[-2:]) * prod(window[:-1]), rows)
    return rows, some, (*shape[:lead], *count, shape[-1]), axes


def means_last(seen: NDArray[Any], boxes: Sequence[NDArray[np.int64]]) -> NDArray[Any]:
    """The mean of each box of images seen with their channels last, of which there are `LANES` or
    more. boxes: the first element and the end of each along each axis.
    """
    plan, counts = _plan_of_boxes(seen.shape, seen.dtype, *[b.tobytes() for b in boxes])
    return _folded("mean", -0.0, seen, plan, counts, len(boxes))


def means_back_last(
    seen: NDArray[Any], boxes: Sequence[NDArray[np.int64]], size: Sequence[int]
) -> NDArray[Any]:
    """What those send back to the elements of images of that size, to which they come in order."""
    counts, found = _ends_of_boxes(seen.dtype, tuple(size), *[b.tobytes() for b in boxes])
    return _spread(seen / counts[..., None], tuple(size), found)


def maxima_last(seen: NDArray[Any], boxes: Sequence[NDArray[np.int64]]) -> NDArray[Any]:
    """The maximum of each box, as `means_last`, of floats."""
    plan, _ = _plan_of_boxes(seen.shape, seen.dtype, *[b.tobytes() for b in boxes])
    return _folded("max", -np.inf, seen, plan, None, len(boxes))


def first_maxima_last(seen: NDArray[Any], boxes: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    """Where in its flat image the maximum of each box stands."""
    plan, _ = _plan_of_boxes(seen.shape, seen.dtype, *[b.tobytes() for b in boxes])
    to, _, (axes, *_), (rows, some, inner, many), _, tasks = plan
    y = fresh(to, _INT)
    max_index_last(seen, y, axes, _met(boxes), rows, some, inner, many, tasks)
    return channels_first(y, y.ndim - len(boxes) - 1)


def maxima_back_last(
    g: NDArray[Any], seen: NDArray[Any], boxes: Sequence[NDArray[np.int64]]
) -> NDArray[Any]:
    """What g, seen as `seen`, sends back to the maxima of boxes, which come in order."""
    plan, _ = _plan_of_boxes(seen.shape, seen.dtype, *[b.tobytes() for b in boxes])
    _, _, (axes, *_), (_, _, inner, many), _, _ = plan
    z, d = fresh(seen.shape, seen.dtype), len(boxes)
    images = prod(seen.shape[: seen.ndim - d - 1])
    some = inner if inner % WIDTHS[many] else WIDTHS[many]
    tasks = images * (inner // some)
    max_spread_last(g, seen, z, axes, _met(boxes), inner, some, many, False, tasks)
    return channels_first(z, z.ndim - d - 1)


def _met(boxes: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    """What of each of three axes windows that begin at the corner of the image meet."""
    return np.concatenate([np.asarray([[0, 1]] * (3 - len(boxes)), _INT).reshape(-1, 2), *boxes])


@functools.lru_cache(256)
def _plan_of_boxes(shape: Sizes, dtype: np.dtype[Any], *boxes: bytes) -> Any:
    """As `_plan`, and the elements of each box. All windows begin at the image's corner."""
    read = _read(boxes)
    d, inner = len(read), shape[-1]
    lead = shape[: len(shape) - d - 1]
    size, count = shape[-1 - d : -1], tuple([len(b) for b in read])
    axes = np.ones((3, 8), np.int64)
    axes[:, 5:7] = 0
    taps, found = [np.zeros(1, np.int64)], [np.asarray([[0, 1]] * (3 - d), np.int64).reshape(-1, 2)]
    for k, b in enumerate(read):
        axes[3 - d + k, [0, 1, 3, 7]] = size[k], count[k], 0, size[k]
        found.append(b + sum(map(len, taps)))
        taps.append(np.arange(size[k]) * prod(size[k + 1 :]) * inner)
    rows = prod((*lead, *count[:-1]))
    some = share(prod(size) * inner // prod(count[:-1]), rows)
    told = axes, np.concatenate(taps), np.concatenate(found)
    plan = _told(shape, dtype, (*lead, *count, inner), rows, some, *told, alone=True)
    return plan, _elements(read, dtype)


@functools.lru_cache(256)
def _ends_of_boxes(dtype: np.dtype[Any], size: Sizes, *boxes: bytes) -> Any:
    """The elements of each box, and for each place of three axes the first of the boxes that it is
    in, and the end of them.
    """
    read = _read(boxes)
    found = [np.asarray([[0, 1]] * (3 - len(size)), np.int64).reshape(-1, 2)]
    for n, (first, end) in zip(size, [b.T for b in read], strict=True):
        at = np.arange(n)
        found.append(np.stack((end.searchsorted(at, "right"), first.searchsorted(at, "right")), 1))
    return _elements(read, dtype), np.concatenate(found).astype(np.int64)


def _read(boxes: Sequence[bytes]) -> list[NDArray[np.int64]]:
    return [np.frombuffer(b, np.int64).reshape(-1, 2) for b in boxes]


def _elements(boxes: Sequence[NDArray[np.int64]], dtype: np.dtype[Any]) -> NDArray[Any]:
    """How many each box has."""
    sides = np.ix_(*[end - first for first, end in [b.T for b in boxes]])
    return np.asarray(functools.reduce(np.multiply, sides), dtype)


def sums_back_last(
    seen: NDArray[Any], shape: Sizes, window: Sizes, stride: Sizes, padding: Padding
) -> NDArray[Any]:
    """The adjoint of sums of windows of images, seen with their channels last."""
    counts = seen.shape[-1 - len(shape) : -1]
    return _spread(seen, shape, ends(shape, counts, window, stride, padding))


def _spread(seen: NDArray[Any], shape: Sizes, windows: Any) -> NDArray[Any]:
    """For each element of images of that shape what seen has for the windows it is in, added up.

    windows: for each place of three axes the first of those windows, and the end of them.
    """
    d, inner = len(shape), seen.shape[-1]
    lead = seen.ndim - d - 1
    x = fresh((*seen.shape[:lead], *shape, inner), seen.dtype)
    three, counts = ((*(1,) * (3 - d), *v) for v in (shape, seen.shape[lead:-1]))
    rows, length = prod(x.shape[:-2]), counts[2] * inner
    some = share(max(three[2] * inner, length), rows)
    tasks = -(-rows // some)
    room = np.empty(tasks * length, x.dtype)
    many = width_of(inner, x.dtype)
    spread_last(seen, x, room, windows, *three, *counts, rows, some, inner, many, tasks)
    return channels_first(x, lead)
