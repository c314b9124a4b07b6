"""Pools of images in C's order: what the kernel of rows is told."""

from __future__ import annotations

import functools
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from funct.kernels.cpu.scratch import fresh
from funct.kernels.cpu.windows.pooling import LANES
from funct.kernels.cpu.windows.pooling_rows import STEPS, fold_rows
from funct.kernels.windows.places import axes_of, order, row_taps, share
from funct.kernels.windows.views import Padding, Sizes

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["plan_of", "pool_rows"]

_FAR = 4  # lengths of an axis


def pool_rows(
    how: str, empty: Any, x: NDArray[Any], window: Sizes, stride: Sizes, padding: Padding,
    dilation: Sizes, counts: NDArray[Any] | None,
) -> NDArray[Any] | None:  # fmt: skip
    """Fold the windows of images in C's order, of float32 or float64; None where there is nothing
    to pool. how: "max" or "sum", of which counts make means. empty: what padding counts as.
    """
    plan = plan_of(x.shape, window, stride, padding, dilation)
    if plan is None or (counts is not None and counts.dtype is not x.dtype):
        return None
    shape, given, rest, room, tasks = plan
    y = fresh(shape, x.dtype)
    none = np.array([empty], x.dtype)
    how, divisors = (how, none) if counts is None else ("mean", counts)
    fold_rows(x, y, np.empty(room, x.dtype), *given, none, divisors, *rest, how, tasks)
    return y


@functools.lru_cache(256)
def plan_of(shape: Sizes, window: Sizes, stride: Sizes, padding: Padding, dilation: Sizes) -> Any:
    """The shape of the result, what `fold_rows` is told before and behind the arrays of one dtype,
    the elements of its room and its tasks; None for no elements, and where windows reach far beyond
    the image: plans and room are as long as they.
    """
    lead = len(shape) - len(window)
    size = shape[lead:]
    count, axes = axes_of(size, window, stride, padding, dilation)
    to = (*shape[:lead], *count)
    spans = [max(s, d * (k - 1)) for k, s, d in zip(window, stride, dilation, strict=True)]
    far = any(span > _FAR * (n + LANES) for span, n in zip(spans, size, strict=True))
    if far or 0 in (*shape, *to) or min(*window, *stride, *dilation) < 1:
        return None
    rows = prod(to[:-1])
    some = share(size[-1] * prod(window[:-1]), rows)
    tasks = -(-rows // some)
    length = (count[-1] - 1) * stride[-1] + (window[-1] - 1) * dilation[-1] + stride[-1]
    taps, found = order(size, window, stride, padding, dilation, 1)
    along = row_taps(size[-1], count[-1], window[-1], stride[-1], dilation[-1], padding[-1][0])
    rest = rows, some, length, STEPS.get(stride[-1], "far")
    return to, (axes, taps, found, along), rest, tasks * (length + LANES), tasks
