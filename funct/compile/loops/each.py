"""Elements that are each there for a few columns: x0 x0 x0 x1 x1 x1 …, as images enlarged are."""

from __future__ import annotations

from funct.compile.loops.reductions import in_memory, read
from funct.kernels.llvm import Emitter, Value, typed

__all__ = ["read_each"]

_SHIFT = 16  # of the quotients of small numbers


def read_each(
    f: Emitter, element: str, base: Value, each: int, column: Value, lanes: int, mask: Value | None
) -> Value:
    """The elements of so many columns from one on that is a multiple of the lanes."""
    memory = in_memory(element)
    if each & (each - 1):
        return _gathered(f, element, base, each, column, lanes, mask)
    address = f.at(base, column >> (each.bit_length() - 1), memory)
    if each >= lanes:
        return f.splat(read(f, element, address, 1, None), lanes)  # the first column is there
    some = None if mask is None else f.shuffle(mask, None, range(0, lanes, each))
    x = read(f, element, address, lanes // each, some)
    return f.shuffle(x, None, [k // each for k in range(lanes)])


def _gathered(
    f: Emitter, element: str, base: Value, each: int, column: Value, lanes: int, mask: Value | None
) -> Value:
    """The same where columns of one element may begin in any lane."""
    memory = in_memory(element)
    first = f.div(column, each)
    wide = typed("i64", lanes)
    past = f.lanes(wide) + f.splat(column - first * each, lanes)
    part = (1 << _SHIFT) // each + 1  # exact for what is below 2^16 / each
    index = past * f.constant(wide, part) >> _SHIFT
    if mask is not None:
        index = f.select(mask, index, f.constant(wide, 0))
    x = f.gather(typed(memory, lanes), f.at(f.at(base, first, memory), index, memory))
    return f.convert(x, "i1") if element == "i1" else x
