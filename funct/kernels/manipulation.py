"""Manipulation of ndarrays with the standard's arguments, for shapes and axes of plain ints."""

from __future__ import annotations

from typing import Any

import numpy as np

from funct.kernels.dtypes import NATIVE

__all__ = [
    "concat", "expand_dims", "flip", "pad", "permute_dims", "ravel", "repeat", "reshape", "roll",
    "squeeze", "stack", "tile", "transpose",
]  # fmt: skip

_concatenate: Any = np.concatenate


def reshape(x: Any, shape: Any, copy: Any = None) -> Any:
    """The same elements in another shape."""
    if shape.__class__ is int:
        return x.reshape(shape) if shape >= -1 else None
    if shape.__class__ is not tuple:
        return None
    for n in shape:
        if n.__class__ is not int or n < -1:
            return None
    return x.reshape(shape)


def ravel(x: Any) -> Any:
    """The elements, 1-D."""
    return x.reshape(-1)


def permute_dims(x: Any, axes: Any) -> Any:
    """Axes in another order."""
    if axes.__class__ is not tuple:
        return None
    for a in axes:
        if a.__class__ is not int:
            return None
    return x.transpose(axes)


def transpose(x: Any, axes: Any = None) -> Any:
    """Axes in another order, reversed for None."""
    return x.transpose() if axes is None else permute_dims(x, axes)


def squeeze(x: Any, axis: Any) -> Any:
    """x without axes of length 1."""
    return x.squeeze(axis) if axis.__class__ in _AXES and x.ndim else None


_AXES = (int, tuple)


def expand_dims(x: Any, axis: Any) -> Any:
    """x with a new axis."""
    if axis.__class__ is not int:
        return None
    n = x.ndim
    if axis < 0:
        axis += n + 1
    return x.reshape((*x.shape[:axis], 1, *x.shape[axis:])) if 0 <= axis <= n else None


_COUNTED = 2**31  # NumPy's repeat does not see its product of sizes overflow, and crashes


def repeat(x: Any, repeats: Any, axis: Any = None) -> Any:
    """Each element as often."""
    if repeats.__class__ is not int or not 0 <= repeats < _COUNTED:
        return None
    if axis is None:
        return x.repeat(repeats)
    return x.repeat(repeats, axis) if axis.__class__ is int and x.ndim else None


def tile(x: Any, repetitions: Any) -> Any:
    """A vector repeated as a whole."""
    if x.ndim != 1 or repetitions.__class__ is not tuple or len(repetitions) != 1:
        return None
    (n,) = repetitions
    return np.concatenate((x,) * n) if n.__class__ is int and 0 < n < 100 else None


def concat(arrays: Any, axis: Any = 0) -> Any:
    """Arrays joined along an existing axis."""
    dtype = arrays[0].dtype
    for a in arrays:
        if a.dtype is not dtype:
            return None
    return _concatenate(arrays) if axis == 0 else _concatenate(arrays, axis)


def stack(arrays: Any, axis: int = 0) -> Any:
    """Arrays joined along a new axis."""
    dtype, n = arrays[0].dtype, arrays[0].ndim
    if axis.__class__ is not int or not -n - 1 <= axis <= n:
        return None
    at = (slice(None),) * (axis if axis >= 0 else axis + n + 1) + (None,)
    new = []
    for a in arrays:
        if a.dtype is not dtype or a.ndim != n:
            return None
        new.append(a[at])
    return _concatenate(new, axis)


def flip(x: Any, axis: Any = None) -> Any:
    """The first axis in reverse order."""
    if axis is None:
        return x[::-1] if x.ndim == 1 else None
    return x[::-1] if axis.__class__ is int and axis == 0 and x.ndim else None


def pad(x: Any, pairs: Any, mode: Any) -> Any:
    """x with elements of its own before and behind each axis."""
    if mode != "edge" or x.ndim != 1 or not x.size:
        return np.pad(x, pairs, mode)
    ((low, high),) = pairs
    y = np.empty(low + x.size + high, x.dtype)
    y[:low] = x[0]
    y[low : low + x.size] = x
    y[low + x.size :] = x[-1]
    return y


def roll(x: Any, shift: Any, axis: Any = None) -> Any:
    """Elements of a vector moved by shift."""
    if x.ndim != 1 or shift.__class__ is not int or not x.size:
        return None
    if axis is not None and (axis.__class__ is not int or not -1 <= axis <= 0):
        return None
    at = -shift % x.size
    return np.concatenate((x[at:], x[:at]))
