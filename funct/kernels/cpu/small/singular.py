"""Singular values and vectors of many small complex matrices by Jacobi's rotations of one side, a
matrix in each lane of a vector: see `funct.kernels.linalg.stacks`.

A rotation of two columns makes them orthogonal. When all are, their lengths are the singular
values, and the product of the rotations is the other basis. A lane turns two columns only where
they need it, so its bits depend on no neighbour. Columns that vanish, and those that a whole basis
has besides, are found one after the other: what the nearest unit vector has outside of the rest.

Source: Hestenes, "Inversion of matrices by biorthogonalization" (1958).
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

__all__ = ["svd"]

_SWEEPS = 30
_LARGE = 1e48  # products of four such numbers, or of their inverses and what is lost, are numbers
_LOST = 2.0**-52  # of the matrix, what rounding may have left of a column that vanishes


@parallel
def svd(
    x: Any, s: Any, long: Any, short: Any, room: Any, odd: Any, rows: int, k: int, columns: int,
    count: int, part: int, near: float, tall: bool, pairs: bool, vectors: bool, task: int,
) -> None:  # fmt: skip
    """s (count, k): descending singular values of x, (count, rows, k) if tall, else (count, k,
    rows); k <= rows. long: the basis of `columns` vectors with `rows` elements, as columns if tall,
    else as conjugate rows; short: that of k vectors with k elements, the other way. room: (tasks, 2
    (rows columns + k k + rows) + 3 k, LANES). odd (tasks,): 1 where numbers are too large or small
    for it. near: the cosine of columns that count as orthogonal. pairs: whether numbers are
    complex. vectors: whether bases are asked for, for which they have to be. A task takes `part`
    matrices.
    """
    size, parts = rows * k, 2 if pairs else 1
    base = task * (2 * (rows * columns + k * k + rows) + 3 * k) * LANES
    basis = base + 2 * rows * columns * LANES
    lengths = basis + 2 * k * k * LANES
    places, spare = lengths + k * LANES, lengths + 3 * k * LANES
    one, zero = spread(np.float64(1.0), LANES), spread(np.float64(0.0), LANES)
    bad: Any = np.int64(0)
    for t in range(task * part, min((task + 1) * part, count), LANES):
        start = matrices_from(t, count) * size
        largest: Any = zero
        total: Any = zero
        for i in range(rows):
            for j in range(columns):
                if j < k:
                    v = taken(x, start + (i * k + j if tall else j * rows + i), pairs)
                    own = v[0], v[1] if tall else -v[1]
                    put_number(room, base, i * columns + j, own, pairs)
                    total = total + square_of(v, pairs)
                    length = length_of(v, pairs)
                    largest = np.where(length <= largest, largest, length)  # or NaN
                else:
                    put_number(room, base, i * columns + j, (zero, zero), pairs)
        for i in range(k if vectors else 0):
            for j in range(k):
                put_number(room, basis, i * k + j, (zero, zero), pairs)
            put(room, basis, parts * (i * k + i), one)
        usual = (largest < _LARGE) & ((largest > 1 / _LARGE) | (largest == 0.0))
        least = total * (_LOST * _LOST)
        bad = bad + (LANES - many(usual))
        sweeps: Any = np.int64(0)
        going: Any = many(usual) == LANES
        while going:
            turned: Any = np.int64(0)
            for p in range(k - 1):
                for q in range(p + 1, k):
                    turned = turned + _rotate(
                        room, base, basis, rows, k, columns, p, q, least, near, pairs, vectors
                    )
            sweeps = sweeps + 1
            going = (turned > 0) & (sweeps < _SWEEPS)
        bad = bad + np.where(sweeps < _SWEEPS, 0, 1)
        _measured(room, base, lengths, places, rows, k, columns, pairs)
        for c in range(columns if vectors else 0):
            gone: Any = one
            if c < k:
                gone = of(room, places, k + c)
            if many(gone > 0.0) > 0:
                _completed(room, base, spare, rows, columns, c, gone)
        for i in range(min(LANES, count - t)):
            for j in range(columns):
                to = j + 0
                if j < k:
                    to = room[places + j * LANES + i].astype(np.int64)
                    s[(t + i) * k + to] = room[lengths + j * LANES + i].astype(s.dtype)
                if vectors:
                    for r in range(rows):
                        e = base + 2 * (r * columns + j) * LANES + i
                        at = (t + i) * rows * columns + (
                            r * columns + to if tall else to * rows + r
                        )
                        _written(room, e, long, 2 * at, tall)
                    for r in range(k if j < k else 0):
                        e = basis + 2 * (r * k + j) * LANES + i
                        at = (t + i) * k * k + (to * k + r if tall else r * k + to)
                        _written(room, e, short, 2 * at, not tall)
    odd[task] = np.where(bad > 0, 1, 0)


def _written(room: Any, e: Any, y: Any, at: Any, plain: bool) -> None:
    """A complex number of one lane, or its conjugate."""
    im = room[e + LANES]
    y[at] = room[e].astype(y.dtype)
    y[at + 1] = (im if plain else -im).astype(y.dtype)


def _rotate(
    room: Any, base: Any, basis: Any, rows: Any, k: Any, columns: Any, p: Any, q: Any, least: Any,
    near: Any, pairs: bool, vectors: bool,
) -> Any:  # fmt: skip
    """Turn columns p and q of the matrix, and of the basis, where they are not orthogonal yet; in
    how many lanes that is. least: the square of a column that is noise, and as good in any
    direction.
    """
    a: Any = spread(np.float64(0.0), LANES)
    b: Any = a
    u: Any = a
    v: Any = a
    for i in range(rows):
        x = number(room, base, i * columns + p, pairs)
        y = number(room, base, i * columns + q, pairs)
        a, b = a + square_of(x, pairs), b + square_of(y, pairs)
        if pairs:
            u, v = u + (x[0] * y[0] + x[1] * y[1]), v + (x[0] * y[1] - x[1] * y[0])
        else:
            u = u + x[0] * y[0]
    some = (a > least) & (b > least) & (square_of((u, v), pairs) > a * b * (near * near))
    turning = many(some)
    if turning > 0:
        cosine, sine, _ = _angle(a, b, (u, v), some, pairs)
        for i in range(rows):
            _turn(room, base, i * columns + p, i * columns + q, cosine, sine, pairs)
        for i in range(k if vectors else 0):
            _turn(room, basis, i * k + p, i * k + q, cosine, sine, pairs)
    return turning


def _angle(a: Any, b: Any, v: Any, some: Any, pairs: bool) -> tuple[Any, Any, Any]:
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


def _turn(room: Any, base: Any, d: Any, e: Any, cosine: Any, sine: Any, pairs: bool) -> None:
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


def _measured(
    room: Any, base: Any, lengths: Any, places: Any, rows: Any, k: Any, columns: Any, pairs: bool
) -> None:
    """Lengths of columns, which become 1, or 0 where one vanishes. places: how many are longer,
    and behind them where one vanishes.
    """
    one, zero = spread(np.float64(1.0), LANES), spread(np.float64(0.0), LANES)
    most: Any = zero
    for j in range(k):
        total: Any = zero
        for i in range(rows):
            total = total + square_of(number(room, base, i * columns + j, pairs), pairs)
        total = np.sqrt(total)
        most = np.where(total > most, total, most)
        put(room, lengths, j, total)
    for j in range(k):
        own = of(room, lengths, j)
        place: Any = zero
        for i in range(k):
            other = of(room, lengths, i)
            before = np.where(i < j, other >= own, other > own)
            place = place + np.where(before, one, zero)
        put(room, places, j, place)
    for j in range(k):
        own = of(room, lengths, j)
        gone = own <= most * (np.float64(rows) * _LOST)
        inverse = np.where(gone, 0.0, 1.0 / own)
        for i in range(rows):
            v = number(room, base, i * columns + j, pairs)
            put_number(room, base, i * columns + j, (v[0] * inverse, v[1] * inverse), pairs)
        put(room, places, k + j, np.where(gone, one, zero))


def _completed(
    room: Any, base: Any, spare: Any, rows: Any, columns: Any, c: Any, gone: Any
) -> None:
    """Make column c, which is 0 where gone > 0, there a unit vector orthogonal to the others."""
    one, zero = spread(np.float64(1.0), LANES), spread(np.float64(0.0), LANES)
    best: Any = one * 2.0
    place: Any = spread(np.int64(0), LANES)
    for i in range(rows):
        inside: Any = zero
        for j in range(columns):
            re, im = number(room, base, i * columns + j, True)
            inside = inside + (re * re + im * im)
        less = inside < best
        best, place = np.where(less, inside, best), np.where(less, i, place)
    for i in range(rows):
        put_number(room, spare, i, (np.where(place == i, one, zero), zero), True)
    for _ in (0, 1):  # what rounding leaves of the others, the second time takes away
        for j in range(columns):
            u: Any = zero
            v: Any = zero
            for i in range(rows):
                re, im = number(room, base, i * columns + j, True)
                there, beside = number(room, spare, i, True)
                u, v = u + (re * there + im * beside), v + (re * beside - im * there)
            for i in range(rows):
                re, im = number(room, base, i * columns + j, True)
                there, beside = number(room, spare, i, True)
                there = there - (re * u - im * v)
                put_number(room, spare, i, (there, beside - (re * v + im * u)), True)
        total: Any = zero
        for i in range(rows):
            re, im = number(room, spare, i, True)
            total = total + (re * re + im * im)
        inverse = 1.0 / np.sqrt(total)
        for i in range(rows):
            re, im = number(room, spare, i, True)
            put_number(room, spare, i, (re * inverse, im * inverse), True)
    for i in range(rows):
        re, im = number(room, base, i * columns + c, True)
        there, beside = number(room, spare, i, True)
        there, beside = np.where(gone > 0.0, there, re), np.where(gone > 0.0, beside, im)
        put_number(room, base, i * columns + c, (there, beside), True)
