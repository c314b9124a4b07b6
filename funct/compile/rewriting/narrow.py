"""Last axes of few elements, taken apart: an array for each place in them.

Points in space, small matrices, colours and pairs are rows of a few elements, which are no work for
vectors. What is computed of them is computed for each place by itself, in loops over all the rest,
and put side by side where somebody wants it whole.

- What a reduction of a short last axis reduces is followed back to where it comes from. That always
  pays up to four elements, whose sums keep NumPy's order, and up to sixteen in floats: in memory
  they are read in whole vectors, and of arrays that are read often, as points are by pairs, a few
  columns are copied, so that vectors lie along pairs.
- Products, determinants and cofactors of many small matrices, known places of a short axis, and ops
  whose operands are broadcast along or against one begin what is taken apart; it goes on through
  elementwise ops, views and reductions.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from typing import Any, TypeGuard

import numpy as np

from funct.compile.fusion.groups import MOST_WOVEN, REDUCTIONS, why_not
from funct.compile.fusion.worth import is_of_small_matrices
from funct.compile.joins import is_concat
from funct.compile.loops.scalars import ELEMENTS
from funct.compile.loops.views import VIEWS
from funct.compile.rewriting.cells import (
    Cells,
    Places,
    core_of_reshaped,
    is_elementwise,
    known_places,
)
from funct.graph import Graph, Guard, Node, Var, eliminate_dead

__all__ = ["FOLDS", "taken_apart"]

_FEW_PLACES, _MOST_PLACES = 4, MOST_WOVEN
_BROADCAST = 7  # places of rows that are shorter than a vector
_OFTEN = 8  # times that an array is read where more than a few places pay
_MOST_NODES = 60  # that are followed back from one reduction
_MOST_PARTS = 160  # nodes written for one of more than a few places
_MOST_WRITTEN = 400  # nodes written for what is put side by side
_LEAST_SIZE = 1 << 12  # of what is left without the axis, if it is reduced
_LEAST_PAIRS = 1 << 9  # the same where arrays behind it are small: rows of three are no vectors
_LEAST_ROWS = 1 << 6  # the same for what is put side by side
_VECTOR, _LEAST_LONG = 8, 1 << 10  # and where there are more places: code for each takes its time

FOLDS = {
    "reduce_sum": "add", "reduce_prod": "multiply", "reduce_max": "maximum",
    "reduce_min": "minimum", "any": "logical_or", "all": "logical_and",
}  # fmt: skip


def taken_apart(graph: Graph) -> Graph:
    """The graph with what is better computed for each place of short last axes written so."""
    walk = _Apart(graph)
    found = walk.run()
    return eliminate_dead(found, guards=True) if walk.parts else graph


class _Apart(Cells):
    """One walk over the nodes.

    cores: for what is taken apart, how many of its axes are. Nothing is written of it until it is
    wanted whole, or at a place.
    """

    def __init__(self, graph: Graph) -> None:
        super().__init__(graph)
        self.cores: dict[Var, int] = {}
        self.costs: dict[Var, int] = {}  # nodes that are written for it
        self.whole: set[Var] = set()
        self.deep = False  # whether a reduction is followed back
        entries = [(e.operand,) if isinstance(e, Guard) else e.operands for e in graph.nodes]
        self.readers = Counter([a for given in (*entries, graph.outputs) for a in given])

    def run(self) -> Graph:
        """Write the graph anew."""
        for e in self.graph.nodes:
            if isinstance(e, Node) and (n := self._core(e)):
                self.cores[e.results[0]] = n
                continue
            self.site = e.site
            if self._reduces(e):
                self.deep = self._pays(e)
                found = self._reduced(e)
                self.deep = False
                self.apply_to("reshape", (found,), (e.results[0].shape,), e.results[0])
                continue
            if isinstance(e, Node) and e.name == "det" and is_of_small_matrices(e):
                self.determinant(e)
                continue
            for a in (e.operand,) if isinstance(e, Guard) else e.operands:
                self.needs(a)
            self.nodes.append(e)
        for v in self.graph.outputs:
            self.needs(v)
        return self.finished({})

    def follows(self, v: Var) -> bool:
        """Whether places of v are computed, not looked up."""
        e = self.made_by[v]
        if v in self.cores or e.name in VIEWS:
            return True
        return is_elementwise(e) and (self.deep or self.readers[v] == 1)

    def needs(self, v: Any) -> None:
        """Write v whole, if it is not."""
        if not isinstance(v, Var) or v not in self.cores or v in self.whole:
            return
        self.whole.add(v)
        core = v.shape[len(v.shape) - self.cores[v] :]
        self.side_by_side([self.part(v, tuple(map(int, p))) for p in np.ndindex(*core)], v)

    # What is put side by side

    def _core(self, e: Node) -> int:
        """How many last axes of the node's result are taken apart."""
        if len(e.results) != 1 or e.results[0].dtype not in ELEMENTS:
            return 0
        out = e.results[0]
        n = max([self._carried(e, a) for a in e.operands if isinstance(a, Var)], default=0)
        n = n or self._begins(e)
        if not n or n > len(out.shape):
            return 0
        places = math.prod(out.shape[len(out.shape) - n :])
        cost = places + sum([self.costs.get(a, 0) for a in e.operands if isinstance(a, Var)])
        if not 1 < places <= MOST_WOVEN or cost > _MOST_WRITTEN:
            return 0
        self.costs[out] = cost
        return n

    def _carried(self, e: Node, a: Var) -> int:
        """How many last axes of the result are, because those of an operand are."""
        n, out = self.cores.get(a, 0), e.results[0].shape
        if not n:
            return 0
        match e.name:
            case "reshape":
                return core_of_reshaped(a.shape, out, n) or 0
            case "permute_dims":
                return n if min(e.params[0][len(out) - n :]) >= len(out) - n else 0
            case "broadcast_to":
                return n if out[len(out) - n :] == a.shape[len(a.shape) - n :] else 0
            case "slice_" | "flip" | "settled" | "stop_gradient" | "checkpoint_name":
                return n
        return n if is_elementwise(e) else 0

    def _begins(self, e: Node) -> int:
        """How many last axes of the result are taken apart, whatever the operands are."""
        out = e.results[0]
        if e.name in ("matmul", "cofactor") and is_of_small_matrices(e):
            return 2
        short = out.shape[-1:] <= (_VECTOR,)
        if math.prod(out.shape[:-1]) < (_LEAST_ROWS if short else _LEAST_LONG):
            return 0
        match e.name:
            case "take" if known_places(e, self.constants) is not None:
                return int(e.params[0] == len(out.shape) - 1)
            case _ if is_concat(e):
                if any(not isinstance(v, Var) or v.dtype != out.dtype for v in e.operands):
                    return 0
                lengths = [v.shape[-1] for v in e.operands if isinstance(v, Var)]
                return int(e.params[0] == len(out.shape) - 1 and _has_short(lengths))
            case "embed":
                (g,) = e.operands
                if not isinstance(g, Var) or g.shape[-1:] == out.shape[-1:]:
                    return 0
                at = range(out.shape[-1])[slice(*e.params[0][-1])]
                around = (at.start, len(at), out.shape[-1] - at.stop)
                return int(at.step != 1 or _has_short(around))
        if not out.shape or not 1 < out.shape[-1] <= _MOST_PLACES or not is_elementwise(e):
            return 0
        given = [a.shape for a in e.operands if isinstance(a, Var)]
        other = [s for s in given if s != out.shape and math.prod(s) > 1 and _splits(s, out.shape)]
        if out.shape[-1] > _BROADCAST:  # only beside what reductions find that are taken apart
            rows = (*out.shape[:-1], 1)
            return int(rows in other and math.prod(rows) >= _LEAST_SIZE)
        return int(bool(other))

    # Reductions

    def _reduces(self, e: Any) -> TypeGuard[Node]:
        """Whether a node is a reduction that is taken apart."""
        if not isinstance(e, Node) or e.name not in REDUCTIONS or not e.params[0]:
            return False
        x, out = e.operands[0], e.results[0]
        if not isinstance(x, Var) or not x.shape or x.dtype != out.dtype:
            return False
        if out.dtype not in ELEMENTS:
            return False
        n = self.cores.get(x, 0)
        core = range(len(x.shape) - n, len(x.shape))
        axes, few = set(e.params[0]), math.prod(x.shape) < _LEAST_PAIRS * x.shape[-1]
        apart = axes >= set(core) or (few and axes.isdisjoint(core))
        return self._pays(e) or (n > 0 and apart)

    def _pays(self, e: Node) -> bool:
        """Whether it pays to follow what a reduction reduces."""
        x = e.operands[0]
        assert isinstance(x, Var)
        size, places = math.prod(x.shape), x.shape[-1]
        if not 1 < places <= _MOST_PLACES or size < _LEAST_PAIRS * places:
            return False
        depth, largest, whole = self._behind(x)
        if whole and self._is_of_longer(e):
            return False
        if places % _VECTOR == 0 and largest == size and len(x.shape) - 1 not in e.params[0]:
            return False  # rows of whole vectors are added up as they lie
        if size < _LEAST_SIZE * places and (not depth or largest * _OFTEN > size):
            return False
        if (
            places > _FEW_PLACES
            and depth
            and (depth * places > _MOST_PARTS or x.dtype.kind != "f")
        ):
            return False
        return depth <= _MOST_NODES

    def _is_of_longer(self, e: Node) -> bool:
        """Whether the last axis is reduced with the one before it, or kept with it, so that vectors
        lie along both.
        """
        x, axes = e.operands[0], e.params[0]
        assert isinstance(x, Var)
        last = len(x.shape) - 1
        return math.prod(x.shape[-2:]) > _MOST_PLACES and (last in axes) == (last - 1 in axes)

    def _behind(self, x: Var) -> tuple[int, int, bool]:
        """How many elementwise nodes stand behind x; the size of the largest array behind those;
        whether all that is read has the last two axes of x, in order, or neither.
        """
        seen: set[Var] = set()
        stack, largest, whole = [x], 0, True
        while stack and len(seen) <= _MOST_NODES:
            v = stack.pop()
            e = self.made_by.get(v)
            if v.shape[-2:] != x.shape[-2:] and math.prod(v.shape[-2:]) > 1:
                whole = False
            if v in seen or v.shape[-1:] != x.shape[-1:]:
                continue
            if e is None or not _follows(e):
                largest = max(largest, math.prod(v.shape))
                whole = whole and (e is None or e.name == "reshape" or e.name not in VIEWS)
                continue
            seen.add(v)
            stack += [a for a in e.operands if isinstance(a, Var)]
        return len(seen), largest, whole

    def _reduced(self, e: Node) -> Var:
        """What the reduction gives, but for the shape."""
        x, (axes, _) = e.operands[0], e.params
        assert isinstance(x, Var)
        core = range(len(x.shape) - self.cores.get(x, 1), len(x.shape))
        if not (set(core) <= set(axes) or set(core).isdisjoint(axes)):
            core = core[-1:]
        parts = [self.part(x, tuple(map(int, p))) for p in np.ndindex(*[x.shape[a] for a in core])]
        rest = tuple([a for a in axes if a not in core])
        if core[-1] in axes:
            total = parts[0]
            for p in parts[1:]:
                total = self.apply(FOLDS[e.name], (total, p), (), p.shape, p.dtype)
            return self._along(e.name, total, rest) if rest else total
        ends = [self._along(e.name, p, rest) for p in parts]
        return self.side_by_side(ends, self.var((*ends[0].shape, len(ends)), ends[0].dtype))

    def _along(self, name: str, x: Var, axes: Places) -> Var:
        shape = [n for a, n in enumerate(x.shape) if a not in axes]
        return self.apply(name, (x,), (axes, False), shape, x.dtype)


def _follows(e: Node) -> bool:
    """Whether a place of the result's last axis comes from that place of the operands'."""
    x = e.operands[0] if e.operands else None
    if e.name == "broadcast_to":
        return isinstance(x, Var) and not why_not(e)
    if e.name == "reshape":
        out = e.results[0]
        return isinstance(x, Var) and x.shape[-1:] == out.shape[-1:] and x.dtype == out.dtype
    return is_elementwise(e) or e.name in ("settled", "stop_gradient")


def _splits(shape: tuple[int, ...], whole: tuple[int, ...]) -> bool:
    """Whether an operand is broadcast along one of the last two axes only: along both, or neither,
    vectors may lie along both.
    """
    if len(whole) < 2 or math.prod(whole[-2:]) <= _MOST_PLACES:
        return True
    near = (1, 1, *shape)[-2:]
    return (near[0] == whole[-2]) != (near[1] == whole[-1])


def _has_short(lengths: Iterable[int]) -> bool:
    """Whether some part of a row is shorter than a vector: whole ones are as good as they are."""
    return any(0 < n <= _BROADCAST for n in lengths)
