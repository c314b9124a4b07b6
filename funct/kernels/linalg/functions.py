"""Functions of one matrix, or of a vector, that take more than one primitive.

Each gives what the function of its name in `funct.array.linalg` composes, or None.
"""

from __future__ import annotations

import functools
import math
from math import prod
from typing import Any

import numpy as np

from funct.kernels.cpu.loops import ready
from funct.kernels.cpu.prepared import Prepared
from funct.kernels.cpu.reductions import pairwise
from funct.kernels.cpu.reductions.pairwise import of_long_rows
from funct.kernels.cpu.reductions.short_rows import of_short_rows
from funct.kernels.cpu.scratch import fresh
from funct.kernels.cpu.small.crossed import crossed
from funct.kernels.cpu.small.norms import LONGEST, lengths
from funct.kernels.dtypes import FLOATING, NATIVE
from funct.kernels.elementwise.functions import power
from funct.kernels.linalg import few, matrices
from funct.kernels.linalg.dots import MANY, vdot
from funct.kernels.linalg.kronecker import TRACES, as_outer
from funct.kernels.linalg.products import matmul
from funct.kernels.reductions import statistical

__all__ = [
    "LEAST_SQUARES", "cond", "cross", "diag", "diagonal", "einsum", "keeps_digits", "lstsq",
    "matrix_norm", "matrix_power", "matrix_rank", "norm", "outer", "solve", "solve_triangular",
    "tensordot", "trace", "vecdot", "vector_norm",
]  # fmt: skip

_add: Any = np.add.reduce
_vecdot: Any = np.vecdot
_maximum: Any = np.maximum.reduce
_minimum: Any = np.minimum.reduce
_EXTREMES = {np.inf: _maximum, -np.inf: _minimum}
_SUMMED = {
    1: (-2, _maximum), -1: (-2, _minimum), np.inf: (-1, _maximum), -np.inf: (-1, _minimum),
}  # fmt: skip
_FLOATING = {np.dtype(char): np.dtype(char.lower()) for char in "fdFD"}  # and of what sizes are
Axes = tuple[int, ...]
_LEAST_SINGLE, _LEAST_DOUBLE = 2.0**-90, 2.0**-900
LEAST_SQUARES = {"f": _LEAST_SINGLE, "d": _LEAST_DOUBLE}
_VECTORS = 1024  # elements below which one kernel squares, adds and roots them
_ROWS = 1 << 18  # and of rows
_CROSSED = {np.dtype(char) for char in "fdil"}
_ROWS_CROSSED = 1 << 14  # that are a task
_FEW = 32  # numbers that Python looks through before NumPy has begun
_FAR = 1 << 31  # of a diagonal: NumPy counts in 32 bits
_SHORT = 1024  # elements up to which nobody asks whether the result fits into memory


def diag(x: Any, k: int = 0) -> Any:
    """The matrix with a short x on its k-th diagonal, or the k-th diagonal of one."""
    if k.__class__ is not int or not -_SHORT < k < _SHORT or x.ndim not in (1, 2):
        return None
    if x.size > _SHORT:
        return None
    if x.ndim == 2:
        return x.diagonal(k)
    n = x.shape[0]
    m = n + abs(k)
    start = k if k >= 0 else -k * m
    out = np.zeros(m * m, x.dtype)
    out[start : start + n * (m + 1) : m + 1] = x
    return out.reshape(m, m)


def diagonal(x: Any, offset: int = 0) -> Any:
    """The elements x[..., i, i + offset]."""
    if offset.__class__ is not int or not -_FAR < offset < _FAR:
        return None
    return x.diagonal(offset, -2, -1)


def trace(x: Any, offset: int = 0, dtype: Any = None) -> Any:
    """Sum of a diagonal."""
    if offset.__class__ is not int or not -_FAR < offset < _FAR or x.dtype.num >= NATIVE:
        return None
    if dtype is None and (y := TRACES.call(x, offset)) is not None:
        return y
    return statistical.sum(x.diagonal(offset, -2, -1), -1, dtype)


def vector_norm(x: Any, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Any:
    """Norm over axis."""
    if not x.size or not x.ndim or x.dtype not in _FLOATING:
        return None
    if ord.__class__ is not int and ord.__class__ is not float:
        return None
    if ord == 2:
        least = _ROWS if axis == -1 or axis == x.ndim - 1 else _VECTORS
        long = axis is None and x.size > LONGEST
        if long and (total := _SQUARES.call(x, axis, keepdims)) is not None:
            return _root(total)
        if not long and x.size < least and (y := _few(x, axis, keepdims)):
            return y[0]
        return _root(_sum_of_squares(x, axis, keepdims))
    if ord == 0:
        counted = np.not_equal(x, 0).astype(_FLOATING[x.dtype])
        return statistical.total(counted, axis, keepdims)
    size = np.abs(x)
    if ord == 1:
        return statistical.total(size, axis, keepdims)
    if ord in _EXTREMES:
        return _EXTREMES[ord](size, axis, None, None, keepdims)
    if not 0 < ord < np.inf:
        return None
    total = statistical.total(power(size, float(ord)), axis, keepdims)
    return power(total, 1.0 / ord)


def _job_of_squares(x: Any, axis: Any, keepdims: bool) -> Any:
    """What adds up the squares of real numbers that lie side by side."""
    return pairwise.job(x, axis, keepdims, "squares") if x.dtype.kind == "f" else None


_solve_again, _triangle_again = few.ALREADY["solve"], few.ALREADY["solve_triangular"]
_SQUARES = Prepared(_job_of_squares)


def _few(x: Any, axis: Any, keepdims: bool) -> Any:
    """The norms of a few vectors along an axis, or of all of x, in a tuple; or () where one is for
    the long way.
    """
    if not x.flags.c_contiguous or not ready(x.size):
        return ()
    shape, rank = x.shape, x.ndim
    if axis is None:
        n, inner, kept = x.size, 1, (1,) * rank if keepdims else ()
    elif axis.__class__ is int and -rank <= axis < rank:
        axis %= rank
        n, rest = shape[axis], shape[axis + 1 :]
        inner, kept = prod(rest), shape[:axis] + ((1, *rest) if keepdims else rest)
    else:
        return ()
    if inner == 1 and n > LONGEST:
        return ()
    y = np.empty(kept, _FLOATING[x.dtype])
    least = LEAST_SQUARES[y.dtype.char]
    room, pairs = np.empty(8, y.dtype), x.dtype.kind == "c"
    return () if lengths(x, y, room, y.size // inner, n, inner, least, pairs) else (y,)


def _root(total: Any) -> Any:
    """The root of sums of squares; None where one overflowed, or lost digits."""
    if total.__class__ is np.float64:
        return math.sqrt(total) if _LEAST_DOUBLE <= total < math.inf else None
    if total.__class__ is np.float32:
        return np.sqrt(total) if _LEAST_SINGLE <= float(total) < math.inf else None
    if not total.ndim:  # as code gives it
        wide, kind = total.item(), total.dtype
        if not LEAST_SQUARES[kind.char] <= wide < math.inf:
            return None
        return kind.type(math.sqrt(wide))  # which rounds as a root of the dtype does
    return np.sqrt(total) if keeps_digits(total) else None


def keeps_digits(total: Any) -> bool:
    """Whether sums of squares are such that no square that counts overflowed or underflowed."""
    least = LEAST_SQUARES[total.dtype.char]
    if total.size <= _FEW:
        numbers = total.ravel().tolist()
        return not numbers or bool(least <= min(numbers) and max(numbers) < math.inf)
    return bool(least <= _minimum(total, None) and _maximum(total, None) < math.inf)


def _sum_of_squares(x: Any, axis: Any, keepdims: bool) -> Any:
    """In NumPy's order; of real numbers without the squares between."""
    if x.size > LONGEST and x.dtype.kind != "c":
        y = of_long_rows(x, axis, keepdims, "squares")
        y = of_short_rows("squares", x, axis, keepdims) if y is None else y
        if y is not None:
            return y
    return statistical.total(_squares(x), axis, keepdims)


def _squares(x: Any) -> Any:
    if x.dtype.kind != "c":
        return np.square(x)
    return np.square(x.real) + np.square(x.imag)


def cross(x1: Any, x2: Any, axis: Any = -1) -> Any:
    """Cross products of vectors side by side."""
    n, shape, d = x1.size, x1.shape, x1.dtype
    if axis.__class__ is not int or not shape or shape[-1] != 3 or d not in _CROSSED or not n:
        return None
    if (axis != -1 and axis != len(shape) - 1) or x2.shape != shape or x2.dtype is not d:
        return None
    if not (x1.flags.c_contiguous and x2.flags.c_contiguous) or not ready(n):
        return None
    y, rows = fresh(shape, d), n // 3
    crossed(x1, x2, y, rows, _ROWS_CROSSED, -(-rows // _ROWS_CROSSED))
    return y


def matrix_power(x: Any, n: Any) -> Any:
    """Product of n factors x, by squaring; of -n inverses where n is negative."""
    if n.__class__ is not int or x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        return None
    if x.dtype.num >= NATIVE or x.dtype.kind == "b":
        return None
    if n == 0:
        return np.eye(x.shape[-1], dtype=x.dtype) if x.ndim == 2 and x.size <= _SHORT else None
    if n < 0:
        x, n = matrices.inv(x), -n
    out = None
    while True:
        if n & 1:
            out = x if out is None else matmul(out, x)
        n >>= 1
        if not n:
            return out
        x = matmul(x, x)


def matrix_norm(x: Any, keepdims: bool = False, ord: Any = "fro") -> Any:
    """Root of the sum of squares, or an extreme sum of a row or a column."""
    if x.dtype not in _FLOATING or x.ndim < 2 or not x.size:
        return None
    if ord == "fro":
        if x.ndim == 2:
            return vector_norm(x, None, keepdims)
        if x.ndim > 2 and x.flags.c_contiguous:  # a matrix is a row
            y = vector_norm(x.reshape(*x.shape[:-2], -1), -1)
            return y.reshape(*y.shape, 1, 1) if keepdims and y is not None else y
        return _root(_sum_of_squares(x, (-2, -1), keepdims))
    if ord not in _SUMMED:
        return None
    along, extreme = _SUMMED[ord]
    return extreme(_add(np.abs(x), along, None, None, True), (-2, -1), None, None, keepdims)


def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    """Norm of vectors, or of one matrix."""
    if ord is None or (axis is None and x.ndim == 1):
        return vector_norm(x, axis, keepdims, 2 if ord is None else ord)
    return matrix_norm(x, keepdims, ord) if axis is None and x.ndim == 2 else None


def matrix_rank(x: Any, rtol: Any = None) -> Any:
    """Number of singular values above rounding."""
    if x.ndim != 2 or not x.size or (rtol is not None and rtol.__class__ is not float):
        return None
    s = matrices.svdvals(x)
    return np.asarray(np.count_nonzero(s > (_rounding(x) if rtol is None else rtol) * s[0]))


def cond(x: Any, p: Any = None) -> Any:
    """The largest singular value of a matrix by the smallest."""
    if x.ndim != 2 or not x.size or x.dtype.num not in (FLOATING - 1, FLOATING):
        return None
    if p is not None and (p.__class__ is not int or p != 2):
        return None
    s = matrices.svdvals(x)
    return s[0] / s[-1] if s[-1] != 0 else s.dtype.type(math.inf)


def _rounding(x: Any) -> float:
    return max(x.shape) * (2.0**-23 if x.dtype.char in "fF" else 2.0**-52)


def solve(a: Any, b: Any) -> Any:
    """a⁻¹ b for a vector b."""
    if b.ndim != 1 or a.ndim < 2:
        return None
    if (y := _solve_again.call(a, b)) is not None:
        return y
    return matrices.solve(a, b.reshape(-1, 1))[..., 0]


def solve_triangular(a: Any, b: Any, lower: bool = False) -> Any:
    """a⁻¹ b for a triangle of a and a vector b."""
    if b.ndim != 1 or a.ndim != 2:
        return None
    if a.flags.c_contiguous and (y := _triangle_again.call(a, b, bool(lower))) is not None:
        return y
    return matrices.solve_triangular(a, b.reshape(-1, 1), bool(lower)).reshape(-1)


def lstsq(a: Any, b: Any, rcond: Any = None) -> Any:
    """Least squares for one right side or several."""
    if rcond is not None or a.ndim != 2 or b.ndim not in (1, 2) or a.shape[0] != b.shape[0]:
        return None
    if a.dtype not in _FLOATING or b.dtype is not a.dtype or not a.size or not b.size:
        return None
    right = b if b.ndim == 2 else b.reshape(-1, 1)
    x, rank, s = matrices.lstsq(a, right, _rounding(a))
    if a.shape[0] > a.shape[1] == rank:
        residuals = _add(_squares(right - matmul(a, x)), 0)
    else:
        residuals = np.empty(0, _FLOATING[a.dtype])
    return x if b.ndim == 2 else x.reshape(-1), residuals, rank, s


def outer(x: Any, y: Any) -> Any:
    """Products of all pairs of elements of two vectors."""
    if x.ndim != 1 or y.ndim != 1 or x.dtype.num >= NATIVE or y.dtype.num >= NATIVE:
        return None
    if (z := as_outer(x, y)) is not None:
        return z
    return x[:, None] * y


def tensordot(x: Any, y: Any, axes: Any = 2) -> Any:
    """Product of two matrices, or sums of products over axes that are named."""
    if x.dtype is not y.dtype or x.dtype.num >= NATIVE:
        return None
    if axes.__class__ is int:
        known = axes == 1 and x.ndim == y.ndim == 2 and x.shape[1] == y.shape[0]
        return matmul(x, y) if known else None
    first, second = axes
    of_x, as_x, of_y, as_y, out = _folded(tuple(first), tuple(second), x.shape, y.shape)
    if of_x is not None:
        x = x.transpose(of_x)
    if as_x is not None:
        x = x.reshape(as_x)
    if of_y is not None:
        y = y.transpose(of_y)
    if as_y is not None:
        y = y.reshape(as_y)
    return matmul(x, y) if out is None else matmul(x, y).reshape(out)


@functools.lru_cache(512)
def _folded(first: Axes, second: Axes, xs: Axes, ys: Axes) -> tuple[Any, ...]:
    """Orders of axes and shapes by which x and y are matrices or vectors, and the result's shape;
    None for what is so already.

    Raises: ValueError, IndexError: axes that do not fit, or none.
    """
    pairs = sorted(
        [(range(len(xs))[i], range(len(ys))[j]) for i, j in zip(first, second, strict=True)]
    )
    inner = [xs[i] for i, _ in pairs]
    a, b = [i for i, _ in pairs], [j for _, j in pairs]
    if not pairs or inner != [ys[j] for j in b] or len({*a}) < len(a) or len({*b}) < len(b):
        raise ValueError("axes")
    left, right = ([k for k in range(len(s)) if k not in c] for s, c in ((xs, a), (ys, b)))
    rows, columns = (tuple([s[k] for k in kept]) for s, kept in ((xs, left), (ys, right)))
    n = math.prod(inner)
    as_x = (math.prod(rows), n) if left else (n,)
    as_y = (n, math.prod(columns)) if right else (n,)
    turned = [None if order == sorted(order) else order for order in (left + a, b + right)]
    flat = [None if len(s) == len(shape) else shape for s, shape in ((xs, as_x), (ys, as_y))]
    whole = len(left) < 2 and len(right) < 2
    return turned[0], flat[0], turned[1], flat[1], None if whole else rows + columns


def vecdot(x: Any, y: Any, axis: int) -> Any:
    """Sums of conj(x) y along an axis that is the same from both ends."""
    if x.dtype.num >= NATIVE or y.dtype.num >= NATIVE or (axis >= 0 and x.ndim != y.ndim):
        return None
    last = axis == -1 or axis == x.ndim - 1
    if last and x.ndim == 1 and x.size > MANY and x.shape == y.shape and x.dtype is y.dtype:
        return vdot(x, y)
    return _vecdot(x, y) if last else _vecdot(x, y, axis=axis)


def einsum(x: Any, subscripts: str) -> Any:
    """Einstein sum of one operand, unless its labels are of a rare form."""
    plan = _plan(subscripts, x.ndim)
    if plan is None or x.dtype.num >= NATIVE:
        return None
    diagonal, summed, order = plan
    if diagonal:
        if x.shape[0] != x.shape[1]:
            return None
        if summed and (y := TRACES.call(x, 0)) is not None:
            return y
        x = x.diagonal()
    if summed:
        x = statistical.sum(x, summed)
        if x is None:
            return None
    return x if order is None else x.transpose(order)


@functools.lru_cache(512)
def _plan(subscripts: str, rank: int) -> Any:
    """Whether x's diagonal is taken first, axes to sum over, and the order of what is left, None if
    that is its own.

    None where a label is more than a letter, or stands twice elsewhere than in "ii".
    """
    labels, arrow, out = subscripts.replace(" ", "").partition("->")
    if not arrow:
        out = "".join(sorted(c for c in labels if labels.count(c) == 1))
    letters = labels + out
    if len(labels) != rank or (letters and not letters.isalpha()):
        return None
    if not labels.isascii() or len(set(out)) < len(out) or not set(out) <= set(labels):
        return None
    diagonal = rank == 2 and labels[0] == labels[1]
    if diagonal:
        labels = labels[:1]
    if len(set(labels)) < len(labels):
        return None
    left = [c for c in labels if c in out]
    summed = tuple([k for k, c in enumerate(labels) if c not in out])
    order = [left.index(c) for c in out]
    return diagonal, summed, order if order != sorted(order) else None
