"""Elementwise ops on joined arrays, computed for each piece: `roll(x, 1) + x`, rotated halves.

What `concat` joins would be copied only to be read once. Instead the ops that read it are written
for each piece, whose other operands are slices, and their results are joined: where they belong, as
loops compute them (`steps/placed.py`). Only where the results would be put into memory anyway: a
reduction of them takes in one pass what is joined.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

from msgspec import Struct

from funct.compile.fusion.groups import is_weave, why_not
from funct.compile.joins import is_concat
from funct.compile.loops.scalars import ELEMENTS
from funct.compile.loops.views import VIEWS
from funct.compile.readers import readers
from funct.compile.rewriting.cells import is_elementwise, takes
from funct.compile.rewriting.new_nodes import NewNodes
from funct.graph import Graph, Guard, Node, Var, eliminate_dead

__all__ = ["in_pieces"]

_LEAST_SIZE = 1 << 12  # of what is joined: of less, a copy costs less than a kernel for each piece
_LEAST_RUN = 16  # elements of a piece that lie side by side, if it is many such runs
_MOST_PIECES = 4
_MOST_WRITTEN = 160  # nodes for the pieces of one array: each is code of its own


class _Joined(Struct, frozen=True):
    """An array of pieces along an axis, each from one of the ends to the next, with 0 before them.

    cost: nodes that are written for each piece.
    """

    axis: int
    ends: tuple[int, ...]
    cost: int = 0


def in_pieces(graph: Graph) -> Graph:
    """The graph, where elementwise ops read pieces before those are joined."""
    if not any(isinstance(e, Node) and is_concat(e) for e in graph.nodes):
        return graph
    walk = _Pieces(graph)
    found = walk.run()
    return eliminate_dead(found, guards=True) if walk.pieces else graph


class _Pieces(NewNodes):
    """One walk over the nodes.

    joined: what is in pieces, of which none is written until all are wanted. stays: whether what is
    made of a value is put into memory anyway.
    """

    prefix = "j"

    def __init__(self, graph: Graph) -> None:
        super().__init__(graph)
        self.made_by = {v: e for e in graph.nodes if isinstance(e, Node) for v in e.results}
        self.readers = readers(graph)
        self.joined: dict[Var, _Joined] = {}
        self.stays: dict[Var, bool] = {}
        self.pieces: dict[tuple[Var, int, int, int], Var] = {}
        self.whole: set[Var] = set()  # what was in pieces, and is written
        self.left = 0  # nodes that may still be written for one array

    def run(self) -> Graph:
        """Write the graph anew."""
        for e in reversed(self.graph.nodes):
            for v in e.results if isinstance(e, Node) else ():
                self.stays[v] = all(self._is_end(r, v) for r in self.readers.get(v, ()))
        for e in self.graph.nodes:
            found = self._found(e) if isinstance(e, Node) else None
            if found is None or not isinstance(e, Node):
                self.nodes.append(e)
                continue
            (out,) = e.results
            self.joined[out] = found
            if not all(takes(r, out) for r in self.readers.get(out, ())):
                self._write(out)
        return self.finished({})

    def _is_end(self, reader: Any, v: Var) -> bool:
        """Whether somebody reads v from memory, or makes of it what somebody does."""
        if reader is None or isinstance(reader, Guard):
            return True
        if reader.name in VIEWS:
            (out,) = reader.results
            read_by = self.readers.get(out, ())
            return all(not isinstance(r, Node) or bool(why_not(r)) for r in read_by)
        if why_not(reader) or is_concat(reader):
            return True
        return takes(reader, v) and self.stays[reader.results[0]]

    # What is in pieces

    def _found(self, e: Node) -> _Joined | None:
        """The pieces of what the node makes, if it is better made so."""
        if is_concat(e):
            return self._of_concat(e)
        given = [a for a in e.operands if isinstance(a, Var) and a in self.joined]
        if not given:
            return None
        axis = self.joined[given[0]].axis
        alike = [self.joined[a] for a in given if self.joined[a].axis == axis]
        ends = tuple(sorted({n for j in alike for n in j.ends}))
        cost = 1 + sum([j.cost for j in alike])
        fits = len(ends) <= _MOST_PIECES and cost * len(ends) <= _MOST_WRITTEN
        for a in given:
            if not fits or self.joined[a].axis != axis:
                self._write(a)
        return _Joined(axis, ends, cost) if fits else None

    def _of_concat(self, e: Node) -> _Joined | None:
        """The parts of what is only read element by element, for what is put into memory."""
        out = e.results[0]
        (axis,), below = e.params, math.prod(out.shape[e.params[0] + 1 :])
        parts = [v for v in e.operands if isinstance(v, Var) and v.dtype == out.dtype]
        lengths = [v.shape[axis] for v in parts]
        if len(parts) < len(e.operands) or len(parts) > _MOST_PIECES or 0 in lengths:
            return None
        if is_weave(e) or out.dtype not in ELEMENTS or math.prod(out.shape) < _LEAST_SIZE:
            return None
        if math.prod(out.shape[:axis]) > 1 and min(lengths) * below < _LEAST_RUN:
            return None
        readers = self.readers.get(out, ())
        if not all(takes(r, out) and self.stays[r.results[0]] for r in readers):
            return None
        return _Joined(axis, tuple(itertools.accumulate(lengths)))

    def _write(self, v: Var) -> None:
        """Join the pieces."""
        found, e = self.joined[v], self.made_by[v]
        back, self.left = found.axis - len(v.shape), _MOST_WRITTEN
        if is_concat(e):
            self.nodes.append(e)
        else:
            pieces = [self._piece(v, back, *ends) for ends in itertools.pairwise((0, *found.ends))]
            self.site = e.site
            self.concat(pieces, found.axis, v)
        del self.joined[v]
        self.whole.add(v)

    def _piece(self, v: Any, back: int, start: int, stop: int) -> Any:
        """What of v, along an axis counted from the last one, goes with a piece."""
        axis = len(v.shape) + back if isinstance(v, Var) else -1
        if axis < 0 or v.shape[axis] == 1:
            return v
        found = self.pieces.get((v, back, start, stop))
        if found is None:
            found = self._computed(v, axis, start, stop) or self._slice(v, axis, start, stop)
            self.pieces[v, back, start, stop] = found
        return found

    def _computed(self, v: Var, axis: int, start: int, stop: int) -> Var | None:
        """The piece, where v is in pieces along the axis or only this reads it."""
        e, back, joined = self.made_by.get(v), axis - len(v.shape), self.joined.get(v)
        if joined is not None and joined.axis != axis:
            self._write(v)
        if e is None or v in self.whole:
            return None
        self.left -= 1
        if joined is None:
            once = all(r is self.readers[v][0] for r in self.readers[v])
            if not once or not is_elementwise(e) or self.left < 0:
                return None
        elif is_concat(e):
            for part in e.operands:
                assert isinstance(part, Var)
                length = part.shape[axis]
                if start < length:
                    return self._piece(part, back, start, stop) if length > 1 else part
                start, stop = start - length, stop - length
        operands = [self._piece(a, back, start, stop) for a in e.operands]
        self.site = e.site
        shape = (*v.shape[:axis], stop - start, *v.shape[axis + 1 :])
        out = self.var(shape, v.dtype)
        self.keep(Node(e.primitive, tuple(operands), e.params, (out,), e.site))
        return out

    def _slice(self, x: Var, axis: int, start: int, stop: int) -> Var:
        if (start, stop) == (0, x.shape[axis]):
            return x
        triples: list[Any] = [(None, None, 1)] * len(x.shape)
        triples[axis] = (start, stop, 1)
        shape = (*x.shape[:axis], stop - start, *x.shape[axis + 1 :])
        return self.apply("slice_", (x,), (tuple(triples),), shape, x.dtype)
