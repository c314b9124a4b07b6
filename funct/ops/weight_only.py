"""Chapter: weights in few bits. Numbers times codes with a scale for each group of inputs.

Weights are constants that cost memory: a layer that reads them as bytes or half bytes computes in
float. In ONNX it is DequantizeLinear, by blocks, and MatMul.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import ml_dtypes
import numpy as np

from funct import ops
from funct.core import FLOATING, Primitive, Sample, Shape, ShapeDtype, Value, product_in_wide
from funct.errors import DTypeError, ExportError, ShapeError
from funct.kernels.quantized import weight_only as kernels
from funct.ops.families import structural
from funct.ops.quantized import lane_by_lane
from funct.ops.samples import calls

__all__ = ["weight_only_linear", "weights"]

Params = tuple[Any, ...]
Args = Sequence[Any]
Flags = Sequence[bool]


def _aval(args: Args, params: Params) -> ShapeDtype:
    x, codes, scale = args
    if codes.dtype not in (np.int8, np.uint8):
        raise DTypeError(
            "weight_only_linear: codes must be int8, or uint8 of two 4-bit codes, "
            f"got {codes.dtype}"
        )
    if x.dtype != scale.dtype or x.dtype not in FLOATING:
        raise DTypeError(
            "weight_only_linear: x and scale must have one floating dtype, "
            f"got {x.dtype} and {scale.dtype}"
        )
    if not kernels.fits(x.shape, codes.shape, codes.dtype, scale.shape):
        raise ShapeError(
            f"weight_only_linear: x {x.shape}, codes {codes.shape} {codes.dtype} and scale "
            f"{scale.shape} do not fit: x is (..., I), scale (O, groups), and codes (O, I), "
            "or (O, I / 2) of 4 bits"
        )
    return ShapeDtype((*x.shape[:-1], codes.shape[0]), x.dtype)


def _raw(x: Any, codes: Any, scale: Any) -> Any:
    _aval((x, codes, scale), ())
    return product_in_wide(lambda x, s: kernels.weight_only_linear(x, codes, s), x, scale)


def _steps(codes: Value, dtype: Any) -> Value:
    """The codes as numbers, (O, I)."""
    if codes.dtype == np.int8:
        return ops.astype(codes, dtype)
    halves = [ops.bitwise_and(codes, 15), ops.bitwise_right_shift(codes, 4)]
    outputs, half = codes.shape
    low, high = [ops.reshape(h, (outputs, half, 1)) for h in halves]
    both = ops.concat(low, high, 2)
    unsigned = ops.reshape(ops.bitwise_xor(both, 8), (outputs, 2 * half))
    return ops.astype(unsigned, dtype) - 8


def _grouped(w: Value, scale: Value) -> Value:
    return ops.reshape(w, (*scale.shape, w.shape[1] // scale.shape[1]))


def _rows(x: Value) -> Value:
    return ops.reshape(x, (prod(x.shape[:-1]), x.shape[-1]))


def weights(codes: Value, scale: Value) -> Value:
    """The numbers that codes stand for, (O, I)."""
    steps = _steps(codes, scale.dtype)
    real = _grouped(steps, scale) * ops.reshape(scale, (*scale.shape, 1))
    return ops.reshape(real, steps.shape)


def _rule_x(g: Value, codes: Value, scale: Value) -> Value:
    real = weights(codes, scale)
    return ops.reshape(ops.matmul(_rows(g), real), (*g.shape[:-1], real.shape[1]))


def _rule_scale(g: Value, x: Value, codes: Value, scale_shape: Shape) -> Value:
    slopes = ops.matmul(ops.swap_last(_rows(g)), _rows(x)) * _steps(codes, x.dtype)
    groups = ops.reshape(slopes, (*scale_shape, slopes.shape[1] // scale_shape[1]))
    return ops.reduce_sum(groups, (2,), False)


def _batch(prim: Primitive, args: Args, batched: Flags, params: Params) -> Value:
    if any(batched[1:]):
        return lane_by_lane(prim, args, batched, params)
    return prim.fn(*args)


def _onnx(w: Any, x: str, codes: str, scale: str) -> str:
    if w.dtype_of(x).itemsize == 8:
        raise ExportError(
            "weight_only_linear: ONNX has scales of float32 and less, got float64",
            fix="export the program with float32 inputs and parameters",
        )
    packed = w.initializers.get(codes)
    if w.dtype_of(codes) == np.uint8:
        if packed is None:
            raise ExportError("weight_only_linear: 4-bit weights must be constants in ONNX")
        codes = w.initializer("weight", kernels.steps(packed).astype(ml_dtypes.int4))
    outputs, groups = w.shape_of(scale)
    block = w.shape_of(codes)[1] // groups
    blocks = {"axis": 1, "block_size": block} if groups > 1 else {"axis": 0}
    scale = scale if groups > 1 else w.op("Reshape", scale, w.dims((outputs,)))
    shape = (outputs, groups) if groups > 1 else (outputs,)
    # onnxruntime (1.31) takes a missing zero point for a scalar, which does not fit
    zeros = w.initializer("zero_point", np.zeros(shape, w.dtype_of(codes)))
    real = w.op("DequantizeLinear", codes, scale, zeros, **blocks)
    return str(w.op("MatMul", x, w.op("Transpose", real, perm=[1, 0])))


@structural(
    _raw, _rule_x, None, _rule_scale, aval=_aval, batch=_batch, onnx=_onnx,
    samples=calls(
        lambda rng: Sample((
            rng.normal(size=(2, 4)), rng.integers(-128, 128, (3, 4)).astype("int8"),
            rng.uniform(0.1, 1, (3, 2)),
        )),
        lambda rng: Sample((
            rng.normal(size=(2, 1, 8)), rng.integers(0, 256, (3, 4)).astype("uint8"),
            rng.uniform(0.1, 1, (3, 1)),
        )),
    ),
)  # fmt: skip
def weight_only_linear(x: Value, codes: Value, scale: Value) -> Value:
    """x @ w.T of numbers x (..., I) and w = code * scale (O, I), a scale for each group of inputs.

    codes: int8 (O, I), or uint8 (O, I / 2) of two signed 4-bit codes each, the first one low, which
    is ONNX's packing. scale: (O, groups), in the dtype of x.
    """
