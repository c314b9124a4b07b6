"""The fastest of several functions that compute the same: `jit(mode="max-autotune")`.

They are measured on the arrays of the first call, in turn, and the one with the least time stays.
Which one it was is kept on disk under what the graph computes, so that other processes take the
same one and give the same bits.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from funct.compile.entry import note_whole, whole_of
from funct.device import disk_cache
from funct.events import tell

__all__ = ["tuned"]

Run = Callable[..., Any]

_SECONDS = 0.02  # of measuring, for each of them
_LEAST = 3  # calls of each, whatever they take


def tuned(key: str | None, ways: Mapping[str, Callable[[], Run]]) -> Run:
    """A function that becomes the fastest of them. key: of what they compute; None: not kept."""
    place = None if key is None else f"tuned-{key}"
    chosen: list[Run] = []

    def choose(name: str, run: Run) -> Run:
        whole = whole_of(run)
        if whole is not None:
            note_whole(first, whole)
        tell("code", lambda: f"{name} of {', '.join(ways)}")
        chosen.append(run)
        return run

    def first(*buffers: Any) -> Any:
        if chosen:
            return chosen[0](*buffers)
        made = {name: make() for name, make in ways.items()}
        with np.errstate(all="ignore"):  # the call itself warns
            times = {name: _least(run, buffers) for name, run in made.items()}
        best = min(times, key=lambda name: times[name])
        if place is not None:
            disk_cache.write(place, best.encode())
        return choose(best, made[best])(*buffers)

    kept = None if place is None else disk_cache.read(place)
    name = "" if kept is None else kept.decode(errors="replace")
    if name in ways:
        choose(name, ways[name]())
    return first


def _least(run: Run, buffers: Any) -> float:
    """Seconds of the fastest of some calls, after one that makes what is made once."""
    run(*buffers)
    found: list[float] = []
    end = time.perf_counter() + _SECONDS
    while len(found) < _LEAST or time.perf_counter() < end:
        start = time.perf_counter()
        run(*buffers)
        found.append(time.perf_counter() - start)
    return min(found)
