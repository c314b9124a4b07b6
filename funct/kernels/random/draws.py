"""Draws of a few numbers under one key: what `funct.random` composes of words, bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np

from funct.kernels.cpu.loops import ready
from funct.kernels.cpu.random.bits import few_numbers, numbers
from funct.kernels.dtypes import NAMED
from funct.kernels.indexing.gather import take
from funct.kernels.random.bits import fold_in as fold_key
from funct.kernels.random.bits import (
    random_bits,
    random_exponential,
    random_normal,
    random_unit,
)
from funct.kernels.random.bits import split as split_key
from funct.kernels.random.orders import order
from funct.kernels.random.rejection import random_gamma, random_poisson
from funct.kernels.random.shares import share, shares

__all__ = [
    "MANY_NUMBERS", "bernoulli", "beta", "dirichlet", "exponential", "fold_in", "gamma",
    "normal", "permutation", "poisson", "randint", "split", "uniform",
]  # fmt: skip

_FEW = 1 << 13  # what is larger is announced to the allocator, and sorted by machine code
_SEVERAL = 1 << 24  # elements of a result that every machine has room for
_WORD = np.dtype(np.uint32)
_LONG, _TRUTH = np.dtype(np.uint64), np.dtype(bool)
MANY_NUMBERS = 1 << 32  # from which on one word is not enough to draw one of them
_LARGE = 1 << 63  # what machine code takes as a number is below
_DOUBLE = np.dtype(np.float64)
_UNSET = ()
_KEY = (2,)
_MANY = {"unit": random_unit, "normal": random_normal, "exponential": random_exponential}
_FLOATS = {None: _DOUBLE} | {n: d for n, d in NAMED.items() if d.char in "fd"}
_NAMES = {None: np.dtype(np.int64)} | {n: d for n, d in NAMED.items() if d.kind in "iu"}
# 2**(8 k - 1) is the first number that signed ones do not reach; unsigned ones reach it too
_INTEGERS = {n: (d, 1 << (8 * d.itemsize - 1)) for n, d in _NAMES.items()}


def _shape(key: Any, shape: Any, beyond: int = _FEW) -> Any:
    """The shape as a tuple, and its elements, if key is one key and little is asked for: less
    elements than `beyond`.
    """
    if key.dtype is not _WORD or key.ndim != 1 or len(key) != 2:
        return None
    if shape.__class__ is int:
        return ((shape,), shape) if 0 <= shape < beyond else None
    if shape.__class__ is not tuple:
        return None
    count = 1
    for n in shape:
        if n.__class__ is not int or n < 0:
            return None
        count = n if count == 1 else count * n
    return (shape, count) if count < beyond else None


def _numbers(key: Any, shape: Any, dtype: Any, kind: str) -> Any:
    """Uniform, normal or exponential numbers."""
    found = _shape(key, shape)
    if found is None or dtype is None:
        return None
    shape, n = found
    if n and ready(n):
        return few_numbers(key, shape, n, dtype, kind)
    return _MANY[kind](key, shape, dtype)


def split(key: Any, n: Any = 2) -> Any:
    """Independent keys."""
    return None if _shape(key, n if n.__class__ is int else None) is None else split_key(key, n)


def fold_in(key: Any, data: Any) -> Any:
    """The key that belongs to an integer, or those that belong to an array of them."""
    if key.dtype is not _WORD or key.shape != _KEY:
        return None
    kind = type(data)  # an open number says that its class is int
    if kind is int:
        return fold_key(key, data) if 0 <= data < MANY_NUMBERS else None
    return fold_key(key, data) if kind is np.ndarray and data.dtype.kind in "iu" else None


def uniform(
    key: Any, shape: Any = (), dtype: Any = None, minval: Any = 0.0, maxval: Any = 1.0
) -> Any:
    """Uniform on [0, 1)."""
    if not minval.__class__ is maxval.__class__ is float or minval != 0.0 or maxval != 1.0:
        return None
    return _numbers(key, shape, _FLOATS.get(dtype), "unit")


def normal(key: Any, shape: Any = (), dtype: Any = None) -> Any:
    """Standard normal."""
    return _numbers(key, shape, _FLOATS.get(dtype), "normal")


def exponential(key: Any, shape: Any = (), dtype: Any = None) -> Any:
    """Exponential with rate 1."""
    return _numbers(key, shape, _FLOATS.get(dtype), "exponential")


def bernoulli(key: Any, p: Any = 0.5, shape: Any = None, dtype: Any = None) -> Any:
    """True with probability p."""
    if dtype is not None:
        return None
    found = _shape(key, () if shape is None else shape)
    if p.__class__ is not float or found is None:
        return None
    shape, n = found
    if n and ready(n):
        return few_numbers(key, shape, n, _TRUTH, "below", p)
    return np.less(random_unit(key, shape, _DOUBLE), p)


def randint(
    key: Any, limits: Any, shape: Any = (), minval: Any = None, maxval: Any = None,
    dtype: Any = None,
) -> Any:  # fmt: skip
    """Integers in [minval, maxval). limits: (shape, minval, maxval), (minval, maxval) or ()."""
    if limits:
        if shape is not _UNSET or minval is not None or maxval is not None:
            return None
        shape, minval, maxval = limits if len(limits) == 3 else (shape, *limits)
    if shape.__class__ is not tuple or not minval.__class__ is maxval.__class__ is int:
        return None
    found, (dtype, beyond) = _shape(key, shape, _SEVERAL), _INTEGERS[dtype]
    if found is None or not 0 <= minval < maxval <= beyond or maxval - minval > MANY_NUMBERS:
        return None
    shape, n = found
    if n and ready(n) and maxval < _LARGE:
        return numbers(key, shape, dtype, "integers", float(maxval - minval), minval)
    if n >= _FEW:
        return None
    words = np.asarray(random_bits(key, shape, 64))
    words = np.remainder(words, np.asarray(maxval - minval, np.uint64))
    if minval:
        words = words + np.asarray(minval, np.uint64)
    return words.astype(dtype)


def permutation(
    key: Any, x: Any, axis: Any = 0, independent: Any = False, dtype: Any = None
) -> Any:
    """Numbers, or the slices of an array, in another order."""
    if axis.__class__ is not int or axis or independent is not False or dtype is not None:
        return None
    n = x if x.__class__ is int else x.shape[0]
    if key.dtype is not _WORD or key.ndim != 1 or len(key) != 2 or not 0 <= n < _SEVERAL:
        return None
    few = 0 < n < _FEW and ready(n)
    words = few_numbers(key, n, n, _LONG, "bits") if few else random_bits(key, (n,), 64)
    at = order(words)
    return at if x.__class__ is int else take(x, at, 0)


def _parameter(key: Any, a: Any, shape: Any) -> Any:
    """A number, or an array of doubles, as an array; and the shape of few draws. Else None, which
    cannot be unpacked.
    """
    if a.__class__ is float or a.__class__ is int:
        a = np.asarray(a, _DOUBLE)
    elif a.dtype is not _DOUBLE:
        return None
    found = _shape(key, a.shape if shape is None else shape)
    if found is None or (a.shape and a.shape != found[0]):
        return None
    return a, found[0]


def gamma(key: Any, a: Any, shape: Any = None, dtype: Any = None) -> Any:
    """Gamma numbers with scale 1."""
    a, full = _parameter(key, a, shape)
    return random_gamma(key, a, full, _FLOATS[dtype], False, False)


def beta(key: Any, a: Any, b: Any, shape: Any = None, dtype: Any = None) -> Any:
    """Beta numbers, of parameters of one shape."""
    (a, full), (b, other) = _parameter(key, a, shape), _parameter(key, b, shape)
    if full != other:
        return None
    x = random_gamma(key, a, full, _DOUBLE, True, False)
    y = random_gamma(key, b, full, _DOUBLE, True, True)
    dtype, made = _FLOATS[dtype], share(x - y)
    return made if dtype is _DOUBLE else made.astype(dtype)


def dirichlet(key: Any, alpha: Any, shape: Any = None, dtype: Any = None) -> Any:
    """Points of one Dirichlet distribution."""
    if alpha.dtype is not _DOUBLE or alpha.ndim != 1:
        return None
    found, dtype = _shape(key, (*(shape or ()), alpha.size)), _FLOATS[dtype]
    if found is None:
        return None
    every = np.empty(found[0])
    every[...] = alpha
    logs = random_gamma(key, every, found[0], _DOUBLE, True, False)
    made = shares(logs)
    return made if dtype is _DOUBLE else made.astype(dtype)


def poisson(key: Any, lam: Any, shape: Any = None, dtype: Any = None) -> Any:
    """Counts with mean lam."""
    lam, full = _parameter(key, lam, shape)
    return random_poisson(key, lam, full, _INTEGERS[dtype][0])
