"""Branches and loops as single nodes: `Staged`, and what their rules do to the graphs inside.

Nothing is special about such a node: it is a primitive, made on the spot, whose implementation is
compiled graphs. So the checker, the passes, the compiler and the interpreter know it already. Its
rules make other staged functions from transformed bodies: the derivative of a loop is a loop. What
they make is kept, so that it is captured and compiled once.

Note [Halves]: the reverse rule captures a body together with its pull as one graph, and cuts it
where the cotangents come in, as `Executable` does. What the backward half needs and can have from
values that it is given anyway, or by moving elements, is computed again; only the rest is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ClassVar

import attrs

from funct import ops
from funct.array import Array, Tensor, asarray, zeros
from funct.compile import build
from funct.core import INEXACT, Absent, Region, ShapeDtype, bind, join, top_level
from funct.core.level import escaped
from funct.errors import FunctError
from funct.graph import (
    Call,
    Capture,
    Control,
    Graph,
    Guard,
    Interpreter,
    Node,
    Var,
    check,
    eliminate_dead,
    share_common,
)  # fmt: skip
from funct.graph.capture import capture
from funct.ops.families import wrap
from funct.transforms.forward import Forward, ForwardTracer, jvp
from funct.transforms.jet import Jet, JetTracer
from funct.transforms.reverse import Reverse, ReverseTracer
from funct.transforms.vjp import vjp
from funct.transforms.vmap import Batch, BatchTracer, whole

__all__ = [
    "Flags", "Flat", "Halves", "Staged", "aval_of", "avals_of", "batched", "captured", "chosen",
    "dual", "halves", "lanes", "lifted", "ordered", "paired", "picked", "reached", "regraph",
    "repeated", "trace", "unpicked", "zeros_of",
]  # fmt: skip

Flags = tuple[bool, ...]
Flat = tuple[Any, ...]
Avals = tuple[ShapeDtype, ...]

# ops that only move elements: cheaper to do again than to keep what they give
_MOVES = frozenset({"reshape", "broadcast_to", "permute_dims", "slice_", "flip", "windows"})


class Staged:
    """A branch, a loop or a checkpoint: a flat function made of graphs, with every rule.

    Subclasses give `run` on buffers, `push`, `forward`, `backward` and `batch` on values. In these
    `mine` says which operands vary, and cotangents of the others are None.
    """

    name: ClassVar[str]

    def __init__(self, bodies: Sequence[tuple[str, Graph]], ins: Avals, outs: Avals) -> None:
        self.ins = ins
        self.outs = outs
        self._made: dict[Any, Any] = {}
        self.primitive = Control(
            name=self.name,
            raw=self._raw,
            operands=tuple([f"x{k}" for k in range(len(ins))]),
            params=(),
            rules=(Absent("a region has rules for all operands at once"),) * len(ins),
            batch=self._batched,
            aval=self._aval,
            code=Absent("a function of its own"),
            onnx=Absent("control flow has no ONNX form yet"),
            samples=_no_samples,
            masks=False,
            spread=None,
            results=len(outs),
            bodies=tuple(bodies),
            kind=self,
        )
        join(self.primitive, self._fn)

    def run(self, *buffers: Any) -> Flat:
        """The results on bare buffers."""
        raise NotImplementedError

    def mapped(self, change: Callable[[Graph], Graph]) -> Staged:
        """The same with other bodies of the same types; itself, where that cannot be."""
        return self

    def push(self, mine: Flags, primals: Flat, tangents: Flat) -> tuple[Flat, Flat]:
        """Results and their tangents; the tangents of operands that are not mine are ignored."""
        raise NotImplementedError

    def forward(self, mine: Flags, *vals: Any) -> tuple[Flat, Flat]:
        """Results and residuals."""
        raise NotImplementedError

    def backward(self, mine: Flags, residuals: Flat, cts: Flat) -> Flat:
        """One cotangent per operand."""
        raise NotImplementedError

    def batch(self, size: int, flags: Flags, vals: Flat) -> Flat:
        """The results for a batch, which is on axis 0 of the flagged values and of all results."""
        raise NotImplementedError

    def __call__(self, *args: Any) -> Flat:
        """On arrays or tracers of any levels."""
        if not self.outs:
            return ()
        args = tuple([a if isinstance(a, Tensor) else asarray(a) for a in args])
        level = top_level(args)
        if isinstance(level, Reverse | Forward | Jet):
            if not level.open:
                escaped(self.name, level)
            return level.region(self._region(level, args), args)
        out = bind(self.primitive, args)
        return out if len(self.outs) != 1 else (out,)

    def once(self, key: Any, make: Callable[[], Any]) -> Any:
        """What `make` gives, made once per key."""
        found = self._made.get(key)
        if found is None:
            found = self._made.setdefault(key, make())
        return found

    def compiled(self, graph: Graph) -> Callable[..., Flat]:
        """A body as a function of buffers; an error in it is the one that eager execution gives."""

        def make() -> Callable[..., Flat]:
            raw = build(graph, guards=False)

            def run(*buffers: Any) -> Flat:
                try:
                    return raw(*buffers)
                except Exception as error:
                    raise _located(graph, buffers, error) from None

            return run

        return self.once(("compiled", graph), make)

    def _fn(self, *args: Any) -> Any:
        out = self(*args)
        return out if len(self.outs) != 1 else out[0]

    def _raw(self, *buffers: Any) -> Any:
        out = self.run(*buffers)
        return out if len(self.outs) != 1 else out[0]

    def _aval(self, args: Sequence[Any], params: Flat) -> Any:
        return self.outs if len(self.outs) != 1 else self.outs[0]

    def _batched(self, prim: Any, vals: Sequence[Any], flags: Sequence[bool], params: Flat) -> Any:
        vals = [asarray(v) for v in vals]
        size = next(int(v.shape[0]) for v, f in zip(vals, flags, strict=True) if f)
        out = self.batch(size, tuple(flags), tuple(vals))
        return out if len(self.outs) != 1 else out[0]

    def _region(self, level: Reverse | Forward | Jet, args: Flat) -> Region:
        mine = tuple(
            [
                a.__class__ in (ReverseTracer, ForwardTracer, JetTracer)
                and a.level is level
                and a.dtype in INEXACT
                for a in args
            ]
        )
        return Region(
            self.name, self.__call__, partial(self.push, mine),
            partial(self.forward, mine), partial(self.backward, mine),
        )  # fmt: skip


def _no_samples(rng: Any) -> Sequence[Any]:
    return ()


def _located(graph: Graph, buffers: Sequence[Any], error: Exception) -> Exception:
    """The error with the user's line: found by interpreting."""
    if isinstance(error, FunctError):
        return error
    try:
        Interpreter(graph).run(*[wrap(b) for b in buffers])
    except FunctError as better:
        return better
    except Exception:
        pass
    return error


# graphs -----------------------------------------------------------------------------------------


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
