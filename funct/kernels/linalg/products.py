"""Products of matrices, by BLAS or tiles where they have the dtype, else by something better than
slow loops.

NumPy multiplies integers and half-precision floats one by one, a hundred times slower than BLAS
does float32. float16 and bfloat16 are summed in float32 here and rounded once. Integers wrap
around, as in NumPy: in machine code, or in BLAS's float64 where no sum can leave what it holds
exactly.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import prod
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np

from funct.device import host
from funct.kernels import table
from funct.kernels.cpu.by_layout import ByLayout
from funct.kernels.linalg.dots import MANY, dot
from funct.kernels.table import left, planned

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "FEW_OF_STACKS", "LONG", "gram_matmul", "half_matmul", "integer_matmul", "matmul", "matmul_of",
    "outer_product", "plain_matmul", "product", "stacked_matmul", "summed_matmul", "thin_matmul",
    "vector_matmul",
]  # fmt: skip

_BLAS = frozenset([np.dtype(t) for t in (np.float32, np.float64, np.complex64, np.complex128)])
_REAL = frozenset([np.dtype(np.float32), np.dtype(np.float64)])
_HALVES = frozenset([np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)])
_INTEGERS = frozenset([np.dtype(f"{sign}{size}") for sign in "iu" for size in (1, 2, 4, 8)])
_FEW = 1 << 14  # products that NumPy's loops do in the time of a call of anything else
_FEW_OF_INTEGERS = 1 << 12
# multiplications of matrices that BLAS gives to several threads; of complex numbers, or a few rows,
# that it does not do well
_TILED, _LEAST_TILED = 1 << 18, 1 << 16
_LEAST_OFTEN = 1 << 11  # multiplications that are worth code of their own where they are repeated
_FEW_ROWS, _LEAST_FEW = 32, 1 << 14  # of a few rows, which are worth a kernel of their own,
_FEW_ELEMENTS = 1 << 11  # and elements of the other matrix
_LONG_COMPLEX, LONG = 4096, 9216  # elements of a matrix that it does, by a vector
_FEW_OF_HALVES = 1 << 8  # products of float16 that NumPy does in the time of another call
_FEW_BY_ONE = 1 << 10  # products by a number that NumPy's loop does in the time of two calls
_FEW_OUTER = 1 << 12  # of sums of one term that two calls of NumPy's do sooner
_LONG_ROW = 16  # columns of each of several results that are worth more than one look at them
_LARGE = 1 << 11  # elements of x from which on a result may be slow to clear
# sums of so few terms are bound by the result, whose rows fall into the same few sets of the cache
# where they lie pages apart: BLAS is at half its speed
_FEW_TERMS, _PAGE = 32, 1 << 12
# matrices of a stack, of which the table has something better than BLAS; complex ones, each of
# which NumPy hands to it; and small ones of so many vectors of terms, which are worth code of their
# own, the sooner where columns of the right one are what lies in memory, by which BLAS is slow
_MANY, _MANY_COMPLEX, _MANY_SMALL, _SMALL, _SMALL_VECTORS = 1 << 9, 1 << 6, 1 << 7, 16, 1 << 9
_MANY_TURNED = 1 << 6
FEW_OF_STACKS = 1 << 9  # multiplications of a stack that NumPy has done sooner than two reshapes
_DOUBLE_EXACT = 2**53


def matmul(x: NDArray[Any], y: NDArray[Any]) -> Any:
    """x @ y, with the shapes and dtypes of `numpy.matmul`; of bfloat16 too.

    Raises: ValueError: if the shapes do not fit.
    """
    return product.call(x, y)


def _way(x: NDArray[Any], y: NDArray[Any]) -> Callable[[Any, Any], Any]:
    """What multiplies arrays that lie as these do. Which it is depends on nothing else, but on
    whether both begin at one place.
    """
    kind = x.dtype
    if kind in _BLAS:
        rank, other = x.ndim, y.ndim
        if rank > 2 or other > 2:
            return _way_of_stacks(x, y) if rank > 1 < other else np.matmul
        if rank == other == 2 and x.shape[1] == 1 and x.size * y.size > _FEW:
            return _of_one
        if rank and other and kind is y.dtype:
            size, other_size = x.size, y.size
            if size == 1 or other_size == 1:  # for `dot` 0 times anything is 0 then
                by_one = rank == other == 2 and size + other_size > _FEW_BY_ONE
                return _of_one if by_one else np.matmul
            if rank != other or 1 in (len(x), y.shape[-1]):
                larger = max(size, other_size)
                if larger >= LONG or (larger >= _LONG_COMPLEX and kind not in _REAL):
                    return _way_by_vector(x, y, larger)
            elif rank == other == 2:
                work = size * (columns := y.shape[1])
                if work > _LEAST_FEW:
                    few = len(x) <= _FEW_ROWS or columns <= _FEW_ROWS
                    few = few and (size if size > other_size else other_size) >= _FEW_ELEMENTS
                    least = _LEAST_TILED if kind not in _REAL else _LEAST_FEW if few else _TILED
                    if work > least:
                        return _way_of_matrices(x, y, work)
            elif size > MANY and x.shape == y.shape:
                return dot
            if not (x.flags.forc and y.flags.forc):
                return np.matmul  # where `dot` copies, it has other sums
            if size >= _LARGE and x.flags.c_contiguous and y.flags.c_contiguous:
                return np.matmul  # which does not clear the result first
            return _dot  # the same sums, at half the cost
        return np.matmul
    if kind in _HALVES and kind == y.dtype:
        return _way_of_halves(x, y)
    if x.size * y.size > _FEW and kind in _INTEGERS and y.dtype in _INTEGERS:
        rows, columns = (v.shape[k] if v.ndim > 1 else 1 for v, k in ((x, -2), (y, -1)))
        if max(x.size * columns, y.size * rows) > _FEW_OF_INTEGERS:
            return _of_integers
    return np.matmul


def _way_of_halves(x: NDArray[Any], y: NDArray[Any]) -> Callable[[Any, Any], Any]:
    """Of one dtype."""
    kind, rank, other = x.dtype, x.ndim, y.ndim
    if 0 < rank < 3 > other > 0 and x.shape[-1] == y.shape[0]:
        work = x.size * y.size // (x.shape[-1] or 1)
        if work <= _FEW_OF_HALVES and kind.char == "e":
            return np.matmul  # which sums in float32, too
        if rank == 1 or other == 1 or (work and 1 in (len(x), y.shape[1])):
            return _way_by_vector(x, y, work)
    if rank > 1 < other and x.shape[-1] == y.shape[-2]:
        if x.shape[-1] == 1 and x.size * y.size > _FEW:
            return _of_one
        if not x.__class__ is y.__class__ is np.ndarray:
            return half_matmul
        layout = x.shape, y.shape, x.strides, y.strides
        return planned("half_matmul", kind, 2 * x.size * y.shape[-1], left(), *layout)
    if rank > 1 == other and x.shape[-1] == len(y):
        return _by_column
    return _by_row if rank == 1 < other and len(x) == y.shape[-2] else half_matmul


def _way_of_stacks(x: NDArray[Any], y: NDArray[Any]) -> Callable[[Any, Any], Any]:
    """Of floats, or complex numbers, of which one at least is a stack of matrices."""
    (rows, terms), columns, kind = x.shape[-2:], y.shape[-1], x.dtype
    work, other_work = x.size * columns, y.size * rows
    work = work if work > other_work else other_work
    if work < FEW_OF_STACKS:
        return np.matmul
    if terms == 1 and work > _FEW_OUTER and (kind in _REAL or columns >= _LONG_ROW):
        return _of_one
    if y.ndim == 2 and x.size and y.dtype in _BLAS:
        byte = x.itemsize
        apart = columns >= _LONG_ROW and byte not in x.strides[-2:]  # BLAS has them copied anyhow
        if apart or x.flags.c_contiguous:
            return _of_tall
    if kind is not y.dtype or not x.__class__ is y.__class__ is np.ndarray or terms != y.shape[-2]:
        return np.matmul  # which says what does not fit
    count = len(x) if x.ndim == 3 else prod(x.shape[:-2])
    other_count = len(y) if y.ndim == 3 else prod(y.shape[:-2])
    matrices = max(count, other_count)
    least = _MANY if kind in _REAL else _MANY_COMPLEX
    turned = y.strides[-1] != y.itemsize
    if least == _MANY and work > (_LEAST_FEW if turned else _LEAST_TILED) and _are_small(rows, y):
        least = _MANY_TURNED if turned else _MANY_SMALL
    if matrices >= least:
        return partial(table.call, "stacked_matmul", kind, matrices)
    if work > _TILED or (work > _LEAST_TILED and (kind not in _REAL or _has_few(x, y))):
        return _way_of_large(x, y, work)
    return np.matmul


def _are_small(rows: int, y: NDArray[Any]) -> bool:
    """Whether products of so many rows by each of y are those of the table."""
    if max(rows, *y.shape[-2:]) > _SMALL:
        return False
    size = y.shape[-2] * y.shape[-1] * y.itemsize
    return rows * size <= _SMALL_VECTORS * host().vector_bytes


def _often(x: NDArray[Any], y: NDArray[Any]) -> Callable[[Any, Any], Any]:
    """`_way` where a call costs more than what is multiplied."""
    way = _way(x, y)
    if way not in (np.matmul, _dot, _of_one) or x.dtype not in _BLAS or x.dtype is not y.dtype:
        return way
    if way is not _of_one and x.ndim > 1 < y.ndim and x.shape[-1] == y.shape[-2]:
        work = max(x.size * y.shape[-1], y.size * x.shape[-2])
        if work > _LEAST_OFTEN and (large := _way_of_large(x, y, work)) is not plain_matmul:
            return large
    layout = x.shape, y.shape, x.strides, y.strides
    single = x.dtype in _REAL and x.ndim == y.ndim == 2 and x.shape[1] == y.shape[0] == 1
    if single or way is _of_one:
        return planned("outer_product", x.dtype, 0, left(), *layout) if single else way
    return planned("small_matmul", x.dtype, 0, left(), *layout)


product = ByLayout(_way, _often, _BLAS | _HALVES | _INTEGERS)


def _dot(x: NDArray[Any], y: NDArray[Any]) -> Any:
    return x.dot(y)


def _of_tall(x: NDArray[Any], y: NDArray[Any]) -> Any:
    """A stack by one matrix: one product instead of one for each."""
    flat = product.call(x.reshape(-1, x.shape[-1]), y)
    return flat.reshape(*x.shape[:-1], y.shape[1])


def _by_column(x: NDArray[Any], y: NDArray[Any]) -> Any:
    return product.call(x, y[:, None])[..., 0]


def _by_row(x: NDArray[Any], y: NDArray[Any]) -> Any:
    return product.call(x[None], y)[..., 0, :]


def _of_integers(x: NDArray[Any], y: NDArray[Any]) -> Any:
    """The product of integers, of which there are some."""
    if y.ndim == 1:
        return _by_column(x, y)
    if x.ndim == 1:
        return _by_row(x, y)
    kind, work = x.dtype, prod(x.shape) * y.shape[-1]
    dtype = kind if kind == y.dtype else np.result_type(kind, y.dtype)
    if work > _FEW_OF_INTEGERS and dtype in _INTEGERS and x.shape[-1] == y.shape[-2]:
        if kind != y.dtype:
            x, y = x.astype(dtype, copy=False), y.astype(dtype, copy=False)
        return table.call("integer_matmul", dtype, 2 * work, x, y)
    return np.matmul(x, y)


def _has_few(x: NDArray[Any], y: NDArray[Any]) -> bool:
    """Whether a product has few rows or columns."""
    return 1 < min(x.shape[-2], y.shape[-1]) <= _FEW_ROWS


def _way_of_matrices(x: NDArray[Any], y: NDArray[Any], work: int) -> Callable[[Any, Any], Any]:
    """Of large ones, of so many multiplications."""
    if not x.__class__ is y.__class__ is np.ndarray:
        return plain_matmul
    if x.dtype in _REAL:
        same = x.strides == y.strides[::-1] and x.shape == y.shape[::-1]
        if same and work > _TILED and _place(x) == _place(y):
            return partial(table.call, "gram_matmul", x.dtype, work)
        if x.shape[1] <= _FEW_TERMS and not y.shape[1] * y.itemsize % _PAGE:
            return partial(table.call, "thin_matmul", x.dtype, len(x) * y.shape[1])
    return _way_of_large(x, y, work)


def _place(x: NDArray[Any]) -> int:
    return int(x.__array_interface__["data"][0])  # in a tenth of the time of `ctypes`


def _way_of_large(x: NDArray[Any], y: NDArray[Any], work: int) -> Callable[[Any, Any], Any]:
    """Of matrices, or stacks of them, of so many multiplications."""
    layout = x.shape, y.shape, x.strides, y.strides
    return planned("large_matmul", x.dtype, work, left(), *layout)


def matmul_of(x: NDArray[Any], y: NDArray[Any]) -> Callable[[Any, Any], Any]:
    """`matmul` for a matrix and matrices that lie as these do: there is nothing to ask where they
    are large.
    """
    work = y.size * len(x)
    few = work <= _TILED or 1 in (len(x), y.shape[-1]) or prod(y.shape[:-2]) >= _MANY
    if few or x.dtype not in _REAL or x.dtype != y.dtype:
        return matmul
    return planned("large_matmul", x.dtype, work, left(), x.shape, y.shape, x.strides, y.strides)


def _way_by_vector(x: NDArray[Any], y: NDArray[Any], size: int) -> Callable[[Any, Any], Any]:
    """Of a matrix of so many elements and a vector, or a matrix of one row or column."""
    if not x.__class__ is y.__class__ is np.ndarray:
        return vector_matmul
    layout = x.shape, y.shape, x.strides, y.strides
    return planned("vector_matmul", x.dtype, size, left(), *layout)


def _dense(x: NDArray[Any]) -> bool:
    return x.flags.c_contiguous


def plain_matmul(x: NDArray[Any], y: NDArray[Any]) -> Any:
    """x @ y, by BLAS."""
    stacked = max(x.ndim, y.ndim) > 2
    return np.matmul(x, y) if stacked or (_dense(x) and _dense(y)) else x.dot(y)


def summed_matmul(x: NDArray[Any], y: NDArray[Any]) -> Any:
    """Σ_n x[n] @ y[n] of two stacks of matrices."""
    return np.add.reduce(matmul(x, y), 0)


def gram_matmul(x: NDArray[Any], y: NDArray[Any]) -> Any:
    """x @ y of a matrix and its transpose: BLAS computes one half."""
    return np.matmul(x, y)


def thin_matmul(x: NDArray[Any], y: NDArray[Any]) -> Any:
    """x @ y, as of any other matrices."""
    return _way_of_large(x, y, x.size * y.shape[1])(x, y)


def vector_matmul(x: NDArray[Any], y: NDArray[Any]) -> Any:
    """x @ y of a matrix and a vector, by BLAS."""
    return half_matmul(x, y) if x.dtype in _HALVES else x.dot(y)


def stacked_matmul(x: NDArray[Any], y: NDArray[Any]) -> Any:
    """x @ y, by a call of BLAS for each matrix of a stack."""
    work = max(prod(x.shape[:-2]), prod(y.shape[:-2])) * prod(x.shape[-2:]) * y.shape[-1]
    return _way_of_large(x, y, work)(x, y)


def _of_one(x: NDArray[Any], y: NDArray[Any]) -> Any:
    """x @ y where every sum has one term: NumPy does without BLAS there, element by element."""
    if y.shape[-2] != 1:
        return np.matmul(x, y)  # which says what does not fit
    if x.dtype != y.dtype:
        return outer_product(x, y)
    if (size := x.size * y.size) <= _FEW_OUTER:
        return outer_product(x, y)
    return table.call("outer_product", x.dtype, size, x, y)


def outer_product(x: NDArray[Any], y: NDArray[Any]) -> Any:
    """x * y + 0, columns times rows: no sum is -0."""
    out = x * y
    out += out.dtype.type(0)
    return out


def half_matmul(x: NDArray[Any], y: NDArray[Any]) -> NDArray[Any]:
    """x @ y of one half-precision dtype, summed in float32 and rounded once."""
    wide = matmul(x.astype(np.float32), y.astype(np.float32))
    narrow: NDArray[Any] = wide.astype(x.dtype)
    return narrow


def integer_matmul(x: NDArray[Any], y: NDArray[Any]) -> NDArray[Any]:
    """x @ y of one integer dtype, modulo its range: by float64 if that is exact, else by NumPy."""
    if x.size and y.size and _largest(x) * _largest(y) * x.shape[-1] < _DOUBLE_EXACT:
        exact = matmul(x.astype(np.float64), y.astype(np.float64))
        wide = exact.astype(np.int64)
        return wide.astype(x.dtype)
    wrapped: NDArray[Any] = np.matmul(x, y)
    return wrapped


def _largest(x: NDArray[Any]) -> int:
    return max(abs(int(x.min())), abs(int(x.max())))
