"""Chapter: manipulation functions, with the standard's signatures."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np

from funct import ops
from funct.array.axes import integers, normal_axes, normal_axis, normal_shape
from funct.array.conversion import (
    as_tensor,
    as_tensors,
    asarray,
    check_allocation,
    joined,
    promoted,
)
from funct.array.direct import direct
from funct.array.dtypes import as_dtype
from funct.array.tensor import Tensor
from funct.core import Size
from funct.errors import ArgumentError, DTypeError, ShapeError
from funct.kernels import composed
from funct.kernels import manipulation as kernels
from funct.ops.counting import lifted

__all__ = [
    "astype", "broadcast_arrays", "broadcast_shapes", "broadcast_to", "concat", "expand_dims",
    "flip", "matrix_transpose", "moveaxis", "pad", "permute_dims", "ravel", "repeat",
    "reshape", "roll", "rot90", "split", "squeeze", "stack", "tile", "transpose", "unstack",
]  # fmt: skip


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


@direct(kernels.concat, arrays="sequence")
def concat(arrays: Any, /, axis: int | None = 0) -> Any:
    """Arrays joined along an existing axis; None flattens them first.

    Raises: ShapeError: for no arrays, and for lengths that differ along another axis.
    Example:
        >>> import funct.array as xp
        >>> xp.concat([xp.asarray([1, 2]), xp.asarray([0.5])]).tolist()
        [1.0, 2.0, 0.5]
    """
    parts = as_tensors("concat", arrays)
    if not parts:
        raise ShapeError("concat: at least one array is needed, got none")
    if axis is None:
        parts, axis = [reshape(p, (-1,)) for p in parts], 0
    k = normal_axis("concat", axis, len(parts[0].shape))
    return joined(promoted(parts), k)


@direct(kernels.stack, arrays="sequence")
def stack(arrays: Any, /, axis: int = 0) -> Any:
    """Arrays of one shape joined along a new axis.

    Raises: ShapeError: for no arrays, and for shapes that differ.
    Example:
        >>> import funct.array as xp
        >>> xp.stack([xp.asarray([1, 2]), xp.asarray([3, 4])], axis=1).tolist()
        [[1, 3], [2, 4]]
    """
    parts = as_tensors("stack", arrays)
    if not parts:
        raise ShapeError("stack: at least one array is needed, got none")
    shape = parts[0].shape
    for p in parts:
        if p.shape != shape:
            raise ShapeError(f"stack: shapes must agree, got {shape} and {p.shape}")
    k = normal_axis("stack", axis, len(shape) + 1)
    return joined([ops.reshape(p, (*shape[:k], 1, *shape[k:])) for p in promoted(parts)], k)


def unstack(x: Any, /, *, axis: int = 0) -> tuple[Any, ...]:
    """The slices of x along axis.

    Example:
        >>> import funct.array as xp
        >>> first, second = xp.unstack(xp.asarray([[1, 2], [3, 4]]), axis=1)
        >>> first.tolist(), second.tolist()
        ([1, 3], [2, 4])
    """
    x = as_tensor("unstack", x)
    y = ops.move_axis(x, normal_axis("unstack", axis, len(x.shape)), 0)
    return tuple([y[i] for i in range(y.shape[0])])


@direct(composed.split, gives=tuple)
def split(x: Any, /, indices_or_sections: Any, axis: int = 0) -> tuple[Any, ...]:
    """x cut along axis: into so many equal parts, or before each of the indices.

    Raises: ShapeError: for a number of parts that does not divide the axis.
    Example:
        >>> import funct.array as xp
        >>> [part.tolist() for part in xp.split(xp.arange(5), [1, 3])]
        [[0], [1, 2], [3, 4]]

    Source: NumPy `split`.
    """
    x = as_tensor("split", x)
    k = normal_axis("split", axis, len(x.shape))
    n = x.shape[k]
    if getattr(indices_or_sections, "shape", ()):
        indices_or_sections = indices_or_sections.tolist()
    if isinstance(indices_or_sections, tuple | list):
        cuts = [
            slice(i, None).indices(n)[0] for i in integers("split", "indices", indices_or_sections)
        ]
    else:
        (parts,) = integers("split", "sections", indices_or_sections)
        if parts < 1 or n % parts:
            raise ShapeError(f"split: {parts} equal parts do not make up axis {k} of length {n}")
        cuts = [n // parts * i for i in range(1, parts)]
    rest = ((None, None, 1),) * len(x.shape)
    return tuple(
        [
            ops.slice_(x, (*rest[:k], (i, max(i, j), 1), *rest[k + 1 :]))
            for i, j in zip([0, *cuts], [*cuts, n], strict=True)
        ]
    )


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

    Raises: ShapeError: when there are not as many shifts as axes.
    Example:
        >>> import funct.array as xp
        >>> xp.roll(xp.asarray([1, 2, 3, 4]), 1).tolist()
        [4, 1, 2, 3]
    """
    x = as_tensor("roll", x)
    if axis is None:
        return ops.reshape(roll(reshape(x, (-1,)), shift, axis=0), x.shape)
    axes, shifts = _tuple(axis), integers("roll", "shift", shift)
    if not isinstance(shift, tuple | list):
        shifts *= len(axes)
    if len(shifts) != len(axes):
        raise ShapeError(f"roll: shift and axis must be as many, got {shift} and {axis}")
    for s, a in zip(shifts, axes, strict=True):
        k = normal_axis("roll", a, len(x.shape))
        n = x.shape[k]
        if n:
            at = (-s) % n
            head = (slice(None),) * k
            x = ops.concat(x[(*head, slice(at, None))], x[(*head, slice(None, at))], k)
    return x


@direct(kernels.repeat, maybe=("repeats",))
def repeat(x: Any, repeats: Any, /, axis: int | None = None) -> Any:
    """Each element repeats times along axis; None flattens.

    Raises: ShapeError: for negative repeats, or ones that do not broadcast. DTypeError: for ones
    that are no integers.
    Example:
        >>> import funct.array as xp
        >>> x = xp.asarray([1, 2])
        >>> xp.repeat(x, 2).tolist(), xp.repeat(x, [3, 1]).tolist()
        ([1, 1, 2, 2], [1, 1, 1, 2])
    """
    x = as_tensor("repeat", x)
    if axis is None:
        x, axis = reshape(x, (-1,)), 0
    k = normal_axis("repeat", axis, len(x.shape))
    if repeats.__class__ is int and repeats >= 0:
        return _repeated(x, repeats, k)
    given = repeats if isinstance(repeats, Tensor) else asarray(repeats)
    counts = np.asarray(given.concrete())
    if counts.dtype.kind not in "iu":
        raise DTypeError(f"repeat: repeats must be integers, got {counts.dtype}")
    if counts.size and counts.min() < 0:
        raise ShapeError(f"repeat: repeats must not be negative, got {repeats}")
    if counts.size == 1 and counts.ndim < 2:
        return _repeated(x, int(counts.reshape(())), k)
    n = int(x.shape[k])
    if counts.shape != (n,):
        raise ShapeError(
            f"repeat: repeats of shape {counts.shape} must broadcast to axis {k} of length {n}"
        )
    total = int(counts.sum(dtype=object)) * (n if counts.size == 1 != n else 1)
    check_allocation("repeat", (*x.shape[:k], total, *x.shape[k + 1 :]), np.int64)
    return ops.take(x, ops.fast.wrap(np.repeat(np.arange(n), counts)), k)


def _repeated(x: Any, count: int, k: int) -> Any:
    """Each element as often: an axis of length count behind axis k, folded into it."""
    head, n, tail = x.shape[:k], x.shape[k], x.shape[k + 1 :]
    wide = ops.broadcast_to(ops.reshape(x, (*head, n, 1, *tail)), (*head, n, count, *tail))
    return ops.reshape(wide, (*head, n * count, *tail))


@direct(kernels.tile)
def tile(x: Any, repetitions: tuple[int, ...], /) -> Any:
    """x repeated as a whole along each axis.

    Raises: ShapeError: when a repetition is negative.
    Example:
        >>> import funct.array as xp
        >>> xp.tile(xp.asarray([1, 2]), (2, 2)).tolist()
        [[1, 2, 1, 2], [1, 2, 1, 2]]
    """
    x = as_tensor("tile", x)
    repetitions = integers("tile", "repetitions", repetitions)
    if any(r < 0 for r in repetitions):
        raise ShapeError(f"tile: repetitions must not be negative, got {repetitions}")
    rank = max(len(x.shape), len(repetitions))
    shape = (1,) * (rank - len(x.shape)) + tuple(x.shape)
    reps = (1,) * (rank - len(repetitions)) + tuple(repetitions)
    doubled = tuple([v for n in shape for v in (1, n)])
    wide = tuple([v for n, r in zip(shape, reps, strict=True) for v in (r, n)])
    out = ops.broadcast_to(ops.reshape(x, doubled), wide)
    return ops.reshape(out, tuple([n * r for n, r in zip(shape, reps, strict=True)]))


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


@direct(kernels.pad)
def pad(x: Any, pad_width: Any, /, mode: str = "constant", *, constant_values: Any = 0) -> Any:
    """x with elements around it.

    Args: pad_width: how many before and behind: one (low, high) pair per axis, one pair for all, or
    one number. mode: "constant" (the default), "edge" (the outermost element), "reflect" (mirrored
    at it), "symmetric" (mirrored behind it) or "wrap" (from the other end).
    Raises: ArgumentError: for another mode. ShapeError: when pad_width does not fit x.
    Example:
        >>> import funct.array as xp
        >>> xp.pad(xp.asarray([1, 2, 3]), (1, 2), mode="reflect").tolist()
        [2, 1, 2, 3, 2, 1]

    Source: NumPy `pad`. Differentiable in x and in the constant.
    """
    x = as_tensor("pad", x)
    pairs = _pairs(x, pad_width)
    if mode in ("edge", "reflect", "symmetric", "wrap"):
        for axis, pair in enumerate(pairs):
            if pair != (0, 0):
                x = _extended(x, axis, pair, mode)
        return x
    if mode != "constant":
        raise ArgumentError(
            f"pad: mode must be 'constant', 'edge', 'reflect', 'symmetric' or 'wrap', got {mode!r}"
        )
    y = ops.pad_axes(x, pairs)
    if not isinstance(constant_values, Tensor) and constant_values == 0:
        return y
    ones = ops.fast.wrap(np.ones((), bool))
    inside = ops.pad_axes(ops.broadcast_to(lifted(ones, x.shape), x.shape), pairs)
    return ops.where(inside, y, ops.astype(asarray(constant_values), x.dtype))


def _pairs(x: Any, pad_width: Any) -> Any:
    rank = len(x.shape)
    if not rank:
        return ()
    if pad_width.__class__ is int and pad_width >= 0:
        return ((pad_width, pad_width),) * rank
    if pad_width.__class__ is tuple and len(pad_width) == 2:
        low, high = pad_width
        if low.__class__ is int and high.__class__ is int and low >= 0 and high >= 0:
            return (pad_width,) * rank
    wide: Any = None
    with contextlib.suppress(ValueError):
        wide = np.broadcast_to(np.asarray(pad_width), (rank, 2))
    if wide is None or wide.dtype.kind not in "iu":
        raise ShapeError(
            f"pad: pad_width needs one (low, high) pair per axis of {x.shape}, got {pad_width}"
        )
    if (wide < 0).any():
        raise ShapeError(f"pad: pad_width must not be negative, got {pad_width}")
    return tuple([(int(low), int(high)) for low, high in wide])


def _extended(x: Any, axis: int, pair: tuple[int, int], mode: Any) -> Any:
    """x with elements of its own before and behind: NumPy pads the indices."""
    n = int(x.shape[axis])
    if n == 0:
        raise ShapeError(f"pad: mode {mode!r} needs elements, but axis {axis} of x is empty")
    return ops.take(x, ops.fast.wrap(np.pad(np.arange(n), pair, mode)), axis)
