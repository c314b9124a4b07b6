"""Passes of prime radices that have no text of their own: by the definition, in loops.

Numbers at j and r - j of a radix r become their sum and their difference. Those, times cosines and
sines, add up to what is even and what is odd in the place: as many products as the radix for each
number, in all lanes at once, from roots that stay in the first cache. Up to a few hundred this is
less than what longer transforms by other radices take (L. Bluestein, "A linear filtering approach
to the computation of discrete Fourier transform", 1970).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from funct.device import host
from funct.kernels.cpu.fourier.radices import Pair, minus, plus, roots, times, turned
from funct.kernels.llvm import I64, Emitter, Value, typed

__all__ = ["PRIMES", "Prime", "by_definition", "roots_of_prime", "room"]

_LARGEST = 256
PRIMES = tuple(
    [n for n in range(11, _LARGEST) if all(n % k for k in range(2, int(n**0.5) + 1))]
)


def room(r: int) -> int:
    """Numbers that a radix's roots take, in whole lines of the caches."""
    return -(-2 * r // 16) * 16


def roots_of_prime(r: int) -> NDArray[np.float64]:
    """All roots of one, and what fills the room."""
    parts = np.stack(roots(np.arange(r), r), -1).reshape(-1)
    return np.pad(parts, (0, room(r) - parts.size))


class Prime(Struct, frozen=True, eq=False):
    """A radix, where its roots are, and the sign of exponents."""

    radix: Value
    roots: Value
    element: str
    sign: float


def by_definition(
    f: Emitter, of: Prime, load: Callable[[Value], Pair], keep: Callable[[Value, Pair], None],
    put: Callable[[Value, Pair], None], turn: Callable[[Value], Pair],
) -> None:  # fmt: skip
    """A transform of as many numbers as the radix says, turned. load, keep: what stands at a place,
    which sums and differences take; put: what comes out.
    """
    r, zero = of.radix, f.constant(I64, 0)
    half, first = f.div(r, f.constant(I64, 2)), load(zero)
    lanes, few = first[0].type.lanes, 4 if host().vector_bytes >= 64 else 2

    def apart(j: Value, total: list[Value]) -> list[Value]:
        x, y = load(j), load(r - j)
        both = plus(x, y)
        keep(j, both)
        keep(r - j, minus(x, y))
        return list(plus((total[0], total[1]), both))

    re, im = f.loop(1, half + 1, 1, apart, list(first))
    put(zero, (re, im))

    def some(k: Value, _: list[Value]) -> list[Value]:
        """What is at a few places from k on, and across from them."""
        k = f.intrinsic("smin", k, half - (few - 1))
        places = [k + i for i in range(few)]

        def one(j: Value, carried: list[Value]) -> list[Value]:
            at, sums = carried[:few], carried[few:]
            both, difference = load(j), load(r - j)
            found = []
            for i, place in enumerate(at):
                root = f.at(of.roots, place * 2, of.element)
                cos, sin = (
                    f.splat(f.load(typed(of.element), f.at(root, part, of.element)), lanes)
                    for part in (0, 1)
                )
                pairs = zip((*both, *difference), (cos, cos, sin, sin), sums[4 * i : 4 * i + 4])
                found += [f.fma(x, by, total) for x, by, total in pairs]
            after = [x + n for x, n in zip(at, places, strict=True)]
            return [f.select(x >= r, x - r, x) for x in after] + found

        none = f.constant(first[0].type, 0.0)
        carried = f.loop(1, half + 1, 1, one, places + [*first, none, none] * few)
        for i, place in enumerate(places):
            a, b, c, d = carried[few + 4 * i : few + 4 * i + 4]
            across = turned((c, d), of.sign)
            put(place, times(f, plus((a, b), across), turn(place)))
            put(r - place, times(f, minus((a, b), across), turn(r - place)))
        return []

    f.loop(1, half + 1, few, some)
