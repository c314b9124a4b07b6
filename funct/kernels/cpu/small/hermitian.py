"""The Hermitian part of small matrices in one pass: NumPy takes three, and a call for each."""

from __future__ import annotations

from typing import Any

import numpy as np

from funct.kernels.cpu.loops import kernel

__all__ = ["hermitian"]


@kernel
def hermitian(x: Any, y: Any, n: int, count: int, pairs: bool) -> None:
    """y: the Hermitian part of each of x (count, n, n). pairs: whether numbers are complex, and so
    their parts side by side.
    """
    for t in range(count):
        start = t * n * n
        for i in range(n):
            for j in range(i + 1):
                e = start + i * n + j
                f = start + j * n + i
                if pairs:
                    y[2 * e] = _middle(x[2 * e], x[2 * f])
                    y[2 * f] = y[2 * e]
                    im = _middle(x[2 * e + 1], -x[2 * f + 1])
                    y[2 * f + 1] = -im
                    y[2 * e + 1] = im
                else:
                    y[e] = _middle(x[e], x[f])
                    y[f] = y[e]


def _middle(a: Any, b: Any) -> Any:
    """Half the sum; the sum of two large numbers is infinite, and half a tiny one is rounded."""
    return np.where(a == b, a, a * 0.5 + b * 0.5)
