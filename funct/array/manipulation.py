"""Chapter: manipulation functions, with the standard's signatures."""

from __future__ import annotations

from typing import Any

import numpy as np

from funct import ops
from funct.array.axes import integers, normal_axes, normal_axis, normal_shape
from funct.array.conversion import as_tensor
from funct.array.creation import arange
from funct.array.direct import direct
from funct.array.dtypes import as_dtype
from funct.array.tensor import Array, Tensor
from funct.core import Size
from funct.errors import ArgumentError, ShapeError
from funct.kernels import manipulation as kernels
from funct.ops.counting import lifted

__all__ = [
    "astype", "broadcast_arrays", "broadcast_shapes", "broadcast_to", "expand_dims", "flip",
    "matrix_transpose", "moveaxis", "permute_dims", "ravel", "reshape", "roll", "rot90", "squeeze",
    "transpose",
]  # fmt: skip


@direct(kernels.astype)
def astype(x: Any, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Any:
    """x in another dtype; the same array where nothing changes and copy is False.

    Raises: DTypeError: from complex to real numbers.
    Example:
        >>> import funct.array as xp
        >>> xp.astype(xp.asarray([1.9, -1.9]), xp.int32).tolist()
        [1, -1]
    """
    x = as_tensor("astype", x)
    dtype = as_dtype("astype", dtype)
    return x if dtype == x.dtype and not copy else ops.astype(x, dtype)


@direct(kernels.reshape)
def reshape(x: Any, /, shape: Any, *, copy: bool | None = None) -> Any:
    """The same elements in C order in another shape; one entry may be -1.

    Raises: ShapeError: when the elements do not fill the shape.
    Example:
        >>> import funct.array as xp
        >>> xp.reshape(xp.arange(6), (2, -1)).tolist()
        [[0, 1, 2], [3, 4, 5]]
    """
    x = as_tensor("reshape", x)
    shape = normal_shape("reshape", shape)
    unknown = [i for i, n in enumerate(shape) if isinstance(n, int) and n == -1]
    if len(unknown) > 1:
        raise ShapeError(f"reshape: at most one entry may be -1, got {shape}")
    if unknown:
        rest: Any = 1
        for i, n in enumerate(shape):
            if i != unknown[0]:
                rest = rest * n
        total: Any = 1
        for n in x.shape:
            total = total * n
        known = not isinstance(rest, Size) and not isinstance(total, Size)
        if known and (rest == 0 or total % rest):
            raise ShapeError(
                f"reshape: {total} elements of shape {x.shape} do not fill shape {shape}"
            )
        shape = (*shape[: unknown[0]], total // rest, *shape[unknown[0] + 1 :])
    return ops.reshape(x, shape)


def broadcast_shapes(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The shape that the shapes broadcast to.

    Raises: ShapeError: when they do not.
    Example:
        >>> import funct.array as xp
        >>> xp.broadcast_shapes((2, 1), (3,), ())
        (2, 3)
    """
    return _common_shape(
        "broadcast_shapes", tuple([normal_shape("broadcast_shapes", s) for s in shapes])
    )


def _common_shape(name: str, shapes: tuple[tuple[int, ...], ...]) -> tuple[int, ...]:
    try:
        return ops.broadcasting.broadcast_shapes(*shapes)
    except ValueError as error:
        raise ShapeError(f"{name}: shapes {shapes} cannot be broadcast: {error}") from None


def broadcast_to(x: Any, /, shape: Any) -> Any:
    """x repeated along axes of length 1 and new leading axes.

    Raises: ShapeError: when x does not broadcast to the shape.
    Example:
        >>> import funct.array as xp
        >>> xp.broadcast_to(xp.asarray([1, 2]), (2, 2)).tolist()
        [[1, 2], [1, 2]]
    """
    x = as_tensor("broadcast_to", x)
    shape = normal_shape("broadcast_to", shape)
    return ops.broadcast_to(lifted(x, shape), shape)


def broadcast_arrays(*arrays: Any) -> tuple[Any, ...]:
    """All arrays broadcast to their common shape.

    Example:
        >>> import funct.array as xp
        >>> [a.tolist() for a in xp.broadcast_arrays(xp.asarray([[1], [2]]), xp.asarray([3, 4]))]
        [[[1, 1], [2, 2]], [[3, 4], [3, 4]]]
    """
    arrays = tuple([as_tensor("broadcast_arrays", a) for a in arrays])
    common = _common_shape("broadcast_arrays", tuple([a.shape for a in arrays]))
    return tuple([a if a.shape == common else ops.broadcast_to(a, common) for a in arrays])


def rot90(x: Any, /, k: int = 1, axes: tuple[int, int] = (0, 1)) -> Any:
    """x turned by k quarters, from the first axis towards the second.

    Raises: ArgumentError: when axes are not two.
    Example:
        >>> import funct.array as xp
        >>> xp.rot90(xp.asarray([[1, 2], [3, 4]])).tolist()
        [[2, 4], [1, 3]]

    Source: NumPy `rot90`.
    """
    x = as_tensor("rot90", x)
    (k,) = integers("rot90", "k", k)
    at = _ordered_axes("rot90", axes, len(x.shape))
    if len(at) != 2:
        raise ArgumentError(f"rot90: axes must be two, got {axes!r}")
    first, second = at
    if k % 4 == 2:
        return ops.flip(x, tuple(sorted(at)))
    if k % 4 == 0:
        return x
    order = list(range(len(x.shape)))
    order[first], order[second] = second, first
    turned = ops.permute_dims(x, tuple(order))
    return ops.flip(turned, (first if k % 4 == 1 else second,))


@direct(kernels.expand_dims)
def expand_dims(x: Any, /, axis: Any) -> Any:
    """x with new axes of length 1 at the positions axis of the result.

    Example:
        >>> import funct.array as xp
        >>> xp.expand_dims(xp.ones(3), 0).shape, xp.expand_dims(xp.ones(3), (0, -1)).shape
        ((1, 3), (1, 3, 1))
    """
    x = as_tensor("expand_dims", x)
    if axis.__class__ is int:
        k = normal_axis("expand_dims", axis, len(x.shape) + 1)
        return ops.reshape(x, (*x.shape[:k], 1, *x.shape[k:]))
    axes = axis if isinstance(axis, tuple) else (axis,)
    rank = len(x.shape) + len(axes)
    at = set(normal_axes("expand_dims", axes, rank))
    rest = iter(x.shape)
    return ops.reshape(x, tuple([1 if i in at else next(rest) for i in range(rank)]))


@direct(kernels.squeeze)
def squeeze(x: Any, /, axis: Any) -> Any:
    """x without the axes given, each of length 1.

    Raises: ShapeError: when an axis is longer.
    Example:
        >>> import funct.array as xp
        >>> xp.squeeze(xp.ones((1, 3, 1)), -1).shape
        (1, 3)
    """
    x = as_tensor("squeeze", x)
    axes = normal_axes("squeeze", axis, len(x.shape))
    wrong = [a for a in axes if x.shape[a] != 1]
    if wrong:
        raise ShapeError(f"squeeze: axis {wrong[0]} has length {x.shape[wrong[0]]}, expected 1")
    return ops.reshape(x, tuple([n for i, n in enumerate(x.shape) if i not in axes]))


@direct(kernels.permute_dims)
def permute_dims(x: Any, /, axes: Any) -> Any:
    """Axes in another order.

    Raises: ShapeError: when axes are no permutation.
    Example:
        >>> import funct.array as xp
        >>> xp.permute_dims(xp.ones((2, 3, 4)), (2, 0, 1)).shape
        (4, 2, 3)
    """
    x = as_tensor("permute_dims", x)
    rank = len(x.shape)
    given = integers("permute_dims", "axes", axes)
    order = tuple([normal_axis("permute_dims", a, rank) for a in given])
    if sorted(order) != list(range(rank)):
        raise ShapeError(f"permute_dims: axes must be a permutation of {rank} axes, got {axes}")
    return ops.permute_dims(x, order)


@direct(kernels.transpose)
def transpose(x: Any, /, axes: Any = None) -> Any:
    """`permute_dims` under NumPy's name; without axes their order is reversed.

    Example:
        >>> import funct.array as xp
        >>> xp.transpose(xp.ones((2, 3, 4))).shape
        (4, 3, 2)

    Source: NumPy `transpose`.
    """
    x = as_tensor("transpose", x)
    if axes is None:
        return ops.permute_dims(x, tuple(range(len(x.shape))[::-1]))
    return permute_dims(x, axes)


def matrix_transpose(x: Any, /) -> Any:
    """The last two axes exchanged.

    Example:
        >>> import funct.array as xp
        >>> xp.matrix_transpose(xp.ones((5, 2, 3))).shape
        (5, 3, 2)
    """
    x = as_tensor("matrix_transpose", x)
    try:
        return x.mT
    except ShapeError:
        raise ShapeError(
            f"matrix_transpose: x must have at least 2 axes, got shape {x.shape}"
        ) from None


def _tuple(x: Any) -> tuple[Any, ...]:
    return tuple(x) if isinstance(x, tuple | list) else (x,)


def _ordered_axes(name: str, axes: Any, rank: int) -> list[int]:
    """Non-negative axes in the order given, each at most once."""
    normal_axes(name, _tuple(axes), rank)
    return [normal_axis(name, a, rank) for a in _tuple(axes)]


def moveaxis(x: Any, source: Any, destination: Any, /) -> Any:
    """Axes moved to other positions, the rest in order.

    Raises: ShapeError: when there are not as many sources as destinations, or an axis that x has
    not.
    Example:
        >>> import funct.array as xp
        >>> xp.moveaxis(xp.ones((2, 3, 4)), 0, -1).shape
        (3, 4, 2)
    """
    x = as_tensor("moveaxis", x)
    rank = len(x.shape)
    if source.__class__ is int and destination.__class__ is int:
        ends = [normal_axis("moveaxis", a, rank) for a in (source, destination)]
        return ops.move_axis(x, *ends)
    src = _ordered_axes("moveaxis", source, rank)
    dst = _ordered_axes("moveaxis", destination, rank)
    if len(src) != len(dst):
        raise ShapeError(
            f"moveaxis: source and destination must be as many, got {source} and {destination}"
        )
    order = [i for i in range(rank) if i not in src]
    for d, s in sorted(zip(dst, src, strict=True)):
        order.insert(d, s)
    return ops.permute_dims(x, tuple(order))


@direct(kernels.flip)
def flip(x: Any, /, axis: Any = None) -> Any:
    """Elements in reverse order along axis, all axes for None.

    Example:
        >>> import funct.array as xp
        >>> xp.flip(xp.asarray([[1, 2], [3, 4]]), axis=1).tolist()
        [[2, 1], [4, 3]]
    """
    x = as_tensor("flip", x)
    return ops.flip(x, normal_axes("flip", axis, len(x.shape)))


@direct(kernels.roll)
def roll(x: Any, /, shift: Any, axis: Any = None) -> Any:
    """Elements moved by shift along axis, wrapping around; None rolls the flat array.

    shift: an int or one for each axis, or integers that only the running program knows: elements
    are then looked up, and no number of them compiles anew.
    Raises: ShapeError: when there are not as many shifts as axes.
    Example:
        >>> import funct.array as xp
        >>> xp.roll(xp.asarray([1, 2, 3, 4]), 1).tolist()
        [4, 1, 2, 3]
    """
    x = as_tensor("roll", x)
    if axis is None:
        return ops.reshape(roll(reshape(x, (-1,)), shift, axis=0), x.shape)
    axes, given = _tuple(axis), shift if isinstance(shift, tuple | list) else (shift,)
    traced = any(map(_is_traced, given))
    shifts = tuple(map(_shift, given)) if traced else integers("roll", "shift", shift)
    if not isinstance(shift, tuple | list):
        shifts *= len(axes)
    if len(shifts) != len(axes):
        raise ShapeError(f"roll: shift and axis must be as many, got {shift} and {axis}")
    for s, a in zip(shifts, axes, strict=True):
        k = normal_axis("roll", a, len(x.shape))
        n = x.shape[k]
        if n and traced:
            x = ops.take(x, ops.remainder(arange(n) - _steps(s, n), n), k)
        elif n:
            at = (-s) % n
            head = (slice(None),) * k
            x = ops.concat(x[(*head, slice(at, None))], x[(*head, slice(None, at))], k)
    return x


def _is_traced(s: Any) -> bool:
    """Whether it is an integer that only the running program knows."""
    traced = isinstance(s, Tensor) and s.__class__ is not Array
    return traced and not s.shape and s.dtype.kind in "iu"


def _shift(s: Any) -> Any:
    return s if _is_traced(s) else integers("roll", "shift", s)[0]


def _steps(s: Any, n: Any) -> Any:
    """s modulo n in int64, which holds n as a narrow dtype may not, and no s of uint64."""
    if _is_traced(s) and s.dtype != np.uint64:
        s = ops.astype(s, np.dtype(np.int64))
    s = ops.remainder(s, n)
    return ops.astype(s, np.dtype(np.int64)) if _is_traced(s) else s


@direct(kernels.ravel)
def ravel(x: Any, /) -> Any:
    """The elements of x in C order, 1-D.

    Example:
        >>> import funct.array as xp
        >>> xp.ravel(xp.asarray([[1, 2], [3, 4]])).tolist()
        [1, 2, 3, 4]

    Source: NumPy `ravel`.
    """
    x = as_tensor("ravel", x)
    return reshape(x, (-1,))
