"""Kronecker's product in one pass, and sums of diagonals: NumPy takes a call for each step, and
multiplies a few elements at a time.
"""

from __future__ import annotations

from typing import Any

from funct.kernels.cpu.loops import kernel, parallel
from funct.kernels.cpu.vectors import loaded, spread, stored, summed

__all__ = ["kron", "kron_at_once", "trace"]


@parallel
def kron(
    x: Any, y: Any, z: Any, m: int, n: int, p: int, q: int, part: int, task: int
) -> None:  # fmt: skip
    """z (m, p, n, q): y (p, q) times each element of x (m, n). A task takes `part` rows of x."""
    width = 64 // y.dtype.itemsize
    whole = q & -width
    for i in range(task * part, min((task + 1) * part, m)):
        for k in range(p):
            row = (i * p + k) * n * q
            for j in range(n):
                v, to = x[i * n + j], row + j * q
                for c in range(0, whole, width):
                    stored(z, to + c, spread(v, width) * loaded(y, k * q + c, width))
                for c in range(whole, q):
                    z[to + c] = v * y[k * q + c]


@kernel
def kron_at_once(x: Any, y: Any, z: Any, m: int, n: int, p: int, q: int) -> None:
    """The same without tasks: short loops are up to a third quicker where bounds are no words."""
    kron.fn(x, y, z, m, n, p, q, m, 0)


@kernel
def trace(x: Any, y: Any, room: Any, start: int, step: int, count: int) -> None:
    """y (1,): the sum, in NumPy's order, of so many elements of x, a step one behind the other.
    room (count,).
    """
    for k in range(count):
        room[k] = x[start + k * step]
    y[0] = summed(room, 0, count)
