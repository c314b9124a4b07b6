"""Parts, products and functions of matrices: diagonal, trace, cross, powers."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from funct import ops
from funct.array.axes import integers, normal_axis
from funct.array.conversion import as_tensors, check_allocation, promoted
from funct.array.creation import asarray, eye, zeros
from funct.array.direct import direct
from funct.array.dtypes import result_type
from funct.array.elementwise import conjugate
from funct.array.joining import concat, pad
from funct.array.products import matmul
from funct.array.statistical import sum as sum_
from funct.core import is_one
from funct.errors import ArgumentError, ShapeError
from funct.kernels import composed
from funct.kernels.linalg import functions as kernels
from funct.kernels.linalg.chains import chain_product
from funct.ops.fast import wrap

__all__ = [
    "block_diag", "cross", "diag", "diagonal", "matrix_power", "multi_dot", "toeplitz", "trace",
]  # fmt: skip


def _check_rank(name: str, x: Any) -> None:
    if len(x.shape) < 2:
        raise ShapeError(f"{name}: x must have rank >= 2, got shape {x.shape}")


@direct(kernels.diagonal)
def diagonal(x: Any, /, *, offset: int = 0) -> Any:
    """The elements x[..., i, i + offset]; (..., k) in x's dtype, k = 0 where there are none.

    Example:
        >>> import funct.array as xp
        >>> xp.linalg.diagonal(xp.reshape(xp.arange(6), (2, 3)), offset=1).tolist()
        [1, 5]

    Source: Array API 2025.12 `diagonal`.
    """
    _check_rank("diagonal", x)
    *lead, m, n = x.shape
    m, n, offset = int(m), int(n), operator.index(offset)
    start = offset if offset >= 0 else -offset * n
    count = max(0, min(m, n - offset) if offset >= 0 else min(m + offset, n))
    flat = ops.reshape(x, (*lead, m * n))
    ends = (start, start + (count - 1) * (n + 1) + 1, n + 1) if count else (0, 0, 1)
    return ops.slice_(flat, (*((None, None, 1),) * len(lead), ends))


@direct(kernels.diag)
def diag(x: Any, /, k: int = 0) -> Any:
    """The matrix with x on its k-th diagonal, else zeros; of a matrix, its k-th diagonal.

    Raises: ShapeError: when x is neither a vector nor a matrix.
    Example:
        >>> import funct.array as xp
        >>> xp.diag(xp.asarray([1, 2]), k=1).tolist()
        [[0, 1, 0], [0, 0, 2], [0, 0, 0]]

    Source: NumPy `diag`.
    """
    x = asarray(x)
    (k,) = integers("diag", "k", (k,))
    if len(x.shape) == 2:
        return diagonal(x, offset=k)
    if len(x.shape) != 1:
        raise ShapeError(f"diag: x must have rank 1 or 2, got shape {x.shape}")
    n = int(x.shape[0])
    m = n + abs(k)
    check_allocation("diag", (m, m), x.dtype)
    start = k if k >= 0 else -k * m
    flat = wrap(np.zeros(m * m, x.dtype)).at[start : start + n * (m + 1) : m + 1].set(x)
    return ops.reshape(flat, (m, m))


def block_diag(*arrays: Any) -> Any:
    """The matrix with the arrays on its diagonal, else zeros; a vector is a matrix of one row.

    Raises: ShapeError: an array has more than two axes.
    Example:
        >>> import funct.array as xp
        >>> xp.linalg.block_diag(xp.asarray([[1, 2]]), xp.asarray(3)).tolist()
        [[1, 2, 0], [0, 0, 3]]

    Source: SciPy `scipy.linalg.block_diag`.
    """
    blocks = [asarray(a) for a in arrays] or [ops.reshape(zeros(0), (1, 0))]
    if any(len(b.shape) > 2 for b in blocks):
        raise ShapeError(
            f"block_diag: arrays must have rank <= 2, got shapes {[b.shape for b in blocks]}"
        )
    blocks = [ops.reshape(b, (*(1, 1)[len(b.shape) :], *b.shape)) for b in promoted(blocks)]
    widths, before, rows = [int(b.shape[1]) for b in blocks], 0, []
    for b, width in zip(blocks, widths, strict=True):
        rows.append(pad(b, ((0, 0), (before, sum(widths) - before - width))))
        before += width
    return concat(rows)


def toeplitz(c: Any, r: Any = None) -> Any:
    """The matrix with c as its first column and r as its first row, and constant diagonals.

    r[0] is not read; None stands for conj(c).
    Raises: ShapeError: when c and r are not 1-D.
    Example:
        >>> import funct.array as xp
        >>> xp.linalg.toeplitz(xp.asarray([1, 2]), xp.asarray([0, 5, 6])).tolist()
        [[1, 5, 6], [2, 1, 5]]

    Source: SciPy `scipy.linalg.toeplitz`.
    """
    c = asarray(c)
    r = conjugate(c) if r is None else asarray(r)
    if len(c.shape) != 1 or len(r.shape) != 1:
        raise ShapeError(f"toeplitz: c and r must have rank 1, got {c.shape} and {r.shape}")
    m, n = int(c.shape[0]), int(r.shape[0])
    if not m * n:
        return zeros((m, n), dtype=result_type(c, r))
    diagonals = concat([ops.flip(c, (0,)), r[1:]])
    at = np.arange(m - 1, -1, -1)[:, None] + np.arange(n)
    return ops.take(diagonals, wrap(at), 0)


@direct(composed.multi_dot, arrays="sequence")
def multi_dot(arrays: Any, /) -> Any:
    """Product of a chain of matrices, multiplied in the order that costs least.

    The first and the last may be vectors.
    Raises: ShapeError: fewer than two arrays, or shapes that do not fit.
    Example:
        >>> import funct.array as xp
        >>> xp.linalg.multi_dot([xp.ones((2, 3)), xp.ones((3, 1)), xp.ones(1)]).tolist()
        [3.0, 3.0]

    Source: NumPy `numpy.linalg.multi_dot`; Cormen and others, Introduction to Algorithms, 15.2.
    """
    chain = as_tensors("multi_dot", arrays)
    last = len(chain) - 1
    ranks = [len(a.shape) for a in chain]
    if last < 1 or any(rank != 2 for rank in ranks[1:-1]) or {ranks[0], ranks[-1]} - {1, 2}:
        raise ShapeError(
            "multi_dot: arrays must be two or more matrices, the first and the last may be "
            f"vectors, got shapes {[a.shape for a in chain]}"
        )
    sizes = [1 if ranks[0] == 1 else int(chain[0].shape[0])]
    sizes += [int(a.shape[0]) for a in chain[1:]]
    sizes.append(1 if ranks[-1] == 1 else int(chain[-1].shape[1]))

    return chain_product(chain, tuple(sizes), matmul)


@direct(kernels.trace)
def trace(x: Any, /, *, offset: int = 0, dtype: Any = None) -> Any:
    """Sum of the diagonal; small integers widen to the default integer, as in `sum`.

    Example:
        >>> import funct.array as xp
        >>> int(xp.linalg.trace(xp.eye(3, dtype=xp.int8)))
        3

    Source: Array API 2025.12 `trace`.
    """
    _check_rank("trace", x)
    return sum_(diagonal(x, offset=offset), axis=-1, dtype=dtype)


@direct(kernels.cross, arrays=2)
def cross(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    """Cross product of 3-vectors along axis, counted in both from the end; other axes broadcast.

    Raises: ShapeError: axis has not length 3, or the other axes do not broadcast.
    Example:
        >>> import funct.array as xp
        >>> xp.linalg.cross(xp.asarray([1, 0, 0]), xp.asarray([0, 1, 0])).tolist()
        [0, 0, 1]

    Source: Array API 2025.12 `cross`.
    """
    rank = min(len(x1.shape), len(x2.shape))
    back = normal_axis("cross", axis, rank) - rank
    if not rank or any(is_one(x.shape[back]) or x.shape[back] != 3 for x in (x1, x2)):
        raise ShapeError(
            f"cross: axis {axis} must have length 3, got x1 {x1.shape} and x2 {x2.shape}"
        )
    ahead, behind = asarray(np.asarray([1, 2, 0])), asarray(np.asarray([2, 0, 1]))

    def turned(x: Any, at: Any) -> Any:
        return ops.take(x, at, len(x.shape) + back)

    return turned(x1, ahead) * turned(x2, behind) - turned(x1, behind) * turned(x2, ahead)


@direct(kernels.matrix_power)
def matrix_power(x: Any, n: int, /) -> Any:
    """x multiplied n times; the inverse multiplied -n times for n < 0; the identity for n = 0.

    Raises: ShapeError: x is not square. ArgumentError: n is no int. LinAlgError: n < 0 and x is
    singular.
    Example:
        >>> import funct.array as xp
        >>> xp.linalg.matrix_power(xp.asarray([[1.0, 1.0], [0.0, 1.0]]), 5).tolist()
        [[1.0, 5.0], [0.0, 1.0]]

    Source: Array API 2025.12 `matrix_power`; squarings and products of a binary power.
    """
    try:
        n = operator.index(n)
    except TypeError:
        raise ArgumentError(f"matrix_power: n must be an int, got {n!r}") from None
    _check_rank("matrix_power", x)
    if x.shape[-1] != x.shape[-2]:
        raise ShapeError(f"matrix_power: x must be square, got shape {x.shape}")
    if n == 0:
        return ops.broadcast_to(eye(x.shape[-1], dtype=x.dtype), x.shape)
    square = ops.inv(x) if n < 0 else x
    n, out = abs(n), None
    while n:
        if n & 1:
            out = square if out is None else ops.matmul(out, square)
        n >>= 1
        if n:
            square = ops.matmul(square, square)
    return out
