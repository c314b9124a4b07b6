"""Layers that hold a table: Embedding, EmbeddingBag."""

from __future__ import annotations

from typing import Any

import funct.array as xp
from funct.array import Tensor
from funct.errors import ArgumentError, ShapeError
from funct.nn import functional, init
from funct.nn.module import Module, static

__all__ = ["Embedding", "EmbeddingBag"]


def _table(
    name: str, n: int, width: int, padding_idx: int | None, given: Any, key: Any, dtype: Any
) -> Any:
    """Standard normal rows, 0 at padding_idx; or those given."""
    if given is not None:
        if tuple(given.shape) != (n, width):
            raise ShapeError(f"{name}: _weight must have shape {(n, width)}, got {given.shape}")
        return given
    rows = init.normal(key, (n, width), dtype=dtype)
    if padding_idx is None:
        return rows
    return xp.where(xp.expand_dims(xp.arange(n) == padding_idx, 1), 0.0, rows)


def _position(name: str, padding_idx: int | None, n: int) -> int | None:
    if padding_idx is None:
        return None
    if not -n <= padding_idx < n:
        raise ArgumentError(f"{name}: padding_idx must be within {n} rows, got {padding_idx}")
    return padding_idx % n


class Embedding(Module):
    """Give each index its row of a learned table.

    Args: num_embeddings, embedding_dim: V and D. padding_idx: a row that is 0 at first and never
    learns. max_norm, norm_type: as in `functional.embedding`. scale_grad_by_freq, sparse: must be
    False. _weight: the table itself. _freeze: must be False; `nn.partition` says what learns. key:
    a random key for the initial values, standard normal; not needed with _weight. dtype: of them.
    Raises: ArgumentError: when a parameter is out of range.
    Example:
        >>> import funct as ft, funct.array as xp
        >>> from funct import nn
        >>> layer = nn.Embedding(10, 3, key=ft.random.key(0))
        >>> layer(xp.asarray([[1, 2], [3, 4]])).shape
        (2, 2, 3)

    Source: torch.nn.Embedding.
    """

    num_embeddings: int = static()
    embedding_dim: int = static()
    padding_idx: int | None = static()
    max_norm: float | None = static()
    norm_type: float = static()
    weight: Tensor

    def __init__(
        self, num_embeddings: int, embedding_dim: int, padding_idx: int | None = None,
        max_norm: float | None = None, norm_type: float = 2.0, scale_grad_by_freq: bool = False,
        sparse: bool = False, _weight: Any = None, _freeze: bool = False, *, key: Any = None,
        dtype: Any = xp.float32,
    ) -> None:  # fmt: skip
        if scale_grad_by_freq or sparse or _freeze:
            raise ArgumentError(
                "Embedding: scale_grad_by_freq, sparse and _freeze must be False, got "
                f"{scale_grad_by_freq}, {sparse} and {_freeze}"
            )
        at = _position("Embedding", padding_idx, num_embeddings)
        table = _table("Embedding", num_embeddings, embedding_dim, at, _weight, key, dtype)
        self.__attrs_init__(num_embeddings, embedding_dim, at, max_norm, norm_type, table)

    def __call__(self, x: Any) -> Any:
        """x (*), integers, to (*, D). Raises: as `functional.embedding`."""
        return functional.embedding(x, self.weight, self.padding_idx, self.max_norm, self.norm_type)


class EmbeddingBag(Module):
    """Pool rows of a learned table in bags; see `functional.embedding_bag`.

    Args: as `Embedding`, and mode, include_last_offset as in `functional.embedding_bag`.
    Example:
        >>> import funct as ft, funct.array as xp
        >>> from funct import nn
        >>> layer = nn.EmbeddingBag(10, 3, mode="sum", key=ft.random.key(0))
        >>> layer(xp.asarray([1, 2, 4]), xp.asarray([0, 2])).shape  # bags (1, 2) and (4,)
        (2, 3)

    Source: torch.nn.EmbeddingBag.
    """

    num_embeddings: int = static()
    embedding_dim: int = static()
    max_norm: float | None = static()
    norm_type: float = static()
    mode: str = static()
    include_last_offset: bool = static()
    padding_idx: int | None = static()
    weight: Tensor

    def __init__(
        self, num_embeddings: int, embedding_dim: int, max_norm: float | None = None,
        norm_type: float = 2.0, scale_grad_by_freq: bool = False, mode: str = "mean",
        sparse: bool = False, _weight: Any = None, include_last_offset: bool = False,
        padding_idx: int | None = None, *, key: Any = None, dtype: Any = xp.float32,
    ) -> None:  # fmt: skip
        if scale_grad_by_freq or sparse:
            raise ArgumentError(
                "EmbeddingBag: scale_grad_by_freq and sparse must be False, got "
                f"{scale_grad_by_freq} and {sparse}"
            )
        at = _position("EmbeddingBag", padding_idx, num_embeddings)
        table = _table("EmbeddingBag", num_embeddings, embedding_dim, at, _weight, key, dtype)
        self.__attrs_init__(
            num_embeddings, embedding_dim, max_norm, norm_type, mode, include_last_offset, at, table
        )

    def __call__(self, x: Any, offsets: Any = None, per_sample_weights: Any = None) -> Any:
        """Indices x (B, L), or (n,) with offsets (B,), to (B, D).

        Raises: as `functional.embedding_bag`.
        """
        return functional.embedding_bag(
            x, self.weight, offsets, self.max_norm, self.norm_type, False, self.mode, False,
            per_sample_weights, self.include_last_offset, self.padding_idx,
        )  # fmt: skip
