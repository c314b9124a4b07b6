"""Places of maxima of boxes of several sizes, which are told by their ends along each axis."""

from __future__ import annotations

from typing import Any

from funct.kernels.cpu.irregular.scans import better
from funct.kernels.cpu.loops import parallel

__all__ = ["max_index_boxes"]


@parallel
def max_index_boxes(
    x: Any, y: Any, ends: Any, n0: int, n1: int, n2: int, t0: int, t1: int, t2: int, planes: int,
    some: int, task: int,
) -> None:  # fmt: skip
    """y (planes, t0, t1, t2): the flat place in its image of the first maximum of each box.

    x: (planes, n0, n1, n2). ends: of the boxes along each of the axes the first element and the
    end, axis by axis. No box is empty. A task takes `some` planes.
    """
    out = task * some * t0 * t1 * t2
    for p in range(task * some, min((task + 1) * some, planes)):
        image = p * n0 * n1 * n2
        for i in range(t0):
            for j in range(t0, t0 + t1):
                for k in range(t0 + t1, t0 + t1 + t2):
                    place = (ends[2 * i] * n1 + ends[2 * j]) * n2 + ends[2 * k]
                    best = x[image + place]
                    for u in range(ends[2 * i], ends[2 * i + 1]):
                        for v in range(ends[2 * j], ends[2 * j + 1]):
                            row = (u * n1 + v) * n2
                            for w in range(row + ends[2 * k], row + ends[2 * k + 1]):
                                one = x[image + w]
                                if better(one, best, True):
                                    best = one
                                    place = w
                    y[out] = place
                    out += 1
