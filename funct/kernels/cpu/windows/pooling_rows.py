"""Windows of images whose channels come first: a vector holds neighbouring windows of one row.

x is (planes, n0, n1, n2), y (planes, t0, t1, t2). Rows of results, which are planes times the
lengths of two axes, are dealt out: a task makes `some` of them. A row begins as one of columns,
folded over the first two axes, in the task's room of `length` elements and LANES more, with what
padding counts as around it; windows then lie whole in the room, whatever they meet.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from funct.kernels.cpu.loops import parallel
from funct.kernels.cpu.vectors import loaded, stepped, stored
from funct.kernels.cpu.windows.pooling import LANES, axis, folded
from funct.kernels.cpu.windows.pooling_last import image_of

__all__ = ["STEPS", "WIDE", "fold_rows"]

STEPS = {1: "one", 2: "two", 3: "three", 4: "four"}  # of windows that vectors hold
MORE = 4 * LANES  # side by side, where a row has them
WIDE = 2 * LANES  # elements of a row from which on windows that lie further apart are vectors
_COUNTS = {name: n for n, name in STEPS.items()}


@parallel
def fold_rows(
    x: Any, y: Any, s: Any, axes: Any, taps: Any, met: Any, along: Any, none: Any, counts: Any,
    rows: int, some: int, length: int, step: str, how: str, task: int,
) -> None:  # fmt: skip
    """y: the "sum" of each window, its "mean" or "max".

    axes, taps, met, none, counts: as for `fold_last`. along: where the taps of the last axis
    begin, in the order in which they are folded. step: of STEPS, how far windows of a row are
    apart, or "far".
    """
    n0, t0, _, s0, _, l0, _, _ = axis(axes, 0)
    n1, t1, _, s1, _, l1, _, _ = axis(axes, 8)
    n2, t2, k2, s2, d2, l2, a2, b2 = axis(axes, 16)
    room = task * (length + LANES)
    for q in range(room, room + length):
        s[q] = none[0]
    low, high = max(a2, l2), min(b2, l2 + length)
    for r in range(task * some, min((task + 1) * some, rows)):
        p, i, j = image_of(r, t0, t1)
        corner = ((p * n0 + l0 + i * s0) * n1 + l1 + j * s1) * n2
        u0, u1, v0, v1 = met[2 * i], met[2 * i + 1], met[2 * (t0 + j)], met[2 * (t0 + j) + 1]
        if u0 < u1 and v0 < v1:
            e = low
            while e + MORE <= high:
                column = _columns(x, taps, u0, u1, v0, v1, corner + e, MORE, how)
                stored(s, room + e - l2, column)
                e += MORE
            while e + LANES <= high:
                column = _columns(x, taps, u0, u1, v0, v1, corner + e, LANES, how)
                stored(s, room + e - l2, column)
                e += LANES
            for f in range(e, high):
                s[room + f - l2] = _one_column(x, taps, u0, u1, v0, v1, corner + f, how)
        else:
            for f in range(low, high):
                s[room + f - l2] = none[0]
        to, count = r * t2, (i * t1 + j) * t2
        k = 0
        if step != "far" and t2 >= LANES:
            while k + MORE <= t2:
                stored(y, to + k, _windows(s, room + k * s2, along, k2, counts, count + k, MORE,
                                           step, how))  # fmt: skip
                k += MORE
            while k < t2:
                first = min(k, t2 - LANES)
                stored(y, to + first, _windows(s, room + first * s2, along, k2, counts,
                                               count + first, LANES, step, how))  # fmt: skip
                k += LANES
        while k < t2:
            one = _window(s, room + k * s2, room + length, along, k2, d2, how)
            y[to + k] = one / counts[count + k] if how == "mean" else one
            k += 1


def _columns(
    x: Any, taps: Any, u0: Any, u1: Any, v0: Any, v1: Any, at: Any, width: int, how: str
) -> Any:  # fmt: skip
    """What windows meet at neighbouring places of the last axis, folded; it is something."""
    total = _part(x, taps, u0, u1, at + taps[v0], width, how)
    for v in range(v0 + 1, v1):
        total = folded(total, _part(x, taps, u0, u1, at + taps[v], width, how), how)
    return total


def _part(x: Any, taps: Any, u0: Any, u1: Any, at: Any, width: int, how: str) -> Any:
    """What they meet at one place of the axis before as well."""
    total = loaded(x, at + taps[u0], width)
    for u in range(u0 + 1, u1):
        total = folded(total, loaded(x, at + taps[u], width), how)
    return total


def _one_column(
    x: Any, taps: Any, u0: Any, u1: Any, v0: Any, v1: Any, at: Any, how: str
) -> Any:  # fmt: skip
    """The same at one place."""
    total = _one_part(x, taps, u0, u1, at + taps[v0], how)
    for v in range(v0 + 1, v1):
        total = folded(total, _one_part(x, taps, u0, u1, at + taps[v], how), how)
    return total


def _one_part(x: Any, taps: Any, u0: Any, u1: Any, at: Any, how: str) -> Any:
    total = x[at + taps[u0]]
    for u in range(u0 + 1, u1):
        total = folded(total, x[at + taps[u]], how)
    return total


def _windows(
    s: Any, at: Any, along: Any, size: Any, counts: Any, count: Any, width: int, step: str,
    how: str,
) -> Any:  # fmt: skip
    """So many of them, folded along the row."""
    apart = _COUNTS[step]
    total = stepped(s, at + along[0], apart, width)
    for w in range(1, size):
        total = folded(total, stepped(s, at + along[w], apart, width), how)
    return total / loaded(counts, count, width) if how == "mean" else total


def _window(
    s: Any, at: Any, room: Any, along: Any, size: Any, dilation: Any, how: str
) -> Any:  # fmt: skip
    """One; of a wide one every eighth element goes first."""
    total = s[at + along[0]]
    if size >= WIDE and dilation == 1:
        held = loaded(s, at, LANES)
        w = np.int64(LANES)
        while w + LANES <= size:
            held = folded(held, loaded(s, at + w, LANES), how)
            w += LANES
        stored(s, room, held)
        total = s[room]
        for lane in range(1, LANES):
            total = folded(total, s[room + lane], how)
        for e in range(w, size):
            total = folded(total, s[at + e], how)
    else:
        for v in range(1, size):
            total = folded(total, s[at + along[v]], how)
    return total
