"""Attention: weighted means of values, by how well queries match keys."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

import funct.array as xp
from funct import ops, random
from funct.core import FLOATING
from funct.errors import ArgumentError, ShapeError
from funct.nn.functional.arguments import needed_key, probability
from funct.nn.functional.dropout import dropout
from funct.nn.functional.linear import linear
from funct.ops.broadcasting import broadcast_shapes
from funct.ops.fast import wrap

__all__ = ["multi_head_attention_forward", "scaled_dot_product_attention"]

_ALWAYS, _NO_SEED = wrap(np.ones((1, 1), np.bool_)), wrap(np.zeros((1, 2), np.uint32))


def scaled_dot_product_attention(
    query: Any, key: Any, value: Any, attn_mask: Any = None, dropout_p: float = 0.0,
    is_causal: bool = False, scale: float | None = None, enable_gqa: bool = False, *,
    dropout_key: Any = None,
) -> Any:  # fmt: skip
    """Compute softmax(Q Kᵀ · scale + mask) V.

    Args: query: shape (*, H, L, E). key: (*, H, S, E). value: (*, H, S, V). attn_mask: broadcasts
    to (*, H, L, S): booleans, True takes part, or numbers that are added. dropout_p: of the
    weights; it is applied whenever it is positive, and then needs dropout_key. is_causal: query i
    sees the keys up to i. scale: None is 1 / sqrt(E). enable_gqa: key and value may have fewer
    heads, which divide H; each serves the queries of a group.
    Returns: shape (*, H, L, V). A query that sees no key gives 0.
    Raises: ShapeError: when the shapes do not fit. ArgumentError: when both attn_mask and is_causal
    are given. MissingKeyError: when dropout_key is missing.
    Example:
        >>> import funct.array as xp
        >>> from funct.nn import functional as F
        >>> q, v = xp.zeros((1, 2, 4)), xp.asarray([[[1.0], [3.0]]])
        >>> F.scaled_dot_product_attention(q, q, v, is_causal=True).tolist()
        [[[1.0], [2.0]]]

    Source: Vaswani et al. 2017, arXiv:1706.03762; torch.nn.functional.scaled_dot_product_attention.
    """
    name = "scaled_dot_product_attention"
    if attn_mask is not None and is_causal:
        raise ArgumentError(f"{name}: attn_mask must be None with is_causal=True, got an array")
    if min(len(query.shape), len(key.shape), len(value.shape)) < 2:
        raise ShapeError(
            f"{name}: query, key and value need at least two axes, got {query.shape}, {key.shape} "
            f"and {value.shape}"
        )
    if query.shape[-1] != key.shape[-1] or key.shape[-2] != value.shape[-2]:
        raise ShapeError(
            f"{name}: query and key must agree in the last axis, key and value in the one before, "
            f"got {query.shape}, {key.shape} and {value.shape}"
        )
    factor = 1.0 / math.sqrt(query.shape[-1]) if scale is None else scale
    fused = probability(name, dropout_p) < 1.0 and isinstance(factor, int | float)
    fused = fused and (not enable_gqa or key.shape[-3] == value.shape[-3])
    if fused and _is_fused(query, key, value, attn_mask):
        drop = (dropout_p, needed_key(name, dropout_key, "dropout_key")) if dropout_p else None
        return _fused(name, query, key, value, attn_mask, is_causal, factor, enable_gqa, drop)
    if enable_gqa:
        key, value = (_shared_heads(name, v, query) for v in (key, value))
    scores = (query * factor) @ key.mT  # (*, H, L, S)
    if is_causal:
        attn_mask = xp.tril(xp.ones(scores.shape[-2:], dtype=xp.bool))
    weights = _weights(scores, attn_mask)
    if dropout_p > 0.0:
        weights = dropout(weights, dropout_p, key=dropout_key)
    return weights @ value


def _is_fused(query: Any, key: Any, value: Any, mask: Any) -> bool:
    """Whether `ops.attention` serves: operands of one floating dtype."""
    one = query.dtype in FLOATING and query.dtype == key.dtype == value.dtype
    return one and (mask is None or mask.dtype in (xp.bool, query.dtype))


def _fused(
    name: str, query: Any, key: Any, value: Any, mask: Any, causal: bool, factor: float,
    grouped: bool, drop: tuple[float, Any] | None,
) -> Any:  # fmt: skip
    """Attention without the matrix of weights; heads that share keys stay where they are."""
    heads = None
    if grouped and query.shape[-3] != key.shape[-3]:
        heads, own = query.shape[-3], key.shape[-3]
        if heads % own:
            raise ShapeError(f"{name}: the heads of key and value must divide {heads}, got {own}")
        query = xp.reshape(query, (*query.shape[:-3], own, heads // own, *query.shape[-2:]))
        key, value = xp.expand_dims(key, -3), xp.expand_dims(value, -3)
        if mask is not None and len(mask.shape) > 2:
            n = mask.shape[-3]
            split = (1, 1) if n == 1 else (own, heads // own)
            mask = xp.reshape(mask, (*mask.shape[:-3], *split, *mask.shape[-2:]))
    mask = _ALWAYS if mask is None else mask
    if len(mask.shape) < 2:
        mask = xp.reshape(mask, ((1,) * (2 - len(mask.shape)) + tuple(mask.shape)))
    rate, seed = 0.0, _NO_SEED
    if drop is not None:  # every head draws a seed of its own
        lead = broadcast_shapes(*[x.shape[:-2] for x in (query, key, value, mask)])
        rate, seed = float(drop[0]), random.bits(drop[1], (*lead, 1, 2))
    out, _ = ops.attention(query, key, value, mask, seed, causal, float(factor), rate)
    return out if heads is None else xp.reshape(out, (*out.shape[:-4], heads, *out.shape[-2:]))


def _shared_heads(name: str, x: Any, query: Any) -> Any:
    heads, own = query.shape[-3], x.shape[-3]
    if heads % own:
        raise ShapeError(f"{name}: the heads of key and value must divide {heads}, got {own}")
    if own == heads:
        return x
    *lead, _, s, e = x.shape
    wide = ops.broadcast_to(xp.expand_dims(x, -3), (*lead, own, heads // own, s, e))
    return xp.reshape(wide, (*lead, heads, s, e))


def _weights(scores: Any, mask: Any) -> Any:
    """softmax over the last axis, with 0 in a row that is masked as a whole."""
    if mask is not None:
        boolean = mask.dtype == xp.bool
        scores = ops.where(mask, scores, -xp.inf) if boolean else scores + mask
    last = (len(scores.shape) - 1,)
    top = ops.stop_gradient(ops.reduce_max(scores, last, True))
    e = xp.exp(scores - ops.where(ops.equal(top, -xp.inf), 0.0, top))
    total = ops.reduce_sum(e, last, True)
    return e / (total if mask is None else ops.where(ops.equal(total, 0), 1.0, total))


def multi_head_attention_forward(
    query: Any, key: Any, value: Any, embed_dim_to_check: int, num_heads: int,
    in_proj_weight: Any, in_proj_bias: Any, bias_k: Any, bias_v: Any, add_zero_attn: bool,
    dropout_p: float, out_proj_weight: Any, out_proj_bias: Any, training: bool = True,
    key_padding_mask: Any = None, need_weights: bool = True, attn_mask: Any = None,
    use_separate_proj_weight: bool = False, q_proj_weight: Any = None, k_proj_weight: Any = None,
    v_proj_weight: Any = None, static_k: Any = None, static_v: Any = None,
    average_attn_weights: bool = True, is_causal: bool = False, *, dropout_key: Any = None,
) -> tuple[Any, Any]:  # fmt: skip
    """Project queries, keys and values, attend in num_heads parts of the features, and project.

    Args: query: shape (L, N, E) or (L, E). key, value: (S, N, E), with separate weights of their
    own widths. in_proj_weight: shape (3 E, E), the three projections; with
    use_separate_proj_weight q_proj_weight, k_proj_weight, v_proj_weight instead. in_proj_bias:
    shape (3 E,). bias_k, bias_v: shape (1, 1, E), one more key and value. add_zero_attn: one more
    of zeros. static_k, static_v: shape (N H, S, E / H), in place of the projected ones.
    key_padding_mask: shape (N, S) or (S,). attn_mask: (L, S) or (N H, L, S). In both, True does
    *not* take part, numbers are added. is_causal: a hint that attn_mask is causal; it needs one.
    average_attn_weights: mean over the heads. dropout_key: needed in training where dropout_p is
    positive.
    Returns: (y, weights): shapes (L, N, E) and (N, L, S), or (N, H, L, S) without averaging;
    weights are None without need_weights.
    Raises: ShapeError, ArgumentError: when arguments do not go together. MissingKeyError: when
    dropout_key is missing.
    Example:
        >>> import funct.array as xp
        >>> from funct.nn import functional as F
        >>> x = xp.asarray([[[1.0, 0.0]], [[0.0, 1.0]]])  # (L, N, E)
        >>> w_in, w_out = xp.concat([xp.eye(2)] * 3), xp.eye(2)
        >>> given = (w_in, None, None, None, False, 0.0, w_out, None)
        >>> y, weights = F.multi_head_attention_forward(x, x, x, 2, 1, *given)
        >>> y.shape, [round(v, 2) for v in xp.ravel(weights).tolist()]
        ((2, 1, 2), [0.67, 0.33, 0.33, 0.67])

    Source: Vaswani et al. 2017, arXiv:1706.03762; torch.nn.functional.multi_head_attention_forward.
    """
    name = "multi_head_attention_forward"
    single = len(query.shape) == 2
    if single:
        query, key, value = (xp.expand_dims(v, 1) for v in (query, key, value))
        key_padding_mask = None if key_padding_mask is None else key_padding_mask[None, :]
    length, lanes, width = query.shape
    if width != embed_dim_to_check or width % num_heads:
        raise ShapeError(
            f"{name}: query must have {embed_dim_to_check} features, a multiple of {num_heads} "
            f"heads, got {query.shape}"
        )
    if is_causal and attn_mask is None:
        raise ArgumentError(f"{name}: is_causal=True is a hint about attn_mask, which is None")
    each = (
        (q_proj_weight, k_proj_weight, v_proj_weight) if use_separate_proj_weight
        else [in_proj_weight[i * width : (i + 1) * width] for i in range(3)]
    )  # fmt: skip
    shifts = [
        None if in_proj_bias is None else in_proj_bias[i * width : (i + 1) * width]
        for i in range(3)
    ]
    q, k, v = (linear(x, w, b) for x, w, b in zip((query, key, value), each, shifts, strict=True))
    mask = _joined(name, attn_mask, key_padding_mask, lanes, num_heads, q.dtype)
    more = 0
    if bias_k is not None and bias_v is not None:
        k, v = (
            xp.concat([x, ops.broadcast_to(b, (1, lanes, width))], axis=0)
            for x, b in ((k, bias_k), (v, bias_v))
        )
        more += 1
    q = _heads(q, lanes, num_heads)
    k = _heads(k, lanes, num_heads) if static_k is None else _unmerged(static_k, lanes, num_heads)
    v = _heads(v, lanes, num_heads) if static_v is None else _unmerged(static_v, lanes, num_heads)
    if add_zero_attn:
        k, v = (
            xp.concat([x, xp.zeros((*x.shape[:2], 1, x.shape[3]), dtype=x.dtype)], axis=2)
            for x in (k, v)
        )
        more += 1
    if mask is not None and more:
        seen = xp.ones if mask.dtype == xp.bool else xp.zeros
        mask = xp.concat([mask, seen((*mask.shape[:-1], more), dtype=mask.dtype)], axis=-1)
    rate, shown = dropout_p if training else 0.0, None
    if need_weights:
        weights = _weights((q * (1.0 / math.sqrt(width // num_heads))) @ k.mT, mask)  # (N, H, L, S)
        weights = dropout(weights, rate, key=dropout_key) if rate > 0.0 else weights
        y = weights @ v
        shown = xp.mean(weights, axis=1) if average_attn_weights else weights
        shown = shown[0] if single else shown
    else:
        y = scaled_dot_product_attention(q, k, v, mask, rate, dropout_key=dropout_key)
    y = ops.permute_dims(y, (2, 0, 1, 3))  # (L, N, H, E / H)
    y = linear(xp.reshape(y, (length, lanes, width)), out_proj_weight, out_proj_bias)
    return y[:, 0] if single else y, shown


def _heads(x: Any, lanes: int, heads: int) -> Any:
    """(S, N, E) to (N, H, S, E / H)."""
    s, _, width = x.shape
    return ops.permute_dims(xp.reshape(x, (s, lanes, heads, width // heads)), (1, 2, 0, 3))


def _unmerged(x: Any, lanes: int, heads: int) -> Any:
    """(N H, S, E / H) to (N, H, S, E / H)."""
    return xp.reshape(x, (lanes, heads, *x.shape[1:]))


def _joined(name: str, attn_mask: Any, padding: Any, lanes: int, heads: int, dtype: Any) -> Any:
    """Both masks as one for scores (N, H, L, S), or None: where both are booleans, what takes part,
    else what is added.
    """
    given = []
    if attn_mask is not None:
        if len(attn_mask.shape) not in (2, 3):
            raise ShapeError(
                f"{name}: attn_mask must have shape (L, S) or (N H, L, S), got {attn_mask.shape}"
            )
        flat = len(attn_mask.shape) == 2
        given.append(attn_mask[None, None] if flat else _unmerged(attn_mask, lanes, heads))
    if padding is not None:
        given.append(padding[:, None, None, :])
    if not given:
        return None
    if all(m.dtype == xp.bool for m in given):
        return ops.logical_not(functools.reduce(ops.logical_or, given))
    return functools.reduce(ops.add, [_as_numbers(m, dtype) for m in given])


def _as_numbers(mask: Any, dtype: Any) -> Any:
    if mask.dtype != xp.bool:
        return xp.astype(mask, dtype, copy=False)
    return ops.where(mask, wrap(np.asarray(-np.inf, dtype)), wrap(np.zeros((), dtype)))
