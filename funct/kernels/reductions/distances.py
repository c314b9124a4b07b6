"""Distances of all pairs of rows, where there is machine code: `cpu/reductions` says of what."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from funct.kernels.cpu.loops import compiles
from funct.kernels.cpu.reductions.distances import LANES, PART, distances, distances_back
from funct.kernels.cpu.scratch import fresh, workspace
from funct.kernels.quiet import quiet
from funct.kernels.windows.places import share

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["HOW", "few_pair_distances", "pair_distances", "pair_distances_back"]

HOW = {1.0: "sum", 2.0: "root", float("inf"): "max"}  # by the norm

_MANY = 64  # elements from which on LLVM is worth loading
_FEW = 1 << 10  # elements up to which what stands before the kernel costs as much as it does
_WIDE = 1024  # of a row beyond which sums one after the other lose digits
_TASKS = 16  # of the way back, each of which needs room


def few_pair_distances(x: NDArray[Any], p: Any) -> NDArray[Any] | None:
    """`pair_distances` of few elements, whose result is sure to find room."""
    if x.ndim != 2 or x.size > _FEW or p.__class__ not in (int, float):
        return None
    return pair_distances(x, p)


def pair_distances(x: NDArray[Any], p: float) -> NDArray[Any] | None:
    """Of rows (N, M) the p-norm of each less all behind it; None where the composition serves."""
    if p not in HOW or x.dtype.char not in "fd" or x.shape[1] > _WIDE:
        return None
    if x.size < _MANY or not compiles():
        return None
    return _of_pairs(x, HOW[p])


def _of_pairs(x: NDArray[Any], how: str) -> NDArray[Any]:
    rows, width = x.shape
    y = fresh((rows * (rows - 1) // 2,), x.dtype)
    some = 2 * share(rows * width, -(-rows // 2))
    tasks = -(-rows // some)
    distances(x, _panels(x), y, np.empty(tasks * LANES, x.dtype), rows, width, how, some, tasks)
    return y


def _panels(x: NDArray[Any]) -> NDArray[Any]:
    """The rows by LANES, turned, and zeros behind them."""
    rows, width = x.shape
    padded = np.zeros((-(-rows // LANES) * LANES, width), x.dtype)
    padded[:rows] = x
    return padded.reshape(-1, LANES, width).transpose(0, 2, 1).copy()


def pair_distances_back(
    g: NDArray[Any], x: NDArray[Any], lengths: NDArray[Any], p: float
) -> NDArray[Any]:
    """What the rows get where g came to their distances."""
    rows, width = x.shape
    how = HOW[p]
    wide = -(-width // PART) * PART
    if wide != width:
        x = np.concatenate((x, np.zeros((rows, wide - width), x.dtype)), 1)
    if p == 2:
        g = quiet().run(np.divide, g, np.where(lengths == 0, np.inf, lengths))
    elif p != 1:
        g = quiet().run(np.divide, g, _of_pairs(x, "ties"))
    y = fresh(x.shape, x.dtype)
    some = 4 * -(-rows // (4 * _TASKS))
    tasks = -(-rows // some)
    room = workspace(tasks * 8 * rows, x.dtype)
    distances_back(x, lengths, g, room, y, rows, wide, how, some, tasks)
    return y[:, :width]
