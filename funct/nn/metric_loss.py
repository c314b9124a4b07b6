"""Losses of distances and rankings as layers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from funct.nn import functional
from funct.nn.loss import Loss
from funct.nn.module import static

__all__ = [
    "CosineEmbeddingLoss", "HingeEmbeddingLoss", "MarginRankingLoss", "TripletMarginLoss",
    "TripletMarginWithDistanceLoss",
]  # fmt: skip


class HingeEmbeddingLoss(Loss):
    """x or max(0, margin - x); see `functional.hinge_embedding_loss`.

    Example:
        >>> import funct.array as xp
        >>> from funct import nn
        >>> x, t = xp.asarray([0.25, 0.25]), xp.asarray([1, -1])
        >>> nn.HingeEmbeddingLoss(reduction="none")(x, t).tolist()
        [0.25, 0.75]
    """

    apply = staticmethod(functional.hinge_embedding_loss)
    margin: float = static()
    reduction: str = static()

    def __init__(
        self, margin: float = 1.0, size_average: None = None, reduce: None = None,
        reduction: str = "mean",
    ) -> None:  # fmt: skip
        self._made(reduction, size_average, reduce, margin)


class _Pair(Loss):
    """A loss of two inputs and a label, with a margin."""

    margin: float = static()
    reduction: str = static()

    def __init__(
        self, margin: float = 0.0, size_average: None = None, reduce: None = None,
        reduction: str = "mean",
    ) -> None:  # fmt: skip
        self._made(reduction, size_average, reduce, margin)

    def __call__(self, input1: Any, input2: Any, target: Any) -> Any:  # type: ignore[override]
        """The loss of the pair against target."""
        return type(self).apply(input1, input2, target, **self.__dict__)


class CosineEmbeddingLoss(_Pair):
    """1 - cos or max(0, cos - margin); see `functional.cosine_embedding_loss`.

    Example:
        >>> import funct.array as xp
        >>> from funct import nn
        >>> a, b = xp.asarray([1.0, 0.0]), xp.asarray([3.0, 4.0])
        >>> [round(float(nn.CosineEmbeddingLoss()(a, b, xp.asarray(t))), 6) for t in (1, -1)]
        [0.4, 0.6]
    """

    apply = staticmethod(functional.cosine_embedding_loss)


class MarginRankingLoss(_Pair):
    """max(0, margin - t (x1 - x2)); see `functional.margin_ranking_loss`.

    Example:
        >>> import funct.array as xp
        >>> from funct import nn
        >>> a, b, t = xp.asarray([3.0, 1.0]), xp.asarray([1.0, 2.0]), xp.asarray([1, 1])
        >>> nn.MarginRankingLoss(reduction="none")(a, b, t).tolist()
        [0.0, 1.0]
    """

    apply = staticmethod(functional.margin_ranking_loss)


class TripletMarginLoss(Loss):
    """max(0, d(a, p) - d(a, n) + margin); see `functional.triplet_margin_loss`.

    Example:
        >>> import funct.array as xp
        >>> from funct import nn
        >>> a, p, n = xp.asarray([[0.0]]), xp.asarray([[1.0]]), xp.asarray([[1.5]])
        >>> round(float(nn.TripletMarginLoss()(a, p, n)), 4)
        0.5
    """

    apply = staticmethod(functional.triplet_margin_loss)
    margin: float = static()
    p: float = static()
    eps: float = static()
    swap: bool = static()
    reduction: str = static()

    def __init__(
        self, margin: float = 1.0, p: float = 2.0, eps: float = 1e-6, swap: bool = False,
        size_average: None = None, reduce: None = None, reduction: str = "mean",
    ) -> None:  # fmt: skip
        self._made(reduction, size_average, reduce, margin, p, eps, swap)

    def __call__(self, anchor: Any, positive: Any, negative: Any) -> Any:  # type: ignore[override]
        """The loss of the triplet."""
        return type(self).apply(anchor, positive, negative, **self.__dict__)


class TripletMarginWithDistanceLoss(Loss):
    """`TripletMarginLoss` with a distance of one's own.

    Example:
        >>> import funct.array as xp
        >>> from funct import nn
        >>> apart = lambda x, y: xp.max(xp.abs(x - y), axis=-1)
        >>> a, p, n = xp.asarray([[0.0]]), xp.asarray([[1.0]]), xp.asarray([[1.5]])
        >>> float(nn.TripletMarginWithDistanceLoss(distance_function=apart)(a, p, n))
        0.5
    """

    apply = staticmethod(functional.triplet_margin_with_distance_loss)
    distance_function: Callable[[Any, Any], Any] | None = static()
    margin: float = static()
    swap: bool = static()
    reduction: str = static()

    def __init__(
        self, *, distance_function: Callable[[Any, Any], Any] | None = None, margin: float = 1.0,
        swap: bool = False, reduction: str = "mean",
    ) -> None:  # fmt: skip
        self._made(reduction, None, None, distance_function, margin, swap)

    def __call__(self, anchor: Any, positive: Any, negative: Any) -> Any:  # type: ignore[override]
        """The loss of the triplet."""
        return type(self).apply(anchor, positive, negative, **self.__dict__)
