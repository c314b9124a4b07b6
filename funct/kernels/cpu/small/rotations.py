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
from funct.kernels.cpu.small.numbers import LANES, matrices_from, of, put, size_of
from funct.kernels.cpu.vectors import gathered, many, spread

__all__ = ["angle", "eigh", "of_pair", "put_pair", "turn"]

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
    size = n * n
    base = task * (4 * size + n) * LANES
    basis, found = base + 2 * size * LANES, base + 4 * size * LANES
    one, zero = spread(np.float64(1.0), LANES), spread(np.float64(0.0), LANES)
    bad: Any = np.int64(0)
    for t in range(task * part, min((task + 1) * part, count), LANES):
        start = matrices_from(t, count) * size
        largest: Any = zero
        for i in range(n):
            for j in range(n):
                e, f = i * n + j, j * n + i
                im: Any = zero
                if pairs:
                    re = _half(x, (start + e) * 2) + _half(x, (start + f) * 2)
                    im = _half(x, (start + e) * 2 + 1) - _half(x, (start + f) * 2 + 1)
                else:
                    re = _half(x, start + e) + _half(x, start + f)
                put_pair(room, base, e, re, im)
                if vectors:
                    put_pair(room, basis, e, zero, zero)
                length = size_of(re) + size_of(im)
                largest = np.where(length <= largest, largest, length)  # or NaN
            if vectors:
                put(room, basis, 2 * (i * n + i), one)
        usual = (largest < _LARGE) & ((largest > 1 / _LARGE) | (largest == 0.0))
        bad = bad + (LANES - many(usual))
        sweeps: Any = np.int64(0)
        going: Any = many(usual) == LANES
        while going:
            live = _beside(room, base, n, near)
            for p in range(n - 1):
                for q in range(p + 1, n):
                    _rotate(room, base, basis, n, p, q, live, vectors)
            sweeps = sweeps + 1
            going = (many(live > 0.0) > 0) & (sweeps < _SWEEPS)
        bad = bad + np.where(sweeps < _SWEEPS, 0, 1)
        for j in range(n):
            own = of(room, base, 2 * (j * n + j))
            place: Any = zero
            for k in range(n):
                other = of(room, base, 2 * (k * n + k))
                below = np.where(k < j, other <= own, other < own)
                place = place + np.where(below, one, zero)
            put(room, found, j, place)
        for i in range(min(LANES, count - t)):
            for j in range(n):
                to = room[found + j * LANES + i].astype(np.int64)
                w[(t + i) * n + to] = room[base + 2 * (j * n + j) * LANES + i].astype(w.dtype)
                if vectors:
                    for k in range(n):
                        e = basis + 2 * (k * n + j) * LANES + i
                        at = 2 * ((t + i) * size + k * n + to)
                        v[at] = room[e].astype(v.dtype)
                        v[at + 1] = room[e + LANES].astype(v.dtype)
    odd[task] = np.where(bad > 0, 1, 0)


def _half(x: Any, at: Any) -> Any:
    return gathered(x, at).astype(np.float64) * 0.5


def of_pair(room: Any, base: Any, e: Any) -> Any:
    """The parts of complex element e."""
    return of(room, base, 2 * e), of(room, base, 2 * e + 1)


def put_pair(room: Any, base: Any, e: Any, re: Any, im: Any) -> None:
    """Make them those of element e."""
    put(room, base, 2 * e, re)
    put(room, base, 2 * e + 1, im)


def _beside(room: Any, base: Any, n: Any, near: Any) -> Any:
    """1 where more than `near` of the matrix stands beside its diagonal, else 0."""
    beside: Any = spread(np.float64(0.0), LANES)
    whole: Any = beside
    for i in range(n):
        re = of(room, base, 2 * (i * n + i))
        whole = whole + re * re
        for j in range(i + 1, n):
            re, im = of_pair(room, base, i * n + j)
            beside = beside + (re * re + im * im)
    return np.where(beside > (beside + whole) * near * near, 1.0, beside * 0.0)


def _rotate(
    room: Any, base: Any, basis: Any, n: Any, p: Any, q: Any, live: Any, vectors: bool
) -> None:
    """Turn rows and columns p and q of the matrix, and the columns of the basis, where live > 0."""
    a, b = of(room, base, 2 * (p * n + p)), of(room, base, 2 * (q * n + q))
    re, im = of_pair(room, base, p * n + q)
    cosine, u, v, shift = angle(a, b, re, im, live > 0.0)
    for k in range(n):
        if (k != p) & (k != q):
            turn(room, base, k * n + p, k * n + q, cosine, u, v)
            _mirror(room, base, k * n + p, p * n + k)
            _mirror(room, base, k * n + q, q * n + k)
        if vectors:
            turn(room, basis, k * n + p, k * n + q, cosine, u, v)
    put(room, base, 2 * (p * n + p), a - shift)
    put(room, base, 2 * (q * n + q), b + shift)
    gone = live > 0.0
    re, im = np.where(gone, 0.0, re), np.where(gone, 0.0, im)
    put_pair(room, base, p * n + q, re, im)
    put_pair(room, base, q * n + p, re, -im)


def angle(a: Any, b: Any, re: Any, im: Any, some: Any) -> tuple[Any, Any, Any, Any]:
    """The cosine and the sine, with the element's phase, that make 0 of the element between a and b
    on the diagonal, where `some` holds; and by how much these two move apart.
    """
    square = re * re + im * im
    apart = b - a
    total = size_of(apart) + np.sqrt(apart * apart + square * 4.0)
    some = some & (total > 0.0)
    rate = np.where(some, np.where(apart < 0.0, -1.0, spread(np.float64(1.0), LANES)) / total, 0.0)
    twice = rate * 2.0
    cosine = 1.0 / np.sqrt(twice * twice * square + 1.0)
    return cosine, twice * re * cosine, twice * im * cosine, twice * square


def turn(room: Any, base: Any, d: Any, e: Any, cosine: Any, u: Any, v: Any) -> None:
    """Two elements x and y: c x - conj(s) y and s x + c y."""
    a, b = of_pair(room, base, d)
    re, im = of_pair(room, base, e)
    put_pair(room, base, d, cosine * a - (u * re + v * im), cosine * b - (u * im - v * re))
    put_pair(room, base, e, (u * a - v * b) + cosine * re, (u * b + v * a) + cosine * im)


def _mirror(room: Any, base: Any, d: Any, e: Any) -> None:
    re, im = of_pair(room, base, d)
    put_pair(room, base, e, re, -im)
