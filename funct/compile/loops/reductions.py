"""Elements in memory, and how a reduction starts, goes on and is put together from parts."""

from __future__ import annotations

import math

from funct.kernels.llvm import I64, PTR, Emitter, Module, Value, typed

__all__ = ["combine", "in_memory", "neutral", "print_combine", "read", "write"]


def in_memory(element: str) -> str:
    """What an element is in memory: a mask is a byte there."""
    return "u8" if element == "i1" else element


def read(f: Emitter, element: str, address: Value, lanes: int, mask: Value | None) -> Value:
    """So many elements from the address on; zeros where the mask is off."""
    x = f.load(typed(in_memory(element), lanes), address, mask)
    return f.convert(x, "i1") if element == "i1" else x


def write(
    f: Emitter, x: Value, address: Value, mask: Value | None, *, streaming: bool = False
) -> None:
    """Put the lanes where the mask is on from the address on (streaming: past the caches)."""
    if x.type.element == "i1":
        x = f.convert(x, "u8")
    f.store(x, address, mask, streaming=streaming)


def neutral(how: str, element: str) -> float | int:
    """What a reduction starts from."""
    if how in ("sum", "any"):
        return 0
    if how in ("prod", "all"):
        return 1
    least = how == "max"  # what every number is at least
    if element in ("f32", "f64"):
        return -math.inf if least else math.inf
    if element == "i1":
        return 0 if least else 1
    bits = int(element[1:])
    low, high = (
        (-(1 << bits - 1), (1 << bits - 1) - 1) if element[0] == "i" else (0, (1 << bits) - 1)
    )
    return low if least else high


def combine(f: Emitter, how: str, x: Value, y: Value) -> Value:
    """Two running results in one."""
    if x.type.element == "i1":
        return x | y if how in ("any", "max", "sum") else x & y
    match how:
        case "sum":
            return x + y
        case "prod":
            return x * y
        case "max":
            return f.maximum(x, y)
    return f.minimum(x, y)


def print_combine(module: Module, name: str, how: str, element: str) -> None:
    """Add the kernel that combines partial results, column by column, in the order of tasks.

    Its frame: partial results, result, how many of them, columns, columns of one task.
    """
    f = module.function(name, [("frame", PTR), ("task", I64)])
    frame, task = f.arguments
    parts, result = f.pointers(frame, 0, 2)
    count, columns, block = f.words(frame, 2, 3)
    start = task * block
    stop = f.intrinsic("smin", start + block, columns)
    memory = in_memory(element)
    wide = "f64" if element == "f32" and how == "sum" else element  # few, and added exactly enough

    lanes = module.target.vector_bytes // 4

    def some(j: Value, _: list[Value]) -> list[Value]:
        mask = f.first_lanes(lanes, stop - j)

        def partial(i: Value | int) -> Value:
            address = f.at(parts, i * columns + j, memory)
            return f.convert(read(f, element, address, lanes, mask), wide)

        def part(i: Value, held: list[Value]) -> list[Value]:
            return [combine(f, how, held[0], partial(i))]

        (total,) = f.loop(1, count, 1, part, [partial(0)], maybe_empty=True)
        write(f, f.convert(total, element), f.at(result, j, memory), mask)
        return []

    f.loop(start, stop, lanes, some)
    f.ret()
