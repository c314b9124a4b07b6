"""Chapter: manipulation. Shapes and axes change, elements do not; every op here is linear.

Parameters are normal: axes are non-negative, shapes and slices are tuples, so that they hash and
print.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from funct import core, ops
from funct.core import Linear, Primitive, Sample, Shape, ShapeDtype, Value
from funct.errors import DTypeError, ShapeError
from funct.ops.families import broadcast_shapes, first_axis, match_operand, structural
from funct.ops.samples import calls

__all__ = [
    "astype", "broadcast_to", "concat", "embed", "flip", "move_axis", "permute_dims", "reshape",
    "slice_", "slice_length", "squeeze", "swap_last",
]  # fmt: skip

Params = tuple[Any, ...]
Args = Sequence[Any]
Flags = Sequence[bool]


def _normal(*shape: int) -> Any:
    return lambda rng: rng.normal(size=shape)


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
    lambda x, shape: x.reshape(shape), _reshape_transpose, shape=_reshape_shape,
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


# slice and its adjoint ----------------------------------------------------------------------------

Triples = tuple[tuple[int | None, int | None, int], ...]


def _slices(index: Triples) -> tuple[slice, ...]:
    return tuple([slice(*t) for t in index])  # slices do not hash before Python 3.12


def _slice_shape(x: Shape, index: Triples) -> Shape:
    return tuple([slice_length(n, t) for n, t in zip(x, index, strict=True)])


def slice_length(n: Any, triple: tuple[Any, Any, int]) -> Any:
    """How many of n elements a (start, stop, step) selects; symbolic where it can stay so."""
    if triple == (None, None, 1) or triple == (None, None, -1):
        return n
    if isinstance(n, core.Size) and triple[2] == 1:
        return _symbolic_length(n, triple[0], triple[1])
    return len(range(*slice(*triple).indices(n)))


def _symbolic_length(n: Any, start: Any, stop: Any) -> Any:
    """Length of x[start:stop] for a symbolic n; what has to be decided becomes a guard."""
    low = 0 if start is None else start
    to_end = stop is None or stop < 0
    high = 0 if stop is None else stop
    if low >= 0 and to_end:
        return n + high - low if n >= low - high else 0
    if low >= 0:
        if low >= high:
            return 0
        return high - low if n >= high else n - low if n >= low else 0
    if to_end:
        if low >= high:
            return 0
        return high - low if n >= -low else n + high if n >= -high else 0
    return len(range(*slice(low, high).indices(n.__index__())))


def _slice_transpose(g: Value, x_shape: Shape, index: Triples) -> Value:
    return ops.embed(g, index, x_shape)


def _slice_batch(prim: Primitive, args: Args, batched: Flags, params: Params) -> Value:
    return ops.slice_(args[0], ((None, None, 1), *params[0]))


_FAR = 2**62


def onnx_slice(w: Any, x: str, index: Triples) -> str:
    """Slice, along the axes that it shortens or turns."""
    found = [(a, t) for a, t in enumerate(index) if t != (None, None, 1)]
    if not found:
        return x
    starts = tuple([(_FAR if step < 0 else 0) if t is None else t for _, (t, _, step) in found])
    ends = tuple([(-_FAR if step < 0 else _FAR) if t is None else t for _, (_, t, step) in found])
    axes, steps = (tuple(v) for v in zip(*[(a, step) for a, (_, _, step) in found], strict=True))
    lists = [w.dims(v) for v in (starts, ends, axes, steps)]
    return str(w.op("Slice", x, *lists))


@structural(
    lambda x, index: x[_slices(index)], _slice_transpose, shape=_slice_shape,
    batch=_slice_batch, onnx=onnx_slice, masks=True,
    samples=calls(
        lambda rng: Sample((rng.normal(size=(4, 5)),), (((1, 3, 1), (None, None, -2)),)),
        lambda rng: Sample((rng.normal(size=(4,)),), (((2, 2, 1),),)),
    ),
)  # fmt: skip
def slice_(x: Value, index: Triples) -> Value:
    """Basic slicing, one (start, stop, step) per axis; a view."""


def _embed_raw(g: Any, index: Triples, shape: Shape) -> Any:
    out = np.zeros(shape, g.dtype)
    out[_slices(index)] = g
    return out


def _embed_transpose(h: Value, index: Triples) -> Value:
    return ops.slice_(h, index)


def _embed_batch(prim: Primitive, args: Args, batched: Flags, params: Params) -> Value:
    index, shape = params
    return ops.embed(args[0], ((None, None, 1), *index), (args[0].shape[0], *shape))


def _border(n: Any, triple: tuple[Any, Any, int]) -> tuple[Any, Any]:
    """How many zeros stand before and behind a slice of step 1 of an axis of length n."""
    start, stop, _ = triple
    if isinstance(n, int):
        low, high, _ = slice(start, stop, 1).indices(n)
        return low, n - max(high, low)
    low = 0 if start is None else start  # a symbolic length: the signs alone decide
    high = n if stop is None else stop
    low = n + low if isinstance(low, int) and low < 0 else low
    high = n + high if isinstance(high, int) and high < 0 else high
    return low, n - high


def _onnx_spaced(w: Any, g: str, axis: int, shape: list[Any], step: int) -> str:
    """|step| - 1 zeros behind each element along axis, the order turned where step is negative."""
    if step < 0:
        g = onnx_slice(w, g, _turned(len(shape), (axis,)))
    wide = w.op("Unsqueeze", g, w.dims((axis + 1,)))
    pads = [0] * (2 * len(shape) + 2)
    pads[len(shape) + 1 + axis + 1] = abs(step) - 1
    shape[axis] = shape[axis] * abs(step)
    zero = w.constant(0, w.dtype_of(g))
    return str(w.op("Reshape", w.op("Pad", wide, w.dims(tuple(pads)), zero), w.dims(tuple(shape))))


def _onnx_embed(w: Any, g: str, index: Triples, shape: Shape) -> str:
    given, begins, ends = list(w.shape_of(g)), [], []
    for axis, (n, triple) in enumerate(zip(shape, index, strict=True)):
        step = triple[2]
        if step == 1:
            low, behind = _border(n, triple)
        else:
            at = range(*slice(*triple).indices(n))
            g = _onnx_spaced(w, g, axis, given, step)
            low = (at[0] if step > 0 else at[-1]) if at else 0
            behind = n - low - given[axis]  # negative: the zeros behind the last element are cut
        begins.append(low)
        ends.append(behind)
    if not any(begins + ends):
        return g
    return str(w.op("Pad", g, w.dims((*begins, *ends)), w.constant(0, w.dtype_of(g))))


@structural(
    _embed_raw, _embed_transpose, shape=lambda g, index, shape: shape,
    batch=_embed_batch, onnx=_onnx_embed,
    samples=calls(
        lambda rng: Sample((rng.normal(size=(2, 3)),), (((1, 3, 1), (None, None, 2)), (4, 5))),
        lambda rng: Sample((rng.normal(size=(2,)),), (((1, 3, 1),), (5,))),
    ),
)  # fmt: skip
def embed(g: Value, index: Triples, shape: Shape) -> Value:
    """Adjoint of `slice_`: zeros of `shape` with g written at `index`."""


# flip, concat -------------------------------------------------------------------------------------


def _flip_transpose(g: Value, axes: Shape) -> Value:
    return ops.flip(g, axes)


def _flip_batch(prim: Primitive, args: Args, batched: Flags, params: Params) -> Value:
    return ops.flip(args[0], tuple(a + 1 for a in params[0]))


def _onnx_flip(w: Any, x: str, axes: Shape) -> str:
    return onnx_slice(w, x, _turned(len(w.shape_of(x)), axes))


def _turned(rank: int, axes: Shape) -> Triples:
    return tuple([(None, None, -1 if a in axes else 1) for a in range(rank)])


def _flip_raw(x: Any, axes: Shape) -> Any:
    return x[tuple([_BACKWARDS if a in axes else _WHOLE for a in range(x.ndim)])]


_WHOLE, _BACKWARDS = slice(None), slice(None, None, -1)


@structural(
    _flip_raw, _flip_transpose, shape=lambda x, axes: x, batch=_flip_batch, onnx=_onnx_flip,
    samples=calls(lambda rng: Sample((rng.normal(size=(2, 3)),), ((0, 1),))),
)  # fmt: skip
def flip(x: Value, axes: Shape) -> Value:
    """Elements in reverse order along axes; a view."""


def _concat_raw(x: Any, y: Any, axis: int) -> Any:
    return np.concatenate((x, y), axis)


def _concat_aval(args: Args, params: Params) -> ShapeDtype:
    x, y = args[0].shape, args[1].shape
    axis = params[0]
    if len(x) != len(y):
        raise ShapeError(f"concat: ranks must agree, got {x} and {y}")
    if any(a != b for i, (a, b) in enumerate(zip(x, y, strict=True)) if i != axis):
        raise ShapeError(f"concat: shapes must agree except on axis {axis}, got {x} and {y}")
    shape = (*x[:axis], x[axis] + y[axis], *x[axis + 1 :])
    return ShapeDtype(shape, np.result_type(args[0].dtype, args[1].dtype))


def _span(rank: int, axis: int, start: int | None, stop: int | None) -> Triples:
    return tuple((start, stop, 1) if i == axis else (None, None, 1) for i in range(rank))


def _concat_transpose_x(g: Value, x_shape: Shape, axis: int) -> Value:
    return ops.slice_(g, _span(len(x_shape), axis, None, x_shape[axis]))


def _concat_transpose_y(g: Value, axis: int, x_shape: Shape, y_shape: Shape) -> Value:
    return ops.slice_(g, _span(len(x_shape), axis, x_shape[axis], None))


def _concat_push_x(t: Value, ans: Value, x: Value, y: Value, axis: int) -> Value:
    return ops.embed(t, _span(len(x.shape), axis, None, x.shape[axis]), ans.shape)


def _concat_push_y(t: Value, ans: Value, x: Value, y: Value, axis: int) -> Value:
    return ops.embed(t, _span(len(x.shape), axis, x.shape[axis], None), ans.shape)


def _concat_batch(prim: Primitive, args: Args, batched: Flags, params: Params) -> Value:
    size = next(a.shape[0] for a, b in zip(args, batched, strict=True) if b)
    x, y = (first_axis(a, b, size) for a, b in zip(args, batched, strict=True))
    return ops.concat(x, y, params[0] + 1)


def _onnx_concat(w: Any, x: str, y: str, axis: int) -> str:
    both = [w.cast(v, w.results[0].dtype) for v in (x, y)]
    return str(w.op("Concat", *both, axis=axis))


_CONCAT = ["x", "y", "axis"]


@structural(
    _concat_raw,
    core.Pair(_concat_push_x, _concat_transpose_x, _CONCAT),
    core.Pair(_concat_push_y, _concat_transpose_y, _CONCAT),
    aval=_concat_aval, batch=_concat_batch, onnx=_onnx_concat, spread=None,
    samples=calls(
        lambda rng: Sample((rng.normal(size=(2, 3)), rng.normal(size=(2, 1))), (1,)),
        lambda rng: Sample((rng.normal(size=(0,)), rng.normal(size=(2,))), (0,)),
    ),
)  # fmt: skip
def concat(x: Value, y: Value, axis: int) -> Value:
    """x followed by y along an existing axis."""


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
    return x.astype(dtype)


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
