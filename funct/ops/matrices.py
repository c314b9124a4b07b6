"""What the rooms of linear algebra share: adjoint, triangles, gaps between eigenvalues, checks.

Note [Degenerate spectra]: eigenvectors turn at the rate 1 / (w_j - w_i). Where two eigenvalues or
singular values agree up to rounding, the vectors are not determined by the matrix and have no
derivative; the rate is 0 there, and so is 1 / s for a singular value that is 0 up to rounding.
Hence every derivative is finite. It is exact for functions that do not depend on the choice of
vectors and whose derivative needs no turn between them: sums over the spectrum, the polar factor
U Vh of a regular matrix. The second derivative of a sum over the spectrum lacks the part that
couples the equal eigenvalues. Why there is no better number: docs/decisions/0013.

Note [Gauge]: complex vectors have a free phase. Kernels turn the largest component of each real and
positive (what LAPACK leaves it at depends on the shape), and the rules follow that choice, so that
every function of the vectors has the derivative that differences show. Real vectors keep LAPACK's
sign, which no derivative sees.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from funct import ops
from funct.core import Absent, Primitive, ShapeDtype, Value
from funct.errors import DTypeError, ShapeError
from funct.ops.broadcasting import broadcast_shapes, pad_rank
from funct.ops.fast import wrap

__all__ = [
    "NO_OPERATOR", "adjoint", "batch_first", "batch_pair", "check_lengths", "check_matrix",
    "check_square", "column", "columns", "completed", "completed_pull", "diagonal", "hermitian",
    "inverse_gaps", "lower", "phase_kept", "phase_pull", "real_dtype", "rounding", "row",
    "safe_inverse", "turned", "upper",
]  # fmt: skip

Args = Sequence[Any]
Flags = Sequence[bool]
Params = tuple[Any, ...]

NO_OPERATOR = Absent("ONNX has no operator that solves or decomposes")


def adjoint(x: Value) -> Any:
    """Conjugate transpose of the last two axes."""
    y = ops.swap_last(x)
    return ops.conj(y) if x.dtype.kind == "c" else y


def hermitian(x: Value) -> Any:
    """Hermitian part."""
    return 0.5 * (x + adjoint(x))


@functools.lru_cache(16)
def _kept(rows: int, columns: int, k: int) -> Any:
    """Where a matrix is on or below its k-th diagonal."""
    kept = np.tri(rows, columns, k, bool)
    kept.setflags(write=False)
    return kept


def lower(x: Value, k: int = 0) -> Any:
    """x on and below its k-th diagonal, 0 above."""
    return ops.where(wrap(_kept(int(x.shape[-2]), int(x.shape[-1]), k)), x, 0.0)


def upper(x: Value) -> Any:
    """x on and above its diagonal, 0 below."""
    return ops.where(wrap(_kept(int(x.shape[-2]), int(x.shape[-1]), -1)), 0.0, x)


def diagonal(x: Value) -> Any:
    """The diagonal of a square matrix; (..., n)."""
    n = int(x.shape[-1])
    lead = x.shape[:-2]
    flat = ops.reshape(x, (*lead, n * n))
    return ops.slice_(flat, (*((None, None, 1),) * len(lead), (None, None, n + 1)))


def columns(x: Value, start: int | None, stop: int | None) -> Any:
    """x[..., start:stop]."""
    return ops.slice_(x, (*((None, None, 1),) * (len(x.shape) - 1), (start, stop, 1)))


def row(w: Value) -> Any:
    """(..., n) as (..., 1, n)."""
    return ops.reshape(w, (*w.shape[:-1], 1, w.shape[-1]))


def column(w: Value) -> Any:
    """(..., n) as (..., n, 1)."""
    return ops.reshape(w, (*w.shape, 1))


def safe_inverse(d: Value, size: Value) -> Any:
    """1 / d, but 0 where |d| <= size: Note [Degenerate spectra]."""
    tiny = ops.less_equal(ops.abs(ops.stop_gradient(d)), size)  # |d| has a kink at 0
    return ops.where(tiny, 0.0, 1.0 / ops.where(tiny, 1.0, d))


def rounding(w: Value, n: Any) -> Any:
    """How far rounding moves eigenvalues: n · eps · the largest of |w|; (..., 1)."""
    top = ops.reduce_max(ops.abs(ops.stop_gradient(w)), (len(w.shape) - 1,), True)
    return float(n * np.finfo(w.dtype).eps) * top


def inverse_gaps(w: Value, n: Any) -> Any:
    """1 / (w_j - w_i), 0 where the two agree; (..., i, j)."""
    return safe_inverse(row(w) - column(w), column(rounding(w, n)))


def phase_kept(v: Value, t: Value) -> Any:
    """How much each vector's tangent t turns its largest component; (..., 1, n), real.

    t - 1j · v · phase_kept is the tangent in the kernels' choice: Note [Gauge].
    """
    axis = len(v.shape) - 2
    at = ops.argmax(ops.real(v), axis, True)
    top, moved = (ops.take_along_axis(x, at, axis) for x in (v, t))
    return ops.imag(moved) / ops.real(top)


def phase_pull(v: Value, g: Value, along: Value | None = None) -> Any:
    """Transpose of `turned` in t. along: what else turns with v, as conj(vectors) · cotangents."""
    axis = len(v.shape) - 2
    at = ops.argmax(ops.real(v), axis, True)
    turn = ops.imag(ops.conj(v) * g)
    total = ops.reduce_sum(turn, (axis,), True)
    if along is not None:
        total = total + ops.reduce_sum(ops.imag(along), (axis,), True)
    top = total / ops.real(ops.take_along_axis(v, at, axis))
    return g - 1j * ops.put_along_axis(top, at, axis, v.shape[axis])


def turned(v: Value, t: Value) -> Any:
    """The tangent of complex vectors v in the kernels' choice of phase: Note [Gauge]."""
    if v.dtype.kind != "c" or 0 in v.shape:
        return t
    return t - v * (1j * phase_kept(v, t))


def completed(q: Value, t: Value) -> Any:
    """The tangent of all columns of a unitary q from that of its first ones.

    The others turn only as far as the first ones make them.
    """
    k, n = int(t.shape[-1]), int(q.shape[-1])
    if k == n:
        return t
    rest = columns(q, k, n)
    moved = -ops.matmul(columns(q, 0, k), ops.matmul(adjoint(t), rest))
    return ops.concat(t, turned(rest, moved), len(q.shape) - 1)


def completed_pull(q: Value, g: Value, k: int) -> Any:
    """Transpose of `completed`: the cotangent of the first k columns from that of all of them."""
    first = columns(g, 0, k)
    if k == int(q.shape[-1]):
        return first
    rest, last = columns(q, k, None), columns(g, k, None)
    last = phase_pull(rest, last) if q.dtype.kind == "c" else last
    return first - ops.matmul(rest, ops.matmul(adjoint(last), columns(q, 0, k)))


def real_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype of |x|."""
    return np.empty(0, dtype).real.dtype


def check_matrix(name: str, operand: str, x: Any) -> None:
    """Raise unless x is a stack of matrices of a dtype that LAPACK knows."""
    if not hasattr(x, "shape"):
        raise DTypeError(f"{name}: {operand} must be a Tensor, got a Python number")
    if x.dtype.char not in "fdFD":
        raise DTypeError(
            f"{name}: {operand} must be floating in single or double precision, got {x.dtype}",
            fix="astype(x, float64)",
        )
    if len(x.shape) < 2:
        raise ShapeError(f"{name}: {operand} must have rank >= 2, got shape {x.shape}")


def check_square(name: str, operand: str, x: Any) -> None:
    """Raise unless x is a stack of square matrices."""
    check_matrix(name, operand, x)
    if x.shape[-1] != x.shape[-2]:
        raise ShapeError(f"{name}: {operand} must be square, got shape {x.shape}")


def check_lengths(name: str, operands: tuple[str, str], a: Any, b: Any) -> ShapeDtype:
    """The type of a⁻¹ b, or the error that says why there is none."""
    left, right = operands
    check_square(name, left, a)
    check_matrix(name, right, b)
    got = f"got {left} {a.shape} and {right} {b.shape}"
    if a.shape[-1] != b.shape[-2]:
        raise ShapeError(
            f"{name}: {left} and {right} must have as many rows, {got}: "
            f"{a.shape[-1]} != {b.shape[-2]}"
        )
    try:
        lead = broadcast_shapes(a.shape[:-2], b.shape[:-2])
    except ValueError as error:
        raise ShapeError(
            f"{name}: leading shapes must broadcast, {got}: {error}"
        ) from None
    return ShapeDtype((*lead, *b.shape[-2:]), np.result_type(a.dtype, b.dtype))


def batch_first(prim: Primitive, args: Args, batched: Flags, params: Params) -> Any:
    """Batching of an op on one stack of matrices: the batch is one more leading axis."""
    return prim.fn(*args, *params)


def batch_pair(prim: Primitive, args: Args, batched: Flags, params: Params) -> Any:
    """Batching of an op on two stacks whose leading axes broadcast."""
    ranks = [len(a.shape) - b for a, b in zip(args, batched, strict=True)]
    a, b = (pad_rank(x, max(ranks)) if f else x for x, f in zip(args, batched, strict=True))
    return prim.fn(a, b, *params)
