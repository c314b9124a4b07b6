"""Cross products of many vectors of three numbers that lie side by side."""

from __future__ import annotations

from typing import Any

from funct.kernels.cpu.loops import parallel

__all__ = ["crossed"]


@parallel
def crossed(x: Any, y: Any, z: Any, rows: int, part: int, task: int) -> None:
    """z (rows, 3): the products of those of x and y, rounded as three arrays of each would be. A
    task takes `part` rows.
    """
    for r in range(task * part, min((task + 1) * part, rows)):
        e = 3 * r
        a, b, c = x[e], x[e + 1], x[e + 2]
        u, v, w = y[e], y[e + 1], y[e + 2]
        z[e] = b * w - c * v
        z[e + 1] = c * u - a * w
        z[e + 2] = a * v - b * u
