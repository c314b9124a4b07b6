"""Normalisation over the batch, over features, over groups of channels, over neighbours."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar

import funct.array as xp
from funct import ops
from funct.array.direct import direct
from funct.array.in_single import narrowed, widened
from funct.core import Size
from funct.errors import ArgumentError, ShapeError
from funct.kernels import neural as kernels
from funct.nn.functional.compiled import compiled

__all__ = [
    "batch_norm", "group_norm", "instance_norm", "layer_norm", "local_response_norm", "rms_norm",
]  # fmt: skip

P = ParamSpec("P")
R = TypeVar("R")


def _compiled(fun: Callable[P, R]) -> Callable[P, R]:
    return compiled(fun, loops=kernels.NORMED)


@_compiled
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
    Example:
        >>> import funct.array as xp
        >>> from funct.nn import functional as F
        >>> x = xp.asarray([[1.0], [3.0]])
        >>> y, mean, var = F.batch_norm(x, xp.zeros(1), xp.ones(1), training=True, momentum=0.5)
        >>> mean.tolist(), var.tolist()
        ([1.0], [1.5])

    Source: Ioffe, Szegedy 2015, arXiv:1502.03167; torch.nn.functional.batch_norm.
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
    _check_count("batch_norm", input, axes)
    given = input, weight, bias
    input, weight, bias = widened(*given)
    y, mean, var = _normalised(input, axes, weight, bias, eps)
    y = narrowed(y, *given)
    if running_mean is None or running_var is None:
        return y
    n = ops.count_along(input, axes)
    mean, var = (xp.reshape(v, (-1,)) for v in (mean, var))
    return y, _moved(running_mean, mean, momentum), _moved(running_var, var * n / (n - 1), momentum)


@_compiled
def instance_norm(
    input: Any, running_mean: Any = None, running_var: Any = None, weight: Any = None,
    bias: Any = None, use_input_stats: bool = True, momentum: Any = 0.1, eps: float = 1e-5,
) -> Any:  # fmt: skip
    """Normalise each channel of each sample over its spatial axes.

    Args: input: shape (N, C, *S). running_mean, running_var, weight, bias: shape (C,) or None.
    use_input_stats: statistics of input instead of the running ones. momentum: as in `batch_norm`.
    Returns: y, same shape as input; with use_input_stats and running statistics (y, mean, var),
    where torch writes the new running statistics (means over the batch) into its arguments. They
    carry no derivative.
    Raises: ShapeError: when input has no spatial axis, or one value per channel; or running
    statistics are missing without use_input_stats.
    Example:
        >>> import funct.array as xp
        >>> from funct.nn import functional as F
        >>> y = F.instance_norm(xp.asarray([[[1.0, 3.0], [10.0, 30.0]]]))
        >>> [round(v, 3) for v in xp.ravel(y).tolist()]
        [-1.0, 1.0, -1.0, 1.0]

    Source: Ulyanov, Vedaldi, Lempitsky 2016, arXiv:1607.08022.
    """
    if len(input.shape) < 3:
        raise ShapeError(f"instance_norm: input must have shape (N, C, *S), got {input.shape}")
    if not use_input_stats:
        if running_mean is None or running_var is None:
            raise ShapeError(
                "instance_norm: running_mean and running_var are needed without use_input_stats"
            )
        return _scaled(input, running_mean, running_var, weight, bias, eps)
    axes = tuple(range(2, len(input.shape)))
    _check_count("instance_norm", input, axes)
    given = input, weight, bias
    input, weight, bias = widened(*given)
    y, mean, var = _normalised(input, axes, weight, bias, eps)
    y = narrowed(y, *given)
    if running_mean is None or running_var is None:
        return y
    n = ops.axis_count(input, axes)
    unbiased = xp.mean(xp.reshape(var, var.shape[:2]) * (n / (n - 1)), axis=0)
    batch_mean = xp.mean(xp.reshape(mean, mean.shape[:2]), axis=0)
    return y, _moved(running_mean, batch_mean, momentum), _moved(running_var, unbiased, momentum)


@direct(kernels.layer_norm, maybe=("weight", "bias"))
@_compiled
def layer_norm(
    input: Any, normalized_shape: Sequence[int], weight: Any = None, bias: Any = None,
    eps: float = 1e-5,
) -> Any:  # fmt: skip
    """Normalise over the last axes: (x - mean) / sqrt(var + eps) · weight + bias.

    Args: normalized_shape: the lengths of these axes. weight, bias: of that shape, or None.
    Raises: ShapeError: when input does not end in normalized_shape, or weight or bias are not of
    that shape.
    Example:
        >>> import funct.array as xp
        >>> from funct.nn import functional as F
        >>> F.layer_norm(xp.asarray([[1.0, 3.0]]), (2,), eps=0.0).tolist()
        [[-1.0, 1.0]]

    Source: Ba, Kiros, Hinton 2016, arXiv:1607.06450.
    """
    axes = _last_axes("layer_norm", input, normalized_shape, weight=weight, bias=bias)
    given = input, weight, bias
    input, weight, bias = widened(*given)
    y, _, _ = _standardised(input, axes, eps)
    y = y if weight is None else y * weight
    return narrowed(y if bias is None else y + bias, *given)


@_compiled
def rms_norm(
    input: Any, normalized_shape: Sequence[int], weight: Any = None, eps: float | None = None
) -> Any:
    """Divide by the root of the mean square over the last axes: x / sqrt(mean(x²) + eps) · weight.

    Args: normalized_shape, weight: as in `layer_norm`. eps: None is the dtype's machine epsilon.
    Raises: ShapeError: as `layer_norm`.
    Example:
        >>> import funct.array as xp
        >>> from funct.nn import functional as F
        >>> [round(v, 3) for v in F.rms_norm(xp.asarray([1.0, 7.0]), (2,)).tolist()]
        [0.2, 1.4]

    Source: Zhang, Sennrich 2019, arXiv:1910.07467.
    """
    axes = _last_axes("rms_norm", input, normalized_shape, weight=weight)
    floor = float(xp.finfo(input.dtype).eps) if eps is None else eps
    given = input, weight
    input, weight = widened(*given)
    y = input * _inverse_root(xp.mean(input * input, axis=axes, keepdims=True), floor)
    return narrowed(y if weight is None else y * weight, *given)


@_compiled
def group_norm(
    input: Any, num_groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5
) -> Any:
    """Normalise each sample over groups of channels and their spatial axes.

    Args: input: shape (N, C, *S). num_groups: divides C. weight, bias: shape (C,) or None.
    Raises: ShapeError: when input has one axis. ArgumentError: when num_groups does not divide C.
    Example:
        >>> import funct.array as xp
        >>> from funct.nn import functional as F
        >>> y = F.group_norm(xp.asarray([[[1.0], [3.0], [10.0], [10.0]]]), 2, eps=0.0001)
        >>> [round(v, 3) for v in xp.ravel(y).tolist()]
        [-1.0, 1.0, 0.0, 0.0]

    Source: Wu, He 2018, arXiv:1803.08494.
    """
    if len(input.shape) < 2:
        raise ShapeError(f"group_norm: input must have shape (N, C, *S), got {input.shape}")
    channels = input.shape[1]
    if num_groups < 1 or channels % num_groups:
        raise ArgumentError(
            f"group_norm: num_groups must divide {channels} channels, got {num_groups}"
        )
    given = input, weight, bias
    input, weight, bias = widened(*given)
    axes = tuple(range(2, len(input.shape)))
    y, _, _ = _normalised(input, axes, weight, bias, eps, channels // num_groups)
    return narrowed(y, *given)


@_compiled
def local_response_norm(
    input: Any, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
) -> Any:
    """Divide by (k + alpha · mean of the squares of `size` neighbouring channels) to the beta.

    Args: input: shape (N, C, *S). size: channels beyond the ends count as 0.
    Raises: ShapeError: when input has fewer than three axes. ArgumentError: when size is not
    positive.
    Example:
        >>> import funct.array as xp
        >>> from funct.nn import functional as F
        >>> y = F.local_response_norm(xp.ones((1, 3, 1)), 3, alpha=3.0, beta=1.0)
        >>> [round(v, 4) for v in xp.ravel(y).tolist()]
        [0.3333, 0.25, 0.3333]

    Source: Krizhevsky, Sutskever, Hinton 2012.
    """
    if len(input.shape) < 3:
        raise ShapeError(
            f"local_response_norm: input must have shape (N, C, *S), got {input.shape}"
        )
    if size < 1:
        raise ArgumentError(f"local_response_norm: size must be positive, got {size}")
    given = input
    (input,) = widened(given)
    squares = ops.move_axis(input * input, 1, len(input.shape) - 1)
    wide = ops.pad_axes(squares, ((size // 2, (size - 1) // 2),))
    mean = ops.avg_pool(wide, (size,), (1,), ((0, 0),), (0,), True)
    return narrowed(
        input / (k + alpha * ops.move_axis(mean, len(input.shape) - 1, 1)) ** beta, given
    )


def _standardised(x: Any, axes: tuple[int, ...], eps: float) -> tuple[Any, Any, Any]:
    """x with mean 0 and variance 1 over axes, and the two that it had."""
    mean = xp.mean(x, axis=axes, keepdims=True)
    centred = x - mean
    var = xp.mean(centred * centred, axis=axes, keepdims=True)
    return centred * _inverse_root(var, eps), mean, var


def _normalised(
    x: Any, axes: tuple[int, ...], weight: Any, bias: Any, eps: float, each: int = 1
) -> tuple[Any, Any, Any]:
    """x with mean 0 and variance 1 over axes, times weight, plus bias; the mean and the variance.

    each: how many channels, side by side, have these in common.

    What is subtracted from x is a constant to derivatives: the mean that is left, 0 but for
    rounding, has all of the mean's. So they are two sums, then one pass that reads them.
    """
    kept = tuple([1 if a in axes else k for a, k in enumerate(x.shape)])  # (N or 1, C, 1, ...)
    shape = kept if each == 1 else (kept[0], kept[1] // each, each)  # of statistics
    count = ops.count_along(x, axes) * each

    def mean(v: Any) -> Any:
        total = xp.sum(v, axis=axes, keepdims=True)
        if each > 1:
            total = xp.sum(xp.reshape(total, shape), axis=2, keepdims=True)
        return total / count

    def channels(v: Any) -> Any:
        return v if each == 1 else xp.reshape(xp.broadcast_to(v, shape), kept)

    weight, bias = (v if v is None else xp.reshape(v, (1, *shape[1:])) for v in (weight, bias))
    centre = ops.stop_gradient(mean(x))
    centred = x - channels(centre)
    rest = mean(centred)
    squared = rest * rest  # which the variance has lost: as 0, for its derivatives alone
    var = mean(centred * centred) - (squared - ops.stop_gradient(squared))
    factor = _inverse_root(var, eps)
    factor = factor if weight is None else factor * weight
    shift = -rest * factor if bias is None else bias - rest * factor
    return centred * channels(factor) + channels(shift), centre + rest, var


def _inverse_root(var: Any, eps: float) -> Any:
    return 1.0 / xp.sqrt(var + eps)  # one division for each statistic, not for each element


def _last_axes(name: str, x: Any, normalized_shape: Any, **parameters: Any) -> tuple[int, ...]:
    one = isinstance(normalized_shape, int)
    shape = (normalized_shape,) if one else tuple(normalized_shape)
    rank = len(x.shape)
    if not shape or len(shape) > rank or tuple(x.shape[rank - len(shape) :]) != shape:
        raise ShapeError(f"{name}: input must end in the axes {shape}, got {x.shape}")
    for argument, value in parameters.items():
        if value is not None and tuple(value.shape) != shape:
            raise ShapeError(f"{name}: {argument} must have shape {shape}, got {value.shape}")
    return tuple(range(rank - len(shape), rank))


def _channel(v: Any, x: Any) -> Any:
    return xp.reshape(v, (1, -1, *(1,) * (len(x.shape) - 2)))  # (1, C, 1, ...)


def _scaled(x: Any, mean: Any, var: Any, weight: Any, bias: Any, eps: float) -> Any:
    """One factor and one shift per channel: two passes over x instead of four."""
    given = x, mean, var, weight, bias
    x, mean, var, weight, bias = widened(*given)
    factor = _inverse_root(var, eps)
    factor = factor if weight is None else factor * weight
    shift = -mean * factor
    shift = shift if bias is None else shift + bias
    return narrowed(x * _channel(factor, x) + _channel(shift, x), *given)


def _check_count(name: str, x: Any, axes: tuple[int, ...]) -> None:
    n = ops.axis_count(x, axes)
    if not isinstance(n, Size) and n <= 1:
        raise ShapeError(f"{name}: training needs more than one value per channel, got {x.shape}")


def _moved(old: Any, new: Any, momentum: Any) -> Any:
    new = ops.stop_gradient(new)
    return ops.astype(old * (1.0 - momentum) + new * momentum, old.dtype)
