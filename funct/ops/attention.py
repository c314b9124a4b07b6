"""Chapter: attention, and its adjoint. Neither holds the matrix of weights where a kernel is fit.

Shapes: q (*, L, E), k (*, S, E), v (*, S, V), a mask that broadcasts to (*, L, S): booleans, or
numbers of q's dtype that are added; the leading axes broadcast, so heads that share keys have an
axis of length 1 in k and v.

Derivatives of the second order, tangents and the cotangent of an added mask go through the matrix
of weights: exp(scores - lse). Where q is of a narrow dtype, lse is of the wide one: what it loses
by rounding would be a share of every weight.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from funct import ops
from funct.core import FLOATING, Absent, Joint, Primitive, Sample, ShapeDtype, Value
from funct.errors import DTypeError, ExportError, ShapeError
from funct.kernels import attention as kernels
from funct.ops.broadcasting import broadcast_shapes, first_axis, match_operand, pad_rank, same_call
from funct.ops.families import structural
from funct.ops.fast import wrap

__all__ = ["attention", "attention_keep", "attention_pull"]

_NO_ONNX = Absent("ONNX's random operators take no key")
Params = tuple[Any, ...]
Args = Sequence[Any]
Flags = Sequence[bool]


# ONNX ---------------------------------------------------------------------------------------------


def _onnx_swapped(w: Any, x: str) -> str:
    rank = len(w.shape_of(x))
    return str(w.op("Transpose", x, perm=[*range(rank - 2), rank - 1, rank - 2]))


def _onnx_axes(w: Any, *axes: int) -> str:
    return str(w.constant(np.array(axes, np.int64)))


def _refuse_dropout(rate: float) -> None:
    if rate:
        raise ExportError(f"attention: {_NO_ONNX.reason}, got dropout of {rate}")


def _onnx_scores(w: Any, q: str, k: str, mask: str, causal: bool, scale: float) -> str:
    dtype = w.dtype_of(q)
    scores = w.op("MatMul", w.op("Mul", q, w.constant(scale, dtype)), _onnx_swapped(w, k))
    least = w.constant(-np.inf, dtype)
    seen = mask if w.dtype_of(mask) == np.bool_ else None
    if seen is None:
        scores = w.op("Add", scores, mask)
    if causal:
        size = w.dims((w.shape_of(q)[-2], w.shape_of(k)[-2]))
        ones = w.op("Expand", w.constant(1.0, np.float32), size)
        below = w.op("Greater", w.op("Trilu", ones, upper=0), w.constant(0.5, np.float32))
        seen = below if seen is None else w.op("And", seen, below)
    return str(scores if seen is None else w.op("Where", seen, scores, least))


def _onnx_attention(
    w: Any,
    q: str,
    k: str,
    v: str,
    mask: str,
    seed: str,
    causal: bool,
    scale: float,
    rate: float,
) -> tuple[str, str]:
    _refuse_dropout(rate)
    narrow, last = w.dtype_of(q), _onnx_axes(w, -1)
    q, k, v, mask = _onnx_widen(w, q, k, v, mask)
    dtype = w.dtype_of(q)
    zero, one = w.constant(0.0, dtype), w.constant(1.0, dtype)
    scores = _onnx_scores(w, q, k, mask, causal, scale)
    top = w.op("ReduceMax", scores, last, keepdims=1)
    top = w.op("Where", w.op("Equal", top, w.constant(-np.inf, dtype)), zero, top)
    e = w.op("Exp", w.op("Sub", scores, top))
    total = w.op("ReduceSum", e, last, keepdims=1)
    none = w.op("Equal", total, zero)
    out = w.op("MatMul", w.op("Div", e, w.op("Where", none, one, total)), v)
    lse = w.op("Add", w.op("Log", total), top)
    lse = w.op("Where", none, w.constant(np.inf, dtype), lse)
    return w.cast(str(out), narrow), str(w.op("Squeeze", lse, last))


def _onnx_attention_pull(
    w: Any, q: str, k: str, v: str, mask: str, seed: str, lse: str, g: str, delta: str,
    causal: bool, scale: float, rate: float,
) -> tuple[str, ...]:  # fmt: skip
    _refuse_dropout(rate)
    narrow, last = w.dtype_of(q), _onnx_axes(w, -1)
    q, k, v, mask, g = _onnx_widen(w, q, k, v, mask, g)
    factor = w.constant(scale, w.dtype_of(q))
    scores = _onnx_scores(w, q, k, mask, causal, scale)
    p = w.op("Exp", w.op("Sub", scores, w.op("Unsqueeze", lse, last)))
    right = w.op("Sub", w.op("MatMul", g, _onnx_swapped(w, v)), w.op("Unsqueeze", delta, last))
    d = w.op("Mul", w.op("Mul", p, right), factor)
    lead = len(w.shape_of(g)) - 2
    found = (
        (w.op("MatMul", d, k), q),
        (w.op("MatMul", _swapped(w, d, lead), q), k),
        (w.op("MatMul", _swapped(w, p, lead), g), v),
    )
    whole = [_onnx_reduced(w, x, w.shape_of(g)[:-2], w.shape_of(like)) for x, like in found]
    return tuple([w.cast(x, narrow) for x in whole])


def _onnx_widen(w: Any, *names: str) -> list[str]:
    return [w.cast(x, _wide(w.dtype_of(x))) for x in names]


def _swapped(w: Any, x: str, lead: int) -> str:
    return str(w.op("Transpose", x, perm=[*range(lead), lead + 1, lead]))


def _onnx_reduced(w: Any, x: str, lead: tuple[Any, ...], shape: tuple[Any, ...]) -> str:
    """x with these leading axes, summed over those along which an operand was repeated."""
    own = shape[:-2]
    extra = len(lead) - len(own)
    kept = [i + extra for i, n in enumerate(own) if n == 1 and lead[i + extra] != 1]
    if kept:
        x = w.op("ReduceSum", x, _onnx_axes(w, *kept), keepdims=1)
    return str(w.op("ReduceSum", x, _onnx_axes(w, *range(extra)), keepdims=0)) if extra else x


# attention ---------------------------------------------------------------------------------------


def _lead(args: Args) -> tuple[Any, ...]:
    return broadcast_shapes(*[a.shape[:-2] for a in args])


def _check(q: Any, k: Any, v: Any, mask: Any, seed: Any) -> None:
    same = q.dtype == k.dtype == v.dtype and mask.dtype in (np.bool_, q.dtype)
    if q.dtype not in FLOATING or not same:
        raise DTypeError(
            "attention: q, k and v must have one floating dtype, and mask that or bool, got "
            f"{q.dtype}, {k.dtype}, {v.dtype} and {mask.dtype}"
        )
    if seed.dtype != np.uint32 or len(seed.shape) < 2 or tuple(seed.shape[-2:]) != (1, 2):
        raise DTypeError(
            f"attention: seed must be uint32 of shape (..., 1, 2), got {seed.dtype} {seed.shape}"
        )
    if q.shape[-1] != k.shape[-1] or k.shape[-2] != v.shape[-2]:
        raise ShapeError(
            f"attention: q and k must agree in the last axis, k and v in the one before, got "
            f"{q.shape}, {k.shape} and {v.shape}"
        )


def _attention_aval(args: Args, params: Params) -> tuple[ShapeDtype, ShapeDtype]:
    _check(*args)
    q, v, lead = args[0], args[2], _lead(args)
    return (
        ShapeDtype((*lead, q.shape[-2], v.shape[-1]), q.dtype),
        ShapeDtype((*lead, q.shape[-2]), _wide(q.dtype)),
    )


def _wide(dtype: Any) -> Any:
    """The dtype in which numbers of this one are computed."""
    return np.dtype(np.float32) if dtype in FLOATING and dtype.itemsize < 4 else dtype


def _widened(raw: Any, rounded: int) -> Any:
    """The kernel; narrow dtypes are taken in the wide one, and the first results rounded once."""

    def run(*args: Any) -> Any:
        _check(*args[:5])
        kind = args[0].dtype
        if _wide(kind) == kind:
            return raw(*args)
        wide = [a.astype(_wide(kind)) if getattr(a, "dtype", None) == kind else a for a in args]
        found = raw(*wide)
        return (*[x.astype(kind) for x in found[:rounded]], *found[rounded:])

    return run


def _attention_batch(prim: Primitive, args: Args, batched: Flags, params: Params) -> Any:
    ranks = [len(a.shape) - b for a, b in zip(args, batched, strict=True)]
    given = [pad_rank(a, max(ranks)) if b else a for a, b in zip(args, batched, strict=True)]
    return prim.fn(*given, *params)


def _column(x: Value) -> Value:
    return ops.reshape(x, (*x.shape, 1))


def _total(x: Value) -> Value:
    return ops.reduce_sum(x, (len(x.shape) - 1,), False)


def _weights(q: Value, k: Value, mask: Value, lse: Value, causal: bool, scale: float) -> Value:
    scores = ops.matmul(q * scale, ops.swap_last(k)) - _column(lse)
    if _is_added(mask):
        scores = scores + mask
    else:
        scores = ops.where(mask, scores, -np.inf)
    if causal:
        seen = wrap(np.tri(*map(int, scores.shape[-2:]), dtype=np.bool_))
        scores = ops.where(seen, scores, -np.inf)
    return ops.exp(scores)


def _is_added(mask: Value) -> bool:
    return bool(mask.dtype != np.bool_)


def _widen(*values: Value) -> list[Value]:
    """Narrow floats as wide ones, everything else as it is."""
    return [x if _wide(x.dtype) == x.dtype else ops.astype(x, _wide(x.dtype)) for x in values]


def _keep(p: Value, seed: Value, rate: float) -> Any:
    """What drops weights, or anything of their shape."""
    if not kernels.threshold(rate):
        return lambda x: x
    stays = ops.attention_keep(seed, int(p.shape[-2]), int(p.shape[-1]), rate)
    return lambda x: ops.where(stays, x * (1 / (1 - rate)), 0.0)


def _slope(q: Value, k: Value, tq: Value, tk: Value, scale: float) -> Value:
    """The tangent of the scores."""
    return (ops.matmul(tq, ops.swap_last(k)) + ops.matmul(q, ops.swap_last(tk))) * scale


def _attention_push(
    tangents: Args,
    ans: Args,
    q: Value,
    k: Value,
    v: Value,
    mask: Value,
    seed: Value,
    causal: bool,
    scale: float,
    rate: float,
) -> tuple[Value, Value]:
    narrow = q.dtype
    tq, tk, tv, t_mask, q, k, v, mask = _widen(*tangents[:4], q, k, v, mask)
    p = _weights(q, k, mask, ans[1], causal, scale)
    slope = _slope(q, k, tq, tk, scale)
    slope = slope + t_mask if _is_added(mask) else slope
    mean = _total(p * slope)
    keep = _keep(p, seed, rate)
    moved = ops.matmul(keep(p * (slope - _column(mean))), v) + ops.matmul(keep(p), tv)
    return ops.astype(moved, narrow), mean


def _attention_pull(
    g: Args,
    ans: Args,
    q: Value,
    k: Value,
    v: Value,
    mask: Value,
    seed: Value,
    causal: bool,
    scale: float,
    rate: float,
) -> tuple[Value | Callable[[], Value] | None, ...]:
    lse = ans[1]
    wide_g, out = _widen(g[0], ans[0])
    delta = _total(wide_g * out) - g[1]
    found = ops.attention_pull(q, k, v, mask, seed, lse, g[0], delta, causal, scale, rate)

    def of_mask() -> Value:
        wide_q, wide_k, wide_v, added = _widen(q, k, v, mask)
        p = _weights(wide_q, wide_k, added, lse, causal, scale)
        right = _keep(p, seed, rate)(ops.matmul(wide_g, ops.swap_last(wide_v)))
        slopes = p * (right - _column(delta))
        return ops.astype(match_operand(slopes, mask.shape), mask.dtype)

    return (*found, of_mask if _is_added(mask) else None, None)


def _samples(rng: np.random.Generator) -> list[Sample]:
    n = rng.normal
    some = np.array([[True, False, True], [True, True, False]])
    always, seed = np.ones((1, 1), np.bool_), np.zeros((1, 2), np.uint32)
    return [
        Sample((n(size=(2, 2)), n(size=(3, 2)), n(size=(3, 1)), some, seed), (False, 0.7, 0.0)),
        Sample((n(size=(2, 3, 4, 2)), n(size=(2, 1, 4, 2)), n(size=(2, 1, 4, 3)), always, seed),
               (True, 0.5, 0.0)),
        Sample((n(size=(2, 2, 3)), n(size=(1, 3, 3)), n(size=(3, 2)), some[:, None, :], seed),
               (False, -0.3, 0.0)),
        Sample((n(size=(2, 2)), n(size=(3, 2)), n(size=(3, 1)), n(size=(2, 3)), seed),
               (False, 0.7, 0.0)),
        Sample((n(size=(2, 3, 2)), n(size=(2, 3, 2)), n(size=(2, 3, 2)), n(size=(1, 3)), seed),
               (True, 0.7, 0.0)),
    ]  # fmt: skip


_JOINT = Joint(_attention_push, _attention_pull)


@structural(
    _widened(kernels.attention, 1), _JOINT, _JOINT, _JOINT, _JOINT, None, aval=_attention_aval,
    batch=_attention_batch, onnx=_onnx_attention, samples=_samples, results=2,
)  # fmt: skip
def attention(
    q: Value, k: Value, v: Value, mask: Value, seed: Value, causal: bool, scale: float, rate: float
) -> tuple[Value, Value]:
    """softmax(q kᵀ scale) v over the keys that mask (and causal) lets take part, a mask of numbers
    added to the scores, and the logarithm of each query's sum of exponentials, in the wide dtype of
    a narrow one; 0 and inf for a query that sees no key. A share `rate` of
    the weights is dropped, as seed (uint32, (*, 1, 2)) says.
    """


@structural(
    kernels.kept, None, batch=same_call, onnx=_NO_ONNX,
    aval=lambda args, params: ShapeDtype((*args[0].shape[:-2], *params[:2]), np.dtype(np.bool_)),
    samples=lambda rng: [
        Sample((rng.integers(0, 2**32, (2, 1, 2), dtype=np.uint32),), (3, 4, 0.5)),
    ],
)  # fmt: skip
def attention_keep(seed: Value, queries: int, keys: int, rate: float) -> Value:
    """The weights that dropout in `attention` keeps, bool of shape (*, queries, keys)."""


# the adjoint --------------------------------------------------------------------------------------


def _pull_aval(args: Args, params: Params) -> tuple[ShapeDtype, ...]:
    return tuple([ShapeDtype(a.shape, a.dtype) for a in args[:3]])


def _pull_batch(prim: Primitive, args: Args, batched: Flags, params: Params) -> Any:
    """Each lane has cotangents of its own, also of what the lanes share."""
    size = next(v.shape[0] for v, b in zip(args, batched, strict=True) if b)
    flags = [True, True, True, *batched[3:]]
    args = [first_axis(a, b, size) for a, b in zip(args[:3], batched[:3])] + list(args[3:])
    inner = (2, 2, 2, 2, 2, 1, 2, 1)
    ranks = [len(a.shape) - b - n for a, b, n in zip(args, flags, inner, strict=True)]
    given = [
        pad_rank(a, max(ranks) + n) if b else a for a, b, n in zip(args, flags, inner, strict=True)
    ]
    found = prim.fn(*given, *params)
    return tuple([ops.reshape(f, a.shape) for f, a in zip(found, args)])


def _pull_push(
    tangents: Args, ans: Args, q: Value, k: Value, v: Value, mask: Value, seed: Value, lse: Value,
    g: Value, delta: Value, causal: bool, scale: float, rate: float,
) -> tuple[Value, ...]:  # fmt: skip
    narrow = q.dtype
    given = (*[t for i, t in enumerate(tangents) if i != 4], q, k, v, mask, g)
    tq, tk, tv, t_mask, t_lse, tg, t_delta, q, k, v, mask, g = _widen(*given)
    p = _weights(q, k, mask, lse, causal, scale)
    keep = _keep(p, seed, rate)
    right = keep(ops.matmul(g, ops.swap_last(v))) - _column(delta)
    slope = _slope(q, k, tq, tk, scale)
    slope = slope + t_mask if _is_added(mask) else slope
    tp = p * (slope - _column(t_lse))
    moved = ops.matmul(tg, ops.swap_last(v)) + ops.matmul(g, ops.swap_last(tv))
    moved = keep(moved) - _column(t_delta)
    d, td = p * right, tp * right + p * moved
    dq = (ops.matmul(td, k) + ops.matmul(d, tk)) * scale
    dk = (ops.matmul(ops.swap_last(td), q) + ops.matmul(ops.swap_last(d), tq)) * scale
    dv = ops.matmul(ops.swap_last(keep(tp)), g) + ops.matmul(ops.swap_last(keep(p)), tg)
    found = [match_operand(x, like.shape) for x, like in ((dq, q), (dk, k), (dv, v))]
    return tuple([ops.astype(x, narrow) for x in found])


def _pull_samples(rng: np.random.Generator) -> list[Sample]:
    out = []
    for s in _samples(rng):
        found, lse = kernels.plain_attention(*s.args, *s.params)
        g, delta = rng.normal(size=found.shape), rng.normal(size=lse.shape)
        out.append(Sample((*s.args, lse, g, delta), s.params))
    return out


_PULL_JOINT = Joint(_pull_push, None)


@structural(
    _widened(kernels.attention_pull, 3), _PULL_JOINT, _PULL_JOINT, _PULL_JOINT, _PULL_JOINT, None,
    _PULL_JOINT, _PULL_JOINT, _PULL_JOINT, aval=_pull_aval, batch=_pull_batch,
    onnx=_onnx_attention_pull, samples=_pull_samples, results=3,
)  # fmt: skip
def attention_pull(
    q: Value, k: Value, v: Value, mask: Value, seed: Value, lse: Value, g: Value, delta: Value,
    causal: bool, scale: float, rate: float,
) -> tuple[Value, Value, Value]:  # fmt: skip
    """Cotangents of q, k and v in `attention`. lse: its second result. g: the cotangent of the
    first. delta: Σ g · result over the last axis, less the cotangent of lse.
    """
