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
from funct.kernels.quantized.affine import output_multiplier
from funct.kernels.table import met
from funct.ops.fast import wrap
from funct.ops.quantized import limits
from funct.ops.weight_only import weights

__all__ = [
    "LAYER", "dequantize", "in_few_bits", "quantize", "quantized_linear", "weight_only_linear",
]  # fmt: skip

LAYER = "layer_on_codes"
_NEEDS = ("llvm", "avx2", "fma")
_REAL = frozenset([np.dtype(np.float32), np.dtype(np.float64)])
_BYTES = frozenset([np.dtype(np.uint8), np.dtype(np.int8)])
_EXACT = 1 << 24  # steps that float32 tells apart
_LEAST = 1 << 18  # operations from which on eager execution takes machine code, too


def dequantize(e: Node, known: Known) -> Callable[..., Any] | None:
    """The difference from the zero point, exact, times the scale."""
    dtype, axis = e.params
    if np.dtype(dtype) not in _REAL or any(not isinstance(v, Var) for v in e.operands):
        return None

    def run(q: Value, scale: Value, zero_point: Value) -> tuple[Any]:
        rank, narrow = len(q.shape), q.dtype.itemsize == 1
        exact = dtype if narrow else np.dtype(np.int64)
        zero = ops.astype(_along(zero_point, axis, rank), exact)
        steps = ops.subtract(ops.astype(q, exact), zero)
        steps = steps if narrow else ops.astype(steps, dtype)
        return (ops.multiply(steps, ops.astype(_along(scale, axis, rank), dtype)),)

    return run


def quantize(e: Node, known: Known) -> Callable[..., Any] | None:
    """By a scale that is known to be positive."""
    x, scale, _ = e.operands
    dtype, axis = e.params
    held = known.get(scale) if isinstance(scale, Var) else None
    if held is None or not isinstance(x, Var) or x.dtype not in _REAL:
        return None
    if not np.all(np.asarray(held.data) > 0):
        return None
    low, high = limits(np.dtype(dtype))

    def run(x: Value, scale: Value, zero_point: Value) -> tuple[Any]:
        rank = len(x.shape)
        steps = ops.round(ops.divide(x, ops.astype(_along(scale, axis, rank), x.dtype)))
        if high - low >= _EXACT:
            steps = ops.astype(steps, np.dtype(np.float64))
        zero = ops.astype(_along(zero_point, axis, rank), steps.dtype)
        least, most = ops.subtract(float(low), zero), ops.subtract(float(high), zero)
        steps = ops.where(ops.greater(steps, least), steps, least)  # which NaN becomes
        steps = ops.where(ops.less(steps, most), steps, most)
        return (ops.astype(ops.add(steps, zero), np.dtype(dtype)),)

    return run


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


def quantized_linear(e: Node, known: Known) -> Callable[..., Any] | None:
    """The layer as it is laid out, of weights, scales and zero points that are known."""
    x: Any = e.operands[0]
    held = [known.get(v) for v in e.operands[1:] if isinstance(v, Var)]
    if len(held) < len(e.operands) - 1 or not met(_NEEDS[:2]):
        return None
    raw = [np.asarray(v.data) for v in held if v is not None]
    if len(raw) < len(held):
        return None
    w, bias, x_scale, x_zero, w_scale, _, y_scale, y_zero = raw
    given, codes = x.dtype, y_zero.dtype
    if not (given in _BYTES and codes in _BYTES and w.dtype == np.int8 and y_scale > 0):
        return None
    (relu,), (low, high) = e.params, limits(codes)
    factor = np.asarray(output_multiplier(x_scale, w_scale, y_scale), np.float32)
    numbers = [v.tobytes().hex() for v in (np.asarray(bias, np.int32), factor)]
    ends = (int(y_zero), int(y_zero) if relu else low, high, codes.name)
    recipe = (prod(x.shape[:-1]), x.shape[-1], given.name, int(x_zero), *numbers, *ends)
    found = job("layer", *recipe)
    if found is None:
        return None
    laid = tuple(map(wrap, found.plan.ready(w)))

    def run(x: Value, *_: Value) -> tuple[Any]:
        return (top_level((x,)).run(_layer(), (x, *laid), recipe),)

    return run


@functools.cache
def _layer() -> Primitive:
    """The layer on codes: of x, weights as they are laid out, and a bias. What it is told is what
    its job is made of.
    """
    whole = lookup("quantized_linear")
    assert whole is not None
    names = ("x", "w", "bias")
    return variant(whole, LAYER, operands=names, rules=whole.rules[:3], aval=_layer_aval)


def _layer_aval(args: Any, params: Any) -> ShapeDtype:
    found = job("layer", *params)
    assert found is not None, "it was asked for"
    return ShapeDtype((*args[0].shape[:-1], found.plan.shape[1]), found.plan.dtype)
