"""Layers and losses on few elements, with NumPy's functions called as rarely as can be.

Each gives, bit for bit, what the function of its name in `funct.nn.functional` composes of
primitives, or None: for arguments that are seldom given, and from FEW elements on, where machine
code pays.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from funct.kernels.elementwise import sigmoid

__all__ = [
    "FEW", "avg_pool", "cross_entropy", "gelu", "layer_norm", "log_softmax", "max_pool", "nll_loss",
    "silu", "softmax",
]  # fmt: skip

ndarray = np.ndarray

FEW = 1 << 12  # elements from which on a call of compiled code costs less than what it saves

_add: Any = np.add.reduce
_maximum: Any = np.maximum.reduce
_FLOATS = frozenset({np.dtype(np.float32), np.dtype(np.float64)})
_SQRT_TWO_OVER_PI = math.sqrt(2.0 / math.pi)


def _known(x: Any, dim: Any) -> bool:
    """Whether x has elements along dim, and few."""
    return x.dtype in _FLOATS and dim.__class__ is int and 0 < x.size < FEW and bool(x.ndim)


def softmax(x: Any, dim: Any, dtype: Any = None) -> Any:
    """exp(x) / Σ exp(x) along dim."""
    if dtype is not None or not _known(x, dim):
        return None
    e = x - _maximum(x, dim, None, None, True)
    np.exp(e, e)
    e *= 1.0 / _add(e, dim, None, None, True)
    return e


def log_softmax(x: Any, dim: Any, dtype: Any = None) -> Any:
    """log(softmax(x)) along dim."""
    if dtype is not None or not _known(x, dim):
        return None
    shifted = x - _maximum(x, dim, None, None, True)
    shifted -= np.log(_add(np.exp(shifted), dim, None, None, True))
    return shifted


def silu(x: Any, inplace: Any = False) -> Any:
    """x sigmoid(x)."""
    if inplace or x.dtype not in _FLOATS or x.size >= FEW:
        return None
    return x * sigmoid(x)


def gelu(x: Any, approximate: Any = "none") -> Any:
    """x Φ(x), by the formula with tanh."""
    if approximate != "tanh" or x.dtype not in _FLOATS or x.size >= FEW:
        return None
    inner = x * x
    inner *= x
    inner *= 0.044715
    inner += x
    inner *= _SQRT_TWO_OVER_PI
    np.tanh(inner, inner)
    inner += 1.0
    inner *= 0.5 * x
    return inner


def layer_norm(
    x: Any, normalized_shape: Any, weight: Any = None, bias: Any = None, eps: Any = 1e-5
) -> Any:
    """(x - mean) / sqrt(var + eps) · weight + bias over the last axes."""
    shape = (normalized_shape,) if normalized_shape.__class__ is int else tuple(normalized_shape)
    k = x.ndim - len(shape)
    if x.dtype not in _FLOATS or not 0 < x.size < FEW or eps.__class__ is not float:
        return None
    if k < 0 or not shape or x.shape[k:] != shape:
        return None
    for given in (weight, bias):
        if given is not None and not (
            given.__class__ is ndarray and given.shape == shape and given.dtype is x.dtype
        ):
            return None
    axes = tuple(range(k, x.ndim)) if len(shape) > 1 else -1
    n = math.prod(shape)
    y = x - _add(x, axes, None, None, True) / n
    y *= 1.0 / np.sqrt(_add(y * y, axes, None, None, True) / n + eps)
    if weight is not None:
        y *= weight
    if bias is not None:
        y += bias
    return y


def cross_entropy(
    x: Any, target: Any, weight: Any = None, size_average: Any = None, ignore_index: Any = -100,
    reduce: Any = None, reduction: Any = "mean", label_smoothing: Any = 0.0,
) -> Any:  # fmt: skip
    """-log softmax(x) at class indices."""
    if label_smoothing != 0.0 or x.ndim != 2 or not _known(x, 1):
        return None
    return nll_loss(
        log_softmax(x, 1), target, weight, size_average, ignore_index, reduce, reduction
    )


def nll_loss(
    x: Any, target: Any, weight: Any = None, size_average: Any = None, ignore_index: Any = -100,
    reduce: Any = None, reduction: Any = "mean",
) -> Any:  # fmt: skip
    """-x at class indices that all count."""
    if weight is not None or size_average is not None or reduce is not None:
        return None
    n = target.size
    if x.ndim != 2 or not _known(x, 1) or target.shape != x.shape[:1] or target.dtype.kind != "i":
        return None
    if ignore_index.__class__ is not int or 0 <= ignore_index < x.shape[1]:
        return None
    if target.item(target.argmin()) < 0:
        return None
    loss = -x[_rows(n), target]
    if reduction == "mean":
        return _add(loss) / x.dtype.type(n)
    if reduction == "sum":
        return _add(loss)
    return loss if reduction == "none" else None


@functools.lru_cache(64)
def _rows(n: int) -> Any:
    return np.arange(n)


def _folded(fold: Any, x: Any, rank: int, size: Any, stride: Any) -> Any:
    """Windows of the last axes, unpadded, folded into one element each, the outer axis first."""
    if stride is None:
        stride = size
    if not size.__class__ is stride.__class__ is int or size < 1 or stride < 1:
        return None
    if x.dtype not in _FLOATS or not 0 < x.size < FEW or not 1 <= x.ndim - rank <= 2:
        return None
    for axis in range(x.ndim - rank, x.ndim):
        n = x.shape[axis] - size + 1
        if n < 1:
            return None
        before = (slice(None),) * axis
        y = x[(*before, slice(0, n, stride))]
        for tap in range(1, size):
            y = fold(y, x[(*before, slice(tap, n + tap, stride))])
        x = y
    return x


def avg_pool(rank: int) -> Callable[..., Any]:
    """The function of so many pooled axes."""

    def run(
        x: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: Any = False,
        count_include_pad: Any = True, divisor_override: Any = None,
    ) -> Any:  # fmt: skip
        if padding.__class__ is not int or padding or ceil_mode or divisor_override is not None:
            return None
        total = _folded(np.add, x, rank, kernel_size, stride)
        return None if total is None else total / kernel_size**rank

    return run


def max_pool(rank: int) -> Callable[..., Any]:
    """The function of so many pooled axes."""

    def run(
        x: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1,
        ceil_mode: Any = False, return_indices: Any = False,
    ) -> Any:  # fmt: skip
        if padding.__class__ is not int or padding or ceil_mode or return_indices:
            return None
        if dilation.__class__ is not int or dilation != 1:
            return None
        return _folded(np.maximum, x, rank, kernel_size, stride)

    return run
