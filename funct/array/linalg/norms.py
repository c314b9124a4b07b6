"""Norms and the rank. Where a norm has no derivative, 0 stands for it: at 0 it is a subgradient."""

from __future__ import annotations

from typing import Any

import numpy as np

from funct import ops
from funct.array.axes import normal_axes
from funct.array.conversion import as_tensor
from funct.array.creation import zeros
from funct.array.direct import direct
from funct.array.manipulation import expand_dims, moveaxis
from funct.array.powers import ground, power, without_zeros
from funct.core import INEXACT, Shape
from funct.errors import ArgumentError, DTypeError, ShapeError
from funct.kernels.linalg import functions as kernels
from funct.ops.least_squares import default_rtol
from funct.ops.matrices import check_matrix, column, real_dtype

__all__ = ["cond", "matrix_norm", "matrix_rank", "norm", "vector_norm"]


@direct(kernels.vector_norm)
def vector_norm(x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Any:
    """(Σ |x|^ord)^(1/ord) over axis.

    Args: x: floating. axis: int, tuple of ints, or None for all. ord: any real number; inf and -inf
    give the largest and the smallest |x|, 0 the number of elements that are not 0.
    Returns: real, of x's precision. Over no elements: 0, or inf for a negative ord.
    Raises: DTypeError: x is not floating. ArgumentError: ord is no number.
    Notes: the derivative is 0 where the norm is 0, and in every element that is 0; beside infinite
    elements it is 0 in finite ones and the sign in infinite ones. With ord=2 squares may overflow
    and underflow, but in compiled programs: there, and with other powers, the norm is infinite, or
    0, where their sum is, as NumPy's, and has the derivative 0.
    Example:
        >>> import funct.array as xp
        >>> float(xp.linalg.vector_norm(xp.asarray([3.0, 4.0])))
        5.0

    Source: Array API 2025.12 `vector_norm`.
    """
    if x.dtype not in INEXACT:
        raise DTypeError(f"vector_norm: x must be floating, got {x.dtype}")
    if not isinstance(ord, int | float):
        raise ArgumentError(f"vector_norm: ord must be a number, got {ord!r}")
    return _norm(x, normal_axes("vector_norm", axis, len(x.shape)), keepdims, float(ord))


def _nonzero_abs(x: Any) -> Any:
    """|x|, with every derivative 0 where x is 0."""
    if x.dtype.kind != "c" or without_zeros(x):
        return ops.abs(x)
    zero = ops.equal(x, 0)
    return ops.where(zero, 0.0, ops.abs(ops.where(zero, 1.0, x)))


def _empty(x: Any, axes: Shape, keepdims: bool, ord: Any) -> Any:
    """The norm of no elements."""
    kept = [1 if i in axes else n for i, n in enumerate(x.shape) if keepdims or i not in axes]
    negative = not isinstance(ord, str) and ord < 0
    return zeros(tuple(kept), dtype=real_dtype(x.dtype)) + (np.inf if negative else 0.0)


def _norm(x: Any, axes: Shape, keepdims: bool, ord: float) -> Any:
    if any(x.shape[i] == 0 for i in axes):
        return _empty(x, axes, keepdims, ord)
    if ord == 2:
        return _length(x, axes, keepdims)
    if ord == 0:
        counted = ops.astype(ops.not_equal(x, 0), real_dtype(x.dtype))
        return ops.reduce_sum(counted, axes, keepdims)
    size = _nonzero_abs(x)
    if ord == np.inf:
        return ops.reduce_max(size, axes, keepdims)
    if ord == -np.inf:
        return ops.reduce_min(size, axes, keepdims)
    if ord == 1:
        return ops.reduce_sum(size, axes, keepdims)
    norm = power(ops.reduce_sum(power(size, ord), axes, keepdims), 1.0 / ord)
    if ord > 0:
        return norm
    nothing = ops.any(ops.equal(size, 0), axes, keepdims)  # 0**ord is infinite
    return ops.where(nothing, 0.0, norm)


# The least sum of squares that has all its digits, and factors for smaller and for larger numbers.
_SCALES = {
    np.dtype(np.float32): (kernels.LEAST_SQUARES["f"], 2.0**86, 2.0**-75),
    np.dtype(np.float64): (kernels.LEAST_SQUARES["d"], 2.0**600, 2.0**-600),
}


def _length(x: Any, axes: Shape, keepdims: bool) -> Any:
    """Root of the sum of squares, which are scaled where they overflow or underflow.

    Powers of 2 scale without rounding: other norms have the bits of the plain formula. In a graph
    it is the plain formula: three sums for one take four times as long.
    """
    if x.dtype.itemsize <= 2:
        wide = ops.astype(x, np.dtype(np.float32))
        return ops.astype(_length(wide, axes, keepdims), x.dtype)
    total = _sum_of_squares(x, axes, keepdims)
    known = ground(total)
    if known is None:
        return power(total, 0.5)
    if kernels.keeps_digits(known):  # so that none is 0
        return ops.sqrt(total)
    least, up, down = _SCALES[total.dtype]
    with np.errstate(all="ignore"):  # what overflows here is not what is taken
        small, large = [_sum_of_squares(x * scale, axes, keepdims) for scale in (up, down)]
    under, over = ops.less(total, least), ops.isinf(total)
    plain = ops.where(ops.logical_or(under, over), 0.0, total)
    root = power(plain, 0.5)
    root = ops.where(under, power(ops.where(under, small, 0.0), 0.5) / up, root)
    root = ops.where(over, power(ops.where(over, large, 0.0), 0.5) / down, root)
    far = ops.reduce_sum(ops.where(ops.isinf(x), ops.abs(x), 0.0), axes, keepdims)
    return ops.where(ops.isinf(large), far, root)


def _sum_of_squares(x: Any, axes: Shape, keepdims: bool) -> Any:
    if x.dtype.kind != "c":
        return ops.reduce_sum(ops.square(x), axes, keepdims)
    squares = ops.square(ops.real(x)) + ops.square(ops.imag(x))
    return ops.reduce_sum(squares, axes, keepdims)


_EXTREME = {1: (0, True), -1: (0, False), np.inf: (1, True), -np.inf: (1, False)}


@direct(kernels.matrix_norm)
def matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Any:
    """Norm of each matrix.

    Args: x: Shape (..., m, n), floating. ord: "fro" (root of the sum of squares), "nuc" (sum of
    singular values), 2 and -2 (largest, smallest singular value), 1 and -1 (largest, smallest sum
    of |x| down a column), inf and -inf (along a row).
    Returns: real, of x's precision; (...), or (..., 1, 1) with keepdims. Of an empty matrix: 0, or
    inf for a negative ord.
    Raises: ShapeError, DTypeError: x is no floating matrix. ArgumentError: another ord.
    Notes: the derivative is 0 in every singular value and every element that is 0.
    Example:
        >>> import funct.array as xp
        >>> float(xp.linalg.matrix_norm(xp.asarray([[1.0, -2.0], [3.0, 4.0]]), ord=1))
        6.0

    Source: Array API 2025.12 `matrix_norm`.
    """
    check_matrix("matrix_norm", "x", x)
    rank = len(x.shape)
    both = (rank - 2, rank - 1)
    if ord not in ("fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf):
        raise ArgumentError(
            f"matrix_norm: ord must be 'fro', 'nuc', 1, -1, 2, -2, inf or -inf, got {ord!r}"
        )
    if ord == "fro":
        return _norm(x, both, keepdims, 2.0)
    if 0 in x.shape[-2:]:
        return _empty(x, both, keepdims, ord)
    if ord in _EXTREME:
        along, largest = _EXTREME[ord]
        sums = ops.reduce_sum(_nonzero_abs(x), (both[along],), True)
        return (ops.reduce_max if largest else ops.reduce_min)(sums, both, keepdims)
    s = ops.svdvals(x)
    s = ops.where(ops.equal(s, 0), 0.0, s)
    reduce = {"nuc": ops.reduce_sum, 2: ops.reduce_max, -2: ops.reduce_min}[ord]
    norm = reduce(s, (rank - 2,), keepdims)
    return column(norm) if keepdims else norm


@direct(kernels.norm)
def norm(x: Any, /, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    """Norm of vectors, or of matrices, as NumPy tells them apart.

    One axis means vectors, two mean matrices; None means all axes of a vector or a matrix, and with
    ord=None the root of the sum of squares of whatever x is.
    Args: ord: as in `vector_norm` and `matrix_norm`; None stands for 2 and for "fro".
    Raises: ArgumentError: for axes that are neither one nor two. DTypeError: x is not floating.
    Example:
        >>> import funct.array as xp
        >>> float(xp.linalg.norm(xp.asarray([3.0, 4.0])))
        5.0

    Source: NumPy `numpy.linalg.norm`.
    """
    x = as_tensor("norm", x)
    if ord is None:
        return vector_norm(x, axis=axis, keepdims=keepdims)
    at = tuple(axis) if isinstance(axis, tuple | list) else (axis,)
    if axis is None:
        at = tuple(range(len(x.shape)))
    if len(at) == 1:
        return vector_norm(x, axis=at, keepdims=keepdims, ord=ord)
    if len(at) != 2:
        raise ArgumentError(f"norm: axis must name one axis or two, got {axis!r} of {x.shape}")
    rank = len(x.shape)
    size = matrix_norm(x if at == (rank - 2, rank - 1) else moveaxis(x, at, (-2, -1)), ord=ord)
    if not keepdims:
        return size
    for k in normal_axes("norm", at, len(x.shape)):
        size = expand_dims(size, k)
    return size


@direct(kernels.cond)
def cond(x: Any, /, p: Any = None) -> Any:
    """Condition number of each matrix: the norm of x times that of its inverse.

    Args: x: Shape (..., m, n), square unless p is None, 2 or -2. p: the norm, as in `matrix_norm`;
    None and 2 take the ratio of the largest singular value to the smallest.
    Returns: real, (...); inf for a singular x with p None or 2.
    Raises: LinAlgError: x is singular, with another p.
    Example:
        >>> import funct.array as xp
        >>> float(xp.linalg.cond(xp.asarray([[4.0, 0.0], [0.0, 0.5]])))
        8.0

    Source: NumPy `numpy.linalg.cond`.
    """
    x = as_tensor("cond", x)
    check_matrix("cond", "x", x)
    if 0 in x.shape[-2:]:
        raise ShapeError(f"cond: matrices must not be empty, got shape {x.shape}")
    if p not in (None, 2, -2):
        return matrix_norm(x, ord=p) * matrix_norm(ops.inv(x), ord=p)
    s = ops.svdvals(x)
    largest, smallest = s[..., 0], s[..., -1]
    if p == -2:
        return smallest / largest
    ratio = largest / ops.where(ops.equal(smallest, 0), 1.0, smallest)
    return ops.where(ops.equal(smallest, 0), np.inf, ratio)


@direct(kernels.matrix_rank)
def matrix_rank(x: Any, /, *, rtol: Any = None) -> Any:
    """Number of singular values above rtol times the largest one.

    Args: x: Shape (..., m, n), floating. rtol: number or array that fits the stack; default
    max(m, n) times the machine epsilon.
    Returns: int64, (...).
    Example:
        >>> import funct.array as xp
        >>> int(xp.linalg.matrix_rank(xp.ones((3, 3))))
        1

    Source: Array API 2025.12 `matrix_rank`.
    """
    s = ops.svdvals(x)
    rank = len(x.shape)
    if 0 in x.shape[-2:]:
        return zeros(x.shape[:-2], dtype=np.int64)
    rtol = default_rtol(x) if rtol is None else rtol
    rtol = column(rtol) if hasattr(rtol, "shape") and rtol.shape else rtol
    above = ops.greater(s, rtol * ops.reduce_max(s, (rank - 2,), True))
    return ops.reduce_sum(ops.astype(above, np.dtype(np.int64)), (len(above.shape) - 1,), False)
