"""Sums over groups: elements are counted, or their weights added, by the bin they fall into.

The number of bins is a shape: where it is not given, it is asked of the values, which under `jit`
is a guard. What lies outside the bins is left out.
"""

from __future__ import annotations

import cmath
from typing import Any

import numpy as np

from funct import ops
from funct.array.axes import normal_axis
from funct.array.conversion import as_tensor, check_allocation
from funct.array.creation import arange, asarray, full, how_many
from funct.array.direct import direct
from funct.array.dtypes import as_dtype, result_type
from funct.array.manipulation import reshape
from funct.array.statistical import max as greatest
from funct.array.statistical import min as least
from funct.array.tensor import Array
from funct.core import INEXACT
from funct.errors import ArgumentError, DTypeError, ShapeError
from funct.kernels.indexing import scattering
from funct.kernels.order import searching as kernels
from funct.kernels.order.counting import direction, rises
from funct.ops.fast import wrap

__all__ = [
    "bincount", "digitize", "histogram", "histogram_bin_edges", "one_hot", "segment_sum",
]  # fmt: skip

_INT32, _INT64 = np.dtype(np.int32), np.dtype(np.int64)
_FLOAT64 = np.dtype(np.float64)


@direct(kernels.bincount, maybe=("weights",))
def bincount(
    x: Any, /, weights: Any = None, minlength: int = 0, *, length: int | None = None
) -> Any:
    """How often each of 0, 1, 2, … occurs in x, or the sum of the weights where it does.

    Args: x: non-negative integers, 1-D. minlength: of the result at least. length: of the result;
    other values are left out, and no value is asked for (needed under vmap).
    Raises: ArgumentError: for a negative x without length.
    Example:
        >>> import funct.array as xp
        >>> xp.bincount(xp.asarray([0, 2, 2])).tolist()
        [1, 0, 2]

    Source: NumPy `bincount`; length as in JAX.
    """
    x = asarray(x)
    _check_ids("bincount", x)
    if len(x.shape) != 1:
        raise ShapeError(f"bincount: x must be 1-D, got shape {x.shape}")
    if length is None:
        length = _groups("bincount", x, how_many("bincount", "minlength", minlength))
    if weights is None:
        return _sum_by("bincount", full(x.shape, 1), x, length)
    weights = asarray(weights)
    if weights.shape != x.shape:
        raise ShapeError(f"bincount: weights must have x's shape {x.shape}, got {weights.shape}")
    return _sum_by("bincount", weights, x, length)


@direct(kernels.segment_sum, arrays=2)
def segment_sum(data: Any, segment_ids: Any, /, num_segments: int | None = None) -> Any:
    """Sums of the slices data[i] that have one segment_ids[i]: row k of the result is segment k.

    num_segments: how many; ids outside [0, num_segments) are left out. None asks for the greatest.
    Raises: ShapeError: when there is not one id per slice.
    Example:
        >>> import funct.array as xp
        >>> xp.segment_sum(xp.asarray([1.0, 2.0, 4.0]), xp.asarray([0, 1, 0]), 3).tolist()
        [5.0, 2.0, 0.0]

    Source: JAX `ops.segment_sum`.
    """
    data, ids = asarray(data), asarray(segment_ids)
    _check_ids("segment_sum", ids)
    if len(ids.shape) != 1 or not data.shape or data.shape[0] != ids.shape[0]:
        raise ShapeError(
            f"segment_sum: ids must be one per slice, got data {data.shape} and ids {ids.shape}"
        )
    if num_segments is None:
        return _sum_by("segment_sum", data, ids, _groups("segment_sum", ids))
    n = how_many("segment_sum", "num_segments", num_segments)
    return _sum_by("segment_sum", data, ids, n)


@direct(kernels.one_hot)
def one_hot(x: Any, num_classes: int, /, *, dtype: Any = None, axis: int = -1) -> Any:
    """1 at the index that x holds, 0 elsewhere, along a new axis of length num_classes.

    An index outside [0, num_classes) gives zeros. dtype is float64 unless given.
    Example:
        >>> import funct.array as xp
        >>> xp.one_hot(xp.asarray([1, 0]), 3).tolist()
        [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]

    Source: JAX `nn.one_hot`.
    """
    x = asarray(x)
    _check_ids("one_hot", x)
    rank, n = len(x.shape), how_many("one_hot", "num_classes", num_classes)
    classes = reshape(
        arange(n), (-1, *(1,) * (rank - normal_axis("one_hot", axis, rank + 1)))
    )
    k = normal_axis("one_hot", axis, rank + 1)
    hits = ops.equal(ops.reshape(x, (*x.shape[:k], 1, *x.shape[k:])), classes)
    return ops.astype(hits, _FLOAT64 if dtype is None else as_dtype("one_hot", dtype))


@direct(kernels.digitize, arrays=2)
def digitize(x: Any, /, bins: Any, right: bool = False) -> Any:
    """The bin of each element: i where bins[i-1] <= x < bins[i], 0 and len(bins) outside.

    Args: bins: 1-D, ascending, or descending: then bins[i-1] > x >= bins[i]. right: the bin holds
    its upper edge, not its lower one.
    Raises: ShapeError: when bins are not 1-D, or empty. ArgumentError: when they neither ascend nor
    descend; traced ones are not asked.
    Example:
        >>> import funct.array as xp
        >>> xp.digitize(xp.asarray([0.5, 1.0, 2.5]), xp.asarray([1.0, 2.0])).tolist()
        [0, 1, 2]

    Source: NumPy `digitize`.
    """
    x, bins = asarray(x), asarray(bins)
    n = bins.shape[0] if len(bins.shape) == 1 else 0
    if not n:
        raise ShapeError(f"digitize: bins must be 1-D and not empty, got shape {bins.shape}")
    if bins.__class__ is Array and not direction(bins.data):
        raise ArgumentError(f"digitize: bins must ascend or descend, got {bins}")
    side = "left" if right else "right"
    up, down = ops.searchsorted(bins, x, side), n - ops.searchsorted(ops.flip(bins, (0,)), x, side)
    return ops.where(ops.greater(bins[0], bins[-1]), down, up)


@direct(kernels.histogram, maybe=("bins",), gives=tuple)
def histogram(
    x: Any,
    /,
    bins: Any = 10,
    range: Any = None,
    *,
    density: bool = False,
    weights: Any = None,
) -> tuple[Any, Any]:
    """How many elements of x fall into each bin, or the sum of their weights, and the bins' edges.

    Args: bins: how many of equal width, or their edges in ascending order. range: (low, high), by
    default those of x. density: divide so that the integral is 1. Differentiable in the weights.
    Raises: ShapeError: when there is not one weight per element. The rest: as
    `histogram_bin_edges`.
    Example:
        >>> import funct.array as xp
        >>> counts, edges = xp.histogram(xp.asarray([0.0, 0.1, 0.9, 1.0]), 2)
        >>> counts.tolist(), edges.tolist()
        ([2, 2], [0.0, 0.5, 1.0])

    Source: NumPy `histogram`.
    """
    x = as_tensor("histogram", x)
    x = reshape(asarray(x), (-1,))
    edges = _edges("histogram", x, bins, range)
    n = edges.shape[0] - 1
    at = ops.searchsorted(edges, x, "right") - 1
    at = ops.where(ops.equal(x, edges[-1]), n - 1, at)  # the last bin holds its right edge
    if weights is None:
        w = full(x.shape, 1)
    else:
        w = reshape(asarray(weights), (-1,))
        if w.shape != x.shape:
            raise ShapeError(f"histogram: weights must be one per element, got {w.shape[0]}")
    counts = _sum_by("histogram", w, at, n)
    if density:
        counts = counts / ops.reduce_sum(counts, (0,), False) / (edges[1:] - edges[:-1])
    return counts, edges


def histogram_bin_edges(x: Any, /, bins: Any = 10, range: Any = None) -> Any:
    """The edges that `histogram` uses.

    Raises: ArgumentError: for no bins, a range that is not two finite numbers in order, edges that
    do not ascend, bins so narrow that two edges are one number, and elements that are not finite
    where they say the range; traced values are not asked. ShapeError: for edges that are not 1-D.
    Example:
        >>> import funct.array as xp
        >>> xp.histogram_bin_edges(xp.asarray([0.0, 3.0, 4.0]), bins=4).tolist()
        [0.0, 1.0, 2.0, 3.0, 4.0]

    Source: NumPy `histogram_bin_edges`.
    """
    return _edges("histogram_bin_edges", as_tensor("histogram_bin_edges", x), bins, range)


def _edges(name: str, x: Any, bins: Any, range: Any) -> Any:
    if not isinstance(bins, int | np.integer):
        edges = asarray(bins)
        if len(edges.shape) != 1 or not edges.shape[0]:
            raise ShapeError(f"{name}: edges must be 1-D and not empty, got {edges.shape}")
        if edges.__class__ is Array and direction(edges.data) < 1:
            raise ArgumentError(f"{name}: edges must ascend, got {edges}")
        return edges
    bins = int(bins)
    if bins < 1:
        raise ArgumentError(f"{name}: bins must be at least 1, got {bins}")
    x = asarray(x)
    dtype = x.dtype
    if range is not None:
        if not isinstance(range, tuple | list) or len(range) != 2:
            raise ArgumentError(f"{name}: range must be two numbers, got {range!r}")
        low, high = (asarray(v, dtype=_FLOAT64) for v in range)
        dtype = result_type(*range, dtype)
    elif 0 in x.shape:
        low, high = wrap(np.asarray(0.0)), wrap(np.asarray(1.0))
    else:
        x = ops.astype(x, _FLOAT64) if dtype not in INEXACT else x
        low, high = least(x), greatest(x)
    if low.__class__ is Array and high.__class__ is Array:
        a, b = low.data.item(), high.data.item()
        if not (cmath.isfinite(a) and cmath.isfinite(b)):
            whose = "that of the elements" if range is None else "range"
            raise ArgumentError(f"{name}: range must be finite, {whose} is {(a, b)}")
        if np.greater(a, b) if a.__class__ is complex else a > b:
            raise ArgumentError(f"{name}: range must ascend, got {range!r}")
        low, high = (low - 0.5, high + 0.5) if a == b else (low, high)
    else:
        flat = ops.equal(low, high)
        low, high = ops.where(flat, low - 0.5, low), ops.where(flat, high + 0.5, high)
    steps = arange(bins + 1, dtype=low.dtype)
    edges = ops.where(ops.equal(arange(bins + 1), bins), high, low + steps * ((high - low) / bins))
    edges = ops.astype(edges, dtype) if dtype in INEXACT else edges
    if edges.__class__ is Array and not rises(edges.data):
        raise ArgumentError(
            f"{name}: {bins} bins between {edges[0]} and {edges[-1]} would have no width in "
            f"{edges.dtype}"
        )
    return edges


def _check_ids(name: str, x: Any) -> None:
    if x.dtype.kind not in "iu":
        raise DTypeError(f"{name}: indices must be integers, got {x.dtype}")


def _groups(name: str, ids: Any, fewest: int = 0) -> int:
    """How many groups the ids speak of, or that many if those are more: asks for their values, and
    not for the greatest where it makes no difference, so that compiled code stays right for others.
    """
    if ids.shape[0] == 0:
        return fewest
    if bool(ops.less(least(ids), 0)):
        raise ArgumentError(f"{name}: indices must not be negative, got {int(least(ids))}")
    most = greatest(ids)
    wide = most if most.dtype.itemsize == 8 else ops.astype(most, _INT64)
    if fewest and bool(ops.less(wide, fewest)):
        return fewest
    return int(most) + 1


def _sum_by(name: str, data: Any, ids: Any, n: Any) -> Any:
    """Rows of data added up by id; one row more takes what belongs to none of n."""
    if n.__class__ is int:
        check_allocation(name, (n, *[k for k in data.shape[1:] if k.__class__ is int]), data.dtype)
    if data.__class__ is Array and ids.__class__ is Array and n.__class__ is int and n >= 0:
        return wrap(scattering.segment_sum(data.data, ids.data, n))
    if ids.dtype != _INT32 or n.__class__ is not int or n >= 1 << 31:
        ids = ops.astype(ids, _INT64)
    known = ops.logical_and(ops.greater_equal(ids, 0), ops.less(ids, n))
    return ops.put(data, ops.where(known, ids, n), 0, n + 1)[:-1]
