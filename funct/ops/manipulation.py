"""Chapter: manipulation. Shapes and axes change, elements do not; every op here is linear.

Parameters are normal: axes are non-negative, shapes and slices are tuples, so that they hash and
print.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from funct import ops
from funct.core import Linear, Primitive, Sample, Shape, ShapeDtype, Value
from funct.errors import DTypeError, ShapeError
from funct.kernels import manipulation as kernels
from funct.kernels.elementwise.casting import in_dtype
from funct.ops.broadcasting import broadcast_shapes, match_operand
from funct.ops.by_size import NOTED, arrived
from funct.ops.families import structural
from funct.ops.samples import calls

__all__ = [
    "astype", "broadcast_to", "move_axis", "permute_dims", "reshape", "squeeze", "swap_last",
]  # fmt: skip

Params = tuple[Any, ...]
Args = Sequence[Any]
Flags = Sequence[bool]


# reshape ------------------------------------------------------------------------------------------


def _reshape_shape(x: Shape, shape: Shape) -> Shape:
    count, wanted = _count(x), _count(shape)
    if count != wanted:
        raise ShapeError(f"reshape: {count} elements of shape {x} do not fill shape {shape}")
    return shape


def _count(shape: Shape) -> Any:
    n: Any = 1
    for k in shape:
        n = n * k
    return n


def _reshape_transpose(g: Value, x_shape: Shape) -> Value:
    return ops.reshape(g, x_shape)


def _reshape_batch(prim: Primitive, args: Args, batched: Flags, params: Params) -> Value:
    return ops.reshape(args[0], (args[0].shape[0], *params[0]))


def _onnx_reshape(w: Any, x: str, shape: Shape) -> str:
    return str(w.op("Reshape", x, w.dims(shape, infer=True), allowzero=1))


@structural(
    kernels.reshaped, _reshape_transpose, shape=_reshape_shape,
    batch=_reshape_batch, onnx=_onnx_reshape,
    samples=calls(
        lambda rng: Sample((rng.normal(size=(3, 4)),), ((2, 6),)),
        lambda rng: Sample((rng.normal(size=(6,)) + 1j,), ((3, 1, 2),)),
        lambda rng: Sample((rng.normal(size=(0, 4)),), ((2, 0),)),
    ),
)  # fmt: skip
def reshape(x: Value, shape: Shape) -> Value:
    """The same elements, in C order, in another shape."""


# broadcast_to -------------------------------------------------------------------------------------


def _broadcast_raw(x: Any, shape: Shape) -> Any:
    if x.ndim == 0:  # strides of 0 at 0.2 us; np.broadcast_to costs 1.8
        return np.ndarray(shape, x.dtype, x, 0, (0,) * len(shape))
    lead = len(shape) - x.ndim
    strides = [0] * lead
    for n, m, s in zip(x.shape, shape[lead:], x.strides, strict=False):
        if n != m and n != 1:
            return np.broadcast_to(x, shape)  # refuses
        strides.append(s if n == m else 0)
    if lead < 0 or not x.flags.c_contiguous:
        return np.broadcast_to(x, shape)
    return np.ndarray(shape, x.dtype, x, 0, strides)


def _broadcast_shape(x: Shape, shape: Shape) -> Shape:
    try:
        if len(x) <= len(shape) and broadcast_shapes(x, shape) == shape:
            return shape
    except ValueError:
        pass
    raise ShapeError(f"broadcast_to: shape {x} does not broadcast to {shape}")


def _broadcast_transpose(g: Value, x_shape: Shape) -> Value:
    return match_operand(g, x_shape)


def _broadcast_batch(prim: Primitive, args: Args, batched: Flags, params: Params) -> Value:
    x, shape = args[0], params[0]
    missing = len(shape) + 1 - len(x.shape)
    if missing:
        x = ops.reshape(x, (x.shape[0], *(1,) * missing, *x.shape[1:]))
    return ops.broadcast_to(x, (x.shape[0], *shape))


def _onnx_broadcast(w: Any, x: str, shape: Shape) -> str:
    return str(w.op("Expand", x, w.dims(shape)))


@structural(
    _broadcast_raw, _broadcast_transpose, shape=_broadcast_shape,
    batch=_broadcast_batch, onnx=_onnx_broadcast,
    samples=calls(
        lambda rng: Sample((rng.normal(size=(3, 1)),), ((2, 3, 4),)),
        lambda rng: Sample((rng.normal(size=()),), ((2, 3),)),
        lambda rng: Sample((rng.normal(size=(1,)),), ((0, 1),)),
    ),
)  # fmt: skip
def broadcast_to(x: Value, shape: Shape) -> Value:
    """x repeated along axes of length 1 and along new leading axes; a view."""


# permute_dims -------------------------------------------------------------------------------------


def _permute_transpose(g: Value, axes: Shape) -> Value:
    return ops.permute_dims(g, tuple(axes.index(i) for i in range(len(axes))))


def _permute_batch(prim: Primitive, args: Args, batched: Flags, params: Params) -> Value:
    return ops.permute_dims(args[0], (0, *(i + 1 for i in params[0])))


def _onnx_permute(w: Any, x: str, axes: Shape) -> str:
    return str(w.op("Transpose", x, perm=list(axes)))


@structural(
    lambda x, axes: x.transpose(axes), _permute_transpose,
    shape=lambda x, axes: tuple(x[i] for i in axes), batch=_permute_batch, onnx=_onnx_permute,
    samples=calls(
        lambda rng: Sample((rng.normal(size=(2, 3, 4)),), ((2, 0, 1),)),
        lambda rng: Sample((rng.normal(size=(2, 3)) * 1j,), ((1, 0),)),
    ),
)  # fmt: skip
def permute_dims(x: Value, axes: Shape) -> Value:
    """Axes in another order; a view."""


def move_axis(x: Value, source: int, destination: int) -> Any:
    """One axis moved; both positions non-negative."""
    if source == destination:
        return x
    order = list(range(len(x.shape)))
    order.insert(destination, order.pop(source))
    return ops.permute_dims(x, tuple(order))


def swap_last(x: Value) -> Any:
    """The last two axes exchanged."""
    n = len(x.shape)
    return ops.permute_dims(x, (*range(n - 2), n - 1, n - 2))


def squeeze(x: Value, axis: int) -> Any:
    """x without one axis of length 1."""
    return ops.reshape(x, (*x.shape[:axis], *x.shape[axis + 1 :]))


# astype -------------------------------------------------------------------------------------------


def _astype_transpose(g: Value) -> Value:
    return g  # the tape casts every cotangent to the dtype of its operand


def _astype_batch(prim: Primitive, args: Args, batched: Flags, params: Params) -> Value:
    return ops.astype(args[0], *params)


def _astype_aval(args: Args, params: Params) -> ShapeDtype:
    if args[0].dtype.kind == "c" and params[0].kind not in "cb":
        raise DTypeError(
            f"astype: a complex array has no {params[0]} value", fix="take real(x) or imag(x) first"
        )
    return ShapeDtype(args[0].shape, params[0])


def _astype_raw(x: Any, dtype: np.dtype[Any]) -> Any:
    if x.dtype.kind == "c" and dtype.kind not in "cb":
        raise TypeError("complex to real")
    y = in_dtype(x, dtype)
    if y.nbytes >= NOTED:
        arrived(y)
    return y


def _onnx_astype(w: Any, x: str, dtype: np.dtype[Any]) -> str:
    return str(w.cast(x, dtype))


@structural(
    _astype_raw, Linear(_astype_transpose, ["x", "dtype"], fast=False), aval=_astype_aval,
    batch=_astype_batch, onnx=_onnx_astype, spread=True, code="cast({0})",
    samples=calls(
        lambda rng: Sample((rng.normal(size=(3,)),), (np.dtype("complex128"),)),
        lambda rng: Sample((rng.normal(size=(3,)),), (np.dtype("float32"),), smooth=False),
        lambda rng: Sample((rng.normal(size=(3,)),), (np.dtype("int64"),), smooth=False),
        lambda rng: Sample((rng.integers(0, 9, 3),), (np.dtype("float64"),), smooth=False),
    ),
)  # fmt: skip
def astype(x: Value, dtype: np.dtype[Any]) -> Value:
    """The same values in another dtype; always a fresh buffer."""
