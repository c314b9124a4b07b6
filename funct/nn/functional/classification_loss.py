"""Losses of class labels: cross entropy and the negative log-likelihood, binary and not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import funct.array as xp
from funct import ops
from funct.array.direct import direct
from funct.array.in_single import narrowed, widened
from funct.errors import ArgumentError, ShapeError
from funct.kernels import neural as kernels
from funct.nn.functional.arguments import from_begin
from funct.nn.functional.compiled import compiled
from funct.nn.functional.reduction import (
    check_floating,
    check_reduction,
    check_same_shape,
    in_single,
    reduced,
    refuse_retired,
)
from funct.nn.functional.softmax import log_softmax
from funct.nn.partition import is_inexact_array

__all__ = [
    "binary_cross_entropy", "binary_cross_entropy_with_logits", "cross_entropy", "nll_loss",
]  # fmt: skip

_LEAST = 1e-12  # below this probability the loss goes on as a straight line, as in torch


@direct(kernels.cross_entropy, arrays=2)
@compiled
@in_single
def cross_entropy(
    input: Any, target: Any, weight: Any = None, size_average: None = None,
    ignore_index: int = -100, reduce: None = None, reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Any:  # fmt: skip
    """Compute -Σ_c w_c t_c log softmax(x)_c for class indices or class probabilities t.

    Args: input: logits, shape (C,), (N, C) or (N, C, d1, …). target: class indices, integers of
    shape (), (N,) or (N, d1, …); or probabilities of input's shape. weight: per class, shape (C,).
    ignore_index: an index that counts for nothing. reduction: "mean" (over the weights of the
    targets), "sum" or "none". label_smoothing: that share of the target is spread over all classes.
    Returns: shape (), or that of the class indices for "none".
    Raises: ShapeError: when the shapes do not fit. DTypeError: when input is not floating.
    ArgumentError: when reduction or label_smoothing is out of range. IndexOutOfBoundsError: when a
    class index is outside [0, C) and not ignore_index.
    Example:
        >>> import funct.array as xp
        >>> from funct.nn import functional as F
        >>> round(float(F.cross_entropy(xp.zeros((2, 4)), xp.asarray([1, 3]))), 4)
        1.3863

    Source: torch.nn.functional.cross_entropy; label smoothing: Szegedy et al. 2015,
    arXiv:1512.00567.
    """
    refuse_retired("cross_entropy", size_average, reduce)
    if not 0.0 <= label_smoothing <= 1.0:
        raise ArgumentError(
            f"cross_entropy: label_smoothing must be in [0, 1], got {label_smoothing}"
        )
    check_floating("cross_entropy", input)
    logp = log_softmax(input, min(len(input.shape) - 1, 1))
    if is_inexact_array(target):
        return _probability_loss(logp, target, weight, reduction, label_smoothing)
    return _index_loss(
        "cross_entropy", logp, target, weight, ignore_index, reduction, label_smoothing
    )


@direct(kernels.nll_loss, arrays=2)
@compiled
def nll_loss(
    input: Any, target: Any, weight: Any = None, size_average: None = None,
    ignore_index: int = -100, reduce: None = None, reduction: str = "mean",
) -> Any:  # fmt: skip
    """Compute -w_t x_t: the negative log-likelihood of class indices t under log-probabilities x.

    Args, Returns, Raises: as `cross_entropy` with class indices; input holds log-probabilities.
    Example:
        >>> import funct.array as xp
        >>> from funct.nn import functional as F
        >>> x = F.log_softmax(xp.zeros((2, 4)), dim=1)
        >>> round(float(F.nll_loss(x, xp.asarray([1, 3]))), 4)
        1.3863

    Source: torch.nn.functional.nll_loss.
    """
    refuse_retired("nll_loss", size_average, reduce)
    (wide,) = widened(weight)  # of input only what is picked
    loss = _index_loss("nll_loss", input, target, wide, ignore_index, reduction, 0.0)
    return narrowed(loss, input, weight)


@compiled
def binary_cross_entropy(
    input: Any, target: Any, weight: Any = None, size_average: None = None, reduce: None = None,
    reduction: str = "mean",
) -> Any:  # fmt: skip
    """Compute -w (t log x + (1 - t) log(1 - x)) of probabilities x.

    Args: input: probabilities in [0, 1]. target: of the same shape. weight: broadcasts to it.
    Returns: shape (), or input's for "none".
    Raises: ShapeError: when the shapes differ. DTypeError: when input is not floating.
    Notes: a logarithm is at least -100 and its slope at most 10¹², so that a certain and wrong
    prediction has a finite loss and a derivative that leads out of it.
    Example:
        >>> import funct.array as xp
        >>> from funct.nn import functional as F
        >>> x, t = xp.asarray([0.0, 0.0]), xp.asarray([0.0, 1.0])
        >>> F.binary_cross_entropy(x, t, reduction="none").tolist()
        [0.0, 100.0]

    Source: torch.nn.functional.binary_cross_entropy.
    """
    name = "binary_cross_entropy"
    refuse_retired(name, size_average, reduce)
    check_floating(name, input)
    check_same_shape(name, input, target)
    no, yes = _bounded_log(1.0 - input, input, _log_less), _bounded_log(input, input, xp.log)
    loss = (target - 1.0) * no - target * yes
    return reduced(name, loss if weight is None else loss * weight, reduction)


@compiled
@in_single
def binary_cross_entropy_with_logits(
    input: Any, target: Any, weight: Any = None, size_average: None = None, reduce: None = None,
    reduction: str = "mean", pos_weight: Any = None,
) -> Any:  # fmt: skip
    """Compute `binary_cross_entropy` of sigmoid(x), without leaving the logarithms.

    Args: input: logits. target: of the same shape. weight, pos_weight: broadcast to it; pos_weight
    multiplies the term of the positive class.
    Returns: shape (), or input's for "none".
    Raises: ShapeError: when the shapes differ. DTypeError: when input is not floating.
    Example:
        >>> import funct.array as xp
        >>> from funct.nn import functional as F
        >>> x, t = xp.asarray([-1000.0, 1000.0]), xp.asarray([1.0, 1.0])
        >>> F.binary_cross_entropy_with_logits(x, t, reduction="none").tolist()
        [1000.0, 0.0]

    Source: torch.nn.functional.binary_cross_entropy_with_logits.
    """
    name = "binary_cross_entropy_with_logits"
    refuse_retired(name, size_average, reduce)
    check_floating(name, input)
    check_same_shape(name, input, target)
    surprise = ops.logaddexp(-input, 0.0)  # -log sigmoid(x)
    if pos_weight is not None:
        surprise = surprise * ((pos_weight - 1.0) * target + 1.0)
    loss = (1.0 - target) * input + surprise
    return reduced(name, loss if weight is None else loss * weight, reduction)


def _log_less(x: Any) -> Any:
    return xp.log1p(-x)


def _bounded_log(p: Any, x: Any, log: Callable[[Any], Any]) -> Any:
    """log(x), which is log p, but at least -100; from p = _LEAST down a line of slope 1 / _LEAST.

    No logarithm is taken where it would be infinite: x is 1/2 there.
    """
    least = _LEAST if p.dtype != xp.float16 else 1e-4  # 1 / _LEAST would be infinite there
    small, zero = ops.less(p, least), ops.less_equal(p, 0.0)
    fixed = ops.stop_gradient(p)
    height = ops.maximum(xp.log(ops.where(zero, 0.5, fixed)), -100.0)
    line = ops.where(zero, -100.0, height) + (p - fixed) * (1.0 / least)
    return ops.where(small, line, log(ops.where(small, 0.5, x)))


def _index_loss(
    name: str, logp: Any, target: Any, weight: Any, ignore_index: int, reduction: str,
    smoothing: float,
) -> Any:  # fmt: skip
    """logp: (C,), (N, C) or (N, C, d1, …); target: integers of that shape without the classes."""
    axis = min(len(logp.shape) - 1, 1)
    expected = (*logp.shape[:axis], *logp.shape[axis + 1 :])
    if target.shape != expected:
        raise ShapeError(
            f"{name}: target must have shape {expected} for input {logp.shape}, got {target.shape}"
        )
    plain = weight is None and not smoothing and is_inexact_array(logp)
    if plain and _all_count(target, logp.shape[axis], ignore_index):
        check_reduction(name, reduction)
        if reduction == "none":
            return -_picked(logp, target, axis)
        total = xp.sum(-_at(logp, target, axis))
        return total / target.size if reduction == "mean" else total
    counted = target != ignore_index
    index = ops.where(counted, from_begin(target, logp.shape[axis]), 0)
    picked = _picked(logp, index, axis)
    weights = xp.astype(counted, picked.dtype)
    if weight is not None:
        flat = xp.reshape(index, (-1,))
        weights = weights * xp.reshape(xp.take_along_axis(weight, flat, axis=0), index.shape)
    loss = ops.where(counted, -picked * weights, 0.0)
    if smoothing:
        spread = ops.where(counted, -xp.sum(_weighted(logp, weight, axis), axis=axis), 0.0)
        loss = (1.0 - smoothing) * loss + (smoothing / logp.shape[axis]) * spread
    return reduced(name, loss, reduction, weights)


def _all_count(target: Any, classes: Any, ignore_index: int) -> bool:
    """Whether target is known, and each of its indices is a class that is not ignored."""
    if target.__class__ is not xp.Array or type(classes) is not int:
        return False
    indices = target.data
    if not indices.size or indices.dtype.kind not in "iu" or 0 <= ignore_index < classes:
        return False
    least, most = (indices.item(at()) for at in (indices.argmin, indices.argmax))
    return bool(least >= 0 and most < classes)


def _picked(x: Any, index: Any, axis: int) -> Any:
    """x at an index for each element of the other axes."""
    return xp.squeeze(_at(x, index, axis), axis)


def _at(x: Any, index: Any, axis: int) -> Any:
    (found,) = widened(xp.take_along_axis(x, xp.expand_dims(index, axis), axis=axis))
    return found


def _weighted(logp: Any, weight: Any, axis: int) -> Any:
    if weight is None:
        return logp
    behind = len(logp.shape) - axis - 1
    return logp * xp.reshape(weight, (-1, *(1,) * behind))  # (C, 1, ...)


def _probability_loss(logp: Any, target: Any, weight: Any, reduction: str, smoothing: float) -> Any:
    if target.shape != logp.shape:
        raise ShapeError(
            f"cross_entropy: probabilities must have input's shape {logp.shape}, got {target.shape}"
        )
    axis = min(len(logp.shape) - 1, 1)
    if smoothing:
        target = target * (1.0 - smoothing) + smoothing / logp.shape[axis]
    loss = -xp.sum(_weighted(logp, weight, axis) * target, axis=axis)
    return reduced("cross_entropy", loss, reduction)  # torch's mean counts samples, not weights
