"""Pooling to a given size: window i of n elements reaches from ⌊i n / T⌋ to ⌈(i + 1) n / T⌉."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

import funct.array as xp
from funct import ops
from funct.array import Array
from funct.array.conversion import check_allocation
from funct.array.direct import direct
from funct.array.in_single import SHORT, narrowed, widened
from funct.core.dtypes import INEXACT
from funct.errors import ArgumentError
from funct.kernels.cpu.loops import ready
from funct.kernels.windows import boxes as kernels
from funct.kernels.windows.adaptive import LARGE, WIDE, avg_pool_of, even, max_pool_of
from funct.kernels.windows.views import last_in_memory
from funct.nn.functional.arguments import batched, unbatched
from funct.nn.functional.compiled import below_tapes, concrete, whole
from funct.nn.functional.own_rules import ruled
from funct.nn.functional.resampling import (
    FLOATS,
    area_taps,
    area_windows,
    by_primitives,
    resampled,
    sent_back,
)
from funct.ops.fast import wrap
from funct.transforms.reverse import ReverseTracer

__all__ = [
    "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "adaptive_max_pool1d",
    "adaptive_max_pool2d", "adaptive_max_pool3d", "adaptive_mean",
]  # fmt: skip

_FEW = 16  # windows that are read one by one
_LONG = 1 << 16  # elements of an axis, for which no table is made
_LEAST = 1 << 11  # elements from which on a node with rules of its own costs less than it saves

OutputSize = int | Sequence[int | None] | None


@direct(avg_pool_of(1))
@whole
def adaptive_avg_pool1d(input: Any, output_size: OutputSize) -> Any:
    """Take means of windows that divide a signal into output_size parts.

    Args: input: shape (N, C, L) or (C, L). output_size: T.
    Returns: shape (N, C, T) or (C, T).
    Raises: ShapeError: when the rank does not fit. ArgumentError: when output_size is not positive.
    Example:
        >>> import funct.array as xp
        >>> from funct.nn import functional as F
        >>> F.adaptive_avg_pool1d(xp.asarray([[1.0, 2.0, 6.0]]), 2).tolist()
        [[1.5, 4.0]]

    Source: torch.nn.functional.adaptive_avg_pool1d.
    """
    return _avg("adaptive_avg_pool1d", 1, input, output_size)


@direct(avg_pool_of(2))
@whole
def adaptive_avg_pool2d(input: Any, output_size: OutputSize) -> Any:
    """Take means of windows that divide an image into output_size parts.

    Args: input: shape (N, C, H, W) or (C, H, W). output_size: an int for both axes, or two;
    None keeps an axis as it is.
    Returns: shape (N, C, *T) or (C, *T). Raises: as `adaptive_avg_pool1d`.
    Example:
        >>> import funct.array as xp
        >>> from funct.nn import functional as F
        >>> F.adaptive_avg_pool2d(xp.ones((1, 3, 5, 7)), (2, None)).shape
        (1, 3, 2, 7)

    Source: torch.nn.functional.adaptive_avg_pool2d.
    """
    return _avg("adaptive_avg_pool2d", 2, input, output_size)


@direct(avg_pool_of(3))
@whole
def adaptive_avg_pool3d(input: Any, output_size: OutputSize) -> Any:
    """Take means of windows that divide a volume into output_size parts.

    Args: input: shape (N, C, D, H, W) or (C, D, H, W). output_size: an int for all axes, or three;
    None keeps an axis as it is.
    Returns: shape (N, C, *T) or (C, *T). Raises: as `adaptive_avg_pool1d`.
    Example:
        >>> import funct.array as xp
        >>> from funct.nn import functional as F
        >>> F.adaptive_avg_pool3d(xp.ones((1, 3, 4, 5, 6)), 1).shape  # one mean per channel
        (1, 3, 1, 1, 1)

    Source: torch.nn.functional.adaptive_avg_pool3d.
    """
    return _avg("adaptive_avg_pool3d", 3, input, output_size)


@direct(max_pool_of(1))
@whole
def adaptive_max_pool1d(input: Any, output_size: OutputSize, return_indices: bool = False) -> Any:
    """Take maxima of windows that divide a signal into output_size parts.

    Args: input, output_size: as in `adaptive_avg_pool1d`. return_indices: give the place of each
    maximum in the flat input too.
    Returns: shape (N, C, T) or (C, T); with return_indices a pair of that.
    Raises: as `adaptive_avg_pool1d`.
    Notes: the derivative goes to the first maximum, of several NaN to the last.
    Example:
        >>> import funct.array as xp
        >>> from funct.nn import functional as F
        >>> F.adaptive_max_pool1d(xp.asarray([[1.0, 5.0, 3.0, 4.0]]), 2).tolist()
        [[5.0, 4.0]]

    Source: torch.nn.functional.adaptive_max_pool1d.
    """
    return _max("adaptive_max_pool1d", 1, input, output_size, return_indices)


@direct(max_pool_of(2))
@whole
def adaptive_max_pool2d(input: Any, output_size: OutputSize, return_indices: bool = False) -> Any:
    """Take maxima of windows that divide an image into output_size parts.

    Args: input, output_size: as in `adaptive_avg_pool2d`. The rest: as `adaptive_max_pool1d`.
    Example:
        >>> import funct.array as xp
        >>> from funct.nn import functional as F
        >>> x = xp.reshape(xp.arange(9.0), (1, 1, 3, 3))
        >>> F.adaptive_max_pool2d(x, (1, 2)).tolist()
        [[[[7.0, 8.0]]]]

    Source: torch.nn.functional.adaptive_max_pool2d.
    """
    return _max("adaptive_max_pool2d", 2, input, output_size, return_indices)


@direct(max_pool_of(3))
@whole
def adaptive_max_pool3d(input: Any, output_size: OutputSize, return_indices: bool = False) -> Any:
    """Take maxima of windows that divide a volume into output_size parts.

    Args: input, output_size: as in `adaptive_avg_pool3d`. The rest: as `adaptive_max_pool1d`.
    Example:
        >>> import funct.array as xp
        >>> from funct.nn import functional as F
        >>> F.adaptive_max_pool3d(xp.ones((1, 3, 4, 5, 6)), (1, 2, None)).shape
        (1, 3, 1, 2, 6)

    Source: torch.nn.functional.adaptive_max_pool3d.
    """
    return _max("adaptive_max_pool3d", 3, input, output_size, return_indices)


def adaptive_mean(x: Any, sizes: Sequence[int]) -> Any:
    """Means of boxes over the last axes; a box's mean is the mean of means, axis by axis."""
    if x.dtype in SHORT:  # rounded once
        (wide,) = widened(x)
        return narrowed(adaptive_mean(wide, sizes), x)
    lead = len(x.shape) - len(sizes)
    if set(sizes) == {1}:
        return xp.mean(x, axis=tuple(range(lead, len(x.shape))), keepdims=True)
    how = even(x.shape[lead:], sizes)
    if how is None or (math.prod(how[0]) >= WIDE and math.prod(x.shape) >= LARGE):
        if x.__class__ is Array and _in_boxes(x, sizes):
            return wrap(kernels.means(x.data, _ends(x.shape[lead:], sizes)))
        if x.__class__ is ReverseTracer and concrete(x) and _in_boxes(x, sizes):
            return _means_of_boxes(x, tuple(sizes), x.shape[lead:])
    if how is not None and max(sizes) > 1 and x.dtype in INEXACT:
        window, stride, padding, _ = how
        return ops.avg_pool(x, window, stride, padding, (0,) * len(sizes), False)
    for k, out in enumerate(sizes):
        n = x.shape[lead + k]
        if out == 1:
            x = xp.mean(x, axis=lead + k, keepdims=True)
        elif n.__class__ is not int and out <= _FEW:
            x = _joined_means(x, out, lead + k)
        elif out != n:
            x = _window_means(x, int(n), out, lead + k)
    return x


def _in_boxes(x: Any, sizes: Sequence[int]) -> bool:
    """Whether means of all boxes are one kernel, and so is their way back: some windows are longer
    than there are of them, or channels are last in memory.
    """
    shape = x.shape[len(x.shape) - len(sizes) :]
    if len(sizes) > 3 or x.dtype not in FLOATS or max(shape) > _LONG or x.size < _LEAST:
        return False
    if not ready(x.size):
        return False
    if any(_longest(n, out) > out for n, out in zip(shape, sizes, strict=True)):
        return True
    return last_in_memory(below_tapes(x).data, len(sizes)) is not None


def _ends(shape: Sequence[int], sizes: Sequence[int]) -> list[Any]:
    return [area_windows(n, out) for n, out in zip(shape, sizes, strict=True)]


def _means(x: Any, sizes: tuple[int, ...], shape: tuple[int, ...]) -> Any:
    return adaptive_mean(x, sizes)


def _shares(g: Any, sizes: tuple[int, ...], shape: tuple[int, ...]) -> Any:
    """For each element of images of that shape the shares in the means it is part of."""
    if g.__class__ is Array and ready(g.size):
        return wrap(kernels.means_back(g.data, _ends(shape, sizes), shape))
    if g.__class__ is ReverseTracer and concrete(g):
        return _shares_of_boxes(g, sizes, shape)
    lead = len(g.shape) - len(sizes)
    for k, (n, out) in enumerate(zip(shape, sizes, strict=True)):
        g = sent_back(g, (area_taps(n, out), lead + k, n))
    return g


# `adaptive_mean` of images of that shape, whose way back is one kernel; of which it is means again
_means_of_boxes = ruled(
    _means, lambda *given: (_means(*given), ()),
    lambda sizes, shape, _, g: (_shares(g, sizes, shape),), fixed=2,
)  # fmt: skip
_shares_of_boxes = ruled(
    _shares, lambda *given: (_shares(*given), ()),
    lambda sizes, shape, _, h: (adaptive_mean(h, sizes),), fixed=2,
)  # fmt: skip


def _joined_means(x: Any, out: int, axis: int) -> Any:
    """The same for any length of the axis: which ways there are for one is not asked."""
    n = x.shape[axis]
    head = (slice(None),) * axis
    parts = [x[(*head, slice(i * n // out, -((i + 1) * -n // out)))] for i in range(out)]
    return xp.concat([xp.mean(p, axis=axis, keepdims=True) for p in parts], axis=axis)


def _window_means(x: Any, n: int, out: int, axis: int) -> Any:
    """Means of `out` windows of an axis of length n, in as few ops as they allow."""
    if n % out == 0:
        split = xp.reshape(x, (*x.shape[:axis], out, n // out, *x.shape[axis + 1 :]))
        return xp.mean(split, axis=axis + 1)
    if _longest(n, out) <= out:
        taps = area_taps(n, out), axis
        few = x.__class__ is ReverseTracer and x.size < _LEAST  # what `whole` makes of these
        return by_primitives(x, [taps]) if few else resampled(x, taps)
    return _joined_means(x, out, axis)


@functools.lru_cache(256)
def _longest(n: int, out: int) -> int:
    """The elements of the longest of such windows."""
    starts, stops = area_windows(n, out).T
    return int((stops - starts).max())


def _sizes(name: str, x: Any, rank: int, output_size: OutputSize) -> tuple[int, ...]:
    given: tuple[Any, ...] = (
        tuple(output_size) if isinstance(output_size, tuple | list) else (output_size,) * rank
    )
    if len(given) == 1:
        given = given * rank
    if len(given) != rank or any(
        n is not None and (not isinstance(n, int) or n < 1) for n in given
    ):
        count = "a positive int" if rank == 1 else f"a positive int, None, or {rank} of these"
        raise ArgumentError(f"{name}: output_size must be {count}, got {output_size!r}")
    check_allocation(name, tuple([n for n in given if n is not None]), np.float64)
    return tuple([m if n is None else n for n, m in zip(given, x.shape[2:], strict=True)])


def _avg(name: str, rank: int, x: Any, output_size: OutputSize) -> Any:
    x, added = batched(name, x, rank)
    return unbatched(adaptive_mean(x, _sizes(name, x, rank, output_size)), added)


def _max(name: str, rank: int, x: Any, output_size: OutputSize, return_indices: bool) -> Any:
    x, added = batched(name, x, rank)
    sizes = _sizes(name, x, rank, output_size)
    shape = tuple([int(n) for n in x.shape[2:]])
    how = even(shape, sizes)
    if how is not None:
        y = unbatched(ops.max_pool(x, *how), added)
        return (y, unbatched(ops.max_pool_index(x, *how), added)) if return_indices else y
    if not return_indices and concrete(x) and x.dtype in SHORT:  # for which there are no kernels
        (wide,) = widened(x)
        return unbatched(narrowed(_max(name, rank, wide, output_size, False), x), added)
    if not return_indices and concrete(x) and _seen(x, rank) is not None:
        maxima = _maxima if x.__class__ is Array else _maxima_of_boxes
        return unbatched(maxima(x, sizes, shape), added)
    at = _first_maxima(ops.stop_gradient(x), shape, sizes)
    y, at = (unbatched(v, added) for v in (_read(x, at), at))
    return (y, at) if return_indices else y


def _seen(x: Any, d: int) -> Any:
    """The buffer of images whose channels are last in memory, seen so; None of others."""
    return kernels.of_channels(below_tapes(x).data, d)


def _maxima(x: Any, sizes: tuple[int, ...], shape: tuple[int, ...]) -> Any:
    """Maxima of boxes of images of that shape, whose channels are last in memory."""
    if x.__class__ is Array:
        return wrap(kernels.maxima(_seen(x, len(sizes)), _ends(shape, sizes)))
    at = _first_maxima(ops.stop_gradient(x), shape, sizes)
    return _read(x, at)


def _maxima_pull(sizes: tuple[int, ...], shape: tuple[int, ...], kept: Any, g: Any) -> tuple[Any]:
    (x,) = kept
    if g.__class__ is x.__class__ is Array:
        return (wrap(kernels.maxima_back(g.data, _seen(x, len(sizes)), _ends(shape, sizes))),)
    at = _first_maxima(ops.stop_gradient(x), shape, sizes)
    lead, n = x.shape[:2], math.prod(shape)
    flat = ops.put_along_axis(xp.reshape(g, (*lead, -1)), xp.reshape(at, (*lead, -1)), 2, n)
    return (xp.reshape(flat, x.shape),)


_maxima_of_boxes = ruled(
    _maxima, lambda x, *given: (_maxima(x, *given), (x,)), _maxima_pull, fixed=2
)


def _read(x: Any, at: Any) -> Any:
    """The elements at these flat places of each image."""
    lead = x.shape[:2]
    rows = xp.reshape(at, (*lead, math.prod(at.shape[2:])))
    y = ops.take_along_axis(xp.reshape(x, (*lead, math.prod(x.shape[2:]))), rows, 2)
    return xp.reshape(y, at.shape)


def _first_maxima(x: Any, shape: tuple[int, ...], sizes: tuple[int, ...]) -> Any:
    """Flat places of the first maxima of windows of several sizes.

    The elements of all windows side by side, of which short ones have their last one again, make
    windows of one size.
    """
    if x.__class__ is Array:
        ends = [area_windows(n, out) for n, out in zip(shape, sizes, strict=True)]
        found = kernels.first_maxima(x.data, ends)
        if found is not None:
            return wrap(found)
    inside: Any = np.zeros((), np.int64)  # where those stand in x
    for k, (n, out) in enumerate(zip(shape, sizes, strict=True)):
        starts, stops = area_windows(n, out).T[..., None]
        places = np.minimum(starts + np.arange((stops - starts).max()), stops - 1)  # (out, taps)
        x = ops.take(x, wrap(places.reshape(-1)), 2 + k)
        inside = inside[..., None] * n + places.reshape(-1)
    at = ops.max_pool_index(x, *even(x.shape[2:], sizes))
    return ops.take(wrap(inside.reshape(-1)), at, 0)
