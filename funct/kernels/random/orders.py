"""The order of random words, which is a permutation."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from funct.kernels.cpu.loops import ready
from funct.kernels.cpu.order.shuffling import NEAR, even_order, items_for, sizes
from funct.kernels.cpu.scratch import fresh, workspace
from funct.kernels.order.sorting import argsort

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["first", "order"]

_WORD, _ITEM = np.dtype(np.uint64), np.dtype(np.int32)
_LIKE = np.zeros(1, np.int64)  # what places are
_MANY, _SHARE = 1 << 13, 4  # words of which so small a part is found before it is put in order
_SPREAD = 8  # standard deviations
_WORDS = 2**64


def order(words: NDArray[Any]) -> NDArray[np.int64]:
    """`argsort` of one axis of words of 64 bits, quicker where they are random."""
    n = words.size
    if not n or not ready(n):
        return argsort(words, 0, False)
    low, digit, part, room = sizes(n, NEAR)
    counts, dealt = _LIKE, words
    if digit:
        counts, dealt = np.empty(1 << digit, np.int64), fresh((part << digit,), _WORD)
    items = workspace(items_for(room), _ITEM)
    y: NDArray[np.int64] | None
    y = even_order(words, _LIKE, dealt, counts, items, n, low, digit, part, room)
    return argsort(words, 0, False) if y is None else y


def first(words: NDArray[Any], count: int) -> NDArray[np.int64]:
    """The first `count` places of `order`: they are among the words below a limit, if these are
    enough. Scaled, those are random words again.
    """
    n = words.size
    if n < _MANY or count * _SHARE > n:
        return order(words)[:count]
    below = (count + _SPREAD * math.isqrt(count) + _SPREAD) * _WORDS // n
    (places,) = np.nonzero(words < np.uint64(below))
    if places.size < count:
        return order(words)[:count]
    some = words[places] * np.uint64((_WORDS - 1) // below)
    found: NDArray[np.int64] = places[order(some)[:count]]
    return found
