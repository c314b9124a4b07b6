"""Collectives over a named axis of vmap: each lane sees what all lanes have.

`vmap(fun, axis_name="i")` binds the name while fun runs. What the name stands for is each lane's
index, an ordinary batched value; everything else is ops on it, so every transform composes.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from msgspec import Struct

from funct import array as xp
from funct import ops, pytree
from funct.array import asarray
from funct.array.axes import normal_axis
from funct.array.trees import map_leaves
from funct.errors import ShapeError, TransformError

__all__ = [
    "all_gather", "all_to_all", "axis_index", "axis_size", "named_axis", "pmax", "pmean", "pmin",
    "ppermute", "psum", "psum_scatter",
]  # fmt: skip

AxisName = Hashable | tuple[Hashable, ...]


class NamedAxis(Struct, frozen=True, eq=False):
    """What a name is bound to. whole: all lanes are in this run, none has gone its own way."""

    name: Hashable
    index: Any
    size: int
    whole: bool


_bound: ContextVar[tuple[NamedAxis, ...]] = ContextVar("named_axes", default=())


@contextmanager
def named_axis(name: Hashable | None, index: Any, size: int, *, whole: bool) -> Iterator[None]:
    """Bind a name to lanes; None binds nothing."""
    if name is None:
        yield
        return
    token = _bound.set((NamedAxis(name, index, size, whole), *_bound.get()))
    try:
        yield
    finally:
        _bound.reset(token)


def _axis(fun: str, name: Hashable) -> NamedAxis:
    axes = _bound.get()
    for axis in axes:
        if axis.name == name:
            if not axis.whole:
                raise TransformError(
                    f"{fun}: lanes of axis {name!r} were run apart from each other, by chunk_size "
                    "or by a decision of Python on which they disagree"
                )
            return axis
    known = [a.name for a in axes]
    raise TransformError(
        f"{fun}: axis_name must be bound by a vmap around this call, "
        f"got {name!r}; bound are {known}",
        fix=f"vmap(fun, axis_name={name!r})",
    )


def _axes(fun: str, name: AxisName) -> list[NamedAxis]:
    return [_axis(fun, n) for n in (name if isinstance(name, tuple) else (name,))]


def _number(x: Any) -> Any:
    x = asarray(x)
    return xp.astype(x, xp.int64) if x.dtype.kind == "b" else x


def psum(x: Any, axis_name: AxisName) -> Any:
    """Sum of x over the lanes of one or more named axes.

    Args: x: a pytree. axis_name: a name, or a tuple of them.
    Returns: a tree like x, the same in every lane. Its derivative is the sum of the lanes'
    cotangents.
    Raises: TransformError: when no vmap binds the name.
    Example:
        >>> import funct as ft, funct.array as xp
        >>> share = ft.vmap(lambda x: x / ft.psum(x, "i"), axis_name="i")
        >>> share(xp.asarray([1.0, 3.0])).tolist()
        [0.25, 0.75]
    """
    axes = _axes("psum", axis_name)

    def total(leaf: Any) -> Any:
        out = _number(leaf)
        for axis in axes:
            out = ops.psum(out, axis.index, axis.size)
        return out

    return map_leaves(total, x)


def pmean(x: Any, axis_name: AxisName) -> Any:
    """Mean of x over the lanes of one or more named axes.

    Raises: TransformError: as `psum`.
    Example:
        >>> import funct as ft, funct.array as xp
        >>> centre = ft.vmap(lambda x: x - ft.pmean(x, "i"), axis_name="i")
        >>> centre(xp.asarray([1.0, 3.0])).tolist()
        [-1.0, 1.0]
    """
    count = axis_size(axis_name)
    return pytree.map(lambda leaf: leaf / count, psum(x, axis_name))


def _extreme(fun: str, reduce: Callable[..., Any], x: Any, axis_name: AxisName) -> Any:
    axes = _axes(fun, axis_name)

    def best(leaf: Any) -> Any:
        out = asarray(leaf)
        for axis in axes:
            out = reduce(ops.all_gather(out, axis.index, axis.size), axis=0)
        return out

    return map_leaves(best, x)


def pmax(x: Any, axis_name: AxisName) -> Any:
    """Maximum of x over the lanes; where lanes tie, they share the derivative.

    Raises: TransformError: as `psum`.
    Example:
        >>> import funct as ft, funct.array as xp
        >>> ft.vmap(lambda x: x / ft.pmax(x, "i"), axis_name="i")(xp.asarray([1.0, 4.0])).tolist()
        [0.25, 1.0]
    """
    return _extreme("pmax", xp.max, x, axis_name)


def pmin(x: Any, axis_name: AxisName) -> Any:
    """Minimum of x over the lanes; where lanes tie, they share the derivative.

    Raises: TransformError: as `psum`.
    Example:
        >>> import funct as ft, funct.array as xp
        >>> ft.vmap(lambda x: x - ft.pmin(x, "i"), axis_name="i")(xp.asarray([1.0, 4.0])).tolist()
        [0.0, 3.0]
    """
    return _extreme("pmin", xp.min, x, axis_name)


def axis_index(axis_name: Hashable) -> Any:
    """This lane's place on a named axis: an integer that differs between lanes.

    Raises: TransformError: as `psum`.
    Example:
        >>> import funct as ft, funct.array as xp
        >>> ft.vmap(lambda x: 10 * ft.axis_index("i") + x, axis_name="i")(xp.ones(3)).tolist()
        [1.0, 11.0, 21.0]
    """
    return _axis("axis_index", axis_name).index


def axis_size(axis_name: AxisName) -> int:
    """How many lanes one or more named axes have.

    Raises: TransformError: as `psum`.
    Example:
        >>> import funct as ft, funct.array as xp
        >>> ft.vmap(lambda x: x / ft.axis_size("i"), axis_name="i")(xp.asarray([1.0, 3.0])).tolist()
        [0.5, 1.5]
    """
    size = 1
    for axis in _axes("axis_size", axis_name):
        size = size * axis.size
    return size


def all_gather(x: Any, axis_name: Hashable, *, axis: int = 0, tiled: bool = False) -> Any:
    """The values of all lanes, in every lane.

    Args: axis: where the lanes go in the result. tiled: concatenate along axis instead of stacking.
    Raises: TransformError: as `psum`.
    Example:
        >>> import funct as ft, funct.array as xp
        >>> ft.vmap(lambda x: ft.all_gather(x, "i"), axis_name="i")(xp.asarray([1, 2])).tolist()
        [[1, 2], [1, 2]]
    """
    lanes = _axis("all_gather", axis_name)

    def gather(leaf: Any) -> Any:
        leaf = asarray(leaf)
        rank = len(leaf.shape)
        at = normal_axis("all_gather", axis, rank if tiled else rank + 1)
        out = ops.move_axis(ops.all_gather(leaf, lanes.index, lanes.size), 0, at)
        return _merged(out, at) if tiled else out

    return map_leaves(gather, x)


def psum_scatter(
    x: Any, axis_name: Hashable, *, scatter_dimension: int = 0, tiled: bool = False
) -> Any:
    """The sum over the lanes, of which each lane keeps its part.

    Args: scatter_dimension: the axis that is dealt out; its length is the number of lanes or, with
    tiled, a multiple of it.
    Raises: ShapeError: when the length does not fit.
    Example:
        >>> import funct as ft, funct.array as xp
        >>> lanes = xp.asarray([[1, 2], [10, 20]])
        >>> ft.vmap(lambda x: ft.psum_scatter(x, "i"), axis_name="i")(lanes).tolist()
        [11, 22]
    """
    lanes = _axis("psum_scatter", axis_name)

    def scatter(leaf: Any) -> Any:
        leaf = _number(leaf)
        at = normal_axis("psum_scatter", scatter_dimension, len(leaf.shape))
        dealt = ops.move_axis(_dealt("psum_scatter", leaf, at, lanes.size, tiled), at, 0)
        return ops.psum_scatter(dealt, lanes.index, lanes.size)

    return map_leaves(scatter, x)


def all_to_all(
    x: Any, axis_name: Hashable, split_axis: int, concat_axis: int, *, tiled: bool = False
) -> Any:
    """Lane i gets the i-th part of every lane.

    Args: split_axis: the axis that is dealt out. concat_axis: where the lanes they come from go.
    tiled: parts are concatenated along concat_axis; split_axis stays, shorter.
    Raises: ShapeError: when the length of split_axis is not the number of lanes or, with tiled, a
    multiple of it.
    Example:
        >>> import funct as ft, funct.array as xp
        >>> lanes = xp.asarray([[1, 2], [3, 4]])
        >>> ft.vmap(lambda x: ft.all_to_all(x, "i", 0, 0), axis_name="i")(lanes).tolist()
        [[1, 3], [2, 4]]
    """
    lanes = _axis("all_to_all", axis_name)

    def exchange(leaf: Any) -> Any:
        leaf = asarray(leaf)
        split = normal_axis("all_to_all", split_axis, len(leaf.shape))
        dealt = ops.move_axis(_dealt("all_to_all", leaf, split, lanes.size, tiled), split, 0)
        every = ops.all_gather(dealt, lanes.index, lanes.size)  # (from, to, ...)
        mine = ops.take(every, lanes.index, 1)  # (from, ...)
        at = normal_axis("all_to_all", concat_axis, len(mine.shape) - tiled)
        out = ops.move_axis(mine, 0, at)
        return _merged(out, at) if tiled else out

    return map_leaves(exchange, x)


def ppermute(x: Any, axis_name: Hashable, perm: Sequence[tuple[int, int]]) -> Any:
    """Lane `to` gets the value of lane `from`, for each pair (from, to); others get zeros.

    Raises: TransformError: when a lane sends or receives twice, or does not exist.
    Example:
        >>> import funct as ft, funct.array as xp
        >>> shift = lambda x: ft.ppermute(x, "i", [(0, 1), (1, 2)])
        >>> ft.vmap(shift, axis_name="i")(xp.asarray([1, 2, 3])).tolist()
        [0, 1, 2]
    """
    lanes = _axis("ppermute", axis_name)
    senders = [int(a) for a, _ in perm]
    receivers = [int(b) for _, b in perm]
    for said, places in (("sends", senders), ("receives", receivers)):
        if len(set(places)) != len(places) or any(not 0 <= p < lanes.size for p in places):
            raise TransformError(
                f"ppermute: each of {lanes.size} lanes {said} at most once, got {list(perm)}"
            )
    source = [0] * int(lanes.size)
    hears = [False] * int(lanes.size)
    for a, b in zip(senders, receivers, strict=True):
        source[b], hears[b] = a, True

    def permute(leaf: Any) -> Any:
        every = ops.all_gather(asarray(leaf), lanes.index, lanes.size)
        mine = ops.take(every, asarray(source)[lanes.index], 0)
        return xp.where(asarray(hears)[lanes.index], mine, xp.zeros_like(mine))

    return map_leaves(permute, x)


def _dealt(fun: str, x: Any, axis: int, size: int, tiled: bool) -> Any:
    """x with an axis of one part for each lane; tiled parts keep their rest behind it."""
    n = x.shape[axis]
    if not tiled:
        if n != size:
            raise ShapeError(f"{fun}: axis {axis} must have length {size}, got shape {x.shape}")
        return x
    if n % size:
        raise ShapeError(
            f"{fun}: the length of axis {axis} must be a multiple of {size}, got shape {x.shape}"
        )
    return ops.reshape(x, (*x.shape[:axis], size, n // size, *x.shape[axis + 1 :]))


def _merged(x: Any, axis: int) -> Any:
    """Two neighbouring axes as one."""
    a, b = x.shape[axis], x.shape[axis + 1]
    return ops.reshape(x, (*x.shape[:axis], a * b, *x.shape[axis + 2 :]))
