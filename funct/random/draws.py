"""Keys and distributions. Default dtype float64, as everywhere."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from funct import ops
from funct.array import arange, argsort, asarray, iinfo
from funct.array.axes import common_shape, normal_axis, normal_shape
from funct.array.creation import how_many, served
from funct.array.direct import direct
from funct.array.dtypes import as_dtype
from funct.core import Value
from funct.errors import DTypeError, ShapeError
from funct.kernels.random import bits as kernels
from funct.kernels.random import draws
from funct.ops.counting import lifted
from funct.ops.fast import wrap

__all__ = [
    "bernoulli", "bits", "categorical", "choice", "exponential", "float_dtype", "fold_in", "gumbel",
    "key", "laplace", "normal", "open_unit", "permutation", "randint", "split", "uniform",
]  # fmt: skip


def key(seed: int) -> Any:
    """A key from an integer seed.

    Example:
        >>> import funct as ft
        >>> ft.random.key(7).tolist()
        [0, 7]
    """
    try:
        return wrap(kernels.seed(operator.index(seed)))
    except TypeError:
        raise DTypeError(f"random.key: seed must be an int, got {seed!r}") from None


def _known(key: Any) -> Any:
    """The key, if it is one."""
    array = isinstance(key, Value | np.ndarray)
    if not array or key.dtype != np.uint32 or not key.shape or key.shape[-1] != 2:
        got = f"{key.dtype} {tuple(key.shape)}" if array else type(key).__name__
        raise DTypeError(
            f"key must be one of random.key's, uint32 of shape (..., 2), got {got}",
            fix=f"random.key({key})" if isinstance(key, int) else "random.key(seed)",
        )
    return key


@direct(draws.split)
def split(key: Any, n: int = 2) -> Any:
    """n independent keys, as a batch: shape (n, 2)."""
    (n,) = normal_shape("random.split", (n,))
    return ops.random_split(_known(key), n)


def fold_in(key: Any, data: Any) -> Any:
    """A key from a key and an integer: one per step, say, without a chain of splits.

    As in JAX, fold_in(key, i) is split(key, n)[i]: use the one or the other on a key, not both.
    """
    data = data if isinstance(data, Value) else wrap(np.asarray(data, np.uint32))
    return ops.random_fold_in(_known(key), ops.astype(data, np.dtype(np.uint32)))


def _words(key: Any, shape: Any, width: int) -> Any:
    return served(ops.random_bits(lifted(_known(key), shape), shape, width))


def bits(key: Any, shape: Any = (), dtype: Any = None) -> Any:
    """Uniform unsigned integers; dtype uint8 … uint64, uint32 by default."""
    dtype = np.dtype(np.uint32 if dtype is None else dtype)
    if dtype.kind != "u":
        raise DTypeError(f"random.bits: dtype must be unsigned, got {dtype}")
    return _words(key, normal_shape("random.bits", shape), dtype.itemsize * 8)


def float_dtype(name: str, dtype: Any) -> np.dtype[Any]:
    """The dtype of floating draws, float64 by default."""
    dtype = as_dtype(f"random.{name}", np.float64 if dtype is None else dtype)
    if dtype not in (np.float64, np.float32):
        raise DTypeError(f"random.{name}: dtype must be float32 or float64, got {dtype}")
    return dtype


def _unit(key: Any, shape: Any, dtype: np.dtype[Any], name: str) -> Any:
    """Uniform on [0, 1): the high bits as an integer, scaled exactly."""
    shape = normal_shape(f"random.{name}", shape)
    return served(ops.random_unit(lifted(_known(key), shape), shape, dtype))


@direct(draws.uniform)
def uniform(
    key: Any, shape: Any = (), dtype: Any = None, minval: Any = 0.0, maxval: Any = 1.0
) -> Any:
    """Uniform on [minval, maxval)."""
    dtype = float_dtype("uniform", dtype)
    u = _unit(key, shape, dtype, "uniform")
    if isinstance(minval, float) and isinstance(maxval, float) and (minval, maxval) == (0.0, 1.0):
        return u
    low, high = (ops.astype(asarray(v), dtype) for v in (minval, maxval))
    x = u * (high - low) + low
    below = ops.nextafter(ops.stop_gradient(high), ops.stop_gradient(low))
    return ops.where(ops.less(x, high), x, below)  # rounding may reach maxval


def open_unit(key: Any, shape: Any, dtype: np.dtype[Any], name: str) -> Any:
    """Uniform on (0, 1): never 0 nor 1, so that its logarithm is finite and not 0."""
    least = 2.0**-24 if dtype.itemsize == 4 else 2.0**-53  # stands for 0 too
    return 1.0 - ops.maximum(_unit(key, shape, dtype, name), least)


@direct(draws.normal)
def normal(key: Any, shape: Any = (), dtype: Any = None) -> Any:
    """Standard normal, by inversion of its distribution function: one word gives one number."""
    dtype = float_dtype("normal", dtype)
    shape = normal_shape("random.normal", shape)
    return served(ops.random_normal(lifted(_known(key), shape), shape, dtype))


@direct(draws.bernoulli)
def bernoulli(key: Any, p: Any = 0.5, shape: Any = None) -> Any:
    """True with probability p; shape is p's by default, else one that p broadcasts to."""
    p = asarray(p)
    shape = p.shape if shape is None else normal_shape("random.bernoulli", shape)
    if common_shape("random.bernoulli", p.shape, shape) != shape:
        raise ShapeError(f"random.bernoulli: p of shape {p.shape} does not broadcast to {shape}")
    return ops.less(_unit(key, shape, np.dtype(np.float64), "bernoulli"), p)


@direct(draws.exponential)
def exponential(key: Any, shape: Any = (), dtype: Any = None) -> Any:
    """Exponential with rate 1."""
    return -ops.log(open_unit(key, shape, float_dtype("exponential", dtype), "exponential"))


def gumbel(key: Any, shape: Any = (), dtype: Any = None) -> Any:
    """Standard Gumbel."""
    return -ops.log(exponential(key, shape, float_dtype("gumbel", dtype)))


def laplace(key: Any, shape: Any = (), dtype: Any = None) -> Any:
    """Standard Laplace."""
    dtype = float_dtype("laplace", dtype)
    first, second = split(key)
    sign = ops.where(bernoulli(first, 0.5, shape), 1.0, wrap(np.asarray(-1.0, dtype)))
    return sign * exponential(second, shape, dtype)


@direct(draws.randint)
def randint(key: Any, shape: Any, minval: int, maxval: int, dtype: Any = None) -> Any:
    """Integers in [minval, maxval), int64 by default.

    The probabilities of two elements differ by at most 2**-64.
    """
    low, high = operator.index(minval), operator.index(maxval)
    if high <= low:
        raise ShapeError(f"random.randint: maxval must exceed minval, got {minval} and {maxval}")
    limits = iinfo(np.dtype(np.int64 if dtype is None else dtype))
    if low < limits.min or high - 1 > limits.max:
        raise DTypeError(
            f"random.randint: [{minval}, {maxval}) must fit the dtype, got {limits.dtype}"
        )
    words = _words(key, normal_shape("random.randint", shape), 64)
    if high - low < 2**64:
        words = ops.remainder(words, _word(high - low))
    return ops.astype(words + _word(low), limits.dtype)  # modulo 2**64, negative numbers too


def _word(n: int) -> Any:
    return wrap(np.asarray(n % 2**64, np.uint64))


def _population(name: str, argument: str, x: Any) -> Any:
    whole = isinstance(x, int | np.integer)
    x = arange(how_many(f"random.{name}", argument, x)) if whole else asarray(x)
    if not x.shape:
        raise ShapeError(f"random.{name}: {argument} must have an axis, got a 0-d array")
    return x


@direct(draws.permutation, maybe=("x",))
def permutation(key: Any, x: Any) -> Any:
    """x shuffled along its first axis; an int n stands for arange(n)."""
    x = _population("permutation", "x", x)
    words = _words(key, (x.shape[0],), 64)
    return ops.take(x, argsort(words), 0)


def choice(key: Any, a: Any, shape: Any = (), replace: bool = True) -> Any:
    """Elements of a along its first axis; an int n stands for arange(n)."""
    a = _population("choice", "a", a)
    shape = normal_shape("random.choice", shape)
    if replace:
        return ops.take(a, randint(key, shape, 0, int(a.shape[0])), 0)
    n = math.prod(shape)
    if n > a.shape[0]:
        raise ShapeError(f"random.choice: {n} elements of {a.shape[0]} need replace=True")
    picked = permutation(key, a)[:n]
    return ops.reshape(picked, (*shape, *a.shape[1:]))


def categorical(key: Any, logits: Any, axis: int = -1, shape: Any = None) -> Any:
    """Indices along axis with probabilities softmax(logits): arg-max of logits + Gumbel noise."""
    k = normal_axis("random.categorical", axis, len(logits.shape))
    rest = (*logits.shape[:k], *logits.shape[k + 1 :])
    full = rest if shape is None else normal_shape("random.categorical", shape)
    lead = full[: len(full) - len(rest)]
    if (*lead, *rest) != full:
        raise ShapeError(f"random.categorical: shape must end in {rest}, got {full}")
    kind = logits.dtype if logits.dtype == np.float64 else np.dtype(np.float32)
    noise = gumbel(key, (*lead, *logits.shape), kind)
    return ops.argmax(ops.astype(logits, kind) + noise, k + len(lead), False)
