"""Fourier transforms of single lines that lie along memory, in vectors, by the four-step way.

A line of L m numbers is read as m rows of L lanes, whose columns are lines that lie side by side:
their transform is that of `line_text.py`. What it makes is turned by the roots of the line, squares
of L rows are turned around in registers, and transforms of L numbers in as many vectors give L
stretches of the result. Nothing but those squares leaves its lane, a line needs no others beside
it, and stays in the first cache.

Numbers stand apart in the buffers, all real parts and then all imaginary ones, so that what works
on rows and what works on runs may follow each other. Of pairs of real numbers, what both halves of
the spectrum are made of is told apart on the way out, or put together on the way in.

Source: D. H. Bailey, "FFTs in external or hierarchical memory", 1990, doi:10.1007/BF00162341.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from funct.kernels.cpu.fourier import line_text
from funct.kernels.cpu.fourier.line_text import Across, Form, Lines
from funct.kernels.cpu.fourier.radices import Pair, minus, plus, powers, roots, times, turned
from funct.kernels.llvm import I64, Emitter, Value, typed
from funct.kernels.llvm.shuffles import turned_around

__all__ = ["SingleLines", "spacing", "turns_of"]

_LINE = 64  # bytes of one of the caches
_LARGE = 6 << 20  # bytes of a result whose place no near cache holds,
_LARGE_APART = 3 << 19  # and of one that is written from both its ends


def turns_of(rows: int, form: Form) -> NDArray[np.float64]:
    """The roots of a line, row by row in vectors; the turns of the passes over rows; and, where
    real numbers are halved, the first of twice as many roots, one part after the other.
    """
    lanes, n, sign = form.lanes, rows * form.lanes, 1 if form.inverse else -1
    of_rows = roots(sign * np.outer(np.arange(rows), np.arange(lanes)), n)
    found = [np.stack(of_rows, 1).reshape(-1), line_text.turns_of(rows, form, ends=False)]
    if form.halved:
        found += roots(sign * np.arange(_roots(n, lanes)), 2 * n)
    return np.concatenate(found)


def _roots(n: int, lanes: int) -> int:
    """How many roots whole vectors from 1 to the middle reach."""
    return n // 2 + 1 + lanes


def spacing(n: Any, element: str) -> Any:
    """How far the parts of n numbers lie apart, a number or a value: of four in a row, none begins
    near to where another one does in a page, as loads would wait for stores there.
    """
    page = 4096 // typed(element).bytes
    return ((n + (page - 1)) & -page) + page // 4


class SingleLines(Lines):
    """A line, and the two buffers that hold its rows in turn."""

    def __init__(
        self, f: Emitter, form: Form, lengths: list[Value], turns: Value, room: Value, task: Value
    ) -> None:
        super().__init__(f, form, lengths, turns, room, task)
        self.roots = turns
        self.count = self.n * self.lanes
        self.spacing = spacing(self.count, self.element)
        self.here = f.at(room, task * (self.spacing * 4), self.element)
        self.there = f.at(self.here, self.spacing * 2, self.element)
        self.turns = f.at(turns, self.count * 2, self.element)
        self.order = [k // 2 + self.lanes * (k % 2) for k in range(2 * self.lanes)]

    def block(self, x: Value, out: Value, number: Value) -> None:
        """The line of that number."""
        f, form, lanes = self.f, self.form, self.lanes
        reals = form.real_in and not form.halved
        sizes = [1 if real else 2 for real in (form.real_in, form.real_out)]
        line = f.at(x, number * self.given * sizes[0], self.element)
        to = f.at(out, number * self.made * sizes[1], self.element)
        count = self.made * sizes[1]
        least = _LARGE_APART if form.real_in and form.halved else _LARGE
        large = self.before * count >= least // typed(self.element).bytes
        f.when(large, lambda: self._announce(to, count))
        if form.real_out:
            self._together(line)
        else:
            step = f.constant(I64, lanes if reals else 2 * lanes)
            self.read_across(Across(line, step), self.n, reals)
        self.transform()
        if form.real_in and form.halved:
            self._columns(None)
            self._apart(to)
        else:
            self._columns(to)

    def _announce(self, to: Value, count: Value) -> None:
        """Ask for the result's place: what comes is written here and there, which no processor
        foresees.
        """
        f = self.f

        def one(k: Value, _: list[Value]) -> list[Value]:
            f.prefetch(f.at(to, k, self.element), write=True)
            return []

        f.loop(0, count, _LINE // typed(self.element).bytes, one)

    def _index(self, k: Value | int) -> Value:
        return super()._index(k) * self.lanes

    def _load(self, place: Value, k: Value | int) -> Pair:
        return self._run(place, self._index(k))

    def _store(self, place: Value, k: Value | int, pair: Pair) -> None:
        self._store_run(place, self._index(k), pair)

    def _parts(self, place: Value, k: Value) -> tuple[Value, Value]:
        """Where both parts of the k-th number are."""
        at = self.f.at(place, k, self.element)
        return at, self.f.at(at, self.spacing, self.element)

    def _run(self, place: Value, k: Value) -> Pair:
        """Numbers from the k-th on."""
        re, im = self._parts(place, k)
        return self.f.load(self.wide, re), self.f.load(self.wide, im)

    def _store_run(self, place: Value, k: Value, pair: Pair) -> None:
        for x, at in zip(pair, self._parts(place, k), strict=True):
            self.f.store(x, at)

    def _backwards(self, pair: Pair) -> Pair:
        lanes = range(self.lanes - 1, -1, -1)
        return self.f.shuffle(pair[0], None, lanes), self.f.shuffle(pair[1], None, lanes)

    def _put(self, to: Value, k: Value, pair: Pair) -> None:
        """Write the k-th complex numbers of the result and on."""
        f = self.f
        f.store(f.shuffle(*self._scaled(pair), self.order), f.at(to, k * 2, self.element))

    def _columns(self, to: Value | None) -> None:
        """Transforms across the lanes; their numbers go to the result, or stay in a buffer."""
        f, lanes, m = self.f, self.lanes, self.n

        def square(k: Value, _: list[Value]) -> list[Value]:
            k = f.intrinsic("smin", k, m - lanes)
            rows = []
            for i in range(lanes):
                at = f.at(self.roots, (k + i) * (2 * lanes), self.element)
                root = f.load(self.wide, at), f.load(self.wide, f.at(at, lanes, self.element))
                rows.append(times(f, self._load(self.here, k + i), root))
            res, ims = (turned_around(f, list(parts)) for parts in zip(*rows, strict=True))
            for q, pair in enumerate(powers(f, list(zip(res, ims, strict=True)), self.sign)):
                if to is None:
                    self._store_run(self.there, m * q + k, pair)
                else:
                    self._put(to, m * q + k, pair)
            return []

        f.loop(0, m, lanes, square)
        if to is None:
            self.here, self.there = self.there, self.here

    def _root(self, k: Value) -> Pair:
        """Roots of twice as many numbers, from the k-th on."""
        f, n = self.f, self.count
        at = f.at(self.turns, (self.n - 1) * 2 + k, self.element)
        kept = f.div(n, f.constant(I64, 2)) + (1 + self.lanes)
        return f.load(self.wide, at), f.load(self.wide, f.at(at, kept, self.element))

    def _apart(self, to: Value) -> None:
        """See `Lines.apart`; a few numbers in the middle are written twice."""
        f, n, lanes = self.f, self.count, self.lanes
        scalar = typed(self.element)
        re, im = (f.load(scalar, at) for at in self._parts(self.here, f.constant(I64, 0)))
        by = None if self.factor is None else f.extract(self.factor, 0)
        for k, x in ((f.constant(I64, 0), re + im), (n, re - im)):
            place = f.at(to, k * 2, self.element)
            f.store(x if by is None else x * by, place)
            f.store(f.constant(scalar, 0.0), f.at(place, 1, self.element))

        def some(k: Value, _: list[Value]) -> list[Value]:
            other = n - k - (lanes - 1)
            (a, b), (c, d) = self._run(self.here, k), self._backwards(self._run(self.here, other))
            even = (a + c) * 0.5, (b - d) * 0.5
            odd = times(f, ((b + d) * 0.5, (c - a) * 0.5), self._root(k))
            self._put(to, k, plus(even, odd))
            re, im = minus(even, odd)
            self._put(to, other, self._backwards((re, -im)))
            return []

        f.loop(1, f.div(n, f.constant(I64, 2)) + 1, lanes, some)

    def _together(self, line: Value) -> None:
        """See `Lines.together`."""
        f, n, lanes = self.f, self.count, self.lanes
        scalar = typed(self.element)
        first, last = (
            f.load(scalar, f.at(line, k * 2, self.element)) for k in (f.constant(I64, 0), n)
        )
        ends = first + last, first - last
        for x, at in zip(ends, self._parts(self.here, f.constant(I64, 0)), strict=True):
            f.store(x, at)

        def read(k: Value) -> Pair:
            both = f.load(typed(self.element, 2 * lanes), f.at(line, k * 2, self.element))
            re, im = (f.shuffle(both, None, range(side, 2 * lanes, 2)) for side in (0, 1))
            return re, im

        def some(k: Value, _: list[Value]) -> list[Value]:
            other = n - k - (lanes - 1)
            (a, b), (c, d) = read(k), self._backwards(read(other))
            even = a + c, b - d
            odd = turned(times(f, (a - c, b + d), self._root(k)), 1.0)
            self._store_run(self.here, k, plus(even, odd))
            re, im = minus(even, odd)
            self._store_run(self.here, other, self._backwards((re, -im)))
            return []

        f.loop(1, f.div(n, f.constant(I64, 2)) + 1, lanes, some)
