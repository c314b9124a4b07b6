"""Sums of products of two arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from funct.kernels.dtypes import is_half
from funct.kernels.table import left, planned

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["MANY", "dot", "is_finite", "plain_dot", "plain_vdot", "vdot"]

_SIZE = np.uint16(0x7FFF)  # of a half all bits but its sign

MANY = 10_000  # terms, of which more may be on threads of BLAS


_vdot: Any = getattr(np.vdot, "_implementation", np.vdot)  # past the search for others' arrays


def dot(x: NDArray[Any], y: NDArray[Any]) -> Any:
    """Σ x y of two vectors, as `vdot`."""
    if x.dtype.char not in "dD" or not x.__class__ is y.__class__ is np.ndarray:
        return x.dot(y)
    layout = x.shape, y.shape, x.strides, y.strides
    return planned("dot", x.dtype, x.size, left(), *layout)(x, y)


def vdot(x: NDArray[Any], y: NDArray[Any]) -> Any:
    """Σ conj(x) y of all elements, without a warning. It is not finite if anything in x or y is
    not: 0 · inf is NaN.
    """
    if not x.__class__ is y.__class__ is np.ndarray:
        return np.vdot(x, y)
    if x.size > MANY and x.dtype.char in "dD" and x.dtype == y.dtype:
        layout = x.shape, y.shape, x.strides, y.strides
        return planned("vdot", x.dtype, x.size, left(), *layout)(x, y)
    return _vdot(x, y)


def is_finite(x: NDArray[Any]) -> Any:
    """Whether it is sure that nothing in x is infinite or NaN: one dot, whatever order the axes
    lie in, of which squares beyond the dtype leave it open; of halves their words say it.
    """
    if is_half(x.dtype):
        infinite = np.asarray(np.inf, x.dtype).view(np.uint16)
        return np.max(x.view(np.uint16) & _SIZE, initial=0) < infinite
    flat = x if x.flags.c_contiguous else x.ravel("K")
    return np.isfinite(vdot(flat, flat))


def plain_dot(x: NDArray[Any], y: NDArray[Any]) -> Any:
    """`dot`, by BLAS."""
    return x.dot(y)


def plain_vdot(x: NDArray[Any], y: NDArray[Any]) -> Any:
    """`vdot`, by BLAS."""
    return _vdot(x, y)
