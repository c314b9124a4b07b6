"""Keys: pairs of words that say which random numbers are drawn."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from funct import ops
from funct.array.axes import normal_shape
from funct.array.creation import served
from funct.array.direct import direct
from funct.array.dtypes import as_dtype, bfloat16, float16, isdtype
from funct.core import OpenNumber, Value
from funct.errors import DTypeError
from funct.kernels.random import bits as kernels
from funct.kernels.random import draws
from funct.ops.counting import lifted
from funct.ops.fast import wrap

__all__ = [
    "bits", "drawn_in", "float_dtype", "fold_in", "integer_dtype", "key", "known", "rounded",
    "split", "words",
]  # fmt: skip

_SINGLE = np.dtype(np.float32)
_FLOATS = frozenset(map(np.dtype, (float16, bfloat16, np.float32, np.float64)))


def key(seed: int) -> Any:
    """Make a key from an integer seed.

    Args:    seed: an int of up to 64 bits, negative or not.
    Returns: uint32, shape (2,).
    Raises:  DTypeError: when seed is no int.
             RangeError: when it has more bits.
    Example:
        >>> import funct as ft
        >>> ft.random.key(7).tolist()
        [0, 7]

    Source: jax.random.key; here keys are plain arrays, as jax.random.PRNGKey's are.
    """
    open_: Any = seed
    if type(open_) is OpenNumber and open_.value.__class__ is int and kernels.is_seed(seed):
        high, low = [w.sheet.measured(w, np.uint32) for w in kernels.halves(seed)]
        return ops.concat(ops.reshape(high, (1,)), ops.reshape(low, (1,)), 0)
    try:
        return wrap(kernels.seed(operator.index(seed)))
    except TypeError:
        raise DTypeError(f"random.key: seed must be an int, got {seed!r}") from None


def known(key: Any) -> Any:
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
    """Make n independent keys from one.

    Args:    key: uint32, shape (..., 2). n: how many.
    Returns: a batch of keys, uint32, shape (..., n, 2): iterate, index or vmap over it.
    Raises:  DTypeError: when key is none. ShapeError: when n is no int from 0 on.
    Example:
        >>> import funct as ft
        >>> first, second = ft.random.split(ft.random.key(7))

    Source: jax.random.split, with the same keys (`jax_threefry_partitionable=True`).
    """
    (n,) = normal_shape("random.split", (n,))
    return ops.random_split(known(key), n)


@direct(draws.fold_in, maybe=("data",))
def fold_in(key: Any, data: Any) -> Any:
    """Make a key from a key and an integer: one per step, say, without a chain of splits.

    As in JAX, fold_in(key, i) is split(key, n)[i]: use the one or the other on a key, not both.

    Args:    key: uint32, shape (..., 2). data: an int, or integers (...); 32 bits of it count.
    Returns: uint32, shape (..., 2).
    Raises:  DTypeError: when key is none.
    Example:
        >>> import funct as ft
        >>> step = ft.random.fold_in(ft.random.key(7), 3)
        >>> bool((step == ft.random.split(ft.random.key(7), 4)[3]).all())
        True

    Source: jax.random.fold_in.
    """
    if type(data) is OpenNumber:
        data = data.sheet.measured(data, np.uint32)
    data = data if isinstance(data, Value) else wrap(np.asarray(data, np.uint32))
    return ops.random_fold_in(known(key), ops.astype(data, np.dtype(np.uint32)))


def words(key: Any, shape: Any, width: int) -> Any:
    """Uniform unsigned integers of so many bits."""
    return served(ops.random_bits(lifted(known(key), shape), shape, width))


def bits(key: Any, shape: Any = (), dtype: Any = None) -> Any:
    """Draw uniform unsigned integers: every bit is fair.

    Args:    key: uint32, shape (..., 2). shape: an int, a tuple or a list.
             dtype: uint8 … uint64, uint32 by default.
    Returns: shape (..., *shape).
    Raises:  DTypeError: when dtype is another one, or key none.
    Example:
        >>> import funct as ft
        >>> ft.random.bits(ft.random.key(7), (3,), "uint8").shape
        (3,)

    Source: jax.random.bits, with the same bits; Salmon et al. 2011, Threefry-2x32,
            https://doi.org/10.1145/2063384.2063405.
    """
    dtype = as_dtype("random.bits", np.uint32 if dtype is None else dtype)
    if dtype.kind != "u":
        raise DTypeError(f"random.bits: dtype must be unsigned, got {dtype}")
    return words(key, normal_shape("random.bits", shape), dtype.itemsize * 8)


def float_dtype(name: str, dtype: Any) -> np.dtype[Any]:
    """The dtype of floating draws, float64 by default."""
    dtype = as_dtype(f"random.{name}", np.float64 if dtype is None else dtype)
    if dtype not in _FLOATS:
        raise DTypeError(
            f"random.{name}: dtype must be float16, bfloat16, float32 or float64, got {dtype}"
        )
    return dtype


def drawn_in(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype in which numbers are drawn: those of 16 bits are rounded from float32, once."""
    return dtype if dtype.itemsize > 2 else _SINGLE


def rounded(x: Any, dtype: np.dtype[Any]) -> Any:
    """Drawn numbers in the dtype that was asked for."""
    return x if x.dtype == dtype else ops.astype(x, dtype)


def integer_dtype(name: str, dtype: Any) -> np.dtype[Any]:
    """The dtype of integers, int64 by default."""
    dtype = as_dtype(f"random.{name}", np.int64 if dtype is None else dtype)
    if not isdtype(dtype, "integral"):
        raise DTypeError(f"random.{name}: dtype must be of integers, got {dtype}")
    return dtype
