"""Places that are woven: x0 y0 z0 x1 y1 z1 …, taken apart into vectors and put together again.

Vectors that lie side by side in memory are moved whole. An odd number of places has no factor in
common with a vector's lanes, so a place stands in other lanes of each of the vectors: they are
blended, and one permutation puts the lanes in order. An even number is halved before.
"""

from __future__ import annotations

from collections.abc import Sequence

from funct.compile.loops.reductions import in_memory, read, write
from funct.kernels.llvm import Emitter, Value

__all__ = ["read_woven", "unwoven", "woven", "write_woven"]


def read_woven(
    f: Emitter, element: str, base: Value, places: int, column: Value, lanes: int, width: int,
    mask: Value | None,
) -> list[Value]:  # fmt: skip
    """For each place the elements of so many columns, moved in vectors of `width`."""
    found, masks = [], _masks(f, places, width, mask)
    for first in range(0, lanes, width):
        start = (column + first) * places
        vectors = [
            read(f, element, f.at(base, start + k * width, in_memory(element)), width, m)
            for k, m in enumerate(masks)
        ]
        found.append(unwoven(f, vectors))
    return [f.joined(parts) for parts in zip(*found, strict=True)]


def write_woven(
    f: Emitter, values: Sequence[Value], base: Value, column: Value, width: int, mask: Value | None
) -> None:
    """Put one vector of each place where they belong."""
    places, element = len(values), in_memory(values[0].type.element)
    masks = _masks(f, places, width, mask)
    for first in range(0, values[0].type.lanes, width):
        here = range(first, first + width)
        parts = [x if mask is not None else f.shuffle(x, None, here) for x in values]
        start = (column + first) * places
        for k, (x, m) in enumerate(zip(woven(f, parts), masks, strict=True)):
            write(f, x, f.at(base, start + k * width, element), m)


def _masks(f: Emitter, places: int, lanes: int, mask: Value | None) -> list[Value | None]:
    """Which lanes of each vector are of columns that are there."""
    if mask is None:
        return [None] * places
    repeated = [[(k * lanes + i) // places for i in range(lanes)] for k in range(places)]
    return [f.shuffle(mask, None, chosen) for chosen in repeated]


def unwoven(f: Emitter, vectors: Sequence[Value]) -> list[Value]:
    """For each place the vector of its elements; as many vectors as places."""
    places, lanes = len(vectors), vectors[0].type.lanes
    if places == 1 or lanes == 1:
        return list(vectors)
    if places % 2:
        return [_place(f, vectors, k) for k in range(places)]
    pairs = list(zip(vectors[::2], vectors[1::2], strict=True))
    even, odd = (
        unwoven(f, [f.shuffle(x, y, range(first, 2 * lanes, 2)) for x, y in pairs])
        for first in (0, 1)
    )
    return [x for both in zip(even, odd, strict=True) for x in both]


def woven(f: Emitter, places: Sequence[Value]) -> list[Value]:
    """The vectors that lie side by side, of a vector for each place."""
    count, lanes = len(places), places[0].type.lanes
    if count == 1 or lanes == 1:
        return list(places)
    if count % 2:
        turned = [f.shuffle(x, None, _lanes_of(k, count, lanes)) for k, x in enumerate(places)]
        return [
            _blended(f, turned, [(v * lanes + i) % count for i in range(lanes)])
            for v in range(count)
        ]
    found = []
    for x, y in zip(woven(f, places[::2]), woven(f, places[1::2]), strict=True):
        both = [k for i in range(lanes) for k in (i, lanes + i)]
        found += [f.shuffle(x, y, both[:lanes]), f.shuffle(x, y, both[lanes:])]
    return found


def _place(f: Emitter, vectors: Sequence[Value], k: int) -> Value:
    """The elements of one of an odd number of places."""
    count, lanes = len(vectors), vectors[0].type.lanes
    at = {(i * count + k) % lanes: (i * count + k) // lanes for i in range(lanes)}
    blended = _blended(f, vectors, [at[i] for i in range(lanes)])
    return f.shuffle(blended, None, [(i * count + k) % lanes for i in range(lanes)])


def _lanes_of(k: int, count: int, lanes: int) -> list[int]:
    """For each lane of the vectors side by side, which element of the place may stand there."""
    at = {(i * count + k) % lanes: i for i in range(lanes)}
    return [at[i] for i in range(lanes)]


def _blended(f: Emitter, vectors: Sequence[Value], chosen: Sequence[int]) -> Value:
    """Each lane of the vector that is chosen for it."""
    x, lanes = vectors[chosen[0]], len(chosen)
    for v in dict.fromkeys(chosen[1:]):
        if v != chosen[0]:
            x = f.shuffle(x, vectors[v], [lanes + i if c == v else i for i, c in enumerate(chosen)])
    return x
