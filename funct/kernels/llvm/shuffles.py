"""Which lanes of two vectors become one vector, where vectors are turned around or added up.

Lanes of the second vector are counted on from those of the first, as `Emitter.shuffle` does.
"""

from __future__ import annotations

__all__ = ["first_blocks", "first_halves"]


def first_blocks(lanes: int, unit: int, block: int) -> list[int]:
    """Of each unit the first half of both, block by block in turn: within 128 bits, where shuffles
    cost least. Behind it by half a unit lies the other half.
    """
    return [
        side + start + first + k
        for start in range(0, lanes, unit)
        for first in range(0, unit // 2, block)
        for side in (0, lanes)
        for k in range(block)
    ]


def first_halves(lanes: int, run: int, sides: int = 2) -> list[int]:
    """Of the first vector, then of the second if there are two, the first half of each run."""
    return [
        side * lanes + start + k
        for side in range(sides)
        for start in range(0, lanes, run)
        for k in range(run // 2)
    ]
