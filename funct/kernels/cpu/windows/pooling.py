"""Windows over the last axes: places of maxima, sums along an axis, and the way back.

Where there are tasks, each takes `some` of the outer axis.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from funct.kernels.cpu.loops import parallel
from funct.kernels.cpu.vectors import lanes, loaded, many, spread, stored

__all__ = [
    "LANES", "RUN", "above", "axis", "folded", "larger", "max_index", "max_index_rows", "max_place",
    "spread_axis", "sum_line",
]  # fmt: skip

LANES = 8
RUN = LANES
_LONG_RUN = 32


def _window(x: Any, axes: Any, image: int, i: int, j: int, k: int) -> Any:
    """The flat place of the maximum of one window, see `above`, or -1: element by element, but for
    runs that have nothing better."""
    _, _, k0, s0, d0, l0, a0, b0 = axis(axes, 0)
    n1, _, k1, s1, d1, l1, a1, b1 = axis(axes, 8)
    n2, _, k2, s2, d2, l2, a2, b2 = axis(axes, 16)
    best = x[image]
    place = -1
    for u in range(k0):
        e0 = l0 + i * s0 + u * d0
        if e0 >= a0 and e0 < b0:
            for v in range(k1):
                e1 = l1 + j * s1 + v * d1
                if e1 >= a1 and e1 < b1:
                    row = (e0 * n1 + e1) * n2
                    w = np.int64(0)
                    while w < k2:
                        end = min(w + RUN, k2)
                        e2 = l2 + k * s2 + w * d2
                        new = np.int64(1)
                        if place >= 0 and d2 == 1 and e2 >= a2:
                            left = min(b2 - e2, k2 - w)
                            if left >= _LONG_RUN:
                                end = w + _LONG_RUN
                                new = _better_ones(x, image + row + e2, best, _LONG_RUN)
                            elif left >= RUN:
                                new = _better_ones(x, image + row + e2, best, RUN)
                        if new > 0:
                            for q in range(w, end):
                                e2 = l2 + k * s2 + q * d2
                                if e2 >= a2 and e2 < b2:
                                    one = x[image + row + e2]
                                    if place < 0 or above(one, best):
                                        best = one
                                        place = row + e2
                        w = end
    return place


def _better_ones(x: Any, at: Any, best: Any, count: int) -> Any:
    """How many of a run may take the place of the best one so far."""
    return many(above(loaded(x, at, count), spread(best, count)))


@parallel
def max_index(x: Any, y: Any, axes: Any, planes: int, some: int, task: int) -> None:
    """y: the flat place in its image of the maximum of each window, see `above`, or -1 for none.

    A task takes `some` planes.

    axes: for each of three axes its length, the windows' number, size, step and dilation, where
    the first window begins, and the first element and the end of what windows may meet.
    """
    size = axes[0] * axes[8] * axes[16]
    out = task * some * axes[1] * axes[9] * axes[17]
    for p in range(task * some, min((task + 1) * some, planes)):
        for i in range(axes[1]):
            for j in range(axes[9]):
                for k in range(axes[17]):
                    y[out] = _window(x, axes, p * size, i, j, k)
                    out += 1


@parallel
def max_place(x: Any, best: Any, y: Any, axes: Any, planes: int, some: int, task: int) -> None:
    """As `max_index`, for windows inside the image whose maxima are known; their rows are dense,
    and no shorter than the lanes.
    """
    n0, t0, k0, s0, _, l0, _, _ = axis(axes, 0)
    n1, t1, k1, s1, _, l1, _, _ = axis(axes, 8)
    n2, t2, k2, s2, _, l2, _, _ = axis(axes, 16)
    out = task * some * t0 * t1 * t2
    for p in range(task * some, min((task + 1) * some, planes)):
        image = p * n0 * n1 * n2
        for i in range(t0):
            for j in range(t1):
                for k in range(t2):
                    top = spread(best[out], LANES)
                    place = np.int64(-1)
                    for u in range(k0):
                        for v in range(k1):
                            row = (l0 + i * s0 + u) * n1 + l1 + j * s1 + v
                            first = row * n2 + l2 + k * s2
                            w = np.int64(0)
                            while place < 0 and w < k2:
                                at = min(w, k2 - LANES)
                                here = loaded(x, image + first + at, LANES)
                                if (here == top).any():
                                    place = first + at
                                w += LANES
                    if place < 0:  # the maximum is NaN
                        place = _window(x, axes, image, i, j, k)
                    while x[image + place] != best[out] and best[out] == best[out]:
                        place += 1
                    y[out] = place
                    out += 1


@parallel
def max_index_rows(
    x: Any, y: Any, s: Any, taps: Any, axes: Any, planes: int, some: int, phase: int, least: Any,
    task: int,
) -> None:  # fmt: skip
    """As `max_index`, for rows of at least as many windows as there are lanes.

    A task takes `some` planes. s: for each task room for an image whose rows are padded and parted
    by the step, so that the elements that neighbouring windows meet at one tap lie beside each
    other; phase: the length of a part. taps: where in a row each tap of the window begins. least:
    [the least value there is].
    """
    n0, t0, k0, s0, d0, l0, a0, b0 = axis(axes, 0)
    n1, t1, k1, s1, d1, l1, a1, b1 = axis(axes, 8)
    n2, t2, k2, s2, d2, l2, a2, b2 = axis(axes, 16)
    room = task * n0 * n1 * s2 * phase
    out = task * some * t0 * t1 * t2
    for p in range(task * some, min((task + 1) * some, planes)):
        image = p * n0 * n1 * n2
        for part in range(s2):
            e = l2 + part
            low: Any = np.int64(0)
            while low < phase and e + low * s2 < a2:
                low += 1
            high: Any = low
            while high < phase and e + high * s2 < b2:
                high += 1
            for r in range(n0 * n1):
                to = room + (r * s2 + part) * phase
                for q in range(low):
                    s[to + q] = least[0]
                for q in range(low, high):
                    s[to + q] = x[image + r * n2 + e + q * s2]
                for q in range(high, phase):
                    s[to + q] = least[0]
        for i in range(t0):
            for j in range(t1):
                k = 0
                while k < t2:
                    first = min(k, t2 - LANES)
                    best = spread(least[0], LANES)
                    place = spread(np.int32(-1), LANES)
                    step = (lanes(LANES, np.int32) + np.int32(first)) * np.int32(s2)
                    for u in range(k0):
                        e0 = l0 + i * s0 + u * d0
                        if e0 >= a0 and e0 < b0:
                            for v in range(k1):
                                e1 = l1 + j * s1 + v * d1
                                if e1 >= a1 and e1 < b1:
                                    row = e0 * n1 + e1
                                    for w in range(k2):
                                        at = room + row * s2 * phase + taps[w] + first
                                        here = loaded(s, at, LANES)
                                        new = above(here, best)
                                        best = np.where(new, here, best)
                                        met = step + np.int32(row * n2 + l2 + w * d2)
                                        place = np.where(new, met, place)
                    stored(y, out + first, place.astype(np.int64))
                    if (place < 0).any():  # nothing is above the least value: looked at one by one
                        for lane in range(first, first + LANES):
                            y[out + lane] = _window(x, axes, image, i, j, lane)
                    k += LANES
                out += t2


def above(v: Any, best: Any) -> Any:
    """Whether v takes the place of the maximum: it is larger, or NaN. So that is the first one, of
    several NaN the last, as in torch.
    """
    if v.dtype.kind != "f":
        return v > best
    return (v > best) | (v != v)


def axis(axes: Any, at: int) -> Any:
    """What is told of one axis, see `max_index`."""
    return (
        axes[at], axes[at + 1], axes[at + 2], axes[at + 3], axes[at + 4], axes[at + 5],
        axes[at + 6], axes[at + 7],
    )  # fmt: skip


def _sum_of(x: Any, first: int, last: int) -> Any:
    total = x.dtype.type(0)
    for e in range(first, last):
        total = total + x[e]
    return total


@parallel
def sum_line(
    x: Any, y: Any, outer: int, n: int, count: int, size: int, begin: int, some: int, task: int
) -> None:
    """y (outer, count): sums of windows of x (outer, n), one after the other from `begin` on."""
    low = min(max(-begin, 0), count)  # windows before this one and from high on reach beyond x
    high = max(min(n - size - begin + 1, count), low)
    for o in range(task * some, min((task + 1) * some, outer)):
        at = o * n + begin
        to = o * count
        t = 0
        while t < count:
            if t >= low and t + LANES <= high:
                total = loaded(x, at + t, LANES)
                for e in range(1, size):
                    total = total + loaded(x, at + t + e, LANES)
                stored(y, to + t, total)
                t += LANES
            else:
                y[to + t] = _sum_of(x, max(at + t, o * n), min(at + t + size, (o + 1) * n))
                t += 1


@parallel
def spread_axis(
    g: Any, y: Any, outer: int, n: int, count: int, inner: int, size: int, step: int, some: int,
    task: int,
) -> None:  # fmt: skip
    """Each of g (outer, count, inner) is added to what its window met in y (outer, n, inner)."""
    whole = inner & -LANES
    for o in range(task * some, min((task + 1) * some, outer)):
        for t in range(count):
            source = (o * count + t) * inner
            for e in range(t * step, t * step + size):
                to = (o * n + e) * inner
                for j in range(0, whole, LANES):
                    stored(y, to + j, loaded(y, to + j, LANES) + loaded(g, source + j, LANES))
                for j in range(whole, inner):
                    y[to + j] = y[to + j] + g[source + j]


def folded(v: Any, another: Any, how: str) -> Any:
    """The maximum of both, or their sum."""
    return larger(another, v) if how == "max" else v + another


def larger(v: Any, best: Any) -> Any:
    """As NumPy's maximum of best and v: the second of equal ones; NaN wins."""
    if v.dtype.kind != "f":
        return np.where(v >= best, v, best)
    top = np.where(best > v, best, v)  # one instruction of x86
    return np.where(best == best, top, best)
