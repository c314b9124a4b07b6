"""Losses, with torch's reductions."""

from __future__ import annotations

from typing import Any

import funct.array as xp
from funct import ops
from funct.errors import ArgumentError, DTypeError, ShapeError
from funct.nn.functional.activation import log_softmax
from funct.nn.partition import is_inexact_array

__all__ = ["cross_entropy", "mse_loss", "nll_loss"]


def cross_entropy(
    input: Any, target: Any, weight: Any = None, *, ignore_index: int = -100,
    reduction: str = "mean", label_smoothing: float = 0.0,
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
    Source: torch.nn.functional.cross_entropy; label smoothing: Szegedy et al. 2015,
    arXiv:1512.00567.
    Example:
        >>> import funct.array as xp
        >>> from funct.nn import functional as F
        >>> round(float(F.cross_entropy(xp.zeros((2, 4)), xp.asarray([1, 3]))), 4)
        1.3863
    """
    if not 0.0 <= label_smoothing <= 1.0:
        raise ArgumentError(
            f"cross_entropy: label_smoothing must be in [0, 1], got {label_smoothing}"
        )
    if not is_inexact_array(input):
        raise DTypeError(f"cross_entropy: input must be floating, got {input.dtype}")
    logp = log_softmax(input, min(len(input.shape) - 1, 1))
    if is_inexact_array(target):
        return _probability_loss(logp, target, weight, reduction, label_smoothing)
    return _index_loss(
        "cross_entropy", logp, target, weight, ignore_index, reduction, label_smoothing
    )


def nll_loss(
    input: Any,
    target: Any,
    weight: Any = None,
    *,
    ignore_index: int = -100,
    reduction: str = "mean",
) -> Any:
    """Compute -w_t x_t: the negative log-likelihood of class indices t under log-probabilities x.

    Args, Returns, Raises: as `cross_entropy` with class indices; input holds log-probabilities.
    Source: torch.nn.functional.nll_loss.
    """
    return _index_loss("nll_loss", input, target, weight, ignore_index, reduction, 0.0)


def mse_loss(input: Any, target: Any, *, reduction: str = "mean", weight: Any = None) -> Any:
    """Compute (x - t)², weighted elementwise; the mean divides by the sum of the weights.

    Raises: ShapeError: when the shapes differ (torch broadcasts with a warning). ArgumentError:
    when reduction is unknown.
    Source: torch.nn.functional.mse_loss.
    Example:
        >>> import funct.array as xp
        >>> from funct.nn import functional as F
        >>> float(F.mse_loss(xp.asarray([1.0, 2.0]), xp.asarray([0.0, 0.0])))
        2.5
    """
    if input.shape != target.shape:
        raise ShapeError(
            f"mse_loss: input and target must have one shape, got {input.shape} and {target.shape}"
        )
    error = input - target
    loss = error * error
    if weight is None:
        return _reduced("mse_loss", loss, reduction)
    return _reduced("mse_loss", loss * weight, reduction, xp.broadcast_to(weight, loss.shape))


def _reduced(name: str, loss: Any, reduction: str, weights: Any = None) -> Any:
    """loss as it is, its sum, or its mean: over its elements, or the sum of the weights given."""
    if reduction == "none":
        return loss
    if reduction == "sum":
        return xp.sum(loss)
    if reduction == "mean":
        return xp.mean(loss) if weights is None else xp.sum(loss) / xp.sum(weights)
    raise ArgumentError(f"{name}: reduction must be 'none', 'mean' or 'sum', got {reduction!r}")


def _index_loss(
    name: str,
    logp: Any,
    target: Any,
    weight: Any,
    ignore_index: int,
    reduction: str,
    smoothing: float,
) -> Any:
    axis = min(len(logp.shape) - 1, 1)
    expected = (*logp.shape[:axis], *logp.shape[axis + 1 :])
    if target.shape != expected:
        raise ShapeError(
            f"{name}: target must have shape {expected} for input {logp.shape}, got {target.shape}"
        )
    counted = target != ignore_index
    # a negative index would count from the end: it is moved out of bounds, so that it raises
    n_classes = logp.shape[axis]
    index = ops.where(counted, ops.where(target < 0, n_classes, target), 0)
    picked = xp.take_along_axis(logp, xp.expand_dims(index, axis), axis=axis)
    loss = -xp.squeeze(picked, axis)
    weights = xp.astype(counted, logp.dtype)
    if weight is not None:
        weights = weights * xp.reshape(xp.take(weight, xp.reshape(index, (-1,))), index.shape)
    loss = ops.where(counted, loss * weights, 0.0)
    if smoothing:
        spread = ops.where(counted, -xp.sum(_weighted(logp, weight, axis), axis=axis), 0.0)
        loss = (1.0 - smoothing) * loss + (smoothing / n_classes) * spread
    return _reduced(name, loss, reduction, weights)


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
    return _reduced("cross_entropy", loss, reduction)  # torch's mean counts samples, not weights
