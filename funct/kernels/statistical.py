"""Reductions and scans of ndarrays with the standard's arguments, in NumPy's cheapest spelling.

Each gives, bit for bit, what the function of its name in `funct.array` composes of primitives, or
None where that takes more care: narrow dtypes, empty axes, arguments that are seldom given.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from funct.kernels import runs, scans
from funct.kernels.cpu.columns import of_few_columns
from funct.kernels.cpu.pairwise import LONG, of_long_rows
from funct.kernels.cpu.short_rows import ROWS, of_short_rows
from funct.kernels.dtypes import FLOATING, INTEGER, NAMED, NATIVE
from funct.kernels.table import call

__all__ = [
    "all", "any", "argmax", "argmin", "cast", "count_nonzero", "counted", "cumprod", "cumsum",
    "cumulative_max", "cumulative_min", "cumulative_prod", "cumulative_sum", "diff", "every",
    "first_least", "first_most", "half_reduction", "in_single", "least", "max", "mean", "min",
    "most", "nanargmax", "nanargmin", "nancumprod", "nancumsum", "nanmax", "nanmean", "nanmin",
    "nanprod", "nanstd", "nansum", "nanvar", "prod", "product", "reduced_in_single", "some", "std",
    "sum", "total", "var",
]  # fmt: skip

_core: Any = getattr(np, "_core", None)
counted: Any = getattr(getattr(_core, "multiarray", None), "count_nonzero", np.count_nonzero)

# The ufuncs' own reductions, called by position: np.sum costs twice as much.
_add: Any = np.add.reduce
_multiply: Any = np.multiply.reduce
_maximum: Any = np.maximum.reduce
_minimum: Any = np.minimum.reduce
_and: Any = np.logical_and.reduce
_or: Any = np.logical_or.reduce

_SMALL = 256  # elements from which on scans are machine code
_MINUS_ZERO = {d.num: np.asarray(-0.0, d).tobytes() for d in map(np.dtype, ("f2", "f4", "f8"))}
_BOOL = 0  # the number of bool
_FLOATS = frozenset(np.dtype(char).num for char in "fd")
_HALF = 23  # the number of float16
_MANY = 1 << 12  # elements from which on reductions of two bytes are taken in float32
_SINGLE = np.dtype(np.float32)


def cast(x: Any, dtype: Any) -> Any:
    """x in the dtype of that name; None where it is real and x complex, or not NumPy's."""
    found = NAMED.get(dtype)
    if found is None or x.dtype.num >= NATIVE or (x.dtype.kind == "c" and found.kind != "c"):
        return None
    return x if x.dtype is found else x.astype(found)


def total(x: Any, axis: Any, keepdims: bool) -> Any:
    """NumPy's sum; of short rows and few columns in code of our own, as what follows, and of many
    elements.
    """
    if x.size >= ROWS:
        if axis is None and not keepdims and x.dtype.num == _BOOL:
            return np.int64(counted(x))
        y = _of_few("sum", x, axis, keepdims)
        if y is None and x.size >= LONG:
            y = of_long_rows(x, axis, keepdims)
        if y is not None:
            return y
    return _add(x, axis, None, None, keepdims)


def product(x: Any, axis: Any, keepdims: bool) -> Any:
    """NumPy's product."""
    if x.size >= ROWS and (y := _of_few("prod", x, axis, keepdims)) is not None:
        return y
    return _multiply(x, axis, None, None, keepdims)


def most(x: Any, axis: Any, keepdims: bool) -> Any:
    """NumPy's maximum."""
    if x.size >= ROWS and (y := _of_few("max", x, axis, keepdims)) is not None:
        return y
    return _maximum(x, axis, None, None, keepdims)


def least(x: Any, axis: Any, keepdims: bool) -> Any:
    """NumPy's minimum."""
    if x.size >= ROWS and (y := _of_few("min", x, axis, keepdims)) is not None:
        return y
    return _minimum(x, axis, None, None, keepdims)


def every(x: Any, axis: Any, keepdims: bool) -> Any:
    """Whether all are true."""
    if x.size >= ROWS and (y := _of_few("all", x, axis, keepdims)) is not None:
        return y
    return _and(x, axis, None, None, keepdims)


def some(x: Any, axis: Any, keepdims: bool) -> Any:
    """Whether one is true."""
    if x.size >= ROWS and (y := _of_few("any", x, axis, keepdims)) is not None:
        return y
    return _or(x, axis, None, None, keepdims)


def _of_few(name: str, x: Any, axis: Any, keepdims: bool) -> Any:
    """What short rows, or few columns, are reduced to; None for others."""
    if axis is None or x.ndim < 2:
        return None
    y = of_short_rows(name, x, axis, keepdims)
    return of_few_columns(name, x, axis, keepdims) if y is None else y


def first_most(x: Any, axis: Any, keepdims: bool) -> Any:
    """Where the first maximum stands."""
    if x.size >= ROWS and (y := of_short_rows("argmax", x, axis, keepdims)) is not None:
        return y
    return x.argmax(axis, keepdims=True) if keepdims else x.argmax(axis)


def first_least(x: Any, axis: Any, keepdims: bool) -> Any:
    """Where the first minimum stands."""
    if x.size >= ROWS and (y := of_short_rows("argmin", x, axis, keepdims)) is not None:
        return y
    return x.argmin(axis, keepdims=True) if keepdims else x.argmin(axis)


def in_single(x: Any) -> bool:
    """Whether x is a large array of float16 or bfloat16, which NumPy reduces number by number."""
    return bool(x.size >= _MANY and x.dtype.num >= _HALF and x.dtype.itemsize == 2)


def reduced_in_single(reduce: Any, x: Any, axes: Any, keepdims: bool) -> Any:
    """A ufunc's reduction taken in float32, and rounded once."""
    return call("half_reduction", x.dtype, x.size, reduce, x, axes, keepdims)


def half_reduction(reduce: Any, x: Any, axes: Any, keepdims: bool) -> Any:
    """The same by a copy in float32."""
    y = reduce(call("cast", x.dtype, x.size, x, _SINGLE), axes, None, None, keepdims)
    return y.astype(x.dtype)


def sum(x: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
    """Sum over axis."""
    if axis is not None and not x.ndim:
        return None
    if dtype is None:
        return total(x, axis, keepdims) if x.dtype.num < _HALF else None
    x = cast(x, dtype)
    if x is None or x.dtype.num == _HALF:
        return None
    return _add(x, axis, x.dtype, None, keepdims)


def prod(x: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
    """Product over axis."""
    if axis is not None and not x.ndim:
        return None
    if dtype is None:
        return product(x, axis, keepdims) if x.dtype.num < _HALF else None
    x = cast(x, dtype)
    if x is None or x.dtype.num == _HALF:
        return None
    return _multiply(x, axis, x.dtype, None, keepdims)


def max(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """Maximum over axis."""
    if x.dtype.num >= NATIVE or (x.size >= _MANY and in_single(x)):
        return None
    return most(x, axis, keepdims) if axis is None or x.ndim else None


def min(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """Minimum over axis."""
    if x.dtype.num >= NATIVE or (x.size >= _MANY and in_single(x)):
        return None
    return least(x, axis, keepdims) if axis is None or x.ndim else None


def all(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """Whether every element along axis is true."""
    return every(x, axis, keepdims) if axis is None or x.ndim else None


def any(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """Whether some element along axis is true."""
    return some(x, axis, keepdims) if axis is None or x.ndim else None


def argmax(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """Index of the first maximum."""
    if axis is not None and not x.ndim:
        return None
    return first_most(x, axis, keepdims)


def argmin(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """Index of the first minimum."""
    if axis is not None and not x.ndim:
        return None
    return first_least(x, axis, keepdims)


def count_nonzero(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """Number of elements over axis that are not 0."""
    if axis is None and not keepdims:
        if x.size >= _MANY and x.dtype.num in _FLOATS:
            return counted(np.not_equal(x, 0))  # of floats NumPy looks at one after the other
        return counted(x)
    if x.dtype.num >= NATIVE or (axis is not None and not x.ndim):
        return None
    return total(x if x.dtype.kind == "b" else np.not_equal(x, 0), axis, keepdims)


def mean(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """Arithmetic mean over axis."""
    n = _count(x, axis)
    return total(x, axis, keepdims) / n if n else None


def _count(x: Any, axis: Any) -> int:
    """How many elements are reduced; 0 where this is not for us."""
    if x.dtype.num >= _HALF:
        return 0
    if axis is None:
        return x.size
    if axis.__class__ is int:
        return x.shape[axis]
    n = 1
    for a in axis:
        n *= x.shape[a]
    return n


def var(x: Any, axis: Any = None, correction: float = 0.0, keepdims: bool = False) -> Any:
    """Variance over axis."""
    n = _count(x, axis)
    if not n or n <= correction or x.dtype.kind == "c":
        return None
    apart = x - total(x, axis, axis is not None) / n
    squares = total(apart * apart, axis, keepdims)
    return squares / (n if correction == 0.0 else n - correction)


def std(x: Any, axis: Any = None, correction: float = 0.0, keepdims: bool = False) -> Any:
    """Standard deviation over axis."""
    square = var(x, axis, correction, keepdims)
    return None if square is None else np.sqrt(square)


# Scans --------------------------------------------------------------------------------------------


def cumulative_sum(
    x: Any, axis: Any = None, dtype: Any = None, include_initial: bool = False
) -> Any:
    """Running sum along axis."""
    return _scan(np.add, x, axis, dtype, 0 if include_initial else None)


def cumulative_prod(
    x: Any, axis: Any = None, dtype: Any = None, include_initial: bool = False
) -> Any:
    """Running product along axis."""
    return _scan(np.multiply, x, axis, dtype, 1 if include_initial else None)


def cumsum(x: Any, axis: Any = None, dtype: Any = None) -> Any:
    """Running sum along axis, or of all elements."""
    return _scan(np.add, x if axis is not None else x.reshape(-1), axis, dtype, None)


def cumprod(x: Any, axis: Any = None, dtype: Any = None) -> Any:
    """Running product along axis, or of all elements."""
    return _scan(np.multiply, x if axis is not None else x.reshape(-1), axis, dtype, None)


def _scan(ufunc: Any, x: Any, axis: Any, dtype: Any, initial: int | None) -> Any:
    rank = x.ndim
    if axis is None and rank == 1:
        axis = 0
    if axis.__class__ is not int or not rank or x.dtype.num >= NATIVE:
        return None
    if dtype is not None:
        x = cast(x, dtype)
        if x is None:
            return None
    if x.size < _SMALL and x.dtype.num != _HALF:
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
        if axis.__class__ is not int or not rank or not (number <= FLOATING or number == _HALF):
            return None
        n = x.size
        if n >= (_MANY if number == _HALF else _SMALL):
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
    parts = [p for p in (prepend, x, append) if p is not None]
    if len(parts) > 1:
        for p in parts:
            if p.__class__ is not np.ndarray or p.dtype is not x.dtype:
                return None
        x = np.concatenate(parts, axis)
    axis = _counted(axis, x.ndim)
    for _ in range(n):
        x = runs.differences(x, axis)
    return x


# Without NaN --------------------------------------------------------------------------------------

# A result that is no NaN has seen none: then it is that of the plain function.


def _clean(y: Any) -> Any:
    if y is None:
        return None
    return y if (y == y if y.ndim == 0 else (y == y).all()) else None


def nansum(x: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
    """Sum of what is not NaN."""
    return None if dtype is not None else _clean(sum(x, axis, None, keepdims))


def nanprod(x: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
    """Product of what is not NaN."""
    return None if dtype is not None else _clean(prod(x, axis, None, keepdims))


def nanmax(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """Maximum of what is not NaN."""
    return _clean(max(x, axis, keepdims))


def nanmin(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """Minimum of what is not NaN."""
    return _clean(min(x, axis, keepdims))


def nanmean(x: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
    """Mean of what is not NaN."""
    return None if dtype is not None else _clean(mean(x, axis, keepdims))


def nanvar(
    x: Any,
    axis: Any = None,
    dtype: Any = None,
    correction: float = 0.0,
    ddof: float | None = None,
    keepdims: bool = False,
) -> Any:
    """Variance of what is not NaN."""
    if dtype is not None:
        return None
    c = correction if ddof is None else ddof
    return _clean(var(x, axis, c, keepdims))


def nanstd(
    x: Any,
    axis: Any = None,
    dtype: Any = None,
    correction: float = 0.0,
    ddof: float | None = None,
    keepdims: bool = False,
) -> Any:
    """Standard deviation of what is not NaN."""
    square = nanvar(x, axis, dtype, correction, ddof, keepdims)
    return None if square is None else np.sqrt(square)


def nanargmax(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """Index of the first maximum of what is not NaN."""
    return _place(x, first_most, axis, keepdims)


def nanargmin(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """Index of the first minimum of what is not NaN."""
    return _place(x, first_least, axis, keepdims)


def _place(x: Any, find: Any, axis: Any, keepdims: bool) -> Any:
    if axis is None:
        if keepdims:
            return None
        at = find(x, None, False)
        found = x.item(at)
        return at if found == found else None  # NaN comes first where there is one
    if axis.__class__ is not int or not -x.ndim <= axis < x.ndim or x.dtype.num > FLOATING:
        return None
    at = find(x, axis, True)
    if x.dtype.num > INTEGER:
        found = np.take_along_axis(x, at, axis)
        if not (found == found).all():
            return None
    return at if keepdims else at.reshape([n for k, n in enumerate(x.shape) if k != axis % x.ndim])


def nancumsum(x: Any, axis: Any = None, dtype: Any = None) -> Any:
    """Running sum along axis, NaN counted as 0."""
    return _without(np.add, x, axis, dtype)


def nancumprod(x: Any, axis: Any = None, dtype: Any = None) -> Any:
    """Running product along axis, NaN counted as 1."""
    return _without(np.multiply, x, axis, dtype)


def _without(ufunc: Any, x: Any, axis: Any, dtype: Any) -> Any:
    if axis is None:
        x, axis = x.reshape(-1), 0
    y = None if dtype is not None else _scan(ufunc, x, axis, None, None)
    if y is None or y.ndim != 1 or not y.size:
        return None
    last = y.item(-1)
    return y if last == last else None
