"""Reductions of several axes, written as one of the last of them, then one of the rest.

Loops reduce rows, columns, or all there is: axes with kept ones between them are reduced one run
after the other. So are axes side by side where an operand is broadcast along some of them alone
(`sum(x[:, :, None] * y[:, None, :], axis=(1, 2))`): no walk leads along both, and it would be
written out as large as the product. Rows of few elements are added up as rows of several of them,
which are whole vectors. A part of the walk of `simplify.py`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import attrs

from funct.compile.fusion.groups import REDUCTIONS, along, is_apart, reduction
from funct.compile.loops.scalars import ELEMENTS
from funct.compile.loops.views import VIEWS
from funct.compile.rewriting.cells import is_elementwise
from funct.compile.rewriting.new_nodes import NewNodes
from funct.graph import Node, Var

__all__ = ["InParts"]

_LEAST_SIZE = 1 << 12  # of what is reduced: copies of less cost less than another loop
_ALONG = {"broadcast_to", *REDUCTIONS}  # what has the axes of its operand, beside elementwise ops
_LEAST_ROW = 16  # elements of the last axis: rows of fewer cost more than a copy
_WIDE, _MOST = 32, 96  # elements of rows that vectors of any dtype go through well,
_VECTOR = 8  # better if they are whole ones
_MANY_ROWS = 1 << 10
_SOURCES = 60  # nodes that are looked at


class InParts(NewNodes):
    """Who writes them."""

    def in_parts(self, e: Node) -> Var | None:
        """The reduction as several; None where loops hold it as one."""
        (x,), (axes, _), out = e.operands, e.params, e.results[0]
        if not isinstance(x, Var) or out in self.decided:
            return None
        longer = [a for a, n in enumerate(x.shape) if n != 1]
        gone = [a for a in longer if a in axes]
        if not is_apart(e):
            if not self._is_crossed(e, x, gone):
                return self._abreast(e, x)
            x = self._reduced(e, x, gone[-1:])
            return self.apply(e.name, (x,), e.params, out.shape, out.dtype)
        while reduction(e) is None:
            last = longer.index(gone[-1])
            while longer[last - 1] in gone:
                last -= 1
            run, gone = gone[gone.index(longer[last]) :], gone[: gone.index(longer[last])]
            x = self._reduced(e, x, run)
            e = attrs.evolve(e, operands=(x,))
        return self.apply(e.name, (x,), e.params, out.shape, out.dtype)

    def _reduced(self, e: Node, x: Var, run: Sequence[int]) -> Var:
        shape = [1 if a in run else n for a, n in enumerate(x.shape)]
        return self.apply(e.name, (x,), (tuple(run), True), shape, e.results[0].dtype)

    def _abreast(self, e: Node, x: Var) -> Var | None:
        """A reduction of many short rows as one of wider rows, then of the parts of one."""
        out = e.results[0]
        if reduction(e) != "column" or not {x.dtype, out.dtype} <= ELEMENTS.keys():
            return None
        count, columns = along(e)
        wider = [k for k in range(2, _WIDE + 1) if _WIDE <= k * columns <= _MOST and not count % k]
        if columns >= _WIDE or count < _MANY_ROWS or not wider or not self._is_whole(x):
            return None
        k = min(wider, key=lambda k: (k * columns % _VECTOR > 0, k))
        wide = self.reshape(x, (count // k, k * columns))
        rows = self.apply(e.name, (wide,), ((0,), False), (k * columns,), out.dtype)
        found = self.reshape(rows, (k, columns))
        found = self.apply(e.name, (found,), ((0,), False), (columns,), out.dtype)
        return self.reshape(found, out.shape)

    def _is_whole(self, x: Var) -> bool:
        """Whether x is in memory, or made of what has its shape, or one element, alone."""
        seen, waiting = {x}, [x]
        while waiting:
            v = waiting.pop()
            source = self.made_by.get(v)
            if source is None or not (source.name in VIEWS or is_elementwise(source)):
                continue
            if source.name in VIEWS or len(seen) > _SOURCES:
                return False
            new = {a for a in source.reads if a not in seen}
            if any(a.shape != x.shape and math.prod(a.shape) > 1 for a in new):
                return False
            seen |= new
            waiting += new
        return True

    def _is_crossed(self, e: Node, x: Var, gone: Sequence[int]) -> bool:
        """Whether rows of several axes are made of what is broadcast along some of them alone."""
        if reduction(e) != "row" or len(gone) < 2 or x.dtype.itemsize < 4:
            return False
        if math.prod(x.shape) < _LEAST_SIZE or x.shape[gone[-1]] < _LEAST_ROW:
            return False
        rank = len(x.shape)
        waiting, known = [(x, [a - rank for a in gone])], {x}  # axes are counted from the last
        while waiting:
            v, axes = waiting.pop()
            along = [-a <= len(v.shape) and v.shape[a] != 1 for a in axes]
            if any(along) and not all(along):
                return True
            source = self.made_by.get(v)
            if source is None or not (source.name in _ALONG or is_elementwise(source)):
                continue
            if source.name in REDUCTIONS:
                axes = _before(source, axes)
            more = [a for a in source.reads if a not in known]
            known.update(more)
            waiting += [(a, axes) for a in more]
        return False


def _before(reduced: Node, axes: Sequence[int]) -> list[int]:
    """Axes of a reduction's result as those of its operand, which lacks what that lacks."""
    gone, keeps = reduced.params
    rank = len(reduced.reads[0].shape)
    kept = [a - rank for a in range(rank) if keeps or a not in gone]
    return [kept[a] if -a <= len(kept) else a - rank for a in axes]
