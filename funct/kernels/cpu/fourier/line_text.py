"""Fourier transforms of many lines in loops: a line in each lane of a vector.

Stockham's way, which needs no order of its own: a pass of radix r reads r numbers that lie a part
of the line apart, and writes what it makes of them side by side. The numbers of a block of lines
stand in two buffers in turn, real and imaginary parts as vectors. Lines that lie along memory are
turned around in registers as they are read and written; the last block begins where it ends with
the lines. All is computed in the precision of the arrays, as SciPy's transforms of large ones are.
Real numbers, if even in number, are half as many complex ones: what both halves of those are the
transform of is told apart by a pass behind theirs, or put together by one before.

Long lines that lie along memory are taken one by one instead (`four_step.py`), short ones stay in
registers where there are enough (`held_lines.py`). Primes have loops (`primes.py`). `texts.py` has
the texts of all.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np
from msgspec import Struct
from msgspec.structs import astuple
from numpy.typing import NDArray

from funct.kernels.cpu.fourier.primes import PRIMES, Prime, by_definition, room, roots_of_prime
from funct.kernels.cpu.fourier.radices import Pair, few, minus, plus, radices, roots, times, turned
from funct.kernels.llvm import I64, Emitter, Value, typed
from funct.kernels.llvm.shuffles import turned_around

__all__ = ["Across", "Form", "Lines", "Step", "roots_of", "steps_of", "turns_of"]

_Length = int | Value


class Form(Struct, frozen=True):
    """What a text is for. across: lines lie side by side. real_in, real_out: the numbers of lines
    that are read, or written; halved: as half as many complex ones. single: lines are taken one by
    one, and lanes are numbers of a row.
    """

    element: str
    lanes: int
    across: bool
    real_in: bool
    real_out: bool
    halved: bool
    inverse: bool
    single: bool
    held: int = 0


class Step(Struct, frozen=True):
    """A pass: its radix; what is left of the line, and how much of it is done; where its turns are,
    and how far before the table the roots of its radix are, if that is a large one. The last one
    turns nothing.
    """

    radix: int
    rest: int
    stride: int
    first: int
    roots: int


def steps_of(n: int) -> list[Step] | None:
    """The passes of a line of n complex numbers; None where other radices make it. An eight and a
    two are two fours, which are less work.
    """
    found, stride, first, place = [], 1, 0, 0
    for r in (*radices(), *PRIMES):
        while n % r == 0 and not (r == 8 and n % 32 == 16):
            n //= r
            prime = r not in radices()
            place += room(r) if prime else 0
            found.append(Step(r, n, stride, first, place if prime else 0))
            stride, first = stride * r, first + 2 * n * (r - 1)
    return found if n == 1 and found else None


def roots_of(n: int) -> NDArray[np.float64]:
    """What stands before the turns: the roots of large radices, those of the last pass first."""
    found = [roots_of_prime(s.radix) for s in steps_of(n) or () if s.roots]
    return np.concatenate([np.empty(0), *reversed(found)])


def turns_of(n: int, form: Form, *, ends: bool = True) -> NDArray[np.float64]:
    """The turns of all passes and, where real numbers are halved, the first of 2 n roots of one, if
    the ends want them.
    """
    sign = 1 if form.inverse else -1
    found = [
        roots(sign * np.outer(np.arange(s.rest), np.arange(1, s.radix)), s.radix * s.rest)
        for s in steps_of(n) or ()
    ]  # fmt: skip
    if form.halved and ends:
        found.append(roots(sign * np.arange(n // 2 + 1), 2 * n))
    return np.concatenate([np.stack(parts, -1).reshape(-1) for parts in found])


class Across:
    """Where numbers of a block lie whose lines are side by side. step: to the next number."""

    def __init__(self, base: Value, step: Value) -> None:
        self.base = base
        self.step = step


class Lines:
    """A block of lines, and the two buffers that hold its numbers in turn."""

    def __init__(
        self, f: Emitter, form: Form, lengths: list[Value], turns: Value, room: Value, task: Value
    ) -> None:
        self.f, self.form = f, form
        self.element, self.lanes, self.halved = form.element, form.lanes, form.halved
        self.given, self.n, self.made = lengths
        self.table, self.turns, self.sign = turns, turns, 1.0 if form.inverse else -1.0
        self.steps: list[Step] | None = None  # or, in memory:
        self.passes = self.before_last = self.before = self.after = self.n
        self.factor: Value | None = None
        self.wide = typed(self.element, self.lanes)
        size = self.n * (2 * self.lanes)
        self.here = f.at(room, task * (size * 2 + 16 * self.lanes), self.element)
        self.there = f.at(self.here, size + 8 * self.lanes, self.element)

    def run(self, frame: Value, task: Value) -> None:
        """All blocks of a task."""
        f = self.f
        x, out = f.pointers(frame, 0, 2)
        self.before, self.after, blocks, several = f.words(frame, 3, 4)

        def one(number: Value, _: list[Value]) -> list[Value]:
            here, there = self.here, self.there
            self.block(x, out, number)
            self.here, self.there = here, there
            return []

        start = task * several
        f.loop(start, f.intrinsic("smin", start + several, blocks), 1, one)
        f.ret()

    def block(self, x: Value, out: Value, number: Value) -> None:
        """The block of that number."""
        f, form, lanes, before, after = self.f, self.form, self.lanes, self.before, self.after
        if form.across:
            along = f.div(after + (lanes - 1), lanes)
            outer = f.div(number, along)
            first = f.intrinsic("smin", (number - outer * along) * lanes, after - lanes)

            def places(array: Value, count: Value, real: bool) -> Across:
                size = 1 if real else 2
                base = f.at(array, (outer * count * after + first) * size, self.element)
                return Across(base, after * size)

            self.read_across(places(x, self.given, form.real_in), self.given, form.real_in)
        else:
            first = f.intrinsic("smin", number * lanes, before - lanes)
            size = 1 if form.real_in else 2
            self.read_along(f.at(x, first * self.given * size, self.element), self.given)
        if form.real_out:
            self.together() if form.halved else self.mirror()
        self.transform()
        if form.real_in and form.halved:
            self.apart()
        if form.across:
            self.write_across(places(out, self.made, form.real_out), self.made)
        else:
            size = 1 if form.real_out else 2
            self.write_along(f.at(out, first * self.made * size, self.element), self.made)

    def _load(self, place: Value, k: Value | int) -> Pair:
        f, at = self.f, self.f.at(place, self._index(k) * (2 * self.lanes), self.element)
        return f.load(self.wide, at), f.load(self.wide, f.at(at, self.lanes, self.element))

    def _store(self, place: Value, k: Value | int, pair: Pair) -> None:
        f, at = self.f, self.f.at(place, self._index(k) * (2 * self.lanes), self.element)
        f.store(pair[0], at)
        f.store(pair[1], f.at(at, self.lanes, self.element))

    def _index(self, k: Value | int) -> Value:
        return self.f.constant(I64, k) if isinstance(k, int) else k

    # Between memory and buffers

    def read_across(self, lines: Across, count: Value, real: bool) -> None:
        """Lines that lie side by side; real: whether their numbers are."""
        f, lanes = self.f, self.lanes

        def two(k: Value, _: list[Value]) -> list[Value]:
            at = f.at(lines.base, k * 2 * lines.step, self.element)
            after = f.at(at, lines.step, self.element)
            self._store(self.here, k, (f.load(self.wide, at), f.load(self.wide, after)))
            return []

        def one(k: Value, _: list[Value]) -> list[Value]:
            at = f.at(lines.base, k * lines.step, self.element)
            if real:
                self._store(self.here, k, (f.load(self.wide, at), f.constant(self.wide, 0.0)))
                return []
            both = f.load(typed(self.element, 2 * lanes), at)
            parts = [f.shuffle(both, None, range(side, 2 * lanes, 2)) for side in (0, 1)]
            self._store(self.here, k, (parts[0], parts[1]))
            return []

        pairs = real and self.halved
        f.loop(0, self.n if pairs else count, 1, two if pairs else one)

    def write_across(self, lines: Across, count: Value) -> None:
        """The same, back."""
        f, lanes, real = self.f, self.lanes, self.form.real_out
        order = [k // 2 + lanes * (k % 2) for k in range(2 * lanes)]

        def two(k: Value, _: list[Value]) -> list[Value]:
            at = f.at(lines.base, k * 2 * lines.step, self.element)
            re, im = self._scaled(self._load(self.here, k))
            f.store(re, at)
            f.store(im, f.at(at, lines.step, self.element))
            return []

        def one(k: Value, _: list[Value]) -> list[Value]:
            re, im = self._scaled(self._load(self.here, k))
            f.store(
                re if real else f.shuffle(re, im, order),
                f.at(lines.base, k * lines.step, self.element),
            )
            return []

        pairs = real and self.halved
        f.loop(0, self.n if pairs else count, 1, two if pairs else one)

    def read_along(self, base: Value, count: Value) -> None:
        """Lines one after the other, turned around."""
        real = self.form.real_in
        if real and self.halved:
            count, real = self.n, False
        f, size = self.f, 1 if real else 2
        chunk = self.lanes // size

        def some(c: Value, _: list[Value]) -> list[Value]:
            c = f.intrinsic("smin", c, count - chunk)
            rows = [
                f.load(self.wide, f.at(base, c * size + k * count * size, self.element))
                for k in range(self.lanes)
            ]
            found = turned_around(f, rows)
            for k in range(chunk):
                im = f.constant(self.wide, 0.0) if real else found[2 * k + 1]
                self._store(self.here, c + k, (found[size * k], im))
            return []

        f.loop(0, count, chunk, some)

    def write_along(self, base: Value, count: Value) -> None:
        """The same, back."""
        real = self.form.real_out
        if real and self.halved:
            count, real = self.n, False
        f, size = self.f, 1 if real else 2
        chunk = self.lanes // size

        def some(c: Value, _: list[Value]) -> list[Value]:
            c = f.intrinsic("smin", c, count - chunk)
            pairs = [self._scaled(self._load(self.here, c + k)) for k in range(chunk)]
            rows = turned_around(f, [x for pair in pairs for x in pair[:size]])
            for k, row in enumerate(rows):
                f.store(row, f.at(base, c * size + k * count * size, self.element))
            return []

        f.loop(0, count, chunk, some)

    def _scaled(self, pair: Pair) -> Pair:
        by = self.factor
        return pair if by is None else (pair[0] * by, pair[1] * by)

    def mirror(self) -> None:
        """The second half of what real numbers are the transform of; what is real in it is so."""
        f, n, zero = self.f, self.n, self.f.constant(self.wide, 0.0)
        half = f.div(n, f.constant(I64, 2))
        middle = f.select(f.compare("eq", half * 2, n), half, f.constant(I64, 0))
        for k in (f.constant(I64, 0), middle):
            self._store(self.here, k, (self._load(self.here, k)[0], zero))

        def one(k: Value, _: list[Value]) -> list[Value]:
            re, im = self._load(self.here, k)
            self._store(self.here, n - k, (re, zero - im))
            return []

        f.loop(1, f.div(n + 1, f.constant(I64, 2)), 1, one, maybe_empty=True)

    def apart(self) -> None:
        """Behind a transform of pairs of real numbers: that of the numbers. What is at k, and at
        n - k, is what is even among them, and what is odd, turned.
        """
        f, n = self.f, self.n
        re, im = self._load(self.here, 0)
        zero = f.constant(self.wide, 0.0)
        self._store(self.here, 0, (re + im, zero))
        self._store(self.here, n, (re - im, zero))

        def one(k: Value, _: list[Value]) -> list[Value]:
            other = n - k
            (a, b), (c, d) = self._load(self.here, k), self._load(self.here, other)
            even = (a + c) * 0.5, (b - d) * 0.5
            odd = times(f, ((b + d) * 0.5, (c - a) * 0.5), self._turn(k))
            self._store(self.here, k, plus(even, odd))
            re, im = minus(even, odd)
            self._store(self.here, other, (re, -im))
            return []

        f.loop(1, f.div(n, f.constant(I64, 2)) + 1, 1, one, maybe_empty=True)

    def together(self) -> None:
        """Before a transform that gives pairs of real numbers: what it is of."""
        f, n = self.f, self.n
        first, last = self._load(self.here, 0)[0], self._load(self.here, n)[0]
        self._store(self.here, 0, (first + last, first - last))

        def one(k: Value, _: list[Value]) -> list[Value]:
            other = n - k
            (a, b), (c, d) = self._load(self.here, k), self._load(self.here, other)
            even = a + c, b - d
            odd = turned(times(f, (a - c, b + d), self._turn(k)), 1.0)
            self._store(self.here, k, plus(even, odd))
            re, im = minus(even, odd)
            self._store(self.here, other, (re, -im))
            return []

        f.loop(1, f.div(n, f.constant(I64, 2)) + 1, 1, one, maybe_empty=True)

    def _turn(self, k: Value) -> Pair:
        """The k-th of 2 n roots of one, behind the turns of all passes."""
        return self._turn_at((self.n + k - 1) * 2)

    def _turn_at(self, place: Value) -> Pair:
        f = self.f
        places = [f.at(self.turns, place + part, self.element) for part in range(2)]
        re, im = (f.splat(f.load(typed(self.element), at), self.lanes) for at in places)
        return re, im

    # The transform

    def transform(self) -> None:
        """All passes; what they make is `here`."""
        f = self.f
        if self.steps is not None:
            for s in self.steps:
                if s.roots:
                    self._prime_pass(*[f.constant(I64, k) for k in astuple(s)])
                else:
                    self._pass(s.radix, s.rest, s.stride, f.constant(I64, s.first))
                self.here, self.there = self.there, self.here
            return

        def one(k: Value, buffers: list[Value]) -> list[Value]:
            self.here, self.there = buffers
            radix, rest, stride, first, place = f.words(f.at(self.passes, k * 5, "i64"), 0, 5)
            self._of_radix(radix, lambda r: self._pass(r, rest, stride, first))
            prime = f.ne(place, 0)
            f.when(prime, lambda: self._prime_pass(radix, rest, stride, first, place))
            return [self.there, self.here]

        self.here, self.there = f.loop(
            0, self.before_last, 1, one, [self.here, self.there], maybe_empty=True
        )
        last = f.at(self.passes, self.before_last * 5, "i64")
        radix, rest, stride, first, place = f.words(last, 0, 5)
        self._of_radix(radix, lambda r: self._pass(r, 1, stride, first))
        prime = f.ne(place, 0)
        f.when(prime, lambda: self._prime_pass(radix, rest, stride, first, place))
        self.here, self.there = self.there, self.here

    def _of_radix(self, radix: Value, run: Callable[[int], None]) -> None:
        for r in radices():
            self.f.when(self.f.compare("eq", radix, r), functools.partial(run, r))

    def _pass(self, r: int, m: _Length, stride: _Length, first: Value) -> None:
        f = self.f

        def part_of(p: Value, _: list[Value]) -> list[Value]:
            turns = range(0 if isinstance(m, int) and m == 1 else r - 1)
            by = [self._turn_at(first + p * (2 * (r - 1)) + 2 * k) for k in turns]

            def one(q: Value, _: list[Value]) -> list[Value]:
                given = [self._load(self.here, q + (p + m * j) * stride) for j in range(r)]
                for k, pair in enumerate(few(f, given, self.sign)):
                    if k and by:
                        pair = times(f, pair, by[k - 1])
                    self._store(self.there, q + (p * r + k) * stride, pair)
                return []

            return f.loop(0, stride, 1, one)

        f.loop(0, m, 1, part_of)

    def _prime_pass(self, r: Value, m: Value, stride: Value, first: Value, place: Value) -> None:
        """The same of a prime radix that has no text of its own."""
        f = self.f
        of = Prime(r, f.at(self.table, -place, self.element), self.element, self.sign)

        def part_of(p: Value, _: list[Value]) -> list[Value]:
            turns = first + (p * (r - 1) - 1) * 2

            def one(q: Value, _: list[Value]) -> list[Value]:
                def given(j: Value) -> Value:
                    return q + (p + m * j) * stride

                def put(k: Value, pair: Pair) -> None:
                    self._store(self.there, q + (p * r + k) * stride, pair)

                by_definition(
                    f, of, lambda j: self._load(self.here, given(j)),
                    lambda j, pair: self._store(self.here, given(j), pair), put,
                    lambda k: self._turn_at(turns + k * 2),
                )  # fmt: skip
                return []

            return f.loop(0, stride, 1, one)

        f.loop(0, m, 1, part_of)
