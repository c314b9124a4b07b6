"""The arithmetic of transforms of few complex numbers, whose parts are vectors."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from funct.device import host
from funct.kernels.llvm import Emitter, Value

__all__ = ["Pair", "few", "minus", "plus", "powers", "radices", "roots", "times", "turned"]


Pair = tuple[Value, Value]


def radices() -> tuple[int, ...]:
    """What passes are of, the first first. Eight numbers and their turns need the 32 registers that
    there are with vectors of 64 bytes; with 16, fours are quicker.
    """
    return (8, 4, 2, 3, 5, 7) if host().vector_bytes >= 64 else (4, 2, 3, 5, 7)


def roots(k: NDArray[np.int64], n: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The parts of exp(2πi k / n), of angles no larger than an eighth of a turn: those of large
    ones are rounded.
    """
    quarter = (4 * k + n // 2) // n
    angle = (4 * k - quarter * n) * (math.pi / 2 / n)
    cos, sin = np.cos(angle), np.sin(angle)
    re, im = np.where(quarter % 2, -sin, cos), np.where(quarter % 2, cos, sin)
    back = quarter % 4 >= 2
    return np.where(back, -re, re), np.where(back, -im, im)


def few(f: Emitter, a: list[Pair], sign: float) -> list[Pair]:
    """The transform of as many numbers as a radix says, with exponents of that sign."""
    if len(a) == 2:
        return [plus(a[0], a[1]), minus(a[0], a[1])]
    if len(a) == 4:
        even, odd = plus(a[0], a[2]), plus(a[1], a[3])
        apart, across = minus(a[0], a[2]), turned(minus(a[1], a[3]), sign)
        return [plus(even, odd), plus(apart, across), minus(even, odd), minus(apart, across)]
    if len(a) == 8:
        return _eight(f, a, sign)
    return _odd(f, a, sign)


def _eight(f: Emitter, a: list[Pair], sign: float) -> list[Pair]:
    """Of eight: of those at even places, and of those at odd ones, by eighths of a turn. The size
    of their parts comes in with the last sums, which rounds once less.
    """
    even, odd = few(f, a[::2], sign), few(f, a[1::2], sign)
    first, across, third = (turned(odd[k], sign) for k in (1, 2, 3))
    found = [even[0]] * 8
    for k, side in ((0, odd[0]), (2, across)):
        found[k], found[k + 4] = plus(even[k], side), minus(even[k], side)
    for k, side in ((1, plus(odd[1], first)), (3, minus(third, odd[3]))):
        found[k] = _added(f, [side], [math.sqrt(0.5)], even[k])
        found[k + 4] = _added(f, [(-side[0], -side[1])], [math.sqrt(0.5)], even[k])
    return found


def powers(f: Emitter, a: list[Pair], sign: float) -> list[Pair]:
    """The transform of as many numbers as a power of two says: fours of them, then the rest."""
    n, rest = len(a), len(a) // 4
    if n <= 4:
        return few(f, a, sign) if n > 1 else a
    found: list[Pair] = [a[0]] * n
    parts = [few(f, a[p::rest], sign) for p in range(rest)]
    for k in range(4):
        lines = [_by_root(f, parts[p][k], p * k, n, sign) for p in range(rest)]
        found[k::4] = powers(f, lines, sign)
    return found


def _by_root(f: Emitter, x: Pair, k: int, n: int, sign: float) -> Pair:
    """Times the k-th of n roots of one, which is no more than its half."""
    if k == 0:
        return x
    if 4 * k == n:
        return turned(x, sign)
    angle = sign * 2 * math.pi * k / n
    re, im = (f.constant(x[0].type, part(angle)) for part in (math.cos, math.sin))
    return times(f, x, (re, im))


def _odd(f: Emitter, a: list[Pair], sign: float) -> list[Pair]:
    """The same of an odd number of them: what is even in the place, and what is odd."""
    r = len(a)
    half = range(1, (r + 1) // 2)
    sums = [plus(a[j], a[r - j]) for j in half]
    differences = [minus(a[j], a[r - j]) for j in half]
    found = [functools.reduce(plus, sums, a[0])] * r
    for k in half:
        angles = [2 * math.pi * (j * k % r) / r for j in half]
        even = _added(f, sums, map(math.cos, angles), a[0])
        across = turned(_added(f, differences, map(math.sin, angles), None), sign)
        found[k], found[r - k] = plus(even, across), minus(even, across)
    return found


def _added(f: Emitter, pairs: list[Pair], numbers: Iterable[float], total: Pair | None) -> Pair:
    """What pairs times numbers add to something."""
    for (re, im), number in zip(pairs, numbers, strict=True):
        by = f.constant(re.type, number)
        total = (re * by, im * by) if total is None else (
            f.fma(re, by, total[0]), f.fma(im, by, total[1])
        )  # fmt: skip
    assert total is not None
    return total


def times(f: Emitter, x: Pair, y: Pair) -> Pair:
    """A product of complex numbers."""
    return f.fma(x[0], y[0], -(x[1] * y[1])), f.fma(x[0], y[1], x[1] * y[0])


def plus(x: Pair, y: Pair) -> Pair:
    """A sum."""
    return x[0] + y[0], x[1] + y[1]


def minus(x: Pair, y: Pair) -> Pair:
    """A difference."""
    return x[0] - y[0], x[1] - y[1]


def turned(x: Pair, sign: float) -> Pair:
    """Times i, or -i."""
    return (-x[1], x[0]) if sign > 0 else (x[1], -x[0])
