"""Running sums, products, extrema and recurrences, in NumPy's order of operations.

x and y are (outer, n, inner), flat and not empty, and the middle axis is run along. Where inner is
1 the running value stays in a register, which is float32 for halves; else whole rows are combined.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from funct.kernels.cpu.loops import kernel, making
from funct.kernels.cpu.vectors import loaded, spread, stored
from funct.kernels.dtypes import is_half

__all__ = [
    "LANES", "better", "recurrence", "running", "running_extremum", "running_extremum_columns",
    "running_extremum_line", "running_few", "running_line",
]  # fmt: skip

LANES = 8
_SHORT = 128  # elements of a line


def _combined(a: Any, b: Any, how: str) -> Any:
    return a + b if how == "add" else a * b


def _held(dtype: Any) -> Any:
    """The dtype of a running value."""
    return np.dtype(np.float32) if is_half(dtype) else dtype


@kernel
def running_line(x: Any, y: Any, outer: int, n: int, how: str) -> None:
    """inner is 1."""
    _along_lines(x, y, outer, n, how)


def _along_lines(x: Any, y: Any, outer: Any, n: Any, how: str) -> None:
    held = _held(y.dtype)
    at = 0
    for _ in range(outer):
        total = x[at].astype(held)
        y[at] = total.astype(y.dtype)
        for i in range(at + 1, at + n):
            total = _combined(total, x[i].astype(held), how)
            y[i] = total.astype(y.dtype)
        at += n


@kernel
def running(x: Any, y: Any, outer: int, n: int, inner: int, how: str) -> None:
    """Any inner."""
    _along_rows(x, y, outer, n, inner, how)


@making("x")
def running_few(
    x: Any, outer: int, n: int, inner: int, lines: bool, how: str, y: Any, size: int
) -> None:  # fmt: skip
    """Few elements, and sums in their dtype, in a new array. lines: whether inner is 1."""
    if lines:
        _along_lines(x, y, outer, n, how)
    else:
        _along_rows(x, y, outer, n, inner, how)


def _along_rows(x: Any, y: Any, outer: Any, n: Any, inner: Any, how: str) -> None:
    whole = inner & -LANES
    for o in range(outer):
        first = o * n * inner
        for j in range(first, first + inner):
            y[j] = x[j].astype(y.dtype)
        for k in range(1, n):
            row = first + k * inner
            for j in range(row, row + whole, LANES):
                added = loaded(x, j, LANES).astype(y.dtype)
                stored(y, j, _combined(loaded(y, j - inner, LANES), added, how))
            for j in range(row + whole, row + inner):
                y[j] = _combined(y[j - inner], x[j].astype(y.dtype), how)


def better(v: Any, best: Any, largest: bool) -> Any:
    """Whether v takes over: it is better, or the first NaN."""
    if v.dtype.kind != "f":
        return v > best if largest else v < best
    return ~(v <= best if largest else v >= best) & (best == best)


@kernel
def running_extremum(
    x: Any, y: Any, outer: int, n: int, inner: int, largest: bool, places: bool
) -> None:
    """y: the first of the largest elements so far, or of the smallest; NaN wins.

    places: where it stands along the axis instead.
    """
    for o in range(outer):
        for j in range(inner):
            at = o * n * inner + j
            best = x[at]
            place = 0
            for k in range(n):
                v = x[at]
                if better(v, best, largest):
                    best = v
                    place = k
                y[at] = place if places else best
                at += inner


@kernel
def running_extremum_line(x: Any, y: Any, outer: int, n: int, largest: bool, places: bool) -> None:
    """inner is 1: most elements change nothing, so groups that change nothing are passed."""
    held = _held(x.dtype)
    at = 0
    if n <= _SHORT:  # most of few elements change something
        for _ in range(outer):
            best = x[at].astype(held)
            place: Any = 0
            for k in range(n):
                v = x[at].astype(held)
                new = better(v, best, largest)
                best = np.where(new, v, best)
                place = np.where(new, k, place)
                y[at] = place if places else best.astype(y.dtype)
                at += 1
        outer = 0
    for _ in range(outer):
        best = x[at].astype(held)
        place = 0
        k = 0
        while k < n:
            group = k + LANES <= n
            if group:
                group = ~better(loaded(x, at, LANES).astype(held), best, largest).any()
            if group:
                kept = place if places else best.astype(y.dtype)
                stored(y, at, spread(kept, LANES))
                k += LANES
                at += LANES
            else:
                for _ in range(min(LANES, n - k)):
                    v = x[at].astype(held)
                    if better(v, best, largest):
                        best = v
                        place = k
                    y[at] = place if places else best.astype(y.dtype)
                    at += 1
                    k += 1


@kernel
def running_extremum_columns(
    x: Any, y: Any, outer: int, n: int, inner: int, largest: bool, places: bool
) -> None:
    """inner is at least as long as a vector: columns beside each other go together."""
    for o in range(outer):
        for j0 in range(0, inner, LANES):
            at = o * n * inner + min(j0, inner - LANES)
            best = loaded(x, at, LANES)
            place = spread(0, LANES)
            for k in range(n):
                v = loaded(x, at, LANES)
                new = better(v, best, largest)
                best = np.where(new, v, best)
                if places:
                    place = np.where(new, k, place)
                    stored(y, at, place)
                else:
                    stored(y, at, best)
                at += inner


@kernel
def recurrence(a: Any, b: Any, y: Any, outer: int, n: int, inner: int) -> None:
    """y_0 = b_0, y_k = a_k y_(k-1) + b_k."""
    for o in range(outer):
        for j in range(inner):
            at = o * n * inner + j
            last = b[at]
            y[at] = last
            for _ in range(1, n):
                at += inner
                last = a[at] * last + b[at]
                y[at] = last
