"""Vectors sorted in registers: what is compared with what is known beforehand.

Source: K. Batcher, "Sorting networks and their applications", 1968, for the bitonic network.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from funct.kernels.cpu.vectors import lanes, loaded, picked, room, spread, stored

__all__ = ["SHORTEST", "ascending", "sorted_row"]

SHORTEST, _MIDDLE, _LONGEST = 16, 32, 64  # elements of vectors,
_BYTES = 256  # which have no more than these


def _network(n: int) -> tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]:
    """For each step, the place that each of n places is compared with, and which of all smaller
    and, behind these, larger ones of pairs it then holds.

    Runs that ascend are merged: one is read from its end, so all pairs lie the same way around,
    and few masks say which elements are the larger ones.
    """
    steps = []
    for run in (1 << k for k in range(1, n.bit_length())):  # a length of what then is in order
        for apart in (run >> k for k in range(1, run.bit_length())):
            flipped = run - 1 if apart == run >> 1 else apart
            held = [n + i if i & apart else i for i in range(n)]
            steps.append((tuple([i ^ flipped for i in range(n)]), tuple(held)))
    return tuple(steps)


_NETWORKS = {k: _network(k) for k in (SHORTEST, _MIDDLE, _LONGEST)}


def ascending(v: Any, places: int) -> Any:
    """The elements of a vector of that many, in ascending order; of floats none is NaN, and zeros
    have any sign.
    """
    for other, held in _NETWORKS[places]:
        w = picked(v, v, other)
        v = picked(np.where(v < w, v, w), np.where(v < w, w, v), held)
    return v


def sorted_row(x: Any, start: Any, y: Any, to: Any, n: Any, size: Any) -> Any:
    """Whether n elements of x, from start on, fill no more than a vector, and none is NaN: these
    are then in ascending order in y, from `to` on, with zeros of any sign, and what is behind them
    is anything. size: elements of x and of y.
    """
    done = n < 0
    if n <= SHORTEST:
        done = _in_vector(x, start, y, to, n, size, SHORTEST)
    elif n <= _MIDDLE:
        done = _in_vector(x, start, y, to, n, size, _MIDDLE)
    elif n <= _LONGEST and x.dtype.itemsize * _LONGEST <= _BYTES:
        done = _in_vector(x, start, y, to, n, size, _LONGEST)
    return done


def _in_vector(x: Any, start: Any, y: Any, to: Any, n: Any, size: Any, places: int) -> Any:
    top = np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).max
    held, padded = room(x.dtype, places), spread(x.dtype.type(top), places)
    inside = (start + places <= size) & (to + places <= size)
    v: Any = padded
    if inside:
        v = loaded(x, start, places)
    else:
        for i in range(n):
            held[i] = x[start + i]
        v = loaded(held, 0, places)
    v = np.where(lanes(places, np.int32) < np.int32(n), v, padded)
    done = n > 0
    if x.dtype.kind == "f":
        done = (v == v).all()
    if done:
        v = ascending(v, places)
        if inside:
            stored(y, to, v)
        else:
            stored(held, 0, v)
            for i in range(n):
                y[to + i] = held[i]
    return done
