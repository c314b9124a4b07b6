"""New values, sums, products and extremes at positions of an array: plain, or in machine code.

Both give the same bits: what comes to one position is combined in the order of the indices, which
count from the end where they are negative; one that is out of bounds raises IndexError. For
`ops.updates` and `array.changes`; what only reads is `gather.py`, what sums into
zeros `scattering.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from funct.kernels.cpu.indexing import combining as cpu
from funct.kernels.cpu.indexing import masked
from funct.kernels.cpu.loops import ready
from funct.kernels.cpu.prepared import Plan, Prepared
from funct.kernels.cpu.scratch import fresh
from funct.kernels.dtypes import is_half
from funct.kernels.indexing.masks import CODED
from funct.kernels.indexing.positions import (
    WORDS,
    alike,
    checked,
    fits,
    flat,
    in_parts,
    inside,
    refuse_outside,
    signed,
)
from funct.kernels.indexing.scattering import combine_rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Index = NDArray[Any]

__all__ = [
    "COMBINED_AT", "combine", "combine_into", "combine_rows_into", "combined_along", "combined_at",
    "combined_each", "combined_rows", "combined_within", "few_combined", "few_places", "leading",
    "plain_combine_into",
]  # fmt: skip

BASIC = frozenset({int, slice, type(None), type(...)})  # entries of keys that give views
_INT64, _BOOL = np.dtype(np.int64), np.dtype(bool)
_REALS = frozenset(map(np.dtype, (np.float32, np.float64)))  # which take Python's floats
_WHOLE = slice(None)
# By their numbers, the dtypes of which kernels take Python's numbers, and the class of those.
_NUMBERS = {np.dtype(c).num: float if c in "fd" else int for c in "bBhHiIlfd"}
_LIMITS = {np.dtype(c).num: np.iinfo(c) for c in "bBhHiI"}  # and those that do not hold each
_MANY = 1 << 13  # elements that are put quicker than by NumPy into an array
_FEW = 256  # and with a new array
_MUCH, _TASKS = 1 << 16, 16  # and in rows that are several tasks, and how many at most
_LONG = 512  # bytes of a row that NumPy writes as well

# What those do to truth, said of bytes that are 0 or 1
_OF_TRUTH = {"set": "set", "add": "max", "multiply": "min", "min": "min", "max": "max"}

COMBINED_AT = {
    "add": np.add.at, "multiply": np.multiply.at, "min": np.minimum.at, "max": np.maximum.at,
}  # fmt: skip


def combine(x: NDArray[Any], v: NDArray[Any], i: Index, mode: str) -> NDArray[Any]:
    """x combined with v at the positions i: "set", "add", "multiply", "min" or "max".

    i counts along the first axis of x (n, ...); v (*i, ...) has a row, or an element, for each.
    """
    i = signed(i)
    made = combined_each(x, v, i, mode) if x.__class__ is np.ndarray else None
    if made is not None:
        return made
    y = np.array(x, order="C")
    if y.ndim == 1:
        combine_into(y, v, i, mode)
    else:
        combine_rows_into(y, v, i, mode)
    return y


def combine_rows_into(y: NDArray[Any], v: NDArray[Any], i: Index, mode: str) -> None:
    """`combine` of rows, in y itself: C-contiguous. v may broadcast to the rows."""
    if mode == "add" and i.size and y.dtype.kind == "c" and y.flags.c_contiguous:
        v = np.ascontiguousarray(np.broadcast_to(v, (*i.shape, *y.shape[1:])), y.dtype)
        into, given = in_parts(y), in_parts(v.reshape(i.size, -1))
        if into is not None and given is not None:
            combine_rows_into(into, given, i.reshape(-1), mode)
            return
    inner = prod(y.shape[1:])
    copied = mode == "set" and inner * y.itemsize >= _LONG  # which NumPy does well
    if y.dtype is _BOOL and v.dtype is _BOOL:
        y, v, mode = y.view(np.uint8), v.view(np.uint8), _OF_TRUTH[mode]
    if copied or not _combines(y, i) or not i.size or not inner or not y.flags.aligned:
        plain_combine_into(y, v, i, mode)
        return
    rows = np.ascontiguousarray(np.broadcast_to(v, (*i.shape, *y.shape[1:])), y.dtype)
    if inner == 1:
        combine_into(y.reshape(-1), rows.reshape(-1), i.reshape(-1), mode)
    else:
        combine_rows(rows, i, y, (1, i.size, len(y), inner), mode, False)


def combine_into(y: NDArray[Any], v: NDArray[Any], i: Index, mode: str) -> None:
    """`combine`, in y itself: 1-D and contiguous."""
    few = mode == "set" and i.size < _MANY
    same = v.shape == i.shape and v.dtype == y.dtype and y.flags.aligned
    if same and mode == "add" and y.dtype.kind == "c":
        combine_rows_into(y, v, i, mode)
        return
    if same and y.dtype is _BOOL:
        y, v, mode = y.view(np.uint8), v.view(np.uint8), _OF_TRUTH[mode]
    if few or not same or not _combines(v, i):
        plain_combine_into(y, v, i, mode)
    else:
        refuse_outside(cpu.combine(v, i, y, i.size, y.size, mode))


def _combines(x: NDArray[Any], i: Index) -> bool:
    """Whether a kernel is to be preferred for values x, also halves, at i."""
    if is_half(x.dtype):
        return i.dtype.kind in "iu" and x.size >= _FEW and ready(x.size, 0)
    return fits(x)


def combined_at(x: NDArray[Any], v: Any, i: Any, mode: str) -> NDArray[Any] | None:
    """`combine` by a kernel, for a number or one for each position; None for all others.

    Positions are an array for each axis; on the last of several axes they may be one int, and on
    all but one. The mode "factors" gives ones, with all that comes to one place multiplied in.
    """
    d, rank = x.dtype, x.ndim
    number = _NUMBERS.get(d.num)
    each = i if i.__class__ is tuple else (i,)
    if number is None or len(each) != rank or not rank:
        return None
    line = _on_a_line(each, x.shape)
    if line is None:
        m, column = x.shape[-1], each[-1]
        rows = each[:-1] if column.__class__ is int else each
        if rank == 1 or not alike(rows) or (rows is not each and not -m <= column < m):
            return None
    elif not alike(each := line[:1]):
        return None
    first, count = each[0], each[0].size
    single = v.__class__ is number
    if not (single or (v.__class__ is np.ndarray and v.shape == first.shape)):
        return None
    limits = _LIMITS.get(d.num) if single else None
    if limits is not None and not limits.min <= v <= limits.max:
        return None
    if not ready(count, 0):
        return None
    if line is not None:
        return inside(cpu.combined(x, v, first, count, *line[1:], mode, single))
    at, n = (first, len(x)) if rank == 2 else flat(each[:-1], x.shape)
    if column.__class__ is int:
        return inside(cpu.combined(x, v, at, count, n, m, column % m, mode, single))
    return inside(cpu.combined_pairs(x, v, at, column, count, n, m, mode, single))


def _on_a_line(i: tuple[Any, ...], shape: tuple[int, ...]) -> tuple[Any, int, int, int] | None:
    """An array on one axis, and numbers on all others: that array, how many places it says, the
    distance between two, and where the first one is. None for others.
    """
    found, first, behind = None, 0, 1
    for k, n in zip(i[::-1], shape[::-1]):
        if k.__class__ is not int:
            if found is not None:
                return None
            found = k, n, behind
        elif -n <= k < n:
            first += k % n * behind
        else:
            return None
        behind *= n
    return None if found is None else (*found, first)


def leading(i: Any, shape: tuple[int, ...]) -> Index | None:
    """The flat places along the first axes of an array of such a shape, for a position on each of
    them: numbers, and at least one array. None where a key selects in another way.
    """
    if i.__class__ is not tuple or not 1 < len(i) <= len(shape):
        return None
    for k in i:
        if k.__class__ is not int and (k.__class__ is not np.ndarray or k.dtype.kind == "b"):
            return None
    each = [np.asarray(k, np.int64) for k in i]
    given = np.broadcast(*each).shape
    if not given:
        return None
    each = [k if k.shape == given else np.full(given, k) for k in each]
    if ready(each[0].size, 0):
        return flat(tuple(each), shape)[0]
    places = np.zeros(given, np.int64)
    for k, n in zip(each, shape):
        refuse_outside(int(((k < -n) | (k >= n)).any()))
        places *= n
        places += np.where(k < 0, k + n, k)
    return places


def combined_along(x: NDArray[Any], v: Any, i: Any, mode: str) -> NDArray[Any] | None:
    """`combine` along one axis behind the first, of which a key has positions while it takes all
    others whole; None for others, and where there is no code.
    """
    if i.__class__ is not tuple or len(i) > x.ndim or i[0].__class__ is not slice:
        return None
    at, axis, shape = None, 0, x.shape
    for k, each in enumerate(i):
        if each.__class__ is np.ndarray and at is None:
            at, axis = each, k
        elif each.__class__ is not slice or each != _WHOLE:
            return None
    if at is None or at.dtype is _BOOL or not at.size or not x.size:
        return None
    if x.dtype.num not in CODED or not ready(x.size, 0):
        return None
    lead, n, row = shape[:axis], shape[axis], shape[axis + 1 :]
    inner = prod(row) if row else 1
    if mode == "set" and inner * x.itemsize >= _LONG:
        return None
    v = _as_given(v, (*lead, *at.shape, *row), x.dtype)
    if inner == 1:
        return _columns(x, v, signed(at), prod(lead), n, mode)
    y = np.array(x, order="C")
    combine_rows(v, signed(at), y, (prod(lead), at.size, n, inner), mode, False)
    return y


def combined_within(x: NDArray[Any], v: Any, i: Any, mode: str) -> NDArray[Any] | None:
    """`combine` of a part of each row, where a key has positions on the first axis, a slice on the
    second and takes all others whole; None for others, and where there is no code.
    """
    if i.__class__ is not tuple or not 1 < len(i) <= x.ndim or i[1].__class__ is not slice:
        return None
    at, shape = i[0], x.shape
    if at.__class__ is not np.ndarray or at.dtype is _BOOL or not at.size or not x.size:
        return None
    if any(k.__class__ is not slice or k != _WHOLE for k in i[2:]):
        return None
    start, stop, step = i[1].indices(shape[1])
    row, count = prod(shape[2:]), len(range(start, stop, step))
    if step < 1 or (step > 1 and row > 1) or not count:
        return None
    if x.dtype.num not in CODED or not ready(x.size, 0):
        return None
    v = _as_given(v, (*at.shape, count, *shape[2:]), x.dtype)
    y = np.array(x, order="C")
    sizes = 1, at.size, len(x), count * row
    combine_rows(v, signed(at), y, sizes, mode, False, shape[1] * row, start * row, step)
    return y


def _as_given(v: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    """v of such a shape and dtype."""
    if v.__class__ is not np.ndarray or v.shape != shape:
        v = np.broadcast_to(np.asarray(v, dtype), shape)
    made: NDArray[Any] = v if v.dtype is dtype else v.astype(dtype)
    return made


def _columns(
    x: NDArray[Any], v: NDArray[Any], i: Index, outer: int, n: int, mode: str
) -> NDArray[Any]:
    """x, rows of n elements, combined with as many of v at the columns i."""
    count = i.size
    if x.size + v.size < _MUCH:
        return inside(cpu.combined_columns(x, v, i, outer, count, n, mode))
    y, wrong = fresh(x.shape, x.dtype), np.zeros(1, np.int64)
    tasks = min(outer, _TASKS)
    part = -(-outer // tasks)
    cpu.combine_columns(x, v, i, y, wrong, outer, count, n, mode, part, -(-outer // part))
    return checked(y, wrong)


def combined_each(x: NDArray[Any], v: Any, i: Any, mode: str) -> NDArray[Any] | None:
    """`combined_at` for 1-D x and arrays v and i of one shape, which is quicker to find out."""
    d, count = x.dtype, i.size
    if i.dtype not in WORDS or v.dtype is not d or x.ndim != 1:
        return None
    if d.num not in CODED:
        return _as_others(combined_each, x, v, i, mode)
    if (mode == "set" and count < _FEW) or v.shape != i.shape or not ready(count, 0):
        return None
    made: NDArray[Any] | None = cpu.combined(x, v, i, count, x.size, 1, 0, mode, False)
    return inside(made) if made is None else made


def combined_rows(x: NDArray[Any], v: NDArray[Any], i: Index, mode: str) -> NDArray[Any] | None:
    """`combine` of the rows of v, one for each position, which is quicker to find out."""
    d, shape = x.dtype, x.shape
    if i.dtype is not _INT64 or v.dtype is not d:
        return None
    if mode == "set" and (prod(shape[1:]) * d.itemsize >= _LONG or v.size < _MANY):
        return None
    if d.num not in CODED:
        return _as_others(combined_rows, x, v, i, mode)
    if not x.size or not v.size or v.shape != i.shape + shape[1:] or not ready(v.size, 0):
        return None
    flags, n = v.flags, shape[0] if shape else 0
    if not (n and flags.c_contiguous and flags.aligned):
        return None
    y = x.copy()
    combine_rows(v, i, y, (1, i.size, n, y.size // n), mode, False)
    return y


def _combined(x: Any, v: Any, i: Any, mode: Any) -> Plan | None:
    """How a few values, or a number, are combined with what a key of an array selects."""
    d, single = x.dtype, v.__class__ is not np.ndarray
    if d.num not in CODED or not 0 < x.size < _MUCH or (single and d not in _REALS):
        return None
    if i.__class__ is not np.ndarray:
        return _combined_view(x, v, i, mode, single)
    if i.dtype is _BOOL:
        return _combined_under(x, v, i, mode, single)
    row = x.shape[1:]
    if i.dtype not in WORDS or not x.ndim or not 0 < i.size < _MUCH:
        return None
    if not single and (v.dtype is not d or v.shape != i.shape + row):
        return None
    if row:
        inner = prod(row)
        rows = x, v, i, i.size, len(x), inner, inner, 0, mode, single
        return Plan(cpu.combined_rows, rows, (0, 1, 2, None), x.shape, d)
    given = x, v, i, i.size, x.size, 1, 0, mode, single
    return Plan(cpu.combined, given, (0, 1, 2, None), x.shape, d)


def _combined_under(x: Any, v: Any, mask: Any, mode: Any, single: bool) -> Plan | None:
    """The same for a mask of the first axes, or of all."""
    if not mask.ndim or mask.shape != x.shape[: mask.ndim]:
        return None
    if single:
        given = x, v, mask, mask.size, x.size // mask.size, mode, True
        return Plan(masked.combined_under, given, (0, 1, 2, None), x.shape, x.dtype)
    if mode != "set" or mask.ndim != x.ndim or v.dtype is not x.dtype or v.ndim != 1 or not v.size:
        return None
    return Plan(masked.filled_under, (x, v, mask, v.size), (0, 1, 2, None), x.shape, x.dtype)


def _combined_view(x: Any, v: Any, key: Any, mode: Any, single: bool) -> Plan | None:
    """The same for numbers, slices and new axes, whose view is rows of elements evenly apart."""
    each = key if key.__class__ is tuple else (key,)
    if not BASIC.issuperset([k.__class__ for k in each]):
        return None
    try:
        view = x[each if ... in each else (*each, ...)]
    except (IndexError, ValueError):
        return None
    if not view.size or (not single and (v.dtype is not x.dtype or v.shape != view.shape)):
        return None
    axes: list[tuple[int, int]] = []  # how long each is, and how far apart in elements
    for n, stride in zip(view.shape, view.strides):
        step = stride // x.itemsize
        if axes and axes[-1][1] == n * step:
            axes[-1] = axes[-1][0] * n, step
        elif n > 1:
            axes.append((n, step))
    if len(axes) > 2:
        return None
    first = (view.__array_interface__["data"][0] - x.__array_interface__["data"][0]) // x.itemsize
    (rows, pitch), (count, step) = [(1, 0), (1, 1), *axes][-2:] if axes else ((1, 0), (1, 1))
    given = x, v, first, rows, pitch, count, step, mode, single, step == 1
    return Plan(cpu.combined_view, given, (0, 1, None, None), x.shape, x.dtype)


few_combined = Prepared(_combined)


def _combined_places(x: Any, v: Any, mode: Any, *key: Any) -> Plan | None:
    """The same for keys with positions among other entries: on the first axis with a slice of the
    second, on the last of two axes, on both, or on one axis where all others have a number.
    """
    d, single, rank = x.dtype, v.__class__ is not np.ndarray, x.ndim
    if d.num not in CODED or not 0 < x.size < _MUCH or (single and d not in _REALS):
        return None
    arrays = [k for k in key if k.__class__ is np.ndarray]
    if not 1 < len(key) <= rank or not arrays or not alike(tuple(arrays)):
        return None
    at, shape, count = arrays[0], x.shape, arrays[0].size
    if not 0 < count < _MUCH or (not single and v.dtype is not d):
        return None
    if key[1].__class__ is slice:
        start, stop, step = key[1].indices(shape[1])
        row, long = shape[2:], stop - start
        if len(key) > 2 or step != 1 or long < 1 or count * long * prod(row) >= _MUCH:
            return None
        if not single and v.shape != (*at.shape, long, *row):
            return None
        inner = prod(row)
        sizes = count, len(x), long * inner, shape[1] * inner, start * inner
        return Plan(
            cpu.combined_rows, (x, v, at, *sizes, mode, single), (0, 1, None, 2, None), shape, d
        )
    if key[0].__class__ is slice:
        if single or rank != 2 or key[0] != _WHOLE or x.size + v.size >= _MUCH:
            return None
        if at.dtype is not _INT64 or v.shape != (len(x), *at.shape):
            return None
        given = x, v, at, shape[0], count, shape[1], mode
        return Plan(cpu.combined_columns, given, (0, 1, None, None, 2), shape, d)
    if len(key) != rank or not (single or v.shape == at.shape):
        return None
    if len(arrays) == rank == 2:
        pairs = x, v, *arrays, count, *shape, mode, single
        return Plan(cpu.combined_pairs, pairs, (0, 1, None, 2, 3), shape, d)
    line = _on_a_line(key, shape)
    if line is None:
        return None
    places = tuple([2 if k is at else None for k in key])
    line_of = x, v, at, count, *line[1:], mode, single
    return Plan(cpu.combined, line_of, (0, 1, None, *places), shape, d)


few_places = Prepared(_combined_places)


def _as_others(
    way: Callable[..., Any], x: NDArray[Any], v: NDArray[Any], i: Index, mode: str
) -> NDArray[Any] | None:
    """Truth as bytes, and sums of complex numbers as rows of their parts; None for others."""
    if v.shape != i.shape + x.shape[1:]:
        return None
    if x.dtype is _BOOL:
        made = way(x.view(np.uint8), v.view(np.uint8), i, _OF_TRUTH[mode])
        return None if made is None else made.view(_BOOL)
    if mode not in ("add", "set") or not v.size or x.dtype.kind != "c":
        return None
    x, shape = np.ascontiguousarray(x), x.shape
    parts, given = in_parts(x), in_parts(np.ascontiguousarray(v).reshape(i.size, -1))
    if parts is None or given is None:
        return None
    made = combined_rows(parts, given, i.reshape(-1), mode)
    return None if made is None else made.view(x.dtype).reshape(shape)


def plain_combine_into(y: NDArray[Any], v: NDArray[Any], i: Index, mode: str) -> None:
    """`combine_into` in NumPy."""
    if mode == "set":
        y[i] = v
    else:
        COMBINED_AT[mode](y, i, v)
