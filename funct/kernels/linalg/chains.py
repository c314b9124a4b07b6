"""Products of chains of matrices, in the order that takes the fewest multiplications."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

__all__ = ["chain_product"]

_MULTIPLY = -1


def chain_product(
    arrays: Sequence[Any], sizes: tuple[int, ...], multiply: Callable[[Any, Any], Any]
) -> Any:
    """The product. sizes: rows of the first, then columns of each."""
    held: list[Any] = []
    for step in _steps(sizes):
        if step == _MULTIPLY:
            right = held.pop()
            held.append(multiply(held.pop(), right))
        else:
            held.append(arrays[step])
    return held[0]


@functools.lru_cache(256)
def _steps(sizes: tuple[int, ...]) -> tuple[int, ...]:
    """The number of a matrix that is next, or that the last two are multiplied."""
    ends, todo, steps = _ends(sizes), [(0, len(sizes) - 2)], []
    while todo:
        first, last = todo.pop()
        if first == last:
            steps.append(first)
        else:
            steps.append(_MULTIPLY)
            middle = first + ends[first][last - first]
            todo += [(first, middle), (middle + 1, last)]
    return tuple(reversed(steps))


def _ends(sizes: tuple[int, ...]) -> list[list[int]]:
    """For the chain from each matrix to so many more: how many more its left part has, the fewest
    where several cost the same. All chains of one length at a time.
    """
    count, inside, last = len(sizes) - 1, set(sizes[1:-1]), sizes[-1]
    if len(inside) == 1 and last <= min(*inside, sizes[0]):  # square matrices: from the last on
        return [[0] * count] * count
    size = np.asarray(sizes, np.float64)  # which no cost is too large for
    ahead, behind = np.zeros((2, count, count))  # what chains from and up to a matrix cost
    ends = np.zeros((count, count), np.int64)
    for more in range(1, count):
        ways = ahead[:-more, :more] + behind[more:, :more][:, ::-1]
        inner = np.lib.stride_tricks.sliding_window_view(size[1:-1], more)
        ways += (size[: count - more] * size[more + 1 :])[:, None] * inner
        ends[:-more, more] = ways.argmin(1)
        ahead[:-more, more] = behind[more:, more] = ways.min(1)
    found: list[list[int]] = ends.tolist()
    return found
