"""Chapter: elementwise functions that are no primitives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from funct import ops
from funct.array.axes import common_shape, integers
from funct.array.conversion import as_tensor, as_tensors, asarray, promoted
from funct.array.direct import direct
from funct.array.dtypes import result_type
from funct.array.tensor import Tensor
from funct.core import INEXACT
from funct.errors import ArgumentError, DTypeError, RangeError
from funct.kernels import composed
from funct.kernels.elementwise import functions as kernels

__all__ = [
    "both", "clip", "compared", "conjugate", "floating", "fmax", "fmin", "heaviside", "positive",
    "rounded", "select",
]  # fmt: skip


def positive(x: Any, /) -> Any:
    """x itself.

    Example:
        >>> import funct.array as xp
        >>> xp.positive(xp.asarray([-1.0, 2.0])).tolist()
        [-1.0, 2.0]
    """
    return x


def floating(x: Any) -> Any:
    """x itself; integers and booleans as float64."""
    return x if x.dtype in INEXACT else ops.astype(x, np.dtype(np.float64))


def conjugate(x: Any) -> Any:
    """conj(x) in x's dtype, also of booleans."""
    return ops.conj(x) if x.dtype.kind == "c" else x


def both(x1: Any, x2: Any) -> Any:
    """Both as arrays of one dtype; a Python number adopts the other's."""
    if not isinstance(x1, Tensor):
        x1 = _adopted(x1, x2)
    if not isinstance(x2, Tensor):
        x2 = _adopted(x2, x1)
    return promoted([x1, x2])


def compared(x1: Any, x2: Any) -> Any:
    """The same for who asks which are equal: an integer that the other's dtype has not is kept."""
    try:
        return both(x1, x2)
    except RangeError:
        return promoted([asarray(x1), asarray(x2)])


def _adopted(number: Any, other: Any) -> Any:
    if isinstance(number, bool | int | float | complex) and isinstance(other, Tensor):
        return asarray(number, dtype=np.result_type(number, other.dtype))
    return asarray(number)


@direct(composed.fmax, arrays=0, maybe=("x1", "x2"))
def fmax(x1: Any, x2: Any, /) -> Any:
    """The larger of x1 and x2; the other one where one is NaN; of zeros of two signs either.

    Example:
        >>> import funct.array as xp
        >>> xp.fmax(xp.asarray([1.0, xp.nan]), 2.0).tolist()
        [2.0, 2.0]

    Source: NumPy `fmax`.
    """
    return _of_numbers(ops.maximum, x1, x2)


@direct(composed.fmin, arrays=0, maybe=("x1", "x2"))
def fmin(x1: Any, x2: Any, /) -> Any:
    """The smaller of x1 and x2; the other one where one is NaN; of zeros of two signs either.

    Example:
        >>> import funct.array as xp
        >>> xp.fmin(xp.asarray([1.0, xp.nan]), 2.0).tolist()
        [1.0, 2.0]

    Source: NumPy `fmin`.
    """
    return _of_numbers(ops.minimum, x1, x2)


def _of_numbers(better: Callable[..., Any], x1: Any, x2: Any) -> Any:
    y = better(x1, x2)
    if y.dtype not in INEXACT:
        return y
    return ops.where(ops.not_equal(x2, x2), x1, ops.where(ops.not_equal(x1, x1), x2, y))


@direct(composed.heaviside, arrays=0, maybe=("x1", "x2"))
def heaviside(x1: Any, x2: Any, /) -> Any:
    """0 where x1 < 0, 1 where x1 > 0, x2 where x1 is 0, NaN where it is NaN.

    Integers give float64.
    Raises: DTypeError: for complex numbers.
    Notes: the derivative in x1 is 0.
    Example:
        >>> import funct.array as xp
        >>> xp.heaviside(xp.asarray([-1.0, 0.0, 2.0]), 0.5).tolist()
        [0.0, 0.5, 1.0]

    Source: NumPy `heaviside`.
    """
    x1, x2 = both(*[floating(x) if isinstance(x, Tensor) else x for x in (x1, x2)])
    x1, x2 = floating(x1), floating(x2)
    if x1.dtype.kind == "c":
        raise DTypeError(f"heaviside: x1 and x2 must be real, got {x1.dtype}")
    step = ops.where(ops.equal(x1, 0), x2, ops.astype(ops.greater(x1, 0), x1.dtype))
    return ops.where(ops.isnan(x1), x1, step)


@direct(kernels.clip, maybe=("min", "max"))
def clip(x: Any, /, min: Any = None, max: Any = None) -> Any:
    """x limited to [min, max], in x's dtype; None leaves a side open.

    The limits are numbers or arrays that broadcast with x. NaN in any of the three gives NaN; where
    min > max, the result is max. An integer x takes limits outside its dtype's range.
    Example:
        >>> import funct.array as xp
        >>> xp.clip(xp.asarray([-2.0, 0.5, 3.0]), 0.0, max=1.0).tolist()
        [0.0, 0.5, 1.0]

    Source: Array API 2025.12 `clip`.
    """
    x = as_tensor("clip", x)
    low, high = (None if v is None else _within(v, x.dtype) for v in (min, max))
    common_shape("clip", x.shape, *[v.shape for v in (low, high) if isinstance(v, Tensor)])
    y = x
    if low is not None:
        y = ops.maximum(y, low)
    if high is not None:
        y = ops.minimum(y, high)
    widened = x.dtype.kind in "biu" and y.dtype.kind not in "biu"  # promotion, as in NumPy
    return y if y.dtype == x.dtype or widened else ops.astype(y, x.dtype)


def _within(limit: Any, dtype: np.dtype[Any]) -> Any:
    """A Python integer brought into the range of an integer dtype."""
    if limit.__class__ is not int or dtype.kind not in "iu":
        return limit
    info = np.iinfo(dtype)
    return int(info.min) if limit < info.min else int(info.max) if limit > info.max else limit


@direct(kernels.rounded)
def rounded(x: Any, /, decimals: int = 0) -> Any:
    """x to the nearest multiple of 10**-decimals, ties to the even one; the dtype stays."""
    n = max(*integers("round", "decimals", (decimals,)), -300)
    if x.dtype not in INEXACT:
        return ops.round(x) if n >= 0 else _whole_tens(x, 10**-n)
    if n == 0:
        return ops.round(x)
    tens = 10.0 ** min(abs(n), 300)
    if n < 0:
        y = ops.round(x / tens)
        return ops.where(ops.equal(y, 0), y, y * tens)
    scaled = x * tens
    return ops.where(ops.isfinite(scaled), ops.round(scaled) / tens, x)


def _whole_tens(x: Any, ten: int) -> Any:
    """Integers to the nearest multiple of a power of ten, ties to the even multiple."""
    if ten > np.iinfo(x.dtype).max:
        return ops.multiply(x, 0)
    q, r = divmod(x, ten)
    half = ops.equal(r, ten - r)
    up = ops.where(half, ops.equal(q % 2, 1), ops.greater(r, ten - r))
    return (q + ops.astype(up, x.dtype)) * ten


def select(condlist: Any, choicelist: Any, default: Any = 0) -> Any:
    """The choice that belongs to the first condition that holds, else default.

    Raises: ArgumentError: when there are not as many conditions as choices, or none.
    Example:
        >>> import funct.array as xp
        >>> x = xp.asarray([-1, 0, 1])
        >>> xp.select([x < 0, x > 0], [-x, 10 * x], 5).tolist()
        [1, 5, 10]

    Source: NumPy `select`.
    """
    condlist, choicelist = as_tensors("select", condlist), as_tensors("select", choicelist)
    if len(condlist) != len(choicelist) or not condlist:
        raise ArgumentError(
            "select: one choice per condition is needed, "
            f"got {len(condlist)} conditions and {len(choicelist)} choices"
        )
    dtype = result_type(*choicelist, default)
    out = asarray(default, dtype=dtype)
    for condition, choice in zip(reversed(condlist), reversed(choicelist), strict=True):
        out = ops.where(condition, asarray(choice, dtype=dtype), out)
    return out
