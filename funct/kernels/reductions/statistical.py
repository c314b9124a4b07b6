"""Reductions of ndarrays with the standard's arguments, in NumPy's cheapest spelling.

Each gives, bit for bit, what the function of its name in `funct.array` composes of primitives, or
None where that takes more care: narrow dtypes, empty axes, arguments that are seldom given. Those
with names of their own (`total`, `most`, …) are what the primitives themselves call.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from msgspec.structs import replace

from funct.kernels.channels import channels_last
from funct.kernels.cpu.prepared import Job, Prepared
from funct.kernels.cpu.reductions import columns, long_rows, pairwise, short_rows, wide_columns
from funct.kernels.cpu.reductions.columns import of_few_columns
from funct.kernels.cpu.reductions.few import Few
from funct.kernels.cpu.reductions.long_rows import of_runs
from funct.kernels.cpu.reductions.pairwise import LONG, of_long_rows
from funct.kernels.cpu.reductions.short_rows import ROWS, of_short_rows
from funct.kernels.cpu.reductions.wide_columns import of_many_columns
from funct.kernels.dtypes import HALF, NAMED, NATIVE, NO_AXIS, is_half
from funct.kernels.elementwise.casting import in_dtype
from funct.kernels.table import call

__all__ = [
    "all", "any", "argmax", "argmin", "cast", "count_nonzero", "counted", "every", "first_least",
    "first_most", "half_reduction", "in_single", "least", "max", "mean", "min", "most", "prod",
    "product", "reduced_in_single", "some", "std", "sum", "total", "var",
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

_BOOL = 0  # the number of bool
_FLOATS = frozenset(np.dtype(char).num for char in "fd")
_LONGS = frozenset(np.dtype(char).num for char in "lLqQ" if np.dtype(char).itemsize == 8)
_MANY = 1 << 12  # elements from which on reductions of two bytes are taken in float32
_FEW = 8  # rows that NumPy does not lose much time between
_PLACES = 1 << 10  # elements whose places NumPy finds in no longer time
_SINGLE = np.dtype(np.float32)
_WORD = np.dtype(np.uint16)
_SIZE = _WORD.type(0x7FFF)  # the bits of a half but for its sign, none of which 0 has


def cast(x: Any, dtype: Any) -> Any:
    """x in the dtype of that name; None where it is real and x complex, or not NumPy's."""
    found = NAMED.get(dtype)
    if found is None or x.dtype.num >= NATIVE or (x.dtype.kind == "c" and found.kind != "c"):
        return None
    return x if x.dtype is found else x.astype(found)


def total(x: Any, axis: Any, keepdims: bool) -> Any:
    """NumPy's sum; of few elements, of short rows and few columns in code of our own, as what
    follows, and of many elements.
    """
    if (found := _SUM.call(x, axis, keepdims)) is not None:
        return found
    n = x.size
    if n >= ROWS:
        if (other := _as_it_lies(x, axis, keepdims)) is not None:
            return total(*other).T
        if axis.__class__ is tuple and (rows := _rows(x, axis)) is not None:
            return _kept(total(*rows), axis, keepdims)
        if axis is None and not keepdims and x.dtype.num == _BOOL:
            return np.int64(counted(x))
        y = _of_few("sum", x, axis, keepdims) if axis is not None else None
        if y is None and n >= LONG:
            y = of_long_rows(x, axis, keepdims)
        if y is not None:
            return y
    return _add(x, axis, None, None, keepdims)


def product(x: Any, axis: Any, keepdims: bool) -> Any:
    """NumPy's product."""
    if (found := _PROD.call(x, axis, keepdims)) is not None:
        return found
    if x.size >= ROWS:
        if (other := _as_it_lies(x, axis, keepdims)) is not None:
            return product(*other).T
        if axis.__class__ is tuple and (rows := _rows(x, axis)) is not None:
            return _kept(product(*rows), axis, keepdims)
        y = _in_vectors("prod", x, axis, keepdims)
        if y is not None:
            return y
    return _multiply(x, axis, None, None, keepdims)


def most(x: Any, axis: Any, keepdims: bool) -> Any:
    """NumPy's maximum."""
    if (found := _MAX.call(x, axis, keepdims)) is not None:
        return found
    if x.size >= ROWS:
        if (other := _as_it_lies(x, axis, keepdims)) is not None:
            return most(*other).T
        if axis.__class__ is tuple and (rows := _rows(x, axis)) is not None:
            return _kept(most(*rows), axis, keepdims)
        y = _in_vectors("max", x, axis, keepdims)
        if y is not None:
            return y
    return _maximum(x, axis, None, None, keepdims)


def least(x: Any, axis: Any, keepdims: bool) -> Any:
    """NumPy's minimum."""
    if (found := _MIN.call(x, axis, keepdims)) is not None:
        return found
    if x.size >= ROWS:
        if (other := _as_it_lies(x, axis, keepdims)) is not None:
            return least(*other).T
        if axis.__class__ is tuple and (rows := _rows(x, axis)) is not None:
            return _kept(least(*rows), axis, keepdims)
        y = _in_vectors("min", x, axis, keepdims)
        if y is not None:
            return y
    return _minimum(x, axis, None, None, keepdims)


def every(x: Any, axis: Any, keepdims: bool) -> Any:
    """Whether all are true."""
    if (found := _ALL.call(x, axis, keepdims)) is not None:
        return found
    if axis is not None and x.size >= ROWS:
        if axis.__class__ is tuple and (rows := _rows(x, axis)) is not None:
            return _kept(every(*rows), axis, keepdims)
        y = _of_few("all", x, axis, keepdims)
        if y is not None:
            return y
    return _and(x, axis, None, None, keepdims)


def some(x: Any, axis: Any, keepdims: bool) -> Any:
    """Whether one is true."""
    if (found := _ANY.call(x, axis, keepdims)) is not None:
        return found
    if axis is not None and x.size >= ROWS:
        if axis.__class__ is tuple and (rows := _rows(x, axis)) is not None:
            return _kept(some(*rows), axis, keepdims)
        y = _of_few("any", x, axis, keepdims)
        if y is not None:
            return y
    return _or(x, axis, None, None, keepdims)


def _as_it_lies(x: Any, axis: Any, keepdims: bool) -> Any:
    """What the reduction of a transpose is told of the array that lies in C's order; None where x
    is none. NumPy walks both alike, so sums have its bits.
    """
    if x.flags.c_contiguous or not x.flags.f_contiguous:
        return None
    if axis is None:
        return x.T, None, keepdims
    last = x.ndim - 1
    if axis.__class__ is int:
        return (x.T, last - axis if axis >= 0 else -1 - axis, keepdims)
    if axis.__class__ is not tuple or not {a.__class__ for a in axis} <= {int}:
        return None
    return x.T, tuple([last - a if a >= 0 else -1 - a for a in axis]), keepdims


def _rows(x: Any, axes: Any) -> Any:
    """What a reduction is told of x with these axes as one, where they are several that are its
    last ones and lie in C's order, or do so before the channels; as NumPy walks them. None for
    others, and for all axes.
    """
    rank, count = x.ndim, len(axes)
    if not 1 < count < rank:
        return None
    first = rank - count
    if sorted([a + rank if a < 0 else a for a in axes]) != [*range(first, rank)]:
        return None
    if x.flags.c_contiguous:
        return x.reshape(*x.shape[:first], -1), -1, False
    seen = channels_last(x, first - 1)
    if not seen.flags.c_contiguous:
        return None
    return seen.reshape(*x.shape[: first - 1], -1, x.shape[first - 1]), -2, False


def _kept(y: Any, axes: Any, keepdims: bool) -> Any:
    """What rows were reduced to, with axes of length 1 behind it if they are to stay."""
    return y.reshape(*y.shape, *[1] * len(axes)) if keepdims else y


def _in_vectors(name: str, x: Any, axis: Any, keepdims: bool) -> Any:
    """What has no order of NumPy's: of few, or of long rows and of all; None for others."""
    y = _of_few(name, x, axis, keepdims) if axis is not None else None
    return of_runs(name, x, axis, keepdims) if y is None else y


def _of_few(name: str, x: Any, axis: Any, keepdims: bool) -> Any:
    """What short rows, or few columns, are reduced to; None for others."""
    if x.ndim < 2:
        return None
    if x.shape[-1] * _FEW <= x.size:
        for way in (of_short_rows, of_few_columns):
            if (y := way(name, x, axis, keepdims)) is not None:
                return y
    return of_many_columns(name, x, axis, keepdims)


def _job(name: str, x: Any, axis: Any, keepdims: bool) -> Any:
    """What the functions above run for a dense array: a Job, None, or LATER."""
    if x.size < ROWS or axis.__class__ is bool or keepdims.__class__ is not bool:
        return None
    if axis.__class__ is tuple and (rows := _rows(x, axis)) is not None:
        found = _job(name, *rows)
        if found.__class__ is Job and keepdims:
            found = replace(found, shape=(*found.shape, *[1] * len(axis)))
        return found
    if axis is None and (name in ("any", "all") or x.dtype.num == _BOOL):
        return None
    if axis is not None and x.ndim > 1:
        few = x.shape[-1] * _FEW <= x.size
        for way in (short_rows.job, columns.job, wide_columns.job)[0 if few else 2 :]:
            if (found := way(name, x, axis, keepdims)) is not None:
                return found
    if name == "sum":
        return pairwise.job(x, axis, keepdims) if x.size >= LONG else None
    return long_rows.job(name, x, axis, keepdims) if name in ("prod", "max", "min") else None


_SUM, _PROD, _MAX, _MIN, _ANY, _ALL = (
    Few(name, Prepared(partial(_job, name))) for name in ("sum", "prod", "max", "min", "any", "all")
)


def first_most(x: Any, axis: Any, keepdims: bool) -> Any:
    """Where the first maximum stands."""
    x = _single(x) if is_half(x.dtype) else x
    if x.size >= _PLACES and (y := of_short_rows("argmax", x, axis, keepdims)) is not None:
        return y
    return x.argmax(axis, keepdims=True) if keepdims else x.argmax(axis)


def first_least(x: Any, axis: Any, keepdims: bool) -> Any:
    """Where the first minimum stands."""
    x = _single(x) if is_half(x.dtype) else x
    if x.size >= _PLACES and (y := of_short_rows("argmin", x, axis, keepdims)) is not None:
        return y
    return x.argmin(axis, keepdims=True) if keepdims else x.argmin(axis)


def in_single(x: Any) -> bool:
    """Whether x is a large array of float16 or bfloat16, which NumPy reduces number by number."""
    return bool(x.size >= _MANY and x.dtype.num >= HALF and x.dtype.itemsize == 2)


def reduced_in_single(reduce: Any, x: Any, axes: Any, keepdims: bool) -> Any:
    """A ufunc's reduction taken in float32, and rounded once."""
    return call("half_reduction", x.dtype, x.size, reduce, x, axes, keepdims)


def half_reduction(reduce: Any, x: Any, axes: Any, keepdims: bool) -> Any:
    """The same by a copy in float32."""
    return _rounded(_WAYS[reduce.__self__](_single(x), axes, keepdims), x.dtype)


_WAYS = {np.add: total, np.multiply: product, np.maximum: most, np.minimum: least}


def _single(x: Any) -> Any:
    """Halves as float32."""
    return in_dtype(x, _SINGLE)


def _rounded(y: Any, dtype: Any) -> Any:
    """What was computed in float32, in the dtype of halves."""
    return in_dtype(np.asarray(y), dtype)


def _of_halves(few: Few, way: Any, x: Any, axis: Any, keepdims: bool) -> Any:
    """A reduction of few halves, taken in float32; None of what else is no dtype of NumPy's, and
    of many, whose axes are to be known.
    """
    if (found := few.call(x, axis, keepdims)) is not None:
        return found
    if x.size >= _MANY or not is_half(x.dtype):
        return None
    return _rounded(way(_single(x), axis, keepdims), x.dtype)


def sum(x: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
    """Sum over axis."""
    if axis is not None and not x.ndim:
        return None
    if dtype is None:
        few = x.dtype.num < HALF
        return total(x, axis, keepdims) if few else _of_halves(_SUM, total, x, axis, keepdims)
    x = cast(x, dtype)
    if x is None or x.dtype.num == HALF:
        return None
    return _add(x, axis, x.dtype, None, keepdims)


def prod(x: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
    """Product over axis."""
    if axis is not None and not x.ndim:
        return None
    if dtype is None:
        few = x.dtype.num < HALF
        return product(x, axis, keepdims) if few else _of_halves(_PROD, product, x, axis, keepdims)
    x = cast(x, dtype)
    if x is None or x.dtype.num == HALF:
        return None
    return _multiply(x, axis, x.dtype, None, keepdims)


def max(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """Maximum over axis."""
    if axis is not None and not x.ndim:
        return None
    if x.dtype.num >= HALF:
        return _of_halves(_MAX, most, x, axis, keepdims)
    return most(x, axis, keepdims)


def min(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """Minimum over axis."""
    if axis is not None and not x.ndim:
        return None
    if x.dtype.num >= HALF:
        return _of_halves(_MIN, least, x, axis, keepdims)
    return least(x, axis, keepdims)


def all(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """Whether every element along axis is true."""
    return every(x, axis, keepdims) if axis is None or x.ndim else None


def any(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """Whether some element along axis is true."""
    return some(x, axis, keepdims) if axis is None or x.ndim else None


def argmax(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """Index of the first maximum."""
    if axis is not None and (axis == NO_AXIS or not x.ndim):
        return None
    return first_most(x, axis, keepdims)


def argmin(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """Index of the first minimum."""
    if axis is not None and (axis == NO_AXIS or not x.ndim):
        return None
    return first_least(x, axis, keepdims)


def count_nonzero(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """Number of elements over axis that are not 0."""
    if is_half(x.dtype):
        x = x.view(_WORD) & _SIZE
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
    if not n:
        return None
    y = total(_summands(x), axis, keepdims) / n
    return _rounded(y, x.dtype) if x.dtype.num >= HALF else y


def _summands(x: Any) -> Any:
    """What a mean of x adds up: integers of 64 bits as float64, since their sum may leave int64."""
    if x.dtype.num >= HALF:
        return _single(x)
    return x.astype(np.float64) if x.dtype.num in _LONGS else x


def _count(x: Any, axis: Any) -> int:
    """How many elements are reduced; 0 where this is not for us."""
    if x.dtype.num >= HALF and not is_half(x.dtype):
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
    x, half = _summands(x), x.dtype if x.dtype.num >= HALF else None
    middle, squares = total(x, axis, axis is not None) / n, None
    if x.size >= LONG:
        x = x if x.dtype.kind == "f" else x.astype(np.float64)
        squares = of_long_rows(x, axis, keepdims, "deviations", np.asarray(middle))
    if squares is None:
        apart = x - middle
        apart = np.multiply(apart, apart, apart) if x.ndim else apart * apart
        squares = total(apart, axis, keepdims)
    y = squares / (n if correction == 0.0 else n - correction)
    return y if half is None else _rounded(y, half)


def std(x: Any, axis: Any = None, correction: float = 0.0, keepdims: bool = False) -> Any:
    """Standard deviation over axis."""
    if x.dtype.num >= HALF:
        y = std(_single(x), axis, correction, keepdims) if is_half(x.dtype) else None
        return None if y is None else _rounded(y, x.dtype)
    square = var(x, axis, correction, keepdims)
    return None if square is None else np.sqrt(square)
