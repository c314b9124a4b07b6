"""Weighted sums of neighbours along one axis, as one kernel."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from funct.kernels.cpu.irregular.resampling import across, along
from funct.kernels.cpu.loops import pays
from funct.kernels.cpu.scratch import fresh
from funct.kernels.windows.places import share
from funct.kernels.windows.views import memory_order

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["resampled"]


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
