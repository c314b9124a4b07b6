"""Whether what is to be sorted is in order already: of most arrays the first elements tell."""

from __future__ import annotations

from typing import Any

from funct.kernels.cpu.irregular.sorting import behind
from funct.kernels.cpu.irregular.words import LANES
from funct.kernels.cpu.loops import kernel
from funct.kernels.cpu.vectors import loaded

__all__ = ["STANDS", "TURNED", "in_order"]

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
