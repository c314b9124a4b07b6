"""Distributions without parameters, or with a range. Default dtype float64, as everywhere."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from funct import ops
from funct.array import Array, asarray, finfo, iinfo
from funct.array.axes import common_shape, normal_shape
from funct.array.creation import served
from funct.array.direct import direct
from funct.array.dtypes import as_dtype
from funct.core import Value
from funct.errors import DTypeError, ShapeError, SignatureError
from funct.kernels.random import draws
from funct.ops.counting import lifted
from funct.ops.fast import wrap
from funct.random.keys import drawn_in, float_dtype, integer_dtype, known, rounded, split, words

__all__ = [
    "bernoulli", "exponential", "gumbel", "laplace", "normal", "open_unit", "randint", "uniform",
]  # fmt: skip

_WORD = np.dtype(np.uint64)


def _numbers(op: Any, key: Any, shape: Any, dtype: np.dtype[Any], name: str) -> Any:
    """What an op makes of words, a number of each."""
    shape = normal_shape(f"random.{name}", shape)
    return served(op(lifted(known(key), shape), shape, dtype))


def _unit(key: Any, shape: Any, dtype: np.dtype[Any], name: str) -> Any:
    """Uniform on [0, 1): the high bits as an integer, scaled exactly."""
    return _numbers(ops.random_unit, key, shape, dtype, name)


@direct(draws.uniform)
def uniform(
    key: Any, shape: Any = (), dtype: Any = None, minval: Any = 0.0, maxval: Any = 1.0
) -> Any:
    """Draw uniform numbers on [minval, maxval).

    Args:    key: uint32, shape (..., 2). shape: an int, a tuple or a list. dtype: float16,
             bfloat16, float32 or float64. minval, maxval: numbers or arrays that broadcast to
             (..., *shape).
    Returns: shape (..., *shape).
    Raises:  DTypeError: when dtype is another one, or key none. ShapeError: when shapes do not fit.
    Notes:   differentiable in minval and maxval.
    Example:
        >>> import funct as ft
        >>> x = ft.random.uniform(ft.random.key(7), (2, 3), minval=-1.0)
        >>> x.shape, bool((x >= -1).all() and (x < 1).all())
        ((2, 3), True)

    Source: jax.random.uniform.
    """
    dtype = float_dtype("uniform", dtype)
    wide = drawn_in(dtype)
    u = _unit(key, shape, wide, "uniform")
    plain = isinstance(minval, float) and isinstance(maxval, float) and wide == dtype
    if plain and (minval, maxval) == (0.0, 1.0):
        return u
    low, high = (ops.astype(asarray(v), dtype) for v in (minval, maxval))
    start, end = (low, high) if wide == dtype else [ops.astype(v, wide) for v in (low, high)]
    scale = _scale(minval, maxval, start, end)
    if scale is None:
        x = u * (end - start) + start
    else:  # by powers of two, which change no bits
        x = u * (end * scale - start * scale) + start * scale
        x = ops.minimum(x, end * scale) / scale
    x = rounded(x, dtype)
    below = ops.nextafter(ops.stop_gradient(high), ops.stop_gradient(low))
    if wide != dtype:  # of 16 bits so many reach it that the derivative in maxval counts
        below = below + (high - ops.stop_gradient(high))
    return ops.where(ops.less(x, high), x, below)  # rounding may reach maxval


def _scale(minval: Any, maxval: Any, low: Any, high: Any) -> Any:
    """1, or 1/2 where their difference is beyond the largest number; None: it is so nowhere.

    low, high: the limits as arrays.
    """
    most = 0.5 * float(finfo(low.dtype).max)
    if isinstance(minval, int | float) and isinstance(maxval, int | float):
        fits: Any = abs(maxval * 0.5 - minval * 0.5) <= most
        return None if fits else wrap(np.asarray(0.5, low.dtype))
    fits = ops.less_equal(ops.abs(high * 0.5 - low * 0.5), most)
    if isinstance(fits, Array) and fits.data.all():
        return None
    return ops.astype(ops.where(fits, 1.0, 0.5), low.dtype)


def open_unit(key: Any, shape: Any, dtype: np.dtype[Any], name: str) -> Any:
    """Uniform on (0, 1): never 0 nor 1, so that its logarithm is finite and not 0."""
    least = 2.0**-24 if dtype.itemsize == 4 else 2.0**-53  # stands for 0 too
    return 1.0 - ops.maximum(_unit(key, shape, dtype, name), least)


@direct(draws.normal)
def normal(key: Any, shape: Any = (), dtype: Any = None) -> Any:
    """Draw standard normal numbers, by inversion: one word gives one number.

    Args:    key: uint32, shape (..., 2). shape: an int, a tuple or a list. dtype: float16,
             bfloat16, float32 or float64.
    Returns: shape (..., *shape).
    Raises:  DTypeError: when dtype is another one, or key none.
    Example:
        >>> import funct as ft
        >>> ft.random.normal(ft.random.key(7), (2, 3)).shape
        (2, 3)

    Source: jax.random.normal; Wichura 1988, AS 241.
    """
    dtype = float_dtype("normal", dtype)
    return rounded(_numbers(ops.random_normal, key, shape, drawn_in(dtype), "normal"), dtype)


@direct(draws.bernoulli, maybe=("p",))
def bernoulli(key: Any, p: Any = 0.5, shape: Any = None, dtype: Any = None) -> Any:
    """Draw True with probability p.

    Args:    key: uint32, shape (..., 2). p: a number or an array that broadcasts to shape.
             shape: p's by default. dtype: bool by default; others get 0 and 1.
    Returns: shape (..., *shape).
    Raises:  ShapeError: when p does not broadcast to shape. DTypeError: when dtype or key is none.
    Notes:   p <= 0 and NaN never give True, p >= 1 always does.
    Example:
        >>> import funct as ft
        >>> ft.random.bernoulli(ft.random.key(7), 1.0, (3,), "int8").tolist()
        [1, 1, 1]

    Source: jax.random.bernoulli.
    """
    p = asarray(p)
    shape = p.shape if shape is None else normal_shape("random.bernoulli", shape)
    if common_shape("random.bernoulli", p.shape, shape) != shape:
        raise ShapeError(f"random.bernoulli: p of shape {p.shape} does not broadcast to {shape}")
    drawn = ops.less(_unit(key, shape, np.dtype(np.float64), "bernoulli"), p)
    return drawn if dtype is None else ops.astype(drawn, as_dtype("random.bernoulli", dtype))


@direct(draws.exponential)
def exponential(key: Any, shape: Any = (), dtype: Any = None) -> Any:
    """Draw exponential numbers with rate 1: finite, and never 0.

    Args:    key: uint32, shape (..., 2). shape: an int, a tuple or a list. dtype: float16,
             bfloat16, float32 or float64.
    Returns: shape (..., *shape).
    Raises:  DTypeError: when dtype is another one, or key none.
    Example:
        >>> import funct as ft
        >>> bool((ft.random.exponential(ft.random.key(7), (3,)) > 0).all())
        True

    Source: jax.random.exponential.
    """
    dtype = float_dtype("exponential", dtype)
    x = _numbers(ops.random_exponential, key, shape, drawn_in(dtype), "exponential")
    return rounded(x, dtype)


@direct(draws.gumbel)
def gumbel(key: Any, shape: Any = (), dtype: Any = None) -> Any:
    """Draw standard Gumbel numbers: -log of exponential ones.

    Args:    key: uint32, shape (..., 2). shape: an int, a tuple or a list. dtype: float16,
             bfloat16, float32 or float64.
    Returns: shape (..., *shape).
    Raises:  DTypeError: when dtype is another one, or key none.
    Example:
        >>> import funct as ft
        >>> ft.random.gumbel(ft.random.key(7), (3,)).shape
        (3,)

    Source: jax.random.gumbel.
    """
    dtype = float_dtype("gumbel", dtype)
    return rounded(_numbers(ops.random_gumbel, key, shape, drawn_in(dtype), "gumbel"), dtype)


@direct(draws.laplace)
def laplace(key: Any, shape: Any = (), dtype: Any = None) -> Any:
    """Draw standard Laplace numbers: exponential ones with a sign.

    Args:    key: uint32, shape (..., 2). shape: an int, a tuple or a list. dtype: float16,
             bfloat16, float32 or float64.
    Returns: shape (..., *shape).
    Raises:  DTypeError: when dtype is another one, or key none.
    Example:
        >>> import funct as ft
        >>> ft.random.laplace(ft.random.key(7), (3,)).shape
        (3,)

    Source: jax.random.laplace.
    """
    dtype = float_dtype("laplace", dtype)
    first, second = split(key)
    sign = ops.where(bernoulli(first, 0.5, shape), 1.0, wrap(np.asarray(-1.0, dtype)))
    return sign * exponential(second, shape, dtype)


@direct(draws.randint)
def randint(
    key: Any, *limits: Any, shape: Any = (), minval: Any = None, maxval: Any = None,
    dtype: Any = None,
) -> Any:  # fmt: skip
    """Draw integers in [minval, maxval).

    Both orders do: `randint(key, shape, minval, maxval, dtype)`, JAX's, where shape is a tuple or
    a list, and `randint(key, minval, maxval, shape=(), dtype=None)`, as the other distributions.

    Args:    key: uint32, shape (..., 2). minval, maxval: ints, or arrays of integers that broadcast
             to (..., *shape). dtype: of integers, int64 by default.
    Returns: shape (..., *shape).
    Raises:  SignatureError: when an argument is missing, given twice, or in neither order.
             ShapeError: when an int maxval does not exceed an int minval, or shapes do not fit.
             DTypeError: when ints do not fit dtype, limits are no integers, or key is none.
    Notes:   the probabilities of two elements differ by at most 2**-64; relative to each other by
             at most 2**-32, where ints say the limits. Where arrays have maxval <= minval, minval
             is drawn.
    Example:
        >>> import funct as ft
        >>> key = ft.random.key(7)
        >>> ft.random.randint(key, 0, 10, shape=(3,)).tolist()
        [8, 3, 9]
        >>> ft.random.randint(key, (3,), 0, 10).tolist()
        [8, 3, 9]

    Source: jax.random.randint.
    """
    if limits:
        shape, minval, maxval, dtype = _ordered(limits, shape, minval, maxval, dtype)
    if minval is None or maxval is None:
        raise SignatureError("random.randint: minval and maxval must be given")
    dtype = integer_dtype("randint", dtype)
    low, high = _limit(minval), _limit(maxval)
    shape = normal_shape("random.randint", shape)
    if not isinstance(low, int) or not isinstance(high, int):
        return _between(key, low, high, shape, dtype)
    if high <= low:
        raise ShapeError(f"random.randint: maxval must exceed minval, got {minval} and {maxval}")
    limit = iinfo(dtype)
    if low < limit.min or high - 1 > limit.max:
        raise DTypeError(f"random.randint: [{minval}, {maxval}) must fit the dtype, got {dtype}")
    count = high - low
    if draws.MANY_NUMBERS < count < 2**64:
        drawn = _share(words(key, (*shape, 2), 64), _word(count))
    else:
        drawn = words(key, shape, 64)
        drawn = drawn if count == 2**64 else ops.remainder(drawn, _word(count))
    return ops.astype(drawn + _word(low), dtype)  # modulo 2**64, negative numbers too


def _share(drawn: Any, n: Any) -> Any:
    """The numbers below n of pairs of words: what part of 2**128 a pair is, of n, rounded down."""
    first, second = drawn[..., 0], drawn[..., 1]
    upper, lower = _product(first, n)
    carried = _product(second, n)[0]
    return upper + ops.astype(ops.less(lower + carried, lower), _WORD)


def _product(x: Any, n: Any) -> tuple[Any, Any]:
    """The upper and the lower word of x n."""
    half, rest = _word(32), _word(2**32 - 1)
    x1, x0, n1, n0 = x >> half, x & rest, n >> half, n & rest
    left = x1 * n0 + (x0 * n0 >> half)
    right = x0 * n1 + (left & rest)
    return x1 * n1 + (left >> half) + (right >> half), x * n


def _ordered(limits: Any, shape: Any, minval: Any, maxval: Any, dtype: Any) -> Any:
    """What positional arguments of `randint` stand for: a shape comes first, or not at all."""
    names = ["minval", "maxval", "shape", "dtype"]
    if isinstance(limits[0], tuple | list):
        names = ["shape", "minval", "maxval", "dtype"]
    elif len(limits) > 2 and not isinstance(limits[2], tuple | list):
        raise SignatureError(
            f"random.randint: a shape by position is a tuple or a list, got {limits}",
            fix="randint(key, minval, maxval, shape=n)",
        )
    if len(limits) > len(names):
        raise SignatureError(f"random.randint: takes {names} after key, got {limits}")
    unset = None if isinstance(shape, tuple) and not shape else shape
    given = {"shape": unset, "minval": minval, "maxval": maxval, "dtype": dtype}
    for name, value in zip(names, limits, strict=False):
        if given[name] is not None:
            raise SignatureError(f"random.randint: {name} is given twice: {value}, {given[name]}")
        given[name] = value
    given["shape"] = () if given["shape"] is None else given["shape"]
    return given.values()


def _limit(x: Any) -> Any:
    """An int, or an array of integers."""
    try:
        return x if isinstance(x, Value) else operator.index(x)
    except TypeError:
        return asarray(x)


def _word(n: int) -> Any:
    return wrap(np.asarray(n % 2**64, np.uint64))


def _between(key: Any, low: Any, high: Any, shape: Any, dtype: np.dtype[Any]) -> Any:
    """Integers between limits of which some are arrays: those that ints would give, one by one."""
    ends = [_end(name, x) for name, x in (("minval", low), ("maxval", high))]
    (first, first_negative), (beyond, beyond_negative) = ends
    drawn = words(key, shape, 64)
    if common_shape("random.randint", first.shape, beyond.shape, drawn.shape) != drawn.shape:
        raise ShapeError(
            f"random.randint: limits of shape {first.shape} and {beyond.shape} do not broadcast to "
            f"{drawn.shape}"
        )
    alike = ops.equal(first_negative, beyond_negative)
    ordered = ops.where(alike, ops.less(first, beyond), first_negative)
    count = ops.where(ordered, beyond - first, _word(1))
    made = ops.remainder(drawn, count)
    many = ops.greater(count, _word(draws.MANY_NUMBERS))
    if not isinstance(many, Array) or many.data.any():
        made = ops.where(many, _share(words(key, (*shape, 2), 64), count), made)
    return ops.astype(first + made, dtype)


def _end(name: str, x: Any) -> tuple[Any, Any]:
    """A limit modulo 2**64, and where it is negative."""
    x = asarray(x)
    if x.dtype.kind not in "iu":
        raise DTypeError(f"random.randint: {name} must be of integers, got {x.dtype}")
    return ops.astype(x, _WORD), ops.less(x, ops.astype(wrap(np.asarray(0)), x.dtype))
