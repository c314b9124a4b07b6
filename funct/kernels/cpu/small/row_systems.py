"""Elimination in one matrix after the other, whose rows are vectors: see `row_vectors.py`.

Pivots are the largest of a column, as LAPACK's. As many columns as a vector has elements are
eliminated in themselves, and what they take from the columns behind them is a product of matrices.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from funct.kernels.cpu.loops import lean, parallel
from funct.kernels.cpu.small.row_vectors import brought, exchanged, given, products_taken, whole
from funct.kernels.cpu.vectors import fused, lanes, loaded, spread, stored, written

__all__ = ["det", "inv", "lu", "slogdet", "solve"]

_LOST = {8: 2.0**-49, 4: 2.0**-20}  # of a column, what may be left of it by rounding alone
_LARGE = 1e150  # products of two such numbers, or of their inverses, are numbers still


@lean(parallel)
def det(
    x: Any, y: Any, room: Any, odd: Any, n: int, apart: int, count: int, part: int, task: int
) -> None:  # fmt: skip
    """y (count,): determinants of x (count, n, n). room: (tasks, n + 1, apart). odd (tasks,): 0. A
    task takes `part` matrices.
    """
    base = task * (n + 1) * apart
    odd[task] = 0
    width = 64 // room.dtype.itemsize
    for t in range(task * part, min((task + 1) * part, count)):
        turned = _taken_apart(x, t, n, room, base, apart, width)
        found: Any = np.where(turned & 1 == 1, -1.0, 1.0)
        far: Any = np.int64(0)
        for i in range(n):
            found = found * room[base + i * apart + i].astype(np.float64)
            size = np.where(found < 0.0, -found, found)
            beyond = (size > _LARGE) | ((size < 1 / _LARGE) & (size > 0.0))
            far = np.where(beyond, 1, far)
        if far > 0:
            sign, total = _logarithm(room, base, n, apart, turned)
            room[base] = total
            written(np.exp, room, base, room, base, 1)
            found = (sign * room[base]).astype(np.float64)
        y[t] = found.astype(y.dtype)


@lean(parallel)
def slogdet(
    x: Any, sign: Any, size: Any, room: Any, odd: Any, n: int, apart: int, start: int, count: int,
    part: int, task: int,
) -> None:  # fmt: skip
    """sign and, from element `start` on, size (count,): signs of the determinants of x (count, n,
    n), and the logarithms of their absolute values. Else as `det`.
    """
    base = task * (n + 1) * apart
    odd[task] = 0
    width = 64 // room.dtype.itemsize
    for t in range(task * part, min((task + 1) * part, count)):
        turned = _taken_apart(x, t, n, room, base, apart, width)
        its_sign, total = _logarithm(room, base, n, apart, turned)
        sign[t] = its_sign.astype(sign.dtype)
        size[start + t] = total.astype(size.dtype)


def _logarithm(room: Any, base: Any, n: Any, apart: Any, turned: Any) -> tuple[Any, Any]:
    """The sign of the product of a diagonal, and the logarithm of its size; the first row is used.
    """
    sign: Any = np.where(turned & 1 == 1, room.dtype.type(-1.0), room.dtype.type(1.0))
    for i in range(n):
        v = room[base + i * apart + i]
        sign = np.where(v > 0.0, sign, np.where(v < 0.0, -sign, v))
        room[base + i] = np.where(v < 0.0, -v, v)
    written(np.log, room, base, room, base, n)
    total: Any = room.dtype.type(0.0)
    for i in range(n):
        total = total + room[base + i]
    return sign, total


@lean(parallel)
def solve(
    a: Any, b: Any, y: Any, room: Any, odd: Any, n: int, m: int, step: int, apart: int,
    count: int, part: int, task: int,
) -> int:  # fmt: skip
    """y (count, n, m): a⁻¹ b for a (count, n, n) and b, whose matrices begin a step one behind the
    other. room: (tasks, n + 1, apart). odd
    (tasks,): 1 where a pivot is 0, or what rounding may have left of its column.
    """
    base = task * (n + 1) * apart
    width = 64 // room.dtype.itemsize
    right, lost = whole(n, width), np.int64(0)
    stop = right + whole(m, width)
    for t in range(task * part, min((task + 1) * part, count)):
        for i in range(n):
            brought(a, (t * n + i) * n, n, room, base + i * apart, width)
            brought(b, t * step + i * m, m, room, base + i * apart + right, width)
        _largest(room, base, n, apart, right, width)
        _eliminate(room, base, None, 0, n, apart, stop, False, False, width)
        lost = lost + _lost(room, base, n, apart)
        _substituted(room, base, n, apart, right, stop, width)
        for i in range(n):
            given(room, base + i * apart + right, m, y, (t * n + i) * m, width)
    odd[task] = np.where(lost > 0, 1, 0)
    return odd[task]


@lean(parallel)
def inv(
    x: Any, y: Any, places: Any, room: Any, odd: Any, n: int, apart: int, count: int, part: int,
    task: int,
) -> int:  # fmt: skip
    """y (count, n, n): inverses of x. places: (tasks, n). Else as `solve`."""
    base = task * (n + 1) * apart
    width = 64 // room.dtype.itemsize
    right, lost = whole(n, width), np.int64(0)
    zero = spread(room.dtype.type(0.0), width)
    for t in range(task * part, min((task + 1) * part, count)):
        for i in range(n):
            brought(x, (t * n + i) * n, n, room, base + i * apart, width)
            for j in range(right, 2 * right, width):
                stored(room, base + i * apart + j, zero)
            room[base + i * apart + right + i] = room.dtype.type(1.0)
        _largest(room, base, n, apart, right, width)
        _eliminate(room, base, places, task * n, n, apart, right, True, True, width)
        lost = lost + _lost(room, base, n, apart)
        _substituted(room, base, n, apart, right, 2 * right, width)
        for j in range(n):
            at: Any = base + right + j
            to: Any = t * n * n + places[task * n + j]
            for _i in range(n):
                y[to] = room[at].astype(y.dtype)
                at, to = at + apart, to + n
    odd[task] = np.where(lost > 0, 1, 0)
    return odd[task]


@lean(parallel)
def lu(
    x: Any, p: Any, low: Any, up: Any, places: Any, room: Any, odd: Any, n: int, apart: int,
    count: int, part: int, task: int,
) -> None:  # fmt: skip
    """p, low and up of x, all (count, n, n): rows change places so that pivots are the largest of
    their columns. places: (tasks, n). room: (tasks, n + 1, apart). odd (tasks,): 0.
    """
    base = task * (n + 1) * apart
    odd[task] = 0
    width = 64 // room.dtype.itemsize
    for t in range(task * part, min((task + 1) * part, count)):
        for i in range(n):
            brought(x, (t * n + i) * n, n, room, base + i * apart, width)
        _eliminate(
            room, base, places, task * n, n, apart, whole(n, width), False, True, width
        )
        for i in range(n):
            row = (t * n + i) * n
            for j in range(row, row + n):
                p[j] = p.dtype.type(0.0)
            given(room, base + i * apart, i, low, row, width)
            low[row + i] = low.dtype.type(1.0)
            for j in range(row + i + 1, row + n):
                low[j] = low.dtype.type(0.0)
            given(room, base + i * apart, n, up, row, width)
            for j in range(row, row + i):
                up[j] = up.dtype.type(0.0)
        for i in range(n):
            p[(t * n + places[task * n + i]) * n + i] = p.dtype.type(1.0)




def _taken_apart(
    x: Any, t: Any, n: Any, room: Any, base: Any, apart: Any, width: int
) -> Any:  # fmt: skip
    """Leave L and U of the matrix x[t]. Returns how often two rows changed places."""
    for i in range(n):
        brought(x, (t * n + i) * n, n, room, base + i * apart, width)
    return _eliminate(room, base, None, 0, n, apart, whole(n, width), False, False, width)


def _largest(room: Any, base: Any, n: Any, apart: Any, stop: Any, width: int) -> None:
    """Leave the largest size of each column behind the last row; NaN where there is one."""
    for j in range(0, stop, width):
        most: Any = spread(room.dtype.type(0.0), width)
        at: Any = base + j
        for _i in range(n):
            v = loaded(room, at, width)
            at = at + apart
            size = np.where(v < 0.0, -v, v)
            most = np.where(size <= most, most, size)
        stored(room, base + n * apart + j, most)


def _lost(room: Any, base: Any, n: Any, apart: Any) -> Any:
    """How many pivots are what rounding may have left of their columns, or not a number."""
    lost: Any = np.int64(0)
    least = _LOST[room.dtype.itemsize]
    for i in range(n):
        pivot = room[base + i * apart + i].astype(np.float64)
        size = np.where(pivot < 0.0, -pivot, pivot)
        usual = size > room[base + n * apart + i].astype(np.float64) * least
        lost = np.where(usual, lost, lost + 1)
    return lost


def _eliminate(
    room: Any, base: Any, places: Any, first: Any, n: Any, apart: Any, stop: Any, unit: bool,
    placed: bool, width: int,
) -> Any:  # fmt: skip
    """Leave L and U in the place of the first n columns of (n, stop), and L⁻¹ times the rest behind
    them. unit: L⁻¹ of the unit matrix that stands from `stop` on, though rows should have changed
    places before. placed: leave where each row was. Returns how often two of them did.
    """
    turned: Any = np.int64(0)
    if placed:
        for i in range(n):
            places[first + i] = np.int64(i)
    for c in range(0, n, width):
        end = min(c + width, n)
        for j in range(c, end):
            best: Any = room[base + j * apart + j]
            best = np.where(best < 0.0, -best, best)
            place: Any = np.int64(j)
            at: Any = base + j * apart + j
            for i in range(j + 1, n):
                at = at + apart
                v = room[at]
                size = np.where(v < 0.0, -v, v)
                more = size > best
                best = np.where(more, size, best)
                place = np.where(more, i, place)
            if place > j:
                for part in range(2 if unit else 1):  # the second one is not of the unit any more
                    behind = base + (stop if part > 0 else 0)
                    length = c if part > 0 else stop
                    exchanged(room, behind + j * apart, behind + place * apart, length, width)
                turned = turned + 1
                if placed:
                    was = places[first + j]
                    places[first + j] = places[first + place]
                    places[first + place] = was
            if best != 0.0:
                _column(room, base, n, apart, c, j, width)
        for k in range(1, end - c + 1):  # these rows one by one, then all below them
            row, many = base + (c + k) * apart, 1 if c + k < end else n - end
            for part in range(2 if unit else 1):
                here = stop if part > 0 else c + width
                there = stop + end if part > 0 else stop
                products_taken(
                    room, row, many, apart, room, row + c, apart, 1, base + c * apart, k, here,
                    there,
                )  # fmt: skip
    return turned


def _column(room: Any, base: Any, n: Any, apart: Any, c: Any, j: Any, width: int) -> None:
    """Eliminate column j from the rows below it, in the vector of columns from c on."""
    here = lanes(width, np.int32)
    pivots = loaded(room, base + j * apart + c, width)
    behind = np.where(here > np.int32(j - c), pivots, spread(room.dtype.type(0.0), width))
    inverse, own = 1.0 / room[base + j * apart + j], here == np.int32(j - c)
    at: Any = base + j * apart + c
    for _i in range(j + 1, n):
        at = at + apart
        factor = room[at + (j - c)] * inverse
        v = fused(spread(-factor, width), behind, loaded(room, at, width))
        stored(room, at, np.where(own, spread(factor, width), v))


def _substituted(
    room: Any, base: Any, n: Any, apart: Any, start: Any, stop: Any, width: int
) -> None:  # fmt: skip
    """Leave U⁻¹ times what stands between start and stop, U being in the first n columns."""
    blocks = whole(n, width)
    for back in range(0, blocks, width):
        c = blocks - width - back
        end = min(c + width, n)
        for u in range(end - c + 1):  # these rows one by one, then all above them
            own = u < end - c
            row = base + ((end - 1 - u) if own else 0) * apart
            products_taken(
                room, row, 1 if own else c, apart, room, row + (end - u), apart, 1,
                base + (end - u) * apart, u, start, stop,
            )  # fmt: skip
            if own:
                inverse = spread(1.0 / room[row + (end - 1 - u)], width)
                for j in range(start, stop, width):
                    stored(room, row + j, loaded(room, row + j, width) * inverse)
