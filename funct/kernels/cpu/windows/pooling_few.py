"""Windows of images and volumes of few elements, each folded as it stands, in one call.

x is (planes, n0, n1, n2, inner), and windows are along its three axes in the middle: of images
whose channels are last, inner are these. For each axis there is told its length n, the size of
windows k, how far they are apart s, how many places of padding l are before the axis, and how many
windows t there are. Each meets an element.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from funct.kernels.cpu.loops import kernel
from funct.kernels.cpu.vectors import loaded, stored
from funct.kernels.cpu.windows.pooling import LANES, above, folded

__all__ = ["few_places", "few_spread", "few_sums_back", "few_windows"]


@kernel
def few_windows(
    x: Any, y: Any, planes: int, n0: int, k0: int, s0: int, l0: int, t0: int, n1: int, k1: int,
    s1: int, l1: int, t1: int, n2: int, k2: int, s2: int, l2: int, t2: int, inner: int,
    flat: bool, lone: bool, padded: bool, how: str,
) -> None:  # fmt: skip
    """y: the "sum" of each window, its "mean" or "max". The first axis is folded first. flat: it is
    none. lone: inner is 1. padded: there is padding; of equal zeros the last one counts, in the
    order in which passes along an axis meet its elements: see `_begin`.
    """
    count = np.int64(k0 * k1 * k2).astype(x.dtype)
    whole = inner & -LANES
    row, out = n2 * inner, np.int64(0)
    for p in range(planes):
        for i in range(t0):
            a0, m0 = _met(i * s0 - l0, k0, n0, padded)
            b0 = _begin(i * s0 - a0, (t0 - 1) * s0 < n0, padded)
            for j in range(t1):
                a1, m1 = _met(j * s1 - l1, k1, n1, padded)
                b1 = _begin(j * s1 - a1, (t1 - 1) * s1 < n1, padded)
                for k in range(t2):
                    a2, m2 = _met(k * s2 - l2, k2, n2, padded)
                    b2 = _begin(k * s2 - a2, (t2 - 1) * s2 < n2, padded)
                    first = (((p * n0 + a0) * n1 + a1) * n2 + a2) * inner
                    axes = (n1 * row, m0, b0), (row, m1, b1), (inner, m2, b2)
                    if lone:
                        one = _window(x, first, axes, 1, flat, padded, how)
                        y[out] = one / count if how == "mean" else one
                    for c in range(0, whole, LANES):
                        v = _window(x, first + c, axes, LANES, flat, padded, how)
                        stored(y, out + c, v / count if how == "mean" else v)
                    for c in range(whole, 0 if lone else inner):
                        w = _window(x, first + c, axes, 1, flat, padded, how)
                        y[out + c] = w / count if how == "mean" else w
                    out = out + inner


def _met(first: Any, size: Any, length: Any, padded: bool) -> tuple[Any, Any]:
    """The first element of an axis that a window meets, and how many."""
    if not padded:
        return first, size
    start = max(first, 0)
    return start, min(first + size, length) - start


def _begin(at: Any, meets: Any, padded: bool) -> Any:
    """Which element of an axis is met first, if there is padding: that at the first tap which meets
    one in every window, if there is such a tap, since a pass with it leaves nothing to fill.
    """
    if not padded:
        return 0
    return at if meets else 0


def _others(begin: Any, count: Any, padded: bool) -> Any:
    """From where to where the others are."""
    return ((0, begin), (begin + 1, count)) if padded else ((1, count),)


def _window(x: Any, at: Any, axes: Any, width: int, flat: bool, padded: bool, how: str) -> Any:
    """A window from there on, folded; as many side by side. axes: from an element to the next, how
    many, and the first one.
    """
    outer, middle, (step, count, begin) = axes
    v = _plane(x, at + begin * step, outer, middle, width, flat, padded, how)
    for first, end in _others(begin, count, padded):
        for u in range(first, end):
            w = _plane(x, at + u * step, outer, middle, width, flat, padded, how)
            v = folded(v, w, how)
    return v


def _plane(
    x: Any, at: Any, outer: Any, middle: Any, width: int, flat: bool, padded: bool, how: str
) -> Any:
    if flat:
        return _line(x, at, middle, width, padded, how)
    step, count, begin = middle
    v = _line(x, at + begin * step, outer, width, padded, how)
    for first, end in _others(begin, count, padded):
        for u in range(first, end):
            v = folded(v, _line(x, at + u * step, outer, width, padded, how), how)
    return v


def _line(x: Any, at: Any, axis: Any, width: int, padded: bool, how: str) -> Any:
    step, count, begin = axis
    v = x[at + begin * step] if width == 1 else loaded(x, at + begin * step, width)
    for first, end in _others(begin, count, padded):
        for u in range(first, end):
            w = x[at + u * step] if width == 1 else loaded(x, at + u * step, width)
            v = folded(v, w, how)
    return v


@kernel
def few_places(
    x: Any, y: Any, planes: int, n0: int, k0: int, s0: int, l0: int, t0: int, n1: int, k1: int,
    s1: int, l1: int, t1: int, n2: int, k2: int, s2: int, l2: int, t2: int, inner: int,
) -> None:  # fmt: skip
    """y: where in its image the maximum of each window is, the first, of several NaN the last."""
    out = 0
    for p in range(planes):
        image = p * n0 * n1 * n2
        for i in range(t0):
            a0, m0 = _met(i * s0 - l0, k0, n0, True)
            for j in range(t1):
                a1, m1 = _met(j * s1 - l1, k1, n1, True)
                for k in range(t2):
                    a2, m2 = _met(k * s2 - l2, k2, n2, True)
                    for c in range(inner):
                        y[out + c] = _place(x, image, a0, m0, a1, m1, a2, m2, n1, n2, inner, c)
                    out += inner


@kernel
def few_spread(
    g: Any, x: Any, y: Any, planes: int, n0: int, k0: int, s0: int, l0: int, t0: int, n1: int,
    k1: int, s1: int, l1: int, t1: int, n2: int, k2: int, s2: int, l2: int, t2: int, inner: int,
) -> None:  # fmt: skip
    """y: zeros like x, with g added where the maxima are."""
    size = n0 * n1 * n2
    for e in range(planes * size * inner):
        y[e] = 0
    out = 0
    for p in range(planes):
        for i in range(t0):
            a0, m0 = _met(i * s0 - l0, k0, n0, True)
            for j in range(t1):
                a1, m1 = _met(j * s1 - l1, k1, n1, True)
                for k in range(t2):
                    a2, m2 = _met(k * s2 - l2, k2, n2, True)
                    for c in range(inner):
                        at = _place(x, p * size, a0, m0, a1, m1, a2, m2, n1, n2, inner, c)
                        to = (p * size + at) * inner + c
                        y[to] = y[to] + g[out + c]
                    out += inner


@kernel
def few_sums_back(
    g: Any, y: Any, planes: int, n0: int, k0: int, s0: int, l0: int, t0: int, n1: int, k1: int,
    s1: int, l1: int, t1: int, n2: int, k2: int, s2: int, l2: int, t2: int, inner: int,
) -> None:  # fmt: skip
    """y: for each element of images the sum of g over the windows that it is in, the last first."""
    for e in range(planes * n0 * n1 * n2 * inner):
        y[e] = 0
    out = planes * t0 * t1 * t2 * inner
    for p in range(planes - 1, -1, -1):
        for i in range(t0 - 1, -1, -1):
            a0, m0 = _met(i * s0 - l0, k0, n0, True)
            for j in range(t1 - 1, -1, -1):
                a1, m1 = _met(j * s1 - l1, k1, n1, True)
                for k in range(t2 - 1, -1, -1):
                    a2, m2 = _met(k * s2 - l2, k2, n2, True)
                    out = out - inner
                    for u in range(a0, a0 + m0):
                        for v in range(a1, a1 + m1):
                            at = (((p * n0 + u) * n1 + v) * n2 + a2) * inner
                            for w in range(m2):
                                for c in range(inner):
                                    to = at + w * inner + c
                                    y[to] = y[to] + g[out + c]


def _place(
    x: Any, image: Any, a0: Any, m0: Any, a1: Any, m1: Any, a2: Any, m2: Any, n1: Any, n2: Any,
    inner: Any, c: Any,
) -> Any:  # fmt: skip
    """Where in the image at that place the maximum of one window is."""
    place = (a0 * n1 + a1) * n2 + a2
    best = x[(image + place) * inner + c]
    for u in range(a0, a0 + m0):
        for v in range(a1, a1 + m1):
            for w in range(a2, a2 + m2):
                at = (u * n1 + v) * n2 + w
                one = x[(image + at) * inner + c]
                if above(one, best):
                    best = one
                    place = at
    return place
