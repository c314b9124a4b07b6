"""Distinct elements in ascending order, where they stand and how often: by counting or sorting."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from funct.kernels.cpu.loops import pays
from funct.kernels.cpu.order import sorting as cpu
from funct.kernels.dtypes import is_half
from funct.kernels.elementwise.casting import in_dtype
from funct.kernels.order import counting, sorting
from funct.kernels.reductions.scans import running_sum

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Index = NDArray[np.int64]

__all__ = ["distinct", "distinct_counts", "distinct_values"]

_NONE, _SINGLE = np.empty(0, np.int64), np.dtype(np.float32)


def distinct_values(x: NDArray[Any]) -> NDArray[Any]:
    """The distinct elements of 1-D x in ascending order; every NaN is one of its own."""
    if (few := _few_distinct(x)) is not None:
        return few[0]
    y = _comparable(sorting.sort(x, 0, False))
    if not pays(y):
        return _back(y[_first(y)], x)
    found = np.empty_like(y)
    return _back(_cut(found, cpu.distinct(y, found, _NONE, len(y), False)), x)


def distinct_counts(x: NDArray[Any]) -> tuple[NDArray[Any], Index]:
    """Those, and how often each occurs."""
    if (few := _few_distinct(x)) is not None:
        return few
    y = _comparable(sorting.sort(x, 0, False))
    if not pays(y):
        starts = np.flatnonzero(_first(y))
        return _back(y[starts], x), np.diff(starts, append=len(y))
    found, counts = np.empty_like(y), np.empty(len(y), np.int64)
    many = cpu.distinct(y, found, counts, len(y), True)
    return _back(_cut(found, many), x), _cut(counts, many)


def _comparable(x: NDArray[Any]) -> NDArray[Any]:
    """Halves as float32: NumPy compares them one by one."""
    y: NDArray[Any] = in_dtype(x, _SINGLE) if is_half(x.dtype) else x
    return y


def _back(y: NDArray[Any], x: NDArray[Any]) -> NDArray[Any]:
    """y in the dtype of x."""
    found: NDArray[Any] = in_dtype(y, x.dtype) if is_half(x.dtype) else y
    return found


def _few_distinct(x: NDArray[Any]) -> tuple[NDArray[Any], Index] | None:
    if x.dtype.kind != "b":
        return counting.values(x)
    places, counts = counting.of_truth(x, False, True)
    return x[places], counts


def _cut(x: NDArray[Any], count: int) -> NDArray[Any]:
    """The first elements; a copy where most of x would be held in vain."""
    return x[:count] if 2 * count > len(x) else x[:count].copy()


def distinct(x: NDArray[Any], inverse: bool, counts: bool) -> list[Index]:
    """The first place of each of those; for each of x the number of its value; how many each is."""
    few = counting.distinct(x, inverse, counts)
    if few is not None:
        return few
    at, x = sorting.argsort(x, 0, False), _comparable(x)
    if not pays(x):
        return _plain_distinct(x, at, inverse, counts)
    n = len(x)
    places, often, back = (np.empty(n, np.int64) for _ in range(3))
    many = cpu.numbered(x, at, places, often, back, n)
    found = [_cut(places, many)]
    found += [back] if inverse else []
    found += [_cut(often, many)] if counts else []
    return found


def _plain_distinct(x: NDArray[Any], at: Index, inverse: bool, counts: bool) -> list[Index]:
    """`distinct` in NumPy, for the permutation that sorts x."""
    first = _first(x[at])
    starts = np.flatnonzero(first)
    found = [at[starts]]
    if inverse:
        back = np.empty(len(x), np.int64)
        back[at] = running_sum(first, 0) - 1
        found.append(back)
    if counts:
        found.append(np.diff(starts, append=len(x)))
    return found


def _first(y: NDArray[Any]) -> NDArray[np.bool_]:
    """Whether each element of sorted y is another than the one before it."""
    new = np.ones(len(y), bool)
    np.not_equal(y[1:], y[:-1], out=new[1:])
    return new
