"""Transformer layers: attention and a feed-forward network, each with a residual and a norm."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs

import funct.array as xp
from funct import ops, random
from funct.errors import ArgumentError
from funct.nn import functional
from funct.nn.attention import MultiheadAttention
from funct.nn.dropout import Dropout
from funct.nn.functional.arguments import needed_key
from funct.nn.linear import Linear
from funct.nn.module import Module, needs_key, static
from funct.nn.normalization import LayerNorm

__all__ = [
    "TransformerDecoder", "TransformerDecoderLayer", "TransformerEncoder",
    "TransformerEncoderLayer",
]  # fmt: skip

_ACTIVATIONS: dict[str, Callable[[Any], Any]] = {"relu": ops.relu, "gelu": functional.gelu}


def _activation(name: str, given: Any) -> Callable[[Any], Any]:
    if callable(given):
        return given
    if given not in _ACTIVATIONS:
        raise ArgumentError(
            f"{name}: activation must be 'relu', 'gelu' or a function, got {given!r}"
        )
    return _ACTIVATIONS[given]


class _Layer(Module):
    """What both layers share: the order of norm and residual, the keys of the dropouts."""

    def _keys(self, key: Any, count: int) -> list[Any]:
        if not needs_key(self):
            return [None] * count
        return list(random.split(needed_key(type(self).__name__, key), count))

    def _add(self, x: Any, part: Callable[[Any], Any], norm: Any, dropout: Any, key: Any) -> Any:
        """x + dropout(part(x)), normalised before or after."""
        first: bool = self.norm_first  # type: ignore[attr-defined]
        y = dropout(part(norm(x) if first else x), key=key)
        return x + y if first else norm(x + y)

    def _forward(self, x: Any, key: Any) -> Any:
        layer: Any = self
        return layer.linear2(layer.dropout(layer.activation(layer.linear1(x)), key=key))


class TransformerEncoderLayer(_Layer):
    """Self-attention, then a feed-forward network, each with a residual and a layer norm.

    Args: d_model: E. nhead: heads of the attention. dim_feedforward: width of the network.
    dropout: of both results, of the attention's weights and in the network, in training.
    activation: "relu", "gelu" or a function. layer_norm_eps: of the norms. batch_first: (N, L, E)
    instead of (L, N, E). norm_first: norms before instead of after. bias: False leaves all out.
    key: a random key for the initial values, torch's. dtype: of the parameters.
    Raises: ArgumentError: when nhead does not divide d_model, or the activation is unknown.
    Example:
        >>> import funct as ft, funct.array as xp
        >>> from funct import nn
        >>> layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, key=ft.random.key(0))
        >>> nn.eval_mode(layer)(xp.ones((3, 5, 8), dtype=xp.float32)).shape
        (3, 5, 8)

    Source: Vaswani et al. 2017, arXiv:1706.03762; torch.nn.TransformerEncoderLayer.
    """

    norm_first: bool = static()
    activation: Callable[[Any], Any] = static()
    self_attn: MultiheadAttention = attrs.field()
    linear1: Linear = attrs.field()
    dropout: Dropout = attrs.field()
    linear2: Linear = attrs.field()
    norm1: LayerNorm = attrs.field()
    norm2: LayerNorm = attrs.field()
    dropout1: Dropout = attrs.field()
    dropout2: Dropout = attrs.field()

    def __init__(
        self, d_model: int, nhead: int, dim_feedforward: int = 2048, dropout: float = 0.1,
        activation: Any = "relu", layer_norm_eps: float = 1e-5, batch_first: bool = False,
        norm_first: bool = False, bias: bool = True, *, key: Any, dtype: Any = xp.float32,
    ) -> None:  # fmt: skip
        function = _activation("TransformerEncoderLayer", activation)
        keys = random.split(key, 3)
        norms = [LayerNorm(d_model, layer_norm_eps, bias=bias, dtype=dtype) for _ in range(2)]
        attend = MultiheadAttention(
            d_model, nhead, dropout, bias, batch_first=batch_first, key=keys[0], dtype=dtype
        )
        wide = Linear(d_model, dim_feedforward, bias=bias, key=keys[1], dtype=dtype)
        back = Linear(dim_feedforward, d_model, bias=bias, key=keys[2], dtype=dtype)
        drops = [Dropout(dropout) for _ in range(3)]  # type: ignore[call-arg]
        self.__attrs_init__(norm_first, function, attend, wide, drops[0], back, *norms, *drops[1:])

    def __call__(
        self, src: Any, src_mask: Any = None, src_key_padding_mask: Any = None,
        is_causal: bool = False, *, key: Any = None,
    ) -> Any:  # fmt: skip
        """The layer's output, of src's shape; masks: see `functional.multi_head_attention_forward`.

        Raises: MissingKeyError: when key is missing in training and dropout is positive.
        """
        k = self._keys(key, 4)

        def attended(x: Any) -> Any:
            return self.self_attn(
                x, x, x, src_key_padding_mask, False, src_mask, is_causal=is_causal,
                dropout_key=k[0],
            )[0]  # fmt: skip

        x = self._add(src, attended, self.norm1, self.dropout1, k[1])
        return self._add(x, lambda v: self._forward(v, k[2]), self.norm2, self.dropout2, k[3])


class TransformerDecoderLayer(_Layer):
    """Self-attention, attention to a memory, then a feed-forward network.

    Args: as `TransformerEncoderLayer`.
    Example:
        >>> import funct as ft, funct.array as xp
        >>> from funct import nn
        >>> layer = nn.TransformerDecoderLayer(8, 2, dim_feedforward=16, key=ft.random.key(0))
        >>> target = xp.ones((4, 2, 8), dtype=xp.float32)
        >>> memory = xp.ones((6, 2, 8), dtype=xp.float32)
        >>> nn.eval_mode(layer)(target, memory).shape  # (L, N, E)
        (4, 2, 8)

    Source: Vaswani et al. 2017, arXiv:1706.03762; torch.nn.TransformerDecoderLayer.
    """

    norm_first: bool = static()
    activation: Callable[[Any], Any] = static()
    self_attn: MultiheadAttention = attrs.field()
    multihead_attn: MultiheadAttention = attrs.field()
    linear1: Linear = attrs.field()
    dropout: Dropout = attrs.field()
    linear2: Linear = attrs.field()
    norm1: LayerNorm = attrs.field()
    norm2: LayerNorm = attrs.field()
    norm3: LayerNorm = attrs.field()
    dropout1: Dropout = attrs.field()
    dropout2: Dropout = attrs.field()
    dropout3: Dropout = attrs.field()

    def __init__(
        self, d_model: int, nhead: int, dim_feedforward: int = 2048, dropout: float = 0.1,
        activation: Any = "relu", layer_norm_eps: float = 1e-5, batch_first: bool = False,
        norm_first: bool = False, bias: bool = True, *, key: Any, dtype: Any = xp.float32,
    ) -> None:  # fmt: skip
        function = _activation("TransformerDecoderLayer", activation)
        keys = random.split(key, 4)
        norms = [LayerNorm(d_model, layer_norm_eps, bias=bias, dtype=dtype) for _ in range(3)]
        attend = [
            MultiheadAttention(
                d_model, nhead, dropout, bias, batch_first=batch_first, key=k, dtype=dtype
            )
            for k in (keys[0], keys[1])
        ]
        wide = Linear(d_model, dim_feedforward, bias=bias, key=keys[2], dtype=dtype)
        back = Linear(dim_feedforward, d_model, bias=bias, key=keys[3], dtype=dtype)
        drops = [Dropout(dropout) for _ in range(4)]  # type: ignore[call-arg]
        self.__attrs_init__(norm_first, function, *attend, wide, drops[0], back, *norms, *drops[1:])

    def __call__(
        self, tgt: Any, memory: Any, tgt_mask: Any = None, memory_mask: Any = None,
        tgt_key_padding_mask: Any = None, memory_key_padding_mask: Any = None,
        tgt_is_causal: bool = False, memory_is_causal: bool = False, *, key: Any = None,
    ) -> Any:  # fmt: skip
        """The layer's output, of tgt's shape.

        Raises: MissingKeyError: when key is missing in training and dropout is positive.
        """
        k = self._keys(key, 6)

        def own(x: Any) -> Any:
            return self.self_attn(
                x, x, x, tgt_key_padding_mask, False, tgt_mask, is_causal=tgt_is_causal,
                dropout_key=k[0],
            )[0]  # fmt: skip

        def others(x: Any) -> Any:
            return self.multihead_attn(
                x, memory, memory, memory_key_padding_mask, False, memory_mask,
                is_causal=memory_is_causal, dropout_key=k[1],
            )[0]  # fmt: skip

        x = self._add(tgt, own, self.norm1, self.dropout1, k[2])
        x = self._add(x, others, self.norm2, self.dropout2, k[3])
        return self._add(x, lambda v: self._forward(v, k[4]), self.norm3, self.dropout3, k[5])


class _Stack(Module):
    """Equal layers one after the other, and a norm at the end."""

    layers: tuple[Any, ...]
    norm: Any = None

    def _start(self, layer: Any, num_layers: int, norm: Any) -> None:
        if num_layers < 1:
            raise ArgumentError(
                f"{type(self).__name__}: num_layers must be positive, got {num_layers}"
            )
        self.__attrs_init__((layer,) * num_layers, norm)

    def _through(self, x: Any, key: Any, call: Callable[[Any, Any, Any], Any]) -> Any:
        for i, layer in enumerate(self.layers):
            x = call(layer, x, None if key is None else random.fold_in(key, i))
        return x if self.norm is None else self.norm(x)


class TransformerEncoder(_Stack):
    """num_layers copies of an encoder layer, one after the other.

    Args: encoder_layer: what is copied, values included, as in torch. norm: a layer for the end.
    Raises: ArgumentError: when num_layers is not positive.
    Example:
        >>> import funct as ft, funct.array as xp
        >>> from funct import nn
        >>> layer = nn.TransformerEncoderLayer(8, 2, dim_feedforward=16, key=ft.random.key(0))
        >>> model = nn.eval_mode(nn.TransformerEncoder(layer, 3))
        >>> model(xp.ones((4, 2, 8), dtype=xp.float32)).shape  # (L, N, E)
        (4, 2, 8)

    Source: torch.nn.TransformerEncoder.
    """

    def __init__(self, encoder_layer: Any, num_layers: int, norm: Any = None) -> None:
        self._start(encoder_layer, num_layers, norm)

    def __call__(
        self, src: Any, mask: Any = None, src_key_padding_mask: Any = None,
        is_causal: bool = False, *, key: Any = None,
    ) -> Any:  # fmt: skip
        """The last layer's output."""
        return self._through(
            src, key, lambda m, x, k: m(x, mask, src_key_padding_mask, is_causal, key=k)
        )


class TransformerDecoder(_Stack):
    """num_layers copies of a decoder layer, one after the other.

    Args: decoder_layer, num_layers, norm: as `TransformerEncoder`.
    Example:
        >>> import funct as ft, funct.array as xp
        >>> from funct import nn
        >>> layer = nn.TransformerDecoderLayer(8, 2, dim_feedforward=16, key=ft.random.key(0))
        >>> model = nn.eval_mode(nn.TransformerDecoder(layer, 3))
        >>> target = xp.ones((4, 2, 8), dtype=xp.float32)
        >>> memory = xp.ones((6, 2, 8), dtype=xp.float32)
        >>> model(target, memory).shape  # (L, N, E)
        (4, 2, 8)

    Source: torch.nn.TransformerDecoder.
    """

    def __init__(self, decoder_layer: Any, num_layers: int, norm: Any = None) -> None:
        self._start(decoder_layer, num_layers, norm)

    def __call__(
        self, tgt: Any, memory: Any, tgt_mask: Any = None, memory_mask: Any = None,
        tgt_key_padding_mask: Any = None, memory_key_padding_mask: Any = None,
        tgt_is_causal: bool = False, memory_is_causal: bool = False, *, key: Any = None,
    ) -> Any:  # fmt: skip
        """The last layer's output."""
        masks = (
            tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask, tgt_is_causal,
            memory_is_causal,
        )  # fmt: skip
        return self._through(tgt, key, lambda m, x, k: m(x, memory, *masks, key=k))
