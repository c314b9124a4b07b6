"""What NumPy warns of where integers are divided: by 0, and the least number by -1; and what it
refuses, negative powers of integers.

Loops go on, as NumPy's do, and note it in the workspace, a byte for each of CASES. Once the program
is over `report` divides such numbers, so that NumPy does what `np.errstate` says: it warns, raises,
calls somebody or does nothing. A negative power is told as what must raise, and is raised by who
does all again.

Floats are not looked at: see docs/decisions/0018.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np

from funct.compile.loops.scalars import HELD
from funct.graph import Node, Var
from funct.kernels.llvm import I64, Emitter, Value, typed

__all__ = [
    "CASES", "NOTED", "STOPPED", "WRONG", "cases", "may_warn", "note", "refuse", "refuses",
    "report",
]  # fmt: skip

STOPPED, WRONG = 1, 2  # in the workspace's first word: somebody interrupts; an op must raise
NOTED = 1  # the word of the workspace
CASES: tuple[tuple[np.ufunc, int], ...] = (
    (np.floor_divide, 0), (np.floor_divide, -1), (np.remainder, 0),
)  # fmt: skip
"""Functions and divisors. By -1 only the least number has no quotient."""

_LEAST = np.asarray([-128], np.int8)
_MARK = typed("u8")
_SIGNED = frozenset({"i8", "i16", "i32", "i64"})
_UNSIGNED = frozenset({"u8", "u16", "u32", "u64"})


def cases(name: str, element: str, divisor: complex | None) -> tuple[int, ...]:
    """Which of CASES an op on such elements may be; divisor: None where it is no known number."""
    if element not in _SIGNED | _UNSIGNED:
        return ()
    return tuple(
        k
        for k, (function, by) in enumerate(CASES)
        if name == function.__name__ and divisor in (None, by) and (by >= 0 or element in _SIGNED)
    )


def refuses(name: str, element: str, exponent: complex | None) -> bool:
    """Whether NumPy may refuse an op on such elements; exponent: as the divisor of `cases`."""
    return name == "pow" and element in _SIGNED and exponent is None


def may_warn(e: Node) -> bool:
    """Whether NumPy warns of the node for some of its operands' values, or refuses some, and so do
    loops.
    """
    if len(e.operands) != 2 or len(e.results) != 1:
        return False
    second, element = e.operands[1], HELD.get(e.results[0].dtype, "")
    number = None if isinstance(second, Var) else second
    return bool(cases(e.name, element, number)) or refuses(e.name, element, number)


def note(f: Emitter, name: str, given: Sequence[Value], space: Value, mask: Value | None) -> None:
    """Print what notes that an op of these is one of CASES; mask: of the lanes that count."""
    if len(given) != 2:
        return
    x, y = given
    found = cases(name, x.type.element, y.whole)
    if refuses(name, x.type.element, y.whole):
        refuse(f, y < 0 if mask is None else (y < 0) & mask, space)
    if not found:
        return

    def lanes(k: int) -> Value:
        by = CASES[k][1]
        met = f.eq(y, by)
        if by < 0:
            met = met & f.eq(x, -1 << x.type.bits - 1)
        return met if mask is None else met & mask

    where = {k: lanes(k) for k in found}

    def mark(place: Value) -> None:
        f.store(f.constant(_MARK, 1), place)

    def tell() -> list[Value]:
        for k in found:
            place = f.at(space, 8 * NOTED + k, "i8")
            # threads that write to one line of memory wait for each other
            new = f.any(where[k]) & f.eq(f.load(_MARK, place), 0)
            f.when(new, functools.partial(mark, place))
        return []

    f.branch(f.any(functools.reduce(f.bitor, where.values())), tell, list, rare=True)


def refuse(f: Emitter, wrong: Value, space: Value) -> None:
    """Say in the workspace that an op must raise, where a lane is wrong."""

    def tell() -> list[Value]:
        f.store(f.constant(I64, WRONG), space)
        return []

    f.branch(f.any(wrong), tell, list, rare=True)


def report(*met: bool) -> None:
    """Let NumPy say what it says of those of CASES that were met: once for each function."""
    divisors: dict[np.ufunc, list[int]] = {}
    for (function, by), is_met in zip(CASES, met, strict=True):
        if is_met:
            divisors.setdefault(function, []).append(by)
    for function, several in divisors.items():
        function(_LEAST, np.asarray(several, np.int8))
