"""Running sums, products and extremes of ndarrays with the standard's arguments, and differences.

Each gives, bit for bit, what the function of its name in `funct.array.cumulative` composes, or None
where that takes more care. Few elements are NumPy's work, more of them that of `scans.py`, which is
also what the primitives call.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from funct.kernels.dtypes import FLOATING, HALF, INTEGER, NATIVE, is_half
from funct.kernels.elementwise.thresholds import FAR, MANY
from funct.kernels.indexing import runs
from funct.kernels.reductions import scans
from funct.kernels.reductions.scans import through_single
from funct.kernels.reductions.statistical import cast, counted

__all__ = [
    "cumprod", "cumsum", "cumulative_max", "cumulative_min", "cumulative_prod", "cumulative_sum",
    "diff", "scanned",
]  # fmt: skip

_SMALL = 256  # elements from which on scans are machine code
_MINUS_ZERO = {d.num: np.asarray(-0.0, d).tobytes() for d in map(np.dtype, ("f2", "f4", "f8"))}


def cumulative_sum(
    x: Any, axis: Any = None, dtype: Any = None, include_initial: bool = False
) -> Any:
    """Running sum along axis."""
    made = None if include_initial or dtype is not None else scans.few(x, axis, "add")
    if made is not None:
        return made
    return scanned(np.add, x, axis, dtype, 0 if include_initial else None)


def cumulative_prod(
    x: Any, axis: Any = None, dtype: Any = None, include_initial: bool = False
) -> Any:
    """Running product along axis."""
    made = None if include_initial or dtype is not None else scans.few(x, axis, "multiply")
    if made is not None:
        return made
    return scanned(np.multiply, x, axis, dtype, 1 if include_initial else None)


def cumsum(x: Any, axis: Any = None, dtype: Any = None) -> Any:
    """Running sum along axis, or of all elements."""
    return scanned(np.add, x if axis is not None else x.reshape(-1), axis, dtype, None)


def cumprod(x: Any, axis: Any = None, dtype: Any = None) -> Any:
    """Running product along axis, or of all elements."""
    return scanned(np.multiply, x if axis is not None else x.reshape(-1), axis, dtype, None)


def scanned(ufunc: Any, x: Any, axis: Any, dtype: Any, initial: int | None) -> Any:
    """A ufunc's running value along axis, behind an initial one; None as for all of these."""
    rank = x.ndim
    if axis is None and rank == 1:
        axis = 0
    if axis.__class__ is not int or not rank or x.dtype.num >= NATIVE:
        return None
    if dtype is not None:
        x = cast(x, dtype)
        if x is None:
            return None
    if x.size < _SMALL and x.dtype.num != HALF:
        y = ufunc.accumulate(x, axis)
    else:
        run = scans.running_sum if ufunc is np.add else scans.running_product
        y = run(x, _counted(axis, rank))
    if dtype is not None and y.dtype is not x.dtype:
        y = y.astype(x.dtype)
    return y if initial is None else _begun(y, _counted(axis, rank), initial)


def _begun(y: Any, axis: int, initial: int) -> Any:
    """y behind one more element along axis."""
    shape = y.shape
    before: Any = (slice(None),) * axis
    out = np.empty((*shape[:axis], shape[axis] + 1, *shape[axis + 1 :]), y.dtype)
    out[(*before, 0)] = initial
    out[(*before, slice(1, None))] = y
    return out


def _counted(axis: int, rank: int) -> int:
    """axis from the first one on. Raises IndexError."""
    return range(rank)[axis]


def _running(ufunc: Any) -> Callable[..., Any]:
    accumulate, largest = ufunc.accumulate, ufunc is np.maximum

    def run(x: Any, axis: Any = None) -> Any:
        rank = x.ndim
        if axis is None and rank == 1:
            axis = 0
        number = x.dtype.num
        if axis.__class__ is not int or not rank or not (number <= FLOATING or number == HALF):
            return None
        n = x.size
        if n >= _SMALL:
            return scans.running_extremum(x, _counted(axis, rank), largest)
        y = accumulate(x, axis)
        # of 0 and -0 NumPy takes the later one, which is seen only if there is some -0
        if number <= INTEGER or counted(y) == n or _MINUS_ZERO[number] not in y.tobytes():
            return y
        return scans.running_extremum(x, _counted(axis, rank), largest)

    return run


# The largest or smallest element so far along axis.
cumulative_max, cumulative_min = _running(np.maximum), _running(np.minimum)


def diff(x: Any, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> Any:
    """Differences along axis."""
    if n.__class__ is not int or not 0 < n < 9 or axis.__class__ is not int or not x.ndim:
        return None
    if prepend is not None or append is not None:
        parts = [p for p in (prepend, x, append) if p is not None]
        for p in parts:
            if p.__class__ is not np.ndarray or p.dtype is not x.dtype:
                return None
        x = np.concatenate(parts, axis)
    axis = _counted(axis, x.ndim)
    single = x.size >= MANY and is_half(x.dtype)  # NumPy takes halves from each other one by one
    if single and x.size >= FAR:
        return None  # as vectors of halves
    for _ in range(n):
        x = through_single(runs.differences, x, axis) if single else runs.differences(x, axis)
    return x
