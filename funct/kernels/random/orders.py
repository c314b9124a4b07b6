"""The order of random words, which is a permutation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from funct.kernels.cpu.irregular.shuffling import NEAR, PLACES, even_order
from funct.kernels.cpu.irregular.words import DIGIT, unpack
from funct.kernels.cpu.loops import ready
from funct.kernels.cpu.scratch import fresh, workspace
from funct.kernels.sorting import argsort

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["order"]

_WORD, _INDEX, _PLACE = map(np.dtype, (np.uint64, np.int64, np.int32))


def order(words: NDArray[Any]) -> NDArray[np.int64]:
    """`argsort` of one axis of words of 64 bits, quicker where they are random."""
    n = words.size
    if not n or not ready(n):
        return argsort(words, 0, False)
    y, low = fresh((n,), _INDEX), (n - 1).bit_length()
    other, found = workspace(n, _WORD) if n <= NEAR else fresh((n,), _WORD), y.view(_WORD)
    counts, places = workspace(1 << DIGIT, _INDEX), workspace(PLACES, _PLACE)
    alike = even_order(words, other, found, counts, places, NEAR, n, low)
    failed = alike and unpack(words, found, y, 1, n, n, n, low, False, True)
    return argsort(words, 0, False) if failed else y
