"""Between which numbers integers lie, as far as an index's arithmetic tells.

What was put on an axis of a table (`wrap_index`) or kept between bounds (`clip`) has a least and a
largest number. So sums and products of such places often need four bytes, and what surely is on an
axis needs no look.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

__all__ = ["ANYTHING", "SHORTENED", "Range", "is_short", "is_within", "range_of"]

Range = tuple[float, float]  # the least and the largest number
ANYTHING = (-float("inf"), float("inf"))
SHORTENED = frozenset({"wrap_index", "add", "subtract", "multiply"})
"""Ops whose lower half depends on the lower halves of their operands."""


def range_of(
    name: str, params: Sequence[Any], given: Sequence[Range], dtype: np.dtype[Any]
) -> Range:
    """Of an op's result, by the ranges of its operands. What the dtype may not hold wraps around to
    anything.
    """
    held = np.iinfo(dtype)
    match name, given:
        case "wrap_index", _:
            return 0, max(int(params[0]) - 1, 0)
        case "maximum", ((a, b), (c, d)):
            return max(a, c), min(max(b, d), held.max)
        case "minimum", ((a, b), (c, d)):
            return max(min(a, c), held.min), min(b, d)
        case "add", ((a, b), (c, d)):
            found = a + c, b + d
        case "subtract", ((a, b), (c, d)):
            found = a - d, b - c
        case "multiply", ((a, b), (c, d)) if all(map(is_short, given)):
            ends = [x * y for x, y in itertools.product((a, b), (c, d))]
            found = min(ends), max(ends)
        case _:
            return ANYTHING
    return found if held.min <= found[0] and found[1] <= held.max else ANYTHING


def is_within(found: Range, length: int) -> bool:
    """Whether all of it is on an axis, counted from its first place."""
    return found[0] >= 0 and found[1] < length


def is_short(found: Range) -> bool:
    """Whether four bytes hold all of it."""
    return found[0] >= -(1 << 31) and found[1] < 1 << 31
