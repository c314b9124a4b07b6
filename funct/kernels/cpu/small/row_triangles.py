"""Triangular systems, one after the other, real or complex: right sides are rows of vectors.

As many right sides as two vectors hold, or one if there are no more, stand in a room, rows in the
order in which they are solved: a row of the room is a vector or two, of complex numbers one of real
parts and one of imaginary parts. Some rows at a time take from themselves what all rows before them
have in them, and then one the other, without leaving the registers.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from funct.device import host
from funct.kernels.cpu.loops import lean, parallel
from funct.kernels.cpu.shared import shared
from funct.kernels.cpu.small.row_vectors import whole
from funct.kernels.cpu.vectors import fused, gathered, lanes, loaded, spread, stored
from funct.kernels.llvm import I64, PTR, Module, Value, each, typed

__all__ = ["solve_triangular"]


def _text(name: str, element: str, pairs: bool) -> str:
    """The code of `panel_solved`, or of `pairs_solved`: each way of as many rows as sums that are
    under way at once, of half as many for what is left, and so on.
    """
    module = Module(host())
    names = ("left", "down", "across", "inverses", "n", "two")
    parameters = [("room", PTR), ("rows", I64), ("x", PTR), *[(p, I64) for p in names]]
    f = module.function(name, parameters, I64)
    room, rows, x, left, down, across, inverses, n, two = f.arguments
    panel, diagonal = f.at(room, rows, element), f.at(room, inverses, element)
    matrix = f.at(x, left, element)
    vector, parts = typed(element, 64 // typed(element).bytes), 2 if pairs else 1

    def numbers(x: Value, at: Value) -> list[Value]:
        places = [f.at(x, at + part, element) for part in range(parts)]
        return [f.splat(f.load(typed(element), place), vector.lanes) for place in places]

    def less(own: list[Value], by: list[Value], other: list[Value]) -> list[Value]:
        """A row less a number times another."""
        out = [f.fma(f.neg(by[0]), v, w) for v, w in zip(other, own, strict=True)]
        if pairs:
            v, w = other
            return [f.fma(by[1], w, out[0]), f.fma(f.neg(by[1]), v, out[1])]
        return out

    def times(own: list[Value], by: list[Value]) -> list[Value]:
        if pairs:
            (re, im), (c, s) = own, by
            return [f.fma(f.neg(s), im, re * c), f.fma(s, re, im * c)]
        return [v * by[0] for v in own]

    def solve(i: Value, count: int, vectors: int) -> None:
        """Rows i to i + count, those before being solved."""

        def places(k: Value) -> list[Value]:
            first = k * vectors
            return [f.at(panel, (first + v) * vector.lanes, element) for v in range(vectors)]

        def row(k: Value) -> list[Value]:
            return [f.load(vector, place) for place in places(k)]

        def taken(k: Value, sums: list[Value]) -> list[Value]:
            other, out = row(k), list[Value]()
            for r in range(count):
                own = sums[r * vectors : (r + 1) * vectors]
                out += less(own, numbers(matrix, (i + r) * down + k * across), other)
            return out

        sums = [v for r in range(count) for v in row(i + r)]
        sums = f.loop(0, i, 1, taken, sums, maybe_empty=True)
        held = [sums[r * vectors : (r + 1) * vectors] for r in range(count)]
        for r in range(count):
            held[r] = times(held[r], numbers(diagonal, (i + r) * parts))
            for v, place in zip(held[r], places(i + r), strict=True):
                f.store(v, place)
            for s in range(r + 1, count):
                by = numbers(matrix, (i + s) * down + (i + r) * across)
                held[s] = less(held[s], by, held[r])

    def solve_all(vectors: int) -> list[Value]:
        count, begin = 8 if module.target.vector_bytes == 64 else 4, f.constant(I64, 0)
        while count:
            stop = f.bitand(n, -count)

            def some(i: Value, count: int = count) -> None:
                solve(i, count, vectors)

            each(f, begin, stop, some, count)
            count, begin = count // 2, stop
        return []

    if pairs:
        solve_all(2)
    else:
        f.branch(f.eq(two, 2), lambda: solve_all(2), lambda: solve_all(1))
    f.ret(f.constant(I64, 0))
    return module.text()


def _panel_text(name: str, element: str) -> str:
    return _text(name, element, False)


def _pairs_text(name: str, element: str) -> str:
    return _text(name, element, True)


@shared(arrays=("room", "x"), writes=("room",), text=_panel_text)
def panel_solved(
    room: Any, rows: Any, x: Any, left: Any, down: Any, across: Any, inverses: Any, n: Any, two: Any
) -> None:  # fmt: skip
    """Solve a system whose n right sides, of `two` vectors each, stand in a room from `rows` on, by
    the inverses of a diagonal, which stand from there on, and of each row i the numbers of x at
    left + i · down + k · across, k < i.
    """
    width = 64 // room.dtype.itemsize
    for i in range(n):
        for j in range(rows + i * two * width, rows + (i + 1) * two * width):
            for k in range(i):
                v = room[j - (i - k) * two * width]
                room[j] = fused(-x[left + i * down + k * across], v, room[j])
            room[j] = room[j] * room[inverses + i]


@shared(arrays=("room", "x"), writes=("room",), text=_pairs_text)
def pairs_solved(
    room: Any, rows: Any, x: Any, left: Any, down: Any, across: Any, inverses: Any, n: Any, two: Any
) -> None:  # fmt: skip
    """The same of complex numbers."""
    width = 64 // room.dtype.itemsize
    for i in range(n):
        for j in range(rows + i * two * width, rows + (i * two + 1) * width):
            re, im = room[j], room[j + width]
            for k in range(i):
                at = left + i * down + k * across
                v, w = room[j - (i - k) * two * width], room[j - (i - k) * two * width + width]
                re = fused(x[at + 1], w, fused(-x[at], v, re))
                im = fused(-x[at + 1], v, fused(-x[at], w, im))
            c, s = room[inverses + 2 * i], room[inverses + 2 * i + 1]
            room[j], room[j + width] = fused(-s, im, re * c), fused(s, re, im * c)


@lean(parallel)
def solve_triangular(
    a: Any, b: Any, y: Any, room: Any, odd: Any, n: int, m: int, step: int, along: int,
    count: int, lower: bool, pairs: bool, part: int, span: int, task: int,
) -> int:  # fmt: skip
    """y (count, n, m): a⁻¹ b for the lower or upper triangles of a (count, n, n) and b, whose
    matrices begin a step one behind the other. along: elements from one column to the next, 1 or n,
    and so n or 1 from row to row. pairs: whether numbers are complex. room: for each task 2 n
    numbers, in whole vectors, and 2 n vectors. odd (tasks,): 1 where a
    number on a diagonal is 0, also given. A task takes `part` matrices, or of one alone `span`
    right sides, which fill rows of the room.
    """
    width, parts = 64 // room.dtype.itemsize, 2 if pairs else 1
    inverses = task * 2 * (n * width + whole(n, width))
    rows = inverses + 2 * whole(n, width)
    first, turn = (0, 1) if lower else (n - 1, -1)
    lost: Any = np.int64(0)
    alone = count == 1
    begin = np.where(alone, task * span, 0)
    stop = np.where(alone, min((task + 1) * span, m), m)
    for t in range(np.where(alone, 0, task * part), min((task + 1) * part, count)):
        corner = (t * n * n + first * (n + 1)) * parts
        at: Any = corner
        for i in range(n):
            lost = lost + _inverted(a, at, room, inverses + i * parts, pairs)
            at = at + turn * (n + 1) * parts
        for j in range(begin, stop, width if pairs else 2 * width):
            some = stop - j
            two = np.where(some > width, np.int64(2), 2 if pairs else 1)
            to: Any = rows
            start: Any = (t * step + first * m + j) * parts
            for _i in range(n):
                if pairs:
                    _brought_pairs(b, start, some, room, to, width)
                else:
                    _brought(b, start, some, room, to, width)
                    if some > width:
                        _brought(b, start + width, some - width, room, to + width, width)
                to, start = to + two * width, start + turn * m * parts
            down, across = turn * (n + 1 - along) * parts, turn * along * parts
            if pairs:
                pairs_solved(room, rows, a, corner, down, across, inverses, n, two)
            else:
                panel_solved(room, rows, a, corner, down, across, inverses, n, two)
            to = rows
            start = ((t * n + first) * m + j) * parts
            for _i in range(n):
                if pairs:
                    for k in range(min(some, width)):
                        y[start + 2 * k] = room[to + k]
                        y[start + 2 * k + 1] = room[to + width + k]
                else:
                    _given(room, to, min(some, 2 * width), y, start, width)
                to, start = to + two * width, start + turn * m * parts
    odd[task] = np.where(lost > 0, 1, 0)
    return odd[task]


def _inverted(a: Any, at: Any, room: Any, to: Any, pairs: bool) -> Any:
    """Write 1 / a number of a diagonal. Whether that is 0."""
    one = room.dtype.type(1.0)
    if pairs:  # squares of what is divided by its size are neither too large nor too small
        re, im = a[at], a[at + 1]
        size = np.where(re < 0.0, -re, re) + np.where(im < 0.0, -im, im)
        whole = np.where(size == 0.0, one, size)
        c, s = re / whole, im / whole
        below = (c * c + s * s) * size
        room[to] = c / below
        room[to + 1] = -s / below
        return np.where(size == 0.0, np.int64(1), 0)
    room[to] = one / a[at]
    return np.where(a[at] == 0.0, np.int64(1), 0)


def _brought(b: Any, start: Any, some: Any, room: Any, to: Any, width: int) -> None:
    """Put up to a vector of elements into a room, and zeros behind them."""
    if some >= width:
        stored(room, to, loaded(b, start, width))
    else:
        stored(room, to, spread(room.dtype.type(0.0), width))
        for k in range(some):
            room[to + k] = b[start + k]


def _brought_pairs(b: Any, start: Any, some: Any, room: Any, to: Any, width: int) -> None:
    """The same of complex numbers: real parts, and behind a whole vector the others."""
    if some >= width:
        at = lanes(width, np.int64) * 2
        stored(room, to, gathered(b, at, start))
        stored(room, to + width, gathered(b, at, start + 1))
    else:
        zero = spread(room.dtype.type(0.0), width)
        stored(room, to, zero)
        stored(room, to + width, zero)
        for k in range(some):
            room[to + k] = b[start + 2 * k]
            room[to + width + k] = b[start + 2 * k + 1]


def _given(room: Any, at: Any, some: Any, y: Any, to: Any, width: int) -> None:
    """Take up to two vectors of elements out of a room."""
    inside = some & -width
    for k in range(0, inside, width):
        stored(y, to + k, loaded(room, at + k, width))
    for k in range(inside, some):
        y[to + k] = room[at + k]
