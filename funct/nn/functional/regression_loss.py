"""Losses of real targets, and of distributions over them."""

from __future__ import annotations

import math
from typing import Any

import funct.array as xp
from funct import ops
from funct.errors import ArgumentError, ShapeError
from funct.nn.functional.compiled import compiled
from funct.nn.functional.reduction import (
    check_reduction,
    check_same_shape,
    in_single,
    reduced,
    refuse_retired,
    weighted_reduced,
)

__all__ = [
    "gaussian_nll_loss", "huber_loss", "kl_div", "l1_loss", "mse_loss", "poisson_nll_loss",
    "smooth_l1_loss",
]  # fmt: skip


@compiled
@in_single
def mse_loss(
    input: Any, target: Any, size_average: None = None, reduce: None = None,
    reduction: str = "mean", weight: Any = None,
) -> Any:  # fmt: skip
    """Compute (x - t)², weighted elementwise; the mean divides by the sum of the weights.

    Raises: ShapeError: when the shapes differ (torch broadcasts with a warning). ArgumentError:
    when reduction is unknown.
    Example:
        >>> import funct.array as xp
        >>> from funct.nn import functional as F
        >>> float(F.mse_loss(xp.asarray([1.0, 2.0]), xp.asarray([0.0, 0.0])))
        2.5

    Source: torch.nn.functional.mse_loss.
    """
    refuse_retired("mse_loss", size_average, reduce)
    check_same_shape("mse_loss", input, target)
    error = input - target
    return weighted_reduced("mse_loss", error * error, reduction, weight)


@compiled
@in_single
def l1_loss(
    input: Any, target: Any, size_average: None = None, reduce: None = None,
    reduction: str = "mean", weight: Any = None,
) -> Any:  # fmt: skip
    """Compute |x - t|; the derivative at 0 is 0. The rest as `mse_loss`.

    Example:
        >>> import funct.array as xp
        >>> from funct.nn import functional as F
        >>> float(F.l1_loss(xp.asarray([1.0, 2.0]), xp.asarray([0.0, 4.0])))
        1.5
    """
    refuse_retired("l1_loss", size_average, reduce)
    check_same_shape("l1_loss", input, target)
    return weighted_reduced("l1_loss", ops.abs(input - target), reduction, weight)


@compiled
@in_single
def smooth_l1_loss(
    input: Any, target: Any, size_average: None = None, reduce: None = None,
    reduction: str = "mean", beta: float = 1.0,
) -> Any:  # fmt: skip
    """Compute |x - t| - beta / 2, or (x - t)² / (2 beta) where |x - t| is less than beta.

    Raises: as `mse_loss`. ArgumentError: when beta is negative.
    Example:
        >>> import funct.array as xp
        >>> from funct.nn import functional as F
        >>> x, t = xp.asarray([0.5, 3.0]), xp.zeros(2)
        >>> F.smooth_l1_loss(x, t, reduction="none").tolist()
        [0.125, 2.5]

    Source: Girshick 2015, arXiv:1504.08083.
    """
    refuse_retired("smooth_l1_loss", size_average, reduce)
    if beta < 0:
        raise ArgumentError(f"smooth_l1_loss: beta must not be negative, got {beta}")
    check_same_shape("smooth_l1_loss", input, target)
    if beta == 0:
        return reduced("smooth_l1_loss", ops.abs(input - target), reduction)
    return reduced("smooth_l1_loss", _huber(input - target, beta) / beta, reduction)


@compiled
@in_single
def huber_loss(
    input: Any, target: Any, reduction: str = "mean", delta: float = 1.0, weight: Any = None
) -> Any:
    """Compute delta (|x - t| - delta / 2), or (x - t)² / 2 where |x - t| is less than delta.

    Raises: as `mse_loss`. ArgumentError: when delta is not positive.
    Notes: the weighted mean divides by the number of elements, as in torch.
    Example:
        >>> import funct.array as xp
        >>> from funct.nn import functional as F
        >>> x, t = xp.asarray([0.5, 3.0]), xp.zeros(2)
        >>> F.huber_loss(x, t, reduction="none", delta=2.0).tolist()
        [0.125, 4.0]

    Source: Huber 1964.
    """
    if delta <= 0:
        raise ArgumentError(f"huber_loss: delta must be positive, got {delta}")
    check_same_shape("huber_loss", input, target)
    loss = _huber(input - target, delta)
    return reduced("huber_loss", loss if weight is None else loss * weight, reduction)


def _huber(error: Any, delta: float) -> Any:
    size = ops.abs(error)
    inside = 0.5 * error * error
    return ops.where(ops.less(size, delta), inside, delta * (size - 0.5 * delta))


@compiled
@in_single
def kl_div(
    input: Any, target: Any, size_average: None = None, reduce: None = None,
    reduction: str = "mean", log_target: bool = False,
) -> Any:  # fmt: skip
    """Compute t (log t - x): the divergence of t from the distribution with log-probabilities x.

    Args: target: probabilities, or their logarithms with log_target. reduction: also "batchmean",
    the sum divided by the length of the first axis, which is the divergence per sample.
    Returns: shape (), or the common shape for "none".
    Raises: ArgumentError: when reduction is unknown.
    Notes: 0 log 0 is 0, and so is its derivative.
    Example:
        >>> import funct.array as xp
        >>> from funct.nn import functional as F
        >>> p, q = xp.asarray([[0.5, 0.5]]), xp.asarray([[1.0, 0.0]])
        >>> round(float(F.kl_div(xp.log(p), q, reduction="batchmean")), 4)  # log(2)
        0.6931

    Source: torch.nn.functional.kl_div; Kullback, Leibler 1951.
    """
    refuse_retired("kl_div", size_average, reduce)
    check_reduction("kl_div", reduction, batchmean=True)
    if log_target:
        loss = xp.exp(target) * (target - input)
    else:
        nothing = ops.equal(target, 0)
        entropy = target * xp.log(ops.where(nothing, 1.0, target))
        loss = ops.where(nothing, 0.0, entropy) - target * input
    if reduction != "batchmean":
        return reduced("kl_div", loss, reduction)
    return xp.sum(xp.mean(loss, axis=0)) if loss.shape else loss


@compiled
@in_single
def gaussian_nll_loss(
    input: Any, target: Any, var: Any, full: bool = False, eps: float = 1e-6,
    reduction: str = "mean",
) -> Any:  # fmt: skip
    """Compute (log v + (x - t)² / v) / 2: the negative log-likelihood under a normal distribution.

    Args: input: means. var: variances, a number or an array of input's shape, or with a last axis
    of length 1, or without the last axis; at least eps counts. full: add log(2 π) / 2.
    Returns: shape (), or input's for "none".
    Raises: ShapeError: when var does not fit. ArgumentError: when eps is not positive.
    Notes: below eps the derivative in var is that at eps, as in torch.
    Example:
        >>> import funct.array as xp
        >>> from funct.nn import functional as F
        >>> float(F.gaussian_nll_loss(xp.asarray([1.0, 2.0]), xp.asarray([3.0, 2.0]), xp.ones(2)))
        1.0

    Source: Nix, Weigend 1994.
    """
    if eps <= 0:
        raise ArgumentError(f"gaussian_nll_loss: eps must be positive, got {eps}")
    if isinstance(var, int | float):
        var = xp.full((), float(var), dtype=input.dtype)
    elif var.shape != input.shape:
        if var.shape == input.shape[:-1]:
            var = xp.expand_dims(var, -1)
        elif len(var.shape) != len(input.shape) or var.shape[:-1] != input.shape[:-1]:
            raise ShapeError(
                f"gaussian_nll_loss: var must have input's shape {input.shape}, or 1 or nothing "
                f"instead of its last axis, got {var.shape}"
            )
    held = ops.stop_gradient(ops.where(ops.less(var, eps), eps - var, 0.0))
    var = var + held
    error = input - target
    loss = 0.5 * (xp.log(var) + error * error / var)
    if full:
        loss = loss + 0.5 * math.log(2.0 * math.pi)
    return reduced("gaussian_nll_loss", loss, reduction)


@compiled
@in_single
def poisson_nll_loss(
    input: Any, target: Any, log_input: bool = True, full: bool = False,
    size_average: None = None, eps: float = 1e-8, reduce: None = None, reduction: str = "mean",
) -> Any:  # fmt: skip
    """Compute exp(x) - t x: the negative log-likelihood of counts t under a Poisson distribution.

    Args: input: logarithms of the expectations; without log_input the expectations x themselves,
    x - t log(x + eps). full: add Stirling's t log t - t + log(2 π t) / 2 for t above 1.
    Returns: shape (), or the common shape for "none".
    Example:
        >>> import funct.array as xp
        >>> from funct.nn import functional as F
        >>> float(F.poisson_nll_loss(xp.asarray([0.0]), xp.asarray([3.0])))
        1.0

    Source: torch.nn.functional.poisson_nll_loss.
    """
    refuse_retired("poisson_nll_loss", size_average, reduce)
    loss = xp.exp(input) - target * input if log_input else input - target * xp.log(input + eps)
    if full:
        many = ops.greater(target, 1)
        t = ops.where(many, target, 1.0)
        stirling = t * xp.log(t) - t + 0.5 * xp.log(2.0 * math.pi * t)
        loss = loss + ops.where(many, stirling, 0.0)
    return reduced("poisson_nll_loss", loss, reduction)
