"""Words of codes and of weights: as many as one instruction multiplies and sums exactly.

    pairs (s16): differences from the zero point and weights, as 16-bit integers. They fit into 9
                 bits, so nothing is to be corrected behind.
    quads (u8s8): bytes. Codes are taken as unsigned, int8 ones 128 higher, with their zero point
                 wherever nothing is read; what that adds to the sums depends on the weights alone:
                     Σ (x - z) w = Σ x w - z Σ w,
                 modulo 2^32, in which the sum on the left is exact.

Words are filled up with codes of any value, whose weights are 0.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct

from funct.device import host
from funct.kernels.cpu.dense.dots import DOTS, supported
from funct.kernels.cpu.dense.words import filled

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["PAIRS", "QUADS", "Words", "best"]


class Words(Struct, frozen=True, cache_hash=True):
    """dot: the name of what sums them. count: codes of a word. element: one of them in memory."""

    dot: str
    count: int
    element: str

    @property
    def centred(self) -> bool:
        """Whether the zero point is taken off the codes, not off the sums."""
        return self.dot == "s16"

    def weights(self, w: NDArray[np.int8]) -> NDArray[np.int32]:
        """Weights (outputs, channels, taps) as words (outputs, words, taps)."""
        return filled(w, np.dtype(np.int16 if self.centred else np.int8))

    def offset(self, w: NDArray[np.int8]) -> NDArray[np.int32]:
        """What the sums of each output have too much, for a zero point of 1."""
        if self.centred:
            return np.zeros(len(w), np.int32)
        return w.reshape(len(w), -1).sum(1, dtype=np.int32)

    def zero_point(self, zero_point: int, dtype: np.dtype[Any]) -> int:
        """The zero point of codes of this dtype once they are in words."""
        return zero_point + (0 if self.centred or dtype == np.uint8 else 128)


PAIRS, QUADS = Words("s16", 2, "i16"), Words("u8s8", 4, "u8")


@functools.cache
def best() -> Words:
    """The words that this processor multiplies the most of."""
    return QUADS if supported(DOTS[QUADS.dot], host()) else PAIRS
