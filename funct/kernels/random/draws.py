"""Draws of a few numbers under one key: what `funct.random` composes of words, bit for bit."""

from __future__ import annotations

import functools
from typing import Any

import ml_dtypes
import numpy as np

from funct.kernels.cpu.loops import ready
from funct.kernels.cpu.random.bits import few_numbers, numbers, of_one_key
from funct.kernels.dtypes import NAMED
from funct.kernels.elementwise.casting import in_dtype
from funct.kernels.random.bits import fold_in as fold_key
from funct.kernels.random.bits import (
    random_bits,
    random_exponential,
    random_gumbel,
    random_normal,
    random_unit,
)
from funct.kernels.random.bits import split as split_key
from funct.kernels.random.rejection import random_gamma, random_poisson
from funct.kernels.random.shares import share, shares

__all__ = [
    "FEW", "MANY_NUMBERS", "SEVERAL", "bernoulli", "beta", "dirichlet", "exponential", "fold_in",
    "gamma", "gumbel", "laplace", "normal", "poisson", "randint", "split", "uniform", "wanted",
]  # fmt: skip

FEW = 1 << 13  # what is larger is announced to the allocator, and sorted by machine code
SEVERAL = 1 << 24  # elements of a result that every machine has room for
_WORD, _SINGLE = np.dtype(np.uint32), np.dtype(np.float32)
_TRUTH = np.dtype(bool)
MANY_NUMBERS = 1 << 32  # from which on one word is not enough to draw one of them
_REAL = frozenset((int, float))
_WITHIN = 1e30  # limits whose difference is a float32 too
_LARGE = 1 << 63  # what machine code takes as a number is below
_DOUBLE = np.dtype(np.float64)
_UNSET = ()
_KEY = (2,)
_MANY = {
    "unit": random_unit, "normal": random_normal, "exponential": random_exponential,
    "gumbel": random_gumbel,
}  # fmt: skip
_FLOATS = {None: _DOUBLE} | {n: d for n, d in NAMED.items() if d.char in "fd"}
_HALVES = {
    name: d for d in map(np.dtype, (np.float16, ml_dtypes.bfloat16)) for name in (d, d.type, d.name)
}
# the largest numbers below 1
_BELOW_ONE = {
    d: np.nextafter(np.ones((), d), np.zeros((), d)).astype(np.float32) for d in _HALVES.values()
}
_NAMES = {None: np.dtype(np.int64)} | {n: d for n, d in NAMED.items() if d.kind in "iu"}
# 2**(8 k - 1) is the first number that signed ones do not reach; unsigned ones reach it too
_INTEGERS = {n: (d, 1 << (8 * d.itemsize - 1)) for n, d in _NAMES.items()}


def wanted(key: Any, shape: Any, beyond: int = FEW) -> Any:
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
    """Uniform, normal, exponential or Gumbel numbers."""
    found = wanted(key, shape)
    if found is None or dtype is None:
        return None
    shape, n = found
    if n and ready(n):
        return few_numbers(key, shape, n, dtype, kind)
    return _MANY[kind](key, shape, dtype)


def split(key: Any, n: Any = 2) -> Any:
    """Independent keys."""
    return None if wanted(key, n if n.__class__ is int else None) is None else split_key(key, n)


def fold_in(key: Any, data: Any) -> Any:
    """The key that belongs to an integer, or those that belong to an array of them."""
    if key.dtype is not _WORD or key.shape != _KEY:
        return None
    kind = type(data)  # an open number says that its class is int
    if kind is int:
        return fold_key(key, data) if 0 <= data < MANY_NUMBERS else None
    return fold_key(key, data) if kind is np.ndarray and data.dtype.kind in "iu" else None


def _rounded(key: Any, shape: Any, dtype: Any, kind: str) -> Any:
    """The same in 16 bits: drawn in float32, and rounded once."""
    half = _HALVES.get(dtype)
    wide = None if half is None else _numbers(key, shape, _SINGLE, kind)
    if half is None or wide is None:
        return None
    if kind == "unit":
        np.minimum(wide, _BELOW_ONE[half], out=wide)  # or rounding would reach 1
    return in_dtype(wide, half)


def _drawn(key: Any, shape: Any, dtype: Any, kind: str) -> Any:
    """The same in any dtype of floats."""
    made = _numbers(key, shape, _FLOATS.get(dtype), kind)
    return _rounded(key, shape, dtype, kind) if made is None else made


@functools.lru_cache(256)
def _between(dtype: Any, low: float, high: float) -> tuple[Any, Any, Any]:
    """The first number of a dtype between limits, their distance, and the last number."""
    start, end = dtype.type(low), dtype.type(high)
    if start >= end:
        raise ValueError(f"{low} and {high} are one number of {dtype}")
    return np.asarray(start), np.asarray(end - start), np.asarray(np.nextafter(end, start))


def uniform(
    key: Any, shape: Any = (), dtype: Any = None, minval: Any = 0.0, maxval: Any = 1.0
) -> Any:
    """Uniform on [minval, maxval)."""
    if minval.__class__ is maxval.__class__ is float and minval == 0.0 and maxval == 1.0:
        return _drawn(key, shape, dtype, "unit")
    if not ({minval.__class__, maxval.__class__} <= _REAL and minval > -_WITHIN):
        return None
    if not minval < maxval < _WITHIN:  # nor is NaN
        return None
    dtype = _FLOATS.get(dtype)
    x = _numbers(key, shape, dtype, "unit")
    if x is None:
        return None
    start, length, last = _between(dtype, minval, maxval)
    np.multiply(x, length, x)
    np.add(x, start, x)
    return np.minimum(x, last, out=x)  # rounding may reach maxval


def normal(key: Any, shape: Any = (), dtype: Any = None) -> Any:
    """Standard normal."""
    return _drawn(key, shape, dtype, "normal")


def exponential(key: Any, shape: Any = (), dtype: Any = None) -> Any:
    """Exponential with rate 1."""
    return _drawn(key, shape, dtype, "exponential")


def gumbel(key: Any, shape: Any = (), dtype: Any = None) -> Any:
    """Standard Gumbel."""
    return _drawn(key, shape, dtype, "gumbel")


def laplace(key: Any, shape: Any = (), dtype: Any = None) -> Any:
    """Standard Laplace: exponential numbers with a sign, each of a key of its own."""
    found = wanted(key, shape, SEVERAL)
    wide = _FLOATS.get(dtype) or (_SINGLE if dtype in _HALVES else None)
    if found is None or wide is None:
        return None
    (shape, n), keys = found, split_key(key, 2)
    if n and ready(n):
        x = of_one_key(keys[::-1].reshape(4), shape, n, wide, "laplace")
    else:
        x = random_exponential(keys[1], shape, wide)
        x = np.where(random_unit(keys[0], shape, _DOUBLE) < 0.5, x, np.negative(x))
    return x if dtype not in _HALVES else in_dtype(x, _HALVES[dtype])


def bernoulli(key: Any, p: Any = 0.5, shape: Any = None, dtype: Any = None) -> Any:
    """True with probability p."""
    if dtype is not None:
        return None
    if p.__class__ is np.ndarray:
        u = _numbers(key, p.shape, _DOUBLE, "unit") if p.dtype.char in "fd" else None
        return None if u is None or shape not in (None, p.shape) else np.less(u, p)
    found = wanted(key, () if shape is None else shape)
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
    """Integers in [minval, maxval). limits: (shape, minval, maxval), or with dtype, (minval,
    maxval), or with shape, or with both, or ().
    """
    if limits:
        if shape is not _UNSET or minval is not None or maxval is not None:
            return None
        if len(limits) == 4 and dtype is None:
            *limits, dtype = limits
        first, *others = limits
        if first.__class__ is tuple:
            shape, (minval, maxval) = first, others
        else:
            minval, maxval, shape = (first, *others, shape)[:3]
    if shape.__class__ is not tuple or not minval.__class__ is maxval.__class__ is int:
        return None
    found, (dtype, beyond) = wanted(key, shape, SEVERAL), _INTEGERS[dtype]
    if found is None or not 0 <= minval < maxval <= beyond or maxval - minval > MANY_NUMBERS:
        return None
    shape, n = found
    if n and ready(n) and maxval < _LARGE:
        return numbers(key, shape, dtype, "integers", float(maxval - minval), minval)
    if n >= FEW:
        return None
    words = np.asarray(random_bits(key, shape, 64))
    words = np.remainder(words, np.asarray(maxval - minval, np.uint64))
    if minval:
        words = words + np.asarray(minval, np.uint64)
    return words.astype(dtype)


def _parameter(key: Any, a: Any, shape: Any) -> Any:
    """A number, or an array of doubles, as an array; and the shape of few draws. Else None, which
    cannot be unpacked.
    """
    if a.__class__ is float or a.__class__ is int:
        a = np.asarray(a, _DOUBLE)
    elif a.dtype is not _DOUBLE:
        return None
    found = wanted(key, a.shape if shape is None else shape)
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
    found, dtype = wanted(key, (*(shape or ()), alpha.size)), _FLOATS[dtype]
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
