"""Affine quantization and exact integer sums. The `plain_` functions, and what has none, are NumPy.

A code q stands for the real number (q - zero_point) * scale. A quantized layer sums products of
codes exactly, as int32, and `requantize` brings the sum to the codes of the result:

    y = saturate(rint(float32(acc) * multiplier) + zero_point)

where the multiplier is x_scale * w_scale / y_scale. Rounding is half to even, and comes before the
zero point is added: 0.5 and 1.5 become zero_point and zero_point + 2, whatever the zero point is.

Note [Exact sums]
    BLAS has no integers, but float32 holds every integer up to 2^24 and float64 up to 2^53. As
    long as no partial sum can leave that range nothing is ever rounded, in whatever order BLAS
    sums. The bound is that of the worst input, Σ |w| max |x - zero_point|: the weights decide.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from funct.errors import QuantizationError
from funct.kernels import table
from funct.kernels.windows.convolution import convolution as convolve
from funct.kernels.windows.convolution import fitting_size
from funct.kernels.windows.views import Padding, Sizes, Sliding

if TYPE_CHECKING:
    from numpy.typing import DTypeLike, NDArray

__all__ = [
    "INT32_MAX", "Codes", "convolution", "convolution_accumulate", "dequantize", "exact_float",
    "linear", "linear_accumulate", "output_multiplier", "plain_convolution", "plain_dequantize",
    "plain_linear", "plain_quantize", "quantize", "reach_of", "requantize",
]  # fmt: skip

_FLOAT32_EXACT = 2**24
INT32_MAX = 2**31 - 1
_WIDE = frozenset([np.dtype(np.float32), np.dtype(np.float64)])


class Codes(NamedTuple):
    """How sums become codes of a layer's result; see `requantize`."""

    multiplier: Any
    zero_point: int
    low: int
    high: int
    dtype: Any


def _along(v: Any, axis: int, ndim: int) -> NDArray[Any]:
    """v as something that broadcasts: 0-d as it is, 1-D along `axis`."""
    values: NDArray[Any] = np.asarray(v)
    if not values.ndim:
        return values
    shape = [1] * ndim
    shape[axis] = len(values)
    return values.reshape(shape)


def _saturate(
    steps: NDArray[Any], zero_point: Any, qmin: int, qmax: int, dtype: DTypeLike, axis: int
) -> NDArray[Any]:
    """Codes from whole steps. NaN becomes qmin, as it does in onnxruntime."""
    if qmax - qmin >= _FLOAT32_EXACT:
        steps = steps.astype(np.float64)  # 2^31 - 1 is no float32
    zero = _along(zero_point, axis, steps.ndim).astype(steps.dtype)
    # fmin and fmax prefer a number to NaN
    codes: NDArray[Any] = np.fmin(np.fmax(steps, qmin - zero), qmax - zero) + zero
    return codes.astype(dtype)


def quantize(
    x: NDArray[Any],
    scale: Any,
    zero_point: Any,
    qmin: int,
    qmax: int,
    dtype: DTypeLike,
    axis: int,
) -> NDArray[Any]:
    """Round real numbers to codes.

    Maths:   q = saturate(rint(x / scale) + zero_point)
    Args:    x: floating. scale, zero_point: 0-d, or 1-D along `axis`. qmin, qmax: the codes in use.
    Returns: codes of `dtype`, in the shape of x. NaN gives qmin.
    Notes:   the division is done in the dtype of x, 2-byte floats in float32.
    Source:  ONNX QuantizeLinear-21; equal to onnxruntime on every float32 x.
    """
    given = (x, scale, zero_point, qmin, qmax, dtype, axis)
    q: NDArray[Any] = table.call("quantize", x.dtype, x.size, *given)
    return q


def plain_quantize(
    x: NDArray[Any],
    scale: Any,
    zero_point: Any,
    qmin: int,
    qmax: int,
    dtype: DTypeLike,
    axis: int,
) -> NDArray[Any]:
    """`quantize` in NumPy."""
    work = np.float32 if x.dtype.itemsize == 2 else x.dtype
    steps = x.astype(work, copy=False) / _along(scale, axis, x.ndim).astype(work)
    return _saturate(np.rint(steps), zero_point, qmin, qmax, dtype, axis)


def dequantize(
    q: NDArray[Any], scale: Any, zero_point: Any, axis: int, dtype: DTypeLike
) -> NDArray[Any]:
    """Return the real numbers that codes stand for.

    Maths:   x = (q - zero_point) * scale
    Args:    q: codes. scale, zero_point: 0-d, or 1-D along `axis`. dtype: floating.
    Returns: (q - zero_point), exact, converted to `dtype`, times the scale in `dtype`.
    Source:  ONNX DequantizeLinear-21.
    """
    x: NDArray[Any] = table.call("dequantize", q.dtype, q.size, q, scale, zero_point, axis, dtype)
    return x


def plain_dequantize(
    q: NDArray[Any], scale: Any, zero_point: Any, axis: int, dtype: DTypeLike
) -> NDArray[Any]:
    """`dequantize` in NumPy."""
    zero = _along(zero_point, axis, q.ndim)
    if q.itemsize == 1 and np.dtype(dtype) in _WIDE:  # differences of bytes are exact in either
        x: NDArray[Any] = q.astype(dtype)
        x -= zero.astype(dtype)
    else:
        x = (q.astype(np.int64) - zero.astype(np.int64)).astype(dtype)
    x *= _along(scale, axis, q.ndim).astype(dtype)
    return x


def output_multiplier(x_scale: Any, w_scale: Any, y_scale: Any) -> NDArray[np.float32]:
    """Return what turns an int32 sum into steps of the result, for `requantize`.

    Maths: (x_scale w_scale) / y_scale, the product rounded to float32 before the division.
    Notes: the order of the two roundings is onnxruntime's; any other differs at near-ties.
    """
    product = np.asarray(x_scale, np.float32) * np.asarray(w_scale, np.float32)
    return np.asarray(product / np.asarray(y_scale, np.float32))


def requantize(
    acc: NDArray[np.int32],
    multiplier: Any,
    zero_point: Any,
    qmin: int,
    qmax: int,
    dtype: DTypeLike,
    axis: int,
) -> NDArray[Any]:
    """Bring int32 sums to the codes of the result.

    Maths:   y = saturate(rint(float32(acc) * multiplier) + zero_point)
    Args:    multiplier: float32, from `output_multiplier`; 0-d, or 1-D along `axis`.
             zero_point, qmin, qmax: those of the result.
    Returns: codes of `dtype`, in the shape of acc.
    Notes:   qmin = zero_point makes this a relu as well.
    """
    factor = _along(multiplier, axis, acc.ndim).astype(np.float32)
    return _saturate(np.rint(acc.astype(np.float32) * factor), zero_point, qmin, qmax, dtype, axis)


def linear(
    x: NDArray[Any], x_zero_point: int, w: NDArray[Any], bias: NDArray[np.int32], codes: Codes
) -> NDArray[Any]:
    """Codes of a layer: `requantize` of `linear_accumulate`, along the last axis.

    Raises:  QuantizationError: if a sum does not fit into int32. ValueError: for shapes that do
             not fit.
    """
    if w.ndim != 2 or not x.ndim or x.shape[-1] != w.shape[1] or bias.shape != w.shape[:1]:
        raise ValueError(f"linear: shapes x {x.shape}, w {w.shape}, bias {bias.shape} do not fit")
    work = 2 * x.size * len(w)
    y: NDArray[Any] = table.call("quantized_linear", x.dtype, work, x, x_zero_point, w, bias, codes)
    return y


def plain_linear(
    x: NDArray[Any], x_zero_point: int, w: NDArray[Any], bias: NDArray[np.int32], codes: Codes
) -> NDArray[Any]:
    """`linear` in NumPy."""
    acc = linear_accumulate(x, x_zero_point, w, bias)
    return requantize(acc, *codes, acc.ndim - 1)


def convolution(
    x: NDArray[Any],
    x_zero_point: int,
    w: NDArray[Any],
    bias: NDArray[np.int32],
    codes: Codes,
    slide: Sliding,
) -> NDArray[Any]:
    """Codes of a layer: `requantize` of `convolution_accumulate`, along axis 1.

    Raises:  QuantizationError: if a sum does not fit into int32. ValueError: for shapes that do
             not fit.
    """
    size = fitting_size(x.shape, w.shape, None, slide)
    if bias.shape != w.shape[:1]:
        raise ValueError(f"convolution: shapes w {w.shape}, bias {bias.shape} do not fit")
    given = (x, x_zero_point, w, bias, codes, slide)
    work = 2 * len(x) * prod(size) * w.size
    y: NDArray[Any] = table.call("quantized_convolution", x.dtype, work, *given)
    return y


def plain_convolution(
    x: NDArray[Any],
    x_zero_point: int,
    w: NDArray[Any],
    bias: NDArray[np.int32],
    codes: Codes,
    slide: Sliding,
) -> NDArray[Any]:
    """`convolution` in NumPy."""
    acc = convolution_accumulate(x, x_zero_point, w, bias, *slide)
    return requantize(acc, *codes, 1)


def linear_accumulate(
    x: NDArray[Any],
    x_zero_point: int | np.integer[Any],
    w: NDArray[Any],
    bias: NDArray[np.int32] | None,
) -> NDArray[np.int32]:
    """Multiply a matrix of codes by the weights' transpose, exactly.

    Maths:   acc[..., o] = Σ_i (x[..., i] - x_zero_point) w[o, i] + bias[o]
    Args:    x: codes (..., I). w: codes (O, I) with zero point 0. bias: int32 (O,).
    Returns: int32 (..., O).
    Raises:  QuantizationError: if a sum does not fit into int32.
    """
    reach = reach_of(x.dtype, int(x_zero_point), w)
    work = exact_float(reach)
    total = (x.astype(work) - work.type(x_zero_point)) @ w.astype(work).T
    return _to_int32(total, bias, -1, reach)


def convolution_accumulate(
    x: NDArray[Any],
    x_zero_point: int | np.integer[Any],
    w: NDArray[Any],
    bias: NDArray[np.int32] | None,
    stride: Sizes,
    padding: Padding,
    dilation: Sizes,
    groups: int,
) -> NDArray[np.int32]:
    """Convolve images of codes, exactly; padding is the code that stands for 0, the zero point.

    Args:    x: codes (N, C, *S). w: codes (O, C / groups, *K) with zero point 0. bias: int32 (O,).
             stride, padding, dilation, groups: as in `convolution`.
    Returns: int32 (N, O, *T).
    Raises:  QuantizationError: if a sum does not fit into int32.
    """
    reach = reach_of(x.dtype, int(x_zero_point), w)
    work = exact_float(reach)
    centred = x.astype(work) - work.type(x_zero_point)
    total = convolve(centred, w.astype(work), stride, padding, dilation, groups)
    return _to_int32(total, bias, 1, reach)


def reach_of(dtype: np.dtype[Any], zero_point: int, w: NDArray[Any]) -> int:
    """The largest magnitude that any partial sum can have."""
    codes = np.iinfo(dtype)
    farthest = max(zero_point - int(codes.min), int(codes.max) - zero_point)
    weights = np.abs(w.astype(np.int64)).sum(axis=tuple(range(1, w.ndim)))
    return farthest * int(weights.max(initial=0))


def exact_float(reach: int) -> np.dtype[Any]:
    """The narrowest float in which sums up to `reach` are exact; see Note [Exact sums]."""
    assert reach < 2**53, "a sum of products of bytes cannot leave float64 in any memory there is"
    return np.dtype(np.float32 if reach < _FLOAT32_EXACT else np.float64)


def _to_int32(
    total: NDArray[Any], bias: NDArray[np.int32] | None, axis: int, reach: int
) -> NDArray[np.int32]:
    """Exact float sums, plus the bias, as int32."""
    offset = np.int64(0) if bias is None else _along(bias, axis, total.ndim).astype(np.int64)
    highest = reach + int(np.abs(offset).max(initial=0))
    if highest <= INT32_MAX:
        return total.astype(np.int32) + offset.astype(np.int32)
    acc = total.astype(np.int64) + offset
    worst = int(np.abs(acc).max(initial=0))
    if worst > INT32_MAX:
        raise QuantizationError(
            f"a sum of products must fit into int32, got {worst} > {INT32_MAX}",
            fix="use fewer input features or channels per group, or a smaller bias",
        )
    return acc.astype(np.int32)
