"""Whether what is to be sorted is in order already: of most arrays the first elements tell."""

from __future__ import annotations

from typing import Any

import numpy as np

from funct.kernels.cpu.loops import kernel, making
from funct.kernels.cpu.order.sorting import behind
from funct.kernels.cpu.order.words import LANES
from funct.kernels.cpu.vectors import lanes, loaded, stored

__all__ = ["STANDS", "TURNED", "in_order", "positions"]

STANDS, TURNED = 1, 2


@kernel
def in_order(x: Any, rows: int, n: int, descending: bool) -> int:
    """STANDS where each row of x (rows, n) is in order, equal elements included; TURNED where each
    is in the other order, and no elements are equal; 0 elsewhere. n >= 2.
    """
    turned = behind(x[0], x[1], descending)
    for r in range(rows):
        end = r * n + n
        k: Any = r * n + 1
        while k + LANES <= end:
            apart = behind(loaded(x, k - 1, LANES), loaded(x, k, LANES), descending)
            if (apart != turned).any():
                return 0
            k += LANES
        while k < end:
            if behind(x[k - 1], x[k], descending) != turned:
                return 0
            k += 1
    return 2 if turned else 1


@making("n", "like")
def positions(n: int, like: Any, turned: bool, y: Any, size: int) -> None:
    """0, 1, … n - 1 in a new array of the dtype of like, int64; turned: the last one first."""
    whole = size & -LANES
    for k in range(0, whole, LANES):
        up = lanes(LANES, np.int64) + k
        stored(y, k, size - 1 - up if turned else up)
    for k in range(whole, size):
        y[k] = size - 1 - k if turned else k
