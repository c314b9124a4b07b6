"""Which cases of a family with several parameters run quickly: every two values meet in one, or
every value stands in one; and which there are of a family that is too large to be listed.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from typing import Any

import pytest

__all__ = ["covering", "drawn"]


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


def drawn(
    most: int, indirect: Sequence[str] = (), **values: Sequence[Any]
) -> pytest.MarkDecorator:
    """`most` cases of all that lists of values make, as parameters; quick are `covering` ones.

    For families of more cases than that: what is listed costs time in each run, quick or not.
    indirect: parameters that are fixtures' names.
    """
    cases = random.Random(0).sample(list(itertools.product(*values.values())), most)
    quick = covering(cases)
    met = {two for case in quick for two in itertools.combinations(enumerate(case), 2)}
    assert len(met) == sum(len(v) * len(w) for v, w in itertools.combinations(values.values(), 2))
    params = [
        pytest.param(*case, marks=() if case in quick else pytest.mark.slow, id=f"{case}")
        for case in cases
    ]
    return pytest.mark.parametrize(list(values), params, indirect=indirect)
