"""Narrow integers as words of several, which a step of the micro-kernel multiplies (`dots.py`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from funct.kernels.cpu import scratch as memory

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["filled"]


def filled(x: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[np.int32]:
    """Small integers as words of as many as fit, along axis 1 of three, which is filled up by 0."""
    rows, depth, columns = x.shape
    count = 4 // dtype.itemsize
    if columns == 1 and depth % count == 0 and x.itemsize == dtype.itemsize:
        return np.ascontiguousarray(x[:, :, 0]).view(np.int32)[:, :, None]
    words = -(-depth // count)
    y = memory.fresh((rows, words, columns), np.dtype(np.int32))
    parts = y.view(dtype).reshape(rows, words, columns, count)
    for k in range(count):
        part = x[:, k::count]
        parts[:, : part.shape[1], :, k] = part
        parts[:, part.shape[1] :, :, k] = 0
    return y
