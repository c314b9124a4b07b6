"""Chapter: collectives, which combine the lanes of a named axis.

The second operand, `index`, is each lane's place on the axis. `vmap` makes it, and because ops go
to the highest level among their operands, it brings the op to the level that has the lanes,
whatever the other operand varies with. That level is recognised by a batched index. What all lanes
get from it is one value without a batch, so that `out_axes=None` may return it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from funct import ops
from funct.core import Absent, Primitive, Sample, Shape, ShapeDtype, Shared, Value
from funct.errors import TransformError
from funct.ops.families import structural

__all__ = ["all_gather", "psum", "psum_scatter"]

Params = tuple[Any, ...]
Args = Sequence[Any]
Flags = Sequence[bool]

_NO_ONNX = Absent("a file has no lanes; export the function that vmap returns")


def _alone(*args: Any) -> NoReturn:
    raise TransformError("a collective was called on a value that has no lanes")


def _no_samples(rng: Any) -> list[Sample]:
    return []  # an index makes sense inside vmap alone: tests/transforms/test_collectives.py


def _total(x: Any) -> Any:
    out = ops.reduce_sum(x, (0,), False)
    return out if out.dtype == x.dtype else ops.astype(out, x.dtype)


# psum: its own transpose -------------------------------------------------------------------------


def _psum_rule(g: Value, index: Value, size: int) -> Value:
    return ops.psum(g, index, size)


def _psum_batch(prim: Primitive, args: Args, batched: Flags, params: Params) -> Any:
    x, index = args
    (size,) = params
    if not batched[1]:
        return ops.psum(x, index, size)
    return Shared(_total(x) if batched[0] else x * size)


@structural(
    _alone, _psum_rule, None, batch=_psum_batch, onnx=_NO_ONNX, samples=_no_samples,
    aval=lambda args, params: ShapeDtype(args[0].shape, args[0].dtype),
)  # fmt: skip
def psum(x: Value, index: Value, size: int) -> Value:
    """Sum of x over the lanes; every lane gets it."""


# all_gather and psum_scatter: each other's transposes --------------------------------------------


def _all_gather_rule(g: Value, index: Value, size: int) -> Value:
    return ops.psum_scatter(g, index, size)


def _all_gather_batch(prim: Primitive, args: Args, batched: Flags, params: Params) -> Any:
    x, index = args
    (size,) = params
    if not batched[1]:
        return ops.move_axis(ops.all_gather(x, index, size), 1, 0)
    return Shared(x if batched[0] else ops.broadcast_to(x, (size, *x.shape)))


def _all_gather_aval(args: Args, params: Params) -> ShapeDtype:
    return ShapeDtype((params[0], *args[0].shape), args[0].dtype)


@structural(
    _alone, _all_gather_rule, None, batch=_all_gather_batch, onnx=_NO_ONNX, samples=_no_samples,
    aval=_all_gather_aval,
)  # fmt: skip
def all_gather(x: Value, index: Value, size: int) -> Value:
    """The values of all lanes, stacked on a new axis 0; every lane gets them."""


def _psum_scatter_rule(g: Value, index: Value, size: int) -> Value:
    return ops.all_gather(g, index, size)


def _psum_scatter_batch(prim: Primitive, args: Args, batched: Flags, params: Params) -> Any:
    x, index = args
    (size,) = params
    if not batched[1]:
        return ops.psum_scatter(ops.move_axis(x, 1, 0), index, size)
    return _total(x) if batched[0] else x * size


def _psum_scatter_shape(x: Shape, size: int) -> Shape:
    if not x or x[0] != size:
        raise TransformError(f"psum_scatter: axis 0 of x must have a row for each of {size} lanes")
    return x[1:]


@structural(
    _alone, _psum_scatter_rule, None, batch=_psum_scatter_batch, onnx=_NO_ONNX,
    samples=_no_samples,
    aval=lambda args, params: ShapeDtype(
        _psum_scatter_shape(args[0].shape, *params), args[0].dtype
    ),
)  # fmt: skip
def psum_scatter(x: Value, index: Value, size: int) -> Value:
    """Row i of the sum of x over the lanes, for lane i."""
