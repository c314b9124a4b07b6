"""Values in even steps from start to stop: of the values, of exponents, or of ratios.

start and stop may be arrays, which broadcast; the values are along a new axis.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from funct import ops
from funct.array.axes import normal_axis
from funct.array.conversion import as_tensor, check_allocation
from funct.array.creation import how_many
from funct.array.device import placed
from funct.array.direct import direct
from funct.array.dtypes import as_dtype, result_type
from funct.array.tensor import Array, Tensor
from funct.errors import ArgumentError, DTypeError, RangeError, UnsupportedOperandError
from funct.kernels import creation as kernels
from funct.ops.fast import wrap

__all__ = ["geomspace", "linspace", "logspace"]

_DOUBLE = np.dtype(np.float64)


@direct(kernels.linspace, arrays=0, maybe=("start", "stop"))
@placed
def linspace(
    start: Any,
    stop: Any,
    /,
    num: int,
    *,
    dtype: Any = None,
    device: Any = None,
    endpoint: bool = True,
    axis: int = 0,
) -> Any:
    """num evenly spaced values from start to stop, which may be arrays, complex or traced.

    Without endpoint, stop is where value num + 1 would be. By default the dtype is that of start +
    stop + 1.0; an integer dtype rounds down. axis: of the result, where the values are.
    Raises: ArgumentError: when num is negative. UnsupportedOperandError: for a start or stop that
    is neither number nor array. RangeError: for an integer beyond float64.
    Example:
        >>> import funct.array as xp
        >>> xp.linspace(0.0, 1.0, 5).tolist(), xp.linspace(0.0, 1.0, 4, endpoint=False).tolist()
        ([0.0, 0.25, 0.5, 0.75, 1.0], [0.0, 0.25, 0.5, 0.75])
    """
    if dtype is not None:
        dtype = as_dtype("linspace", dtype)
    n = _how_many("linspace", num, _DOUBLE if dtype is None else dtype)
    typed = Tensor | np.ndarray | np.generic
    if isinstance(start, typed) or isinstance(stop, typed):
        if dtype is None:
            dtype = result_type(start, stop, 1.0)
        values = _between(as_tensor("linspace", start), as_tensor("linspace", stop), n, endpoint)
        values = _with_axis("linspace", values, axis)
        if values.dtype == dtype:
            return values
        return ops.astype(ops.floor(values) if dtype.kind in "iu" else values, dtype)
    for argument, v in (("start", start), ("stop", stop)):
        if not isinstance(v, bool | int | float | complex):
            raise UnsupportedOperandError(
                f"linspace: {argument} must be a number or an array, got {type(v).__name__}"
            )
    normal_axis("linspace", axis, 1)
    try:
        start, stop = [float(v) if v.__class__ is int else v for v in (start, stop)]  # of any size
        return wrap(np.linspace(start, stop, n, dtype=dtype, endpoint=bool(endpoint)))
    except OverflowError as error:
        raise RangeError(f"linspace: {error}") from None
    except (TypeError, ValueError) as error:
        raise DTypeError(f"linspace: {error}") from None


def logspace(
    start: Any, stop: Any, num: int = 50, *, endpoint: bool = True, base: Any = 10.0,
    dtype: Any = None, axis: int = 0,
) -> Any:  # fmt: skip
    """num values from base^start to base^stop, each the same multiple of the one before.

    start, stop, axis: as in `linspace`. An integer dtype drops fractions.
    Example:
        >>> import funct.array as xp
        >>> xp.logspace(0, 2, 3).tolist()
        [1.0, 10.0, 100.0]

    Source: NumPy `logspace`.
    """
    n = how_many("logspace", "num", num)
    powers = ops.pow(base, linspace(start, stop, n, endpoint=endpoint, axis=axis))
    return powers if dtype is None else ops.astype(powers, as_dtype("logspace", dtype))


@direct(kernels.geomspace, arrays=0, maybe=("start", "stop"))
def geomspace(
    start: Any, stop: Any, num: int = 50, *, endpoint: bool = True, dtype: Any = None,
    axis: int = 0,
) -> Any:  # fmt: skip
    """num values from start to stop, each the same multiple of the one before.

    start, stop: real numbers or arrays of them that broadcast, none 0 and none of two signs.
    axis: of the result, where the values are; float64 by default. The ends are start and stop.
    Raises: ArgumentError: for numbers that are 0 or of two signs. ShapeError: for shapes that do
    not broadcast.
    Example:
        >>> import funct.array as xp
        >>> xp.geomspace(1, 1000, 4).tolist()
        [1.0, 10.0, 100.0, 1000.0]

    Source: NumPy `geomspace`.
    """
    n = _how_many("geomspace", num, _DOUBLE)
    a, b = _real("start", start), _real("stop", stop)
    sign = ops.sign(a)
    same = ops.greater(sign * ops.sign(b), 0.0)
    if same.__class__ is Array and not same.data.all():
        raise ArgumentError(f"geomspace: start and stop must have one sign, got {start} and {stop}")
    values = _between(ops.log10(ops.abs(a)), ops.log10(ops.abs(b)), n, endpoint)
    values = sign * ops.pow(10.0, values)
    at = np.arange(n).reshape(n, *(1,) * (len(values.shape) - 1))
    values = ops.where(wrap(at == 0), a, values)  # the ends themselves, without rounding
    if endpoint:
        values = ops.where(wrap(at == max(n - 1, 1)), b, values)
    values = _with_axis("geomspace", values, axis)
    return values if dtype is None else ops.astype(values, as_dtype("geomspace", dtype))


def _real(argument: str, v: Any) -> Any:
    """An end of `geomspace` in float64."""
    v = as_tensor("geomspace", v)
    if v.dtype.kind not in "iuf":
        raise UnsupportedOperandError(f"geomspace: {argument} must be real, got {v.dtype}")
    return v if v.dtype is _DOUBLE else ops.astype(v, _DOUBLE)


def _how_many(name: str, num: Any, dtype: Any) -> int:
    """A number of values that memory can hold."""
    n: int = how_many(name, "num", num)
    check_allocation(name, (n,), dtype)
    return n


def _between(a: Any, b: Any, n: int, endpoint: bool) -> Any:
    """n values from a to b along a new first axis."""
    down, up = kernels.weights(n, bool(endpoint), max(len(a.shape), len(b.shape)))
    return a * wrap(down) + b * wrap(up)


def _with_axis(name: str, values: Any, axis: Any) -> Any:
    """The first axis moved to where it is asked for."""
    k = normal_axis(name, axis, len(values.shape))
    if k == 0:
        return values
    order = list(range(1, len(values.shape)))
    order.insert(k, 0)
    return ops.permute_dims(values, tuple(order))
