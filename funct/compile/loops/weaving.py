"""Places that are woven: x0 y0 z0 x1 y1 z1 …, taken apart into vectors and put together again.

Vectors that lie side by side in memory are moved whole. An odd number of places has no factor in
common with a vector's lanes, so a place stands in other lanes of each of the vectors: they are
blended, and one permutation puts the lanes in order. An even number is halved before.

Where there are as many places as lanes, or more, a square of so many columns and places is turned
at a time (`_turned`): three shuffles for a vector of eight, each of which is an instruction.
"""

from __future__ import annotations

from collections.abc import Sequence

from funct.compile.loops.reductions import in_memory, read, write
from funct.kernels.llvm import Emitter, Value

__all__ = ["read_woven", "unwoven", "woven", "write_woven"]


def read_woven(
    f: Emitter, element: str, base: Value, places: int, column: Value | int, lanes: int, width: int,
    mask: Value | None = None,
) -> list[Value]:  # fmt: skip
    """For each place the elements of so many columns, moved in vectors of `width`."""
    found, memory = [], in_memory(element)
    moves = _moves(f, places, width, mask)
    for first in range(0, lanes, width):
        start = (column + first) * places
        apart: dict[int, Value] = {}
        for place, moved in moves:
            vectors = [read(f, memory, f.at(base, start + at, memory), width, m) for at, m in moved]
            each = unwoven(f, vectors) if places < width else _turned(f, vectors)
            apart |= {k: f.convert(x, element) for k, x in enumerate(each, place)}
        found.append([apart[k] for k in range(places)])
    return [f.joined(parts) for parts in zip(*found, strict=True)]


def write_woven(
    f: Emitter, values: Sequence[Value], base: Value, column: Value | int, width: int,
    mask: Value | None = None,
) -> None:  # fmt: skip
    """Put one vector of each place where they belong."""
    places, element = len(values), in_memory(values[0].type.element)
    moves = _moves(f, places, width, mask)
    for first in range(0, values[0].type.lanes, width):
        parts = [f.convert(f.piece(x, first, width), element) for x in values]
        start = (column + first) * places
        for place, moved in moves:
            each = woven(f, parts) if places < width else _turned(f, parts[place : place + width])
            for x, (at, m) in zip(each, moved, strict=True):
                write(f, x, f.at(base, start + at, element), m)


def _moves(
    f: Emitter, places: int, width: int, mask: Value | None
) -> list[tuple[int, list[tuple[int, Value | None]]]]:
    """Which place is the first of those that are moved together; where their vectors begin, and
    which lanes of each are of columns that are there.

    Few places are moved at once, in vectors side by side; of more, squares with a row of each
    column, the last of which may move some places once more.
    """
    if places < width:
        starts = {0: [k * width for k in range(places)]}
    else:
        firsts = [min(k, places - width) for k in range(0, places, width)]
        starts = {k: [column * places + k for column in range(width)] for k in firsts}

    def there(at: int) -> Value | None:
        chosen = [(at + i) // places for i in range(width)]
        return mask if mask is None else f.shuffle(mask, None, chosen)

    return [(k, [(at, there(at)) for at in begins]) for k, begins in starts.items()]


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


def _turned(f: Emitter, rows: Sequence[Value]) -> list[Value]:
    """The columns of a square, first within the 16 bytes that instructions look at together."""
    lanes = len(rows)
    group = min(lanes, 16 // rows[0].type.bytes)
    parts = [_rotated(f, rows[q : q + group], 1, group) for q in range(0, lanes, group)]
    columns = [_rotated(f, same, group, lanes) for same in zip(*parts, strict=True)]
    return [x for same in zip(*columns, strict=True) for x in same]


def _rotated(f: Emitter, rows: Sequence[Value], unit: int, group: int) -> list[Value]:
    """Squares of so many lanes that stand side by side, each turned: a unit of lanes is an element.

    Rows that are half of them apart are woven, which moves one bit of a row's number to that of the
    column; as often as it has bits.
    """
    lanes, half = rows[0].type.lanes, group // 2
    ends = [
        [
            start + end + k + j + side
            for start in range(0, lanes, group)
            for k in range(0, half, unit)
            for side in (0, lanes)
            for j in range(unit)
        ]
        for end in (0, half)
    ]
    found = list(rows)
    for _ in range(len(rows).bit_length() - 1):
        n = len(found) // 2
        pairs = zip(found[:n], found[n:], strict=True)
        found = [f.shuffle(x, y, which) for x, y in pairs for which in ends]
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
