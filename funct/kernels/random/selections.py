"""Orders, and elements of a population: what `funct.random` composes of words, bit for bit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from funct.kernels.cpu.loops import ready
from funct.kernels.cpu.random.bits import few_numbers
from funct.kernels.indexing.gather import take
from funct.kernels.order.bisection import searchsorted
from funct.kernels.random.bits import random_bits, random_unit
from funct.kernels.random.draws import FEW, SEVERAL, randint, wanted
from funct.kernels.random.orders import first, order
from funct.kernels.reductions.cumulative import cumulative_sum

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["choice", "permutation"]

_WORD, _DOUBLE = np.dtype(np.uint64), np.dtype(np.float64)


def permutation(
    key: Any, x: Any, axis: Any = 0, independent: Any = False, dtype: Any = None
) -> Any:
    """Numbers, or the slices of an array, in another order."""
    if axis.__class__ is not int or axis or independent is not False or dtype is not None:
        return None
    n = x if x.__class__ is int else x.shape[0]
    if wanted(key, n, SEVERAL) is None:
        return None
    at = order(_words(key, n))
    return at if x.__class__ is int else take(x, at, 0)


def choice(
    key: Any, a: Any, shape: Any = (), replace: Any = True, p: Any = None, axis: Any = 0,
    dtype: Any = None,
) -> Any:  # fmt: skip
    """Some elements of a population."""
    counted, found = a.__class__ is int, wanted(key, shape, SEVERAL)
    if found is None or axis.__class__ is not int or dtype is not None:
        return None
    shape, count = found
    if not counted:
        axis = axis if axis >= 0 else axis + a.ndim
    n = a if counted else a.shape[axis]
    if not count > 0 or not 0 < n < SEVERAL or (replace is False and count > n):
        return None
    if replace is True:
        at = _weighted(key, p, n, shape) if p is not None else randint(key, (shape, 0, n))
    else:
        at = first(_words(key, n), count) if replace is False and p is None else None
    if at is None:
        return None
    at = at if at.shape == shape else at.reshape(shape)
    return at if counted else take(a, at, axis)


def _words(key: Any, n: int) -> NDArray[Any]:
    """Of 64 bits, n of them."""
    few = 0 < n < FEW and ready(n)
    words: NDArray[Any] = (
        few_numbers(key, n, n, _WORD, "bits") if few else random_bits(key, (n,), 64)
    )
    return words


def _weighted(key: Any, p: Any, n: int, shape: Any) -> Any:
    """Indices below n, with weights of double precision."""
    if p.dtype is not _DOUBLE or p.shape != (n,):
        return None
    steps = cumulative_sum(p)
    u = np.asarray(random_unit(key, shape, _DOUBLE))
    np.subtract(1.0, u, u)  # on (0, 1]: never a weight of 0
    u *= steps[-1]
    return searchsorted(steps, u, "left")
