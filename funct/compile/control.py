"""Loops and branches inside of programs: their bodies as blocks of calls.

A body is a block only if all of it is loops over elements, products and control flow of this kind;
otherwise the node that has it is a step of its own, and Python goes through its steps.

A body over few elements is one kernel without calls (`lines/registers.py`).

Bodies are lowered once. Each use of one gives its inputs and outputs other places: constants are
read where they stand, the carry moves between two buffers, a row of an array is an address that
moves on. The test of a `while` is computed with the step before it, in the same loops.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from types import NoneType
from typing import Any

import attrs
import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from funct.compile.forms import Choice, Inner, Repeat
from funct.compile.fusion.calls import (
    Address,
    Buffer,
    Call,
    Root,
    Slot,
    Word,
    every_call,
    size_bytes,
)
from funct.compile.fusion.fuse import Fused, fuse
from funct.compile.fusion.lower import copy, places_of
from funct.compile.lines.small_loops import SmallLoop, in_registers
from funct.compile.loops.scalars import ELEMENTS, HELD
from funct.compile.loops.views import dense
from funct.compile.memory.carried import moved, stay
from funct.compile.memory.order import ordered
from funct.compile.rewriting.factored import factored_once
from funct.compile.rewriting.pairs import in_pairs
from funct.compile.rewriting.select import plain, put_in
from funct.compile.rewriting.simplify import simplify
from funct.compile.rewriting.triangles import triangles_called
from funct.compile.steps.moves import copied
from funct.compile.steps.placed import placed
from funct.compile.steps.table import in_bodies, in_programs
from funct.graph import Control, Graph, Node, Var, share_common

__all__ = ["Body", "constants_of", "is_lowered", "lower_step", "made", "why_apart"]


def made(form: Repeat | Choice) -> Any:
    """The blocks of a loop or a branch; None if it has none."""
    try:
        return _made_of(form)
    except _NoBlock:
        return None


def _made_of(form: Repeat | Choice) -> Any:
    if isinstance(form, Choice):
        return _Chosen(tuple([Body.of(plain(g)) for g in form.graphs]))
    small = in_registers(form)
    if isinstance(small, SmallLoop):
        return small
    body = plain(form.body)
    if form.test is None:
        return _Repeated(form, Body.of(body, form.constants), None)
    test = plain(form.test)
    whole = Body.of(_with_test(body, test, form.constants, form.carry), form.constants)
    return _Repeated(form, whole, Body.of(test))


def why_apart(node: Node) -> str:
    """Why a branch or a loop is no part of the program around it; empty where it is."""
    kind = node.primitive.kind  # type: ignore[attr-defined]
    form, found = kind.form(), _native(kind)
    if _made(node) is not None:
        return ""
    if found is not None:
        return "how many steps or elements it has is known at the call, so it is called by itself"
    if form is None:
        return "Python goes through its steps, which its trail of states asks for"
    try:
        _made_of(form)
    except _NoBlock as why:
        return f"Python goes through it: {why}"
    raise AssertionError("what has no blocks has a reason")


class _NoBlock(Exception):  # noqa: N818
    """Why a body is not all machine code."""


def _with_test(body: Graph, test: Graph, constants: int, carry: int) -> Graph:
    """The body, which gives after all else what the test says of the state that it gives."""
    nodes, (goes_on,) = put_in(test, (*body.inputs[:constants], *body.outputs[:carry]))
    both = attrs.evolve(
        body,
        constants=tuple(dict((*body.constants, *test.constants)).items()),
        nodes=(*body.nodes, *nodes),
        outputs=(*body.outputs, goes_on),
    )
    return share_common(both)


class Body(Struct, frozen=True, eq=False):
    """A graph as calls. results: for each output a buffer of its own."""

    graph: Graph
    inputs: tuple[Var, ...]
    calls: tuple[Call, ...]
    results: tuple[Root, ...]
    constants: dict[Var, Any]

    @classmethod
    def of(cls, graph: Graph, still: int = 0) -> Body:
        """The body of a graph without calls, so many of whose first inputs are the same in each
        step of a loop. Raises: _NoBlock: if it is not one block.
        """
        if graph.symbols:
            raise _NoBlock("it has symbolic sizes")
        if any(isinstance(e, Node) and e.primitive.effect for e in graph.nodes):
            raise _NoBlock("it has effects")
        simple, checks = simplify(in_pairs(graph) or graph, body=True)
        ends = (*simple.inputs, *simple.outputs)
        if checks:
            raise _NoBlock("an index must be checked before it runs")
        if any(v.dtype not in HELD for v in ends):
            raise _NoBlock("it has a dtype that loops do not know")
        if any(0 in v.shape for v in simple.outputs):
            raise _NoBlock("there are no elements")
        simple = triangles_called(factored_once(simple))
        fused = placed(ordered(fuse(simple), lambda step: True), lambda step: True)
        fused = attrs.evolve(fused, still=frozenset(simple.inputs[:still]))
        calls: list[Call] = []
        for s in fused.steps:
            lowered = lower_step if is_lowered(s) else in_bodies(s)
            if lowered is None:
                raise _NoBlock(_why(s, fused))
            calls += lowered(s, fused)
        results = _apart(simple.outputs, calls, fused)
        constants = {v: np.ascontiguousarray(x.data) for v, x in fused.graph.constants}
        for s in fused.steps:
            constants |= constants_of(s)
        for c in calls:
            constants |= c.held
        return cls(simple, tuple(simple.inputs), tuple(calls), tuple(results), constants)

    @property
    def doubts(self) -> bool:
        """Whether an op in it may have to be done otherwise, which raises or not."""
        return any(c.doubts for c in every_call(self.calls))

    def staying(self, first: int, count: int) -> tuple[Body, frozenset[int]]:
        """The body of a loop that carries so many values, and which of them it changes in place."""
        carried = list(zip(self.inputs[first : first + count], self.results, strict=False))
        calls, still = stay(self.calls, carried, self.results)
        return replace(self, calls=calls), still

    def early(self, still: int) -> list[bool]:
        """Which of the calls give the same in each step of a loop: they read nothing but what so
        many inputs hold, and what such calls made, and what they make is nobody's before it is
        whole.
        """
        last = {v: k for k, c in enumerate(self.calls) for v in _written(c)}
        apart: set[Any] = {*self.inputs, *self.results}
        while True:
            known: set[Any] = {*self.inputs[:still], *self.constants}
            found = []
            for c in self.calls:
                own = not c.is_told and apart.isdisjoint(c.writes)
                found.append(own and _read(c).difference(c.writes) <= known)
                known.update(c.writes if found[-1] else ())
            rest = [(k, c) for k, c in enumerate(self.calls) if not found[k]]
            shared = {v for _, c in rest for v in _written(c)}
            shared |= {v for k, c in rest for v in _read(c) if k < last.get(v, 0)}
            if shared <= apart:
                return found
            apart |= shared

    def at(self, inputs: Sequence[Address], results: Sequence[Address]) -> tuple[Call, ...]:
        """The calls, which read and write at these places.

        What they make for themselves is another buffer at each use: one that two blocks had in
        common would be taken from the first to the last.
        """
        made = [v for c in every_call(self.calls) for v in c.writes if isinstance(v, Var)]
        places: dict[Any, Address] = {v: Address(Var(v.name, v.shape, v.dtype)) for v in made}
        places |= dict(zip(self.inputs, inputs, strict=True))
        places |= dict(zip(self.results, results, strict=True))
        return tuple([moved(c, places) for c in self.calls])


def _written(call: Call) -> set[Any]:
    return {v for c in every_call([call]) for v in c.writes}


def _read(call: Call) -> set[Any]:
    return {w.of for c in every_call([call]) for w in c.words if isinstance(w, Address)}


def _why(step: Any, fused: Fused) -> str:
    if isinstance(step, Node) and isinstance(step.primitive, Control):
        return why_apart(step)
    return f"{step.name}: {fused.reasons[step]}" if isinstance(step, Node) else "it has guards"


def _apart(outputs: Sequence[Var], calls: list[Call], fused: Fused) -> list[Root]:
    """The buffers that hold the outputs, each of its own and of its shape; the rest is copied."""
    made = {v for c in calls for v in c.writes}
    taken: set[Any] = set()
    found: list[Root] = []
    for v in outputs:
        view = fused.views[v]
        whole = view.is_dense and math.prod(view.root.shape) == math.prod(v.shape)
        if whole and view.root not in made:
            root = Var(f"{v.name}_copy", v.shape, v.dtype)
            calls.append(copied(root, Address(view.root)))
            view = dense(root)
        elif not whole or view.root in taken:
            added, view = copy(view, fused)
            calls += added
        taken.add(view.root)
        found.append(view.root)
    return found


# Control flow


class _Repeated(Struct, frozen=True, eq=False):
    """The blocks of a loop."""

    form: Repeat
    body: Body
    test: Body | None

    @property
    def is_endless(self) -> bool:
        """Whether nothing known here ends it: its steps are counted when it is called."""
        return self.form.steps is None and self.test is None

    @property
    def doubts(self) -> bool:
        """Whether an op in it may have to be done otherwise."""
        return self.body.doubts or (self.test is not None and self.test.doubts)

    @property
    def constants(self) -> dict[Var, Any]:
        return self.body.constants | (self.test.constants if self.test is not None else {})

    def repeat(
        self, operands: Sequence[Address], results: Sequence[Address],
        limit: Address | None = None, count: Address | None = None,
    ) -> list[Call]:  # fmt: skip
        """The loop, of at most `limit` steps if that is given, after what is the same in each; how
        many they were in `count`.
        """
        form, n, c = self.form, self.form.carry, self.form.constants
        body, still = self.body.staying(c, n)
        held, first = operands[:c], operands[c : c + n]
        given = body.inputs[c + n :]
        rows = [*given, *body.results[n : len(results)]]
        slots = Buffer(2 * n + len(rows), np.dtype(np.int64))
        sizes = [size_bytes(v) for v in (*body.inputs[c : c + n], *rows)]

        def slot(index: int, size: int) -> Address:
            return Address(Slot(slots, index, size))

        read = [slot(2 * k, sizes[k]) for k in range(n)]
        write = [slot(2 * k + 1, sizes[k]) for k in range(n)]
        moving = [slot(2 * n + k, size) for k, size in enumerate(sizes[n:])]
        go = Address(Buffer(1, np.dtype(bool)))
        xs, ys = moving[: len(given)], moving[len(given) :]
        asks = self.test is not None
        test = self.test.at([*held, *read], [go]) if self.test is not None else ()
        calls = body.at([*held, *read, *xs], [*write, *ys, *([go] if asks else [])])
        early = body.early(c)
        before = list(itertools.compress(calls, early))
        step = tuple([call for call, is_early in zip(calls, early, strict=True) if not is_early])
        words: list[Word] = [
            form.most, limit or 0, go if asks else 0,
            int(form.back), count or 0, n, len(rows), Address(slots),
        ]  # fmt: skip
        for k in range(n):
            other = results[k] if k in still else Address(Buffer(sizes[k], np.dtype(np.uint8)))
            words += [first[k], results[k], other, sizes[k]]
        for place, size in zip((*operands[c + n :], *results[n:]), sizes[n:], strict=True):
            words += [place, size]
        writes = tuple([a.of for a in results])
        loop = Call(
            ("repeat",), tuple(words), 1, writes,
            blocks=(test, step), slots=slots, turns=form.most,
        )  # fmt: skip
        return [*before, loop]


class _Chosen(Struct, frozen=True, eq=False):
    """The blocks of a branch."""

    bodies: tuple[Body, ...]

    @property
    def doubts(self) -> bool:
        """Whether an op in it may have to be done otherwise."""
        return any(b.doubts for b in self.bodies)

    @property
    def constants(self) -> dict[Var, Any]:
        return {v: x for b in self.bodies for v, x in b.constants.items()}

    def calls(self, operands: Sequence[Address], results: Sequence[Var]) -> list[Call]:
        """The branch as one call, or the calls of the only body."""
        to = [Address(v) for v in results]
        if len(self.bodies) == 1:
            return list(self.bodies[0].at(operands, to))
        blocks = tuple([b.at(operands[1:], to) for b in self.bodies])
        index = operands[0]
        assert isinstance(index.of, Var | Buffer)
        kernel = ("choose", ELEMENTS[index.of.dtype], len(blocks))
        return [Call(kernel, (index,), 1, tuple(results), blocks=blocks)]


# Steps of a graph


def _native(kind: Any) -> Any:
    """The blocks of control flow, made once."""
    if not isinstance(kind, Inner):
        return kind.native()
    if not kind.made:
        kind.made.append(made(kind.form()))
    return kind.made[0]


def _made(step: Any) -> Any:
    """The blocks of a step that is control flow; None if it is none, or has none."""
    if not isinstance(step, Node) or not isinstance(step.primitive, Control):
        return None
    if any(0 in v.shape for v in step.results):
        return None
    made = _native(step.primitive.kind)
    return None if not isinstance(made, _Chosen | NoneType) and made.is_endless else made


def is_lowered(step: Any, *, doubtful: bool = True) -> bool:
    """Whether a step can be part of a program; doubtful: also one that may find that it must be
    done otherwise.
    """
    if in_programs(step, doubtful) is not None:
        return True
    made = _made(step)
    return made is not None and (doubtful or not made.doubts)


def lower_step(step: Any, fused: Fused) -> list[Call]:
    """The calls of a step that can be part of a program."""
    lowered = in_programs(step)
    if lowered is not None:
        return lowered(step, fused)
    made = _made(step)
    calls, operands = places_of(step.operands, fused)
    if not isinstance(made, _Chosen):
        return [*calls, *made.repeat(operands, [Address(v) for v in step.results])]
    return [*calls, *made.calls(operands, step.results)]


def constants_of(step: Any) -> dict[Var, Any]:
    """The arrays whose addresses a step's calls hold."""
    made = _made(step)
    return {} if made is None else made.constants
