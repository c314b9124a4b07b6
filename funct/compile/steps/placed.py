"""Parts of a joined array that loops compute where they belong, instead of beside it.

Where all that reads what loops make is a `concat`, it is a view of the concat's result from the
start, and nothing is copied. Not where rows of the loops would become shorter than a vector: a
column that is put behind a matrix is copied.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import attrs

from funct.compile.fusion.domain import row_length
from funct.compile.fusion.fuse import Fused
from funct.compile.fusion.groups import Group, is_weave, reads, reduction
from funct.compile.joins import is_concat
from funct.compile.loops.views import View, collapse, reshaped
from funct.compile.steps.moves import is_move, parts
from funct.graph import Node, Var

__all__ = ["placed"]

_LEAST_COLUMNS = 16  # of a row of the loops: of fewer, a copy costs less


def placed(fused: Fused, is_lowered: Callable[[Any], bool]) -> Fused:
    """The same steps, where parts of joined arrays stand in them if that costs nothing.

    is_lowered: whether a step is of a program; both must be of one, which makes room for results.
    """
    makers: dict[Var, Group] = {}
    readers = Counter([fused.views[v].root for s in fused.steps for v in reads(s)])
    readers.update([fused.views[v].root for v in fused.graph.outputs])
    for s in fused.steps:
        if not is_lowered(s):
            makers = {}
        elif isinstance(s, Group):
            makers |= {e.results[0]: s for e in s.nodes if _is_stored(e)}
        elif is_concat(s) and is_move(s):  # type: ignore[arg-type]
            for operand, part in parts(s):  # type: ignore[arg-type]
                root = fused.views[operand].root
                if root in makers and readers[root] == 1:
                    fused = _placed(fused, makers[root], operand, part) or fused
    return fused


def _is_stored(e: Node) -> bool:
    """Whether the result is written element by element, if it is written."""
    return reduction(e) in (None, "row") and not is_weave(e)


def _placed(fused: Fused, group: Group, operand: Var, part: View) -> Fused | None:
    """The steps with the operand as a part of the result, which the group fills."""
    seen = fused.views[operand]
    there = reshaped(part, seen.root.shape)
    if there is None or not seen.is_dense or seen.size != there.size or not part.size:
        return None
    runs = collapse(there.shape, there.strides)
    if group.is_full(seen.root):
        length, stride = runs[-1] if runs else (1, 1)
        if stride != 1 or length % (group.columns or 1):
            return None
    found = attrs.evolve(fused, views={**fused.views, operand: part, seen.root: there})
    before, after = row_length(group, fused), row_length(group, found)
    return found if after >= min(before, _LEAST_COLUMNS) else None
