"""Weighted sums of neighbours along one axis, as one kernel."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from funct.kernels.channels import channels_first
from funct.kernels.cpu.loops import pays
from funct.kernels.cpu.scratch import fresh
from funct.kernels.cpu.windows.resampling import LANES, across, along, between
from funct.kernels.windows.places import share
from funct.kernels.windows.views import last_in_memory, memory_order

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["resampled", "resampled_between"]

Taps = tuple["NDArray[Any]", "NDArray[Any]"]


def resampled(
    x: NDArray[Any], places: NDArray[Any], weights: NDArray[Any], axis: int
) -> NDArray[Any] | None:
    """The sums over k of weights[k] times the elements of x at places[k] of axis, which are inside;
    None where no kernel serves. The terms are rounded, and added in their order.
    """
    if x.dtype.char not in "fd" or x.__class__ is not np.ndarray or not places.size or not pays(x):
        return None
    order = memory_order(x)
    if order is not None:  # as it lies in memory
        y = resampled(x.transpose(order), places, weights, order.index(axis))
        return None if y is None else y.transpose(np.argsort(order))
    taps, out = places.shape
    shape = (*x.shape[:axis], out, *x.shape[axis + 1 :])
    y = fresh(shape, x.dtype)
    outer, inner, n = prod(shape[:axis]), prod(shape[axis + 1 :]), x.shape[axis]
    held = weights.astype(x.dtype, copy=False)
    if inner == 1:
        some = share(out * taps, outer)
        along(x, places, held, y, n, out, taps, outer, some, -(-outer // some))
    else:
        count = outer * out
        some = share(inner * taps, count)
        across(x, places, held, y, n, out, inner, taps, count, some, -(-count // some))
    return y


def resampled_between(x: NDArray[Any], first: Taps, second: Taps) -> NDArray[Any] | None:
    """`resampled` along both axes of images whose channels are last, each by two taps; else None.

    first, second: places and weights along either axis.
    """
    seen = last_in_memory(x, 2) if x.dtype.char in "fd" and x.ndim == 4 else None
    if seen is None or seen.shape[-1] < LANES or not pays(x):
        return None
    (rows, shares), (columns, parts) = first, second
    if len(rows) != 2 or len(columns) != 2:
        return None
    outer, n0, n1, inner = seen.shape
    out0, out1 = rows.shape[1], columns.shape[1]
    y = fresh((outer, out0, out1, inner), x.dtype)
    count = outer * out0
    some = share(out1 * inner * 4, count)
    shares, parts = (w.astype(x.dtype, copy=False) for w in (shares, parts))
    told = n0, n1, out0, out1, inner, count, some, -(-count // some)
    between(seen, rows, shares, columns, parts, y, *told)
    return channels_first(y)
