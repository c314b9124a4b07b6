"""Chapter: sliding windows and pooling, over the last axes; whatever stands before them is kept.

window, stride and dilation have one int per pooled axis, padding one (low, high) pair.
"""

from __future__ import annotations

import functools
import operator
from typing import Any

import numpy as np

from funct import ops
from funct.core import FLOATING, Pair, Sample, Shape, ShapeDtype, Value
from funct.errors import ExportError, ShapeError
from funct.kernels.elementwise.casting import in_dtype
from funct.kernels.windows import pooling as kernels
from funct.kernels.windows import views as sliding
from funct.ops import fast
from funct.ops.broadcasting import same_call
from funct.ops.families import structural
from funct.ops.fast import wrap
from funct.ops.samples import calls

__all__ = [
    "always_meet", "avg_pool", "fold_windows", "max_pool", "max_pool_index", "pad_axes",
    "whole_padding", "window_counts", "windows",
]  # fmt: skip

Pads = tuple[tuple[int, int], ...]

_INT64, _SINGLE = np.dtype(np.int64), np.dtype(np.float32)


def pad_axes(x: Value, padding: Pads) -> Value:
    """x with zeros around its last axes; negative amounts crop."""
    lead = len(x.shape) - len(padding)
    whole = ((None, None, 1),) * lead
    if any(low < 0 or high < 0 for low, high in padding):
        crop = [(max(-low, 0) or None, min(high, 0) or None, 1) for low, high in padding]
        x = ops.slice_(x, (*whole, *crop))
    grow = [(max(low, 0), max(high, 0)) for low, high in padding]
    if not any(low or high for low, high in grow):
        return x
    inner = zip(x.shape[lead:], grow, strict=True)
    index = [(low, low + n, 1) for n, (low, _) in inner]
    shape = [n + low + high for n, (low, high) in zip(x.shape[lead:], grow, strict=True)]
    return ops.embed(x, (*whole, *index), (*x.shape[:lead], *shape))


def _unpad(x: Value, padding: Pads) -> Value:
    return pad_axes(x, tuple([(-low, -high) for low, high in padding]))


# ONNX: its pooling takes (N, C, *S); windows are positions in the flat image -------------------


def _onnx_images(w: Any, x: str, rank: int) -> str:
    """x as (N, C, *S)."""
    shape = w.shape_of(x)
    lead, size = shape[: len(shape) - rank], shape[len(shape) - rank :]
    if len(lead) == 2:
        return x
    return str(w.op("Reshape", x, w.dims((_count(lead), 1, *size), infer=True)))


def _onnx_back(w: Any, y: str, rank: int) -> str:
    """y, computed from `_onnx_images`, with the axes it should have."""
    shape = w.results[0].shape
    return y if len(shape) == rank + 2 else str(w.op("Reshape", y, w.dims(shape, infer=True)))


def _onnx_positions(name: str, shape: Shape, size: Shape, stride: Shape, dilation: Shape) -> Any:
    """Flat index into an image of `shape` of each element of each window, (*T, *size)."""
    if not all(isinstance(n, int) for n in shape):
        raise ExportError(f"{name}: ONNX needs fixed image sizes, got {shape}")
    flat = np.arange(_count(shape), dtype=np.int64).reshape(shape)
    return sliding.windows(flat, size, stride, dilation)


def _onnx_windows(w: Any, x: str, size: Shape, stride: Shape, dilation: Shape) -> str:
    shape = w.shape_of(x)
    lead = len(shape) - len(size)
    at = _onnx_positions("windows", shape[lead:], size, stride, dilation)
    flat = w.op("Reshape", x, w.dims((*shape[:lead], _count(shape[lead:])), infer=True))
    return str(w.op("Gather", flat, w.constant(at), axis=lead))


def _onnx_fold(w: Any, g: str, shape: Shape, stride: Shape, dilation: Shape) -> str:
    given, rank = w.shape_of(g), len(shape)
    lead, size = given[: len(given) - 2 * rank], given[len(given) - rank :]
    at = _onnx_positions("fold_windows", shape, size, stride, dilation).reshape(-1, 1)
    n = len(lead)
    flat = w.op("Reshape", g, w.dims((*lead, len(at)), infer=True))
    first = w.op("Transpose", flat, perm=[n, *range(n)])  # ScatterND writes along the first axis
    zeros = w.op("Expand", w.constant(0, w.dtype_of(g)), w.dims((_count(shape), *lead)))
    added = w.op("ScatterND", zeros, w.constant(at), first, reduction="add")
    last = w.op("Transpose", added, perm=[*range(1, n + 1), 0])
    return str(w.op("Reshape", last, w.dims((*lead, *shape), infer=True)))


# windows and their adjoint ------------------------------------------------------------------------


def _windows_shape(x: Shape, size: Shape, stride: Shape, dilation: Shape) -> Shape:
    lead = len(x) - len(size)
    none = ((0, 0),) * len(size)
    return (*x[:lead], *sliding.output_size(x[lead:], size, stride, none, dilation), *size)


def _windows_rule(g: Value, size: Shape, stride: Shape, dilation: Shape, x_shape: Shape) -> Value:
    return ops.fold_windows(g, x_shape[len(x_shape) - len(size) :], stride, dilation)


@structural(
    sliding.windows, _windows_rule, shape=_windows_shape, batch=same_call,
    onnx=_onnx_windows,
    samples=calls(lambda rng: Sample((rng.normal(size=(2, 5, 6)),), ((2, 3), (1, 2), (2, 1)))),
)  # fmt: skip
def windows(x: Value, size: Shape, stride: Shape, dilation: Shape) -> Value:
    """Sliding windows over the last axes, (..., *S) to (..., *T, *size); a view."""


def _fold_shape(g: Shape, shape: Shape, stride: Shape, dilation: Shape) -> Shape:
    if not len(shape) == len(stride) == len(dilation) or 2 * len(shape) > len(g):
        raise ShapeError(f"fold_windows: {shape}, {stride} and {dilation} have other axes than {g}")
    return (*g[: len(g) - 2 * len(shape)], *shape)


def _fold_rule(h: Value, stride: Shape, dilation: Shape, g_shape: Shape) -> Value:
    return ops.windows(h, g_shape[len(g_shape) - len(stride) :], stride, dilation)


@structural(
    kernels.fold_windows, _fold_rule, shape=_fold_shape, batch=same_call,
    onnx=_onnx_fold,
    samples=calls(
        lambda rng: Sample((rng.normal(size=(2, 3, 2, 2, 3)),), ((5, 6), (1, 2), (2, 1)))
    ),
)  # fmt: skip
def fold_windows(g: Value, shape: Shape, stride: Shape, dilation: Shape) -> Value:
    """Adjoint of `windows`: overlapping windows added into the last axes of `shape`."""


# max pooling --------------------------------------------------------------------------------------


def _pooled(x: Shape, window: Shape, stride: Shape, padding: Pads, dilation: Shape) -> Shape:
    lead = len(x) - len(window)
    size = sliding.output_size(x[lead:], window, stride, padding, dilation)
    if any(isinstance(n, int) and n < 1 for n in size):
        raise ShapeError(f"pooling: window {window} is larger than the padded shape {x}")
    return (*x[:lead], *size)


def _count(window: Shape) -> int:
    n = 1
    for k in window:
        n *= k
    return n


def _flat_images(x: Value, rank: int) -> Value:
    """x with its last axes as one."""
    lead = len(x.shape) - rank
    return ops.reshape(x, (*x.shape[:lead], ops.axis_count(x, tuple(range(lead, len(x.shape))))))


def always_meet(window: Shape, padding: Pads, dilation: Shape) -> bool:
    """Whether every window meets an element of x, whatever its size."""
    each = zip(window, padding, dilation, strict=True)
    return all(max(low, high) < k and (d == 1 or max(low, high) <= 0) for k, (low, high), d in each)


def _max_pool_push(
    t: Value, ans: Value, x: Value, window: Shape, stride: Shape, padding: Pads, dilation: Shape
) -> Value:
    at = ops.max_pool_index(x, window, stride, padding, dilation)
    flat, rank = _flat_images(at, len(window)), len(window)
    met = always_meet(window, padding, dilation)
    inside = flat if met else ops.maximum(flat, 0)
    found = ops.take_along_axis(_flat_images(t, rank), inside, len(flat.shape) - 1)
    if not met:
        found = ops.where(ops.less(flat, 0), 0.0, found)
    return ops.reshape(found, at.shape)


def _max_pool_pull(
    g: Any, x: Any, window: Shape, stride: Shape, padding: Pads, dilation: Shape
) -> Value:
    if g.__class__ is x.__class__ is fast.Array:  # nobody asks how: one pass
        pulled = kernels.max_pool_pull(g.data, x.data, window, stride, padding, dilation)
        if pulled is not None:
            return wrap(pulled)
    if (wide := sliding.sum_dtype(g.dtype)) is not g.dtype:  # sums are rounded once
        single = _max_pool_pull(
            ops.astype(g, wide), ops.astype(x, wide), window, stride, padding, dilation
        )
        return ops.astype(single, g.dtype)
    rank = len(window)
    at = _flat_images(ops.max_pool_index(x, window, stride, padding, dilation), rank)
    g, last = _flat_images(g, rank), len(at.shape) - 1
    if not always_meet(window, padding, dilation):
        g, at = ops.where(ops.less(at, 0), 0.0, g), ops.maximum(at, 0)
    axes = tuple(range(len(x.shape) - rank, len(x.shape)))
    return ops.reshape(ops.put_along_axis(g, at, last, ops.axis_count(x, axes)), x.shape)


def _onnx_pool_attributes(window: Shape, stride: Shape, padding: Pads) -> dict[str, Any]:
    pads = [low for low, _ in padding] + [high for _, high in padding]
    if min(pads, default=0) < 0:
        raise ExportError(f"pooling: ONNX pads must be >= 0, got padding {padding}")
    return {"kernel_shape": list(window), "strides": list(stride), "pads": pads}


def _onnx_max_pool(
    w: Any, x: str, window: Shape, stride: Shape, padding: Pads, dilation: Shape
) -> str:
    attributes = _onnx_pool_attributes(window, stride, padding)
    images = _onnx_images(w, x, len(window))
    y = w.op("MaxPool", images, dilations=list(dilation), **attributes)
    return _onnx_back(w, y, len(window))


def _onnx_max_pool_index(
    w: Any, x: str, window: Shape, stride: Shape, padding: Pads, dilation: Shape
) -> str:
    rank = len(window)
    size = tuple(w.shape_of(x)[len(w.shape_of(x)) - rank :])
    if not all(isinstance(n, int) for n in size):
        raise ExportError(f"max_pool_index: ONNX needs fixed image sizes, got {size}")
    attributes = _onnx_pool_attributes(window, stride, padding)
    images = _onnx_images(w, x, rank)
    at = w.op_many("MaxPool", 2, images, dilations=list(dilation), **attributes)[1]
    inside = w.op("Mod", at, w.constant(_count(size), _INT64))  # it counts through all images
    return _onnx_back(w, inside, rank)


_POOL = ["x", "window", "stride", "padding", "dilation"]
_POOL_SAMPLES = calls(
    lambda rng: Sample(
        (rng.normal(size=(2, 1, 4, 5)),), ((2, 2), (2, 1), ((0, 0), (1, 1)), (1, 1))
    ),
    lambda rng: Sample((rng.normal(size=(2, 7)),), ((2,), (2,), ((1, 0),), (2,))),
)


@structural(
    kernels.max_pool, Pair(_max_pool_push, _max_pool_pull, _POOL), shape=_pooled, batch=same_call,
    onnx=_onnx_max_pool, samples=_POOL_SAMPLES, masks=True,
)  # fmt: skip
def max_pool(x: Value, window: Shape, stride: Shape, padding: Pads, dilation: Shape) -> Value:
    """Maximum of each window; padding never wins. The derivative goes to the first maximum, of
    several NaN to the last.
    """


@structural(
    kernels.max_pool_index, None, batch=same_call, onnx=_onnx_max_pool_index,
    samples=_POOL_SAMPLES,
    aval=lambda args, params: ShapeDtype(_pooled(args[0].shape, *params), np.dtype(np.int64)),
)  # fmt: skip
def max_pool_index(x: Value, window: Shape, stride: Shape, padding: Pads, dilation: Shape) -> Value:
    """Flat index in the image of each window's first maximum, of several NaN the last one's; -1 for
    a window of padding.
    """


# average pooling ----------------------------------------------------------------------------------


def window_counts(
    dtype: Any, size: Shape, window: Shape, stride: Shape, padding: Pads, extra: Shape,
    include: bool,
) -> np.ndarray[Any, Any]:  # fmt: skip
    """Divisor of each window, shape *T: `include` counts padding; ceil mode's extra is not."""
    size = tuple(map(operator.index, size))  # a symbolic one is asked each time
    return _counts_of(dtype, size, window, stride, padding, extra, bool(include))


@functools.lru_cache(256)
def _counts_of(
    dtype: Any, size: Shape, window: Shape, stride: Shape, padding: Pads, extra: Shape,
    include: bool,
) -> np.ndarray[Any, Any]:  # fmt: skip
    total = np.ones((), np.int64)
    pairs = zip(size, window, stride, padding, extra, strict=True)
    for n, k, s, (low, high), more in pairs:
        real = np.zeros(n + low + high + more, np.int64)
        real[: n + low + high] = 1 if include else 0
        real[low : low + n] = 1
        starts = np.arange((len(real) - k) // s + 1) * s
        along = np.add.reduce(real[starts[:, None] + np.arange(k)], 1)
        total = total[..., None] * along
    found = total.astype(dtype)
    found.flags.writeable = False
    return found


@functools.lru_cache(256)
def _pulled_by(*how: Any) -> np.ndarray[Any, Any]:
    """`_counts_of`, but one number where all are equal: quotients by it are vectors."""
    counts = _counts_of(*how)
    first = counts[(0,) * counts.ndim]
    return np.asarray(first) if (counts == first).all() else counts


def whole_padding(padding: Pads, extra: Shape) -> Pads:
    """The padding with what ceil mode adds behind it."""
    return tuple([(low, high + more) for (low, high), more in zip(padding, extra, strict=True)])


def _avg_raw(
    x: Any, window: Shape, stride: Shape, padding: Pads, extra: Shape, include: bool
) -> Any:
    if x.dtype in FLOATING and x.dtype.itemsize < 4:  # a sum may leave the range of its mean
        y = _avg_raw(in_dtype(x, _SINGLE), window, stride, padding, extra, include)
        return in_dtype(y, x.dtype)
    size = x.shape[x.ndim - len(window) :]
    counts = window_counts(x.dtype, size, window, stride, padding, extra, include)
    return kernels.mean_pool(x, window, stride, whole_padding(padding, extra), counts)


def _avg_shape(
    x: Shape, window: Shape, stride: Shape, padding: Pads, extra: Shape, include: bool
) -> Shape:
    return _pooled(x, window, stride, whole_padding(padding, extra), (1,) * len(window))


def _avg_rule(
    g: Any,
    window: Shape,
    stride: Shape,
    padding: Pads,
    extra: Shape,
    include: bool,
    x_shape: Shape,
) -> Value:
    lead = len(x_shape) - len(window)
    size = tuple(map(operator.index, x_shape[lead:]))
    counts = _pulled_by(g.dtype, size, window, stride, padding, extra, bool(include))
    whole = whole_padding(padding, extra)
    if g.__class__ is fast.Array:
        pulled = kernels.mean_pool_pull(g.data, size, window, stride, whole, counts)
        if pulled is not None:
            return wrap(pulled)
    g = g / wrap(counts)
    ones = (1,) * len(window)
    wide = ops.broadcast_to(ops.reshape(g, (*g.shape, *ones)), (*g.shape, *window))
    shape = tuple([n + low + high for n, (low, high) in zip(x_shape[lead:], whole, strict=True)])
    return _unpad(ops.fold_windows(wide, shape, stride, ones), whole)


def _onnx_avg_pool(
    w: Any, x: str, window: Shape, stride: Shape, padding: Pads, extra: Shape, include: bool
) -> str:
    rank = len(window)
    images = _onnx_images(w, x, rank)
    if include and any(extra):  # what counts becomes part of the image, what does not is padding
        pads = (0, 0, *[low for low, _ in padding], 0, 0, *[high for _, high in padding])
        images = w.op("Pad", images, w.dims(pads), w.constant(0, w.dtype_of(x)))
        padding, include = ((0, 0),) * rank, False
    attributes = _onnx_pool_attributes(window, stride, whole_padding(padding, extra))
    y = w.op("AveragePool", images, count_include_pad=int(include), **attributes)
    return _onnx_back(w, y, rank)


@structural(
    _avg_raw, _avg_rule, shape=_avg_shape, batch=same_call, onnx=_onnx_avg_pool,
    samples=calls(
        lambda rng: Sample(
            (rng.normal(size=(2, 1, 4, 5)),), ((2, 2), (2, 1), ((0, 0), (1, 1)), (0, 0), False)
        ),
        lambda rng: Sample((rng.normal(size=(2, 7)),), ((2,), (2,), ((1, 0),), (1,), True)),
    ),
)  # fmt: skip
def avg_pool(
    x: Value, window: Shape, stride: Shape, padding: Pads, extra: Shape, include: bool
) -> Value:
    """Mean of each window.

    extra: more high padding that ceil mode needs; it is never counted. include: whether padding
    counts.
    """
