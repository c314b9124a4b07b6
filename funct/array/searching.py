"""Chapters: searching, sorting and indexing functions, with the standard's signatures."""

from __future__ import annotations

from typing import Any

import numpy as np

from funct import ops
from funct.array.axes import integers, normal_axes, normal_axis
from funct.array.conversion import as_tensor, asarray
from funct.array.direct import direct
from funct.array.indexing import nonzero_axes
from funct.array.manipulation import reshape
from funct.array.tensor import Tensor
from funct.errors import DTypeError, ShapeError
from funct.kernels import searching as kernels
from funct.kernels import statistical

__all__ = [
    "argmax", "argmin", "argsort", "count_nonzero", "nonzero", "searchsorted", "sort", "take",
    "take_along_axis", "top_k", "where",
]  # fmt: skip


def _arg(op: Any, name: str, x: Any, axis: int | None, keepdims: bool) -> Any:
    if axis is None:
        if len(x.shape) == 1:
            return op(x, 0, keepdims)
        y = op(reshape(x, (-1,)), 0, False)
        return ops.reshape(y, (1,) * len(x.shape)) if keepdims else y
    return op(x, normal_axis(name, axis, len(x.shape)), keepdims)


@direct(statistical.argmax)
def argmax(x: Any, /, *, axis: int | None = None, keepdims: bool = False) -> Any:
    """Index of the first maximum along axis, of the flat array for None."""
    x = as_tensor("argmax", x)
    return _arg(ops.argmax, "argmax", x, axis, keepdims)


@direct(statistical.argmin)
def argmin(x: Any, /, *, axis: int | None = None, keepdims: bool = False) -> Any:
    """Index of the first minimum along axis, of the flat array for None."""
    x = as_tensor("argmin", x)
    return _arg(ops.argmin, "argmin", x, axis, keepdims)


@direct(kernels.nonzero, gives=tuple)
def nonzero(x: Any, /) -> tuple[Any, ...]:
    """Indices of the non-zero elements, one 1-D array per axis; asks for concrete values."""
    x = as_tensor("nonzero", x)
    if not x.shape:
        raise ShapeError("nonzero: a 0-d array has no indices")
    return tuple(nonzero_axes(x))


def where(condition: Any, x1: Any = None, x2: Any = None, /) -> Any:
    """x1 where condition holds, else x2; without either `nonzero(condition)`, as NumPy has it.

    What is not chosen has derivative 0, even were it NaN.
    """
    return nonzero(condition) if x1 is None and x2 is None else ops.where(condition, x1, x2)


@direct(statistical.count_nonzero)
def count_nonzero(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Any:
    """Number of non-zero elements along axis."""
    x = as_tensor("count_nonzero", x)
    hits = ops.astype(ops.not_equal(x, 0), np.dtype(np.int64))
    return ops.reduce_sum(hits, normal_axes("count_nonzero", axis, len(x.shape)), keepdims)


@direct(kernels.searchsorted, maybe=("x2",))
def searchsorted(x1: Any, x2: Any, /, *, side: str = "left", sorter: Any = None) -> Any:
    """Where each of x2 would be inserted into the sorted 1-D x1."""
    if side not in ("left", "right"):
        raise ShapeError(f"searchsorted: side must be 'left' or 'right', got {side!r}")
    x1 = as_tensor("searchsorted", x1)
    if sorter is not None:
        x1 = ops.take(x1, _indices("searchsorted", sorter), 0)
    if len(x1.shape) != 1:
        raise ShapeError(f"searchsorted: x1 must be 1-D, got shape {x1.shape}")
    x2 = x2 if isinstance(x2, Tensor) else asarray(x2, dtype=x1.dtype)
    return ops.searchsorted(x1, x2, side)


@direct(kernels.sort)
def sort(x: Any, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Any:
    """x sorted along axis."""
    x = as_tensor("sort", x)
    return ops.sort(x, normal_axis("sort", axis, len(x.shape)), bool(descending))


@direct(kernels.argsort)
def argsort(x: Any, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Any:
    """The permutation that sorts x along axis."""
    x = as_tensor("argsort", x)
    return ops.argsort(x, normal_axis("argsort", axis, len(x.shape)), bool(descending))


@direct(kernels.top_k, gives=tuple)
def top_k(x: Any, k: int, /, *, axis: int = -1) -> tuple[Any, Any]:
    """The k largest elements along axis in descending order, and their indices."""
    x = as_tensor("top_k", x)
    a = normal_axis("top_k", axis, len(x.shape))
    (k,) = integers("top_k", "k", (k,))
    if not 0 <= k <= x.shape[a]:
        raise ShapeError(f"top_k: k must be between 0 and {x.shape[a]}, got {k}")
    values, at = ops.top_k(x, a, k)
    return values, at


def _indices(name: str, indices: Any) -> Any:
    indices = asarray(indices)
    if indices.dtype.kind not in "iu":
        raise DTypeError(f"{name}: indices must be integers, got {indices.dtype}")
    return indices


@direct(kernels.take, arrays=2)
def take(x: Any, indices: Any, /, *, axis: int | None = None) -> Any:
    """Slices of x along axis at indices; axis may be left out for 1-D x."""
    x = as_tensor("take", x)
    if axis is None:
        if len(x.shape) != 1:
            raise ShapeError(f"take: axis is needed for an array of rank {len(x.shape)}")
        axis = 0
    indices = _indices("take", indices)
    return ops.take(x, indices, normal_axis("take", axis, len(x.shape)))


@direct(kernels.take_along_axis, arrays=2)
def take_along_axis(x: Any, indices: Any, /, *, axis: int = -1) -> Any:
    """One element of x per index along axis; other axes broadcast."""
    x = as_tensor("take_along_axis", x)
    k = normal_axis("take_along_axis", axis, len(x.shape))
    indices = _indices("take_along_axis", indices)
    if len(indices.shape) != len(x.shape):
        raise ShapeError(
            f"take_along_axis: ranks must agree, got x {x.shape}, indices {indices.shape}"
        )
    if x.shape[:k] == indices.shape[:k] and x.shape[k + 1 :] == indices.shape[k + 1 :]:
        return ops.take_along_axis(x, indices, k)
    rest_x, rest_i = ([1 if i == k else n for i, n in enumerate(v.shape)] for v in (x, indices))
    try:
        common = ops.broadcasting.broadcast_shapes(tuple(rest_x), tuple(rest_i))
    except ValueError:
        raise ShapeError(
            f"take_along_axis: shapes must broadcast, got x {x.shape}, indices {indices.shape}"
        ) from None
    shape_x, shape_i = ((*common[:k], v.shape[k], *common[k + 1 :]) for v in (x, indices))
    x = x if x.shape == shape_x else ops.broadcast_to(x, shape_x)
    indices = indices if indices.shape == shape_i else ops.broadcast_to(indices, shape_i)
    return ops.take_along_axis(x, indices, k)
