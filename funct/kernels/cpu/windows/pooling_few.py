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
    none. lone: inner is 1. padded: there is padding.
    """
    count = np.int64(k0 * k1 * k2).astype(x.dtype)
    whole = inner & -LANES
    row, out = n2 * inner, np.int64(0)
    for p in range(planes):
        for i in range(t0):
            a0, m0 = _met(i * s0 - l0, k0, n0, padded)
            for j in range(t1):
                a1, m1 = _met(j * s1 - l1, k1, n1, padded)
                for k in range(t2):
                    a2, m2 = _met(k * s2 - l2, k2, n2, padded)
                    first = (((p * n0 + a0) * n1 + a1) * n2 + a2) * inner
                    if lone:
                        one = _window(x, first, n1 * row, m0, row, m1, 1, m2, 1, flat, how)
                        y[out] = one / count if how == "mean" else one
                    for c in range(0, whole, LANES):
                        v = _window(
                            x, first + c, n1 * row, m0, row, m1, inner, m2, LANES, flat, how
                        )
                        stored(y, out + c, v / count if how == "mean" else v)
                    for c in range(whole, 0 if lone else inner):
                        w = _window(x, first + c, n1 * row, m0, row, m1, inner, m2, 1, flat, how)
                        y[out + c] = w / count if how == "mean" else w
                    out = out + inner


def _met(first: Any, size: Any, length: Any, padded: bool) -> tuple[Any, Any]:
    """The first element of an axis that a window meets, and how many."""
    if not padded:
        return first, size
    start = max(first, 0)
    return start, min(first + size, length) - start


def _window(
    x: Any, at: Any, s0: Any, m0: Any, s1: Any, m1: Any, s2: Any, m2: Any, width: int, flat: bool,
    how: str,
) -> Any:  # fmt: skip
    """A window from there on, folded; as many side by side. s, m: of axes, from an element to the
    next, and how many."""
    v = _plane(x, at, s0, m0, s1, m1, width, flat, how)
    for u in range(1, m2):
        v = folded(v, _plane(x, at + u * s2, s0, m0, s1, m1, width, flat, how), how)
    return v


def _plane(
    x: Any, at: Any, s0: Any, m0: Any, s1: Any, m1: Any, width: int, flat: bool, how: str
) -> Any:
    if flat:
        return _line(x, at, s1, m1, width, how)
    v = _line(x, at, s0, m0, width, how)
    for u in range(1, m1):
        v = folded(v, _line(x, at + u * s1, s0, m0, width, how), how)
    return v


def _line(x: Any, at: Any, step: Any, count: Any, width: int, how: str) -> Any:
    v = x[at] if width == 1 else loaded(x, at, width)
    for u in range(1, count):
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
