"""Sums over all alignments of texts with steps in time: connectionist temporal classification.

x (steps, lanes, classes): log-probabilities. text (lanes, width): classes with blanks around them;
skips (lanes, width): where a letter may follow the one two places before. alpha (lanes, steps,
width): the log-probability of all ways to a place at a step; none is below `never`. room: four
rows for each lane, which are the tasks. What rounds is NumPy's loops.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from funct.kernels.cpu.loops import parallel
from funct.kernels.cpu.vectors import written

__all__ = ["alignments", "alignments_back"]


@parallel
def alignments(
    x: Any, text: Any, skips: Any, lengths: Any, alpha: Any, room: Any, steps: int, lanes: int,
    classes: int, width: int, never: float, task: int,
) -> None:  # fmt: skip
    """alpha, which stays as it is behind the steps that count."""
    none = np.float64(never).astype(x.dtype)
    words, own, first = task * width, 4 * task * width, task * steps * width
    for s in range(width):
        alpha[first + s] = none
        if s < 2:
            alpha[first + s] = _floored(x[task * classes + text[words + s]], none)
    for t in range(1, steps):
        at, row = first + t * width, (t * lanes + task) * classes
        if t < lengths[task]:
            for s in range(width):
                a, b, c = _before(alpha, skips, at - width, words, s, none)
                top = a
                if b > top:
                    top = b
                if c > top:
                    top = c
                room[own + s] = a - top
                room[own + width + s] = b - top
                room[own + 2 * width + s] = c - top
                room[own + 3 * width + s] = top
            written(np.exp, room, own, room, own, 3 * width)
            for s in range(own, own + width):
                room[s] = room[s] + room[s + width] + room[s + 2 * width]
            written(np.log, room, own, room, own, width)
            for s in range(width):
                emitted = _floored(x[row + text[words + s]], none)
                total = room[own + s] + room[own + 3 * width + s] + emitted
                alpha[at + s] = _floored(total, none)
        else:
            for s in range(at, at + width):
                alpha[s] = alpha[s - width]


@parallel
def alignments_back(
    x: Any, text: Any, skips: Any, lengths: Any, alpha: Any, ends: Any, y: Any, room: Any,
    steps: int, lanes: int, classes: int, width: int, never: float, task: int,
) -> None:  # fmt: skip
    """y, of zeros like x: what x gets where ends (lanes, width) came to the last alpha."""
    none = np.float64(never).astype(x.dtype)
    words, own, first = task * width, 4 * task * width, task * steps * width
    came = own + 3 * width  # what came to the places of a step
    for s in range(width):
        room[came + s] = ends[words + s]
    for t in range(steps - 1, 0, -1):
        at, row = first + t * width, (t * lanes + task) * classes
        if t < lengths[task]:
            for s in range(width):
                a, b, c = _before(alpha, skips, at - width, words, s, none)
                k = row + text[words + s]
                total = alpha[at + s] - _floored(x[k], none)
                if alpha[at + s] <= none or room[came + s] == 0:
                    room[came + s] = 0
                    a, b, c, total = none, none, none, x.dtype.type(0)
                elif not x[k] <= none:
                    y[k] = y[k] + room[came + s]
                room[own + s] = a - total
                room[own + width + s] = b - total
                room[own + 2 * width + s] = c - total
            written(np.exp, room, own, room, own, 3 * width)
            for s in range(width):  # from left to right: what is read of `came` lies to the right
                total = room[came + s] * room[own + s]
                if s + 1 < width:
                    total = total + room[came + s + 1] * room[own + width + s + 1]
                if s + 2 < width and skips[words + s + 2] != 0:
                    total = total + room[came + s + 2] * room[own + 2 * width + s + 2]
                room[came + s] = total
    for s in range(min(width, 2)):
        k = task * classes + text[words + s]
        if not x[k] <= none:
            y[k] = y[k] + room[came + s]


def _floored(v: Any, none: Any) -> Any:
    """v, or `none` where that is more."""
    return none if v <= none else v


def _before(alpha: Any, skips: Any, at: Any, words: Any, s: Any, none: Any) -> Any:
    """What stands before a place: at the same one, one before and two before."""
    b = none
    c = none
    if s > 0:
        b = alpha[at + s - 1]
    if s > 1 and skips[words + s] != 0:
        c = alpha[at + s - 2]
    return alpha[at + s], b, c
