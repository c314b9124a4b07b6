"""Runs sweeps over steps whose number is known only at the end, in memory of the order of its root.

Note [Trail]: sweeps go through stretches of k steps. The first sweep keeps the state with which it
enters each; whenever more than 2k are kept, every other one goes and k doubles. So n steps keep no
more than 2√n states, or what k = 64 steps leave. A later sweep goes through the stretches: in each,
what the earlier sweeps left is computed again from the states with which they entered it. A pull
costs one more run of the loop for that. A loop of one stretch keeps what its steps leave.

Source: Stumm and Walther, "New algorithms for optimal online checkpointing" (2010), for the idea;
the schedule is the simple one of two levels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from funct.compile import Loop

__all__ = ["ENDLESS", "Stepwise", "Stretches", "Whole", "run_sweeps"]

Buffers = tuple[Any, ...]
Step = Callable[..., Buffers]

_STRIDE = 64  # k, at first
ENDLESS = (1 << 63) - 1  # steps at most


class Stretches(Protocol):
    """Sweeps over some steps. What is left at each of them has whatever form they give it."""

    back: Sequence[bool]  # which sweeps go from the last step to the first

    def first(self, state: Buffers, limit: int) -> tuple[Buffers, int]:
        """The first sweep, for so many steps at most: the state then, how many they were."""
        ...

    def leaving(self, state: Buffers, limit: int) -> tuple[Buffers, int, Any]:
        """The same, and what it leaves at each step."""
        ...

    def later(self, k: int, state: Buffers, seen: Any, count: int, *, last: bool) -> Any:
        """(state, what has been left then) after the k-th sweep, over the steps that left `seen`.

        last: nobody reads what was left after it.
        """
        ...


def run_sweeps(sweeps: Stretches, states: Sequence[Buffers]) -> Buffers:
    """The last states of all sweeps, from the first state of each."""
    if len(states) == 1:
        return sweeps.first(states[0], ENDLESS)[0]
    later = range(1, len(states))
    state, count, seen = sweeps.leaving(states[0], _STRIDE)
    if count < _STRIDE:
        ends = [state]
        for k in later:
            end, seen = sweeps.later(k, states[k], seen, count, last=k == later[-1])
            ends.append(end)
        return _joined(ends)
    del seen
    marks, stride, count, state = _marked(sweeps, states[0], state)
    entered: list[dict[int, Buffers]] = [dict(enumerate(marks))]  # per sweep, by stretch
    ends = [state]
    for k in later:
        state, last = states[k], k == later[-1]
        entered.append({})
        for b in reversed(range(len(marks))) if sweeps.back[k] else range(len(marks)):
            if not last:
                entered[k][b] = state
            steps = min(stride, count - b * stride)
            _, _, seen = sweeps.leaving(entered[0][b], steps)
            for j in range(1, k):
                _, seen = sweeps.later(j, entered[j][b], seen, steps, last=False)
            state, _ = sweeps.later(k, state, seen, steps, last=last)
        ends.append(state)
    return _joined(ends)


def _marked(
    sweeps: Stretches, first: Buffers, second: Buffers
) -> tuple[list[Buffers], int, int, Buffers]:
    """The states at the begin of each stretch, its length, the number of steps, the last state.

    first, second: the states at the begin of the first two stretches.
    """
    marks, state, stride, count = [first], second, _STRIDE, _STRIDE
    while True:
        before = state
        state, made = sweeps.first(state, stride)
        if made:
            marks.append(before)
        count += made
        if made < stride:
            return marks, stride, count, state
        if len(marks) >= 2 * stride:
            marks, stride = marks[::2], 2 * stride


def _joined(ends: Sequence[Buffers]) -> Buffers:
    return tuple([v for state in ends for v in state])


class Stepwise:
    """Sweeps whose steps are called from Python. What is left is a list for each step.

    test: whether the first sweep goes on, from its state. steps: per sweep, from (*state, *what
    earlier sweeps left at the step) to (*next state, *what it leaves).
    """

    def __init__(
        self, test: Callable[[Buffers], Any], steps: Sequence[Step], back: Sequence[bool]
    ) -> None:
        self.test = test
        self.steps = steps
        self.back = back

    def first(self, state: Buffers, limit: int) -> tuple[Buffers, int]:
        """See `Stretches`."""
        count, n = 0, len(state)
        while count < limit and self.test(state):
            state = self.steps[0](*state)[:n]
            count += 1
        return state, count

    def leaving(self, state: Buffers, limit: int) -> tuple[Buffers, int, Any]:
        """See `Stretches`."""
        seen: list[list[Any]] = []
        n = len(state)
        while len(seen) < limit and self.test(state):
            out = self.steps[0](*state)
            state = out[:n]
            seen.append([*out[n:]])
        return state, len(seen), seen

    def later(self, k: int, state: Buffers, seen: Any, count: int, *, last: bool) -> Any:
        """See `Stretches`."""
        n = len(state)
        for row in reversed(seen) if self.back[k] else seen:
            out = self.steps[k](*state, *row)
            state = out[:n]
            if last:
                row.clear()
            else:
                row.extend(out[n:])
        return state, seen


class Whole:
    """Sweeps that are programs. What is left is an array for each value, steps on axis 0.

    bare: the first sweep, which leaves nothing. loops: each sweep.
    """

    def __init__(
        self, held: Buffers, bare: Loop, loops: Sequence[Loop], back: Sequence[bool]
    ) -> None:
        self.held = held
        self.bare = bare
        self.loops = loops
        self.back = back

    def first(self, state: Buffers, limit: int) -> tuple[Buffers, int]:
        """See `Stretches`."""
        return self.bare((*self.held, *state), limit)

    def leaving(self, state: Buffers, limit: int) -> tuple[Buffers, int, Any]:
        """See `Stretches`."""
        out, count = self.loops[0]((*self.held, *state), limit)
        n = len(state)
        left = out[n:] if count == limit else [y[:count] for y in out[n:]]
        return out[:n], count, [*left]

    def later(self, k: int, state: Buffers, seen: Any, count: int, *, last: bool) -> Any:
        """See `Stretches`."""
        out, _ = self.loops[k]((*self.held, *state, *seen), count)
        return out[: len(state)], [*seen, *out[len(state) :]]
