"""Chapter: parts of arrays. Slices and their adjoint, reversed axes, arrays put together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from funct import core, ops
from funct.core import Primitive, Sample, Shape, ShapeDtype, Value
from funct.errors import ShapeError
from funct.ops.broadcasting import first_axis
from funct.ops.families import structural
from funct.ops.samples import calls

__all__ = ["concat", "delayed", "embed", "flip", "onnx_slice", "slice_", "slice_length"]

Params = tuple[Any, ...]
Args = Sequence[Any]
Flags = Sequence[bool]


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
    if not any(isinstance(v, core.Size) for v in (n, *triple)):
        return len(range(*slice(*triple).indices(n)))
    low, high = _ends(n, triple)
    step = triple[2]
    far = core.larger(high - low, 0) if step > 0 else core.larger(low - high, 0)
    count = (far + abs(step) - 1) // abs(step)
    if not isinstance(count, core.Size) or (1 - count).least < 0:
        return count
    start, stop, _ = triple
    measured = isinstance(start, core.Size) or isinstance(stop, core.Size)
    if measured and (start is None or stop is None or isinstance(stop - start, core.Size)):
        return count  # what a division leaves, say
    return 1 if count >= 1 else 0  # one element is meant, and broadcasts: that is decided


def _ends(n: Any, triple: tuple[Any, Any, int]) -> tuple[Any, Any]:
    """`slice(*triple).indices(n)` without the step, where one of them is symbolic. The sign of a
    symbolic end has to be known, and may become a guard.
    """
    first, last = (0, n) if triple[2] > 0 else (-1, n - 1)  # what no end is outside of

    def end(v: Any, default: Any) -> Any:
        if v is None:
            return default
        return core.smaller(v, last) if v >= 0 else core.larger(n + v, first)

    start, stop, step = triple
    begin, behind = (first, last) if step > 0 else (last, first)
    return end(start, begin), end(stop, behind)


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
    if g.flags.c_contiguous or 0 in g.strides:
        out = np.zeros(shape, g.dtype)
    else:  # as g lies in memory, of which it may be a part
        order = sorted(range(g.ndim), key=g.strides.__getitem__, reverse=True)
        out = np.zeros([shape[k] for k in order], g.dtype).transpose(np.argsort(order))
    out[_slices(index)] = g
    return out


def _embed_shape(g: Shape, index: Triples, shape: Shape) -> Shape:
    room = _slice_shape(shape, index)
    for n, m in zip(g, room, strict=True):
        if n.__class__ is int and m.__class__ is int and n not in (1, m):
            raise ShapeError(f"embed: {list(g)} does not go where there is room for {list(room)}")
    return shape


def _embed_transpose(h: Value, index: Triples) -> Value:
    return ops.slice_(h, index)


def _embed_batch(prim: Primitive, args: Args, batched: Flags, params: Params) -> Value:
    index, shape = params
    return ops.embed(args[0], ((None, None, 1), *index), (args[0].shape[0], *shape))


def _border(n: Any, triple: tuple[Any, Any, int]) -> tuple[Any, Any]:
    """How many zeros stand before and behind a slice of step 1 of an axis of length n."""
    low, high = _ends(n, triple)
    return low, n - core.larger(high, low)


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
            count = given[axis]
            low, _ = _ends(n, triple)
            low = low if step > 0 else low + (count - 1) * step
            g = _onnx_spaced(w, g, axis, given, step)
            behind = n - low - given[axis]  # negative: the zeros behind the last element are cut
        begins.append(low)
        ends.append(behind)
    if not any(isinstance(v, core.Size) or v for v in (*begins, *ends)):
        return g
    return str(w.op("Pad", g, w.dims((*begins, *ends)), w.constant(0, w.dtype_of(g))))


@structural(
    _embed_raw, _embed_transpose, shape=_embed_shape,
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


def delayed(y: Value, axis: int, first: int) -> Value:
    """y moved one place along axis, with `first` in front."""
    rank = len(y.shape)
    place = ops.slice_(y, _span(rank, axis, 0, 1)).shape
    front = ops.broadcast_to(ops.fast.wrap(np.full((), first, y.dtype)), place)
    return ops.concat(front, ops.slice_(y, _span(rank, axis, None, -1)), axis)
