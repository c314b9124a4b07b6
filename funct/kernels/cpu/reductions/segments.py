"""A row, or a segment of one, in vectors: eight of them by turns, where there are so many; of long
ones four from each half, as memory gives more where it is asked at two places.

What has no order is reduced so, and products of rows of more than FACTORS elements, whose order is
then one of our own, which depends on their number alone.
"""

from __future__ import annotations

import functools
from typing import Any

from funct.kernels.llvm import I64, Emitter, Value, typed

__all__ = ["ABREAST", "COMBINED", "FACTORS", "by_halves", "carried", "segment"]

ABREAST = 8  # vectors that are gathered by turns
_LONG = 1 << 16  # bytes of what is long
FACTORS = 32  # elements up to which products are made one by one

COMBINED: dict[str, Any] = {
    "sum": lambda f, a, b: a + b,
    "prod": lambda f, a, b: a * b,
    "max": lambda f, a, b: f.maximum(a, b),
    "min": lambda f, a, b: f.minimum(a, b),
    "any": lambda f, a, b: a | b,
    "all": lambda f, a, b: a & b,
}


def carried(name: str, element: str) -> str:
    """In what elements are gathered: halves, sums and products are wide, truth is bytes."""
    if element in ("f16", "bf16"):
        return "f32"
    if name in ("any", "all"):
        return typed(element).unsigned.element
    return element[0] + "64" if name in ("sum", "prod") and element[0] != "f" else element


def by_halves(
    f: Emitter, full: Value, once: int, bytes: int
) -> tuple[Value, Value, Value]:  # fmt: skip
    """How far behind the first half of `once` elements the others of a step are, how long a step
    is, and where the loop ends: over so many elements, a multiple of `once`.
    """
    is_long = full >= _LONG // bytes
    here, half = once // 2, full >> 1
    return (
        f.select(is_long, half, f.constant(I64, here)),
        f.select(is_long, f.constant(I64, here), f.constant(I64, once)),
        f.select(is_long, half, full),
    )


def segment(f: Emitter, name: str, element: str, x: Value, count: Value | int) -> list[Value]:
    """Of a vector's elements at least. All is written out where their number is known."""
    kind = carried(name, element)
    lanes = f.module.target.vector_bytes // typed(kind).bytes
    combine = functools.partial(COMBINED[name], f)

    def walk(start: Any, stop: Any, step: Any, body: Any, held: list[Value]) -> list[Value]:
        if not isinstance(count, int):
            return f.loop(start, stop, step, body, held, maybe_empty=True)
        for i in range(start, stop, step):
            held = body(f.constant(I64, i), held)
        return held

    def read(i: Value | int, lanes: int = lanes) -> Value:
        return f.convert(f.load(typed(element, lanes), f.at(x, i, element)), kind)

    def several(i: Value, held: list[Value]) -> list[Value]:
        new = [read(at + k * lanes) for at in (i, i + apart) for k in range(ABREAST // 2)]
        return [combine(v, w) for v, w in zip(held, new, strict=True)]

    def one(i: Value, held: list[Value]) -> list[Value]:
        return [combine(held[0], read(i)), *held[1:]]

    def single(i: Value, held: list[Value]) -> list[Value]:
        return [combine(held[0], read(i, 1))]

    factors = name == "prod"
    begin = f.constant(typed(kind, lanes), 1) if factors else read(0)
    full, whole = count & -(ABREAST * lanes), count & -lanes
    once = ABREAST * lanes
    turns: tuple[Value | int, Value | int, Value | int] = once // 2, once, full
    if not isinstance(full, int):
        turns = by_halves(f, full, once, typed(element).bytes)
    apart, step, stop = turns

    def by_turns() -> list[Value]:
        held = walk(0, stop, step, several, [begin] * ABREAST)
        held = walk(full, whole, lanes, one, held)
        while len(held) > 1:
            held = [combine(a, b) for a, b in zip(held[::2], held[1::2], strict=True)]
        return held

    def few() -> list[Value]:
        return walk(0, whole, lanes, one, [begin])

    if isinstance(full, int):
        (held,) = by_turns() if full else few()
    else:
        (held,) = f.branch(f.ne(full, 0), by_turns, few)
    if not factors:
        held = combine(held, read(count - lanes))  # some for the second time
    total = f.reduce(held, combine)
    return walk(whole, count, 1, single, [total]) if factors else [total]
