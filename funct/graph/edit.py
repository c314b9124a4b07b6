"""Edit a graph by building another one: put functions in, put values in others' places, cut out.

Nothing here changes the graph that it is given.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs
from msgspec import Struct

from funct.array import Array
from funct.errors import GraphError, SignatureError
from funct.graph.capture import capture
from funct.graph.check import check
from funct.graph.given import expect, expect_all, expect_taking, of_graph
from funct.graph.ir import Entry, Graph, Guard, Node, Var
from funct.graph.passes import eliminate_dead, fresh_names, inline_calls, same_type, substituted

__all__ = ["Splice", "extract", "insert_after", "replace", "splice"]


@of_graph
def replace(graph: Graph, values: Mapping[Var, Var]) -> Graph:
    """The graph in which every use of a value, outputs too, is a use of another one.

    What nobody needs any more is left out.
    Raises: GraphError: where types differ, or where a use would come before its definition.
    """
    if not isinstance(values, Mapping):
        raise SignatureError(f"replace: values must be a mapping, got {type(values).__name__}")
    expect_all("replace", "values", [v for pair in values.items() for v in pair], Var)
    for old, new in values.items():
        if not same_type(old, new):
            raise GraphError(f"replace: {old.name} is {old.aval}, {new.name} is {new.aval}")
    nodes = [substituted(e, dict(values)) for e in graph.nodes]
    outputs = tuple([values.get(v, v) for v in graph.outputs])
    return check(eliminate_dead(attrs.evolve(graph, nodes=tuple(nodes), outputs=outputs)))


class Splice(Struct, frozen=True, eq=False):
    """A function as entries for a graph: what it needs defined, and what it gives."""

    entries: tuple[Entry, ...]
    constants: tuple[tuple[Var, Array], ...]
    outputs: tuple[Var, ...]


def splice(
    fun: Callable[..., Any], operands: Sequence[Var], fresh: Callable[[], str], site: Any = None
) -> Splice:
    """fun on values of a graph, as entries with fresh names. site: the line they stand for."""

    def flat(*xs: Any) -> Sequence[Any]:
        out = fun(*xs)
        return out if isinstance(out, tuple | list) else (out,)

    body, outer = capture(flat, [v.aval for v in operands])
    if outer:
        raise GraphError("splice: the function closes over a value of a transform")
    body = inline_calls(body)
    known: dict[Any, Any] = dict(zip(body.inputs, operands, strict=True))

    def named(v: Var) -> Var:
        known[v] = attrs.evolve(v, name=fresh())
        return known[v]

    constants = tuple([(named(v), x) for v, x in body.constants])
    entries: list[Entry] = []
    for e in body.nodes:
        assert isinstance(e, Node | Guard), "calls are inlined"
        if isinstance(e, Guard):
            raise GraphError("splice: the function decides on a value", site=e.site)
        refs = tuple([known[a] if isinstance(a, Var) else a for a in e.operands])
        results = tuple([named(v) for v in e.results])
        entries.append(Node(e.primitive, refs, e.params, results, site or e.site))
    return Splice(tuple(entries), constants, tuple([known[v] for v in body.outputs]))


@of_graph
def insert_after(graph: Graph, value: Var, fun: Callable[[Any], Any]) -> Graph:
    """The graph in which fun(value) stands wherever the value was used.

    Raises: GraphError: where fun gives another type.
    Example:
        >>> import funct as ft, funct.array as xp
        >>> graph = ft.make_graph(lambda x: xp.exp(x) + 1.0)(xp.zeros(()))
        >>> clipped = insert_after(graph, graph.nodes[0].results[0], lambda y: xp.minimum(y, 0.5))
        >>> float(clipped(xp.zeros(()))[0])
        1.5
    """
    expect("insert_after", "value", value, Var)
    expect("insert_after", "fun", fun, Callable)
    expect_taking("insert_after", "fun", fun, 1)
    put = splice(fun, [value], fresh_names(graph))
    new = put.outputs[0] if len(put.outputs) == 1 else None
    if new is None or not same_type(value, new):
        given = f"{len(put.outputs)} results" if new is None else new.aval
        raise GraphError(f"insert_after: {value.name} is {value.aval}, fun gives {given}")
    nodes: list[Entry] = []
    at_start = value in graph.inputs or any(value is v for v, _ in graph.constants)
    if at_start:
        nodes += put.entries
    for e in graph.nodes:
        nodes.append(substituted(e, {value: new}))
        if not isinstance(e, Guard) and value in e.results:
            nodes += put.entries
    outputs = tuple([new if v is value else v for v in graph.outputs])
    constants = (*graph.constants, *put.constants)
    return check(attrs.evolve(graph, nodes=tuple(nodes), outputs=outputs, constants=constants))


@of_graph
def extract(graph: Graph, inputs: Sequence[Var], outputs: Sequence[Var]) -> Graph:
    """The part of a graph that computes outputs from inputs, values of any place in it.

    Raises: GraphError: where an output needs more than these inputs.
    """
    expect_all("extract", "inputs", inputs, Var)
    expect_all("extract", "outputs", outputs, Var)
    kept: list[Entry] = []
    wanted = set(outputs) - set(inputs)
    for e in reversed(graph.nodes):
        if not isinstance(e, Guard) and not wanted.isdisjoint(e.results):
            kept.append(e)
            wanted |= {a for a in e.operands if isinstance(a, Var)}
            wanted |= set(getattr(e, "body", graph).inputs if hasattr(e, "body") else ())
            wanted -= set(inputs)
    constants = tuple([(v, x) for v, x in graph.constants if v in wanted])
    made = {v for e in kept if not isinstance(e, Guard) for v in e.results}
    missing = wanted - made - {v for v, _ in constants}
    if missing:
        names = ", ".join(sorted(v.name for v in missing))
        raise GraphError(f"extract: the outputs need {names} as well")
    return check(Graph(tuple(inputs), constants, tuple(kept[::-1]), tuple(outputs)))
