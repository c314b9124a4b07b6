"""Steps of a loop that are given a tangent, or a cotangent, not each time.

Note [Gates]: what has a tangent, or a cotangent, need not be the same at all steps: a carry that
the next step does not read has a cotangent in the last step alone, and a first carry that is a
number has no tangent. A loop has one body, which is given zeros there, and 0 · inf is NaN. So the
loop carries beside such a value whether it is there, and what an op makes of nothing is nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from operator import and_, or_
from typing import Any

import attrs
import numpy as np

from funct import ops
from funct.array import asarray
from funct.core import INEXACT, ShapeDtype
from funct.graph import (
    Call,
    Control,
    Graph,
    Interpreter,
    Node,
    Var,
    dependent,
    depending,
    eliminate_dead,
)
from funct.transforms.control.bodies import Flags, Reach, chosen, ordered, picked, regraph
from funct.transforms.reverse import zero_like

__all__ = ["at_some_step", "at_the_end", "gated"]

_MOST = 64  # steps that are followed one by one


def at_some_step(body: Graph, flags: Flags, at: int, n: int, reach: Reach) -> Flags:
    """Flags of the carried values, n inputs from the at-th and the first n outputs, that hold at
    some step. flags: of the inputs, at the first step. reach: from inputs to outputs.
    """
    return _settled(body, flags, at, n, reach, or_)


def at_the_end(body: Graph, flags: Flags, at: int, n: int, reach: Reach, steps: Any) -> Flags:
    """As `at_some_step`, behind the last of so many; the same where that is not soon known."""
    carry = flags[at : at + n]
    for _ in range(min(steps, _MOST) if isinstance(steps, int) else 0):
        after = reach(body, (*flags[:at], *carry, *flags[at + n :]))[:n]
        if after == carry:
            return carry
        carry = after
    return (
        carry
        if steps.__class__ is int and steps <= _MOST
        else at_some_step(body, flags, at, n, reach)
    )


def _settled(
    body: Graph, flags: Flags, at: int, n: int, reach: Reach, join: Callable[[bool, bool], bool]
) -> Flags:
    while True:
        carry = flags[at : at + n]
        joined = tuple(map(join, carry, reach(body, flags)[:n]))
        if joined == carry:
            return carry
        flags = (*flags[:at], *joined, *flags[at + n :])


def gated(body: Graph, flags: Flags, at: int, n: int) -> tuple[Graph, Flags]:
    """The body with a boolean for some of the carried values, whether they are there, behind all of
    these; and for which: for none where no op makes something of nothing.

    flags: the inputs that the body is linear in and that are there at the first step. The carried
    values are n inputs from the at-th, and the first n outputs.
    """
    always = _settled(body, flags, at, n, dependent, and_)
    ever = at_some_step(body, flags, at, n, dependent)
    late = [k for k in range(n) if ever[k] and not always[k]]
    inputs, outputs = len(body.inputs), len(body.outputs)
    truth = ShapeDtype((), np.dtype(bool))

    def run(*xs: Any) -> list[Any]:
        gates = {body.inputs[at + k]: x for k, x in zip(late, xs[inputs:], strict=True)}
        walk = _Gated(body, (*flags[:at], *always, *flags[at + n :]), gates)
        outs = walk.run(*xs[:inputs])
        return [*outs, *[walk.is_there(body.outputs[k]) for k in late]]

    whole = regraph(run, [*[v.aval for v in body.inputs], *[truth] * len(late)])
    read: set[int] = set()
    while True:  # a gate may be read for the sake of another alone
        wanted = [*range(outputs), *[outputs + i for i in sorted(read)]]
        part = attrs.evolve(whole, outputs=tuple(picked(whole.outputs, wanted)))
        asked = [i for i in range(len(late)) if any(dependent(part, _one(inputs + i, whole)))]
        if read.issuperset(asked):
            break
        read.update(asked)
    if not read:
        return body, (False,) * n
    kept = sorted(read)
    ins = [*range(at + n), *[inputs + i for i in kept], *range(at + n, inputs)]
    outs = [*range(n), *[outputs + i for i in kept], *range(n, outputs)]
    found = eliminate_dead(ordered(whole, ins, outs))
    return found, tuple([k in [late[i] for i in kept] for k in range(n)])


def _one(k: int, graph: Graph) -> Flags:
    return tuple([i == k for i in range(len(graph.inputs))])


class _Gated(Interpreter):
    """Evaluate on values of which some are not there, and zeros then. gates: whether they are."""

    def __init__(self, graph: Graph, moving: Flags, gates: dict[Var, Any]) -> None:
        super().__init__(graph)
        self.moving = set(chosen(graph.inputs, moving))
        self.gates = gates

    def is_there(self, v: Var) -> Any:
        """Whether a value is, as an array."""
        gate = self.gates.get(v)
        return asarray(v in self.moving) if gate is None else gate

    def node(self, node: Node, operands: list[Any]) -> tuple[Any, ...]:
        """One primitive; of what is not there it makes nothing."""
        return self._through(node, super().node(node, operands))

    def call(self, call: Call, operands: list[Any]) -> tuple[Any, ...]:
        """One call of a function with its own rules; of what is not there it makes nothing."""
        return self._through(call, super().call(call, operands))

    def _through(self, e: Node | Call, outs: tuple[Any, ...]) -> tuple[Any, ...]:
        gates = list({id(g): g for v in e.reads if (g := self.gates.get(v)) is not None}.values())
        if not self.moving.isdisjoint(e.reads):
            self.moving.update(chosen(e.results, depending(e, self.moving)))
        if not gates:
            return outs
        reached = depending(e, set(self.gates))
        gate = reduce(ops.logical_or, gates)
        found = list(outs)
        for k, (v, r) in enumerate(zip(e.results, reached, strict=True)):
            if r and v not in self.moving and v.dtype in INEXACT:
                self.gates[v] = gate
                if self._may_be_infinite(e):
                    found[k] = ops.where(gate, outs[k], zero_like(outs[k]))
        return tuple(found)

    def _may_be_infinite(self, e: Node | Call) -> bool:
        """Whether something beside a zero may be: what is not linear in what is not there."""
        if isinstance(e, Call) or isinstance(e.primitive, Control):
            return True
        linear = self.moving | self.gates.keys()
        return any(v not in linear and v.dtype in INEXACT for v in e.reads)
