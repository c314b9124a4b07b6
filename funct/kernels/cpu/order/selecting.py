"""A place of what would be sorted, found by counting what is below a bound, again and again.

Bounds are guessed as if elements lay evenly between the last two: a few passes of vectors leave few
elements, which are sorted.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from funct.kernels.cpu.loops import kernel
from funct.kernels.cpu.order.words import LANES
from funct.kernels.cpu.vectors import ascend, loaded, many, spread, stored

__all__ = ["ROOM", "between"]

_SORTED = 64  # elements that are left at most
ROOM = _SORTED + 2
_ASIDE = 20  # places that a guess is aside from what is sought: one is soon below, one above
_ROUNDS, _IDLE = 24, 5  # guesses, and those of them that tell nothing, as where many are equal
_HALF = 3  # of four guesses one is the middle, as elements may lie unevenly


@kernel
def between(x: Any, room: Any, n: int, k: int, part: float) -> int:
    """What lies between the places k and k + 1 of n floats if they are sorted; at place k if part
    is 0, else k + 1 < n. room: ROOM elements, the last of which it is then. The answer is 1 where
    that takes too long, or there are NaN, infinities or, at these places, zeros: where one stands
    tells its sign.
    """
    real = x.dtype.type
    low = _least(x, room, n, x[0], False, False)
    high = _least(x, room, n, x[0], False, True)
    if _odd(x, n):
        return 1
    below: Any = np.int64(0)
    above: Any = np.int64(n)
    turn: Any = np.int64(0)
    idle: Any = np.int64(0)
    while above - below > _SORTED and turn < _ROUNDS and idle < _IDLE:
        sought = k + np.where(turn & 1 == 1, _ASIDE, -_ASIDE) - below
        sought = min(max(sought, 1), above - below - 1)
        share = real(sought) / real(above - below)
        share = np.where(turn & _HALF == _HALF, real(0.5), share)
        bound = low + (high - low) * share
        found = _how_many_below(x, n, bound)
        idle += np.where((found == below) | (found == above), 1, 0)
        if found <= k:
            low = bound
            below = found
        else:
            high = bound
            above = found
        turn += 1
    if above - below > _SORTED:
        return 1
    some = _taken(x, room, n, low, high, above == n)
    ascend(room, 0, some)
    a = room[k - below]
    b = a
    share = real(part)
    if share > 0:
        if k + 1 < above:
            b = room[k + 1 - below]
        else:
            b = _least(x, room, n, high, True, False)
    if (a == 0) | (b == 0):
        return 1
    step = (b - a) * np.where(share < real(0.5), share, real(1) - share)
    room[ROOM - 1] = np.where(share < real(0.5), a + step, b - step)
    return 0


def _odd(x: Any, n: Any) -> Any:
    """Whether some element is not finite."""
    whole = n & -LANES
    odd: Any = n < 0
    for i in range(0, whole, LANES):
        v = loaded(x, i, LANES)
        odd = odd | (v - v != 0).any()
    for i in range(whole, n):
        odd = odd | (x[i] - x[i] != 0)
    return odd


def _least(x: Any, room: Any, n: Any, bound: Any, bounded: bool, largest: bool) -> Any:
    """The least element, of those that are not below a bound, or the largest one."""
    whole = n & -LANES
    found = x[0]
    if bounded:
        found = x.dtype.type(np.inf)
    best = spread(found, LANES)
    for i in range(0, whole, LANES):
        v = loaded(x, i, LANES)
        if bounded:
            v = np.where(v < bound, best, v)
        best = np.where(v > best if largest else v < best, v, best)
    stored(room, 0, best)
    for i in range(LANES):
        v = room[i]
        found = np.where(v > found if largest else v < found, v, found)
    for i in range(whole, n):
        v = x[i]
        if bounded:
            v = np.where(v < bound, found, v)
        found = np.where(v > found if largest else v < found, v, found)
    return found


def _how_many_below(x: Any, n: Any, bound: Any) -> Any:
    whole = n & -LANES
    bounds = spread(bound, LANES)
    found: Any = np.int64(0)
    for i in range(0, whole, LANES):
        found += many(loaded(x, i, LANES) < bounds)
    for i in range(whole, n):
        found += np.where(x[i] < bound, 1, 0)
    return found


def _taken(x: Any, room: Any, n: Any, low: Any, high: Any, last: Any) -> Any:
    """Put into room what is from low on and below high, or, if last, all above; how many."""
    whole = n & -LANES
    found: Any = np.int64(0)
    for i in range(0, whole, LANES):
        v = loaded(x, i, LANES)
        if ((v >= low) & ((v < high) | last)).any():
            for j in range(LANES):
                w = x[i + j]
                room[found] = w
                found += np.where((w >= low) & ((w < high) | last), 1, 0)
    for i in range(whole, n):
        w = x[i]
        room[found] = w
        found += np.where((w >= low) & ((w < high) | last), 1, 0)
    return found
