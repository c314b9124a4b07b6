"""Which lanes of two vectors become one vector, where vectors are turned around or added up.

Lanes of the second vector are counted on from those of the first, as `Emitter.shuffle` does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from funct.kernels.llvm.emitter import Emitter
    from funct.kernels.llvm.values import Value

__all__ = ["first_blocks", "first_halves", "turned_around"]


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


def turned_around(f: Emitter, rows: list[Value]) -> list[Value]:
    """A square of lanes turned around, by shuffles within 128 bits first, which cost least."""
    side = len(rows)
    unit = min(side, 16 // rows[0].type.bytes)
    groups = [[(x, list(range(side)))] for x in rows]  # and which lane each lane was
    block = 1
    while len(groups) > 1:
        within = block < unit
        half = unit // 2 if within else unit
        low = first_blocks(side, unit, block) if within else first_halves(side, 2 * unit)
        high = [k + half for k in low]
        groups = [
            [
                (f.shuffle(x, y, lanes), [(was * 2)[k] for k in lanes])
                for (x, was), (y, _) in zip(a, b, strict=True)
                for lanes in (low, high)
            ]
            for a, b in zip(groups[::2], groups[1::2], strict=True)
        ]
        block *= 2
    return [x for x, was in sorted(groups[0], key=lambda pair: pair[1][0])]
