"""Chapter: quantization. Codes, the real numbers they stand for, and layers that compute on codes.

`quantize` and `dequantize` are ONNX's QuantizeLinear and DequantizeLinear. The `quantized_*` ops
take codes and give codes; each is the exact integer value of the standard pattern

    DequantizeLinear -> layer [-> Relu] -> QuantizeLinear

and is written as that pattern in ONNX, one DequantizeLinear per use. An optimising onnxruntime
makes an integer kernel of the pattern again and gives the same codes, every one of them; a runtime
that takes the pattern literally sums in float32 and may differ by one code where the sum stands
within float32's rounding of a tie.

Scales and zero points are operands: 0-d for one per tensor, 1-D for one per channel along `axis`. A
zero point has the dtype of its codes. Codes are integers: nothing has a derivative in them, and
`quantize`, which is constant between its steps, has the derivative 0.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from funct import ops
from funct.core import Operand, Primitive, Sample, Shape, ShapeDtype, Value
from funct.errors import DTypeError, ExportError, QuantizationError, ShapeError
from funct.kernels.quantized import affine as kernels
from funct.kernels.windows.views import Sliding
from funct.ops.broadcasting import of_none
from funct.ops.families import elementwise, structural
from funct.ops.samples import calls, reals

__all__ = ["dequantize", "keep_float", "quantize", "quantized_convolution", "quantized_linear"]

Params = tuple[Any, ...]
Args = Sequence[Any]
Flags = Sequence[bool]
Pads = tuple[tuple[int, int], ...]
DType = np.dtype[Any]

_CODES = tuple(np.dtype(t) for t in ("uint8", "int8", "int32"))


# what they share --------------------------------------------------------------------------------


def check_codes(name: str, dtype: DType, zero_point: Any) -> None:
    """Raise DTypeError unless dtype is one of codes and the zero point has it too."""
    if dtype not in _CODES:
        raise DTypeError(f"{name}: codes must be uint8, int8 or int32, got {dtype}")
    if zero_point.dtype != dtype:
        raise DTypeError(f"{name}: zero_point must be {dtype} as its codes, got {zero_point.dtype}")


def _check_floating(name: str, what: str, dtype: DType) -> None:
    if dtype.kind != "f":
        raise DTypeError(f"{name}: {what} must be floating, got {dtype}")


def _check_axis(name: str, shape: Shape, scale: Shape, zero_point: Shape, axis: int) -> None:
    if scale != zero_point or len(scale) > 1:
        raise ShapeError(
            f"{name}: scale and zero_point must be both 0-d or both of one length, "
            f"got {scale} and {zero_point}"
        )
    if scale and (axis >= len(shape) or shape[axis] != scale[0]):
        raise ShapeError(f"{name}: scale {scale} does not fit axis {axis} of shape {shape}")


def check_scale(name: str, scale: Any) -> None:
    """Raise QuantizationError unless every scale is positive."""
    if not np.greater(scale, 0).all():  # false for NaN too
        raise QuantizationError(f"{name}: scale must be > 0, got {np.min(scale)}")


@functools.cache
def limits(dtype: DType) -> tuple[int, int]:
    """Smallest and largest code of a dtype."""
    info = np.iinfo(dtype)
    return int(info.min), int(info.max)


def _lane(x: Value, i: int) -> Value:
    whole = ((None, None, 1),) * (len(x.shape) - 1)
    return ops.squeeze(ops.slice_(x, ((i, i + 1, 1), *whole)), 0)


@of_none
def lane_by_lane(prim: Primitive, args: Args, batched: Flags, params: Params) -> Value:
    """Batching where a scale or the weights differ by lane: rare, so one call per lane."""
    size = next(a.shape[0] for a, b in zip(args, batched, strict=True) if b)
    out: Any = None
    for i in range(size):
        y = prim.fn(*[_lane(a, i) if b else a for a, b in zip(args, batched, strict=True)], *params)
        y = ops.reshape(y, (1, *y.shape))
        out = y if out is None else ops.concat(out, y, 0)
    return out


def _onnx_axis(w: Any, scale: str, axis: int) -> dict[str, int]:
    return {"axis": axis} if len(w.shape_of(scale)) else {}


def onnx_real(w: Any, q: str, scale: str, axis: int = 0, zero_point: str | None = None) -> str:
    """DequantizeLinear; without a zero point it is 0.

    Every zero point made here is an initializer of its own. onnxruntime (1.31) takes a missing one
    for a scalar, which does not fit a scale per channel; and where it makes weights unsigned, it
    fails to load a model in which two of them share a zero point.
    """
    if zero_point is None:
        zero_point = w.initializer("zero_point", np.zeros(w.shape_of(scale), w.dtype_of(q)))
    return str(w.op("DequantizeLinear", q, scale, zero_point, **_onnx_axis(w, scale, axis)))


# quantize, dequantize ---------------------------------------------------------------------------


def _quantize_raw(x: Any, scale: Any, zero_point: Any, dtype: DType, axis: int) -> Any:
    _quantize_aval((x, scale, zero_point), (dtype, axis))
    check_scale("quantize", scale)
    return kernels.quantize(x, scale, zero_point, *limits(dtype), dtype, axis)


def _quantize_aval(args: Args, params: Params) -> ShapeDtype:
    (x, scale, zero_point), (dtype, axis) = args, params
    _check_floating("quantize", "x", x.dtype)
    _check_floating("quantize", "scale", scale.dtype)
    check_codes("quantize", dtype, zero_point)
    _check_axis("quantize", x.shape, scale.shape, zero_point.shape, axis)
    return ShapeDtype(x.shape, dtype)


def _affine_batch(prim: Primitive, args: Args, batched: Flags, params: Params) -> Value:
    if any(batched[1:]):
        return lane_by_lane(prim, args, batched, params)
    dtype, axis = params
    return prim.fn(*args, dtype, axis + 1)


def _onnx_quantize(w: Any, x: str, scale: str, zero_point: str, dtype: DType, axis: int) -> str:
    if w.dtype_of(x).itemsize == 8:
        raise ExportError(
            "quantize: ONNX quantizes float32, float16 and bfloat16, got float64",
            fix="export the program with float32 inputs and parameters",
        )
    if dtype.itemsize != 1:
        raise ExportError(f"quantize: ONNX has no QuantizeLinear to {dtype}")
    return str(w.op("QuantizeLinear", x, scale, zero_point, **_onnx_axis(w, scale, axis)))


def _per_tensor(dtype: str) -> tuple[Any, Any]:
    return np.full((), 0.25, "float32"), np.full((), 3, dtype)


def _reals(rng: np.random.Generator) -> Any:
    return rng.normal(size=(2, 3)).astype("float32")


@structural(
    _quantize_raw, None, None, None, aval=_quantize_aval, batch=_affine_batch, onnx=_onnx_quantize,
    samples=calls(
        lambda rng: Sample((_reals(rng), *_per_tensor("uint8")), (_CODES[0], 0), False),
        lambda rng: Sample(
            (_reals(rng), np.array([0.25, 0.5, 1.5], "float32"), np.array([0, 1, -3], "int8")),
            (_CODES[1], 1),
            False,
        ),
    ), raises=True,
)  # fmt: skip
def quantize(x: Value, scale: Value, zero_point: Value, dtype: DType, axis: int) -> Value:
    """Codes of real numbers: saturate(rint(x / scale) + zero_point), ties to even."""


def _dequantize_raw(q: Any, scale: Any, zero_point: Any, dtype: DType, axis: int) -> Any:
    _dequantize_aval((q, scale, zero_point), (dtype, axis))
    return kernels.dequantize(q, scale, zero_point, axis, dtype)


def _dequantize_aval(args: Args, params: Params) -> ShapeDtype:
    (q, scale, zero_point), (dtype, axis) = args, params
    _check_floating("dequantize", "dtype", dtype)
    _check_floating("dequantize", "scale", scale.dtype)
    check_codes("dequantize", q.dtype, zero_point)
    _check_axis("dequantize", q.shape, scale.shape, zero_point.shape, axis)
    return ShapeDtype(q.shape, dtype)


def _dequantize_rule_scale(
    g: Value, q: Value, zero_point: Value, axis: int, scale_shape: Shape
) -> Any:
    one = ops.broadcast_to(ops.fast.wrap(np.ones((), g.dtype)), scale_shape)
    steps = ops.dequantize(q, one, zero_point, g.dtype, axis)
    over = tuple(i for i in range(len(q.shape)) if not scale_shape or i != axis)
    return ops.reduce_sum(g * steps, over, False)


def _onnx_dequantize(w: Any, q: str, scale: str, zero_point: str, dtype: DType, axis: int) -> str:
    if w.dtype_of(scale) != dtype:
        raise ExportError(
            f"dequantize: in ONNX the result has the dtype of the scale, got {dtype} and "
            f"{w.dtype_of(scale)}"
        )
    return onnx_real(w, q, scale, axis, zero_point)


@structural(
    _dequantize_raw, None, _dequantize_rule_scale, None,
    aval=_dequantize_aval, batch=_affine_batch, onnx=_onnx_dequantize,
    samples=calls(
        lambda rng: Sample(
            (rng.integers(0, 256, (2, 3)).astype("uint8"), np.array(0.25), np.array(3, "uint8")),
            (np.dtype("float64"), 0),
        ),
        lambda rng: Sample(
            (rng.integers(-9, 9, (2, 3)).astype("int8"), rng.uniform(1, 2, 3), np.zeros(3, "int8")),
            (np.dtype("float64"), 1),
        ),
        lambda rng: Sample(
            (rng.integers(-99, 99, (2, 3)).astype("int32"), *_per_tensor("int32")),
            (np.dtype("float32"), 0),
            False,
        ),
    ),
)  # fmt: skip
def dequantize(q: Value, scale: Value, zero_point: Value, dtype: DType, axis: int) -> Value:
    """The real numbers that codes stand for: (q - zero_point) * scale, linear in the scale."""


def _keep_float_rule(g: Value) -> Value:
    return g


@elementwise(np.positive, _keep_float_rule, onnx="Sum", code="{0}", samples=reals())
def keep_float(x: Operand, /) -> Value:
    """x itself, with a mark that what is computed from it is computed in float.

    An optimising onnxruntime takes DequantizeLinear -> op -> QuantizeLinear for an integer op,
    quantizes float weights in between by itself, and drops a DequantizeLinear that is followed by a
    QuantizeLinear with other parameters. Behind a Sum of one operand it does neither.
    """


# convolution, linear ----------------------------------------------------------------------------

_LAYER_RULES = (None,) * 9  # codes out: no derivative, as for quantize


def _to_codes(scales: Args, y_zero_point: Any, relu: bool) -> kernels.Codes:
    """What brings exact sums to codes of the result; a relu is a lower bound at the zero point."""
    held = tuple([(s.tobytes(), s.shape, s.dtype) for s in scales])
    return _codes_of(held, int(y_zero_point), y_zero_point.dtype, relu)


@functools.lru_cache(256)
def _codes_of(
    scales: tuple[tuple[bytes, Shape, DType], ...], zero_point: int, dtype: DType, relu: bool
) -> kernels.Codes:
    """The same of what the scales hold, their shapes and dtypes: a network has few layers, and
    what NumPy does with each scale takes longer than a small layer.
    """
    given = [np.frombuffer(held, of).reshape(shape) for held, shape, of in scales]
    check_scale("requantize", given[2])
    multiplier = kernels.output_multiplier(*given)
    multiplier.flags.writeable = False
    low, high = limits(dtype)
    return kernels.Codes(multiplier, zero_point, zero_point if relu else low, high, dtype)


def _check_layer(name: str, args: Args) -> None:
    x, w, bias, x_scale, x_zero_point, w_scale, bias_scale, y_scale, y_zero_point = args
    check_codes(name, x.dtype, x_zero_point)
    check_codes(name, y_zero_point.dtype, y_zero_point)
    if w.dtype != np.int8 or bias.dtype != np.int32:
        raise DTypeError(f"{name}: w must be int8 and bias int32, got {w.dtype} and {bias.dtype}")
    channels = w.shape[0]
    if bias.shape != (channels,):
        raise ShapeError(f"{name}: bias must have shape ({channels},), got {bias.shape}")
    for what, scale in (("w_scale", w_scale), ("bias_scale", bias_scale)):
        if scale.shape not in ((), (channels,)):
            raise ShapeError(
                f"{name}: {what} must have shape () or ({channels},), got {scale.shape}"
            )
    for what, scale in (("x_scale", x_scale), ("y_scale", y_scale)):
        if scale.shape != ():
            raise ShapeError(f"{name}: {what} must be 0-d, got {scale.shape}")


def _onnx_layer(w: Any, op_type: str, operands: Sequence[str], relu: bool, attributes: Any) -> str:
    x, k, bias, x_scale, x_zero_point, w_scale, bias_scale, y_scale, y_zero_point = operands
    weights = onnx_real(w, k, w_scale), onnx_real(w, bias, bias_scale)
    y = w.op(op_type, onnx_real(w, x, x_scale, 0, x_zero_point), *weights, **attributes)
    y = w.op("Relu", y) if relu else y
    return str(w.op("QuantizeLinear", y, y_scale, y_zero_point))


def _layer_operands(rng: np.random.Generator, x: Shape, w: Shape) -> tuple[Any, ...]:
    x_scale, y_scale = np.full((), 0.1, "float32"), np.full((), 3.0, "float32")
    w_scale = rng.uniform(0.1, 0.3, w[0]).astype("float32")
    return (
        rng.integers(0, 256, x).astype("uint8"), rng.integers(-127, 128, w).astype("int8"),
        rng.integers(-999, 999, w[0]).astype("int32"), x_scale, np.array(99, "uint8"), w_scale,
        x_scale * w_scale, y_scale, np.array(7, "uint8"),
    )  # fmt: skip


def _convolution_raw(x: Any, w: Any, bias: Any, *rest: Any) -> Any:
    x_scale, x_zero_point, w_scale, _, y_scale, y_zero_point, *geometry, relu = rest
    to_codes = _to_codes((x_scale, w_scale, y_scale), y_zero_point, relu)
    return kernels.convolution(x, int(x_zero_point), w, bias, to_codes, Sliding(*geometry))


def _convolution_aval(args: Args, params: Params) -> ShapeDtype:
    _check_layer("quantized_convolution", args)
    plain = ops.convolution.primitive  # type: ignore[attr-defined]
    return ShapeDtype(plain.aval(args[:2], params[:4]).shape, args[8].dtype)


def _convolution_batch(prim: Primitive, args: Args, batched: Flags, params: Params) -> Value:
    if any(batched[1:]):
        return lane_by_lane(prim, args, batched, params)
    x = args[0]
    y = prim.fn(ops.reshape(x, (x.shape[0] * x.shape[1], *x.shape[2:])), *args[1:], *params)
    return ops.reshape(y, (x.shape[0], x.shape[1], *y.shape[1:]))


def _onnx_convolution(w: Any, *given: Any) -> str:
    operands, (stride, padding, dilation, groups, relu) = given[:9], given[9:]
    attributes = {
        "kernel_shape": list(w.shape_of(operands[1])[2:]), "strides": list(stride),
        "pads": [low for low, _ in padding] + [high for _, high in padding],
        "dilations": list(dilation), "group": groups,
    }  # fmt: skip
    if min(attributes["pads"], default=0) < 0:
        raise ExportError(f"quantized_convolution: ONNX pads must be >= 0, got padding {padding}")
    return _onnx_layer(w, "Conv", operands, relu, attributes)


@structural(
    _convolution_raw, *_LAYER_RULES, aval=_convolution_aval, batch=_convolution_batch,
    onnx=_onnx_convolution,
    samples=calls(
        lambda rng: Sample(
            _layer_operands(rng, (2, 2, 6), (3, 2, 3)), ((2,), ((1, 0),), (1,), 1, False), False
        ),
        lambda rng: Sample(
            _layer_operands(rng, (1, 4, 5, 4), (4, 2, 3, 2)),
            ((1, 2), ((1, 1), (0, 1)), (2, 1), 2, True),
            False,
        ),
    ), raises=True,
)  # fmt: skip
def quantized_convolution(
    x: Value, w: Value, bias: Value, x_scale: Value, x_zero_point: Value, w_scale: Value,
    bias_scale: Value, y_scale: Value, y_zero_point: Value,
    stride: Shape, padding: Pads, dilation: Shape, groups: int, relu: bool,
) -> Value:  # fmt: skip
    """Codes of a convolution (and its relu) of codes, from exact int32 sums.

    w: int8 (O, C / groups, *K) with zero point 0. bias: int32 (O,), in units of bias_scale, which
    must be the float32 product x_scale * w_scale.
    """


def _linear_raw(x: Any, w: Any, bias: Any, *rest: Any) -> Any:
    x_scale, x_zero_point, w_scale, _, y_scale, y_zero_point, relu = rest
    to_codes = _to_codes((x_scale, w_scale, y_scale), y_zero_point, relu)
    return kernels.linear(x, int(x_zero_point), w, bias, to_codes)


def _linear_aval(args: Args, params: Params) -> ShapeDtype:
    _check_layer("quantized_linear", args)
    x, w = args[0].shape, args[1].shape
    if len(w) != 2 or len(x) < 2 or x[-1] != w[1]:
        raise ShapeError(f"quantized_linear: x (..., I) and w (O, I) must fit, got {x} and {w}")
    return ShapeDtype((*x[:-1], w[0]), args[8].dtype)


def _linear_batch(prim: Primitive, args: Args, batched: Flags, params: Params) -> Value:
    if any(batched[1:]):
        return lane_by_lane(prim, args, batched, params)
    return prim.fn(*args, *params)


def _onnx_linear(w: Any, *given: Any) -> str:
    (x, *rest), relu = given[:9], given[9]
    shape, outputs = w.shape_of(x), w.shape_of(rest[0])[0]
    if len(shape) != 2:  # Gemm is for matrices
        x = w.op("Reshape", x, w.constant([-1, shape[-1]], np.dtype(np.int64)))
    y = _onnx_layer(w, "Gemm", (x, *rest), relu, {"transB": 1})
    if len(shape) != 2:
        y = w.op("Reshape", y, w.dims((*shape[:-1], outputs)))
    return y


@structural(
    _linear_raw, *_LAYER_RULES, aval=_linear_aval, batch=_linear_batch, onnx=_onnx_linear,
    samples=calls(
        lambda rng: Sample(_layer_operands(rng, (2, 4), (3, 4)), (False,), False),
        lambda rng: Sample(_layer_operands(rng, (2, 1, 4), (3, 4)), (True,), False),
    ), raises=True,
)  # fmt: skip
def quantized_linear(
    x: Value, w: Value, bias: Value, x_scale: Value, x_zero_point: Value, w_scale: Value,
    bias_scale: Value, y_scale: Value, y_zero_point: Value, relu: bool,
) -> Value:  # fmt: skip
    """Codes of x @ w.T + bias (and its relu) from codes x (..., I) and w (O, I), exact int32 sums.

    w: int8 with zero point 0. bias: int32 (O,), in units of bias_scale, which must be the float32
    product x_scale * w_scale.
    """
