"""Distances as layers: CosineSimilarity, PairwiseDistance."""

from __future__ import annotations

from typing import Any

from funct.nn import functional
from funct.nn.module import Module, static

__all__ = ["CosineSimilarity", "PairwiseDistance"]


class CosineSimilarity(Module):
    """The cosine between two arrays along dim; see `functional.cosine_similarity`.

    Example:
        >>> import funct.array as xp
        >>> from funct import nn
        >>> nn.CosineSimilarity()(xp.asarray([[1.0, 0.0]]), xp.asarray([[3.0, 4.0]])).tolist()
        [0.6]
    """

    dim: int = static(default=1)
    eps: float = static(default=1e-8)

    def __call__(self, x1: Any, x2: Any) -> Any:
        """x1 · x2 / (|x1| |x2|) along dim."""
        return functional.cosine_similarity(x1, x2, self.dim, self.eps)


class PairwiseDistance(Module):
    """The p-norm between rows; see `functional.pairwise_distance`.

    Example:
        >>> import funct.array as xp
        >>> from funct import nn
        >>> distance = nn.PairwiseDistance()(xp.asarray([[0.0, 0.0]]), xp.asarray([[3.0, 4.0]]))
        >>> [round(v, 4) for v in distance.tolist()]
        [5.0]
    """

    p: float = static(default=2.0)
    eps: float = static(default=1e-6)
    keepdim: bool = static(default=False)

    def __call__(self, x1: Any, x2: Any) -> Any:
        """The distance along the last axis."""
        return functional.pairwise_distance(x1, x2, self.p, self.eps, self.keepdim)
