"""Chapter: eigenvalues and singular values of stacks of matrices.

Sources: Giles, Collected matrix derivative results (2008); Townsend, Differentiating the singular
value decomposition (2016). Conventions where a derivative does not exist: Note [Degenerate spectra]
and Note [Gauge] in funct/ops/matrices.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from funct import ops
from funct.core import Pair, Sample, ShapeDtype, Value
from funct.kernels.linalg import matrices as kernels
from funct.ops.families import structural
from funct.ops.fast import wrap
from funct.ops.matrices import (
    NO_OPERATOR,
    Args,
    Params,
    adjoint,
    batch_first,
    check_matrix,
    check_square,
    column,
    columns,
    completed,
    completed_pull,
    diagonal,
    hermitian,
    inverse_gaps,
    phase_kept,
    phase_pull,
    real_dtype,
    rounding,
    row,
    safe_inverse,
    turned,
)
from funct.ops.samples import calls, regular

__all__ = ["eig", "eigh", "eigvals", "eigvalsh", "svd", "svdvals"]


def _on_diagonal(x: Value, d: Value) -> Any:
    """x + diag(d)."""
    eye = wrap(np.eye(int(x.shape[-1]), dtype=bool))
    return x + ops.where(eye, row(d), 0.0)


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
    return ops.real(diagonal(inner)), turned(v, moved)


def _eigh_pull(g: tuple[Any, Any], ans: tuple[Value, Value], x: Value) -> Value:
    (gw, gv), (w, v) = g, ans
    if 0 in x.shape:
        return ops.multiply(x, 0.0)
    back = adjoint(v)
    if gv is None:
        return ops.matmul(v * row(gw), back)
    gv = phase_pull(v, gv) if x.dtype.kind == "c" else gv
    inner = inverse_gaps(w, x.shape[-1]) * ops.matmul(back, gv)
    inner = inner if gw is None else _on_diagonal(inner, gw)
    return hermitian(ops.matmul(ops.matmul(v, inner), back))


_SPECTRA = calls(
    lambda rng: Sample((regular(rng, 3, 3),)),
    lambda rng: Sample((regular(rng, 2, 2, 2),)),
    lambda rng: Sample((regular(rng, 3, 3, unit=1j),)),
    lambda rng: Sample((regular(rng, 2, 2).astype(np.float32),), smooth=False),
    lambda rng: Sample((regular(rng, 0, 0),)),
)


@structural(
    kernels.eigh, Pair(_eigh_push, _eigh_pull, ["x"]), aval=_eigh_aval, results=2,
    batch=batch_first, onnx=NO_OPERATOR, samples=_SPECTRA, raises=True,
)  # fmt: skip
def eigh(x: Value) -> tuple[Value, Value]:
    """Ascending eigenvalues and orthonormal eigenvectors of (x + xᴴ) / 2."""


def _eigvalsh_aval(args: Args, params: Params) -> ShapeDtype:
    check_square("eigvalsh", "x", args[0])
    return ShapeDtype(args[0].shape[:-1], real_dtype(args[0].dtype))


def _eigvalsh_push(t: Value, ans: Value, x: Value) -> Value:
    v = ops.eigh(x)[1]
    return ops.real(diagonal(ops.matmul(ops.matmul(adjoint(v), hermitian(t)), v)))


def _eigvalsh_pull(g: Value, x: Value) -> Value:
    v = ops.eigh(x)[1]
    return ops.matmul(v * row(g), adjoint(v))


@structural(
    kernels.eigvalsh, Pair(_eigvalsh_push, _eigvalsh_pull, ["x"]), aval=_eigvalsh_aval,
    batch=batch_first, onnx=NO_OPERATOR, samples=_SPECTRA, raises=True,
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
    return diagonal(inner), turned(v, moved - v * grown)


def _eig_pull(g: tuple[Any, Any], ans: tuple[Value, Value], x: Value) -> Value:
    """Each step of the push, transposed, from the last to the first."""
    (gw, gv), (w, v) = g, ans
    if 0 in x.shape:
        return ops.multiply(x, 0.0)
    back = adjoint(v)
    if gv is None:
        right = column(gw) * back
    else:
        gv = phase_pull(v, gv)
        grown = ops.reduce_sum(ops.real(ops.conj(v) * gv), (len(v.shape) - 2,), True)
        inner = ops.conj(inverse_gaps(w, x.shape[-1])) * ops.matmul(back, gv - v * grown)
        right = ops.matmul(inner if gw is None else _on_diagonal(inner, gw), back)
    h = ops.solve(back, right)
    return h if x.dtype.kind == "c" else ops.real(h)


@structural(
    kernels.eig, Pair(_eig_push, _eig_pull, ["x"]), aval=_eig_aval, results=2,
    batch=batch_first, onnx=NO_OPERATOR, samples=_SPECTRA, raises=True,
)  # fmt: skip
def eig(x: Value) -> tuple[Value, Value]:
    """Eigenvalues and eigenvectors of length 1, complex always; the order is LAPACK's."""


def _eigvals_aval(args: Args, params: Params) -> ShapeDtype:
    check_square("eigvals", "x", args[0])
    return ShapeDtype(args[0].shape[:-1], _complex_dtype(args[0].dtype))


def _eigvals_push(t: Value, ans: Value, x: Value) -> Value:
    v = ops.eig(x)[1]
    return diagonal(ops.solve(v, ops.matmul(t, v)))


def _eigvals_pull(g: Value, x: Value) -> Value:
    v = ops.swap_last(ops.eig(x)[1])
    return ops.solve(v, column(g) * v)


@structural(
    kernels.eigvals, Pair(_eigvals_push, _eigvals_pull, ["x"]), aval=_eigvals_aval,
    batch=batch_first, onnx=NO_OPERATOR, samples=_SPECTRA, raises=True,
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
        du, dv = completed(u, du), completed(v, dv)
    return du, ops.real(diagonal(inner)), adjoint(dv)


def _svd_pull(
    g: tuple[Any, Any, Any], ans: tuple[Value, Value, Value], x: Value, full: bool
) -> Value:
    """Each step of the push, transposed, from the last to the first."""
    u, s, v = ans[0], ans[1], adjoint(ans[2])
    gu, gs, gv = g[0], g[1], None if g[2] is None else adjoint(g[2])
    m, n = int(x.shape[-2]), int(x.shape[-1])
    k = min(m, n)
    if 0 in x.shape:
        return ops.multiply(x, 0.0)
    u1, v1 = columns(u, 0, k), columns(v, 0, k)
    back_v = adjoint(v1)
    if gu is None and gv is None:
        return ops.matmul(u1 * row(gs), back_v)
    if full:
        gu, gv = (z if z is None else completed_pull(q, z, k) for q, z in ((u, gu), (v, gv)))
    if x.dtype.kind == "c":
        turn = None if gv is None else ops.conj(v1) * gv
        gu = phase_pull(u1, ops.multiply(u1, 0.0) if gu is None else gu, along=turn)
    tiny = rounding(s, max(m, n))
    both = column(tiny)
    on_u = 0.0 if gu is None else ops.matmul(adjoint(u1), gu)
    on_v = 0.0 if gv is None else ops.matmul(adjoint(v1), gv)
    even = 0.5 * (on_u + on_v) * safe_inverse(row(s) - column(s), both)
    odd = 0.5 * (on_u - on_v) * safe_inverse(row(s) + column(s), both)
    inner = even + adjoint(even) + odd - adjoint(odd)
    inner = inner if gs is None else _on_diagonal(inner, gs)
    rate = row(safe_inverse(s, tiny))
    if m > k and gu is not None:
        inner = inner - on_u * rate
    if n > k and gv is not None:
        inner = inner - adjoint(on_v * rate)
    h = ops.matmul(u1, inner)
    if m > k and gu is not None:
        h = h + gu * rate
    h = ops.matmul(h, back_v)
    return h + ops.matmul(u1, adjoint(gv * rate)) if n > k and gv is not None else h


@structural(
    kernels.svd, Pair(_svd_push, _svd_pull, ["x", "full"]), aval=_svd_aval, results=3,
    batch=batch_first, onnx=NO_OPERATOR,
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
    ), raises=True,
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


def _svdvals_pull(g: Value, x: Value) -> Value:
    u, _, vh = ops.svd(x, False)
    return ops.matmul(u * row(g), vh)


@structural(
    kernels.svdvals, Pair(_svdvals_push, _svdvals_pull, ["x"]), aval=_svdvals_aval,
    batch=batch_first, onnx=NO_OPERATOR,
    samples=calls(
        lambda rng: Sample((regular(rng, 3, 3),)),
        lambda rng: Sample((regular(rng, 2, 3, 2),)),
        lambda rng: Sample((regular(rng, 2, 3, unit=1j),)),
        lambda rng: Sample((np.zeros((2, 0)),)),
    ), raises=True,
)  # fmt: skip
def svdvals(x: Value) -> Value:
    """Singular values, descending."""
