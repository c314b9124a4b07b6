"""How often elements occur: plain, or in machine code; counts are integers, so both are exact."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from funct.kernels.cpu.loops import pays, ready
from funct.kernels.cpu.order import counting as cpu
from funct.kernels.cpu.order import places
from funct.kernels.indexing.masks import nonzero

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Index = NDArray[np.int64]

__all__ = [
    "SORTED", "bincount", "bounds", "direction", "distinct", "histogram", "histogram_between",
    "limits", "of_truth", "plain_histogram", "rises", "seem_close", "sort", "values", "weighed",
]  # fmt: skip

_LARGEST = (1 << 63) - 1
_MOST = _LARGEST.to_bytes(8, sys.byteorder)
# What `np.bincount(x, weights, minlength)` calls.
weighed: Any = getattr(
    getattr(getattr(np, "_core", None), "_multiarray_umath", None), "bincount", np.bincount
)
# What `np.digitize` asks of bins, which it takes as float64.
_monotonous: Any = getattr(
    getattr(getattr(np, "_core", None), "_multiarray_umath", None), "_monotonicity", None
)
_COUNTED = frozenset("bBhHiIlq")  # integers that int64 holds
_FEW = 256  # elements of which nobody asks more
_LEAST = 1 << 11  # elements below which NumPy's few calls cost less
SORTED = 10 << 10  # bytes from which on tables of counters sort sooner
_PART = 1 << 16  # elements of a task
_ROWS = 16  # tasks at most, each of so many elements for each of its counters
_PER_BIN = 8
_ALONE = 1 << 15  # elements from which on they are counted in several rows,
_SEVERAL = 1 << 11  # of so many bins at most
_INT64 = np.dtype(np.int64)
_LIKE = np.zeros(1, np.int64)  # what counts are
_DENSE = 4  # bins per element up to which a table of bins is cheaper than to sort


def direction(x: Any) -> int:
    """Whether a row ascends (1), descends (-1) or neither (0)."""
    if _monotonous is not None and x.dtype.char in "fdbBhHiIlqLQ":
        return int(_monotonous(x))
    return int((x[:-1] <= x[1:]).all()) or -int((x[:-1] >= x[1:]).all())


def limits(x: NDArray[Any]) -> tuple[Any, Any]:
    """The least and the greatest of floats, of which there is one at least; NaN if one is."""
    if x.size < _LEAST or not pays(x):
        return x.min(), x.max()
    ends = np.empty(2 + 2 * cpu.LANES, x.dtype)
    if cpu.limits(x, ends, x.size):
        return (x.dtype.type(np.nan),) * 2
    return ends[0], ends[1]


def rises(x: Any) -> bool:
    """Whether each number of a row is less than the next one."""
    return bool((x[:-1] < x[1:]).all())


def bounds(x: NDArray[Any]) -> tuple[int, int]:
    """The least and the greatest of integers, of which there is one at least."""
    if not pays(x):
        return int(x.min()), int(x.max())
    ends = np.empty(2 + 2 * cpu.LANES, x.dtype)
    cpu.bounds(x, ends, x.size)
    return int(ends[0]), int(ends[1])


def _parts(n: int, bins: int) -> tuple[int, int]:
    """Elements of a task, and how many tasks: as many as are worth their rows of counters."""
    tasks = max(1, min(_ROWS, n // max(_PART, _PER_BIN * bins)))
    return -(-n // tasks), tasks


def bincount(x: NDArray[Any], least: int) -> NDArray[np.int64]:
    """As `numpy.bincount(x, None, least)`, which for 2**63 bins writes where it has none."""
    n, d = x.size, x.dtype
    some = n >= _FEW and least >= 0 and (d is _INT64 or d.char in _COUNTED) and ready(n, 0)
    if not some:
        few = n < _LEAST  # then what looks like the number among their bytes is found sooner
        if x.itemsize == 8 and (_MOST in x.tobytes() if few else x.item(x.argmax()) == _LARGEST):
            raise ValueError("there cannot be 2**63 bins")
        return weighed(x, None, least)
    if n < _ALONE:
        bins = cpu.span(x, n, least)
        if 0 <= bins <= _DENSE * n:
            made: NDArray[np.int64] = cpu.counted(x, bins, _LIKE, n)
            return made
    low, high = bounds(x)
    if low < 0:
        raise ValueError("there are negative ones")
    return _counted(x, max(high + 1, least), 0)


def _counted(x: NDArray[Any], bins: int, low: int) -> NDArray[np.int64]:
    """How often each of low, low + 1, … stands in x."""
    tables = cpu.TABLES if bins <= _SEVERAL else 1
    part, tasks = _parts(x.size, bins * tables)
    counts = np.zeros((tasks * tables, bins), np.int64)
    cpu.count(x, counts, x.size, bins, low, tables, part, tasks)
    return counts[0] if len(counts) == 1 else np.asarray(counts.sum(0))


def histogram(x: NDArray[Any], edges: NDArray[Any]) -> NDArray[np.int64]:
    """How many elements lie between ascending edges of nearly equal distances."""
    bins, low, high = len(edges) - 1, float(edges[0]), float(edges[-1])
    scale = bins / (high - low) if high > low else 0.0
    if not pays(x) or not np.isfinite(scale):
        return plain_histogram(x, edges)
    part, tasks = _parts(x.size, bins * cpu.TABLES)
    counts = np.zeros((tasks * cpu.TABLES, bins + 1 + cpu.SIDE), np.int64)
    exact = edges.astype(np.float64, copy=False)
    # a bin is wrong by the roundings of its edge, which has x's digits, and of three operations
    near = 16 * float(np.finfo(edges.dtype).eps) * (bins + max(-low, high) * scale)
    cpu.count_bins(x, exact, counts, x.size, bins, low, scale, near, part, tasks)
    return np.asarray(counts[:, :bins].sum(0))


def histogram_between(x: NDArray[Any], edges: NDArray[Any]) -> NDArray[np.int64]:
    """How many elements lie between ascending edges of x's dtype, at any distances."""
    if not pays(x) or x.size < places.SEARCHED:
        return plain_histogram(x, edges)
    bins = len(edges) - 1
    part, tasks = _parts(x.size, bins)
    counts = np.zeros((tasks, bins + 2 + places.SEARCHED), np.int64)
    known = bins + 1
    if edges.dtype.kind == "f":
        known = int(edges.searchsorted(np.asarray(np.nan, edges.dtype)))
    places.count_between(x, edges, counts, x.size, bins, known, part, tasks)
    return np.asarray(counts[:, 1 : bins + 1].sum(0))


def plain_histogram(x: NDArray[Any], edges: NDArray[Any]) -> NDArray[np.int64]:
    """`histogram` in NumPy, for edges at any distance."""
    at = edges.searchsorted(x, "right") - 1
    at[x == edges[-1]] = len(edges) - 2
    return np.bincount(at[(at >= 0) & (at < len(edges) - 1)], minlength=len(edges) - 1)


def seem_close(x: NDArray[Any]) -> bool:
    """Whether a line of integers may be sorted by counting: three of them lie close together."""
    n, size = x.size, x.nbytes
    if size < SORTED or x.dtype.char not in _COUNTED:
        return False
    room = size // 8  # half of the words are sorted in half the time
    middle = x.item(n >> 1)
    return bool(abs(x.item(0) - middle) < room and abs(x.item(n - 1) - middle) < room)


def sort(x: NDArray[Any]) -> NDArray[Any] | None:
    """1-D integers sorted by counting, where many lie close together; None for all others."""
    n = x.size
    if not seem_close(x) or not pays(x):
        return None
    room = n * x.itemsize // 8
    counts = np.empty(room, np.int32 if n < 1 << 31 else np.int64)
    y = np.empty(n, x.dtype)
    return None if cpu.sort(x, counts, y, n, room) else y


def _close_together(x: NDArray[Any]) -> tuple[int, int] | None:
    """The least of integers and how many there are from it to the greatest; None where a table of
    so many is not worth it.
    """
    if x.dtype.char not in _COUNTED or not pays(x):
        return None
    low, high = bounds(x)
    span = high - low + 1
    return (low, span) if span <= _DENSE * x.size else None


def values(x: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.int64]] | None:
    """The distinct ones of integers close together, and how often each is; None for all others."""
    found = _close_together(x)
    if found is None:
        return None
    low, span = found
    counts = _counted(x, span, low)
    (at,) = nonzero(counts)
    return (at + low).astype(x.dtype, copy=False), counts[at]


def distinct(x: NDArray[Any], inverse: bool, counts: bool) -> list[Index] | None:
    """As `distinct.distinct`, for truth and integers close together; None for all others."""
    if x.dtype.kind == "b":
        return of_truth(x, inverse, counts)
    close = _close_together(x)
    if close is None:
        return None
    (low, span), n = close, x.size
    first = np.full(span, n, np.int64)
    cpu.first_places(x, first, low, n)
    places = np.empty(min(span, n), np.int64)
    found = cpu.ranks(first, places, span, n)
    made = [places[:found].copy() if 2 * found < n else places[:found]]
    if inverse or counts:
        back = np.empty(n, np.int64)
        part = max(1, min(n, _PART))
        cpu.numbered(x, first, back, low, n, part, -(-n // part))
        made += [back] if inverse else []
        made += [_counted(back, found, 0)] if counts else []
    return made


def of_truth(x: NDArray[Any], inverse: bool, counts: bool) -> list[Index]:
    """The same of False and True, of which one look at x says all."""
    n, true = x.size, int(np.count_nonzero(x))
    often = [k for k in (n - true, true) if k]
    first = [x.argmin()] if true < n else []
    first += [x.argmax()] if true else []
    found = [np.asarray(first, np.int64)]
    if inverse:
        found.append(x.astype(np.int64) if len(often) > 1 else np.zeros(n, np.int64))
    if counts:
        found.append(np.asarray(often, np.int64))
    return found
