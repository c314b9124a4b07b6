"""Products of integer matrices, exact modulo the range of the dtype; and of thin ones of floats.

Bytes are multiplied in fours (`u8s8`) where the processor can, else, as 16-bit integers are, in
pairs (`s16`), and 32-bit ones one by one. Signs do not matter modulo 2^n, so unsigned matrices are
taken as signed ones of the same bits, and the other way round.
"""

from __future__ import annotations

import functools
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from funct.device import host
from funct.kernels.cpu import scratch as memory
from funct.kernels.cpu.convolution.axes import axis
from funct.kernels.cpu.convolution.panels import Convolver, batch_of
from funct.kernels.cpu.dense.dots import DOTS, supported
from funct.kernels.cpu.dense.words import filled

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["integer_matmul", "multiplier", "multiply", "thin_matmul"]

_FLOATS = {"f": "f32", "d": "f64"}
# What is worth tiles, beside products of few rows (`integer_rows.py`): rows, columns, and rows
# beside a matrix that has to be turned, by the bytes of a number; those that are multiplied in
# fours are as those that are not widened. With vectors of 64 bytes, and with shorter ones. Then
# terms, and multiplications of one of a stack.
_LEAST_LONG = {1: (32, 32, 32), 2: (16, 16, 16), 4: (8, 8, 16)}
_LEAST_SHORT = {1: (128, 64, 192), 2: (96, 32, 192), 4: (48, 16, 192)}
_LONG = 64
_THIN = 8  # of so many terms tiles are as good as BLAS where vectors have as many bytes
_LEAST_TERMS, _LEAST = 64, 1 << 22
_ONE = axis(1, 1, 1, 1, 0, 1)


@functools.lru_cache(512)
def multiplier(rows: int, depth: int, columns: int, dot: str, by_column: bool) -> Convolver:
    """Multiplies (rows, depth) words by `panels` of (depth, columns), or of its transpose.

    by_column: that transpose, (columns, depth), is what lies in memory.
    """
    batch = batch_of(1, 1, depth, columns, dot, last=True)
    axes = (axis(rows, rows, 1, 1, 0, 1), _ONE, _ONE)
    steps = (depth, 1) if by_column else (1, columns)
    return Convolver(dot, batch, axes, (1, 1, 1), steps)


def multiply(made: Convolver, x: NDArray[Any], panels: NDArray[Any], columns: int) -> NDArray[Any]:
    """Sums, (rows, columns), of as many bytes as the words."""
    y = memory.fresh((len(x), columns), x.dtype)
    made.run(x, panels, y)
    return y


def integer_matmul(x: NDArray[Any], y: NDArray[Any]) -> NDArray[Any]:
    """See `funct.kernels.linalg.products.integer_matmul`."""
    (m, k), n = x.shape[-2:], y.shape[-1]
    m = prod(x.shape[:-1]) if y.ndim == 2 else m
    if x.itemsize == 8 or k < _LEAST_TERMS or not x.size:
        return NotImplemented
    fours = x.itemsize == 1 and _narrow(1)[0] == "u8s8"
    known = _LEAST_LONG if fours or host().vector_bytes == _LONG else _LEAST_SHORT
    rows, columns, turned = known[4 if fours else x.itemsize]
    if n < columns or m < (rows if y.flags.c_contiguous else turned):
        return NotImplemented
    if y.ndim > 2 and m * k * n < _LEAST:
        return NotImplemented
    if y.ndim == 2:
        flat = _product(x.reshape(-1, x.shape[-1]), y)
        return flat.reshape(*x.shape[:-1], n)
    lead = np.broadcast_shapes(x.shape[:-2], y.shape[:-2])
    out = memory.fresh((*lead, m, n), x.dtype)
    xs = np.broadcast_to(x, (*lead, *x.shape[-2:]))
    ys = np.broadcast_to(y, (*lead, *y.shape[-2:]))
    for at in np.ndindex(lead):
        out[at] = _product(xs[at], ys[at])
    return out


def thin_matmul(x: NDArray[Any], y: NDArray[Any]) -> NDArray[Any]:
    """Matrices whose product has many more elements than they: tiles write each once."""
    if x.shape[1] != y.shape[0] or x.shape[1] * _THIN > x.itemsize * host().vector_bytes:
        return NotImplemented
    x, y = np.ascontiguousarray(x), np.ascontiguousarray(y)
    made = multiplier(*x.shape, y.shape[1], _FLOATS[x.dtype.char], False)
    return multiply(made, x, made.panels(y), y.shape[1])


def _product(x: NDArray[Any], y: NDArray[Any]) -> NDArray[Any]:
    columns = y.shape[1]
    if x.itemsize == 4:
        left, right = (np.ascontiguousarray(v).view(np.int32) for v in (x, y))
        made = multiplier(*left.shape, columns, "s32", False)
        return multiply(made, left, made.panels(right), columns).view(x.dtype)
    dot, element = _narrow(x.itemsize)
    left, right = filled(x[:, :, None], element)[:, :, 0], filled(y[None], element)[0]
    made = multiplier(*left.shape, columns, dot, False)
    return multiply(made, left, made.panels(right), columns).astype(x.dtype)


def _narrow(itemsize: int) -> tuple[str, np.dtype[Any]]:
    """What multiplies integers of so many bytes, and as which integers it takes them."""
    if itemsize == 1 and supported(DOTS["u8s8"], host()):
        return "u8s8", np.dtype(np.int8)
    return "s16", np.dtype(np.int16)
