"""What the rules of branches and loops do to the graphs inside them.

Note [Halves]: the reverse rule captures a body together with its pull as one graph, and cuts it
where the cotangents come in, as `Executable` does. What the backward half needs and can have from
values that it is given anyway, or by moving elements, is computed again; only the rest is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import attrs

from funct import ops
from funct.array import Array, Tensor, zeros
from funct.core import INEXACT, ShapeDtype
from funct.graph import (
    Call,
    Capture,
    Control,
    Graph,
    Guard,
    Node,
    Var,
    check,
    eliminate_dead,
    share_common,
)  # fmt: skip
from funct.graph.capture import capture
from funct.transforms.forward import jvp
from funct.transforms.reverse import zero_like
from funct.transforms.vjp import vjp
from funct.transforms.vmap import Batch, BatchTracer, whole

__all__ = [
    "Avals", "Flags", "Flat", "Halves", "aval_of", "avals_of", "batched", "captured", "chosen",
    "dual", "halves", "lanes", "lifted", "or_none", "or_zero", "ordered", "paired", "picked",
    "reached", "regraph", "repeated", "repeated_where", "tangents_of", "trace", "unpicked",
    "zeros_of",
]  # fmt: skip

Flags = tuple[bool, ...]
Flat = tuple[Any, ...]
Avals = tuple[ShapeDtype, ...]

# ops that only move elements: cheaper to do again than to keep what they give
_MOVES = frozenset({"reshape", "broadcast_to", "permute_dims", "slice_", "flip", "windows"})


def aval_of(x: Any) -> ShapeDtype:
    """Shape and dtype; a symbolic size is asked for its number, since a body is made for one."""
    return ShapeDtype([int(n) for n in x.shape], x.dtype)


def avals_of(values: Sequence[Any]) -> Avals:
    """`aval_of` each."""
    return tuple([aval_of(v) for v in values])


def captured(x: Any) -> bool:
    """Whether x stands, at some level, for a value that is written down."""
    while isinstance(x, Tensor) and x.__class__ is not Array:
        if isinstance(x.level, Capture):
            return True
        x = x.value
    return False


def trace(
    name: str, fun: Callable[..., Sequence[Any]], avals: Sequence[Any], user: Any = None
) -> tuple[Graph, Flat]:
    """The graph of a flat function, and the traced values it closes over: its last inputs."""
    graph, outer = capture(fun, avals, label=name, user_fun=user)
    avals_of(outer)
    return check(eliminate_dead(share_common(graph), guards=False)), outer


def regraph(fun: Callable[..., Sequence[Any]], avals: Sequence[ShapeDtype]) -> Graph:
    """The graph of a flat function that closes over nothing traced."""
    graph, outer = trace("graph", fun, avals)
    assert not outer, "a transformed graph is closed"
    return graph


def chosen(values: Sequence[Any], flags: Sequence[bool]) -> list[Any]:
    """The values that are flagged."""
    return [v for v, f in zip(values, flags, strict=True) if f]


def zeros_of(avals: Sequence[Any]) -> list[Any]:
    """A zero of each type."""
    return [zeros(a.shape, dtype=a.dtype) for a in avals]


def _reads(e: Node | Call) -> list[Var]:
    """The Vars that an entry needs, those that a call's body takes from outside included."""
    held = [a for a in e.operands if isinstance(a, Var)]
    return [*held, *e.body.inputs] if isinstance(e, Call) else held


def _varying_reads(e: Node | Call) -> list[Var]:
    """Those through which derivatives flow."""
    if isinstance(e, Call) or isinstance(e.primitive, Control):
        return _reads(e)
    pairs = zip(e.operands, e.primitive.rules, strict=True)
    return [a for a, rule in pairs if isinstance(a, Var) and rule is not None]


def reached(graph: Graph, flags: Sequence[bool], *, derivative: bool) -> Flags:
    """Which outputs depend on a flagged input; for a derivative, which vary with one."""
    live = set(chosen(graph.inputs, flags))
    for e in graph.nodes:
        if isinstance(e, Guard):
            continue
        if not live.isdisjoint(_varying_reads(e) if derivative else _reads(e)):
            live.update(v for v in e.results if not derivative or v.dtype in INEXACT)
    return tuple([v in live for v in graph.outputs])


def lanes(graph: Graph, flags: Flags, out_flags: Flags, size: int) -> Callable[..., list[Any]]:
    """The graph on batched values: flagged outputs are batched, the others do not depend on any."""

    def run(*vals: Any) -> list[Any]:
        level = Batch(graph, size)
        ins = [BatchTracer(v, level) if f else v for v, f in zip(vals, flags, strict=True)]
        try:
            outs = graph(*ins)
        finally:
            level.open = False
        return [whole(o, level) if f else o for o, f in zip(outs, out_flags, strict=True)]

    return run


def batched(aval: ShapeDtype, size: int, axis: int = 0) -> ShapeDtype:
    """The type with one more axis."""
    return ShapeDtype((*aval.shape[:axis], size, *aval.shape[axis:]), aval.dtype)


def lifted(graph: Graph, flags: Flags, out_flags: Flags, size: int) -> Graph:
    """`lanes` as a graph."""
    avals = [v.aval for v in graph.inputs]
    types = [batched(a, size) if f else a for a, f in zip(avals, flags, strict=True)]
    return regraph(lanes(graph, flags, out_flags, size), types)


def repeated(x: Any, aval: ShapeDtype, size: int) -> Any:
    """x with the batch on axis 0, repeated where it has none."""
    return x if len(x.shape) > aval.ndim else ops.broadcast_to(x, (size, *aval.shape))


def repeated_where(
    flags: Sequence[bool], values: Sequence[Any], avals: Sequence[ShapeDtype], size: int
) -> list[Any]:
    """`repeated` each value that is flagged."""
    each = zip(values, avals, flags, strict=True)
    return [repeated(v, a, size) if f else v for v, a, f in each]


def tangents_of(mine: Flags, primals: Sequence[Any], tangents: Sequence[Any]) -> list[Any]:
    """A tangent for each primal: zero for those that are not mine."""
    return [t if m else zero_like(p) for p, t, m in zip(primals, tangents, mine, strict=True)]


def or_zero(pushed: Sequence[Any], flags: Sequence[bool], values: Sequence[Any]) -> Flat:
    """The tangents of the flagged values, and zeros for the others."""
    given = iter(pushed)
    return tuple([next(given) if f else zero_like(v) for v, f in zip(values, flags, strict=True)])


def or_none(found: Sequence[Any], flags: Sequence[bool]) -> list[Any]:
    """The cotangents of what is flagged, None for the rest."""
    given = iter(found)
    return [next(given) if f else None for f in flags]


def ordered(graph: Graph, ins: Sequence[int], outs: Sequence[int]) -> Graph:
    """The graph with its inputs and outputs in another order."""
    return attrs.evolve(
        graph, inputs=tuple(picked(graph.inputs, ins)), outputs=tuple(picked(graph.outputs, outs))
    )


def paired(flags: Sequence[bool], *sizes: int) -> list[int]:
    """An order for values followed by one more for each that is flagged: group by group, first the
    group's values and then those that belong to its flagged ones.
    """
    second, order, start = iter(range(len(flags), len(flags) + sum(flags))), [], 0
    for n in sizes:
        group = range(start, start + n)
        order += [*group, *[next(second) for k in group if flags[k]]]
        start += n
    return order


def picked(values: Sequence[Any], order: Sequence[int]) -> list[Any]:
    """The values in that order."""
    return [values[k] for k in order]


def unpicked(values: Sequence[Any], order: Sequence[int]) -> list[Any]:
    """The values that `picked` put into that order, in their own again."""
    found = dict(zip(order, values, strict=True))
    return [found[k] for k in range(len(order))]


def dual(graph: Graph, mine: Flags, out_flags: Flags) -> Graph:
    """(*inputs, *tangents of mine) -> (*outputs, *tangents of the flagged outputs)."""
    avals = [v.aval for v in graph.inputs]

    def both(*xs: Any) -> list[Any]:
        vals, ts = xs[: len(mine)], xs[len(mine) :]
        outs, pushed = jvp(_freed(graph, mine, vals), tuple(chosen(vals, mine)), tuple(ts))
        return [*outs, *chosen(pushed, out_flags)]

    return regraph(both, [*avals, *chosen(avals, mine)])


def _freed(graph: Graph, mine: Flags, vals: Sequence[Any]) -> Callable[..., Flat]:
    """The graph as a function of the inputs that are mine."""

    def free(*fs: Any) -> Flat:
        given = iter(fs)
        return graph(*[next(given) if m else v for v, m in zip(vals, mine, strict=True)])

    return free


@attrs.frozen(eq=False)
class Halves:
    """A body cut in two, see Note [Halves].

    forward: inputs -> (*outputs, *residuals). backward: (*inputs[uses], *residuals, *cotangents of
    the flagged outputs) -> cotangents of the flagged inputs.
    """

    forward: Graph
    backward: Graph
    uses: tuple[int, ...]
    residuals: Avals


def halves(
    graph: Graph,
    mine: Flags,
    out_flags: Flags,
    ready: Flags,
    again: Callable[[Node | Call], bool] = lambda e: e.name in _MOVES,
    fixed: Flags | None = None,
) -> Halves:
    """Both halves of a body's reverse rule.

    ready: the inputs that the backward half is given. fixed: those that are equal in every step;
    what depends on them alone is computed again, and so is what `again` says.
    """
    n_in, n_out = len(graph.inputs), len(graph.outputs)
    avals = [v.aval for v in graph.inputs]
    outs = [v.aval for v in graph.outputs]

    def joint(*xs: Any) -> list[Any]:
        vals, cts = xs[:n_in], iter(xs[n_in:])
        found, pull = vjp(_freed(graph, mine, vals), *chosen(vals, mine))
        full = [next(cts) if f else zeros_of([o])[0] for f, o in zip(out_flags, outs, strict=True)]
        return [*found, *pull.adjoint(full)]  # the engine's convention, whatever the user's

    both = regraph(joint, [*avals, *chosen(outs, out_flags)])
    inputs, cts = both.inputs[:n_in], both.inputs[n_in:]
    entries = [e for e in both.nodes if not isinstance(e, Guard)]
    later = _dependents(entries, cts)
    varying = _dependents(entries, chosen(inputs, [not f for f in fixed or (False,) * n_in]))
    known = {*chosen(inputs, ready), *[v for v, _ in both.constants], *cts}
    wanted = {v for v in both.outputs[n_out:] if v not in known}
    late: list[Node | Call] = []
    for e in reversed(entries):
        if wanted.isdisjoint(e.results):
            continue
        if not later.isdisjoint(e.results) or varying.isdisjoint(e.results) or again(e):
            late.append(e)
            wanted.difference_update(e.results)
            wanted.update(v for v in _reads(e) if v not in known)
    residuals = [v for v in _in_order(both) if v in wanted]
    read = {v for e in late for v in _reads(e)} | set(both.outputs[n_out:])
    uses = tuple([k for k, v in enumerate(inputs) if ready[k] and v in read])
    forward = attrs.evolve(both, inputs=inputs, outputs=(*both.outputs[:n_out], *residuals))
    backward = attrs.evolve(
        both,
        inputs=(*[inputs[k] for k in uses], *residuals, *cts),
        nodes=tuple(late[::-1]),
        outputs=both.outputs[n_out:],
    )
    return Halves(
        check(eliminate_dead(forward)),
        check(eliminate_dead(backward)),
        uses,
        tuple([v.aval for v in residuals]),
    )


def _dependents(entries: Sequence[Node | Call], roots: Sequence[Var]) -> set[Var]:
    live = set(roots)
    for e in entries:
        if not live.isdisjoint(_reads(e)):
            live.update(e.results)
    return live


def _in_order(graph: Graph) -> list[Var]:
    """Every Var, in the order of definition: the residuals' order is the same in every process."""
    made = [v for e in graph.nodes if not isinstance(e, Guard) for v in e.results]
    return [*graph.inputs, *made]
