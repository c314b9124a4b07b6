"""Cholesky's factors, and Q and R, of one matrix after the other whose rows are vectors: see
`row_vectors.py`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from funct.kernels.cpu.loops import lean, parallel
from funct.kernels.cpu.shared import shared
from funct.kernels.cpu.small.row_vectors import (
    brought,
    brought_pairs,
    given,
    given_pairs,
    products_taken,
    whole,
)
from funct.kernels.cpu.vectors import fused, lanes, loaded, spread, stored

__all__ = ["cholesky", "qr"]

_LARGE = {8: 1e280, 4: 1e30}  # sums of squares within it, and above its inverse, have lost nothing


@lean(parallel)
def cholesky(
    x: Any, y: Any, room: Any, odd: Any, n: int, apart: int, count: int, part: int, task: int
) -> int:  # fmt: skip
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
                at: Any = base + c * apart + j
                other = base + j * apart
                for i in range(c, min(c + width, j)):
                    a, b = room[at], room[other + i]
                    room[at] = np.where(a == b, a, a * 0.5 + b * 0.5)
                    at = at + apart
        for c in range(0, n, width):
            end = min(c + width, n)
            r: Any = c
            while r < n:  # these rows one by one, then all below them, a vector's at a time
                own, row = r < end, base + r * apart
                many = 1 if own else min(width, n - r)
                here = c if own else r
                products_taken(
                    room, row, many, apart, room, base + c * apart + r, 1, apart, base + c * apart,
                    min(r, end) - c, here, stop,
                )  # fmt: skip
                if own:
                    pivot = room[row + r]
                    lost = np.where(pivot > 0.0, lost, 1)
                    inverse = spread(1.0 / np.sqrt(pivot), width)
                    for j in range(c, stop, width):
                        stored(room, row + j, loaded(room, row + j, width) * inverse)
                    room[row + r] = np.sqrt(pivot)
                r = r + many
        for c in range(0, n, width):
            for i in range(min(c + width, n)):
                here, row = max(c, i), base + i * apart
                to: Any = start + here * n + i
                for j in range(here, min(c + width, n)):
                    y[to] = room[row + j].astype(y.dtype)
                    to = to + n
            for j in range(c, min(c + width, n)):
                for i in range(start + j * n + (j + 1), start + (j + 1) * n):
                    y[i] = y.dtype.type(0.0)
    odd[task] = lost
    return odd[task]


@lean(parallel)
def qr(
    x: Any, q: Any, r: Any, room: Any, odd: Any, m: int, n: int, columns: int, apart: int,
    beside: int, pairs: bool, start: int, count: int, part: int, task: int,
) -> int:  # fmt: skip
    """q (count, m, columns) and r (count, columns, n), from element `start` on, of x (count, m, n),
    by reflections. pairs: whether numbers are complex. room: for each task (m, apart), (m, beside)
    and 2 m numbers, in whole vectors. odd (tasks,): 1 where a column is too long, too short or not
    a number.
    """
    width = 64 // room.dtype.itemsize
    k, parts = min(m, n), 2 if pairs else 1
    across, over = whole(n, width), whole(columns, width)
    base = task * (m * (apart + beside) + whole(2 * m * parts, width))
    basis = base + m * apart
    scales = basis + m * beside
    mirror = scales + m * parts
    bad: Any = np.int64(0)
    for t in range(task * part, min((task + 1) * part, count)):
        for i in range(m):
            if pairs:
                brought_pairs(x, (t * m + i) * n, n, room, base + i * apart, across, width)
            else:
                brought(x, (t * m + i) * n, n, room, base + i * apart, width)
            for j in range(0, beside, width):
                stored(room, basis + i * beside + j, spread(room.dtype.type(0.0), width))
            if i < columns:
                room[basis + i * beside + i] = room.dtype.type(1.0)
        for u in range(2 * k):  # forwards through the columns, and back through the basis
            forth = u < k
            c = u if forth else 2 * k - 1 - u
            own, far = scales + c * parts, mirror + c * parts
            if forth:
                if pairs:
                    bad = bad + _mirrored_pairs(room, base, m, apart, across, c, own, mirror)
                else:
                    bad = bad + _mirrored(room, base, m, apart, c, scales, mirror)
            else:
                at: Any = base + c * apart + c
                if pairs:
                    room[own + 1] = -room[own + 1]  # what follows is no adjoint
                for i in range(c + 1, m):
                    at = at + apart
                    room[mirror + i * parts] = room[at]
                    if pairs:
                        room[mirror + 2 * i + 1] = room[at + across]
            wide, rows = apart if forth else beside, (base if forth else basis)
            first, stop = c + 1 if forth else c, across if forth else over
            if pairs:
                pairs_reflected(room, rows + c * wide, m - c, wide, stop, first, stop, own, far)
            else:
                reflected(room, rows + c * wide, m - c, wide, first, stop, own, far)
        for i in range(m):
            to = (t * m + i) * columns
            if pairs:
                given_pairs(room, basis + i * beside, columns, q, to, over)
            else:
                given(room, basis + i * beside, columns, q, to, width)
        for i in range(columns):
            row = start + (t * columns + i) * n
            if pairs:
                given_pairs(room, base + i * apart, n, r, row, across)
            else:
                given(room, base + i * apart, n, r, row, width)
            for j in range(min(i, n) * parts):
                r[row * parts + j] = r.dtype.type(0.0)
    odd[task] = np.where(bad > 0, 1, 0)
    return odd[task]


def _mirrored(room: Any, base: Any, m: Any, apart: Any, c: Any, scales: Any, mirror: Any) -> Any:
    """Leave the reflection that ends column c below its diagonal. Whether it is not right."""
    head = room[base + c * apart + c]
    squares: Any = room.dtype.type(0.0)
    most: Any = np.where(head < 0.0, -head, head)
    at: Any = base + c * apart + c
    for _i in range(c + 1, m):
        at = at + apart
        v = room[at]
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
    at = base + c * apart + c
    for i in range(mirror + c + 1, mirror + m):
        at = at + apart
        v = room[at] * inverse
        room[at] = v
        room[i] = v
    room[base + c * apart + c] = end
    return np.where(usual, np.int64(0), 1)


def _mirrored_pairs(
    room: Any, base: Any, m: Any, apart: Any, across: Any, c: Any, scale: Any, mirror: Any
) -> Any:  # fmt: skip
    """The same of complex numbers: the end is real. `scale` is that of the adjoint."""
    top = base + c * apart + c
    re, im = room[top], room[top + across]
    zero, one = room.dtype.type(0.0), room.dtype.type(1.0)
    squares: Any = im * im
    most: Any = np.where(im < 0.0, -im, im)
    size: Any = np.where(re < 0.0, -re, re)
    most = np.where(size <= most, most, size)
    at: Any = top
    for _i in range(c + 1, m):
        at = at + apart
        v, w = room[at], room[at + across]
        squares = fused(w, w, fused(v, v, squares))
        size = np.where(v < 0.0, -v, v)
        most = np.where(size <= most, most, size)
        size = np.where(w < 0.0, -w, w)
        most = np.where(size <= most, most, size)
    total = fused(re, re, squares)
    large = _LARGE[room.dtype.itemsize]
    usual = ((total <= large) & (total >= 1 / large)) | (most == 0.0)
    ended = squares == 0.0
    length = np.sqrt(total)
    end = np.where(ended, re, np.where(re < 0.0, length, -length))
    by = np.where(end == 0.0, one, end)
    room[scale] = (end - re) / by
    room[scale + 1] = np.where(ended, zero, im / by)
    less = np.where(ended, one, re - end)
    inverse = 1.0 / np.where(ended, one, fused(im, im, less * less))
    s, e = less * inverse, np.where(ended, zero, im * inverse)
    at = top
    for i in range(c + 1, m):
        at = at + apart
        v, w = room[at], room[at + across]
        first, second = fused(w, e, v * s), fused(-v, e, w * s)
        room[at] = first
        room[at + across] = second
        room[mirror + 2 * i] = first
        room[mirror + 2 * i + 1] = second
    room[top] = end
    room[top + across] = zero
    return np.where(usual, np.int64(0), 1)


@shared(arrays=("room",), writes=("room",))
def reflected(
    room: Any, rows: Any, many: Any, apart: Any, first: Any, stop: Any, scale: Any, mirror: Any
) -> None:
    """Apply a reflection to `many` rows, the first at `rows`, between columns `first` and stop. It
    has a 1 in the first row and its other numbers behind `mirror`.
    """
    width, most = 64 // room.dtype.itemsize, many & -4
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


@shared(arrays=("room",), writes=("room",))
def pairs_reflected(
    room: Any, rows: Any, many: Any, apart: Any, across: Any, first: Any, stop: Any, scale: Any,
    mirror: Any,
) -> None:  # fmt: skip
    """The same of complex numbers, whose imaginary parts stand `across` behind the real ones; those
    of the reflection stand side by side.
    """
    width = 64 // room.dtype.itemsize
    c, s = spread(room[scale], width), spread(room[scale + 1], width)
    zero = spread(room.dtype.type(0.0), width)
    for j in range(first & -width, stop, width):
        at = lanes(width, np.int64) + j
        one, two = loaded(room, rows + j, width), loaded(room, rows + across + j, width)
        a: Any = one
        b: Any = two
        d: Any = zero
        e: Any = zero
        here: Any = rows + j
        for i in range(1, many):
            here = here + apart
            re, im = loaded(room, here, width), loaded(room, here + across, width)
            v, w = room[mirror + 2 * i], room[mirror + 2 * i + 1]
            a, b = fused(v, re, a), fused(v, im, b)
            d, e = fused(w, im, d), fused(w, re, e)
        re, im = a + d, b - e
        total = np.where(at >= first, fused(re, c, -(im * s)), zero)
        other = np.where(at >= first, fused(re, s, im * c), zero)
        stored(room, rows + j, one - total)
        stored(room, rows + across + j, two - other)
        here = rows + j
        for i in range(1, many):
            here = here + apart
            re, im = loaded(room, here, width), loaded(room, here + across, width)
            v, w = room[mirror + 2 * i], room[mirror + 2 * i + 1]
            stored(room, here, fused(w, other, fused(-v, total, re)))
            stored(room, here + across, fused(-w, total, fused(-v, other, im)))
