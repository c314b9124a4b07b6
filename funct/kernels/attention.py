"""Attention and its adjoint in plain NumPy, through the matrix of all weights.

Shapes: q (*, L, E), k (*, S, E), v (*, S, V), mask broadcasts to (*, L, S); the leading axes
broadcast. `attention` and `attention_pull` take the best row of the kernel table.
"""

from __future__ import annotations

import functools
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from funct.kernels import table

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "KEY_STEP", "LAST_SHIFT", "MIXES", "QUERY_STEP", "attention", "attention_pull", "kept",
    "mixed", "plain_attention", "plain_attention_pull", "reduced", "threshold",
]  # fmt: skip

QUERY_STEP, KEY_STEP = 0x9E3779B9, 0x85EBCA6B  # odd: positions stay apart
MIXES, LAST_SHIFT = ((16, 0x7FEB352D), (15, 0x846CA68B)), 16


def attention(
    q: NDArray[Any], k: NDArray[Any], v: NDArray[Any], mask: NDArray[Any], seed: NDArray[Any],
    causal: bool, scale: float, rate: float,
) -> tuple[NDArray[Any], NDArray[Any]]:  # fmt: skip
    """softmax(q kᵀ scale + mask) v, and the logarithm of each query's sum of exponentials.

    mask: booleans, True takes part; or floats, which are added. causal: query i sees keys up to i.
    A query that sees no key gives 0, and inf. rate: the share of the weights that become 0, the
    others growing by 1 / (1 - rate); seed, uint32 (*, 1, 2), says which (`kept`).
    """
    work = 2 * _lead(q, k, v, mask, seed) * q.shape[-2] * k.shape[-2] * (q.shape[-1] + v.shape[-1])
    found: tuple[NDArray[Any], NDArray[Any]] = table.call(
        "attention", q.dtype, work, q, k, v, mask, seed, causal, scale, rate
    )
    return found


def attention_pull(
    q: NDArray[Any], k: NDArray[Any], v: NDArray[Any], mask: NDArray[Any], seed: NDArray[Any],
    lse: NDArray[Any], g: NDArray[Any], delta: NDArray[Any], causal: bool, scale: float,
    rate: float,
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:  # fmt: skip
    """Cotangents of q, k and v, from that of the result; delta: Σ g · result, less that of lse."""
    work = 5 * _lead(q, k, v, mask, seed) * q.shape[-2] * k.shape[-2] * (q.shape[-1] + v.shape[-1])
    found: tuple[NDArray[Any], NDArray[Any], NDArray[Any]] = table.call(
        "attention_pull", q.dtype, work, q, k, v, mask, seed, lse, g, delta, causal, scale, rate
    )
    return found


def mixed(x: NDArray[Any]) -> NDArray[Any]:
    """uint32 to uint32, one to one: each bit depends on all bits.

    Source: C. Wellons, "Prospecting for hash functions", 2018: `lowbias32`.
    """
    for shift, factor in MIXES:
        x = (x ^ (x >> np.uint32(shift))) * np.uint32(factor)
    return x ^ (x >> np.uint32(LAST_SHIFT))


def threshold(rate: float) -> int:
    """The uint32 below which random bits drop."""
    return min(round(rate * 2**32), 2**32 - 1)


def kept(seed: NDArray[Any], queries: int, keys: int, rate: float) -> NDArray[Any]:
    """Which keys a query keeps, (*, queries, keys): bits of a seed and of the two positions."""
    i = np.arange(queries, dtype=np.uint32)[:, None] * np.uint32(QUERY_STEP)
    j = np.arange(keys, dtype=np.uint32) * np.uint32(KEY_STEP)
    bits = mixed(mixed(i + seed[..., :1]) ^ mixed(j + seed[..., 1:]))
    return bits >= np.uint32(threshold(rate))


def _dropped(
    weights: Any, seed: NDArray[Any], rate: float, shape: tuple[int, ...] = ()
) -> NDArray[Any]:
    if not threshold(rate):
        return weights
    queries, keys = shape or weights.shape[-2:]
    stays = kept(seed, queries, keys, rate)
    return np.where(stays, weights * weights.dtype.type(1 / (1 - rate)), weights.dtype.type(0))


def _lead(*operands: NDArray[Any]) -> int:
    return _matrices(*[a.shape[:-2] for a in operands])


@functools.lru_cache(256)
def _matrices(*leads: tuple[int, ...]) -> int:
    return prod(np.broadcast_shapes(*leads))


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
    q: NDArray[Any], k: NDArray[Any], v: NDArray[Any], mask: NDArray[Any], seed: NDArray[Any],
    causal: bool, scale: float, rate: float,
) -> tuple[NDArray[Any], NDArray[Any]]:  # fmt: skip
    """See `attention`."""
    scores = _scores(q, k, mask, causal, scale)
    top = np.max(scores, -1, keepdims=True, initial=-np.inf)
    top[top == -np.inf] = 0
    with np.errstate(invalid="ignore", divide="ignore"):
        weights = np.exp(scores - top)
        total = np.sum(weights, -1, keepdims=True)
        lse = np.where(total == 0, q.dtype.type(np.inf), np.log(total) + top)[..., 0]
        left = _dropped(weights, seed, rate)
        out = (left @ v) / np.where(total == 0, total.dtype.type(1), total)
    lead = np.broadcast_shapes(out.shape[:-2], lse.shape[:-1], seed.shape[:-2])
    out = np.broadcast_to(out, (*lead, *out.shape[-2:]))
    return np.ascontiguousarray(out), np.ascontiguousarray(
        np.broadcast_to(lse, (*lead, lse.shape[-1]))
    )


def plain_attention_pull(
    q: NDArray[Any], k: NDArray[Any], v: NDArray[Any], mask: NDArray[Any], seed: NDArray[Any],
    lse: NDArray[Any], g: NDArray[Any], delta: NDArray[Any], causal: bool, scale: float,
    rate: float,
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:  # fmt: skip
    """See `attention_pull`."""
    weights = np.exp(_scores(q, k, mask, causal, scale) - lse[..., None])
    factor = _dropped(weights.dtype.type(1), seed, rate, weights.shape[-2:])
    slopes = weights * (factor * (g @ np.swapaxes(v, -1, -2)) - delta[..., None])
    weights = weights * factor
    factor = q.dtype.type(scale)
    return (
        reduced(slopes @ k, q.shape) * factor,
        reduced(np.swapaxes(slopes, -1, -2) @ q, k.shape) * factor,
        reduced(np.swapaxes(weights, -1, -2) @ g, v.shape),
    )


def reduced(x: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    """x, summed over the axes along which an operand of that shape was repeated."""
    if x.shape == shape:
        return x
    extra = x.ndim - len(shape)
    axes = tuple(range(extra)) + tuple(
        [i + extra for i, n in enumerate(shape) if n == 1 and x.shape[i + extra] != 1]
    )
    return np.add.reduce(x, axes, keepdims=False).reshape(shape) if axes else x
