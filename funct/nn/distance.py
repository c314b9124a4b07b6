"""Distances as layers: CosineSimilarity, PairwiseDistance."""

from __future__ import annotations

from typing import Any

from funct.nn import functional
from funct.nn.module import Module, static

__all__ = ["CosineSimilarity", "PairwiseDistance"]


class CosineSimilarity(Module):
    """The cosine between two arrays along dim; see `functional.cosine_similarity`."""

    dim: int = static(default=1)
    eps: float = static(default=1e-8)

    def __call__(self, x1: Any, x2: Any) -> Any:
        """x1 · x2 / (|x1| |x2|) along dim."""
        return functional.cosine_similarity(x1, x2, self.dim, self.eps)


class PairwiseDistance(Module):
    """The p-norm between rows; see `functional.pairwise_distance`."""

    p: float = static(default=2.0)
    eps: float = static(default=1e-6)
    keepdim: bool = static(default=False)

    def __call__(self, x1: Any, x2: Any) -> Any:
        """The distance along the last axis."""
        return functional.pairwise_distance(x1, x2, self.p, self.eps, self.keepdim)
