"""Fourier transforms of many lines in loops: a line in each lane of a vector.

Stockham's way, which needs no order of its own: a pass of radix r reads r numbers that lie a part
of the line apart, and writes what it makes of them side by side. The numbers of a block of lines
stand in two buffers in turn, real and imaginary parts as vectors. Lines that lie along memory are
turned around in registers as they are read and written; the last block begins where it ends with
the lines. All is computed in the precision of the arrays, as SciPy's transforms of large ones are.
Real numbers, if even in number, are half as many complex ones: what both halves of those are the
transform of is told apart by a pass behind theirs, or put together by one before.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from msgspec import Struct

from funct.compile.fusion.calls import Address, Buffer, Call
from funct.compile.loops.transposes import turned_around
from funct.device import host
from funct.kernels.llvm import I64, PTR, Emitter, Module, Value, typed

__all__ = ["Lengths", "is_of_lines", "lower_lines", "print_lines"]

_RADICES = (4, 2, 3, 5, 7)
_MOST = 2048  # numbers of a line: a block of them stays in the second cache
_LEAST_LANES = 4
_NEAR = 1 << 15  # bytes of both buffers that the first cache holds
_TASK = 1 << 16  # numbers times passes that are worth a task
_MOST_TASKS = 16  # each has buffers of its own

_Pair = tuple[Value, Value]


class Lengths(Struct, frozen=True):
    """Lines before the axis, and behind it; numbers of a line: as they are read, all, and as they
    are written. They are real for `rfft` and `irfft`.
    """

    before: int
    given: int
    n: int
    made: int
    after: int

    def inner(self, name: str) -> int:
        """Complex numbers of a line."""
        halved = name in ("rfft", "irfft") and self.n % 2 == 0 and self.n > 2
        return self.n // 2 if halved else self.n

    def lanes(self, name: str, dtype: np.dtype[Any]) -> int:
        """Lines of a block: a power of two."""
        size = dtype.itemsize
        lines, most = self.before, host().vector_bytes // size
        if self.after > 1:
            lines = self.after
        else:
            while most > _LEAST_LANES and 4 * self.inner(name) * most * size > _NEAR:
                most //= 2
        return min(most, 1 << (lines.bit_length() - 1))


def is_of_lines(name: str, of: Lengths, dtype: np.dtype[Any]) -> bool:
    """Whether there are lines enough, of a length that small radices make."""
    lanes, n = of.lanes(name, dtype), of.inner(name)
    if not 1 < n <= _MOST or math.prod(_radices(n)) != n or lanes < _LEAST_LANES:
        return False
    if of.given != (of.n // 2 + 1 if name == "irfft" else of.n):
        return False
    if of.after > 1:
        return True
    ends = ((of.given, name == "rfft"), (of.made, name == "irfft"))
    return all(k >= (lanes if real else lanes // 2) for k, real in ends)


def _radices(n: int) -> list[int]:
    found = []
    for r in _RADICES:
        while n % r == 0:
            found.append(r)
            n //= r
    return found


def lower_lines(
    name: str, x: Address, out: Address, made: Any, of: Lengths, factor: float,
    dtype: np.dtype[Any],
) -> Call:  # fmt: skip
    """The call of a transform that `is_of_lines`, times a factor."""
    lanes, n = of.lanes(name, dtype), of.inner(name)
    blocks = of.before * -(-of.after // lanes) if of.after > 1 else -(-of.before // lanes)
    several = max(1, _TASK // (n * lanes * len(_radices(n))), -(-blocks // _MOST_TASKS))
    tasks = -(-blocks // several)
    room = Buffer((4 * n + 16) * lanes * tasks, dtype)
    words = (x, out, Address(room), of.before, of.after, blocks, several)
    element = "f32" if dtype.itemsize == 4 else "f64"
    lengths = (of.given, n, of.made, of.after > 1, lanes)
    return Call(("fourier lines", name, element, *lengths, factor), words, tasks, made)


def print_lines(
    module: Module, name: str, kind: str, element: str, given: int, n: int, made: int,
    across: bool, lanes: int, factor: float,
) -> None:  # fmt: skip
    """Add the kernel. Frame: what goes in, what comes out, buffers; lines before the axis and
    behind it; blocks of lines, and how many are a task.
    """
    f = module.function(name, [("frame", PTR), ("task", I64)])
    frame, task = f.arguments
    x, out, room = f.pointers(frame, 0, 3)
    before, after, blocks, several = f.words(frame, 3, 4)
    lines = _Lines(f, element, n, lanes, room, task)
    real_in, real_out = kind == "rfft", kind == "irfft"
    halved = n == (given if real_in else made) // 2 and n > 1 and (real_in or real_out)
    lines.halved = halved

    def block(number: Value, _: list[Value]) -> list[Value]:
        if across:
            along = f.div(after + (lanes - 1), lanes)
            outer = f.div(number, along)
            first = f.intrinsic("smin", (number - outer * along) * lanes, after - lanes)

            def places(array: Value, count: int, real: bool) -> _Across:
                size = 1 if real else 2
                base = f.at(array, (outer * count * after + first) * size, element)
                return _Across(base, after * size)

            lines.read_across(places(x, given, real_in), given, real=real_in)
        else:
            first = f.intrinsic("smin", number * lanes, before - lanes)
            lines.read_along(f.at(x, first * (given * (1 if real_in else 2)), element), given,
                             real=real_in)  # fmt: skip
        if real_out:
            lines.together() if halved else lines.mirror()
        lines.transform(inverse=kind in ("ifft", "irfft"))
        if real_in and halved:
            lines.apart()
        if across:
            lines.write_across(places(out, made, real_out), made, factor, real=real_out)
        else:
            lines.write_along(f.at(out, first * (made * (1 if real_out else 2)), element), made,
                              factor, real=real_out)  # fmt: skip
        return []

    start = task * several
    f.loop(start, f.intrinsic("smin", start + several, blocks), 1, block)
    f.ret()


class _Across:
    """Where numbers of a block lie whose lines are side by side. step: to the next number."""

    def __init__(self, base: Value, step: Value) -> None:
        self.base = base
        self.step = step


class _Lines:
    """A block of lines, and the two buffers that hold its numbers in turn."""

    def __init__(
        self, f: Emitter, element: str, n: int, lanes: int, room: Value, task: Value
    ) -> None:
        self.f = f
        self.element = element
        self.n = n
        self.lanes = lanes
        self.wide = typed(element, lanes)
        size = 2 * n * lanes
        self.halved = False  # real numbers are read and written as pairs
        self.here = f.at(room, task * (2 * size + 16 * lanes), element)
        self.there = f.at(self.here, size + 8 * lanes, element)

    def _load(self, place: Value, k: Value | int) -> _Pair:
        f, at = self.f, self.f.at(place, self._index(k) * (2 * self.lanes), self.element)
        return f.load(self.wide, at), f.load(self.wide, f.at(at, self.lanes, self.element))

    def _store(self, place: Value, k: Value | int, pair: _Pair) -> None:
        f, at = self.f, self.f.at(place, self._index(k) * (2 * self.lanes), self.element)
        f.store(pair[0], at)
        f.store(pair[1], f.at(at, self.lanes, self.element))

    def _index(self, k: Value | int) -> Value:
        return self.f.constant(I64, k) if isinstance(k, int) else k

    # Between memory and buffers

    def read_across(self, lines: _Across, count: int, *, real: bool) -> None:
        """Lines that lie side by side."""
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

    def write_across(self, lines: _Across, count: int, factor: float, *, real: bool) -> None:
        """The same, back."""
        f, lanes = self.f, self.lanes
        order = [k // 2 + lanes * (k % 2) for k in range(2 * lanes)]

        def two(k: Value, _: list[Value]) -> list[Value]:
            at = f.at(lines.base, k * 2 * lines.step, self.element)
            re, im = self._scaled(self._load(self.here, k), factor)
            f.store(re, at)
            f.store(im, f.at(at, lines.step, self.element))
            return []

        def one(k: Value, _: list[Value]) -> list[Value]:
            re, im = self._scaled(self._load(self.here, k), factor)
            f.store(
                re if real else f.shuffle(re, im, order),
                f.at(lines.base, k * lines.step, self.element),
            )
            return []

        pairs = real and self.halved
        f.loop(0, self.n if pairs else count, 1, two if pairs else one)

    def read_along(self, base: Value, count: int, *, real: bool) -> None:
        """Lines one after the other, turned around."""
        if real and self.halved:
            count, real = self.n, False
        f, size = self.f, 1 if real else 2
        chunk = self.lanes // size

        def some(c: Value, _: list[Value]) -> list[Value]:
            c = f.intrinsic("smin", c, f.constant(I64, count - chunk))
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

    def write_along(self, base: Value, count: int, factor: float, *, real: bool) -> None:
        """The same, back."""
        if real and self.halved:
            count, real = self.n, False
        f, size = self.f, 1 if real else 2
        chunk = self.lanes // size

        def some(c: Value, _: list[Value]) -> list[Value]:
            c = f.intrinsic("smin", c, f.constant(I64, count - chunk))
            pairs = [self._scaled(self._load(self.here, c + k), factor) for k in range(chunk)]
            rows = turned_around(f, [x for pair in pairs for x in pair[:size]])
            for k, row in enumerate(rows):
                f.store(row, f.at(base, c * size + k * count * size, self.element))
            return []

        f.loop(0, count, chunk, some)

    def _scaled(self, pair: _Pair, factor: float) -> _Pair:
        return pair if factor == 1 else (pair[0] * factor, pair[1] * factor)

    def mirror(self) -> None:
        """The second half of what real numbers are the transform of; what is real in it is so."""
        f, n, zero = self.f, self.n, self.f.constant(self.wide, 0.0)
        for k in (0, n // 2) if n % 2 == 0 else (0,):
            self._store(self.here, k, (self._load(self.here, k)[0], zero))

        def one(k: Value, _: list[Value]) -> list[Value]:
            re, im = self._load(self.here, k)
            self._store(self.here, f.constant(I64, n) - k, (re, zero - im))
            return []

        f.loop(1, (n + 1) // 2, 1, one, maybe_empty=True)

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
            other = f.constant(I64, n) - k
            (a, b), (c, d) = self._load(self.here, k), self._load(self.here, other)
            even = (a + c) * 0.5, (b - d) * 0.5
            odd = self._times(((b + d) * 0.5, (c - a) * 0.5), self._turn(k, -1.0))
            self._store(self.here, k, _plus(even, odd))
            re, im = _minus(even, odd)
            self._store(self.here, other, (re, -im))
            return []

        f.loop(1, n // 2 + 1, 1, one, maybe_empty=True)

    def together(self) -> None:
        """Before a transform that gives pairs of real numbers: what it is of."""
        f, n = self.f, self.n
        first, last = self._load(self.here, 0)[0], self._load(self.here, n)[0]
        self._store(self.here, 0, (first + last, first - last))

        def one(k: Value, _: list[Value]) -> list[Value]:
            other = f.constant(I64, n) - k
            (a, b), (c, d) = self._load(self.here, k), self._load(self.here, other)
            even = a + c, b - d
            odd = _turned(self._times((a - c, b + d), self._turn(k, 1.0)), 1.0)
            self._store(self.here, k, _plus(even, odd))
            re, im = _minus(even, odd)
            self._store(self.here, other, (re, -im))
            return []

        f.loop(1, n // 2 + 1, 1, one, maybe_empty=True)

    def _turn(self, k: Value, sign: float) -> _Pair:
        """The k-th of 2 n roots of one."""
        f, n = self.f, self.n
        roots = [
            part(sign * math.pi * k / n) for k in range(n // 2 + 1) for part in (math.cos, math.sin)
        ]
        table = f.address(f.module.table(typed(self.element), roots))
        places = [f.at(table, k * 2 + part, self.element) for part in range(2)]
        re, im = (f.splat(f.load(typed(self.element), at), self.lanes) for at in places)
        return re, im

    # The transform

    def transform(self, *, inverse: bool) -> None:
        """All passes; what they make is `here`."""
        sign, stride, rest = 1.0 if inverse else -1.0, 1, self.n
        for r in _radices(self.n):
            rest //= r
            self._pass(r, rest, stride, sign)
            stride *= r
            self.here, self.there = self.there, self.here

    def _pass(self, r: int, m: int, stride: int, sign: float) -> None:
        f = self.f
        turns = [
            part(sign * 2 * math.pi * p * k / (r * m))
            for p in range(m) for k in range(1, r) for part in (math.cos, math.sin)
        ]  # fmt: skip
        table = f.address(f.module.table(typed(self.element), turns)) if m > 1 else None

        def part_of(p: Value, _: list[Value]) -> list[Value]:
            by = []
            for k in range(2 * (r - 1) if table is not None else 0):
                assert table is not None
                at = f.at(table, p * (2 * (r - 1)) + k, self.element)
                by.append(f.splat(f.load(typed(self.element), at), self.lanes))

            def one(q: Value, _: list[Value]) -> list[Value]:
                given = [self._load(self.here, q + (p + m * j) * stride) for j in range(r)]
                for k, pair in enumerate(self._few(given, sign)):
                    if k and by:
                        pair = self._times(pair, (by[2 * k - 2], by[2 * k - 1]))
                    self._store(self.there, q + (p * r + k) * stride, pair)
                return []

            return f.loop(0, stride, 1, one)

        f.loop(0, m, 1, part_of)

    def _times(self, x: _Pair, y: _Pair) -> _Pair:
        f = self.f
        return f.fma(x[0], y[0], -(x[1] * y[1])), f.fma(x[0], y[1], x[1] * y[0])

    def _few(self, a: list[_Pair], sign: float) -> list[_Pair]:
        """The transform of r numbers."""
        r = len(a)
        if r == 2:
            return [_plus(a[0], a[1]), _minus(a[0], a[1])]
        if r == 4:
            even, odd = _plus(a[0], a[2]), _plus(a[1], a[3])
            apart, across = _minus(a[0], a[2]), _turned(_minus(a[1], a[3]), sign)
            return [_plus(even, odd), _plus(apart, across), _minus(even, odd),
                    _minus(apart, across)]  # fmt: skip
        return self._odd(a, sign)

    def _odd(self, a: list[_Pair], sign: float) -> list[_Pair]:
        """The same of an odd number of them: what is even in the place, and what is odd."""
        r = len(a)
        half = range(1, (r + 1) // 2)
        sums = [_plus(a[j], a[r - j]) for j in half]
        differences = [_minus(a[j], a[r - j]) for j in half]
        found = [functools.reduce(_plus, sums, a[0])] * r
        for k in half:
            angles = [2 * math.pi * (j * k % r) / r for j in half]
            even = self._added(sums, map(math.cos, angles), a[0])
            odd = self._added(differences, map(math.sin, angles), None)
            across = _turned(odd, sign)
            found[k], found[r - k] = _plus(even, across), _minus(even, across)
        return found

    def _added(self, pairs: list[_Pair], numbers: Iterable[float], total: _Pair | None) -> _Pair:
        """What pairs times numbers add to something."""
        f = self.f
        for (re, im), number in zip(pairs, numbers, strict=True):
            by = f.constant(self.wide, number)
            total = (re * by, im * by) if total is None else (
                f.fma(re, by, total[0]), f.fma(im, by, total[1])
            )  # fmt: skip
        assert total is not None
        return total


def _plus(x: _Pair, y: _Pair) -> _Pair:
    return x[0] + y[0], x[1] + y[1]


def _minus(x: _Pair, y: _Pair) -> _Pair:
    return x[0] - y[0], x[1] - y[1]


def _turned(x: _Pair, sign: float) -> _Pair:
    """Times i, or -i."""
    return (-x[1], x[0]) if sign > 0 else (x[1], -x[0])
