"""Quantiles along axes or over all: sort once, take two for each fraction, go between.

Of long runs and few fractions nothing is sorted: NumPy selects, in a fifth of the time.
"""

from __future__ import annotations

from functools import lru_cache
from math import floor, isfinite
from typing import Any

import numpy as np

from funct.kernels.cpu.loops import ready
from funct.kernels.cpu.order.presorted import STANDS
from funct.kernels.cpu.order.selecting import ROOM, between
from funct.kernels.cpu.outside import sorts
from funct.kernels.dtypes import INTEGER, is_half
from funct.kernels.linalg.dots import vdot
from funct.kernels.order import sorting

__all__ = ["median", "nanmedian", "nanquantile", "quantile"]

_MOST = 1 << 14  # elements that are sorted in vain, where one is not finite, in little time
_SMALL = 256  # elements from which on machine code sorts
_FEW = 33  # fractions from which on they are not asked for one by one
_LONG, _LINE, _ROW = 256, 512, 64  # elements of a run, of each of several, and of many rows,
_COUNTED = (8, 1 << 16)  # elements of a line of which a quantile is found by counting
_SELECTED = 4  # and fractions, for which selecting is quicker
_FLOATS = (np.dtype(np.float64), np.dtype(np.float32))
_SINGLE = _FLOATS[1]
_least: Any = np.minimum.reduce
_most: Any = np.maximum.reduce
# Which share of the next element a place between two has, by methods that agree on the place.
_PARTS: dict[Any, Any] = {
    "linear": lambda part, k: part,
    "lower": lambda part, k: 0.0,
    "higher": lambda part, k: float(part > 0),
    "midpoint": lambda part, k: 0.5 if part > 0 else 0.0,
    "nearest": lambda part, k: float(part >= 0.5 if k % 2 else part > 0.5),
}


def median(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """Median over axis."""
    return _quantile(x, 0.5, axis, "linear", keepdims, None, False)


def nanmedian(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """Median over axis; None where an element is not finite."""
    return _quantile(x, 0.5, axis, "linear", keepdims, None, True)


def quantile(
    x: Any,
    q: Any,
    axis: Any = None,
    method: str = "linear",
    keepdims: bool = False,
    weights: Any = None,
) -> Any:
    """The value below which a fraction q of x lies; None where an element is infinite."""
    return _quantile(x, q, axis, method, keepdims, weights, False)


def nanquantile(
    x: Any,
    q: Any,
    axis: Any = None,
    method: str = "linear",
    keepdims: bool = False,
    weights: Any = None,
) -> Any:
    """`quantile` where all elements are finite."""
    return _quantile(x, q, axis, method, keepdims, weights, True)


def _quantile(
    x: Any, q: Any, axis: Any, method: Any, keepdims: Any, weights: Any, skips: bool
) -> Any:  # fmt: skip
    """skips: what is NaN is left out, so that there must be none."""
    if weights is not None or method not in _PARTS or not x.size:
        return None
    real, whole = x.dtype in _FLOATS, x.dtype.kind in "iu"
    line = axis is None and not keepdims and (real or whole)
    if line and q.__class__ is float and 0.0 <= q <= 1.0:  # what is asked most
        run = x.reshape(-1)
        if real and _COUNTED[0] <= x.size <= _COUNTED[1]:
            found = _counted(run, q, method)
            if found is not None:
                return found
        if x.size >= _LONG and (whole or isfinite(vdot(run, run))):
            return _selected(run, q, method, x.dtype.type if real else np.float64)
    single = x.dtype is _SINGLE
    fractions: Any = [q]
    lead: Any = ()
    if q.__class__ is np.ndarray:
        if q.dtype not in _FLOATS:
            return None
        fractions, lead = q.reshape(-1).tolist(), q.shape
        single = single and q.dtype is _SINGLE
    elif q.__class__ is list or q.__class__ is tuple:
        fractions, lead = q, (len(q),)
    if not 0 < len(fractions) < _FEW:
        return None
    for v in fractions:
        if v.__class__ is not float or not 0.0 <= v <= 1.0:
            return None
    half = None
    if not real:
        half = x.dtype if q.__class__ is float and is_half(x.dtype) else None
        if x.dtype.num > INTEGER and half is None:
            return None
        x = x if whole else x.astype(np.float64 if half is None else np.float32)
    kept: Any = (1,) * x.ndim
    if axis is not None:
        x, kept = _first(x, (axis,) if axis.__class__ is int else axis)
    x = x.reshape(-1) if axis is None else x
    kind = half.type if half else np.float32 if single else np.float64
    if _selects(x, len(fractions)):
        runs: Any = x if x.ndim == 1 else np.ascontiguousarray(x.reshape(len(x), -1).T)
        nan = None
        if not whole and not _all_finite(runs):
            if skips or np.isinf(runs).any():
                return None
            nan = np.isnan(runs).any(-1)
        if x.ndim == 1:
            found = [kind(np.nan) if nan else _selected(x, v, method, kind) for v in fractions]
        else:
            found = [_selected_of_each(runs, v, method, kind, nan, whole) for v in fractions]
            found = [y.reshape(x.shape[1:]) for y in found]
    elif not whole and x.size >= _MOST and not _all_finite(x):
        return None
    else:
        s = _ascending(x.astype(np.float64) if whole else x)
        if not isfinite(vdot(s, s)) and not (_finite(s[0]) and _finite(s[-1])):
            return None
        found = [_one(s, v, method, kind, half) for v in fractions]
    y = np.asarray(found) if lead else found[0]
    if keepdims:
        return np.reshape(y, (*lead, *kept))
    return y if len(lead) < 2 else y.reshape(*lead, *x.shape[1:])


def _selects(x: Any, fractions: int) -> bool:
    """Whether so many quantiles along the first axis are found sooner than all is sorted: columns
    are sorted side by side, of which those of many rows would be a copy.
    """
    least = _LONG if x.ndim == 1 else _LINE
    if fractions == 1 and x.size >= _MOST and not x.flags.c_contiguous:
        least = _ROW
    return len(x) >= least and fractions <= _SELECTED and x.size > 0


def _first(x: Any, axes: Any) -> tuple[Any, Any]:
    """x with axes folded into one, which comes first; and its shape with length 1 there."""
    if len(axes) == 1:
        k, shape = range(x.ndim)[axes[0]], x.shape
        order = k, *range(k), *range(k + 1, x.ndim)
        return x.transpose(order), (*shape[:k], 1, *shape[k + 1 :])
    at = [range(x.ndim)[a] for a in axes]
    rest = [i for i in range(x.ndim) if i not in at]
    if not at or len(at) + len(rest) > x.ndim:
        raise ValueError("axes")
    kept = [1 if i in at else n for i, n in enumerate(x.shape)]
    turned = x.transpose(*at, *rest)
    return turned.reshape(-1, *turned.shape[len(at) :]), kept


def _ascending(x: Any) -> Any:
    """x sorted along its first axis."""
    if x.size >= _SMALL:
        return sorting.sort(np.ascontiguousarray(x), 0, False)
    s = x.copy("K")
    s.sort(0, "stable")
    return s


def _all_finite(runs: Any) -> bool:
    if isfinite(vdot(runs, runs)):
        return True
    return bool(_finite(_least(runs, -1)) and _finite(_most(runs, -1)))


def _finite(x: Any) -> Any:
    return np.isfinite(x).all() if x.ndim else isfinite(x)


def _place(n: int, q: float, method: str, kind: Any) -> tuple[int, Any]:
    """Which of n sorted elements a quantile comes behind, and which share the next one has."""
    place = (n - 1) * q
    k = floor(place)
    return k, kind(_PARTS[method](place - k, k) if place < n - 1 else 0)


def _between(a: Any, b: Any, part: Any) -> Any:
    return a + (b - a) * part if part < 0.5 else b - (b - a) * (part.__class__(1) - part)


def _one(s: Any, q: float, method: str, kind: Any, half: Any) -> Any:
    """A quantile along the first axis of what is sorted. half: what is computed in, if narrow."""
    k, part = _place(len(s), q, method, kind)
    s = s if half is None else s[k : k + 2].astype(half)
    k = k if half is None else 0
    return _between(s[k], s[k + 1], part) if part else s[k] + part


def _selected(run: Any, q: float, method: str, kind: Any) -> Any:
    """A quantile of a run, which need not be sorted: what `_one` gives of it if it is."""
    k, part = _place(len(run), q, method, kind)
    if state := sorting.known_order(run, 0, False):
        s = run if state == STANDS else run[::-1]
        return _between(kind(s[k]), kind(s[k + 1]), part) if part else kind(s[k]) + part
    s = run.copy()
    s.partition(k)
    a = kind(_of_zeros(run, k) if s[k] == 0 else s[k])
    if not part:
        return a + part
    b = _least(s[k + 1 :])
    return _between(a, kind(_of_zeros(run, k + 1) if b == 0 else b), part)


def _counted(run: Any, q: float, method: str) -> Any:
    """The same, found by counting; None where that does not pay."""
    n = run.size
    k, part, dtype = _counted_place(n, q, method, run.dtype)
    if dtype is None or not ready(n, 0):
        return None
    room = np.empty(ROOM, dtype)
    return None if between(run, room, n, k, part) else room[-1]


@lru_cache(256)
def _counted_place(n: int, q: float, method: str, dtype: Any) -> tuple[int, float, Any]:
    """The place, the share as a float, and the dtype if NumPy's sort of that can be called."""
    k, part = _place(n, q, method, dtype.type)
    return k, float(part), dtype if sorts(dtype) else None


def _selected_of_each(runs: Any, q: float, method: str, kind: Any, nan: Any, whole: bool) -> Any:
    """The same of each run. nan: where the answer is that; whole: there is no -0."""
    k, part = _place(runs.shape[1], q, method, kind)
    state = sorting.known_order(runs, 1, False)
    if state:
        s = runs if state == STANDS else runs[:, ::-1]
    else:
        s = runs.copy()
        s.partition(k, -1)
    a = s[:, k].astype(kind)
    b = (s[:, k + 1] if state else _least(s[:, k + 1 :], -1)).astype(kind) if part else a
    y = _between(a, b, part) if part else a + part
    for r in () if whole or state else np.flatnonzero((a == 0) | (b == 0)):
        if np.signbit(runs[r][runs[r] == 0]).any():
            y[r] = _selected(runs[r], q, method, kind)
    if nan is not None:
        y[nan] = np.nan
    return y


def _of_zeros(run: Any, k: int) -> Any:
    """The element at place k, a zero, with the sign that it has where equal ones keep order."""
    zeros = run[run == 0]
    return zeros[k - np.count_nonzero(run < 0)]
