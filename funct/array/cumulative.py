"""Chapter: statistical functions that go along one axis and give a result for each element.

Running sums, products and extremes, by the standard's names and NumPy's, and differences.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from funct import ops
from funct.array.axes import normal_axis
from funct.array.conversion import as_tensor
from funct.array.creation import how_many
from funct.array.direct import direct
from funct.array.joining import concat
from funct.array.manipulation import ravel
from funct.array.statistical import in_dtype
from funct.array.tensor import Array
from funct.core import NARROW
from funct.errors import ShapeError
from funct.kernels.dtypes import is_half
from funct.kernels.reductions import cumulative as kernels
from funct.kernels.reductions import scans
from funct.ops.fast import wrap

__all__ = [
    "cumprod", "cumsum", "cumulative_max", "cumulative_min", "cumulative_prod", "cumulative_sum",
    "diff",
]  # fmt: skip

_MANY = 1 << 6  # bfloat16 numbers from which on they are taken in float32


def _scan_axis(name: str, x: Any, axis: int | None) -> int:
    if axis is None:
        if len(x.shape) > 1:
            raise ShapeError(f"{name}: axis is needed for an array of rank {len(x.shape)}")
        axis = 0
    return normal_axis(name, axis, len(x.shape))


def _scan(op: Any, name: str, x: Any, axis: int | None, dtype: Any, initial: Any) -> Any:
    k = _scan_axis(name, x, axis)
    y = in_dtype(name, op(in_dtype(name, x, dtype), k), dtype)
    if initial is None:
        return y
    shape = tuple([1 if i == k else n for i, n in enumerate(y.shape)])
    first = ops.broadcast_to(wrap(np.asarray(initial, y.dtype)), shape)
    return ops.concat(first, y, k)


@direct(kernels.cumulative_sum)
def cumulative_sum(
    x: Any, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False
) -> Any:
    """Running sum along axis; include_initial puts a 0 in front.

    Example:
        >>> import funct.array as xp
        >>> xp.cumulative_sum(xp.asarray([1, 2, 3]), include_initial=True).tolist()
        [0, 1, 3, 6]
    """
    x = as_tensor("cumulative_sum", x)
    return _scan(
        ops.cumulative_sum, "cumulative_sum", x, axis, dtype, 0 if include_initial else None
    )


@direct(kernels.cumulative_prod)
def cumulative_prod(
    x: Any, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False
) -> Any:
    """Running product along axis; include_initial puts a 1 in front.

    Example:
        >>> import funct.array as xp
        >>> xp.cumulative_prod(xp.asarray([[1, 2], [3, 4]]), axis=1).tolist()
        [[1, 2], [3, 12]]
    """
    x = as_tensor("cumulative_prod", x)
    return _scan(
        ops.cumulative_prod, "cumulative_prod", x, axis, dtype, 1 if include_initial else None
    )


@direct(kernels.cumsum)
def cumsum(x: Any, /, axis: int | None = None, dtype: Any = None) -> Any:
    """`cumulative_sum` by NumPy's name, and of all elements where axis is None.

    Example:
        >>> import funct.array as xp
        >>> xp.cumsum(xp.asarray([[1, 2], [3, 4]])).tolist()
        [1, 3, 6, 10]

    Source: NumPy `cumsum`.
    """
    x = as_tensor("cumsum", x)
    return cumulative_sum(ravel(x) if axis is None else x, axis=axis, dtype=dtype)


@direct(kernels.cumprod)
def cumprod(x: Any, /, axis: int | None = None, dtype: Any = None) -> Any:
    """`cumulative_prod` by NumPy's name, and of all elements where axis is None.

    Example:
        >>> import funct.array as xp
        >>> xp.cumprod(xp.asarray([[1, 2], [3, 4]])).tolist()
        [1, 2, 6, 24]

    Source: NumPy `cumprod`.
    """
    x = as_tensor("cumprod", x)
    return cumulative_prod(ravel(x) if axis is None else x, axis=axis, dtype=dtype)


@direct(kernels.diff, maybe=("prepend", "append"))
def diff(
    x: Any, /, n: int = 1, axis: int = -1, *, prepend: Any = None, append: Any = None
) -> Any:  # fmt: skip
    """n-th differences along axis. n and axis may be given by position, as clients of NumPy do.

    Raises: ArgumentError: n is negative.
    Example:
        >>> import funct.array as xp
        >>> x = xp.asarray([1, 4, 9, 16])
        >>> xp.diff(x).tolist(), xp.diff(x, n=2).tolist()
        ([3, 5, 7], [2, 2])
    """
    x = as_tensor("diff", x)
    k = normal_axis("diff", axis, len(x.shape))
    n = how_many("diff", "n", n)
    if n == 0:
        return x
    parts = [p for p in (prepend, x, append) if p is not None]
    y = concat(parts, axis=k) if len(parts) > 1 else x
    head = (slice(None),) * k
    for _ in range(n):
        if y.shape[k].__class__ is int and y.shape[k] == 0:
            break
        y = y[(*head, slice(1, None))] - y[(*head, slice(None, -1))]
    return y


@direct(kernels.cumulative_max)
def cumulative_max(x: Any, /, *, axis: int | None = None) -> Any:
    """The largest element so far along axis, NaN kept; the first of equal ones has the derivative.

    axis may be left out for 1-D x.
    Example:
        >>> import funct.array as xp
        >>> xp.cumulative_max(xp.asarray([1, 3, 2, 5])).tolist()
        [1, 3, 3, 5]

    Source: NumPy `maximum.accumulate`.
    """
    x = as_tensor("cumulative_max", x)
    return _running("cumulative_max", x, axis, True)


@direct(kernels.cumulative_min)
def cumulative_min(x: Any, /, *, axis: int | None = None) -> Any:
    """The smallest element so far along axis; as `cumulative_max`.

    Example:
        >>> import funct.array as xp
        >>> xp.cumulative_min(xp.asarray([4, 5, 2, 3])).tolist()
        [4, 4, 2, 2]

    Source: NumPy `minimum.accumulate`.
    """
    x = as_tensor("cumulative_min", x)
    return _running("cumulative_min", x, axis, False)


def _running(name: str, x: Any, axis: int | None, largest: bool) -> Any:
    k = _scan_axis(name, x, axis)
    plain = x.dtype not in NARROW or (is_half(x.dtype) and x.size >= _MANY)
    if plain and x.__class__ is Array:
        return wrap(scans.running_extremum(x.data, k, largest))
    return ops.take_along_axis(x, ops.running_argmax(x, k, largest), k)
