"""Elementwise ops on arrays that are turned alike, computed as the elements lie.

A transpose is a view, and loops that read one either read lines of memory an element at a time or
have it turned around in registers. Where all that an elementwise op reads is turned in one way and
nobody but the caller reads what is made of it, the op is computed before, and its result is the
view: so do eager ops, whose results are laid out as their operands are.
"""

from __future__ import annotations

import math
from typing import Any

from funct.compile.readers import readers
from funct.compile.rewriting.cells import is_elementwise
from funct.compile.rewriting.new_nodes import NewNodes
from funct.graph import Graph, Guard, Node, Var

__all__ = ["as_they_lie"]

_LEAST_SIZE = 1 << 15  # of fewer elements, a result that is a view costs more than it saves
_TURNS = ("permute_dims", "flip")
Turn = tuple[tuple[str, Any], ...]


def as_they_lie(graph: Graph) -> Graph:
    """The graph, where elementwise ops on arrays turned alike are computed before the turn."""
    if not any(isinstance(e, Node) and e.name in _TURNS for e in graph.nodes):
        return graph
    walk = _Turned(graph)
    return walk.run() if walk.ends else graph


class _Turned(NewNodes):
    """One walk over the nodes.

    turns: for each value, the views that lead to it from the one in `cores`. ends: the nodes that
    are computed before the turn.
    """

    prefix = "t"

    def __init__(self, graph: Graph) -> None:
        super().__init__(graph)
        self.readers = readers(graph)
        self.turns: dict[Var, Turn] = {}
        self.cores: dict[Var, Var] = {}
        self.whole: set[Var] = set()
        for e in graph.nodes:
            if isinstance(e, Node) and len(e.results) == 1:
                self._follow(e)
        self.ends = {
            e for e in graph.nodes
            if isinstance(e, Node) and self.turns.get(e.results[0]) and is_elementwise(e)
        }  # fmt: skip
        self.made_by = {v: e for e in graph.nodes if isinstance(e, Node) for v in e.results}
        self.before: set[Var] = set()  # results that are computed before they are turned
        candidates = [e for e in graph.nodes if e in self.ends]
        count = -1
        while count != len(self.ends):  # what one of them reads, or who reads it, may be none
            count = len(self.ends)
            for e in (*candidates, *reversed(candidates)):
                if e in self.ends and not self._holds(e):
                    self.ends.discard(e)

    def _holds(self, e: Node) -> bool:
        """Whether a node can be computed before the turn, as far as is known."""
        (out,) = e.results
        read = [self._below(a) for a in e.operands if isinstance(a, Var)]
        if any(self.turns.get(v) and self.made_by[v] not in self.ends for v in read):
            return False
        return all(self._is_end(r, self.turns[out]) for r in self.readers.get(out, ()))

    def _below(self, v: Var) -> Var:
        """What v is turned from by views."""
        e = self.made_by.get(v)
        while e is not None and e.name in _TURNS and isinstance(e.operands[0], Var):
            v = e.operands[0]
            e = self.made_by.get(v)
        return v

    def _follow(self, e: Node) -> None:
        """Note how the node's result is turned."""
        (out,) = e.results
        if e.name in _TURNS and isinstance(e.operands[0], Var):
            self.turns[out] = _turned(self.turns.get(e.operands[0], ()), e)
            return
        if math.prod(out.shape) < _LEAST_SIZE or not is_elementwise(e):
            return
        given = [a for a in e.operands if isinstance(a, Var) and math.prod(a.shape) > 1]
        found = {self.turns.get(a, ()) if a.shape == out.shape else () for a in given}
        if len(found) == 1:
            self.turns[out] = found.pop()

    def _is_end(self, reader: Any, turn: Turn) -> bool:
        """Whether the reader is the caller, or is computed before the same turn, or turns it on for
        such a one, or back.
        """
        if not isinstance(reader, Node):
            return reader is None
        (out, *_) = reader.results
        if reader.name in _TURNS:
            now = _turned(turn, reader)
            return not now or all(self._is_end(r, now) for r in self.readers.get(out, ()))
        return reader in self.ends and self.turns[out] == turn

    def run(self) -> Graph:
        """Write the graph anew."""
        for e in self.graph.nodes:
            self.site = e.site
            if isinstance(e, Node) and e in self.ends:
                self._write_before(e)
                continue
            for a in (e.operand,) if isinstance(e, Guard) else e.operands:
                self._needs(a)
            if isinstance(e, Node) and e.name in _TURNS and isinstance(e.operands[0], Var):
                x = e.operands[0]
                self.cores[e.results[0]] = self.cores.get(x, x)
            self.nodes.append(e)
        for v in self.graph.outputs:
            self._needs(v)
        return self.finished({})

    def _write_before(self, e: Node) -> None:
        """Compute what is turned from what its operands are turned from."""
        (out,) = e.results
        whole = [isinstance(a, Var) and a.shape == out.shape for a in e.operands]
        operands = [self.cores[a] if w else a for a, w in zip(e.operands, whole, strict=True)]  # type: ignore[index]
        shape = next(a.shape for a in operands if isinstance(a, Var) and math.prod(a.shape) > 1)
        core = self.var(shape, out.dtype)
        self.keep(Node(e.primitive, tuple(operands), e.params, (core,), e.site))
        self.cores[out] = core
        self.before.add(out)

    def _needs(self, v: Any) -> None:
        """Write v turned, if it is not."""
        if not isinstance(v, Var) or v in self.whole:
            return
        if v not in self.before:
            return
        self.whole.add(v)
        x = self.cores[v]
        *inner, last = self.turns[v]
        for name, params in inner:
            shape = [x.shape[a] for a in params[0]] if name == "permute_dims" else x.shape
            x = self.apply(name, (x,), params, shape, x.dtype)
        self.apply_to(last[0], (x,), last[1], v)


def _turned(turn: Turn, e: Node) -> Turn:
    """A turn with one more view, or one less if that turns the last one back."""
    if turn:
        name, (axes,) = turn[-1]
        (mine,) = e.params
        back = axes == mine if name == "flip" else [axes[a] for a in mine] == [*range(len(axes))]
        if name == e.name and back:
            return turn[:-1]
    return (*turn, (e.name, e.params))
