"""Fourier transforms of short lines that lie along memory: registers hold a block of them whole.

A line of L m numbers is m vectors of L complex numbers, whose parts are neighbours. What lies one
below the other is transformed, turned by the roots of the line, and squares of L vectors are turned
around; what then lies one below the other are the lanes. Where m is less than L, as many lines as
make a square are a block. Of lines that are shorter than a vector, which holds several, it is their
own squares that are turned around, before and after. Nothing is written but the result.

Source: D. H. Bailey, "FFTs in external or hierarchical memory", 1990, doi:10.1007/BF00162341.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from funct.kernels.cpu.fourier.line_text import Form, Lines
from funct.kernels.cpu.fourier.radices import roots
from funct.kernels.llvm import Emitter, Value, typed

__all__ = ["HeldLines", "lines_of", "turns_of"]


def lines_of(form: Form) -> int:
    """How many lines are a block."""
    if form.held < form.lanes:
        return form.lanes
    return max(1, form.lanes * form.lanes // form.held)


def turns_of(form: Form) -> NDArray[np.float64]:
    """The roots of a line, row by row from the second on: real parts and imaginary ones, each for
    both parts of a number.
    """
    sign, rows = 1 if form.inverse else -1, form.held // form.lanes
    re, im = roots(sign * np.outer(np.arange(1, rows), np.arange(form.lanes)), form.held)
    return np.stack([np.stack([re, re], -1), np.stack([-im, im], -1)], 1).reshape(-1)


class HeldLines(Lines):
    """A block of lines in registers. The form's lanes are complex numbers of a vector."""

    def block(self, x: Value, out: Value, number: Value) -> None:
        """The block of that number."""
        f, lanes, n, several = self.f, self.lanes, self.form.held, lines_of(self.form)
        wide = self.wide = typed(self.element, 2 * lanes)
        rows = n // lanes
        first = f.intrinsic("smin", number * several, self.before - several) * (2 * n)
        source, target = (f.at(array, first, self.element) for array in (x, out))
        if not rows:
            starts = [2 * lanes * k for k in range(n)]
            square = [f.load(wide, f.at(source, k, self.element)) for k in starts]
            made = _powers(f, _turned_around(f, square, 2), self.sign)
            for k, vector in zip(starts, _turned_around(f, made, 2), strict=True):
                f.store(self._by_factor(vector), f.at(target, k, self.element))
            return
        vectors: list[Value] = []
        for line in range(several):
            places = [line * n + row * lanes for row in range(rows)]
            given = [f.load(wide, f.at(source, 2 * k, self.element)) for k in places]
            for row, found in enumerate(_powers(f, given, self.sign)):
                vectors.append(self._turned(found, row) if row else found)
        squares = [vectors[k : k + lanes] for k in range(0, len(vectors), lanes)]
        for k, square in enumerate(squares):
            made = _powers(f, _turned_around(f, square), self.sign)
            if several == 1:
                places = [q * rows + k * lanes for q in range(lanes)]
            else:
                groups = [made[q : q + several] for q in range(0, lanes, several)]
                made = [x for group in groups for x in _turned_around(f, group)]
                places = [line * n + q * lanes for q in range(rows) for line in range(several)]
            for place, vector in zip(places, made, strict=True):
                f.store(self._by_factor(vector), f.at(target, 2 * place, self.element))

    def _turned(self, x: Value, row: int) -> Value:
        """Times the roots of that row."""
        place = (row - 1) * 4 * self.lanes
        re, im = (
            self.f.load(self.wide, self.f.at(self.turns, place + k, self.element))
            for k in (0, 2 * self.lanes)
        )
        return self.f.fma(x, re, _swapped(self.f, x) * im)

    def _by_factor(self, x: Value) -> Value:
        if self.factor is None:
            return x
        return x * self.f.splat(self.f.extract(self.factor, 0), 2 * self.lanes)


def _swapped(f: Emitter, x: Value) -> Value:
    """Both parts of each number in the other's place."""
    return f.shuffle(x, None, [k ^ 1 for k in range(x.type.lanes)])


def _times(f: Emitter, x: Value, re: float, im: float) -> Value:
    """Times a number."""
    across = f.vector(x.type, [-im, im] * (x.type.lanes // 2))
    if re == 0:
        return _swapped(f, x) * across
    return f.fma(x, f.constant(x.type, re), _swapped(f, x) * across)


def _powers(f: Emitter, a: list[Value], sign: float) -> list[Value]:
    """The transform of as many vectors as a power of two says: fours of them, then the rest."""
    n, rest = len(a), len(a) // 4
    if n == 1:
        return a
    if n == 2:
        return [a[0] + a[1], a[0] - a[1]]
    parts = [_four(f, a[p::rest], sign) for p in range(rest)]
    found = list(a)
    for k in range(4):
        lines = [_by_root(f, parts[p][k], p * k, n, sign) for p in range(rest)]
        found[k::4] = _powers(f, lines, sign)
    return found


def _four(f: Emitter, a: list[Value], sign: float) -> list[Value]:
    even, odd = a[0] + a[2], a[1] + a[3]
    apart, across = a[0] - a[2], _swapped(f, a[1] - a[3])
    turn = f.vector(across.type, [-sign, sign] * (across.type.lanes // 2))
    return [even + odd, f.fma(across, turn, apart), even - odd, f.fma(across, -turn, apart)]


def _by_root(f: Emitter, x: Value, k: int, n: int, sign: float) -> Value:
    """Times the k-th of n roots of one, which is no more than its half."""
    if k == 0:
        return x
    if 4 * k == n:
        return _times(f, x, 0.0, sign)
    angle = 2 * math.pi * k / n
    return _times(f, x, math.cos(angle), sign * math.sin(angle))


def _turned_around(f: Emitter, rows: list[Value], size: int = 0) -> list[Value]:
    """Squares of pieces of vectors turned around. size: lanes of a piece; of one square that takes
    all of the vectors if not given.
    """
    side, lanes = len(rows), rows[0].type.lanes
    size, rows = size or lanes // side, list(rows)
    step = 1
    while step < side:
        low = [k if not k // size & step else lanes + k - step * size for k in range(lanes)]
        high = [k + step * size if not k // size & step else lanes + k for k in range(lanes)]
        for r in range(side):
            if not r & step:
                x, y = rows[r], rows[r + step]
                rows[r], rows[r + step] = f.shuffle(x, y, low), f.shuffle(x, y, high)
        step *= 2
    return rows
