"""What the rules of branches and loops do to the graphs inside them; `halving.py` cuts them in two.

Note [Sizes in bodies]: under jit a body may have symbolic sizes, those of the capture around it,
which is asked when a decision is taken on one. Once made, a body reads the symbols off its own
inputs; where it could not (an input has n + 1 elements, none has n) it gets one more, of no
elements, which has that length. A transformed body may lack it: then it is made for numbers, and so
is everything around it. Values of other sizes, or a capture of its own, take a copy of the body
made for them (`at`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import count
from typing import Any

import attrs

from funct import ops
from funct.array import zeros
from funct.core import INEXACT, ShapeDtype, Shared, Size, size_values
from funct.graph import (
    Call,
    Control,
    Graph,
    Guard,
    Node,
    Symbol,
    Var,
    check,
    eliminate_dead,
    share_common,
)  # fmt: skip
from funct.graph.capture import capture
from funct.transforms.control.closures import hoisted
from funct.transforms.forward import jvp
from funct.transforms.reverse import zero_like
from funct.transforms.tape.nodes import SizeError
from funct.transforms.vmap import Batch, BatchTracer, whole

__all__ = [
    "Avals", "Flags", "Flat", "Reach", "SizeError", "at_sizes", "aval_of", "avals_of",
    "batched", "chosen", "dual", "filled", "freed", "is_symbol", "known_sizes", "lanes",
    "lifted", "or_none", "or_zero", "ordered", "paired", "picked", "reached", "reads_of",
    "regraph", "repeated", "repeated_where", "shared", "symbols_of", "tangents_of", "trace",
    "unpicked", "varied", "with_symbols", "zeros_of",
]  # fmt: skip

Flags = tuple[bool, ...]
Flat = tuple[Any, ...]
Avals = tuple[ShapeDtype, ...]
Reach = Callable[[Graph, Flags], Flags]


def aval_of(x: Any) -> ShapeDtype:
    """Shape and dtype."""
    return ShapeDtype(x.shape, x.dtype)


def avals_of(values: Sequence[Any]) -> Avals:
    """`aval_of` each."""
    return tuple([aval_of(v) for v in values])


def trace(
    name: str,
    fun: Callable[..., Sequence[Any]],
    avals: Sequence[Any],
    user: Any = None,
    hoist: Callable[[Node | Call], bool] | None = None,
    sizes: Sequence[Any] = (),
) -> tuple[Graph, Flat]:
    """The graph of a flat function, and the traced values it closes over: its last inputs.

    hoist: which entries are computed here instead, where they need nothing else than such values.
    sizes: further lengths that are to be read off the inputs.
    """
    for n in _sizes(tuple([a.shape for a in avals])):
        if not is_symbol(n):
            bool(n)  # a guard of the capture around: without elements a program is another one
    owning = _owning(fun, avals, True)
    graph, outer = capture(owning, avals, label=name, user_fun=user, body=True)
    graph = eliminate_dead(share_common(graph), guards=False)
    if hoist is not None and outer:
        graph, outer = hoisted(graph, outer, hoist)
    mentioned = [*_sizes((graph, *sizes))]
    if not mentioned:
        return check(graph), outer
    told = _counters(graph, mentioned)
    graph = attrs.evolve(graph, inputs=(*graph.inputs, *[v for v, _ in told]))
    return check(with_symbols(graph)), (*outer, *[x for _, x in told])


def _counters(graph: Graph, sizes: Sequence[Size]) -> list[tuple[Var, Any]]:
    """Inputs without elements, and their values, whose lengths are those symbols that the sizes
    mention and no input has.
    """
    known = {s.name for s in symbols_of([v.shape for v in graph.inputs])}
    named = {name: n for n in sizes for name in n.names - known}
    taken, found = {v.name for v in graph.inputs}, []
    for name, n in sorted(named.items(), key=lambda item: item[0]):
        size = Size.symbol(name, n.scope.hints[name], n.scope)
        value = zeros((size, 0))
        var = Var(next(v for k in count() if (v := f"x{k}") not in taken), (size, 0), value.dtype)
        taken.add(var.name)
        found.append((var, value))
    return found


def _owning(fun: Callable[..., Any], avals: Sequence[Any], closes: bool) -> Callable[..., Any]:
    """fun, during which what is made from symbolic sizes alone belongs to its own capture.

    closes: whether it may close over what the capture around has.
    """
    scopes = {n.scope for a in avals for n in a.shape if isinstance(n, Size)}
    if not scopes:
        return fun

    read = {s.name: s for s in symbols_of([a.shape for a in avals])}

    def run(*xs: Any) -> Any:
        def measure(size: Size, around: Any) -> Any:
            if not size.names <= read.keys():
                return around and around(size)
            found = [read[name] for name in size.names]
            known = {s.name: ops.size_along(xs[s.input], (s.axis,)) for s in found}
            return eval(repr(size), {"__builtins__": {}, "max": ops.maximum}, known)

        before = [(s, s.lift, s.measure) for s in scopes]
        for s, _, around in before:
            s.lift = xs[0].level.constant
            s.measure = partial(measure, around=around if closes else None)
        try:
            return fun(*xs)
        finally:
            for s, lift, around in before:
                s.lift, s.measure = lift, around

    return run


def is_symbol(n: Any) -> bool:
    """Whether a length is a symbol itself, no polynomial of some."""
    return isinstance(n, Size) and repr(n).isidentifier()


def symbols_of(shapes: Sequence[Sequence[Any]]) -> tuple[Symbol, ...]:
    """The symbols that are lengths, and where they are read off."""
    found: dict[str, Symbol] = {}
    for k, shape in enumerate(shapes):
        for axis, n in enumerate(shape):
            if is_symbol(n):
                found.setdefault(repr(n), Symbol(repr(n), k, axis))
    return tuple(found.values())


def with_symbols(graph: Graph) -> Graph:
    """The graph, which reads the symbols of its sizes off its inputs. Raises SizeError."""
    sizes = {repr(n): n for n in _sizes(graph)}
    if not sizes:
        return graph
    symbols = symbols_of([v.shape for v in graph.inputs])
    known_sizes(symbols, *sizes.values())
    return attrs.evolve(graph, symbols=symbols)


def known_sizes(symbols: Sequence[Symbol], *tree: Any) -> None:
    """Raise SizeError unless the symbols tell every Size in nested tuples."""
    known = {s.name for s in symbols}
    unknown = [n for n in _sizes(tree) if not known >= n.names]
    if unknown:
        raise SizeError(unknown)


def _sizes(tree: Any) -> Iterator[Size]:
    """Every Size that a graph mentions."""
    if isinstance(tree, Size):
        yield tree
    elif isinstance(tree, tuple):
        for t in tree:
            yield from _sizes(t)
    elif isinstance(tree, Graph):
        yield from _sizes(tuple([v.shape for v in tree.inputs]))
        for e in tree.nodes:
            if not isinstance(e, Guard):
                yield from _sizes(tuple([v.shape for v in e.results]))
                yield from _sizes(e.params if isinstance(e, Node) else e.body)


def at_sizes(graph: Graph, sizes: Mapping[str, Any]) -> Graph:
    """The graph for these values of its symbols: numbers, or sizes of another capture."""
    return regraph(graph, [ShapeDtype(size_values(v.shape, sizes), v.dtype) for v in graph.inputs])


def regraph(fun: Callable[..., Sequence[Any]], avals: Sequence[ShapeDtype]) -> Graph:
    """The graph of a flat function that closes over nothing traced. Raises SizeError."""
    graph, outer = capture(_owning(fun, avals, False), avals, label="graph")
    assert not outer, "a transformed graph is closed"
    return check(with_symbols(eliminate_dead(share_common(graph), guards=False)))


def chosen(values: Sequence[Any], flags: Sequence[bool]) -> list[Any]:
    """The values that are flagged."""
    return [v for v, f in zip(values, flags, strict=True) if f]


def zeros_of(avals: Sequence[Any]) -> list[Any]:
    """A zero of each type."""
    return [zeros(a.shape, dtype=a.dtype) for a in avals]


def reads_of(e: Node | Call) -> list[Var]:
    """The Vars that an entry needs, those that a call's body takes from outside included."""
    held = [a for a in e.operands if isinstance(a, Var)]
    return [*held, *e.body.inputs] if isinstance(e, Call) else held


def _varying_reads(e: Node | Call) -> list[Var]:
    """Those through which derivatives flow."""
    if isinstance(e, Call) or isinstance(e.primitive, Control):
        return reads_of(e)
    pairs = zip(e.operands, e.primitive.rules, strict=True)
    return [a for a, rule in pairs if isinstance(a, Var) and rule is not None]


def reached(graph: Graph, flags: Sequence[bool]) -> Flags:
    """Which outputs depend on a flagged input, where each result of an op depends on all it reads:
    the ones that are batched where the input is.
    """
    live = set(chosen(graph.inputs, flags))
    for e in graph.nodes:
        if not isinstance(e, Guard) and not live.isdisjoint(reads_of(e)):
            live.update(e.results)
    return tuple([v in live for v in graph.outputs])


def varied(graph: Graph, flags: Sequence[bool]) -> Flags:
    """Which outputs have a derivative with respect to a flagged input."""
    live = set(chosen(graph.inputs, flags))
    for e in graph.nodes:
        if not isinstance(e, Guard) and not live.isdisjoint(_varying_reads(e)):
            live.update([v for v in e.results if v.dtype in INEXACT])
    return tuple([v in live for v in graph.outputs])


def lanes(graph: Graph, flags: Flags, out_flags: Flags, size: Any) -> Callable[..., list[Any]]:
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


def batched(aval: ShapeDtype, size: Any, axis: int = 0) -> ShapeDtype:
    """The type with one more axis."""
    return ShapeDtype((*aval.shape[:axis], size, *aval.shape[axis:]), aval.dtype)


def lifted(graph: Graph, flags: Flags, out_flags: Flags, size: Any) -> Graph:
    """`lanes` as a graph."""
    avals = [v.aval for v in graph.inputs]
    types = [batched(a, size) if f else a for a, f in zip(avals, flags, strict=True)]
    return regraph(lanes(graph, flags, out_flags, size), types)


def repeated(x: Any, aval: ShapeDtype, size: Any) -> Any:
    """x with the batch on axis 0, repeated where it has none."""
    return x if len(x.shape) > aval.ndim else ops.broadcast_to(x, (size, *aval.shape))


def shared(x: Any, aval: ShapeDtype) -> Any:
    """A result with its batch on axis 0, or said to be the same in all lanes."""
    return x if len(x.shape) > aval.ndim else Shared(x)


def repeated_where(
    flags: Sequence[bool], values: Sequence[Any], avals: Sequence[ShapeDtype], size: Any
) -> list[Any]:
    """`repeated` each value that is flagged."""
    each = zip(values, avals, flags, strict=True)
    return [repeated(v, a, size) if f else v for v, a, f in each]


def tangents_of(mine: Flags, primals: Sequence[Any], tangents: Sequence[Any]) -> list[Any]:
    """A tangent for each primal: zero for those that are not mine."""
    return [t if m else zero_like(p) for p, t, m in zip(primals, tangents, mine, strict=True)]


def or_zero(pushed: Sequence[Any], flags: Sequence[bool], values: Sequence[Any]) -> Flat:
    """The tangents of the flagged values; zeros for the others, and for those that are None."""
    return filled(or_none(pushed, flags), values)


def filled(cts: Sequence[Any], values: Sequence[Any]) -> Flat:
    """The cotangents of values; zeros for those that are None."""
    pairs = zip(cts, values, strict=True)
    return tuple([zero_like(v) if c is None else c for c, v in pairs])


def or_none(found: Sequence[Any], flags: Sequence[bool]) -> list[Any]:
    """The cotangents of what is flagged, None for the rest."""
    given = iter(found)
    return [next(given) if f else None for f in flags]


def ordered(graph: Graph, ins: Sequence[int], outs: Sequence[int]) -> Graph:
    """The graph with its inputs and outputs in another order."""
    inputs, outputs = tuple(picked(graph.inputs, ins)), tuple(picked(graph.outputs, outs))
    return with_symbols(attrs.evolve(graph, inputs=inputs, outputs=outputs))


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
        outs, pushed = jvp(freed(graph, mine, vals), tuple(chosen(vals, mine)), tuple(ts))
        return [*outs, *chosen(pushed, out_flags)]

    return regraph(both, [*avals, *chosen(avals, mine)])


def freed(graph: Graph, mine: Flags, vals: Sequence[Any]) -> Callable[..., Flat]:
    """The graph as a function of the inputs that are mine."""

    def free(*fs: Any) -> Flat:
        given = iter(fs)
        return graph(*[next(given) if m else v for v, m in zip(vals, mine, strict=True)])

    return free
