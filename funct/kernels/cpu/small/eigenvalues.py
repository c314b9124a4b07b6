"""Eigenvalues and eigenvectors of many small Hermitian matrices, one in each lane of a vector: see
`funct.kernels.linalg.stacks`.

Reflections make a matrix tridiagonal and real, and steps of QL with shifts make what stands beside
its diagonal vanish, an element after the other. A lane that has come there turns by nothing while
others go on, so its bits depend on no neighbour. Steps run over the whole rest of a matrix, also
where it falls into parts, which are not the same in all lanes: shifts are taken off the diagonal,
so each part has its step.

Source: Bowdler, Martin, Reinsch, Wilkinson, "The QR and QL algorithms for symmetric matrices"
(1968).
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
    of,
    put,
    put_number,
    size_of,
    square_of,
    taken,
    times,
    written,
)
from funct.kernels.cpu.vectors import many, spread

__all__ = ["eigh"]

_LARGE = 1e140  # the squares of such numbers, and of their inverses, can be added
_STEPS = 60


@parallel
def eigh(
    x: Any, w: Any, v: Any, room: Any, odd: Any, n: int, count: int, part: int, near: float,
    pairs: bool, vectors: bool, task: int,
) -> None:  # fmt: skip
    """w (count, n): ascending eigenvalues of the Hermitian parts of x (count, n, n); v like x:
    their vectors, as columns. pairs: whether numbers are complex. vectors: whether v is asked for.
    room: (tasks, n, 2 (n | 1) + 4) numbers of LANES. odd (tasks,): 1 where numbers are too large or
    small for it. near: how large may be what is left beside the diagonal, as a part of what stands
    on it. A task takes `part` matrices.
    """
    size, apart, parts = n * n, n | 1, 2 if pairs else 1
    base = task * (2 * apart + 4) * n * parts * LANES
    basis = base + n * apart * parts * LANES
    scales = basis + n * apart * parts * LANES
    spare = scales + n * parts * LANES
    diagonal = spare + n * parts * LANES
    beside = diagonal + n * LANES
    one, zero = spread(np.float64(1.0), LANES), spread(np.float64(0.0), LANES)
    bad: Any = np.int64(0)
    for t in range(task * part, min((task + 1) * part, count), LANES):
        start = matrices_from(t, count) * size
        largest: Any = zero
        for i in range(n):
            for j in range(i + 1):
                own = taken(x, start + (i * n + j), pairs)
                other = taken(x, start + (j * n + i), pairs)
                middle = own[0] * 0.5 + other[0] * 0.5, own[1] * 0.5 - other[1] * 0.5
                put_number(room, base, i * apart + j, middle, pairs)
                length = length_of(middle, pairs)
                largest = np.where(length <= largest, largest, length)  # or NaN
        usual = (largest < _LARGE) & ((largest > 1 / _LARGE) | (largest == 0.0))
        bad = bad + (LANES - many(usual))
        for i in range(n - 1):
            _reflect(room, base, scales, spare, beside, n, i, pairs)
        put(room, beside, n - 1, zero)
        for i in range(n):
            put(room, diagonal, i, of(room, base, parts * (i * apart + i)))
        if vectors:
            _collect(room, base, basis, scales, n, pairs)
        steps: Any = np.int64(0)
        if many(usual) == LANES:
            steps = _diagonalize(room, basis, diagonal, beside, n, near, pairs, vectors)
        bad = bad + steps
        for j in range(n):
            mine = of(room, diagonal, j)
            place: Any = zero
            for k in range(n):
                its = of(room, diagonal, k)
                below = np.where(k < j, its <= mine, its < mine)
                place = place + np.where(below, one, zero)
            put(room, beside, j, place)
        for i in range(min(LANES, count - t)):
            for j in range(n):
                to = room[beside + j * LANES + i].astype(np.int64)
                w[(t + i) * n + to] = room[diagonal + j * LANES + i].astype(w.dtype)
                if vectors:
                    for k in range(n):
                        at = (t + i) * size + k * n + to
                        written(v, at, room, basis, k * apart + j, i, pairs)
    odd[task] = np.where(bad > 0, 1, 0)


def _reflect(
    room: Any, base: Any, scales: Any, spare: Any, beside: Any, n: Any, c: Any, pairs: bool
) -> None:
    """Leave the reflection that ends column c behind the element below its diagonal, and apply it
    to the rest of the matrix, of which the lower triangle is kept, from both sides.
    """
    apart = n | 1
    one, zero = spread(np.float64(1.0), LANES), spread(np.float64(0.0), LANES)
    head = number(room, base, (c + 1) * apart + c, pairs)
    squares: Any = zero
    for i in range(c + 2, n):
        squares = squares + square_of(number(room, base, i * apart + c, pairs), pairs)
    whole = squares + square_of(head, pairs)
    ended = squares + head[1] * head[1] == 0.0 if pairs else squares == 0.0
    length = np.sqrt(whole)
    end = np.where(ended, head[0], np.where(head[0] < 0.0, length, -length))
    beyond = np.where(end == 0.0, one, end)
    by = np.where(ended, zero, (end - head[0]) / beyond), np.where(ended, zero, -head[1] / beyond)
    below = np.where(ended, one, head[0] - end), np.where(ended, zero, head[1])
    inverse = inverted(below, pairs)
    put(room, beside, c, end)
    put_number(room, scales, c, by, pairs)
    put_number(room, base, (c + 1) * apart + c, (one, zero), pairs)
    for i in range(c + 2, n):
        scaled = times(number(room, base, i * apart + c, pairs), inverse, pairs)
        put_number(room, base, i * apart + c, scaled, pairs)
    re: Any = zero
    im: Any = zero
    for i in range(c + 1, n):
        line = _line(room, base, n, c, i, pairs)
        image = times(line, by, pairs)
        put_number(room, spare, i, image, pairs)
        vector = number(room, base, i * apart + c, pairs)
        re, im = less((re, im), (-image[0], image[1]), vector, pairs)
    half = times((re * -0.5, im * -0.5), by, pairs)
    for i in range(c + 1, n):
        own = number(room, base, i * apart + c, pairs)
        moved = less(number(room, spare, i, pairs), (-half[0], -half[1]), own, pairs)
        put_number(room, spare, i, moved, pairs)
    for i in range(c + 1, n):
        left, shifted = number(room, base, i * apart + c, pairs), number(room, spare, i, pairs)
        for j in range(c + 1, i + 1):
            right, across = number(room, base, j * apart + c, pairs), number(room, spare, j, pairs)
            rest = number(room, base, i * apart + j, pairs)
            rest = less(rest, left, (across[0], -across[1]), pairs)
            rest = less(rest, shifted, (right[0], -right[1]), pairs)
            put_number(room, base, i * apart + j, rest, pairs)


def _line(room: Any, base: Any, n: Any, c: Any, i: Any, pairs: bool) -> tuple[Any, Any]:
    """Row i of the rest of the matrix times the reflection's vector."""
    apart = n | 1
    re: Any = spread(np.float64(0.0), LANES)
    im: Any = re
    for j in range(c + 1, i + 1):
        a, b = number(room, base, i * apart + j, pairs), number(room, base, j * apart + c, pairs)
        re, im = less((re, im), (-a[0], -a[1]), b, pairs)
    for j in range(i + 1, n):
        d, e = number(room, base, j * apart + i, pairs), number(room, base, j * apart + c, pairs)
        re, im = less((re, im), (-d[0], d[1]), e, pairs)
    return re, im


def _collect(room: Any, base: Any, basis: Any, scales: Any, n: Any, pairs: bool) -> None:
    """The product of all reflections."""
    apart = n | 1
    one, zero = spread(np.float64(1.0), LANES), spread(np.float64(0.0), LANES)
    for i in range(n):
        for j in range(n):
            put_number(room, basis, i * apart + j, (zero, zero), pairs)
        put_number(room, basis, i * apart + i, (one, zero), pairs)
    for u in range(n - 1):
        c = n - 2 - u
        by = number(room, scales, c, pairs)
        for j in range(c + 1, n):
            re: Any = zero
            im: Any = zero
            for i in range(c + 1, n):
                a, b = (
                    number(room, base, i * apart + c, pairs),
                    number(room, basis, i * apart + j, pairs),
                )
                re, im = less((re, im), (-a[0], a[1]), b, pairs)
            total = times((re, im), by, pairs)
            for i in range(c + 1, n):
                own = number(room, basis, i * apart + j, pairs)
                own = less(own, number(room, base, i * apart + c, pairs), total, pairs)
                put_number(room, basis, i * apart + j, own, pairs)


def _diagonalize(
    room: Any, basis: Any, diagonal: Any, beside: Any, n: Any, near: Any, pairs: bool,
    vectors: bool,
) -> Any:  # fmt: skip
    """Make what is beside the diagonal vanish; how many elements did not. Columns of the basis are
    turned along.
    """
    zero = spread(np.float64(0.0), LANES)
    shift: Any = zero
    most: Any = zero
    lost: Any = np.int64(0)
    for c in range(n - 1):
        around = size_of(of(room, diagonal, c)) + size_of(of(room, beside, c))
        most = np.where(around > most, around, most)
        steps: Any = np.int64(0)
        going: Any = many(size_of(of(room, beside, c)) > most * near) > 0
        while going:
            live = np.where(size_of(of(room, beside, c)) > most * near, 1.0, zero)
            shift = shift + _step(room, basis, diagonal, beside, n, c, live, pairs, vectors)
            steps = steps + 1
            going = (many(size_of(of(room, beside, c)) > most * near) > 0) & (steps < _STEPS)
        lost = lost + np.where(steps < _STEPS, 0, 1)
        put(room, diagonal, c, of(room, diagonal, c) + shift)
    put(room, diagonal, n - 1, of(room, diagonal, n - 1) + shift)
    return lost


def _step(
    room: Any, basis: Any, diagonal: Any, beside: Any, n: Any, c: Any, live: Any, pairs: bool,
    vectors: bool,
) -> Any:  # fmt: skip
    """A step for the element beside c where live > 0; by how much the rest was shifted."""
    apart = n | 1
    one, zero = spread(np.float64(1.0), LANES), spread(np.float64(0.0), LANES)
    some = live > 0.0
    first, second = of(room, diagonal, c), of(room, diagonal, c + 1)
    element = np.where(some, of(room, beside, c), one)
    rate = (second - first) / (element * 2.0)
    root = np.sqrt(rate * rate + 1.0)
    rate = rate + np.where(rate < 0.0, -root, root)
    above, next_one = element / rate, element * rate
    put(room, diagonal, c, np.where(some, above, first))
    put(room, diagonal, c + 1, np.where(some, next_one, second))
    by = np.where(some, first - above, zero)
    for i in range(c + 2, n):
        put(room, diagonal, i, of(room, diagonal, i) - by)
    after = of(room, beside, c + 1)
    p: Any = of(room, diagonal, n - 1)
    cosine: Any = one
    before: Any = one  # the cosine one turn ago, and two
    long_before: Any = one
    sine: Any = zero
    sine_before: Any = zero
    for u in range(n - 1 - c):
        i = n - 2 - u
        long_before, before, sine_before = before, cosine, sine
        e, own = of(room, beside, i), of(room, diagonal, i)
        g, h = cosine * e, cosine * p
        r = np.sqrt(p * p + e * e)
        none = r == 0.0
        whole = np.where(none, one, r)
        put(room, beside, i + 1, np.where(some, sine * r, of(room, beside, i + 1)))
        sine, cosine = np.where(none, zero, e / whole), np.where(none, one, p / whole)
        p = cosine * own - sine * g
        made = h + sine * (cosine * g + sine * own)
        put(room, diagonal, i + 1, np.where(some, made, of(room, diagonal, i + 1)))
        if vectors:
            near_one, near_zero = np.where(some, cosine, one), np.where(some, sine, zero)
            for k in range(n):
                _turn(room, basis, k * apart + i, near_one, near_zero, pairs)
    p = -sine * sine_before * long_before * after * of(room, beside, c) / next_one
    put(room, beside, c, np.where(some, sine * p, of(room, beside, c)))
    put(room, diagonal, c, np.where(some, cosine * p, of(room, diagonal, c)))
    return by


def _turn(room: Any, basis: Any, at: Any, cosine: Any, sine: Any, pairs: bool) -> None:
    """An element and the one behind it."""
    a, b = number(room, basis, at, pairs), number(room, basis, at + 1, pairs)
    behind = sine * a[0] + cosine * b[0], sine * a[1] + cosine * b[1]
    put_number(room, basis, at + 1, behind, pairs)
    put_number(room, basis, at, (cosine * a[0] - sine * b[0], cosine * a[1] - sine * b[1]), pairs)
