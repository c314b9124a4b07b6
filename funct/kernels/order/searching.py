"""Sorting, searching and set functions of ndarrays with the standard's arguments.

Each gives what the function of its name in `funct.array` composes of primitives, or None.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from funct.kernels.cpu.indexing.packing import chosen, plain_chosen, replaced_few
from funct.kernels.cpu.loops import pays, ready
from funct.kernels.cpu.order.places import among, hot, marked
from funct.kernels.cpu.scratch import fresh
from funct.kernels.dtypes import FLOATING, NAMED, NATIVE, NO_AXIS, USUAL, is_half
from funct.kernels.elementwise.casting import in_dtype
from funct.kernels.elementwise.thresholds import FAR
from funct.kernels.indexing import gather as indexing
from funct.kernels.indexing import masks, scattering
from funct.kernels.order import bisection, counting, distinct, few_rows, sorting

__all__ = [
    "argsort", "bincount", "digitize", "histogram", "isin", "nonzero", "one_hot", "searchsorted",
    "segment_sum", "sort", "take", "take_along_axis", "top_k", "unique_all", "unique_counts",
    "unique_inverse", "unique_values", "where",
]  # fmt: skip

_FAR = 1 << 40  # more classes than there can be
_LEAST = 4  # elements that are sorted sooner by what is prepared than by NumPy
_SMALL = 256  # elements from which on machine code may pay
_SEVERAL = 1 << 13  # numbers that are made and added up in one call
_FEW = 1 << 12  # and those that NumPy's one call adds up as quickly
_EACH = 32  # elements with which each is compared sooner than it is searched for
_MARKED = 1 << 10  # elements, most of them 0, from which on a kernel puts the ones among them
_WIDE = 8  # marks, which are bytes, for each element that is looked up or marked
_PART = 1 << 15  # elements of a task
_BACKWARDS = (..., slice(None, None, -1))
_LARGEST = (1 << 62) - 1
_BOOL, _DOUBLE, _SINGLE = np.dtype(bool), np.dtype(np.float64), np.dtype(np.float32)
_NUMBERS = {float, int}
_KINDS = {np.dtype(c).num: "quick" for c in "hHiIlLqQ"}  # of sorts: of equal ones none tells
_EXACT = {_DOUBLE, np.dtype(np.float32)}  # whose elements are float64 numbers
_NARROW = {_DOUBLE: 2.0**-50, np.dtype(np.float32): 2.0**-21}  # of bins, beside their numbers


def sort(x: Any, axis: int = -1, descending: bool = False, stable: bool = True) -> Any:
    """x sorted along axis."""
    if axis.__class__ is not int or x.dtype.num >= NATIVE:
        return None
    n = x.size
    if n >= _LEAST:
        few = few_rows.few_sorted.call(x, axis, bool(descending)) if n < _FEW else None
        if few is not None:
            return few
    if n >= _SMALL:
        if n < _FEW and x.ndim == 1 and -2 < axis < 1:
            line = few_rows.line(x, n, bool(descending))
            if line is not None:
                return line
        last = axis == -1 and x.ndim > 0
        return sorting.sort(x, x.ndim - 1 if last else range(x.ndim)[axis], bool(descending))
    how = _KINDS.get(x.dtype.num, "stable")
    if not descending:
        out = x.copy("K")
        out.sort(axis, how)
        return out
    out = _turned(x, axis).copy("K")  # equal elements keep their order here as well
    out.sort(axis, how)
    return _turned(out, axis)


def _turned(x: Any, axis: int) -> Any:
    if axis == -1 or x.ndim == 1:
        return x[_BACKWARDS]
    return x[(slice(None),) * range(x.ndim)[axis] + (slice(None, None, -1),)]


def argsort(x: Any, axis: int = -1, descending: bool = False, stable: bool = True) -> Any:
    """The permutation that sorts x along axis."""
    if axis.__class__ is not int or axis == NO_AXIS or x.dtype.num >= NATIVE:
        return None
    if not x.size or not x.ndim:
        return None
    if x.size >= _SMALL:
        return sorting.argsort(x, range(x.ndim)[axis], bool(descending))
    if not descending:
        return x.argsort(axis, "stable")
    at = _turned(x, axis).argsort(axis, "stable")
    return x.shape[axis] - 1 - _turned(at, axis)


def nonzero(x: Any) -> Any:
    """Indices of the elements that are not 0."""
    return masks.nonzero(x) if x.ndim else None


def top_k(x: Any, k: int, axis: int = -1) -> Any:
    """The k largest elements along axis in descending order, and their indices."""
    if k.__class__ is not int or axis.__class__ is not int or x.dtype.num >= NATIVE:
        return None
    axis = range(x.ndim)[axis]
    n = x.shape[axis]
    if not 0 <= k <= n:
        return None
    if x.ndim > 1 or n >= _SMALL or pays(x, 1):
        return sorting.top_k(x, axis, k)
    at = n - 1 - x[::-1].argsort(0, "stable")[::-1][:k]
    return x[at], at


def unique_all(x: Any) -> Any:
    """Distinct elements, where each stands first, what gives x from them, how often each occurs."""
    if x.dtype.num >= NATIVE:
        return None
    values, at, back, counts = _distinct(x, True, True)
    return values, at, back.reshape(x.shape), counts


def _distinct(x: Any, inverse: bool, counts: bool) -> list[Any]:
    """Distinct elements, and what `distinct.distinct` says of them; a few by one sort."""
    x = x.reshape(-1)
    n = x.size
    if n >= _SMALL:
        places = distinct.distinct(x, inverse, counts)
        return [x[places[0]], *places]
    at = x.argsort(kind="stable")
    y = x[at]
    new = np.empty(n, bool)
    new[:1] = True
    np.not_equal(y[1:], y[:-1], new[1:])
    starts = new.nonzero()[0]
    found = [y[starts], at[starts]]
    if inverse:
        back = np.empty(n, np.int64)
        back[at] = new.cumsum() - 1
        found.append(back)
    if counts:
        many = np.empty(starts.size, np.int64)
        np.subtract(starts[1:], starts[:-1], many[:-1])
        many[-1:] = n - starts[-1:]
        found.append(many)
    return found


def unique_counts(x: Any) -> Any:
    """Distinct elements, and how often each occurs."""
    if x.dtype.num >= NATIVE:
        return None
    if x.size >= _SMALL:
        return distinct.distinct_counts(x.reshape(-1))
    values, _, counts = _distinct(x, False, True)
    return values, counts


def unique_inverse(x: Any) -> Any:
    """Distinct elements, and the indices that give x from them."""
    if x.dtype.num >= NATIVE:
        return None
    values, _, back = _distinct(x, True, False)
    return values, back.reshape(x.shape)


def unique_values(x: Any) -> Any:
    """Distinct elements."""
    if x.dtype.kind in "iu" and x.size < _SMALL:
        return np.unique(x)
    if x.dtype.num >= NATIVE:
        return None
    x = x.reshape(-1)
    n = x.size
    if n >= _SMALL:
        return distinct.distinct_values(x)
    y = x.copy()
    y.sort(0, "stable")
    new = np.empty(n, bool)
    new[:1] = True
    np.not_equal(y[1:], y[:-1], new[1:])
    return y[new]


def isin(x: Any, few: Any, invert: bool = False) -> Any:
    """Whether each of x is one of a few elements, or of integers near each other; else None."""
    k, n, dtype = few.size, x.size, x.dtype
    if dtype is not few.dtype or not k or (dtype.num >= NATIVE and not is_half(dtype)):
        return None
    if k > _EACH:
        return _marked(x, few, bool(invert)) if dtype.kind in "biu" else None
    if is_half(dtype) and n >= _SMALL:
        x, few = in_dtype(x, _SINGLE), in_dtype(few, _SINGLE)
    if x.flags.c_contiguous and pays(x):
        found: Any = np.empty(x.shape, bool)
        flat = few.reshape(-1)
        among(x, flat, found, n, k, _PART, -(-n // _PART))
    elif n * k <= _FEW:
        found = (x[..., None] == few.reshape(-1)).any(-1)
    else:
        return None
    return np.logical_not(found, found) if invert else found


def _marked(x: Any, few: Any, invert: bool) -> Any:
    """Whether each integer is, or is not, one of several that are near each other; else None."""
    few = few.reshape(-1)
    low, high = counting.bounds(few)
    span = high - low + 1
    if span > _WIDE * (x.size + few.size) or not -_LARGEST <= low <= high <= _LARGEST:
        return None
    if not pays(x):
        return np.isin(x, few, invert=invert, kind="table")
    marks = np.full(span + 1, invert)
    marks[few.astype(np.int64) - low] = not invert
    y = np.empty(x.shape, bool)
    marked(x, marks, y, low, span, x.size, _PART, -(-x.size // _PART))
    return y


def digitize(x: Any, bins: Any, right: bool = False) -> Any:
    """The bin of each element."""
    if bins.ndim != 1 or x.dtype.num >= NATIVE or bins.dtype.num >= NATIVE:
        return None
    if not counting.direction(bins):
        return None
    side = "left" if right else "right"
    if bins[0] <= bins[-1]:
        return bisection.searchsorted(bins, x, side)
    return bins.size - bisection.searchsorted(bins[::-1], x, side) if bins[0] > bins[-1] else None


def bincount(x: Any, weights: Any = None, minlength: int = 0, length: Any = None) -> Any:
    """How often each of 0, 1, 2, ... occurs, or the sum of the weights where it does."""
    if x.ndim != 1 or x.dtype.kind not in "iu" or length is not None:
        return None
    if minlength.__class__ is not int or minlength < 0:
        return None
    if weights is None:
        return counting.bincount(x, minlength)
    if weights.__class__ is not np.ndarray or not 0 < x.size < _FEW:
        return None
    high = x.item(x.argmax())
    if high >= _FEW or not 0 <= minlength < _FEW:
        return None
    if weights.dtype is _DOUBLE:
        return counting.weighed(x, weights, minlength)  # which asks for a weight each
    return _summed(weights, x, max(high + 1, minlength)) if weights.shape == x.shape else None


def _summed(data: Any, ids: Any, n: int) -> Any:
    """Sums of 1-D data, of which there is little, by ids below n; ValueError or None where an id is
    negative. None also for halves, which are summed in float32.
    """
    if data.dtype is _DOUBLE:
        return counting.weighed(ids, data, n)
    if data.dtype.num >= NATIVE or is_half(data.dtype) or ids.item(ids.argmin()) < 0:
        return None
    y = np.zeros(n, data.dtype)
    np.add.at(y, ids, data)
    return y


def one_hot(x: Any, num_classes: int, dtype: Any = None, axis: int = -1) -> Any:
    """1 at the index that x holds along a new axis."""
    if num_classes.__class__ is not int or axis.__class__ is not int or x.dtype.kind not in "iu":
        return None
    named = _DOUBLE if dtype is None else NAMED.get(dtype)
    if named is None or not 0 <= num_classes < _FAR:
        return None
    k = range(x.ndim + 1)[axis]
    size = x.size * num_classes
    if k == x.ndim and size >= _MARKED and named.num <= FLOATING and ready(size, 0):
        marks = fresh((*x.shape, num_classes), named)
        hot(x, marks, x.size, num_classes)
        return marks
    classes = (_classes if num_classes < _SMALL else _counted)(num_classes, x.ndim - k)
    return (x[(slice(None),) * k + (None,)] == classes if k else x == classes).astype(named)


def _counted(n: int, behind: int) -> Any:
    """0, 1, 2, … before n, with so many axes behind."""
    return np.arange(n).reshape(n, *(1,) * behind)


_classes = functools.lru_cache(64)(_counted)


def segment_sum(data: Any, ids: Any, num_segments: Any = None) -> Any:
    """Sums of the elements that have one id."""
    few = scattering.few_summed.call(data, ids, num_segments)
    if few is not None:
        return few
    n = num_segments
    if n.__class__ is int and 0 < n <= _SEVERAL and data.shape == ids.shape and data.ndim == 1:
        found = scattering.sums_of_few(data, ids, n)
        if found is not None:
            return found
    if ids.dtype.kind not in "iu" or ids.ndim != 1 or data.shape[:1] != ids.shape:
        return None
    if data.ndim == 1 and 0 < data.size < _FEW:
        high = ids.item(ids.argmax())
        few = high + 1 if n is None else n
        if few.__class__ is int and high < few < _FEW:
            found = _summed(data, ids, few)
            if found is not None:
                return found
    if n.__class__ is not int or n < 0 or data.dtype.num >= NATIVE:
        return None
    return scattering.segment_sum(data, ids, n)


def take(x: Any, i: Any, axis: Any = None) -> Any:
    """Slices of x along axis."""
    few = indexing.few_taken.call(x, i, axis)
    if few is not None:
        return few
    if i.dtype.kind not in "iu" or (axis is None and x.ndim != 1):
        return None
    return indexing.take(x, i, 0 if axis is None else range(x.ndim)[axis])


def take_along_axis(x: Any, i: Any, axis: int = -1) -> Any:
    """One element of x for each index."""
    few = indexing.few_along.call(x, i, axis)
    if few is not None:
        return few
    rank = x.ndim
    if rank != i.ndim or i.dtype.kind not in "iu" or axis.__class__ is not int:
        return None
    axis = range(rank)[axis]
    if rank > 1:
        ours, theirs = x.shape, i.shape
        if ours[:axis] != theirs[:axis] or ours[axis + 1 :] != theirs[axis + 1 :]:
            return None
    return indexing.take_along(x, i, axis)


def where(condition: Any, x: Any, y: Any) -> Any:
    """x where condition holds, else y, of one dtype, or one of them a float."""
    n, c, k = condition.size, x.__class__, y.__class__
    code = condition.dtype is _BOOL and n < FAR and ready(n, 0)
    if c is k is np.ndarray:
        d = x.dtype
        if d is not y.dtype or d.num >= NATIVE or n >= FAR:
            return None
        return (chosen if code and d.num in USUAL else plain_chosen)(condition, x, y)
    if c is float:
        return _beside(y, x, condition, False) if code else None
    return _beside(x, y, condition, True) if code and k is float else None


def _beside(x: Any, number: float, mask: Any, turned: bool) -> Any:
    """x with a number where the mask holds; turned: where it does not. None for most."""
    if x.__class__ is not np.ndarray or x.dtype not in _EXACT or x.shape != mask.shape:
        return None
    if not (x.flags.c_contiguous and mask.flags.c_contiguous):
        return None
    return replaced_few(x, number, mask, True, turned)


def searchsorted(x: Any, v: Any, side: str = "left", sorter: Any = None) -> Any:
    """Where each of v goes in the sorted x."""
    if sorter is not None or x.ndim != 1 or side not in ("left", "right"):
        return None
    if x.dtype.num >= NATIVE:
        return None
    if v.__class__ is int or (v.__class__ is float and x.dtype in _EXACT):
        v = np.asarray(v, x.dtype)
    elif v.__class__ is not np.ndarray or v.dtype is not x.dtype:
        return None
    return x.searchsorted(v, side) if v.size < _SMALL else bisection.searchsorted(x, v, side)


def histogram(
    x: Any, bins: Any = 10, range: Any = None, density: bool = False, weights: Any = None
) -> Any:
    """How many elements fall into each of some bins, and their edges."""
    if density or weights is not None or not x.size:
        return None
    x = x.reshape(-1)
    if x.dtype.kind in "iu":
        if bins.__class__ is not np.ndarray or bins.dtype is not x.dtype:
            x = x.astype(_DOUBLE)
    elif x.dtype not in _EXACT:
        return None
    if bins.__class__ is np.ndarray:
        known = bins.ndim == 1 and bins.size > 1 and bins.dtype is x.dtype and range is None
        if not known or counting.direction(bins) < 1:
            return None
        return counting.histogram_between(x, bins), bins
    if bins.__class__ is not int or bins < 1:
        return None
    if range is None:
        low, high = counting.limits(x)
        if low == high:
            half = x.dtype.type(0.5)
            low, high = low - half, high + half
    elif range.__class__ is tuple and len(range) == 2 and {*map(type, range)} <= _NUMBERS:
        low, high = map(np.float64, range)
    else:
        return None
    if not low < high or not np.isfinite(high - low):
        return None
    step = (high - low) / low.dtype.type(bins)
    if step <= _NARROW[x.dtype] * max(-low, high):
        return None  # edges may be one number
    edges = low + np.arange(bins + 1, dtype=low.dtype) * step
    edges[bins] = high
    edges = edges.astype(x.dtype, copy=False)
    return counting.histogram(x, edges), edges
