"""Which cases of a family with several parameters run quickly: every two values meet in one, or
every value stands in one.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from typing import Any

__all__ = ["covering"]


def covering(cases: Sequence[tuple[Any, ...]], together: int = 2) -> set[tuple[Any, ...]]:
    """Cases among which each two values stand, of two parameters, that stand in one of all.

    together: of how many parameters instead; 1: each value stands. Those come first that bring most
    pairs which none has yet: of n values each, three parameters need about n² cases of n³. Drawn
    from a seed, so that all processes of a run choose alike.
    """
    order = list(cases)
    random.Random(0).shuffle(order)
    seen: set[tuple[tuple[int, Any], ...]] = set()
    chosen = set()
    pairs = {case: set(itertools.combinations(enumerate(case), together)) for case in order}
    for least in range(max(map(len, pairs.values()), default=0), 0, -1):
        for case in order:
            if len(pairs[case] - seen) >= least:
                chosen.add(case)
                seen |= pairs[case]
    return chosen
