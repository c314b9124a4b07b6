"""Weighted sums of elements of an axis, whose places and weights are known before the data.

y (outer, out, inner) of x (outer, n, inner): weights (taps, out) times what stands at places (taps,
out), the terms added in their order; 0 where the first place is below 0. A task makes `some` of the
rows or lines.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from funct.kernels.cpu.loops import parallel
from funct.kernels.cpu.vectors import gathered, loaded, spread, stored

__all__ = ["LANES", "across", "along", "between"]

LANES, _WIDE = 8, 32


@parallel
def across(
    x: Any, places: Any, weights: Any, y: Any, n: int, out: int, inner: int, taps: int,
    count: int, some: int, task: int,
) -> None:  # fmt: skip
    """Vectors lie along inner. count: outer · out."""
    for r in range(task * some, min((task + 1) * some, count)):
        image = np.int64(np.uint64(r) // np.uint64(out))
        o = r - image * out
        base, to = image * n * inner, r * inner
        if places[o] < 0 and inner >= LANES:
            for q in range(0, inner, LANES):
                stored(y, to + min(q, inner - LANES), spread(x.dtype.type(0), LANES))
        elif places[o] < 0:
            for q in range(inner):
                y[to + q] = 0
        elif inner >= _WIDE:
            for q in range(0, inner, _WIDE):
                _sums(x, places, weights, y, base, to, o, out, inner, taps, q, _WIDE)
        elif inner >= LANES:
            for q in range(0, inner, LANES):
                _sums(x, places, weights, y, base, to, o, out, inner, taps, q, LANES)
        else:
            for q in range(inner):
                one: Any = x[base + places[o] * inner + q] * weights[o]
                for k in range(1, taps):
                    at = base + places[k * out + o] * inner + q
                    one = one + x[at] * weights[k * out + o]
                y[to + q] = one


def _sums(
    x: Any, places: Any, weights: Any, y: Any, base: Any, to: Any, o: Any, out: Any, inner: Any,
    taps: Any, q: Any, lanes: int,
) -> None:  # fmt: skip
    """A vector of a row; the last begins where it ends with the row."""
    first = base + min(q, inner - lanes)
    v = loaded(x, first + places[o] * inner, lanes)
    total: Any = v * spread(weights[o], lanes)
    for k in range(1, taps):
        v = loaded(x, first + places[k * out + o] * inner, lanes)
        total = total + v * spread(weights[k * out + o], lanes)
    stored(y, to + min(q, inner - lanes), total)


@parallel
def along(
    x: Any, places: Any, weights: Any, y: Any, n: int, out: int, taps: int, count: int, some: int,
    task: int,
) -> None:  # fmt: skip
    """Of lines, where inner is 1: vectors lie along out. count: outer."""
    whole = out & -LANES
    for r in range(task * some, min((task + 1) * some, count)):
        base, to = r * n, r * out
        for o in range(0, whole, LANES):
            first = loaded(places, o, LANES)
            inside = first >= 0
            at = np.where(inside, first, 0) + base
            total: Any = gathered(x, at) * loaded(weights, o, LANES)
            for k in range(1, taps):
                at = loaded(places, k * out + o, LANES) + base
                total = total + gathered(x, at) * loaded(weights, k * out + o, LANES)
            stored(y, to + o, np.where(inside, total, 0))
        for o in range(whole, out):
            begin = places[o] if places[o] >= 0 else 0
            one: Any = x[base + begin] * weights[o]
            for k in range(1, taps):
                one = one + x[base + places[k * out + o]] * weights[k * out + o]
            y[to + o] = np.where(places[o] >= 0, one, 0)


@parallel
def between(
    x: Any, rows: Any, shares: Any, columns: Any, parts: Any, y: Any, n0: int, n1: int, out0: int,
    out1: int, inner: int, count: int, some: int, lone: bool, task: int,
) -> None:  # fmt: skip
    """y (outer, out0, out1, inner) of x (outer, n0, n1, inner): two taps along each axis, as by
    `across` along the first and then the second, with vectors along inner; or, lone, one along
    each. rows, shares: places and weights of the first, columns, parts: of the second. count:
    outer · out0.
    """
    for r in range(task * some, min((task + 1) * some, count)):
        image = np.int64(np.uint64(r) // np.uint64(out0))
        o = r - image * out0
        under = 0 if lone else out0 + o
        upper = (image * n0 + rows[o]) * n1 * inner
        lower = (image * n0 + rows[under]) * n1 * inner
        shares0, shares1 = spread(shares[o], LANES), spread(shares[under], LANES)
        to = r * out1 * inner
        none = spread(x.dtype.type(0), LANES)
        if rows[o] < 0:
            for q in range(0, out1 * inner, LANES):
                stored(y, to + min(q, out1 * inner - LANES), none)
        for k in range(0 if rows[o] < 0 else out1):
            if columns[k] < 0:
                for q in range(0, inner, LANES):
                    stored(y, to + min(q, inner - LANES), none)
            else:
                beside = 0 if lone else out1 + k
                a, b = columns[k] * inner, columns[beside] * inner
                left, right = spread(parts[k], LANES), spread(parts[beside], LANES)
                for q in range(0, inner, LANES):
                    c = min(q, inner - LANES)
                    first: Any = loaded(x, upper + a + c, LANES) * shares0
                    if lone:
                        stored(y, to + c, first * left)
                    else:
                        first = first + loaded(x, lower + a + c, LANES) * shares1
                        second: Any = loaded(x, upper + b + c, LANES) * shares0
                        second = second + loaded(x, lower + b + c, LANES) * shares1
                        stored(y, to + c, first * left + second * right)
            to += inner
