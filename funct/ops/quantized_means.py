"""Chapter: means and sums of codes; reads best after `quantized.py`.

Note [Means of codes]
    Where the result shares scale and zero point with x both cancel, and the code of the mean is
    the rounded mean of the codes. Written on codes (scale 1, zero point 0) it is the same in every
    runtime. onnxruntime's integer kernel for the form with the true scales deviates: it rounds
    after adding the zero point, and for whole images it multiplies by a rounded 1 / count.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from funct import ops
from funct.core import Primitive, Sample, Shape, ShapeDtype, Value
from funct.errors import ExportError, ShapeError
from funct.kernels.quantized import affine as kernels
from funct.ops.broadcasting import broadcast_shapes, pad_rank, same_call
from funct.ops.families import structural
from funct.ops.quantized import check_codes, check_scale, lane_by_lane, limits, onnx_real
from funct.ops.samples import calls

__all__ = ["quantized_add", "quantized_avg_pool", "quantized_mean"]

Params = tuple[Any, ...]
Args = Sequence[Any]
Flags = Sequence[bool]
Pads = tuple[tuple[int, int], ...]
DType = np.dtype[Any]


def _onnx_codes_as_floats(w: Any, q: str) -> str:
    return onnx_real(w, q, w.constant(1.0, np.dtype(np.float32)))


def _onnx_rounded(w: Any, x: str, step: float, dtype: DType) -> str:
    scale, zero = w.constant(step, np.dtype(np.float32)), w.constant(0, dtype)
    return str(w.op("QuantizeLinear", x, scale, zero))


def _avg_raw(x: Any, window: Shape, stride: Shape, padding: Pads) -> Any:
    plain = ops.avg_pool.primitive.raw  # type: ignore[attr-defined]
    mean = plain(x.astype(np.float32), window, stride, padding, (0,) * len(window), False)
    return np.rint(mean).astype(x.dtype)


def _avg_aval(args: Args, params: Params) -> ShapeDtype:
    plain = ops.avg_pool.primitive  # type: ignore[attr-defined]
    return ShapeDtype(
        plain.aval(args, (*params, (0,) * len(params[0]), False)).shape, args[0].dtype
    )


def _onnx_avg_pool(w: Any, x: str, window: Shape, stride: Shape, padding: Pads) -> str:
    shape, rank = w.shape_of(x), len(window)
    if len(shape) != rank + 2:
        raise ExportError(f"quantized_avg_pool: ONNX needs x of rank {rank + 2}, got {shape}")
    pads = [low for low, _ in padding] + [high for _, high in padding]
    if not any(pads) and shape[2:] == window:
        return _onnx_mean(w, x, tuple(range(2, rank + 2)), True)
    attributes = {"kernel_shape": list(window), "strides": list(stride), "pads": pads}
    mean = w.op("AveragePool", _onnx_codes_as_floats(w, x), count_include_pad=0, **attributes)
    return _onnx_rounded(w, mean, 1.0, w.dtype_of(x))


@structural(
    _avg_raw, None, aval=_avg_aval, batch=same_call, onnx=_onnx_avg_pool,
    samples=calls(
        lambda rng: Sample(
            (rng.integers(0, 256, (2, 1, 4, 5)).astype("uint8"),),
            ((2, 2), (2, 1), ((0, 0), (1, 1))),
            False,
        ),
    ),
)  # fmt: skip
def quantized_avg_pool(x: Value, window: Shape, stride: Shape, padding: Pads) -> Value:
    """Rounded mean of the codes in each window, padding not counted; see Note [Means of codes]."""


def _mean_raw(x: Any, axes: Shape, keepdims: bool) -> Any:
    total = np.sum(x, axes, np.int64, keepdims=keepdims)
    count = prod(x.shape[a] for a in axes)
    return np.rint(total.astype(np.float32) / np.float32(count)).astype(x.dtype)


def _mean_aval(args: Args, params: Params) -> ShapeDtype:
    plain = ops.reduce_sum.primitive  # type: ignore[attr-defined]
    return ShapeDtype(plain.aval(args, params).shape, args[0].dtype)


def _mean_batch(prim: Primitive, args: Args, batched: Flags, params: Params) -> Any:
    axes, keepdims = params
    return prim.fn(args[0], tuple(a + 1 for a in axes), keepdims)


def _onnx_mean(w: Any, x: str, axes: Shape, keepdims: bool) -> str:
    sizes = [w.shape_of(x)[a] for a in axes]
    if not all(isinstance(n, int) for n in sizes):
        raise ExportError(f"quantized_mean: the number of elements must be fixed, got {sizes}")
    over = w.constant(list(axes), np.dtype(np.int64))
    total = w.op("ReduceSum", _onnx_codes_as_floats(w, x), over, keepdims=int(keepdims))
    return _onnx_rounded(w, total, float(prod(sizes)), w.dtype_of(x))


@structural(
    _mean_raw, None, aval=_mean_aval, batch=_mean_batch, onnx=_onnx_mean,
    samples=calls(
        lambda rng: Sample((rng.integers(0, 99, (2, 3, 5)).astype("uint8"),), ((2,), False), False),
        lambda rng: Sample((rng.integers(-9, 9, (2, 3, 5)).astype("int8"),), ((1, 2), True), False),
    ),
)  # fmt: skip
def quantized_mean(x: Value, axes: Shape, keepdims: bool) -> Value:
    """Rounded mean of codes over axes; see Note [Means of codes]."""


def _add_raw(x: Any, y: Any, *rest: Any) -> Any:
    x_scale, x_zero_point, y_scale, y_zero_point, z_scale, z_zero_point, relu = rest
    check_scale("quantized_add", z_scale)
    float32 = np.dtype(np.float32)
    total = kernels.dequantize(x, x_scale, x_zero_point, 0, float32)
    total = total + kernels.dequantize(y, y_scale, y_zero_point, 0, float32)
    total = np.maximum(total, 0) if relu else total
    dtype = z_zero_point.dtype
    return kernels.quantize(total, z_scale, z_zero_point, *limits(dtype), dtype, 0)


def _add_aval(args: Args, params: Params) -> ShapeDtype:
    x, y, _, x_zero_point, _, y_zero_point, _, z_zero_point = args
    for q, zero_point in ((x, x_zero_point), (y, y_zero_point), (z_zero_point, z_zero_point)):
        check_codes("quantized_add", q.dtype, zero_point)
    try:
        return ShapeDtype(broadcast_shapes(x.shape, y.shape), z_zero_point.dtype)
    except ValueError as error:
        raise ShapeError(
            f"quantized_add: shapes must broadcast, got {x.shape} and {y.shape}: {error}"
        ) from None


def _add_batch(prim: Primitive, args: Args, batched: Flags, params: Params) -> Any:
    if any(batched[2:]):
        return lane_by_lane(prim, args, batched, params)
    pairs = list(zip(args[:2], batched[:2], strict=True))
    rank = max(len(a.shape) - b for a, b in pairs)
    x, y = (pad_rank(a, rank) if b else a for a, b in pairs)
    return prim.fn(x, y, *args[2:], *params)


def _onnx_add(w: Any, *given: Any) -> str:
    x, y, x_scale, x_zero_point, y_scale, y_zero_point, z_scale, z_zero_point, relu = given
    real = (
        onnx_real(w, x, x_scale, 0, x_zero_point),
        onnx_real(w, y, y_scale, 0, y_zero_point),
    )
    total = w.op("Sum", *real)  # Add would become onnxruntime's QLinearAdd, which rounds otherwise
    total = w.op("Relu", total) if relu else total
    return str(w.op("QuantizeLinear", total, z_scale, z_zero_point))


def _add_operands(rng: np.random.Generator, x: Shape, y: Shape) -> tuple[Any, ...]:
    codes = [rng.integers(0, 256, s).astype("uint8") for s in (x, y)]
    scales = [np.full((), s, "float32") for s in (0.1, 0.3, 0.4)]
    zeros = [np.array(z, "uint8") for z in (3, 128, 50)]
    return (*codes, scales[0], zeros[0], scales[1], zeros[1], scales[2], zeros[2])


@structural(
    _add_raw, *(None,) * 8, aval=_add_aval, batch=_add_batch, onnx=_onnx_add,
    samples=calls(
        lambda rng: Sample(_add_operands(rng, (2, 3), (2, 3)), (False,), False),
        lambda rng: Sample(_add_operands(rng, (2, 3), (3,)), (True,), False),
    ), raises=True,
)  # fmt: skip
def quantized_add(
    x: Value, y: Value, x_scale: Value, x_zero_point: Value, y_scale: Value, y_zero_point: Value,
    z_scale: Value, z_zero_point: Value, relu: bool,
) -> Value:  # fmt: skip
    """Codes of the float32 sum (and its relu) of what the codes x and y stand for."""
