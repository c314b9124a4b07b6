"""Chapter: pseudo-inverse and least squares. Derivatives: Golub and Pereyra (1973)."""

from __future__ import annotations

from typing import Any

import numpy as np

from funct import ops
from funct.core import Operand, Pair, Primitive, Sample, Shape, ShapeDtype, Size, Value
from funct.errors import ShapeError
from funct.kernels.linalg import matrices as kernels
from funct.ops.broadcasting import broadcast_shapes, match_operand, pad_rank
from funct.ops.families import structural
from funct.ops.matrices import (
    NO_OPERATOR,
    Args,
    Flags,
    Params,
    adjoint,
    batch_pair,
    check_matrix,
    diagonal,
    real_dtype,
    row,
)
from funct.ops.samples import calls, deficient, regular

__all__ = ["default_rtol", "lstsq", "pinv"]


def default_rtol(x: Any) -> Operand:
    """max(m, n) times the machine epsilon: what rounding does to a singular value that is 0."""
    most, eps = max(x.shape[-2:]), np.finfo(x.dtype).eps
    known = most.measured() if isinstance(most, Size) else None
    return float(int(most) * eps) if known is None else ops.astype(known, eps.dtype) * float(eps)


def _pinv_aval(args: Args, params: Params) -> ShapeDtype:
    x, rtol = args
    check_matrix("pinv", "x", x)
    if len(getattr(rtol, "shape", ())) > len(x.shape) - 2:
        raise ShapeError(
            f"pinv: rtol must fit the stack of x, got x {x.shape} and rtol {rtol.shape}"
        )
    return ShapeDtype((*x.shape[:-2], x.shape[-1], x.shape[-2]), x.dtype)


def _across(x: Value, y: Value, p: Value) -> Any:
    """x (1 - y p), without the square matrix y p."""
    return x - ops.matmul(ops.matmul(x, y), p)


def _beside(x: Value, y: Value, p: Value) -> Any:
    """(1 - y p) x."""
    return x - ops.matmul(y, ops.matmul(p, x))


def _pinv_push(t: Value, ans: Value, x: Value, rtol: Operand | None) -> Value:
    turned, back = adjoint(t), adjoint(ans)
    moved = ops.matmul(ans, ops.matmul(t, ans))
    left = ops.matmul(ans, ops.matmul(back, _across(turned, x, ans)))
    right = ops.matmul(ops.matmul(_beside(turned, ans, x), back), ans)
    return left + right - moved


def _pinv_pull(g: Value, ans: Value, x: Value) -> Value:
    ct = ops.conj(g) if x.dtype.kind == "c" else g
    turned, back = adjoint(ct), adjoint(ans)
    moved = ops.matmul(ops.matmul(back, ct), back)
    left = ops.matmul(ops.matmul(_beside(turned, x, ans), ans), back)
    right = ops.matmul(back, ops.matmul(ans, _across(turned, ans, x)))
    h = left + right - moved
    return ops.conj(h) if x.dtype.kind == "c" else h


def _pinv_batch(prim: Primitive, args: Args, batched: Flags, params: Params) -> Any:
    x, rtol = args
    if not batched[0]:
        x = ops.broadcast_to(x, (rtol.shape[0], *x.shape))
    return ops.pinv(x, pad_rank(rtol, len(x.shape) - 3) if batched[1] else rtol)


@structural(
    kernels.pinv, Pair(_pinv_push, _pinv_pull, ["x", "rtol"]), None, aval=_pinv_aval,
    batch=_pinv_batch, onnx=NO_OPERATOR,
    samples=calls(
        lambda rng: Sample((regular(rng, 3, 2), np.asarray(1e-12))),
        lambda rng: Sample((regular(rng, 2, 2, 3), np.asarray([1e-12, 1e-11]))),
        lambda rng: Sample((regular(rng, 2, 3, unit=1j), np.asarray(1e-12))),
        lambda rng: Sample((deficient(rng, 3, 4, 2), np.asarray(1e-9)), smooth=False),
        lambda rng: Sample((np.zeros((0, 2)), np.asarray(1e-12))),
    ), raises=True,
)  # fmt: skip
def pinv(x: Value, rtol: Operand) -> Value:
    """Moore-Penrose inverse; singular values up to rtol · the largest count as 0.

    The derivative is that among matrices of the same rank, exact where the rank does not change.
    """


def _lstsq_aval(args: Args, params: Params) -> tuple[ShapeDtype, ShapeDtype, ShapeDtype]:
    a, b = args
    check_matrix("lstsq", "a", a)
    check_matrix("lstsq", "b", b)
    if a.shape[-2] != b.shape[-2]:
        raise ShapeError(f"lstsq: a and b must have as many rows, got a {a.shape} and b {b.shape}")
    lead = broadcast_shapes(a.shape[:-2], b.shape[:-2])
    dtype = np.result_type(a.dtype, b.dtype)
    few = min(a.shape[-2:])
    return (
        ShapeDtype((*lead, a.shape[-1], b.shape[-1]), dtype),
        ShapeDtype(lead, np.dtype(np.int64)),
        ShapeDtype((*lead, few), real_dtype(dtype)),
    )


def _inverse(a: Value, rtol: float | None) -> Any:
    return ops.pinv(a, default_rtol(a) if rtol is None else rtol)


def _lstsq_push_a(
    t: Value, ans: tuple[Value, Value, Value], a: Value, b: Value, rtol: float | None
) -> tuple[Any, None, Any]:
    moved = _pinv_push(t, _inverse(a, rtol), a, rtol)
    u, _, vh = ops.svd(a, False)
    s = ops.real(diagonal(ops.matmul(ops.matmul(adjoint(u), t), adjoint(vh))))
    return ops.matmul(moved, b), None, s


def _lstsq_pull_a(
    g: tuple[Any, None, Any], ans: tuple[Value, Value, Value], a: Value, b: Value,
    rtol: float | None,
) -> Value:  # fmt: skip
    """That of the pseudo-inverse, whose cotangent gx bᴴ is never made."""
    (gx, _, gs), x = g, ans[0]
    h: Any = None
    if gx is not None:
        p = _inverse(a, rtol)
        y = ops.matmul(adjoint(p), gx)
        left = ops.matmul(b - ops.matmul(a, x), adjoint(ops.matmul(p, y)))
        out = adjoint(_beside(gx, p, a))
        h = left + ops.matmul(ops.matmul(adjoint(p), x), out) - ops.matmul(y, adjoint(x))
    if gs is not None:
        u, _, vh = ops.svd(a, False)
        of_s = ops.matmul(u * row(gs), vh)
        h = of_s if h is None else h + of_s
    return match_operand(h, a.shape)


def _lstsq_push_b(
    t: Value, ans: tuple[Value, Value, Value], a: Value, b: Value, rtol: float | None
) -> tuple[Any, None, None]:
    return ops.matmul(_inverse(a, rtol), t), None, None


def _lstsq_pull_b(
    g: tuple[Any, None, Any], a: Value, rtol: float | None, b_shape: Shape
) -> Value | None:
    if g[0] is None:
        return None
    return match_operand(ops.matmul(adjoint(_inverse(a, rtol)), g[0]), b_shape)


_OPERANDS = ["a", "b", "rtol"]


@structural(
    kernels.lstsq, Pair(_lstsq_push_a, _lstsq_pull_a, _OPERANDS),
    Pair(_lstsq_push_b, _lstsq_pull_b, _OPERANDS), aval=_lstsq_aval, results=3, batch=batch_pair,
    onnx=NO_OPERATOR,
    samples=calls(
        lambda rng: Sample((regular(rng, 3, 2), regular(rng, 3, 2)), (1e-12,)),
        lambda rng: Sample((regular(rng, 2, 2, 3), regular(rng, 2, 1)), (1e-12,)),
        lambda rng: Sample((regular(rng, 2, 3, unit=1j), regular(rng, 2, 1, unit=1j)), (1e-12,)),
        lambda rng: Sample((deficient(rng, 3, 4, 2), regular(rng, 3, 1)), (1e-9,), smooth=False),
        lambda rng: Sample((np.zeros((0, 2)), np.zeros((0, 1))), (1e-12,)),
    ), raises=True,
)  # fmt: skip
def lstsq(a: Value, b: Value, rtol: float | None) -> tuple[Value, Value, Value]:
    """The x of least norm that makes |b - a x| least, the rank of a, and its singular values.

    Singular values up to rtol · the largest count as 0; None: up to what rounding leaves, which
    asks nothing about a length that varies. The derivative is that among matrices of
    the same rank.
    """
