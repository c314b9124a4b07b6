"""Angles: of complex numbers, between degrees and radians, and without jumps."""

from __future__ import annotations

import math
from typing import Any

from funct import ops
from funct.array.axes import normal_axis
from funct.array.conversion import as_tensor
from funct.array.cumulative import cumulative_sum, diff
from funct.array.direct import direct
from funct.array.elementwise import floating
from funct.errors import DTypeError
from funct.kernels import composed

__all__ = ["angle", "deg2rad", "rad2deg", "unwrap"]


@direct(composed.angle)
def angle(z: Any, /, deg: bool = False) -> Any:
    """The angle of each z in the complex plane, in (-π, π]; of a negative real number π.

    deg: whether in degrees.
    Example:
        >>> import funct.array as xp
        >>> xp.angle(xp.asarray([1.0, 1j]), deg=True).tolist()
        [0.0, 90.0]

    Source: NumPy `angle`.
    """
    z = floating(as_tensor("angle", z, "z"))
    re, im = (ops.real(z), ops.imag(z)) if z.dtype.kind == "c" else (z, 0.0)
    turned = ops.atan2(im, re)
    return rad2deg(turned) if deg else turned


@direct(composed.deg2rad)
def deg2rad(x: Any, /) -> Any:
    """Degrees as radians: x π / 180. Integers give float64.

    Example:
        >>> import funct.array as xp
        >>> xp.deg2rad(xp.asarray(180)).item() == xp.pi
        True

    Source: NumPy `deg2rad`.
    """
    return _real("deg2rad", x) * (math.pi / 180.0)


@direct(composed.rad2deg)
def rad2deg(x: Any, /) -> Any:
    """Radians as degrees: x 180 / π. Integers give float64.

    Example:
        >>> import funct.array as xp
        >>> float(xp.rad2deg(xp.asarray(xp.pi)))
        180.0

    Source: NumPy `rad2deg`.
    """
    return _real("rad2deg", x) * (180.0 / math.pi)


@direct(composed.unwrap)
def unwrap(p: Any, /, discont: Any = None, axis: int = -1, *, period: float = 2.0 * math.pi) -> Any:
    """p along axis without jumps: whole periods are added wherever neighbours lie further apart
    than half a period, or than discont where that is more.

    Args: p: real, of rank 1 or more; integers give float64.
    Example:
        >>> import funct.array as xp
        >>> xp.unwrap(xp.asarray([0.0, 3.0, 0.0, 3.0]), period=4.0).tolist()
        [0.0, -1.0, 0.0, -1.0]

    Source: NumPy `unwrap`.
    """
    p = _real("unwrap", p)
    k = normal_axis("unwrap", axis, len(p.shape))
    if 0 in p.shape:
        return p
    step, half = diff(p, axis=k), period / 2.0
    near = ops.remainder(step + half, period) - half
    near = ops.where(ops.logical_and(ops.equal(near, -half), ops.greater(step, 0)), half, near)
    small = ops.less(ops.abs(step), half if discont is None else discont)
    turns = ops.where(small, 0.0, near - step)
    return p + cumulative_sum(turns, axis=k, include_initial=True)


def _real(name: str, x: Any) -> Any:
    x = floating(as_tensor(name, x))
    if x.dtype.kind == "c":
        raise DTypeError(f"{name}: x must be real, got {x.dtype}")
    return x
