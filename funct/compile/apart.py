"""Loops of few numbers a step, without what no step waits for.

The steps of such a loop come one after the other, and each computes number by number. What follows
from the rows that it is given alone is computed before the loop, and what nothing but its rows of
results follows from behind it, from what the loop keeps of each step instead: for all steps at
once, a vector of them at a time. What nobody reads of a loop is not computed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import attrs
from msgspec import Struct

from funct.compile.forms import Inner, Repeat
from funct.compile.fusion.worth import ELEMENT_OPS
from funct.compile.loops.scalars import printing
from funct.compile.loops.views import VIEWS
from funct.compile.loops.warned import may_warn
from funct.compile.rewriting.cells import is_elementwise
from funct.compile.rewriting.new_nodes import NewNodes
from funct.compile.rewriting.select import plain
from funct.device import host
from funct.graph import Control, Graph, Guard, Node, Var, eliminate_dead

__all__ = ["loops_apart"]

_STEPS = 32  # fewer are not looked at
_COST = 8  # additions of a step that are worth what it reads and writes more, for each such array
_SHARE = 4  # of a vector is what one array of a step has at most: more is computed in vectors
_MOVED = frozenset({"reshape", "slice_", "broadcast_to"})


def loops_apart(graph: Graph, lowered: Callable[[Any], bool]) -> Graph:
    """The graph with such loops. lowered: whether a step can be part of a program."""
    if not any(map(_loop_of, graph.nodes)):
        return graph
    return eliminate_dead(_Apart(graph, lowered).run(), guards=True)


def _loop_of(e: Any) -> Repeat | None:
    """The loop that a node is, if it has few numbers a step and a known number of steps."""
    if not isinstance(e, Node) or not isinstance(e.primitive, Control):
        return None
    form = e.primitive.kind.form()
    if not isinstance(form, Repeat) or form.test is not None or (form.steps or 0) < _STEPS:
        return None
    moving = (*form.body.inputs[form.constants :], *form.body.outputs)
    return form if not form.body.symbols and all(map(_is_small, moving)) else None


def _is_small(v: Var) -> bool:
    return math.prod(v.shape) * v.dtype.itemsize * _SHARE <= host().vector_bytes


class _Parts(Struct, frozen=True):
    """The nodes of a body: before, in and behind the loop. read: what steps read of what is made
    before or given; kept: what is read behind of what steps have. ys: which rows are made by steps.
    """

    early: list[Node]
    core: list[Node]
    late: list[Node]
    read: list[Var]
    kept: list[Var]
    ys: list[int]

    @classmethod
    def of(cls, body: Graph, form: Repeat, wanted: Sequence[int]) -> _Parts:
        """wanted: the rows of results that somebody reads."""
        c, n = form.constants, form.carry
        carried, rows = body.outputs[:n], {k: body.outputs[n + k] for k in wanted}
        nodes: list[Any] = list(body.nodes)
        known = {*body.inputs[:c], *[v for v, _ in body.constants]}
        before = set(body.inputs[c + n :])
        early, made = [], {v for e in nodes for v in e.results}
        alive = {*carried, *rows.values()}
        for e in reversed(nodes):
            alive.update(e.reads if alive.intersection(e.results) else ())
        nodes = [e for e in nodes if alive.intersection(e.results)]
        for e in nodes:
            if _moves(e) and before.intersection(e.reads) and known | before >= set(e.reads):
                early.append(e)
                before.update(e.results)
        stays, late = set(carried), []
        for e in [e for e in reversed(nodes) if not before.intersection(e.results)]:
            if stays.intersection(e.results) or not _moves(e) or known >= set(e.reads):
                stays.update(e.reads)
            else:
                late.append(e)
        behind = {v for e in late for v in e.results}
        core = [e for e in nodes if not (before | behind).intersection(e.results)]
        outside = behind | (before & made)
        ys = [k for k, v in rows.items() if v not in outside]
        needs = {*carried, *[rows[k] for k in ys], *[v for e in core for v in e.reads]}
        read = [v for v in (*body.inputs, *made) if v in before and v in needs]
        asked = {v for e in late for v in e.reads} - known - before - behind
        every = [*body.inputs, *[v for e in core for v in e.results]]
        return cls(early, core, late[::-1], read, [v for v in every if v in asked], ys)

    def is_worth(self, steps: int, rows: int, ys: int) -> bool:
        """Whether it saves more than it costs to make and to run; so many rows a step was given,
        and made.
        """
        moved = [e for e in (*self.early, *self.late) if e.name not in VIEWS]
        costs = [(found.cost, e) for e in moved if (found := printing(e)) is not None]
        cost = sum([cost * math.prod(e.results[0].shape) for cost, e in costs])
        more = max(0, len(self.read) - rows) + max(0, len(self.kept) + len(self.ys) - ys)
        return cost >= _COST * (1 + more) and cost * steps >= ELEMENT_OPS


def _moves(e: Node) -> bool:
    """Whether a node can be computed for all steps at once."""
    if len(e.results) != 1 or not all(map(_is_small, (*e.reads, *e.results))):
        return False
    return e.name in _MOVED or (is_elementwise(e) and not may_warn(e))


class _Apart(NewNodes):
    """One walk over the nodes."""

    prefix = "s"

    def __init__(self, graph: Graph, lowered: Callable[[Any], bool]) -> None:
        super().__init__(graph)
        self.lowered = lowered
        self.new: dict[Any, Var] = {}
        read = [v for e in graph.nodes for v in (e.operands if isinstance(e, Node) else ())]
        guarded = [e.operand for e in graph.nodes if isinstance(e, Guard)]
        self.read = {*read, *guarded, *graph.outputs}

    def run(self) -> Graph:
        """Rewrite."""
        for entry in self.graph.nodes:
            e: Any = entry
            if isinstance(e, Guard):
                e = attrs.evolve(e, operand=self.new.get(e.operand, e.operand))
            elif any(a in self.new for a in e.operands):
                e = attrs.evolve(e, operands=tuple([self.new.get(a, a) for a in e.operands]))
            form = _loop_of(e)
            if form is None or not self._loop(e, form):
                self.nodes.append(e)
        return self.finished(self.new)

    def _loop(self, e: Node, form: Repeat) -> bool:
        """Write a loop in parts, if that is worth it."""
        body, c, n = plain(form.body), form.constants, form.carry
        if any(not isinstance(x, Node) or x.primitive.effect for x in body.nodes):
            return False
        wanted = [k for k, v in enumerate(e.results[n:]) if v in self.read]
        parts = _Parts.of(body, form, wanted)
        before, self.nodes, self.site = self.nodes, [], e.site
        rows = len(body.inputs) - c - n
        worth = parts.is_worth(form.most, rows, len(e.results) - n)
        if not worth and len(wanted) == len(e.results) - n:
            self.nodes = before
            return False
        at: dict[Any, Any] = dict(zip(body.inputs, e.operands, strict=True))
        at |= {v: self.constant(x.data) for v, x in body.constants}
        many = set(body.inputs[c + n :])
        for node in parts.early:
            self._of_all_steps(node, at, many, form.most)
        again = attrs.evolve(
            body, inputs=(*body.inputs[: c + n], *parts.read), nodes=tuple(parts.core),
            outputs=(*body.outputs[:n], *[body.outputs[n + k] for k in parts.ys], *parts.kept),
        )  # fmt: skip
        kept = [self.var((form.most, *v.shape), v.dtype) for v in parts.kept]
        made = [e.results[n + k] for k in parts.ys]
        loop = attrs.evolve(
            e, primitive=_primitive(e.primitive, again, form),
            operands=(*e.operands[: c + n], *[at[v] for v in parts.read]),
            results=(*e.results[:n], *made, *kept),
        )  # fmt: skip
        if not self.lowered(loop):
            self.nodes = before
            return False
        self.keep(loop)
        at |= dict(zip(parts.kept, kept, strict=True))
        many.update(parts.kept)
        for node in parts.late:
            self._of_all_steps(node, at, many, form.most)
        for k in wanted:
            if k not in parts.ys:
                self.new[e.results[n + k]] = at[body.outputs[n + k]]
        self.nodes = [*before, *self.nodes]
        return True

    def _of_all_steps(self, e: Node, at: dict[Any, Any], many: set[Var], steps: int) -> None:
        """A node of a body for all steps. at: what holds each of its operands, many: those of which
        it holds one for each step.
        """
        (out,) = e.results
        shape = (steps, *out.shape)
        rank = len(out.shape)

        def operand(v: Any) -> Any:
            if v not in many or e.name in ("reshape", "slice_"):
                return at.get(v, v)
            return self.reshape(at[v], (steps, *[1] * (rank - len(v.shape)), *v.shape))

        params = e.params
        if e.name in ("reshape", "broadcast_to"):
            params = (shape,)
        elif e.name == "slice_":
            params = (((None, None, 1), *params[0]),)
        result = at[out] = self.var(shape, out.dtype)
        self.keep(Node(e.primitive, tuple(map(operand, e.operands)), params, (result,), e.site))
        many.add(out)


def _primitive(of: Any, body: Graph, form: Repeat) -> Control:
    """The loop with another body."""
    kind = Inner(Repeat(body, form.constants, form.carry, form.steps, None, form.back))
    fields = {a.name: getattr(of, a.name) for a in attrs.fields(type(of)) if a.init}
    return Control(**(fields | {"bodies": (("body", body),), "kind": kind}))
