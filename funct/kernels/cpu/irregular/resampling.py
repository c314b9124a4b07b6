"""Weighted sums of elements of an axis, whose places and weights are known before the data.

y (outer, out, inner) of x (outer, n, inner): weights (taps, out) times what stands at places (taps,
out), the terms added in their order. A task makes `some` of the rows or lines.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from funct.kernels.cpu.loops import parallel
from funct.kernels.cpu.vectors import gathered, loaded, spread, stored

__all__ = ["across", "along"]

_LANES, _WIDE = 8, 32


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
        if inner >= _WIDE:
            for q in range(0, inner, _WIDE):
                _sums(x, places, weights, y, base, to, o, out, inner, taps, q, _WIDE)
        elif inner >= _LANES:
            for q in range(0, inner, _LANES):
                _sums(x, places, weights, y, base, to, o, out, inner, taps, q, _LANES)
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
    whole = out & -_LANES
    for r in range(task * some, min((task + 1) * some, count)):
        base, to = r * n, r * out
        for o in range(0, whole, _LANES):
            at = loaded(places, o, _LANES) + base
            total: Any = gathered(x, at) * loaded(weights, o, _LANES)
            for k in range(1, taps):
                at = loaded(places, k * out + o, _LANES) + base
                total = total + gathered(x, at) * loaded(weights, k * out + o, _LANES)
            stored(y, to + o, total)
        for o in range(whole, out):
            one: Any = x[base + places[o]] * weights[o]
            for k in range(1, taps):
                one = one + x[base + places[k * out + o]] * weights[k * out + o]
            y[to + o] = one
