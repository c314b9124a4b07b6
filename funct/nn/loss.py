"""Losses as layers: records of their parameters; class weights are buffers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from funct.array import Tensor
from funct.nn import functional
from funct.nn.functional.reduction import check_reduction, refuse_retired
from funct.nn.module import Module, buffer, static

__all__ = [
    "BCELoss", "BCEWithLogitsLoss", "CTCLoss", "CosineEmbeddingLoss", "CrossEntropyLoss",
    "GaussianNLLLoss", "HingeEmbeddingLoss", "HuberLoss", "KLDivLoss", "L1Loss", "MSELoss",
    "MarginRankingLoss", "MultiLabelMarginLoss", "MultiLabelSoftMarginLoss", "MultiMarginLoss",
    "NLLLoss", "PoissonNLLLoss", "SmoothL1Loss", "SoftMarginLoss", "TripletMarginLoss",
    "TripletMarginWithDistanceLoss",
]  # fmt: skip


class _Loss(Module):
    """A loss whose fields have the names of the function's arguments.

    size_average and reduce, which torch has retired, must be None.
    """

    apply: ClassVar[Callable[..., Any]]

    def _made(self, reduction: str, size_average: Any, reduce: Any, *fields: Any) -> None:
        name = type(self).__name__
        refuse_retired(name, size_average, reduce)
        check_reduction(name, reduction, batchmean=name == "KLDivLoss")
        self.__attrs_init__(*fields, reduction)

    def __call__(self, input: Any, target: Any) -> Any:
        """The loss of input against target: a number, or one per element for "none".

        Raises: as the function in `funct.nn.functional`.
        """
        return type(self).apply(input, target, **self.__dict__)


class _Simple(_Loss):
    """A loss with nothing but its reduction."""

    reduction: str = static()

    def __init__(
        self, size_average: None = None, reduce: None = None, reduction: str = "mean"
    ) -> None:
        self._made(reduction, size_average, reduce)


class L1Loss(_Simple):
    """|x - t|; see `functional.l1_loss`.

    Example:
        >>> import funct.array as xp
        >>> from funct import nn
        >>> float(nn.L1Loss()(xp.asarray([1.0, 2.0]), xp.asarray([0.0, 4.0])))
        1.5
    """

    apply = staticmethod(functional.l1_loss)


class MSELoss(_Simple):
    """(x - t)²; see `functional.mse_loss`.

    Example:
        >>> import funct.array as xp
        >>> from funct import nn
        >>> float(nn.MSELoss()(xp.asarray([1.0, 2.0]), xp.asarray([0.0, 0.0])))
        2.5
    """

    apply = staticmethod(functional.mse_loss)


class SoftMarginLoss(_Simple):
    """log(1 + exp(-t x)); see `functional.soft_margin_loss`.

    Example:
        >>> import funct.array as xp
        >>> from funct import nn
        >>> x, t = xp.asarray([1000.0, 1000.0]), xp.asarray([1, -1])
        >>> nn.SoftMarginLoss(reduction="none")(x, t).tolist()
        [0.0, 1000.0]
    """

    apply = staticmethod(functional.soft_margin_loss)


class MultiLabelMarginLoss(_Simple):
    """See `functional.multilabel_margin_loss`.

    Example:
        >>> import funct.array as xp
        >>> from funct import nn
        >>> x = xp.asarray([[2.0, 0.5, 1.0, 0.0]])
        >>> float(nn.MultiLabelMarginLoss()(x, xp.asarray([[0, 2, -1, 0]])))  # classes 0 and 2
        0.125
    """

    apply = staticmethod(functional.multilabel_margin_loss)


class SmoothL1Loss(_Loss):
    """|x - t|, a parabola below beta; see `functional.smooth_l1_loss`.

    Example:
        >>> import funct.array as xp
        >>> from funct import nn
        >>> nn.SmoothL1Loss(reduction="none")(xp.asarray([0.5, 3.0]), xp.zeros(2)).tolist()
        [0.125, 2.5]
    """

    apply = staticmethod(functional.smooth_l1_loss)
    beta: float = static()
    reduction: str = static()

    def __init__(
        self, size_average: None = None, reduce: None = None, reduction: str = "mean",
        beta: float = 1.0,
    ) -> None:  # fmt: skip
        self._made(reduction, size_average, reduce, beta)


class HuberLoss(_Loss):
    """A parabola up to delta, then a line; see `functional.huber_loss`.

    Example:
        >>> import funct.array as xp
        >>> from funct import nn
        >>> nn.HuberLoss(reduction="none", delta=2.0)(xp.asarray([0.5, 3.0]), xp.zeros(2)).tolist()
        [0.125, 4.0]
    """

    apply = staticmethod(functional.huber_loss)
    delta: float = static()
    reduction: str = static()

    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None:
        self._made(reduction, None, None, delta)


class KLDivLoss(_Loss):
    """t (log t - x); see `functional.kl_div`.

    Example:
        >>> import funct.array as xp
        >>> from funct import nn
        >>> p, q = xp.asarray([[0.5, 0.5]]), xp.asarray([[1.0, 0.0]])
        >>> round(float(nn.KLDivLoss(reduction="batchmean")(xp.log(p), q)), 4)  # log(2)
        0.6931
    """

    apply = staticmethod(functional.kl_div)
    log_target: bool = static()
    reduction: str = static()

    def __init__(
        self, size_average: None = None, reduce: None = None, reduction: str = "mean",
        log_target: bool = False,
    ) -> None:  # fmt: skip
        self._made(reduction, size_average, reduce, log_target)


class PoissonNLLLoss(_Loss):
    """exp(x) - t x; see `functional.poisson_nll_loss`.

    Example:
        >>> import funct.array as xp
        >>> from funct import nn
        >>> float(nn.PoissonNLLLoss()(xp.asarray([0.0]), xp.asarray([3.0])))
        1.0
    """

    apply = staticmethod(functional.poisson_nll_loss)
    log_input: bool = static()
    full: bool = static()
    eps: float = static()
    reduction: str = static()

    def __init__(
        self, log_input: bool = True, full: bool = False, size_average: None = None,
        eps: float = 1e-8, reduce: None = None, reduction: str = "mean",
    ) -> None:  # fmt: skip
        self._made(reduction, size_average, reduce, log_input, full, eps)


class GaussianNLLLoss(_Loss):
    """(log v + (x - t)² / v) / 2; see `functional.gaussian_nll_loss`.

    Example:
        >>> import funct.array as xp
        >>> from funct import nn
        >>> float(nn.GaussianNLLLoss()(xp.asarray([1.0, 2.0]), xp.asarray([3.0, 2.0]), xp.ones(2)))
        1.0
    """

    apply = staticmethod(functional.gaussian_nll_loss)
    full: bool = static()
    eps: float = static()
    reduction: str = static()

    def __init__(self, *, full: bool = False, eps: float = 1e-6, reduction: str = "mean") -> None:
        self._made(reduction, None, None, full, eps)

    def __call__(self, input: Any, target: Any, var: Any) -> Any:  # type: ignore[override]
        """The loss of means input and variances var against target."""
        return type(self).apply(input, target, var, **self.__dict__)


class CrossEntropyLoss(_Loss):
    """-Σ w t log softmax(x); see `functional.cross_entropy`.

    Args: weight: per class, a buffer. ignore_index, reduction, label_smoothing: as there.
    Example:
        >>> import funct.array as xp
        >>> from funct import nn
        >>> loss = nn.CrossEntropyLoss(label_smoothing=0.1)
        >>> round(float(loss(xp.zeros((2, 4)), xp.asarray([1, 3]))), 4)
        1.3863
    """

    apply = staticmethod(functional.cross_entropy)
    weight: Tensor | None = buffer()
    ignore_index: int = static()
    label_smoothing: float = static()
    reduction: str = static()

    def __init__(
        self, weight: Tensor | None = None, size_average: None = None, ignore_index: int = -100,
        reduce: None = None, reduction: str = "mean", label_smoothing: float = 0.0,
    ) -> None:  # fmt: skip
        self._made(reduction, size_average, reduce, weight, ignore_index, label_smoothing)


class NLLLoss(_Loss):
    """-w_t x_t of log-probabilities x; see `functional.nll_loss`.

    Args: weight: per class, a buffer. ignore_index, reduction: as there.
    Example:
        >>> import funct.array as xp
        >>> from funct import nn
        >>> x = nn.LogSoftmax(dim=1)(xp.zeros((2, 4)))
        >>> round(float(nn.NLLLoss()(x, xp.asarray([1, 3]))), 4)  # log(4)
        1.3863
    """

    apply = staticmethod(functional.nll_loss)
    weight: Tensor | None = buffer()
    ignore_index: int = static()
    reduction: str = static()

    def __init__(
        self, weight: Tensor | None = None, size_average: None = None, ignore_index: int = -100,
        reduce: None = None, reduction: str = "mean",
    ) -> None:  # fmt: skip
        self._made(reduction, size_average, reduce, weight, ignore_index)


class _Weighted(_Loss):
    """A loss with weights, a buffer, and its reduction."""

    weight: Tensor | None = buffer()
    reduction: str = static()

    def __init__(
        self, weight: Tensor | None = None, size_average: None = None, reduce: None = None,
        reduction: str = "mean",
    ) -> None:  # fmt: skip
        self._made(reduction, size_average, reduce, weight)


class BCELoss(_Weighted):
    """Binary cross entropy of probabilities; see `functional.binary_cross_entropy`.

    Example:
        >>> import funct.array as xp
        >>> from funct import nn
        >>> round(float(nn.BCELoss()(xp.asarray([0.5, 0.5]), xp.asarray([1.0, 0.0]))), 4)  # log(2)
        0.6931
    """

    apply = staticmethod(functional.binary_cross_entropy)


class MultiLabelSoftMarginLoss(_Weighted):
    """See `functional.multilabel_soft_margin_loss`.

    Example:
        >>> import funct.array as xp
        >>> from funct import nn
        >>> x, t = xp.zeros((1, 3)), xp.asarray([[1, 0, 1]])
        >>> round(float(nn.MultiLabelSoftMarginLoss()(x, t)), 4)  # log(2)
        0.6931
    """

    apply = staticmethod(functional.multilabel_soft_margin_loss)


class BCEWithLogitsLoss(_Loss):
    """Binary cross entropy of logits; see `functional.binary_cross_entropy_with_logits`.

    Example:
        >>> import funct.array as xp
        >>> from funct import nn
        >>> x, t = xp.asarray([-1000.0, 1000.0]), xp.asarray([1.0, 1.0])
        >>> nn.BCEWithLogitsLoss(reduction="none")(x, t).tolist()
        [1000.0, 0.0]
    """

    apply = staticmethod(functional.binary_cross_entropy_with_logits)
    weight: Tensor | None = buffer()
    pos_weight: Tensor | None = buffer()
    reduction: str = static()

    def __init__(
        self, weight: Tensor | None = None, size_average: None = None, reduce: None = None,
        reduction: str = "mean", pos_weight: Tensor | None = None,
    ) -> None:  # fmt: skip
        self._made(reduction, size_average, reduce, weight, pos_weight)


class MultiMarginLoss(_Loss):
    """See `functional.multi_margin_loss`.

    Example:
        >>> import funct.array as xp
        >>> from funct import nn
        >>> float(nn.MultiMarginLoss()(xp.asarray([[0.0, 2.0, 1.5, 0.0]]), xp.asarray([1])))
        0.125
    """

    apply = staticmethod(functional.multi_margin_loss)
    p: int = static()
    margin: float = static()
    weight: Tensor | None = buffer()
    reduction: str = static()

    def __init__(
        self, p: int = 1, margin: float = 1.0, weight: Tensor | None = None,
        size_average: None = None, reduce: None = None, reduction: str = "mean",
    ) -> None:  # fmt: skip
        self._made(reduction, size_average, reduce, p, margin, weight)


class HingeEmbeddingLoss(_Loss):
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


class _Pair(_Loss):
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


class TripletMarginLoss(_Loss):
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


class TripletMarginWithDistanceLoss(_Loss):
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


class CTCLoss(_Loss):
    """-log p of texts over all alignments; see `functional.ctc_loss`.

    Example:
        >>> import funct.array as xp
        >>> from funct import nn
        >>> x = xp.log(xp.asarray([[[0.5, 0.5]], [[0.5, 0.5]]]))  # (time, sample, class)
        >>> round(float(xp.exp(-nn.CTCLoss()(x, xp.asarray([[1]]), [2], [1]))), 12)
        0.75
    """

    apply = staticmethod(functional.ctc_loss)
    blank: int = static()
    zero_infinity: bool = static()
    reduction: str = static()

    def __init__(
        self, blank: int = 0, reduction: str = "mean", zero_infinity: bool = False
    ) -> None:
        self._made(reduction, None, None, blank, zero_infinity)

    def __call__(  # type: ignore[override]
        self, log_probs: Any, targets: Any, input_lengths: Any, target_lengths: Any
    ) -> Any:
        """The loss of log_probs (T, N, C) against targets."""
        return type(self).apply(log_probs, targets, input_lengths, target_lengths, **self.__dict__)
