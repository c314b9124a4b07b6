"""Functions that ask whether arrays are equal, or nearly, and that replace what is not finite."""

from __future__ import annotations

from typing import Any

import numpy as np

from funct import ops
from funct.array.conversion import asarray
from funct.array.direct import direct
from funct.array.dtypes import finfo
from funct.array.elementwise import compared, floating
from funct.array.statistical import all as every
from funct.core import INEXACT
from funct.errors import DTypeError
from funct.kernels import composed

__all__ = ["allclose", "array_equal", "isclose", "nan_to_num"]


def isclose(
    x1: Any, x2: Any, /, rtol: Any = 1e-5, atol: Any = 1e-8, equal_nan: bool = False
) -> Any:
    """Whether |x1 - x2| <= atol + rtol |x2|, element by element; an infinity is close to itself.

    Args: x1, x2: arrays or numbers that broadcast. equal_nan: whether NaN is close to NaN.
    Returns: bool, of the common shape.
    Example:
        >>> import funct.array as xp
        >>> xp.isclose(xp.asarray([1.0, 2.0]), xp.asarray([1.000001, 2.1])).tolist()
        [True, False]

    Source: NumPy `isclose`.
    """
    x1, x2 = compared(x1, x2)
    exact = ops.equal(x1, x2)
    x1, x2 = floating(x1), floating(x2)  # differences of integers may wrap around
    near = ops.less_equal(ops.abs(x1 - x2), atol + rtol * ops.abs(x2))
    close = ops.logical_or(exact, ops.logical_and(near, ops.isfinite(x2)))
    if not equal_nan:
        return close
    return ops.logical_or(close, ops.logical_and(ops.isnan(x1), ops.isnan(x2)))


def allclose(
    x1: Any, x2: Any, /, rtol: Any = 1e-5, atol: Any = 1e-8, equal_nan: bool = False
) -> Any:
    """Whether all elements of x1 and x2 are close, as `isclose` says; a bool array of rank 0.

    Example:
        >>> import funct.array as xp
        >>> xp.allclose(xp.asarray([1.0, 2.0]), xp.asarray([1.000001, 2.0])).item()
        True

    Source: NumPy `allclose`.
    """
    return every(isclose(x1, x2, rtol=rtol, atol=atol, equal_nan=equal_nan))


@direct(composed.array_equal, arrays=2)
def array_equal(x1: Any, x2: Any, /, equal_nan: bool = False) -> Any:
    """Whether x1 and x2 have one shape and equal elements; a bool array of rank 0.

    equal_nan: whether NaN equals NaN.
    Example:
        >>> import funct.array as xp
        >>> xp.array_equal(xp.asarray([1, 2]), xp.asarray([1.0, 2.0])).item()
        True

    Source: NumPy `array_equal`.
    """
    x1, x2 = compared(x1, x2)
    if x1.shape != x2.shape:
        return asarray(False)
    same = ops.equal(x1, x2)
    if equal_nan:
        same = ops.logical_or(same, ops.logical_and(ops.isnan(x1), ops.isnan(x2)))
    return every(same)


@direct(composed.nan_to_num)
def nan_to_num(x: Any, /, *, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Any:
    """x with numbers for NaN and for the infinities; both parts of a complex x on their own.

    Args: posinf, neginf: None stands for the largest and the smallest number of x's dtype.
    Returns: of x's dtype; integers as they are.
    Raises: DTypeError: for complex numbers in place of NaN or an infinity.
    Notes: the derivative is 0 where an element was replaced.
    Example:
        >>> import funct.array as xp
        >>> xp.nan_to_num(xp.asarray([1.5, xp.nan]), nan=-1.0).tolist()
        [1.5, -1.0]

    Source: NumPy `nan_to_num`.
    """
    x = asarray(x)
    for name, v in (("nan", nan), ("posinf", posinf), ("neginf", neginf)):
        if isinstance(v, complex) or getattr(getattr(v, "dtype", None), "kind", "") == "c":
            raise DTypeError(f"nan_to_num: {name} must be real, got {v!r}")
    if x.dtype.kind == "c":
        return ops.complex_of(
            *[_replaced(part(x), nan, posinf, neginf) for part in (ops.real, ops.imag)]
        )
    return _replaced(x, nan, posinf, neginf) if x.dtype in INEXACT else x


def _replaced(x: Any, nan: Any, posinf: Any, neginf: Any) -> Any:
    limits = finfo(x.dtype)
    y = ops.where(ops.isnan(x), nan, x)
    y = ops.where(ops.equal(x, np.inf), limits.max if posinf is None else posinf, y)
    return ops.where(ops.equal(x, -np.inf), limits.min if neginf is None else neginf, y)
