"""Chapters: searching, sorting and indexing functions, with the standard's signatures."""

from __future__ import annotations

from typing import Any

import numpy as np

from funct import ops
from funct.array.axes import integers, normal_axes, normal_axis, normal_shape
from funct.array.conversion import as_tensor, as_tensors, asarray, promoted
from funct.array.direct import direct
from funct.array.indexing import nonzero_axes
from funct.array.joining import stack
from funct.array.manipulation import reshape
from funct.array.tensor import Tensor
from funct.core import INEXACT
from funct.errors import ArgumentError, DTypeError, ShapeError
from funct.kernels import composed
from funct.kernels.order import searching as kernels
from funct.kernels.reductions import statistical

__all__ = [
    "argmax", "argmin", "argsort", "argwhere", "count_nonzero", "flatnonzero", "lexsort",
    "nonzero", "ravel_multi_index", "searchsorted", "sort", "take", "take_along_axis", "top_k",
    "unravel_index", "where",
]  # fmt: skip


def _arg(op: Any, name: str, x: Any, axis: int | None, keepdims: bool) -> Any:
    if axis is None:
        if len(x.shape) == 1:
            return op(x, 0, keepdims)
        y = op(reshape(x, (-1,)), 0, False)
        return ops.reshape(y, (1,) * len(x.shape)) if keepdims else y
    return op(x, normal_axis(name, axis, len(x.shape)), keepdims)


@direct(statistical.argmax)
def argmax(x: Any, /, axis: int | None = None, *, keepdims: bool = False) -> Any:
    """Index of the first maximum along axis, of the flat array for None.

    Raises: ShapeError: when there are no elements along axis.
    Example:
        >>> import funct.array as xp
        >>> xp.argmax(xp.asarray([[1, 3, 3], [7, 2, 9]]), axis=1).tolist()
        [1, 2]
    """
    x = as_tensor("argmax", x)
    return _arg(ops.argmax, "argmax", x, axis, keepdims)


@direct(statistical.argmin)
def argmin(x: Any, /, axis: int | None = None, *, keepdims: bool = False) -> Any:
    """Index of the first minimum along axis, of the flat array for None.

    Raises: ShapeError: when there are no elements along axis.
    Example:
        >>> import funct.array as xp
        >>> int(xp.argmin(xp.asarray([[4, 1], [1, 4]])))  # of the flat array
        1
    """
    x = as_tensor("argmin", x)
    return _arg(ops.argmin, "argmin", x, axis, keepdims)


@direct(kernels.nonzero, gives=tuple)
def nonzero(x: Any, /) -> tuple[Any, ...]:
    """Indices of the non-zero elements, one 1-D array per axis; asks for concrete values.

    Raises: ShapeError: for a 0-d array.
    Example:
        >>> import funct.array as xp
        >>> [i.tolist() for i in xp.nonzero(xp.asarray([[0, 1], [2, 0]]))]
        [[0, 1], [1, 0]]
    """
    x = as_tensor("nonzero", x)
    if not x.shape:
        raise ShapeError("nonzero: a 0-d array has no indices")
    return tuple(nonzero_axes(x))


def argwhere(x: Any, /) -> Any:
    """Indices of the non-zero elements, one row for each, (count, rank); asks for concrete values.

    Raises: ShapeError: for a 0-d array.
    Example:
        >>> import funct.array as xp
        >>> xp.argwhere(xp.asarray([[0, 1], [2, 0]])).tolist()
        [[0, 1], [1, 0]]

    Source: NumPy `argwhere`.
    """
    x = as_tensor("argwhere", x)
    if not x.shape:
        raise ShapeError("argwhere: x must have an axis, got a 0-d array")
    return stack(nonzero(x), axis=1)


def flatnonzero(x: Any, /) -> Any:
    """Indices of the non-zero elements of the flat x; asks for concrete values.

    Example:
        >>> import funct.array as xp
        >>> xp.flatnonzero(xp.asarray([[0, 1], [2, 0]])).tolist()
        [1, 2]

    Source: NumPy `flatnonzero`.
    """
    return nonzero(reshape(x, (-1,)))[0]


@direct(composed.lexsort, arrays="sequence")
def lexsort(keys: Any, /, axis: int = -1) -> Any:
    """Indices that sort by the last key, ties by the one before it, and so on; stable.

    keys: arrays of one shape, or one array of them along its first axis.
    Raises: ShapeError: when the shapes of keys differ, or there are none.
    Example:
        >>> import funct.array as xp
        >>> xp.lexsort([xp.asarray([2, 1, 0]), xp.asarray([1, 0, 1])]).tolist()
        [1, 2, 0]

    Source: NumPy `lexsort`.
    """
    given = as_tensors("lexsort", keys)
    if len({key.shape for key in given}) != 1 or not given[0].shape:
        raise ShapeError(
            "lexsort: keys must be arrays of one shape that has an axis, "
            f"got shapes {[key.shape for key in given]}"
        )
    first, *others = given
    order = argsort(first, axis=axis)
    for key in others:
        within = argsort(take_along_axis(key, order, axis=axis), axis=axis)
        order = take_along_axis(order, within, axis=axis)
    return order


@direct(composed.unravel_index, gives=tuple)
def unravel_index(indices: Any, /, shape: Any) -> tuple[Any, ...]:
    """Coordinates in an array of that shape of the elements at indices of the flat one.

    What lies outside shows in the first coordinate, which then is outside, too.
    Raises: DTypeError: when indices are no integers.
    Example:
        >>> import funct.array as xp
        >>> [int(i) for i in xp.unravel_index(xp.asarray(5), (2, 3))]
        [1, 2]

    Source: NumPy `unravel_index`.
    """
    rest = _places("unravel_index", indices)
    found = []
    for n in reversed(normal_shape("unravel_index", shape)[1:]):
        found.append(ops.remainder(rest, n))
        rest = ops.floor_divide(rest, n)
    return (rest, *reversed(found))


@direct(composed.ravel_multi_index, arrays="sequence")
def ravel_multi_index(multi_index: Any, /, dims: Any) -> Any:
    """Indices of the flat array for coordinates, one array for each axis, in one of shape dims.

    Coordinates count as they are: what lies outside of dims is not looked for.
    Raises: ShapeError: when there is not one array per axis. DTypeError: when they hold no
    integers.
    Example:
        >>> import funct.array as xp
        >>> int(xp.ravel_multi_index((xp.asarray(1), xp.asarray(2)), (2, 3)))
        5

    Source: NumPy `ravel_multi_index`.
    """
    at = [_places("ravel_multi_index", i) for i in as_tensors("ravel_multi_index", multi_index)]
    dims = normal_shape("ravel_multi_index", dims)
    if len(at) != len(dims) or not at:
        raise ShapeError(
            f"ravel_multi_index: one array of indices per axis is needed, got {len(at)} for {dims}"
        )
    flat = at[0]
    for i, n in zip(at[1:], dims[1:], strict=True):
        flat = flat * n + i
    return flat


def _places(name: str, indices: Any) -> Any:
    """Indices in an integer dtype in which a product with a size does not overflow."""
    indices = as_tensor(name, indices, "indices")
    if indices.dtype.kind not in "iu":
        raise DTypeError(f"{name}: indices must be integers, got {indices.dtype}")
    return ops.astype(indices, np.dtype(np.int64)) if indices.dtype.itemsize < 8 else indices


@direct(kernels.where, maybe=("x1", "x2"))
def where(condition: Any, x1: Any = None, x2: Any = None, /) -> Any:
    """x1 where condition holds, else x2; without either `nonzero(condition)`, as NumPy has it.

    What is not chosen has derivative 0, even were it NaN.
    Example:
        >>> import funct.array as xp
        >>> x = xp.asarray([-4.0, 9.0])
        >>> xp.where(x > 0, xp.sqrt(xp.abs(x)), 0.0).tolist()
        [0.0, 3.0]
        >>> [i.tolist() for i in xp.where(x > 0)]
        [[1]]
    """
    if x1 is None and x2 is None:
        return nonzero(condition)
    try:
        return ops.where(condition, x1, x2)
    except DTypeError:  # NumPy's `where` promotes fewer pairs than operators do
        dtypes = {getattr(x, "dtype", None) for x in (x1, x2)}
        if None in dtypes or len(dtypes) < 2:
            raise
    x1, x2 = as_tensor("where", x1, "x1"), as_tensor("where", x2, "x2")
    return ops.where(condition, *promoted([x1, x2]))


@direct(statistical.count_nonzero)
def count_nonzero(x: Any, /, axis: Any = None, keepdims: bool = False) -> Any:
    """Number of non-zero elements along axis.

    Example:
        >>> import funct.array as xp
        >>> xp.count_nonzero(xp.asarray([[0, 1], [2, 3]]), axis=1).tolist()
        [1, 2]
    """
    x = as_tensor("count_nonzero", x)
    hits = x if x.dtype == np.dtype(bool) else ops.not_equal(x, 0)
    axes = normal_axes("count_nonzero", axis, len(x.shape))
    return ops.reduce_sum(ops.astype(hits, np.dtype(np.int64)), axes, keepdims)


@direct(kernels.searchsorted, maybe=("x2",))
def searchsorted(x1: Any, x2: Any, /, side: str = "left", sorter: Any = None) -> Any:
    """Where each of x2 would be inserted into the sorted 1-D x1.

    Raises: ShapeError: when x1 is not 1-D. ArgumentError: for another side.
    Example:
        >>> import funct.array as xp
        >>> bins = xp.asarray([1.0, 2.0, 3.0])
        >>> xp.searchsorted(bins, xp.asarray([2.0, 5.0])).tolist()
        [1, 3]
        >>> xp.searchsorted(bins, xp.asarray([2.0, 5.0]), side="right").tolist()
        [2, 3]
    """
    if side not in ("left", "right"):
        raise ArgumentError(f"searchsorted: side must be 'left' or 'right', got {side!r}")
    x1 = as_tensor("searchsorted", x1, "x1")
    if sorter is not None:
        x1 = ops.take(x1, _indices("searchsorted", sorter), 0)
    if len(x1.shape) != 1:
        raise ShapeError(f"searchsorted: x1 must be 1-D, got shape {x1.shape}")
    if not isinstance(x2, Tensor):
        if x1.dtype in INEXACT:
            x2 = asarray(x2, dtype=x1.dtype)
        else:  # which has no 2.5 and, being short, no 300
            x1, x2 = promoted([x1, asarray(x2)])
    return ops.searchsorted(x1, x2, side)


@direct(kernels.sort)
def sort(x: Any, /, axis: int = -1, *, descending: bool = False, stable: bool = True) -> Any:
    """x sorted along axis.

    Example:
        >>> import funct.array as xp
        >>> xp.sort(xp.asarray([3.0, xp.nan, 1.0])).tolist()  # NaN stands last
        [1.0, 3.0, nan]
        >>> xp.sort(xp.asarray([3, 1, 2]), descending=True).tolist()
        [3, 2, 1]
    """
    x = as_tensor("sort", x)
    return ops.sort(x, normal_axis("sort", axis, len(x.shape)), bool(descending))


@direct(kernels.argsort)
def argsort(x: Any, /, axis: int = -1, *, descending: bool = False, stable: bool = True) -> Any:
    """The permutation that sorts x along axis.

    Example:
        >>> import funct.array as xp
        >>> xp.argsort(xp.asarray([3, 1, 1])).tolist()  # of equal elements the first comes first
        [1, 2, 0]
        >>> xp.argsort(xp.asarray([3, 1, 1]), descending=True).tolist()
        [0, 1, 2]
    """
    x = as_tensor("argsort", x)
    return ops.argsort(x, normal_axis("argsort", axis, len(x.shape)), bool(descending))


@direct(kernels.top_k, gives=tuple)
def top_k(x: Any, k: int, /, *, axis: int = -1) -> tuple[Any, Any]:
    """The k largest elements along axis in descending order, and their indices.

    Raises: ShapeError: when there are less than k.
    Example:
        >>> import funct.array as xp
        >>> values, indices = xp.top_k(xp.asarray([3, 1, 4, 1, 5]), 2)
        >>> values.tolist(), indices.tolist()
        ([5, 4], [4, 2])

    Source: JAX `lax.top_k`.
    """
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
def take(x: Any, indices: Any, /, axis: int | None = None) -> Any:
    """Slices of x along axis at indices; axis may be left out for 1-D x.

    Raises: IndexOutOfBoundsError: for an index outside of x. DTypeError: for indices that are no
    integers.
    Example:
        >>> import funct.array as xp
        >>> xp.take(xp.asarray([10, 20, 30]), xp.asarray([-1, 0, 0])).tolist()  # -1 is the last
        [30, 10, 10]
        >>> xp.take(xp.asarray([[1, 2], [3, 4]]), xp.asarray([1]), axis=1).tolist()
        [[2], [4]]
    """
    x = as_tensor("take", x)
    if axis is None:
        if len(x.shape) != 1:
            raise ShapeError(f"take: axis is needed for an array of rank {len(x.shape)}")
        axis = 0
    indices = _indices("take", indices)
    return ops.take(x, indices, normal_axis("take", axis, len(x.shape)))


@direct(kernels.take_along_axis, arrays=2)
def take_along_axis(x: Any, indices: Any, /, axis: int = -1) -> Any:
    """One element of x per index along axis; other axes broadcast.

    Raises: IndexOutOfBoundsError and DTypeError: as `take`. ShapeError: when the ranks differ, or
    other axes do not broadcast.
    Example:
        >>> import funct.array as xp
        >>> x = xp.asarray([[3, 1, 2], [9, 7, 8]])
        >>> xp.take_along_axis(x, xp.argsort(x, axis=1), axis=1).tolist()
        [[1, 2, 3], [7, 8, 9]]
    """
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
