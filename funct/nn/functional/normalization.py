"""Batch normalisation."""

from __future__ import annotations

from typing import Any

import funct.array as xp
from funct import ops
from funct.core import Size
from funct.errors import ShapeError

__all__ = ["batch_norm"]


def batch_norm(
    input: Any, running_mean: Any, running_var: Any, weight: Any = None, bias: Any = None,
    training: bool = False, momentum: Any = 0.1, eps: float = 1e-5,
) -> Any:  # fmt: skip
    """Normalise each channel: (x - mean) / sqrt(var + eps) · weight + bias.

    Args: input: shape (N, C, *S). running_mean, running_var, weight, bias: shape (C,) or None.
    training: statistics of the batch (biased variance) instead of the running ones. momentum:
    weight of the new value in the running statistics (other libraries mean the weight of the old
    one).
    Returns: y, same shape as input; with training and running statistics (y, mean, var), where
    torch writes the new running statistics (unbiased variance) into its arguments. They carry no
    derivative.
    Raises: ShapeError: when input has one axis, or training has one value per channel; or running
    statistics are missing outside of training.
    Source: Ioffe, Szegedy 2015, arXiv:1502.03167; torch.nn.functional.batch_norm.
    Example:
        >>> import funct.array as xp
        >>> from funct.nn import functional as F
        >>> x = xp.asarray([[1.0], [3.0]])
        >>> y, mean, var = F.batch_norm(x, xp.zeros(1), xp.ones(1), training=True, momentum=0.5)
        >>> mean.tolist(), var.tolist()
        ([1.0], [1.5])
    """
    if len(input.shape) < 2:
        raise ShapeError(f"batch_norm: input must have shape (N, C, ...), got {input.shape}")
    if not training:
        if running_mean is None or running_var is None:
            raise ShapeError(
                "batch_norm: running_mean and running_var are needed outside of training"
            )
        return _scaled(input, running_mean, running_var, weight, bias, eps)
    axes = (0, *range(2, len(input.shape)))
    _check_count(input, axes)
    mean = xp.mean(input, axis=axes, keepdims=True)  # (1, C, 1, ...)
    centred = input - mean
    squares = ops.reduce_sum(centred * centred, axes, False)  # (C,)
    var = ops.mean_of(squares, input, axes)
    factor = 1.0 / xp.sqrt(var + eps)
    factor = factor if weight is None else factor * weight
    y = centred * _channel(factor, input)
    y = y if bias is None else y + _channel(bias, input)
    if running_mean is None or running_var is None:
        return y
    unbiased = squares / _less_one(input, axes)
    batch_mean = xp.reshape(mean, (-1,))
    return y, _moved(running_mean, batch_mean, momentum), _moved(running_var, unbiased, momentum)


def _channel(v: Any, x: Any) -> Any:
    return xp.reshape(v, (1, -1, *(1,) * (len(x.shape) - 2)))  # (1, C, 1, ...)


def _scaled(x: Any, mean: Any, var: Any, weight: Any, bias: Any, eps: float) -> Any:
    """One factor and one shift per channel: two passes over x instead of four."""
    factor = 1.0 / xp.sqrt(var + eps)
    factor = factor if weight is None else factor * weight
    shift = -mean * factor
    shift = shift if bias is None else shift + bias
    return x * _channel(factor, x) + _channel(shift, x)


def _check_count(x: Any, axes: tuple[int, ...]) -> None:
    n = ops.axis_count(x, axes)
    if not isinstance(n, Size) and n <= 1:
        raise ShapeError(
            f"batch_norm: training needs more than one value per channel, got {x.shape}"
        )


def _less_one(x: Any, axes: tuple[int, ...]) -> Any:
    """Number of values per channel less one; an array where the batch is symbolic."""
    n = ops.axis_count(x, axes)
    return ops.size_along(x, axes) - 1 if isinstance(n, Size) else n - 1


def _moved(old: Any, new: Any, momentum: Any) -> Any:
    new = ops.stop_gradient(new)
    return ops.astype(old * (1.0 - momentum) + new * momentum, old.dtype)
