"""A loop of a known number of steps as one program: no Python between the steps.

The body's calls stand twice in the table, since the carry goes back and forth between two sets of
buffers: the first time they read one and write the other, the second time the other way. After both
the addresses of what is read and written step by step move on by two rows. A body is a program only
if all of it is loops and products.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import attrs
import numpy as np

from funct.compile.fuse import Fused, fuse
from funct.compile.groups import Group
from funct.compile.lower import Address, Buffer, Call, copy, lower
from funct.compile.products import is_product, lower_product
from funct.compile.program import Program, Repeat, link
from funct.compile.simplify import simplify
from funct.graph import Graph, Node, Var, eliminate_dead, inline_calls, share_common

__all__ = ["Loop", "loop", "worth_looping"]

_WORTH = 1 << 11  # nodes times steps from which machine code is made for a loop
_PROGRAMS = 16  # kept, one for each number of steps and direction

Run = Callable[[Sequence[Any], Sequence[Any], Sequence[Any], int, bool], tuple[Any, ...]]


def worth_looping(body: Graph, steps: int) -> bool:
    """Whether so many steps save more than the code costs to make."""
    return steps * len(body.nodes) >= _WORTH


def loop(body: Graph, constants: int, carry: int) -> Loop | None:
    """The loop of a body `(*constants, *carry, *x) -> (*carry, *y)`; None if it is no program."""
    if body.symbols or any(isinstance(e, Node) and e.primitive.effect for e in body.nodes):
        return None
    graph = eliminate_dead(share_common(inline_calls(body)), guards=True)
    simple, checks = simplify(graph)
    fused = fuse(simple)
    if checks or not all(isinstance(s, Group) or is_product(s) for s in fused.steps):
        return None
    whole = (*simple.inputs, *simple.outputs)
    if any(0 in v.shape or v.dtype.kind not in "biuf" for v in whole):
        return None
    return Loop(fused, constants, carry)


@attrs.frozen
class _Ends:
    """What the two halves of the table read and write."""

    held: tuple[Var, ...]
    carry: tuple[tuple[Var, ...], tuple[Var, ...]]
    xs: tuple[Var, ...]
    ys: tuple[Var, ...]


class Loop:
    """A body as calls, and the programs that repeat it."""

    def __init__(self, fused: Fused, constants: int, carry: int) -> None:
        graph = fused.graph
        self.fused = fused
        self.n_held, self.n_carry = constants, carry
        self.constants = {v: np.ascontiguousarray(x.data) for v, x in graph.constants}
        self.calls: list[Call] = []
        for s in fused.steps:
            if isinstance(s, Group):
                self.calls += lower(s, fused)
            else:
                assert isinstance(s, Node), "a body without guards"
                self.calls += lower_product(s, fused)
        self.results = self._results(graph.outputs)
        self.programs: dict[tuple[int, bool], Program] = {}
        self.ends = self._ends()

    def _results(self, outputs: Sequence[Var]) -> list[Var]:
        """The buffers that hold the outputs, each of its own: what else would share is copied."""
        made = {v for c in self.calls for v in c.writes}
        taken: set[Var] = set()
        found: list[Var] = []
        for v in outputs:
            view = self.fused.views[v]
            if view.root not in made or view.root in taken or not view.is_dense:
                calls, view = copy(view, self.fused)
                self.calls += calls
            taken.add(view.root)
            found.append(view.root)
        return found

    def _ends(self) -> _Ends:
        graph = self.fused.graph
        split = self.n_held + self.n_carry
        carried, given = graph.inputs[self.n_held : split], graph.inputs[split:]
        return _Ends(
            tuple(graph.inputs[: self.n_held]),
            (_fresh(carried, "even"), _fresh(carried, "odd")),
            _fresh(given, "x"),
            _fresh(self.results[self.n_carry :], "y"),
        )

    def __call__(
        self, held: Sequence[Any], carry: Sequence[Any], xs: Sequence[Any], steps: int,
        reverse: bool,
    ) -> tuple[Any, ...]:  # fmt: skip
        """The last carry, then the ys."""
        program = self.programs.get((steps, reverse))
        if program is None:
            if len(self.programs) >= _PROGRAMS:
                self.programs.pop(next(iter(self.programs)))
            program = self.programs[steps, reverse] = self._program(steps, reverse)
        first = [np.array(c, order="C") for c in carry]
        second = [np.empty_like(c) for c in first]
        ys = [np.empty((steps, *v.shape), v.dtype) for v in self.results[self.n_carry :]]
        given = [np.require(a, requirements=["C", "A"]) for a in (*held, *xs)]
        n = len(held)
        work = np.empty(program.workspace, np.uint8)
        done = program.run(*given[:n], *first, *second, *given[n:], *ys, work)
        assert done, "all arrays are dense"
        return (*(second if steps % 2 else first), *ys)

    def _program(self, steps: int, reverse: bool) -> Program:
        ends = self.ends
        strides = {v: _bytes(v) for v in (*ends.xs, *ends.ys)}
        way = -1 if reverse else 1
        start = steps - 1 if reverse else 0
        halves = [c for half in (0, 1) for c in self._half(half, start + way * half, strides)]
        arguments = [*ends.held, *ends.carry[0], *ends.carry[1], *ends.xs, *ends.ys]
        held = {v: x.ctypes.data for v, x in self.constants.items()}
        repeat = Repeat(
            steps // 2,
            bool(steps % 2),
            len(self.calls),
            {v: 2 * way * s for v, s in strides.items()},
        )
        return link(halves, arguments, held, repeat)

    def _half(self, half: int, row: int, strides: dict[Var, int]) -> list[Call]:
        """The calls with their buffers' names replaced by those of this half."""
        ends, graph = self.ends, self.fused.graph
        split = self.n_held + self.n_carry
        name: dict[Any, Var] = {}
        name |= dict(zip(graph.inputs[self.n_held : split], ends.carry[half], strict=True))
        name |= dict(zip(self.results[: self.n_carry], ends.carry[1 - half], strict=True))
        name |= dict(zip(graph.inputs[split:], ends.xs, strict=True))
        name |= dict(zip(self.results[self.n_carry :], ends.ys, strict=True))

        def renamed(w: Any) -> Any:
            if not isinstance(w, Address) or w.of not in name:
                return w
            v = name[w.of]
            return Address(v, w.offset + row * strides.get(v, 0))

        return [
            attrs.evolve(
                c,
                words=tuple([renamed(w) for w in c.words]),
                writes=tuple([name.get(v, v) for v in c.writes]),
            )
            for c in self.calls
        ]


def _fresh(like: Sequence[Var | Buffer], end: str) -> tuple[Var, ...]:
    return tuple([Var(f"{v.name}_{end}", v.shape, v.dtype) for v in like if isinstance(v, Var)])


def _bytes(v: Var) -> int:
    return int(np.prod(v.shape, dtype=np.int64)) * v.dtype.itemsize
