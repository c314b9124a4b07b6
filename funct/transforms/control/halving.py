"""A body cut into its forward and its backward half, for the reverse rules of what is staged.

Note [Halves]: the reverse rule captures a body together with its pull as one graph, and cuts it
where the cotangents come in (`partition`). What the backward half can have from values that it is
given anyway is computed again, and so is what is cheap; of the rest the fewest bytes are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import attrs
from msgspec import Struct

from funct.compile.memory.partition import partition
from funct.compile.rewriting.attention import with_attention
from funct.graph import Call, Control, Graph, Guard, Node, Var, check, eliminate_dead
from funct.transforms.control.bodies import (
    Avals,
    Flags,
    chosen,
    freed,
    reads_of,
    regraph,
    with_symbols,
    zeros_of,
)
from funct.transforms.vjp import vjp

__all__ = ["Halves", "halves", "recorded"]


class Halves(Struct, frozen=True, eq=False):
    """A body cut in two, see Note [Halves].

    forward: inputs -> (*outputs, *residuals). backward: (*inputs[uses], *residuals, *cotangents of
    the flagged outputs) -> cotangents of the flagged inputs. makers: what made each residual, None
    for an input.
    """

    forward: Graph
    backward: Graph
    uses: tuple[int, ...]
    residuals: Avals
    makers: tuple[Node | Call | None, ...]


def halves(
    graph: Graph,
    mine: Flags,
    out_flags: Flags,
    ready: Flags,
    again: Callable[[Node | Call], Any] | None = None,
    fixed: Flags | None = None,
) -> Halves:
    """Both halves of a body's reverse rule.

    ready: the inputs that the backward half is given. fixed: those that are equal in every step;
    what depends on them alone is computed again, and so is what `again` says; where that is not
    given, what is kept are the fewest bytes.
    """
    n_in, n_out = len(graph.inputs), len(graph.outputs)
    avals = [v.aval for v in graph.inputs]
    outs = [v.aval for v in graph.outputs]

    def joint(*xs: Any) -> list[Any]:
        vals, cts = xs[:n_in], iter(xs[n_in:])
        found, pull = vjp(freed(graph, mine, vals), *chosen(vals, mine))
        full = [next(cts) if f else zeros_of([o])[0] for f, o in zip(out_flags, outs, strict=True)]
        return [*found, *pull.adjoint(full)]  # the engine's convention, whatever the user's

    both = with_attention(regraph(joint, [*avals, *chosen(outs, out_flags)]))
    entries = [e for e in both.nodes if not isinstance(e, Guard)]
    inputs = both.inputs[:n_in]
    varying = _dependents(entries, chosen(inputs, [not f for f in fixed or (False,) * n_in]))

    def decided(e: Node | Call) -> bool | None:
        if varying.isdisjoint(e.results):
            return True
        return None if again is None else bool(again(e))

    cut = partition(both, n_in, n_out, given=ready, again=decided)
    uses = tuple([k for k, v in enumerate(inputs) if ready[k] and v in cut.residuals])
    there = [inputs[k] for k in uses]
    residuals = [v for v in cut.residuals if v not in there]
    made = {v: e for e in entries for v in e.results}
    forward = attrs.evolve(cut.forward, outputs=(*cut.forward.outputs[:n_out], *residuals))
    place = {v: k for k, e in enumerate(entries) for v in e.results}

    def order(e: Any) -> int:
        """That of the user's program: its own op is the first to fail, not a derivative of it."""
        return max([place.get(v, -1) for v in e.results or e.reads], default=-1)

    backward = attrs.evolve(
        cut.backward,
        nodes=tuple(sorted(cut.backward.nodes, key=order)),
        inputs=(*there, *residuals, *both.inputs[n_in:]),
    )
    return Halves(
        check(with_symbols(eliminate_dead(forward))),
        check(with_symbols(eliminate_dead(backward))),
        uses,
        tuple([v.aval for v in residuals]),
        tuple([made.get(v) for v in residuals]),
    )


def _dependents(entries: Sequence[Node | Call], roots: Sequence[Var]) -> set[Var]:
    live = set(roots)
    for e in entries:
        if not live.isdisjoint(reads_of(e)):
            live.update(e.results)
    return live


def recorded(graph: Graph, mine: Flags) -> Graph:
    """The graph as a tape has it: functions with a reverse rule are what the forward part of that
    rule computes, so that derivatives of derivatives see what they see anywhere else.
    """
    if not _has_rules(graph):
        return graph

    def run(*xs: Any) -> Sequence[Any]:
        return vjp(freed(graph, mine, xs), *chosen(xs, mine))[0]

    return regraph(run, [v.aval for v in graph.inputs])


def _has_rules(graph: Graph) -> bool:
    """Whether there are functions with rules of their own in it."""
    controls = [e.primitive for e in graph.nodes if isinstance(e, Node)]
    inside = [g for c in controls if isinstance(c, Control) for _, g in c.bodies]
    return any(isinstance(e, Call) for e in graph.nodes) or any(map(_has_rules, inside))
