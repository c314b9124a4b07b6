"""Cholesky's factors, and Q and R, of one matrix after the other whose rows are vectors: see
`row_vectors.py`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from funct.kernels.cpu.loops import kernel, parallel
from funct.kernels.cpu.small.row_vectors import brought, given, products_taken, whole
from funct.kernels.cpu.vectors import fused, lanes, loaded, spread, stored

__all__ = ["cholesky", "cholesky_at_once", "qr", "qr_at_once"]

_LARGE = {8: 1e280, 4: 1e30}  # sums of squares within it, and above its inverse, have lost nothing


@parallel
def cholesky(
    x: Any, y: Any, room: Any, odd: Any, n: int, apart: int, count: int, part: int, task: int
) -> None:  # fmt: skip
    """y (count, n, n): lower factors of the Hermitian parts of x; their transposes are found, row
    by row. room: (tasks, n + 1, apart). odd (tasks,): 1 where one is not positive definite. A task
    takes `part` matrices.
    """
    base = task * (n + 1) * apart
    width = 64 // room.dtype.itemsize
    stop = whole(n, width)
    lost: Any = np.int64(0)
    for t in range(task * part, min((task + 1) * part, count)):
        start = t * n * n
        for i in range(n):
            brought(x, start + i * n, n, room, base + i * apart, width)
        for c in range(0, n, width):
            for j in range(c + 1, n):
                for i in range(c, min(c + width, j)):
                    a, b = room[base + i * apart + j], room[base + j * apart + i]
                    room[base + i * apart + j] = np.where(a == b, a, a * 0.5 + b * 0.5)
        for c in range(0, n, width):
            end = min(c + width, n)
            for k in range(c, end):
                pivot = room[base + k * apart + k]
                lost = np.where(pivot > 0.0, lost, 1)
                inverse = spread(1.0 / np.sqrt(pivot), width)
                for j in range(c, stop, width):
                    v = loaded(room, base + k * apart + j, width)
                    stored(room, base + k * apart + j, v * inverse)
                room[base + k * apart + k] = np.sqrt(pivot)
                own = base + k * apart
                products_taken(
                    room, own + apart, end - k - 1, apart, room, own + k + 1, 1, 0, own, 1, c,
                    stop, width,
                )  # fmt: skip
            first = base + c * apart
            for r in range(end, n, width):
                products_taken(
                    room, base + r * apart, min(width, n - r), apart, room, first + r, 1, apart,
                    first, end - c, r, stop, width,
                )  # fmt: skip
        for c in range(0, n, width):
            for i in range(min(c + width, n)):
                for j in range(max(c, i), min(c + width, n)):
                    y[start + j * n + i] = room[base + i * apart + j].astype(y.dtype)
            for j in range(c, min(c + width, n)):
                for i in range(j + 1, n):
                    y[start + j * n + i] = y.dtype.type(0.0)
    odd[task] = lost


@kernel
def cholesky_at_once(x: Any, y: Any, room: Any, odd: Any, n: int, apart: int, count: int) -> int:
    """The same without tasks; odd (1,), also given."""
    cholesky.fn(x, y, room, odd, n, apart, count, count, 0)
    return odd[0]


@parallel
def qr(
    x: Any, q: Any, r: Any, room: Any, odd: Any, m: int, n: int, columns: int, apart: int,
    beside: int, start: int, count: int, part: int, task: int,
) -> None:  # fmt: skip
    """q (count, m, columns) and r (count, columns, n), from element `start` on, of x (count, m, n),
    by reflections. room: for each task (m, apart), (m, beside) and 2 m numbers, in whole vectors.
    odd (tasks,): 1 where a column is too long, too short or not a number.
    """
    width = 64 // room.dtype.itemsize
    k = min(m, n)
    base = task * (m * (apart + beside) + whole(2 * m, width))
    basis = base + m * apart
    scales = basis + m * beside
    mirror = scales + m
    bad: Any = np.int64(0)
    for t in range(task * part, min((task + 1) * part, count)):
        for i in range(m):
            brought(x, (t * m + i) * n, n, room, base + i * apart, width)
            for j in range(0, beside, width):
                stored(room, basis + i * beside + j, spread(room.dtype.type(0.0), width))
            if i < columns:
                room[basis + i * beside + i] = room.dtype.type(1.0)
        for c in range(k):
            bad = bad + _mirrored(room, base, m, apart, c, scales, mirror)
            _reflected(
                room, base + c * apart, m - c, apart, c + 1, whole(n, width), scales + c,
                mirror + c, width,
            )  # fmt: skip
        for u in range(k):
            c = k - 1 - u
            for i in range(c + 1, m):
                room[mirror + i] = room[base + i * apart + c]
            _reflected(
                room, basis + c * beside, m - c, beside, c, whole(columns, width), scales + c,
                mirror + c, width,
            )  # fmt: skip
        for i in range(m):
            given(room, basis + i * beside, columns, q, (t * m + i) * columns, width)
        for i in range(columns):
            row = start + (t * columns + i) * n
            given(room, base + i * apart, n, r, row, width)
            for j in range(min(i, n)):
                r[row + j] = r.dtype.type(0.0)
    odd[task] = np.where(bad > 0, 1, 0)


@kernel
def qr_at_once(
    x: Any, y: Any, room: Any, odd: Any, m: int, n: int, columns: int, apart: int, beside: int,
    start: int, count: int,
) -> int:  # fmt: skip
    """The same without tasks: y holds all q and, from `start` on, all r; odd (1,), also given."""
    qr.fn(x, y, y, room, odd, m, n, columns, apart, beside, start, count, count, 0)
    return odd[0]


def _mirrored(room: Any, base: Any, m: Any, apart: Any, c: Any, scales: Any, mirror: Any) -> Any:
    """Leave the reflection that ends column c below its diagonal. Whether it is not right."""
    head = room[base + c * apart + c]
    squares: Any = room.dtype.type(0.0)
    most: Any = np.where(head < 0.0, -head, head)
    for i in range(c + 1, m):
        v = room[base + i * apart + c]
        squares = fused(v, v, squares)
        size = np.where(v < 0.0, -v, v)
        most = np.where(size <= most, most, size)
    total = fused(head, head, squares)
    large = _LARGE[room.dtype.itemsize]
    usual = ((total <= large) & (total >= 1 / large)) | (most == 0.0)
    ended = squares == 0.0
    length = np.sqrt(total)
    end = np.where(ended, head, np.where(head < 0.0, length, -length))
    one = room.dtype.type(1.0)
    room[scales + c] = (end - head) / np.where(end == 0.0, one, end)
    inverse = 1.0 / np.where(ended, one, head - end)
    for i in range(c + 1, m):
        v = room[base + i * apart + c] * inverse
        room[base + i * apart + c] = v
        room[mirror + i] = v
    room[base + c * apart + c] = end
    return np.where(usual, np.int64(0), 1)


def _reflected(
    room: Any, rows: Any, many: Any, apart: Any, first: Any, stop: Any, scale: Any, mirror: Any,
    width: int,
) -> None:  # fmt: skip
    """Apply a reflection to `many` rows, the first at `rows`, between columns `first` and stop. It
    has a 1 in the first row and its other numbers behind `mirror`.
    """
    most = many & -4
    by = spread(room[scale], width)
    for j in range(first & -width, stop, width):
        at = lanes(width, np.int64) + j
        a: Any = loaded(room, rows + j, width)
        b: Any = spread(room.dtype.type(0.0), width)
        c: Any = spread(room.dtype.type(0.0), width)
        d: Any = spread(room.dtype.type(0.0), width)
        for i in range(1, most - 3, 4):
            here = rows + i * apart + j
            a = fused(room[mirror + i], loaded(room, here, width), a)
            b = fused(room[mirror + i + 1], loaded(room, here + apart, width), b)
            c = fused(room[mirror + i + 2], loaded(room, here + 2 * apart, width), c)
            d = fused(room[mirror + i + 3], loaded(room, here + 3 * apart, width), d)
        for i in range(max(most - 3, 1), many):
            a = fused(room[mirror + i], loaded(room, rows + i * apart + j, width), a)
        total = ((a + b) + (c + d)) * by
        total = np.where(at >= first, total, spread(room.dtype.type(0.0), width))
        stored(room, rows + j, loaded(room, rows + j, width) - total)
        for i in range(1, many):
            here = rows + i * apart + j
            stored(room, here, fused(-room[mirror + i], total, loaded(room, here, width)))
