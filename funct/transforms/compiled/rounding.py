"""How far rounding alone carries results, where loops are long or digits cancel.

What comes out of a graph is compared with what comes out when each function, sum and product in it,
in the bodies of its loops too, is off by its last bit: two programs that round in their own ways
differ by about as much.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from funct.array import finfo
from funct.compile.loops.scalars import is_exact
from funct.compile.loops.views import VIEWS
from funct.core import INEXACT
from funct.graph import Control, Graph, Guard, Node, Transformer, acts, inline_calls

__all__ = ["carried", "carried_by"]

_PATTERNS = (0, 1)  # of signs: of one alone, two errors might cancel


class _Off(Transformer):
    """The same function, with errors of one bit, up and down in turns of 2**pattern."""

    def __init__(self, graph: Graph, pattern: int) -> None:
        super().__init__(graph)
        self.pattern = pattern
        self.count = 0

    def node(self, node: Node, operands: list[Any]) -> tuple[Any, ...]:
        """The op, and the error."""
        if isinstance(node.primitive, Control):
            return _control(node.primitive, operands, self.pattern)
        outs = super().node(node, operands)
        if node.name in VIEWS or (node.primitive.spread is not None and is_exact(node)):
            return outs
        self.count += 1
        sign = 1 - 2 * (self.count >> self.pattern & 1)
        return tuple([
            o * (1.0 + sign * float(finfo(o.dtype).eps)) if o.dtype in INEXACT else o for o in outs
        ])  # fmt: skip

    def guard(self, guard: Guard) -> None:
        """Whatever was decided: this is the same path."""


def _control(prim: Control, operands: Sequence[Any], pattern: int) -> tuple[Any, ...]:
    def off(body: Graph) -> Graph:
        return _Off(inline_calls(body), pattern).transform()

    found: tuple[Any, ...] = prim.kind.mapped(off)(*operands)
    return found


def carried(graph: Graph, args: Sequence[Any], outs: Sequence[Any]) -> list[float]:
    """The largest distance for each of the results that the graph gives for these arguments."""
    if acts(graph) or len(args) != len(graph.inputs):
        return [0.0] * len(outs)
    graph = inline_calls(graph)
    return _farthest(outs, [_Off(graph, k).run(*args) for k in _PATTERNS])


def carried_by(node: Node, operands: Sequence[Any], outs: Sequence[Any]) -> list[float]:
    """The same of one op, for which only those that hold graphs are run again."""
    prim = node.primitive
    if not isinstance(prim, Control) or acts(node):
        return [0.0] * len(outs)
    return _farthest(outs, [_control(prim, operands, k) for k in _PATTERNS])


def _farthest(outs: Sequence[Any], others: Sequence[Sequence[Any]]) -> list[float]:
    found = []
    for k, out in enumerate(outs):
        x = np.asarray(out)
        if x.dtype not in INEXACT:
            found.append(0.0)
            continue
        wide = np.complex128 if np.iscomplexobj(x) else np.float64
        with np.errstate(all="ignore"):
            away = [np.abs(np.asarray(o[k]).astype(wide) - x.astype(wide)) for o in others]
            found.append(float(np.nanmax(np.stack(away), initial=0.0)))
    return found
