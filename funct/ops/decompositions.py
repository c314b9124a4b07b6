"""Chapter: decompositions of stacks of matrices into triangular factors.

Sources: Walter and Lehmann, Algorithmic differentiation of linear algebra functions (2012); Murray,
Differentiation of the Cholesky decomposition (2016). Free columns: Note [Gauge] in
funct/ops/matrices.py.
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
    columns,
    completed,
    completed_pull,
    hermitian,
    lower,
    real_dtype,
    upper,
)
from funct.ops.samples import calls, regular

__all__ = ["cholesky", "lu", "qr"]


def _halved(x: Value) -> Any:
    """The lower triangle, its diagonal halved."""
    return 0.5 * (lower(x) + lower(x, -1))


def _cholesky_aval(args: Args, params: Params) -> ShapeDtype:
    check_square("cholesky", "x", args[0])
    return ShapeDtype(args[0].shape, args[0].dtype)


def _cholesky_push(t: Value, ans: Value, x: Value) -> Value:
    left = ops.solve_triangular(ans, hermitian(t), True)
    return ops.matmul(ans, _halved(adjoint(ops.solve_triangular(ans, adjoint(left), True))))


def _cholesky_pull(g: Value, ans: Value) -> Value:
    complex_too = ans.dtype.kind == "c"
    ct = ops.conj(g) if complex_too else g
    up = adjoint(ans)
    left = ops.solve_triangular(up, _halved(ops.matmul(up, ct)), False)
    h = hermitian(adjoint(ops.solve_triangular(up, adjoint(left), False)))
    return ops.conj(h) if complex_too else h


@structural(
    kernels.cholesky, Pair(_cholesky_push, _cholesky_pull, ["x"]), aval=_cholesky_aval,
    batch=batch_first, onnx=NO_OPERATOR,
    samples=calls(
        lambda rng: Sample((regular(rng, 3, 3),)),
        lambda rng: Sample((regular(rng, 2, 2, 2),)),
        lambda rng: Sample((regular(rng, 3, 3, unit=1j),)),
        lambda rng: Sample((regular(rng, 2, 2).astype(np.float32),), smooth=False),
    ), raises=True,
)  # fmt: skip
def cholesky(x: Value) -> Value:
    """Lower L with L Lᴴ = (x + xᴴ) / 2, which must be positive definite."""


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
    solved = ops.solve_triangular(ops.swap_last(r1), ops.swap_last(columns(t, 0, k)), True)
    tr = ops.swap_last(solved)  # t1 r1⁻¹, (..., m, k)
    inner = ops.matmul(adjoint(q1), tr)
    below = lower(inner, -1)
    skew = below - adjoint(below)
    if x.dtype.kind == "c":
        skew = skew + ops.where(wrap(np.eye(k, dtype=bool)), 1j * ops.imag(inner), 0.0)
    dq = ops.matmul(q1, skew)
    if m > k:
        dq = dq + tr - ops.matmul(q1, inner)
    dr = upper(
        ops.matmul(adjoint(q1), t) - ops.matmul(skew, ops.slice_(r, (*head, (0, k, 1), (0, n, 1))))
    )
    if complete and m > k:
        dq = completed(q, dq)
        dr = ops.concat(dr, ops.multiply(ops.slice_(r, (*head, (k, m, 1), (0, n, 1))), 0.0), axis)
    return dq, dr


def _qr_pull(g: tuple[Any, Any], ans: tuple[Value, Value], x: Value, complete: bool) -> Value:
    """Each step of the push, transposed, from the last to the first."""
    q, r = ans
    m, n = int(x.shape[-2]), int(x.shape[-1])
    k = min(m, n)
    head = ((None, None, 1),) * (len(x.shape) - 2)
    top = (*head, (0, k, 1), (None, None, 1))
    q1, r1 = columns(q, 0, k), ops.slice_(r, top)
    gq = completed_pull(q, g[0], k) if complete and g[0] is not None else g[0]
    gr = None if g[1] is None else upper(ops.slice_(g[1], top))
    on_q: Any = 0.0 if gq is None else ops.matmul(adjoint(q1), gq)
    skew = on_q if gr is None else on_q - ops.matmul(gr, adjoint(r1))
    inner = lower(skew - adjoint(skew), -1)
    if x.dtype.kind == "c":
        inner = inner + ops.where(wrap(np.eye(k, dtype=bool)), 1j * ops.imag(skew), 0.0)
    beyond = m > k and gq is not None  # what turns Q out of its columns
    solved = ops.matmul(q1, inner - on_q) + gq if beyond else inner
    h = adjoint(ops.solve_triangular(columns(r1, 0, k), adjoint(solved), False))
    if n > k:
        h = ops.concat(h, ops.multiply(columns(x, k, n), 0.0), len(x.shape) - 1)
    if beyond:
        return h if gr is None else h + ops.matmul(q1, gr)
    return ops.matmul(q1, h if gr is None else h + gr)


@structural(
    kernels.qr, Pair(_qr_push, _qr_pull, ["x", "complete"]), aval=_qr_aval, results=2,
    batch=batch_first, onnx=NO_OPERATOR,
    samples=calls(
        lambda rng: Sample((regular(rng, 3, 3),), (False,)),
        lambda rng: Sample((regular(rng, 4, 2),), (False,)),
        lambda rng: Sample((regular(rng, 2, 2, 3),), (False,)),
        lambda rng: Sample((regular(rng, 3, 2, unit=1j),), (False,)),
        lambda rng: Sample((regular(rng, 3, 2),), (True,)),
        lambda rng: Sample((regular(rng, 3, 2, unit=1j),), (True,)),
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
    return ops.swap_last(ops.solve_triangular(ops.swap_last(up), ops.swap_last(x), True))


def _lu_push(t: Value, ans: tuple[Value, Value, Value], x: Value) -> tuple[None, Any, Any]:
    p, low, up = ans
    m, n = int(x.shape[-2]), int(x.shape[-1])
    t = ops.matmul(ops.swap_last(p), t)
    if m < n:
        whole = ops.solve_triangular(low, t, True)
        below = lower(_over(columns(whole, 0, m), columns(up, 0, m)), -1)
        return None, ops.matmul(low, below), whole - ops.matmul(below, up)
    whole = _over(t, up)
    square = (*((None, None, 1),) * (len(t.shape) - 2), (0, n, 1), (0, n, 1))
    above = upper(ops.solve_triangular(ops.slice_(low, square), ops.slice_(whole, square), True))
    return None, whole - ops.matmul(low, above), ops.matmul(above, up)


def _over_adjoint(x: Value, up: Value) -> Any:
    """x up⁻ᴴ for an upper matrix."""
    return adjoint(ops.solve_triangular(up, adjoint(x), False))


def _lu_pull(g: tuple[Any, Any, Any], ans: tuple[Value, Value, Value], x: Value) -> Value:
    """Each step of the push, transposed, from the last to the first; P does not vary."""
    (_, gl, gu), (p, low, up) = g, ans
    m, n = int(x.shape[-2]), int(x.shape[-1])
    k, axis = min(m, n), len(x.shape) - 2
    if gl is None and gu is None:
        return ops.multiply(x, 0.0)
    on_l: Any = 0.0 if gl is None else ops.matmul(adjoint(low), gl)
    on_u: Any = 0.0 if gu is None else ops.matmul(gu, adjoint(up))
    square = (*((None, None, 1),) * axis, (0, k, 1), (0, k, 1))
    if m < n:
        part = _over_adjoint(lower(on_l - on_u, -1), columns(up, 0, k))
        whole = ops.concat(part, ops.multiply(columns(up, k, n), 0.0), axis + 1)
        whole = whole if gu is None else whole + gu
        h = ops.solve_triangular(adjoint(low), whole, False)
    else:
        whole = ops.solve_triangular(
            adjoint(ops.slice_(low, square)), upper(on_u - on_l), False
        )
        if m > n:
            rest = ops.slice_(low, (*((None, None, 1),) * axis, (k, m, 1), (None, None, 1)))
            whole = ops.concat(whole, ops.multiply(rest, 0.0), axis)
        h = _over_adjoint(whole if gl is None else whole + gl, up)
    return ops.matmul(p, h)


@structural(
    kernels.lu, Pair(_lu_push, _lu_pull, ["x"]), aval=_lu_aval, results=3, batch=batch_first,
    onnx=NO_OPERATOR,
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
