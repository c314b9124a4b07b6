"""L and U, and Q and R, of many small matrices, one in each lane of a vector: see
`funct.kernels.linalg.stacks`. Everything is computed in double precision.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from funct.kernels.cpu.loops import parallel
from funct.kernels.cpu.small.numbers import LANES, matrices_from, of, put, size_of
from funct.kernels.cpu.vectors import gathered, many, spread

__all__ = ["lu", "qr"]

_LARGE = 1e280  # sums of squares within it, and above its inverse, have lost nothing


@parallel
def lu(
    x: Any, p: Any, low: Any, up: Any, room: Any, odd: Any, m: int, n: int, count: int, part: int,
    task: int,
) -> None:  # fmt: skip
    """p (count, m, m), low (count, m, k) and up (count, k, n), k the less of m and n, of x (count,
    m, n): rows change places so that pivots are the largest of their columns. room: (tasks,
    m (n + 1) + 1, LANES). odd (tasks,): 0.
    """
    wide = n + 1  # where each row was stands behind its elements
    base, k = task * (m * wide + 1) * LANES, min(m, n)
    odd[task] = 0
    for t in range(task * part, min((task + 1) * part, count), LANES):
        first = matrices_from(t, count)
        for i in range(m):
            for j in range(n):
                v = gathered(x, first * (m * n) + (i * n + j)).astype(np.float64)
                put(room, base, i * wide + j, v)
            put(room, base, i * wide + n, spread(np.int64(i), LANES).astype(np.float64))
        for c in range(k):
            best: Any = size_of(of(room, base, c * wide + c))
            place: Any = spread(np.int64(0), LANES) + c
            for i in range(c + 1, m):
                size = size_of(of(room, base, i * wide + c))
                more = size > best
                best = np.where(more, size, best)
                place = np.where(more, i, place)
            put(room, base, m * wide, place.astype(np.float64))
            for lane in range(LANES):
                row = room[base + m * wide * LANES + lane].astype(np.int64)
                if row > c:
                    here = base + c * wide * LANES + lane
                    there = base + row * wide * LANES + lane
                    for j in range(0, wide * LANES, LANES):
                        v = room[here + j]
                        room[here + j] = room[there + j]
                        room[there + j] = v
            pivot = of(room, base, c * wide + c)
            whole = np.where(pivot == 0.0, 1.0, pivot)
            for i in range(c + 1, m):
                factor = of(room, base, i * wide + c) / whole
                put(room, base, i * wide + c, factor)
                for j in range(c + 1, n):
                    own = of(room, base, i * wide + j)
                    put(room, base, i * wide + j, own - factor * of(room, base, c * wide + j))
        zero, one = x.dtype.type(0.0), x.dtype.type(1.0)
        for lane in range(min(LANES, count - t)):
            at = t + lane
            for i in range(m):
                row = base + i * wide * LANES + lane
                was = room[row + n * LANES].astype(np.int64)
                for j in range(m):  # column i of p
                    p[(at * m + j) * m + i] = np.where(was == j, one, zero)
                for j in range(k):
                    v = np.where(i == j, one, room[row + j * LANES].astype(x.dtype))
                    low[(at * m + i) * k + j] = np.where(j > i, zero, v)
                if i < k:
                    for j in range(n):
                        v = room[row + j * LANES].astype(x.dtype)
                        up[(at * k + i) * n + j] = np.where(j < i, zero, v)


@parallel
def qr(
    x: Any, q: Any, r: Any, room: Any, odd: Any, m: int, n: int, columns: int, count: int,
    part: int, task: int,
) -> None:  # fmt: skip
    """q (count, m, columns) and r (count, columns, n) of x (count, m, n), by reflections. room:
    (tasks, m (n + columns) + n, LANES), column by column. odd (tasks,): 1 where a column is too
    long, too short or not a number.
    """
    each = m * (n + columns) + n
    base, k = task * each * LANES, min(m, n)
    made, scales = m * n, m * (n + columns)  # where q stands, and a number for each reflection
    lost: Any = np.int64(0)
    for t in range(task * part, min((task + 1) * part, count), LANES):
        first = matrices_from(t, count)
        for i in range(m):
            for j in range(n):
                v = gathered(x, first * (m * n) + (i * n + j)).astype(np.float64)
                put(room, base, j * m + i, v)
        for c in range(k):
            lost = lost + _reflect(room, base, m, n, c, scales + c)
        for e in range(made, scales):
            put(room, base, e, spread(np.float64(0.0), LANES))
        for j in range(columns):
            put(room, base, made + j * m + j, spread(np.float64(1.0), LANES))
        for u in range(k):
            c = k - 1 - u
            for j in range(c, columns):
                _applied(room, base, m, c, scales + c, made + j * m)
        for lane in range(min(LANES, count - t)):
            at = t + lane
            for i in range(m):
                for j in range(columns):
                    v = room[base + (made + j * m + i) * LANES + lane].astype(q.dtype)
                    q[(at * m + i) * columns + j] = v
            for i in range(columns):
                for j in range(n):
                    v = room[base + (j * m + i) * LANES + lane].astype(r.dtype)
                    r[(at * columns + i) * n + j] = np.where(j < i, r.dtype.type(0.0), v)
    odd[task] = np.where(lost > 0, 1, 0)


def _reflect(room: Any, base: Any, m: Any, n: Any, c: Any, scale: Any) -> Any:
    """Leave the reflection that ends column c below its diagonal, and apply it to those behind.
    How many lanes it is not right for.
    """
    head = of(room, base, c * m + c)
    squares: Any = spread(np.float64(0.0), LANES)
    for i in range(c + 1, m):
        v = of(room, base, c * m + i)
        squares = squares + v * v
    largest: Any = size_of(head)
    for i in range(c + 1, m):
        v = size_of(of(room, base, c * m + i))
        largest = np.where(v <= largest, largest, v)
    whole = squares + head * head
    usual = ((whole <= _LARGE) & (whole >= 1 / _LARGE)) | ((largest == 0.0) & (whole == 0.0))
    ended = squares == 0.0
    length = np.sqrt(whole)
    end = np.where(ended, head, np.where(head < 0.0, length, -length))
    put(room, base, scale, np.where(ended, 0.0, (end - head) / np.where(end == 0.0, 1.0, end)))
    inverse = 1.0 / np.where(ended, 1.0, head - end)
    for i in range(c + 1, m):
        put(room, base, c * m + i, of(room, base, c * m + i) * inverse)
    for j in range(c + 1, n):
        _applied(room, base, m, c, scale, j * m)
    put(room, base, c * m + c, end)
    return LANES - many(usual)


def _applied(room: Any, base: Any, m: Any, c: Any, scale: Any, start: Any) -> None:
    """Reflection c, applied to the column that stands from `start` on."""
    total: Any = of(room, base, start + c)
    for i in range(c + 1, m):
        total = total + of(room, base, c * m + i) * of(room, base, start + i)
    total = total * of(room, base, scale)
    put(room, base, start + c, of(room, base, start + c) - total)
    for i in range(c + 1, m):
        own = of(room, base, start + i)
        put(room, base, start + i, own - total * of(room, base, c * m + i))
