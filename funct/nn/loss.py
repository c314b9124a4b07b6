"""Losses as layers: records of their parameters; class weights are buffers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from funct.array import Tensor
from funct.nn import functional
from funct.nn.functional.reduction import check_reduction, refuse_retired
from funct.nn.module import Module, buffer, static

__all__ = [
    "BCELoss", "BCEWithLogitsLoss", "CTCLoss", "CrossEntropyLoss", "GaussianNLLLoss", "HuberLoss",
    "KLDivLoss", "L1Loss", "Loss", "MSELoss", "MultiLabelMarginLoss", "MultiLabelSoftMarginLoss",
    "MultiMarginLoss", "NLLLoss", "PoissonNLLLoss", "SmoothL1Loss", "SoftMarginLoss",
]  # fmt: skip


class Loss(Module):
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


class _Simple(Loss):
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


class SmoothL1Loss(Loss):
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


class HuberLoss(Loss):
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


class KLDivLoss(Loss):
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


class PoissonNLLLoss(Loss):
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


class GaussianNLLLoss(Loss):
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


class CrossEntropyLoss(Loss):
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


class NLLLoss(Loss):
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


class _Weighted(Loss):
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


class BCEWithLogitsLoss(Loss):
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


class MultiMarginLoss(Loss):
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


class CTCLoss(Loss):
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
