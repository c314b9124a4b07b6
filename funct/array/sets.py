"""Chapter: set functions. Every NaN is an element of its own, also where NumPy merges them.

How many distinct elements there are is known from values alone, so these ask for concrete ones, as
`nonzero` does: under `jit` the answer is a guard, and each set of repetitions is a path. The values
are taken from x at the indices found, so that derivatives flow.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from funct import ops
from funct.array.conversion import as_tensor, asarray, joined
from funct.array.creation import full
from funct.array.direct import direct
from funct.array.elementwise import both, compared
from funct.array.manipulation import reshape
from funct.array.tensor import Array
from funct.core import NARROW
from funct.kernels import composed
from funct.kernels.order import distinct
from funct.kernels.order import searching as kernels
from funct.ops.fast import wrap

__all__ = [
    "UniqueAll", "UniqueCounts", "UniqueInverse", "intersect1d", "isin", "setdiff1d", "setxor1d",
    "union1d", "unique_all", "unique_counts", "unique_inverse", "unique_values",
]  # fmt: skip


class UniqueAll(NamedTuple):
    """What `unique_all` gives."""

    values: Any
    indices: Any
    inverse_indices: Any
    counts: Any


class UniqueCounts(NamedTuple):
    """What `unique_counts` gives."""

    values: Any
    counts: Any


class UniqueInverse(NamedTuple):
    """What `unique_inverse` gives."""

    values: Any
    inverse_indices: Any


@direct(kernels.unique_all, gives=UniqueAll._make)
def unique_all(x: Any, /) -> UniqueAll:
    """The distinct elements of x in ascending order, and where and how often each stands.

    Returns: values (1-D), the index in the flat x where each stands first, for each element of x
    the index of its value (of x's shape), and how often each value occurs.
    Example:
        >>> import funct.array as xp
        >>> values, indices, inverse, counts = xp.unique_all(xp.asarray([3, 1, 3]))
        >>> values.tolist(), indices.tolist(), inverse.tolist(), counts.tolist()
        ([1, 3], [1, 0], [1, 0, 1], [1, 2])

    Source: Array API 2025.12 `unique_all`.
    """
    x = as_tensor("unique_all", x)
    values, first, inverse, counts = _distinct(x, inverse=True, counts=True)
    return UniqueAll(values, first, reshape(inverse, x.shape), counts)


def _distinct(x: Any, *, inverse: bool = False, counts: bool = False) -> list[Any]:
    """The distinct elements, where each stands first, and what else is asked for."""
    flat = reshape(x, (-1,))
    raw = flat.concrete()
    raw = raw.astype(np.float32) if raw.dtype in NARROW else raw  # NumPy cannot sort those
    places = [wrap(v) for v in distinct.distinct(raw, inverse, counts)]
    return [ops.take(flat, places[0], 0), *places]


@direct(kernels.unique_counts, gives=UniqueCounts._make)
def unique_counts(x: Any, /) -> UniqueCounts:
    """The distinct elements of x in ascending order, and how often each occurs.

    Example:
        >>> import funct.array as xp
        >>> values, counts = xp.unique_counts(xp.asarray([3, 1, 3]))
        >>> values.tolist(), counts.tolist()
        ([1, 3], [1, 2])
    """
    x = as_tensor("unique_counts", x)
    values, _, counts = _distinct(x, counts=True)
    return UniqueCounts(values, counts)


@direct(kernels.unique_inverse, gives=UniqueInverse._make)
def unique_inverse(x: Any, /) -> UniqueInverse:
    """The distinct elements of x in ascending order, and the indices that give x from them.

    Example:
        >>> import funct.array as xp
        >>> values, inverse = xp.unique_inverse(xp.asarray([3, 1, 3]))
        >>> inverse.tolist(), values[inverse].tolist()
        ([1, 0, 1], [3, 1, 3])
    """
    x = as_tensor("unique_inverse", x)
    values, _, inverse = _distinct(x, inverse=True)
    return UniqueInverse(values, reshape(inverse, x.shape))


@direct(kernels.unique_values)
def unique_values(x: Any, /) -> Any:
    """The distinct elements of x in ascending order; each takes the derivative of its first.

    Example:
        >>> import funct.array as xp
        >>> xp.unique_values(xp.asarray([3, 1, 3])).tolist()
        [1, 3]
    """
    x = as_tensor("unique_values", x)
    if x.__class__ is Array and x.dtype not in NARROW:
        return wrap(distinct.distinct_values(x.data.reshape(-1)))
    return _distinct(x)[0]


@direct(kernels.isin, arrays=2)
def isin(x1: Any, x2: Any, /, *, invert: bool = False) -> Any:
    """Whether each element of x1 equals some element of x2; NaN equals none. invert: whether not.

    Either may be a Python number. The shape is x1's; no value is asked for.
    Example:
        >>> import funct.array as xp
        >>> xp.isin(xp.asarray([1, 2, 5]), xp.asarray([5, 1])).tolist()
        [True, False, True]

    Source: Array API 2025.12 `isin`.
    """
    x1, x2 = compared(x1, x2)
    pool = ops.sort(reshape(x2, (-1,)), 0, False)
    if pool.shape[0] == 0:
        found = full(x1.shape, False)
    else:
        at = ops.minimum(ops.searchsorted(pool, x1, "left"), ops.length_along(pool, 0) - 1)
        found = ops.equal(ops.take(pool, at, 0), x1)
    return ops.logical_not(found) if invert else found


@direct(composed.union1d, arrays=2)
def union1d(x1: Any, x2: Any, /) -> Any:
    """The distinct elements of x1 and x2 together, in ascending order.

    Example:
        >>> import funct.array as xp
        >>> xp.union1d(xp.asarray([3, 1]), xp.asarray([2, 3])).tolist()
        [1, 2, 3]

    Source: NumPy `union1d`.
    """
    return unique_values(joined([reshape(x, (-1,)) for x in both(x1, x2)], 0))


@direct(composed.intersect1d, arrays=2)
def intersect1d(x1: Any, x2: Any, /) -> Any:
    """The distinct elements that x1 and x2 share, in ascending order.

    Example:
        >>> import funct.array as xp
        >>> xp.intersect1d(xp.asarray([3, 1, 1]), xp.asarray([1, 3, 2])).tolist()
        [1, 3]

    Source: NumPy `intersect1d`.
    """
    x1, x2 = both(x1, x2)
    values = unique_values(x1)
    return values[isin(values, x2)]


@direct(composed.setdiff1d, arrays=2)
def setdiff1d(x1: Any, x2: Any, /) -> Any:
    """The distinct elements of x1 that x2 has not, in ascending order.

    Example:
        >>> import funct.array as xp
        >>> xp.setdiff1d(xp.asarray([3, 1, 2]), xp.asarray([1])).tolist()
        [2, 3]

    Source: NumPy `setdiff1d`.
    """
    values = unique_values(asarray(x1))
    return values[isin(values, x2, invert=True)]


@direct(composed.setxor1d, arrays=2)
def setxor1d(x1: Any, x2: Any, /) -> Any:
    """The distinct elements that one of x1 and x2 has and the other has not, in ascending order.

    Example:
        >>> import funct.array as xp
        >>> xp.setxor1d(xp.asarray([3, 1, 2]), xp.asarray([1, 4])).tolist()
        [2, 3, 4]

    Source: NumPy `setxor1d`.
    """
    return union1d(setdiff1d(x1, x2), setdiff1d(x2, x1))
