"""Vectors of any number of elements, in the lanes that processors have.

Beyond one vector of the processor's LLVM takes lengths that are no power of two apart, number by
number, wherever they go to memory, through a shuffle or from one block of code to another: a body
of a few lines was a hundred kilobytes of code. So such a vector has the next power of two of lanes.
Those behind the elements hold elements again, the same ones in all vectors of that length: no op
meets there what it does not meet elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from funct.compile.loops.reductions import in_memory, write
from funct.compile.loops.weaving import unwoven
from funct.kernels.llvm import Emitter, Value, typed

__all__ = ["filled", "get", "lanes_for", "once", "put", "turned_around"]


def lanes_for(f: Emitter, count: int) -> int:
    """The lanes of a vector of so many elements, whatever they are: masks go with numbers."""
    return count if count <= f.module.target.vector_bytes // 8 else 1 << (count - 1).bit_length()


def filled(f: Emitter, which: Sequence[int]) -> list[int]:
    """Lanes that a shuffle takes, and those behind them."""
    n = len(which)
    last = n & -n  # the smallest of the powers of two that n is made of
    return [*which, *[which[n - last + k % last] for k in range(lanes_for(f, n) - n)]]


def once(f: Emitter, x: Value, which: Sequence[int]) -> tuple[Value, Sequence[int]]:
    """Few lanes that are each taken several times, one after the other, and which of them are
    meant: where they come from several registers they are brought together once.
    """
    chosen = sorted(set(which))
    register = f.module.target.vector_bytes // x.type.bytes
    if not len(chosen) <= register < min(len(which), x.type.lanes):
        return x, which
    at = {k: n for n, k in enumerate(chosen)}
    return f.shuffle(x, None, filled(f, chosen)), [at[k] for k in which]


def turned_around(f: Emitter, x: Value, which: Sequence[int]) -> Value | None:
    """The lanes of a matrix with its columns one after the other, each a register or more, by
    shuffles of two vectors; None where these lanes are something else.
    """
    places = max(1, which[1] - which[0])
    rows = len(which) // places
    whole = len(which) == x.type.lanes == places * rows and not (places & places - 1)
    if not whole or places == 1 or rows * x.type.bytes < f.module.target.vector_bytes:
        return None
    if list(which) != [n % rows * places + n // rows for n in range(len(which))]:
        return None
    return f.joined(unwoven(f, [f.piece(x, k * rows, rows) for k in range(places)]))


def get(f: Emitter, element: str, place: Value, count: int) -> Value:
    """So many elements from the place on."""
    memory = in_memory(element)
    if count == lanes_for(f, count):
        return f.convert(f.load(typed(memory, count), place), element)
    x: Value | None = None
    for start, n in reversed([*_pieces(count)]):
        piece = f.load(typed(memory, n), f.at(place, start, memory))
        while x is not None and x.type.lanes < n:
            x = _both(f, x, x)
        x = piece if x is None else _both(f, piece, x)
    assert x is not None, "a vector has elements"
    while x.type.lanes < lanes_for(f, count):
        x = _both(f, x, x)
    return f.convert(x, element)


def put(f: Emitter, x: Value, count: int, place: Value) -> None:
    """Write the elements, so many, from the place on."""
    if x.type.lanes == count:
        write(f, x, place, None)
        return
    if x.type.element == "i1":
        x = f.convert(x, in_memory("i1"))
    for start, n in _pieces(count):
        f.store(f.piece(x, start, n), f.at(place, start, x.type.element))


def _pieces(count: int) -> Iterator[tuple[int, int]]:
    """Where pieces begin and how long they are: powers of two, the longest first."""
    start = 0
    for k in reversed(range(count.bit_length())):
        if count >> k & 1:
            yield start, 1 << k
            start += 1 << k


def _both(f: Emitter, x: Value, y: Value) -> Value:
    """Two vectors of one length, one after the other."""
    if x.type.lanes == 1:
        return f.insert(f.splat(x, 2), 1, y)
    return f.shuffle(x, y, range(2 * x.type.lanes))
