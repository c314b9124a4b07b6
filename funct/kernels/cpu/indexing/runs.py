"""Runs of elements that lie side by side: repeated, taken from each other, cut at a diagonal."""

from __future__ import annotations

from typing import Any

import numpy as np

from funct.kernels.cpu.loops import kernel, making, parallel
from funct.kernels.cpu.vectors import backwards, lanes, loaded, spread, stored

__all__ = [
    "LANES", "MOST", "NARROW", "backward", "backwards_few", "beside", "beside_few", "concatenate",
    "copied", "differences", "joined", "lines", "repeated", "repetitions", "total", "triangle",
    "triangles",
]  # fmt: skip

LANES, _ROW, _HALF = 8, 16, 4
_BYTES, NARROW = 32, 128  # of a vector that a piece of a row is copied by, and of such a piece
_FEW_TIMES = 3  # elements are repeated on average, up to which shorter vectors do
MOST = 31  # bits of how often one element may be repeated


@kernel
def total(counts: Any, n: int) -> int:
    """The sum of n integers; -1 where one is negative or has more than `MOST` bits."""
    some: Any = np.int64(0)
    bits: Any = np.int64(0)
    for i in range(n):
        v = counts[i].astype(np.int64)
        some += v
        bits = bits | v
    if bits.astype(np.uint64) >= np.uint64(1 << MOST):
        return -1
    return some


@kernel
def repeated(x: Any, counts: Any, y: Any, n: int, size: int) -> None:
    """y (size,): each of x (n,) as often as counts (n,) says, which is size times in all."""
    if size < n * _FEW_TIMES:
        _repeated(x, counts, y, n, size, _HALF)
    else:
        _repeated(x, counts, y, n, size, LANES)


@making("size", "x")
def repetitions(x: Any, counts: Any, size: int, n: int, y: Any, also: int) -> None:
    """`repeated` of few elements, in a new array."""
    if size < n * _FEW_TIMES:
        _repeated(x, counts, y, n, size, _HALF)
    else:
        _repeated(x, counts, y, n, size, LANES)


def _repeated(x: Any, counts: Any, y: Any, n: Any, size: Any, lanes: int) -> None:
    """`repeated` by vectors of so many lanes, each covered by the next where it is too long."""
    out: Any = np.int64(0)
    i = 0
    while i < n and out + lanes <= size:
        one_each = i + LANES <= n and out + LANES * lanes <= size
        if one_each:
            one_each = (loaded(counts, i, LANES).astype(np.int64) <= spread(lanes, LANES)).all()
        if one_each:  # a vector is enough for each of several elements: nothing is asked between
            for k in range(LANES):
                stored(y, out, spread(x[i + k], lanes))
                out += counts[i + k].astype(np.int64)
            i += LANES
        else:
            end = out + counts[i].astype(np.int64)
            v = spread(x[i], lanes)
            stored(y, out, v)
            out += lanes
            while out + lanes <= end:
                stored(y, out, v)
                out += lanes
            if out < end:
                stored(y, end - lanes, v)
            out = end
            i += 1
    while i < n:
        for _ in range(counts[i].astype(np.int64)):
            y[out] = x[i]
            out += 1
        i += 1


# What NumPy calls once it has asked each array whether another library is to do it.
concatenate: Any = getattr(np.concatenate, "_implementation", np.concatenate)


@making("n", "a", lambda a, b, m, n: concatenate((a, b)))
def lines(a: Any, b: Any, m: int, n: int, y: Any, also: int) -> None:
    """a (m,), then b (n - m,), in a new array."""
    copied(a, 0, y, 0, m)
    copied(b, 0, y, m, n - m)


@parallel
def joined(
    a: Any, b: Any, y: Any, a_pitch: int, a_first: int, a_width: int, b_pitch: int, b_first: int,
    b_width: int, rows: int, part: int, task: int,
) -> None:  # fmt: skip
    """Rows of y: `a_width` elements of a row of a, then `b_width` of one of b.

    pitch: from one row to the next; first: where it begins in the array. A task makes `part` rows.
    Short pieces are copied by vectors that the next piece covers where they are too long, but for
    the last rows of a task, behind which others write and arrays end.
    """
    width = a_width + b_width
    size = y.dtype.itemsize
    lanes = min(_ROW, _BYTES // size)
    first = task * part
    last = min(first + part, rows)
    early = first
    if max(a_width, b_width) * size <= NARROW:
        early = max(first, last - lanes)
    for r in range(first, early):
        _covered(a, r * a_pitch + a_first, y, r * width, a_width, lanes)
        _covered(b, r * b_pitch + b_first, y, r * width + a_width, b_width, lanes)
    for r in range(early, last):
        copied(a, r * a_pitch + a_first, y, r * width, a_width)
        copied(b, r * b_pitch + b_first, y, r * width + a_width, b_width)


@parallel
def beside(
    a: Any, b: Any, c: Any, d: Any, e: Any, f: Any, g: Any, h: Any, y: Any, widths: Any,
    to: int, pitch: int, covers: int, start: int, rows: int, part: int, task: int,
) -> None:  # fmt: skip
    """Rows of y, `pitch` elements each, from `to` on: `widths` (8,) elements of a row of each of
    eight arrays. A task writes `part` of those rows, which come before row `rows` and begin with
    row `start`. covers: 1 where short pieces are copied as in `joined`.
    """
    first = start + task * part
    _beside(
        a, b, c, d, e, f, g, h, y, widths, to, pitch, covers, first, min(first + part, rows)
    )  # fmt: skip


@kernel
def beside_few(
    a: Any, b: Any, c: Any, d: Any, e: Any, f: Any, g: Any, h: Any, y: Any, widths: Any,
    pitch: int, covers: int, rows: int,
) -> None:  # fmt: skip
    """`beside`, of few rows from the first on."""
    _beside(a, b, c, d, e, f, g, h, y, widths, 0, pitch, covers, 0, rows)


def _beside(
    a: Any, b: Any, c: Any, d: Any, e: Any, f: Any, g: Any, h: Any, y: Any, widths: Any,
    to: Any, pitch: Any, covers: Any, first: Any, last: Any,
) -> None:  # fmt: skip
    k, l, m, n = widths[0], widths[1], widths[2], widths[3]
    o, p, q, s = widths[4], widths[5], widths[6], widths[7]
    lanes = min(_ROW, _BYTES // y.dtype.itemsize)
    early = first + covers * max(0, last - lanes - first)
    for r in range(first, early):
        at = r * pitch + to
        for x, width in ((a, k), (b, l), (c, m), (d, n), (e, o), (f, p), (g, q), (h, s)):
            _covered(x, r * width, y, at, width, lanes)
            at += width
    for r in range(early, last):
        at = r * pitch + to
        for x, width in ((a, k), (b, l), (c, m), (d, n), (e, o), (f, p), (g, q), (h, s)):
            copied(x, r * width, y, at, width)
            at += width


def _covered(x: Any, at: Any, y: Any, to: Any, n: Any, lanes: int) -> None:
    """`copied`, and some elements more."""
    for k in range(0, n, lanes):
        stored(y, to + k, loaded(x, at + k, lanes))


def copied(x: Any, at: Any, y: Any, to: Any, n: Any) -> None:
    """n elements of x from `at` on into y from `to` on."""
    row = max(_ROW, 2 * _BYTES // y.dtype.itemsize)
    if n >= row:
        last = n - row
        for k in range(0, last, row):
            stored(y, to + k, loaded(x, at + k, row))
        stored(y, to + last, loaded(x, at + last, row))
    elif n >= _ROW:
        for k in range(0, n - _ROW, _ROW):
            stored(y, to + k, loaded(x, at + k, _ROW))
        stored(y, to + n - _ROW, loaded(x, at + n - _ROW, _ROW))
    elif n >= LANES:
        stored(y, to, loaded(x, at, LANES))
        stored(y, to + n - LANES, loaded(x, at + n - LANES, LANES))
    elif n >= _HALF:
        stored(y, to, loaded(x, at, _HALF))
        stored(y, to + n - _HALF, loaded(x, at + n - _HALF, _HALF))
    else:
        for k in range(n):
            y[to + k] = x[at + k]


@parallel
def backward(x: Any, y: Any, n: int, rows: int, part: int, task: int) -> None:
    """Rows of y: those of x, of n elements each, from their ends; a task makes `part` rows."""
    _backward(x, y, n, task * part, min((task + 1) * part, rows))


@making("x")
def backwards_few(x: Any, n: int, rows: int, y: Any, size: int) -> None:
    """`backward` of few elements, in a new array."""
    _backward(x, y, n, 0, rows)


def _backward(x: Any, y: Any, n: Any, first: Any, end: Any) -> None:
    """Stores that cross lines of a cache go forward: some processors join these, and only these."""
    size = 2 * _BYTES // x.dtype.itemsize
    for o in range(first, end):
        start = o * n
        last = max(n - size, 0)
        for k in range(0, last, size):
            v = loaded(x, start + n - k - size, size)
            stored(y, start + k, backwards(v))
        if n >= size:
            stored(y, start + last, backwards(loaded(x, start, size)))
        else:
            for k in range(n):
                y[start + n - k - 1] = x[start + k]


@parallel
def differences(x: Any, y: Any, outer: int, n: int, inner: int, part: int, task: int) -> None:
    """y (outer, n - 1, inner): what each of x (outer, n, inner) is above the one before.

    A task takes `part` of the outer axis.
    """
    size = (n - 1) * inner
    whole = size & -LANES
    for o in range(task * part, min((task + 1) * part, outer)):
        start = o * n * inner
        to = o * size
        for j in range(0, whole, LANES):
            late = loaded(x, start + inner + j, LANES)
            stored(y, to + j, late - loaded(x, start + j, LANES))
        for j in range(whole, size):
            y[to + j] = x[start + inner + j] - x[start + j]


@parallel
def triangle(
    x: Any, y: Any, lines: int, rows: int, n: int, k: int, lower: bool, part: int, turn: int,
    task: int,
) -> None:  # fmt: skip
    """y: matrices x of `rows` rows of n >= LANES elements, all of `lines` lines, with zeros above
    the k-th diagonal (lower) or below it. A task writes `part` lines, which end `turn` lines behind
    whole matrices.
    """
    first = task * part
    r = task * turn
    while r >= rows:
        r -= rows
    _cut(x, y, first, min(first + part, lines), r, rows, n, k, lower)


@making("x")
def triangles(
    x: Any, lines: int, rows: int, n: int, k: int, lower: bool, y: Any, size: int
) -> None:
    """`triangle` of few elements, in a new array."""
    _cut(x, y, 0, lines, 0, rows, n, k, lower)


def _cut(
    x: Any, y: Any, first: Any, last: Any, r: Any, rows: Any, n: Any, k: Any, lower: bool
) -> None:
    """Lines [first, last) of matrices, the first of which is row r of its own."""
    none = x.dtype.type(0)
    for line in range(first, last):
        cut = np.int32(r + k)
        for j in range(0, n, LANES):
            at = min(j, n - LANES)
            place = lanes(LANES, np.int32) + np.int32(at)
            before = place <= cut if lower else place < cut
            v = loaded(x, line * n + at, LANES)
            kept = np.where(before, v, none) if lower else np.where(before, none, v)
            stored(y, line * n + at, kept)
        r += 1
        if r == rows:
            r = 0
