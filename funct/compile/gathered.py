"""Which steps look elements up, or change some, at indices that only the running program knows."""

from __future__ import annotations

import math
from typing import Any

from funct.compile.loops.scalars import ELEMENTS, HELD
from funct.compile.loops.updates import UPDATES
from funct.graph import Node, Var

__all__ = [
    "INDEX", "changes_few", "is_gather", "is_lookup", "is_moving", "is_update", "lengths",
]  # fmt: skip

_LARGE, _FEW = 1 << 14, 16  # elements; and one of how many is changed at most
_ALONE = 1 << 17  # elements that one thread moves one by one
_LEAST_ROW = 8  # elements
INDEX = {"take": 1, "put": 1, "wrap_index": 0} | dict.fromkeys(UPDATES, 2)  # which operand it is


def is_gather(step: Any) -> bool:
    """Whether a step is such an op, of elements that loops know."""
    if not isinstance(step, Node) or step.name not in INDEX:
        return False
    held = [v for v in (*step.operands, *step.results) if isinstance(v, Var)]
    known = all(0 not in v.shape and v.dtype in ELEMENTS for v in held)
    if len(held) <= len(step.operands) or not known:
        return False
    values = [v for k, v in enumerate(held) if k != INDEX[step.name]]
    return held[INDEX[step.name]].dtype.kind in "iu" and len({v.dtype for v in values}) == 1


def is_moving(step: Any) -> bool:
    """Whether a step takes rows, or adds some up, as quickly in a program as by a call of its own:
    long ones, or elements that are so few that no threads are of use.
    """
    if not isinstance(step, Node) or step.name not in ("take", "put") or not is_gather(step):
        return False
    along = step.results[0] if step.name == "put" else step.operands[0]
    behind = math.prod(along.shape[step.params[0] + 1 :])  # type: ignore[union-attr]
    few = behind == 1 and max([math.prod(v.shape) for v in step.reads]) <= _ALONE
    return few or behind >= _LEAST_ROW


def is_lookup(step: Any) -> bool:
    """Whether a step looks elements up in a table, (table, indices), as loops can."""
    if not isinstance(step, Node) or step.name not in ("take", "take_along_axis"):
        return False
    x, i = step.operands
    if not isinstance(x, Var) or not isinstance(i, Var) or 0 in x.shape or 0 in i.shape:
        return False
    return x.dtype in HELD and i.dtype in ELEMENTS and i.dtype.kind in "iu"


def lengths(lookup: Node) -> tuple[int, int, int]:
    """Elements of the result before what indices stand for, of that, and behind it."""
    x, i = (v.shape for v in lookup.operands)  # type: ignore[union-attr]
    (axis,) = lookup.params
    before, behind = math.prod(x[:axis]), math.prod(x[axis + 1 :])
    return before, i[axis] if lookup.name == "take_along_axis" else math.prod(i), behind


def changes_few(step: Any) -> bool:
    """Whether a step changes few elements of a large array: it is a copy of what may be given away,
    or is the loop's own.
    """
    if not isinstance(step, Node) or step.name not in UPDATES or not is_gather(step):
        return False
    x, v = (math.prod(o.shape) for o in step.operands[:2])  # type: ignore[union-attr]
    return x >= _LARGE and v * _FEW <= x


def is_update(step: Any) -> bool:
    """Whether a step is such a change, or finds the places of one."""
    if changes_few(step):
        return True
    if not isinstance(step, Node) or step.name != "take" or not is_gather(step):
        return False
    out = step.results[0]
    return out.dtype.kind in "iu" and math.prod(out.shape) <= _LARGE // _FEW
