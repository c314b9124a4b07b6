"""Chapters: statistical, searching, sorting and utility functions; the standard's signatures."""

from __future__ import annotations

from typing import Any

import numpy as np

from funct import ops
from funct.array.axes import normal_axes, normal_axis
from funct.array.creation import asarray
from funct.array.dtypes import as_dtype
from funct.array.indexing import nonzero_axes
from funct.array.manipulation import concat, reshape
from funct.errors import DTypeError, ShapeError

__all__ = [
    "all", "any", "argmax", "argmin", "argsort", "count_nonzero", "cumulative_prod",
    "cumulative_sum", "diff", "logsumexp", "max", "mean", "min", "nonzero", "prod",
    "searchsorted", "sort", "std", "sum", "take", "take_along_axis", "top_k", "var",
]  # fmt: skip


def _cast(name: str, x: Any, dtype: Any) -> Any:
    if dtype is None:
        return x
    dtype = as_dtype(name, dtype)
    return x if dtype == x.dtype else ops.astype(x, dtype)


def sum(x: Any, /, *, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
    """Sum over axis (None: all). Small integers widen to the default integer.

    Example:
        >>> import funct.array as xp
        >>> xp.sum(xp.asarray([[1.0, 2.0], [3.0, 4.0]]), axis=0).tolist()
        [4.0, 6.0]
    """
    if dtype is not None:
        x = _cast("sum", x, dtype)
    y = ops.reduce_sum(x, normal_axes("sum", axis, len(x.shape)), keepdims)
    return y if dtype is None else _cast("sum", y, dtype)


def prod(x: Any, /, *, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
    """Product over axis (None: all). The derivative is exact where factors are 0."""
    x = _cast("prod", x, dtype)
    return _cast(
        "prod", ops.reduce_prod(x, normal_axes("prod", axis, len(x.shape)), keepdims), dtype
    )


def max(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Any:
    """Maximum over axis (None: all); equal elements share the derivative."""
    return ops.reduce_max(x, normal_axes("max", axis, len(x.shape)), keepdims)


def min(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Any:
    """Minimum over axis (None: all); equal elements share the derivative."""
    return ops.reduce_min(x, normal_axes("min", axis, len(x.shape)), keepdims)


def mean(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Any:
    """Arithmetic mean over axis (None: all)."""
    axes = normal_axes("mean", axis, len(x.shape))
    return ops.mean_of(ops.reduce_sum(x, axes, keepdims), x, axes)


def var(x: Any, /, *, axis: Any = None, correction: float = 0.0, keepdims: bool = False) -> Any:
    """Variance over axis: squared distance from the mean, divided by n - correction."""
    axes = normal_axes("var", axis, len(x.shape))
    centred = x - mean(x, axis=axes, keepdims=True)
    square = ops.real(centred * ops.conj(centred)) if x.dtype.kind == "c" else centred * centred
    total = ops.reduce_sum(square, axes, keepdims)
    if correction == 0.0:
        return ops.mean_of(total, x, axes)
    return total / (ops.axis_count(x, axes) - correction)


def std(x: Any, /, *, axis: Any = None, correction: float = 0.0, keepdims: bool = False) -> Any:
    """Standard deviation over axis: the square root of `var`."""
    return ops.sqrt(var(x, axis=axis, correction=correction, keepdims=keepdims))


def all(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Any:
    """Whether every element along axis is true."""
    return ops.all(x, normal_axes("all", axis, len(x.shape)), keepdims)


def any(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Any:
    """Whether some element along axis is true."""
    return ops.any(x, normal_axes("any", axis, len(x.shape)), keepdims)


def logsumexp(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Any:
    """log(sum(exp(x))) over axis, without overflow."""
    axes = normal_axes("logsumexp", axis, len(x.shape))
    top = ops.stop_gradient(ops.reduce_max(x, axes, True))
    top = ops.where(ops.isfinite(top), top, 0.0)
    total = ops.reduce_sum(ops.exp(x - top), axes, keepdims)
    shape = total.shape
    return ops.log(total) + (top if keepdims else ops.reshape(top, shape))


def _arg(op: Any, name: str, x: Any, axis: int | None, keepdims: bool) -> Any:
    if axis is None:
        y = op(reshape(x, (-1,)), 0, False)
        return ops.reshape(y, (1,) * len(x.shape)) if keepdims else y
    return op(x, normal_axis(name, axis, len(x.shape)), keepdims)


def argmax(x: Any, /, *, axis: int | None = None, keepdims: bool = False) -> Any:
    """Index of the first maximum along axis, of the flat array for None."""
    return _arg(ops.argmax, "argmax", x, axis, keepdims)


def argmin(x: Any, /, *, axis: int | None = None, keepdims: bool = False) -> Any:
    """Index of the first minimum along axis, of the flat array for None."""
    return _arg(ops.argmin, "argmin", x, axis, keepdims)


def _scan(op: Any, name: str, x: Any, axis: int | None, dtype: Any, initial: Any) -> Any:
    if axis is None:
        if len(x.shape) > 1:
            raise ShapeError(f"{name}: axis is needed for an array of rank {len(x.shape)}")
        axis = 0
    k = normal_axis(name, axis, len(x.shape))
    y = _cast(name, op(_cast(name, x, dtype), k), dtype)
    if initial is None:
        return y
    shape = tuple([1 if i == k else n for i, n in enumerate(y.shape)])
    first = ops.broadcast_to(ops.families.constant(np.asarray(initial, y.dtype)), shape)
    return ops.concat(first, y, k)


def cumulative_sum(
    x: Any, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False
) -> Any:
    """Running sum along axis; include_initial puts a 0 in front."""
    return _scan(
        ops.cumulative_sum, "cumulative_sum", x, axis, dtype, 0 if include_initial else None
    )


def cumulative_prod(
    x: Any, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False
) -> Any:
    """Running product along axis; include_initial puts a 1 in front."""
    return _scan(
        ops.cumulative_prod, "cumulative_prod", x, axis, dtype, 1 if include_initial else None
    )


def diff(x: Any, /, *, axis: int = -1, n: int = 1, prepend: Any = None, append: Any = None) -> Any:
    """n-th differences along axis."""
    k = normal_axis("diff", axis, len(x.shape))
    if n == 0:
        return x
    parts = [p for p in (prepend, x, append) if p is not None]
    y = concat(parts, axis=k) if len(parts) > 1 else x
    head = (slice(None),) * k
    for _ in range(n):
        y = y[(*head, slice(1, None))] - y[(*head, slice(None, -1))]
    return y


def nonzero(x: Any, /) -> tuple[Any, ...]:
    """Indices of the non-zero elements, one 1-D array per axis; asks for concrete values."""
    if not x.shape:
        raise ShapeError("nonzero: a 0-d array has no indices")
    return tuple(nonzero_axes(x))


def count_nonzero(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Any:
    """Number of non-zero elements along axis."""
    hits = ops.astype(ops.not_equal(x, 0), np.dtype(np.int64))
    return ops.reduce_sum(hits, normal_axes("count_nonzero", axis, len(x.shape)), keepdims)


def searchsorted(x1: Any, x2: Any, /, *, side: str = "left", sorter: Any = None) -> Any:
    """Where each of x2 would be inserted into the sorted 1-D x1."""
    if side not in ("left", "right"):
        raise ShapeError(f"searchsorted: side must be 'left' or 'right', got {side!r}")
    if sorter is not None:
        x1 = ops.take(x1, sorter, 0)
    if len(x1.shape) != 1:
        raise ShapeError(f"searchsorted: x1 must be 1-D, got shape {x1.shape}")
    x2 = x2 if hasattr(x2, "shape") else ops.families.constant(np.asarray(x2, x1.dtype))
    return ops.searchsorted(x1, x2, side)


def sort(x: Any, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Any:
    """x sorted along axis."""
    return ops.sort(x, normal_axis("sort", axis, len(x.shape)), bool(descending))


def argsort(x: Any, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Any:
    """The permutation that sorts x along axis."""
    return ops.argsort(x, normal_axis("argsort", axis, len(x.shape)), bool(descending))


def top_k(x: Any, k: int, /, *, axis: int = -1) -> tuple[Any, Any]:
    """The k largest elements along axis in descending order, and their indices."""
    a = normal_axis("top_k", axis, len(x.shape))
    if not 0 <= k <= x.shape[a]:
        raise ShapeError(f"top_k: k must be between 0 and {x.shape[a]}, got {k}")
    values, at = ops.top_k(x, a, k)
    return values, at


def _indices(name: str, indices: Any) -> Any:
    indices = asarray(indices)
    if indices.dtype.kind not in "iu":
        raise DTypeError(f"{name}: indices must be integers, got {indices.dtype}")
    return indices


def take(x: Any, indices: Any, /, *, axis: int | None = None) -> Any:
    """Slices of x along axis at indices; axis may be left out for 1-D x."""
    if axis is None:
        if len(x.shape) != 1:
            raise ShapeError(f"take: axis is needed for an array of rank {len(x.shape)}")
        axis = 0
    indices = _indices("take", indices)
    return ops.take(x, indices, normal_axis("take", axis, len(x.shape)))


def take_along_axis(x: Any, indices: Any, /, *, axis: int = -1) -> Any:
    """One element of x per index along axis; other axes broadcast."""
    k = normal_axis("take_along_axis", axis, len(x.shape))
    indices = _indices("take_along_axis", indices)
    if len(indices.shape) != len(x.shape):
        raise ShapeError(
            f"take_along_axis: ranks must agree, got x {x.shape}, indices {indices.shape}"
        )
    rest_x, rest_i = ([1 if i == k else n for i, n in enumerate(v.shape)] for v in (x, indices))
    try:
        common = ops.families.broadcast_shapes(tuple(rest_x), tuple(rest_i))
    except ValueError:
        raise ShapeError(
            f"take_along_axis: shapes must broadcast, got x {x.shape}, indices {indices.shape}"
        ) from None
    shape_x, shape_i = ((*common[:k], v.shape[k], *common[k + 1 :]) for v in (x, indices))
    x = x if x.shape == shape_x else ops.broadcast_to(x, shape_x)
    indices = indices if indices.shape == shape_i else ops.broadcast_to(indices, shape_i)
    return ops.take_along_axis(x, indices, k)
