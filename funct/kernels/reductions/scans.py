"""Running sums, products, extrema and linear recurrences along an axis: plain, or in machine code.

Both give the same bits. The plain functions are named so, and are what tests compare with. Halves
run in float32, and each result is rounded once, as in torch: sums in float16 stand still where a
term is less than half of their last digit.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from funct.kernels.cpu.elementwise import complexes
from funct.kernels.cpu.loops import pays, ready
from funct.kernels.cpu.reductions import scans as cpu
from funct.kernels.dtypes import HALF, is_half, sum_dtype
from funct.kernels.elementwise.casting import in_dtype

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "few", "linear_recurrence", "plain_argmax", "plain_extremum", "plain_recurrence",
    "running_argmax", "running_extremum", "running_product", "running_sum", "through_single",
]  # fmt: skip

_MANY = 1 << 6  # complex numbers, or halves, from which on a call costs less than what it saves
_LEAST, _FEW = 1 << 8, 1 << 13  # elements whose new array is made in machine code
_KEPT = frozenset([np.dtype(c).num for c in "fdlL"])  # dtypes in which sums stay
_COMPLEX = frozenset([np.dtype(c).num for c in "FD"])
_SINGLE = np.dtype(np.float32)
_PARTS: dict[Any, np.dtype[Any]] = {
    np.dtype(np.complex64): _SINGLE, np.dtype(np.complex128): np.dtype(np.float64),
}  # fmt: skip


def running_sum(x: NDArray[Any], axis: int) -> NDArray[Any]:
    """As `x.cumsum(axis)`."""
    return _scan(x, axis, "add")


def running_product(x: NDArray[Any], axis: int) -> NDArray[Any]:
    """As `x.cumprod(axis)`."""
    return _scan(x, axis, "multiply")


def few(x: NDArray[Any], axis: Any, how: str) -> NDArray[Any] | None:
    """What runs along an axis of few elements, in one call; None for all other arrays."""
    size, shape = x.size, x.shape
    if not _LEAST <= size <= _FEW or not ready(size, size >> 3):
        return None
    if len(shape) == 1:
        outer, n, inner = 1, size, 1
        if axis is not None and axis != 0 and axis != -1:
            return None
    elif len(shape) == 2 and axis.__class__ is int and -2 <= axis <= 1:
        outer, n, inner = (1, *shape) if axis in (0, -2) else (*shape, 1)
    else:
        return None
    number = x.dtype.num
    made: NDArray[Any] | None = None
    if number in _KEPT or (number == HALF and inner == 1):
        made = cpu.running_few(x, outer, n, inner, inner == 1, how)
    elif inner == 1 and number in _COMPLEX:
        made = complexes.running_few(x, outer, n, how)
    return made


def _scan(x: NDArray[Any], axis: int, how: str) -> NDArray[Any]:
    made = few(x, axis, how)
    if made is not None:
        return made
    if pays(x):
        return _running(x, axis, how)
    if is_half(x.dtype):
        return _running(x, axis, how) if _in_line(x, axis) else through_single(_scan, x, axis, how)
    apart = x.dtype in _PARTS and (how == "add" or _last(x, axis))
    if apart and x.size >= _MANY and x.flags.c_contiguous and ready(x.size, 0):
        return _running_pairs(x, axis % x.ndim, how)
    plain: NDArray[Any] = (x.cumsum if how == "add" else x.cumprod)(axis)
    return plain


def _running_pairs(x: NDArray[Any], axis: int, how: str) -> NDArray[Any]:
    """Of complex numbers, whose parts have sums of their own."""
    *lead, n = x.shape
    if _last(x, axis):
        y = np.empty(x.shape, x.dtype)
        complexes.running(x, y, x.size // n, n, how)
        return y
    parts = x.view(_PARTS[x.dtype]).reshape(*lead, n, 2)
    return _running(parts, axis, how).reshape(*lead, 2 * n).view(x.dtype)


def _last(x: NDArray[Any], axis: int) -> bool:
    return axis in (-1, x.ndim - 1)


def _in_line(x: NDArray[Any], axis: int) -> bool:
    """Whether halves are so many, and stand so, that machine code widens them by itself."""
    return x.size >= _MANY and _last(x, axis) and ready(x.size, 0)


def through_single(run: Callable[..., Any], x: NDArray[Any], *rest: Any) -> NDArray[Any]:
    """What sums halves, or runs along them, in float32."""
    y = run(in_dtype(x, _SINGLE), *rest)
    found: NDArray[Any] = in_dtype(y, x.dtype)
    return found


def _split(x: NDArray[Any], axis: int) -> tuple[int, int, int]:
    shape = x.shape
    if len(shape) == 1:
        return 1, shape[0], 1
    return prod(shape[:axis]), shape[axis], prod(shape[axis + 1 :])


def _running(x: NDArray[Any], axis: int, how: str) -> NDArray[Any]:
    shape, d = x.shape, x.dtype
    y = np.empty(shape, d if d.kind == "f" or is_half(d) else sum_dtype(d))
    outer, n, inner = _split(x, axis)
    if inner == 1:
        cpu.running_line(x, y, outer, n, how)
    else:
        cpu.running(x, y, outer, n, inner, how)
    return y


def _extremum(x: NDArray[Any], y: NDArray[Any], axis: int, largest: bool, places: bool) -> None:
    outer, n, inner = _split(x, axis)
    if inner == 1:
        cpu.running_extremum_line(x, y, outer, n, largest, places)
    elif inner >= cpu.LANES:
        cpu.running_extremum_columns(x, y, outer, n, inner, largest, places)
    else:
        cpu.running_extremum(x, y, outer, n, inner, largest, places)


def running_extremum(x: NDArray[Any], axis: int, largest: bool) -> NDArray[Any]:
    """The first of the largest elements so far along axis, or of the smallest; NaN wins."""
    if is_half(x.dtype):
        if not _in_line(x, axis):
            return through_single(running_extremum, x, axis, largest)
    elif not pays(x):
        return plain_extremum(x, axis, largest)
    y = np.empty(x.shape, x.dtype)
    _extremum(x, y.view(np.uint8) if x.dtype == bool else y, axis, largest, False)
    return y


def plain_extremum(x: NDArray[Any], axis: int, largest: bool) -> NDArray[Any]:
    """`running_extremum` in NumPy."""
    return np.take_along_axis(x, plain_argmax(x, axis, largest), axis)


def running_argmax(x: NDArray[Any], axis: int, largest: bool) -> NDArray[np.int64]:
    """Where that element stands along axis."""
    if is_half(x.dtype):
        x = in_dtype(x, _SINGLE)
    if not pays(x):
        return plain_argmax(x, axis, largest)
    y = np.empty(x.shape, np.int64)
    _extremum(x, y, axis, largest, True)
    return y


def plain_argmax(x: NDArray[Any], axis: int, largest: bool) -> NDArray[np.int64]:
    """`running_argmax` in NumPy."""
    best = (np.maximum if largest else np.minimum).accumulate(x, axis).swapaxes(0, axis)
    new = np.zeros(best.shape, bool)
    new[1:] = (best[1:] != best[:-1]) & (best[:-1] == best[:-1])  # behind a NaN nothing is new
    places = np.arange(len(best)).reshape(-1, *(1,) * (best.ndim - 1))
    return np.maximum.accumulate(np.where(new, places, 0), 0).swapaxes(0, axis)


def linear_recurrence(a: NDArray[Any], b: NDArray[Any], axis: int) -> NDArray[Any]:
    """y_0 = b_0, y_k = a_k y_(k-1) + b_k along axis; a and b broadcast."""
    a, b = np.broadcast_arrays(a, b)
    dtype = np.result_type(a, b)
    a, b = a.astype(dtype, copy=False), b.astype(dtype, copy=False)
    if not pays(b) or dtype.kind == "b":
        return plain_recurrence(a, b, axis)
    y = np.empty(b.shape, dtype)
    cpu.recurrence(a, b, y, *_split(b, axis))
    return y


def plain_recurrence(a: NDArray[Any], b: NDArray[Any], axis: int) -> NDArray[Any]:
    """`linear_recurrence` in NumPy, for two arrays of one shape and dtype."""
    out = np.empty(b.shape, b.dtype)
    a_, b_, y = (np.moveaxis(v, axis, 0) for v in (a, b, out))
    if len(y):
        y[0] = b_[0]
    for k in range(1, len(y)):
        y[k] = a_[k] * y[k - 1] + b_[k]
    return out
