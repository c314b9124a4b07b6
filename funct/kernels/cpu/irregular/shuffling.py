"""The order of keys that lie evenly, as random ones do: few are between where their first bits say
that one stands and where it does.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from funct.kernels.cpu.irregular.words import DIGIT, LANES, by_digit
from funct.kernels.cpu.loops import kernel
from funct.kernels.cpu.vectors import loaded, spread, stored

__all__ = ["NEAR", "PLACES", "even_order"]

NEAR = 1 << 17  # words up to which all places are at hand,
PLACES = 1 << 17  # of which there are no more
_PART = 11  # bits of how many words have one first digit, where digits are enough


@kernel
def even_order(
    keys: Any, words: Any, other: Any, counts: Any, places: Any, near: int, n: int, low: int
) -> int:
    """other: the indices of keys (n,), 64 bits without sign, in order. words are in order of their
    first bits and, behind them, of such an index, which are `low` bits; where keys are alike in so
    many bits the answer is 1, and other is words.

    counts: 2 ** DIGIT; places: PLACES. More words than `near` are dealt out by their first digit,
    and the few that have one of these by as many bits as there are of them; insertion does what is
    left.
    """
    bottom = np.uint64(low)
    for i in range(n):
        words[i] = ((keys[i] >> bottom) << bottom) | np.uint64(i)
    if n <= near:
        _dealt_out(words, other, places, 0, n, 64)
        return _indices(other, other, n, low)
    digit: Any = max(1, min(low - _PART, DIGIT))
    by_digit(words, other, counts, n, 64 - digit)
    first: Any = np.int64(0)
    for d in range(1 << digit):
        last = counts[d]
        _dealt_out(other, words, places, first, last, 64 - digit)
        first = last
    return _indices(words, other, n, low)


def _indices(words: Any, y: Any, n: Any, low: int) -> Any:
    """y: what is behind the first bits of words in order, or the words themselves, and 1, where two
    are alike in these.
    """
    bottom = np.uint64(low)
    index = (np.uint64(1) << bottom) - 1
    whole = (n - 1) & -LANES
    none: Any = np.uint64(0)
    alike: Any = n < 0
    for i in range(0, whole, LANES):
        apart = (loaded(words, i, LANES) ^ loaded(words, i + 1, LANES)) >> bottom
        alike = alike | (apart == spread(none, LANES)).any()
    for i in range(whole, n - 1):
        alike = alike | ((words[i] ^ words[i + 1]) >> bottom == 0)
    if alike:
        index = ~none
    for i in range(0, whole, LANES):
        stored(y, i, loaded(words, i, LANES) & index)
    for i in range(whole, n):
        y[i] = words[i] & index
    return 1 if alike else 0


def _dealt_out(words: Any, other: Any, places: Any, first: Any, last: Any, top: int) -> None:
    """other: words [first, last) in order, all of whose bits from `top` on are the same."""
    size: Any = np.int64(2)
    shift: Any = np.int64(top - 1)
    while size < last - first and size < PLACES:
        size += size
        shift -= 1
    at = shift.astype(np.uint64)
    mask = (size - 1).astype(np.uint64)
    for d in range(size):
        places[d] = np.int32(0)
    for i in range(first, last):
        d = ((words[i] >> at) & mask).astype(np.int64)
        places[d] = places[d] + 1
    place: Any = np.int32(0)
    for d in range(size):
        many = places[d]
        places[d] = place
        place += many
    for i in range(first, last):
        v = words[i]
        d = ((v >> at) & mask).astype(np.int64)
        place = places[d]
        places[d] = place + 1
        other[first + place.astype(np.int64)] = v
    if first < last:  # the largest goes up, without a branch: then few stand where they do not
        largest: Any = other[first]
        for i in range(first + 1, last):
            v = other[i]
            other[i - 1] = min(largest, v)
            largest = max(largest, v)
        other[last - 1] = largest
    for i in range(first + 1, last):
        v = other[i]
        to = i
        before: Any = other[to - 1]
        while before > v:
            other[to] = before
            to -= 1
            before = other[max(to - 1, first)] if to > first else v
        other[to] = v
