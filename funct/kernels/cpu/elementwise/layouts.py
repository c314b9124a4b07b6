"""How operands that broadcast lie, and whether loops over blocks of rows of columns walk them.

Pure functions of shapes and strides, for the plans of `vector_loops.py`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

__all__ = ["Layout", "Walk", "merged", "period_of", "walks_of"]

# Shape, strides, dtype, and whether it is aligned.
Layout = tuple[tuple[int, ...], tuple[int, ...], np.dtype[Any], bool]
Walk = tuple[int, int, bool]  # strides of blocks and rows, whether columns lie side by side


def merged(
    shape: tuple[int, ...], layouts: Sequence[Layout]
) -> tuple[tuple[int, ...], tuple[Layout, ...]]:
    """A result's shape and its operands' layouts with as few axes as can be: neighbours that every
    operand walks as one are one.
    """
    rank = len(shape)
    owns = [(1,) * (rank - len(a[0])) + a[0] for a in layouts]
    strides = [(0,) * (rank - len(a[1])) + a[1] for a in layouts]
    walks = [
        [0 if n == 1 else s for n, s in zip(own, step, strict=True)]
        for own, step in zip(owns, strides, strict=True)
    ]
    axes: list[tuple[int, list[int]]] = []  # lengths and strides, the last axis first
    for k in reversed(range(rank)):
        n, steps = shape[k], [w[k] for w in walks]
        if n == 1:
            continue
        if axes and all(s == m * axes[-1][0] for s, m in zip(steps, axes[-1][1], strict=True)):
            n, steps = n * axes[-1][0], axes.pop()[1]
        axes.append((n, steps))
    axes.reverse()
    lengths = tuple([n for n, _ in axes])
    found = []
    for k, (_, _, dtype, aligned) in enumerate(layouts):
        own = tuple([n if steps[k] else 1 for n, steps in axes])
        found.append((own, tuple([steps[k] for _, steps in axes]), dtype, aligned))
    return lengths, tuple(found)


def period_of(layouts: Sequence[Layout], shape: tuple[int, ...]) -> int:
    """After how many elements operands that lie side by side repeat: 1 where all are whole or one
    number; 0 where one is neither, and does not repeat.
    """
    count, period = math.prod(shape), 1
    for layout in layouts:
        own = layout[0]
        n = math.prod(own)
        if n == 1:
            continue
        first = next(k for k, m in enumerate(own) if m != 1)
        if not _dense(layout) or own[first:] != shape[len(shape) - len(own) + first :]:
            return 0
        if n < count:
            if period not in (1, n):
                return 0
            period = n
    return period


def _dense(layout: Layout) -> bool:
    shape, strides, dtype, aligned = layout
    step = dtype.itemsize
    for n, s in zip(reversed(shape), reversed(strides), strict=True):
        if n != 1 and s != step:
            return False
        step *= n
    return aligned


def walks_of(layouts: Sequence[Layout], shape: tuple[int, ...]) -> tuple[int, list[Walk | None]]:
    """Rows of a block, and how each operand is walked; None for those that must be copied. The
    blocks begin where the fewest are.
    """
    best: tuple[int, list[Walk | None]] | None = None
    for axis in range(max(1, len(shape) - 1)):
        found = [_walk(layout, shape, axis) for layout in layouts]
        if best is None or found.count(None) < best[1].count(None):
            best = math.prod(shape[axis:-1]), found
    assert best is not None
    return best


def _walk(layout: Layout, shape: tuple[int, ...], axis: int) -> Walk | None:
    """The strides in elements, where the axes before this one make blocks, those after it rows."""
    own, strides, dtype, aligned = layout
    if not aligned:
        return None
    size = dtype.itemsize
    *outer, inner = [0 if n == 1 else s for n, s in zip(own, strides, strict=True)] or [0]
    outer = [0] * (len(shape) - 1 - len(outer)) + outer
    if inner not in (0, size):
        return None
    blocks, rows = (
        _stride(shape[:-1][part], outer[part]) for part in (slice(axis), slice(axis, None))
    )
    if blocks is None or rows is None or blocks % size or rows % size:
        return None
    return blocks // size, rows // size, inner != 0


def _stride(shape: Sequence[int], strides: Sequence[int]) -> int | None:
    """From one element of these axes to the next; None where it is not always the same."""
    stride, reach = 0, 0  # of the last axis; what a step along the next one must be
    begun = False
    for n, s in zip(reversed(shape), reversed(strides), strict=True):
        if n == 1:
            continue
        if not begun:
            stride, begun = s, True
        elif s != reach:
            return None
        reach = s * n
    return stride
