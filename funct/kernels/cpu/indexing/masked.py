"""What is combined with elements, or rows, where a mask holds. None has a branch for an element: of
irregular masks a processor would guess half of them wrong.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from funct.kernels.cpu.indexing.combining import combined_one, picked
from funct.kernels.cpu.indexing.runs import copied
from funct.kernels.cpu.loops import kernel, making, parallel
from funct.kernels.cpu.vectors import loaded, spread, stored

__all__ = ["combine_under", "combined_under", "fill_under", "filled_under"]

_SIDE, _LANES = 32, 8  # elements that are chosen together, and those of a row


@parallel
def combine_under(
    x: Any, v: Any, mask: Any, y: Any, n: int, inner: int, mode: str, part: int, task: int
) -> None:
    """y: rows of x (n, inner), those where the mask is 1 combined with a number v (1,): "set",
    "add", "multiply", "min", "max". A task makes `part` rows.
    """
    first = task * part
    _under(x, v[0], mask, y, first, min(first + part, n), inner, mode)


@making("x")
def combined_under(
    x: Any, v: Any, mask: Any, n: int, inner: int, mode: str, single: bool, y: Any, size: int
) -> None:
    """`combine_under` in a new array; single: v is a number."""
    _under(x, picked(v, 0, x.dtype, single), mask, y, 0, n, inner, mode)


def _under(x: Any, v: Any, mask: Any, y: Any, first: Any, last: Any, inner: Any, mode: str) -> None:
    if inner == 1:
        whole = first + ((last - first) & -_SIDE)
        for k in range(first, whole, _SIDE):
            old = loaded(x, k, _SIDE)
            new = combined_one(old, spread(v, _SIDE), mode)
            stored(y, k, np.where(loaded(mask, k, _SIDE) != 0, new, old))
        for k in range(whole, last):
            y[k] = np.where(mask[k] != 0, combined_one(x[k], v, mode), x[k])
    else:
        lanes = inner & -_LANES
        for r in range(first, last):
            at = r * inner
            if mask[r] != 0:
                for j in range(at, at + lanes, _LANES):
                    stored(y, j, combined_one(loaded(x, j, _LANES), spread(v, _LANES), mode))
                for j in range(at + lanes, at + inner):
                    y[j] = combined_one(x[j], v, mode)
            else:
                copied(x, at, y, at, inner)


@kernel
def fill_under(x: Any, v: Any, mask: Any, y: Any, n: int, count: int) -> int:
    """y: x (n,) with v (count,), of one element at least, in their order where the mask is 1; gives
    1 where that is another number of times.
    """
    wrong: int = _filled(x, v, mask, y, n, count)
    return wrong


@making("x")
def filled_under(x: Any, v: Any, mask: Any, count: int, y: Any, n: int) -> int:
    """`fill_under` in a new array."""
    wrong: int = _filled(x, v, mask, y, n, count)
    return wrong


def _filled(x: Any, v: Any, mask: Any, y: Any, n: Any, count: Any) -> Any:
    out: Any = np.int64(0)
    for k in range(n):
        here = mask[k]
        y[k] = np.where(here != 0, v[min(out, count - 1)], x[k])
        out += here.astype(np.int64)
    return np.where(out == count, 0, 1)
