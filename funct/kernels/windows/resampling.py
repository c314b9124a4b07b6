"""Weighted sums of neighbours along axes, each as one kernel."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from funct.kernels.cpu.loops import pays
from funct.kernels.cpu.scratch import maker
from funct.kernels.cpu.windows.resampling import LANES, across, along, between
from funct.kernels.windows.places import share
from funct.kernels.windows.views import inverse_order, memory_order

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["resampled", "resampling"]

Taps = tuple["NDArray[Any]", "NDArray[Any]"]
_Run = Callable[[Any], Any]


def resampled(
    x: NDArray[Any], places: NDArray[Any], weights: NDArray[Any], axis: int
) -> NDArray[Any] | None:
    """The sums over k of weights[k] times the elements of x at places[k] of axis, which are inside;
    None where no kernel serves. The terms are rounded, and added in their order. Where the first
    place is below 0 there are none, and the sum is 0.
    """
    if x.dtype.char not in "fd" or x.__class__ is not np.ndarray or not places.size or not pays(x):
        return None
    order = memory_order(x)
    if order is not None:  # as it lies in memory
        y = resampled(x.transpose(order), places, weights, order.index(axis))
        return None if y is None else y.transpose(inverse_order(order))
    found: NDArray[Any] = _along_axis(x.shape, x.dtype, (places, weights), axis)[0](x)
    return found


def resampling(x: NDArray[Any], taps: Sequence[tuple[Taps, int]]) -> _Run | None:
    """What computes `resampled` along axes, one after the other, of arrays that lie as x does; None
    where no kernel serves.
    """
    if x.dtype.char not in "fd" or not all(places.size for (places, _), _ in taps):
        return None
    order, shape, steps = memory_order(x), x.shape, []
    if order is None and not x.flags.c_contiguous:
        return None
    if order is not None:
        shape = tuple([shape[a] for a in order])
        taps = [(each, order.index(axis)) for each, axis in taps]
    axes = [axis for _, axis in taps]
    if order == [0, 2, 3, 1] and axes == [1, 2] and _is_between(shape, *[each for each, _ in taps]):
        steps.append(_between_axes(shape, x.dtype, *[each for each, _ in taps]))
    else:
        for each, axis in taps:
            step, shape = _along_axis(shape, x.dtype, each, axis)
            steps.append(step)
    back = None if order is None else inverse_order(order)

    def run(x: Any) -> Any:
        y = x if order is None else x.transpose(order)
        for step in steps:
            y = step(y)
        return y if back is None else y.transpose(back)

    return run


def _along_axis(
    shape: tuple[int, ...], dtype: np.dtype[Any], taps: Taps, axis: int
) -> tuple[_Run, tuple[int, ...]]:
    """The sums along an axis of dense arrays of that shape; and the shape of these."""
    (places, weights), n = taps, shape[axis]
    count, out = places.shape
    to = (*shape[:axis], out, *shape[axis + 1 :])
    outer, inner = prod(shape[:axis]), prod(shape[axis + 1 :])
    make, held = maker(to, dtype), weights.astype(dtype, copy=False)
    kernel: Any
    told: tuple[int, ...]
    if inner == 1:
        some = share(out * count, outer)
        kernel, told = along, (n, out, count, outer, some, -(-outer // some))
    else:
        rows = outer * out
        some = share(inner * count, rows)
        kernel, told = across, (n, out, inner, count, rows, some, -(-rows // some))

    def run(x: Any) -> Any:
        y = make()
        kernel(x, places, held, y, *told)
        return y

    return run, to


def _is_between(shape: tuple[int, ...], first: Taps, second: Taps) -> bool:
    """Whether both axes of images, of which pixels are last, are done at once."""
    return shape[-1] >= LANES and len(first[0]) == len(second[0]) <= 2


def _between_axes(
    shape: tuple[int, ...], dtype: np.dtype[Any], first: Taps, second: Taps
) -> _Run:
    """The sums along both axes of dense images (N, H, W, C)."""
    (rows, shares), (columns, parts) = first, second
    outer, n0, n1, inner = shape
    out0, out1 = rows.shape[1], columns.shape[1]
    make = maker((outer, out0, out1, inner), dtype)
    count = outer * out0
    some = share(out1 * inner * 4, count)
    shares, parts = (w.astype(dtype, copy=False) for w in (shares, parts))
    told = n0, n1, out0, out1, inner, count, some, len(rows) == 1, -(-count // some)

    def run(x: Any) -> Any:
        y = make()
        between(x, rows, shares, columns, parts, y, *told)
        return y

    return run
