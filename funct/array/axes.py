"""Axes and shapes as users write them, brought to the normal form that ops take."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from funct.core import Shape, Size, Value
from funct.errors import AllocationError, AxisError, ShapeError, UnsupportedOperandError
from funct.ops.broadcasting import broadcast_shapes
from funct.ops.refusals import shown

__all__ = [
    "common_shape", "integers", "normal_axes", "normal_axis", "normal_shape", "real_number",
]  # fmt: skip

_LONGEST = 2**63
_MOST = 2**24  # ints of a range that become a tuple
_EVERY = tuple([tuple(range(n)) for n in range(9)])


def integers(name: str, argument: str, value: Any) -> Shape:
    """A tuple of ints from an int, a tuple or a list; symbolic sizes pass."""
    given = value if isinstance(value, tuple | list | range) else (value,)
    if value.__class__ is range and value[_MOST:]:
        raise AllocationError(f"{name}: {argument} must be fewer, got {value}")
    try:
        out: list[Any] = [v if isinstance(v, Size) else operator.index(v) for v in given]
        return tuple(out)
    except TypeError:
        raise UnsupportedOperandError(
            f"{name}: {argument} must be an int or a tuple of ints, got {shown(value)}"
        ) from None


def common_shape(name: str, *shapes: Shape) -> Shape:
    """The shape that all of them broadcast to."""
    try:
        return broadcast_shapes(*shapes)
    except ValueError as error:
        got = " and ".join(map(str, shapes))
        raise ShapeError(f"{name}: shapes {got} cannot be broadcast: {error}") from None


def real_number(name: str, argument: str, value: Any) -> Any:
    """value, which must be a real number, a Size or a 0-d Tensor."""
    if value.__class__ is float or value.__class__ is int:
        return value
    if isinstance(value, Value):
        good = not value.shape and value.dtype.kind in "iuf"
    else:
        good = isinstance(value, int | float | np.integer | np.floating | Size)
    if not good:
        raise UnsupportedOperandError(f"{name}: {argument} must be a number, got {shown(value)}")
    return value


def normal_axis(name: str, axis: Any, ndim: int) -> int:
    """A non-negative axis, or an error that names the function."""
    if axis.__class__ is int and -ndim <= axis < ndim:
        return axis + ndim if axis < 0 else axis
    try:
        k = operator.index(axis)
    except TypeError:
        raise ShapeError(f"{name}: axis must be an int, got {shown(axis)}") from None
    if not -ndim <= k < ndim:
        raise AxisError(f"{name}: axis {shown(k)} is out of range for an array of rank {ndim}")
    return k % ndim if ndim else k


def normal_axes(name: str, axis: Any, ndim: int) -> Shape:
    """A sorted tuple of non-negative axes; None stands for all of them."""
    if axis is None:
        return _EVERY[ndim] if ndim < len(_EVERY) else tuple(range(ndim))
    if axis.__class__ is int:
        return (normal_axis(name, axis, ndim),)
    axes = tuple(
        [normal_axis(name, a, ndim) for a in (axis if isinstance(axis, tuple | list) else (axis,))]
    )
    if len(set(axes)) != len(axes):
        raise ShapeError(f"{name}: an axis occurs twice in {axis}")
    return tuple(sorted(axes))


def normal_shape(name: str, shape: Any) -> Shape:
    """A tuple of axis lengths from an int, a tuple or a list; symbolic sizes pass."""
    if shape.__class__ is int and 0 <= shape < _LONGEST:
        return (shape,)
    dims = shape if isinstance(shape, tuple | list) else (shape,)
    out: list[Any] = []
    for n in dims:
        if n.__class__ is int and 0 <= n < _LONGEST:
            out.append(n)
            continue
        if isinstance(n, Size):
            out.append(n)
            continue
        try:
            k = operator.index(n)
        except TypeError:
            got = f"{shown(n)} in {shown(shape)}"
            raise ShapeError(f"{name}: shape must hold ints, got {got}") from None
        if k < 0 and not (name == "reshape" and k == -1):
            raise ShapeError(f"{name}: shape must not be negative, got {shown(shape)}")
        if k >= _LONGEST:
            got = shown(shape)
            raise AllocationError(f"{name}: no axis is as long as the shape says, got {got}")
        out.append(k)
    return tuple(out)
