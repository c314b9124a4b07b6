"""Runs sweeps over steps whose number is known only at the end, in memory of the order of its root.

Note [Trail]: a short loop keeps what every step leaves. Of a longer one the first sweep keeps its
state at every k-th step alone; whenever more than 2k are kept, every other one goes and k doubles.
So n steps keep between √(n/4) and 2√n states. A later sweep goes through the blocks of k steps:
in each, what the earlier sweeps left is computed again from the states with which they entered it.
A pull costs one more run of the loop for that, and holds the residuals of k steps at a time.

Source: Stumm and Walther, "New algorithms for optimal online checkpointing" (2010), for the idea;
the schedule is the simple one of two levels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

__all__ = ["run_sweeps"]

Buffers = tuple[Any, ...]
Step = Callable[..., Buffers]

_SHORT = 64  # so many steps keep all that they leave
_STRIDE = 8  # k, at first


def run_sweeps(
    test: Callable[[Buffers], Any],
    steps: Sequence[Step],
    back: Sequence[bool],
    states: Sequence[Buffers],
) -> Buffers:
    """The last states of all sweeps.

    test: whether the first sweep goes on, from its state. steps: per sweep, from (*state, *what
    earlier sweeps left at the step) to (*next state, *what it leaves). back: which sweeps go from
    the last step to the first. states: the first state of each.
    """
    sizes = [len(s) for s in states]
    if len(steps) == 1:
        state, step, n = states[0], steps[0], sizes[0]
        while test(state):
            state = step(*state)[:n]
        return state
    left, marks, count, stride, state = _first(test, steps[0], states[0])
    ends = [state]
    if left is not None:
        for step, goes_back, first, n in zip(steps[1:], back[1:], states[1:], sizes[1:]):
            last = step is steps[-1]
            ends.append(_sweep(step, n, first, left, goes_back, free=last))
        return tuple([v for state in ends for v in state])
    blocks = range(len(marks))
    entered: list[dict[int, Buffers]] = [dict(enumerate(marks))]  # per sweep, by block

    def block(k: int, b: int) -> list[list[Any]]:
        """What the sweeps before the k-th leave at each step of a block."""
        seen: list[list[Any]] = [[] for _ in range(min(stride, count - b * stride))]
        for j in range(k):
            _sweep(steps[j], sizes[j], entered[j][b], seen, back[j])
        return seen

    for k in range(1, len(steps)):
        state, last = states[k], k == len(steps) - 1
        entered.append({})
        for b in reversed(blocks) if back[k] else blocks:
            if not last:
                entered[k][b] = state
            state = _sweep(steps[k], sizes[k], state, block(k, b), back[k], free=last)
        ends.append(state)
    return tuple([v for state in ends for v in state])


def _first(
    test: Callable[[Buffers], Any], step: Step, state: Buffers
) -> tuple[list[list[Any]] | None, list[Buffers], int, int, Buffers]:
    """The first sweep: what its steps left (None if they are many), marks, steps, k, last state."""
    n, count, stride = len(state), 0, _STRIDE
    left: list[list[Any]] | None = []
    marks: list[Buffers] = []
    while test(state):
        if count % stride == 0:
            if len(marks) >= 2 * stride:
                stride *= 2
                marks = marks[::2]
            if count % stride == 0:
                marks.append(state)
        out = step(*state)
        state = out[:n]
        count += 1
        if count > _SHORT:
            left = None
        if left is not None:
            left.append([*out[n:]])
    return left, marks, count, stride, state


def _sweep(
    step: Step,
    n: int,
    state: Buffers,
    seen: list[list[Any]],
    goes_back: bool,
    *,
    free: bool = False,
) -> Buffers:
    """One sweep over these steps, which leaves at each what it leaves; or frees it, as the last."""
    for row in reversed(seen) if goes_back else seen:
        out = step(*state, *row)
        state = out[:n]
        if free:
            row.clear()
        else:
            row.extend(out[n:])
    return state
