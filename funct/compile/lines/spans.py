"""Between which whole numbers a line is: an index that cannot be outside needs no look at it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from funct.compile.lines.lines import Given, Line, Pick, Taken
from funct.compile.loops.kernel import Constant, Op

if TYPE_CHECKING:
    from funct.compile.lines.vectors import Vectors

__all__ = ["span"]

_FAR = 1 << 62  # no sum or product of such numbers is known to be one


def span(of: Vectors, n: int) -> tuple[int, int] | None:
    """The least and the greatest number that may be in the line, if they are known."""
    line = of.lines[n]
    match line:
        case Constant():
            return (line.number, line.number) if isinstance(line.number, int) else None
        case Taken() if line.place is None and line.length:
            return 0, line.length - 1
        case Pick():
            return span(of, line.operand)
        case Given() if line.kind == "outer" and line.lanes and of.around is not None:
            return span(of.around, line.index)
        case Op() if line.element == "i64" and all(_is_index(of.lines[o]) for o in line.operands):
            return _computed(of, line)
    return None


def _is_index(line: Line) -> bool:
    return line.element == "i64"


def _computed(of: Vectors, line: Op) -> tuple[int, int] | None:
    found = []
    for o in line.operands:
        ends = span(of, o)
        if ends is None:
            return None
        found.append(ends)
    match line.name, found:
        case "add", [(a, b), (c, d)]:
            ends = a + c, b + d
        case "subtract", [(a, b), (c, d)]:
            ends = a - d, b - c
        case "multiply", [(a, b), (c, d)]:
            products = [x * y for x in (a, b) for y in (c, d)]
            ends = min(products), max(products)
        case _:
            return None
    return ends if -_FAR < ends[0] <= ends[1] < _FAR else None
