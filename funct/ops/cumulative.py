"""Chapter: scans along one axis. Each is as long as what it runs over."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from funct import ops
from funct.core import (
    NARROW,
    Absent,
    Pair,
    Primitive,
    Sample,
    Shape,
    ShapeDtype,
    Value,
    in_wide,
)
from funct.kernels.dtypes import is_half
from funct.kernels.reductions import scans as kernels
from funct.ops.families import structural
from funct.ops.samples import calls
from funct.ops.slicing import delayed
from funct.ops.statistical import sum_dtype

__all__ = ["cumulative_prod", "cumulative_sum", "linear_recurrence"]

Params = tuple[Any, ...]
Args = Sequence[Any]
Flags = Sequence[bool]


def _scan_aval(args: Args, params: Params) -> ShapeDtype:
    return ShapeDtype(args[0].shape, sum_dtype(args[0].dtype))


def _scan_batch(prim: Primitive, args: Args, batched: Flags, params: Params) -> Value:
    return prim.fn(args[0], params[0] + 1)


def _cumsum_transpose(g: Value, axis: int) -> Value:
    return ops.flip(ops.cumulative_sum(ops.flip(g, (axis,)), axis), (axis,))


def _onnx_cumsum(w: Any, x: str, axis: int) -> str:
    x = w.cast(x, w.results[0].dtype)
    return str(w.op("CumSum", x, w.constant(axis, np.dtype(np.int64))))


_SCAN_SAMPLES = calls(
    lambda rng: Sample((rng.normal(size=(2, 4)),), (1,)),
    lambda rng: Sample((rng.normal(size=(3, 2)),), (0,)),
    lambda rng: Sample((np.asarray([1.5, 0.0, 2.0, 0.0, 3.0]),), (0,)),
)


def _cumsum_raw(x: Any, axis: int) -> Any:
    if x.dtype in NARROW and not is_half(x.dtype):
        return in_wide(kernels.running_sum, x, axis)
    return kernels.running_sum(x, axis)


@structural(
    _cumsum_raw, _cumsum_transpose, aval=_scan_aval, batch=_scan_batch,
    onnx=_onnx_cumsum, samples=_SCAN_SAMPLES,
)  # fmt: skip
def cumulative_sum(x: Value, axis: int) -> Value:
    """Running sum along axis; of float16 and bfloat16 in float32, each rounded once."""


def _cumprod_push(t: Value, ans: Value, x: Value, axis: int) -> Value:
    # y_k = y_(k-1) x_k, so dy_k = x_k dy_(k-1) + y_(k-1) dx_k: exact where factors are 0
    return ops.linear_recurrence(x, t * delayed(ans, axis, 1), axis)


def _cumprod_pull(g: Value, ans: Value, x: Value, axis: int) -> Value:
    return _recurrence_transpose_b(g, x, axis) * delayed(ans, axis, 1)


def _cumprod_raw(x: Any, axis: int) -> Any:
    if x.dtype in NARROW and not is_half(x.dtype):
        return in_wide(kernels.running_product, x, axis)
    return kernels.running_product(x, axis)


@structural(
    _cumprod_raw, Pair(_cumprod_push, _cumprod_pull, ["x", "axis"]),
    aval=_scan_aval, batch=_scan_batch, samples=_SCAN_SAMPLES,
    onnx=Absent("ONNX has CumProd from opset 26 on only"),
)  # fmt: skip
def cumulative_prod(x: Value, axis: int) -> Value:
    """Running product along axis; the derivative is exact where factors are 0.

    Products of float16 and bfloat16 are in float32, each rounded once.
    """


def _recurrence_raw(a: Any, b: Any, axis: int) -> Any:
    if a.dtype in NARROW and b.dtype in NARROW:
        return in_wide(lambda b: _recurrence_raw(a.astype(b.dtype), b, axis), b)
    return kernels.linear_recurrence(a, b, axis)


def _recurrence_push_a(t: Value, ans: Value, a: Value, b: Value, axis: int) -> Value:
    return ops.linear_recurrence(a, t * delayed(ans, axis, 0), axis)


def _recurrence_pull_a(g: Value, ans: Value, a: Value, axis: int, b_shape: Shape) -> Value:
    return _recurrence_transpose_b(g, a, axis) * delayed(ans, axis, 0)


def _recurrence_transpose_b(g: Value, a: Value, axis: int) -> Value:
    back = ops.flip(a, (axis,))  # runs backwards, each step with the factor of the step after it
    return ops.flip(
        ops.linear_recurrence(delayed(back, axis, 0), ops.flip(g, (axis,)), axis), (axis,)
    )


def _recurrence_rule_b(g: Value, a: Value, axis: int, b_shape: Shape) -> Value:
    return _recurrence_transpose_b(g, a, axis)


def _recurrence_batch(prim: Primitive, args: Args, batched: Flags, params: Params) -> Value:
    size = next(a.shape[0] for a, b in zip(args, batched, strict=True) if b)
    a, b = (ops.first_axis(v, f, size) for v, f in zip(args, batched, strict=True))
    return ops.linear_recurrence(a, b, params[0] + 1)


def _recurrence_push_b(t: Value, ans: Value, a: Value, b: Value, axis: int) -> Value:
    return ops.linear_recurrence(a, t, axis)


_RECURRENCE = ["a", "b", "axis"]


@structural(
    _recurrence_raw,
    Pair(_recurrence_push_a, _recurrence_pull_a, _RECURRENCE),
    Pair(_recurrence_push_b, _recurrence_rule_b, _RECURRENCE),
    aval=lambda args, params: ShapeDtype(
        args[1].shape, np.result_type(args[0].dtype, args[1].dtype)
    ),
    batch=_recurrence_batch, onnx=Absent("ONNX would need a Scan per recurrence"),
    samples=calls(
        lambda rng: Sample((rng.normal(size=(2, 4)), rng.normal(size=(2, 4))), (1,)),
        lambda rng: Sample((rng.normal(size=(3,)), rng.normal(size=(3,))), (0,)),
    ),
)  # fmt: skip
def linear_recurrence(a: Value, b: Value, axis: int) -> Value:
    """y_0 = b_0, y_k = a_k y_(k-1) + b_k along axis; a and b have one shape."""
