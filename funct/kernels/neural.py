"""Layers and losses on few elements: one call of machine code, or a few of NumPy's.

Each gives, bit for bit, what the function of its name in `funct.nn.functional` composes of
primitives, or None: for arguments that are seldom given, and from FEW elements on, where the
composition is compiled. Windows are pooled so at any size.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from funct.kernels.cpu import neural as cpu
from funct.kernels.cpu.loops import ready
from funct.kernels.elementwise import functions as elementwise
from funct.kernels.elementwise.functions import times_sigmoid
from funct.kernels.elementwise.thresholds import MANY
from funct.kernels.indexing.gather import take
from funct.kernels.indexing.positions import PLACES
from funct.kernels.linalg.csr import product
from funct.kernels.linalg.products import matmul
from funct.kernels.reductions.shares import FEW, in_code, is_few, log_softmax, softmax
from funct.kernels.table import find
from funct.kernels.windows.convolution import called
from funct.kernels.windows.pooling import max_pool, mean_pool
from funct.kernels.windows.pooling_few import places_of_few, plan_of, pooled_few
from funct.kernels.windows.views import Sliding, output_size

__all__ = [
    "FEW", "NORMED", "avg_pool_of", "conv_of", "cross_entropy", "embedding", "embedding_bag",
    "gelu", "layer_norm", "linear", "log_softmax", "max_pool_of", "nll_loss", "one_hot", "relu",
    "sigmoid", "silu", "softmax", "softplus",
]  # fmt: skip

ndarray = np.ndarray

NORMED = 1 << 10  # elements from which on norms, which have so many ops, are compiled

_add: Any = np.add.reduce
_plus: Any = np.add
_maximum: Any = np.maximum
_empty = np.empty
_SINGLE, _DOUBLE = np.dtype(np.float32), np.dtype(np.float64)
_WIDE = frozenset({_SINGLE, _DOUBLE})  # sums of others are of these
_ZERO = {d: np.zeros((), d) for d in _WIDE}  # which ufuncs take in half the time of a number
_REDUCTIONS = frozenset({"mean", "sum", "none"})
_SQRT_TWO_OVER_PI = math.sqrt(2.0 / math.pi)


def relu(x: Any, inplace: Any = False) -> Any:
    """max(x, 0), at any size: what is compiled has the same bits."""
    if inplace is not False or x.dtype not in _WIDE or not x.size:
        return None
    if x.size < MANY:
        return _maximum(x, _ZERO[x.dtype])
    return _rectifying()(x) if x.flags.c_contiguous else None


@functools.cache
def _rectifying() -> Callable[[Any], Any]:
    """max(x, 0) of many elements."""
    found: Callable[[Any], Any] = find("elementwise", _SINGLE)("relu", elementwise.relu, 1)
    return found


def sigmoid(x: Any) -> Any:
    """1 / (1 + exp(-x))."""
    return elementwise.sigmoid(x) if is_few(x) and x.size < MANY else None


def linear(x: Any, w: Any, bias: Any = None) -> Any:
    """x times the transpose of w, plus the bias."""
    d = x.dtype
    if w.ndim != 2 or not 0 < x.ndim < 3 or d is not w.dtype or not is_few(x):
        return None
    if x.shape[-1] != w.shape[1] or w.size >= FEW:
        return None
    y = matmul(x, w.T)
    if bias is not None:
        if bias.__class__ is not ndarray or bias.dtype is not d or bias.ndim > 1:
            return None
        _plus(y, bias, y)
    return y


def embedding(
    i: Any, weight: Any, padding_idx: Any = None, max_norm: Any = None, norm_type: Any = 2.0,
    scale_grad_by_freq: Any = False, sparse: Any = False,
) -> Any:  # fmt: skip
    """The rows of weight at i."""
    if padding_idx is not None or max_norm is not None or scale_grad_by_freq or sparse:
        return None
    if weight.ndim != 2 or i.dtype.num not in PLACES or not i.size or i.item(i.argmin()) < 0:
        return None
    return take(weight, i, 0)


def embedding_bag(
    i: Any, weight: Any, offsets: Any = None, max_norm: Any = None, norm_type: Any = 2,
    scale_grad_by_freq: Any = False, mode: Any = "mean", sparse: Any = False,
    per_sample_weights: Any = None, include_last_offset: Any = False, padding_idx: Any = None,
) -> Any:  # fmt: skip
    """The sums or means of rows of weight: a sparse matrix of ones times it."""
    if padding_idx is not None or max_norm is not None or scale_grad_by_freq or sparse:
        return None
    if per_sample_weights is not None or mode not in ("sum", "mean") or not ready(i.size):
        return None
    if weight.ndim != 2 or weight.dtype not in _WIDE or not i.size:
        return None
    if offsets is None:
        if i.ndim != 2:
            return None
        ends = _bags(*i.shape)
        i = i.reshape(-1)
    elif i.ndim != 1 or offsets.ndim != 1 or not 0 < offsets.size <= i.size or offsets.item(0):
        return None
    elif not include_last_offset:
        ends = _empty(offsets.size + 1, offsets.dtype)
        ends[:-1], ends[-1] = offsets, i.size
    elif offsets.item(-1) == i.size:
        ends = offsets
    else:
        return None
    y = product(np.ones(i.size, weight.dtype), weight, i, ends, weight.shape[0], False)
    if y is not None and mode == "mean":
        y /= np.maximum(np.diff(ends), 1).astype(y.dtype)[:, None]
    return y


@functools.lru_cache(64)
def _bags(count: int, length: int) -> Any:
    """Where bags that are alike begin and end."""
    return np.arange(0, (count + 1) * length, length) if length else None


def one_hot(i: Any, num_classes: Any = -1) -> Any:
    """A 1 in each row of zeros, where the index is one of the classes."""
    if num_classes.__class__ is not int or num_classes < 1 or i.dtype.num not in PLACES:
        return None
    if num_classes - 1 > np.iinfo(i.dtype).max or not i.size:
        return None
    y = np.zeros((i.size, num_classes), np.int64)
    at, rows = i.reshape(-1), _rows(i.size)
    inside = (at >= 0) & (at < num_classes)
    if not inside.all():
        at, rows = at[inside], rows[inside]
    y[rows, at] = 1
    return y.reshape(*i.shape, num_classes)


def silu(x: Any, inplace: Any = False) -> Any:
    """x sigmoid(x)."""
    return times_sigmoid(x) if not inplace and is_few(x) and x.size < MANY else None


def softplus(x: Any, beta: Any = 1, threshold: Any = 20) -> Any:
    """log(1 + exp(beta x)) / beta, or x."""
    known = (int, float)
    if not is_few(x) or beta.__class__ not in known or threshold.__class__ not in known:
        return None
    if not beta or not in_code(x):
        return None
    y = _empty(x.shape, x.dtype)
    cpu.softplus(x, y, x.size, float(beta), float(threshold))
    return y


def gelu(x: Any, approximate: Any = "none") -> Any:
    """x Φ(x), by the formula with tanh."""
    if approximate != "tanh" or not is_few(x):
        return None
    if in_code(x):
        y = _empty(x.shape, x.dtype)
        cpu.gelu(x, y, x.size)
        return y
    if x.size >= MANY:
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
    if not is_few(x) or x.size >= NORMED or eps.__class__ is not float:
        return None
    if k < 0 or not shape or x.shape[k:] != shape:
        return None
    for given in (weight, bias):
        if given is not None and not (
            given.__class__ is ndarray and given.shape == shape and given.dtype is x.dtype
        ):
            return None
    n = math.prod(shape)
    if len(shape) == 1 and in_code(x):
        y = _empty(x.shape, x.dtype)
        weighted, biased = weight is not None, bias is not None
        cpu.layer_norm(
            x, weight if weighted else x, bias if biased else x, y, _empty(n, x.dtype),
            x.size // n, n, eps, weighted, biased,
        )  # fmt: skip
        return y
    axes = tuple(range(k, x.ndim)) if len(shape) > 1 else -1
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
    if label_smoothing != 0.0 or x.ndim != 2:
        return None
    if size_average is not None or reduce is not None:
        return None
    return _class_loss(x, target, weight, ignore_index, reduction, True)


def nll_loss(
    x: Any, target: Any, weight: Any = None, size_average: Any = None, ignore_index: Any = -100,
    reduce: Any = None, reduction: Any = "mean",
) -> Any:  # fmt: skip
    """-x at class indices that all count."""
    if size_average is not None or reduce is not None or x.ndim != 2:
        return None
    return _class_loss(x, target, weight, ignore_index, reduction, False)


def _class_loss(
    x: Any, target: Any, weight: Any, ignore_index: Any, reduction: Any, logits: bool
) -> Any:
    n, classes = x.shape
    if logits:
        known = is_few(x)
    else:
        known = x.dtype in _WIDE and x.size > 0 and (n < FEW or in_code(x))
    if weight is not None or not known or target.shape != (n,) or target.dtype.kind != "i":
        return None
    if ignore_index.__class__ is not int or 0 <= ignore_index < classes:
        return None
    if reduction not in _REDUCTIONS:
        return None
    if in_code(x):
        loss = _empty(n if reduction == "none" else (), x.dtype)
        room = _empty(2 * x.size if logits else n, x.dtype)
        if cpu.class_loss(x, target, loss, room, n, classes, logits, reduction):
            return None
        return loss
    if target.item(target.argmin()) < 0 or (logits and x.size >= MANY):
        return None
    if logits:
        x = log_softmax(x, 1)
    loss = -x[_rows(n), target]
    if reduction == "mean":
        return _add(loss) / x.dtype.type(n)
    return _add(loss) if reduction == "sum" else loss


@functools.lru_cache(64)
def _rows(n: int) -> Any:
    return np.arange(n)


def _folded(how: str, x: Any, rank: int, size: Any, stride: Any, padding: Any) -> Any:
    """Windows of the last axes: the "mean" of each, of zeros around them too, or its "max"."""
    if stride is None:
        stride = size
    d = x.dtype
    if not size.__class__ is stride.__class__ is padding.__class__ is int:
        return None
    windows = _windows(x.shape, d, rank, size, stride, padding) if d in _WIDE else None
    if windows is None:
        return None
    given, plan, means = windows
    if plan is not None and (how == "max" or not padding) and ready(FEW):
        return pooled_few(x, plan, how)
    return max_pool(x, *given) if how == "max" else mean_pool(x, *means)


@functools.lru_cache(256)
def _windows(
    shape: tuple[int, ...], dtype: Any, rank: int, size: int, stride: int, padding: int
) -> Any:
    """What pooling functions are told of such windows, the plan for few elements, if any, and what
    means are told; None for no elements.
    """
    if not 1 <= len(shape) - rank <= 2 or 0 in shape:
        return None
    if size < 1 or stride < 1 or not 0 <= padding <= size // 2 or min(shape[-rank:]) < size:
        return None
    given = ((size,) * rank, (stride,) * rank, ((padding, padding),) * rank, (1,) * rank)
    plan = plan_of(shape, *given, True)
    counts = np.full(output_size(shape[-rank:], *given), size**rank, dtype)
    return given, plan, (*given[:3], counts)


def avg_pool_of(rank: int) -> Callable[..., Any]:
    """The function of so many pooled axes."""

    def run(
        x: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: Any = False,
        count_include_pad: Any = True, divisor_override: Any = None,
    ) -> Any:  # fmt: skip
        if ceil_mode or divisor_override is not None or count_include_pad is not True:
            return None
        return _folded("mean", x, rank, kernel_size, stride, padding)

    return run


def max_pool_of(rank: int) -> Callable[..., Any]:
    """The function of so many pooled axes."""

    def run(
        x: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1,
        ceil_mode: Any = False, return_indices: Any = False,
    ) -> Any:  # fmt: skip
        if ceil_mode or dilation.__class__ is not int or dilation != 1:
            return None
        if return_indices:
            return _with_places(x, rank, kernel_size, stride, padding)
        return _folded("max", x, rank, kernel_size, stride, padding)

    return run


def _with_places(x: Any, rank: int, size: Any, stride: Any, padding: Any) -> Any:
    """The maxima of windows of few elements, and where they are."""
    y = _folded("max", x, rank, size, stride, padding) if x.size < FEW else None
    if y is None or not ready(FEW):
        return None
    _, plan, _ = _windows(x.shape, x.dtype, rank, size, size if stride is None else stride, padding)
    return None if plan is None else (y, places_of_few(x, plan))


def conv_of(rank: int) -> Callable[..., Any]:
    """The function of so many spatial axes."""

    def run(
        x: Any, w: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
        groups: Any = 1,
    ) -> Any:  # fmt: skip
        d = x.dtype
        if x.ndim != rank + 2 or d is not w.dtype or groups.__class__ is not int or groups < 1:
            return None
        if bias is not None and (bias.__class__ is not ndarray or bias.dtype is not d):
            return None
        slide = _sliding(rank, stride, padding, dilation, groups)
        if slide is None:
            return None
        y = called("convolution", x, w, slide)
        if not y.size:
            return None  # of no images, or refused by name
        if bias is not None:
            y += bias.reshape(-1, *(1,) * rank)
        return y

    return run


@functools.lru_cache(256, typed=True)
def _sliding(
    rank: int, stride: Any, padding: Any, dilation: Any, groups: int
) -> Sliding | None:  # fmt: skip
    """How windows slide; None for what is no such thing."""
    strides, dilations = _each(stride, rank, 1), _each(dilation, rank, 1)
    pads = _each(padding, rank, 0)
    if strides is None or dilations is None or pads is None:
        return None
    return Sliding(strides, tuple([(p, p) for p in pads]), dilations, groups)


def _each(value: Any, rank: int, least: int) -> Any:
    """An int for each axis; None for what is no such thing."""
    if value.__class__ is int:
        return (value,) * rank if value >= least else None
    if value.__class__ is not tuple or len(value) != rank:
        return None
    for n in value:
        if n.__class__ is not int or n < least:
            return None
    return value
