"""Orders, and elements of a population."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from funct import ops
from funct.array import arange, argsort, asarray, cumulative_sum
from funct.array.axes import normal_axis, normal_shape
from funct.array.creation import how_many
from funct.array.direct import direct
from funct.array.dtypes import as_dtype
from funct.core import Shape, Value
from funct.errors import DTypeError, ShapeError
from funct.kernels.random import selections as kernels
from funct.random.draws import gumbel, randint, uniform
from funct.random.keys import integer_dtype, known, words

__all__ = ["categorical", "choice", "permutation"]

_SINGLE, _DOUBLE = np.dtype(np.float32), np.dtype(np.float64)


def _population(name: str, argument: str, x: Any, axis: Any) -> tuple[Any, int]:
    """The array that an argument stands for, and its axis."""
    whole = isinstance(x, int | np.integer)
    x = arange(how_many(f"random.{name}", argument, x)) if whole else asarray(x)
    if not x.shape:
        raise ShapeError(f"random.{name}: {argument} must have an axis, got a 0-d array")
    return x, normal_axis(f"random.{name}", axis, len(x.shape))


def _cast(name: str, x: Any, dtype: Any) -> Any:
    return x if dtype is None else ops.astype(x, as_dtype(f"random.{name}", dtype))


@direct(kernels.permutation, maybe=("x",))
def permutation(
    key: Any, x: Any, axis: int = 0, independent: bool = False, dtype: Any = None
) -> Any:
    """Shuffle x along an axis; an int n stands for arange(n).

    Args:    key: uint32, shape (2,). x: an array, or an int. independent: whether each line along
             the axis has an order of its own, or slices move as a whole. dtype: x's by default.
    Returns: x's shape.
    Raises:  ShapeError: when x has no such axis. DTypeError: when key is none.
    Example:
        >>> import funct as ft
        >>> sorted(ft.random.permutation(ft.random.key(7), 4).tolist())
        [0, 1, 2, 3]

    Source: jax.random.permutation; here words of 64 bits are sorted once.
    """
    counted = isinstance(x, int | np.integer)
    x, axis = _population("permutation", "x", x, axis)
    shape = x.shape if independent else (x.shape[axis],)
    order = argsort(words(key, shape, 64), axis=axis if independent else 0)
    take = ops.take_along_axis if independent else ops.take
    return _cast("permutation", order if counted else take(x, order, axis), dtype)


@direct(kernels.choice, maybe=("a", "p"))
def choice(
    key: Any, a: Any, shape: Any = (), replace: bool = True, p: Any = None, axis: int = 0,
    dtype: Any = None,
) -> Any:  # fmt: skip
    """Choose elements of a along an axis; an int n stands for arange(n).

    Args:    key: uint32, shape (2,). a: an array, or an int. replace: whether an element may come
             twice. p: weights of the elements, (n,), even by default; they need not sum to 1.
             dtype: a's by default.
    Returns: a's shape with `shape` in place of the axis.
    Raises:  ShapeError: when a has no such axis, p another shape, or more elements are asked for
             than there are without replacement. DTypeError: when p or key is none.
    Notes:   values of p are not looked at: negative ones and NaN give no meaningful elements.
             Without replacement elements of weight 0 come last.
    Example:
        >>> import funct as ft
        >>> ft.random.choice(ft.random.key(7), 3, (2,), p=[0.0, 1.0, 0.0]).tolist()
        [1, 1]

    Source: jax.random.choice; Kool, van Hoof, Welling 2019, arXiv:1903.06059, for weights without
            replacement: the largest of log p + Gumbel noise.
    """
    counted = isinstance(a, int | np.integer)
    a, axis = _population("choice", "a", a, axis)
    shape, n = normal_shape("random.choice", shape), a.shape[axis]
    count = math.prod(shape)
    if not replace and count > n:
        raise ShapeError(f"random.choice: {count} elements of {n} need replace=True")
    if p is not None:
        at = _weighted(known(key), _weights(p, n), shape, replace)
    elif replace:
        at = randint(key, shape, 0, int(n)) if count else asarray(np.zeros(shape, np.int64))
    else:
        at = permutation(key, n)[:count]
    if len(shape) != 1:
        at = ops.reshape(at, shape)
    return _cast("choice", at if counted else ops.take(a, at, axis), dtype)


def _weights(p: Any, n: Any) -> Any:
    p = asarray(p)
    if p.dtype.kind not in "iuf":
        raise DTypeError(f"random.choice: p must be of real numbers, got {p.dtype}")
    if p.shape != (n,):
        raise ShapeError(f"random.choice: p must be of shape ({n},), as a's axis, got {p.shape}")
    return ops.stop_gradient(ops.astype(p, _DOUBLE))


def _weighted(key: Any, p: Any, shape: Shape, replace: bool) -> Any:
    """Indices drawn with weights p."""
    if not replace:
        some = ops.greater(p, 0.0)
        weights = ops.where(some, ops.log(ops.where(some, p, 1.0)), -math.inf)
        return ops.top_k(weights + gumbel(key, p.shape), 0, math.prod(shape))[1]
    steps = cumulative_sum(p)
    u = uniform(key, shape)
    return ops.searchsorted(steps, steps[-1] * (1.0 - u), "left")  # on (0, 1]: never a weight of 0


def categorical(
    key: Any, logits: Any, axis: int = -1, shape: Any = None, replace: bool = True,
    dtype: Any = None,
) -> Any:  # fmt: skip
    """Draw indices along axis with probabilities softmax(logits).

    Args:    key: uint32, shape (2,). logits: an array of real numbers; -inf never comes, or without
             replacement after all others. shape: that of logits without the axis by default, else
             one that ends in it. replace: whether indices along the axes in front of it may repeat
             each other.
             dtype: of integers, int64 by default.
    Returns: indices, of that shape.
    Raises:  ShapeError: when shape does not end so, or asks for more than there are without
             replacement. DTypeError: when logits are not real, dtype not of integers, or key none.
    Example:
        >>> import funct as ft
        >>> import funct.array as xp
        >>> ft.random.categorical(ft.random.key(7), xp.asarray([0.0, 99.0]), shape=(3,)).tolist()
        [1, 1, 1]

    Source: jax.random.categorical: arg-max of logits + Gumbel noise.
    """
    logits = logits if isinstance(logits, Value) else asarray(logits)
    if logits.dtype.kind not in "iufV":
        raise DTypeError(f"random.categorical: logits must be real numbers, got {logits.dtype}")
    if dtype is not None:
        dtype = integer_dtype("categorical", dtype)
    k = normal_axis("random.categorical", axis, len(logits.shape))
    rest = (*logits.shape[:k], *logits.shape[k + 1 :])
    full = rest if shape is None else normal_shape("random.categorical", shape)
    lead = full[: len(full) - len(rest)]
    if (*lead, *rest) != full:
        raise ShapeError(f"random.categorical: shape must end in {rest}, got {full}")
    kind = logits.dtype if logits.dtype == np.float64 else _SINGLE
    wide = ops.astype(logits, kind)
    if replace:
        noise = gumbel(key, (*lead, *logits.shape), kind)
        return _cast("categorical", ops.argmax(wide + noise, k + len(lead), False), dtype)
    count, n = math.prod(lead), logits.shape[k]
    if count > n:
        raise ShapeError(f"random.categorical: {count} indices of {n} need replace=True")
    largest = ops.top_k(wide + gumbel(key, logits.shape, kind), k, count)[1]
    moved = ops.permute_dims(largest, (k, *[i for i in range(len(logits.shape)) if i != k]))
    return _cast("categorical", ops.reshape(moved, full), dtype)
