"""Gather along an axis, and its adjoint: plain, or in machine code; both give the same bits.

Indices count from the end where they are negative; one that is out of bounds raises IndexError.
What changes an array at positions is `combining.py`, which shares the helpers.
"""

from __future__ import annotations

import functools
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from funct.device.host import host
from funct.kernels.cpu.irregular import combining, packing
from funct.kernels.cpu.irregular import indexing as cpu
from funct.kernels.cpu.loops import pays, ready
from funct.kernels.dtypes import MOVED, USUAL, as_words, is_half
from funct.kernels.scans import through_single
from funct.kernels.statistical import counted
from funct.kernels.windows.views import memory_order

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Index = NDArray[Any]

__all__ = [
    "PLACES", "WORDS", "alike", "combine_rows", "fits", "flat", "in_parts", "inside", "nonzero",
    "picked", "picked_at", "plain_put", "plain_put_along", "plain_segment_sum", "plain_take_along",
    "put", "put_along", "refuse_outside", "replaced", "segment_sum", "signed", "sums_of_few",
    "take", "take_along", "under", "wide",
]  # fmt: skip

_INT64, _SINGLE, _DOUBLE = map(np.dtype, (np.int64, np.float32, np.float64))
PLACES = frozenset([np.dtype(c).num for c in "bBhHiIlq"])  # dtypes of indices that int64 holds
_SUMMED = frozenset([np.dtype(c).num for c in "bBhHiIlLqQfd"])
_COMPLEX = frozenset([np.dtype(c).num for c in "FD"])
WORDS = _INT64, np.dtype(np.int32)  # dtypes of indices that are added up
_SOME = 1 << 11  # elements that are taken quicker than by NumPy, one for each index
_FEW = 256  # and those of which each line has indices of its own
_PART = 1 << 15  # elements of a task
_MANY = 1 << 13  # elements whose order in memory is asked for, and that NumPy takes by a call more
_LINES = 1 << 10  # of which the same columns are taken, and looked at before
_SEVERAL = 4  # of these from which on they are put together in registers
_FAR = 1 << 24  # bytes that caches hold in part at most
_MUCH, _COLUMNS, _TASKS = 1 << 16, 64, 16  # elements and columns of a task at least, and tasks


def signed(i: Index) -> Index:
    """Indices, none of which NumPy would take for a negative one: it casts those of 64 bits without
    a sign, and 2**64 - 1 would be the last.
    """
    if i.dtype.kind != "u" or i.dtype.itemsize < 8:
        return i
    i = i.view(_INT64)
    if i.size and i.min() < 0:
        raise IndexError("an index is out of bounds")
    return i


def _index(i: Index) -> Any:
    """Indices as kernels that change numbers want them."""
    return i if i.dtype is _INT64 else i.astype(_INT64)


def fits(x: NDArray[Any], *least: int) -> bool:
    """Whether a kernel is to be preferred for values x, at least so many."""
    return pays(x, *least) and x.dtype.kind != "b"


def in_parts(x: NDArray[Any]) -> NDArray[Any] | None:
    """Complex numbers that lie side by side as rows of their parts; None for others."""
    if x.dtype.num not in _COMPLEX or not x.ndim or not x.size or not x.flags.c_contiguous:
        return None
    return x.reshape(len(x), -1).view(x.real.dtype)


def refuse_outside(found: int) -> None:
    """Raise IndexError where a kernel has found an index that is out of bounds."""
    if found:
        raise IndexError(f"index number {found - 1} is out of bounds")


def inside(made: NDArray[Any] | None) -> NDArray[Any]:
    """What a kernel has made, which is nothing where an index is out of bounds."""
    if made is None:
        raise IndexError("an index is out of bounds")
    return made


def take(x: NDArray[Any], i: Index, axis: int) -> NDArray[Any]:
    """As `x.take(i, axis)`, which copies rows well."""
    i = i if i.dtype is _INT64 else signed(i)  # no call for the usual
    if x.size * i.size < _SOME:  # as many as there may be at most
        return x.take(i, axis)
    rank = x.ndim
    if rank == 1:
        if i.size >= _SOME and _moves(x, i, i.size):
            return _elements(x, i)
    elif axis == rank - 1 and i.ndim == 1:
        count = x.size // x.shape[-1] * i.size
        if count >= _SOME and _moves(x, i, count):
            return _lines(x, i, (*x.shape[:-1], i.size), True)
    order = memory_order(x) if i.ndim == 1 and x.size >= _MANY else None
    if order is None:
        return x.take(i, axis)
    return take(x.transpose(order), i, order.index(axis)).transpose(np.argsort(order))


def _moves(x: NDArray[Any], i: Index, count: int) -> bool:
    """Whether a kernel is to be preferred to take so many elements of x, as words, at i."""
    if i.dtype.num not in PLACES or not ready(count, 0):
        return False
    # x may lie on another device
    return x.itemsize in MOVED and x.flags.c_contiguous and x.__class__ is np.ndarray


def _checked(y: NDArray[Any], wrong: NDArray[Any]) -> NDArray[Any]:
    if wrong[0]:
        raise IndexError("an index is out of bounds")
    return y


def _elements(x: NDArray[Any], i: Index) -> NDArray[Any]:
    """1-D x at i."""
    count = i.size
    y = np.empty(i.shape, x.dtype)
    wrong = np.zeros(1, np.int64)
    cpu.take_elements(as_words(x), i, as_words(y), wrong, count, len(x), _PART, -(-count // _PART))
    return _checked(y, wrong)


def _lines(x: NDArray[Any], i: Index, shape: tuple[int, ...], shared: bool) -> NDArray[Any]:
    """x at i along the last axis; shared: at the same indices in each of its lines."""
    y = np.empty(shape, x.dtype)
    size, count = y.size, shape[-1]
    if not size:
        return y
    outer, given = size // count, (as_words(x), i, as_words(y))
    sizes = outer, count, x.shape[-1], shared
    if size <= _PART:
        refuse_outside(cpu.take_few(*given, *sizes))
        return y
    part = max(1, _PART // count)
    tasks = -(-outer // part)
    wrong = np.zeros(1, np.int64)
    if shared and outer >= _LINES:
        columns = i.astype(np.int64)
        columns += x.shape[-1] * (columns < 0)
        wrong[0] = ((columns < 0) | (columns >= x.shape[-1])).any()
        if not wrong[0]:
            columns, fits = _in_vectors(columns, x.shape[-1], x.itemsize)
            cpu.take_columns(given[0], columns, given[2], *sizes[:3], fits, part, tasks)
    else:
        cpu.take_lines(*given, wrong, *sizes, part, tasks)
    return _checked(y, wrong)


def _in_vectors(columns: Index, n: int, size: int) -> tuple[Index, str]:
    """How `take_columns` wants columns of lines of n elements of that size."""
    lanes, count = 64 // size, len(columns)
    if not wide() or size < 4 or count < _SEVERAL or max(n, count) > 2 * lanes:
        return columns, ""
    padded = np.zeros(2 * lanes, f"i{size}")
    padded[:count] = columns
    return padded, "one" if n <= lanes else "two"


def picked(x: NDArray[Any], at: NDArray[Any]) -> NDArray[Any] | None:
    """x[at] where `at`, of many positions or a mask, is left to a kernel; rows to NumPy's `take`,
    which copies short ones better than its indexing does.
    """
    if not x.ndim or at.size < _SOME:
        return None
    if at.dtype.num in PLACES:
        if x.ndim == 1:
            return take(x, at, 0)
        return x.take(at, 0) if x.flags.c_contiguous else None
    return under(x, at) if x.ndim == 1 and at.dtype.kind == "b" and at.shape == x.shape else None


def picked_at(x: NDArray[Any], at: tuple[Any, ...]) -> NDArray[Any] | None:
    """x[at] for many positions on each of its first axes, two at least; None where NumPy is to do
    it, which walks through all of them side by side.
    """
    if not 1 < len(at) <= x.ndim or at[0].size < _FEW or not alike(at):
        return None
    if x.__class__ is not np.ndarray or not x.flags.c_contiguous or not ready(at[0].size, 0):
        return None
    if len(at) == x.ndim <= 3 and x.itemsize in MOVED and x.size:
        return _cells(x, at)
    if at[0].size < _SOME:
        return None
    places, n = flat(at, x.shape)
    rows = x.reshape(n, *x.shape[len(at) :])
    return take(rows, places, 0) if rows.ndim == 1 else rows.take(places, 0)


def _cells(x: NDArray[Any], at: tuple[Any, ...]) -> NDArray[Any]:
    """Elements of x, of two or three axes, at positions on each."""
    i, j, k, three = at[0], at[1], at[-1], len(at) == 3
    n, m, behind = x.shape if three else (*x.shape, 1)
    count = i.size
    if count <= _PART and x.dtype.num in USUAL:
        return inside(cpu.picked(x, i, j, k, n, m, behind, three))
    y, wrong = np.empty(i.shape, x.dtype), np.zeros(1, np.int64)
    cpu.pick(
        as_words(x), i, j, k, as_words(y), wrong, count, n, m, behind, three, _PART,
        -(-count // _PART),
    )  # fmt: skip
    return _checked(y, wrong)


def alike(i: tuple[Any, ...]) -> bool:
    """Whether all are arrays of positions for kernels, of one shape."""
    for k in i:
        if k.__class__ is not np.ndarray or k.dtype not in WORDS or k.shape != i[0].shape:
            return False
    return True


def flat(i: tuple[Index, ...], shape: tuple[int, ...]) -> tuple[Index, int]:
    """The flat places of what is at i, which are `alike`, and how many places there are."""
    places, n = i[0].astype(np.int64, copy=False), shape[0]
    for k, m in zip(i[1:], shape[1:]):
        places, n = inside(cpu.placed(places, k, n, m)), n * m
    return places, n


def under(x: NDArray[Any], mask: NDArray[np.bool_]) -> NDArray[Any]:
    """x[mask] of 1-D x, for a mask of its length."""
    if not pays(mask) or x.itemsize not in MOVED:
        return x.compress(mask)
    count = int(counted(mask))
    y = np.empty(count, x.dtype)
    if count:
        packing.under(as_words(x), mask, as_words(y), len(x), count, x.itemsize >= 4 and wide())
    return y


def replaced(x: NDArray[Any], v: Any, mask: NDArray[np.bool_]) -> NDArray[Any] | None:
    """x with v, a float or an element of its dtype, under a mask of its shape; None where NumPy is
    to do it.

    NumPy asks element by element, and guesses wrong in every other one of an irregular mask.
    """
    n, d = x.size, x.dtype
    if x.itemsize not in MOVED or not ready(n, 0):
        return None
    single = v.__class__ is float and d is _DOUBLE
    v = v if single else np.asarray(v, d)
    if n <= _PART and d.num in USUAL:
        few: NDArray[Any] = packing.replaced_few(x, v, mask, single)
        return few
    if not (x.flags.c_contiguous and mask.flags.c_contiguous):
        return None
    v = np.asarray(v, d)
    y = np.empty(x.shape, x.dtype)
    packing.replaced(as_words(x), as_words(v), mask, as_words(y), n, _PART, -(-n // _PART))
    return y


def nonzero(x: NDArray[Any]) -> tuple[Index, ...]:
    """As `x.nonzero()`."""
    rank = x.ndim
    if rank > 2 or x.size < (_SOME if rank == 1 else _FEW) or not ready(x.size, 0):
        return x.nonzero()
    mask = x if x.dtype.kind == "b" else x != 0
    count = int(counted(mask))
    columns = np.empty(count, np.int64)
    rows = np.empty(count if rank == 2 else 0, np.int64)
    if count:
        outer, n = x.shape if rank == 2 else (1, len(x))
        packing.places(mask, rows, columns, outer, n, count, wide())
        if outer == 1:
            rows.fill(0)
    return (rows, columns) if rank == 2 else (columns,)


@functools.cache
def wide() -> bool:
    """Whether the processor packs vectors."""
    return host().has("avx512f", "avx512vl")


def put(g: NDArray[Any], i: Index, axis: int, n: int) -> NDArray[Any]:
    """Zeros of length n along axis, with g added at the indices i, which stand for g's axes there.

    Two writes to one place are added in the order of the indices; halves in float32, and the sum is
    rounded once.
    """
    i = signed(i)
    if is_half(g.dtype):
        return through_single(put, g, i, axis, n)
    if not fits(g):
        return plain_put(g, i, axis, n)
    order = memory_order(g) if i.ndim == 1 else None
    if order is not None:
        return put(g.transpose(order), i, order.index(axis), n).transpose(np.argsort(order))
    y = np.zeros((*g.shape[:axis], n, *g.shape[axis + i.ndim :]), g.dtype)
    if y.size:
        _add(g, i, y, axis, False)
    else:
        refuse_outside(int(bool(i.size)))
    return y


def _add(g: NDArray[Any], i: Index, y: NDArray[Any], axis: int, drop: bool) -> None:
    if y.ndim == 1:
        refuse_outside(combining.add_elements(g, i, y, 1, i.size, y.size, drop))
        return
    outer, n, inner = prod(y.shape[:axis]), y.shape[axis], prod(y.shape[axis + 1 :])
    if inner == 1:
        refuse_outside(combining.add_elements(g, i, y, outer, i.size, n, drop))
    else:
        combine_rows(g, i, y, (outer, i.size, n, inner), "add", drop)


def combine_rows(
    g: NDArray[Any], i: Index, y: NDArray[Any], sizes: tuple[int, int, int, int], mode: str,
    drop: bool,
) -> None:  # fmt: skip
    """Combine rows of g (outer, count, inner) with those of y (outer, n, inner) at i (count,), in
    y itself. sizes: outer, count, n, inner. drop: indices outside [0, n) are left out.
    """
    outer, count, _, inner = sizes
    wrong = np.zeros(1, np.int64)
    part = inner
    if count * inner * outer >= 2 * _MUCH:
        tasks = max(1, min(_TASKS, inner // _COLUMNS, count * inner * outer // _MUCH))
        part = -(-inner // (tasks * 8)) * 8
    far = y.nbytes >= _FAR
    combining.combine_rows(g, _index(i), y, wrong, *sizes, mode, drop, far, part, -(-inner // part))
    _checked(y, wrong)


def plain_put(g: NDArray[Any], i: Index, axis: int, n: int) -> NDArray[Any]:
    """`put` in NumPy."""
    rows = g.reshape((*g.shape[:axis], i.size, *g.shape[axis + i.ndim :]))
    y = np.zeros((*g.shape[:axis], n, *g.shape[axis + i.ndim :]), g.dtype)
    into = np.moveaxis(y, axis, 0) if axis else y
    np.add.at(into, i.reshape(-1), np.moveaxis(rows, axis, 0) if axis else rows)
    return y


def segment_sum(data: NDArray[Any], ids: Index, n: int) -> NDArray[Any]:
    """Sums of the rows of data with one id, (n, ...); ids outside [0, n) are left out.

    Halves are summed in float32, and rounded once.
    """
    if is_half(data.dtype):
        return through_single(segment_sum, data, ids, n)
    if data.dtype.kind == "b" and data.size >= _FEW:  # whether there is a true one
        return np.not_equal(segment_sum(data.astype(np.int64), ids, n), 0)
    parts = in_parts(data) if data.dtype.kind == "c" and n else None
    if parts is not None:
        sums = segment_sum(parts, ids, n)
        return sums.view(data.dtype).reshape(n, *data.shape[1:])
    if not fits(data) or not n:
        return plain_segment_sum(data, ids, n)
    y = np.zeros((n, *data.shape[1:]), data.dtype)
    _add(data, ids, y, 0, True)
    return y


def sums_of_few(data: NDArray[Any], ids: Index, n: int) -> NDArray[Any] | None:
    """`segment_sum` of few numbers by a kernel; None for dtypes and machines that have none."""
    d = data.dtype
    kind = _SINGLE if is_half(d) else _INT64 if d.kind == "b" else d
    if ids.dtype is not _INT64 or kind.num not in _SUMMED or not ready(data.size, 0):
        return None
    given = data if kind is d else data.astype(kind)
    made: NDArray[Any] = combining.summed(given, ids, n, data.size)
    return made if kind is d else made.astype(d)  # of truth: whether it is not 0


def plain_segment_sum(data: NDArray[Any], ids: Index, n: int) -> NDArray[Any]:
    """`segment_sum` in NumPy: one row more takes what belongs to none."""
    ids = ids.astype(np.int64)
    return plain_put(data, np.where((ids >= 0) & (ids < n), ids, n), 0, n + 1)[:-1]


def take_along(x: NDArray[Any], i: Index, axis: int) -> NDArray[Any]:
    """As `numpy.take_along_axis`, for shapes that agree except on axis."""
    i = i if i.dtype is _INT64 else signed(i)
    rank, count = x.ndim, i.size
    least = _SOME if rank == 1 else max(_FEW, x.size // 8)
    if count < least or not _moves(x, i, count):
        return plain_take_along(x, i, axis)
    if rank == 1:
        return _elements(x, i)
    if axis == rank - 1 and i.flags.c_contiguous:
        if count <= _PART and x.dtype.num in USUAL and i.dtype is _INT64:
            width = i.shape[axis]
            return inside(cpu.taken_along(x, i, count // width, width, x.shape[axis]))
        return _lines(x, i, i.shape, False)
    order = memory_order(i)
    if order is not None:
        found = take_along(x.transpose(order), i.transpose(order), order.index(axis))
        return found.transpose(np.argsort(order))
    if axis == rank - 1:
        return _lines(x, i, i.shape, False)
    y = np.empty(i.shape, x.dtype)
    refuse_outside(
        cpu.along(as_words(x), _index(i), as_words(y), *_along(i, x.shape[axis], axis), True)
    )
    return y


def _along(i: Index, n: int, axis: int) -> tuple[int, int, int, int]:
    return prod(i.shape[:axis]), i.shape[axis], n, prod(i.shape[axis + 1 :])


def plain_take_along(x: NDArray[Any], i: Index, axis: int) -> NDArray[Any]:
    """`take_along` in NumPy."""
    if x.ndim == 1:
        return x.take(i)
    if i.size >= _MANY or x.__class__ is not np.ndarray:  # which may lie on another device
        return np.take_along_axis(x, i, axis)
    places = _places(i.shape)
    found: NDArray[Any] = x[(*places[:axis], i, *places[axis + 1 :])]
    return found


@functools.lru_cache(256)
def _places(shape: tuple[int, ...]) -> tuple[Any, ...]:
    """The indices of all elements, as arrays that broadcast."""
    return np.ix_(*map(range, shape))


def put_along(g: NDArray[Any], i: Index, axis: int, n: int) -> NDArray[Any]:
    """Adjoint of `take_along`: zeros of length n along axis, with g added at i, of g's shape."""
    i = signed(i)
    if not fits(g, 1) or g.shape != i.shape:
        return plain_put_along(g, i, axis, n)
    order = memory_order(i)
    if order is not None:
        found = put_along(g.transpose(order), i.transpose(order), order.index(axis), n)
        return found.transpose(np.argsort(order))
    y = np.zeros((*g.shape[:axis], n, *g.shape[axis + 1 :]), g.dtype)
    refuse_outside(cpu.along(g, _index(i), y, *_along(i, n, axis), False))
    return y


def plain_put_along(g: NDArray[Any], i: Index, axis: int, n: int) -> NDArray[Any]:
    """`put_along` in NumPy."""
    y = np.zeros((*g.shape[:axis], n, *g.shape[axis + 1 :]), g.dtype)
    where = list(np.ogrid[tuple(slice(k) for k in i.shape)])
    where[axis] = i
    np.add.at(y, tuple(where), g)
    return y
