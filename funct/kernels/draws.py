"""Draws of a few numbers under one key: what `funct.random` composes of words, bit for bit."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from funct.kernels.dtypes import NAMED
from funct.kernels.random_bits import random_bits, random_normal, random_unit
from funct.kernels.random_bits import split as split_key

__all__ = [
    "bernoulli", "exponential", "normal", "permutation", "randint", "split", "uniform",
]  # fmt: skip

_FEW = 1 << 13  # what is larger is announced to the allocator, and sorted by machine code
_SORTED = 256
_WORD = np.dtype(np.uint32)
_DOUBLE = np.dtype(np.float64)
_FLOATS = {None: _DOUBLE} | {n: d for n, d in NAMED.items() if d.char in "fd"}
_INTEGERS = {None: np.dtype(np.int64)} | {n: d for n, d in NAMED.items() if d.kind in "iu"}


def _shape(key: Any, shape: Any) -> Any:
    """The shape as a tuple, if key is one key and little is asked for."""
    if shape.__class__ is int:
        shape = (shape,)
    if shape.__class__ is not tuple or key.dtype is not _WORD or key.shape != (2,):
        return None
    for n in shape:
        if n.__class__ is not int or n < 0:
            return None
    return shape if prod(shape) < _FEW else None


def split(key: Any, n: Any = 2) -> Any:
    """Independent keys."""
    return None if _shape(key, n if n.__class__ is int else None) is None else split_key(key, n)


def uniform(
    key: Any, shape: Any = (), dtype: Any = None, minval: Any = 0.0, maxval: Any = 1.0
) -> Any:
    """Uniform on [0, 1)."""
    shape, dtype = _shape(key, shape), _FLOATS.get(dtype)
    if shape is None or dtype is None or minval.__class__ is not float or minval != 0.0:
        return None
    return random_unit(key, shape, dtype) if maxval.__class__ is float and maxval == 1.0 else None


def normal(key: Any, shape: Any = (), dtype: Any = None) -> Any:
    """Standard normal."""
    shape, dtype = _shape(key, shape), _FLOATS.get(dtype)
    return None if shape is None or dtype is None else random_normal(key, shape, dtype)


def exponential(key: Any, shape: Any = (), dtype: Any = None) -> Any:
    """Exponential with rate 1."""
    u = uniform(key, shape, dtype)
    if u is None:
        return None
    least = 2.0**-24 if u.itemsize == 4 else 2.0**-53  # so that the logarithm is finite and not 0
    return -np.log(1.0 - np.maximum(u, least))


def bernoulli(key: Any, p: Any = 0.5, shape: Any = None) -> Any:
    """True with probability p."""
    if p.__class__ is not float:
        return None
    shape = _shape(key, () if shape is None else shape)
    return None if shape is None else np.less(random_unit(key, shape, _DOUBLE), p)


def randint(key: Any, shape: Any, minval: Any, maxval: Any, dtype: Any = None) -> Any:
    """Integers in [minval, maxval)."""
    shape, dtype = _shape(key, shape), _INTEGERS.get(dtype)
    if shape is None or dtype is None or not minval.__class__ is maxval.__class__ is int:
        return None
    # 2**(8 k - 1) is the first number that signed ones do not reach; unsigned ones reach it too
    if not 0 <= minval < maxval <= 1 << (8 * dtype.itemsize - 1):
        return None
    words = np.asarray(random_bits(key, shape, 64))
    words = np.remainder(words, np.asarray(maxval - minval, np.uint64))
    if minval:
        words = words + np.asarray(minval, np.uint64)
    return words.astype(dtype)


def permutation(key: Any, x: Any) -> Any:
    """Numbers, or the slices of an array, in another order."""
    n = x if x.__class__ is int else x.shape[0]
    shape = _shape(key, n)
    if shape is None or n >= _SORTED:
        return None
    order = random_bits(key, shape, 64).argsort(0, "stable")
    return order if x.__class__ is int else x.take(order, 0)
