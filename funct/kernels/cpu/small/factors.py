"""L and U, and Q and R, of many small matrices, one in each lane of a vector: see
`funct.kernels.linalg.stacks`. Everything is computed in double precision.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from funct.kernels.cpu.loops import parallel
from funct.kernels.cpu.small.numbers import (
    LANES,
    inverted,
    length_of,
    less,
    matrices_from,
    number,
    over,
    put,
    put_number,
    square_of,
    taken,
    times,
    written,
)
from funct.kernels.cpu.vectors import many, spread

__all__ = ["lu", "qr"]

_LARGE = 1e280  # sums of squares within it, and above its inverse, have lost nothing


@parallel
def lu(
    x: Any, p: Any, low: Any, up: Any, room: Any, odd: Any, m: int, n: int, count: int, part: int,
    pairs: bool, task: int,
) -> None:  # fmt: skip
    """p (count, m, m), low (count, m, k) and up (count, k, n), k the less of m and n, of x (count,
    m, n): rows change places so that pivots are the largest of their columns. room: (tasks,
    m (n + 1) + 1) numbers of LANES. odd (tasks,): 0.
    """
    wide, parts = n + 1, 2 if pairs else 1  # where each row was stands behind its elements
    base, k = task * (m * wide + 1) * parts * LANES, min(m, n)
    best_row = base + m * wide * parts * LANES
    odd[task] = 0
    for t in range(task * part, min((task + 1) * part, count), LANES):
        first = matrices_from(t, count)
        for i in range(m):
            for j in range(n):
                v = taken(x, first * (m * n) + (i * n + j), pairs)
                put_number(room, base, i * wide + j, v, pairs)
            row = spread(np.int64(i), LANES).astype(np.float64)
            put(room, base, (i * wide + n) * parts, row)
        for c in range(k):
            best: Any = length_of(number(room, base, c * wide + c, pairs), pairs)
            place: Any = spread(np.int64(0), LANES) + c
            for i in range(c + 1, m):
                size = length_of(number(room, base, i * wide + c, pairs), pairs)
                more = size > best
                best = np.where(more, size, best)
                place = np.where(more, i, place)
            put(room, best_row, 0, place.astype(np.float64))
            for lane in range(LANES):
                there = room[best_row + lane].astype(np.int64)
                if there > c:
                    _exchanged(room, base + lane, c * wide, there * wide, wide, parts)
            pivot = number(room, base, c * wide + c, pairs)
            one = spread(np.float64(1.0), LANES)
            whole = np.where(length_of(pivot, pairs) == 0.0, one, pivot[0]), pivot[1]
            for i in range(c + 1, m):
                factor = over(number(room, base, i * wide + c, pairs), whole, pairs)
                put_number(room, base, i * wide + c, factor, pairs)
                for j in range(c + 1, n):
                    above = number(room, base, c * wide + j, pairs)
                    own = less(number(room, base, i * wide + j, pairs), factor, above, pairs)
                    put_number(room, base, i * wide + j, own, pairs)
        for lane in range(min(LANES, count - t)):
            at = t + lane
            for i in range(m):
                was = room[base + (i * wide + n) * parts * LANES + lane].astype(np.int64)
                for j in range(m):  # column i of p
                    p[(at * m + j) * m + i] = np.where(was == j, p.dtype.type(1.0), 0.0)
                for j in range(k):
                    e = (at * m + i) * k + j
                    if j < i:
                        written(low, e, room, base, i * wide + j, lane, pairs)
                    else:
                        _fixed(low, e, i == j, pairs)
                if i < k:
                    for j in range(n):
                        e = (at * k + i) * n + j
                        if j < i:
                            _fixed(up, e, False, pairs)
                        else:
                            written(up, e, room, base, i * wide + j, lane, pairs)


def _exchanged(room: Any, base: Any, here: Any, there: Any, wide: Any, parts: int) -> None:
    """Exchange two rows of one lane."""
    above, below = base + here * parts * LANES, base + there * parts * LANES
    for j in range(0, wide * parts * LANES, LANES):
        v = room[above + j]
        room[above + j] = room[below + j]
        room[below + j] = v


def _fixed(y: Any, at: Any, one: Any, pairs: bool) -> None:
    """Make element `at` of an array 1 or 0."""
    v = np.where(one, y.dtype.type(1.0), 0.0)
    if pairs:
        y[2 * at] = v
        y[2 * at + 1] = y.dtype.type(0.0)
    else:
        y[at] = v


@parallel
def qr(
    x: Any, q: Any, r: Any, room: Any, odd: Any, m: int, n: int, columns: int, count: int,
    part: int, pairs: bool, task: int,
) -> None:  # fmt: skip
    """q (count, m, columns) and r (count, columns, n) of x (count, m, n), by reflections. room:
    (tasks, m (n + columns) + n) numbers of LANES, column by column. odd (tasks,): 1 where a column
    is too long, too short or not a number.
    """
    each = m * (n + columns) + n
    base, k = task * each * (2 if pairs else 1) * LANES, min(m, n)
    made, scales = m * n, m * (n + columns)  # where q stands, and a number for each reflection
    one, zero = spread(np.float64(1.0), LANES), spread(np.float64(0.0), LANES)
    lost: Any = np.int64(0)
    for t in range(task * part, min((task + 1) * part, count), LANES):
        first = matrices_from(t, count)
        for i in range(m):
            for j in range(n):
                v = taken(x, first * (m * n) + (i * n + j), pairs)
                put_number(room, base, j * m + i, v, pairs)
        for c in range(k):
            lost = lost + _reflect(room, base, m, n, c, scales + c, pairs)
        for e in range(made, scales):
            put_number(room, base, e, (zero, zero), pairs)
        for j in range(columns):
            put_number(room, base, made + j * m + j, (one, zero), pairs)
        for u in range(k):
            c = k - 1 - u
            scale = number(room, base, scales + c, pairs)
            for j in range(c, columns):
                _applied(room, base, m, c, scale, made + j * m, pairs)
        for lane in range(min(LANES, count - t)):
            at = t + lane
            for i in range(m):
                for j in range(columns):
                    e = (at * m + i) * columns + j
                    written(q, e, room, base, made + j * m + i, lane, pairs)
            for i in range(columns):
                for j in range(n):
                    e = (at * columns + i) * n + j
                    if j < i:
                        _fixed(r, e, False, pairs)
                    else:
                        written(r, e, room, base, j * m + i, lane, pairs)
    odd[task] = np.where(lost > 0, 1, 0)


def _reflect(room: Any, base: Any, m: Any, n: Any, c: Any, scale: Any, pairs: bool) -> Any:
    """Leave the reflection that ends column c below its diagonal, and apply it to those behind.
    How many lanes it is not right for.
    """
    one, zero = spread(np.float64(1.0), LANES), spread(np.float64(0.0), LANES)
    head = number(room, base, c * m + c, pairs)
    squares: Any = zero
    largest: Any = length_of(head, pairs)
    for i in range(c + 1, m):
        v = number(room, base, c * m + i, pairs)
        squares = squares + square_of(v, pairs)
        size = length_of(v, pairs)
        largest = np.where(size <= largest, largest, size)
    whole = squares + square_of(head, pairs)
    usual = ((whole <= _LARGE) & (whole >= 1 / _LARGE)) | ((largest == 0.0) & (whole == 0.0))
    ended = squares + square_of((head[1], zero), pairs) == 0.0 if pairs else squares == 0.0
    length = np.sqrt(whole)
    end = np.where(ended, head[0], np.where(head[0] < 0.0, length, -length))
    beyond = np.where(end == 0.0, one, end)
    by = np.where(ended, zero, (end - head[0]) / beyond), np.where(ended, zero, -head[1] / beyond)
    put_number(room, base, scale, by, pairs)
    below = np.where(ended, one, head[0] - end), np.where(ended, zero, head[1])
    inverse = inverted(below, pairs)
    for i in range(c + 1, m):
        v = times(number(room, base, c * m + i, pairs), inverse, pairs)
        put_number(room, base, c * m + i, v, pairs)
    for j in range(c + 1, n):
        _applied(room, base, m, c, (by[0], -by[1]), j * m, pairs)
    put_number(room, base, c * m + c, (end, zero), pairs)
    return LANES - many(usual)


def _applied(room: Any, base: Any, m: Any, c: Any, scale: Any, start: Any, pairs: bool) -> None:
    """Reflection c, applied to the column that stands from `start` on."""
    re, im = number(room, base, start + c, pairs)
    for i in range(c + 1, m):
        v, own = number(room, base, c * m + i, pairs), number(room, base, start + i, pairs)
        re, im = less((re, im), (-v[0], v[1]), own, pairs)
    total = times((re, im), scale, pairs)
    head = number(room, base, start + c, pairs)
    put_number(room, base, start + c, (head[0] - total[0], head[1] - total[1]), pairs)
    for i in range(c + 1, m):
        mine = number(room, base, start + i, pairs)
        mine = less(mine, total, number(room, base, c * m + i, pairs), pairs)
        put_number(room, base, start + i, mine, pairs)
