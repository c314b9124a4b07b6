"""Elementwise ops on arrays that are turned alike, computed as the elements lie.

A transpose is a view, and loops that read one either read lines of memory an element at a time or
have it turned around in registers. Where all that an elementwise op reads is turned in one way and
nobody but the caller reads what is made of it, the op is computed before, and its result is the
view: so do eager ops, whose results are laid out as their operands are. So is a reduction of what
is turned or is computed before, whoever reads it: what is left is small, and so is what is made of
it beside the whole, such as a mean.
"""

from __future__ import annotations

import math
from typing import Any

from funct.compile.fusion.groups import REDUCTIONS
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
    are computed before the turn. left: results of reductions among them, and what is made of those.
    """

    prefix = "t"

    def __init__(self, graph: Graph) -> None:
        super().__init__(graph)
        self.readers = readers(graph)
        self.turns: dict[Var, Turn] = {}
        self.cores: dict[Var, Var] = {}
        self.whole: set[Var] = set()
        self.left: set[Var] = set()
        for e in graph.nodes:
            if isinstance(e, Node) and len(e.results) == 1:
                self._follow(e)
        self.ends = {
            e for e in graph.nodes
            if isinstance(e, Node) and len(e.results) == 1 and e.name not in _TURNS
            and (self.turns.get(e.results[0]) or e.results[0] in self.left)
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
        turn = self.turns[out]
        if e.name in REDUCTIONS:  # in loops with others where those read what is turned
            (x,) = e.operands
            return all(self._is_end(r, self.turns[x]) for r in self.readers[x])  # type: ignore[index]
        return out in self.left or all(self._is_end(r, turn) for r in self.readers.get(out, ()))

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
        if e.name in REDUCTIONS:
            turn = self.turns.get(e.operands[0], ())  # type: ignore[arg-type]
            if len(turn) == 1 and turn[0][0] == "permute_dims":
                self.turns[out] = _after_reduction(turn[0][1][0], *e.params)
                self.left.add(out)
            return
        if not is_elementwise(e):
            return
        given = [a for a in e.operands if isinstance(a, Var) and math.prod(a.shape) > 1]
        beside = {len(a.shape) for a in given} == {len(out.shape)}
        beside = beside and out.shape in [a.shape for a in given]
        found = {
            self.turns.get(a, ()) if a.shape == out.shape or (beside and a in self.left) else ()
            for a in given
        }
        small = any(a in self.left for a in given) and math.prod(out.shape) < _LEAST_SIZE
        if len(found) == 1 and (small or math.prod(out.shape) >= _LEAST_SIZE):
            self.turns[out] = found.pop()
            if small and self.turns[out]:
                self.left.add(out)

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
        if reader.name in REDUCTIONS:
            return reader in self.ends
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
        if e.name in REDUCTIONS:
            self._reduce_before(e)
            return
        operands = [
            self.cores[a] if isinstance(a, Var) and (math.prod(a.shape) > 1 or a in self.before)
            else a
            for a in e.operands
        ]  # fmt: skip
        whole = e.operands.index(next(a for a in e.operands if _is_like(a, out)))
        core = self.var(operands[whole].shape, out.dtype)  # type: ignore[union-attr]
        self.keep(Node(e.primitive, tuple(operands), e.params, (core,), e.site))
        self.cores[out] = core
        self.before.add(out)

    def _reduce_before(self, e: Node) -> None:
        (x,), (axes, kept), (out,) = e.operands, e.params, e.results
        assert isinstance(x, Var)
        core, ((_, (order,)),) = self.cores[x], self.turns[x]
        gone = tuple(sorted([order[a] for a in axes]))
        shape = [1 if a in gone else n for a, n in enumerate(core.shape) if kept or a not in gone]
        turned = bool(self.turns[out])
        found = self.var(shape, out.dtype) if turned else out
        self.keep(Node(e.primitive, (core,), (gone, kept), (found,), e.site))
        if turned:
            self.cores[out] = found
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


def _is_like(a: Any, out: Var) -> bool:
    return isinstance(a, Var) and a.shape == out.shape


def _after_reduction(order: tuple[int, ...], axes: tuple[int, ...], kept: bool) -> Turn:
    """How what is left of a transpose is turned."""
    gone = {order[a] for a in axes}
    stays = [a for a in range(len(order)) if kept or a not in gone]
    now = tuple([stays.index(a) for a in order if a in stays])
    return () if now == tuple(range(len(now))) else (("permute_dims", (now,)),)


def _turned(turn: Turn, e: Node) -> Turn:
    """A turn with one more view, or one less if that turns the last one back."""
    if turn:
        name, (axes,) = turn[-1]
        (mine,) = e.params
        back = axes == mine if name == "flip" else [axes[a] for a in mine] == [*range(len(axes))]
        if name == e.name and back:
            return turn[:-1]
    return (*turn, (e.name, e.params))
