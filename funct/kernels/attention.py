"""Attention and its adjoint in plain NumPy, through the matrix of all weights.

Shapes: q (*, L, E), k (*, S, E), v (*, S, V), mask broadcasts to (*, L, S); the leading axes
broadcast. `attention` and `attention_pull` take the best row of the kernel table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from funct.kernels import table

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["attention", "attention_pull", "plain_attention", "plain_attention_pull"]


def attention(
    q: NDArray[Any], k: NDArray[Any], v: NDArray[Any], mask: NDArray[Any], causal: bool,
    scale: float,
) -> tuple[NDArray[Any], NDArray[Any]]:  # fmt: skip
    """softmax(q kᵀ scale + mask) v, and the logarithm of each query's sum of exponentials.

    mask: booleans, True takes part; or floats, which are added. causal: query i sees keys up to i.
    A query that sees no key gives 0, and inf.
    """
    work = 2 * _lead(q, k, v, mask) * q.shape[-2] * k.shape[-2] * (q.shape[-1] + v.shape[-1])
    found: tuple[NDArray[Any], NDArray[Any]] = table.call(
        "attention", q.dtype, work, q, k, v, mask, causal, scale
    )
    return found


def attention_pull(
    q: NDArray[Any], k: NDArray[Any], v: NDArray[Any], mask: NDArray[Any], lse: NDArray[Any],
    g: NDArray[Any], delta: NDArray[Any], causal: bool, scale: float,
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:  # fmt: skip
    """Cotangents of q, k and v, from that of the result; delta: Σ g · result, less that of lse."""
    work = 5 * _lead(q, k, v, mask) * q.shape[-2] * k.shape[-2] * (q.shape[-1] + v.shape[-1])
    found: tuple[NDArray[Any], NDArray[Any], NDArray[Any]] = table.call(
        "attention_pull", q.dtype, work, q, k, v, mask, lse, g, delta, causal, scale
    )
    return found


def _lead(*operands: NDArray[Any]) -> int:
    return int(np.prod(np.broadcast_shapes(*[a.shape[:-2] for a in operands]), dtype=np.int64))


def _scores(
    q: NDArray[Any], k: NDArray[Any], mask: NDArray[Any], causal: bool, scale: float
) -> NDArray[Any]:
    scores = (q * q.dtype.type(scale)) @ np.swapaxes(k, -1, -2)
    if mask.dtype == np.bool_:
        scores = np.where(mask, scores, scores.dtype.type(-np.inf))
    else:
        scores = scores + mask
    if causal:
        scores = np.where(np.tri(*scores.shape[-2:], dtype=np.bool_), scores, -np.inf)
    return scores.astype(q.dtype, copy=False)


def plain_attention(
    q: NDArray[Any], k: NDArray[Any], v: NDArray[Any], mask: NDArray[Any], causal: bool,
    scale: float,
) -> tuple[NDArray[Any], NDArray[Any]]:  # fmt: skip
    """See `attention`."""
    scores = _scores(q, k, mask, causal, scale)
    top = np.max(scores, -1, keepdims=True, initial=-np.inf)
    top[top == -np.inf] = 0
    with np.errstate(invalid="ignore", divide="ignore"):
        weights = np.exp(scores - top)
        total = np.sum(weights, -1, keepdims=True)
        lse = np.where(total == 0, q.dtype.type(np.inf), np.log(total) + top)[..., 0]
        out = (weights @ v) / np.where(total == 0, total.dtype.type(1), total)
    lead = np.broadcast_shapes(out.shape[:-2], lse.shape[:-1])
    return out, np.ascontiguousarray(np.broadcast_to(lse, (*lead, lse.shape[-1])))


def plain_attention_pull(
    q: NDArray[Any], k: NDArray[Any], v: NDArray[Any], mask: NDArray[Any], lse: NDArray[Any],
    g: NDArray[Any], delta: NDArray[Any], causal: bool, scale: float,
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:  # fmt: skip
    """See `attention_pull`."""
    weights = np.exp(_scores(q, k, mask, causal, scale) - lse[..., None])
    slopes = weights * (g @ np.swapaxes(v, -1, -2) - delta[..., None])
    factor = q.dtype.type(scale)
    return (
        reduced(slopes @ k, q.shape) * factor,
        reduced(np.swapaxes(slopes, -1, -2) @ q, k.shape) * factor,
        reduced(np.swapaxes(weights, -1, -2) @ g, v.shape),
    )


def reduced(x: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    """x, summed over the axes along which an operand of that shape was repeated."""
    extra = x.ndim - len(shape)
    axes = tuple(range(extra)) + tuple(
        [i + extra for i, n in enumerate(shape) if n == 1 and x.shape[i + extra] != 1]
    )
    return np.add.reduce(x, axes, keepdims=False).reshape(shape) if axes else x
