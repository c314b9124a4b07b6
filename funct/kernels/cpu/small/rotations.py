"""Eigenvalues and eigenvectors of many small Hermitian matrices by Jacobi's rotations, a matrix in
each lane of a vector: see `funct.kernels.linalg.stacks`.

A rotation of columns p and q makes the element between them 0. A sweep is one for each pair; after
a few of them the matrix is diagonal, since each squares what is left. A lane that has come there
turns by nothing while others go on, so its bits depend on no neighbour.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from funct.kernels.cpu.loops import parallel
from funct.kernels.cpu.small.numbers import (
    LANES,
    length_of,
    matrices_from,
    number,
    of,
    put,
    put_number,
    size_of,
    square_of,
    taken,
)
from funct.kernels.cpu.vectors import many, spread

__all__ = ["angle", "eigh", "turn"]

_LARGE = 1e140  # the squares of such numbers, and of their inverses, can be added
_SWEEPS = 30


@parallel
def eigh(
    x: Any, w: Any, v: Any, room: Any, odd: Any, n: int, count: int, part: int, near: float,
    pairs: bool, vectors: bool, task: int,
) -> None:  # fmt: skip
    """w (count, n): ascending eigenvalues of the Hermitian parts of x (count, n, n); v like x:
    their vectors, as columns. pairs: whether numbers are complex. vectors: whether v is asked for,
    for which they have to be. room: (tasks, 4 n + 1, n, LANES). odd (tasks,): 1 where
    numbers are too large or small for it. near: how large may be what is left beside the diagonal,
    as a part of the matrix. A task takes `part` matrices.
    """
    size, parts = n * n, 2 if pairs else 1
    base = task * (4 * size + n) * LANES
    basis, found = base + 2 * size * LANES, base + 4 * size * LANES
    one, zero = spread(np.float64(1.0), LANES), spread(np.float64(0.0), LANES)
    bad: Any = np.int64(0)
    for t in range(task * part, min((task + 1) * part, count), LANES):
        start = matrices_from(t, count) * size
        largest: Any = zero
        for i in range(n):
            for j in range(n):
                e = i * n + j
                own, other = taken(x, start + e, pairs), taken(x, start + (j * n + i), pairs)
                middle = own[0] * 0.5 + other[0] * 0.5, own[1] * 0.5 - other[1] * 0.5
                put_number(room, base, e, middle, pairs)
                if vectors:
                    put_number(room, basis, e, (zero, zero), pairs)
                length = length_of(middle, pairs)
                largest = np.where(length <= largest, largest, length)  # or NaN
            if vectors:
                put(room, basis, parts * (i * n + i), one)
        usual = (largest < _LARGE) & ((largest > 1 / _LARGE) | (largest == 0.0))
        bad = bad + (LANES - many(usual))
        sweeps: Any = np.int64(0)
        going: Any = many(usual) == LANES
        while going:
            live = _beside(room, base, n, near, pairs)
            for p in range(n - 1):
                for q in range(p + 1, n):
                    _rotate(room, base, basis, n, p, q, live, pairs, vectors)
            sweeps = sweeps + 1
            going = (many(live > 0.0) > 0) & (sweeps < _SWEEPS)
        bad = bad + np.where(sweeps < _SWEEPS, 0, 1)
        for j in range(n):
            diagonal = of(room, base, parts * (j * n + j))
            place: Any = zero
            for k in range(n):
                beside = of(room, base, parts * (k * n + k))
                below = np.where(k < j, beside <= diagonal, beside < diagonal)
                place = place + np.where(below, one, zero)
            put(room, found, j, place)
        for i in range(min(LANES, count - t)):
            for j in range(n):
                to = room[found + j * LANES + i].astype(np.int64)
                w[(t + i) * n + to] = room[base + parts * (j * n + j) * LANES + i].astype(w.dtype)
                if vectors:
                    for k in range(n):
                        e = basis + 2 * (k * n + j) * LANES + i
                        at = 2 * ((t + i) * size + k * n + to)
                        v[at] = room[e].astype(v.dtype)
                        v[at + 1] = room[e + LANES].astype(v.dtype)
    odd[task] = np.where(bad > 0, 1, 0)


def _beside(room: Any, base: Any, n: Any, near: Any, pairs: bool) -> Any:
    """1 where more than `near` of the matrix stands beside its diagonal, else 0."""
    beside: Any = spread(np.float64(0.0), LANES)
    whole: Any = beside
    for i in range(n):
        re = of(room, base, (2 if pairs else 1) * (i * n + i))
        whole = whole + re * re
        for j in range(i + 1, n):
            beside = beside + square_of(number(room, base, i * n + j, pairs), pairs)
    return np.where(beside > (beside + whole) * near * near, 1.0, beside * 0.0)


def _rotate(
    room: Any, base: Any, basis: Any, n: Any, p: Any, q: Any, live: Any, pairs: bool, vectors: bool
) -> None:
    """Turn rows and columns p and q of the matrix, and the columns of the basis, where live > 0."""
    zero = spread(np.float64(0.0), LANES)
    a, _ = number(room, base, p * n + p, pairs)
    b, _ = number(room, base, q * n + q, pairs)
    re, im = number(room, base, p * n + q, pairs)
    cosine, sine, shift = angle(a, b, (re, im), live > 0.0, pairs)
    for k in range(n):
        if (k != p) & (k != q):
            turn(room, base, k * n + p, k * n + q, cosine, sine, pairs)
            _mirror(room, base, k * n + p, p * n + k, pairs)
            _mirror(room, base, k * n + q, q * n + k, pairs)
        if vectors:
            turn(room, basis, k * n + p, k * n + q, cosine, sine, pairs)
    put(room, base, (2 if pairs else 1) * (p * n + p), a - shift)
    put(room, base, (2 if pairs else 1) * (q * n + q), b + shift)
    gone = live > 0.0
    re, im = np.where(gone, zero, re), np.where(gone, zero, im)
    put_number(room, base, p * n + q, (re, im), pairs)
    put_number(room, base, q * n + p, (re, -im), pairs)


def angle(a: Any, b: Any, v: Any, some: Any, pairs: bool) -> tuple[Any, Any, Any]:
    """The cosine and the sine, with the element's phase, that make 0 of the element v between a and
    b on the diagonal, where `some` holds; and by how much these two move apart.
    """
    square = square_of(v, pairs)
    apart = b - a
    total = size_of(apart) + np.sqrt(apart * apart + square * 4.0)
    some = some & (total > 0.0)
    rate = np.where(some, np.where(apart < 0.0, -1.0, spread(np.float64(1.0), LANES)) / total, 0.0)
    twice = rate * 2.0
    cosine = 1.0 / np.sqrt(twice * twice * square + 1.0)
    return cosine, (twice * v[0] * cosine, twice * v[1] * cosine), twice * square


def turn(room: Any, base: Any, d: Any, e: Any, cosine: Any, sine: Any, pairs: bool) -> None:
    """Two elements x and y: c x - conj(s) y and s x + c y."""
    a, b = number(room, base, d, pairs)
    re, im = number(room, base, e, pairs)
    u, v = sine
    if pairs:
        x = cosine * a - (u * re + v * im), cosine * b - (u * im - v * re)
        y = (u * a - v * b) + cosine * re, (u * b + v * a) + cosine * im
        put_number(room, base, d, x, pairs)
        put_number(room, base, e, y, pairs)
    else:
        put(room, base, d, cosine * a - u * re)
        put(room, base, e, u * a + cosine * re)


def _mirror(room: Any, base: Any, d: Any, e: Any, pairs: bool) -> None:
    re, im = number(room, base, d, pairs)
    put_number(room, base, e, (re, -im), pairs)
