"""The order of a short row: how many elements come before each one is where it goes.

Every element is compared with all others, in vectors and with no branch, which for few is less than
what any other sort does first.
"""

from __future__ import annotations

from funct.kernels.llvm import Emitter, Value, typed
from funct.kernels.llvm.arithmetic import Comparison

__all__ = ["DESCENDING", "longest", "ordered"]

DESCENDING = " descending"  # behind a name


def longest(name: str, element: str) -> int:
    """Elements of the longest row for which this is the quickest way."""
    if name.startswith("arg") or typed(element).bytes == 1:
        return 31
    return 16 if element[0] == "f" else 12  # NumPy sorts integers in vectors


def ordered(f: Emitter, name: str, x: Value, y: Value, element: str, n: int) -> None:
    """Write into y the n elements of x in order, equal ones as they stand, or their indices.

    name: sort or argsort, maybe descending. NaN is the largest, and -0 equal to 0.
    """
    starts, parts = _parts(f, x, element, n)
    keys = [_key(f, v) for v in parts]
    word, lanes = keys[0].type.element, keys[0].type.lanes
    holders = [max(k for k, start in enumerate(starts) if start <= j) for j in range(n)]
    places = f.allocate(typed(word), n + lanes)
    falls = name.endswith(DESCENDING)
    below: Comparison = "gt" if falls else "lt"
    upto: Comparison = "ge" if falls else "le"
    for start, key in zip(starts, keys, strict=True):
        rank = f.constant(typed(word, lanes), 0)
        for j, k in enumerate(holders):
            other = f.shuffle(keys[k], None, [j - starts[k]] * lanes)
            if j < start:
                before = f.compare(upto, other, key)
            else:
                before = f.compare(below, other, key)
                if j < start + lanes - 1:
                    later = f.vector(
                        key.type.mask, [int(i > j) for i in range(start, start + lanes)]
                    )
                    before = before | (f.compare(upto, other, key) & later)
            rank = rank + f.convert(before, word)
        f.store(rank, f.at(places, start, word))
    for i in range(n):
        place = f.convert(f.load(typed(word), f.at(places, i, word)), "i64")
        if name.startswith("arg"):
            f.store(f.constant(typed("i64"), i), f.at(y, place, "i64"))
        else:
            f.store(f.load(typed(element), f.at(x, i, element)), f.at(y, place, element))


def _parts(f: Emitter, x: Value, element: str, n: int) -> tuple[list[int], list[Value]]:
    """Vectors that hold a row, and where they begin: one with a mask, where the processor has
    masks, or else whole ones, the last of which ends the row.
    """
    one = typed(element)
    widest = f.module.target.vector_bytes // one.bytes
    lanes = 1 << (n - 1).bit_length()
    if n < lanes <= widest and one.bytes >= 4 and f.module.target.has("avx512f"):
        mask = f.vector(one.of(lanes).mask, [int(i < n) for i in range(lanes)])
        return [0], [f.load(one.of(lanes), x, mask)]
    lanes = min(widest, 1 << (n.bit_length() - 1))
    starts = [min(i, n - lanes) for i in range(0, n, lanes)]
    return starts, [f.load(one.of(lanes), f.at(x, i, element)) for i in starts]


def _key(f: Emitter, v: Value) -> Value:
    """Integers that are ordered as v is."""
    if not v.type.is_float:
        return v
    kind = v.type.integer
    raw = f.bitcast(v + 0, kind)
    most = (1 << (kind.bits - 1)) - 1
    key = f.select(raw < 0, raw ^ most, raw)
    return f.select(f.isnan(v), f.constant(kind, most), key)
