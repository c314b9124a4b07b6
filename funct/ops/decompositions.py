"""Chapter: decompositions of stacks of matrices. Rules state the push; the pull is its transpose.

Sources: Giles, Collected matrix derivative results (2008); Walter and Lehmann, Algorithmic
differentiation of linear algebra functions (2012); Townsend, Differentiating the singular value
decomposition (2016). Conventions where a derivative does not exist: Note [Degenerate spectra] and
Note [Gauge] in funct/ops/matrices.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from funct import ops
from funct.core import Derived, Pair, Sample, ShapeDtype, Value
from funct.kernels import matrices as kernels
from funct.ops.families import structural
from funct.ops.matrices import (
    Args,
    Params,
    adjoint,
    batch_first,
    check_matrix,
    check_square,
    column,
    columns,
    diagonal,
    hermitian,
    inverse_gaps,
    lower,
    phase_kept,
    real_dtype,
    rounding,
    row,
    safe_inverse,
    upper,
)
from funct.ops.samples import calls
from funct.ops.solving import NO_OPERATOR, regular

__all__ = [
    "cholesky", "eig", "eigh", "eigvals", "eigvalsh", "lu", "qr", "svd", "svdvals",
]  # fmt: skip


def _halved(x: Value) -> Any:
    """The lower triangle, its diagonal halved."""
    return 0.5 * (lower(x) + lower(x, -1))


def _cholesky_aval(args: Args, params: Params) -> ShapeDtype:
    check_square("cholesky", "x", args[0])
    return ShapeDtype(args[0].shape, args[0].dtype)


def _cholesky_push(t: Value, ans: Value, x: Value) -> Value:
    left = ops.triangular_solve(ans, hermitian(t), True)
    return ops.matmul(ans, _halved(adjoint(ops.triangular_solve(ans, adjoint(left), True))))


def _cholesky_pull(g: Value, ans: Value) -> Value:
    complex_too = ans.dtype.kind == "c"
    ct = ops.conj(g) if complex_too else g
    up = adjoint(ans)
    left = ops.triangular_solve(up, _halved(ops.matmul(up, ct)), False)
    h = hermitian(adjoint(ops.triangular_solve(up, adjoint(left), False)))
    return ops.conj(h) if complex_too else h


@structural(
    kernels.cholesky, Pair(_cholesky_push, _cholesky_pull, ["x"]), aval=_cholesky_aval,
    batch=batch_first, onnx=NO_OPERATOR,
    samples=calls(
        lambda rng: Sample((regular(rng, 3, 3),)),
        lambda rng: Sample((regular(rng, 2, 2, 2),)),
        lambda rng: Sample((regular(rng, 3, 3, unit=1j),)),
        lambda rng: Sample((regular(rng, 2, 2).astype(np.float32),), smooth=False),
    ),
)  # fmt: skip
def cholesky(x: Value) -> Value:
    """Lower L with L Lᴴ = (x + xᴴ) / 2, which must be positive definite."""


def _turned(v: Value, t: Value) -> Any:
    """The tangent of complex vectors v in the kernels' choice of phase: Note [Gauge]."""
    if v.dtype.kind != "c" or 0 in v.shape:
        return t
    return t - v * (1j * phase_kept(v, t))


def _eigh_aval(args: Args, params: Params) -> tuple[ShapeDtype, ShapeDtype]:
    (x,) = args
    check_square("eigh", "x", x)
    return ShapeDtype(x.shape[:-1], real_dtype(x.dtype)), ShapeDtype(x.shape, x.dtype)


def _eigh_push(t: Value, ans: tuple[Value, Value], x: Value) -> tuple[Any, Any]:
    w, v = ans
    inner = ops.matmul(ops.matmul(adjoint(v), hermitian(t)), v)
    if 0 in x.shape:
        return ops.real(diagonal(inner)), inner
    moved = ops.matmul(v, inverse_gaps(w, x.shape[-1]) * inner)
    return ops.real(diagonal(inner)), _turned(v, moved)


_SPECTRA = calls(
    lambda rng: Sample((regular(rng, 3, 3),)),
    lambda rng: Sample((regular(rng, 2, 2, 2),)),
    lambda rng: Sample((regular(rng, 3, 3, unit=1j),)),
    lambda rng: Sample((regular(rng, 2, 2).astype(np.float32),), smooth=False),
    lambda rng: Sample((regular(rng, 0, 0),)),
)


@structural(
    kernels.eigh, Derived(_eigh_push), aval=_eigh_aval, results=2, batch=batch_first,
    onnx=NO_OPERATOR, samples=_SPECTRA,
)  # fmt: skip
def eigh(x: Value) -> tuple[Value, Value]:
    """Ascending eigenvalues and orthonormal eigenvectors of (x + xᴴ) / 2."""


def _eigvalsh_aval(args: Args, params: Params) -> ShapeDtype:
    check_square("eigvalsh", "x", args[0])
    return ShapeDtype(args[0].shape[:-1], real_dtype(args[0].dtype))


def _eigvalsh_push(t: Value, ans: Value, x: Value) -> Value:
    v = ops.eigh(x)[1]
    return ops.real(diagonal(ops.matmul(ops.matmul(adjoint(v), hermitian(t)), v)))


@structural(
    kernels.eigvalsh, Derived(_eigvalsh_push), aval=_eigvalsh_aval, batch=batch_first,
    onnx=NO_OPERATOR, samples=_SPECTRA,
)  # fmt: skip
def eigvalsh(x: Value) -> Value:
    """Ascending eigenvalues of (x + xᴴ) / 2."""


def _complex_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    return np.result_type(dtype, np.complex64)


def _eig_aval(args: Args, params: Params) -> tuple[ShapeDtype, ShapeDtype]:
    (x,) = args
    check_square("eig", "x", x)
    dtype = _complex_dtype(x.dtype)
    return ShapeDtype(x.shape[:-1], dtype), ShapeDtype(x.shape, dtype)


def _eig_push(t: Value, ans: tuple[Value, Value], x: Value) -> tuple[Any, Any]:
    w, v = ans
    inner = ops.solve(v, ops.matmul(t, v))
    if 0 in x.shape:
        return diagonal(inner), inner
    moved = ops.matmul(v, inverse_gaps(w, x.shape[-1]) * inner)
    grown = ops.reduce_sum(ops.real(ops.conj(v) * moved), (len(v.shape) - 2,), True)
    return diagonal(inner), _turned(v, moved - v * grown)


@structural(
    kernels.eig, Derived(_eig_push), aval=_eig_aval, results=2, batch=batch_first,
    onnx=NO_OPERATOR, samples=_SPECTRA,
)  # fmt: skip
def eig(x: Value) -> tuple[Value, Value]:
    """Eigenvalues and eigenvectors of length 1, complex always; the order is LAPACK's."""


def _eigvals_aval(args: Args, params: Params) -> ShapeDtype:
    check_square("eigvals", "x", args[0])
    return ShapeDtype(args[0].shape[:-1], _complex_dtype(args[0].dtype))


def _eigvals_push(t: Value, ans: Value, x: Value) -> Value:
    v = ops.eig(x)[1]
    return diagonal(ops.solve(v, ops.matmul(t, v)))


@structural(
    kernels.eigvals, Derived(_eigvals_push), aval=_eigvals_aval, batch=batch_first,
    onnx=NO_OPERATOR, samples=_SPECTRA,
)  # fmt: skip
def eigvals(x: Value) -> Value:
    """Eigenvalues, complex always; the order is LAPACK's."""


def _svd_aval(args: Args, params: Params) -> tuple[ShapeDtype, ShapeDtype, ShapeDtype]:
    (x,), (full,) = args, params
    check_matrix("svd", "x", x)
    *lead, m, n = x.shape
    k = min(int(m), int(n))
    return (
        ShapeDtype((*lead, m, m if full else k), x.dtype),
        ShapeDtype((*lead, k), real_dtype(x.dtype)),
        ShapeDtype((*lead, n if full else k, n), x.dtype),
    )


def _svd_push(
    t: Value, ans: tuple[Value, Value, Value], x: Value, full: bool
) -> tuple[Any, Any, Any]:
    """U and V turn by skew matrices among the singular vectors, and out of them at rate 1/s."""
    u, s, v = ans[0], ans[1], adjoint(ans[2])
    m, n = int(x.shape[-2]), int(x.shape[-1])
    k = min(m, n)
    if 0 in x.shape:
        return ops.multiply(u, 0.0), ops.multiply(s, 0.0), ops.multiply(ans[2], 0.0)
    u1, v1 = columns(u, 0, k), columns(v, 0, k)
    tv, tu = ops.matmul(t, v1), ops.matmul(adjoint(t), u1)
    inner = ops.matmul(adjoint(u1), tv)
    tiny = rounding(s, max(m, n))
    both = column(tiny)
    even = (inner + adjoint(inner)) * safe_inverse(row(s) - column(s), both)
    odd = (inner - adjoint(inner)) * safe_inverse(row(s) + column(s), both)
    du, dv = (ops.matmul(z, 0.5 * a) for z, a in ((u1, even + odd), (v1, even - odd)))
    rate = row(safe_inverse(s, tiny))
    if m > k:
        du = du + (tv - ops.matmul(u1, inner)) * rate
    if n > k:
        dv = dv + (tu - ops.matmul(v1, adjoint(inner))) * rate
    if x.dtype.kind == "c":
        phase = 1j * phase_kept(u1, du)
        du, dv = du - u1 * phase, dv - v1 * phase
    if full:
        du, dv = _completed(u, du), _completed(v, dv)
    return du, ops.real(diagonal(inner)), adjoint(dv)


def _completed(q: Value, t: Value) -> Any:
    """The tangent of all columns of a unitary q from that of its first ones.

    The others turn only as far as the first ones make them.
    """
    k, n = int(t.shape[-1]), int(q.shape[-1])
    if k == n:
        return t
    rest = columns(q, k, n)
    moved = -ops.matmul(columns(q, 0, k), ops.matmul(adjoint(t), rest))
    return ops.concat(t, _turned(rest, moved), len(q.shape) - 1)


@structural(
    kernels.svd, Derived(_svd_push), aval=_svd_aval, results=3, batch=batch_first,
    onnx=NO_OPERATOR,
    samples=calls(
        lambda rng: Sample((regular(rng, 3, 3),), (False,)),
        lambda rng: Sample((regular(rng, 4, 2),), (False,)),
        lambda rng: Sample((regular(rng, 2, 2, 3),), (False,)),
        lambda rng: Sample((regular(rng, 3, 2, unit=1j),), (False,)),
        lambda rng: Sample((regular(rng, 3, 2),), (True,)),
        lambda rng: Sample((regular(rng, 2, 3, unit=1j),), (True,)),
        lambda rng: Sample((regular(rng, 4, 2),), (True,), smooth=False),  # a free basis in U
        lambda rng: Sample((regular(rng, 2, 3).astype(np.float32),), (True,), smooth=False),
        lambda rng: Sample((np.zeros((0, 2)),), (True,)),
    ),
)  # fmt: skip
def svd(x: Value, full: bool) -> tuple[Value, Value, Value]:
    """U, descending singular values S, Vh with U diag(S) Vh = x; full: U and Vh are square."""


def _svdvals_aval(args: Args, params: Params) -> ShapeDtype:
    (x,) = args
    check_matrix("svdvals", "x", x)
    *lead, m, n = x.shape
    return ShapeDtype((*lead, min(int(m), int(n))), real_dtype(x.dtype))


def _svdvals_push(t: Value, ans: Value, x: Value) -> Value:
    u, _, vh = ops.svd(x, False)
    return ops.real(diagonal(ops.matmul(ops.matmul(adjoint(u), t), adjoint(vh))))


@structural(
    kernels.svdvals, Derived(_svdvals_push), aval=_svdvals_aval, batch=batch_first,
    onnx=NO_OPERATOR,
    samples=calls(
        lambda rng: Sample((regular(rng, 3, 3),)),
        lambda rng: Sample((regular(rng, 2, 3, 2),)),
        lambda rng: Sample((regular(rng, 2, 3, unit=1j),)),
        lambda rng: Sample((np.zeros((2, 0)),)),
    ),
)  # fmt: skip
def svdvals(x: Value) -> Value:
    """Singular values, descending."""


def _qr_aval(args: Args, params: Params) -> tuple[ShapeDtype, ShapeDtype]:
    (x,), (complete,) = args, params
    check_matrix("qr", "x", x)
    *lead, m, n = x.shape
    k = m if complete else min(int(m), int(n))
    return ShapeDtype((*lead, m, k), x.dtype), ShapeDtype((*lead, k, n), x.dtype)


def _qr_push(t: Value, ans: tuple[Value, Value], x: Value, complete: bool) -> tuple[Any, Any]:
    """Q turns by the skew matrix that keeps R upper with a real diagonal."""
    q, r = ans
    m, n = int(x.shape[-2]), int(x.shape[-1])
    k = min(m, n)
    axis = len(x.shape) - 2
    head = ((None, None, 1),) * axis
    q1, r1 = columns(q, 0, k), ops.slice_(r, (*head, (0, k, 1), (0, k, 1)))
    solved = ops.triangular_solve(ops.swap_last(r1), ops.swap_last(columns(t, 0, k)), True)
    tr = ops.swap_last(solved)  # t1 r1⁻¹, (..., m, k)
    inner = ops.matmul(adjoint(q1), tr)
    below = lower(inner, -1)
    skew = below - adjoint(below)
    if x.dtype.kind == "c":
        skew = skew + ops.where(_eye(k), 1j * ops.imag(inner), 0.0)
    dq = ops.matmul(q1, skew)
    if m > k:
        dq = dq + tr - ops.matmul(q1, inner)
    dr = upper(
        ops.matmul(adjoint(q1), t) - ops.matmul(skew, ops.slice_(r, (*head, (0, k, 1), (0, n, 1))))
    )
    if complete and m > k:
        dq = _completed(q, dq)
        dr = ops.concat(dr, ops.multiply(ops.slice_(r, (*head, (k, m, 1), (0, n, 1))), 0.0), axis)
    return dq, dr


@structural(
    kernels.qr, Derived(_qr_push), aval=_qr_aval, results=2, batch=batch_first, onnx=NO_OPERATOR,
    samples=calls(
        lambda rng: Sample((regular(rng, 3, 3),), (False,)),
        lambda rng: Sample((regular(rng, 4, 2),), (False,)),
        lambda rng: Sample((regular(rng, 2, 2, 3),), (False,)),
        lambda rng: Sample((regular(rng, 3, 2, unit=1j),), (False,)),
        lambda rng: Sample((regular(rng, 3, 2),), (True,)),
        lambda rng: Sample((regular(rng, 4, 2),), (True,), smooth=False),  # a free basis in Q
        lambda rng: Sample((regular(rng, 2, 3).astype(np.float32),), (True,), smooth=False),
    ),
)  # fmt: skip
def qr(x: Value, complete: bool) -> tuple[Value, Value]:
    """Q with orthonormal columns and upper R with Q R = x; complete: Q is square.

    The derivative needs the first min(m, n) columns of x to be independent, else LinAlgError.
    """


def _lu_aval(args: Args, params: Params) -> tuple[ShapeDtype, ShapeDtype, ShapeDtype]:
    (x,) = args
    check_matrix("lu", "x", x)
    *lead, m, n = x.shape
    k = min(int(m), int(n))
    return (
        ShapeDtype((*lead, m, m), real_dtype(x.dtype)),
        ShapeDtype((*lead, m, k), x.dtype),
        ShapeDtype((*lead, k, n), x.dtype),
    )


def _over(x: Value, up: Value) -> Any:
    """x up⁻¹ for an upper matrix."""
    return ops.swap_last(ops.triangular_solve(ops.swap_last(up), ops.swap_last(x), True))


def _lu_push(t: Value, ans: tuple[Value, Value, Value], x: Value) -> tuple[None, Any, Any]:
    p, low, up = ans
    m, n = int(x.shape[-2]), int(x.shape[-1])
    t = ops.matmul(ops.swap_last(p), t)
    if m < n:
        whole = ops.triangular_solve(low, t, True)
        below = lower(_over(columns(whole, 0, m), columns(up, 0, m)), -1)
        return None, ops.matmul(low, below), whole - ops.matmul(below, up)
    whole = _over(t, up)
    top = ops.slice_(whole, (*((None, None, 1),) * (len(t.shape) - 2), (0, n, 1), (0, n, 1)))
    first = ops.slice_(low, (*((None, None, 1),) * (len(t.shape) - 2), (0, n, 1), (0, n, 1)))
    above = upper(ops.triangular_solve(first, top, True))
    return None, whole - ops.matmul(low, above), ops.matmul(above, up)


@structural(
    kernels.lu, Derived(_lu_push), aval=_lu_aval, results=3, batch=batch_first, onnx=NO_OPERATOR,
    samples=calls(
        lambda rng: Sample((regular(rng, 3, 3)[[1, 0, 2]],)),
        lambda rng: Sample((regular(rng, 2, 3, 2),)),
        lambda rng: Sample((regular(rng, 2, 3),)),
        lambda rng: Sample((regular(rng, 2, 2, unit=1j),)),
        lambda rng: Sample((regular(rng, 2, 2).astype(np.float32),), smooth=False),
    ),
)  # fmt: skip
def lu(x: Value) -> tuple[Value, Value, Value]:
    """Permutation P, unit lower L and upper U with P L U = x, by partial pivoting.

    The derivative is that at fixed pivots; it needs a regular leading block, else LinAlgError.
    """


def _eye(n: int) -> Any:
    return ops.families.constant(np.eye(n, dtype=bool))
