"""Functions of sampled curves: convolution, interpolation, integration."""

from __future__ import annotations

from typing import Any

import numpy as np

from funct import ops
from funct.array.axes import normal_axis
from funct.array.creation import asarray
from funct.array.direct import direct
from funct.core import INEXACT
from funct.errors import ArgumentError, ShapeError
from funct.kernels import sampled as kernels

__all__ = ["convolve", "interp", "trapezoid"]


@direct(kernels.convolve, arrays=2)
def convolve(x: Any, y: Any, /, mode: str = "full") -> Any:
    """Convolution of two sequences, z_k = Σ_j x_(k - j) y_j.

    mode: "full" gives all n + m - 1 places where they overlap, "same" the middle max(n, m) of them,
    "valid" those where one lies within the other.
    Raises: ShapeError: unless both are 1-D and not empty.
    Example:
        >>> import funct.array as xp
        >>> xp.convolve(xp.asarray([1.0, 2.0, 3.0]), xp.asarray([1.0, 1.0])).tolist()
        [1.0, 3.0, 5.0, 3.0]

    Source: NumPy `convolve`.
    """
    x, y = asarray(x), asarray(y)
    if len(x.shape) != 1 or len(y.shape) != 1:
        raise ShapeError(f"convolve: x and y must be 1-D, got {x.shape} and {y.shape}")
    if mode not in ("full", "same", "valid"):
        raise ArgumentError(f"convolve: mode must be 'full', 'same' or 'valid', got {mode!r}")
    if x.shape[0] < y.shape[0]:
        x, y = y, x
    z = ops.convolve(x, y, mode != "valid")
    if mode != "same":
        return z
    before = (y.shape[0] - 1) // 2
    return z[before : before + x.shape[0]]


@direct(kernels.interp, arrays=("xp", "fp"), maybe=("x",))
def interp(
    x: Any, xp: Any, fp: Any, /, left: Any = None, right: Any = None, period: Any = None
) -> Any:
    """The piecewise linear function through the points (xp, fp), at x.

    Args: xp: 1-D, ascending; with period in any order. left, right: values outside, by default
    those at the ends. period: of xp's axis.
    Raises: ShapeError: unless xp and fp are 1-D, of one length and not empty.
    Example:
        >>> from funct import array
        >>> points = array.asarray([0.0, 1.0, 3.0]), array.asarray([0.0, 10.0, 30.0])
        >>> array.interp(array.asarray([0.5, 2.0, 9.0]), *points).tolist()
        [5.0, 20.0, 30.0]

    Source: NumPy `interp`. Differentiable in all three.
    """
    x, at, f = (_floating(v) for v in (x, xp, fp))
    if len(at.shape) != 1 or at.shape != f.shape or at.shape[0] == 0:
        raise ShapeError(
            "interp: xp and fp must be 1-D, of one length and not empty, "
            f"got {at.shape} and {f.shape}"
        )
    if period is not None:
        x, at, f = _unrolled(x, at, f, period)
        left = right = None
    i = ops.minimum(ops.searchsorted(at, x, "right"), ops.length_along(at, 0) - 1)
    before = ops.maximum(i - 1, 0)
    x0, x1, f0, f1 = (ops.take(v, k, 0) for v in (at, f) for k in (before, i))
    flat = ops.equal(x0, x1)
    slope = (f1 - f0) / ops.where(flat, 1.0, x1 - x0)
    y = f0 + slope * (x - x0)
    y = ops.where(ops.greater_equal(x, at[-1]), f[-1], y)  # the end itself, without rounding
    y = ops.where(ops.less(x, at[0]), f[0] if left is None else left, y)
    return y if right is None else ops.where(ops.greater(x, at[-1]), right, y)


def _floating(v: Any) -> Any:
    v = asarray(v)
    return ops.astype(v, np.dtype(np.float64)) if v.dtype not in INEXACT else v


def _unrolled(x: Any, at: Any, f: Any, period: Any) -> Any:
    """Points of one period in order, with the neighbours from the periods beside it."""
    if period == 0:
        raise ArgumentError("interp: period must not be 0")
    period = abs(period)
    x, at = x % period, at % period
    order = ops.argsort(at, 0, False)
    at, f = ops.take(at, order, 0), ops.take(f, order, 0)
    at = ops.concat(ops.concat(at[-1:] - period, at, 0), at[:1] + period, 0)
    return x, at, ops.concat(ops.concat(f[-1:], f, 0), f[:1], 0)


@direct(kernels.trapezoid, maybe=("x",))
def trapezoid(y: Any, /, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Any:
    """Integral of y along axis by the trapezoidal rule, over the points x or over steps of dx.

    Args: x: of y's shape, or 1-D along axis.
    Example:
        >>> import funct.array as xp
        >>> float(xp.trapezoid(xp.asarray([1.0, 2.0, 3.0]), dx=2.0))
        8.0

    Source: NumPy `trapezoid`.
    """
    y = _floating(y)
    k = normal_axis("trapezoid", axis, len(y.shape))
    step = dx
    if x is not None:
        x = asarray(x)
        if not x.shape:
            raise ShapeError("trapezoid: x must have an axis, got a 0-d array")
        if len(x.shape) == 1:
            x = ops.reshape(x, (x.shape[0], *(1,) * (len(y.shape) - k - 1)))
        step = _ends(x, k - len(y.shape), True) - _ends(x, k - len(y.shape), False)
    pairs = _ends(y, k, True) + _ends(y, k, False)
    return ops.reduce_sum(step * pairs, (k,), False) / 2


def _ends(v: Any, axis: int, late: bool) -> Any:
    """v without its first element along axis, or without its last."""
    triples: list[Any] = [(None, None, 1)] * len(v.shape)
    triples[axis] = (1, None, 1) if late else (None, -1, 1)
    return ops.slice_(v, tuple(triples))
