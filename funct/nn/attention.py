"""Attention layers: MultiheadAttention."""

from __future__ import annotations

from typing import Any

import attrs

import funct.array as xp
from funct import random
from funct.array import Tensor
from funct.errors import ArgumentError
from funct.nn import functional, init
from funct.nn.functional.arguments import needed_key, probability, shape_of
from funct.nn.linear import Linear
from funct.nn.module import Module, static

__all__ = ["MultiheadAttention"]


class MultiheadAttention(Module):
    """Let queries attend to keys in num_heads parts of the features.

    Args: embed_dim: E, a multiple of num_heads. dropout: of the weights, in training. bias,
    add_bias_kv, add_zero_attn, kdim, vdim: as in torch. batch_first: (N, L, E) instead of
    (L, N, E). key: a random key for the initial values, torch's: Xavier-uniform projections, biases
    0. dtype: of the parameters.
    Raises: ArgumentError: when num_heads does not divide embed_dim, or dropout is outside [0, 1].
    Example:
        >>> import funct as ft, funct.array as xp
        >>> from funct import nn
        >>> layer = nn.MultiheadAttention(8, 2, batch_first=True, key=ft.random.key(0))
        >>> x = xp.ones((3, 5, 8), dtype=xp.float32)
        >>> y, weights = layer(x, x, x)
        >>> y.shape, weights.shape
        ((3, 5, 8), (3, 5, 5))

    Source: Vaswani et al. 2017, arXiv:1706.03762; torch.nn.MultiheadAttention.
    """

    embed_dim: int = static()
    num_heads: int = static()
    dropout: float = static()
    add_zero_attn: bool = static()
    batch_first: bool = static()
    training: bool = static()
    in_proj_weight: Tensor | None
    q_proj_weight: Tensor | None
    k_proj_weight: Tensor | None
    v_proj_weight: Tensor | None
    in_proj_bias: Tensor | None
    bias_k: Tensor | None
    bias_v: Tensor | None
    out_proj: Linear = attrs.field()

    def __init__(
        self, embed_dim: int, num_heads: int, dropout: float = 0.0, bias: bool = True,
        add_bias_kv: bool = False, add_zero_attn: bool = False, kdim: int | None = None,
        vdim: int | None = None, batch_first: bool = False, *, key: Any, dtype: Any = xp.float32,
    ) -> None:  # fmt: skip
        name, e = "MultiheadAttention", embed_dim
        if num_heads < 1 or e % num_heads:
            raise ArgumentError(f"{name}: num_heads must divide embed_dim={e}, got {num_heads}")
        probability(name, dropout)
        keys = random.split(key, 6)
        widths = (e, e if kdim is None else kdim, e if vdim is None else vdim)
        whole: Any = None
        parts: list[Any] = [None, None, None]
        if widths == (e, e, e):
            whole = init.xavier_uniform(keys[0], (3 * e, e), dtype=dtype)
        else:
            parts = [
                init.xavier_uniform(keys[i], (e, n), dtype=dtype) for i, n in enumerate(widths)
            ]
        more: list[Any] = [None, None]
        if add_bias_kv:
            more = [init.xavier_normal(keys[3 + i], (1, 1, e), dtype=dtype) for i in range(2)]
        last = Linear(e, e, key=keys[5], bias=bias, dtype=dtype)
        if bias:
            last = last.evolve(bias=xp.zeros((e,), dtype=dtype))
        shift = xp.zeros((3 * e,), dtype=dtype) if bias else None
        self.__attrs_init__(
            e, num_heads, float(dropout), add_zero_attn, batch_first, True, whole, *parts, shift,
            *more, last,
        )  # fmt: skip

    @property
    def draws(self) -> bool:
        """Whether a call needs `dropout_key`."""
        return self.training and self.dropout > 0.0

    def __call__(
        self, query: Any, key: Any, value: Any, key_padding_mask: Any = None,
        need_weights: bool = True, attn_mask: Any = None, average_attn_weights: bool = True,
        is_causal: bool = False, *, dropout_key: Any = None,
    ) -> tuple[Any, Any]:  # fmt: skip
        """(y, weights): see `functional.multi_head_attention_forward`.

        Raises: MissingKeyError: when dropout_key is missing in training and dropout is positive.
        """
        if self.draws:
            needed_key("MultiheadAttention", dropout_key, "dropout_key")
        swap = self.batch_first and len(shape_of(query, "query")) == 3
        if swap:
            query, key, value = (xp.moveaxis(v, 0, 1) for v in (query, key, value))
        y, weights = functional.multi_head_attention_forward(
            query, key, value, self.embed_dim, self.num_heads, self.in_proj_weight,
            self.in_proj_bias, self.bias_k, self.bias_v, self.add_zero_attn, self.dropout,
            self.out_proj.weight, self.out_proj.bias, self.training, key_padding_mask, need_weights,
            attn_mask, self.in_proj_weight is None, self.q_proj_weight, self.k_proj_weight,
            self.v_proj_weight, None, None, average_attn_weights, is_causal,
            dropout_key=dropout_key,
        )  # fmt: skip
        return (xp.moveaxis(y, 0, 1) if swap else y), weights
