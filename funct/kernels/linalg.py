"""Functions of one matrix, or of a vector, that take more than one primitive.

Each gives what the function of its name in `funct.array.linalg` composes, or None.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from funct.kernels.dtypes import NATIVE
from funct.kernels import matrices
from funct.kernels.products import matmul

__all__ = [
    "diag", "diagonal", "lstsq", "matrix_norm", "matrix_power", "matrix_rank", "outer", "solve",
    "solve_triangular", "tensordot", "trace", "vector_norm",
]  # fmt: skip

_add: Any = np.add.reduce
_DOUBLE = np.dtype(np.float64)
_REAL = frozenset({np.dtype(np.float32), _DOUBLE})
_SHORT = 1024  # elements up to which nobody asks whether the result fits into memory


def diag(x: Any, k: int = 0) -> Any:
    """The matrix with a short x on its diagonal, or the diagonal of one."""
    if k.__class__ is not int or k != 0 or x.ndim not in (1, 2) or x.size > _SHORT:
        return None
    if x.ndim == 2:
        return x.diagonal()
    n = x.shape[0]
    out = np.zeros(n * n, x.dtype)
    out[:: n + 1] = x
    return out.reshape(n, n)


def diagonal(x: Any, offset: int = 0) -> Any:
    """The elements x[..., i, i]."""
    return x.diagonal(0, -2, -1) if offset.__class__ is int and offset == 0 else None


def trace(x: Any, offset: int = 0, dtype: Any = None) -> Any:
    """Sum of the diagonal."""
    if offset.__class__ is not int or offset != 0 or dtype is not None or x.dtype.num >= NATIVE:
        return None
    return _add(x.diagonal(0, -2, -1), -1)


def vector_norm(x: Any, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Any:
    """Norm of a positive, finite order over axis."""
    if x.dtype not in _REAL or not x.size or not x.ndim:
        return None
    if ord == 2:
        return np.sqrt(_add(np.square(x), axis, None, None, keepdims))
    if x.dtype is not _DOUBLE:
        return None
    if ord.__class__ is not int or ord < 3:
        return None
    return np.power(_add(np.power(np.abs(x), float(ord)), axis, None, None, keepdims), 1.0 / ord)


def matrix_power(x: Any, n: Any) -> Any:
    """Product of n factors x, by squaring."""
    if n.__class__ is not int or n < 1 or x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        return None
    if x.dtype is not _DOUBLE:
        return None
    out = None
    while True:
        if n & 1:
            out = x if out is None else matmul(out, x)
        n >>= 1
        if not n:
            return out
        x = matmul(x, x)


def matrix_norm(x: Any, keepdims: bool = False, ord: Any = "fro") -> Any:
    """Root of the sum of squares."""
    if ord != "fro" or x.dtype is not _DOUBLE or x.ndim < 2 or not x.size:
        return None
    return np.sqrt(_add(np.square(x), (-2, -1), None, None, keepdims))


def matrix_rank(x: Any, rtol: Any = None) -> Any:
    """Number of singular values above rounding."""
    if x.ndim != 2 or rtol is not None or x.dtype is not _DOUBLE:
        return None
    s = np.linalg.svd(x, compute_uv=False)
    return np.asarray(np.count_nonzero(s > _rounding(x) * s[0]))


def _rounding(x: Any) -> float:
    return max(x.shape) * 2.0**-52


def solve(a: Any, b: Any) -> Any:
    """a⁻¹ b for a vector b."""
    return matrices.solve(a, b.reshape(-1, 1)).reshape(-1) if b.ndim == 1 and a.ndim == 2 else None


def solve_triangular(a: Any, b: Any, lower: bool = False) -> Any:
    """a⁻¹ b for a triangle of a and a vector b."""
    if b.ndim != 1 or a.ndim != 2:
        return None
    return matrices.triangular_solve(a, b.reshape(-1, 1), bool(lower)).reshape(-1)


def lstsq(a: Any, b: Any, rcond: Any = None) -> Any:
    """Least squares for one right side and no more rows than columns."""
    if rcond is not None or a.ndim != 2 or b.ndim != 1 or a.shape[0] != b.shape[0]:
        return None
    if a.dtype is not _DOUBLE or b.dtype is not _DOUBLE or a.shape[0] > a.shape[1] or not a.size:
        return None
    x, rank, s = matrices.lstsq(a, b.reshape(-1, 1), _rounding(a))
    return x.reshape(-1), np.empty(0), rank, s


def outer(x: Any, y: Any) -> Any:
    """Products of all pairs of elements of two vectors."""
    if x.ndim != 1 or y.ndim != 1 or x.dtype.num >= NATIVE or y.dtype.num >= NATIVE:
        return None
    return x[:, None] * y


def tensordot(x: Any, y: Any, axes: Any = 2) -> Any:
    """Product of two matrices."""
    if axes.__class__ is not int or axes != 1 or x.ndim != 2 or y.ndim != 2:
        return None
    return np.matmul(x, y) if x.dtype is _DOUBLE and y.dtype is _DOUBLE else None
