"""Joining arrays, taking them apart, repeating and padding them."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np

from funct import ops
from funct.array.axes import integers, normal_axis
from funct.array.conversion import (
    as_tensor,
    as_tensors,
    asarray,
    check_allocation,
    joined,
    promoted,
)
from funct.array.direct import direct
from funct.array.manipulation import reshape
from funct.array.tensor import Tensor
from funct.core import larger, smaller
from funct.errors import AllocationError, ArgumentError, DTypeError, ShapeError
from funct.kernels import composed
from funct.kernels import manipulation as kernels
from funct.ops.counting import lifted

__all__ = ["concat", "pad", "repeat", "split", "stack", "tile", "unstack"]


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
    n = int(y.shape[0])
    check_allocation("unstack", (n,), np.intp)  # of the tuple
    return tuple([y[i] for i in range(n)])


@direct(composed.split, gives=tuple)
def split(x: Any, /, indices_or_sections: Any, axis: int = 0) -> tuple[Any, ...]:
    """x cut along axis: into so many equal parts, or before each of the indices.

    Raises: ShapeError: for a number of parts that does not divide the axis. AllocationError: for
        more than 2**24 parts.
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
        given = integers("split", "indices", indices_or_sections)
        cuts = [smaller(i, n) if i >= 0 else larger(n + i, 0) for i in given]
    else:
        (parts,) = integers("split", "sections", indices_or_sections)
        if parts < 1 or n % parts:
            raise ShapeError(f"split: {parts} equal parts do not make up axis {k} of length {n}")
        if parts > composed.MOST_PARTS:
            raise AllocationError(f"split: sections must be fewer, got {parts}")
        cuts = [n // parts * i for i in range(1, parts)]
    rest = ((None, None, 1),) * len(x.shape)
    return tuple(
        [
            ops.slice_(x, (*rest[:k], (i, larger(i, j), 1), *rest[k + 1 :]))
            for i, j in zip([0, *cuts], [*cuts, n], strict=True)
        ]
    )


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
        raise ShapeError(f"repeat: repeats must not be negative, got {int(counts.min())}")
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
    check_allocation("repeat", (*x.shape, count), x.dtype)
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
    check_allocation("tile", (*shape, *reps), x.dtype)
    doubled = tuple([v for n in shape for v in (1, n)])
    wide = tuple([v for n, r in zip(shape, reps, strict=True) for v in (r, n)])
    out = ops.broadcast_to(ops.reshape(x, doubled), wide)
    return ops.reshape(out, tuple([n * r for n, r in zip(shape, reps, strict=True)]))


@direct(kernels.pad)
def pad(x: Any, /, pad_width: Any, mode: str = "constant", *, constant_values: Any = 0) -> Any:
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
    wide = [n + low + high for n, (low, high) in zip(x.shape, pairs, strict=True)]
    check_allocation("pad", tuple(wide), x.dtype)
    y = ops.pad_axes(x, pairs)
    if not isinstance(constant_values, Tensor) and constant_values == 0:
        return y
    ones = ops.fast.wrap(np.ones((), bool))
    inside = ops.pad_axes(ops.broadcast_to(lifted(ones, x.shape), x.shape), pairs)
    return ops.where(inside, y, asarray(constant_values, dtype=x.dtype))


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
