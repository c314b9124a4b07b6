"""Products of integer matrices, exact modulo the range of the dtype.

Bytes and 16-bit integers are multiplied in pairs (`s16`), 32-bit ones one by one. Signs do not
matter modulo 2^n, so unsigned matrices are taken as signed ones of the same bits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from funct.kernels.cpu import scratch as memory
from funct.kernels.cpu.axes import axis
from funct.kernels.cpu.panels import batch_of, convolve, packed

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["integer_matmul", "multiply", "pairs", "panels_of"]

_ONE = axis(1, 1, 1, 1, 0, 1)
_KERNEL = (1, 1, 1)


def panels_of(w: NDArray[Any], dot: str, steps: tuple[int, int]) -> NDArray[Any]:
    """Panels of words w. steps: from one column of the right matrix to the next, from row to row.

    w: (columns, rows) or (rows, columns), as the steps say.
    """
    lane, depth = steps
    rows, columns = (w.shape[1], w.shape[0]) if depth == 1 else w.shape
    batch = batch_of(1, 1, rows, columns, dot)
    return packed(w, dot, batch, (_ONE, _ONE, _ONE), _KERNEL, (lane, depth))


def multiply(x: NDArray[Any], panels: NDArray[Any], columns: int, dot: str) -> NDArray[Any]:
    """(rows, depth) words times panels: sums, (rows, columns), of 4 or 8 bytes like the words."""
    rows, depth = x.shape
    batch = batch_of(1, 1, depth, columns, dot)
    y = memory.fresh((rows, columns), x.dtype)
    axes = (axis(rows, rows, 1, 1, 0, 1), _ONE, _ONE)
    convolve(x, panels, y, dot, batch, axes, _KERNEL, reads_last=True, writes_last=True)
    return y


def pairs(x: NDArray[Any]) -> NDArray[np.int32]:
    """A matrix of small integers as words of two, along its last axis, which is filled up by 0."""
    rows, depth = x.shape
    words = memory.fresh((rows, -(-depth // 2)), np.dtype(np.int32))
    halves = words.view(np.int16)
    halves[:, :depth] = x
    halves[:, depth:] = 0
    return words


def integer_matmul(x: NDArray[Any], y: NDArray[Any]) -> NDArray[Any]:
    """See `funct.kernels.products.integer_matmul`."""
    if not (x.size and y.size) or x.shape[-2] < 4 or y.shape[-1] < 8:
        return NotImplemented
    if x.itemsize == 8:
        return NotImplemented
    if y.ndim == 2:
        flat = _product(x.reshape(-1, x.shape[-1]), y)
        return flat.reshape(*x.shape[:-1], y.shape[1])
    lead = np.broadcast_shapes(x.shape[:-2], y.shape[:-2])
    out = memory.fresh((*lead, x.shape[-2], y.shape[-1]), x.dtype)
    xs = np.broadcast_to(x, (*lead, *x.shape[-2:]))
    ys = np.broadcast_to(y, (*lead, *y.shape[-2:]))
    for at in np.ndindex(lead):
        out[at] = _product(xs[at], ys[at])
    return out


def _product(x: NDArray[Any], y: NDArray[Any]) -> NDArray[Any]:
    columns = y.shape[1]
    if x.itemsize == 4:
        words = np.ascontiguousarray(x).view(np.int32)
        right = np.ascontiguousarray(y).view(np.int32)
        return multiply(words, panels_of(right, "s32", (1, columns)), columns, "s32").view(x.dtype)
    signed = x.dtype if x.dtype == np.uint8 else np.dtype(f"i{x.itemsize}")
    left, right = (pairs(v.view(signed)) for v in (_dense(x), _dense(y.T)))
    panels = panels_of(right, "s16", (right.shape[1], 1))
    return multiply(left, panels, columns, "s16").astype(x.dtype)


def _dense(x: NDArray[Any]) -> NDArray[Any]:
    return np.ascontiguousarray(x)
