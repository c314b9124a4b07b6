"""Codes in bodies of loops: rounding to codes and back, and weights of few bits, as other ops.

Codes are those of eager execution, every one: the operations are its own, and layers are exact. A
layer on codes is laid out here, so its weights and scales have to be known. Weights of few bits
that each step has alike become numbers before the loop, where machine code does not take them as
they are (`steps/quantized.py`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from funct import ops
from funct.compile.rewriting.new_nodes import Known
from funct.core import Primitive, ShapeDtype, Value, lookup, top_level, variant
from funct.graph import Node, Var
from funct.kernels.cpu.jobs import job
from funct.kernels.quantized.affine import INT32_MAX, exact_float, output_multiplier, reach_of
from funct.kernels.table import met
from funct.ops.fast import wrap
from funct.ops.quantized import limits
from funct.ops.weight_only import weights

__all__ = ["JOBS", "PROGRAMS", "WAYS", "in_few_bits"]

_LINEAR, _CONVOLUTION = "layer_on_codes", "convolution_on_codes"
JOBS = {_LINEAR: "layer", _CONVOLUTION: "codes"}  # of layers as they are laid out
_SINGLE = np.dtype(np.float32)
_NEEDS = ("llvm", "avx2", "fma")
_REAL = frozenset([_SINGLE, np.dtype(np.float64)])
_BYTES = frozenset([np.dtype(np.uint8), np.dtype(np.int8)])
_EXACT = 1 << 24  # steps that float32 tells apart
_LEAST = 1 << 13  # operations from which on eager execution takes machine code, too


def dequantize(e: Node, known: Known) -> Callable[..., Any] | None:
    """The difference from the zero point, exact, times the scale."""
    dtype, axis = e.params
    if np.dtype(dtype) not in _REAL or any(not isinstance(v, Var) for v in e.operands):
        return None
    return lambda q, scale, zero_point: (_number(q, scale, zero_point, axis, dtype),)


def quantize(e: Node, known: Known) -> Callable[..., Any] | None:
    """By a scale that is known to be positive."""
    x, scale, _ = e.operands
    dtype, axis = e.params
    if not _is_positive(scale, known) or not isinstance(x, Var) or x.dtype not in _REAL:
        return None

    def run(x: Value, scale: Value, zero_point: Value) -> tuple[Any]:
        return (_code(x, scale, zero_point, axis, np.dtype(dtype)),)

    return run


def quantized_add(e: Node, known: Known) -> Callable[..., Any] | None:
    """The code of the numbers' sum, by a scale that is known to be positive."""
    *given, z_scale, z_zero = e.operands
    if not _is_positive(z_scale, known) or not all(isinstance(v, Var) for v in (*given, z_zero)):
        return None
    (relu,), dtype = e.params, e.results[0].dtype

    def run(x: Value, y: Value, *how: Value) -> tuple[Any]:
        x_scale, x_zero, y_scale, y_zero, z_scale, z_zero = how
        numbers = _number(x, x_scale, x_zero, 0, _SINGLE), _number(y, y_scale, y_zero, 0, _SINGLE)
        total = ops.add(*numbers)
        total = ops.maximum(total, 0.0) if relu else total
        return (_code(total, z_scale, z_zero, 0, dtype),)

    return run


def quantized_mean(e: Node, known: Known) -> Callable[..., Any]:
    """The rounded mean, of an exact sum."""
    (x,), (axes, keepdims) = e.operands, e.params
    assert isinstance(x, Var)
    count = float(prod([x.shape[a] for a in axes]))

    def run(x: Value) -> tuple[Any]:
        total = ops.reduce_sum(ops.astype(x, np.dtype(np.int64)), axes, keepdims)
        mean = ops.round(ops.divide(ops.astype(total, _SINGLE), count))
        return (ops.astype(mean, x.dtype),)

    return run


def quantized_avg_pool(e: Node, known: Known) -> Callable[..., Any]:
    """The rounded means of the codes as numbers."""
    window, stride, padding = e.params

    def run(x: Value) -> tuple[Any]:
        numbers = ops.astype(x, _SINGLE)
        mean = ops.avg_pool(numbers, window, stride, padding, (0,) * len(window), False)
        return (ops.astype(ops.round(mean), x.dtype),)

    return run


def _number(q: Value, scale: Value, zero_point: Value, axis: int, dtype: Any) -> Any:
    """What codes stand for."""
    rank, narrow = len(q.shape), q.dtype.itemsize == 1
    exact = dtype if narrow else np.dtype(np.int64)
    zero = ops.astype(_along(zero_point, axis, rank), exact)
    steps = ops.subtract(ops.astype(q, exact), zero)
    steps = steps if narrow else ops.astype(steps, dtype)
    return ops.multiply(steps, ops.astype(_along(scale, axis, rank), dtype))


def _code(x: Value, scale: Value, zero_point: Value, axis: int, dtype: Any) -> Any:
    """What stands for numbers."""
    rank = len(x.shape)
    steps = ops.round(ops.divide(x, ops.astype(_along(scale, axis, rank), x.dtype)))
    return _saturated(steps, _along(zero_point, axis, rank), *limits(dtype), dtype)


def _saturated(steps: Any, zero: Value, low: int, high: int, dtype: Any) -> Any:
    """Codes of whole steps from the zero point; NaN becomes the lowest."""
    if high - low >= _EXACT:
        steps = ops.astype(steps, np.dtype(np.float64))
    zero = ops.astype(zero, steps.dtype)
    least, most = ops.subtract(float(low), zero), ops.subtract(float(high), zero)
    steps = ops.where(ops.greater(steps, least), steps, least)
    steps = ops.where(ops.less(steps, most), steps, most)
    return ops.astype(ops.add(steps, zero), dtype)


def _is_positive(scale: Any, known: Known) -> bool:
    """Whether it is known that a scale is: eager execution refuses others."""
    held = known.get(scale) if isinstance(scale, Var) else None
    return held is not None and bool(np.all(np.asarray(held.data) > 0))


def _along(v: Value, axis: int, rank: int) -> Value:
    """A number, or one for each place of an axis, as what broadcasts."""
    if not v.shape:
        return v
    return ops.reshape(v, tuple([v.shape[0] if k == axis else 1 for k in range(rank)]))


def in_few_bits(e: Any) -> Any:
    """The job of a product with weights of few bits, as eager execution has it; None: none."""
    x, codes, scale = e.operands
    outputs, work = codes.shape[0], 2 * prod(x.shape) * codes.shape[0]
    if x.dtype != np.float32 or scale.dtype != np.float32 or work < _LEAST or not met(_NEEDS):
        return None
    rows = work // 2 // outputs // x.shape[-1]
    bits = 8 if codes.dtype == np.int8 else 4
    return job("few bits", bits, rows, outputs, codes.shape[1], scale.shape[1])


def weight_only_linear(e: Node, known: Known) -> Callable[..., Any] | None:
    """A product with the weights as numbers, where there is no machine code for codes."""
    x, _, scale = e.operands
    held: Any = (x, scale)
    if any(not isinstance(v, Var) or v.dtype not in _REAL for v in held):
        return None
    if in_few_bits(e) is not None:
        return None

    def run(x: Value, codes: Value, scale: Value) -> tuple[Any]:
        rows = ops.reshape(x, (prod(x.shape[:-1]), x.shape[-1]))
        y = ops.matmul(rows, ops.swap_last(weights(codes, scale)))
        return (ops.reshape(y, (*x.shape[:-1], y.shape[-1])),)

    return run


def _convolution_at_once(e: Node, known: Known) -> Callable[..., Any] | None:
    """The layer as it is laid out, where one call computes it."""
    x: Any = e.operands[0]
    raw = _layer_of(e, known)
    if raw is None or not met(_NEEDS[:2]):
        return None
    *geometry, relu = e.params
    w, how, ends = raw[0], *_told(raw, relu)
    recipe = (x.shape, x.dtype.name, how[0], w.shape, *how[1:], ends, *geometry)
    return _laid(_CONVOLUTION, recipe, w)


def quantized_convolution(e: Node, known: Known) -> Callable[..., Any] | None:
    """That, or exact sums, of weights, scales and zero points that are known; and their codes."""
    x, raw = e.operands[0], _layer_of(e, known)
    if raw is None or not isinstance(x, Var):
        return None
    at_once = _convolution_at_once(e, known)
    if at_once is not None:
        return at_once
    w, bias, x_scale, x_zero, w_scale, _, y_scale, y_zero = raw
    *geometry, relu = e.params
    reach, dtype, rank = reach_of(x.dtype, int(x_zero), w), y_zero.dtype, len(x.shape)
    if reach + int(np.abs(bias.astype(np.int64)).max(initial=0)) > INT32_MAX:
        return None  # a sum may be refused
    work, (low, high) = exact_float(reach), limits(dtype)
    factor = np.asarray(output_multiplier(x_scale, w_scale, y_scale), np.float32)
    weights, offset, steps_of, zero = map(wrap, (w.astype(work), bias, factor, y_zero))

    def run(x: Value, *_: Value) -> tuple[Any]:
        centred = ops.subtract(ops.astype(x, work), float(x_zero))
        total = ops.convolution(centred, weights, *geometry)
        sums = ops.add(ops.astype(total, np.dtype(np.int32)), _along(offset, 1, rank))
        steps = ops.round(ops.multiply(ops.astype(sums, _SINGLE), _along(steps_of, 1, rank)))
        return (_saturated(steps, zero, int(y_zero) if relu else low, high, dtype),)

    return run


def _layer_of(e: Node, known: Known) -> list[Any] | None:
    """Weights, bias, scales and zero points of a layer, where all are known and of usual dtypes."""
    x: Any = e.operands[0]
    held = [known.get(v) for v in e.operands[1:] if isinstance(v, Var)]
    raw = [np.asarray(v.data) for v in held if v is not None]
    if len(raw) < len(e.operands) - 1:
        return None
    w, *_, y_scale, y_zero = raw
    usual = x.dtype in _BYTES and y_zero.dtype in _BYTES and w.dtype == np.int8 and y_scale > 0
    return raw if usual else None


def quantized_linear(e: Node, known: Known) -> Callable[..., Any] | None:
    """The layer as it is laid out, of weights, scales and zero points that are known."""
    x: Any = e.operands[0]
    raw = _layer_of(e, known)
    if raw is None or not met(_NEEDS[:2]):
        return None
    (relu,) = e.params
    how, ends = _told(raw, relu)
    recipe = (prod(x.shape[:-1]), x.shape[-1], x.dtype.name, *how, *ends)
    return _laid(_LINEAR, recipe, raw[0])


def _told(raw: list[Any], relu: bool) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """The zero point of x, the bias and the multipliers; and the limits of the result."""
    _, bias, x_scale, x_zero, w_scale, _, y_scale, y_zero = raw
    factor = np.asarray(output_multiplier(x_scale, w_scale, y_scale), np.float32)
    numbers = [v.tobytes().hex() for v in (np.asarray(bias, np.int32), factor)]
    low, high = limits(y_zero.dtype)
    lowest = int(y_zero) if relu else low
    return (int(x_zero), *numbers), (int(y_zero), lowest, high, y_zero.dtype.name)


def _laid(name: str, recipe: tuple[Any, ...], w: Any) -> Callable[..., Any] | None:
    """The layer of that name, of weights that are laid out; None where there is no job."""
    found = job(JOBS[name], *recipe)
    if found is None:
        return None
    laid = tuple(map(wrap, found.plan.ready(w)))

    def run(x: Value, *_: Value) -> tuple[Any]:
        return (top_level((x,)).run(_layer(name), (x, *laid), recipe),)

    return run


@functools.cache
def _layer(name: str) -> Primitive:
    """The layer on codes: of x, weights as they are laid out, and a bias. What it is told is what
    its job is made of.
    """
    whole = lookup("quantized_linear" if name == _LINEAR else "quantized_convolution")
    assert whole is not None
    names, aval = ("x", "w", "bias"), functools.partial(_layer_aval, name)
    return variant(whole, name, operands=names, rules=whole.rules[:3], aval=aval)


def _layer_aval(name: str, args: Any, params: Any) -> ShapeDtype:
    found = job(JOBS[name], *params)
    assert found is not None, "it was asked for"
    shape = found.plan.shape
    shape = (*args[0].shape[:-1], shape[1]) if name == _LINEAR else shape
    return ShapeDtype(shape, found.plan.dtype)


WAYS = {
    f.__name__: f
    for f in (
        dequantize, quantize, quantized_add, quantized_avg_pool, quantized_convolution,
        quantized_linear, quantized_mean, weight_only_linear,
    )
}  # fmt: skip
# where programs are no bodies convolutions that are several calls stay eager's, which are on codes
PROGRAMS = {
    **{f.__name__: f for f in (dequantize, quantize, quantized_add, quantized_linear)},
    "quantized_convolution": _convolution_at_once,
}
