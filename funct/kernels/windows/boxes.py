"""Maxima and means of boxes of several sizes, as one kernel each."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from funct.kernels.channels import channels_last
from funct.kernels.cpu.loops import pays, ready
from funct.kernels.cpu.scratch import fresh
from funct.kernels.cpu.windows.boxes import distinct, max_index_boxes, mean_boxes, mean_boxes_back
from funct.kernels.cpu.windows.pooling import LANES
from funct.kernels.windows.last import (
    first_maxima_last,
    maxima_back_last,
    maxima_last,
    means_back_last,
    means_last,
)
from funct.kernels.windows.places import share
from funct.kernels.windows.views import last_in_memory

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = [
    "are_distinct", "first_maxima", "maxima", "maxima_back", "means", "means_back", "of_channels",
]  # fmt: skip

_INT = np.dtype(np.int64)
_PLACES = (_INT, np.dtype(np.int32))  # dtypes of places that are looked at


def first_maxima(x: NDArray[Any], ends: Sequence[NDArray[np.int64]]) -> NDArray[np.int64] | None:
    """The place in the flat image of the maximum of each box over the last axes, the first one but
    of several NaN the last; of axes there are three at most; None where no kernel serves.

    ends: for each of these axes (windows, 2), the first element and the end of each, none empty.
    """
    d = len(ends)
    if x.__class__ is not np.ndarray or d > 3 or not pays(x):
        return None
    lead, size = x.shape[: x.ndim - d], x.shape[x.ndim - d :]
    seen = of_channels(x, d)
    if seen is not None:
        return first_maxima_last(seen, ends)
    count = tuple([len(e) for e in ends])
    one = (1,) * (3 - d)
    told = np.concatenate([np.asarray([[0, 1]] * (3 - d), _INT).reshape(-1, 2), *ends])
    y, planes = fresh((*lead, *count), _INT), prod(lead)
    some = share(prod(size), planes)
    max_index_boxes(x, y, told, *one, *size, *one, *count, planes, some, -(-planes // some))
    return y


def of_channels(x: NDArray[Any], d: int) -> NDArray[Any] | None:
    """Images with so many axes seen with their channels last, which they are in memory, and
    enough; None for others, and of dtypes or sizes that vectors of them do not serve.
    """
    seen = last_in_memory(x, d) if x.dtype.char in "fd" and d <= 3 and pays(x) else None
    if seen is None or seen.shape[-1] < LANES or prod(seen.shape[-1 - d : -1]) >= 1 << 31:
        return None
    return seen


def maxima(seen: NDArray[Any], ends: Sequence[NDArray[np.int64]]) -> NDArray[Any]:
    """The maximum of each box of what `of_channels` gives."""
    return maxima_last(seen, ends)


def maxima_back(
    g: NDArray[Any], seen: NDArray[Any], ends: Sequence[NDArray[np.int64]]
) -> NDArray[Any]:
    """What those, in order, send back to the elements."""
    last = channels_last(g, g.ndim - len(ends) - 1)
    return maxima_back_last(np.ascontiguousarray(last, seen.dtype), seen, ends)


def means(x: NDArray[Any], ends: Sequence[NDArray[np.int64]]) -> NDArray[Any]:
    """The mean of each box over the last axes, as above, of float32 or float64: where `ready`."""
    seen = last_in_memory(x, len(ends))
    if seen is not None and seen.shape[-1] >= LANES:
        return means_last(seen, ends)
    return _mean(mean_boxes, x, ends, x.shape[x.ndim - len(ends) :], [len(e) for e in ends])


def means_back(
    g: NDArray[Any], ends: Sequence[NDArray[np.int64]], size: Sequence[int]
) -> NDArray[Any]:
    """What those send back to the elements of images of that size, of which they leave out none."""
    seen = last_in_memory(g, len(ends))
    if seen is not None and seen.shape[-1] >= LANES:
        return means_back_last(seen, ends, size)
    return _mean(mean_boxes_back, g, ends, size, size)


def _mean(
    kernel: Any, x: Any, ends: Sequence[NDArray[np.int64]], size: Sequence[int], out: Sequence[int]
) -> NDArray[Any]:
    d = len(ends)
    lead = x.shape[: x.ndim - d]
    one = (1,) * (3 - d)
    told = np.concatenate([np.asarray([[0, 1]] * (3 - d), _INT).reshape(-1, 2), *ends])
    y, planes = fresh((*lead, *out), x.dtype), prod(lead)
    some = share(prod(size), planes)
    tasks = -(-planes // some)
    room = np.empty(tasks * size[-1], x.dtype)
    count = [len(e) for e in ends]
    kernel(x, y, told, room, *one, *size, *one, *count, planes, some, tasks)
    return y


def are_distinct(i: NDArray[np.integer[Any]], n: int) -> bool:
    """Whether it is known that the places i (N, C, count) are inside of images of n elements, and
    no two of an image are one.
    """
    if i.dtype not in _PLACES or i.shape[2] > n or not ready(i.size):
        return False
    planes = i.shape[0] * i.shape[1]
    return distinct(i, np.zeros(planes * n, np.uint8), planes, i.shape[2], n) == 1
